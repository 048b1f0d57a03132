"""The verdict of an export for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..deploy.export import FILE, Comparison, Exported
from ..parity.verdict import Verdict

MOST = 5  # replaced layers that are named


def lines(exported: Exported, shown: str) -> Iterator[str]:
    """What was exported, on what it ran, and each comparison."""
    facts = exported.facts
    versions = ", ".join(f"{name} {version}" for name, version in sorted(facts["versions"].items()))
    yield f"{shown} as {exported.net.job.form}, in evaluation mode; {versions}"
    batches = " and ".join(map(str, exported.sizes))
    yield f"run on {facts['inputs']}, in batches of {batches}"
    replaced = facts["rewritten"]
    if replaced:
        more = f" and {len(replaced) - MOST} more" if len(replaced) > MOST else ""
        yield f"written in an equivalent form: {', '.join(replaced[:MOST])}{more}"
    for one in exported.comparisons:
        yield _line(one, exported)
    for note in exported.net.notes:
        yield f"Note: {note}."
    if exported.net.torch is None:
        yield "Note: not compared with torch; the noise is the net's own, with its weights off by float32's rounding."


def _line(one: Comparison, exported: Exported) -> str:
    subject = exported.file.suffix.removeprefix(".") if one.subject == FILE else one.subject
    subject = {"mindir": "MindIR", "onnx": "ONNX"}.get(subject, subject)
    batch = f", batches of {one.batch}" if one.batch and len(exported.sizes) > 1 else ""
    output = f", output {one.output}" if any(other.output for other in exported.comparisons) else ""
    if one.measure.verdict is Verdict.PASS:
        return f"  {subject} = {one.against}{batch}{output}: {_how(one)}"
    word = "differs from" if one.measure.verdict is Verdict.FAIL else "has no verdict against"
    return f"  {subject} {word} {one.against}{batch}{output}: {one.measure.why}"


def _how(one: Comparison) -> str:
    if one.measure.error == 0.0:
        return "equal to the bit"
    return f"off by {one.measure.relative:.1e} of its size, {one.measure.ratio:.2f} of the noise (up to 4 passes)"


def as_json(exported: Exported) -> dict[str, Any]:
    """What was exported and every comparison, as plain values."""
    facts = exported.facts
    return {
        "checkpoint": exported.net.job.request.shown,
        "model": exported.net.subject.recipe.model.name,
        "torch": exported.net.torch,
        "format": exported.net.job.form,
        "same": exported.sound,
        "batches": exported.sizes,
        "dynamic": exported.net.job.dynamic,
        "inputs": facts["inputs"],
        "shapes": facts["shapes"],
        "rewritten": facts["rewritten"],
        "versions": facts["versions"],
        "notes": exported.net.notes,
        "comparisons": [
            {
                "subject": one.subject,
                "against": one.against,
                "output": one.output,
                "batch": one.batch,
                "shape": list(one.shape),
                "verdict": one.measure.verdict.value,
                "ratio": _number(one.measure.ratio),
                "error": _number(one.measure.relative),
                "why": one.measure.why,
            }
            for one in exported.comparisons
        ],
    }


def _number(value: float) -> float | None:
    return value if value < float("inf") else None
