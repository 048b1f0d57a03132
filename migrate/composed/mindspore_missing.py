"""What a generated file calls where something could not be written."""

from __future__ import annotations

from typing import Any


def not_converted(why: str) -> Any:
    """Raise NotImplementedError: this part of the model has no MindSpore source yet."""
    raise NotImplementedError(why)
