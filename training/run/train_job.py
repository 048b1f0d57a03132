"""What a training process is told when it is started, and where a run keeps its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ..recipe.schema import Amp, Recipe, Strict


class Job(Strict):
    """One training run, as the command line and the recipe's `train` section settled it.

    recipe: the recipe file, absolute. folder: where the run's files go, absolute. target, mode, device_id: where it
    runs; each process on one machine takes device_id + its local rank. seed, epochs, amp: instead of the recipe's.
    processes: of all machines together. resume: continue from the newest sound checkpoint in the folder.
    start: a torch training checkpoint, converted or not, from which a new run goes on. gate: what
    the run's log says of the proof, such as {"parity": "passed", "report": ...} or {"parity": "skipped"}.
    """

    recipe: Path = Field(strict=False)
    folder: Path = Field(strict=False)
    target: Literal["Ascend", "GPU", "CPU"] = "CPU"
    mode: Literal["graph", "pynative"] = "graph"
    device_id: int = 0
    seed: int | None = None
    epochs: int | None = None
    amp: Amp | None = None
    processes: int = 1
    resume: bool = False
    start: Path | None = Field(default=None, strict=False)
    max_steps: int | None = None
    gate: dict[str, Any] = Field(default_factory=dict)

    def settled(self, recipe: Recipe) -> Recipe:
        """The recipe with what the job has instead; the seed is left to whoever draws."""
        if self.epochs is not None:
            recipe = recipe.model_copy(update={"train": recipe.train.model_copy(update={"epochs": self.epochs})})
        return recipe if self.amp is None else recipe.model_copy(update={"amp": self.amp})

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints: step-00000200.ckpt, …, and best.ckpt."""
        return self.folder / "checkpoints"

    @property
    def log(self) -> Path:
        """The run's own log, JSON lines, written by rank 0 and kept over resumed runs."""
        return self.folder / "log.jsonl"

    def events(self, rank: int) -> Path:
        """Where the process of this rank tells the parent process what it does."""
        return self.folder / "ranks" / f"rank_{rank}.jsonl"

    def output(self, rank: int) -> Path:
        """Where the stdout and stderr of this rank go."""
        return self.folder / "ranks" / f"rank_{rank}.log"

    def write(self, file: Path) -> None:
        """Store the job for the processes that do it."""
        file.write_text(self.model_dump_json(indent=2), encoding="utf-8")

    @classmethod
    def read(cls, file: Path) -> Job:
        """Read what write() stored."""
        return cls.model_validate_json(file.read_text(encoding="utf-8"))
