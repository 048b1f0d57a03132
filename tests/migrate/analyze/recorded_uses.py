"""Uses as the worker reports them, made up."""

from __future__ import annotations

from typing import Any

TENSOR = {"tensor": ["float32", 4]}


def called(name: str, *args: Any, path: str = "block.0", times: int = 1, **kwargs: Any) -> dict[str, Any]:
    """A function that was called in both modes."""
    return {
        "name": name,
        "kind": "function",
        "args": list(args),
        "kwargs": kwargs,
        "eval": times,
        "train": times,
        "paths": [path],
        "lines": ["net.py:7"],
        "owners": ["net.Block"],
    }


def ran(name: str, path: str = "conv", **kwargs: Any) -> dict[str, Any]:
    """A module with these constructor's arguments that ran in both modes."""
    return {**called(name, path=path, **kwargs), "kind": "module", "lines": [], "owners": []}
