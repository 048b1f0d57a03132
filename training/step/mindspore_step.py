"""TrainStep in MindSpore: parity records the same step that training runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import mindspore
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops
from mindspore import dtype as mstype

from ...errors import BadRecipe
from ...mappings import table
from ...migrate import model_spec
from ..models import model_names
from ..models.mindspore_models import Canonical, canonical_parameters
from ..recipe.schema import Ema, Part, Recipe, construct, decay, table_args
from .mindspore_amp import LossScale, Precision, finite_check, first_tensor, in_float32
from .parameter_groups import parameter_groups

Images: TypeAlias = "Tensor | tuple[Tensor, ...]"  # a net's inputs

_map = ops.HyperMap()


def joined(outputs: list[Tensor]) -> Tensor:
    """As torch_step.joined."""
    return outputs[0] if len(outputs) == 1 else ops.cat(outputs) if outputs[0].ndim else ops.stack(outputs)


_clear = ops.MultitypeFuncGraph("msmigrate_clear")
_add_to = ops.MultitypeFuncGraph("msmigrate_add_to")
_times = ops.MultitypeFuncGraph("msmigrate_times")


@_clear.register("Tensor")
def _clear_one(total: Any) -> bool:
    ops.assign(total, ops.zeros_like(total))
    return True


@_add_to.register("Tensor", "Tensor")
def _add_to_one(total: Any, grad: Any) -> bool:
    ops.assign_add(total, grad)
    return True


@_times.register("Tensor", "Tensor")
def _times_one(factor: Any, grad: Any) -> Any:
    return grad * factor


def clear(sums: Any) -> None:
    """Set every parameter of the tuple to zero."""
    _map(_clear, sums)


def add_to(sums: Any, grads: Any) -> None:
    """Add each gradient to its parameter."""
    _map(_add_to, sums, grads)


def times(grads: Any, factor: Any) -> Any:
    """Each gradient times a scalar tensor."""
    return _map(ops.partial(_times, factor), grads)


def as_number(found: Any) -> Any:
    """What a user's loss gave as the number to differentiate: of a dictionary its `loss`. Raises TypeError, also while
    it is compiled, for a tuple or a list, of which nothing says which it is."""
    if isinstance(found, dict):
        return found["loss"]
    if isinstance(found, (tuple, list)):
        raise TypeError(
            "the loss returns several values; return the number to differentiate, or a dictionary that has it as 'loss'"
        )
    return found


def build_loss(recipe: Recipe) -> Callable[..., Any]:
    """The recipe's loss, a function of (outputs, labels).

    For msmigrate's losses, every argument is written out, and list arguments (class weights) become float32 tensors.
    """
    made: Callable[..., Any]
    if not recipe.loss.own:
        made = construct(recipe.loss)
        return made
    found, args = _of_the_user(recipe.loss.counterpart), recipe.loss.args
    if isinstance(found, type):
        made, args = found(**args), {}
    else:
        made = found

    def loss(outputs: Any, labels: Any) -> Any:
        return as_number(made(outputs, labels, **args))

    return loss


def _of_the_user(name: str) -> Any:
    """The function or class of a recipe's own loss, by its FILE.py:NAME."""
    return model_spec.function(model_spec.parse(name))


def build_optimizer(recipe: Recipe, groups: list[tuple[dict[str, Any], list[Any]]]) -> Any:
    """The recipe's optimizer over (a group's own torch arguments, its parameters).

    Always as groups: MindSpore leaves ungrouped parameters whose name contains gamma or beta undecayed.
    """
    own = [table.translate(recipe.optimizer.name, args, partial=True).kwargs for args, _ in groups]
    members = [{"params": params, **args} for (_, params), args in zip(groups, own, strict=True)]
    return construct(recipe.optimizer, members)


class KeptOptimizer:
    """An optimizer that is made once, and is as new for every further step: what it has compiled, which takes seconds a
    group, stays compiled."""

    def __init__(self) -> None:
        self._made: Any = None
        self._groups: list[dict[str, Any]] = []
        self._parameters: list[tuple[Parameter, np.ndarray | None]] = []  # None: zeros

    def take(self, make: Callable[[], Any]) -> Any:
        """What `make` returns, the first time; then the same with the state and the options that it had."""
        if self._made is None:
            made = make()
            if isinstance(made, nn.Cell) and hasattr(made, "param_groups"):  # whose state is known
                self._made = made
                self._remember()
            return made
        for group, options in zip(self._made.param_groups, self._groups, strict=True):
            group.clear()
            group.update(options)
        for parameter, value in self._parameters:
            zeros = ops.zeros(parameter.shape, parameter.dtype) if value is None else Tensor(value)
            parameter.copy_(zeros)  # compiled code never sees a value that set_data puts in place
        return self._made

    def _remember(self) -> None:
        self._groups = [dict(group) for group in self._made.param_groups]
        options = (value for group in self._groups for value in group.values() if isinstance(value, Parameter))
        held = {id(one): one for one in (*options, *(one for _, one in self._made.parameters_and_names()))}
        for weight in self._made.parameters:
            held.pop(id(weight), None)
        for parameter in held.values():
            value = parameter.asnumpy()
            self._parameters.append((parameter, value.copy() if value.any() else None))


def build_schedule(part: Part, optimizer: Any) -> Any:
    """The recipe's schedule on an optimizer; functions of the user's own are imported."""
    args = model_names.with_functions(table_args(part), lambda name: model_spec.function(model_spec.parse(name)))
    return construct(part, optimizer, args=args)


class TrainStep:
    """Forward, loss, gradient, reduce, unscale, look for overflow, clip, update, average, move the schedule on.

    mode: "graph" compiles with `jit`, the whole step or, with accumulation, the gradient of one micro-batch and the
    update; "pynative" runs operator by operator. The weights change in place. Call `net.set_train()` before the step: a
    new Cell is in evaluation mode. Give the net its weights before the step is made: the moving average starts as a
    copy of them.

    reduce: from the tuple of accumulated gradients to their means over all processes, as DistributedDataParallel does
    before GradScaler unscales. look: "gradients" checks them without a loss scale too: if not all are finite, the
    weights stay, and `finite` says so; "loss" checks only the loss, which costs nothing, but misses gradients that are
    not finite while the loss is. held: the net's parameters under torch's names, where these are not its own. kept: the
    optimizer of the recipe that steps on the same weights share, one after the other.

    As in torch's usual loop, a step that is skipped because of an overflow still moves the schedule and the moving
    average (the running statistics have moved already).

    A parameter with `requires_grad` off is left out of gradients and optimizer. A parameter that trains but does not
    affect the loss gets a gradient of zeros here, so that its weight decay and momentum act, where torch gives it no
    gradient and leaves it alone: parity reports that gradient as one that torch does not have. Freeze such a parameter.
    """

    def __init__(
        self,
        recipe: Recipe,
        net: nn.Cell,
        mode: str = "pynative",
        image_gradient: bool = False,
        reduce: Callable[[Any], Any] | None = None,
        look: Literal["gradients", "loss"] | None = None,
        held: list[Canonical] | None = None,
        kept: KeptOptimizer | None = None,
    ) -> None:
        self.recipe = recipe
        self.net = net
        self._kept = kept
        self.image_gradient = image_gradient
        self.reduce = reduce
        held = canonical_parameters(net) if held is None else held
        self.optimizer = self._make_optimizer([c for c in held if c.parameter.requires_grad])
        # value_and_grad returns gradients in the order of its weights, and an optimizer takes them in the order of its
        # own parameters, which groups change
        ordered, self._stepped = in_order(self.optimizer, held)
        self.names = tuple(each.name for each in ordered)
        self.weights = mindspore.ParameterTuple([each.parameter for each in ordered])
        self.loss_function = build_loss(recipe)
        self.schedule = build_schedule(recipe.schedule, self.optimizer) if recipe.schedule else None
        self.scaler = LossScale.of(recipe)
        self.average = MovingAverage(recipe.ema, held) if recipe.ema else None
        self.precision = Precision(recipe.amp, net)
        self.steps = 0  # steps taken, skipped ones included
        # plain values, because under jit a recipe's attributes cannot be read
        self._parts = recipe.accumulate
        self._images = self.precision.images
        self._many = self._casts = False  # of the current batch: several inputs; floating-point images
        self._own_loss = recipe.loss.own  # it takes the net's output, whatever that is
        self._guarded = self.scaler is not None or look is not None
        self._by_loss = self.scaler is None and look == "loss"
        self._all_finite = finite_check()
        self._max_norm = recipe.clip.max_norm if recipe.clip else None
        self._once = Parameter(Tensor(1.0, mstype.float32), name="once", requires_grad=False)
        self._sums = self.weights.clone(prefix="sum", init="zeros") if self._parts > 1 else ()
        self._value_and_grad = mindspore.value_and_grad(
            self._forward, 0 if image_gradient else None, self.weights, has_aux=True
        )
        compiled = mindspore.jit if mode == "graph" else _as_it_is
        self._whole = compiled(self._whole_step)
        self._whole_recorded = compiled(self._whole_recorded_step)
        self._accumulate = compiled(self._accumulate_part)
        self._finish_sums = compiled(self._finish_mean)
        self._finish_recorded = compiled(self._finish_alone)
        self._clear, self._apply = compiled(self._clear_sums), compiled(self._update)

    def _make_optimizer(self, trainable: list[Canonical], others: Mapping[str, str] = MappingProxyType({})) -> Any:
        """The recipe's optimizer, in its groups.

        others: name -> class of the layer, for parameters that the recipe may name and this net does not train.
        """
        parameters = {each.name: each.parameter for each in trainable}
        named: dict[str, list[str]] = {}
        for each in trainable:
            named.setdefault(each.patterns or each.name, []).append(each.name)
        owners = {each.patterns or each.name: each.owner for each in trainable}
        if not owners:
            raise BadRecipe("the MindSpore net has no parameter that trains: requires_grad is off in all of them")
        groups = parameter_groups({**owners, **others}, self.recipe.optimizer)
        members = [(group.args, [one for name in group.names for one in named.get(name, ())]) for group in groups]
        members = [(args, names) for args, names in members if names]
        self.group_args = [args for args, _ in members]
        self._group_of = {name: i for i, (_, names) in enumerate(members) for name in names}
        given = [({**args}, [parameters[n] for n in names]) for args, names in members]

        def make() -> Any:
            return build_optimizer(self.recipe, given)

        return make() if self._kept is None else self._kept.take(make)

    def __call__(self, images: Images, labels: Tensor) -> StepResult:
        """Run one step on a batch, and return everything that was computed.

        images: the net's inputs, (N, …): images in float32, tokens, or a tuple of several. labels: (N,) int32 classes,
        (N, K) float32 targets, or what the recipe's own loss takes.
        """
        images = self._begin(images)
        with self.precision:
            if self._parts == 1:
                loss, logits, image_grad, grads, finite = self._whole_recorded(images, labels)
            else:
                losses, logits, image_grads = self._accumulated(images, labels)
                loss, logits, image_grad = _mean(losses), joined(logits), image_grads
                if self.image_gradient:
                    image_grad = ops.cat(image_grads)
                grads, finite = self._finish_recorded(losses)
                self._clear()
        self._advance()
        named = dict(zip(self.names, grads, strict=True))
        shown = image_grad if self.image_gradient else None
        return StepResult(loss, logits, named, shown, finite if self._guarded else None)

    def train(self, images: Images, labels: Tensor) -> Outcome:
        """Run one step on a batch, with the same functions as `__call__`, and return what a loop needs."""
        images = self._begin(images)
        with self.precision:
            if self._parts == 1:
                loss, finite = self._whole(images, labels)
            else:
                losses, _, _ = self._accumulated(images, labels)
                loss, finite = self._finish_sums(losses)
                self._clear()
        self._advance()
        return Outcome(loss, finite if self._guarded else None)

    def compiled(self, images: Images, labels: Tensor) -> list[Callable[[], Any]]:
        """The calls of `train` on such a batch, one for each function that is compiled."""

        def finish() -> Any:
            losses = (Tensor(0.0, mstype.float32),) * self._parts
            with self.precision:
                return self._finish_sums(mindspore.mutable(losses))

        return [lambda: self.train(images, labels), *([finish, self._clear] if self._parts > 1 else [])]

    def apply(self, grads: dict[str, Tensor]) -> None:
        """The second half of the step alone, on unscaled gradients: look for overflow, clip, update, move on."""
        self._count()
        self._apply(mindspore.mutable(tuple(grads[name] for name in self.names)))
        self._advance()

    def end_epoch(self) -> None:
        """Move a schedule with `per: epoch`."""
        if self.schedule is not None and self.recipe.schedule is not None and self.recipe.schedule.per == "epoch":
            self.schedule.step()

    def outputs(self, images: Images) -> Any:
        """The net's output for a batch, in float32 where it is one tensor, and all of it in mixed precision."""
        if self._many:
            output = self.net(*images)
        elif self._casts:
            output = self.net(ops.cast(images, self._images))
        else:
            output = self.net(images)
        if isinstance(output, Tensor):
            return ops.cast(output, mstype.float32)
        return in_float32(output) if self.precision.active else output

    def _forward(self, images: Images, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # plain attributes and no raise: this is compiled too
        output = self.outputs(images)
        logits = first_tensor(output)
        loss = self.loss_function(output if self._own_loss else logits, labels)
        # torch divides each micro-batch's loss before backward
        scaled = loss / self._parts if self._parts > 1 else loss
        if self.scaler is not None:
            scaled = scaled * self.scaler.scale
        # has_aux: only the first value is differentiated; without it the gradients of the others would be added
        return scaled, loss, logits

    def _gradients(self, images: Images, labels: Tensor) -> tuple[Tensor, Tensor, Any, Any]:
        """The loss and logits of one micro-batch, the scaled gradients, and the images' own, unscaled."""
        (_, loss, logits), grads = self._value_and_grad(images, labels)
        image_grad = loss
        if self.image_gradient:
            image_grad = grads[0]
            grads = grads[1]
            if self.scaler is not None:
                image_grad = image_grad / self.scaler.scale
        return loss, logits, grads, image_grad

    def _whole_step(self, images: Images, labels: Tensor) -> tuple[Tensor, Any]:
        loss, _, grads, _ = self._gradients(images, labels)
        _, finite = self._finish(grads, loss)
        return loss, finite

    def _whole_recorded_step(self, images: Images, labels: Tensor) -> tuple[Tensor, Tensor, Any, Any, Any]:
        loss, logits, grads, image_grad = self._gradients(images, labels)
        grads, finite = self._finish(grads, loss)
        return loss, logits, image_grad, grads, finite

    def _accumulated(self, images: Images, labels: Tensor) -> tuple[Any, Any, Any]:
        """Add up the micro-batches' gradients; one micro-batch is compiled, however many there are.

        Slices are views and cost little. Losses and logits are joined later, in compiled code: on the CPU an operator
        that runs alone costs as much as a small layer.
        """
        size = labels.shape[0] // self._parts
        parts = [slice(i * size, (i + 1) * size) for i in range(self._parts)]
        found = [self._accumulate(rows_of(images, part), labels[part]) for part in parts]
        losses, logits, image_grads = zip(*found, strict=True)
        # a tuple that is not mutable is a constant to what is compiled, and each new one is compiled again
        return mindspore.mutable(losses), mindspore.mutable(logits), image_grads

    def _accumulate_part(self, images: Images, labels: Tensor) -> tuple[Tensor, Tensor, Any]:
        loss, logits, grads, image_grad = self._gradients(images, labels)
        add_to(self._sums, grads)
        return loss, logits, image_grad

    def _finish_alone(self, losses: Any) -> tuple[Any, Any]:
        return self._finish(self._summed(), _mean(losses))

    def _finish_mean(self, losses: Any) -> tuple[Any, Any]:
        loss = _mean(losses)
        _, finite = self._finish(self._summed(), loss)
        return loss, finite

    def _summed(self) -> Any:
        """The accumulated gradients times exactly one, as separate tensors: from a Parameter, the first branch of a
        compiled update would read its value at the beginning, zeros, and nothing would be learnt."""
        return times(self._sums, self._once)

    def _clear_sums(self) -> bool:
        clear(self._sums)
        return True

    def _finish(self, grads: Any, loss: Any) -> tuple[Any, Any]:
        """Reduce, unscale, update; returns the unscaled gradients, and whether all is finite (True if not checked)."""
        if self.reduce is not None:
            grads = self.reduce(grads)
        grads = self._unscaled(grads)
        return grads, self._update(grads, loss)

    def _unscaled(self, grads: Any) -> Any:
        if self.scaler is None:
            return grads
        return times(grads, ops.reciprocal(self.scaler.scale))

    def _update(self, grads: Any, loss: Any = None) -> Any:
        """With a loss scale, gradients that are not all finite leave the weights alone, as GradScaler does."""
        finite: Any = True
        if self._guarded:
            finite = ops.isfinite(loss) if self._by_loss and loss is not None else self._all_finite(grads)
            if finite:
                self._clip_then_optimize(grads)
        else:
            self._clip_then_optimize(grads)
        if self.scaler is not None:
            self.scaler(finite)
        if self.average is not None:
            self.average()
        return finite

    def _clip_then_optimize(self, grads: Any) -> None:
        if self._max_norm is not None:
            # clip_by_norm over a tuple is torch's clip_grad_norm_, its 1e-6 included; clip_by_global_norm lacks that
            grads = ops.clip_by_norm(grads, max_norm=self._max_norm, norm_type=2.0)
        self.optimizer(grads if self._stepped == len(self.names) else grads[: self._stepped])

    def _begin(self, images: Images) -> Images:
        """Determine the kind of batch; returns the batch as a compiled function takes it."""
        self._count()
        self.takes(images)
        # a tuple that is not mutable is a constant to what is compiled, and each new one is compiled again
        return mindspore.mutable(images) if self._many else images

    def takes(self, images: Images) -> None:
        """Settle how a batch of this kind goes into the net: before compiling, for a graph cannot ask."""
        self._many = isinstance(images, tuple)
        self._casts = isinstance(images, Tensor) and images.is_floating_point()

    def _count(self) -> None:
        self.steps += 1
        if self.average is not None:
            self.average.prepare(self.steps)

    def _advance(self) -> None:
        if self.schedule is not None and self.recipe.schedule is not None and self.recipe.schedule.per == "step":
            self.schedule.step()

    def learning_rates(self) -> dict[str, float]:
        """State_dict name -> the learning rate that its next update uses."""
        return {name: float(self.group(name)["lr"]) for name in self.names}

    def weight_decays(self) -> dict[str, float]:
        """State_dict name -> the weight decay that its next update uses (0 when the optimizer has none)."""
        return {name: float(self.group(name).get("weight_decay", 0.0)) for name in self.names}

    def group(self, name: str) -> Any:
        """The optimizer's group that holds this parameter."""
        return self.optimizer.param_groups[self._group_of[name]]

    def ema(self) -> dict[str, Tensor]:
        """State_dict name -> the moving average of that weight or buffer; empty without one."""
        return {} if self.average is None else dict(self.average.tensors())

    @property
    def loss_scale(self) -> float:
        """The loss scale in force, 1 without one; reading it waits for the device."""
        return 1.0 if self.scaler is None else float(self.scaler.scale.asnumpy())

    def restore_counts(self, steps: int, epoch: int) -> None:
        """Restore the counts: `steps` steps taken, and the schedule in its `epoch`."""
        self.steps = steps
        if self.average is not None:
            self.average.prepare(max(steps, 1))
        if self.recipe.schedule is not None:
            self.schedule = build_schedule(self.recipe.schedule, self.optimizer)
            self.schedule.fast_forward(epoch)


def in_order(optimizer: Any, held: list[Canonical]) -> tuple[list[Canonical], int]:
    """The parameters with a gradient, in the order in which the optimizer takes gradients, and how many it takes.

    First come its own parameters, in its groups' order, whether they are the net's or not; then those of `held` that
    train and that it leaves alone. An optimizer that does not list its parameters takes all that train, in the order of
    `held`.
    """
    by_id = {id(each.parameter): each for each in held}
    trainable = [each for each in held if each.parameter.requires_grad]
    own = [
        by_id.get(id(p)) or Canonical(f"{p.name} (not compared)", "", p) for p in getattr(optimizer, "parameters", ())
    ]
    own = own or trainable
    known = {each.name for each in own}
    return [*own, *(each for each in trainable if each.name not in known)], len(own)


def inputs_of(images: Images) -> tuple[Tensor, ...]:
    """The arguments of a net for a batch."""
    return images if isinstance(images, tuple) else (images,)


def rows_of(images: Images, part: slice) -> Images:
    """Some rows of a batch."""
    return mindspore.mutable(tuple(each[part] for each in images)) if isinstance(images, tuple) else images[part]


def _mean(losses: Any) -> Any:
    total = losses[0]
    for loss in losses[1:]:
        total = total + loss
    return total / len(losses)


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


@dataclass(frozen=True)
class StepResult:
    """What one step computed.

    loss: scalar mean over the micro-batches, unscaled. logits: (N, K), or None for a user's step that shows none.
    grads: state_dict name -> gradient, unscaled, before clipping.
    image_grad: gradient of the loss by the images, (N, C, H, W), or None when it was not requested.
    finite: whether all gradients were finite (bool scalar), or None where that is not checked.
    """

    loss: Tensor
    logits: Tensor | None
    grads: dict[str, Tensor]
    image_grad: Tensor | None
    finite: Tensor | None = None


@dataclass(frozen=True)
class Outcome:
    """A step's outcome for the training loop: the loss (scalar), and whether the gradients were all finite (bool
    scalar), or None where the step does not check. Nothing here has waited for the device."""

    loss: Tensor
    finite: Tensor | None


_towards = ops.MultitypeFuncGraph("msmigrate_ema_towards")


@_towards.register("Tensor", "Tensor", "Tensor")
def _towards_one(weight: Any, average: Any, value: Any) -> bool:
    """Move one average towards its value, torch's lerp; whole numbers, such as a table of places, are the value's.

    decay·average + (1 - decay)·value, the other way to write it, has a bias: the float32 decay and 1 - decay do not
    add up to one, and with a decay of 0.9998 that error is multiplied by 5000.
    """
    ops.assign(average, average + weight * (value - average) if average.is_floating_point() else value)
    return True


class MovingAverage(nn.Cell):
    """Averages of the given parameters, which start as copies of them; calling it takes one update, also under jit.

    Call `prepare(update)` before each update: under warm-up the decay depends on it.
    """

    def __init__(self, ema: Ema, held: list[Canonical]) -> None:
        super().__init__(auto_prefix=False)
        self._rule = ema
        self.names = tuple(each.name for each in held)
        self.values = ParameterTuple([each.parameter for each in held])
        self.averages = ParameterTuple(
            [Parameter(Tensor(each.parameter.asnumpy()), name=f"ema.{each.name}", requires_grad=False) for each in held]
        )
        self._weight = 1.0 - decay(ema, 1)
        self.weight = Parameter(Tensor(self._weight, mstype.float32), name="ema_weight", requires_grad=False)
        self.map_ = ops.HyperMap()

    def prepare(self, update: int) -> None:
        """Set the share of the values in the given update (from 1); written only where it changes."""
        weight = 1.0 - decay(self._rule, update)
        if weight != self._weight:
            self.weight.copy_(Tensor(weight, mstype.float32))  # set_data is not seen by a compiled graph
            self._weight = weight

    def construct(self) -> bool:
        """Take one update."""
        self.map_(ops.partial(_towards, self.weight), self.averages, self.values)
        return True

    def tensors(self) -> dict[str, Parameter]:
        """State_dict name -> the average."""
        return dict(zip(self.names, self.averages, strict=True))
