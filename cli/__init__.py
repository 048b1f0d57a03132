"""The commands. `main` is the console script."""

from __future__ import annotations

from .group import main

__all__ = ["main"]
