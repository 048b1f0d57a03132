"""A pair of models that the user brings: the torch one, the MindSpore one, and what is needed to compare them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..migrate.model_spec import parse


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
