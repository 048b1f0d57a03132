"""A pair of models that the user brings: the torch one, the MindSpore one, and what is needed to compare them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..migrate.model_spec import parse
from ..train.models.converted import mindspore_spec, torch_spec
from ..train.models.model_names import is_zoo
from ..train.recipe import Recipe


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


def of_recipe(recipe: Recipe) -> Pair | None:
    """The pair that the recipe's own model is, where it is one of torchvision's or timm's; None for msmigrate's own.

    Converts the model unless the recipe names its source. Raises what converting does; see train/models/converted.py.
    """
    model = recipe.model
    if not is_zoo(model.name):
        return None
    theirs = mindspore_spec(model.name, model.args, model.source)
    return Pair(torch_spec(model.name, model.args), theirs, checkpoint=model.checkpoint)
