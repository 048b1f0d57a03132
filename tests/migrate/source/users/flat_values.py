"""What both workers do with outputs: the tensors in them, and the weights of the sum whose gradient is compared."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from msmigrate.migrate.library_names import parts_of_distribution


def flat(value: Any, kind: type) -> list[Any]:
    """The tensors in an output, however it is nested, in their order."""
    if isinstance(value, kind):
        return [value]
    if is_dataclass(value):
        value = [getattr(value, field.name) for field in fields(value)]
    value = parts_of_distribution(value) or value
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for item in value for tensor in flat(item, kind)] if isinstance(value, (list, tuple)) else []


def weights_for(shape: Any) -> Any:
    """Numbers between -1 and 1 in a shape, the same in both frameworks."""
    count = int(np.prod(tuple(shape)))
    return np.cos(np.arange(count, dtype=np.float32) * 1.7).reshape(tuple(shape)).astype(np.float32)
