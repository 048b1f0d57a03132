"""The job of a training run: what its processes read, where it keeps its files, and the command that starts it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ...errors import BadDestination
from ..device_targets import msrun
from ..options import Spread
from ..recipe.schema import Amp, Recipe, Strict


class Job(Strict):
    """One training run, as the command line and the recipe's `train` section have it.

    recipe: the recipe file, absolute. folder: where the run's files go, absolute. target, mode, device_id: where it
    runs; each process on one machine takes device_id + its local rank. seed, epochs, amp: instead of the recipe's.
    processes: of all machines together. resume: continue from the newest undamaged checkpoint in the folder. start: a
    torch training checkpoint, converted or not, that a new run continues from. gate: the entry on the proof in the
    run's log, such as {"parity": "passed", "report": ...} or {"parity": "skipped"}.
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
        """The recipe with the job's values in place of its own, except the seed, which is passed on separately."""
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
        """The file of events from this rank's process to the parent process."""
        return self.folder / "ranks" / f"rank_{rank}.jsonl"

    def output(self, rank: int) -> Path:
        """Where the stdout and stderr of this rank go."""
        return self.folder / "ranks" / f"rank_{rank}.log"


WORKER = ("-m", "msmigrate.training.run.mindspore_worker")
JOB_FILE = "JOB.json"
# How many seconds the processes wait for each other to start: they import MindSpore, and on other machines somebody
# still has to type the command.
PATIENCE_HERE, PATIENCE_ELSEWHERE = 120, 600


def job_file(job: Job) -> Path:
    """The file from which the processes of a job read it."""
    return job.folder / JOB_FILE


def command(job: Job, spread: Spread, port: int, worker: Sequence[str] | None = None) -> list[str]:
    """The command to start on this machine.

    One process runs by itself. Several are started by msrun, which executes the `python` that PATH finds: see
    `python_first`. worker: instead of our own, the interpreter's arguments before the job file.
    """
    if spread.processes == 1:
        return [sys.executable, *(worker or WORKER), str(job_file(job))]
    logs = job.output(0)
    return [
        *msrun(),
        f"--worker_num={spread.processes}",
        f"--local_worker_num={spread.nproc}",
        f"--master_addr={spread.master_addr}",
        f"--master_port={port}",
        f"--node_rank={spread.node_rank}",
        f"--log_dir={logs.parent}",
        f"--worker_log_name={logs.stem.rpartition('_')[0]}",
        f"--tail_worker_log={spread.nproc}",  # past the last worker, so none is shown: their output is in their logs
        "--join=True",
        f"--cluster_time_out={PATIENCE_HERE if spread.nnodes == 1 else PATIENCE_ELSEWHERE}",
        "python",
        *(worker or WORKER),
        str(job_file(job)),
    ]


def python_first(folder: Path) -> str:
    """The directory that has to come first in PATH, so that `python` is the interpreter of this process.

    That is the interpreter's own directory, or else `folder` with a script that starts it. Raises BadDestination where
    that cannot be written.
    """
    here = Path(sys.executable).parent
    named = here / "python"
    if named.exists() and named.resolve() == Path(sys.executable).resolve():
        return str(here)
    script = folder / "bin" / "python"
    try:
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    except OSError as error:
        raise BadDestination(f"{script}: cannot be written: {error.strerror or error}") from None
    return str(script.parent)
