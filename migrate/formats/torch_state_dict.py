"""What a torch checkpoint holds: the weights, found in the inert pickle, with each tensor's description read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import BadCheckpoint, Unsupported
from . import restricted_pickle
from .contents import ByteRange, Checkpoint, Source, Tensor, check_count, check_name, shown
from .restricted_pickle import Loaded
from .torch_modules import is_module, tree
from .torch_tensors import describe, holds_storage, is_tensor
from .torch_wrappers import Found, find, likely_keys, value_at
from .torch_wrappers import describe as in_words

PREFIXES = ("module.", "_orig_mod.")  # put before every name by DistributedDataParallel and by torch.compile
COUNTERS = ("n_averaged",)  # what AveragedModel keeps beside the names that it prefixes


class TorchSource(Source):
    """A file that torch.save wrote: an inert pickle, and storages somewhere in the file.

    `format` is the file's in words, `size` in bytes.
    """

    format: str
    size: int

    def load(self) -> Loaded:
        """What the pickle describes, inert; raises BadCheckpoint, Unsupported, with the path in front."""
        raise NotImplementedError

    def storage(self, key: str) -> ByteRange:
        """The byte range of a storage; raises BadCheckpoint when the file lacks it."""
        raise NotImplementedError

    def checkpoint(self, key: str | None = None) -> Checkpoint:
        return read(self, self.load(), key)

    def tensor(self, value: Any) -> Tensor:
        """Describe an inert tensor, such as one of Checkpoint.training.

        Raises BadCheckpoint when it is none or does not fit its storage, Unsupported for other kinds of tensor.
        """
        if not is_tensor(value):
            raise BadCheckpoint(f"{in_words(value)} stands where a tensor should")
        return describe(value, self.size, self.storage)

    def weights(self, value: Any) -> Mapping[Any, Any]:
        """The entries, name -> inert value, of an inert state dict or of a model saved whole.

        Raises BadCheckpoint when it is neither, or a damaged model, Unsupported for a model that keeps its tensors in
        a way of its own.
        """
        if is_module(value):
            return tree(value).entries
        if type(value) is not dict:
            raise BadCheckpoint(f"{in_words(value)} stands where a state dict should")
        return value


def read(archive: TorchSource, loaded: Loaded, key: str | None = None) -> Checkpoint:
    """Find the weights (under `key` when given) and describe their tensors, without reading their bytes.

    loaded: what `archive.load()` gave. Raises BadCheckpoint when there are no weights, a tensor does not fit its
    storage, or the pickle names what only attacks use, unless that is outside of what the key leads to; Ambiguous when
    two could be meant; Unsupported for a whole model that keeps its tensors in a way of its own.
    """

    def same(one: Any, other: Any) -> bool:
        return _described(archive, _entries(archive, one)[0]) == _described(archive, _entries(archive, other)[0])

    if loaded.refused and key is None:
        raise hostile(archive.path, loaded)
    found = find(archive.path, loaded.value, key, same)
    if loaded.refused:
        found = _without_refused(archive.path, loaded, found)
    entries, owners = _entries(archive, found.weights)
    prefix = _prefix(entries)
    counters = [name for name in COUNTERS if prefix and name in entries]
    others = {**found.others, **{name: in_words(entries[name]) for name in counters}}
    described = _described(archive, {name: value for name, value in entries.items() if name not in counters})
    tensors: dict[str, Tensor] = {}
    refused: dict[str, str] = {}
    for name, what in described.items():
        if isinstance(what, Tensor):
            tensors[name.removeprefix(prefix)] = what
        elif isinstance(what, Unsupported):
            refused[name.removeprefix(prefix)] = str(what)
        else:
            others[name] = what
    return Checkpoint(
        "torch",
        archive.format if owners is None else f"whole model, {archive.format}",
        tensors,
        refused,
        ".".join(found.keys) or None,
        prefix,
        others,
        _shortened(owners or {}, prefix) or None,
        training=found.training,
    )


def hostile(path: str, loaded: Loaded) -> BadCheckpoint:
    """The error for a pickle that names what only attacks use, with the key that leads past it."""
    key = next((key for key in likely_keys(loaded.value) if not loaded.refused_in(value_at(loaded.value, key))), None)
    past = "" if key is None else f". --key {shown('.'.join(key))} reads only what stands there, which is free of it"
    return BadCheckpoint(f"{path}: {restricted_pickle.hostile(loaded.refused.values())}{past}")


def _without_refused(path: str, loaded: Loaded, found: Found) -> Found:
    """The same without what names such things beside the weights; raises BadCheckpoint where the weights do."""
    held = loaded.refused_in(found.weights)
    if held is not None:
        raise BadCheckpoint(f"{path}: {restricted_pickle.hostile([held])}")
    training = {name: value for name, value in (found.training or {}).items() if not loaded.refused_in(value)}
    named = dict.fromkeys(loaded.refused.values(), "named in its pickle, as attacks do: do not load this file in torch")
    return found._replace(training=training or None, others={**found.others, **named})


def _entries(archive: TorchSource, weights: Any) -> tuple[Mapping[str, Any], Mapping[str, tuple[str, ...]] | None]:
    """The entries of the weights under checked names, and the classes of the modules, if it is a whole model."""
    try:
        entries, owners = tree(weights) if is_module(weights) else (weights, None)
    except (BadCheckpoint, Unsupported) as error:
        raise type(error)(f"{archive.path}: {error}") from None
    if not entries:
        raise BadCheckpoint(f"{archive.path} holds no tensors")
    check_count(archive.path, len(entries))
    for name in entries:
        check_name(archive.path, name)
    return entries, owners


def _prefix(names: Iterable[str]) -> str:
    """What the wrappers have put before every name."""
    prefix = ""
    names = [name for name in names if name not in COUNTERS]
    while taken := next((p for p in PREFIXES if names and all(_longer(name, prefix + p) for name in names)), None):
        prefix += taken
    return prefix


def _longer(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and name != prefix


def _shortened(owners: Mapping[str, tuple[str, ...]], prefix: str) -> dict[str, tuple[str, ...]]:
    """The classes by their paths without the prefix; the wrappers themselves have none."""
    return {
        f"{path}.".removeprefix(prefix).removesuffix("."): classes
        for path, classes in owners.items()
        if f"{path}.".startswith(prefix) or not prefix
    }


def _described(archive: TorchSource, entries: Mapping[str, Any]) -> dict[str, Tensor | Unsupported | str]:
    """Each entry's tensor, or why it cannot be read, or, of one that is no tensor, what it is."""
    known: dict[int, Tensor | Unsupported | str] = {}  # a shared module gives one tensor any number of names
    found: dict[str, Tensor | Unsupported | str] = {}
    for name, value in entries.items():
        if id(value) not in known:
            try:
                known[id(value)] = _one(archive, value)
            except BadCheckpoint as error:
                raise BadCheckpoint(f"{archive.path}: {shown(name)}: {error}") from None
        found[name] = known[id(value)]
    return found


def _one(archive: TorchSource, value: Any) -> Tensor | Unsupported | str:
    if is_tensor(value):
        try:
            return describe(value, archive.size, archive.storage)
        except Unsupported as reason:
            return reason
    if holds_storage(value):
        return Unsupported(
            f"{shown(value.name)} builds it, which is not torch's own; save the plain tensor, on the CPU"
        )
    return in_words(value)
