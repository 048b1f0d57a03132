"""The verdict as people and programs read it: whole at 80 columns, without colour when piped, strictly valid JSON."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from msmigrate.errors import BadDestination
from msmigrate.parity.options import STAGES, Narrowing
from msmigrate.parity.result import Cause, CellChange, Finding, Report
from msmigrate.parity.tensor_verdict import Unjudged, Verdict
from msmigrate.reports.html.parity_page import page
from msmigrate.reports.parity_ci import markdown
from msmigrate.reports.parity_json import write_json
from msmigrate.reports.parity_terminal import show
from rich.console import Console

NAME = "layer4.2.downsample.1.running_mean"
LONG = "one element is off by 0.00123 where rounding explains 1.2e-08: expected -0.000123456, got 0.00110765"


def finding(stage: str, order: int, verdict: Verdict = Verdict.PASS, **more: float) -> Finding:
    why = "" if verdict is Verdict.PASS else LONG
    return Finding(stage, "given gradients momentum_buffer", NAME, order, verdict, why, "BatchNorm2d", (2048,), **more)


def report(*extra: Finding, stages: tuple[str, ...] = STAGES) -> Report:
    whole = [finding(stage, 0, ratio=1234.5, error=1.2e-7) for stage in stages]
    return Report("some/recipe.yaml", "0123456789abcdef", {"torch": "2.15"}, [*whole, *extra], ["a note"], ["a hint"])


def printed(found: Report, width: int = 80, worst: int = 5) -> str:
    console = Console(file=io.StringIO(), width=width)
    show(found, console, worst)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(len(line) <= width for line in text.splitlines())
    return text


def test_80_columns_hold_every_stage_and_number_whole() -> None:
    text = printed(
        report(finding("loss", 1, Verdict.FAIL, ratio=9.0), finding("data", 1, Verdict.NONE), stages=STAGES[:5])
    )
    for stage in STAGES:
        assert re.search(rf"^ ?{stage} ", text, re.MULTILINE), text
    assert "1.2e+03" in text and "1.2e-07" in text and "…" not in text
    assert "no tensors" in text  # the update stage


def test_a_pipe_gets_no_escape_codes() -> None:
    assert "\x1b" not in printed(report(finding("loss", 1, Verdict.FAIL)))


def test_parity_is_said_with_what_was_not_decided() -> None:
    text = printed(report())
    assert "Parity: 6 tensors compared in six stages." in text
    assert "Note: a note." in text and "a hint" not in text
    text = printed(report(replace(finding("loss", 1, Verdict.NONE), unjudged=Unjudged.STORAGE)))
    assert "6 tensors compared in six stages; by nature 1 tensor has no verdict." in " ".join(text.split())
    assert "Without a verdict by nature:" in text
    text = " ".join(printed(report(replace(finding("loss", 1, Verdict.NONE), unjudged=Unjudged.NOISE))).split())
    assert "Unproven: nothing failed, but 1 tensor that should have a verdict has none (loss)." in text
    assert "to do: use a larger batch (--batch)" in text and "Without the verdict that they should have:" in text


def narrowed(found: Report, *stages: str, modules: Sequence[str] = ()) -> Report:
    narrowing = Narrowing.to(stages, modules)
    return replace(found, narrowing=narrowing, findings=[f for f in found.findings if f.stage in narrowing.stages])


@pytest.mark.parametrize(
    ("stages", "modules", "said"),
    [
        (
            ("gradients", "forward"),
            (),
            "Parity in forward and gradients: 2 tensors compared; data, init, loss and update were not judged.",
        ),
        (
            STAGES[1:],
            (),
            "Parity in init, forward, loss, gradients and update: 5 tensors compared; data was not judged.",
        ),
        (
            ("forward",),
            ["fc"],
            "Parity in forward of fc: 1 tensors compared; other modules, data, init, loss, gradients",
        ),
        (
            (),
            ["a*", "b"],
            "Parity in init, forward, gradients and update of a* and b: 4 tensors compared; other modules,",
        ),
    ],
)
def test_a_narrowed_verdict_says_what_was_judged(stages: Sequence[str], modules: Sequence[str], said: str) -> None:
    text = " ".join(printed(narrowed(report(), *stages, modules=modules)).split())
    assert said in text and "six stages" not in text
    for stage in set(STAGES) - set(stages or STAGES):
        assert f" {stage} pass" not in text
    failed = report(*(finding(stage, 1, Verdict.FAIL, ratio=9.0) for stage in STAGES[1:]))
    text = " ".join(printed(narrowed(failed, *stages, modules=modules)).split())
    assert re.search(r"No parity in .* \(.* (was|were) not judged\)\. First divergence: ", text)


def test_no_parity_names_the_place_the_reason_and_the_worst() -> None:
    failed = [finding("loss", i, Verdict.FAIL, ratio=10.0 + i) for i in range(1, 9)]
    text = printed(report(*failed), worst=3)
    flat = " ".join(text.split())
    assert f"First divergence: loss (given gradients momentum_buffer) {NAME}" in flat
    assert "given gradients: the optimizer on gradients that both sides were given" in flat
    assert flat.count(LONG) == 4  # the first divergence, and the worst three
    assert "and 5 more (--json FILE has all)" in flat
    assert [float(x) for x in re.findall(r"ratio (1\d\.\d+)", text)] == [18.0, 17.0, 16.0]
    assert "BatchNorm2d, shape [2048]" in flat


def test_a_stage_without_a_verdict_is_no_parity() -> None:
    text = printed(report(finding("loss", 1, Verdict.NONE), stages=tuple(s for s in STAGES if s != "loss")))
    assert "Unproven: nothing failed, but 1 tensor that should have a verdict has none (loss)." in " ".join(
        text.split()
    )
    text = " ".join(printed(report(stages=tuple(s for s in STAGES if s != "loss"))).split())
    assert "Unproven: nothing was compared in loss." in text


def test_names_that_look_like_markup_are_printed_as_they_are() -> None:
    odd = Finding("forward", "[bold]", "[/red]x[link=y]", 1, Verdict.FAIL, "[blink]why", None, ())
    text = printed(report(odd))
    assert "[/red]x[link=y]" in text and "[blink]why" in text and "([bold])" in text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_any_width_works(width: int) -> None:
    assert "gradients" in printed(report(finding("loss", 1, Verdict.FAIL, ratio=math.inf)), width)


def test_json_is_strict_and_whole(tmp_path: Path) -> None:
    odd = finding("loss", 1, Verdict.FAIL, ratio=math.inf, error=math.nan)
    path = tmp_path / "report.json"
    write_json(report(odd), path)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert len(document["findings"]) == 7 and document["first_divergence"]["why"] == LONG
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_json_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    with pytest.raises(BadDestination, match=r"cannot write .*taken"):
        write_json(report(), taken)
    with pytest.raises(BadDestination, match="cannot write"):
        write_json(report(), tmp_path / "missing" / "report.json")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def momentum(place: str, **changed: str) -> Cause:
    change = CellChange((place,), "mindspore.nn.BatchNorm2d", {"momentum": "0.9", **changed})
    tried = ("BatchNorm2d", "momentum=0.9")
    text = f"{place} has momentum=0.9"
    return Cause("update", place, "bn-momentum-complement", text, "fix it", "", 0.2, 9.0, change, *tried)


def test_one_mistake_at_many_places_is_one_cause() -> None:
    causes = [momentum("a"), momentum("b", eps="0.1"), momentum("c"), momentum("d")]
    causes += [replace(momentum("e"), hypothesis=""), replace(momentum("f"), hypothesis="")]
    causes += [replace(momentum("g"), fault=None), replace(momentum("h"), fault=None)]  # no known fault, and the same
    causes += [replace(momentum("i"), kind="LayerNorm")]
    found = replace(report(finding("update", 1, Verdict.FAIL)), causes=causes)
    assert [(cause.place, places) for cause, places in found.mistakes] == [
        ("a", ["c", "d"]),
        ("b", []),
        ("e", []),
        ("f", []),
        ("g", ["h"]),
        ("i", []),
    ]
    text = printed(found)
    assert "6 causes, tried out in torch:" in text and "the same at: 2 more BatchNorm2d: c, d" in text
    assert "The same at 2 more: `c`, `d`." in markdown(found)
    assert "2 more BatchNorm2d: c, d" in page(found)


def test_the_verdict_comes_first_then_causes_the_table_and_the_notes() -> None:
    found = replace(report(finding("update", 1, Verdict.FAIL)), causes=[momentum("a")])
    text = printed(found)
    order = ["No parity.", "1 cause", "stage ", "Worst of the failed", "Note: a note."]
    assert sorted(order, key=text.index) == order
    text = printed(report())
    order = ["Parity: 6 tensors", "stage ", "Note: a note."]
    assert sorted(order, key=text.index) == order
