"""A MindSpore net with its step, as the recorder drives it; the outputs of its layers, and the sides its ReLUs take.

ReLUs that are function calls, `ops.relu(x)` in a Cell's construct or a Cell whose counterpart in torch is a function
call, have no name of their own: they are numbered in the innermost module that torch has too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from ...errors import WorkerFailed
from ...mappings import table
from ...training.data.mindspore_dataloader import target
from ...training.models.mindspore_models import canonical_parameters
from ...training.models.model_names import flat
from ...training.recipe.schema import Recipe
from ...training.step.mindspore_compile import Graphs, forget_graphs
from ...training.step.mindspore_step import KeptOptimizer, StepResult, TrainStep
from ...training.step.mindspore_step_state import completed, load_state, momenta, optimizer_state
from ..align.alignment import IDENTITY, Alignment
from ..align.mindspore_user_model import PairStep, copied, plain_names, tensors
from ..align.mindspore_user_model import held as held_of
from ..align.model_structure import channels_moved
from ..align.user_model import (
    Paired,
    held_by,
    hides_its_optimizer,
    is_users,
    one_number,
    own_step,
    put_back,
    shows_its_optimizer,
)
from ..trace import MOMENTA, RATES, Part
from .batches import Images
from .kinks import BY_INPUT
from .mindspore_kinks import function_choices
from .mindspore_randomness import BRANCHES, CompiledDraws, fixed
from .randomness import GIVEN_STEPS, Draws, factors, moved
from .recorder import REDUCED, Arrays, LeafOutput, Seen, Side, StepArrays, StepStart
from .resume import position


def go_on(step: TrainStep, given: Mapping[str, np.ndarray]) -> list[str]:
    """Give the step the state of the converted file; returns notes on it. Raises BadCheckpoint."""
    whole, notes = completed(step, given, position(given, step.recipe).steps_per_epoch)
    load_state(step, whole)
    return notes


FLAG, REDUCER = "reducer_flag", "grad_reducer"  # as MindSpore's own training cells name them


def memory_of(parameter: Parameter) -> int:
    """Where a parameter has its values; 0 where this MindSpore does not say."""
    return parameter.data_ptr() if hasattr(parameter, "data_ptr") else 0


class MindSporeSide(Side):
    """A MindSpore net at the starting weights, with the step that the recipe describes and training runs.

    paired: for a pair of the user's own, the parts they brought besides the net, and the alignment; all names are
    torch's then too.
    continued: the tensors of the converted training checkpoint that the step goes on from; notes: on that checkpoint.
    """

    def __init__(
        self,
        recipe: Recipe,
        net: nn.Cell,
        paired: Paired | None = None,
        continued: Arrays | None = None,
    ) -> None:
        self.recipe = recipe
        self.net = net
        self.paired = paired
        self.continued = continued
        self.notes: list[str] = []
        self.alignment = paired.alignment if paired is not None else IDENTITY
        self._shapes = {n: t.shape for n, t in self.alignment.parameters.items() if not self.alignment.other_shape(n)}
        self._shapes |= {
            n: shape for cut in self.alignment.cuts for n, shape in zip(cut.names, cut.shapes, strict=True)
        }
        self.names = {m.mindspore: m.torch for m in self.alignment.modules} if paired else None
        self.draws: list[Draws] = []  # what each pass drew, but for compiled ones
        self.compiled: CompiledDraws | None = None  # while the step is compiled
        self.held = canonical_parameters(net) if paired is None else held_of(net, self.alignment)
        self._start = {c.name: c.parameter.asnumpy().copy() for c in self.held}
        self._own_values, self._counts = self._plain_values(), () if paired is None else paired.given.start
        self._updated: dict[int, bool] = {}  # by step: whether it updated the weights in PyNative mode
        self._watches = True  # whether hooks may be on the net while the step runs
        self._own_start = [(parameter, parameter.asnumpy().copy()) for parameter in self._own_state()]
        self._kept = KeptOptimizer()
        self.restart()
        self._memory = {c.name: memory_of(c.parameter) for c in self.held if c.parameter.requires_grad}

    def _plain_values(self) -> list[tuple[Any, dict[str, Any]]]:
        """The plain values among the attributes of the user's own step, and of each object in it, such as counters, and
        sums in tensors and lists."""
        holders = [one for one in held_by(own_step(self.paired)) if hasattr(one, "__dict__")]
        holders = [one for one in holders if one is own_step(self.paired) or is_users(one)]
        return [(one, {name: copied(vars(one)[name]) for name in plain_names(one)}) for one in holders]

    @staticmethod
    def _put_back(values: Sequence[tuple[Any, Mapping[str, Any]]]) -> None:
        """Restore these values in the user's own step where it has changed them."""
        for one, held in values:
            for name in [name for name in plain_names(one) if name not in held]:
                delattr(one, name)
            for name, value in held.items():
                if isinstance(value, (Tensor, list, tuple, dict)):
                    object.__setattr__(one, name, copied(value))
                elif vars(one).get(name) is not value and vars(one).get(name) != value:
                    setattr(one, name, value)

    def _own_state(self) -> list[Any]:
        """The parameters of the user's own optimizer and step that are none of the net's: moments, counts, sums."""
        given = None if self.paired is None else self.paired.given
        held = [] if given is None else [given.optimizer, *held_by(given.step)]
        found = {id(one): one for one in held if isinstance(one, Parameter)}
        found |= {id(p): p for cell in held if isinstance(cell, nn.Cell) for _, p in cell.parameters_and_names()}
        nets = {id(parameter) for _, parameter in self.net.parameters_and_names()}
        return [parameter for key, parameter in found.items() if key not in nets]

    def reducers(self) -> list[tuple[Any, str]]:
        """The attributes of the user's own step, and of objects in it, that average gradients over processes: those
        whose name ends in `reducer`, or which a flag asks for that is not set on one process. Not those of MindSpore's
        own cells, which leave what a reducer returns as it is."""
        found = []
        for one in held_by(own_step(self.paired)):
            held = {**getattr(one, "__dict__", {}), **getattr(one, "__dict__", {}).get("_cells", {})}
            names = [name for name in held if name.endswith("reducer")] if is_users(one) else []
            found += [(one, name) for name in names or ([REDUCER] if FLAG in held and is_users(one) else [])]
        return found

    @contextmanager
    def reducing(self) -> Iterator[list[bool]]:
        """Within this block each reducer returns larger gradients, and the flags that ask for one are set."""
        reduced: list[bool] = []

        def larger(reducer: Any) -> Callable[..., Any]:
            def stand_in(grads: Any, *rest: Any) -> Any:
                reduced.append(True)
                back = reducer(grads, *rest) if callable(reducer) else grads
                return back * REDUCED if isinstance(back, Tensor) else tuple(grad * REDUCED for grad in back)

            return stand_in

        with ExitStack() as undo:
            for one, name in self.reducers():
                values = {name: larger(getattr(one, name, None))} | ({FLAG: True} if FLAG in vars(one) else {})
                undo.enter_context(patch.dict(vars(one), values))
            yield reduced

    def restart(self) -> None:
        """Back to the starting weights with a new optimizer and schedule, or those of the checkpoint to go on from."""
        for held in self.held:
            held.parameter.copy_(
                Tensor(self._start[held.name])
            )  # compiled code never sees a value that set_data puts in place
        for parameter, array in self._own_start:
            parameter.copy_(Tensor(array))
        for own, of in () if self.paired is None else self.paired.given.copies:
            own.copy_(of.value())
        self._put_back(self._own_values)
        put_back(self._counts)
        vars(self).pop("train_step", None)  # with its sums and averages, before there is another
        self.train_step = self._step("pynative" if self.compiled is None else "graph")
        if self.continued is not None:
            self.notes = go_on(self.train_step, self.continued)

    def compiles(self, images: Images, labels: np.ndarray) -> None:
        """Compile the step, or take one of the user's own compiled, and go back to the start. Raises DoesNotCompile."""
        self.net.set_train(True)
        inputs, own = tensors(images), own_step(self.paired) is not None
        step = self._step("graph")
        if isinstance(step, PairStep):
            step.watches = False
        with Graphs().watching(only=not own):
            step(inputs if len(inputs) > 1 else inputs[0], target(labels))
        forget_graphs()  # else a graph would be reused in which the draws are not fixed
        self.restart()

    def _step(self, mode: str) -> TrainStep:
        paired = self.paired
        kept = self._kept if mode == "pynative" else None  # what has stepped there does not compile in a whole step
        return (
            TrainStep(self.recipe, self.net, mode, image_gradient=True, kept=kept)
            if paired is None
            else PairStep(
                self.recipe,
                self.net,
                paired.given,
                self.held,
                self.alignment,
                mode=mode,
                image_gradient=self.alignment.scope.image_gradient,
                kept=kept,
            )
        )

    @contextmanager
    def moving(self, run: int) -> Iterator[None]:
        """Within this block the step is one of Monte Carlo arithmetic (Parker 1997): the weights that it begins with,
        and all that a Cell hands on, are moved in their last places, differently in each run."""
        start, drawn = self._start, len(self.draws)
        self._start = {name: moved(array, run) for name, array in start.items()}
        self.restart()
        hooks = [cell.register_forward_hook(_moving_output(run)) for _, cell in self.net.cells_and_names()]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
            del self.draws[drawn:]  # the same as those of the unmoved step, which are recorded
            self._start = start
            self.restart()

    def begin(self, start: StepStart | None) -> None:
        """Hold the weights and buffers of `start`; a compiled step has its own optimizer state."""
        self._hold({} if start is None else start.values)

    def _hold(self, values: Arrays) -> None:
        """Set weights and buffers to these values, by torch's names."""
        values = self.alignment.as_mindspore(values)
        for held in self.held:
            if held.name in values:
                held.parameter.copy_(Tensor(values[held.name].reshape(held.parameter.shape)))

    def parameters(self) -> Arrays:
        """Trainable parameters as they are now."""
        return self._as_torch({c.name: c.parameter for c in self.held if c.parameter.requires_grad})

    def replaced(self) -> list[str]:
        """The weights that have other memory than they began with, by torch's names: an optimizer that has run goes on
        updating the memory of before."""
        moved = [c for c in self.held if c.name in self._memory and memory_of(c.parameter) != self._memory[c.name]]
        return list(self._as_torch({c.name: c.parameter for c in moved}))

    def buffers(self) -> Arrays:
        """What torch holds as buffers, and MindSpore as parameters without gradient."""
        return self._as_torch({c.name: c.parameter for c in self.held if not c.parameter.requires_grad})

    def evaluate(self, images: Images, seen: Seen) -> list[np.ndarray]:
        """A forward pass in evaluation mode; what the net returns."""
        self.net.set_train(False)
        with self._fixed(Draws(0)), leaf_outputs(self.net, seen, self.alignment):
            found = [each.asnumpy() for each in flat(self.net(*tensors(images)), Tensor)]
        put_back(self._counts)
        return found

    def step(self, images: Images, labels: np.ndarray, seen: Seen | None) -> StepArrays:
        """One training step, an epoch of its own; `seen` is told of every leaf module's output."""
        self.net.set_train(True)
        inputs, y = tensors(images), target(labels)
        x = inputs if len(inputs) > 1 else inputs[0]
        draws = self.next_draws()
        hides = self.compiled is not None and own_step(self.paired) is not None  # no hook shows the inside of the step
        number = self.train_step.steps
        before = {name: array.copy() for name, array in self.parameters().items()} if hides else {}
        watches = self._watches and not hides
        result, taken = self._watched(x, y, seen, draws) if watches else self._unwatched(x, y, draws)
        self.train_step.end_epoch()
        updated = bool(taken) or not self._watches or not shows_its_optimizer(self.paired)
        if hides:  # at a rate of zero an update moves nothing
            moved = any(not np.array_equal(array, before[name]) for name, array in self.parameters().items())
            updated = self._updated.get(number, True) or moved
        else:
            self._updated[number] = updated
        given = taken or result.grads if updated else {}
        if self.alignment.scope.own_step and not taken and own_step(self.paired) is None:
            given = {}  # compiled: what reaches the optimizer after the clipping cannot be seen
        order = [held.name for held in self.held if held.parameter.requires_grad and held.name in given]
        grads = self._as_torch({name: given[name] for name in order})
        finite = None if result.finite is None else bool(result.finite)
        image_grad = None if result.image_grad is None else result.image_grad.asnumpy()
        logits = None if result.logits is None else result.logits.asnumpy()
        return StepArrays(result.loss.asnumpy(), logits, grads, image_grad, finite, updated)

    def _watched(self, x: Any, y: Tensor, seen: Seen | None, draws: Draws) -> tuple[StepResult, dict[str, Tensor]]:
        """The step, with its layers' outputs passed to `seen`, and the gradients that its optimizer was given.

        A step of the user's that compiles the net, with mindspore.jit, compiles the hooks on its Cells, too, and so
        fails (MindSpore 2.10); it then runs again from where it began, without hooks, as do all later steps.
        """
        state = [(p, p.value().copy()) for p in self._state()] if own_step(self.paired) is not None else []
        values = self._plain_values()
        sees_grads = self.alignment.scope.own_step and self.compiled is None  # else the hook would be compiled, too
        try:
            with (
                self.compiled.taking(self.train_step) if self.compiled else self._fixed(draws),
                leaf_outputs(self.net, self._once(seen), self.alignment) if seen else nullcontext(),
                self._functions(self._once(seen)) if seen and self.compiled is None else nullcontext(),
                given_to(self.train_step) if sees_grads else nullcontext() as taken,
            ):
                return self.train_step(x, y), taken or {}
        except WorkerFailed:
            if own_step(self.paired) is None:
                raise
        for parameter, value in state:
            parameter.copy_(value)
        self._put_back(values)
        self.draws.pop()
        found = self._unwatched(x, y, draws)
        self._watches = False
        return found

    def _unwatched(self, x: Any, y: Tensor, draws: Draws) -> tuple[StepResult, dict[str, Tensor]]:
        """The user's own step, with no hook on any Cell."""
        step = self.train_step
        assert isinstance(step, PairStep)
        step.watches = False
        with self.compiled.taking(step) if self.compiled else self._fixed(draws):
            return step(x, y), {}

    def _state(self) -> list[Any]:
        """Every parameter that a step may move."""
        optimizer = self.train_step.optimizer
        cells = [self.net, *([optimizer] if isinstance(optimizer, nn.Cell) else [])]
        held = {id(p): p for cell in cells for _, p in cell.parameters_and_names()}
        return list(({id(p): p for p in self._own_state()} | held).values())

    def loss_scaling(self) -> Arrays:
        """The loss scale and the count of good steps in force; empty without a loss scale."""
        scaler = self.train_step.scaler
        if own_step(self.paired) is not None:
            found = self.train_step.found if isinstance(self.train_step, PairStep) else None
            scale = None if found is None else found.scale
            return {} if scale is None else {"scale": np.array([one_number(scale, "MindSpore", "scale")])}
        if scaler is None:
            return {}
        if self.alignment.scope.own_step:  # a user's step does not say how many were good
            return {"scale": scaler.scale.asnumpy().reshape(1).astype(np.float64)}
        count = scaler.growth_tracker.asnumpy().astype(np.int64)
        return {"scale": scaler.scale.asnumpy().reshape(1), "good steps": count.reshape(1)}

    def ema(self) -> Arrays:
        """The moving average of parameters and buffers; empty without one."""
        step = self.train_step
        own = isinstance(step, PairStep) and step.taken.step is not None
        return self._as_torch(step.own_average() if isinstance(step, PairStep) and own else step.ema())

    def _once(self, seen: Seen) -> Seen:
        """`seen`, without the outputs that a step computes again on the same images; compiled code does so once."""
        step = self.train_step
        if not isinstance(step, PairStep) or step.taken.step is None:
            return seen
        calls: dict[str, int] = {}

        def keep(leaf: LeafOutput) -> None:
            if not step.again:
                number = calls.get(leaf.name, 0)
                calls[leaf.name] = number + 1
                seen(replace(leaf, call=number))

        return keep

    def average(self, values: Arrays, update: int) -> None:
        """Take one update of the moving average alone, with these parameters."""
        average = self.train_step.average
        assert average is not None
        self._hold(values)
        average.prepare(update)
        average()

    def hyperparameters(self) -> Mapping[Part, Arrays]:
        """See Side."""
        if not (step := self.train_step) or not self.alignment.scope.rates:
            return {}
        found = step.learning_rates(), step.weight_decays(), momenta(step)
        rates, decays, moved = (self.alignment.as_torch({n: np.array([x]) for n, x in e.items()}) for e in found)
        return {RATES: {n: np.concatenate([rates[n], decays[n]]) for n in rates if n in decays}, MOMENTA: moved}

    def optimizer_state(self) -> Mapping[str, Arrays]:
        """State key -> name -> tensor, under torch's names."""
        if not self.alignment.scope.optimizer_state:
            return {}
        state = optimizer_state(self.train_step)
        return {key: self._as_torch(held) for key, held in state.items()}

    def updates_alone(self) -> bool:
        """False where the user's own optimizer has a list of rates that ends before that, or where it is unknown."""
        if hides_its_optimizer(self.paired):
            return False
        found = getattr(self.train_step.optimizer, "learning_rate", None)
        lists = [
            getattr(one, "learning_rate", None) for one in (found if isinstance(found, (list, tuple)) else [found])
        ]
        ends = [rates for rates in lists if isinstance(rates, Tensor) and rates.ndim == 1 and rates.size < GIVEN_STEPS]
        return own_step(self.paired) is None or not ends

    def apply(self, grads: Arrays) -> None:
        """Clip and apply these unscaled gradients."""
        with fixed(self.net, self.next_draws(), self.names):  # there are optimizers that add noise
            self.train_step.apply(self._given(grads))
        self.train_step.end_epoch()

    def clipped(self, grads: Arrays) -> Arrays:
        """The gradients that the optimizer would be given for these unscaled ones; empty where the step is skipped."""
        found = self._as_torch(given_to_optimizer(self.train_step, self._given(grads)))
        return {name: grad for name, grad in found.items() if name in grads}

    def accumulated(self, parts: Sequence[Arrays]) -> Arrays:
        """The unscaled gradients of a step whose micro-batches' losses have these gradients."""
        found = self._as_torch(accumulated(self.train_step, [self.alignment.as_mindspore(part) for part in parts]))
        return {name: grad for name, grad in found.items() if name in parts[0]}

    def loss(self, logits: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss of given logits, and its gradient by them."""
        with fixed(self.net, self.next_draws(), self.names):
            value, gradient = mindspore.value_and_grad(self.train_step.loss_function, 0)(Tensor(logits), target(labels))
        return value.asnumpy(), gradient.asnumpy()

    def _fixed(self, draws: Draws) -> AbstractContextManager[Draws]:
        """Draw these, and keep what was drawn."""
        self.draws.append(draws)
        return fixed(self.net, draws, self.names)

    def batch(self, images: Images, labels: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """A batch as this framework holds it."""
        return [x.asnumpy() for x in tensors(images)], target(labels).asnumpy()

    def _functions(self, seen: Seen) -> AbstractContextManager[None]:
        """Pass to `seen` the sides of ReLUs that are function calls, or parts of what counts as one layer."""
        classes, of = table.layer_classes(), self.alignment
        cells = {
            torch: (cell, classes.get(type(cell).__name__) if of.identity or path in of.mindspore_layers else None)
            for path, cell in self.net.cells_and_names()
            if (torch := of.torch_path(path)) is not None
        }

        def keep(name: str, call: int, kind: str, made: np.ndarray) -> None:
            seen(LeafOutput(name, call, kind, made, made=made))

        return function_choices(cells, keep)

    def _given(self, grads: Arrays) -> dict[str, Tensor]:
        """These gradients for every weight of the step; zeros for weights without one."""
        # without cuts the gradients stay a mapping that makes up one at a time
        grads = self.alignment.as_mindspore(grads) if self.alignment.cuts else grads
        weights = zip(self.train_step.names, self.train_step.weights, strict=True)
        return {
            name: Tensor(grads[name].reshape(weight.shape)) if name in grads else ops.zeros_like(weight)
            for name, weight in weights
        }

    def _as_torch(self, tensors: Mapping[str, Tensor]) -> Arrays:
        """The values by torch's names and in torch's shapes, by the alignment where the net's differ."""
        arrays = {name: tensor.asnumpy() for name, tensor in tensors.items()}
        shapes = {name: self._shapes.get(name, array.shape) for name, array in arrays.items()}
        if any(array.ndim for array in arrays.values()):  # not an optimizer's counts: a number for each weight
            arrays = {n: a.reshape(shapes[n]) if a.size == math.prod(shapes[n]) else a for n, a in arrays.items()}
        return self.alignment.as_torch(arrays)


def _moving_output(run: int) -> Callable[..., Any]:
    """A hook that moves a Cell's output, and so the gradient that comes back to it."""

    def each(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            parts = [each(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        real = isinstance(value, Tensor) and value.is_floating_point()
        return value * Tensor(factors(value.asnumpy(), run)) if real else value

    return lambda _, __, output: each(output)


@contextmanager
def leaf_outputs(net: nn.Cell, seen: Seen, alignment: Alignment = IDENTITY) -> Iterator[None]:
    """Pass to `seen` every childless Cell's output (in a pair: that of every layer with a counterpart), under torch's
    names and class names. PyNative only: in Graph mode hooks on Cells silently never fire."""
    classes = table.layer_classes()
    calls: dict[str, int] = {}

    def hook_for(name: str) -> object:
        def hook(cell: nn.Cell, inputs: tuple[Tensor, ...], output: object) -> None:
            call = calls.get(name, 0)
            calls[name] = call + 1
            torch = alignment.torch_call(name, call)
            if isinstance(output, Tensor) and torch is not None:
                kind = classes.get(type(cell).__name__)
                source = inputs[0].asnumpy() if kind in BY_INPUT else None
                seen(LeafOutput(*torch, kind, in_torchs_shape(output.asnumpy(), torch[0]), source))
            elif torch is not None and not torch[0]:  # a net without layers, which gives several tensors
                for index, each in enumerate(flat(output, Tensor)):
                    seen(LeafOutput(f"outputs.{index}", torch[1], None, each.asnumpy()))

        return hook

    def in_torchs_shape(array: np.ndarray, path: str) -> np.ndarray:
        if path in alignment.for_all and len(array) == 1:
            return np.repeat(array, examples[0], 0)
        shape = (*array.shape[:1], *alignment.shapes.get(path, array.shape[1:]))
        moved = channels_moved(array.shape, shape)
        if moved is not None:
            return np.moveaxis(array, *moved)
        return array.reshape(shape) if array.size == math.prod(shape) else array

    def begins(_: nn.Cell, inputs: tuple[Tensor, ...]) -> None:
        examples[:] = [len(each) for each in flat(inputs, Tensor)[:1]] or examples

    examples = [1]  # of the batch that the net is given
    # a model zoo's DropPath has a Dropout inside, torch's has none: what leaves the branch is compared
    branches = [f"{name}." for name, cell in net.cells_and_names() if type(cell).__name__ in BRANCHES]
    handles = [net.register_forward_pre_hook(begins)] if alignment.for_all else []
    handles += [
        cell.register_forward_hook(hook_for(name))
        for name, cell in net.cells_and_names()
        if (
            (not cell.cells() or f"{name}." in branches) and not name.startswith(tuple(branches))
            if alignment.identity
            else name in alignment.mindspore_layers
        )
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _replaced(step: TrainStep, **values: Any) -> Iterator[None]:
    """Within this block the step has other attributes; compiled code would not see them."""
    kept = {name: getattr(step, name) for name in values}
    for name, value in values.items():
        setattr(step, name, value)
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(step, name, value)


@contextmanager
def given_to(step: TrainStep) -> Iterator[dict[str, Tensor]]:
    """Within this block, the gradients that the step's optimizer was last given, by torch's names.

    PyNative only, and for optimizers that are Cells, as MindSpore's are."""
    found: dict[str, Tensor] = {}

    def look(_: nn.Cell, inputs: tuple[Any, ...]) -> None:
        found.clear()
        grads = inputs[0] if isinstance(inputs[0], (tuple, list)) else inputs
        # copies: a step that adds up in parameters clears them next; weights that it leaves alone come after the others
        found.update(zip(step.names, [grad.copy() for grad in grads], strict=False))

    handle = step.optimizer.register_forward_pre_hook(look) if isinstance(step.optimizer, nn.Cell) else None
    try:
        yield found
    finally:
        if handle is not None:
            handle.remove()


def given_to_optimizer(step: TrainStep, grads: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The gradients that the optimizer is called with when the step applies these unscaled ones; empty if it is not."""
    calls: list[Any] = []
    with _replaced(step, optimizer=calls.append):
        step.apply(dict(grads))
    return dict(zip(step.names, calls[0], strict=False)) if calls else {}  # weights that it leaves alone come last


def accumulated(step: TrainStep, parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Tensor]:
    """The unscaled gradients of a step whose micro-batches have these gradients, each name -> gradient.

    The loss of a micro-batch is the sum over all weights of weight times given gradient, which the step divides,
    scales and differentiates as it does any other.
    """
    given = iter(parts)

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        grads = next(given)
        total = ops.zeros((), mindspore.float32)
        weights = {n: weight for n, weight in zip(step.names, step.weights, strict=True) if n in grads}
        for name, weight in weights.items():
            total = total + (ops.cast(weight, mindspore.float32) * Tensor(grads[name].reshape(weight.shape))).sum()
        return total

    count = len(parts)
    images = Tensor(np.zeros((count, 1), np.float32))
    labels = Tensor(np.zeros((count,), np.int32))
    with _replaced(step, net=lambda x: ops.cast(x, mindspore.float32) * 1.0, loss_function=loss):
        return dict(step(images, labels).grads)
