"""Where MindSpore's CPU kernels round more than torch's, as measured: the rows of kernels.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from ...mappings.row_reader import Fields, read_yaml

FILE = Path(__file__).with_name("kernels.yaml")


class Kernel(NamedTuple):
    """How far MindSpore's CPU kernel stands from float64, and the part of that which has one sign everywhere, both as
    shares of the result's root mean square.

    torch: the operator's name below autograd. function: what both frameworks call it. way: forward or backward.
    each_addition: the distance is that of one addition of a sum, as a share of the sum so far. near_zero: what a result
    is off besides, however small it is.
    """

    torch: str
    function: str
    way: str
    distance: float
    bias: float
    each_addition: bool = False
    near_zero: float = 0.0


@cache
def kernels() -> tuple[Kernel, ...]:
    """All rows; raises BadInput naming file, row and key."""
    found = []
    for entry in read_yaml(FILE):
        fields = Fields(entry, f"{FILE.name}: {entry!r}")
        kernel = Kernel(
            fields.take("torch", str),
            fields.take("function", str),
            fields.take("way", str),
            fields.take("distance", float),
            fields.take("bias", float),
            fields.take("each_addition", bool, default=False),
            fields.take("near_zero", float, default=0.0),
        )
        fields.done()
        found.append(kernel)
    return tuple(found)
