"""A pair of models that the user brings: the torch one, the MindSpore one, and what is needed to compare them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import BadInput
from ..migrate.formats.source import check_checkpoint
from ..migrate.model_spec import parse
from ..migrate.name_map import read_rules
from ..train.data.data_sources import check_place
from ..train.models import model_names
from ..train.models.converted import maker, mindspore_spec, torch_spec
from ..train.models.model_names import is_zoo
from ..train.recipe import Recipe
from .pairs.batch_file import check_batch

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
        parse(self.torch)
        parse(self.mindspore)

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


def of_recipe(recipe: Recipe) -> Pair | None:
    """The pair that the recipe's own model is, where it is one of torchvision's or timm's; None for msmigrate's own.

    Converts the model unless the recipe names its source. Raises what converting does; see train/models/converted.py.
    """
    model = recipe.model
    if not is_zoo(model.name):
        return None
    theirs = mindspore_spec(model.name, model.args, model.source)
    return Pair(torch_spec(model.name, model.args), theirs, checkpoint=model.checkpoint)
