"""Find the weights in the inert content, under a key or in a model saved whole; take prefixes off the names.

The pickle of a whole model asks for an object of each module's class, and gives its `__dict__`. Nothing is imported and
no object is made: the dicts `_parameters`, `_buffers` and `_modules` are read, which every torch.nn.Module has,
whatever its class. So the names are those of `model.state_dict()`, unless the class overrides state_dict, which only
its code can tell.

Scripts put the weights under a key, next to the optimizer and other state. The key is a convention, so the usual ones
come first and a moving average of the weights comes last; where two could be meant, nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from ....errors import Ambiguous, BadCheckpoint, Unsupported
from . import restricted_pickle
from .pth_tensors import Call, Global, holds_storage, is_tensor
from .pth_tensors import describe as describe_tensor
from .reader import (
    COUNTERS,
    MAX_NAME,
    MAX_TENSORS,
    ByteRange,
    Checkpoint,
    Source,
    Tensor,
    check_count,
    check_name,
    shown,
    wrapper_prefix,
)
from .restricted_pickle import Loaded

MAX_DEPTH = 200  # modules inside one another
MAX_NAMES = 2 * MAX_TENSORS  # of modules and tensors, a shared one counted at each of its places
MAX_LETTERS = 64 << 20  # of all names together
TOO_MANY = "it names absurdly many modules and tensors; no model does"

DICTS = ("_parameters", "_buffers", "_modules")
# Classes that are pickled by a call of their own, and which argument is their __dict__ or the module that they wrap.
COMPILED = "torch._dynamo.eval_frame.OptimizedModule"
TRACED = ("torch.fx.graph_module.reduce_graph_module", "torch.fx.graph_module.reduce_package_graph_module")

LAYERS = "torch.nn.modules."  # each class in here is public as torch.nn.NAME, but for these
INNER = {f"{LAYERS}linear.{name}": "torch.nn.Linear" for name in ("NonDynamicallyQuantizableLinear", "_LinearWithBias")}


class Tree(NamedTuple):
    """The tensors of a module by their names in its state dict, and the torch.nn class of each module that has one.

    The tensors are inert. owners: module path -> its class by its public name, for classes of torch only: the name of
    another class says nothing about its tensors, and its bases are known only from its code.
    """

    entries: dict[str, Any]
    owners: dict[str, tuple[str, ...]]


def is_module(value: Any) -> bool:
    """Whether an inert value is a torch.nn.Module, whatever its class."""
    return type(value) is Call and _dicts(value) is not None


def class_name(module: Call) -> str:
    """The class of a module as the file gives it."""
    return "torch.fx.GraphModule" if module.name in TRACED else module.name


def tree(top: Call) -> Tree:
    """Go through a module in the order of its state_dict: own parameters, own persistent buffers, then its modules.

    Raises BadCheckpoint for a module inside itself and for absurd numbers of modules, Unsupported for one that keeps
    its tensors in another way.
    """
    found = Tree({}, {})
    names = _Names()
    looked_at: dict[int, _Parts] = {}
    around: list[int] = []  # the modules around the current one
    waiting: list[tuple[str, Any, int]] = [("", top, 0)]
    while waiting:
        path, module, depth = waiting.pop()
        del around[depth:]
        parts = looked_at.get(id(module))
        if parts is None:
            parts = looked_at[id(module)] = _checked(path, module, names)
        elif id(module) in around:
            raise BadCheckpoint(f"its module {shown(path)} contains itself")
        around.append(id(module))
        if owner := public_name(class_name(module)):
            found.owners[path] = (owner,)
        for name, value in parts.own:
            full = names.joined(path, name)
            if full in found.entries:
                raise BadCheckpoint(f"two of its tensors are named {shown(full)}")
            found.entries[full] = value
        if depth == MAX_DEPTH and parts.modules:
            raise BadCheckpoint(f"its modules are nested more than {MAX_DEPTH} deep")
        children = [(names.joined(path, name), child, depth + 1) for name, child in parts.modules]
        waiting += reversed(children)
    return found


class _Names:
    """Makes the names, and counts them: with shared modules a small file can ask for any number of names."""

    def __init__(self) -> None:
        self.count, self.letters = MAX_NAMES, MAX_LETTERS

    def passed(self, count: int) -> None:
        """Count names that have no tensor or module."""
        self.count -= count
        if self.count < 0:
            raise BadCheckpoint(TOO_MANY)

    def joined(self, path: str, name: Any) -> str:
        if not isinstance(name, str) or len(path) + len(name) >= MAX_NAME:
            raise BadCheckpoint(f"{ascii(name)[:80]} in its module {shown(path)} is no name of a tensor or module")
        full = f"{path}.{name}" if path else name
        self.count -= 1
        self.letters -= len(full)
        if self.count < 0 or self.letters < 0:
            raise BadCheckpoint(TOO_MANY)
        return full


def public_name(full: str) -> str | None:
    """The name under which a class of torch.nn is documented; None for any other class."""
    if full in INNER:
        return INNER[full]
    module, _, name = full.rpartition(".")
    return f"torch.nn.{name}" if module.startswith(LAYERS) and not name.startswith("_") else None


class _Parts(NamedTuple):
    """The module's own entries in its state dict, and the modules in it; without those that are None."""

    own: list[tuple[Any, Any]]
    modules: list[tuple[Any, Any]]


def _dicts(value: Call) -> list[Any] | None:
    """Parameters, buffers, modules, and the names of buffers that are not saved; None if it is not a module."""
    if value.name == COMPILED and value.state is None:
        inner = value.args[0] if value.args else None
        return [{}, {}, {"_orig_mod": inner}, None] if type(inner) is Call else None
    state = value.args[0] if value.name in TRACED and value.args else value.state
    if type(state) is tuple and len(state) == 2:  # of a class with __slots__: its __dict__, then its slots
        state = state[0]
    if type(state) is not dict or any(type(state.get(key)) is not dict for key in DICTS):
        return None
    return [*(state[key] for key in DICTS), state.get("_non_persistent_buffers_set")]


def _checked(path: str, module: Any, names: _Names) -> _Parts:
    dicts = _dicts(module) if type(module) is Call else None
    if dicts is None:
        what = f"an object of {shown(module.name)}" if type(module) is Call else f"a {type(module).__name__}"
        raise Unsupported(
            f"its module {shown(path)} is {what}, which does not keep its tensors as torch.nn.Module does; "
            "save model.state_dict() instead"
        )
    if module.name.startswith("torch.") and ".quantized." in module.name:
        raise Unsupported(
            f"its module {shown(path) or 'at the top'} is a quantized {shown(module.name)}, which keeps its weights "
            "packed; save the model from before it was quantized"
        )
    parameters, buffers, modules, left_out = dicts
    left_out = _names(left_out) if buffers else ()
    names.passed(len(left_out))
    own = [*parameters.items(), *((name, value) for name, value in buffers.items() if name not in left_out)]
    found = _Parts([item for item in own if item[1] is not None], [m for m in modules.items() if m[1] is not None])
    names.passed(len(own) + len(modules) - len(found.own) - len(found.modules))
    return found


def _names(value: Any) -> set[Any]:
    """A set of names: a set in protocol 4, before that a call of set with a list; empty where an old file has none."""
    if type(value) is Call and value.name == "builtins.set" and len(value.args) == 1:
        value = value.args[0]
    return {name for name in value if isinstance(name, str)} if type(value) in (set, list) else set()


# The keys under which training scripts keep the weights, the usual ones first.
WRAPPERS = ("state_dict", "model", "model_state_dict", "model_state", "net", "network", "module", "weights", "params")
# Moving averages of the weights.
AVERAGES = {
    *("ema", "model_ema", "ema_model", "state_dict_ema", "ema_state_dict", "params_ema", "averaged_model", "shadow")
}
# Keys whose values may hold named tensors that are never the weights.
BESIDE = {
    *("optimizer", "optimizers", "optimizer_state", "optimizer_states", "optimizer_state_dict", "optim", "opt"),
    *("scheduler", "schedulers", "scheduler_state_dict", "lr_scheduler", "lr_schedulers", "lr_scheduler_state_dict"),
    *("scaler", "grad_scaler", "amp", "callbacks", "loops", "hyper_parameters"),
    *("rng", "rng_state", "rng_states", "torch_rng_state", "cuda_rng_state", "cuda_rng_states", "cuda_rng_state_all"),
}
MAX_SEARCH = 3  # levels of keys that are searched for the weights without --key
MAX_KEY = 4  # levels that a --key may name
LISTED = 8  # keys in a message

Keys = tuple[str, ...]
Same = Callable[[Any, Any], bool]


class Found(NamedTuple):
    """The weights (a dict with tensors, or a module, inert), the keys that lead to them, and the rest of the file.

    others: all else in the file, what -> a short description. training: the same as inert values, by key; None where
    the file has only the weights.
    """

    weights: Any
    keys: Keys
    others: dict[str, str]
    training: dict[str, Any] | None


def find(path: str, content: Any, key: str | None, same: Same) -> Found:
    """Find the weights (under `key`, which may have dots, when given); `same` says whether two hold the same tensors.

    Raises BadCheckpoint when there are none, Ambiguous when two could be meant.
    """
    if is_module(content):
        if key is not None:
            raise BadCheckpoint(f"{path} is one whole model, with no keys in it; leave out --key {shown(key)}")
        return Found(content, (), {}, None)
    if type(content) is not dict:
        foreign = type(content) is Call and not is_tensor(content)
        reason = "neither a state dict nor a torch.nn.Module" if foreign else "not a state dict"
        raise BadCheckpoint(f"{path} holds {describe(content)}, {reason}")
    if key is None:
        return _found(content, _unasked(path, content, same))
    keys = _resolve(content, key, MAX_KEY)
    inside = value_at(content, keys or ())
    if keys is not None and _holds_weights(inside):
        return _found(content, keys)
    candidates = list(_candidates(inside)) if keys is not None and type(inside) is dict else []
    if keys is None or not candidates:
        there = _listed(list(_candidates(content)))
        raise BadCheckpoint(
            f"{path} has no state dict under --key {shown(key)}" + (f"; there is {there}" if there else "")
        )
    return _found(content, (*keys, *_chosen(path, inside, candidates, keys, same)))


def likely_keys(content: Any) -> Iterator[Keys]:
    """The first keys that seem to lead to weights."""
    return islice(_candidates(content), LISTED) if type(content) is dict and not is_module(content) else iter(())


def describe(value: Any) -> str:
    """Say in a few words what an inert value is."""
    if type(value) is dict:
        keys = ", ".join(shown(name) for name in islice(value, 4) if isinstance(name, str))
        return f"a dict of {len(value)}" + (f" ({keys}{', …' if len(value) > 4 else ''})" if keys else "")
    if isinstance(value, (bool, int, float, str)):
        text = repr(value) if not isinstance(value, int) or abs(value) < 1 << 64 else "a large integer"
        return text if len(text) <= 40 else text[:39] + "…"
    if is_tensor(value):
        return "a tensor"
    if is_module(value):
        return f"a whole model of {shown(class_name(value))}"
    if type(value) is Call:
        return f"an object of {shown(value.name)}"
    if type(value) is Global:
        return shown(value.name)
    return f"a {type(value).__name__}" + (f" of {len(value)}" if isinstance(value, (list, tuple, set)) else "")


def _unasked(path: str, content: dict[Any, Any], same: Same) -> Keys:
    """The keys that lead to the weights; none where the content is the state dict itself."""
    if _holds_weights(content):
        return ()
    candidates = list(_candidates(content))
    if not candidates:
        raise BadCheckpoint(f"{path} holds no tensors")
    return _chosen(path, content, candidates, (), same)


def _chosen(path: str, content: Any, candidates: list[Keys], start: Keys, same: Same) -> Keys:
    """Choose one of the candidates in the content, which is under the keys `start` of the file; raises Ambiguous."""
    left = [keys for keys in candidates if not AVERAGES & set(keys)] or candidates
    usual: list[Keys] = [(name,) for name in WRAPPERS if (name,) in left]
    if usual:
        left = usual
    elif len({keys[0] for keys in left}) == 1 and len(left[0]) > 1:
        first = left[0][0]
        return (first, *_chosen(path, content[first], [keys[1:] for keys in left], (*start, first), same))
    if all(usual and same(content[left[0][0]], content[key]) for (key, *_) in left[1:]):
        return left[0]
    raise Ambiguous(f"{path} holds tensors under {_listed(left, start)}; say which with --key NAME")


def _candidates(content: dict[Any, Any]) -> Iterator[Keys]:
    """The keys that lead to weights, those nearer to the top first; a dict that is in several places counts once."""
    level: list[tuple[Keys, dict[Any, Any]]] = [((), content)]
    seen = {id(content)}
    holding: dict[int, bool] = {}
    known: dict[int, bool] = {}
    for _ in range(MAX_SEARCH):
        below: list[tuple[Keys, dict[Any, Any]]] = []
        for keys, outer in level:
            for name, value in outer.items():
                if not isinstance(name, str) or name in BESIDE or not name.isprintable():
                    continue
                if id(value) not in holding:
                    holding[id(value)] = _holds_weights(value, known)
                if holding[id(value)]:
                    yield (*keys, name)
                elif type(value) is dict and id(value) not in seen:
                    seen.add(id(value))
                    below.append(((*keys, name), value))
        level = below


def _holds_weights(value: Any, known: dict[int, bool] | None = None) -> bool:
    """Whether a value is weights: a model, or a dict with tensors that does not hold other weights.

    A training checkpoint may have a tensor of its own next to them, such as the best loss or the random state. known:
    which of the dicts searched so far have tensors, since many dicts may hold the same one.
    """
    known = {} if known is None else known
    if type(value) is not dict:
        return is_module(value)
    return (
        _has_tensors(value, known)
        and not any(type(value.get(name)) is dict and _has_tensors(value[name], known) for name in WRAPPERS)
        and not any(map(is_module, value.values()))
    )


def _has_tensors(value: dict[Any, Any], known: dict[int, bool]) -> bool:
    if id(value) not in known:
        known[id(value)] = any(is_tensor(item) and name not in BESIDE for name, item in value.items())
    return known[id(value)]


def _resolve(content: dict[Any, Any], key: str, deep: int) -> Keys | None:
    """The keys that a --key means: an existing key, or several joined by dots."""
    if key in content:
        return (key,)
    for at in [at for at, letter in enumerate(key) if letter == "."] if deep > 1 else []:
        inner = content.get(key[:at])
        rest = _resolve(inner, key[at + 1 :], deep - 1) if type(inner) is dict else None
        if rest is not None:
            return (key[:at], *rest)
    return None


def value_at(content: Any, keys: Keys) -> Any:
    """The value under the keys."""
    for key in keys:
        content = content[key]
    return content


def _found(content: dict[Any, Any], keys: Keys) -> Found:
    """Collect the rest of the file; where `training` would have a key twice, the value nearer to the weights counts."""
    others: dict[str, str] = {}
    training: dict[str, Any] = {}
    for depth in reversed(range(len(keys))):
        for name, value in value_at(content, keys[:depth]).items():
            if name == keys[depth]:
                continue
            dotted = ".".join((*keys[:depth], name if isinstance(name, str) else describe(name)))
            others[shown(dotted)] = describe(value)
            if name in AVERAGES and (_holds_weights(value) or (type(value) is dict and any(_candidates(value)))):
                others[shown(dotted)] += f"; --key {shown(dotted)} converts it"
            if isinstance(name, str):
                training.setdefault(name, value)
    return Found(value_at(content, keys), keys, others, training or None)


def _listed(candidates: list[Keys], start: Keys = ()) -> str:
    names = [shown(".".join((*start, *keys))) for keys in candidates[:LISTED]]
    return ", ".join(names) + (", …" if len(candidates) > LISTED else "")


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

        Raises BadCheckpoint when it is not a tensor or does not fit its storage, Unsupported for other kinds of tensor.
        """
        if not is_tensor(value):
            raise BadCheckpoint(f"{describe(value)} stands where a tensor should")
        return describe_tensor(value, self.size, self.storage)

    def weights(self, value: Any) -> Mapping[Any, Any]:
        """The entries, name -> inert value, of an inert state dict or of a model saved whole.

        Raises BadCheckpoint when it is neither, or a damaged model, Unsupported for a model that keeps its tensors in
        another way than torch.nn.Module.
        """
        if is_module(value):
            return tree(value).entries
        if type(value) is not dict:
            raise BadCheckpoint(f"{describe(value)} stands where a state dict should")
        return value


def read(archive: TorchSource, loaded: Loaded, key: str | None = None) -> Checkpoint:
    """Find the weights (under `key` when given) and describe their tensors, without reading their bytes.

    loaded: the result of `archive.load()`. Raises BadCheckpoint when there are no weights, a tensor does not fit its
    storage, or the pickle uses names that only attacks use, unless these are outside of the value under `key`;
    Ambiguous when two could be meant; Unsupported for a whole model that keeps its tensors in another way than
    torch.nn.Module.
    """

    def same(one: Any, other: Any) -> bool:
        return _described(archive, _entries(archive, one)[0]) == _described(archive, _entries(archive, other)[0])

    if loaded.refused and key is None:
        raise hostile(archive.path, loaded)
    found = find(archive.path, loaded.value, key, same)
    if loaded.refused:
        found = _without_refused(archive.path, loaded, found)
    entries, owners = _entries(archive, found.weights)
    prefix = wrapper_prefix(entries)
    counters = [name for name in COUNTERS if prefix and name in entries]
    others = {**found.others, **{name: describe(entries[name]) for name in counters}}
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
    """The error for a pickle with names that only attacks use, with a key whose value has none of them."""
    key = next((key for key in likely_keys(loaded.value) if not loaded.refused_in(value_at(loaded.value, key))), None)
    past = (
        ""
        if key is None
        else f". --key {shown('.'.join(key))} reads only what is under that key, which has no such name"
    )
    return BadCheckpoint(f"{path}: {restricted_pickle.hostile(loaded.refused.values())}{past}")


def _without_refused(path: str, loaded: Loaded, found: Found) -> Found:
    """The same without entries that use such names; raises BadCheckpoint where the weights themselves use one."""
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


def _shortened(owners: Mapping[str, tuple[str, ...]], prefix: str) -> dict[str, tuple[str, ...]]:
    """The classes by their paths without the prefix; the wrappers themselves have none."""
    return {
        f"{path}.".removeprefix(prefix).removesuffix("."): classes
        for path, classes in owners.items()
        if f"{path}.".startswith(prefix) or not prefix
    }


def _described(archive: TorchSource, entries: Mapping[str, Any]) -> dict[str, Tensor | Unsupported | str]:
    """Each entry's tensor, or why it cannot be read, or what it is where it is not a tensor."""
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
            return describe_tensor(value, archive.size, archive.storage)
        except Unsupported as reason:
            return reason
    if holds_storage(value):
        return Unsupported(
            f"it is built by {shown(value.name)}, which is not part of torch; save the plain tensor, on the CPU"
        )
    return describe(value)
