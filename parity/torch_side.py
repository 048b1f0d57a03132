"""PyTorch's side of a recorded step, in float32, in float32 with another memory layout, or in float64."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import numpy as np
import torch
from torch import nn

from ..mappings import table
from ..train.recipe import Recipe
from ..train.torch_step import TrainStep
from .kinks import KinkSides, taking
from .record import POOLED, Arrays, LeafOutput, Seen, StepArrays


class TorchSide:
    """A torch model in one precision, at the starting weights, with the step that the recipe describes.

    model: float32, copied, never changed. variant: 0 is the step as it stands; an odd variant runs it in
    channels_last layout, with other kernels and another order of additions; from 2 on, every weight and pixel is
    moved by at most half a unit in its last place as well. What differs between variants is rounding alone.
    """

    def __init__(self, recipe: Recipe, model: nn.Module, dtype: torch.dtype, variant: int = 0) -> None:
        self.recipe = recipe
        self.dtype = dtype
        self.variant = variant
        self.sides: list[KinkSides] = []  # for each step to come, the sides its ReLUs take
        self.layout = torch.channels_last if variant % 2 else torch.contiguous_format
        self._start = copy.deepcopy(model)
        if variant > 1:
            with torch.no_grad():
                for parameter in self._start.parameters():
                    parameter.copy_(torch.from_numpy(jiggled(parameter.numpy(), variant)))
        self.restart()

    def restart(self) -> None:
        """Back to the starting weights with a new optimizer and schedule."""
        self.model = copy.deepcopy(self._start).to(self.dtype).to(memory_format=self.layout)
        self.train_step = TrainStep(self.recipe, self.model)

    def parameters(self) -> Arrays:
        """Trainable parameters as they are now."""
        return {name: _numpy(p) for name, p in self.model.named_parameters() if p.requires_grad}

    def buffers(self) -> Arrays:
        """Buffers that have a counterpart in MindSpore; the mapping table drops the others (num_batches_tracked)."""
        dropped = dropped_state(self.model)
        frozen = {name: p for name, p in self.model.named_parameters() if not p.requires_grad}
        return {n: _numpy(b) for n, b in {**frozen, **dict(self.model.named_buffers())}.items() if n not in dropped}

    def evaluate(self, images: np.ndarray, seen: Seen) -> None:
        """A forward pass in evaluation mode."""
        self.model.eval()
        with torch.no_grad(), leaf_outputs(self.model, seen):
            self.model(self._images(images))

    def forward(self, images: np.ndarray, seen: Seen) -> None:
        """A forward pass in training mode, micro-batch by micro-batch as the step takes it; the running statistics
        move."""
        self.model.train()
        with torch.no_grad(), leaf_outputs(self.model, seen):
            for part in self._images(images).chunk(self.recipe.accumulate):
                self.model(part)

    def step(self, images: np.ndarray, labels: np.ndarray, seen: Seen | None) -> StepArrays:
        """One training step; `seen` is told of every leaf module's output."""
        x, y = self._images(images), self._labels(labels)
        with ExitStack() as watching:
            if seen is not None:
                watching.enter_context(leaf_outputs(self.model, seen))
            if self.sides:
                watching.enter_context(taking(self.sides.pop(0), self.model))
            result = self.train_step(x, y, image_gradient=True)
        assert result.image_grad is not None
        grads = {name: _numpy(grad) for name, grad in result.grads.items()}
        return StepArrays(_numpy(result.loss), _numpy(result.logits), grads, _numpy(result.image_grad))

    def optimizer_state(self) -> Mapping[str, Arrays]:
        """State key -> name -> tensor, for the keys that the mapping table lets cross."""
        crossing = {state.torch for state in table.row(self.recipe.optimizer.name).state if state.mindspore}
        state = self.train_step.optimizer_state()
        return {key: {n: _numpy(t) for n, t in state[key].items()} for key in state if key in crossing}

    def hyperparameters(self) -> Arrays:
        """Name -> [learning rate, weight decay] of its next update."""
        rates, decays = self.train_step.learning_rates(), self.train_step.weight_decays()
        return {name: np.array([rates[name], decays[name]]) for name in rates}

    def apply(self, grads: Arrays) -> None:
        """Clip and apply these unscaled gradients."""
        self.train_step.apply({name: torch.from_numpy(grad).to(self.dtype) for name, grad in grads.items()})

    def loss(self, logits: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss of given logits, and its gradient by them."""
        x = torch.from_numpy(logits).to(self.dtype).requires_grad_()
        value = self.train_step.loss_function(x, self._labels(labels))
        (gradient,) = torch.autograd.grad(value.sum(), x)
        return _numpy(value), _numpy(gradient)

    def _images(self, images: np.ndarray) -> torch.Tensor:
        images = jiggled(images, self.variant) if self.variant > 1 else images
        return torch.from_numpy(images).to(self.dtype).contiguous(memory_format=self.layout)

    def _labels(self, labels: np.ndarray) -> torch.Tensor:
        tensor = torch.from_numpy(labels)
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor


def jiggled(array: np.ndarray, seed: int) -> np.ndarray:
    """float32 values each moved by up to 2**-24 of themselves: half a unit in the last place, which may or may not
    round to a neighbour."""
    draws = np.random.default_rng(seed).uniform(-1.0, 1.0, array.shape)
    return (array * (1.0 + draws * 2.0**-24)).astype(np.float32)


@contextmanager
def leaf_outputs(model: nn.Module, seen: Seen) -> Iterator[None]:
    """Tell `seen` of every leaf module's output, at once: an in-place module after it would overwrite the values."""
    calls: dict[str, int] = {}

    def hook_for(name: str) -> object:
        def hook(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: object) -> None:
            if isinstance(output, torch.Tensor):
                call = calls.get(name, 0)
                calls[name] = call + 1
                kind = type(module).__name__
                source = _numpy(inputs[0]) if kind in POOLED else None
                seen(LeafOutput(name, call, kind, _numpy(output), source))

        return hook

    # the model itself when it is a single layer, every childless module otherwise
    handles = [
        module.register_forward_hook(hook_for(name))
        for name, module in model.named_modules()
        if not any(True for _ in module.children())
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def dropped_state(model: nn.Module) -> set[str]:
    """State_dict names that have no counterpart in MindSpore according to the mapping table."""
    rows = {row.torch.rsplit(".", 1)[-1]: row for row in table.rows("layer")}
    dropped = set()
    for path, module in model.named_modules():
        row = rows.get(type(module).__name__)
        for state in row.state if row else ():
            if state.mindspore is None and state.torch is not None:
                dropped.add(f"{path}.{state.torch}" if path else state.torch)
    return dropped


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().contiguous().numpy()
    return array
