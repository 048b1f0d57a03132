"""An analysis is printed, written as JSON and as a page that loads nothing and runs nothing."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from msmigrate.migrate.analyze.model_analysis import Analysis
from msmigrate.migrate.analyze.operators import Operator
from msmigrate.reports import model_analysis
from rich.console import Console

OPERATORS = (
    Operator(
        torch="torch.nn.Conv2d",
        way="direct",
        mindspore="mindspore.nn.Conv2d",
        status="equal",
        kind="layer",
        calls=20,
        train_calls=20,
        places=("layer1.0.conv", "layer1.1.conv"),
        call="mindspore.nn.Conv2d(in_channels=3)",
        differs=("bias → has_bias",),
        pitfalls=("conv-pad-mode-same",),
        docs={"torch": "https://pytorch.org/", "mindspore": "https://www.mindspore.cn/"},
    ),
    Operator(
        torch="torch.roll",
        way="composed",
        mindspore="msmigrate.nn.functional.roll",
        status="equal",
        calls=1,
        train_calls=1,
        places=("block",),
        why="MindSpore's CPU has no roll",
    ),
)
LACKING = (
    Operator(torch="torch.gone", way="missing", status="missing", why="nothing does this", places=("a",), calls=1),
    Operator(torch="torch.<b>new</b>[red]", way="no row", places=("<i>x</i>",), lines=("net.py:3",), train_calls=2),
)


def analysis(*more: Operator, **settings: Any) -> Analysis:
    costs: dict[str, int | None] = {
        "parameters": 11_689_512,
        "parameter_bytes": 46_758_048,
        "flops": 3_628_146_688,
        "activation_bytes": 950,
    }
    content: dict[str, Any] = {"mode": "pynative", "target": "CPU", "inputs": "1×3×224×224", "costs": costs, **settings}
    return Analysis(name="net", kind="torch", operators=(*OPERATORS, *more), **content)


def printed(found: Analysis, *, whole: bool = False) -> str:
    out = io.StringIO()
    model_analysis.show(found, Console(file=out, width=200), whole=whole)
    return out.getvalue()


def test_the_verdict_comes_first_and_everything_is_said() -> None:
    text = printed(analysis(*LACKING))
    assert text.startswith("net does not move yet: 2 of 4 operators missing: torch.gone (no counterpart)")
    for words in ("11.7 M (46.8 MB)", "3.63 G", "950 B kept", "layer*.*.conv (2)", "2 in training", "  roll  "):
        assert words in text, words
    assert "torch.gone: no counterpart: nothing does this; in a" in text
    assert "torch.<b>new</b>[red]: no row: the mapping table does not know it; in <i>x</i>; at net.py:3" in text
    assert "conv-pad-mode-same: " in text and "(nn.Conv2d)" in text
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_the_calls_are_printed_on_demand() -> None:
    call = "mindspore.nn.Conv2d(in_channels=3)"
    assert call in printed(analysis(), whole=True) and call not in printed(analysis())


def test_what_the_statuses_are_worth_is_said() -> None:
    assert "nothing of it ran" in printed(analysis(target="Ascend"))
    assert "the rows say nothing about it" in printed(analysis(target="GPU"))
    assert "other values may take other branches" in printed(analysis(device="cpu"))
    assert "never ran as modules on these inputs" in printed(analysis(never_ran=("aux",)))


def test_json_holds_everything() -> None:
    told = json.loads(json.dumps(model_analysis.as_json(analysis(*LACKING))))
    assert told["moves"] is False and told["missing"] == ["torch.gone", "torch.<b>new</b>[red]"]
    assert told["operators"][0]["places"] == ["layer1.0.conv", "layer1.1.conv"]
    assert told["pitfalls"]["conv-pad-mode-same"]["operators"] == ["torch.nn.Conv2d"]
    assert model_analysis.as_json(analysis())["moves"] is True


def test_the_page_loads_nothing_and_what_it_is_told_stays_text() -> None:
    page = model_analysis.html(analysis(*LACKING, notes=("<script>alert(1)</script>\x00",)))
    assert "<script" not in page and "<b>new</b>" not in page and "<i>x</i>" not in page and "\x00" not in page
    assert "torch.&lt;b&gt;new&lt;/b&gt;" in page
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None and policy[1].startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert not re.search(r'(src|href)="(?!#|https://www\.mindspore\.cn/|https://pytorch\.org/)', page)
    assert "✕ Does not move yet" in page and "✓ Moves" in model_analysis.html(analysis())


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (1000, "1 k"), (46_758_048, "46.8 M"), (3_628_146_688, "3.63 G"), (2 * 10**13, "20 T")],
)
def test_amounts_have_three_digits(number: int, text: str) -> None:
    assert model_analysis.amount(number) == text
