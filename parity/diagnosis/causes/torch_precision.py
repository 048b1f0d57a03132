"""Why passes and modules differ by precision or batch: a shorter format, the batch in other pieces, infinities."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import inf, isfinite
from statistics import median

import numpy as np
import torch

from ....mappings import table
from ....training.recipe.schema import Amp, Recipe
from ...record.recorder import LeafOutput
from ...record.torch_precision import computing_in
from ...record.torch_runner import TorchSide
from ...result import Cause, Finding, ModuleVerdict
from ...tensor_verdict import RATIO, Verdict, judge
from ...trace import Key, Trace
from ..context import Context, cell_of, in_code, recorded
from ..hypotheses import (
    Hypothesis,
    Outcome,
    Prediction,
    cause,
    first,
    judge_prediction,
    module_hypotheses,
    or_none,
)
from ..torch_subjects import CannotRun, ModuleSubject, RecordedTensor, Tensors

PART = "train"
NOT_FINITE = "not_finite"  # the verb of hypotheses on inputs that are too large or too small
WHOLE = "the whole net"
FLOOR = 2e-6
MANY = 0.5  # share of the layers that must fail before the precision of the whole net is questioned
FAULT = "ascend-fp16-ops"
FORMATS = {"fp16": "float16 (or TF32, which rounds alike)", "hf32": "HF32", "bf16": "bfloat16"}
NEAR = 4.0  # the factor by which rounding in one format may differ between two kernels; bf16's is 8 times fp16's
SUMMED = 2.0  # times that for a weight's gradient, a sum over the batch with each kernel's own rounding: 4.4 was seen
ALONG = 0.9  # cosine of the difference with the tensor itself: 1 for a factor, up to 0.54 seen for a rounded gradient


def explain(context: Context) -> list[Cause]:
    """The cause of a training forward pass that differs in most layers: another precision, or no micro-batches."""
    wrong = context.failed("forward", PART)
    keys = [e.key for e in context.mindspore.select("forward", PART) if context.comparable(e.key)]
    if context.options.pair is not None or not wrong:
        return []
    recipe = context.recipe
    found = (_in_one(context, wrong) if recipe.accumulate > 1 else []) or _in_pieces(context)
    if found:
        return found
    alone = any(module.own and module.verdict is Verdict.FAIL for module in context.modules)
    if not keys or len(wrong) < MANY * len(keys) or alone:  # alone, in float32, these have a fault of their own
        return []

    def outcome(amp: Amp | None) -> Outcome | None:
        outputs = or_none(lambda: _outputs(context, recipe.model_copy(update={"amp": amp}), torch.float32)) or {}
        measures = {}
        for key in keys:
            if key in outputs:
                exact = context.torch_values(key)
                prediction = Prediction(exact, recorded(outputs[key], exact.size))
                measures[str(key)] = judge_prediction(context.mindspore_values(key), prediction, FLOOR)
        # rounding of the right precision is not only enough to explain the difference, it is also as large
        large = measures and (amp is None or median(m.ratio for m in measures.values()) >= 1 / RATIO)
        return Outcome.of(measures) if large else None

    before = max((f.ratio for f in wrong if f.ratio), default=inf)
    trial = first(_others(recipe.amp), outcome, Outcome({"": before}, frozenset([""])))
    if trial is None:
        return []
    (one,), worst = trial.chain, trial.outcome.worst
    evidence = f"{len(trial.outcome.ratios)} outputs: the largest is {worst:.2g} times that precision's noise"
    fix, as_it_is = f"amp: {_precision(recipe.amp)}", before if isfinite(before) else None
    return [cause("forward", WHOLE, one.fault, one.text, evidence, worst, as_it_is, fix)]


def _in_pieces(context: Context) -> list[Cause]:
    """The cause if the batch goes through in other pieces than in torch, as the calls of a layer show."""
    pieces, ours = {}, context.family_of("forward", PART)[0]
    for entry in context.mindspore.select("forward", PART):
        pieces[entry.name] = [_pieces(trace, entry.name) for trace in (ours, context.mindspore)]
    changed = [(name, *both) for name, both in pieces.items() if both[0] != both[1] and sum(both[0]) == sum(both[1])]
    if not changed or len(changed) < MANY * len(pieces):
        return []
    name, expected, got = changed[0]
    uneven = len(set(got)) > 1
    text = f"the batch goes through the net in pieces of {_sizes(got)} samples, where the recipe has {_sizes(expected)}"
    text += ": the mean of their means is not the batch's" if uneven else ""
    evidence = f"the calls of {len(changed)} of {len(pieces)} layers, as {name}"
    fault = "accumulate-uneven" if uneven else "bn-eval-accumulation" if len(got) == 1 else None
    fix = "" if uneven else f"accumulate: {len(expected)}"
    return [cause("forward", WHOLE, fault, text, evidence, 0.0, None, fix)]


def _pieces(trace: Trace, name: str) -> list[int]:
    """The samples in each call of a layer."""
    calls = sorted((e for e in trace.select("forward", PART) if e.name == name), key=lambda e: e.call)
    return [e.shape[0] if e.shape else 0 for e in calls]


def _sizes(pieces: Sequence[object]) -> str:
    return " and ".join(str(size) for size in pieces)


def _in_one(context: Context, wrong: Sequence[Finding]) -> list[Cause]:
    """The cause if the batch goes through in one pass, where the recipe has micro-batches: batch statistics differ."""
    recipe = context.recipe
    whole = recipe.model_copy(update={"accumulate": 1})
    runs = or_none(lambda: [_outputs(context, whole, dtype) for dtype in (torch.float64, torch.float32)])
    if runs is None:
        return []
    every = list(context.mindspore.select("forward", PART))
    entries = [e for e in every if not e.nonfinite and e.key in runs[0] and e.key in runs[1]]
    if len(entries) < MANY * len(every) or any(e.shape[:1] != entries[0].shape[:1] for e in entries):
        return []
    ratios = []
    for entry in entries:
        subject, size = context.mindspore_values(entry.key), runs[0][entry.key].size
        if size < subject.size or (size > subject.size and not entry.sampled):
            return []
        exact, single = (recorded(run[entry.key], subject.size) for run in runs)
        ratios.append(judge_prediction(subject, Prediction(exact, single), FLOOR).ratio)
    if max(ratios) > 2 * RATIO:
        return []
    text = f"the batch goes through the net at once, where the recipe has {recipe.accumulate} micro-batches"
    evidence = f"{len(ratios)} outputs, the largest {max(ratios):.2g} times the noise"
    before = max((f.ratio for f in wrong if f.ratio), default=None)
    return [cause("forward", WHOLE, "bn-eval-accumulation", text, evidence, max(ratios), before)]


def _others(amp: Amp | None) -> Iterator[Hypothesis[Amp | None]]:
    now = _precision(amp)
    if now != _precision(None):
        yield Hypothesis("amp-missing", f"the step computes in float32 where the recipe has {now}", None)
    for dtype, level in itertools.product(("float16", "bfloat16"), ("O1", "O2", "O3")):
        other = Amp.model_validate({"level": level, "dtype": dtype})
        if _precision(other) != now:
            text = f"the step computes in {_precision(other)} where the recipe has {now}"
            yield Hypothesis("amp-black-list", text, other)


def _precision(amp: Amp | None) -> str:
    return "float32" if amp is None or amp.level == "O0" else f"{amp.dtype} at level {amp.level}"


def _outputs(context: Context, recipe: Recipe, dtype: torch.dtype) -> dict[Key, np.ndarray]:
    """Every leaf's output in a training pass under another recipe."""
    found: dict[Key, np.ndarray] = {}

    def seen(leaf: LeafOutput) -> None:
        # an in-place module after it would overwrite the values
        found["forward", PART, leaf.name, leaf.call] = leaf.output.reshape(-1).copy()

    TorchSide(recipe, context.model, dtype).forward(context.inputs.images[0], context.inputs.labels[0], seen)
    return found


def shorter(subject: ModuleSubject, verdict: ModuleVerdict, before: Outcome) -> Cause | None:
    """The cause for a module whose failing tensors are all as far off as products in a shorter format are, or None."""
    found = format_of(subject, before)
    if found is None:
        return None
    name, factor = found
    where = verdict.name or "the model itself"
    text = f"{verdict.kind} {where} computes its products in {FORMATS[name]}, not in float32"
    fix = f"{in_code(cell_of(verdict))}: {table.faults()[FAULT].fix}"
    return Cause("forward", verdict.name, FAULT, text, fix, as_far(before, name, factor), None, before.worst)


def as_far(before: Outcome, name: str, factor: float) -> str:
    """The evidence, for a cause, that products are in this format."""
    return (
        f"{len(before.failing)} tensors are as far from float64 as torch's are with operands in {name}, to a factor of "
        f"{factor:.2g}"
    )


def format_of(subject: ModuleSubject, before: Outcome) -> tuple[str, float] | None:
    """The shorter format whose products are as far off as all failing tensors, and to what factor; or None."""
    try:
        exact = subject.computed([], torch.float64)
        found = {}
        for name in FORMATS:
            with computing_in(name):
                found[name] = _unlike(subject, before, exact, subject.computed([], torch.float32))
    except CannotRun:
        return None
    name = min(found, key=found.__getitem__)
    return (name, found[name]) if found[name] <= NEAR else None


def _unlike(subject: ModuleSubject, before: Outcome, exact: Tensors, short: Tensors) -> float:
    """The largest factor between MindSpore's distance from float64 and the format's, over the failing tensors that are
    products; infinite without any."""
    # a bias's gradient is a sum, which every kernel rounds in its own way
    products = [name for name in before.failing if not name.rpartition(".")[0].endswith("bias")]
    worst = 1.0 if products else inf
    for name in products:
        expected = subject.expected.get(name)
        if expected is None or name not in exact or exact[name].shape != expected.shape:
            return inf
        reference = expected.taken_from(exact[name]).astype(np.float64)
        of_torch = float(np.linalg.norm(expected.taken_from(short[name]) - reference))
        of_mindspore = float(np.linalg.norm(expected.elements - reference))
        if not of_torch or not np.isfinite(of_mindspore):
            return inf
        off = expected.elements - reference
        if abs(float(off @ reference)) > ALONG * of_mindspore * float(np.linalg.norm(reference)):
            return inf  # rounding has no direction; this is a factor
        factor = max(of_mindspore / of_torch, of_torch / of_mindspore)
        is_sum = name.endswith(".grad") and not name.startswith("input")
        worst = max(worst, factor / SUMMED if is_sum else factor)
    return worst


def overflowing(subject: ModuleSubject, verdict: ModuleVerdict) -> Cause | None:
    """The cause for a module whose output is not finite exactly where its input is beyond some value, and is torch's
    elsewhere; None where its row has no such fault."""
    known = [h for h in module_hypotheses([NOT_FINITE]) if verdict.kind in h.of]
    output = subject.expected.get("output")
    if not known or output is None or subject.given is None or len(subject.given.call.inputs) != 1:
        return None
    try:
        exact = subject.computed([], torch.float64, gradients=False)["output"]
    except CannotRun:
        return None
    given = output.taken_from(subject.given.array(subject.given.call.inputs[0])).astype(np.float64)
    bad = ~np.isfinite(output.elements)
    if exact.shape != output.shape or given.shape != bad.shape or not bad.any() or bad.all():
        return None
    for row in known:
        sign = 1.0 if row.values["beyond"] == "above" else -1.0
        lost, kept = (sign * given[bad]).min(), (sign * given[~bad]).max()
        if lost <= kept or not _agree(output, exact, ~bad):
            continue
        fault, side = row.fault or "", "above" if sign > 0 else "below"
        text = f"{verdict.kind} {verdict.name} is not finite {side} an input of some {sign * (lost + kept) / 2:.3g}"
        evidence = (
            f"{int(bad.sum())} of {bad.size} elements are not finite, all those {side} {sign * lost:.4g} and no other; "
            "the rest agree with torch's"
        )
        fix = f"{in_code(cell_of(verdict))}: {table.faults()[fault].fix}"
        return Cause("forward", verdict.name, fault, text, fix, evidence, 0.0)
    return None


def _agree(output: RecordedTensor, exact: np.ndarray, kept: np.ndarray) -> bool:
    """Whether the finite elements agree with torch's."""
    reference = output.taken_from(exact).astype(np.float64)[kept]
    size = float(np.linalg.norm(reference))
    return not size or judge(reference, [reference], output.elements[kept], output.noise).verdict is not Verdict.FAIL
