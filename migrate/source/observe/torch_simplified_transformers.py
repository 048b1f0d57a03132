"""Simplified code of Hugging Face's transformers for its models, and how it replaces the library's.

A model of that library is built on classes that download, shard, quantise, cache and generate. The parts of these that
a model computes with are here, under the library's names.

A function replaces the library's in its module, before another file can import it from there; a class's methods replace
those of the library's class, which stays the same class for `isinstance` and for code that loads it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from .torch_collected_outputs import capture_outputs, filter_output_hidden_states


class PreTrainedModel(nn.Module):
    """A model that holds its configuration, and draws its weights once it is complete."""

    def __init__(self, config: Any, *inputs: Any, **kwargs: Any) -> None:
        super().__init__()
        self.config = config

    @classmethod
    def _from_config(cls, config: Any, **kwargs: Any) -> nn.Module:
        return cls(config)

    def post_init(self) -> None:
        """Draw the weights."""
        self.initialize_weights(self)

    def initialize_weights(self, module: nn.Module) -> None:
        """Draw the weights of a module, after those of its children; a model inside has already drawn its own."""
        for child in module.children():
            if not isinstance(child, PreTrainedModel):
                self.initialize_weights(child)
        self._init_weights(module)

    def _init_weights(self, module: nn.Module) -> None:
        std = getattr(self.config, "initializer_range", 0.02)
        if isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d)):
            nn.init.normal_(module.weight, mean=0.0, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, mean=0.0, std=std)
            if module.padding_idx is not None:
                nn.init.zeros_(module.weight[module.padding_idx])


class PreTrainedConfig:
    """A configuration; unless requested otherwise, attention and experts are computed by the model's own code."""

    _attn_implementation_internal: str | None
    _experts_implementation_internal: str | None

    @property
    def _attn_implementation(self) -> str:
        return self._attn_implementation_internal or "eager"

    @property
    def _experts_implementation(self) -> str:
        return self._experts_implementation_internal or "eager"


class BackboneMixin:
    """A backbone that returns feature maps, by its configuration's names and indices of stages; not one of timm."""

    config: Any
    has_attentions: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stage_names = self.config.stage_names
        self.num_features: Any = None

    @property
    def out_features(self) -> list[str]:
        return self.config._out_features

    @property
    def out_indices(self) -> list[int]:
        return self.config._out_indices

    @property
    def out_feature_channels(self) -> dict[str, int]:
        return {stage: self.num_features[i] for i, stage in enumerate(self.stage_names)}

    @property
    def channels(self) -> list[int]:
        return [self.out_feature_channels[name] for name in self.out_features]

    def post_init(self) -> None:
        """Draw the weights."""
        super().post_init()  # type: ignore[misc]

    def forward_with_filtered_kwargs(self, *args: Any, **kwargs: Any) -> Any:
        """Call it, without the argument that requests attentions where it has none."""
        if not self.has_attentions:
            kwargs.pop("output_attentions", None)
        return self(*args, **kwargs)  # type: ignore[operator]


class GradientCheckpointingLayer(nn.Module):
    """A layer without gradient checkpointing."""


def as_it_is(function: Callable[..., Any] | None = None, **settings: Any) -> Callable[..., Any]:
    """Replaces decorators that take defaults from the configuration, or make tuples of outputs."""
    return as_it_is if function is None else function


def left_out(*names: Any, **settings: Any) -> Callable[..., Any]:
    """Replaces decorators with arguments that look for a faster kernel, or move weights between devices."""
    return as_it_is


def apply_chunking_to_forward(
    forward_fn: Callable[..., torch.Tensor], chunk_size: int, chunk_dim: int, *input_tensors: torch.Tensor
) -> torch.Tensor:
    """Call a function on whole tensors; chunks of `chunk_size` would only save memory."""
    return forward_fn(*input_tensors)


def create_bidirectional_mask(
    config: Any, inputs_embeds: torch.Tensor, attention_mask: torch.Tensor | None, **kwargs: Any
) -> torch.Tensor | None:
    """What to add to the scores of attention: the lowest number where a key is padding, 0 elsewhere.

    attention_mask: (batch, keys), 0 for padding; None where there is none, and then there is nothing to add.
    """
    return None if attention_mask is None else lowest_where(attention_mask[:, None, None, :] == 0, inputs_embeds)


def create_causal_mask(
    config: Any,
    inputs_embeds: torch.Tensor,
    attention_mask: torch.Tensor | None,
    past_key_values: Any = None,
    position_ids: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """What to add to the scores of attention: the lowest number where a key comes later or is padding, 0 elsewhere.

    attention_mask: (batch, keys), 0 for padding; None where there is none.
    """
    places = torch.arange(inputs_embeds.shape[1], device=inputs_embeds.device)
    hidden = (places[None, :] > places[:, None])[None, None]
    return lowest_where(hidden, inputs_embeds, attention_mask)


def create_sliding_window_causal_mask(
    config: Any,
    inputs_embeds: torch.Tensor,
    attention_mask: torch.Tensor | None,
    past_key_values: Any = None,
    position_ids: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """As create_causal_mask, with the lowest number also where a key is `config.sliding_window` places or more back."""
    places = torch.arange(inputs_embeds.shape[1], device=inputs_embeds.device)
    before = places[:, None] - places[None, :]
    hidden = ((before < 0) | (before >= config.sliding_window))[None, None]
    return lowest_where(hidden, inputs_embeds, attention_mask)


def lowest_where(
    hidden: torch.Tensor, inputs_embeds: torch.Tensor, attention_mask: torch.Tensor | None = None
) -> torch.Tensor:
    """The lowest number of the embeddings' dtype where a key is hidden or padding, 0 elsewhere."""
    if attention_mask is not None:
        hidden = hidden | (attention_mask[:, None, None, :] == 0)
    lowest = torch.finfo(inputs_embeds.dtype).min
    return torch.zeros_like(hidden, dtype=inputs_embeds.dtype).masked_fill(hidden, lowest)


class AttentionInterface:
    """The implementations of attention; the one in the model's own code is taken."""

    def get_interface(self, attn_implementation: str | None, default: Callable[..., Any]) -> Callable[..., Any]:
        """The model's own function."""
        return default


# a library's module -> its names -> the replacement
REPLACED: Mapping[str, Mapping[str, Any]] = {
    "transformers.configuration_utils": {"PreTrainedConfig": PreTrainedConfig},
    "transformers.modeling_utils": {
        "PreTrainedModel": PreTrainedModel,
        "AttentionInterface": AttentionInterface,
    },
    "transformers.modeling_layers": {"GradientCheckpointingLayer": GradientCheckpointingLayer},
    "transformers.utils.generic": {
        "merge_with_config_defaults": as_it_is,
        "can_return_tuple": as_it_is,
    },
    "transformers.utils.output_capturing": {"capture_outputs": capture_outputs},
    "transformers.backbone_utils": {
        "BackboneMixin": BackboneMixin,
        "filter_output_hidden_states": filter_output_hidden_states,
    },
    "transformers.integrations.accelerate": {"force_accelerate_hooks": left_out},
    "transformers.integrations.hub_kernels": {
        "use_kernel_forward_from_hub": left_out,
        "use_kernel_func_from_hub": left_out,
        "use_kernel_func_from_hub_with_fallback": left_out,
        "use_kernelized_func": left_out,
    },
    "transformers.integrations.moe": {"use_experts_implementation": as_it_is},
    "transformers.modeling_rope_utils": {"dynamic_rope_update": as_it_is},
    "transformers.pytorch_utils": {"apply_chunking_to_forward": apply_chunking_to_forward},
    "transformers.masking_utils": {
        "create_bidirectional_mask": create_bidirectional_mask,
        "create_causal_mask": create_causal_mask,
        "create_sliding_window_causal_mask": create_sliding_window_causal_mask,
    },
}


def install() -> None:
    """Replace the simplified names in the libraries, now and in later imports."""
    for module in REPLACED:
        if module in sys.modules:
            _put(sys.modules[module])
    sys.meta_path.insert(0, _Finder())


def for_training(model: nn.Module) -> None:
    """Make a model of transformers return no keys and values for a next token, which training does not use, and compute
    attention and experts by its own code, which is what is converted."""
    for module in model.modules():
        config: Any = getattr(module, "config", None)
        if not type(config).__module__.startswith("transformers."):
            continue
        if getattr(config, "use_cache", None) is True:
            config.use_cache = False
        if getattr(config, "_attn_implementation", None) == "sdpa":
            config._attn_implementation = "eager"
        if getattr(config, "_experts_implementation", None) is not None:
            config._experts_implementation = "eager"


def tie_weights(model: nn.Module) -> None:
    """Tie the weights of a model of transformers, which its simplified class does not do."""
    if any(cls.__module__ == "transformers.modeling_utils" for cls in type(model).__mro__):
        model.tie_weights()


def simplified_names() -> dict[str, str]:
    """The library's classes whose source is simplified -> the simplified classes."""
    return {
        f"{module}.{name}": f"{new.__module__}.{new.__qualname__}"
        for module, names in REPLACED.items()
        for name, new in names.items()
        if isinstance(new, type)
    }


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules as Python does, with a loader that then replaces names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target) if fullname in REPLACED else None
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs a module, and replaces its simplified names."""

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
    """Give a class the functions of another; `super()` in them then refers to the bases of the first."""
    for name, member in vars(new).items():
        function = member.__func__ if isinstance(member, classmethod) else member
        if isinstance(function, property):
            setattr(old, name, vars(old)[name].getter(function.fget))
        elif isinstance(function, types.FunctionType):
            cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            inside = tuple(types.CellType(old) if free == "__class__" else cell for free, cell in cells)
            code = function.__code__
            moved = types.FunctionType(code, function.__globals__, name, function.__defaults__, inside)
            moved.__kwdefaults__, moved.__qualname__ = function.__kwdefaults__, function.__qualname__
            moved.__module__ = function.__module__
            setattr(old, name, classmethod(moved) if member is not function else moved)
