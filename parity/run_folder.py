"""What lies where in a run's folder: traces, inputs, run.json; two folders that belong together.

run.json      which sides are there, how many steps of how many images, the pair, and what both sides have to share
recipe.yaml   a copy of the recipe
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, PositiveInt

from ..errors import BadDestination, BadInput, BadTrace
from ..input_files import read_json, typed
from ..training.recipe import reader as recipes
from ..training.recipe.digest import file_digest
from .job import Pair, ParityJob
from .options import Narrowing
from .trace import sha256

KEY = "grey_level"  # in the head of a trace whose images C++ resized: the size of one level after Normalize

RUN, RECIPE, JOB = "run.json", "recipe.yaml", "job.json"
INDEXES = ("trace.json", "replay.json")  # written last
FORMAT = 1


UNJUDGED = "not floating"  # in the same: how many tensors the net returns in evaluation that are not floating
RUNS_TWICE = "runs_twice"  # in the head of MindSpore's trace: whether a user's step ran the net twice on each batch
REDUCER = "reducer"  # in the same, for a user's step that has one: whether what the step does after it was seen
REPLACED = "replaced"  # in the same: the weights that got other memory while steps were taken, by torch's names
SCOPE = "scope"  # in the head of torch's: what it was taken to have in common with MindSpore's side
IMPORT = "import"  # in the same: notes on the import of the user's file
UNDEFINED = "undefined"  # in the same: tensors of the user's model that torch leaves uninitialized, zeros here
FINE_TUNED = "fine_tuned"  # in the head of torch's traces: names of fresh or frozen tensors, by key of a recipe's model


@dataclass(frozen=True)
class RunFile:
    """side: whose traces are there; recipe: the file's name as it was given; alone: torch's side was recorded without
    MindSpore's choices at kinks; shared: file name -> SHA-256 of what both sides start from; traces: the names of the
    traces that were recorded; stages, modules: what they were narrowed to, if they were; recipe_digest,
    checkpoint_digest: of the recipe, and of the file of weights that it names, where there was one. The folder may come
    from anyone: what its recipe names is never opened."""

    side: Annotated[str, Field(pattern="^(torch|mindspore|both)$")]
    recipe: str
    steps: Annotated[int, Field(ge=1, le=100)]
    batch: PositiveInt | None
    pair: dict[str, str | None] | None
    alone: bool
    shared: dict[str, str]
    traces: list[str]
    precision: str = "fp32"
    stages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    recipe_digest: str | None = None
    checkpoint_digest: str | None = None

    def options(self, folder: Path) -> ParityJob:
        """The options that this was recorded with, for traces in `folder`. Raises what a bad recipe does."""
        pair = None
        if self.pair is not None:
            pair = Pair(str(self.pair.get("torch")), str(self.pair.get("mindspore")))
        recipe = recipes.load(folder / RECIPE)
        return ParityJob(
            recipe,
            folder,
            pair,
            steps=self.steps,
            batch=self.batch,
            precision=self.precision,
            stages=self.stages,
            modules=self.modules,
        )

    @property
    def narrowing(self) -> Narrowing:
        """What is judged. Raises BadInput for stages that nobody knows."""
        return Narrowing.to(self.stages, self.modules)

    def digest(self, folder: Path) -> str:
        """The digest of the recipe in a recorded folder: as it was noted, where the recipe names a file of source.

        Raises BadTrace where it was not noted, and what a bad recipe does.
        """
        recipe = recipes.load(folder / RECIPE)
        if recipe.model.source is None:
            return recipe.digest
        if self.recipe_digest is None:
            raise BadTrace(f"{folder / RUN}: does not say which recipe it is of; record it again with this msmigrate")
        return self.recipe_digest


def write(recipe_file: Path, options: ParityJob, side: str) -> None:
    """Leave run.json and the recipe in options.folder."""
    folder, pair = options.folder, options.pair
    files = [folder / name for name in (INPUTS, CHECKPOINT, START)]
    shared = {file.name: sha256(file) for file in files if file.exists()}
    names: dict[str, str | None] | None = None if pair is None else {"torch": pair.torch, "mindspore": pair.mindspore}
    traces = sorted(file.parent.name for file in folder.glob("*/trace.json"))
    checkpoint = options.checkpoint
    run = RunFile(
        side,
        str(recipe_file),
        options.steps,
        options.batch,
        names,
        options.alone,
        shared,
        traces,
        options.precision,
        options.narrowing.stages,
        options.narrowing.modules,
        options.recipe.digest,
        file_digest(checkpoint) if checkpoint is not None and checkpoint.is_file() else None,
    )
    shutil.copyfile(recipe_file, folder / RECIPE)
    (folder / RUN).write_text(json.dumps({"format": FORMAT, **asdict(run)}, indent=1), encoding="utf-8")


def read(folder: Path) -> RunFile:
    """Read a folder's run.json. Raises BadTrace where there is none, or it says nonsense."""
    try:
        document = read_json(folder / RUN)
        if document.pop("format", None) != FORMAT:
            raise ValueError("another format; record it again with this msmigrate")
        run = typed(RunFile, document, whole=False)
        _ = run.narrowing
        if not all(Path(name).name == name for name in run.traces):
            raise ValueError("a trace's name leads out of the folder")
        gone = [name for name in run.traces if not (folder / name / "trace.json").exists()]
    except (FileNotFoundError, NotADirectoryError):
        raise BadTrace(f"{folder}: no {RUN}; this is no recorded run, or the recording did not finish") from None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, BadInput) as error:
        raise BadTrace(f"{folder / RUN}: cannot be read: {' '.join(str(error).split())[:300]}") from None
    if gone:
        raise BadTrace(f"{folder}: {gone[0]} was recorded, but is no longer there")
    return run


def check_together(one: Path, other: Path) -> None:
    """Raise BadTrace unless two recorded halves start from the same weights and batches of the same recipe."""
    a, b = read(one), read(other)
    if a.digest(one) != b.digest(other):
        raise BadTrace(f"{one} and {other} are of different recipes: record both from the same one")
    if (a.steps, a.batch, a.precision) != (b.steps, b.batch, b.precision):
        raise BadTrace(f"{one} has {a.steps} steps, {other} {b.steps}, or other batches: record both alike")
    check_narrowed_alike(one, a.narrowing, other, b.narrowing)
    for name in (INPUTS, CHECKPOINT, START):
        if a.shared.get(name) != b.shared.get(name):
            raise BadTrace(
                f"{one} and {other} do not share their {name}: record MindSpore's side with --with {one}, or torch's "
                "again where it was first recorded"
            )


def check_narrowed_alike(one: Path, ours: Narrowing, other: Path, theirs: Narrowing) -> None:
    """Raise BadTrace unless two halves were recorded for the same stages and modules."""
    if ours != theirs:
        raise BadTrace(
            f"{one} was recorded for {ours.said()} and {other} for {theirs.said()}: record both with the same --stages "
            "and --modules"
        )


def refuse_existing(out: Path) -> None:
    """Raise BadInput for a folder that is not empty; BadDestination is left to the code that writes."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out} exists and is not empty: name another folder")


WEIGHTS, CHECKPOINT, INPUTS = "start.pth", "start.ckpt", "inputs.safetensors"
START = "start.safetensors"
TORCH32, TORCH32_OTHER, TORCH64, MINDSPORE = "torch-fp32", "torch-fp32-other-layout", "torch-fp64", "mindspore-fp32"
TORCH32_AGAIN = "torch-fp32-again"  # on a device whose numbers differ from run to run
MOVED = ("mindspore-moved", "mindspore-moved-otherwise")  # with every number moved in its last places: its own noise
MINDSPORE_REPLAY = "mindspore-replay"  # every module alone; see replay/
EVERY_STEP = "every-step.json"  # true where the noise of the first steps decides nothing on later ones: see run.py
CHOICES = "torch-choices"  # what torch's modules ran alone, and chose at kinks, which other recordings of torch take


def matched(name: str) -> str:
    """The trace whose ReLUs and max-pools chose as MindSpore's did where rounding decides."""
    return f"{name}-matched"


def replayed(name: str) -> str:
    """The trace in which every module ran alone."""
    return f"{name}-replay"


def torch_runs(folder: Path, called: Callable[[str], str] = str) -> list[str]:
    """The traces of one family of torch's in a run's folder, float64 first; called: how its members are named."""
    again = called(TORCH32_AGAIN)
    return [called(name) for name in (TORCH64, TORCH32, TORCH32_OTHER)] + [again] * (folder / again).exists()


LAST_TRACE = {"torch": matched(TORCH32_OTHER), "MindSpore": MINDSPORE}  # what a side has left when it ends
LAST_REPLAY = {"torch": replayed(TORCH32_OTHER), "MindSpore": MINDSPORE_REPLAY}  # and when modules also run alone


def claim(folder: Path) -> None:
    """Make the folder, which must hold nothing yet. Raises BadInput."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        in_use = any(folder.iterdir())
        if not in_use:
            for name in LAST_TRACE:
                log_file(folder, name).touch()
    except OSError as error:
        raise BadDestination(f"{folder}: traces cannot be kept here: {error.strerror or error}") from error
    if in_use:
        raise BadInput(f"{folder} is not empty; traces of two runs would mix: name another folder")


def drop_half_traces(folder: Path) -> None:
    """Remove the folders in a run's folder whose index was not written: the recording was cut short."""
    for part in folder.iterdir() if folder.is_dir() else ():
        if part.is_dir() and not part.is_symlink() and not any((part / index).exists() for index in INDEXES):
            shutil.rmtree(part, ignore_errors=True)


def write_json(file: Path, value: object) -> None:
    """Put a file of JSON in a run's folder whole or not at all: the other processes wait until it is there."""
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(value), encoding="utf-8")
    partial.replace(file)


def log_file(folder: Path, name: str) -> Path:
    return folder / f"{name.lower()}.log"
