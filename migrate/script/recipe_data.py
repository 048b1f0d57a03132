"""The data of a recipe: which loader trains, where its images come from, and how they are transformed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from . import names, recipe_keys
from .reading import Reader
from .recipe_values import Entry, number, part, place, sources
from .values import Constant, Instance, Items, Name, Pairs, Seen, Thing, Untold, Value, known

EVALUATION = re.compile(r"(?:^|[^a-z])(?:val|valid|validation|test|eval)(?:$|[^a-z])|train=False|testset|valset")
COMPOSED = ("Compose", "Sequential")
# an image to a tensor of bytes, and that to floats: together what a recipe calls ToTensor
BYTES, FLOATS = ("PILToTensor", "ToImage", "ToImageTensor"), ("ToDtype", "ConvertImageDtype", "ConvertDtype")
NOTHING = ("ToPureTensor", "Identity")


def data(reader: Reader, accumulate: int) -> Entry:
    """The section `data` of a recipe."""
    section = Entry("data", below=[])
    loaders = recipe_keys.surely(recipe_keys.calls(reader, recipe_keys.DATA))
    training = next((seen for seen in loaders if not _evaluates(seen)), loaders[0] if loaders else None)
    evaluation = next((seen for seen in loaders if seen is not training and _evaluates(seen)), None)
    assert section.below is not None
    if training is None:
        section.comments.append("no data loader was found: the recipe's defaults")
        section.below.append(Entry("batch", 8 * accumulate))
        return section
    section.comments.append(place(training))
    section.below += _source(training, "source")
    section.below += _source(evaluation, "validation") if evaluation is not None else []
    section.below += _batch(training, "batch", 1, accumulate)
    section.below += _batch(evaluation, "eval_batch", 1, 1) if evaluation is not None else []
    section.below += transforms(training, "transforms")
    section.below += transforms(evaluation, "eval_transforms") if evaluation is not None else []
    section.below += _fetching(training)
    return section


def _evaluates(seen: Seen) -> bool:
    """Whether a loader is one of validation or test, by the names that stand in its call."""
    argument = next((argument for argument in seen.arguments or [] if argument.name in (None, "dataset")), None)
    texts = [seen.source.text(argument.node)] if argument is not None else []
    made = _dataset(seen)
    if made is not None:
        texts += [made.source.text(inner.node) for inner in made.arguments or []]
        texts += [f"{inner.name}={known(inner.value)}" for inner in made.arguments or [] if inner.name == "train"]
        texts += [text for inner in made.arguments or [] if isinstance(text := known(inner.value), str)]
    return any(EVALUATION.search(text) or EVALUATION.search(text.lower()) for text in texts)


def _dataset(seen: Seen | None) -> Seen | None:
    """The call that made a loader's data set."""
    value = seen.get("dataset", 0) if seen is not None else None
    while isinstance(value, Thing) and isinstance(value.of, Thing):
        value = value.of
    return value.seen if isinstance(value, Thing) else None


def _source(loader: Seen, key: str) -> list[Entry]:
    made = _dataset(loader)
    default = "photographs"
    if made is None:
        said = [f"{place(loader)}: its data set cannot be told; what the recipe has by default"]
        return [Entry(key, default, said)] if key == "source" else []
    written = recipe_keys.source_of(made.name)
    path = made.get("root", 0)
    text = known(path)
    if written is not None and "PATH" not in written:
        return [Entry(key, written, [place(made)])]
    if written is None:
        said = [place(made), "a recipe reads no such data set: export it as a folder of images, then folder:PATH"]
        return [Entry(key, default, said)] if key == "source" else [Entry(key, "folder:PATH", said, out=True)]
    if not isinstance(text, str) or not text or not text.isprintable():
        said = [place(made), "its path cannot be told: write it here"]
        text = "PATH"
    else:
        said = [place(made), *sources(path), "a relative path counts from this recipe's folder"]
    return [Entry(key, written.replace("PATH", text), said)]


def _batch(loader: Seen, key: str, position: int, factor: int) -> list[Entry]:
    value = loader.get("batch_size", position)
    size = number(value)
    if value is None:
        size = 1  # torch's default
    if not isinstance(size, int) or size < 1:
        return [Entry(key, 8 * factor, [f"{place(loader)}: its batch_size cannot be told"])] if key == "batch" else []
    comments = sources(value)
    if factor > 1:
        comments.append(f"{factor} micro-batches of {size}")
    return [Entry(key, size * factor, comments)]


def _fetching(loader: Seen) -> list[Entry]:
    found = []
    if "torch.utils.data.DataLoader" not in names.restated(loader.name):
        return []  # timm's loaders shuffle and drop by is_training
    shuffle = loader.get("shuffle", 2)
    sampled = not isinstance(loader.get("sampler", 3) or Constant(None), Constant)
    if not sampled and (shuffle is None or known(shuffle, True) is False):
        found.append(Entry("shuffle", False, ["torch's loaders shuffle only when told to"] if shuffle is None else []))
    drop_last = known(loader.get("drop_last", 8), False)
    if drop_last is not True:
        found.append(Entry("drop_last", False))
    workers = loader.get("num_workers", 5)
    count = number(workers)
    if isinstance(count, int) and count > 0:
        found.append(Entry("workers", count, sources(workers)))
    return found


# transforms


def transforms(loader: Seen, key: str) -> list[Entry]:
    """The list of transforms of a loader's data set."""
    made = _dataset(loader)
    value = next((made.get(name) for name in ("transform", "transforms") if made and made.get(name)), None)
    if made is not None and value is None:  # ImageFolder(root, transform)
        value = next((a.value for a in made.arguments or [] if a.name is None and _holds_transforms(a.value)), None)
    steps = list(_flat(value)) if value is not None else []
    if not steps:
        untold = f"{place(made or loader)}: its transforms cannot be told"
        return [Entry(key, [{"name": "ToTensor"}], [untold])] if key == "transforms" else []
    entries = list(_entries(steps))
    if all(entry.out for entry in entries):
        said = [comment for entry in entries for comment in entry.comments]
        return [Entry(key, [{"name": "ToTensor"}], [*said, "an example"], out=key != "transforms")]
    return [Entry(key, below=entries)]


def _holds_transforms(value: Value) -> bool:
    return any(isinstance(step, Thing) and step.name.startswith("torchvision.transforms") for step in _flat(value))


def _flat(value: Value | None, depth: int = 0) -> Iterator[Value]:
    """The transforms one by one, out of Compose, lists and the objects of the script's classes."""
    if depth > 8 or value is None:
        return
    if isinstance(value, Items):
        for item in value.items:
            yield from _flat(item, depth + 1)
    elif isinstance(value, Thing) and value.name.rpartition(".")[2] in COMPOSED and value.seen is not None:
        for argument in value.seen.arguments or []:
            yield from _flat(argument.value, depth + 1)
    elif isinstance(value, Instance):
        held = [inner for inner in value.attributes.values() if isinstance(inner, (Thing, Items, Instance))]
        inside = [found for inner in held if (found := list(_flat(inner, depth + 1))) and _all_transforms(found)]
        yield from inside[0] if inside else [value]
    elif not isinstance(value, (Constant, Pairs)):
        yield value


def _all_transforms(found: list[Value]) -> bool:
    return any(isinstance(step, Thing) and "transforms" in step.name for step in found)


def _entries(steps: list[Value]) -> Iterator[Entry]:
    bytes_at: Seen | None = None
    for step in steps:
        seen = step.seen if isinstance(step, Thing) else None
        if seen is None:
            text = f"{step.source.shown} line {step.node.lineno}: " if _placed(step) else ""  # type: ignore[attr-defined]
            what = step.of.node.name if isinstance(step, Instance) else "a step"
            yield Entry("-", {"name": what}, [f"{text}{what} is no transform that a recipe can name"], out=True)
            continue
        last = seen.name.rpartition(".")[2]
        row = names.row_of(seen.name)
        if last in BYTES:
            bytes_at = seen
        elif last in FLOATS and bytes_at is not None and _to_floats(seen):
            yield Entry("-", {"name": "ToTensor"}, [f"{place(bytes_at)}, then {last} to floats"])
            bytes_at = None
        elif last in NOTHING:
            continue
        elif row is None or row.kind != "transform" or row.mindspore is None:
            why = "the mapping table has no row of it" if row is None else "no transform that a recipe can name"
            yield Entry("-", {"name": last}, [place(seen), why], out=True)
        else:
            yield _step(seen, row)
    if bytes_at is not None:
        said = f"{place(bytes_at)}: bytes that nothing turns into floats; ToTensor gives floats from 0 to 1"
        yield Entry("-", {"name": "ToTensor"}, [said])


def _placed(step: Value) -> bool:
    return isinstance(step, Instance) and step.source is not None and step.node is not None


def _to_floats(seen: Seen) -> bool:
    dtype = seen.get("dtype", 0)
    floats = dtype is None or (isinstance(dtype, Name) and dtype.name in ("torch.float", "torch.float32"))
    return floats and (not seen.name.endswith("ToDtype") or known(seen.get("scale", 1)) is True)


def _step(seen: Seen, row: Any) -> Entry:
    name, entries, untold = part(seen, row, brief=True)
    comments = [place(seen), *(comment for entry in entries for comment in entry.comments), *untold]
    args = {entry.key: entry.value for entry in entries if not entry.out}
    lacking = any(": write it here" in text for text in untold)
    value = {"name": name, "args": args} if args else {"name": name}
    return Entry("-", value, list(dict.fromkeys(comments)), out=lacking)


__all__ = ["Untold", "data", "transforms"]
