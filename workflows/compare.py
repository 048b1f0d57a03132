"""compare from start to end: two recorded sides, or a run that was kept.

    record torch                            A: weights, batches, torch's traces
    record mindspore, with A                B: MindSpore's traces from the same start
    compare A B
    record torch, with B                    C: torch's traces with MindSpore's choices at ReLUs and max-pools
    compare C B                             as sharp as parity-step on one machine

Without the third step torch knows nothing of MindSpore's choices: gradients are judged at the noise of torch's own
flips, which in a net with ReLUs is a thousand times that of rounding, and no module is run alone.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..atomic_files import refuse_unwritable
from ..errors import BadInput, BadTrace
from ..option_fields import as_path
from ..parity import run_folder
from ..parity.align import model_structure
from ..parity.align.alignment import ALIGNMENT, Alignment, read_alignment
from ..parity.build_result import report
from ..parity.options import ParityOptions
from ..parity.replay.module_calls import FOLDER as REPLAY
from ..parity.result import Finding, Report
from ..parity.run_folder import CHECKPOINT, INPUTS, MINDSPORE_REPLAY, RECIPE, START, TORCH64, replayed
from ..reports.parity_terminal import show
from ..reports.terminal import Console
from ..temporary import temporary_folder
from .parity_step import ParityResult, options_of, write

START_FILES = (INPUTS, CHECKPOINT, START, "structure-torch.json", REPLAY)
COARSE = (
    "torch was recorded without MindSpore's choices at ReLUs and max-pools, so gradients are judged at the noise of "
    "torch's own flips, and no module ran alone: record torch again with MindSpore's trace, and the verdict is sharp"
)
CLIPPED = (
    "the optimizer on given gradients is not compared: torch clipped them together with some that MindSpore's net has "
    "not alike, before it knew of them; record torch again with MindSpore's trace"
)


_OTHER = {"torch": ("mindspore", "both"), "mindspore": ("torch", "both")}


def compare_folders(one: Path, other: Path | None = None) -> Report:
    """Judge two halves, or a whole run that was kept, from what lies in the folders; nothing runs again.

    Raises BadInput for two halves of one framework, BadTrace for folders that are damaged or do not belong together.
    """
    first = run_folder.read(one)
    if other is None:
        if first.side != "both":
            raise BadInput(f"{one} is {first.side}'s half alone: name the other framework's too")
        return _judged(one, first)
    second = run_folder.read(other)
    if {first.side, second.side} != {"torch", "mindspore"}:
        raise BadInput(f"{one} is a trace of {first.side}, {other} of {second.side}: compare torch's with MindSpore's")
    torch, mindspore = (one, other) if first.side == "torch" else (other, one)
    run_folder.check_together(torch, mindspore)
    of_torch = run_folder.read(torch)
    with temporary_folder("compare") as folder:
        both = {source.name: source for source in torch.iterdir() if source.name.startswith("torch-")}
        both |= {source.name: source for source in mindspore.iterdir() if source.name.startswith("mindspore-")}
        for name in (ALIGNMENT, *(model_structure.file(Path(), side).name for side in model_structure.SIDES), REPLAY):
            found = [place / name for place in (mindspore, torch) if (place / name).exists()]
            both |= dict.fromkeys([name], found[0]) if found else {}
        both[run_folder.RECIPE] = torch / run_folder.RECIPE
        if replayed(TORCH64) not in both:
            both.pop(MINDSPORE_REPLAY, None)
            both.pop(REPLAY, None)
        for name, source in both.items():
            (folder / name).symlink_to(source.resolve())
        return _judged(folder, of_torch)


def _judged(folder: Path, run: run_folder.RunFile) -> Report:
    options = run.options(folder)
    if options.pair is not None and not (folder / ALIGNMENT).exists():
        raise BadTrace(f"{run.recipe}: the pair's {ALIGNMENT} is not there: MindSpore's half has it")
    found = report(Path(run.recipe), options, digests=(run.digest(folder), run.checkpoint_digest))
    if not run.alone:
        return found
    alignment = read_alignment(options)
    notes = [COARSE, *found.notes]
    findings = found.findings if alignment.identity else _with_counterparts(found.findings, alignment)
    if alignment.unlike and options.recipe.clip is not None:
        findings = [f for f in findings if f.stage != "update" or not f.part.startswith("given ")]
        notes.append(CLIPPED)
    return replace(found, findings=findings, notes=notes)


def _with_counterparts(findings: list[Finding], alignment: Alignment) -> list[Finding]:
    """Without what torch recorded before it knew that it has no counterpart."""
    scope = alignment.scope
    kept = []
    for finding in findings:
        name, _, call = finding.name.partition("#")
        if finding.stage == "forward" and finding.part in ("eval", "train"):
            there = alignment.compared(name, int(call) if call.isdecimal() else 0)
        elif finding.stage in ("init", "gradients", "update") and finding.part != "images":
            there = (
                name in alignment.torch_names
                or name in alignment.lacks
                or finding.part == "loss scale"
                or finding.part.endswith(" loss")
            )
            if finding.part.startswith("learning rate"):
                there = there and scope.rates
        else:
            there = (finding.part != "images" or scope.image_gradient) and (
                finding.part != "given logits" or scope.given_logits
            )
        if there:
            kept.append(finding)
    return kept


def compare(one: str | Path, other: str | Path | None = None, **options: Any) -> ParityResult:
    """Judge two recorded sides, or a run that was kept, from what is in their folders; nothing runs again.

    one: a folder that `record` made, or that `parity_step(keep=…)` kept.
    other: the other framework's side; None for a run that was kept.
    options: html, json_file, junit, markdown and worst, as of parity_step.

    Raises BadInput for two sides of one framework, and BadTrace for folders that are damaged or do not belong together.
    """
    return _compared(as_path(one, "one"), as_path(other, "other"), options_of(options, "compare"))


def _compared(one: Path, other: Path | None, options: ParityOptions) -> ParityResult:
    for file in options.files:
        refuse_unwritable(file)
    report = compare_folders(one, other)
    write(report, options, one if other is None else None, one / RECIPE)
    return ParityResult(report, options.worst)


def run_compare(one: Path, other: Path | None, options: ParityOptions) -> int:
    """Judge two halves, or a run that was kept, and print the verdict; returns 0 for parity and 1 for a mismatch."""
    result = _compared(one, other, options)
    show(result.report, Console(), result.worst)
    return 0 if result else 1
