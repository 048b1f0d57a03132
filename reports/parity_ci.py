"""A report for a pull request and what checks it: as Markdown, and as JUnit XML, which every CI system shows.

Markdown has verdict, stages and causes at a glance, the rest folded away; JUnit has a suite for each stage and a test
case for each tensor.

Names and reasons come out of models and traces, so whatever GitHub would read as markup, as a mention or as a
reference is escaped. A comment there holds 65,536 characters; this never has more than LONGEST.

The shape of the XML is what both common schemas take, Apache Ant's (windyroad's JUnit.xsd) and Jenkins' (xunit-plugin's
junit-10.xsd): Ant's asks for more attributes, Jenkins' refuses none of them. A stage that nothing failed in but that
has no verdict gets a failed case of its own, so that the file is green exactly when the report says parity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

from ..atomic_files import write_whole
from ..parity.result import Cause, Finding, Report, StageSummary, unproven
from ..parity.tensor_verdict import RATIO, Verdict
from ..printable import printable, printable_lines, shown, times
from .parity_terminal import explains, known, unproven_sentence, where

LONGEST = 64_000  # characters of the whole
CLOSING = 600  # of these, kept for what closes an opened fold and says that rows were left out
MOST_ROWS = 100  # of a fold; the page and the JSON have all
SENTENCE, SNIPPET = 400, 1500  # characters of a text and of a fix
VERDICTS = {Verdict.PASS: "✅ pass", Verdict.FAIL: "❌ **fail**", Verdict.NONE: "❔ no verdict"}
MARKUP = re.compile(r"[\\`*_\[\]<>|~$&]")
REFERENCE = re.compile(r"@|(?<!&)#")
BLANKS = re.compile(r"[\s\x00-\x1f\x7f]+")


def markdown(report: Report) -> str:
    """The report as GitHub-flavoured Markdown of at most 64,000 characters."""
    page = _Page()
    page.add(f"## {_headline(report)}")
    page.add(_lead(report))
    page.add(_table(_stages(report.stages), _sentence(report.sides[0])))
    for number, (cause, places) in enumerate(report.mistakes, 1):
        if not page.add(_cause(cause, places, number, report.sides[1])):
            page.add(f"… and {len(report.mistakes) - number + 1} more causes.", closing=True)
            break
    first = report.first_divergence
    if first is not None:
        page.add(f"**First divergence:** {_code(first.place)}: {_sentence(first.why)}")
        if report.hints:
            page.add("Known pitfalls here:\n" + "\n".join(f"- {_sentence(hint)}" for hint in report.hints))
    failed = [f for f in report.findings if f.verdict is Verdict.FAIL]
    undecided = [f for f in report.findings if f.verdict is Verdict.NONE]
    faulty = [
        f"- {_code(m.name or '(model)')} {_sentence(m.kind)}: {_sentence(m.why)}" for m in report.modules if m.own
    ]
    _fold(page, "modules at fault", [], faulty)
    _fold(page, "notes", [], [f"- {_sentence(note)}" for note in report.notes])
    _fold(page, "tensors without a verdict", FINDINGS_HEAD, map(_finding, undecided))
    _fold(page, "failed tensors", FINDINGS_HEAD, map(_finding, failed))
    return page.text()


class _Page:
    """Blocks of text that together stay below LONGEST."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.left = LONGEST - CLOSING

    def add(self, block: str, closing: bool = False) -> bool:
        """Append a block if it still fits (a closing one always does); says whether it did."""
        fits = len(block) + 2 <= self.left
        if fits or closing:
            self.blocks.append(block)
            self.left -= len(block) + 2
        return fits

    def text(self) -> str:
        """All of it."""
        return "\n\n".join(self.blocks) + "\n"


FINDINGS_HEAD = ["| tensor | ratio | error | why |", "|---|--:|--:|---|"]


def _fold(page: _Page, what: str, head: list[str], rows: Iterable[str]) -> None:
    """A collapsed block with as many rows as there is room for, MOST_ROWS at most; none where there are no rows."""
    lines = list(rows)
    opening = [f"<details><summary>{what}: {len(lines)}</summary>", "", *head]
    room = page.left - sum(len(line) + 1 for line in opening) - 100
    kept: list[str] = []
    for line in lines[:MOST_ROWS]:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    if not kept:
        return
    more = ["", f"… and {len(lines) - len(kept)} more."] if len(kept) < len(lines) else []
    page.add("\n".join([*opening, *kept, *more, "", "</details>"]))


def _headline(report: Report) -> str:
    verdict = "✅ Parity" if report.parity else "❌ No parity" if report.first_divergence is not None else "❔ Unproven"
    return f"{verdict} {_sentence(where(report))}".rstrip()


def _lead(report: Report) -> str:
    failed = sum(f.verdict is Verdict.FAIL for f in report.findings)
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    counted = f"{len(report.findings):,} tensors compared in {len(report.stages)} stages" + (
        f", {failed:,} failed" if failed else ""
    )
    not_judged = f"; {_sentence(report.narrowing.left_out())}" if report.narrowing.left_out() else ""
    devices = "; ".join(f"{side} on {device}" for side, device in report.computed_on.items())
    on = f" {_sentence(devices)}." if devices else ""
    return f"{_code(report.recipe)}: {counted}{not_judged}. {_sentence(versions)}.{on}"


def _stages(stages: Sequence[StageSummary]) -> list[list[str]]:
    head = ["stage", "verdict", "passed", "failed", "no verdict", "median ratio", "largest ratio", "largest error"]
    rows = [head, ["---", "---", *["--:"] * 6]]
    for s in stages:
        nothing = s.passed + s.failed + s.undecided == 0
        counts = [str(s.passed), str(s.failed), str(s.undecided)]
        numbers = [times(s.median_ratio), times(s.max_ratio), shown(s.max_error)]
        rows.append([s.stage, "❔ no tensors" if nothing else VERDICTS[s.verdict], *counts, *numbers])
    return rows


def _table(rows: list[list[str]], reference: str) -> str:
    caption = f"<sub>ratio: error over {reference}'s own rounding; above {RATIO:g} a tensor fails</sub>"
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n\n" + caption


def _cause(cause: Cause, places: Sequence[str], number: int, other: str) -> str:
    fault = known(cause)
    page = f", known fault {_code(fault)}" if fault else ""
    lines = [
        f"### {number}. {_sentence(cause.text)}",
        f"{_code(cause.place or '(model)')} in {_sentence(cause.stage)}{page}",
        *([f"The same at {len(places)} more: {', '.join(map(_code, places))}."] if places else []),
    ]
    measured = []
    if cause.before is not None:
        measured.append(f"{_sentence(other)} against torch as it is: **{times(cause.before)} × noise**")
    if cause.ratio is not None:
        under = "this fault" if explains(cause) else "the nearest hypothesis"
        measured.append(f"against torch under {under}: **{times(cause.ratio)} × noise**")
    if measured:
        lines.append(", ".join(measured) + ".")
    if cause.evidence:
        lines.append(_sentence(cause.evidence))
    if cause.fix:
        lines.append(_block(cause.fix))
    return "\n\n".join(lines)


def _finding(f: Finding) -> str:
    return f"| {_code(f.place, cell=True)} | {times(f.ratio)} | {shown(f.error)} | {_sentence(f.why)} |"


def _sentence(text: str) -> str:
    """A text in one line that stays text."""
    line = _clipped(printable(BLANKS.sub(" ", text).strip()), SENTENCE)
    escaped = MARKUP.sub(lambda match: f"&#{ord(match[0])};", line)
    # a comment separates the sign from what it would refer to; the # of an entity, which follows a &, stays
    return REFERENCE.sub(lambda match: match[0] + "<!-- -->", escaped)


def _code(text: str, cell: bool = False) -> str:
    """A code span, fenced by more backticks than the text has in a row; in a table's cell bars are escaped."""
    line = _clipped(printable(BLANKS.sub(" ", text).strip()), SENTENCE) or "(no name)"
    fence = _fence(line, 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    span = f"{fence}{pad}{line}{pad}{fence}"
    return span.replace("|", "\\|") if cell else span


def _block(text: str) -> str:
    snippet = _clipped(printable_lines(text), SNIPPET)
    fence = _fence(snippet, 3)
    language = "python" if re.search(r"[=(]", snippet) else ""  # some fixes are a sentence
    return f"{fence}{language}\n{snippet}\n{fence}"


def _fence(text: str, least: int) -> str:
    return "`" * max(least, max(map(len, re.findall("`+", text)), default=0) + 1)


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


NUMBERS = ("ratio", "error", "noise", "allowed")


def write_junit(report: Report, path: Path) -> None:
    """Write the report as JUnit XML; the file appears complete or not at all. Raises BadDestination."""
    write_whole(junit(report), path)


def junit(report: Report) -> str:
    """The JUnit XML of a report."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    root = ElementTree.Element("testsuites")
    for number, stage in enumerate(report.stages):
        _suite(root, number, stage, report, now)
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(root: ElementTree.Element, number: int, stage: StageSummary, report: Report, now: str) -> None:
    findings = [f for f in report.findings if f.stage == stage.stage]
    unjudged = stage.verdict is not Verdict.PASS and not stage.failed
    why = unproven_sentence(unproven(findings)) if stage.unproven else "nothing compared"
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        {
            "name": f"parity {stage.stage}",
            "package": "msmigrate",
            "id": str(number),
            "hostname": "localhost",  # Ant's schema asks for one; where it ran is nobody's business
            "timestamp": now,
            "tests": str(len(findings) + unjudged),
            "failures": str(stage.failed + unjudged),
            "errors": "0",
            "skipped": str(stage.undecided),
            "time": "0",
        },
    )
    properties = ElementTree.SubElement(suite, "properties")
    narrowed = (
        {} if report.narrowing.whole else {"narrowed": f"{report.narrowing.said()}; {report.narrowing.left_out()}"}
    )
    known = {"recipe": report.recipe, "recipe_digest": report.recipe_digest, **narrowed, **report.versions}
    known |= {f"{side} device": device for side, device in report.computed_on.items()}
    for name, value in known.items():
        ElementTree.SubElement(properties, "property", {"name": _token(name), "value": _text(str(value))})
    for finding in findings:
        _case(suite, finding)
    if unjudged:
        _unjudged(suite, stage, why)
    ElementTree.SubElement(suite, "system-out").text = _text(_explanations(report, stage.stage))
    ElementTree.SubElement(suite, "system-err")


def _case(suite: ElementTree.Element, finding: Finding) -> None:
    owner = f"msmigrate.{finding.stage}.{finding.part}"
    names = {"classname": _token(owner), "name": _token(finding.name), "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", names)
    if finding.verdict is Verdict.FAIL:
        failure = ElementTree.SubElement(case, "failure", {"type": "mismatch", "message": _text(finding.why)})
        failure.text = _text(_numbers(finding))
    elif finding.verdict is Verdict.NONE:
        ElementTree.SubElement(case, "skipped", {"message": _text(f"no verdict: {finding.why}")})


def _unjudged(suite: ElementTree.Element, stage: StageSummary, why: str) -> None:
    names = {"classname": f"msmigrate.{stage.stage}", "name": "the stage has a verdict", "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", names)
    ElementTree.SubElement(case, "failure", {"type": "no verdict", "message": _text(why)})


def _numbers(finding: Finding) -> str:
    """Everything that is known of a failed tensor, a line each."""
    numbers = [f"{name}: {value:.3g}" for name in NUMBERS if (value := getattr(finding, name)) is not None]
    layer = [f"layer: {finding.module}"] if finding.module else []
    return "\n".join([finding.place, finding.why, *layer, f"shape: {list(finding.shape)}", *numbers])


def _explanations(report: Report, stage: str) -> str:
    """What the report explains about a stage: its causes, and the first divergence if it is in this stage."""
    blocks = _causes([cause for cause in report.causes if cause.stage == stage])
    first = report.first_divergence
    if first is not None and first.stage == stage:
        blocks.append("\n".join([f"first divergence: {first.place}: {first.why}", *report.hints]))
    return "\n\n".join(blocks)


def _causes(causes: Sequence[Cause]) -> list[str]:
    return [
        "\n".join(
            [
                f"cause: {cause.place or '(model)'}: {cause.text}" + (f" [{cause.fault}]" if cause.fault else ""),
                *([f"evidence: {cause.evidence}"] if cause.evidence else []),
                *([f"fix: {cause.fix}"] if cause.fix else []),
            ]
        )
        for cause in causes
    ]


def _text(text: str) -> str:
    """The text with what XML cannot hold, or nobody would see, escaped."""
    return printable_lines(text)


def _token(text: str) -> str:
    """An xs:token: one line, no double spaces, not empty."""
    return " ".join(_text(text).split()) or "(no name)"
