"""Put simplified classes and functions in the place of a library's, as it is imported.

A function replaces one of its name in its module, before another file can import it from there; of a class the methods
replace those of the library's class, which stays what it is for `isinstance` and for what loads it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from . import torch_transformers as hf

# a library's module -> its names -> what stands there instead
REPLACED: Mapping[str, Mapping[str, Any]] = {
    "transformers.modeling_utils": {
        "PreTrainedModel": hf.PreTrainedModel,
        "AttentionInterface": hf.AttentionInterface,
    },
    "transformers.modeling_layers": {"GradientCheckpointingLayer": hf.GradientCheckpointingLayer},
    "transformers.utils.generic": {
        "merge_with_config_defaults": hf.as_it_is,
        "can_return_tuple": hf.as_it_is,
    },
    "transformers.utils.output_capturing": {"capture_outputs": hf.as_it_is},
    "transformers.modeling_rope_utils": {"dynamic_rope_update": hf.as_it_is},
    "transformers.pytorch_utils": {"apply_chunking_to_forward": hf.apply_chunking_to_forward},
    "transformers.masking_utils": {
        "create_bidirectional_mask": hf.create_bidirectional_mask,
        "create_causal_mask": hf.create_causal_mask,
        "create_sliding_window_causal_mask": hf.create_sliding_window_causal_mask,
    },
}


def install() -> None:
    """From now on, import the libraries with what is simplified of them."""
    for module in REPLACED:
        if module in sys.modules:
            _put(sys.modules[module])
    sys.meta_path.insert(0, _Finder())


def for_training(model: nn.Module) -> None:
    """Let a model of transformers return no keys and values for a next token, which training does not use, and compute
    attention as its own code writes it, which is what is moved."""
    for module in model.modules():
        config: Any = getattr(module, "config", None)
        if not type(config).__module__.startswith("transformers."):
            continue
        if getattr(config, "use_cache", None) is True:
            config.use_cache = False
        if getattr(config, "_attn_implementation", None) == "sdpa":
            config._attn_implementation = "eager"


def tie_weights(model: nn.Module) -> None:
    """Tie the weights of a model of transformers, which its simplified class leaves as they are made."""
    if any(cls.__module__ == "transformers.modeling_utils" for cls in type(model).__mro__):
        model.tie_weights()


def simplified_names() -> dict[str, str]:
    """The library's classes whose source is simplified -> where that stands."""
    return {
        f"{module}.{name}": f"{new.__module__}.{new.__qualname__}"
        for module, names in REPLACED.items()
        for name, new in names.items()
        if isinstance(new, type)
    }


class _Finder(importlib.abc.MetaPathFinder):
    """Finds what Python finds, with a loader that replaces afterwards."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target) if fullname in REPLACED else None
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs a module, and replaces what is simplified of it."""

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        _put(module)


def _put(module: types.ModuleType) -> None:
    for name, new in REPLACED[module.__name__].items():
        old = vars(module).get(name)
        if isinstance(new, type) and isinstance(old, type):
            _methods(old, new)
        elif old is not None:
            setattr(module, name, new)


def _methods(old: type, new: type) -> None:
    """Give a class the functions of another; `super()` in them looks from where they stand now."""
    for name, function in vars(new).items():
        if isinstance(function, types.FunctionType):
            cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            inside = tuple(types.CellType(old) if free == "__class__" else cell for free, cell in cells)
            code = function.__code__
            moved = types.FunctionType(code, function.__globals__, name, function.__defaults__, inside)
            moved.__kwdefaults__, moved.__qualname__ = function.__kwdefaults__, function.__qualname__
            moved.__module__ = function.__module__
            setattr(old, name, moved)
