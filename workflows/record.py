"""record from start to end: one framework's side on its own machine."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..atomic_files import folder_beside
from ..errors import BadDestination, BadInput, BadTrace
from ..option_fields import as_path
from ..parity import run_folder
from ..parity.align.alignment import ALIGNMENT
from ..parity.job import ParityJob, check_inputs
from ..parity.options import ParityOptions
from ..parity.record.recorder import StepStarts
from ..parity.replay.module_calls import FOLDER as REPLAY
from ..parity.run import MINDSPORE_WORKER, TORCH_WORKER, run_workers
from ..parity.run_folder import CHOICES, INPUTS, MINDSPORE, START, WEIGHTS, claim
from ..printable import echo
from ..reports.progress import progressing
from ..training.recipe import reader as recipes
from ..workers.messages import OnMessage, ignore
from .compare import _OTHER, START_FILES
from .parity_step import headline, job_of, options_of
from .results import Result

SIDES_OF_WORKERS = {"torch": ("torch",), "mindspore": ("MindSpore",)}  # as progress calls them


def record_side(
    framework: str,
    recipe_file: Path,
    job: ParityJob,
    other: Path | None = None,
    on_message: OnMessage = ignore,
    torch_worker: Sequence[str] = TORCH_WORKER,
    mindspore_worker: Sequence[str] = MINDSPORE_WORKER,
) -> None:
    """Record one framework's half into job.folder, which appears complete or not at all.

    other: the half recorded on the other machine; MindSpore's needs torch's, for the starting weights and the batches;
    torch's is sharper with MindSpore's, and with another half of torch's starts where that did. Raises BadInput,
    BadTrace, BadDestination, WorkerFailed, and what the worker raised.
    """
    out = job.folder
    run_folder.refuse_existing(out)
    if framework == "mindspore" and other is None:
        raise BadInput("MindSpore's half starts from torch's weights and batches: give torch's trace with --with")
    if job.noise and (framework == "torch" or job.pair is not None):
        why = "torch's has float64" if framework == "torch" else "two halves of your own models are not compared"
        raise BadInput(f"--noise is for MindSpore's half of a recipe's own model: {why}; leave it out")
    if other is not None:
        half = run_folder.read(other)
        again = framework == half.side == "torch"  # the same start, on another device or another torch
        if again and (half.pair or {}).get("torch") != (job.pair.torch if job.pair is not None else None):
            was = (half.pair or {}).get("torch") or "the recipe's model"
            raise BadInput(f"{other} is a trace of {was}: record the same one again")
        if half.side not in _OTHER[framework] and not again:
            raise BadInput(
                f"{other} is a trace of {half.side}: --with takes the other framework's, or torch's for torch"
            )
        run_folder.check_narrowed_alike(out, job.narrowing, other, half.narrowing)
    draws = framework == "torch" or "data" in job.narrowing.stages
    check_inputs(job.recipe, job.pair, (framework,), draws=draws)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with folder_beside(out) as work:
            alone = framework == "torch" and (other is None or half.side == "torch")
            inside = replace(job, folder=work / "run", alone=alone)
            claim(inside.folder)
            if other is not None:
                _bring(framework, other, half.side, inside.folder)
            command = {"torch": torch_worker} if framework == "torch" else {"MindSpore": mindspore_worker}
            run_workers(inside, command, on_message)
            if framework == "torch":
                StepStarts(inside.folder).remove()
            run_folder.write(recipe_file, inside, framework)
            if other is not None:
                run_folder.check_together(other, inside.folder)
            if out.exists():
                out.rmdir()
            inside.folder.rename(out)
    except OSError as error:
        raise BadDestination(f"{out} cannot be written: {error.strerror or error}") from error


def _bring(framework: str, other: Path, side: str, folder: Path) -> None:
    """Copy what a half needs of the other one, which is of `side`. Raises BadTrace where it is not there."""
    if framework == "torch":  # it starts where the other did, on whatever machine
        for name in (INPUTS, WEIGHTS, START, REPLAY, CHOICES):  # the last two where modules ran alone
            _copy(other / name, folder / name)
    if framework == side == "torch":
        for name in (INPUTS, START if (folder / START).exists() else WEIGHTS):
            if not (folder / name).exists():
                raise BadTrace(f"{other}: has no {name}: it is no complete trace of torch's")
        return
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


@dataclass(frozen=True, repr=False)
class Recording(Result):
    """One framework's side, recorded."""

    framework: str
    folder: Path
    recipe: Path
    steps: int

    @property
    def ok(self) -> bool:
        """True: the folder is there, and whole."""
        return True

    def text(self) -> str:
        """One line."""
        return f"{self.folder}: {self.framework}'s half of {self.recipe.name}, {self.steps} steps."

    def as_dict(self) -> dict[str, Any]:
        """The folder, and what is in it."""
        return {
            "framework": self.framework,
            "folder": str(self.folder),
            "recipe": str(self.recipe),
            "steps": self.steps,
        }


def record(
    framework: str,
    out: str | Path,
    recipe: str | Path | None = None,
    *,
    other: str | Path | None = None,
    **options: Any,
) -> Recording:
    """Record one framework's side of a training step, on the machine that has it; `compare` judges it elsewhere.

    framework: "torch" or "mindspore".
    out: the new folder.
    recipe: a YAML file; the default recipe without one.
    other: the folder that the other framework's side was recorded into. MindSpore's needs torch's, for the starting
        weights and batches; torch's is sharper with MindSpore's.
    options: those of parity_step that are about recording: steps, batch, torch, mindspore, ckpt, batch_file and so on.

    Raises BadInput, BadTrace, BadDestination and WorkerFailed; the folder is then not there.
    """
    chosen = options_of(options, "record")
    return _recorded(framework, as_path(out, "out"), as_path(recipe, "recipe"), as_path(other, "other"), chosen)


def _recorded(
    framework: str, out: Path, recipe_file: Path | None, other: Path | None, options: ParityOptions
) -> Recording:
    if framework not in SIDES_OF_WORKERS:
        raise BadInput(f"there is no framework {framework!r}: record 'torch' or 'mindspore'")
    path = recipes.find(recipe_file)
    if options.torch is not None and options.mindspore is None:
        raise BadInput("--torch needs --mindspore here: convert the model first, with convert-model.")
    job = job_of(options, recipes.load(path), out, (framework,))
    begin = headline(f"record {framework}", path, job)
    with progressing(SIDES_OF_WORKERS[framework], begin) as on_message:
        record_side(framework, path, job, other, on_message)
    return Recording(framework, out, path, options.steps)


def run_record(framework: str, recipe_file: Path | None, out: Path, other: Path | None, options: ParityOptions) -> int:
    """Record one framework ('torch' or 'mindspore') into the new folder `out`; returns the exit code 0.

    other: the half from the other machine, which MindSpore's needs and torch's is sharper with.
    """
    result = _recorded(framework, out, recipe_file, other, options)
    echo(result.text())
    return 0
