"""What the search found on a module, in words: what is wrong, how it was tested, and what to write in MindSpore."""

from __future__ import annotations

from math import isfinite

import torch

from ...mappings import table
from ..narrowing import STAGES
from ..result import Cause, ModuleVerdict
from ..trace import sample_positions
from ..verdict import RATIO
from . import patterns
from .hypotheses import fix, place
from .torch_alone import CannotRun
from .torch_module_verbs import arguments_of
from .torch_search import Found, Tried
from .torch_specimen import Outcome, Specimen

SHOWN = 4  # tensors whose differences are described


def told(specimen: Specimen, verdict: ModuleVerdict, found: Found) -> list[Cause]:
    """Causes in words: one for each link of a chain that reproduces MindSpore's tensors or some of them, and one for
    what is left."""
    causes = []
    explained = found.explained() if not found.reproduces else found.before.failing
    if found.chain and (found.reproduces or explained):
        causes = [_cause(specimen, verdict, found, each) for each in found.chain]
    if not found.reproduces:
        causes.append(_unknown(specimen, verdict, found))
    return causes


def _cause(specimen: Specimen, verdict: ModuleVerdict, found: Found, tried: Tried) -> Cause:
    """What one link of the chain says."""
    trial, module = tried.trial, specimen.module
    own = arguments_of(module)
    right = ", ".join(f"{name}={own[name]!r}" for name in trial.arguments if name in own)
    where = verdict.name or "the model itself"
    text = f"{verdict.kind} {where} computes as with {trial.what}"
    text += f"; torch has {right}" if right else ""
    if found.ties:
        text += f" (or with {', or '.join(tie.trial.what for tie in found.ties)}: these cannot be told apart here)"
    known = table.faults().get(tried.fault) if tried.fault else None
    cell = cell_of(verdict)
    written = fix(cell, verdict.kind, own, trial.arguments)
    if not written and (known or trial.fix):
        written = f"{place(cell)}: {known.fix if known else trial.fix}"
    written = written or fix(cell, verdict.kind, own, own) or f"{place(cell)}: compute as torch's {verdict.kind} does"
    chain = " and ".join(each.trial.what for each in found.chain)
    evidence = (
        f"torch's {verdict.kind} {specimen.how}, with {chain}: {_agreement(found)} (as it is: {_ratio(found.before)})"
    )
    return Cause(
        _stage(specimen, _without(specimen, found, tried)),
        verdict.name,
        tried.fault,
        text,
        written,
        evidence,
        found.outcome.worst if isfinite(found.outcome.worst) else None,
        found.before.worst if isfinite(found.before.worst) else None,
    )


def _without(specimen: Specimen, found: Found, tried: Tried) -> Outcome:
    """What fails when one link of the chain is left out: what this link explains."""
    if len(found.chain) == 1:
        return found.before
    rest = specimen.look([each.trial for each in found.chain if each is not tried])
    return found.before if rest is None or not rest.failing else rest


def _agreement(found: Found) -> str:
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


def _stage(specimen: Specimen, outcome: Outcome) -> str:
    """The first stage that fails; of a difference at the edge of noise, that of the tensor that is farthest off."""
    failing = outcome.failing or sorted(outcome.ratios, key=outcome.ratios.__getitem__)[-1:]
    stages = [specimen.subjects[name].stage for name in failing if name in specimen.subjects]
    return min(stages, key=STAGES.index, default="forward")


def _unknown(specimen: Specimen, verdict: ModuleVerdict, found: Found) -> Cause:
    """The place, and how the tensors differ that nothing explains."""
    order = {name: i for i, name in enumerate(specimen.subjects)}
    failing = sorted(
        found.outcome.failing if found.chain else found.before.failing, key=lambda n: order.get(n, len(order))
    )
    chain = [each.trial for each in found.chain] if found.explained() else []
    try:
        exact = specimen.computed(chain, torch.float64)
    except CannotRun:
        exact = {}
    said = []
    for name in failing[:SHOWN]:
        subject = specimen.subjects.get(name)
        if subject is None:
            said.append(f"{name}: MindSpore has none")
        elif name not in exact:
            said.append(f"{name}: torch has none")
        elif exact[name].shape != subject.shape:
            said.append(f"{name}: {patterns.shapes(exact[name].shape, subject.shape)}")
        else:
            positions = sample_positions(exact[name].size, subject.elements.size) if subject.sampled else None
            reference = subject.taken_from(exact[name])
            said.append(f"{name}: {patterns.difference(reference, subject.elements, subject.shape, positions)}")
    agree = sorted(set(found.before.ratios) - found.before.failing)
    where = verdict.name or "the model itself"
    rest = f"; what else differs in {verdict.kind} {where}" if chain else f"{verdict.kind} {where} differs"
    text = f"nothing known reproduces it: {rest.lstrip('; ')}: {'; '.join(said)}"
    if len(failing) > SHOWN:
        text += f"; and {len(failing) - SHOWN} tensors more"
    evidence = f"as it is, {_ratio(found.before)} (above {RATIO:g} a tensor fails); {len(agree)} tensors agree"
    evidence += f": {', '.join(agree[:SHOWN])}" if agree else ""
    return Cause(
        _stage(specimen, found.before),
        verdict.name,
        None,
        text,
        f"compare {place(cell_of(verdict))} with torch's {verdict.kind}",
        evidence,
        None,
        found.before.worst if isfinite(found.before.worst) else None,
    )


def cell_of(verdict: ModuleVerdict) -> str:
    """The Cell's attribute path, empty for the net itself."""
    path = verdict.mindspore.split(" ")[0] if verdict.mindspore else verdict.name
    return "" if path.startswith("(") else path
