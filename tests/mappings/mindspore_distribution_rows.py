"""The cases of probability distributions in MindSpore."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mapping_cases import MEASURES, inputs
from mindspore_calls import translate
from msmigrate.mappings import table
from msmigrate.mappings.rows import Case, Row, build, resolve

OURS = {"mean": "mean", "variance": "var", "entropy": "entropy"}  # torch's name of a measure -> MindSpore's


def run_distribution(name: str, row: Row, case: Case, mode: str) -> dict[str, Any]:
    """The logarithm of the density at the drawn values, its gradient, and what the distribution says of itself."""
    args = case.args
    if row.composed:
        args = {key: ms.Tensor(x, ms.float32) if isinstance(x, list) else x for key, x in args.items()}
    found = build(translate(row.torch, args))
    density = resolve(str(table.row(f"{row.torch}.log_prob").mindspore)) if row.composed else None
    values = ms.Tensor(inputs(name, case)[0].astype(np.float32))

    def log_prob(x: Any) -> Any:
        return found.log_prob(x) if density is None else density(found, x)

    compiled = mode == "graph"
    results = {"log_prob": (ms.jit(log_prob) if compiled else log_prob)(values).asnumpy()}
    if inputs(name, case)[0].dtype == np.float32:
        differentiate = ms.grad(log_prob)
        results["grad"] = (ms.jit(differentiate) if compiled else differentiate)(values).asnumpy()
    if row.composed:
        return results
    return results | {measure: getattr(found, OURS[measure])().asnumpy() for measure in MEASURES[row.short]}
