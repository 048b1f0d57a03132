"""What a side needs to know of a pair beyond the recipe: what the user brought, and what corresponds."""

from __future__ import annotations

from dataclasses import dataclass

from .alignment import Alignment
from .given import Given


@dataclass(frozen=True)
class Paired:
    """One side's model with its parts, and the alignment of both."""

    given: Given
    alignment: Alignment
