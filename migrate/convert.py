"""`msmigrate convert-ckpt`: a checkpoint of one framework becomes one of the other, without either of them.

Three steps: read what the source holds (formats/source.py), settle what becomes of every tensor (settle.py), then move
byte ranges into the new file (formats/byte_copy.py), which appears only when it is complete (formats/atomic_file.py).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ..errors import BadDestination
from . import model_check
from .constants import Constants
from .destination import Form, form
from .formats.atomic_file import atomic_file, check_destination
from .formats.byte_copy import Progress
from .formats.casts import Losses
from .formats.contents import Source
from .formats.source import open_source
from .plan import Plan
from .settle import check_dtype, settle


class Options(NamedTuple):
    """What a conversion may be told.

    key: where the state dict stands in the file, when that is ambiguous. model: names the torch model (see model_spec)
    whose classes own the tensors. into: names a MindSpore net that must be filled exactly. to: whose names the new file
    gets, "torch" or "mindspore", by default the other's. dtype: floating-point tensors are cast to it.
    """

    key: str | None = None
    model: str | None = None
    into: str | None = None
    to: str | None = None
    dtype: str | None = None


class Result(NamedTuple):
    """A finished conversion: the plan, where it went, the file's size, the seconds it took, and what casts lost."""

    plan: Plan
    destination: str
    size: int
    seconds: float
    losses: Losses


def make_plan(
    source: str | Path,
    destination: str | Path | None = None,
    *,
    key: str | None = None,
    model: str | None = None,
    into: str | None = None,
    to: str | None = None,
    dtype: str | None = None,
) -> Plan:
    """Settle what a conversion would do, without writing.

    destination: its name says the format; by default MindSpore's `.ckpt`, or torch's `.pth` from a MindSpore file. The
    others as in Options. Raises BadCheckpoint, BadDestination, Ambiguous, BadInput, WorkerFailed; refusals of single
    tensors are entries of the plan.
    """
    options = Options(key, model, into, to, dtype)
    with open_source(str(source)) as opened, _settled(opened, destination, options) as (plan, _, _):
        return plan


def convert(
    source: str | Path,
    destination: str | Path,
    *,
    key: str | None = None,
    model: str | None = None,
    into: str | None = None,
    to: str | None = None,
    dtype: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Convert `source` to `destination`, whose name says the format; the others as in Options.

    `progress` is called with the bytes written so far and the size of the file. Raises BadDestination, BadCheckpoint,
    Ambiguous, Unsupported; whatever happens, the destination is complete or untouched.
    """
    started = time.perf_counter()
    form(Path(destination), "torch", None)  # a name that nobody knows is refused before anything is read
    target = check_destination(Path(destination), Path(source), force=force)
    losses = Losses()
    with (
        open_source(str(source)) as opened,
        _settled(opened, destination, Options(key, model, into, to, dtype)) as (plan, chosen, constants),
    ):
        plan.check()
        _check_room(target, plan)
        content = [entry.piece for entry in plan.written]
        with atomic_file(target, force=force) as output:
            size = chosen.writer.write(
                [*opened.descriptors, *constants.descriptors],
                output,
                content,
                framework=plan.framework,
                record=None if plan.record is None else dict(plan.record),
                progress=progress,
                losses=losses,
            )
            chosen.writer.verify(output, str(target), content)
    return Result(plan, str(destination), size, time.perf_counter() - started, losses)


@contextmanager
def _settled(
    opened: Source, destination: str | Path | None, options: Options
) -> Iterator[tuple[Plan, Form, Constants]]:
    """The plan, the format it is for, and the file of what no source holds, which lasts as long as this."""
    check_dtype(options.dtype)
    checkpoint = opened.checkpoint(options.key)
    if destination is None:
        destination = "plan.pth" if checkpoint.framework == "mindspore" and options.to != "mindspore" else "plan.ckpt"
    chosen = form(Path(destination), checkpoint.framework, options.to)
    notes: list[str] = []
    model = net = None
    if options.model is not None:
        model = model_check.torch_model(opened.path, checkpoint, options.model, notes)
    elif checkpoint.owners is not None:
        model = model_check.own_classes(checkpoint.owners)
    if options.into is not None:
        net = model_check.mindspore_net(options.into, notes)
    with Constants(len(opened.files)) as constants:
        plan = settle(
            opened.path,
            checkpoint,
            chosen.holder,
            model=model,
            net=net,
            into=options.into,
            dtype=options.dtype,
            constant=constants.add,
            read=lambda tensor: constants.read(opened.descriptors, tensor),
        )
        yield plan._replace(notes=notes), chosen, constants


def _check_room(target: Path, plan: Plan) -> None:
    """Raise BadDestination at once when the disk cannot hold the file."""
    room = os.statvfs(target.parent)
    free = room.f_bavail * room.f_frsize
    if room.f_blocks and plan.nbytes > free:
        raise BadDestination(
            f"cannot write {target}: it needs {plan.nbytes:,} bytes and the disk has {free:,} left; nothing was written"
        )
