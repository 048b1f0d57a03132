"""The two halves of parity-step on different machines: record each framework where it is, compare anywhere.

    record torch                            A: weights, batches, torch's traces
    record mindspore, with A                B: MindSpore's traces from the same start
    compare A B
    record torch, with B                    C: torch's traces with MindSpore's choices at ReLUs and max-pools
    compare C B                             as sharp as parity-step on one machine

Without the third step torch knows nothing of MindSpore's choices: gradients are judged at the noise of torch's own
flips, which in a net with ReLUs is a thousand times that of rounding, and no module is run alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import BadDestination, BadInput, BadTrace
from ..migrate.formats.strays import folder_beside
from ..temporary import temporary_folder
from . import run_file
from .findings import Finding, Report
from .pair import check_inputs
from .pairs import structure
from .pairs.alignment import Alignment
from .pairs.settle import ALIGNMENT, read_alignment
from .replay.calls import FOLDER as REPLAY
from .run import MINDSPORE_WORKER, TORCH_WORKER, Told, claim, report, run_workers
from .start import CHECKPOINT, INPUTS, MINDSPORE, MINDSPORE_REPLAY, START, TORCH64, replayed
from .step_starts import StepStarts
from .worker import Options

START_FILES = (INPUTS, CHECKPOINT, START, "structure-torch.json", REPLAY)
COARSE = (
    "torch was recorded without MindSpore's choices at ReLUs and max-pools, so gradients are judged at the noise of "
    "torch's own flips, and no module ran alone: record torch again with MindSpore's trace, and the verdict is sharp"
)
CLIPPED = (
    "the optimizer on given gradients is not compared: torch clipped them together with some that MindSpore's net has "
    "not alike, before it knew of them; record torch again with MindSpore's trace"
)


def record(
    framework: str,
    recipe_file: Path,
    options: Options,
    other: Path | None = None,
    told: Told = lambda framework, doing: None,
    torch_worker: Sequence[str] = TORCH_WORKER,
    mindspore_worker: Sequence[str] = MINDSPORE_WORKER,
    *,
    timeout: float | None = None,
) -> None:
    """Record one framework's half into options.folder, which appears complete or not at all.

    other: the half recorded on the other machine; MindSpore's needs torch's, for the starting weights and the batches;
    torch's is sharper with MindSpore's. timeout: seconds without a word after which it counts as hung. Raises
    BadInput, BadTrace, BadDestination and WorkerFailed.
    """
    out = options.folder
    run_file.refuse_existing(out)
    if framework == "mindspore" and other is None:
        raise BadInput("MindSpore's half starts from torch's weights and batches: give torch's trace with --with")
    if other is not None:
        theirs = run_file.read(other)
        if theirs.side not in _OTHER[framework]:
            raise BadInput(f"{other} is a trace of {theirs.side}: --with takes the other framework's")
        run_file.check_narrowed_alike(out, options.narrowing, other, theirs.narrowing)
    draws = framework == "torch" or "data" in options.narrowing.stages
    check_inputs(options.recipe, options.pair, (framework,), draws=draws)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with folder_beside(out) as work:
            inside = replace(options, folder=work / "run", alone=framework == "torch" and other is None)
            claim(inside.folder)
            if other is not None:
                _bring(framework, other, inside.folder)
            command = {"torch": torch_worker} if framework == "torch" else {"MindSpore": mindspore_worker}
            run_workers(recipe_file, inside, told, command, timeout)
            if framework == "torch":
                StepStarts(inside.folder).remove()
            run_file.write(recipe_file, inside, framework, inside.alone)
            if other is not None:
                run_file.check_together(other, inside.folder)
            if out.exists():
                out.rmdir()
            inside.folder.rename(out)
    except OSError as error:
        raise BadDestination(f"{out} cannot be written: {error.strerror or error}") from error


_OTHER = {"torch": ("mindspore", "both"), "mindspore": ("torch", "both")}


def _bring(framework: str, other: Path, folder: Path) -> None:
    """Copy what a half needs of the other one. Raises BadTrace where it is not there."""
    if framework == "mindspore":
        for name in START_FILES:
            _copy(other / name, folder / name)
        if not (folder / INPUTS).exists():
            raise BadTrace(f"{other}: has no {INPUTS}: it is no complete trace of torch's")
        return
    for source in sorted(other.iterdir()):
        if source.name.startswith("mindspore-") or source.name in (ALIGNMENT, "structure-mindspore.json"):
            _copy(source, folder / source.name)
    if not (folder / MINDSPORE).exists():
        raise BadTrace(f"{other}: has no {MINDSPORE}: it is no complete trace of MindSpore's")


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a folder. Raises BadTrace for a link, which may lead out of the trace to any file."""
    links = [path for path in (source, *(source.rglob("*") if source.is_dir() else ())) if path.is_symlink()]
    if links:
        raise BadTrace(f"{links[0]} is a link, and a trace holds its files itself")
    if source.is_dir():
        shutil.copytree(source, target, copy_function=shutil.copyfile)
    elif source.exists():
        shutil.copyfile(source, target)


def compare_folders(one: Path, other: Path | None = None) -> Report:
    """Judge two halves, or a whole run that was kept, from what lies in the folders; nothing runs again.

    Raises BadInput for two halves of one framework, BadTrace for folders that are damaged or do not belong together.
    """
    first = run_file.read(one)
    if other is None:
        if first.side != "both":
            raise BadInput(f"{one} is {first.side}'s half alone: name the other framework's too")
        return _judged(one, first)
    second = run_file.read(other)
    if {first.side, second.side} != {"torch", "mindspore"}:
        raise BadInput(f"{one} is a trace of {first.side}, {other} of {second.side}: compare torch's with MindSpore's")
    torch, mindspore = (one, other) if first.side == "torch" else (other, one)
    run_file.check_together(torch, mindspore)
    of_torch = run_file.read(torch)
    with temporary_folder("compare") as folder:
        both = {source.name: source for source in torch.iterdir() if source.name.startswith("torch-")}
        both |= {source.name: source for source in mindspore.iterdir() if source.name.startswith("mindspore-")}
        for name in (ALIGNMENT, *(structure.file(Path(), side).name for side in structure.SIDES), REPLAY):
            found = [place / name for place in (mindspore, torch) if (place / name).exists()]
            both |= dict.fromkeys([name], found[0]) if found else {}
        both[run_file.RECIPE] = torch / run_file.RECIPE
        if replayed(TORCH64) not in both:
            both.pop(MINDSPORE_REPLAY, None)
            both.pop(REPLAY, None)
        for name, source in both.items():
            (folder / name).symlink_to(source.resolve())
        return _judged(folder, of_torch)


def _judged(folder: Path, run: run_file.RunFile) -> Report:
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


__all__ = ["compare_folders", "record"]
