"""A report as JUnit XML, which every CI system shows: a suite a stage, a test case a tensor.

The shape is what both common schemas take, Apache Ant's (windyroad's JUnit.xsd) and Jenkins' (xunit-plugin's
junit-10.xsd): Ant's asks for more attributes, Jenkins' refuses none of them. A stage that nothing failed in but that
has no verdict gets a failed case of its own, so that the file is green exactly when the report says parity.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

from ..atomic_files import write_whole
from ..parity.result import Cause, Finding, Report, StageSummary, unproven
from ..parity.verdict import Verdict
from ..printable import printable_lines
from .parity_terminal import unproven_sentence

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
    ElementTree.SubElement(suite, "system-out").text = _text(_said(report, stage.stage))
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


def _said(report: Report, stage: str) -> str:
    """What the report explains of a stage: its causes, and the first divergence where it is here."""
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
