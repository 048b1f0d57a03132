"""msmigrate: move a PyTorch model to MindSpore and prove that it is still the same model.

from msmigrate import assert_parity     # parity-step in your own test suite
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "assert_parity"]


def __getattr__(name: str) -> Any:
    """Import `assert_parity` when it is asked for: importing msmigrate itself brings nothing along."""
    if name != "assert_parity":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"{__name__}.workflows.parity_step").assert_parity
