"""From what a checkpoint holds to its plan; the note for the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import BadCheckpoint, BadInput, MsmigrateError, Unsupported
from . import tensor_names
from .formats.byte_copy import castable
from .formats.reader import MAX_NAME, Checkpoint, Tensor, check_name
from .formats.registry import Holder
from .model_checks import against
from .name_map import Names
from .plan import DROP, REFUSE, RESTORE, Entry, Model, Net, Plan, crossed, refuse, refuse_twins
from .tensor_names import Way, Ways

Constant = Callable[[int], Tensor]  # makes a tensor of one int64, of bytes that stand in no file yet
Read = Callable[[Tensor], float]  # the value of a single number


def settle(
    source: str,
    checkpoint: Checkpoint,
    holder: Holder,
    *,
    model: Model | None = None,
    net: Net | None = None,
    into: str | None = None,
    names: Names | None = None,
    dtype: str | None = None,
    beside: Sequence[Entry] = (),
    constant: Constant,
    read: Read,
) -> Plan:
    """Settle what happens to every tensor; refusals are entries, raised only by Plan.check.

    net, into: the MindSpore net to fill, and its name. names: how modules are called in MindSpore, by --map. dtype:
    floating-point tensors are cast to it. beside: the training state, which goes along as it is. Raises
    BadInput for a net where the new file is not MindSpore's.
    """
    if net is not None and holder.framework != "mindspore":
        raise BadInput(f"--into names a MindSpore net, and {holder.called} are for the other side; see --model")
    unfilled: list[str] = []
    if checkpoint.framework == holder.framework:
        entries = [crossed(name, tensor, name, tensor.shape, "") for name, tensor in checkpoint.tensors.items()]
        entries += [Entry(REFUSE, name, None, why=why, error=Unsupported) for name, why in checkpoint.refused.items()]
    elif holder.framework == "mindspore":
        entries = tensor_names.entries(checkpoint, model.owners if model else None, net, names)
    else:
        entries, unfilled = _back(checkpoint, model, names, constant)
    entries = refuse_twins([_held(_cast(entry, dtype), holder) for entry in entries])
    if net is not None:
        entries, unfilled = against(net, entries)
    shaped = _shaped_as_weights(beside, entries)
    entries = refuse_twins([*entries, *(_held(entry, holder) for entry in shaped)])
    plan = Plan(
        source=source,
        checkpoint=checkpoint,
        entries=entries,
        classes_from=model.name if model else "structure",
        into=into or (model.name if model and unfilled else None),
        parameters=None if net is None else len(net),
        unfilled=unfilled,
        notes=[],
        framework=holder.framework,
    )
    if holder.record and holder.framework == "mindspore":
        crossing = checkpoint.framework != holder.framework
        record = _record(entries[: len(entries) - len(beside)], read) if crossing else checkpoint.record
        plan = plan._replace(record=record)
    return plan


def _shaped_as_weights(beside: Sequence[Entry], entries: Sequence[Entry]) -> list[Entry]:
    """The training state, with each tensor in the shape that its weight gets."""
    shapes = {entry.name: (entry.tensor.shape, entry.target_shape) for entry in entries if entry.tensor is not None}
    found = []
    for entry in beside:
        kind, _, rest = (entry.target or "").partition(".")
        name = rest.partition(".")[2] if kind == "optimizer" else rest
        before, after = shapes.get(name, (None, None))
        same = entry.tensor is not None and after is not None and entry.tensor.shape == before
        found.append(entry._replace(target_shape=after) if same and kind in ("optimizer", "ema") else entry)
    return found


def _cast(entry: Entry, dtype: str | None) -> Entry:
    if dtype is None or not entry.written or entry.tensor is None or not castable(entry.tensor.dtype):
        return entry
    return entry if entry.tensor.dtype == dtype else entry._replace(dtype=dtype)


def _held(entry: Entry, holder: Holder) -> Entry:
    """The entry, refused where the new file cannot hold it."""
    if not entry.written:
        return entry
    if entry.piece.dtype not in holder.dtypes:
        return refuse(entry, Unsupported, f"{holder.called} cannot hold {entry.piece.dtype}")
    if len(entry.piece.name) > MAX_NAME:
        return refuse(entry, Unsupported, f"its new name has more than {MAX_NAME:,} letters")
    if entry.target_shape == (0,) and not holder.empty_vectors:
        return refuse(entry, Unsupported, "MindSpore reads the empty shape (0,) as a single number")
    return entry


def _back(
    checkpoint: Checkpoint, model: Model | None, names: Names | None, constant: Constant
) -> tuple[list[Entry], list[str]]:
    """The way from MindSpore's names to torch's; also the tensors of the model that nothing fills."""
    shapes = {name: tensor.shape for name, tensor in checkpoint.tensors.items()}
    record: Mapping[str, Any] = checkpoint.record or {}
    if model is not None and model.shapes is not None:
        ways = tensor_names.by_model(model.name, model.owners, model.shapes, shapes, names)
    elif names is not None:
        raise BadInput(
            "--map says how torch's modules are called in MindSpore: on the way back --model has to name them"
        )
    else:
        ways = {**tensor_names.by_structure(shapes), **tensor_names.by_record(checkpoint.record, shapes)}
    entries = [_returned(name, tensor, ways[name]) for name, tensor in checkpoint.tensors.items()]
    entries += [Entry(REFUSE, name, None, why=why, error=Unsupported) for name, why in checkpoint.refused.items()]
    there = {entry.target: entry for entry in entries if entry.written}
    for name, holder in record.get("aliases", {}).items():
        held = there.get(holder)
        if held is not None and check_name(checkpoint.format, name) not in there:
            entries.append(held._replace(action=RESTORE, name=holder, target=name, why=f"tied to {holder}"))
    for name, value in record.get("counters", {}).items():
        if check_name(checkpoint.format, name) not in there and -(1 << 63) <= value < 1 << 63:
            entries.append(Entry(RESTORE, name, constant(value), name, (), "counter", "noted"))
    filled = {entry.target for entry in entries}
    unfilled = [
        name
        for name in (model.shapes if model and model.shapes else ())
        if name not in filled and not name.endswith("num_batches_tracked")  # torch loads norms without it
    ]
    return entries, unfilled


def _returned(name: str, tensor: Tensor, way: Way | MsmigrateError) -> Entry:
    if isinstance(way, MsmigrateError):
        return Entry(REFUSE, name, tensor, why=str(way), error=type(way))
    return crossed(name, tensor, way.name, way.shape, way.owner)


def _record(entries: list[Entry], read: Read) -> dict[str, Any] | None:
    """What the new file's names and shapes alone do not tell the way back; None where that is nothing."""
    written = [entry for entry in entries if entry.written]
    ways: Ways = tensor_names.by_structure(
        {entry.target: entry.target_shape or () for entry in written if entry.target}
    )
    names: dict[str, str] = {}
    shapes: dict[str, list[int]] = {}
    for entry in written:
        assert entry.tensor is not None and entry.target is not None
        way = ways[entry.target]
        if not isinstance(way, Way) or way[:2] != (entry.name, entry.tensor.shape):
            names[entry.name] = entry.target
            if entry.tensor.shape != entry.target_shape:
                shapes[entry.name] = list(entry.tensor.shape)
    aliases = {entry.name: entry.alias for entry in entries if entry.alias is not None}
    counters = {
        entry.name: int(read(entry.tensor))
        for entry in entries
        if entry.action == DROP and entry.tensor is not None and entry.tensor[:2] == ("int64", ())
    }
    parts = {"names": names, "shapes": shapes, "aliases": aliases, "counters": counters}
    found = {part: content for part, content in parts.items() if content}
    return found or None


def check_dtype(dtype: str | None) -> None:
    """Raise BadCheckpoint for a --dtype that is none of the floating-point formats."""
    if dtype is not None and not castable(dtype):
        raise BadCheckpoint(f"--dtype {dtype}: a cast goes to float64, float32, float16 or bfloat16")
