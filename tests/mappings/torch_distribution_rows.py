"""The cases of probability distributions in torch."""

from __future__ import annotations

from typing import Any

import torch
from mapping_cases import MEASURES, inputs
from msmigrate.mappings.rows import Case, Row
from torch_calls import arguments, find


def run_distribution(name: str, row: Row, case: Case, dtype: torch.dtype) -> dict[str, Any]:
    """The logarithm of the density at the drawn values, its gradient, and what the distribution says of itself."""
    _, given = arguments(row, case, dtype)
    given = {key: torch.tensor(x, dtype=dtype) if isinstance(x, tuple) else x for key, x in given.items()}
    found = find(row.torch)(**given)
    values = torch.from_numpy(inputs(name, case)[0])
    values = values.to(dtype).requires_grad_(values.is_floating_point())
    density = found.log_prob(values)
    results = {"log_prob": density.detach()}
    if values.requires_grad:
        if density.requires_grad:  # of a uniform distribution it does not depend on the values
            density.sum().backward()
        results["grad"] = torch.zeros_like(values) if values.grad is None else values.grad
    known = {measure: getattr(found, measure) for measure in MEASURES[row.short]}
    return results | {measure: known[measure]() if measure == "entropy" else known[measure] for measure in known}
