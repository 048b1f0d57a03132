"""Record the compiled step: what comes out of it, for no hook on a Cell fires in there."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .mindspore_graph_randomness import CompiledDraws, NotFixed
from .mindspore_side import MindSporeSide
from .modes import FAILED, GRAPH, UNFIXED
from .narrowing import WHOLE, Narrowing
from .record import Inputs, record_steps
from .step_starts import StepStarts
from .trace import TraceWriter


def record_compiled(
    side: MindSporeSide,
    inputs: Inputs,
    folder: Path,
    about: dict[str, Any],
    sample: int | None,
    narrowing: Narrowing = WHOLE,
) -> None:
    """Take the same steps as `side` did in PyNative mode, compiled, into folder/mindspore-graph, each with the weights
    that it began with then.

    What does not compile, or draws random numbers that cannot be fixed, is said in the head of the trace.
    """
    folder = folder.resolve()
    writer = TraceWriter(folder / GRAPH, {**about, "mode": "graph"}, sample, narrowing)
    compiled = CompiledDraws(side.net, side.draws, side.recipe.accumulate)
    if compiled.outside:
        writer.about[UNFIXED] = compiled.outside
        writer.close()
        return
    with compiled.installed(), within(folder):
        side.compiled = compiled
        try:
            side.restart()
            record_steps(side, inputs, writer, "MindSpore, compiled", starts=StepStarts(folder), begin=True)
        except NotFixed as error:
            writer.about[UNFIXED] = [str(error)]
        except Exception as error:  # whatever a compiler says of a user's net, whose PyNative step has run
            traceback.print_exc()
            writer.about[FAILED] = said(error)
        finally:
            side.compiled = None
            side.restart()
    writer.close()


def said(error: Exception) -> str:
    """What an error says before it lists places in MindSpore's C++; its class and these where it says nothing else."""
    text = str(error)
    places = " ".join(line for line in text.splitlines() if not line.startswith("-"))
    return " ".join(text.split("\n-----")[0].split())[:300] or f"{type(error).__name__} {places.strip()[:300]}".strip()


@contextmanager
def within(folder: Path) -> Iterator[None]:
    """Within this block `folder` is the working directory: a compiler that fails leaves rank_0/om there."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
