"""record from start to end: one framework's side on its own machine."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..atomic_files import folder_beside
from ..errors import BadDestination, BadInput, BadTrace
from ..parity import run_folder
from ..parity.align.alignment import ALIGNMENT
from ..parity.options import Options, check_inputs
from ..parity.record.step_starts import StepStarts
from ..parity.run import MINDSPORE_WORKER, TORCH_WORKER, Told, run_workers
from ..parity.run_folder import INPUTS, MINDSPORE, claim
from ..reports.progress import progressing
from ..reports.terminal import Console
from ..training.recipe import reader as recipes
from .compare import _OTHER, START_FILES
from .parity_step import Asked


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
    run_folder.refuse_existing(out)
    if framework == "mindspore" and other is None:
        raise BadInput("MindSpore's half starts from torch's weights and batches: give torch's trace with --with")
    if other is not None:
        theirs = run_folder.read(other)
        if theirs.side not in _OTHER[framework]:
            raise BadInput(f"{other} is a trace of {theirs.side}: --with takes the other framework's")
        run_folder.check_narrowed_alike(out, options.narrowing, other, theirs.narrowing)
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
            run_folder.write(recipe_file, inside, framework, inside.alone)
            if other is not None:
                run_folder.check_together(other, inside.folder)
            if out.exists():
                out.rmdir()
            inside.folder.rename(out)
    except OSError as error:
        raise BadDestination(f"{out} cannot be written: {error.strerror or error}") from error


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


def run_record(framework: str, recipe_file: Path | None, out: Path, other: Path | None, asked: Asked) -> int:
    """Record one framework ('torch' or 'mindspore') into the new folder `out`; returns the exit code 0.

    other: the half from the other machine, which MindSpore's needs and torch's is sharper with.
    """
    path = recipe_file or recipes.DEFAULT
    options = asked.options(recipes.load(path), out, (framework,))
    with progressing({"torch": ("torch",), "mindspore": ("MindSpore",)}[framework]) as told:
        record(framework, path, options, other, told, timeout=asked.timeout)
    Console().print(f"{out}: {framework}'s half of {path.name}, {asked.steps} steps.", highlight=False, markup=False)
    return 0
