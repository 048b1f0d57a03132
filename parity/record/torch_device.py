"""Where torch's side runs: the device by name, what it is, the switches that change its numbers, and its memory.

Only plain float32 runs on the device, and twice, because atomic additions make it differ from run to run. The reference
in float64 and the second float32 run, which imitates MindSpore's rounding, stay on the CPU, unless the net is so large
that this would take hours: not every device has float64, and noise that is measured on both is never less than the
CPU's alone.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ...errors import Unsupported
from ...training.device_targets import cpu_model

CPU = torch.device("cpu")
LARGE = 300_000_000  # elements of weights from which the reference runs on the device, if that has float64
# the name of a switch in reports -> its place below torch.backends, and below torch_npu's torch.npu
OF_CUDA = {
    "TF32 in matrix products": "cuda.matmul.allow_tf32",
    "TF32 in convolutions": "cudnn.allow_tf32",
    "cudnn.benchmark": "cudnn.benchmark",
    "cudnn.deterministic": "cudnn.deterministic",
    "float16 sums in float16": "cuda.matmul.allow_fp16_reduced_precision_reduction",
    "bfloat16 sums in bfloat16": "cuda.matmul.allow_bf16_reduced_precision_reduction",
}
OF_NPU = {"HF32 in matrix products": "matmul.allow_hf32", "HF32 in convolutions": "conv.allow_hf32"}
TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"  # 0: cuBLAS and cuDNN compute nothing in TF32, whatever torch's switches say
DRIVER = Path("/proc/driver/nvidia/version")


def device(name: str) -> torch.device:
    """The device of this name, with its number: cpu, cuda:0, npu:1. Raises Unsupported where torch has no such device.

    torch_npu adds npu to torch when torch is imported: torch loads installed backends by itself.
    """
    kind, _, number = name.partition(":")
    if kind == "cpu":
        return CPU
    module = getattr(torch, kind, None)
    count = module.device_count() if module is not None and module.is_available() else 0
    index = int(number or 0)
    if index >= count:
        there = f"it sees {count}, numbered from 0" if count else "it sees none"
        there += ", and torch_npu, which provides it, is not loaded" if kind == "npu" and module is None else ""
        raise Unsupported(
            f"--device {name}: torch {torch.__version__} has no such device here: {there}; use --device cpu, or record "
            f"torch's half where the device is: msmigrate record --framework torch --device {name} -o A"
        )
    return torch.device(kind, index)


def of_reference(model: nn.Module, device: torch.device) -> torch.device:
    """Where float64 and the second float32 run are computed."""
    large = sum(parameter.numel() for parameter in model.parameters()) >= LARGE
    return device if large and device.type == "cuda" else CPU


def described(device: torch.device) -> dict[str, Any]:
    """What a trace says of the device: device, device_model, driver where there is one, and switches by name."""
    if device.type == "cpu":
        return {"device": "cpu", "device_model": f"{cpu_model()}, {torch.backends.cpu.get_cpu_capability()}"}
    module: Any = torch.get_device_module(device)
    found: dict[str, Any] = {"device": str(device), "device_model": str(module.get_device_name(device))}
    if device.type == "cuda":
        found["driver"] = _driver()
        found["runtime"] = f"CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
        found["switches"] = switches(torch.backends, OF_CUDA)
    else:
        found["switches"] = switches(module, OF_NPU)
    return found


def switches(root: Any, places: dict[str, str]) -> dict[str, bool | str]:
    """The switches that change what a device computes, as they stand now; places: name -> dotted name below `root`."""
    found: dict[str, bool | str] = {}
    for name, place in places.items():
        value = root
        try:
            for part in place.split("."):
                value = getattr(value, part)
        except (AttributeError, RuntimeError):  # set by the newer switches, or not there in this torch
            continue
        found[name] = value if isinstance(value, bool) else str(value)
    found["deterministic algorithms"] = torch.are_deterministic_algorithms_enabled()
    override = os.environ.get(TF32_OVERRIDE)
    return found if override is None else {**found, TF32_OVERRIDE: override}


def _driver() -> str:
    """The version of NVIDIA's driver."""
    try:
        said = DRIVER.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "not said"
    found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", said)
    return found[1] if found else "not said"


def generator_of(device: torch.device) -> torch.Generator:
    """The generator that operators on this device draw from."""
    if device.type == "cpu":
        return torch.default_generator
    module: Any = torch.get_device_module(device)
    found: torch.Generator = module.default_generators[device.index or 0]
    return found


def release_memory() -> None:
    """Collect what nothing refers to, and hand the C library's free pages back to the system, where it is glibc.

    torch frees tensors of some MB into the C library's heap, which keeps them: a process that waits for another would
    hold what its last step took.
    """
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)
