"""TrainStep in torch, with AMP and EMA."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_map_only

from ...errors import BadInput, BadRecipe
from ...mappings import table
from ...mappings.rows import resolve
from ...migrate import model_spec
from ...migrate.torch_models import builder_of
from ..models import model_names
from ..recipe.schema import Amp, DynamicLossScale, Ema, Part, Recipe, decay, table_args
from .parameter_groups import is_norm, parameter_groups

HALVES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def forward(amp: Amp | None, model: nn.Module, images: torch.Tensor) -> Any:
    """The model's output in the model's own dtype, computed in mixed precision where that is float32.

    A float64 model is the reference, and runs without mixed precision. O1: under torch.autocast. O2: weights and images
    are rounded, except the norms' weights; norms take half precision and compute with float32 statistics. O3: the
    norms' weights too. The model's parameters stay float32, and the gradients that reach them passed through the
    rounding. images: (N, C, H, W).
    """
    dtype = next(model.parameters()).dtype
    if amp is None or amp.level == "O0" or dtype != torch.float32:
        return model(images)
    half = HALVES[amp.dtype]
    if amp.level == "O1":
        with torch.autocast(images.device.type, half):
            output = model(images)
        return _cast(output, dtype)
    norms = {name for name, module in model.named_modules() if is_norm(type(module).__name__)}
    weights = {}
    for name, parameter in model.named_parameters():
        if name.rpartition(".")[0] not in norms:
            weights[name] = parameter.to(half)
        elif amp.level == "O3":
            weights[name] = parameter.to(half).to(dtype)  # a norm's kernel needs them in the dtype of its statistics
    return _cast(torch.func.functional_call(model, weights, (images.to(half),)), dtype)


def _cast(output: Any, dtype: torch.dtype) -> Any:
    """A model's output, of any structure, with its floating tensors in this dtype."""
    return tree_map_only(torch.Tensor, lambda x: x.to(dtype) if x.is_floating_point() else x, output)


def joined(outputs: list[torch.Tensor]) -> torch.Tensor:
    """What a model returned for each part of a batch, as one tensor; single numbers, such as a loss, as a vector."""
    if len(outputs) == 1:
        return outputs[0]
    return torch.cat(outputs) if outputs[0].ndim else torch.stack(outputs)


class MovingAverage:
    """An average of everything in the model's state_dict, which starts as a copy of it.

    The rule is that of timm.utils.ModelEmaV2 and, under warm-up, ModelEmaV3; integer buffers (num_batches_tracked) are
    copied. The average is in the model's own dtype.
    """

    def __init__(self, ema: Ema, model: nn.Module) -> None:
        self._rule = ema
        self.tensors = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}

    def update(self, model: nn.Module, number: int) -> None:
        """Take the given update, counted from 1."""
        weight = 1.0 - decay(self._rule, number)
        with torch.no_grad():
            for name, value in model.state_dict().items():
                average = self.tensors[name]
                if average.is_floating_point():
                    average.lerp_(value, weight)
                else:
                    average.copy_(value)


@dataclass(frozen=True)
class StepResult:
    """What one step computed.

    loss: scalar mean over the micro-batches, unscaled. logits: (N, K), or None for a user's step that shows none.
    grads: state_dict name -> gradient, unscaled, before clipping; none for a parameter that does not affect the loss.
    image_grad: gradient of the loss by the images, (N, C, H, W), or None when it was not requested.
    finite: whether all gradients were finite, or None (not checked) without a loss scale.
    """

    loss: torch.Tensor
    logits: torch.Tensor | None
    grads: dict[str, torch.Tensor]
    image_grad: torch.Tensor | None
    finite: bool | None = None


class TrainStep:
    """Forward, loss, gradient, unscale, look for overflow, clip, update, average, move the schedule on.

    `model` decides the precision: a float64 model gives the reference step, without mixed precision. The weights change
    in place. A parameter that does not affect the loss is left alone: no gradient, no decay, no optimizer state.

    As in the usual loop, a step that is skipped because of an overflow still moves the schedule and the moving average.
    In float64 little overflows: `decisions` (for each coming step, whether its gradients count as finite) makes the
    reference skip the steps that a run in the recipe's own precision skipped.
    """

    def __init__(self, recipe: Recipe, model: nn.Module) -> None:
        self.recipe = recipe
        self.model = model
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.loss_function = build_loss(recipe, next(model.parameters()))
        self.optimizer = build_optimizer(recipe, model)
        self.schedule = build_schedule(recipe.schedule, self.optimizer) if recipe.schedule else None
        self.scaler = LossScale.of(recipe)
        self.average = MovingAverage(recipe.ema, model) if recipe.ema else None
        self.steps = 0  # steps taken, skipped ones included
        self.decisions: list[bool] = []

    def __call__(self, images: torch.Tensor, labels: torch.Tensor, image_gradient: bool = False) -> StepResult:
        """Run one step on a batch.

        images: (N, C, H, W) in the model's dtype; labels: (N,) int64 classes, or (N, K) float targets.
        """
        result = self.gradients(images, labels, image_gradient)
        return replace(result, finite=self.apply(result.grads))

    def gradients(self, images: torch.Tensor, labels: torch.Tensor, image_gradient: bool = False) -> StepResult:
        """The first half of the step: mean loss and unscaled gradients, averaged over the micro-batches."""
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        images = images.detach().clone().requires_grad_(image_gradient)
        parts, scale = self.recipe.accumulate, self.loss_scale
        total = images.new_zeros(())
        outputs = []
        for x, y in zip(images.chunk(parts), labels.chunk(parts), strict=True):
            outputs.append(forward(self.recipe.amp, self.model, x))
            loss = self.loss_function(outputs[-1], y)
            (loss / parts * scale).backward()
            total += loss.detach() / parts
        # a parameter that does not affect the loss has no gradient in torch: its optimizer skips it
        grads = self.unscaled()
        image_grad = images.grad / scale if images.grad is not None else None
        return StepResult(total, joined(outputs).detach(), grads, image_grad)

    def unscaled(self) -> dict[str, torch.Tensor]:
        """State_dict name -> the gradient from the backward pass, without the loss scale; where there is no scale, the
        parameter's own `grad`."""
        grads = {name: p.grad.detach() for name, p in self.parameters.items() if p.grad is not None}
        return grads if self.scaler is None else {name: grad * (1.0 / self.loss_scale) for name, grad in grads.items()}

    def apply(self, grads: dict[str, torch.Tensor]) -> bool | None:
        """Clip the unscaled gradients, update weights, loss scale and average, and move the schedule on.

        With a loss scale, gradients that are not all finite leave the weights alone, as torch.amp.GradScaler does.
        Returns whether they were finite, or None without a loss scale.
        """
        self.steps += 1
        kept = self.recipe.clip is None and leaves_gradients(self.optimizer)  # clipping also changes gradients in place
        for name, parameter in self.parameters.items():
            parameter.grad = None if name not in grads else grads[name] if kept else grads[name].clone()
        finite = None
        if self.scaler is not None:
            found = all(bool(grad.isfinite().all()) for grad in grads.values())
            finite = self.decisions.pop(0) if self.decisions else found
        if finite is not False:
            if self.recipe.clip:
                nn.utils.clip_grad_norm_(self.parameters.values(), self.recipe.clip.max_norm)
            self.optimizer.step()
        if self.scaler is not None:
            self.scaler.update(finite is not False)
        if self.average is not None:
            self.average.update(self.model, self.steps)
        self._advance("step")
        return finite

    def end_epoch(self) -> None:
        """Move a schedule with `per: epoch`."""
        self._advance("epoch")

    def _advance(self, per: str) -> None:
        if self.schedule is None or self.recipe.schedule is None or self.recipe.schedule.per != per:
            return
        with warnings.catch_warnings():
            # torch warns about a schedule that moves before the first update; a skipped update is no mistake
            warnings.filterwarnings("ignore", r"Detected call of `lr_scheduler\.step\(\)` before", UserWarning)
            self.schedule.step()

    @property
    def loss_scale(self) -> float:
        """The loss scale in force, 1 without one."""
        return self.scaler.scale if self.scaler is not None else 1.0

    def ema(self) -> dict[str, torch.Tensor]:
        """State_dict name -> the moving average of that weight or buffer; empty without one."""
        return dict(self.average.tensors) if self.average is not None else {}

    def learning_rates(self) -> dict[str, float]:
        """State_dict name -> the learning rate that its next update uses."""
        return self._by_name("lr")

    def weight_decays(self) -> dict[str, float]:
        """State_dict name -> the weight decay that its next update uses (0 when the optimizer has none)."""
        return self._by_name("weight_decay")

    def momenta(self) -> dict[str, float]:
        """State_dict name -> the momentum, or beta1, that its next update uses; empty where no schedule moves it."""
        if not any("max_momentum" in group for group in self.optimizer.param_groups):  # as torch's schedules note it
            return {}
        betas = "betas" in self.optimizer.defaults
        found = [float(g["betas"][0] if betas else g["momentum"]) for g in self.optimizer.param_groups]
        names = {id(p): name for name, p in self.parameters.items()}
        groups = zip(self.optimizer.param_groups, found, strict=True)
        return {names[id(p)]: momentum for group, momentum in groups for p in group["params"]}

    def optimizer_state(self) -> dict[str, dict[str, torch.Tensor]]:
        """State key -> state_dict name -> tensor, as torch.optim names its state (momentum_buffer, exp_avg, …)."""
        names = {id(p): name for name, p in self.parameters.items()}
        state: dict[str, dict[str, torch.Tensor]] = {}
        for parameter, values in self.optimizer.state.items():
            for key, value in values.items():
                if isinstance(value, torch.Tensor):
                    state.setdefault(key, {})[names[id(parameter)]] = value
        for group in self.optimizer.param_groups:
            if isinstance(group.get("step"), torch.Tensor):  # timm counts for the whole group
                state.setdefault("step", {}).update(
                    (names[id(parameter)], group["step"]) for parameter in group["params"]
                )
        return state

    def _by_name(self, key: str) -> dict[str, float]:
        names = {id(p): name for name, p in self.parameters.items()}
        return {
            names[id(p)]: float(group.get(key, 0.0)) for group in self.optimizer.param_groups for p in group["params"]
        }


def as_number(found: Any) -> Any:
    """What a user's loss gave as the number to differentiate: of a dictionary its `loss`. Raises BadInput where it
    gives no tensor of one number, and nothing says which of several it is."""
    value = found.get("loss") if isinstance(found, dict) else found
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        return value
    if isinstance(found, dict):
        what = f"a dictionary with {', '.join(map(str, found))}" if value is None else "no single number as 'loss'"
    elif isinstance(found, torch.Tensor):
        what = f"{list(found.shape)} numbers"
    else:
        what = f"{len(found)} values" if isinstance(found, (tuple, list)) else f"a {type(found).__name__}"
    raise BadInput(f"the torch loss returns {what}: return one number, a tensor, or a dictionary that has it as 'loss'")


def build_loss(recipe: Recipe, like: torch.Tensor) -> Callable[..., Any]:
    """The recipe's loss, a function of (outputs, labels).

    For msmigrate's losses, list arguments (class weights) become tensors in the precision and on the device of `like`.
    """
    args = recipe.loss.args
    if not recipe.loss.own:
        args = {
            key: torch.tensor(value, dtype=like.dtype).to(like.device) if isinstance(value, list) else value
            for key, value in args.items()
        }
        return _construct(recipe.loss, **args)
    found = _of_the_user(recipe.loss.name, like.device.type)
    made: Callable[..., Any] = found(**args) if isinstance(found, type) else partial(found, **args)
    made = made.to(like) if isinstance(made, nn.Module) else made
    return lambda outputs, labels: as_number(made(outputs, labels))


@cache
def _of_the_user(name: str, device: str) -> Callable[..., Any]:
    return builder_of(model_spec.parse(name), device=device)


def build_optimizer(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    """The recipe's optimizer with its parameter groups."""
    modules = dict(model.named_modules())
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    owners = {name: type(modules[name.rpartition(".")[0]]).__name__ for name in parameters}
    groups = [
        {"params": [parameters[name] for name in group.names], **group.args}
        for group in parameter_groups(owners, recipe.optimizer)
    ]
    return _construct(recipe.optimizer, groups, **recipe.optimizer.args)


def build_schedule(part: Part, optimizer: torch.optim.Optimizer) -> Any:
    """The recipe's schedule; the schedules inside another are made first, on the same optimizer. Functions of the
    user's own are imported."""
    args = table_args(part)
    if "schedulers" in args:
        inner = [Part(name=name, args=given) for name, given in args["schedulers"]]
        args["schedulers"] = [build_schedule(each, optimizer) for each in inner]
    args = model_names.with_functions(args, lambda name: model_spec.function(model_spec.parse(name)))
    return _construct(part, optimizer=optimizer, **args)


def _construct(part: Part, *positional: Any, **args: Any) -> Any:
    """Make the torch (or timm) object that a part names; only names in the mapping table are ever looked up.

    Raises BadRecipe where torch does not have it or refuses a value.
    """
    name = table.row(part.name).torch
    try:
        found = resolve(name)
    except BadInput:
        package = name.partition(".")[0]
        version = f" ({torch.__version__})" if package == "torch" else ""
        raise BadRecipe(f"this {package}{version} has no {part.name}") from None
    try:
        return found(*positional, **args)
    except (TypeError, ValueError) as error:
        raise BadRecipe(f"{part.name}: {' '.join(str(error).split())}") from error


def leaves_gradients(optimizer: torch.optim.Optimizer) -> bool:
    """Whether an optimizer is known not to change the gradients: torch's own, where they go tensor by tensor.

    With `foreach`, SGD adds Nesterov's momentum in place; `fused` may do so, too; other optimizers are unknown.
    """
    own = f"{type(optimizer).__module__}.".startswith("torch.optim.")
    return own and not any(group.get("foreach") or group.get("fused") for group in optimizer.param_groups)


@dataclass
class LossScale:
    """The scale in force, and how many good steps in a row it has seen; without a rule it is static."""

    scale: float
    rule: DynamicLossScale | None = None
    growth_tracker: int = 0

    @classmethod
    def of(cls, recipe: Recipe) -> LossScale | None:
        """The recipe's loss scale, or None where it has none."""
        rule = recipe.dynamic_loss_scale
        if rule is not None:
            return cls(rule.init_scale, rule)
        return cls(recipe.loss_scale) if recipe.loss_scale is not None else None

    def update(self, finite: bool) -> None:
        """Do what GradScaler.update() does after a step; finite: whether its gradients were all finite."""
        if self.rule is None:
            return
        if not finite:
            self.scale, self.growth_tracker = _float32(self.scale * self.rule.backoff_factor), 0
            return
        self.growth_tracker += 1
        if self.growth_tracker == self.rule.growth_interval:
            grown = _float32(self.scale * self.rule.growth_factor)
            self.scale = grown if math.isfinite(grown) else self.scale
            self.growth_tracker = 0


def _float32(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))
