"""Whether a module that failed alone computes in a shorter format than float32: its rounding cannot be reproduced bit
by bit, but its size can."""

from __future__ import annotations

from math import inf

import numpy as np
import torch

from ...mappings import table
from ..record.torch_precision import computing_in
from ..result import Cause, ModuleVerdict
from .hypotheses import place
from .torch_alone import CannotRun, Tensors
from .torch_module_causes import cell_of
from .torch_specimen import Outcome, Specimen

FAULT = "ascend-fp16-ops"
FORMATS = {"fp16": "float16 (or TF32, which rounds alike)", "hf32": "HF32", "bf16": "bfloat16"}
NEAR = 4.0  # by what factor rounding of one format may differ between two kernels; bf16's is 8 times fp16's
SUMMED = 2.0  # times that for a weight's gradient, a sum over the batch that each kernel rounds on its way: 4.4 seen
ALONG = 0.9  # cosine of the difference with the tensor itself: a factor's is 1, rounding of a gradient had up to 0.54


def shorter(specimen: Specimen, verdict: ModuleVerdict, before: Outcome) -> Cause | None:
    """The cause of a module whose failing tensors are all as far off as products of a shorter format are, or None."""
    try:
        exact = specimen.computed([], torch.float64)
        found = {}
        for name in FORMATS:
            with computing_in(name):
                found[name] = _unlike(specimen, before, exact, specimen.computed([], torch.float32))
    except CannotRun:
        return None
    name = min(found, key=found.__getitem__)
    if found[name] > NEAR:
        return None
    where = verdict.name or "the model itself"
    text = f"{verdict.kind} {where} computes its products in {FORMATS[name]}, not in float32"
    evidence = (
        f"{len(before.failing)} tensors are as far from float64 as torch's are with operands in {name}, to a factor of "
        f"{found[name]:.2g}"
    )
    fix = f"{place(cell_of(verdict))}: {table.faults()[FAULT].fix}"
    return Cause("forward", verdict.name, FAULT, text, fix, evidence, None, before.worst)


def _unlike(specimen: Specimen, before: Outcome, exact: Tensors, short: Tensors) -> float:
    """The largest factor between MindSpore's distance from float64 and the format's, over the failing tensors that are
    products; infinite without any."""
    # a bias's gradient is a sum, which kernels round as they please
    products = [name for name in before.failing if not name.rpartition(".")[0].endswith("bias")]
    worst = 1.0 if products else inf
    for name in products:
        subject = specimen.subjects.get(name)
        if subject is None or name not in exact or exact[name].shape != subject.shape:
            return inf
        reference = subject.taken_from(exact[name]).astype(np.float64)
        ours = float(np.linalg.norm(subject.taken_from(short[name]) - reference))
        theirs = float(np.linalg.norm(subject.elements - reference))
        if not ours or not np.isfinite(theirs):
            return inf
        off = subject.elements - reference
        if abs(float(off @ reference)) > ALONG * theirs * float(np.linalg.norm(reference)):
            return inf  # rounding points anywhere; this is a factor
        factor = max(theirs / ours, ours / theirs)
        is_sum = name.endswith(".grad") and not name.startswith("input")
        worst = max(worst, factor / SUMMED if is_sum else factor)
    return worst
