"""Why modules fail: the candidates, the search, and the cause in words.

The candidate under which every recorded tensor (outputs, input and parameter gradients, buffers) agrees at the module's
own noise is the cause. Where two faults are in one module, hypotheses are combined. Where no known hypothesis
reproduces MindSpore's tensors, the place is named, with how they differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isfinite

import numpy as np
import torch
from torch import nn

from ....mappings import table
from ....printable import times
from ....workers.worker import progress
from ...align.mismatched_tensors import explains
from ...options import STAGES
from ...result import Cause, CellChange, ModuleVerdict
from ...tensor_verdict import RATIO, Verdict
from ...trace import Key, sample_positions
from .. import differences
from ..context import Context, cell_of, counterpart, in_code, own_line, written
from ..hypotheses import (
    CHECKED,
    LONGEST,
    Outcome,
    Trial,
    best_of,
    clearly_nearer,
    fit,
    module_hypotheses,
    search,
    slightly_nearer,
)
from ..mutations.torch_formulas import MUTATIONS as FORMULA_MUTATIONS
from ..mutations.torch_formulas import in_another_order
from ..mutations.torch_layers import MUTATIONS as LAYER_MUTATIONS
from ..mutations.torch_layers import (
    ModuleHypothesis,
    Mutation,
    Operation,
    Values,
    applies,
    arguments_of,
    as_made,
    class_of,
    other_heads,
    watched,
    with_value,
)
from ..mutations.torch_operations import numbers, operation_mutations, with_number
from ..torch_subjects import (
    MODES,
    CannotRun,
    ContainerSubject,
    ModuleSubject,
    NetPass,
    RecordedTensor,
    ReplayTraces,
    children,
    copied,
    mutated,
    shapes_with,
)
from .torch_precision import FORMATS, as_far, format_of, overflowing, shorter

MUTATIONS = {**LAYER_MUTATIONS, **FORMULA_MUTATIONS}
ESTIMATE = "estimate"
MOST = 12  # layers that are explained inside the net, in each mode
SOME = 30.0  # seconds for trying the operations of the modules inside a container
SHOWN = 4  # tensors whose differences are described
FAINT = 2.0  # a fault at the edge of noise has to bring torch nearer by this factor
BEAM = 3  # partial explanations that are followed
DIGITS = (1, 2, 3, 4, 6)  # a value is given in as few significant digits as still explain the tensors
WIDE = 16.0  # the largest factor by which a number in a line may be off
VALLEY = 0.43  # a value that matters brings the tensors nearer than others by this many orders of magnitude
ModuleTrial = Trial[Mutation]


def explain(context: Context) -> list[Cause]:
    """A cause for every module that fails by its own fault, and for every layer that differs only inside the net."""
    faulty = sorted((m for m in context.modules if m.verdict is Verdict.FAIL and m.own), key=lambda m: m.order)
    replay = ReplayTraces(context) if faulty else None
    causes: list[Cause] = []
    known: dict[str, list[Mutation]] = {}
    # by class: hypotheses that explained another module of it are tried first
    found_before: dict[str, list[ModuleHypothesis]] = {}
    for i, module in enumerate(faulty, 1):
        assert replay is not None
        progress(f"causes: {module.name or 'the model'} ({i} of {len(faulty)})", done=i - 1, total=len(faulty))
        reasons, chain = _explained(replay, module, found_before.setdefault(module.kind, []))
        causes += reasons
        known[module.name] = [each.change for each in chain]
    if causes:
        context.model.train()
        causes = named_by_mode(causes, context.model, {module.name: cell_of(module) for module in faulty})
        causes = strided_elsewhere(context, causes, known)
    return causes + in_place(context, known)


def in_place(context: Context, known: Mapping[str, list[Mutation]]) -> list[Cause]:
    """A cause for every layer that differs inside the net even with the known mutations; where a module is at fault for
    an unknown reason, only for layers that a hypothesis explains, since the others may be consequences of it."""
    causes: list[Cause] = []
    cells = {module.name: module.mindspore for module in context.modules}
    for mode in MODES:
        if not context.failed("forward", mode):
            continue
        progress(f"causes: layers in {'evaluation' if mode == 'eval' else 'training'} mode")
        for subject in NetPass(context, mode, known).found[:MOST]:
            if subject.path in known and mode == "train":
                continue
            verdict = _verdict_of(subject, cells)
            reasons, chain = explained(subject, verdict, [])
            if not chain and (before := subject.before) is not None:
                behind, found = explained(before, _verdict_of(before, cells), [])
                reasons, chain = (behind, found) if found else (reasons, chain)
            if chain and [each.change.what for each in chain] == [each.what for each in known.get(subject.path, ())]:
                continue  # it computes the same in the net as alone
            if chain or not (causes or known):
                where = "in evaluation mode" if mode == "eval" else "in training mode, inside the net"
                causes += [replace(cause, text=f"{cause.text} ({where})") for cause in reasons]
    return causes


def _verdict_of(subject: ModuleSubject, cells: Mapping[str, str]) -> ModuleVerdict:
    """The verdict that a layer is at fault; cells: the Cells' paths, where the replay has them."""
    kind, cell = type(subject.module).__name__, cells.get(subject.path, subject.path)
    return ModuleVerdict(subject.path, kind, cell, Verdict.FAIL, True, 0, 0)


def _explained(
    replay: ReplayTraces, module: ModuleVerdict, found_before: list[ModuleHypothesis]
) -> tuple[list[Cause], Sequence[ModuleHypothesis]]:
    """The causes of one module's failure, and the hypotheses that explain it.

    For a container by its wiring, which is exact, where that fails; else by its results when it runs alone.
    """
    container = replay.container(module.name)
    first: list[Cause] = []
    for subject in (container, replay.alone(module.name)):
        if subject is None:
            continue
        # if the wiring is right, only the gradients can be wrong
        reasons, chain = explained(subject, module, found_before, container is None or subject is container)
        if chain:
            return reasons, chain
        first = first or reasons
    paired = replay.context.paired
    if not first and paired is not None and explains(paired.alignment.unlike, module.name):
        return [], ()  # it agrees once torch's module is made like MindSpore's, and the report lists those differences
    if not first:
        where = in_code(cell_of(module))
        text = f"{_named(module)} differs: {module.why or 'see its tensors'}"
        first = [Cause("forward", module.name, None, text, f"compare {where} with torch's {module.kind}")]
    return first, ()


def explained(
    subject: ModuleSubject,
    verdict: ModuleVerdict,
    found_before: list[ModuleHypothesis],
    values: bool = True,
) -> tuple[list[Cause], Sequence[ModuleHypothesis]]:
    """The causes of one subject's failure, and the mutations that reproduce it; they are added to `found_before`.

    values: whether a container's own forward may be at fault in what it computes, or in the gradients alone.
    """
    found = _searched(subject, verdict.kind, found_before, values)
    if found is None:
        return [], ()
    if not found.chain and (one := overflowing(subject, verdict) or shorter(subject, verdict, found.before)):
        return [one], ()
    return describe(subject, verdict, found), found.chain if found.reproduces else ()


def _searched(
    subject: ModuleSubject, kind: str, found_before: list[ModuleHypothesis], values: bool
) -> ModuleTrial | None:
    """The hypotheses under which a subject comes nearest, for `explained`; None where torch does not run it, or nothing
    fails and no known fault brings it nearer."""
    if (before := subject.outcome([])) is None:
        return None
    hypotheses = candidates(subject, kind, values)
    if not before.failing:
        return _slight(subject, hypotheses, before)  # the verdict on a module alone is sharper than this comparison
    until = time.monotonic() + LONGEST
    alike = clearly_nearer(subject, Trial((), before, before), found_before, until)
    found = next((trial for trial in alike if trial.reproduces), None) or search(
        lambda trial: clearly_nearer(subject, trial, hypotheses, until), before, BEAM
    )
    if not found.reproduces:
        found = _estimated(subject, kind, found, hypotheses) or found
    if found.reproduces:
        found_before += [each for each in found.chain if each not in found_before]
    return found


def of_another(context: Context, other: str) -> list[Cause]:
    """What the modules at fault in another recording of one framework, called `other`, compute otherwise than the
    recipe's model in torch; only for modules of which a hypothesis reproduces all tensors."""
    faulty = sorted((m for m in context.modules if m.verdict is Verdict.FAIL and m.own), key=lambda m: m.order)
    replay = ReplayTraces(context)
    causes: list[Cause] = []
    found_before: dict[str, list[ModuleHypothesis]] = {}
    for i, module in enumerate(faulty, 1):
        progress(f"causes: {module.name or 'the model'} ({i} of {len(faulty)})", done=i - 1, total=len(faulty))
        container = replay.container(module.name)
        for subject in (container, replay.alone(module.name)):
            values = container is None or subject is container
            before = found_before.setdefault(module.kind, [])
            found = None if subject is None else _searched(subject, module.kind, before, values)
            if subject is None or found is None:
                continue
            if found.reproduces:
                causes += [_otherwise(subject, module, other, found, each) for each in found.chain]
                break
            if not found.chain and (short := format_of(subject, found.before)):
                causes.append(_in_format(module, other, found.before, *short))
                break
    return causes


def _in_format(verdict: ModuleVerdict, other: str, before: Outcome, name: str, factor: float) -> Cause:
    what = FORMATS[name]
    text = f"{_named(verdict)} of {other} computes its products in {what}, not in float32"
    evidence, worst = as_far(before, name, factor), _finite(before.worst)
    return Cause("forward", verdict.name, None, text, "", evidence, factor, worst, None, verdict.kind, what)


def _otherwise(
    subject: ModuleSubject, verdict: ModuleVerdict, other: str, found: ModuleTrial, each: ModuleHypothesis
) -> Cause:
    own, wrong = (arguments_of(module) for module in (subject.module, mutated(copied(subject.module), [each.change])))
    names = [name for name in each.change.arguments if name in own]
    text = f"{_named(verdict)} of {other} computes as with {each.change.what}"
    text += f"; the recipe's model has {', '.join(f'{name}={own[name]!r}' for name in names)}" if names else ""
    differing, where = [name for name in names if wrong.get(name) != own[name]], verdict.name or "the model itself"
    fix = "; ".join(f"{name} of {where} is {wrong.get(name)!r} there and {own[name]!r} here" for name in differing)
    worst, chain = found.outcome.worst, " and ".join(one.text for one in found.chain)
    evidence = (
        f"torch's {class_of(subject.module)} {subject.how}, with {chain}: all {len(found.outcome.ratios)} tensors at "
        f"{times(worst)} of the noise or less (as it is: {_ratio(found.before)})"
    )
    numbers = _finite(worst), _finite(found.before.worst)
    return Cause(
        _stage(subject, found.before), verdict.name, None, text, fix, evidence, *numbers, None, verdict.kind, each.text
    )


def candidates(subject: ModuleSubject, kind: str, values: bool = True) -> list[ModuleHypothesis]:
    """Every mutation of the tables on a module of this class, those of known faults first, each once; for a container
    also those on the layers inside that MindSpore's net computes as functions."""
    found: dict[str, ModuleHypothesis] = {}
    for each in _of_tables(subject.module, kind):
        found.setdefault(each.text, each)
    for mutation in as_made(subject.module, subject.made) if subject.made is not None else ():
        if mutation.what not in found:  # a known fault says more
            found = {mutation.what: mutation.hypothesis(), **found}
    for each in (*map(Mutation.hypothesis, other_heads(subject.module)), *in_another_order(subject.path, subject.cuts)):
        found.setdefault(each.text, each)
    inside = subject.unforced if isinstance(subject, ContainerSubject) and values else []
    until = time.monotonic() + SOME
    for path in sorted(inside, key=lambda path: children(subject.module.get_submodule(path))):  # layers first
        inner = subject.module.get_submodule(path)
        kind, seen = type(inner).__name__, own_forward(inner) and time.monotonic() < until
        own = operation_mutations(seen_in(subject, path), gradients=False) if seen else ()
        for each in (*_of_tables(inner, kind), *own):
            advice = f"compute as torch's {kind} {path} does" + ("" if children(inner) else f": {inner}")
            fix = each.fix or ("" if each.fault else advice)
            change = partial(lambda path, change, module: change.apply(module.get_submodule(path)), path, each.change)
            within = Mutation(f"{each.text} in {kind} {path}", change, fix=fix)
            found.setdefault(within.what, within.hypothesis(each.fault))
    if own_forward(subject.module):
        for each in operation_mutations(seen_in(subject), values, not isinstance(subject, ContainerSubject)):
            found.setdefault(each.text, each)
    return list(found.values())


def _of_tables(module: nn.Module, kind: str) -> Iterator[ModuleHypothesis]:
    of = {kind, class_of(module)}
    for row in module_hypotheses(MUTATIONS):
        if of & {*row.of} and applies(module, row.values.get("when")):
            for mutation in MUTATIONS[row.verb](module, row.values):
                yield mutation.hypothesis(row.fault)


def own_forward(module: nn.Module) -> bool:
    """Whether a module's own forward computes something: a container, or a class that is not torch's."""
    return children(module) or not type(module).__module__.startswith("torch.nn.")


def seen_in(subject: ModuleSubject, inside: str = "") -> list[Operation]:
    """The operations of the module's own forward, or of one inside it; none where it does not run."""
    seen: list[Operation] = []
    try:
        watch = Mutation("", lambda module: watched(module.get_submodule(inside), seen))
        subject.computed([watch], torch.float64, gradients=False)
    except CannotRun:
        return []
    return seen


def _slight(subject: ModuleSubject, hypotheses: Sequence[ModuleHypothesis], before: Outcome) -> ModuleTrial | None:
    """The known fault under which torch comes clearly nearer to a module at the edge of noise."""
    most = before.worst / FAINT
    near = slightly_nearer(subject, hypotheses, lambda quick: not quick.failing and quick.worst <= most)
    for each in near[:CHECKED]:
        outcome = subject.outcome([each.change])
        if outcome is not None and outcome.worst <= most:
            return Trial((each,), outcome, before)
    return None


def _estimated(
    subject: ModuleSubject, kind: str, found: ModuleTrial, hypotheses: Sequence[ModuleHypothesis]
) -> ModuleTrial | None:
    """The search with one argument's value fitted, if that explains everything, alone or with one hypothesis more."""
    until = time.monotonic() + LONGEST
    for row in module_hypotheses([ESTIMATE]):
        for chain in dict.fromkeys(((), found.chain)) if kind in row.of and time.monotonic() < until else ():
            for mutation in estimate(subject, row.values, [each.change for each in chain]):
                outcome = subject.outcome([*(each.change for each in chain), mutation])
                if outcome is None:
                    continue
                trial = Trial((*chain, mutation.hypothesis()), outcome, found.before)
                if trial.reproduces:
                    return trial
                if not chain and outcome.failing < found.before.failing:
                    steps = clearly_nearer(subject, trial, hypotheses, until)
                    if more := best_of([step for step in steps if step.reproduces]):
                        return more
    for operation in seen_in(subject) if own_forward(subject.module) and not found.chain else ():
        for each in _other_numbers(subject, operation, until):
            outcome = subject.outcome([each.change])
            if outcome is not None and outcome.reproduces:
                return Trial((each,), outcome, found.before)
    return None


def _other_numbers(subject: ModuleSubject, operation: Operation, until: float) -> Iterator[ModuleHypothesis]:
    """An operation with one of its numbers replaced by the value that brings the results nearest.

    until: when no further number is tried, by time.monotonic().
    """
    for i, number in numbers(operation):
        if time.monotonic() > until:
            return

        def with_value_of(value: float, i: int = i, number: float = number) -> ModuleHypothesis:
            return with_number(operation, i, value, f"{value:g} for {number:g} in {operation.text}")

        def distance(value: float, make: Callable[[float], ModuleHypothesis] = with_value_of) -> float:
            quick = subject.quick([make(value).change], gradients=False)
            return inf if quick is None else quick.distance

        nearest = fit(distance, number / WIDE, number * WIDE, logarithmic=True)
        if nearest is not None and nearest[1] >= VALLEY:
            yield from map(with_value_of, dict.fromkeys(float(f"{nearest[0]:.{digits}g}") for digits in DIGITS))


def estimate(subject: ModuleSubject, values: Values, changes: Sequence[Mutation]) -> Iterator[Mutation]:
    """The value of `attribute` between `low` and `high` that brings outputs and buffers nearest, as mutations with ever
    more digits; none where it makes no difference or does not fit."""
    name = values["attribute"]
    now = getattr(subject.module, name, None)
    if not isinstance(now, (int, float)):
        return

    def distance(at: float) -> float:
        quick = subject.quick([*changes, with_value(name, at, "")], gradients=False)
        return inf if quick is None else quick.distance

    found = fit(distance, values["low"], values["high"], values["scale"] == "logarithmic")
    if found is not None and found[1] >= VALLEY:
        for value in dict.fromkeys(float(f"{found[0]:.{digits}g}") for digits in DIGITS):
            if value != now:
                yield with_value(name, value, f"{value:g}")


def describe(subject: ModuleSubject, verdict: ModuleVerdict, found: ModuleTrial) -> list[Cause]:
    """Causes in words: one for each link of a chain that reproduces MindSpore's tensors or some of them, and one for
    what is left."""
    if found.reproduces:
        return [_cause(subject, verdict, found, each) for each in found.chain]
    if not _explains_what_is_first(subject, found) or 2 * len(found.explained()) < len(found.before.failing):
        return [_unknown(subject, verdict, replace(found, chain=(), outcome=found.before))]
    return [*(_cause(subject, verdict, found, each) for each in found.chain), _unknown(subject, verdict, found)]


def _explains_what_is_first(subject: ModuleSubject, found: ModuleTrial) -> bool:
    """Whether a chain that leaves tensors unexplained explains one of the first stage that fails: if the forward pass
    is wrong, explaining gradients alone shows nothing."""
    first = _stage(subject, found.before)
    return any(subject.expected[name].stage == first for name in found.explained() if name in subject.expected)


def _cause(subject: ModuleSubject, verdict: ModuleVerdict, found: ModuleTrial, hypothesis: ModuleHypothesis) -> Cause:
    """The cause for one link of the chain."""
    mutation, cell, kind = hypothesis.change, cell_of(verdict), class_of(subject.module)
    own = arguments_of(subject.module)
    right = ", ".join(f"{name}={own[name]!r}" for name in mutation.arguments if name in own)
    text = f"{_named(verdict)} computes as with {mutation.what}"
    text += f"; torch has {right}" if right else ""
    if not found.reproduces:
        left = len(found.outcome.failing)
        text += f" (of {len(found.before.failing)} failing tensors it explains {len(found.explained())}; "
        text += f"{left} {'stays' if left == 1 else 'stay'} unexplained)"
    # another value of the same argument is no other explanation
    if ties := [tie.text for tie in found.ties if tie.change.arguments != mutation.arguments]:
        text += f" (or with {', or '.join(ties)}: these cannot be told apart here)"
    known = table.faults().get(hypothesis.fault) if hypothesis.fault else None
    changed = own if mutation.whole else mutation.arguments
    change = counterpart(cell, kind, own, changed) if changed or mutation.whole else None
    if change is not None and _is_of_another_class(verdict, change):
        change = counterpart(cell, kind, own, own)
    advice = mutation.fix or (known.fix if known else "")
    if change is None and hypothesis.fault in WRITTEN:
        change = CellChange((cell,), "", WRITTEN[hypothesis.fault])
    elif change is None and not advice:
        change, advice = counterpart(cell, kind, own, own), f"compute as torch's {kind} does"
    if change is not None and not change.whole and not mutation.whole:
        wrong = arguments_of(mutated(copied(subject.module), [mutation]))
        change = replace(change, now=_now(change, counterpart(cell, kind, wrong, changed)))
    where = f" ({subject.made.place})" if subject.made is not None and subject.made.place else ""
    fix = written(change) if change is not None else f"{in_code(cell)}{where}: {advice}"
    if change is not None and subject.made is not None and change.target == subject.made.target:
        lines = [own_line(subject.made, change)]
        lines += [f"torch: {known.torch}; MindSpore: {known.mindspore}"] if known is not None else []
        fix = "\n".join([fix, *(line for line in lines if line)])
    tensors, worst = len(found.outcome.ratios), found.outcome.worst
    agreement = f"{len(found.explained())} of the {len(found.before.failing)} failing tensors agree with MindSpore's"
    if found.reproduces:
        agreement = f"all {tensors} tensors of MindSpore's at {times(worst)} of the noise or less"
    chain = " and ".join(each.text for each in found.chain)
    evidence = f"torch's {kind} {subject.how}, with {chain}: {agreement} (as it is: {_ratio(found.before)})"
    # the tensors that fail without this link are those that it explains
    rest = subject.outcome([each.change for each in found.chain if each is not hypothesis]) if found.chain[1:] else None
    stage = _stage(subject, rest if rest is not None and rest.failing else found.before)
    before = _finite(found.before.worst)
    tried = (kind, hypothesis.text)
    return Cause(stage, verdict.name, hypothesis.fault, text, fix, evidence, _finite(worst), before, change, *tried)


def _now(change: CellChange, computes: CellChange | None) -> dict[str, str]:
    """The arguments by which MindSpore's Cell computes as it does now; empty where they are not those of the change, or
    equal to it."""
    if computes is None or computes.target != change.target or computes.arguments.keys() != change.arguments.keys():
        return {}
    return {} if computes.arguments == change.arguments else computes.arguments


def _is_of_another_class(verdict: ModuleVerdict, change: CellChange) -> bool:
    """Whether the Cell is not of the class that the fix names: then it lacks more than the arguments at fault."""
    known = verdict.mindspore.partition(" ")[2].strip("()")
    return bool(known) and known != change.target.rpartition(".")[2]


def _named(verdict: ModuleVerdict) -> str:
    return f"{verdict.kind} {verdict.name or 'the model itself'}"


def _finite(ratio: float) -> float | None:
    return ratio if isfinite(ratio) else None


def _ratio(outcome: Outcome) -> str:
    return f"{times(outcome.worst)} of the noise" if isfinite(outcome.worst) else "of another shape"


def _stage(subject: ModuleSubject, outcome: Outcome) -> str:
    """The first stage that fails; for a difference at the edge of noise, the stage of the tensor farthest off."""
    failing = outcome.failing or sorted(outcome.ratios, key=outcome.ratios.__getitem__)[-1:]
    stages = [subject.expected[name].stage for name in failing if name in subject.expected]
    return min(stages, key=STAGES.index, default="forward")


def _unknown(subject: ModuleSubject, verdict: ModuleVerdict, found: ModuleTrial) -> Cause:
    """A cause with the place, and how the unexplained tensors differ."""
    order = {name: i for i, name in enumerate(subject.expected)}
    left = found.outcome.failing if found.chain else found.before.failing
    failing = sorted(left, key=lambda name: order.get(name, len(order)))
    chain = [each.change for each in found.chain] if found.explained() else []
    try:
        exact = subject.computed(chain, torch.float64)
    except CannotRun:
        exact = {}
    texts = [f"{name}: {_difference(subject.expected.get(name), exact.get(name))}" for name in failing[:SHOWN]]
    agree = sorted(set(found.before.ratios) - found.before.failing)
    what = f"what else differs in {_named(verdict)}" if chain else f"{_named(verdict)} differs"
    text = f"nothing known reproduces it: {what}: {'; '.join(texts)}"
    if len(failing) > SHOWN:
        text += f"; and {len(failing) - SHOWN} tensors more"
    evidence = f"as it is, {_ratio(found.before)} (above {RATIO:g} a tensor fails); {len(agree)} tensors agree"
    evidence += f": {', '.join(agree[:SHOWN])}" if agree else ""
    fix, stage = f"compare {in_code(cell_of(verdict))} with torch's {verdict.kind}", _stage(subject, found.before)
    return Cause(stage, verdict.name, None, text, fix, evidence, None, _finite(found.before.worst))


def _difference(expected: RecordedTensor | None, exact: np.ndarray | None) -> str:
    if expected is None:
        return "MindSpore has none"
    if exact is None:
        return "torch has none"
    if exact.shape != expected.shape:
        return differences.shapes(exact.shape, expected.shape)
    positions = sample_positions(exact.size, expected.elements.size) if expected.sampled else None
    return differences.difference(expected.taken_from(exact), expected.elements, expected.shape, positions)


def strided_elsewhere(
    context: Context, causes: Sequence[Cause], known: Mapping[str, Sequence[Mutation]]
) -> list[Cause]:
    """The causes, adapted where a layer has another stride and MindSpore's net makes up for it later: the layer's fix
    alone would stride twice, and its container, with torch's outputs, computes shapes that the net never has.

    known: module -> the mutations that explain it.
    """
    strided = {name for name, chain in known.items() if any("stride" in mutation.arguments for mutation in chain)}
    cells = {module.name: cell_of(module) for module in context.modules}
    alignment = context.paired.alignment if context.paired is not None else None
    left = [one for one in alignment.left if one.framework == "mindspore"] if alignment is not None else []
    at = {call[:2]: call[2] for call in alignment.calls} if alignment is not None else {}
    shown, resolved = list(causes), set[str]()
    for name in sorted(strided):
        between = _made_up_for(context, name)
        if between is None or between[1][2] in strided or _resized_by_torch(context, name, known[name], between[1]):
            continue
        where = " and ".join(in_code(at.get(key[2:], cells.get(key[2], key[2]))) for key in between)
        around = cells.get(name.rpartition(".")[0]) or cells.get(name, name).rpartition(".")[0]
        inside = [one for one in left if one.name.startswith(f"{around}.")]
        what = ", ".join(f"{in_code(one.name)} ({one.why})" for one in inside)
        where = f"between {where}" + (f": {what}" if what else "")
        for i, cause in enumerate(shown):
            if cause.place == name and cause.ratio is not None:
                text = f"{cause.text}; MindSpore's net makes up for it {where}"
                fix = f"{cause.fix}, and take out what resizes {where}"
                shown[i] = replace(cause, text=text, fix=fix, change=None)
        resolved.add(name.rpartition(".")[0])
    return [cause for cause in shown if cause.place not in resolved or cause.ratio is not None or cause.fault]


def _resized_by_torch(context: Context, name: str, mutations: Sequence[Mutation], back: Key) -> bool:
    """Whether torch's own net, with the layer as in MindSpore, has its usual shape again at the same place, for example
    after an average over the whole image: then nothing has to be taken out of MindSpore's net."""
    expected = context.traces.alone[0].entries[back].shape
    return shapes_with(context, name, mutations).get((back[2], back[3])) == expected


def _made_up_for(context: Context, name: str) -> tuple[Key, Key] | None:
    """The last output, from layer `name` on, whose shape differs from torch's, and the next, whose shape is torch's;
    None where the shapes differ to the end, or do not begin to differ at that layer."""
    entries = [e for e in context.traces.alone[0].select("forward", "eval") if e.key in context.mindspore.entries]
    begun, last = False, None
    for entry in entries:
        unlike = context.mindspore.entries[entry.key].shape != entry.shape
        begun = begun or entry.name == name
        if begun and not unlike:
            return (last, entry.key) if last else None
        last = entry.key if begun else last
    return None


FORGOTTEN, ADDED = "bn-set-train-missing", "new-child-not-training"
EVALUATED, FLIPPED = "bn-use-batch-statistics-true", "bn-frozen-flipped-back"
# faults whose fix is an argument that torch's layer does not have
WRITTEN = {EVALUATED: {"use_batch_statistics": "None"}, FLIPPED: {"use_batch_statistics": "False"}}


def named_by_mode(causes: Sequence[Cause], model: nn.Module, cells: dict[str, str]) -> list[Cause]:
    """Causes of modules that ran alone in a training step, with the fault that the other modules make likely.

    A single module in evaluation mode was added after `set_train()`; if all of them are, it was never called. A module
    that trains where torch's does not was frozen in torch. model: in training mode; cells: module -> Cell.
    """
    # the norms that take their statistics from the batch; in a net without any, the layers with dropout
    training = {name: module for name, module in model.named_modules() if module.training}
    trained = {name for name, module in training.items() if isinstance(module, nn.modules.batchnorm._BatchNorm)}
    if not trained:
        drops = nn.modules.dropout._DropoutNd
        trained = {name for name, module in training.items() if isinstance(module, drops) and module.p > 0}
    single = bool(trained - {cause.place for cause in causes if cause.fault == FORGOTTEN})
    renamed = {EVALUATED: FLIPPED, **({FORGOTTEN: ADDED} if single else {})}
    shown = []
    for cause in causes:
        fault = renamed.get(cause.fault or "")
        if fault is not None:
            cell = cells.get(cause.place, cause.place)
            fix = f"{in_code(cell)}: {table.faults()[fault].fix}"
            change = CellChange((cell,), "", WRITTEN[fault]) if fault in WRITTEN else None
            cause = replace(cause, fault=fault, fix=fix, change=change)
        shown.append(cause)
    return shown
