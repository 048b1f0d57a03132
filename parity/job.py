"""What a comparison is asked for, as its command line and its workers know it; a pair of the user's models."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import BadInput, MsmigrateError, WorkerFailed
from ..migrate.checkpoint.formats.detect_format import check_checkpoint
from ..migrate.checkpoint.name_map import read_rules
from ..migrate.model_spec import parse as parse_spec
from ..training.data.sources import check_place
from ..training.models import model_names
from ..training.models.converted_models import maker
from ..training.models.model_names import module_names
from ..training.recipe import reader as recipes
from ..training.recipe.schema import FOLDER, Recipe
from .narrowing import STAGES, Narrowing
from .record.batch_file import check_batch
from .record.messages import fail
from .trace import SAMPLE

BARE, TRAINING = "continued.pth", "continued.ckpt"

SIDES = ("torch", "mindspore")


@dataclass(frozen=True)
class Pair:
    """Two models by name, as `FILE.py:FUNCTION` or `MODULE:FUNCTION` with constant arguments.

    map_file: regex pairs for names that alignment does not find by itself. checkpoint: torch weights to start from.
    batch: an .npz or .safetensors file with the steps' inputs. outputs: the loss is one of everything that the models
    return (see pairs/output_loss.py), and not the recipe's. Raises BadInput for what names no model.
    """

    torch: str
    mindspore: str
    map_file: Path | None = None
    checkpoint: Path | None = None
    batch: Path | None = None
    outputs: bool = False

    def __post_init__(self) -> None:
        parse_spec(self.torch)
        parse_spec(self.mindspore)

    def arguments(self) -> list[str]:
        """The command line of a worker that `of` reads back."""
        files = {"map": self.map_file, "checkpoint": self.checkpoint, "batch-file": self.batch}
        return [
            f"--torch={self.torch}",
            f"--mindspore={self.mindspore}",
            *(f"--{key}={value}" for key, value in files.items() if value is not None),
            *(["--loss-of-outputs"] if self.outputs else []),
        ]

    def check(self, sides: Sequence[str] = SIDES) -> None:
        """Make sure, by reading alone, that there is what these sides will use of it. Raises BadInput."""
        for side, spec in zip(SIDES, (self.torch, self.mindspore), strict=True):
            try:
                if side in sides:
                    model_names.check_spec(spec, side)
            except BadInput as error:
                raise BadInput(f"--{side} {spec}: {error}") from None
        if "torch" in sides and self.checkpoint is not None:
            check_checkpoint(str(self.checkpoint), for_torch=True)
        if "torch" in sides and self.batch is not None:
            check_batch(self.batch)
        read_rules(self.map_file)


def check_inputs(recipe: Recipe, pair: Pair | None, sides: Sequence[str] = SIDES, *, draws: bool = True) -> None:
    """Make sure, by reading alone, that there is what these sides of a recording will use, so that no framework starts
    in vain: a pair's models and files, or the recipe's.

    draws: whether batches are made of the recipe's images. Raises BadInput.
    """
    if pair is not None:
        pair.check(sides)
    elif recipe.model.source is not None:
        maker(recipe.model.source, recipe.model.name)
    if pair is None and "torch" in sides and recipe.model.checkpoint is not None:
        check_checkpoint(str(recipe.model.checkpoint), for_torch=True)
    if draws and (pair is None or pair.batch is None):
        check_place(recipe.data.source)


def recipe_of(options: Options, classes: int) -> Recipe:
    """The recipe of a compared step, for a pair's number of classes, checkpoint and folder of images."""
    recipe, pair = options.step_recipe, options.pair
    if pair is None:
        return recipe
    model = recipe.model.model_copy(update={"args": {"num_classes": classes}, "checkpoint": pair.checkpoint})
    data = recipe.data
    if pair.batch is not None and str(pair.batch).startswith(FOLDER):
        data = data.model_copy(update={"source": str(pair.batch)})
    return recipe.model_copy(update={"model": model, "data": data})


def batch_file(options: Options) -> Path | None:
    """The file of the user's batches, None where the images come from the recipe or a folder."""
    pair = options.pair
    return None if pair is None or pair.batch is None or str(pair.batch).startswith(FOLDER) else pair.batch


STEPS = 3
INIT_SEEDS = 3
MODES = ("pynative", "graph")
FORMATS = ("fp32", "hf32", "tf32", "fp16", "bf16")
ENOUGH = 8  # images of a micro-batch that are as good a proof as hundreds, and quicker


@dataclass(frozen=True)
class Options:
    """What to record: `sample` elements of each tensor at most (None: all), `init_seeds` models drawn for the
    initial distributions, steps of `batch` images (None: the recipe's, but at most ENOUGH a micro-batch). pair: the
    user's own models in place of the recipe's. replay: whether every module also runs alone. stages, modules: what is
    judged, where that is less than the whole step (see narrowing.py). mode: graph records the compiled step too.
    precision: the format in which the target computes convolutions and matrix products, one of FORMATS. alone: torch's
    side is recorded without MindSpore's. continue_from: a torch training checkpoint that the steps go on from; see
    continued.py.

    Raises BadInput for a batch that the recipe's micro-batches do not divide, for an unknown mode, precision or stage,
    for a glob that matches no module of a model whose modules are known here, and for a pair that is to go on from a
    checkpoint.
    """

    recipe: Recipe
    folder: Path
    steps: int = STEPS
    init_seeds: int = INIT_SEEDS
    sample: int | None = SAMPLE
    batch: int | None = None
    pair: Pair | None = None
    replay: bool = True
    modules: Sequence[str] = ()
    mode: str = MODES[0]
    precision: str = FORMATS[0]
    alone: bool = False
    continue_from: Path | None = None
    stages: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name, value, known in (("mode", self.mode, MODES), ("precision", self.precision, FORMATS)):
            if value not in known:
                raise BadInput(f"{name} is {value!r}: expected one of {', '.join(known)}")
        names = module_names(self.recipe.model.name, self.recipe.model.args) if self.pair is None else None
        if names is not None:
            self.narrowing.check(names, self.recipe.model.name)
        if self.batch is not None and (self.batch < 1 or self.batch % self.recipe.accumulate):
            raise BadInput(
                f"a batch of {self.batch} images does not divide into {self.recipe.accumulate} equal micro-batches "
                f"(accumulate): give --batch a multiple of {self.recipe.accumulate}"
            )
        if self.continue_from is not None and self.pair is not None:
            raise BadInput(
                f"--continue-from goes on with the recipe's own models, not with {self.pair.torch}: prove its step "
                "without it"
            )

    @property
    def narrowing(self) -> Narrowing:
        """What is judged."""
        return Narrowing.to(self.stages, self.modules)

    @property
    def replays(self) -> bool:
        """Whether modules run alone: what they give there is outputs, gradients and changes of buffers."""
        return self.replay and any(stage in self.narrowing.stages for stage in ("forward", "gradients", "update"))

    @property
    def checkpoint(self) -> Path | None:
        """The file of weights that the recipe or the pair names."""
        return self.recipe.model.checkpoint if self.pair is None else self.pair.checkpoint

    @property
    def step_batch(self) -> int:
        """How many images a compared step has."""
        return self.batch or min(self.recipe.data.batch, ENOUGH * self.recipe.accumulate)

    @property
    def step_recipe(self) -> Recipe:
        """The recipe with the batch of a compared step, and the weights that it goes on from; its digest is another one
        then."""
        data = self.recipe.data.model_copy(update={"batch": self.step_batch})
        model = self.recipe.model
        if self.continue_from is not None:
            model = model.model_copy(update={"checkpoint": self.folder / BARE})
        return self.recipe.model_copy(update={"data": data, "model": model})

    def arguments(self, recipe_file: Path) -> list[str]:
        """The command line that `parse` reads back into these options."""
        sizes = {"steps": self.steps, "init-seeds": self.init_seeds, "sample": self.sample or 0}
        if self.batch is not None:
            sizes["batch"] = self.batch
        return [
            str(recipe_file),
            str(self.folder),
            *(f"--{key}={value}" for key, value in sizes.items()),
            *([] if self.replay else ["--no-replay"]),
            *(["--alone"] if self.alone else []),
            *(f"--modules={pattern}" for pattern in self.narrowing.modules),
            *(f"--stages={stage}" for stage in self.narrowing.stages if not self.narrowing.whole),
            f"--mode={self.mode}",
            f"--precision={self.precision}",
            *([] if self.continue_from is None else [f"--continue-from={self.continue_from}"]),
            *(self.pair.arguments() if self.pair is not None else []),
        ]


def parse(arguments: list[str]) -> Options:
    """Read a worker's command line."""
    parser = argparse.ArgumentParser(description="Record one framework's side of a training step as a trace.")
    parser.add_argument("recipe", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--init-seeds", type=int, default=INIT_SEEDS)
    parser.add_argument("--sample", type=int, default=SAMPLE, help="elements kept of each tensor; 0 keeps all")
    parser.add_argument(
        "--batch", type=int, help="images of a step; by default the recipe's, but at most 8 a micro-batch"
    )
    parser.add_argument("--alone", action="store_true", help="torch's side, without MindSpore's choices")
    parser.add_argument("--no-replay", action="store_true", help="do not run every module alone")
    parser.add_argument("--modules", action="append", default=[], help="judge only modules that match this glob")
    parser.add_argument("--stages", action="append", default=[], choices=STAGES, help="judge only this stage")
    parser.add_argument("--mode", choices=MODES, default=MODES[0], help="graph: the compiled step too")
    parser.add_argument("--precision", choices=FORMATS, default=FORMATS[0], help="of convolutions and matrix products")
    parser.add_argument("--torch", help="the user's torch model")
    parser.add_argument("--mindspore", help="the user's MindSpore model")
    parser.add_argument("--map", type=Path, help="regex pairs from torch names to MindSpore names")
    parser.add_argument("--checkpoint", type=Path, help="torch weights the pair starts from")
    parser.add_argument("--batch-file", type=Path, help="the steps' inputs, .npz or .safetensors")
    parser.add_argument("--continue-from", type=Path, help="a torch training checkpoint that the steps go on from")
    parser.add_argument("--loss-of-outputs", action="store_true", help="a loss of everything that the pair returns")
    found = parser.parse_args(arguments)
    pair = None
    if found.torch is not None and found.mindspore is not None:
        files = (found.map, found.checkpoint, found.batch_file)
        pair = Pair(found.torch, found.mindspore, *files, outputs=found.loss_of_outputs)
    return Options(
        recipes.load(found.recipe),
        found.folder,
        found.steps,
        found.init_seeds,
        found.sample or None,
        found.batch,
        pair,
        not found.no_replay,
        tuple(found.modules),
        found.mode,
        found.precision,
        found.alone,
        found.continue_from,
        tuple(found.stages),
    )


def run(main: Callable[[Options], None]) -> None:
    """Run a worker's main and end the process: 0, or 2 with the reason told to the parent.

    The process ends without Python's shutdown: MindSpore's prints hundreds of harmless errors there.
    """
    code = 0
    try:
        main(parse(sys.argv[1:]))
    except MsmigrateError as error:
        fail(error)
        code = 2
    except Exception as error:
        traceback.print_exc()
        fail(error)
        code = 2
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def wait_for(path: Path) -> Path:
    """Wait until another process has put `path` in place; raises WorkerFailed when the parent is gone.

    There is no deadline: the parent ends its workers when one of them fails, and a worker run by hand may wait for a
    trace that comes from another machine.
    """
    parent = os.getppid()
    while not path.exists():
        if os.getppid() != parent:
            raise WorkerFailed(f"the process that waited for {path} is gone")
        time.sleep(0.02)
    return path
