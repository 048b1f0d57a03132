"""What the two recording processes share: their options, and how they end."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import MsmigrateError, WorkerFailed
from ..train import recipe as recipes
from ..train.recipe import Recipe
from .record import fail
from .trace import SAMPLE

STEPS = 3
INIT_SEEDS = 3


@dataclass(frozen=True)
class Options:
    """What to record: `sample` elements of each tensor at most (None: all), `init_seeds` models drawn for the
    initial distributions."""

    recipe: Recipe
    folder: Path
    steps: int = STEPS
    init_seeds: int = INIT_SEEDS
    sample: int | None = SAMPLE

    def arguments(self, recipe_file: Path) -> list[str]:
        """The command line that `parse` reads back into these options."""
        sizes = {"steps": self.steps, "init-seeds": self.init_seeds, "sample": self.sample or 0}
        return [str(recipe_file), str(self.folder), *(f"--{key}={value}" for key, value in sizes.items())]


def parse(arguments: list[str]) -> Options:
    """Read a worker's command line."""
    parser = argparse.ArgumentParser(description="Record one framework's side of a training step as a trace.")
    parser.add_argument("recipe", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--init-seeds", type=int, default=INIT_SEEDS)
    parser.add_argument("--sample", type=int, default=SAMPLE, help="elements kept of each tensor; 0 keeps all")
    found = parser.parse_args(arguments)
    recipe = recipes.load(found.recipe)
    return Options(recipe, found.folder, found.steps, found.init_seeds, found.sample or None)


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
