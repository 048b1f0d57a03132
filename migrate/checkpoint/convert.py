"""`msmigrate convert-ckpt`: a checkpoint of one framework becomes one of the other, without either of them.

Three steps: read what the source holds (formats/registry.py), plan what becomes of every tensor (plan.py),
then move byte ranges into the new file (formats/byte_copy.py), which appears only when it is whole (atomic_files.py).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...atomic_files import atomic_file, check_destination
from ...errors import BadCheckpoint, BadDestination, BadInput, MsmigrateError, Unsupported
from ..model_spec import one_start
from . import model_checks, tensor_names
from .computed_tensors import Constants, Maker, folded, number
from .formats.byte_copy import Losses, Progress, castable, checksums_compared, read_range
from .formats.reader import MAX_NAME, Checkpoint, Source, Tensor, check_name
from .formats.registry import Form, Holder, form, open_source
from .model_checks import against, under_own_names
from .plan import DROP, REFUSE, RESTORE, Entry, Model, Net, Plan, crossed, refuse, refuse_twins
from .tensor_names import Way, Ways
from .user_map import Names, read_rules

if TYPE_CHECKING:
    from .user_map import Inferred


MOST_TIMES = 16  # most bytes written per byte read: a wider dtype takes up to eight, and tied tensors are stored once
ALWAYS = 64 << 20  # bytes that may be written in any case
STATE = ("optimizer.*", "ema.*", "msmigrate.*")  # what a checkpoint of `msmigrate train` has beside the net's tensors


class Options(NamedTuple):
    """The options of a conversion.

    key: where the state dict stands in the file, when that is ambiguous. model: names the torch model (see
    model_spec) whose classes own the tensors; owners: these classes by the modules' paths, where they are known.
    into: names a MindSpore net that must be filled exactly. to: the framework whose tensor names the new file gets,
    "torch" or "mindspore", by default the one the source is not of. dtype: floating-point tensors are cast to it.
    training: the state of optimizer, schedule, loss scale and moving average is converted too. optimizer: names torch's
    class, where the file does not tell it, or a function that returns (model, optimizer), where the order of parameters
    is not clear. max_shard_size: the most bytes of tensors in one file of a folder. name_map: a file that says how
    torch's modules are called in MindSpore (see user_map.py). parts: where torch computes a weight from several
    tensors, these cross instead of the weight, since the new net computes it too; without it, only where the net of
    `into` has them.
    """

    key: str | None = None
    model: str | None = None
    into: str | None = None
    to: str | None = None
    dtype: str | None = None
    training: bool = False
    optimizer: str | None = None
    max_shard_size: int | None = None
    name_map: Path | None = None
    owners: Mapping[str, Sequence[str]] | None = None
    parts: bool = False


class Result(NamedTuple):
    """A finished conversion: the plan, where it went, the file's size, the seconds it took, and what casts lost."""

    plan: Plan
    destination: str
    size: int
    seconds: float
    losses: Losses


def make_plan(source: str | Path, destination: str | Path | None = None, **options: Any) -> Plan:
    """Settle what a conversion would do, without writing.

    destination: its name says the format; by default MindSpore's `.ckpt`, or torch's `.pth` from a MindSpore file.
    options: those of Options. Raises BadCheckpoint, BadDestination, Ambiguous, BadInput, WorkerFailed; refusals of
    single tensors are entries of the plan.
    """
    with open_source(str(source)) as opened, _settled(opened, destination, Options(**options)) as (plan, _, _):
        return plan


@one_start()
def convert(
    source: str | Path,
    destination: str | Path,
    *,
    force: bool = False,
    crc: bool = True,
    progress: Progress | None = None,
    **options: Any,
) -> Result:
    """Convert `source` to `destination`, whose name says the format; options: those of Options.

    A folder gets files of at most `max_shard_size` bytes of tensors each, by default 5 GB, and an index. crc: compare
    the source's checksums of all that is read. `progress` is called with the bytes written so far and the size
    of the file, or of all files. Raises BadDestination, BadCheckpoint, Ambiguous, Unsupported; whatever happens, the
    destination is complete or untouched.
    """
    started = time.perf_counter()
    if form(destination, "torch", None).folder:  # an unknown ending is refused before anything is read
        from ...atomic_files import check_folder

        target = check_folder(Path(destination), [Path(source)], force=force)
    else:
        target = check_destination(Path(destination), Path(source), force=force)
    losses = Losses()
    chosen_options = Options(**options)
    max_shard_size = chosen_options.max_shard_size
    with (
        open_source(str(source)) as opened,
        _settled(opened, destination, chosen_options) as (plan, chosen, constants),
        ExitStack() as at_last,
    ):
        plan.check()
        check_not_read(target, [file.name for file in opened.files])
        check_shards(destination, chosen.folder, plan.nbytes, max_shard_size)
        check_growth(opened.path, sum(os.fstat(file).st_size for file in opened.descriptors), plan.nbytes)
        check_room(target, plan.nbytes)
        content = [entry.piece for entry in plan.written]
        sources = [*opened.descriptors, *constants.descriptors]
        record = None if plan.record is None else dict(plan.record)
        names = plan.framework
        finish = at_last.enter_context(checksums_compared(opened, lambda: _sources(plan))) if crc else None
        if chosen.folder:
            from .formats.sharded import MAX_SHARD, write_folder

            size = write_folder(
                *(target, sources, content),
                most=max_shard_size or MAX_SHARD,
                framework=names,
                record=record,
                progress=progress,
                losses=losses,
                force=force,
                finish=finish,
            )
        else:
            with ExitStack() as at_end, atomic_file(target, force=force) as output:
                size = chosen.writer.write(
                    sources, output, content, framework=names, record=record, progress=progress, losses=losses
                )
                chosen.writer.verify(output, str(target), content)
                if finish is not None:
                    finish()
                if plan.into is not None and plan.parameters is not None:
                    from .model_checks import check_loads, linked

                    check_loads(at_end.enter_context(linked(output, target)), plan.into, plan.filled)
    return Result(plan, str(destination), size, time.perf_counter() - started, losses)


def inferred_map(source: str | Path, into: str, *, key: str | None = None, model: str | None = None) -> Inferred:
    """How the modules of a torch checkpoint seem to be called in a MindSpore net, for the user to check.

    Raises BadCheckpoint, Ambiguous, BadInput, WorkerFailed.
    """
    from .user_map import infer

    with open_source(str(source)) as opened:
        checkpoint = opened.checkpoint(key)
    if checkpoint.framework != "torch":
        raise BadInput(f"{source} is a MindSpore file: --write-map pairs a torch checkpoint with the net of --into")
    owners = checkpoint.owners
    if model is not None:
        owners = model_checks.torch_model(str(source), checkpoint, model, []).owners
    shapes = {name: tensor.shape for name, tensor in checkpoint.tensors.items()}
    return infer(shapes, owners, model_checks.mindspore_net(into)[0])


def _sources(plan: Plan) -> dict[str, Tensor]:
    """The tensors that the entries are made from."""
    return {entry.name: entry.tensor for entry in plan.entries if entry.tensor is not None}


@contextmanager
def _settled(
    opened: Source, destination: str | Path | None, options: Options
) -> Iterator[tuple[Plan, Form, Constants]]:
    """The plan, the format it is for, and the tensors that no source holds, whose file is open as long as the block."""
    check_dtype(options.dtype)
    checkpoint = opened.checkpoint(options.key)
    if destination is None:
        destination = "plan.pth" if checkpoint.framework == "mindspore" and options.to != "mindspore" else "plan.ckpt"
    chosen = form(destination, checkpoint.framework, options.to)
    notes: list[str] = []
    model = net = None
    own: dict[str, str] = {}
    if options.model is not None:
        model = model_checks.torch_model(opened.path, checkpoint, options.model, notes)
    elif options.owners is not None:
        model = model_checks.own_classes({path: tuple(names) for path, names in options.owners.items()})
    elif checkpoint.owners is not None:
        model = model_checks.own_classes(checkpoint.owners)
    if options.into is not None:
        net, own = model_checks.mindspore_net(options.into)
    with Constants(len(opened.files)) as constants:
        maker = Maker(
            tensor=opened.tensor,
            number=lambda tensor: number([*opened.descriptors, *constants.descriptors], tensor),
            constant=constants.add,
            weights=opened.weights,
        )
        dropped: list[Entry] = []
        if (checkpoint.framework, chosen.holder.framework) == ("torch", "mindspore") and not options.parts:
            try:
                owners = None if model is None else model.owners
                there = tensor_names.parts_there(checkpoint.tensors, net or ())
                checkpoint, dropped, remarks = folded(checkpoint, owners, *constants.arrays(opened.descriptors), there)
            except MsmigrateError as error:
                raise type(error)(f"{opened.path}: {error}") from None
            notes += remarks
        beside, read = _beside(opened, checkpoint, chosen, options, maker, notes)
        others = {name: what for name, what in checkpoint.others.items() if name not in read}
        checkpoint = checkpoint._replace(others=others)
        plan = plan_tensors(
            opened.path,
            checkpoint,
            chosen.holder,
            model=model,
            net=net,
            into=options.into,
            names=None if options.name_map is None else Names(read_rules(options.name_map)),
            parts=options.parts,
            dtype=options.dtype,
            beside=[*dropped, *beside],
            constant=constants.add_integer,
            read=maker.number,
        )
        plan = under_own_names(plan, own)
        if options.training and chosen.holder.framework == "torch":
            plan = plan._replace(record=_training_back(opened, plan, maker))
            others = {name: what for name, what in plan.checkpoint.others.items() if name not in STATE}
            plan = plan._replace(checkpoint=plan.checkpoint._replace(others=others))
        yield plan._replace(notes=[*notes, *plan.notes]), chosen, constants


def _beside(
    opened: Source, checkpoint: Checkpoint, chosen: Form, options: Options, maker: Maker, notes: list[str]
) -> tuple[list[Entry], set[str]]:
    """The training state of a torch checkpoint as entries, where options.training is set, and the keys it is under."""
    if not options.training:
        if options.optimizer is not None:
            raise BadInput("--optimizer is about the optimizer's state, which only --training converts: add --training")
        return [], set()
    if checkpoint.framework == chosen.holder.framework:
        raise Unsupported("--training converts the state from one framework to the other, and here both are the same")
    if checkpoint.framework != "torch":
        if options.optimizer is not None:
            raise BadInput(
                f"--optimizer is for a torch file; {opened.path} is a MindSpore file, which names its optimizer itself"
            )
        return [], set()
    from .training_state import parameters_of, training_state

    optimizer = model_checks.told_optimizer(options.optimizer)
    try:
        found = training_state(
            checkpoint.training or {}, parameters_of(checkpoint.tensors), optimizer.groups, maker, optimizer.classes
        )
    except MsmigrateError as error:
        raise type(error)(f"{opened.path}: {error}") from None
    if not found.entries:
        raise BadCheckpoint(
            f"{opened.path} holds no training state (optimizer, schedule, loss scale, moving average): its weights "
            "alone are converted without --training, and a new run starts from them by the recipe's model.checkpoint"
        )
    notes += found.notes
    return found.entries, found.read


def _training_back(opened: Source, plan: Plan, maker: Maker) -> dict[str, Any]:
    """What a torch file holds besides the weights."""
    from .training_state import training_back

    shapes = {entry.target: entry.target_shape or () for entry in plan.written if entry.target is not None}

    def read(tensor: Tensor) -> bytes:
        return b"".join(read_range(opened.descriptors[file], offset, length) for offset, length, file in tensor.spans)

    try:
        return training_back(plan.checkpoint.training or {}, shapes, maker, read)
    except MsmigrateError as error:
        raise type(error)(f"{opened.path}: {error}") from None


# From what a checkpoint holds to its plan; the note for the way back

Constant = Callable[[int], Tensor]  # makes a tensor of one int64, of bytes that stand in no file yet
Read = Callable[[Tensor], float]  # the value of a single number


def plan_tensors(
    source: str,
    checkpoint: Checkpoint,
    holder: Holder,
    *,
    model: Model | None = None,
    net: Net | None = None,
    into: str | None = None,
    names: Names | None = None,
    parts: bool = False,
    dtype: str | None = None,
    beside: Sequence[Entry] = (),
    constant: Constant,
    read: Read,
) -> Plan:
    """Plan what happens to every tensor; refusals are entries, raised only by Plan.check.

    net, into: the MindSpore net to fill, and its name. names: how modules are called in MindSpore, by --map. parts: as
    in Options. dtype: floating-point tensors are cast to it. beside: the training state, which is not cast. Raises
    BadInput for a net where the new file is not MindSpore's.
    """
    if net is not None and holder.framework != "mindspore":
        raise BadInput(f"--into names a MindSpore net, and {holder.called} are for torch; see --model")
    unfilled: list[str] = []
    if checkpoint.framework == holder.framework:
        entries = [crossed(name, tensor, name, tensor.shape, "") for name, tensor in checkpoint.tensors.items()]
        entries += [Entry(REFUSE, name, None, why=why, error=Unsupported) for name, why in checkpoint.refused.items()]
    elif holder.framework == "mindspore":
        entries = tensor_names.entries(checkpoint, model.owners if model else None, net, names, parts=parts)
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
            "--map says how torch's modules are called in MindSpore: to convert back to torch, name the model with "
            "--model"
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
    """What converting back needs beyond the new file's names and shapes; None where it needs nothing."""
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
    """Raise BadCheckpoint for a --dtype that is not a floating-point format."""
    if dtype is not None and not castable(dtype):
        raise BadCheckpoint(f"--dtype {dtype}: a cast goes to float64, float32, float16 or bfloat16")


# Whether a new file may be written


def check_not_read(target: Path, sources: Iterable[str]) -> None:
    """Raise BadDestination when the file or folder to replace is one of the sources' files, or holds one."""
    for source in sources:
        real = Path(os.path.realpath(source))
        if target in (real, real.parent) and target.exists():
            raise BadDestination(f"{target} would replace {real}, which is read; give another name")


def check_shards(destination: str | Path, folder: bool, nbytes: int, most: int | None) -> None:
    """Raise BadDestination when --max-shard-size is below one, or smaller than the one file that is to be written.

    nbytes: of all tensors.
    """
    if most is not None and most < 1:
        raise BadDestination(f"--max-shard-size {most}: a file holds at least one byte")
    if most is not None and not folder and nbytes > most:
        raise BadDestination(
            f"{destination} is one file and would hold {nbytes:,} bytes, --max-shard-size allows {most:,}; give the "
            "name of a folder, which ends in a slash"
        )


def check_growth(source: str, size: int, nbytes: int) -> None:
    """Raise BadCheckpoint when the tensors share bytes so often that a small file would fill a disk.

    size: bytes of the source's files. nbytes: of all tensors, each by itself.
    """
    if nbytes > MOST_TIMES * size + ALWAYS:
        raise BadCheckpoint(
            f"{source} has {size:,} bytes, and its tensors, which share them, {nbytes:,}: more than {MOST_TIMES} "
            "times as many, which no model's have; save tensors that are not views of one another"
        )


def check_room(target: Path, nbytes: int) -> None:
    """Raise BadDestination at once when the disk cannot hold what is to be written.

    nbytes: of all tensors.
    """
    room = os.statvfs(target.parent)
    free = room.f_bavail * room.f_frsize
    if room.f_blocks and nbytes > free:
        raise BadDestination(
            f"cannot write {target}: it needs {nbytes:,} bytes and the disk has {free:,} left; nothing was written"
        )
