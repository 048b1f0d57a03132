"""One training step of a torch model that the user brought, with what parts of it they brought too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import nn

from ...errors import BadInput, Unsupported
from ...train.recipe import Recipe
from ...train.step import torch_amp
from ...train.step.torch_step import StepResult, TrainStep, build_loss
from .given import Given, checked, first, run_users, single, takes_optimizer, without_optimizer

Inputs: TypeAlias = "torch.Tensor | tuple[torch.Tensor, ...]"


class PairStep(TrainStep):
    """The recipe's step, with the user's loss, optimizer or whole step in place of its own."""

    def __init__(self, recipe: Recipe, model: nn.Module, taken: Given) -> None:
        self.taken = taken
        super().__init__(without_optimizer(recipe) if taken.optimizer else recipe, model)
        if taken.loss is not None:
            self.loss_function = taken.loss
        if taken.optimizer is not None:
            made = taken.optimizer
            self.optimizer = run_users("the torch optimizer", lambda: made(list(self.parameters.values())))
            if not isinstance(self.optimizer, torch.optim.Optimizer):
                raise BadInput(f"the torch optimizer is {type(self.optimizer).__name__}: expected torch.optim's")
            self._take_over(dict(taken.model.named_parameters()))

    def _take_over(self, original: dict[str, nn.Parameter]) -> None:
        """Let the optimizer hold this step's parameters where the user's function put those of their own model into
        its groups, by their names: each precision steps a copy.

        Raises BadInput for parameters of any other model.
        """
        own = dict(self.model.named_parameters())
        copies = {id(parameter): own[name] for name, parameter in original.items()}
        copies |= {id(parameter): parameter for parameter in own.values()}
        for group in self.optimizer.param_groups:
            if not all(id(parameter) in copies for parameter in group["params"]):
                raise BadInput(
                    "the torch optimizer holds a parameter that is none of the compared model's: make its groups of "
                    "the parameters that its function is given"
                )
            group["params"] = [copies[id(parameter)] for parameter in group["params"]]

    def __call__(self, images: Inputs, labels: torch.Tensor, image_gradient: bool = False) -> StepResult:
        """Run one step; images: what the model takes, a tuple where that is several tensors."""
        if self.taken.step is None:
            return super().__call__(images, labels, image_gradient)
        step, model = self.taken.step, self.model
        model.train()
        self.optimizer.zero_grad(set_to_none=True)
        given = (model, self.optimizer) if takes_optimizer(step) else (model,)
        found = checked(run_users("the torch step", lambda: step(*given, images, labels)), torch.Tensor, "torch")
        grads = found.get("grads") or {n: p.grad for n, p in self.parameters.items() if p.grad is not None}
        unknown = [name for name in grads if name not in self.parameters]
        if unknown or not grads:
            what = f"a gradient of {unknown[0]!r}, which no parameter is called" if unknown else "no gradients"
            raise BadInput(f"the torch step returns {what}: return 'grads', by the model's parameter names")
        self.steps += 1
        self._advance("step")
        return StepResult(
            found["loss"].detach(), found["logits"].detach(), {n: g.detach() for n, g in grads.items()}, None
        )

    def gradients(self, images: Inputs, labels: torch.Tensor, image_gradient: bool = False) -> StepResult:
        """The first half of the step, for inputs of any kind."""
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        inputs = images if isinstance(images, tuple) else (images,)
        if image_gradient:
            inputs = tuple(x.detach().clone().requires_grad_(x.is_floating_point()) for x in inputs)
        parts, scale = self.recipe.accumulate, self.loss_scale
        total = torch.zeros((), dtype=next(self.model.parameters()).dtype)
        outputs = []
        for x, y in zip(chunks(inputs, parts), labels.chunk(parts), strict=True):
            output = forward(self.recipe, self.model, x)
            if self.taken.loss is None:
                single(output, torch.Tensor, "torch")
            loss = run_users("the torch loss", partial(self.loss_function, output, y))
            if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
                raise BadInput("the torch loss returns no single number")
            loss = loss.reshape(())
            (loss / parts * scale).backward()
            total += loss.detach() / parts
            outputs.append(first(output, torch.Tensor))
        grads = self.unscaled()
        image_grad = inputs[0].grad / scale if image_gradient and inputs[0].grad is not None else None
        return StepResult(total, torch.cat(outputs).detach(), grads, image_grad)


def replay_loss(recipe: Recipe, taken: Given | None) -> Callable[[Any, torch.Tensor], torch.Tensor]:
    """The loss whose gradients flow back into the modules that then run alone: the user's, else the recipe's.

    Of a step that the user wrote nobody knows the loss; any does, for both sides are given the same gradients.
    """
    if taken is not None and taken.loss is not None:
        return taken.loss
    loss = build_loss(recipe, torch.float32)
    if taken is None or taken.step is None:
        return loss
    return lambda output, labels: loss(first(output, torch.Tensor), labels)


def make_step(recipe: Recipe, model: nn.Module, taken: Given | None) -> TrainStep:
    """The recipe's step, or a pair's."""
    return TrainStep(recipe, model) if taken is None else PairStep(recipe, model, taken)


def chunks(inputs: tuple[torch.Tensor, ...], parts: int) -> Iterator[tuple[torch.Tensor, ...]]:
    """The inputs of each micro-batch."""
    return zip(*(x.chunk(parts) for x in inputs), strict=True)


def forward(recipe: Recipe, model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> Any:
    """The model's output in the precision that the recipe says. Raises Unsupported for O2 and O3 with tokens."""
    amp = recipe.amp
    if len(inputs) == 1 and inputs[0].is_floating_point() and amp is not None:
        return torch_amp.forward(amp, model, inputs[0])
    if amp is None or amp.level == "O0" or next(model.parameters()).dtype != torch.float32:
        return run_users("the torch model", lambda: model(*inputs))
    raise Unsupported("mixed precision is recorded for models with one floating input: leave amp out of the recipe")
