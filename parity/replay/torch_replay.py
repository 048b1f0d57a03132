"""torch's side of the replay: what its modules do in one training step, and then every one of them alone."""

from __future__ import annotations

import copy
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from ..fixed_randomness import Draws
from ..kinks import KinkSides
from ..narrowing import WHOLE, Narrowing
from ..start import MINDSPORE_REPLAY, replayed
from ..torch_randomness import fixed
from ..trace import ALONE, Trace, TraceWriter
from .calls import FOLDER, Recording
from .outcome import FAILED, Outcome, one_line
from .torch_alone import Alone
from .torch_calls import record
from .torch_wiring import record_wiring

Precision = tuple[str, torch.dtype, int]  # trace name, dtype, an odd variant is channels_last
About = Callable[[torch.dtype], dict[str, object]]


def record_step(
    folder: Path,
    model: nn.Module,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    images: np.ndarray | Sequence[np.ndarray],
    labels: np.ndarray,
    about: About,
    parts: int = 1,
    crossing: Container[str] | None = None,
    *,
    backward: bool = True,
) -> None:
    """Record in FOLDER/replay what the modules do in the first of `parts` micro-batches of a step, in float32.

    model: at the starting weights; copied. images: what the model takes, each (N, ...); labels: what the loss takes.
    crossing: the state names that have a counterpart in MindSpore, where the user's own net says so. backward: whether
    gradients come back, too.
    """
    model = copy.deepcopy(model)
    arrays = [images] if isinstance(images, np.ndarray) else images

    def first(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).chunk(parts)[0].clone()

    def run(model: nn.Module) -> torch.Tensor:
        given = [first(array) for array in arrays]
        return loss(model(*(x.requires_grad_(x.is_floating_point()) for x in given)), first(labels)).sum()

    with fixed(model, Draws(1)):
        record(folder / FOLDER, model, run, about(torch.float32), crossing, backward=backward)


def replay(
    folder: Path,
    model: nn.Module,
    precisions: Iterable[Precision],
    about: About,
    sample: int | None = None,
    progress: Callable[[str], None] = lambda what: None,
    narrowing: Narrowing = WHOLE,
) -> None:
    """Record the torch-*-replay traces in `folder`, which has the recording and MindSpore's replay.

    model: float32 at the starting weights; copied. Calls that MindSpore left out are left out, kinks take the sides
    that MindSpore took, and what draws takes the numbers that MindSpore's took. Raises BadTrace for a damaged recording
    or trace.
    """
    recording, mindspore = Recording.open(folder / FOLDER), Trace(folder / MINDSPORE_REPLAY)
    theirs = Outcome.of(mindspore)
    for name, dtype, variant in precisions:
        progress(f"{name}: every module alone")
        runner = Alone(recording, model, dtype, channels_last=variant % 2 == 1)
        writer = TraceWriter(folder / replayed(name), about(dtype), sample)
        failed: dict[str, str] = {}
        for call in recording.calls.values():
            if call.label in theirs.left_out:
                continue
            try:
                with fixed(runner.model, Draws(1), theirs.cells):
                    found = runner.run(call, KinkSides.of_part(mindspore, f"{ALONE} {call.path}#{call.number}"))
            except Exception as error:  # the other modules are worth their verdicts
                failed[call.label] = one_line(error)
                continue
            for stage, tensor, array in found:
                writer.add(stage, ALONE, f"{call.label} {tensor}", array, module=recording.modules[call.path].kind)
        if "forward" in narrowing.stages:
            with fixed(runner.model, Draws(1), theirs.cells):
                record_wiring(runner, theirs, writer)
        writer.about = {**writer.about, FAILED: failed}
        writer.close()
