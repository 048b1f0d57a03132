"""Find the weights in the inert content of a torch checkpoint: a state dict, or a model saved whole.

Scripts put them under a key, beside the optimizer and whatever else they keep. Which key is a habit, so the usual ones
come first and a moving average of the weights comes last; where two could be meant, nobody guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from ...errors import Ambiguous, BadCheckpoint
from .contents import shown
from .pickled import Call, Global
from .torch_modules import class_name, is_module
from .torch_tensors import is_tensor

# The keys under which training scripts keep the weights, the usual ones first.
WRAPPERS = ("state_dict", "model", "model_state_dict", "model_state", "net", "network", "module", "weights", "params")
# Moving averages of the weights.
AVERAGES = {
    *("ema", "model_ema", "ema_model", "state_dict_ema", "ema_state_dict", "params_ema", "averaged_model", "shadow")
}
# What may hold tensors under names, and is never the weights.
BESIDE = {
    *("optimizer", "optimizers", "optimizer_state", "optimizer_states", "optimizer_state_dict", "optim", "opt"),
    *("scheduler", "schedulers", "scheduler_state_dict", "lr_scheduler", "lr_schedulers", "lr_scheduler_state_dict"),
    *("scaler", "grad_scaler", "amp", "callbacks", "loops", "hyper_parameters"),
    *("rng", "rng_state", "rng_states", "torch_rng_state", "cuda_rng_state", "cuda_rng_states", "cuda_rng_state_all"),
}
MAX_SEARCH = 3  # keys inside one another, where the weights are looked for unasked
MAX_KEY = 4  # the same, of a --key
LISTED = 8  # keys in a message

Keys = tuple[str, ...]
Same = Callable[[Any, Any], bool]


class Found(NamedTuple):
    """The weights (a dict with tensors, or a module, inert), the keys that lead to them, and what stands beside them.

    others: all else in the file, what -> a short description. training: the same as it is, by its key; None where the
    weights are all there is.
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
        wanted = "neither a state dict nor a torch.nn.Module" if foreign else "not a state dict"
        raise BadCheckpoint(f"{path} holds {describe(content)}, {wanted}")
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
    """Choose one of the candidates in the content, which stands at `start` in the file; raises Ambiguous."""
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
    """Whether a value is weights: a model, or a dict with tensors that is not there to hold other weights.

    A training checkpoint may have a tensor of its own beside them, such as the best loss or the random state. known:
    which dicts have tensors, as far as they were looked through; many may hold the same one.
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
    """The keys that a --key means: one that is there as it is, or several with dots between."""
    if key in content:
        return (key,)
    for at in [at for at, letter in enumerate(key) if letter == "."] if deep > 1 else []:
        inner = content.get(key[:at])
        rest = _resolve(inner, key[at + 1 :], deep - 1) if type(inner) is dict else None
        if rest is not None:
            return (key[:at], *rest)
    return None


def value_at(content: Any, keys: Keys) -> Any:
    """What the keys lead to."""
    for key in keys:
        content = content[key]
    return content


def _found(content: dict[Any, Any], keys: Keys) -> Found:
    """Put together what stands beside the weights; of two of one name in `training` the one nearer to them counts."""
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
