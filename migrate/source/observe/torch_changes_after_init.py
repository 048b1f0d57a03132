"""What a user's function changed in a module after making it: `model.fc = nn.Linear(512, 10)`, frozen layers.

A module is described by the call that made it, which does not include such changes. A child that was made after that
call ended has been put in place; other changes are found by comparison with a module that the same call makes again.
"""

from __future__ import annotations

import copy
import inspect
import math
import re
import types
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from .observations import Changes, DrawnBy, Made, ModuleParameter, Placed, SetNumber, Step
from .torch_construction import ConstructionLog, Drawn, MakingCall, unknowns
from .torch_values import attributes_of, is_number, is_plain, is_torch, plain_class


def changes(log: ConstructionLog, module: nn.Module, made: MakingCall) -> tuple[Made | None, Changes]:
    """How to make a layer of torch with its present settings, where only these changed; and what has to be done to a
    module after it is made by the original call."""
    given = {id(part) for value in _modules((made.args, dict(made.kwargs))) for part in value.modules()}
    placed = [*_placed(log, module, made, given, ())]
    fresh = _anew(made)
    removed = [] if fresh is None else [*_removed(module, fresh, {id(child) for _, child in placed})]
    children = [Placed(path, log.made(child), not _has(fresh, _text(path))) for path, child in placed]
    outside = {_text(path) for path, _ in placed}
    elsewhere = {name for name, part in module.named_modules(remove_duplicate=False) if id(part) in given}
    compared = _Comparison(module, fresh, {*outside, *elsewhere})
    frozen, missed = [*compared.frozen()], [*compared.missed(log)]
    instead: Made | None = None
    numbers: list[SetNumber] = []
    layers: dict[str, dict[str, tuple[Any, Any]]] = {}
    for path, key, value, before, of_torch in compared.numbers(log, made):
        if of_torch:
            layers.setdefault(path, {})[key] = (value, before)
        elif unknown := next(unknowns(made_value := log.made(value)), None):
            where = f"{path}.{key}".lstrip(".")
            missed.append(f"{where} was set to this {unknown.what} after the model was made: {unknown.instead}")
        else:
            numbers.append(SetNumber(_steps(module, path), key, made_value))
    for path, settings in layers.items():
        anew = _made_with(log, module.get_submodule(path), {key: value for key, (value, _) in settings.items()})
        if anew is not None and not path:
            instead = anew
        elif anew is not None:
            children.append(Placed(_steps(module, path), anew, new=False))
        else:
            for key, (value, before) in settings.items():
                change = f"was set to {value!r} after the layer was made with {before!r}; make it with {value!r}"
                missed.append(f"{f'{path}.{key}'.lstrip('.')} {change}")
    drawn: list[DrawnBy] = []
    for path, one in _drawn_after(log, module, made):
        if any(path == part or path.startswith(f"{part}.") for part in (*outside, *elsewhere) if part):
            continue  # a module that is described by itself
        first = any(log.begun.get(id(child), 0) > one.began for _, child in placed)
        call = _drawing(log, _steps(module, path), one, first=first)
        if isinstance(call, str):
            missed.append(call)
        else:
            drawn.append(call)
    return instead, Changes(
        tuple(children),
        tuple(numbers),
        tuple(drawn),
        tuple((_parameter_of(log, module, name), _parameter_of(log, module, of)) for name, of in compared.tied()),
        tuple(_parameter_of(log, module, f"{path}.{leaf}") for path, leaf in frozen),
        tuple(missed),
        tuple(removed),
    )


def _removed(module: nn.Module, fresh: nn.Module, later: set[int]) -> Iterator[tuple[Step, ...]]:
    """The children that were taken out of a module, in the order in which they are taken out of `fresh`, too, where the
    others get the names that they have in the module; later: those that were put in place."""
    for path, now in module.named_modules(remove_duplicate=False):
        then = dict(fresh.named_modules(remove_duplicate=False)).get(path)
        if then is None or id(now) in later or not _of_one_class(now, then):
            continue
        inside = [*now._modules.values()]
        steps, kept = _steps(module, path), [child for child in inside if id(child) not in later]
        if isinstance(now, (nn.Sequential, nn.ModuleList)):
            places = _places(kept, [*then._modules.values()])
            numbered = [*map(str, range(len(kept)))] == [*now._modules][: len(kept)] and inside[: len(kept)] == kept
            if places == [*range(len(kept))] and [*now._modules][: len(then)] == [*then._modules]:
                continue  # replaced, and not taken out
            gone = [] if places is None or not numbered else [n for n in range(len(then)) if n not in places]
            for place in reversed(gone):
                del then[place]
                yield (*steps, Step(str(place), _container(now)))
        elif not _container(now):
            for name in [name for name, one in then._modules.items() if one is not None and name not in now._modules]:
                delattr(then, name)
                yield (*steps, Step(name, ""))


def _places(kept: list[Any], before: list[Any]) -> list[int] | None:
    """The places of what is left among what was there, by what they are made of; None where that does not say it."""
    places, place = list[int](), 0
    for looked_for in map(_makeup, kept):
        while place < len(before) and _makeup(before[place]) != looked_for:
            place += 1
        if place == len(before):
            return None
        places.append(place)
        place += 1
    return places


def _makeup(module: nn.Module | None) -> list[tuple[Any, ...]]:
    """The classes, settings and shapes in a module: two that have the same are equal before their weights are drawn."""
    if module is None:  # a list of layers may have places without one
        return []
    shapes = [(name, one.shape) for name, one in (*module.named_parameters(), *module.named_buffers())]
    parts = [(path, plain_class(part), attributes_of(part).items()) for path, part in module.named_modules()]
    settings = [(path, cls, key, repr(one) if is_plain(one) else "") for path, cls, own in parts for key, one in own]
    return [*shapes, *((path, cls) for path, cls, _ in parts), *settings]


def _placed(
    log: ConstructionLog, owner: nn.Module, made: MakingCall, given: set[int], path: tuple[Step, ...]
) -> Iterator[tuple[tuple[Step, ...], nn.Module]]:
    """The outermost children that were made after the module was, with their paths."""
    for name, child in owner._modules.items():
        if child is None or id(child) in given:
            continue
        to_child = (*path, Step(name, _container(owner)))
        later = log.begun.get(id(child), made.ended) > made.ended
        if later and id(child) in log.numbers:  # not one that forward made
            yield to_child, child
        else:
            yield from _placed(log, child, made, given, to_child)


HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class _Comparison:
    """A module compared with one that the same call made again, without the children at the paths `outside`."""

    def __init__(self, module: nn.Module, fresh: nn.Module | None, outside: set[str]) -> None:
        self.module, self.fresh, self.outside = module, fresh or module, outside
        self.anew = fresh is not None  # otherwise only what is noted of the attributes is compared

    @cached_property
    def source(self) -> str:
        """The text of the user's classes in the model."""
        classes = {base for part in self.module.modules() for base in type(part).__mro__ if not is_torch(base)}
        found = []
        for cls in classes - {object}:
            with suppress(OSError, TypeError):  # a class of no file
                found.append(inspect.getsource(cls))
        return "\n".join(found)

    def inside(self, path: str) -> bool:
        """Whether the part at a path was made by the call itself."""
        return not any(path == one or path.startswith(f"{one}.") or not one for one in self.outside)

    def frozen(self) -> Iterator[tuple[str, str]]:
        """Modules whose parameters were all frozen, outermost first, and single frozen parameters: path and name."""
        fresh = dict(self.fresh.named_parameters(remove_duplicate=False))
        own = {n: p for n, p in self.module.named_parameters(remove_duplicate=False) if self.inside(n) and n in fresh}
        frozen = {name for name, p in own.items() if not p.requires_grad and fresh[name].requires_grad}
        for path, _ in self.module.named_modules(remove_duplicate=False):
            under = {name for name in own if name.startswith(f"{path}.") or not path}
            if under and under <= frozen:
                frozen -= under
                yield path, ""
        for name in sorted(frozen):
            path, _, leaf = name.rpartition(".")
            yield path, leaf

    def tied(self) -> Iterator[tuple[str, str]]:
        """Parameters that were tied: the name of the replaced one, and of the one that replaces it."""
        fresh = dict(self.fresh.named_parameters(remove_duplicate=False))
        first: dict[int, str] = {}
        for name, parameter in self.module.named_parameters(remove_duplicate=False):
            if self.inside(name) and name in fresh:
                of = first.setdefault(id(parameter), name)
                if fresh[of] is not fresh[name]:
                    yield name, of

    def missed(self, log: ConstructionLog) -> Iterator[str]:
        """In words, modules that were removed, have another class now, or have hooks or methods that were added."""
        modules = dict(self.module.named_modules(remove_duplicate=False))
        for path, part in self.fresh.named_modules(remove_duplicate=False):
            if not self.inside(path):
                continue
            other = modules.get(path)
            if other is None:
                if path.rpartition(".")[0] in modules:
                    yield f"{path} was removed after the model was made"
            elif not _of_one_class(other, part):
                kinds = log.names.name(type(part)), log.names.name(type(other))
                yield f"{path} became a {kinds[1]} from a {kinds[0]} after the model was made"
            elif any(len(getattr(other, hooks)) > len(getattr(part, hooks)) for hooks in HOOKS):
                yield f"{path or 'the model'} got a hook after it was made: call what it does in forward"
            for name, _ in sorted(_own_methods(other) - _own_methods(part)):
                yield f"{path or 'the model'} got another {name} after it was made: write a class with that"

    def numbers(self, log: ConstructionLog, made: MakingCall) -> Iterator[tuple[str, str, Any, Any, bool]]:
        """What was set: path, attribute, its value, the call's value, whether it is a class of torch."""
        modules = dict(self.module.named_modules(remove_duplicate=False))
        then = log.then.get((id(self.module), made.ended), {})
        for path, part in self.fresh.named_modules(remove_duplicate=False):
            other = modules.get(path)
            if other is None or not _of_one_class(other, part) or not self.inside(path):
                continue
            values = log.numbers.get(id(other), {})
            of_torch = is_torch(type(part))
            first = attributes_of(part) if self.anew else then.get(path, values)
            for key, value in first.items():
                if key in values and _is_other(log, values[key], value, numbers=of_torch):
                    yield path, key, values[key], value, of_torch
            for key in values if not of_torch else ():
                # an attribute that the class does not set; others' notes on a model are no part of it
                added = key not in first and not callable(getattr(type(part), key, None))
                if added and (is_number(values[key]) or re.search(rf"\b{key}\b", self.source)):
                    yield path, key, values[key], None, False


def _own_methods(module: nn.Module | None) -> set[tuple[str, str]]:
    """The methods that an object has instead of its class's: their names, and the names of what replaces them."""
    own = () if module is None else vars(module).items()
    found = ((name, getattr(value, "__qualname__", type(value).__qualname__)) for name, value in own if callable(value))
    return {(name, value) for name, value in found if callable(getattr(type(module), name, None))}


def _of_one_class(one: nn.Module, other: nn.Module) -> bool:
    """Whether two modules are of one class, apart from the classes of parametrizations, and have the same of these."""
    computed = [[*getattr(module, "parametrizations", ())] for module in (one, other)]
    return plain_class(one) is plain_class(other) and computed[0] == computed[1]


def _is_other(log: ConstructionLog, now: Any, before: Any, *, numbers: bool) -> bool:
    """Whether an attribute has another value; of what is neither plain nor a function only whether there was none.

    numbers: whether only numbers count, as in a layer of torch.
    """
    if not all(map(is_number if numbers else is_plain, (now, before))):
        both = callable(now) and callable(before)
        return not numbers and (before is None or (both and log.names.name(now) != log.names.name(before)))
    return bool(now != before) and not all(isinstance(one, float) and math.isnan(one) for one in (now, before))


def _anew(made: MakingCall) -> nn.Module | None:
    """The module that the call makes when it is repeated, without values; None where that fails."""
    try:
        with torch.device("meta"):
            args, kwargs = copy.deepcopy((made.args, dict(made.kwargs)))
            module = made.function(*args, **kwargs)
    except Exception:  # a user's own code may count its calls, or refuse meta
        return None
    return module if isinstance(module, nn.Module) else None


def _made_with(log: ConstructionLog, layer: nn.Module, settings: Mapping[str, Any]) -> Made | None:
    """A layer of torch as if it were made with other settings; None where that would be another layer, or would train
    frozen parameters again."""
    _, cls, args, kwargs = log.creations.get(id(layer), (None, None, (), {}))
    if cls is not type(layer) or any(not parameter.requires_grad for parameter in layer.parameters()):
        return None
    signature = inspect.signature(cls)
    if not settings.keys() <= signature.parameters.keys():
        return None
    given = {**signature.bind(*args, **kwargs).arguments, **settings}
    return log.call_of(log.names.name(cls), (), given)


def _modules(value: Any) -> list[nn.Module]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, nn.Module)]


def _container(owner: nn.Module) -> str:
    kinds = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
    return next((kind.__name__ for kind in kinds if isinstance(owner, kind)), "")


def _text(path: tuple[Step, ...]) -> str:
    return ".".join(step.name for step in path)


def _has(module: nn.Module | None, path: str) -> bool:
    """Whether there is something at a path; assumed where the module could not be made again."""
    return module is None or path in dict(module.named_modules(remove_duplicate=False))


def _steps(module: nn.Module, path: str) -> tuple[Step, ...]:
    steps, part = [], module
    for name in path.split(".") if path else ():
        steps.append(Step(name, _container(part)))
        part = part._modules[name]
    return tuple(steps)


def _parameter_of(log: ConstructionLog, module: nn.Module, name: str) -> ModuleParameter:
    """A parameter by the module that holds it and the module's class; all of the module's where the name ends in a
    dot."""
    path, _, leaf = name.lstrip(".").rpartition(".") if name.strip(".") else ("", "", "")
    return ModuleParameter(_steps(module, path), leaf, log.names.name(type(module.get_submodule(path))))


def _drawn_after(log: ConstructionLog, module: nn.Module, made: MakingCall) -> Iterator[tuple[str, Drawn]]:
    """The calls that drew weights of a module after it was made, and where in it; without calls from inside of a
    constructor or of another such call, which are written with these."""
    paths = {id(part): path for path, part in reversed([*module.named_modules(remove_duplicate=False)])}
    for one in log.drawn:
        if one.began > made.ended and id(one.module) in paths and not _inside(log, one):
            yield paths[id(one.module)], one


def _inside(log: ConstructionLog, one: Drawn) -> bool:
    """Whether the call was made inside of a module's constructor, or inside of another call that drew weights."""
    if any(other.began < one.began < other.ended for other in log.drawn):
        return True
    made = (key for key, (value, *_) in log.creations.items() if isinstance(value, nn.Module))
    return any(log.begun[key] < one.began < log.ended[key] for key in made)


def drawn_by_statements(log: ConstructionLog, model: nn.Module) -> bool:
    """Whether weights of a model were drawn after it was made, by no function that gets it and in no constructor: in
    the body of the function that returns it, `for p in model.parameters(): nn.init.xavier_uniform_(p)`."""
    kept = [(one.began, one.ended) for one in log.drawn]
    kept += [(log.begun[key], log.ended[key]) for key, (it, *_) in log.creations.items() if isinstance(it, nn.Module)]
    drawn = filter(None, map(log.drawn_at, model.parameters()))
    late = [when for when in drawn if when > log.ended.get(id(model), when)]
    return any(not any(began < when < ended for began, ended in kept) for when in late)


def _drawing(log: ConstructionLog, path: tuple[Step, ...], one: Drawn, *, first: bool) -> DrawnBy | str:
    """The call, or in words why it cannot be written; first: whether it came before modules were put in place."""
    function = one.args[0] if one.applied else one.function
    name = log.names.name(function) if isinstance(function, types.FunctionType) else ""
    if not name or "<" in name:
        return (
            f"weights were drawn by {getattr(function, '__qualname__', function)}: write that as a function of its own"
        )
    call = log.call_of(name, () if one.applied else one.args[1:], one.kwargs)
    return DrawnBy(path, call, one.applied, first)
