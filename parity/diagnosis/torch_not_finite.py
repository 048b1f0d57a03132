"""Why an elementwise layer gives values that are not finite: it is right up to some input, and overflows beyond."""

from __future__ import annotations

import numpy as np
import torch

from ...mappings import table
from ..result import Cause, ModuleVerdict
from ..verdict import Verdict, judge
from .hypotheses import module_hypotheses, place
from .torch_alone import CannotRun
from .torch_module_causes import cell_of
from .torch_specimen import Specimen, Subject

VERB = "not_finite"


def overflowing(specimen: Specimen, verdict: ModuleVerdict) -> Cause | None:
    """The cause of a module whose output is not finite just where its input lies beyond some value, and is torch's
    elsewhere; None where no fault of its row says so."""
    known = [h for h in module_hypotheses([VERB]) if verdict.kind in h.of]
    output = specimen.subjects.get("output")
    if not known or output is None or specimen.given is None or len(specimen.given.call.inputs) != 1:
        return None
    try:
        exact = specimen.computed([], torch.float64, gradients=False)["output"]
    except CannotRun:
        return None
    given = output.taken_from(specimen.given.array(specimen.given.call.inputs[0])).astype(np.float64)
    bad = ~np.isfinite(output.elements)
    if exact.shape != output.shape or given.shape != bad.shape or not bad.any() or bad.all():
        return None
    for hypothesis in known:
        sign = 1.0 if hypothesis.values["beyond"] == "above" else -1.0
        lost, kept = (sign * given[bad]).min(), (sign * given[~bad]).max()
        if lost <= kept or not _agree(output, exact, ~bad):
            continue
        fault, said = hypothesis.fault or "", "above" if sign > 0 else "below"
        text = f"{verdict.kind} {verdict.name} is not finite {said} an input of some {sign * (lost + kept) / 2:.3g}"
        evidence = (
            f"{int(bad.sum())} of {bad.size} elements are not finite, all those {said} {sign * lost:.4g} and no other; "
            "the rest agree with torch's"
        )
        fix = f"{place(cell_of(verdict))}: {table.faults()[fault].fix}"
        return Cause("forward", verdict.name, fault, text, fix, evidence, 0.0)
    return None


def _agree(output: Subject, exact: np.ndarray, kept: np.ndarray) -> bool:
    """Whether the elements that are finite are torch's."""
    reference = output.taken_from(exact).astype(np.float64)[kept]
    size = float(np.linalg.norm(reference))
    return not size or judge(reference, [reference], output.elements[kept], output.noise).verdict is not Verdict.FAIL
