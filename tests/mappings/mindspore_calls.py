"""How the MindSpore workers make a row's call, and how they differentiate it."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import mindspore as ms
import numpy as np
from mapping_cases import flat, output_names
from mindspore import ops
from msmigrate.mappings import table
from msmigrate.mappings.rows import Call

WRONG: dict[str, dict[str, Any]] = {}  # MindSpore arguments to set wrongly, by torch name


def translate(name: str, *args: Any, **kwargs: Any) -> Call:
    """What the table says, with the faults that the third argument of this program asks for."""
    call = table.translate(name, *args, **kwargs)
    return Call(call.target, call.kwargs | WRONG.get(table.row(name).torch, {}))


def parameters(target: Any) -> list[inspect.Parameter]:
    """The arguments of a MindSpore thing; of functions that hide them, from the first line of their help."""
    found = list(inspect.signature(inspect.unwrap(target)).parameters.values())
    if [p.kind for p in found] != [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]:
        return found
    line = (target.__doc__ or "").strip().partition("\n")[0].partition(" ->")[0]
    spec = ast.parse(f"def {line}: ...").body[0].args
    values = [inspect.Parameter.empty] * (len(spec.args) - len(spec.defaults))
    values += [ast.literal_eval(value) for value in spec.defaults]
    return [
        inspect.Parameter(name.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value)
        for name, value in zip(spec.args, values, strict=True)
    ] + [
        inspect.Parameter(name.arg, inspect.Parameter.KEYWORD_ONLY, default=ast.literal_eval(value))
        for name, value in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
    ]


def differentiate(
    function: Any, xs: list[Any], floating: list[int], weights: list[Any], upstream: Any, mode: str
) -> dict[str, Any]:
    """Outputs, gradients of the inputs in `floating` and of the weights.

    upstream: for each output a tensor, or None where the output has no gradient.
    """
    reached = [index for index, tensor in enumerate(upstream) if tensor is not None]

    def weighted(*tensors: Any) -> Any:
        results = level(function(*tensors))
        total = ops.sum(results[reached[0]] * upstream[reached[0]])
        for index in reached[1:]:
            total = total + ops.sum(results[index] * upstream[index])
        return total, results

    if not reached or (not floating and not weights):
        results = flat((ms.jit(function) if mode == "graph" else function)(*xs))
        return {key: array(x) for key, x in zip(output_names(len(results)), results, strict=True)}
    grad = ms.value_and_grad(weighted, tuple(floating) or None, ms.ParameterTuple(weights) if weights else None, True)
    (_, results), grads = (ms.jit(grad) if mode == "graph" else grad)(*xs)
    by_input, by_weight = grads if floating and weights else ((grads, ()) if floating else ((), grads))
    by_input, by_weight = (part if isinstance(part, (tuple, list)) else (part,) for part in (by_input, by_weight))
    found = {key: array(x) for key, x in zip(output_names(len(results)), results, strict=True)}
    found.update({f"grad.input{index}": part.asnumpy() for index, part in zip(floating, by_input, strict=True)})
    found.update({f"grad.weight{index}": part.asnumpy() for index, part in enumerate(by_weight)})
    return found


def array(result: Any) -> np.ndarray:
    """A tensor's values, or a number's."""
    return result.asnumpy() if isinstance(result, ms.Tensor) else np.asarray(result)


def level(result: Any) -> tuple[Any, ...]:
    """What `flat` does, in words that MindSpore compiles: one tensor, or a tuple of tensors and tuples of tensors."""
    if not isinstance(result, (tuple, list)):
        return (result,)
    found = ()
    for part in result:
        found = found + (tuple(part) if isinstance(part, (tuple, list)) else (part,))
    return found
