"""`msmigrate convert-ckpt`: from a torch checkpoint to a MindSpore one, without either framework.

Three steps: read what the source holds (torch_zip, torch_state_dict), settle what becomes of every tensor (plan), then
move byte ranges into the new file (byte_copy, mindspore_ckpt), which appears only when it is complete (atomic_file).
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from ..errors import BadCheckpoint, BadDestination
from . import plan as planning
from .formats import atomic_file, mindspore_ckpt, torch_state_dict
from .formats.byte_copy import Copier, Progress, gather
from .formats.mindspore_ckpt import TENSOR_TYPES
from .formats.torch_state_dict import Tensor, TorchCheckpoint
from .formats.torch_zip import TorchZip
from .plan import Entry, Net, Owners, Plan


class Result(NamedTuple):
    """A finished conversion: the plan that was carried out, where, the file's size and the seconds it took."""

    plan: Plan
    destination: str
    size: int
    seconds: float


def make_plan(source: str | Path, *, key: str | None = None, model: str | None = None, into: str | None = None) -> Plan:
    """Settle what a conversion of `source` would do, without writing.

    key: where the state dict stands in the file, when that is ambiguous. model: names the torch model (see model_spec)
    whose classes own the tensors. into: names a MindSpore net that must be filled exactly. Raises BadCheckpoint,
    Ambiguous, BadInput, WorkerFailed; refusals of single tensors are entries of the plan.
    """
    with TorchZip(str(source)) as archive:
        return _plan(archive, key, model, into)


def convert(
    source: str | Path,
    destination: str | Path,
    *,
    key: str | None = None,
    model: str | None = None,
    into: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Convert `source` (.pth) to `destination` (.ckpt); arguments as in `make_plan`.

    `progress` is called with the bytes written so far and the size of the file. Raises BadDestination, BadCheckpoint,
    Ambiguous, Unsupported; whatever happens, the destination is complete or untouched.
    """
    started = time.perf_counter()
    if not str(destination).endswith(".ckpt"):
        raise BadDestination(f"{destination} does not end in .ckpt, and mindspore.load_checkpoint reads nothing else")
    target = atomic_file.check_destination(Path(destination), Path(source), force=force)
    with TorchZip(str(source)) as archive:
        plan = _plan(archive, key, model, into)
        plan.check()
        _check_room(target, plan)
        with atomic_file.atomic_file(target, force=force) as output:
            size = write(archive.fd, output, plan.written, progress)
            verify(output, str(target), plan.written)
    return Result(plan, str(destination), size, time.perf_counter() - started)


def _plan(archive: TorchZip, key: str | None, model: str | None, into: str | None) -> Plan:
    checkpoint = torch_state_dict.read(archive, key)
    notes: list[str] = []
    owners: Owners | None = None
    net: Net | None = None
    if model is not None:
        owners = _owners(archive.path, checkpoint, model, notes)
    if into is not None:
        from . import model_spec

        answer = model_spec.ask("mindspore_target", into, "--into")
        net = {name: (tuple(shape), dtype) for name, (shape, dtype) in answer["parameters"].items()}
        notes += [
            f"{path} is named {name} in the net, and load_param_into_net goes by that name"
            for path, name in answer["misnamed"].items()
        ]
    plan = planning.build(archive.path, checkpoint, owners=owners, model=model, net=net, into=into)
    return plan._replace(notes=notes)


def _owners(path: str, checkpoint: TorchCheckpoint, model: str, notes: list[str]) -> Owners:
    """Ask the torch worker for the classes, and make sure that the checkpoint is one of that model."""
    from . import model_spec

    answer = model_spec.ask("torch_classes", model, "--model")
    shapes = {name: tuple(shape) for name, shape in answer["shapes"].items()}
    names = {*checkpoint.tensors, *checkpoint.refused}
    # torch loads old checkpoints without the counters too
    missing = [name for name in shapes if name not in names and not name.endswith("num_batches_tracked")]
    extra = [name for name in names if name not in shapes]
    if missing or extra:
        parts = [f"it lacks {planning.few(missing)}"] if missing else []
        parts += [f"the model lacks {planning.few(sorted(extra))}"] if extra else []
        raise BadCheckpoint(f"{path} is not a checkpoint of {model}: {'; '.join(parts)}")
    for name, tensor in checkpoint.tensors.items():
        if len(tensor.shape) != len(shapes[name]):
            raise BadCheckpoint(
                f"{path} is not a checkpoint of {model}: {name} is {planning.size(tensor.shape)}, the model's is "
                f"{planning.size(shapes[name])}"
            )
        if tensor.shape != shapes[name]:
            notes.append(f"{name} is {planning.size(tensor.shape)}, in {model} {planning.size(shapes[name])}")
    return {path: tuple(classes) for path, classes in answer["classes"].items()}


def _check_room(target: Path, plan: Plan) -> None:
    """Raise BadDestination at once when the disk cannot hold the file."""
    room = os.statvfs(target.parent)
    free = room.f_bavail * room.f_frsize
    if room.f_blocks and plan.nbytes > free:
        raise BadDestination(
            f"cannot write {target}: it needs {plan.nbytes:,} bytes and the disk has {free:,} left; nothing was written"
        )


def write(source: int, output: int, entries: list[Entry], progress: Progress | None = None) -> int:
    """Write the tensors of the entries one after another; returns the size of the file.

    source and output are file descriptors. Raises BadCheckpoint when the source ends early, OSError from writing.
    """
    parts = [(entry.tensor, _headers(entry)) for entry in entries if entry.tensor is not None]
    size = sum(tensor.nbytes + sum(len(head) for head, _, _ in headers) for tensor, headers in parts)
    copier = Copier(source, output, size, progress)
    for tensor, headers in parts:
        if tensor.contiguous:
            for head, start, length in headers:
                copier.write(head)
                copier.copy(tensor.span.offset + start, length)
        else:
            _write_gathered(source, copier, tensor, headers)
    copier.flush()
    return copier.at


Headers = list[tuple[bytes, int, int]]  # header, where its piece begins in the content, and its length


def _headers(entry: Entry) -> Headers:
    assert entry.tensor is not None and entry.target is not None and entry.target_shape is not None
    tensor_type = TENSOR_TYPES[entry.tensor.dtype]
    return [
        (mindspore_ckpt.header(entry.target, entry.target_shape, tensor_type, length), start, length)
        for start, length in mindspore_ckpt.pieces(entry.tensor.nbytes)
    ]


def _write_gathered(source: int, copier: Copier, tensor: Tensor, headers: Headers) -> None:
    """Write a tensor that is not contiguous, putting each header where its piece begins."""
    waiting = {start: head for head, start, _ in headers}
    at = 0
    for block in gather(source, tensor):
        while block:
            if at in waiting:
                copier.write(waiting[at])
            upto = min([start for start in waiting if start > at], default=tensor.nbytes) - at
            copier.write(block[:upto])
            at += len(block[:upto])
            block = block[upto:]


def verify(output: int, path: str, entries: list[Entry]) -> None:
    """Read the structure of the new file back and compare it with the plan; raises BadCheckpoint.

    MindSpore's loader trusts lengths blindly, so no file leaves here unchecked.
    """
    found = [(value.tag, value.dims, value.tensor_type) for value in mindspore_ckpt.entries(output, path)]
    planned = [
        (entry.target, entry.target_shape, TENSOR_TYPES[entry.tensor.dtype]) for entry in entries if entry.tensor
    ]
    if found != planned:
        raise BadCheckpoint(f"{path}: what was written is not what was planned; please report this")
