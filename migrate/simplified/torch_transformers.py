"""Hugging Face transformers: what its models derive from and call beside their own layers, and nothing more.

A model of that library stands on classes that download, shard, quantise, cache and generate. What of these a model
computes with is here, under the names that the library has for it; see torch_install.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class PreTrainedModel(nn.Module):
    """A model that holds its configuration, and draws its weights once it is whole."""

    def __init__(self, config: Any, *inputs: Any, **kwargs: Any) -> None:
        super().__init__()
        self.config = config

    def post_init(self) -> None:
        """Draw the weights."""
        self.initialize_weights(self)

    def initialize_weights(self, module: nn.Module) -> None:
        """Draw the weights of a module, after those inside it; a model inside has drawn its own."""
        for child in module.children():
            if not isinstance(child, PreTrainedModel):
                self.initialize_weights(child)
        self._init_weights(module)

    def _init_weights(self, module: nn.Module) -> None:
        std = getattr(self.config, "initializer_range", 0.02)
        if isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)):
            nn.init.normal_(module.weight, mean=0.0, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, mean=0.0, std=std)
            if module.padding_idx is not None:
                nn.init.zeros_(module.weight[module.padding_idx])


class GradientCheckpointingLayer(nn.Module):
    """A layer; nothing of it is computed twice to save memory."""


def as_it_is(function: Callable[..., Any] | None = None, **settings: Any) -> Callable[..., Any]:
    """For decorators that take defaults from the configuration, collect hidden states, or make tuples of outputs."""
    return as_it_is if function is None else function


def apply_chunking_to_forward(
    forward_fn: Callable[..., torch.Tensor], chunk_size: int, chunk_dim: int, *input_tensors: torch.Tensor
) -> torch.Tensor:
    """What a function gives for tensors, all of them at once; parts of `chunk_size` would only save memory."""
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
    """The same, and the lowest number also where a key comes `config.sliding_window` places or more before."""
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
    """The ways in which attention can be computed, of which the one that a model writes out itself is taken."""

    def get_interface(self, attn_implementation: str | None, default: Callable[..., Any]) -> Callable[..., Any]:
        """The model's own function."""
        return default
