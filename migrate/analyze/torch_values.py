"""The arguments of a call, as the worker's JSON holds them: tensors are only their dtype and number of axes."""

from __future__ import annotations

from enum import Enum
from typing import Any

import torch

LONGEST = 64  # items of a list or characters of a text that are told


def encode(value: Any, depth: int = 0) -> Any:
    """Return the value as JSON can hold it; `values.decode` is the way back."""
    if isinstance(value, torch.Tensor):
        return {"tensor": [str(value.dtype).removeprefix("torch."), value.dim()]}
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else {"float": str(value)}
    if isinstance(value, Enum):
        return encode(value.value)
    if isinstance(value, str):
        return value[:LONGEST]
    if isinstance(value, torch.dtype):
        return {"dtype": str(value)}
    if isinstance(value, slice):
        return {"slice": [encode(end, depth + 1) for end in (value.start, value.stop, value.step)]}
    if value is ...:
        return {"ellipsis": True}
    if isinstance(value, (list, tuple)) and len(value) <= LONGEST and depth < 4:
        items = [encode(item, depth + 1) for item in value]
        return items if isinstance(value, list) else {"tuple": items}
    if callable(value) and hasattr(value, "__name__"):
        return {"thing": f"{value.__module__}.{value.__name__}"}
    if isinstance(value, (torch.device, torch.memory_format, torch.layout)):
        return {"thing": str(value)}
    return {"thing": type(value).__name__}
