"""What tracing and writing a torch model costs beyond the imports, and the models that no name alone stands for.

    python benchmarks/converted_models_torch.py names 'torchvision:*' 'torchvision.segmentation:*' 'timm:resnet*'
    python benchmarks/converted_models_torch.py cost torchvision:resnet50 [SHAPE …]

`cost` prints JSON: seconds, of the wall and of all cores, and by how many MB the process grew at its largest, for
running the model and writing its source, after torch, torchvision, timm and msmigrate are imported.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import timm
import torch
import torchvision
from msmigrate.migrate.source import convert_model
from msmigrate.migrate.source.observe import torch_observe_worker

HERE = Path(__file__).name
BUILDERS = {zoo: Path(__file__).with_name(f"converted_models_{zoo}.py") for zoo in ("transformers", "packages")}


def backbone(name: str) -> torch.nn.Module:
    """The part of one of torchvision's detectors that makes features of an image."""
    return torchvision.models.get_model(name, weights=None, weights_backbone=None).backbone


def names(pattern: str) -> list[str]:
    """The models that a pattern stands for, each as convert-model takes it."""
    place, _, glob = pattern.partition(":")
    zoo, _, kind = place.partition(".")
    if zoo in BUILDERS:
        body = ast.parse(BUILDERS[zoo].read_text()).body
        found = [node.name for node in body if isinstance(node, ast.FunctionDef) and node.name[0] != "_"]
        return [f"benchmarks/{BUILDERS[zoo].name}:{name}" for name in found if fnmatch(name, glob)]
    if zoo == "timm":
        return [f"timm:{name}" for name in timm.list_models(glob)]
    module = getattr(torchvision.models, kind, None) if kind else torchvision.models
    if zoo != "torchvision" or not inspect.ismodule(module):
        sys.exit(f"{pattern}: no such family; known: torchvision, .segmentation, .video, .detection, timm")
    found = [name for name in torchvision.models.list_models(module=module) if fnmatch(name, glob)]
    if kind == "detection":
        return [f"benchmarks/{HERE}:backbone({name!r})" for name in found]
    return [f"torchvision:{name}" for name in found]


def cost(spec: str, *shapes: str) -> dict[str, Any]:
    """Run and write a model, and say what that took."""
    before, began, busy = _peak(), time.perf_counter(), time.process_time()
    report = torch_observe_worker.report(spec, *shapes)
    convert_model.written(spec, json.loads(json.dumps(report)))
    seconds, cpu = time.perf_counter() - began, time.process_time() - busy
    return {"seconds": round(seconds, 2), "cpu": round(cpu, 2), "megabytes": round(_peak() - before)}


def _peak() -> float:
    """Peak resident MB of this process."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "names":
        print(json.dumps([model for pattern in words for model in names(pattern)]))
    else:
        print(json.dumps(cost(*words)))
