"""How exactly torch's float32 is known to compute a part of the step.

One tensor's own noise is one draw. On a large tensor that is plenty; on four running means torch may by luck be ten
times as exact as it usually is, and MindSpore's ordinary rounding would look like a fault. So a tensor's noise is never
taken to be less than a share of what is usual in its part of the trace, a share that falls with its element count.

A change (weights now, less the weights at the start) is rounded where the weight is stored, in the weight's units. On a
running mean that hardly moves this is all the noise there is, and four elements may round alike in torch's runs.
The usual noise of a running statistic's change is therefore relative to the statistic, not to the change, which is only
a small part of it: relative to the change, statistics that hardly move would make all the others' noise look large.

Where MindSpore's CPU kernels round more than torch's, as measured, is in the rows of record/kernels.yaml.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..mappings.row_reader import Fields, read_yaml
from .replay.module_calls import state_name
from .tensor_verdict import EPS32, FEW, ZERO, Measured, distance, without_farthest
from .trace import (
    ALONE,
    GIVEN_GRADIENTS,
    GIVEN_OVERFLOWS,
    GIVEN_WEIGHTS,
    MOMENTA,
    RATES,
    STEPS_TAKEN,
    WIRING,
    Entry,
    Key,
    Part,
    RecordedStage,
    Trace,
)


def is_change(entry: Entry) -> bool:
    """Whether an entry is a difference from the starting weights, rather than a value."""
    part = entry.part
    whole = (ALONE, WIRING, GIVEN_GRADIENTS, GIVEN_OVERFLOWS, GIVEN_WEIGHTS)
    step = part.step is not None and part == Part.of_step(part.step)
    return entry.stage == "update" and (step or part.of_buffers or part in whole)


# root mean square of rounding to float32, in EPS32 of the value: half a unit over sqrt(3), and a unit is EPS32 / 2 to
# EPS32 of the value
STORED = 0.25
# A cross-entropy takes the logarithm of a sum that is 1 or more, and rounds as numbers of that size do, however small
# it is itself: of a trained net it may be 1e-4, and torch's two runs may be exact to 1e-8 by luck. MindSpore's was
# measured up to 9e-7 off on the CPU (`python benchmarks/cross_entropy_mindspore.py`), under half of what this allows.
LOG_SUM = 3.0 * EPS32


ROUNDED = "reference is rounded"  # in a trace's head: it stands in float64's place, and is a run in float32 itself
GRADIENT = ".grad"  # ends the name of a gradient of a module that ran alone


def is_of_a_step(entry: Entry) -> bool:
    """Whether an entry is what the optimizer made of a real step's gradients: weights, state, their moving average."""
    return entry.stage == "update" and entry.part.step is not None and not entry.part.of_buffers


# what optimizers keep of squared gradients: torch's names of it
SQUARES = {"exp_avg_sq", "max_exp_avg_sq", "square_avg", "sum", "acc_delta"}


def is_of_squares(entry: Entry) -> bool:
    """Whether an entry is what an optimizer keeps of squared gradients, whose rounding is squared with them."""
    return is_of_a_step(entry) and entry.part.of in SQUARES


def is_of_a_statistic(entry: Entry) -> bool:
    """Whether an entry is the change of a buffer: what a forward pass did to running statistics."""
    return entry.stage == "update" and (entry.part.alone or entry.part.of_buffers)


NEARLY = 0.25  # of the largest learning rate: what storing weights adds to a change is not multiplied by more than four


def measuring_step(mindspore: Trace | None) -> int:
    """The first step, from 1, whose noise may stand for that of later ones: every learning rate that MindSpore's side
    has there is NEARLY its largest, as it is not where a warm-up begins."""
    entries = [] if mindspore is None else [e for e in mindspore.select("update", RATES) if len(e.shape) == 2]
    rates = [mindspore.array(e.key).reshape(e.shape)[:, 0] for e in entries] if mindspore is not None else []
    first = [int(np.argmax(each >= NEARLY * each.max())) for each in rates if each.size]
    return 1 + max(first, default=0)


class UsualNoise:
    """Relative noise by part, for one family of traces: float64 first, then the float32 runs; `start` is the trace
    that has the starting weights, `steps` the family that has the step's gradients."""

    def __init__(self, family: Sequence[Trace], start: Trace, steps: Sequence[Trace] = ()) -> None:
        self.family = family
        self.start = start
        self.steps = steps or family
        self._zeros: dict[str, bool] = {}
        self._usual: dict[tuple[str, str], float] = {}
        self._spreads: dict[Key, tuple[float, Measured]] = {}

    def floor(self, entry: Entry) -> float:
        """The share of its size by which rounding must be expected to move this tensor, however exact torch was on it.

        For n elements, min(1, sqrt(FEW / n)) of the median relative noise of the entry's part: an estimate from n
        elements is itself uncertain by about 1 / sqrt(n). A loss is a single number computed from its logits, and known
        no better than these, nor better than LOG_SUM, whichever loss it is: a step's loss depends on other tensors, and
        the function itself is judged by the loss on given logits, which is no small number.
        """
        elements = math.prod(entry.shape)
        share = min(1.0, math.sqrt(FEW / max(elements, 1)))
        then = self._before(entry) or entry
        usual = share * self._median(then.stage, then.part)
        if is_of_a_statistic(entry) and entry.norm > 0.0:
            usual *= self._unit(entry.key, entry.norm) / entry.norm
        floor = max(usual, self.stored(entry) / entry.norm if entry.norm > 0.0 else 0.0)
        logits = (then.stage, then.part, "logits", 0)
        if entry.name == "loss" and all(logits in trace.entries for trace in self.family):
            known = self._relative(logits)  # infinite where they are all zero, as a new transformer's: they say nothing
            floor = max(floor, known) if math.isfinite(known) else floor
            floor = max(floor, LOG_SUM * math.sqrt(elements) / entry.norm) if entry.norm > 0.0 else floor
        return floor

    @cached_property
    def taken(self) -> int | None:
        """How many steps the float32 runs took, where the float64 one took more."""
        counts = [trace.about.get(STEPS_TAKEN) for trace in self.family[1:]]
        known = [count for count in counts if type(count) is int and count > 0]
        return max(known) if len(known) == len(counts) and known else None

    def measured_before(self, entry: Entry) -> bool:
        """Whether the float32 runs lack an entry because it is of a step that only the float64 one took."""
        return self.taken is not None and (entry.part in (RATES, MOMENTA) or self._before(entry) is not None)

    def dtype_before(self, entry: Entry) -> str:
        """The dtype that such an entry has in float32's runs."""
        then = self._before(entry)
        found = [t.entries[then.key] for t in self.family[1:] if then.key in t.entries] if then is not None else []
        return found[0].dtype if found else entry.dtype

    def noise_before(self, entry: Entry, exact: np.ndarray, only: np.ndarray | None = None) -> Measured:
        """The noise that an entry of such a step is judged by: that of the same tensor in the last step that the
        float32 runs took, as large in proportion to the tensor as there; what storing weights adds to a change stays
        as it is. Learning rates have none.

        exact: the recorded float64 elements, flat; only: bool, which of all recorded elements these are, else all.
        """
        then = self._before(entry)
        if then is None:
            return Measured(0.0, 0.0)
        reference = self.family[0].array(then.key).astype(np.float64, copy=False)
        distances = [distance(t.array(then.key), reference) for t in self.family[1:] if then.key in t.entries]
        distances = [each for each in distances if each.shape == reference.shape and np.isfinite(each).all()]
        if only is not None and only.shape == reference.shape:
            reference, distances = reference[only], [each[only] for each in distances]
        if is_of_a_step(then):
            distances = [without_farthest(each) for each in distances]
        found = Measured.of(distances) if distances else Measured(math.inf, math.inf)
        size, now = float(np.linalg.norm(reference)), float(np.linalg.norm(exact))
        if size == 0.0 and now > 0.0:  # it did not move then: what is usual there
            usual = self._median(then.stage, then.part)
            return Measured(usual * now, usual * float(np.abs(exact).max()))
        grown = self._rate(entry) / self._rate(then) if is_change(entry) else 1.0
        # never less: a momentum may nearly cancel a gradient, and not its noise
        grown = max(grown, now / size) if size and not is_of_a_statistic(entry) else grown
        stored = self.stored(entry) * math.sqrt(exact.size / max(math.prod(entry.shape), 1))
        rest = math.sqrt(max(found.noise**2 - stored**2, 0.0)) * grown
        return Measured(math.hypot(rest, stored), found.peak * max(grown, 1.0))

    def _rate(self, entry: Entry) -> float:
        """The learning rate of an entry's step, 1 where none is recorded."""
        rates, step = self.family[0].entries.get(("update", RATES, entry.name, 0)), entry.part.step
        if rates is None or step is None or is_of_a_statistic(entry) or len(rates.shape) != 2 or rates.shape[0] < step:
            return 1.0
        return float(self.family[0].array(rates.key)[rates.shape[1] * (step - 1)]) or 1.0

    def _before(self, entry: Entry) -> Entry | None:
        """The same of the last step that the float32 runs took, for an entry of a later one."""
        step, last = entry.part.step, self.taken
        if last is None or step is None or step <= last:
            return None
        of_loss = last == 1 and entry.part.of == "loss"  # of the first step that is a stage of its own
        place = ("loss", Part.of_step(1)) if of_loss else (entry.stage, Part.of_step(last, entry.part.of))
        return self.family[0].entries.get((*place, entry.name, entry.call))

    def stored(self, entry: Entry) -> float:
        """How far (L2) storing the weights in float32 moves a change; 0 for what is none."""
        start = self._start_of(entry)
        if start is None or not is_change(entry) or start.norm <= 0.0:
            return 0.0
        return STORED * EPS32 * start.norm

    def is_zero(self, entry: Entry) -> bool:
        """Whether an entry is, or is computed from, a gradient that is zero in exact arithmetic, such as that of a bias
        before a norm, or of a key's bias. In torch's float64 step it is tiny compared with float32's rounding."""
        of_alone = entry.stage == "gradients" and entry.part.alone and entry.name.endswith(GRADIENT)
        if not (of_alone or is_of_a_step(entry)):
            return False
        name = state_name(entry.name.removesuffix(GRADIENT)) if of_alone else entry.name
        if name not in self._zeros:
            self._zeros[name] = self._cancels(("gradients", "parameters", name, 0))
        return self._zeros[name]

    def where_not_zero(self, entry: Entry) -> np.ndarray | None:
        """Which recorded elements of what an optimizer made have a gradient that is not zero in exact arithmetic (flat,
        bool): of one bias for query, key and value a third is the key's. None where all have, or none, or nobody knows.

        An element that is exactly zero in all of torch's runs, as of a unit that never fires, is one like any other.
        """
        key = ("gradients", "parameters", entry.name, 0)
        if not is_of_a_step(entry) or not all(key in trace.entries for trace in self.steps):
            return None
        exact, *runs = (trace.array(key).astype(np.float64) for trace in self.steps)
        if self.steps[0].about.get(ROUNDED) is True or any(run.shape != exact.shape for run in runs):
            return None
        noise = max((float(np.linalg.norm(run - exact)) for run in runs), default=0.0) / math.sqrt(max(exact.size, 1))
        moves = np.logical_or.reduce([each != 0.0 for each in (exact, *runs)])
        found = ~(moves & (np.abs(exact) <= ZERO * noise))
        return found if found.any() and not found.all() else None

    def _cancels(self, key: Key) -> bool:
        if not all(key in trace.entries for trace in self.steps):
            return False
        exact, *runs = (trace.array(key).astype(np.float64) for trace in self.steps)
        if any(run.shape != exact.shape for run in runs):
            return False
        noise = max(float(np.linalg.norm(run - exact)) for run in runs)
        # without float64, zero is what rounding leaves no digit of (the informatical zero of CESTAC)
        most = 1.0 if self.steps[0].about.get(ROUNDED) is True else ZERO
        return float(np.linalg.norm(exact)) <= most * noise

    def _start_of(self, entry: Entry) -> Entry | None:
        name = state_name(entry.name) if entry.part.alone else entry.name
        return self.start.entries.get(("init", "values", name, 0))

    def _median(self, stage: RecordedStage, part: str) -> float:
        if (stage, part) not in self._usual:
            keys = [e.key for e in self.family[0].select(stage, part)]
            known = [key for key in keys if any(key in trace.entries for trace in self.family[1:])]
            noises = [noise for key in known if math.isfinite(noise := self._relative(key))]
            self._usual[stage, part] = float(np.median(noises)) if noises else 0.0
        return self._usual[stage, part]

    def _unit(self, key: Key, size: float) -> float:
        """The unit of a tensor's noise: its own size, or for the change of a running statistic the statistic's."""
        entry = self.family[0].entries[key]
        start = self._start_of(entry) if is_of_a_statistic(entry) else None
        return max(size, start.norm) if start is not None else size

    def _relative(self, key: Key) -> float:
        """The largest L2 distance of a float32 run from float64, over the tensor's size; infinite when that is zero."""
        size, found = self._spread(key)
        unit = self._unit(key, size)
        return found.noise / unit if unit else math.inf

    def measured(self, key: Key) -> Measured:
        """The distances of float32's runs from float64 on one tensor."""
        return self._spread(key)[1]

    def _spread(self, key: Key) -> tuple[float, Measured]:
        """The L2 size of a tensor in float64, and the distances of the float32 runs from it; infinite where a run has
        another number of elements. Kept, for it is needed for the tensor itself and for what is usual in its part."""
        if key not in self._spreads:
            exact = self.family[0].array(key).astype(np.float64, copy=False)
            runs = [trace.array(key) for trace in self.family[1:] if key in trace.entries]
            if any(run.shape != exact.shape for run in runs):
                found = Measured(math.inf, math.inf)
            else:
                found = Measured.of([distance(run, exact) for run in runs])
            self._spreads[key] = (float(np.linalg.norm(exact)), found)
        return self._spreads[key]


FILE = Path(__file__).parent / "record" / "kernels.yaml"


class Kernel(NamedTuple):
    """How far MindSpore's CPU kernel stands from float64, and the part of that which has one sign everywhere, both as
    shares of the result's root mean square.

    torch: the operator's name below autograd. function: what both frameworks call it. way: forward or backward.
    near_zero: the further error of a result, however small the result is. formula: what it computes in the function's
    place, by a name that torch_precision knows. added: the order in which it adds (by row, image, channel or fours),
    where that is known and no distance is needed.
    """

    torch: str
    function: str
    way: str
    distance: float = 0.0
    bias: float = 0.0
    near_zero: float = 0.0
    formula: str = ""
    added: str = ""


@cache
def kernels() -> tuple[Kernel, ...]:
    """All rows; raises BadInput naming file, row and key."""
    found = []
    for entry in read_yaml(FILE):
        fields = Fields(entry, f"{FILE.name}: {entry!r}")
        kernel = Kernel(
            fields.take("torch", str),
            fields.take("function", str),
            fields.take("way", str),
            fields.take("distance", float, default=0.0),
            fields.take("bias", float, default=0.0),
            fields.take("near_zero", float, default=0.0),
            fields.take("formula", str, default=""),
            fields.take("added", str, default=""),
        )
        fields.done()
        found.append(kernel)
    return tuple(found)
