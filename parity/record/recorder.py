"""What is recorded of any Side, and in which order; the parts of a step on given values.

In the step itself a fault of such a part (accumulation, clipping, overflows) shows as wrong weights only, hidden among
all other faults of the step.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from safetensors.numpy import load_file, save_file

from ...errors import WorkerFailed
from ...training.recipe.schema import Recipe
from ...workers.worker import progress
from ..align.alignment import Alignment
from ..options import MODEL
from ..run_folder import UNJUDGED
from ..trace import (
    BUFFERS,
    DISTRIBUTION,
    GIVEN_GRADIENTS,
    GIVEN_OVERFLOWS,
    GIVEN_WEIGHTS,
    MOMENTA,
    RATES,
    REDUCED_GRADIENTS,
    SIDES_STAGE,
    STEPS_TAKEN,
    Part,
    RecordedStage,
    TraceWriter,
    sample_positions,
)
from .batches import Batch, Images, Inputs
from .kinks import choice
from .randomness import GIVEN_STEPS, Draws, GivenGradients, given_gradient, given_logits, given_weights


def kept(array: np.ndarray) -> np.ndarray:
    """A copy of the values, in half the memory where they are float32's in a float64 array, as all starting weights
    are."""
    if array.dtype == np.float64:
        short = array.astype(np.float32)
        if np.array_equal(short, array, equal_nan=True):
            return short
    return array.copy()


def change(now: np.ndarray, before: np.ndarray) -> np.ndarray:
    """now - before, exactly: the difference of two float32 values is rounded to float64 only.

    An infinity that stays, as in a mask of attention, has not changed.
    """
    with np.errstate(invalid="ignore"):
        found = np.subtract(now, before, dtype=np.float64)
    stayed = np.isnan(found) & (now == before)
    return np.where(stayed, 0.0, found) if stayed.any() else found


Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class LeafOutput:
    """A leaf module's output: its dotted name, how often it had run before, its torch class name (None: no row in
    the mapping table), its output, and its input where the class is one of BY_INPUT.
    made: for a function call, which has no output of its own to compare, the choice alone."""

    name: str
    call: int
    module: str | None
    output: np.ndarray
    input: np.ndarray | None = None
    made: np.ndarray | None = None


Seen = Callable[[LeafOutput], None]


@dataclass(frozen=True)
class StepArrays:
    """What one step computed: the loss (scalar), the logits (N, K), gradients by state_dict name, the images' gradient
    (N, C, H, W; None where the model's input has none), and whether the gradients were all finite (None: not checked,
    as there is no loss scale). logits: None for a user's step that shows none; updated: whether its optimizer was
    called."""

    loss: np.ndarray
    logits: np.ndarray | None
    grads: Arrays
    image_grad: np.ndarray | None
    finite: bool | None = None
    updated: bool = True


REDUCED = 64.0  # a power of two: multiplying by it rounds nothing

STARTS = "mindspore-starts"  # in a run's folder
VALUES, EMA, STATE = "values", "ema", "state"


@dataclass(frozen=True)
class StepStart:
    """values: weights and buffers by name; ema: their moving average; state: the optimizer's floating state by torch's
    key, then name."""

    values: Arrays
    ema: Arrays
    state: Mapping[str, Arrays]

    @property
    def finite(self) -> bool:
        """Whether all of it is finite: no step can begin with anything else."""
        held = (self.values, self.ema, *self.state.values())
        return all(bool(np.isfinite(array).all()) for arrays in held for array in arrays.values())


class StepStarts:
    """What MindSpore's side held when its second step began, and at each later one, in a run's folder: the same steps
    of torch, and those of the compiled net, begin with it.

    Rounding that differs by 1e-7 after one step takes another side at some ReLU of the next, and where a net multiplies
    rounding, torch's own second step is a tenth of itself from its float64 values: nothing could be judged there. With
    a common start every step is judged by what it computes itself. Nothing is hidden by this: a step's result is
    compared before the next one begins.
    """

    def __init__(self, run: Path) -> None:
        self.folder = run / STARTS

    def keep(self, side: Side, step: int) -> None:
        """Write down what `side` holds before a step (from 1)."""
        if step == 1:
            return
        self.folder.mkdir(exist_ok=True)
        held = {(VALUES, ""): {**side.parameters(), **side.buffers()}, (EMA, ""): side.ema()}
        held |= {(STATE, key): arrays for key, arrays in side.optimizer_state().items()}
        arrays = {
            f"{kind} {key} {name}": np.ascontiguousarray(array)
            for (kind, key), each in held.items()
            for name, array in each.items()
            if array.dtype.kind == "f"
        }
        save_file(arrays, self._file(step))

    def of(self, step: int) -> StepStart | None:
        """What was held before a step; None for the first one, where nothing was kept, and where it is not finite."""
        if step == 1 or not self._file(step).exists():
            return None
        found: dict[str, dict[str, dict[str, np.ndarray]]] = {VALUES: {}, EMA: {}, STATE: {}}
        for label, array in load_file(self._file(step)).items():
            kind, key, name = label.split(" ", 2)
            found[kind].setdefault(key, {})[name] = array
        start = StepStart(found[VALUES].get("", {}), found[EMA].get("", {}), found[STATE])
        return start if start.finite else None

    def remove(self) -> None:
        """Remove them: nothing needs them once both sides have taken their steps."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, step: int) -> Path:
        return self.folder / f"step{step}.safetensors"


class Side(Protocol):
    """One framework holding a model at the starting weights; names are torch's, arrays are the framework's dtypes.

    draws: what each pass drew, but for compiled ones.
    """

    recipe: Recipe
    alignment: Alignment
    train_step: Any
    draws: list[Draws]

    def parameters(self) -> Arrays:
        """Trainable parameters as they are now."""

    def alike(self, name: str) -> bool:
        """Whether both frameworks train this parameter, in one shape: only such parameters are given gradients."""
        return self.alignment.alike(name)

    def buffers(self) -> Arrays:
        """Buffers that cross (running statistics) as they are now."""

    def start_buffers(self) -> Arrays:
        """Those that the model starts with, in its own dtypes."""
        return self.buffers()

    def evaluate(self, images: Images, seen: Seen) -> list[np.ndarray]:
        """A forward pass in evaluation mode; what the model returns."""

    def step(self, images: Images, labels: np.ndarray, seen: Seen | None) -> StepArrays:
        """One training step, an epoch of its own, so that a schedule that moves once an epoch moves; every leaf
        module's output is passed to `seen`."""

    def loss_scaling(self) -> Arrays:
        """The loss scale and the count of good steps in force; empty without a loss scale."""

    def ema(self) -> Arrays:
        """The moving average of parameters and buffers that cross; empty without one."""

    def average(self, values: Arrays, update: int) -> None:
        """Take the given update (from 1) of the moving average alone, with these parameters."""

    def optimizer_state(self) -> Mapping[str, Arrays]:
        """State key -> name -> tensor."""

    def hyperparameters(self) -> Mapping[Part, Arrays]:
        """RATES: name -> [learning rate, weight decay] of its next update; MOMENTA: name -> [momentum], where a
        schedule moves it."""
        if not self.alignment.scope.rates:
            return {}
        step, left_alone = self.train_step, self.alignment.left_alone
        rates, decays, momenta = step.learning_rates(), step.weight_decays(), step.momenta()
        pairs = {name: np.array([rates[name], decays[name]]) for name in rates if name not in left_alone}
        return {RATES: pairs, MOMENTA: {n: np.array([value]) for n, value in momenta.items() if n not in left_alone}}

    def restart(self) -> None:
        """Back to the starting weights with a new optimizer and schedule."""

    def begin(self, start: StepStart | None) -> None:
        """Go on from what MindSpore's side held before this step; None: from what this side holds."""

    def updates_alone(self) -> bool:
        """Whether the optimizer does by itself what it does in a step, given gradients GIVEN_STEPS times."""

    def apply(self, grads: Arrays) -> None:
        """Clip and apply these unscaled gradients: the second half of a step alone."""

    def loss(self, logits: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss of given logits, and its gradient by them."""

    def clipped(self, grads: Arrays) -> Arrays:
        """The gradients that the optimizer would be given for these unscaled ones; empty where the step is skipped."""

    def accumulated(self, parts: Sequence[Arrays]) -> Arrays:
        """The unscaled gradients of a step whose micro-batches' losses have these gradients."""

    def batch(self, images: Images, labels: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """A batch as the framework holds it: every input, and the labels."""

    def reducing(self) -> AbstractContextManager[list[bool]]:
        """Within this block every step's gradients become REDUCED times as large where processes would take their mean;
        the list is empty until that has happened."""

    def next_draws(self) -> Draws:
        """The numbers for the next step."""
        return Draws(self.train_step.steps + 1)


def record_data(batches: Sequence[Batch], writer: TraceWriter) -> None:
    """The batch of each step, before and after mixing."""
    for i, batch in enumerate(batches, 1):
        writer.add("data", Part.of_step(i), "images", batch.images)
        writer.add("data", Part.of_step(i), "labels", batch.labels)
        if batch.mixed is not None and batch.soft is not None:
            writer.add("data", Part.of_step(i), "mixed images", batch.mixed)
            writer.add("data", Part.of_step(i), "soft targets", batch.soft)


def record_given(side: Side, inputs: Inputs, writer: TraceWriter) -> None:
    """The batch of each step, from a file of the user's, as the framework holds it."""
    for step, given in enumerate(zip(inputs.images, inputs.labels, strict=True), 1):
        images, labels = side.batch(*given)
        for k, array in enumerate(images):
            writer.add("data", Part.of_step(step), f"images{f'.{k}' if k else ''}", array)
        writer.add("data", Part.of_step(step), "labels", labels)


def record_start(side: Side, writer: TraceWriter) -> None:
    """The weights and buffers as the framework holds them, with digests: they have to be equal to the bit."""
    for name, array in {**side.parameters(), **side.start_buffers()}.items():
        writer.add("init", "values", name, array, digest=True)


PER_SEED = 4096  # values kept of a tensor for each seed
FIRST_SEED = 1000
ALIKE = 1e-6  # of the largest: as far as computed numbers are one number


def add_initial_values(writer: TraceWriter, seeds: int, draw: Callable[[int], Mapping[str, np.ndarray]]) -> None:
    """Record, for each parameter, values pooled over `seeds` newly drawn models."""
    pooled: dict[str, list[np.ndarray]] = {}
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for name, values in draw(seed).items():
            flat = values.reshape(-1)
            if flat.size > PER_SEED:
                flat = flat[sample_positions(flat.size, PER_SEED)]
            pooled.setdefault(name, []).append(flat.copy())
    for name, parts in pooled.items():
        writer.add("init", DISTRIBUTION, name, np.concatenate(_independent(parts)), whole=True)


def _independent(parts: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """The values of each model; one of them where all are computed from one that was drawn, as `bias / weight.std()`
    of a constant bias: as many of them would pass for as many draws."""
    with np.errstate(invalid="ignore"):  # infinities, as in a mask
        alike = all(part.size > 1 and np.ptp(part) <= ALIKE * np.abs(part).max() for part in parts)
        constant = alike and np.ptp([part[0] for part in parts]) <= ALIKE * np.abs(parts[0]).max()
    return [part[:1] for part in parts] if alike and not constant else parts


def record_evaluation(side: Side, inputs: Inputs, writer: TraceWriter) -> None:
    """Every leaf module's output in evaluation mode, and the model's own; values that the model changes there are put
    back."""
    if writer.wants("forward"):
        before = _sums_of(side)
        add_model_outputs(writer, side.evaluate(inputs.images[0], lambda leaf: add_output(writer, "eval", leaf)))
        writer.flush("forward", "eval")
        if _sums_of(side) != before:
            side.restart()


def _sums_of(side: Side) -> dict[str, int]:
    """Checksums of what the model has: a forward pass may write into its weights, too."""
    values = {**side.parameters(), **side.buffers()}
    return {
        name: zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data) for name, array in values.items()
    }


def record_steps(
    side: Side,
    inputs: Inputs,
    writer: TraceWriter,
    label: str,
    sides: bool = False,
    outputs: bool = False,
    starts: StepStarts | None = None,
    begin: bool = False,
    before: Callable[[], object] = lambda: None,
    once: int = 0,
) -> None:
    """Train for len(inputs.images) steps and record losses, the gradients of the first step that was not skipped
    because of an overflow (for a user's own step: of each such step), the changes by each step that was not skipped and
    by the last one, and the loss scale.

    With `outputs`, also the first step's leaf outputs; with `sides` these, and in every step the side each kink's input
    was on. starts: where the state before each step is kept or, if `begin`, taken from. before: called before each
    step. No more steps are taken than the stages that the writer wants need; with `once` none after the first, from
    that number on, that has moved a weight, and the head of the trace says how many were taken.
    """
    updates, gradients = writer.wants("update"), writer.wants("gradients")
    start: dict[str, np.ndarray] = {}
    rates: dict[tuple[Part, str], list[np.ndarray]] = {}
    taken = False  # whether any step has updated the weights
    for i, (images, labels) in enumerate(zip(inputs.images, inputs.labels, strict=True), 1):
        total = i if once else len(inputs.images)
        progress(f"{label}: training step {i} of {total}", done=i - 1, total=total)
        before()
        if starts is not None and begin:
            side.begin(starts.of(i))
        elif starts is not None:
            starts.keep(side, i)
        if updates and not start:
            start = {name: kept(array) for name, array in {**side.parameters(), **side.buffers()}.items()}
        for moved, named in side.hyperparameters().items():
            for name, values in named.items():
                rates.setdefault((moved, name), []).append(values)
        seen = _step_outputs(writer, i, sides) if sides or (outputs and i == 1) else None
        result = side.step(images, labels, seen)
        if seen is not None:
            writer.flush("forward", "train")
            writer.flush(SIDES_STAGE, Part.of_step(i))
        # what a later step computes depends on the updates before it
        stage: RecordedStage = "loss" if i == 1 else "update"
        part = Part.of_step(i, "" if i == 1 else "loss")
        if result.logits is not None:
            writer.add(stage, part, "logits", result.logits)
        writer.add(stage, part, "loss", result.loss)
        _loss_scaling(side, writer, i, result)
        last = i == len(inputs.images)
        # overflowed gradients cannot be compared, so take those of the first step that was not skipped
        updated = result.finite is not False and result.updated
        first = not taken and (updated or last)
        taken = taken or updated
        if first and (gradients or updates):
            for name in reversed(list(result.grads)):  # the backward pass reaches the last layer first
                writer.add("gradients", "parameters", name, result.grads[name])
            if result.image_grad is not None:
                writer.add("gradients", "images", "images", result.image_grad)
        elif updated and gradients and side.alignment.scope.own_step:  # a user's step may keep earlier gradients
            for name in reversed(list(result.grads)):
                writer.add("gradients", Part.of_step(i), name, result.grads[name])
            writer.flush("gradients", Part.of_step(i))
        if updates and (updated or last):
            _update(side, writer, Part.of_step(i), start)
            if (
                once
                and i >= once
                and any(not np.array_equal(array, start[name]) for name, array in side.parameters().items())
            ):
                writer.about = {**writer.about, STEPS_TAKEN: i}
                return
            start = {}  # a step's change is judged relative to the values that it began with
        del result  # else its gradients stay in memory until the next step's are computed
        if not updates and (first or not gradients):
            break
    for (moved, name), each in rates.items():
        writer.add("update", moved, name, np.stack(each))


def record_reduced(side: Side, inputs: Inputs, writer: TraceWriter) -> bool:
    """Record the optimizer's gradients at the first update from the starting weights, with a reducer that makes them
    REDUCED times as large: clipping before it and after it differ. Returns whether the reducer was called."""
    side.restart()
    drawn = len(side.draws)
    grads: Arrays = {}
    try:
        with side.reducing() as reduced:
            for images, labels in zip(inputs.images, inputs.labels, strict=True):
                grads = side.step(images, labels, None).grads
                if grads:
                    break
    except WorkerFailed:  # a step that fails with anything else in its reducer's place
        return False
    finally:
        del side.draws[drawn:]  # the same as those of the ordinary step
    for name in reversed(list(grads)) if reduced else ():
        writer.add("gradients", REDUCED_GRADIENTS, name, grads[name])
    writer.flush("gradients", REDUCED_GRADIENTS)
    return bool(reduced and grads)


def record_probes(side: Side, inputs: Inputs, writer: TraceWriter) -> None:
    """The loss on given logits, and the optimizer on given gradients, from the starting weights."""
    if inputs.scope.given_logits and writer.wants("loss"):
        shape = inputs.logits or (len(inputs.labels[0]), inputs.classes)
        value, gradient = side.loss(given_logits(shape, inputs.values), inputs.labels[0])
        writer.add("loss", "given logits", "loss", value)
        writer.add("loss", "given logits", "logits.grad", gradient)
    if not writer.wants("update"):
        return
    side.restart()
    if not side.updates_alone():
        return
    start = {name: kept(array) for name, array in side.parameters().items()}
    shapes = {name: array.shape for name, array in start.items() if side.alike(name)}
    for i in range(GIVEN_STEPS):
        side.apply(GivenGradients(shapes, i))
    _update(side, writer, GIVEN_GRADIENTS, start, given=True)
    if inputs.scope.own_step or not side.ema():
        return
    # a moving average of weights that hardly move shows little: the given ones jump
    side.restart()
    start = {name: array.copy() for name, array in side.ema().items()}
    for i in range(1, GIVEN_STEPS + 1):
        side.average({name: given_weights(name, array.shape, i) for name, array in side.parameters().items()}, i)
    for name, array in side.ema().items():
        if name in side.parameters() and side.alike(name):
            writer.add("update", GIVEN_WEIGHTS, name, change(array, start[name]))
    writer.flush("update", GIVEN_WEIGHTS)


def add_output(writer: TraceWriter, part: str, leaf: LeafOutput) -> None:
    """Record one leaf module's output under stage forward."""
    writer.add("forward", part, leaf.name, leaf.output, leaf.call, module=leaf.module)


def add_model_outputs(writer: TraceWriter, outputs: Sequence[np.ndarray]) -> None:
    """Record what a model returns in evaluation mode, which code behind its last layer may have made: the floating
    tensors, for rounding may decide which class is the largest."""
    floating = [each for each in outputs if each.dtype.kind == "f"]
    writer.about = {**writer.about, UNJUDGED: len(outputs) - len(floating)}
    for index, array in enumerate(floating):
        writer.add("forward", "eval", f"{MODEL}.{index}" if index else MODEL, array)


def _step_outputs(writer: TraceWriter, step: int, sides: bool) -> Seen:
    def seen(leaf: LeafOutput) -> None:
        if step == 1 and leaf.made is None:
            add_output(writer, "train", leaf)
        if not sides:
            return
        side = choice(leaf.module, leaf.output, leaf.input) if leaf.made is None else leaf.made
        if side is not None:
            writer.add(SIDES_STAGE, Part.of_step(step), leaf.name, side, leaf.call, module=leaf.module, whole=True)

    return seen


def _loss_scaling(side: Side, writer: TraceWriter, step: int, result: StepArrays) -> None:
    """Record the loss scale after a step; whole numbers, so that they have to be equal."""
    for name, value in side.loss_scaling().items():
        writer.add("update", "loss scale", f"step{step} {name}", value)
    if result.finite is not None:
        writer.add("update", "loss scale", f"step{step} finite", np.array([result.finite], np.int64))


def _update(side: Side, writer: TraceWriter, part: str, start: Arrays, given: bool = False) -> None:
    """Record what has changed since `start`, and the optimizer's state; given: it was changed by given gradients, which
    only parameters that both frameworks train get."""
    for name, array in side.parameters().items():
        if not given or side.alike(name):
            writer.add("update", part, name, change(array, start[name]))
    if not given:
        for name, array in side.buffers().items():
            writer.add("update", f"{part} {BUFFERS}", name, change(array, start[name]))
    for key, arrays in side.optimizer_state().items():
        for name, array in arrays.items():
            if not given or side.alike(name):
                writer.add("update", f"{part} {key}", name, array)
    for name, array in side.ema().items() if not (given and side.alignment.scope.own_step) else ():
        if not given or side.alike(name):
            writer.add("update", f"{part} ema", name, array)
    writer.flush("update", part)


# norms of the given gradients, in units of the norm that they are clipped to: some are clipped, some are not
NORMS = (0.25, 0.999, 1.001, 3.0, 100.0)
WHOLE = 3.0  # at this norm every gradient is compared, at the others only the gradients' norms
# the last element of the given gradients of each step (0: unchanged): the scale shrinks, and starts to count anew
OVERFLOWS = (0.0, 0.0, np.inf, 0.0, 0.0, np.nan, 0.0, -np.inf, np.inf, 0.0)


def record_parts(side: Side, writer: TraceWriter) -> None:
    """Record those parts that the recipe has and the writer wants, from the starting weights; the weights move."""
    recipe = side.recipe
    if side.alignment.scope.own_step or not any(side.alike(name) for name in side.parameters()):
        return  # a step that only the user knows, or no parameter that could be given a gradient on both sides
    if writer.wants("gradients") and (recipe.accumulate > 1 or side.loss_scaling()):
        side.restart()
        _accumulation(side, writer, recipe.accumulate)
    if not writer.wants("update"):
        return
    if recipe.clip is not None:
        side.restart()
        _clipping(side, writer, recipe.clip.max_norm)
    if side.loss_scaling():
        side.restart()
        _overflows(side, writer)


def _given(side: Side, step: int) -> dict[str, np.ndarray]:
    given = {name: array.shape for name, array in side.parameters().items() if side.alike(name)}
    return {name: given_gradient(name, shape, step) for name, shape in given.items()}


def _accumulation(side: Side, writer: TraceWriter, parts: int) -> None:
    """Every step has other micro-batches: if a sum keeps something of the step before, the last step shows it."""
    found: Arrays = {}
    for step in range(GIVEN_STEPS):
        found = side.accumulated([_given(side, step * parts + part) for part in range(parts)])
    for name in reversed(list(found)):
        writer.add("gradients", "given micro-batches", name, found[name])
    writer.flush("gradients", "given micro-batches")


def _clipping(side: Side, writer: TraceWriter, max_norm: float) -> None:
    for step, factor in enumerate(NORMS):
        grads = _given(side, step)
        norm = np.sqrt(sum(float(np.square(grad, dtype=np.float64).sum()) for grad in grads.values()))
        share = np.float32(factor * max_norm / norm)
        # the product of an array without axes is a number
        clipped = side.clipped({name: np.asarray(grad * share) for name, grad in grads.items()})
        norms = [
            np.linalg.norm(array.astype(np.float64)) for array in (clipped[name] for name in grads if name in clipped)
        ]
        writer.add("update", "given norms", f"gradients' norms at {factor:g}", np.array(norms))
        for name, array in clipped.items() if factor == WHOLE else ():
            writer.add("update", "given norms", name, array)
    writer.flush("update", "given norms")


def _overflows(side: Side, writer: TraceWriter) -> None:
    """Record steps with given gradients, some of them not finite: the scale after each, and the weights at the end."""
    start = {name: array.copy() for name, array in side.parameters().items()}
    for step, wrong in enumerate(OVERFLOWS, 1):
        grads = _given(side, step)
        if wrong:
            last = grads[list(grads)[-1]].reshape(-1)
            last[-1] = wrong
        side.apply(grads)
        for name, value in side.loss_scaling().items():
            writer.add("update", f"{GIVEN_OVERFLOWS} scale", f"step{step} {name}", value)
    for name, array in side.parameters().items():
        if side.alike(name):
            writer.add("update", GIVEN_OVERFLOWS, name, change(array, start[name]))
    writer.flush("update", GIVEN_OVERFLOWS)
