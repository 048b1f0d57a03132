"""Compare two traces tensor by tensor: Traces, compare(); images resized by C++.

Nothing passes by absence: an entry that one side lacks is a finding, and so is one that is empty or not finite. The
comparison never transposes, reshapes or casts to make two tensors agree.

Images that C++ resized differ from torchvision's by far more than rounding, so they are judged by bounds in grey levels
(of 255) instead of torch's noise; the step itself is compared on torchvision's images. A note states the difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadTrace
from ..printable import quoted, shortened
from ..training.step.parameter_groups import is_norm
from .noise import UsualNoise, is_of_a_step, is_of_squares
from .options import MODEL, STAGES, WHOLE, Narrowing
from .replay.module_calls import Outcome, Recording, failed
from .result import Finding
from .run_folder import KEY, MINDSPORE, MINDSPORE_REPLAY, UNDEFINED, UNJUDGED, matched, replayed, torch_runs
from .tensor_verdict import FLOOR_ULPS, Unjudged, Verdict, judge, without_zeros
from .trace import ALONE, DISTRIBUTION, SIDES_STAGE, Entry, Key, Part, Trace

Sides = tuple[str, str]  # the names of the reference and of what is judged against it
SIDES: Sides = ("torch", "MindSpore")
# MindSpore's counterpart of a dtype, where it is not the same one: class labels, and the optimizers' step counters
COUNTERPARTS = {("int64", "int32"): "labels", ("float32", "int32"): "step"}


@dataclass(frozen=True)
class Traces:
    """The traces of one run: torch float64 and the float32 runs that measure its noise, the same with MindSpore's
    choices at kinks, and MindSpore's; the same again for modules that ran alone, where they did. sides: names of the
    two, where another recording stands in their place."""

    alone: Sequence[Trace]  # float64, float32, float32 in another layout, and once more on a device
    matched: Sequence[Trace]
    mindspore: Trace
    replayed: Sequence[Trace] = ()
    mindspore_replayed: Trace | None = None
    sides: Sides = SIDES

    @classmethod
    def load(cls, folder: Path, sides: Sides = SIDES, *, steps_alone: bool = False, fresh: bool = False) -> Traces:
        """Open the traces of a run's folder; steps_alone: not those of modules that ran alone, which may not be whole
        yet; fresh: they were written in this run. Raises BadTrace when one is missing or from another recipe."""
        opened = partial(Trace, fresh=fresh)
        alone, steps = ([opened(folder / name) for name in torch_runs(folder, of)] for of in (str, matched))
        traces = cls(alone, steps, opened(folder / MINDSPORE), sides=sides)
        if (folder / MINDSPORE_REPLAY).exists() and not steps_alone:
            theirs = opened(folder / MINDSPORE_REPLAY)
            alone = [opened(folder / name) for name in torch_runs(folder, replayed)]
            traces = replace(traces, replayed=alone, mindspore_replayed=theirs)
        for trace in (*traces.torch, *traces.of_mindspore):
            if not isinstance(trace.about.get("recipe"), str) or not isinstance(trace.about.get("versions"), dict):
                raise BadTrace(
                    f"{trace.folder / 'trace.json'}: does not say which recipe it is of, or what recorded it"
                )
        for trace in (*traces.torch, *traces.of_mindspore):
            found, own = trace.about["recipe"], traces.mindspore.about["recipe"]
            if found != own:
                raise BadTrace(
                    f"{trace.folder.name} is of recipe {shortened(found, 40)}, {MINDSPORE} of {shortened(own, 40)}: "
                    "record both from the same recipe"
                )
        return traces

    @property
    def families(self) -> list[tuple[Sequence[Trace], Trace]]:
        """Torch's traces, float64 first, and the trace of MindSpore's that is judged against them."""
        found: list[tuple[Sequence[Trace], Trace]] = [(self.alone, self.mindspore), (self.matched, self.mindspore)]
        if self.mindspore_replayed is not None:
            found.append((self.replayed, self.mindspore_replayed))
        return found

    @property
    def torch(self) -> list[Trace]:
        """All of torch's."""
        return [*self.alone, *self.matched, *self.replayed]

    @property
    def of_mindspore(self) -> list[Trace]:
        """All of MindSpore's."""
        return [trace for trace in (self.mindspore, self.mindspore_replayed) if trace is not None]


@dataclass(frozen=True)
class _Family:
    """What an entry is judged by: torch's traces, float64 first, MindSpore's, the noise that is usual in them, and the
    modules that did not run alone."""

    torch: Sequence[Trace]
    mindspore: Trace
    usual: UsualNoise
    failures: Failures
    sides: Sides


def compare(
    traces: Traces,
    narrowing: Narrowing = WHOLE,
    stepped: Sequence[Finding] | None = None,
    replayed: Sequence[Finding] | None = None,
) -> list[Finding]:
    """Judge every tensor in the narrowing that any side recorded; the findings come by stage and in execution order.
    stepped, replayed: what `compare_steps` and `compare_replayed` returned, where that is known."""
    findings = compare_steps(traces, narrowing) if stepped is None else list(stepped)
    return _in_order([*findings, *(compare_replayed(traces, narrowing) if replayed is None else replayed)])


@np.errstate(invalid="ignore", over="ignore")  # a damaged trace may hold any bits; what is not finite never passes
def compare_steps(traces: Traces, narrowing: Narrowing = WHOLE) -> list[Finding]:
    """Judge everything but the modules that ran alone."""
    return _compared(traces, traces.families[:2], narrowing)


def only_later_steps_fail(traces: Traces, findings: Sequence[Finding]) -> bool:
    """Whether all that fails are steps after the last that torch's float32 runs took. Their noise is that of an earlier
    step, and in some nets rounding grows: these runs have to take all steps, as with --thorough, to say."""
    taken = UsualNoise(traces.matched, traces.alone[1], traces.matched).taken
    failed = [finding.part.step or 0 for finding in findings if finding.verdict is Verdict.FAIL]
    return taken is not None and bool(failed) and min(failed) > taken


@np.errstate(invalid="ignore", over="ignore")
def compare_replayed(traces: Traces, narrowing: Narrowing = WHOLE) -> list[Finding]:
    """Judge the modules that ran alone, and nothing else."""
    return _compared(traces, traces.families[2:], narrowing)


def _compared(traces: Traces, judged: Sequence[tuple[Sequence[Trace], Trace]], narrowing: Narrowing) -> list[Finding]:
    families = [
        _Family(
            torch,
            mindspore,
            UsualNoise(torch, traces.alone[1], traces.matched),
            Failures.of(torch, mindspore),
            traces.sides,
        )
        for torch, mindspore in judged
    ]
    expected = [(family, entry) for family, entry in _expected(families).values() if _judged(narrowing, entry)]
    findings = [_finding(family, entry) for family, entry in expected]
    known = {key for trace in traces.torch for key in trace.entries}
    for theirs, failures in {id(each.mindspore): (each.mindspore, each.failures) for each in families}.values():
        for key, entry in theirs.entries.items():
            if key not in known and _judged(narrowing, entry):
                only = f"only {traces.sides[1]} has this tensor; {traces.sides[0]} recorded none"
                findings.append(failures.of_torch(entry) or Finding.of(entry, Verdict.FAIL, only))
    return _in_order(findings)


def _judged(narrowing: Narrowing, entry: Entry) -> bool:
    """Whether a tensor is judged; the modules that ran alone are those that were chosen."""
    if entry.part.alone:
        return entry.stage in narrowing.stages
    return narrowing.judges(entry.stage, entry.name)


def _expected(families: Sequence[_Family]) -> dict[Key, tuple[_Family, Entry]]:
    """Every entry that torch recorded, and the family of traces it is judged by.

    Where two families have the entry, the later counts. The order of execution is float64's; the steps taken with
    MindSpore's choices come after what needed none.
    """
    expected: dict[Key, tuple[_Family, Entry]] = {}
    for family in families:
        for trace in family.torch:
            for key, entry in trace.entries.items():
                if key not in expected or family is not expected[key][0]:
                    expected[key] = (family, entry)
    return expected


def is_model_output(one: Entry | Finding) -> bool:
    """Whether it is what the whole model returned in evaluation mode."""
    return (one.stage, one.part) == ("forward", "eval") and one.name.partition(".")[0] == MODEL


def without_lone_outputs(findings: Sequence[Finding], traces: Traces) -> tuple[list[Finding], list[str]]:
    """The findings without those on what only one side's model returns in evaluation mode, and a note on these."""
    both = [
        {entry.name for entry in trace.select("forward", "eval") if is_model_output(entry)}
        for trace in (traces.alone[0], traces.mindspore)
    ]
    lone, others = both[0] ^ both[1], traces.mindspore.about.get(UNJUDGED)
    notes = []
    if type(others) is int and others > 0:
        # rounding may decide which of two classes is the larger, and then both are right
        what = "1 tensor" if others == 1 else f"{others} tensors"
        notes.append(f"not judged: {what} that {traces.sides[1]}'s model returns in evaluation, not floating")
    if not any(both) and any(traces.mindspore.select("forward", "eval")):
        return list(findings), ["not judged: what the models return in evaluation, which has no floating tensor"]
    if not lone:
        return list(findings), notes
    counts = " and ".join(f"{side}'s {len(names)}" for side, names in zip(traces.sides, both, strict=True))
    said = f"not judged: {len(lone)} of the floating tensors that the models return in evaluation: {counts} of them"
    return [each for each in findings if not (is_model_output(each) and each.name in lone)], [said, *notes]


def _in_order(findings: list[Finding]) -> list[Finding]:
    """Sorted by stage, then findings on given values (the sharper ones) before those on the step itself, then in order
    of execution; modules that ran alone come after the step, the distributions of weights after the weights, and
    outputs in training after those in evaluation."""
    ranked = sorted(
        findings,
        key=lambda f: (
            STAGES.index(f.stage),
            not f.part.given,
            f.part.alone,
            f.part == DISTRIBUTION,
            f.stage == "forward" and f.part == "train",
            f.order,
        ),
    )
    return [replace(finding, order=i) for i, finding in enumerate(ranked)]


def _finding(of: _Family, entry: Entry) -> Finding:
    """Judge one tensor that torch recorded."""
    family, mindspore, usual = of.torch, of.mindspore, of.usual
    reference, other = of.sides
    key, theirs = entry.key, mindspore.entries.get(entry.key)
    not_run = of.failures.of_torch(entry)
    if not_run is not None:
        return not_run
    if theirs is None:
        return Finding.of(entry, Verdict.FAIL, of.failures.of_mindspore(entry) or f"{other} has no such tensor")
    runs = [trace for trace in family[1:] if key in trace.entries]
    if not runs and not usual.measured_before(entry):
        return Finding.of(entry, Verdict.FAIL, f"{reference} recorded it in float64 only; the trace is damaged")
    ours = runs[0].entries[key] if runs else replace(entry, dtype=usual.dtype_before(entry))
    for trace in family:
        if key in trace.entries and trace.entries[key].shape != ours.shape:
            return Finding.of(
                entry, Verdict.FAIL, f"the runs of {reference} recorded different shapes; the trace is damaged"
            )
    trouble = _not_alike(ours, theirs)
    if trouble:
        return Finding.of(entry, Verdict.FAIL, trouble)
    subject, arrays = mindspore.array(key), {id(t): t.array(key) for t in family if key in t.entries}
    plain = arrays[id((runs or family)[0])]
    torch_nonfinite = {trace.about.get("dtype"): n for trace in family if (n := _nonfinite(trace, key))}
    own = [trace.entries[key] for trace in family if key in trace.entries]
    finite = _finite_places([*own, theirs], [*arrays.values(), subject])
    if finite is None and torch_nonfinite and _finite_places(own, [*arrays.values()]) is not None:
        return Finding.of(
            entry, Verdict.FAIL, f"{reference} has {ours.nonfinite} infinities, {other} not the same ones"
        )
    if finite is None:
        return _not_finite(entry, torch_nonfinite, theirs, of.sides)
    if entry.stage == "init" and entry.part == DISTRIBUTION:
        left = runs[0].about.get(UNDEFINED)
        if isinstance(left, list) and entry.name in left:
            return Finding.of(entry, Verdict.PASS, f"{reference} leaves it uninitialized: any starting value will do")
        return _distribution(entry, plain, subject, len(list(mindspore.select("init", DISTRIBUTION))), of.sides)
    if ours.digest is not None or not _is_float(subject):
        return _exact(entry, ours, theirs, plain, subject)
    if key not in family[0].entries:
        return Finding.of(entry, Verdict.FAIL, f"{reference} recorded it in float32 only; the trace is damaged")
    exact = arrays[id(family[0])]
    level = declared(mindspore, entry)
    if level is not None:
        verdict, why, error = image_verdict(exact, subject, level)
        return Finding.of(entry, verdict, why, error=error)
    noisy = [arrays[id(trace)] for trace in runs]
    if not finite.all():
        exact, subject, noisy = exact[finite], subject[finite], [run[finite] for run in noisy]
        if not exact.size:
            return Finding.of(entry, Verdict.PASS, error=0.0)
    of_a_step, stored = is_of_a_step(entry), usual.stored(entry)
    known: dict[str, Any] = {"relative_floor": usual.floor(entry), "floor_ulps": floor_ulps(entry)}
    known |= {"of_a_step": of_a_step, "stored": stored, "zero": usual.is_zero(entry), "squared": is_of_squares(entry)}
    if not runs:
        m = judge(exact, (), subject, **known, known=usual.noise_before(entry, exact))
    elif finite.all() and not of_a_step:
        m = judge(exact, noisy, subject, **known, known=usual.measured(key))
    else:
        m = judge(exact, noisy, subject, **known)
    if runs and m.unjudged is Unjudged.NOT_FINITE and (inner := ~_at_the_end([exact, *noisy, subject])).any():
        m = judge(exact[inner], [run[inner] for run in noisy], subject[inner], **known)
    split = m.verdict is not Verdict.PASS and finite.all() and not known["zero"]
    only = usual.where_not_zero(entry) if split else None
    if only is not None and only.shape == exact.shape:
        before = None if runs else usual.noise_before(entry, exact[only], only)
        rest = judge(exact[only], [run[only] for run in noisy], subject[only], **known, known=before)
        m = without_zeros(m, rest, only)
    size = m.size or 1.0
    numbers = {"error": m.relative, "noise": m.noise / size, "allowed": m.allowed / size, "ratio": m.ratio}
    return Finding.of(entry, m.verdict, m.why, m.unjudged, **numbers)


def _not_alike(ours: Entry, theirs: Entry) -> str:
    """Why the two cannot be compared element by element, or nothing."""
    if ours.shape != theirs.shape:
        return f"expected shape {list(ours.shape)}, got {list(theirs.shape)}"
    if ours.dtype != theirs.dtype:
        allowed = COUNTERPARTS.get((ours.dtype, theirs.dtype))
        if allowed is None or not (ours.name == allowed or ours.part.endswith(f" {allowed}")):
            return f"expected dtype {ours.dtype}, got {theirs.dtype}"
    if 0 in ours.shape:
        return "the tensor is empty on both sides: nothing was compared"
    return ""


def _finite_places(entries: Sequence[Entry], arrays: Sequence[np.ndarray]) -> np.ndarray | None:
    """Where the recorded elements are finite, flat bool; None unless that is everywhere, or all have the same
    infinities at the same places, as an attention mask has."""
    finite: np.ndarray = np.isfinite(arrays[0])
    counts = {entry.nonfinite for entry in entries}
    if counts == {0}:
        return finite
    alike = all(np.array_equal(array[~finite], arrays[0][~finite]) for array in arrays)  # a NaN equals nothing
    alike = alike and all(bool(np.isfinite(array[finite]).all()) for array in arrays)
    return finite if alike and len(counts) == 1 else None


def _at_the_end(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Where all have the largest or smallest number of their dtype, flat bool: it stands for an infinity, as in an
    attention mask, and is a different number in float64."""
    ends = [array / np.finfo(array.dtype).max for array in arrays]
    at_end: np.ndarray = np.abs(ends[0]) == 1.0
    for end in ends[1:]:
        at_end &= end == ends[0]
    return at_end


def _nonfinite(trace: Trace, key: Key) -> int:
    return trace.entries[key].nonfinite if key in trace.entries else 0


def _not_finite(entry: Entry, torch: dict[Any, int], theirs: Entry, sides: Sides) -> Finding:
    """torch: how many values are not finite, by the precision that has them."""
    reference, other = sides
    if torch:
        dtype, count = next(iter(torch.items()))
        why = f"{reference} {dtype} itself has {count} values that are not finite ({other} {theirs.nonfinite})"
        return Finding.of(entry, Verdict.NONE, why, Unjudged.NOT_FINITE)
    why = f"{other} has {theirs.nonfinite} values that are not finite, {reference} none"
    return Finding.of(entry, Verdict.FAIL, why)


def _is_float(array: np.ndarray) -> bool:
    return array.dtype.kind == "f"


def _exact(entry: Entry, ours: Entry, theirs: Entry, plain: np.ndarray, subject: np.ndarray) -> Finding:
    """Two tensors that must be equal to the last bit: by digest of the whole where both have one."""
    different = np.flatnonzero(plain != subject)
    equal = ours.digest == theirs.digest if ours.digest and theirs.digest else different.size == 0
    if equal:
        return Finding.of(entry, Verdict.PASS, error=0.0)
    if different.size == 0:
        return Finding.of(entry, Verdict.FAIL, "differs outside the recorded sample (the digests differ)")
    at = int(different[0])
    exact = plain.astype(np.float64)
    size = float(np.linalg.norm(exact)) or 1.0
    return Finding.of(
        entry,
        Verdict.FAIL,
        f"{different.size} of {plain.size} compared elements differ; at {at} expected {plain[at]}, got {subject[at]}",
        error=float(np.linalg.norm(subject.astype(np.float64) - exact)) / size,
    )


def _distribution(entry: Entry, plain: np.ndarray, subject: np.ndarray, tests: int, sides: Sides) -> Finding:
    check = compare_distributions(plain, subject, tests, sides)
    verdict = {True: Verdict.PASS, False: Verdict.FAIL, None: Verdict.NONE}[check.agree]
    unjudged = Unjudged.FEW_VALUES if check.agree is None else None
    return Finding.of(entry, verdict, check.why, unjudged, error=check.statistic, noise=0.0, allowed=check.critical)


# One choice of n in a layer with kinks moves the gradients of what is before it by about 1 / sqrt(n): many times that
FLIPPED = 10.0


def _flipped(one: Trace, other: Trace, entry: Entry) -> tuple[int, float]:
    """At how many kinks of one layer two traces chose differently (0 for a max-pool, whose inputs differ), and the
    square root of the share of its elements; zeros where the two are the same or cannot be compared."""
    there = other.entries.get(entry.key)
    if there is None or (entry.dtype, entry.shape) != (there.dtype, there.shape):
        return 0, 0.0
    ours, choices = one.array(entry.key), other.array(entry.key)
    if np.array_equal(ours, choices):
        return 0, 0.0
    packed = ours.dtype == np.uint8
    sides = 4 * ours.size  # of the packed bits the first half; the others say what is exactly at a kink
    flips = int(np.unpackbits(ours ^ choices)[:sides].sum()) if packed else 1
    return (flips if packed else 0), math.sqrt(flips / (sides if packed else ours.size))


def _of_a_flip(finding: Finding, count: int) -> Finding:
    where = f"at {count} element{'s'[: count > 1]}, where rounding decides, a ReLU fell to the other side"
    where = where if count else "a max-pool's input differs by rounding, and it may have chosen otherwise"
    return replace(finding, verdict=Verdict.NONE, why=f"{finding.why}; {where}", unjudged=Unjudged.KINKS)


def label_of(finding: Finding) -> str:
    """The label of the call that a finding on a module that ran alone is about."""
    return finding.name.rpartition(" ")[0]


def alone_without_flips(findings: Sequence[Finding], recording: Recording, one: Trace, other: Trace) -> list[Finding]:
    """The same for modules that ran alone: no verdict on gradients in which a ReLU or max-pool chose differently."""
    found: dict[str, tuple[int, float]] = {}
    for entry in one.select(SIDES_STAGE):
        count, share = _flipped(one, other, entry)
        before = found.get(entry.part, (0, 0.0))
        found[entry.part] = before[0] + count, max(before[1], share)

    def judged(finding: Finding) -> Finding:
        if finding.verdict is not Verdict.FAIL or finding.stage != "gradients" or finding.error is None:
            return finding
        call = recording.calls.get(label_of(finding))
        around = [call, recording.calls.get(call.caller or "")] if call is not None else []
        of = Part.of_call if finding.part == ALONE else Part.of_wiring
        at = [found.get(of(each.path, each.number), (0, 0.0)) for each in around if each is not None]
        share = max((share for _, share in at[: 1 if finding.part == ALONE else 2]), default=0.0)
        return _of_a_flip(finding, sum(n for n, _ in at)) if 0.0 < finding.error <= FLIPPED * share else finding

    return [judged(finding) for finding in findings]


def without_flips(findings: Sequence[Finding], one: Trace, other: Trace) -> list[Finding]:
    """The findings on two traces that each made their own choices at kinks; a failure that such choices explain has no
    verdict: nothing in the forward pass fails, some ReLU fell to the other side or a max-pool (whose choice is not
    recorded) got other numbers, and the difference is no larger than such choices explain."""
    if any(finding.stage == "forward" and finding.verdict is Verdict.FAIL for finding in findings):
        return list(findings)
    shares: dict[int, float] = {}
    turned: dict[int, int] = {}
    for entry in one.select(SIDES_STAGE):
        step, (count, share) = entry.part.step, _flipped(one, other, entry)
        if step is not None and share:
            turned[step] = turned.get(step, 0) + count
            shares[step] = max(shares.get(step, 0.0), share)

    def judged(finding: Finding) -> Finding:
        step = 1 if finding.stage == "gradients" else finding.part.step
        if finding.verdict is not Verdict.FAIL or step is None or (finding.part.of_buffers and step == 1):
            return finding
        before = [s for s in shares if s <= step]
        if not before or finding.error is None or finding.error > FLIPPED * max(shares[s] for s in before):
            return finding
        return _of_a_flip(finding, sum(turned[s] for s in before))

    return [judged(finding) for finding in findings]


NAMES = ("images", "mixed images")
# On 60 crops of photographs, resized to a fifth up to twice their size, the largest difference of a pixel was 40 and
# the mean of an image at most 3.6; without antialiasing they are 147 and 14, one pixel aside over 100 and 5 and more.
# Resizing moves no brightness: there no image was brighter or darker by more than 0.13.
LARGEST, MEAN, BIAS = 64.0, 5.0, 0.5


def declared(trace: Trace, entry: Entry) -> float | None:
    """The size of a grey level where the trace's tensor is of images that C++ resized. Raises BadTrace for nonsense."""
    level = trace.about.get(KEY)
    if level is None or entry.stage != "data" or entry.name not in NAMES:
        return None
    if not isinstance(level, float) or not (math.isfinite(level) and level > 0):
        raise BadTrace(f"{trace.folder / 'trace.json'}: {KEY} is no size of a grey level: {quoted(level)}")
    return level


def image_verdict(reference: np.ndarray, subject: np.ndarray, level: float) -> tuple[Verdict, str, float]:
    """The verdict on images that C++ resized, why they fail if they do, and the error as a share of their L2 norm."""
    difference = (subject.astype(np.float64) - reference) / level
    error = float(np.linalg.norm(difference)) * level / (float(np.linalg.norm(reference)) or 1.0)
    largest, mean, bias = float(np.abs(difference).max()), float(np.abs(difference).mean()), abs(difference.mean())
    if largest <= LARGEST and mean <= MEAN and bias <= BIAS:
        return Verdict.PASS, "", error
    why = f"fast images {largest:.0f} grey levels from torchvision's ({mean:.1f} on average, brightness {bias:.1f})"
    return Verdict.FAIL, f"{why}; C++ resizing explains {LARGEST:.0f} ({MEAN:g}, {BIAS:g})", error


@dataclass(frozen=True)
class Failures:
    """What torch (in any precision) and MindSpore raised, by the label of the call."""

    torch: dict[str, str] = field(default_factory=dict)
    mindspore: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, torch: Sequence[Trace], mindspore: Trace) -> Failures:
        """The failures that the traces of a replay record; none from other traces. Raises BadTrace for nonsense."""
        if mindspore.folder.name != MINDSPORE_REPLAY:
            return cls()
        raised = {label: why for trace in torch for label, why in failed(trace).items()}
        return cls(raised, Outcome.of(mindspore).errors)

    def of_torch(self, entry: Entry) -> Finding | None:
        """No verdict on a tensor of a module that torch itself could not run alone."""
        why = self.torch.get(entry.name.rpartition(" ")[0]) if entry.part == ALONE else None
        if why is None:
            return None
        return Finding.of(entry, Verdict.NONE, f"torch does not run it alone: {why}", Unjudged.NOT_ALONE)

    def of_mindspore(self, entry: Entry) -> str:
        """Why MindSpore lacks a tensor of a module that it ran alone, or nothing."""
        why = self.mindspore.get(entry.name.rpartition(" ")[0]) if entry.part.alone else None
        return why or ""


# A norm is additions, products and one square root, which everybody rounds correctly: alone, on the same input, the
# frameworks' norms stand at most 1.5 times as far from float64 as torch itself does, without any floor. An activation's
# exponential is another matter: MindSpore's Sigmoid is 2 units in the last place away where torch's is a quarter.
NORM_ULPS = 1.0


def floor_ulps(entry: Entry) -> float:
    """The floor below a tensor's noise, in units of float32's epsilon: one for a norm that ran alone."""
    alone = entry.part == ALONE and entry.module is not None and is_norm(entry.module)
    return NORM_ULPS if alone else FLOOR_ULPS


# What each framework draws for a model trained from scratch: the frameworks' random streams differ, so values cannot be
# compared; distributions can.
ALPHA = 1e-6  # chance of one false alarm in a whole model, shared out over its tensors
STD_SIGMAS = 6.0
FEWEST = 10  # drawn values below which neither test could tell a wrong distribution
ROUNDING = 8 * 2.0**-23  # MindSpore's log of a float32 is 1 or 2 of its units off, and by where it stands
RELIABLE = 400  # drawn values from which their own fourth moment is trusted


@dataclass(frozen=True)
class DistributionCheck:
    """Two samples, compared; `agree` is the verdict at ALPHA over `tests` tensors, None where the values are too few
    for one."""

    statistic: float  # Kolmogorov-Smirnov D
    critical: float
    agree: bool | None
    why: str = ""


def compare_distributions(
    torch_values: np.ndarray, mindspore_values: np.ndarray, tests: int, sides: Sides = SIDES
) -> DistributionCheck:
    """Two-sample Kolmogorov-Smirnov test and ratio of standard deviations.

    The critical value is the asymptotic sqrt(-ln(a/2)/2 · (n+m)/(n·m)) (Smirnov 1948; as in Knuth, TAOCP 3.3.1), with
    a = ALPHA / tests (Bonferroni). The standard deviations may differ by STD_SIGMAS standard errors, from the fourth
    moment: var(ln s) = (kurtosis - 1) / 4n, with at least a normal distribution's kurtosis for fewer values than
    RELIABLE: by bad luck ten values look as if they had none. Constant tensors have to be equal, but for ROUNDING.
    """
    x, y = np.sort(torch_values.astype(np.float64)), np.sort(mindspore_values.astype(np.float64))
    n, m = len(x), len(y)
    std_x, std_y = float(x.std()), float(y.std())
    if _constant(x) or _constant(y):  # its computed deviation need not be zero
        equal = _constant(x) and _constant(y) and _constant(np.sort([x[0], y[0]]))
        what = f"{sides[0]} {_describe(x)}, {sides[1]} {_describe(y)}"
        return DistributionCheck(0.0 if equal else 1.0, 0.0, equal, "" if equal else what)
    y = _snapped(y, x)
    both = np.concatenate([x, y])
    distance = np.searchsorted(x, both, side="right") / n - np.searchsorted(y, both, side="right") / m
    statistic = float(np.abs(distance).max())
    critical = math.sqrt(-math.log(ALPHA / tests / 2) / 2 * (n + m) / (n * m))
    error = math.sqrt((_kurtosis(x) - 1) / (4 * n) + (_kurtosis(y) - 1) / (4 * m))
    if min(n, m) < FEWEST:
        return DistributionCheck(statistic, critical, None, f"{min(n, m)} drawn values cannot tell")
    why = []
    if statistic > critical:
        why.append(f"KS distance {statistic:.3f} above {critical:.3f}")
    if abs(math.log(std_y / std_x)) > STD_SIGMAS * error:
        why.append(f"standard deviation {std_y:.3g} against {std_x:.3g} in {sides[0]}")
    return DistributionCheck(statistic, critical, not why, "; ".join(why))


def _constant(values: np.ndarray) -> bool:
    """Whether sorted values are one number, as far as a computed one goes, such as log(10)."""
    return bool(values[-1] - values[0] <= ROUNDING * max(abs(values[0]), abs(values[-1])))


def _snapped(values: np.ndarray, to: np.ndarray) -> np.ndarray:
    """Sorted values, each replaced by the nearest of `to` (sorted) where the two differ by rounding alone: a computed
    tensor, such as a table of logarithms, holds few numbers, and rounding them differently changes no distribution."""
    above = np.clip(np.searchsorted(to, values), 1, len(to) - 1)
    low, high = to[above - 1], to[above]
    near = np.where(values - low < high - values, low, high)
    return np.where(np.abs(near - values) <= ROUNDING * np.abs(near), near, values)


def _kurtosis(values: np.ndarray) -> float:
    centred = values - values.mean()
    kurtosis = float((centred**4).mean() / (centred**2).mean() ** 2)
    return max(kurtosis, 3.0 if len(values) < RELIABLE else 1.0)


def _describe(values: np.ndarray) -> str:
    return f"is {values[0]:g} throughout" if _constant(values) else f"has standard deviation {values.std():.3g}"
