"""The sides that ReLUs take which are function calls: `ops.relu(x)` in a Cell's construct, or a Cell whose counterpart
in torch is a function call.

They have no name of their own: they are numbered in the innermost module that torch has too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from mindspore import Tensor, nn, ops

from .kinks import BY_INPUT, KINKED, choice, function_name

# every way to one of these functions ends in its primitive: ops, mint, and the layers of nn
PRIMITIVES = {"ReLU": ops.ReLU, "ReLU6": ops.ReLU6, "Hardswish": ops.HSwish, "Hardsigmoid": ops.HSigmoid}

Keep = Callable[[str, int, str, np.ndarray], None]


@contextmanager
def function_choices(cells: Mapping[str, tuple[nn.Cell, str | None]], keep: Keep) -> Iterator[None]:
    """Within this block, tell `keep` of every such call: name (`layer1.relu()`), number, torch class and choice.

    cells: the Cells that torch has too, by torch's path, with their torch class; what a layer with kinks calls inside
    is its own affair. PyNative only.
    """
    inside: list[str | None] = [""]  # the innermost module that torch has too; None: a layer that is kept by its name
    calls: dict[str, int] = {}

    def entering(path: str, kind: str | None) -> object:
        def hook(_: nn.Cell, __: tuple[Any, ...]) -> None:
            inside.append(None if kind in KINKED else path)

        return hook

    def leaving(*_: Any) -> None:
        inside.pop()

    def watched(kind: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(primitive: Any, x: Tensor, *rest: Any) -> Any:
            output = call(primitive, x, *rest)
            if inside[-1] is not None:
                name = function_name(inside[-1], kind)
                number = calls.get(name, 0)
                calls[name] = number + 1
                made = choice(kind, output.asnumpy(), x.asnumpy() if kind in BY_INPUT else None)
                assert made is not None
                keep(name, number, kind, made)
            return output

        return wrapper

    with ExitStack() as undo:
        for path, (cell, kind) in cells.items():
            undo.callback(cell.register_forward_pre_hook(entering(path, kind)).remove)
            undo.callback(cell.register_forward_hook(leaving).remove)
        for kind, primitive in PRIMITIVES.items():
            undo.enter_context(patch.object(primitive, "__call__", watched(kind, primitive.__call__)))
        yield
