"""The summary for a pull request: short enough for a comment, and no name becomes markup in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import made_up_reports
import pytest
from markdown_it import MarkdownIt
from msmigrate.parity.result import Cause, Finding, Report
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.reports.parity_ci import LONGEST, markdown

KNOWN_TAGS = {
    *("h2", "h3", "p", "code", "pre", "strong", "sub", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"),
    *("details", "summary"),
}


class Rendered(HTMLParser):
    """The tags and the text of rendered Markdown; loose: the pieces of text that GitHub looks for references in."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.words = ""
        self.loose: list[str] = []
        self.code = 0
        self.feed(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(source))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.code += tag == "code"
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("href", "src")]

    def handle_endtag(self, tag: str) -> None:
        self.code -= tag == "code"

    def handle_data(self, data: str) -> None:
        self.words += data
        if not self.code:
            self.loose.append(data)


def huge() -> Report:
    """Hundreds of failed tensors with long names that are nothing but markup, and as many causes."""
    name = "<*_`|@#$[]&~\\" * 100
    findings = [Finding("forward", name, f"{i}{name}", i, Verdict.FAIL, name, name) for i in range(600)]
    causes = [Cause("forward", name, name, name, name, name, 1.0, 1e9)] * 500
    return replace(
        made_up_reports.report(), recipe=name, findings=findings, causes=causes, hints=[name] * 99, notes=[name] * 99
    )


def test_a_faulty_report_says_what_where_and_how_to_fix_it() -> None:
    text = markdown(made_up_reports.report())
    assert text.startswith("## ❌ No parity\n")
    assert "### 1. eps is 1e-3 where torch has 1e-5" in text and "`layer2.1.bn2` in forward" in text
    assert "**1,650 × noise**" in text and "```python\nnn.BatchNorm2d(128, eps=1e-5, momentum=0.9)\n```" in text
    assert "**First divergence:** `forward (eval) maxpool`" in text
    assert re.search(r"\| forward \| ❌ \*\*fail\*\* \| \d+ \| \d+ \|", text)
    assert "<summary>modules at fault: 4</summary>" in text and "<summary>tensors without a verdict: 1<" in text


def test_a_clean_report_is_short() -> None:
    text = markdown(made_up_reports.report(False))
    assert text.startswith("## ✅ Parity\n") and len(text) < 2000
    assert "failed" not in text.split("| --- |")[0].split("\n\n")[1]


def test_a_narrowed_report_says_what_it_judged() -> None:
    text = markdown(made_up_reports.narrowed("data", "init"))
    assert text.startswith("## ✅ Parity in data and init\n")
    assert "forward, loss, gradients and update were not judged. mindspore 2.10.0" in text
    words = Rendered(markdown(made_up_reports.narrowed("update", modules=["layer1*", "fc"]))).words
    assert "❌ No parity in update of layer1* and fc" in words and "other modules, data, init, forward, loss" in words


def test_a_report_that_decided_nothing_says_so() -> None:
    text = markdown(replace(made_up_reports.report(False), findings=[], modules=[]))
    assert text.startswith("## ❔ Unproven\n") and text.count("no tensors") == 6


@pytest.mark.parametrize("make", [made_up_reports.report, made_up_reports.hostile, huge])
def test_it_fits_into_a_comment_and_closes_what_it_opens(make: Callable[[], Report]) -> None:
    text = markdown(make())
    assert len(text) < LONGEST < 65_000
    assert text.count("<details>") == text.count("</details>") > 0
    assert Rendered(text).tags <= KNOWN_TAGS


def test_what_was_left_out_is_counted() -> None:
    text = markdown(huge())
    assert re.search(r"… and \d+ more causes\.", text)
    text = markdown(replace(huge(), causes=[], hints=[], notes=[]))
    kept = sum(line.startswith("| `") for line in text.splitlines())
    left = re.search(r"… and (\d+) more\.", text)
    assert left is not None and kept + int(left[1]) == 600


def test_names_stay_text() -> None:
    report = made_up_reports.hostile()
    rendered = Rendered(markdown(report))
    visible = " ".join(made_up_reports.HOSTILE.split()).replace("\ud800", "").strip("\x00 ")
    assert visible[:60] in " ".join(rendered.words.split())
    assert not [piece for piece in rendered.loose if "@me" in piece]
    assert any(piece.startswith("me ") for piece in rendered.loose)  # its sign stands apart


def test_references_and_fences_are_taken_apart() -> None:
    cause = Cause("loss", "a`` `b", None, "like #12 of @someone, $x$ ~~y~~ **z**", "```\nx = 1\n````\ny")
    text = markdown(replace(made_up_reports.report(), causes=[cause]))
    assert "#<!-- -->12 of @<!-- -->someone" in text and "`````python\n```\nx = 1\n````\ny\n`````" in text
    rendered = Rendered(text)
    assert not [piece for piece in rendered.loose if "#12" in piece or "@someone" in piece]
    assert "del" not in rendered.tags and "**z**" in rendered.words and "a`` `b" in rendered.words
