"""Why modules fail: the candidates, the search, and the cause in words.

The one under which every recorded tensor (outputs, input and parameter gradients, buffers) agrees at the module's own
noise is the cause. Where two faults sit in one module, hypotheses are put one upon another. Where nothing known
reproduces MindSpore's tensors, the place stands, with how they differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite

import numpy as np
import torch
from torch import nn

from ....mappings import table
from ....workers.worker import progress
from ...options import STAGES
from ...result import Cause, ModuleVerdict
from ...trace import sample_positions
from ...verdict import RATIO, Verdict, judge
from .. import differences
from ..context import Context
from ..evidence import Outcome
from ..hypotheses import cell_of, fix, module_hypotheses, place
from ..mutations.torch_formulas import MUTATIONS as FORMULA_MUTATIONS
from ..mutations.torch_forward import operation_mutations
from ..mutations.torch_layers import MUTATIONS as LAYER_MUTATIONS
from ..mutations.torch_layers import NORM_MUTATIONS, Mutation, applies, arguments_of
from ..torch_operations import Operation, watched
from ..torch_search import Explanation, ModuleHypothesis, estimate, extend, made_of, search, weak_match
from ..torch_subjects import (
    MODES,
    CannotRun,
    ContainerSubject,
    ModuleSubject,
    NetPass,
    RecordedTensor,
    ReplayTraces,
    children,
)
from .torch_precision import shorter
from .unlike_parameters import explains

MUTATIONS = {**LAYER_MUTATIONS, **FORMULA_MUTATIONS, **NORM_MUTATIONS}
ESTIMATE = "estimate"
MOST = 12  # layers that are explained inside the net, in each mode
SHOWN = 4  # tensors whose differences are described
VERB = "not_finite"


def explain(context: Context, without: Collection[str] = ()) -> list[Cause]:
    """A cause for every module whose own fault it is that it fails, and for every layer that differs inside the net
    only; `without` leaves known faults out of the search."""
    faulty = sorted((m for m in context.modules if m.verdict is Verdict.FAIL and m.own), key=lambda m: m.order)
    replay = ReplayTraces(context) if faulty else None
    causes: list[Cause] = []
    known: dict[str, list[Mutation]] = {}
    # by class: what explained a module of it before is tried first
    found_before: dict[str, list[ModuleHypothesis]] = {}
    for i, module in enumerate(faulty, 1):
        assert replay is not None
        progress(f"causes: {module.name or 'the model'} ({i} of {len(faulty)})")
        said, chain = _explained(replay, module, found_before.setdefault(module.kind, []), without)
        causes += said
        known[module.name] = [each.change for each in chain]
    if causes:
        causes = named_by_mode(causes, context.model.train(), {module.name: cell_of(module) for module in faulty})
    return causes + in_place(context, known, without)


def in_place(context: Context, known: Mapping[str, list[Mutation]], without: Collection[str] = ()) -> list[Cause]:
    """A cause for every layer that differs inside the net though what is known is taken into account; where a module
    is at fault for an unknown reason, only for those that a hypothesis explains: the others may be its victims."""
    causes: list[Cause] = []
    for mode in MODES:
        if not context.failed("forward", mode):
            continue
        progress(f"causes: layers in {'evaluation' if mode == 'eval' else 'training'} mode")
        for subject in NetPass(context, mode, known).found[:MOST]:
            if subject.path in known and mode == "train":
                continue
            kind = type(subject.module).__name__
            verdict = ModuleVerdict(subject.path, kind, _cell(context, subject.path), Verdict.FAIL, True, 0, 0)
            said, chain = explained(subject, verdict, [], without)
            if chain or not (causes or known):
                where = "in evaluation mode" if mode == "eval" else "in training mode, inside the net"
                causes += [replace(cause, text=f"{cause.text} ({where})") for cause in said]
    return causes


def _cell(context: Context, path: str) -> str:
    """The Cell's path, where the replay tells it."""
    return next((m.mindspore for m in context.modules if m.name == path), path)


def _explained(
    replay: ReplayTraces, module: ModuleVerdict, found_before: list[ModuleHypothesis], without: Collection[str]
) -> tuple[list[Cause], Sequence[ModuleHypothesis]]:
    """The causes of one module's failure, and the hypotheses that explain it.

    Of a container by its wiring, which is exact, where that fails; else by what it gives when it runs alone.
    """
    container = replay.container(module.name)[:1]
    first: list[Cause] = []
    for subject in (*container, *replay.subjects(module.name)[:1]):
        # a wiring that is right leaves the gradients alone to be wrong
        said, chain = explained(subject, module, found_before, without, values=not container or subject is container[0])
        if chain:
            return said, chain
        first = first or said
    paired = replay.context.paired
    if not first and paired is not None and explains(paired.alignment.unlike, module.name):
        return [], ()  # it agrees once torch's has what MindSpore's has, and the report says what that is
    if not first:
        where = place(cell_of(module))
        text = f"{module.kind} {module.name or 'the model itself'} differs: {module.why or 'see its tensors'}"
        first = [Cause("forward", module.name, None, text, f"compare {where} with torch's {module.kind}")]
    return first, ()


def explained(
    subject: ModuleSubject,
    verdict: ModuleVerdict,
    found_before: list[ModuleHypothesis],
    without: Collection[str] = (),
    values: bool = True,
) -> tuple[list[Cause], Sequence[ModuleHypothesis]]:
    """The causes of one subject's failure, and the mutations that reproduce it; they are added to `found_before`.

    values: whether a container's own forward may be at fault in what it computes, or in the gradients alone.
    """
    if (before := subject.look([])) is None:
        return [], ()
    hypotheses = candidates(subject, verdict.kind, without, values)
    if not before.failing:
        slight = weak_match(subject, hypotheses, before)  # what judges a module alone is sharper than what explains it
        return (describe(subject, verdict, slight), slight.chain) if slight else ([], ())
    found = search(subject, hypotheses, before, found_before)
    if not found.reproduces:
        found = _estimated(subject, verdict.kind, found, hypotheses) or found
    if found.reproduces:
        found_before += [each for each in found.chain if each not in found_before]
    elif not found.chain and (one := overflowing(subject, verdict) or shorter(subject, verdict, before)):
        return [one], ()
    return describe(subject, verdict, found), found.chain if found.reproduces else ()


def candidates(
    subject: ModuleSubject, kind: str, without: Collection[str] = (), values: bool = True
) -> list[ModuleHypothesis]:
    """Every mutation of the tables on a module of this class, those of known faults first, each once."""
    found: dict[str, ModuleHypothesis] = {}
    for row in module_hypotheses(MUTATIONS, without):
        if kind in row.of and applies(subject.module, row.values.get("when")):
            for mutation in MUTATIONS[row.verb](subject.module, row.values):
                found.setdefault(mutation.what, made_of(mutation, row.fault))
    if own_forward(subject.module):
        for mutation, fault in operation_mutations(seen_in(subject), values, not isinstance(subject, ContainerSubject)):
            if fault not in without or fault is None:
                found.setdefault(mutation.what, made_of(mutation, fault))
    return list(found.values())


def own_forward(module: nn.Module) -> bool:
    """Whether a module's own forward says what is computed: a container, or a class that is not torch's."""
    return children(module) or not type(module).__module__.startswith("torch.nn.")


def seen_in(subject: ModuleSubject) -> list[Operation]:
    """The operations of the module's own forward, or none where it does not run."""
    seen: list[list[Operation]] = []

    def watch(module: nn.Module) -> None:
        seen.append(watched(module))

    try:
        subject.computed([Mutation("", watch)], torch.float64, gradients=False)
    except CannotRun:
        return []
    return seen[0]


def _estimated(
    subject: ModuleSubject, kind: str, found: Explanation, hypotheses: Sequence[ModuleHypothesis]
) -> Explanation | None:
    """The search with one argument's value fitted, where that explains everything."""
    for row in module_hypotheses([ESTIMATE]):
        if kind not in row.of:
            continue
        for chain in dict.fromkeys(((), found.chain)):
            for mutation in estimate(subject, row.values, chain):
                outcome = subject.look([*(each.change for each in chain), mutation])
                if outcome is not None and not outcome.failing:
                    return Explanation((*chain, made_of(mutation)), outcome, found.before)
                if outcome is not None and not chain and outcome.failing < found.before.failing:
                    for more in extend(subject, hypotheses, made_of(mutation), outcome, found.before):
                        return more
    return None


def describe(subject: ModuleSubject, verdict: ModuleVerdict, found: Explanation) -> list[Cause]:
    """Causes in words: one for each link of a chain that reproduces MindSpore's tensors or some of them, and one for
    what is left."""
    causes = []
    explained = found.explained() if not found.reproduces else found.before.failing
    if found.chain and (found.reproduces or explained):
        causes = [_cause(subject, verdict, found, each) for each in found.chain]
    if not found.reproduces:
        causes.append(_unknown(subject, verdict, found))
    return causes


def _cause(subject: ModuleSubject, verdict: ModuleVerdict, found: Explanation, hypothesis: ModuleHypothesis) -> Cause:
    """What one link of the chain says."""
    mutation, module = hypothesis.change, subject.module
    own = arguments_of(module)
    right = ", ".join(f"{name}={own[name]!r}" for name in mutation.arguments if name in own)
    where = verdict.name or "the model itself"
    text = f"{verdict.kind} {where} computes as with {mutation.what}"
    text += f"; torch has {right}" if right else ""
    if found.ties:
        text += f" (or with {', or '.join(tie.text for tie in found.ties)}: these cannot be told apart here)"
    known = table.faults().get(hypothesis.fault) if hypothesis.fault else None
    cell = cell_of(verdict)
    written = fix(cell, verdict.kind, own, mutation.arguments)
    if not written and (known or mutation.fix):
        written = f"{place(cell)}: {known.fix if known else mutation.fix}"
    written = written or fix(cell, verdict.kind, own, own) or f"{place(cell)}: compute as torch's {verdict.kind} does"
    chain = " and ".join(each.text for each in found.chain)
    evidence = (
        f"torch's {verdict.kind} {subject.how}, with {chain}: {_agreement(found)} (as it is: {_ratio(found.before)})"
    )
    return Cause(
        _stage(subject, _without(subject, found, hypothesis)),
        verdict.name,
        hypothesis.fault,
        text,
        written,
        evidence,
        found.outcome.worst if isfinite(found.outcome.worst) else None,
        found.before.worst if isfinite(found.before.worst) else None,
    )


def _without(subject: ModuleSubject, found: Explanation, hypothesis: ModuleHypothesis) -> Outcome:
    """What fails when one link of the chain is left out: what this link explains."""
    if len(found.chain) == 1:
        return found.before
    rest = subject.look([each.change for each in found.chain if each is not hypothesis])
    return found.before if rest is None or not rest.failing else rest


def _agreement(found: Explanation) -> str:
    tensors = len(found.outcome.ratios)
    if found.reproduces:
        return f"all {tensors} tensors of MindSpore's at {_number(found.outcome.worst)} of the noise or less"
    return f"{len(found.explained())} of the {len(found.before.failing)} failing tensors agree with MindSpore's"


def _ratio(outcome: Outcome) -> str:
    if isfinite(outcome.worst):
        return f"{_number(outcome.worst)} of the noise"
    return "of another shape"


def _number(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 100 else f"{ratio:.3g}"


def _stage(subject: ModuleSubject, outcome: Outcome) -> str:
    """The first stage that fails; of a difference at the edge of noise, that of the tensor that is farthest off."""
    failing = outcome.failing or sorted(outcome.ratios, key=outcome.ratios.__getitem__)[-1:]
    stages = [subject.expected[name].stage for name in failing if name in subject.expected]
    return min(stages, key=STAGES.index, default="forward")


def _unknown(subject: ModuleSubject, verdict: ModuleVerdict, found: Explanation) -> Cause:
    """The place, and how the tensors differ that nothing explains."""
    order = {name: i for i, name in enumerate(subject.expected)}
    failing = sorted(
        found.outcome.failing if found.chain else found.before.failing, key=lambda n: order.get(n, len(order))
    )
    chain = [each.change for each in found.chain] if found.explained() else []
    try:
        exact = subject.computed(chain, torch.float64)
    except CannotRun:
        exact = {}
    said = []
    for name in failing[:SHOWN]:
        recorded = subject.expected.get(name)
        if recorded is None:
            said.append(f"{name}: MindSpore has none")
        elif name not in exact:
            said.append(f"{name}: torch has none")
        elif exact[name].shape != recorded.shape:
            said.append(f"{name}: {differences.shapes(exact[name].shape, recorded.shape)}")
        else:
            positions = sample_positions(exact[name].size, recorded.elements.size) if recorded.sampled else None
            reference = recorded.taken_from(exact[name])
            said.append(f"{name}: {differences.difference(reference, recorded.elements, recorded.shape, positions)}")
    agree = sorted(set(found.before.ratios) - found.before.failing)
    where = verdict.name or "the model itself"
    rest = f"; what else differs in {verdict.kind} {where}" if chain else f"{verdict.kind} {where} differs"
    text = f"nothing known reproduces it: {rest.lstrip('; ')}: {'; '.join(said)}"
    if len(failing) > SHOWN:
        text += f"; and {len(failing) - SHOWN} tensors more"
    evidence = f"as it is, {_ratio(found.before)} (above {RATIO:g} a tensor fails); {len(agree)} tensors agree"
    evidence += f": {', '.join(agree[:SHOWN])}" if agree else ""
    return Cause(
        _stage(subject, found.before),
        verdict.name,
        None,
        text,
        f"compare {place(cell_of(verdict))} with torch's {verdict.kind}",
        evidence,
        None,
        found.before.worst if isfinite(found.before.worst) else None,
    )


def overflowing(subject: ModuleSubject, verdict: ModuleVerdict) -> Cause | None:
    """The cause of a module whose output is not finite just where its input lies beyond some value, and is torch's
    elsewhere; None where no fault of its row says so."""
    known = [h for h in module_hypotheses([VERB]) if verdict.kind in h.of]
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
        fault, said = row.fault or "", "above" if sign > 0 else "below"
        text = f"{verdict.kind} {verdict.name} is not finite {said} an input of some {sign * (lost + kept) / 2:.3g}"
        evidence = (
            f"{int(bad.sum())} of {bad.size} elements are not finite, all those {said} {sign * lost:.4g} and no other; "
            "the rest agree with torch's"
        )
        fix = f"{place(cell_of(verdict))}: {table.faults()[fault].fix}"
        return Cause("forward", verdict.name, fault, text, fix, evidence, 0.0)
    return None


def _agree(output: RecordedTensor, exact: np.ndarray, kept: np.ndarray) -> bool:
    """Whether the elements that are finite are torch's."""
    reference = output.taken_from(exact).astype(np.float64)[kept]
    size = float(np.linalg.norm(reference))
    return not size or judge(reference, [reference], output.elements[kept], output.noise).verdict is not Verdict.FAIL


FORGOTTEN, ADDED = "bn-set-train-missing", "new-child-not-training"
EVALUATED, FLIPPED = "bn-use-batch-statistics-true", "bn-frozen-flipped-back"


def named_by_mode(causes: Sequence[Cause], model: nn.Module, cells: dict[str, str]) -> list[Cause]:
    """Causes of modules that ran alone in a training step, with the fault that the other modules speak for.

    A single module in evaluation mode was added after `set_train()`, where all of them are it was never called. One
    that trains where torch's does not was frozen in torch. model: in training mode; cells: module -> Cell.
    """
    forgotten = {cause.place for cause in causes if cause.fault == FORGOTTEN}
    single = bool(set(_trained(model)) - forgotten)
    shown = []
    for cause in causes:
        fault = cause.fault
        if fault == FORGOTTEN and single:
            fault = ADDED
        elif fault == EVALUATED:
            fault = FLIPPED
        shown.append(cause if fault == cause.fault else _renamed(cause, fault or "", cells))
    return shown


def _renamed(cause: Cause, fault: str, cells: dict[str, str]) -> Cause:
    fix = f"{place(cells.get(cause.place, cause.place))}: {table.faults()[fault].fix}"
    return replace(cause, fault=fault, fix=fix)


def _trained(model: nn.Module) -> Iterator[str]:
    """The norms that take their statistics from the batch; of a net without any, the layers that drop something."""
    norms = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training
    ]
    yield from norms or (
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.training and module.p > 0
    )
