"""msmigrate: move a PyTorch project to MindSpore and prove that it is still the same.

    import msmigrate

    msmigrate.convert("resnet50.pth", "resnet50.ckpt")                             # weights, every tensor accounted for
    msmigrate.parity_step(torch="net.py:build", mindspore="net_ms.py:build")       # one training step, compared
    msmigrate.assert_parity("net.py:build", "net_ms.py:build")                     # the same in your own test suite

Each function does what the command of that name does, in the same processes: neither framework is imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .workflows.analyze import analyze
    from .workflows.compare import compare
    from .workflows.convert_ckpt import convert, inspect, plan
    from .workflows.convert_model import convert_model
    from .workflows.evaluate import evaluate, predict
    from .workflows.export import export
    from .workflows.parity_step import assert_parity, parity_step
    from .workflows.record import record
    from .workflows.train import train

__version__ = "0.1.0"
__all__ = [
    "__version__",
    "analyze",
    "assert_parity",
    "compare",
    "convert",
    "convert_model",
    "evaluate",
    "export",
    "inspect",
    "parity_step",
    "plan",
    "predict",
    "record",
    "train",
]

# function: the file of workflows/ that it is in, where that has another name
_WORKFLOWS = {
    "assert_parity": "parity_step",
    "convert": "convert_ckpt",
    "inspect": "convert_ckpt",
    "plan": "convert_ckpt",
    "predict": "evaluate",
}


def __getattr__(name: str) -> Any:
    """Import a function when it is first used: importing msmigrate itself imports nothing else."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.workflows.{_WORKFLOWS.get(name, name)}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
