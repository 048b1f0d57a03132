"""The cases of functions in MindSpore."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mapping_cases import bind, draw, flat, inputs, pairs, without_gradient
from mindspore import ops
from mindspore_calls import array, differentiate, parameters, translate
from msmigrate.mappings.rows import Case, Row, resolve, value_of

FLOATING = (ms.float32, ms.float16, ms.float64)
COMPLEX = (ms.complex64, ms.complex128)
CONSTANT = -1


def run_function(name: str, row: Row, case: Case, mode: str) -> dict[str, Any]:
    """A function: forward and input gradients."""
    ms.set_seed(3)
    xs = [ms.Tensor(values) for values in inputs(name, case)]
    if case.made:
        function = over_made(row, case)
    else:
        call = translate(row.torch, bind(row, case, xs))
        function = of_parts(over_inputs(resolve(call.target), call.kwargs, xs), pairs(case))
    results = flat((ms.jit(function) if mode == "graph" and not case.train else function)(*xs))
    if not case.train:
        return {"random": array(results[0])}
    upstream = [
        ms.Tensor(draw(f"{name}/upstream", tuple(x.shape))).astype(x.dtype)
        if isinstance(x, ms.Tensor) and x.dtype in FLOATING
        else None
        for x in results
    ]
    fixed = without_gradient(case)
    floating = [index for index, x in enumerate(xs) if x.dtype in FLOATING and index not in fixed]
    return differentiate(function, xs, floating, [], upstream, mode)


def of_parts(function: Any, whole: set[int]) -> Any:
    """The function with its complex inputs and results as their two parts along a last axis, which have gradients."""

    def parted(result: Any) -> Any:
        if isinstance(result, ms.Tensor) and result.dtype in COMPLEX:
            return ops.stack([ops.real(result), ops.imag(result)], -1)
        return result

    def function_of_parts(*tensors: Any) -> Any:
        arranged = ()
        for index in range(len(tensors)):
            x = tensors[index]
            arranged = (*arranged, join(x[..., 0], x[..., 1]) if index in whole else x)
        return parted(function(*arranged))

    join = ops.Complex()
    return function_of_parts


def over_made(row: Row, case: Case) -> Any:
    """The call as a function of all its inputs, of which the first make arguments, as distributions."""
    count = sum(len(names) for classes in case.made.values() for names in classes.values())
    makers = [
        (resolve(translate(cls, dict.fromkeys(names, 0.5)).target), tuple(names))
        for classes in case.made.values()
        for cls, names in classes.items()
    ]
    target = resolve(str(row.mindspore))
    constants = tuple(tuple(value) if isinstance(value, list) else value for value in case.args.values())

    def function(*tensors: Any) -> Any:
        arranged, place = (), 0
        for make, names in makers:
            if len(names) == 2:
                arranged = (*arranged, make(tensors[place], tensors[place + 1]))
            elif names[0] == "logits":
                arranged = (*arranged, make(None, tensors[place]))
            else:
                arranged = (*arranged, make(tensors[place]))
            place = place + len(names)
        return target(*arranged, *tensors[count:], *constants)

    return function


def over_inputs(target: Any, kwargs: dict[str, Any], xs: list[Any]) -> Any:
    """The call as a function of its input tensors alone; the other arguments are constants, which a graph needs.

    The arguments up to the last that holds an input are passed one by one, in MindSpore's order, the rest by name.
    """
    values = {key: value_of(value) for key, value in kwargs.items()}
    stars = {p.name: "*" if p.kind is p.VAR_POSITIONAL else "" for p in parameters(target)}
    order = [f"{star}{key}" for key, star in stars.items()]
    places = {key: place(value, xs) for key, value in values.items()}
    named = [key for key, where in places.items() if where != CONSTANT or key.startswith("*")]
    last = max(map(order.index, named), default=-1)
    leading = order[: last + 1]
    spread = leading[-1].startswith("*") if leading else False
    where = tuple(places[key] for key in leading)
    constants = tuple(values[key] if places[key] == CONSTANT else None for key in leading)
    if spread and where[-1] == CONSTANT:
        numbers = tuple(values[leading[-1]])
        where, constants = where[:-1] + (CONSTANT,) * len(numbers), constants[:-1] + numbers
    rest = {key: value for key, value in values.items() if key not in leading}

    def function(*tensors: Any) -> Any:
        arranged = ()
        for index in range(len(where)):
            if where[index] == CONSTANT:
                arranged = (*arranged, constants[index])
            elif isinstance(where[index], tuple):
                several = [tensors[one] for one in where[index]]
                arranged = arranged + (tuple(several) if spread else (several,))
            else:
                arranged = (*arranged, tensors[where[index]])
        return target(*arranged, **rest)

    return function


def place(value: Any, xs: list[Any]) -> Any:
    """Which of the inputs a value is, or which ones a list holds; CONSTANT when none."""
    if isinstance(value, (list, tuple)):
        found = tuple(place(item, xs) for item in value)
        return found if found and CONSTANT not in found else CONSTANT
    return next((index for index, x in enumerate(xs) if value is x), CONSTANT)
