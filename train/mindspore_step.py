"""One training step in MindSpore: what parity records is what training runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mindspore
from mindspore import Tensor, amp, nn, ops

from ..mappings import table
from .groups import parameter_groups
from .mindspore_build import construct
from .mindspore_names import canonical_parameters
from .recipe import Part, Recipe, table_args

# torch's state key -> the argument without which torch does not hold it
SWITCHES = {"momentum_buffer": "momentum", "grad_avg": "centered", "max_exp_avg_sq": "amsgrad"}


@dataclass(frozen=True)
class StepResult:
    """What one step computed.

    loss: scalar mean over the micro-batches, unscaled. logits: (N, K). grads: state_dict name -> gradient, unscaled,
    before clipping.
    image_grad: gradient of the loss by the images, (N, C, H, W), or None when it was not asked for.
    """

    loss: Tensor
    logits: Tensor
    grads: dict[str, Tensor]
    image_grad: Tensor | None


class TrainStep:
    """Forward, loss, gradient, unscale, clip, update, in that order, as the recipe says.

    mode: "graph" compiles the whole step with `jit`, "pynative" runs it operator by operator. The weights change in
    place. Call `net.set_train()` before the step: a Cell is born in evaluation mode.

    A parameter with `requires_grad` off is left out of gradients and optimizer. One that trains but is not reached by
    the loss gets a gradient of zeros here, and so its weight decay and momentum act, where torch gives it no gradient
    and leaves it alone: parity reports that gradient as one that torch does not have. Freeze such a parameter.
    """

    def __init__(self, recipe: Recipe, net: nn.Cell, mode: str = "pynative", image_gradient: bool = False) -> None:
        self.recipe = recipe
        self.net = net
        self.image_gradient = image_gradient
        trainable = [c for c in canonical_parameters(net) if c.parameter.requires_grad]
        parameters = {c.name: c.parameter for c in trainable}
        groups = parameter_groups({c.name: c.owner for c in trainable}, recipe.optimizer)
        self.optimizer = build_optimizer(recipe, [({**g.args}, [parameters[n] for n in g.names]) for g in groups])
        # value_and_grad returns gradients in the order of its weights, and the optimizer takes them in group order
        self.names = tuple(name for group in groups for name in group.names)
        self.weights = mindspore.ParameterTuple([parameters[name] for name in self.names])
        self._group_of = {name: i for i, group in enumerate(groups) for name in group.names}
        self.loss_function = build_loss(recipe)
        self.schedule = build_schedule(recipe.schedule, self.optimizer) if recipe.schedule else None
        # plain values: under jit a recipe's own attributes cannot be read
        self._scale = recipe.loss_scale or 1.0
        self._parts = recipe.accumulate
        self._guarded = recipe.loss_scale is not None
        self._max_norm = recipe.clip.max_norm if recipe.clip else None
        self._value_and_grad = mindspore.value_and_grad(
            self._forward, 0 if image_gradient else None, self.weights, has_aux=True
        )
        graph = mode == "graph"
        self._compute = mindspore.jit(self._step) if graph else self._step
        self._update = mindspore.jit(self._clip_and_update) if graph else self._clip_and_update

    def __call__(self, images: Tensor, labels: Tensor) -> StepResult:
        """Run one step on a batch.

        images: (N, C, H, W) float32; labels: (N,) int32 classes, or (N, K) float32 targets.
        """
        loss, logits, grads, image_grad = self._compute(images, labels)
        self._advance()
        named = dict(zip(self.names, grads, strict=True))
        return StepResult(loss, logits, named, image_grad if self.image_gradient else None)

    def apply(self, grads: dict[str, Tensor]) -> None:
        """The second half of the step alone: clip these unscaled gradients, update, move the schedule on."""
        self._update(tuple(grads[name] for name in self.names))
        self._advance()

    def _forward(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits = self.net(images)
        loss = self.loss_function(logits, labels)
        # has_aux: only the first value is differentiated; without it the gradients of the others would be added
        return loss * (self._scale / self._parts), loss, logits

    def _step(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Any, Any]:
        loss, logits, grads, image_grad = self._gradients(images, labels)
        self._clip_and_update(grads)
        return loss, logits, grads, image_grad

    def _gradients(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Any, Any]:
        """The mean loss, the unscaled gradients averaged over the micro-batches, and the images' own."""
        parts = self._parts
        size = images.shape[0] // parts
        loss: Any = None
        grads: Any = None
        outputs: Any = ()
        image_grads: Any = ()
        for i in range(parts):
            x, y = images[i * size : (i + 1) * size], labels[i * size : (i + 1) * size]
            (_, part_loss, logits), found = self._value_and_grad(x, y)
            outputs = (*outputs, logits)
            if self.image_gradient:
                image_grads = (*image_grads, found[0])
                found = found[1]
            loss = part_loss if loss is None else loss + part_loss
            grads = found if grads is None else _add(grads, found)
        image_grad = ops.cat(image_grads) / self._scale if self.image_gradient else loss
        # torch divides each micro-batch's loss before backward; the scaled loss above did the same
        return loss / parts, ops.cat(outputs), _divide(grads, self._scale), image_grad

    def _clip_and_update(self, grads: Any) -> bool:
        """With a loss scale, gradients that are not all finite leave the weights alone, as GradScaler does."""
        if not self._guarded or amp.all_finite(grads):
            self._clip_then_optimize(grads)
        return True

    def _clip_then_optimize(self, grads: Any) -> None:
        if self._max_norm is not None:
            # clip_by_norm over a tuple is torch's clip_grad_norm_, its 1e-6 included; clip_by_global_norm lacks that
            grads = ops.clip_by_norm(grads, max_norm=self._max_norm, norm_type=2.0)
        self.optimizer(grads)

    def _advance(self) -> None:
        if self.schedule is not None:
            self.schedule.step()

    def learning_rates(self) -> dict[str, float]:
        """State_dict name -> the learning rate that its next update uses."""
        groups = self.optimizer.param_groups
        return {name: float(groups[i]["lr"]) for name, i in self._group_of.items()}

    def weight_decays(self) -> dict[str, float]:
        """State_dict name -> the weight decay that its next update uses (0 when the optimizer has none)."""
        groups = self.optimizer.param_groups
        return {name: float(groups[i].get("weight_decay", 0.0)) for name, i in self._group_of.items()}

    def optimizer_state(self) -> dict[str, dict[str, Tensor]]:
        """Torch's state key -> state_dict name -> tensor; the mapping table says which attribute holds which key.

        MindSpore holds every slot from the start, torch only those that an update has written: the others are left
        out.
        """
        state: dict[str, dict[str, Tensor]] = {}
        for item in table.row(self.recipe.optimizer.name).state:
            if item.torch is None or item.mindspore is None:
                continue
            held = getattr(self.optimizer, item.mindspore)
            if isinstance(held, Tensor):  # one step counter for every parameter, where torch keeps one for each
                held = [held] * len(self.names)
            named = {n: t for n, t in zip(self.names, held, strict=True) if self._uses(item.torch, self._group_of[n])}
            if any(t.asnumpy().any() for t in named.values()):
                state[item.torch] = named
        return state

    def _uses(self, key: str, group: int) -> bool:
        """Whether a group's arguments make torch hold this state."""
        return key not in SWITCHES or bool(self.optimizer.param_groups[group][SWITCHES[key]])


def _add(left: Any, right: Any) -> Any:
    return ops.HyperMap()(ops.Add(), left, right)


def _divide(grads: Any, scale: float) -> Any:
    return grads if scale == 1.0 else ops.HyperMap()(ops.partial(_times, 1.0 / scale), grads)


def _times(factor: float, grad: Tensor) -> Tensor:
    return grad * factor


def build_loss(recipe: Recipe) -> nn.Cell:
    """The recipe's loss, every argument written; list arguments (class weights) become float32 tensors."""
    return construct(table.translate(recipe.loss.name, recipe.loss.args))


def build_optimizer(recipe: Recipe, groups: list[tuple[dict[str, Any], list[Any]]]) -> Any:
    """The recipe's optimizer over (a group's own torch arguments, its parameters).

    Always as groups: MindSpore leaves ungrouped parameters whose name contains gamma or beta undecayed.
    """
    name, shared = recipe.optimizer.name, recipe.optimizer.args
    own = [table.translate(name, args, partial=True).kwargs for args, _ in groups]
    members = [{"params": params, **args} for (_, params), args in zip(groups, own, strict=True)]
    return construct(table.translate(name, shared), members)


def build_schedule(part: Part, optimizer: Any) -> Any:
    """The recipe's schedule on an optimizer."""
    return construct(table.translate(part.name, table_args(part)), optimizer)
