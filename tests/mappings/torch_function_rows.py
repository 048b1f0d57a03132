"""The cases of functions in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from msmigrate.mappings.rows import Case, Row
from torch_calls import arguments, find, record, tensors


def run_function(name: str, row: Row, case: Case, dtype: torch.dtype) -> dict[str, Any]:
    """A function: forward and input gradients."""
    xs = tensors(name, case, dtype)
    _, given = arguments(row, case, dtype)
    result = find(row.torch)(*([xs] if case.pack else xs), **given)
    return {"random": result.detach()} if not case.train else record(result, xs, name)
