"""The job of the processes that record a step, and the pair of the user's models that it may be of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from ..errors import BadInput
from ..migrate import model_spec
from ..migrate.checkpoint.formats.registry import check_checkpoint
from ..migrate.checkpoint.user_map import read_rules
from ..migrate.model_spec import parse as parse_spec
from ..training.data.array_files import check_batches
from ..training.data.sources import check_place
from ..training.models import model_names
from ..training.models.converted_models import maker
from ..training.models.model_names import module_names
from ..training.options import TARGETS
from ..training.recipe.schema import FOLDER, Recipe
from ..training.step.parameter_groups import matching
from .options import StepOptions

BARE, TRAINING = "continued.pth", "continued.ckpt"

SIDES = ("torch", "mindspore")


@dataclass(frozen=True)
class Pair:
    """Two models by name, as `FILE.py:FUNCTION` or `MODULE:FUNCTION` with constant arguments.

    map_file: regex pairs for names that alignment does not find by itself. checkpoint: torch weights to start from.
    batch: an .npz or .safetensors file with the steps' inputs. outputs: the loss is one of everything that the models
    return (output_loss of align/torch_user_model.py), and not the recipe's. of_recipe: it is the recipe's model, one of
    torchvision's or timm's, so that what the recipe says about training it applies to this pair. freezes: parameters
    that torch's model does not compute with are frozen in MindSpore's, as a user who trains on such inputs has to do.
    Raises BadInput for what names no model.
    """

    torch: str
    mindspore: str
    map_file: Path | None = None
    checkpoint: Path | None = None
    batch: Path | None = None
    outputs: bool = False
    of_recipe: bool = False
    freezes: bool = False

    def __post_init__(self) -> None:
        parse_spec(self.torch)
        parse_spec(self.mindspore)

    def check(self, sides: Sequence[str] = SIDES) -> None:
        """Make sure, by reading alone, that what these sides will use of the pair exists. Raises BadInput."""
        for side, spec in zip(SIDES, (self.torch, self.mindspore), strict=True):
            try:
                if side in sides:
                    model_names.check_spec(spec, side)
            except BadInput as error:
                raise BadInput(f"{'model' if self.of_recipe else f'--{side}'} {spec}: {error}") from None
        if "torch" in sides and self.checkpoint is not None:
            check_checkpoint(str(self.checkpoint), for_torch=True)
        if "torch" in sides and self.batch is not None:
            check_batch(self.batch)
        read_rules(self.map_file)


def check_batch(path: Path) -> None:
    """Make sure that the user's batches exist, in a file or as `folder:PATH`. Raises BadInput."""
    if str(path).startswith(FOLDER):
        check_place(str(path))
    else:
        check_batches(path)


def check_inputs(recipe: Recipe, pair: Pair | None, sides: Sequence[str] = SIDES, *, draws: bool = True) -> None:
    """Make sure, by reading alone, that what these sides of a recording will use exists (a pair's models and files, or
    the recipe's), so that no framework starts in vain.

    draws: whether batches are made from the recipe's images. Raises BadInput.
    """
    if pair is not None:
        pair.check(sides)
    elif recipe.model.source is not None:
        maker(recipe.model.source, recipe.model.name)
    if pair is None and "torch" in sides and recipe.model.checkpoint is not None:
        check_checkpoint(str(recipe.model.checkpoint), for_torch=True)
    if recipe.loss.own:
        try:
            model_spec.check(recipe.loss.counterpart, "mindspore", called=False)
            if "torch" in sides:
                model_spec.check(recipe.loss.name, "torch", called=False)
        except BadInput as error:
            raise BadInput(f"loss: {error}") from None
    for name in model_names.functions_in(recipe.schedule.args) if recipe.schedule else ():
        try:
            model_spec.check(name, "torch", called=False)
        except BadInput as error:
            raise BadInput(f"schedule: {error}") from None
    if draws and (pair is None or pair.batch is None):
        check_place(recipe.data.source)


def recipe_of(job: ParityJob, classes: int) -> Recipe:
    """The recipe of a compared step, for a pair's number of classes, checkpoint and folder of images."""
    recipe, pair = job.step_recipe, job.pair
    if pair is None:
        return recipe
    of_pair = {"args": {"num_classes": classes}, "checkpoint": pair.checkpoint, "classes": None}
    model = recipe.model.model_copy(update=of_pair)
    data = recipe.data
    if pair.batch is not None and str(pair.batch).startswith(FOLDER):
        data = data.model_copy(update={"source": str(pair.batch)})
    return recipe.model_copy(update={"model": model, "data": data})


def batch_file(job: ParityJob) -> Path | None:
    """The file of the user's batches, None where the images come from the recipe or a folder."""
    pair = job.pair
    return None if pair is None or pair.batch is None or str(pair.batch).startswith(FOLDER) else pair.batch


def as_arrays(job: ParityJob) -> bool:
    """Whether the batches are arrays of a file, the user's or the recipe's, and not made of images."""
    other = job.pair is not None and job.pair.batch is not None
    return batch_file(job) is not None if other else job.recipe.data.of_arrays


ENOUGH = 8  # images of a micro-batch that are as good a proof as hundreds, and quicker
ENOUGH_ALONE = 4  # of them, for a module that runs alone


@dataclass(frozen=True)
class ParityJob(StepOptions):
    """The recipe, the folder that all processes of the run share, and what to record; see StepOptions.

    pair: the user's own models in place of the recipe's. alone: torch's side is recorded without MindSpore's. together:
    both sides are recorded at once, by processes whose parent judges what they record.

    Raises BadInput for a batch that the recipe's micro-batches do not divide, for a glob that matches no module of a
    model whose modules are known here, for a pair that is to continue from a checkpoint, and what StepOptions does.
    """

    recipe: Recipe
    folder: Path
    pair: Pair | None = None
    alone: bool = False
    together: bool = False

    def __post_init__(self) -> None:
        if self.batch is not None and (self.batch < 1 or self.batch % self.recipe.accumulate):
            raise BadInput(
                f"a batch of {self.batch} images does not divide into {self.recipe.accumulate} equal micro-batches "
                f"(accumulate): give --batch a multiple of {self.recipe.accumulate}"
            )
        super().__post_init__()
        if self.mindspore_device_id and self.mindspore_target == "CPU":
            raise BadInput(f"--device-id {self.mindspore_device_id} needs a --target with devices: Ascend or GPU")
        names = module_names(self.recipe.model.name, self.recipe.model.args) if self.pair is None else None
        if names is not None:
            self.narrowing.check(names, self.recipe.model.name)
        if self.continue_from is not None and self.pair is not None:
            raise BadInput(
                f"--continue-from continues with the recipe's own models, not with {self.pair.torch}: prove its step "
                "without this option"
            )

    @property
    def chooses_containers(self) -> bool:
        """Whether containers run alone only where their parts do not judge them."""
        return self.together and self.replays and not self.thorough

    @property
    def torch_device(self) -> str:
        """Where torch's side runs, as torch names it."""
        return self.device or self.recipe.devices.torch

    @property
    def mindspore_target(self) -> str:
        """Where MindSpore's side runs, as MindSpore writes it."""
        named = self.target or self.recipe.devices.mindspore
        return next(each for each in TARGETS if each.lower() == named.lower())

    @property
    def mindspore_device_id(self) -> int:
        """Which of the target's devices; the recipe's is of the recipe's target."""
        return self.device_id or (0 if self.device_id == 0 or self.target else self.recipe.devices.device_id)

    @property
    def fine_tunes(self) -> bool:
        """Whether the recipe's model.freeze and the like apply to the compared models."""
        return self.pair is None or self.pair.of_recipe

    def drawn(self, names: Iterable[str]) -> list[str]:
        """The model's tensors that start as the model draws them: all, or with a checkpoint those of model.fresh."""
        model = self.step_recipe.model
        start = self.checkpoint if self.continue_from is None else model.checkpoint
        return list(names) if start is None else matching(model.fresh, names)

    @property
    def checkpoint(self) -> Path | None:
        """The file of weights that the recipe or the pair names."""
        return self.recipe.model.checkpoint if self.pair is None else self.pair.checkpoint

    @property
    def step_batch(self) -> int:
        """How many images a compared step has."""
        return self.batch or min(self.recipe.data.batch, ENOUGH * self.recipe.accumulate)

    @property
    def alone_batch(self) -> int | None:
        """On how many images of the first micro-batch modules run alone at most; None: on all of it, as of a net of the
        user's own, which may know how many there are."""
        return ENOUGH_ALONE if self.fine_tunes and not self.thorough else None

    @property
    def measures_noise_once(self) -> bool:
        """Whether torch's float32 runs end with the first step that moves the weights: the noise of the steps after it
        is taken from that one. Not where float32 decides which steps are skipped, on a device, or where all is judged.
        """
        recipe = self.recipe
        scales = recipe.loss_scale is not None or recipe.dynamic_loss_scale is not None or recipe.amp is not None
        elsewhere = self.alone or self.thorough or self.torch_device not in (None, "cpu")
        return not (scales or elsewhere or self.precision != "fp32")

    @property
    def outputs_of_the_step(self) -> bool:
        """Whether torch's outputs in training are those of its first step, with MindSpore's choices at kinks, and not
        those of a forward pass before it; a step of the user's own may hide them."""
        return self.measures_noise_once and self.narrowing.takes_steps

    @property
    def may_measure_again(self) -> bool:
        """Whether torch's float32 runs take the later steps too, where these are all that does not agree."""
        return self.together and self.outputs_of_the_step

    @property
    def step_recipe(self) -> Recipe:
        """The recipe with the batch of a compared step, and the weights that it continues from, which change its
        digest."""
        data = self.recipe.data.model_copy(update={"batch": self.step_batch})
        model = self.recipe.model
        if self.continue_from is not None:
            model = model.model_copy(update={"checkpoint": self.folder / BARE, "fresh": []})
        return self.recipe.model_copy(update={"data": data, "model": model})

    def write(self, file: Path) -> None:
        """Store the job for the processes that do it."""
        file.write_bytes(_adapter().dump_json(self))

    @classmethod
    def read(cls, file: Path) -> ParityJob:
        """Read what write() stored."""
        return _adapter().validate_json(file.read_bytes())


@cache
def _adapter() -> TypeAdapter[ParityJob]:
    return TypeAdapter(ParityJob)
