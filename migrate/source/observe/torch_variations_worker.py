"""Worker: build a torch model, and its class with other arguments, run each, and write weights and outputs to a folder.

    python -m msmigrate.migrate.source.observe.torch_variations_worker model.py:build FOLDER PLAN.json [1x3x64x64]

PLAN.json lists what to try: `made`, how the model is made (see observations.py; null for what the function returns),
`without`, how many of its last inputs are left out, and `words`, further inputs by their names. With `part`, the path
of a module inside, `made` is how that is made, and it gets what it gets in the model. Each runs in evaluation mode, in
training mode with a gradient, and in evaluation mode once more with every weight a little larger, so that effects of a
training step show. N.pth gets the weights, N.npz inputs and outputs. Prints one line of JSON: for each the classes of
its modules, how many tensors are saved, the structure of its inputs and which outputs are random, or the error that it
`raises`, and whether while it is made or run; `left` are those that were not tried.
"""

from __future__ import annotations

import copy
import functools
import importlib
import json
import random
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from ...checkpoint.torch_model_worker import public_name
from ...model_spec import parse, place_of, serve
from ...torch_models import Inputs, builder, in_mode, inputs_for, let_copy, quietly, split, twice
from .observations import EnumMember, Items, Made, Pairs, Reference, from_json
from .torch_proof_worker import tensors as of_output
from .torch_simplified_transformers import for_training

GROWN = 1.05  # factor of the weights before the last run
SECONDS = 45.0  # after which no further variation is begun
LARGE = 20_000_000  # weights; a model, or a part of one, with more is only tried unchanged
LEFT_OPEN = 1e4  # a weight beyond it was never begun: it is what stood in the memory
HUGE = 100_000_000  # weights; a model with more is only run in float32, so its noise is unknown


def report(text: str, folder: str, plan: str, *shapes: str) -> dict[str, Any]:
    """Try what the plan lists; raises BadInput where there is no model."""
    quietly()
    spec, began = parse(text), time.monotonic()
    make = builder(spec)
    torch.manual_seed(0)
    model, returned = split(make())
    inputs = inputs_for(spec, model, shapes, returned)
    weights = sum(p.numel() for p in model.parameters())
    found: list[dict[str, Any]] = []
    paths = {one["part"] for one in json.loads(Path(plan).read_text())} - {""}
    parts = _given_to(paths, split(make())[0], inputs) if paths else {}
    for number, one in enumerate(json.loads(Path(plan).read_text())):
        large = weights > LARGE and not one["part"]
        past = number and (large or weights > HUGE or time.monotonic() - began > SECONDS)
        if past or one["without"] > len(inputs.eval):
            found.append({"left": True})
            continue
        stage = "made"
        try:
            torch.manual_seed(0)
            model = split(make())[0] if one["made"] is None else made_of(from_json(one["made"]), {})
            if one["part"] and sum(p.numel() for p in model.parameters()) > LARGE:
                found.append({"left": True})
                continue
            stage = "run"
            kept = slice(0, len(inputs.eval) - one["without"])
            given, words = [(*part[kept],) for part in (inputs.eval, inputs.train)], inputs.kwargs
            if one["part"]:
                given, words = parts[one["part"]]
            words = {**words, **one["words"]}
            found.append(tried(model, given, words, Path(folder) / str(number), weights > HUGE))
        except Exception as error:
            said = " ".join(str(error).split())[:200]
            found.append({"raises": f"{type(error).__name__}: {said}{place_of(error)}", "stage": stage})
    return {"tried": found}


def _given_to(paths: Collection[str], model: torch.nn.Module, inputs: Inputs) -> dict[str, tuple[list[Any], Any]]:
    """What modules inside of a model get first in both modes, by position and, in training, by name; not of those that
    do not run, or get something that is neither a tensor nor plain."""
    found: dict[str, dict[bool, Any]] = {path: {} for path in paths}

    def note(path: str, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        given = pytree.tree_map_only(torch.Tensor, _as_given, (args, kwargs))
        found[path].setdefault(module.training, given)

    with suppress(Exception):  # a model that runs in one mode only
        given = _enough(model, [inputs.eval, inputs.train], inputs.kwargs)
        for path in paths:
            model.get_submodule(path).register_forward_pre_hook(functools.partial(note, path), with_kwargs=True)
        for training in (False, True):
            _once(model, given[training], inputs.kwargs, training=training)
    whole = {path: modes for path, modes in found.items() if len(modes) == 2 and _plain(modes)}
    return {path: ([modes[False][0], modes[True][0]], modes[True][1]) for path, modes in whole.items()}


def _as_given(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _plain(given: Any) -> bool:
    """Whether a module's inputs can be made again in MindSpore."""
    if isinstance(given, dict):
        return all(map(_plain, given.values()))
    if type(given) in (list, tuple):
        return all(map(_plain, given))
    return given is None or isinstance(given, (torch.Tensor, np.ndarray, np.generic, bool, int, float, str))


def made_of(value: Any, known: dict[int | None, Any]) -> Any:
    """The object that a construction makes; known: objects that occur more than once, by their numbers."""
    match value:
        case Made(function, args, kwargs):
            if value.id in known:
                return known[value.id]
            words = {key: made_of(item, known) for key, item in kwargs}
            found = named(function)(*(made_of(item, known) for item in args), **words)
            if value.id is not None:
                known[value.id] = found
            return found
        case Items(kind, items):
            return (list if kind == "list" else tuple)(made_of(item, known) for item in items)
        case Pairs(pairs):
            return {made_of(key, known): made_of(item, known) for key, item in pairs}
        case Reference(name):
            return named(name)
        case EnumMember(cls, name):
            return getattr(named(cls), name)
    return value


def named(name: str) -> Any:
    """A class or a function by its qualified name."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def tried(model: torch.nn.Module, given: list[Any], words: Any, to: Path, huge: bool) -> dict[str, Any]:
    """Run a model, and write its weights, inputs and outputs."""
    for_training(let_copy(model))
    if any(tensor.shape == (0,) for tensor in model.state_dict().values() if torch.is_tensor(tensor)):
        return {"left": "a weight has no values, which no checkpoint of MindSpore's holds"}
    with torch.no_grad():  # a new net's ones and zeros would hide swapped tensors
        saved = {id(tensor): tensor for tensor in model.state_dict(keep_vars=True).values()}  # only these cross
        for tensor in saved.values():
            if torch.is_tensor(tensor) and tensor.is_floating_point():
                if tensor.requires_grad:  # what torch.empty leaves in it is not the same twice; masks are infinite
                    tensor[tensor.isnan() | (tensor.isfinite() & (tensor.abs() > LEFT_OPEN))] = 0.0
                # around zero: numbers of one sign would add up to infinity over thousands of inputs
                tensor += 0.04 * (torch.rand_like(tensor) - 0.5)
    torch.save(model.state_dict(), to.with_suffix(".pth"))
    classes = {
        path: [public_name(cls) for cls in type(module).__mro__ if cls is not object]
        for path, module in model.named_modules(remove_duplicate=False)
    }
    fresh, given = copy.deepcopy(model), _enough(model, given, words)
    plain = ran(fresh, given, words, 1)
    again = ran(copy.deepcopy(model), given, words, 2)
    drawn = _differing(plain, again)
    for seed in range(3, 9 if _draws(model, given, words) else 3):  # by chance two draws may be the same
        modes = {key.partition("/")[0] for key in drawn}
        if drawn and all(key in drawn for key in plain if key.partition("/")[0] in modes):
            break
        drawn += [key for key in _differing(plain, ran(copy.deepcopy(model), given, words, seed)) if key not in drawn]
    arrays = {f"plain/{key}": value for key, value in plain.items()}
    if not huge:
        with suppress(Exception):  # a model that names float32 in its code
            wide, wide_words = pytree.tree_map_only(torch.Tensor, _double, (given, words))
            exact = ran(copy.deepcopy(model).double(), wide, wide_words, 1)
            arrays |= {f"exact/{key}": value for key, value in exact.items()}
    leaves: list[Any] = []
    structure = shape_of((*given, dict(words)), leaves)
    arrays |= {f"input/{n}": leaf for n, leaf in enumerate(leaves)}
    np.savez(to.with_suffix(".npz"), **arrays)
    return {"classes": classes, "saved": len(saved), "inputs": structure, "random": drawn}


def _enough(model: torch.nn.Module, given: list[Any], words: Any) -> list[Any]:
    """The inputs for both modes; twice as many for training where one image is too few for a batch's statistics."""
    try:
        _once(copy.deepcopy(model), given[1], words, training=True)
    except Exception:
        return [given[0], tuple(pytree.tree_map_only(torch.Tensor, twice, part) for part in given[1])]
    return given


def _differing(plain: dict[str, Any], again: dict[str, Any]) -> list[str]:
    return [key for key, value in plain.items() if not np.array_equal(again[key], value, equal_nan=True)]


def _once(model: torch.nn.Module, given: Any, words: Any, *, training: bool) -> Any:
    """What a model returns."""
    given, words = _anew((given, words))
    return in_mode(model, training=training)(*given, **words)


def _anew(given: Any) -> Any:
    """A copy, which the model may write into; what a layer before would have computed has a gradient."""
    given = copy.deepcopy(given)
    return pytree.tree_map_only(torch.Tensor, lambda one: one.clone() if one.requires_grad else one, given)


def _draws(model: torch.nn.Module, given: list[Any], words: Any) -> bool:
    """Whether a model draws random numbers in training."""
    before = torch.get_rng_state()
    with torch.no_grad():
        _once(copy.deepcopy(model), given[1], words, training=True)
    return not torch.equal(before, torch.get_rng_state())


def _double(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def shape_of(value: Any, leaves: list[Any]) -> Any:
    """The structure of inputs as JSON: tensors and arrays by their numbers among the leaves, which they join."""
    if isinstance(value, (torch.Tensor, np.ndarray, np.generic)):
        leaves.append(value.detach().numpy() if isinstance(value, torch.Tensor) else value)
        return {"tensor" if isinstance(value, torch.Tensor) else "array": len(leaves) - 1}
    if isinstance(value, (list, tuple)):
        return {"tuple" if isinstance(value, tuple) else "list": [shape_of(item, leaves) for item in value]}
    if isinstance(value, dict):
        return {"dict": {key: shape_of(item, leaves) for key, item in value.items()}}
    return {"value": value}


def ran(model: torch.nn.Module, given: list[Any], words: Any, seed: int) -> dict[str, Any]:
    """The outputs before training, in it, and after it with larger weights; and the norm of the weights' gradient, or
    where none trains of its first input's.

    What NumPy and Python draw is the same in every run, as in MindSpore's; torch draws by the seed.
    """
    torch.manual_seed(seed)
    np.random.seed(0)
    random.seed(0)
    found = outputs(_once(model, given[0], words, training=False), "eval")
    trained, weights = [*_anew(given[1])], [p for p in model.parameters() if p.requires_grad]
    if not weights and trained and isinstance(trained[0], torch.Tensor) and trained[0].is_floating_point():
        weights = [trained[0].detach().requires_grad_()]
        trained[0] = weights[0].clone()  # which the model may write into
    made = in_mode(model, training=True)(*trained, **_anew(words))
    found |= outputs(made, "train")
    factors = ((o, torch.cos(1.7 * torch.arange(o.numel(), dtype=o.dtype))) for o in tensors(made) if o.requires_grad)
    terms = [(o * factor.reshape(o.shape)).sum() for o, factor in factors]
    if terms and weights:
        torch.stack(terms).sum().backward()
        squares = [float((p.grad.double() ** 2).sum()) for p in weights if p.grad is not None]
        found["gradient"] = np.array(sum(squares) ** 0.5)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter *= GROWN
    return found | outputs(_once(model, given[0], words, training=False), "after")


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of floating-point numbers in an output, in order."""
    return [x for x in of_output(value) if x.is_floating_point()]


def outputs(value: Any, mode: str) -> dict[str, Any]:
    """The same, by mode and number."""
    return {f"{mode}/{n}": tensor.detach().numpy().copy() for n, tensor in enumerate(tensors(value))}


if __name__ == "__main__":
    serve(report)
