"""Why modules fail that ran alone: hypotheses are computed in torch and held against MindSpore's tensors.

The one under which every recorded tensor (outputs, input and parameter gradients, buffers) agrees at the module's own
noise is the cause. Where two faults sit in one module, hypotheses are put one upon another. Where nothing known
reproduces MindSpore's tensors, the place stands, with how they differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import torch
from torch import nn

from ...workers.worker import progress
from ..result import Cause, ModuleVerdict
from ..verdict import Verdict
from .context import Context
from .hypotheses import module_hypotheses, place
from .torch_alone import CannotRun
from .torch_estimates import estimate
from .torch_forward_verbs import operation_trials
from .torch_function_verbs import VERBS as FUNCTION_VERBS
from .torch_in_place import MODES, Track
from .torch_module_causes import cell_of, told
from .torch_module_verbs import VERBS as MODULE_VERBS
from .torch_module_verbs import Trial, applies
from .torch_norm_verbs import VERBS as NORM_VERBS
from .torch_not_finite import overflowing
from .torch_operations import Operation, watched
from .torch_replayed import Replayed
from .torch_search import Found, Tried, faint, search, search_on
from .torch_shorter import shorter
from .torch_specimen import Specimen
from .torch_training_modes import named_by_mode
from .torch_wired import Wired, children
from .unlike_causes import explains

VERBS = {**MODULE_VERBS, **FUNCTION_VERBS, **NORM_VERBS}
ESTIMATE = "estimate"
MOST = 12  # layers that are explained inside the net, in each mode


def explain(context: Context, without: Collection[str] = ()) -> list[Cause]:
    """A cause for every module whose own fault it is that it fails, and for every layer that differs inside the net
    only; `without` leaves known faults out of the search."""
    faulty = sorted((m for m in context.modules if m.verdict is Verdict.FAIL and m.own), key=lambda m: m.order)
    replayed = Replayed(context) if faulty else None
    causes: list[Cause] = []
    known: dict[str, list[Trial]] = {}
    learnt: dict[str, list[Tried]] = {}  # by class: what explained a module of it before is tried first
    for i, module in enumerate(faulty, 1):
        assert replayed is not None
        progress(f"causes: {module.name or 'the model'} ({i} of {len(faulty)})")
        said, chain = _explained(replayed, module, learnt.setdefault(module.kind, []), without)
        causes += said
        known[module.name] = [each.trial for each in chain]
    if causes:
        causes = named_by_mode(causes, context.model.train(), {module.name: cell_of(module) for module in faulty})
    return causes + in_place(context, known, without)


def in_place(context: Context, known: Mapping[str, list[Trial]], without: Collection[str] = ()) -> list[Cause]:
    """A cause for every layer that differs inside the net though what is known is taken into account; where a module
    is at fault for an unknown reason, only for those that a hypothesis explains: the others may be its victims."""
    causes: list[Cause] = []
    for mode in MODES:
        if not context.failed("forward", mode):
            continue
        progress(f"causes: layers in {'evaluation' if mode == 'eval' else 'training'} mode")
        for specimen in Track(context, mode, known).found[:MOST]:
            if specimen.path in known and mode == "train":
                continue
            kind = type(specimen.module).__name__
            verdict = ModuleVerdict(specimen.path, kind, _cell(context, specimen.path), Verdict.FAIL, True, 0, 0)
            said, chain = explained(specimen, verdict, [], without)
            if chain or not (causes or known):
                where = "in evaluation mode" if mode == "eval" else "in training mode, inside the net"
                causes += [replace(cause, text=f"{cause.text} ({where})") for cause in said]
    return causes


def _cell(context: Context, path: str) -> str:
    """The Cell's path, where the replay tells it."""
    return next((m.mindspore for m in context.modules if m.name == path), path)


def _explained(
    replayed: Replayed, module: ModuleVerdict, learnt: list[Tried], without: Collection[str]
) -> tuple[list[Cause], Sequence[Tried]]:
    """The causes of one module's failure, and the trials that explain it: of a container by its wiring, which is exact,
    where that fails; else by what it gives when it runs alone."""
    wired = replayed.wired(module.name)[:1]
    first: list[Cause] = []
    for specimen in (*wired, *replayed.specimens(module.name)[:1]):
        # a wiring that is right leaves the gradients alone to be wrong
        said, chain = explained(specimen, module, learnt, without, values=not wired or specimen is wired[0])
        if chain:
            return said, chain
        first = first or said
    paired = replayed.context.paired
    if not first and paired is not None and explains(paired.alignment.unlike, module.name):
        return [], ()  # it agrees once torch's has what MindSpore's has, and the report says what that is
    if not first:
        where = place(cell_of(module))
        text = f"{module.kind} {module.name or 'the model itself'} differs: {module.why or 'see its tensors'}"
        first = [Cause("forward", module.name, None, text, f"compare {where} with torch's {module.kind}")]
    return first, ()


def explained(
    specimen: Specimen,
    verdict: ModuleVerdict,
    learnt: list[Tried],
    without: Collection[str] = (),
    values: bool = True,
) -> tuple[list[Cause], Sequence[Tried]]:
    """The causes of one specimen's failure, and the trials that reproduce it; they are added to `learnt`.

    values: whether a container's own forward may be at fault in what it computes, or in the gradients alone.
    """
    if (before := specimen.look([])) is None:
        return [], ()
    tried = candidates(specimen, verdict.kind, without, values)
    if not before.failing:
        slight = faint(specimen, tried, before)  # what judges a module alone is sharper than what explains it
        return (told(specimen, verdict, slight), slight.chain) if slight else ([], ())
    found = search(specimen, tried, before, learnt)
    if not found.reproduces:
        found = _estimated(specimen, verdict.kind, found, tried) or found
    if found.reproduces:
        learnt += [each for each in found.chain if each not in learnt]
    elif not found.chain and (one := overflowing(specimen, verdict) or shorter(specimen, verdict, before)):
        return [one], ()
    return told(specimen, verdict, found), found.chain if found.reproduces else ()


def candidates(specimen: Specimen, kind: str, without: Collection[str] = (), values: bool = True) -> list[Tried]:
    """Every trial of the tables on a module of this class, those of known faults first, each once."""
    found: dict[str, Tried] = {}
    for hypothesis in module_hypotheses(VERBS, without):
        if kind in hypothesis.of and applies(specimen.module, hypothesis.values.get("when")):
            for trial in VERBS[hypothesis.verb](specimen.module, hypothesis.values):
                found.setdefault(trial.what, Tried(trial, hypothesis.fault))
    if own_forward(specimen.module):
        for trial, fault in operation_trials(seen_in(specimen), values, not isinstance(specimen, Wired)):
            if fault not in without or fault is None:
                found.setdefault(trial.what, Tried(trial, fault))
    return list(found.values())


def own_forward(module: nn.Module) -> bool:
    """Whether a module's own forward says what is computed: a container, or a class that is not torch's."""
    return children(module) or not type(module).__module__.startswith("torch.nn.")


def seen_in(specimen: Specimen) -> list[Operation]:
    """The operations of the module's own forward, or none where it does not run."""
    seen: list[list[Operation]] = []

    def watch(module: nn.Module) -> None:
        seen.append(watched(module))

    try:
        specimen.computed([Trial("", watch)], torch.float64, gradients=False)
    except CannotRun:
        return []
    return seen[0]


def _estimated(specimen: Specimen, kind: str, found: Found, tried: Sequence[Tried]) -> Found | None:
    """The search with one argument's value fitted, where that explains everything."""
    for hypothesis in module_hypotheses([ESTIMATE]):
        if kind not in hypothesis.of:
            continue
        for chain in dict.fromkeys(((), found.chain)):
            for trial in estimate(specimen, hypothesis.values, chain):
                outcome = specimen.look([*(each.trial for each in chain), trial])
                if outcome is not None and not outcome.failing:
                    return Found((*chain, Tried(trial)), outcome, found.before)
                if outcome is not None and not chain and outcome.failing < found.before.failing:
                    for more in search_on(specimen, tried, Tried(trial), outcome, found.before):
                        return more
    return None
