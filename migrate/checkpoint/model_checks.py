"""--model and --into: ask the worker, compare the plan with the net, load the new file back.

The result of `load_param_into_net` is ignored: it strips prefixes, loads, and still lists the parameter as not loaded.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ...atomic_files import beside, link_open
from ...errors import BadCheckpoint
from .. import model_spec
from .formats.byte_copy import STRETCH, castable, read_range
from .formats.reader import Checkpoint, Shape
from .formats.registry import open_source
from .plan import (
    KEEP,
    RENAME,
    Entry,
    Model,
    Net,
    Owners,
    Plan,
    drop_tied,
    few,
    refuse,
    refuse_twins,
    size,
)
from .user_map import near

REMEDY = "; --dtype casts"
HINTS = 5  # names for which the nearest are looked up, since each is compared with all


def against(net: Net, entries: list[Entry]) -> tuple[list[Entry], list[str]]:
    """Compare with the MindSpore net: returns the entries, refused where they do not fit, and the unfilled names."""
    filled = {entry.tensor: entry for entry in entries if entry.target in net}
    checked = []
    hints = HINTS
    for entry in entries:
        twin = filled.get(entry.tensor)  # equal: the same bytes, seen in the same way
        if entry.tensor is None or (entry.target is None and entry.error is not BadCheckpoint):
            checked.append(entry)
        elif entry.target not in net and twin:
            checked.append(drop_tied(entry, twin))
        elif entry.target is None:
            checked.append(entry)
        elif entry.target not in net:
            hint = near(entry.target, net) if hints else ""
            hints -= bool(hint)
            why = f"the net has no parameter {entry.target}{hint}"
            checked.append(refuse(entry, BadCheckpoint, why)._replace(unknown=True))
        else:
            checked.append(_fitted(entry, entry.piece.dtype, *net[entry.target]))
    targets = {entry.target for entry in entries}
    return checked, [name for name in net if name not in targets]


def under_own_names(plan: Plan, own: Mapping[str, str]) -> Plan:
    """The plan with every parameter of the net under its own name, which is not always its path.

    own: path -> name, of those whose name differs; MindSpore's loader and its save_checkpoint use the name.
    """
    filled = {entry.target: own.get(entry.target, entry.target) for entry in plan.entries if entry.target is not None}
    if plan.into is None or plan.parameters is None:
        return plan
    renamed = [
        entry._replace(target=own[entry.target], action=RENAME if entry.action == KEEP else entry.action)
        if entry.target is not None and entry.target in own
        else entry
        for entry in plan.entries
    ]
    notes = [f"{path} is written as {name}, its own name in the net" for path, name in own.items() if path in filled]
    return plan._replace(entries=refuse_twins(renamed), filled=filled, notes=[*plan.notes, *notes])


def _fitted(entry: Entry, own_dtype: str, shape: Shape, dtype: str) -> Entry:
    """The entry, refused unless the net's parameter has its shape and dtype."""
    if shape != entry.target_shape:
        why = f"the net's {entry.target} is {size(shape)}, this is {size(entry.target_shape or ())}"
        return refuse(entry, BadCheckpoint, why)
    if dtype != own_dtype:
        why = f"the net's {entry.target} is {dtype}, this is {own_dtype}{REMEDY if castable(own_dtype) else ''}"
        return refuse(entry, BadCheckpoint, why)
    return entry


def mindspore_net(into: str) -> tuple[Net, dict[str, str]]:
    """The parameters of the net by path, and path -> own name of those whose name differs, which is what MindSpore's
    loader looks for. Raises BadInput, WorkerFailed."""
    answer = model_spec.ask("checkpoint.mindspore_net_worker", into, "--into")
    return {name: (tuple(shape), dtype) for name, (shape, dtype) in answer["parameters"].items()}, answer["misnamed"]


class ToldOptimizer(NamedTuple):
    """What --optimizer says: the possible names of the class, and the parameter names of each group."""

    classes: tuple[str, ...] | None = None
    groups: list[list[str]] | None = None


def told_optimizer(optimizer: str | None) -> ToldOptimizer:
    """Read --optimizer, the name of a class or of a function that returns (model, optimizer).

    Raises BadInput, WorkerFailed.
    """
    if optimizer is None:
        return ToldOptimizer()
    if all(part.isidentifier() for part in optimizer.split(".")):
        return ToldOptimizer((optimizer,))
    answer = model_spec.ask("checkpoint.torch_model_worker", optimizer, "--optimizer", "optimizer")
    groups = [[str(name) for name in group] for group in answer["groups"]]
    return ToldOptimizer(tuple(str(name) for name in answer["classes"]), groups)


def own_classes(owners: Owners) -> Model:
    """The model, by the classes that a file of a whole model names itself."""
    return Model("the classes in the file", owners)


def torch_model(path: str, checkpoint: Checkpoint, model: str, notes: list[str]) -> Model:
    """Ask the worker for the model's classes, and check that a torch checkpoint is one of that model.

    Raises BadInput, WorkerFailed, and BadCheckpoint when it is not.
    """
    answer = model_spec.ask("checkpoint.torch_model_worker", model, "--model")
    shapes = {name: tuple(shape) for name, shape in answer["shapes"].items()}
    found = Model(model, {path: tuple(classes) for path, classes in answer["classes"].items()}, shapes)
    if checkpoint.framework != "torch":
        return found
    names = {*checkpoint.tensors, *checkpoint.refused}
    # torch loads old checkpoints without the counters too
    missing = [name for name in shapes if name not in names and not name.endswith("num_batches_tracked")]
    extra = [name for name in names if name not in shapes]
    if missing or extra:
        parts = [f"it lacks {few(missing)}"] if missing else []
        parts += [f"the model lacks {few(sorted(extra))}"] if extra else []
        raise BadCheckpoint(f"{path} is not a checkpoint of {model}: {'; '.join(parts)}")
    for name, tensor in checkpoint.tensors.items():
        if len(tensor.shape) != len(shapes[name]):
            raise BadCheckpoint(
                f"{path} is not a checkpoint of {model}: {name} is {size(tensor.shape)}, the model's is "
                f"{size(shapes[name])}"
            )
        if tensor.shape != shapes[name]:
            notes.append(f"{name} is {size(tensor.shape)}, in {model} {size(shapes[name])}")
    return found


@contextmanager
def linked(output: int, target: Path) -> Iterator[Path]:
    """A name for an open file that has none yet, in its target's folder and with its ending, as long as the block runs.

    Give the file its final name inside of the block: a file without a name can be linked only once.
    """
    folder = beside(target, "tmp")
    folder.mkdir(0o700)
    try:
        path = folder / f"checkpoint{target.suffix}"
        try:
            link_open(output, path)
        except OSError:  # this file system has no hard links
            with open(output, "rb", closefd=False) as whole, path.open("wb") as copy:
                whole.seek(0)
                shutil.copyfileobj(whole, copy)
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_loads(path: Path, into: str, names: Mapping[str, str]) -> None:
    """Raise BadCheckpoint unless MindSpore loads the file into the net, byte for byte.

    into: names the net. names: parameter's path in the net -> its name in the file. Raises WorkerFailed when the net
    cannot be built or the file cannot be loaded.
    """
    loaded: Mapping[str, str] = model_spec.ask("checkpoint.mindspore_net_worker", into, "--into", str(path))["digests"]
    with open_source(str(path)) as source:
        tensors = source.checkpoint().tensors
        wrong = []
        for parameter, name in names.items():
            digest = hashlib.sha256()
            for offset, length, file in tensors[name].spans:
                for start in range(0, length, STRETCH):
                    digest.update(read_range(source.descriptors[file], offset + start, min(STRETCH, length - start)))
            if loaded.get(parameter) != digest.hexdigest():
                wrong.append(parameter)
    if wrong:
        raise BadCheckpoint(
            f"{into}: after load_param_into_net the net's {few(wrong, 3, ', ')} {'is' if len(wrong) == 1 else 'are'} "
            "not what the file holds; it changes parameters as they are loaded, or shares one between two names"
        )
