"""How exactly two implementations of a module that runs alone must agree, where torch happens to be nearly exact."""

from __future__ import annotations

from ...train.step.groups import is_norm
from ..judge import FLOOR_ULPS
from ..trace import ALONE, Entry

# A norm is additions, products and one square root, which everybody rounds correctly: alone, on the same input, the
# frameworks' norms stand at most 1.5 times as far from float64 as torch itself does, without any floor. An activation's
# exponential is another matter: MindSpore's Sigmoid is 2 units in the last place away where torch's is a quarter.
NORM_ULPS = 1.0


def floor_ulps(entry: Entry) -> float:
    """The floor below a tensor's noise, in units of float32's epsilon: a norm that ran alone is held to one."""
    alone = entry.part == ALONE and entry.module is not None and is_norm(entry.module)
    return NORM_ULPS if alone else FLOOR_ULPS
