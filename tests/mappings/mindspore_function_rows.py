"""The cases of functions in MindSpore."""

from __future__ import annotations

import inspect
from typing import Any

import mindspore as ms
from mapping_cases import draw, inputs
from mindspore_calls import differentiate, translate
from msmigrate.mappings.resolve import resolve, value_of
from msmigrate.mappings.rows import Case, Row


def run_function(name: str, row: Row, case: Case, mode: str) -> dict[str, Any]:
    """A function: forward and input gradients."""
    xs = [ms.Tensor(array) for array in inputs(name, case)]
    call = translate(row.torch, case.args, (xs,) if case.pack else tuple(xs))
    tensors = [argument.to[0] for argument in row.arguments[: 1 if case.pack else len(xs)]]
    fixed = {key: value_of(value) for key, value in call.kwargs.items() if key not in tensors}
    target = resolve(call.target)

    def spread(*values: Any) -> Any:
        return target(*values, **fixed)

    def packed(*values: Any) -> Any:
        return target(list(values), **fixed)

    function = packed if case.pack else spread
    # In these rows the tensors come first on both sides, in the same order.
    assert list(inspect.signature(target).parameters)[: len(tensors)] == tensors
    result = (ms.jit(function) if mode == "graph" and not case.train else function)(*xs)
    if not case.train:
        return {"random": result.asnumpy()}
    upstream = [ms.Tensor(draw(f"{name}/upstream", tuple(result.shape)))]
    floating = [index for index, x in enumerate(xs) if x.dtype == ms.float32]
    return differentiate(function, xs, floating, [], upstream, mode)
