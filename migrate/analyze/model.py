"""Analyse one model: ask the worker what it uses, and hold that against the mapping table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import BadInput
from .. import model_spec
from .operators import operators
from .verdict import Analysis, torch_analysis


def analyze(target_name: str, *, mode: str, target: str, inputs: Sequence[str] = ()) -> Analysis:
    """Analyse `torchvision:NAME`, `timm:NAME`, `FILE_OR_MODULE:FUNCTION` or a file of ONNX.

    Raises BadInput for what names no model or is no ONNX file, WorkerFailed when the model's own code fails.
    """
    if target_name.endswith(".onnx") or (":" not in target_name and Path(target_name).exists()):
        if inputs:
            raise BadInput("--input is for models of torch: a file of ONNX says its own inputs")
        from .onnx_model import analyze_onnx

        return analyze_onnx(target_name, mode=mode, target=target)
    if ":" not in target_name:
        raise BadInput(
            f"{target_name!r} names no model and no file: write torchvision:NAME, timm:NAME, FILE.py:FUNCTION, "
            "MODULE:FUNCTION, model.onnx, or train.py"
        )
    report = model_spec.ask("analyze.torch_operators", target_name, "the analysis of", *inputs)
    spec = model_spec.parse(target_name)
    name = spec.name if spec.place in ("torchvision", "timm") else target_name
    return torch_analysis(name, report, operators(report["uses"], mode, target), mode, target)
