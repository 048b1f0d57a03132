"""What `msmigrate train` settles before anything runs: its options, the job they make, and the folder it goes to."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BadDestination, NotTrusted
from ..training import checkpoints
from ..training.options import TrainOptions
from ..training.recipe import reader as recipes
from ..training.recipe.schema import Amp, Recipe
from ..training.recipe.stored import foreign_argument
from ..training.run.run_log import read
from ..training.run.train_job import JOB_FILE, Job

RUNS = Path("runs")
LOG = "log.jsonl"
PARITY = "parity.json"
# what a run leaves that came to no checkpoint, half-written files included
LEFT = ("ranks", LOG, JOB_FILE, PARITY, "checkpoints", "tensorboard", "start.ckpt", "summary.json", "training.png")
NAMES = "|".join(map(re.escape, LEFT))
LEFTOVERS = re.compile(rf"(?:{NAMES}|\.(?:{NAMES})\.\d+-[0-9a-f]+\.tmp)$")


@dataclass(frozen=True)
class Options(TrainOptions):
    """The options of train, and the files that they lead to."""

    @property
    def folder(self) -> Path:
        """Where the run's files go, absolute: --out, or runs/ and the recipe's name."""
        out = self.out or RUNS / (self.recipe or recipes.DEFAULT).stem
        return recipes.expanded(out).absolute()

    @property
    def recipe_file(self) -> Path:
        """The recipe, absolute: the one named, that of the run to resume, or the default."""
        before = previous(self.folder) if self.resume and self.recipe is None and self.out is not None else None
        return before.recipe if before else recipes.expanded(recipes.find(self.recipe)).absolute()


def refuse_unsaid(options: Options, recipe: Recipe) -> None:
    """Raise NotTrusted where only the run's folder says which recipe it is of, and the recipe says what to import, or
    arguments of a model that are not known to be harmless: a folder may come from anyone."""
    if options.recipe is not None or not options.resume or previous(options.folder) is None:
        return
    model, foreign = recipe.model, foreign_argument(recipe.model)
    source = model.source if model.source is not None else recipe.loss.source
    if source is not None or foreign is not None:
        what = f"net is built with {foreign}" if source is None else f"net or loss is imported from {source}"
        raise NotTrusted(
            f"{options.folder / JOB_FILE} says that the run is of {options.recipe_file}, whose {what}; if that is the "
            "recipe, say so",
            (str(options.recipe_file),),
        )


def precision(options: Options) -> Amp | None:
    """The precision that the command line names, or that the run to resume was begun with instead of its recipe's."""
    if options.amp is not None:
        return Amp.model_validate({"level": options.amp, **({"dtype": options.amp_dtype} if options.amp_dtype else {})})
    before = previous(options.folder) if options.resume else None
    return before.amp if before else None


def settle(options: Options, recipe: Recipe, default_target: str) -> Job:
    """The job: the command line over the recipe's `train` section; a resumed run keeps what it was begun with."""
    train = recipe.train
    before = previous(options.folder) if options.resume else None
    return Job.model_validate(
        {
            "recipe": options.recipe_file,
            "folder": options.folder,
            "target": target_of(options, recipe) or default_target,
            "mode": options.mode or (before.mode if before else train.mode),
            "device_id": train.device_id if options.device_id is None else options.device_id,
            "seed": options.seed if options.seed is not None or before is None else before.seed,
            "epochs": options.epochs or (before.epochs if before else None),
            "amp": precision(options),
            "processes": options.spread.processes,
            "resume": options.resume,
            "start": start_of(options),
            "max_steps": options.max_steps,
        }
    )


def target_of(options: Options, recipe: Recipe) -> str | None:
    """The target that the command line names, or the run to resume, or the recipe; None for whichever is there."""
    before = previous(options.folder) if options.resume else None
    named = next((t for t in ("Ascend", "GPU", "CPU") if t.lower() == (options.target or "").lower()), None)
    return named or (before.target if before else recipe.train.target)


def start_of(options: Options) -> Path | None:
    """The torch training checkpoint that the run begins with, or began with if it came to no checkpoint of its own."""
    if options.resume and holds_a_run(options.folder):
        return None
    if options.continue_from is not None:
        return recipes.expanded(options.continue_from).absolute()
    before = previous(options.folder) if options.resume else None
    return before.start if before else None


def previous(folder: Path) -> Job | None:
    """The job that a run folder was last used for, or None where it says none that can be read."""
    try:
        return Job.read(folder / JOB_FILE)
    except (OSError, ValueError):
        return None


def gate_of(folder: Path) -> dict[str, Any] | None:
    """What the log of the run in this folder says of its proof."""
    before = previous(folder)
    return (read(folder / LOG).gate or before.gate) if before else None


def holds_a_run(folder: Path) -> bool:
    """Whether there is a checkpoint in this run folder, and so something to continue and to keep."""
    return any(folder.glob("checkpoints/*.ckpt"))


def folder_problem(options: Options) -> str | None:
    """Why the run's folder cannot be used, in one line, or None; nothing is changed."""
    folder = options.folder
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if not there.is_dir():
        return f"{folder} cannot be the run's folder: {there} is a file; name another with --out"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{folder} cannot be the run's folder: no permission for {there}; name another with --out"
    if options.node_rank:
        return None  # the first machine looks after the folder
    if holds_a_run(folder):
        why = "continue it with --resume, or name another folder with --out"
        return None if options.resume else f"{folder} holds a run: {why}"
    if folder.is_dir() and (foreign := [path.name for path in folder.iterdir() if not LEFTOVERS.match(path.name)]):
        return f"{folder} is not empty ({min(foreign)}): name another folder with --out"
    if options.resume and options.recipe is None and options.out is not None and previous(folder) is None:
        return f"{folder} holds no run that says what it trains: name the RECIPE for a new one, or mend --out"
    return None


def check_checkpoints(options: Options) -> None:
    """Raise BadInput where the run to resume has checkpoints, and no sound one, before any work is done."""
    folder = options.folder / "checkpoints"
    if not options.resume or options.node_rank or not holds_a_run(options.folder):
        return
    if checkpoints.newest(folder, lambda text: None) is None:
        raise BadDestination(f"{folder} holds checkpoints, and none of a run of msmigrate train: mend --out")


def begins_anew(options: Options) -> bool:
    """Whether there is nothing to resume, such as after a run that was killed before its first checkpoint."""
    return options.resume and not options.node_rank and not holds_a_run(options.folder)


@contextmanager
def claimed(options: Options) -> Iterator[Path]:
    """Make the run's folder and keep other runs out of it while the block runs; an empty new one is taken away again.

    The log of a run that left no checkpoint is removed, for another one begins. Raises BadDestination where the folder
    cannot be made or used, or where another run is at work in it.
    """
    problem = folder_problem(options)
    if problem:
        raise BadDestination(problem)
    folder = options.folder
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise BadDestination(f"{folder} cannot be the run's folder: {error.strerror or error}") from None
    try:
        if not options.node_rank:
            _lock(descriptor, folder)
            if not options.resume or begins_anew(options):
                (folder / LOG).unlink(missing_ok=True)
        yield folder
    finally:
        os.close(descriptor)  # and with it goes the lock
        with contextlib.suppress(OSError):  # which holds something now
            for path in made:
                path.rmdir()


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BadDestination(f"another run is at work in {folder}: name another folder with --out") from None
    except OSError:
        pass  # a file system without locks
