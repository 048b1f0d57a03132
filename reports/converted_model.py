"""A model that was written in MindSpore: for the terminal and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..migrate.checkpoint.convert import Result
from ..migrate.source.convert_model import ConvertedModel
from ..migrate.source.rewrite.context import Problem
from ..migrate.source.variations import Tried
from ..parity.result import Report
from ..printable import bytes_text, count_text, few

MANY = 6  # problems of one function that share a line
PACKAGES = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Converted:
    """The result of convert-model: the source, the weights if they were converted and loaded, the trials with other
    arguments, the proof if there is one, and the reasons for what is missing. weightless: it has no weights to convert.
    proof: whether there is to be one: not of what has nothing that trains, as a loss."""

    model: str
    file: Path
    written: ConvertedModel
    ckpt: Result | None = None
    loaded: bool = False
    report: Report | None = None
    stopped: list[str] = field(default_factory=list)
    tried: list[Tried] = field(default_factory=list)
    proof: bool = True
    weightless: bool = False

    @property
    def sound(self) -> bool:
        """Whether everything was written, and is the same where that was to be proven."""
        whole = not self.written.problems and (self.ckpt is not None or self.weightless) and not self.stopped
        whole = whole and not any(map(is_wrong, self.tried[:1])) and all(one.verdict != "differs" for one in self.tried)
        return whole and (not self.proof or (self.report is not None and self.report.parity))


def source_lines(model: str, file: Path, written: ConvertedModel) -> list[str]:
    """What was written, and the places that could not be, each with its place in torch's source."""
    head = f"{file}: {count_text(written.classes, 'class', 'classes')}, {count_text(written.lines, 'line')}"
    lines = [f"{head}, from {model} as it runs on {written.inputs}"]
    lines += [f"note: {note}" for note in written.notes]
    lines += [f"note: nothing could be learnt about {name}: {why}" for name, why in written.left.items()]
    if written.problems:
        count = len(written.problems)
        raises = "raises" if count == 1 else "raise"
        lines.append(f"{count_text(count, 'place')} could not be written, and {raises} NotImplementedError:")
        lines += _listed(written.problems)
    if written.not_run:
        places = count_text(len(written.not_run), "place")
        lines.append(f"{places} did not run, and could not be read; running them raises NotImplementedError:")
        lines += _listed(written.not_run)
    if written.left_out:
        things = count_text(len(written.left_out), "thing")
        lines.append(f"{things} left out, or assumed to be as in the run:")
        lines += _listed(written.left_out)
    return lines


def _listed(problems: Sequence[Problem]) -> Iterator[str]:
    """A line for each problem, or one for many in a function."""
    of: dict[tuple[str, str], list[Problem]] = {}
    for number, one in enumerate(problems):
        of.setdefault((one.file, one.function or str(number)), []).append(one)
    for (file, function), alike in of.items():
        if len(alike) < MANY:
            yield from (f"  {_place(one)}{one.text}" for one in alike)
            continue
        why = few([*dict.fromkeys(one.text for one in alike)], 2)
        yield f"  {shown(file)}:{alike[0].line}-{alike[-1].line}: {len(alike)} places in {function}: {why}"


def is_wrong(first: Tried) -> bool:
    """Whether the model as it is does not compute the same, or raises."""
    return first.verdict in ("refused", "differs")


def tried_lines(tried: Sequence[Tried]) -> list[str]:
    """What was varied, and with what result; what did not run of the classes inside only counted."""
    lines = []
    same = [one.text for one in tried if one.verdict == "same" and not one.within]
    if same:
        lines.append(f"the same in both modes, and after training: {', '.join(same)}")
    parts = Counter(one.within for one in tried if one.verdict == "same" and one.within)
    if parts:
        of = ", ".join(f"{name} ({count})" for name, count in parts.items())
        many = count_text(sum(parts.values()), "variation")
        lines.append(f"the same in {many} of the classes inside, each alone: {of}")
    words = {"differs": "not the same", "refused": "raises", "both": "raises in both", "left": "not tried"}
    alike: dict[tuple[str, str], list[str]] = {}  # a verdict and its reason -> what it holds for
    for one in tried:
        if one.verdict in words and not (one.within and one.verdict in ("both", "left")):
            alike.setdefault((words[one.verdict], one.why), []).append(one.text)
    lines += [f"{verdict}: {', '.join(texts)}: {why}" for (verdict, why), texts in alike.items()]
    if left := sum(one.verdict in ("both", "left") for one in tried if one.within):
        lines.append(f"{count_text(left, 'other')} of the classes inside raise in both, or do not run so in torch")
    return lines


def untrained_line(place: str, name: str, file: Path) -> str:
    """Why there is no proof of what has nothing that trains, and what proves it where it is a loss."""
    return (
        "no step to prove: nothing in it trains, so that what was compared above is all. A recipe whose loss it is, "
        f"`loss: {{name: {place}:{name}, source: {file}}}`, proves it with its step"
    )


def ckpt_line(result: Result, maker: str, *, loaded: bool) -> str:
    """What went into the checkpoint, and whether MindSpore has read it back."""
    checked = (
        f"loaded into {maker} and read back to the bit" if loaded else "not loaded, because the source is incomplete"
    )
    return (
        f"{result.destination}: {count_text(len(result.plan.written), 'tensor')}, {bytes_text(result.size)}, {checked}"
    )


def as_json(found: Converted) -> dict[str, Any]:
    """All of it as plain values; proof has what the terminal shows, --parity-report FILE all findings."""
    written, result, report = found.written, found.ckpt, found.report
    return {
        "model": found.model,
        "source": {
            "file": str(found.file),
            "function": written.maker,
            "classes": written.classes,
            "lines": written.lines,
            "inputs": written.inputs,
            "problems": [{"file": p.file, "line": p.line, "text": p.text} for p in written.problems],
            "left": dict(written.left),
            "notes": [*written.notes],
            "not_run": [{"file": p.file, "line": p.line, "text": p.text} for p in written.not_run],
            "left_out": [{"file": p.file, "line": p.line, "text": p.text} for p in written.left_out],
        },
        "tried": [
            {"what": one.text, "verdict": one.verdict, "why": one.why, "within": one.within} for one in found.tried
        ],
        "checkpoint": None
        if result is None
        else {
            "file": result.destination,
            "tensors": len(result.plan.written),
            "bytes": result.size,
            "loaded": found.loaded,
        },
        "proof": None if report is None else _proof(report),
        "stopped": found.stopped,
        "sound": found.sound,
    }


def _proof(report: Report) -> Mapping[str, Any]:
    stages = [
        {
            "stage": s.stage,
            "verdict": s.verdict.value,
            "passed": s.passed,
            "failed": s.failed,
            "undecided": s.undecided,
            "median_ratio": s.median_ratio,
            "max_ratio": s.max_ratio,
        }
        for s in report.stages
    ]
    first = report.first_divergence
    return {
        "parity": report.parity,
        "stages": stages,
        "first_divergence": None if first is None else {"place": first.place, "why": first.why},
        "seconds": report.seconds,
        "versions": dict(report.versions),
    }


def _place(problem: Problem) -> str:
    """File and line, where it has one: what a user's function did to its model is in no source that ran."""
    return f"{shown(problem.file)}:{problem.line}: " if problem.file else ""


def shown(file: str) -> str:
    """A file's path from here, or from where packages are installed."""
    path = Path(file)
    for folder in PACKAGES:
        if folder in path.parts:
            return str(Path(*path.parts[path.parts.index(folder) + 1 :]))
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
