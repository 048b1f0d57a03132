"""The device that MindSpore computes on in this process: chosen, and described for a trace.

The code for Ascend follows MindSpore's documentation, and is untested.
"""

from __future__ import annotations

import os
from typing import Any

import mindspore

from ..errors import Unsupported
from .device_targets import ascend_versions, cpu_model

SWITCHES = {"conv_allow_hf32": "HF32 in convolutions", "matmul_allow_hf32": "HF32 in matrix products"}
PRECISION_MODES = ("precision_mode", "op_precision_mode")
CONVOLUTIONS_IN_HF32 = {"conv_allow_hf32": True, "matmul_allow_hf32": False}  # Ascend's defaults


def use(target: str, device_id: int, mode: int) -> None:
    """Compute on this device, in mindspore.PYNATIVE_MODE or GRAPH_MODE; a CPU launches each operator by itself.

    Raises Unsupported in one line where MindSpore cannot.
    """
    try:
        mindspore.set_context(mode=mode)
        mindspore.set_device(target, 0 if target == "CPU" else device_id)
        if target == "CPU":
            mindspore.runtime.launch_blocking()  # its threads for that spin: most of the time of a small eager step
    except (RuntimeError, ValueError) as error:
        first = " ".join(str(error).strip().splitlines()[:1]).split(". ")[0]
        raise Unsupported(f"MindSpore {mindspore.__version__} cannot use {target} here: {first}") from error


def described(device_id: int) -> dict[str, Any]:
    """A trace's description of the device in use: device, device_model, driver and runtime, and switches by name."""
    target = str(mindspore.get_context("device_target"))
    if target == "CPU":
        return {"device": "cpu", "device_model": cpu_model()}
    found: dict[str, Any] = {"device": f"{target.lower()}:{device_id}"}
    found["device_model"] = str(mindspore.hal.get_device_name(device_id))
    if target != "Ascend":
        return found
    cann, driver = ascend_versions(os.environ)
    given = mindspore.get_context("ascend_config") or {}
    switches: dict[str, bool | str] = {
        name: bool(given.get(key, CONVOLUTIONS_IN_HF32[key])) for key, name in SWITCHES.items()
    }
    switches |= {name.replace("_", " "): str(given[name]) for name in PRECISION_MODES if name in given}
    switches["deterministic"] = str(mindspore.get_context("deterministic"))
    return {**found, "driver": driver or "not said", "runtime": f"CANN {cann or 'not said'}", "switches": switches}
