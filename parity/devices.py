"""What a half of a step was computed on, as its trace says, and what a reader has to know about that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ..errors import BadTrace
from ..input_files import typed
from .options import joined

SHORTER = {  # switch -> what to put before the command, or into one's own file, to switch it off
    "TF32 in matrix products": "NVIDIA_TF32_OVERRIDE=0 before the command",
    "TF32 in convolutions": "NVIDIA_TF32_OVERRIDE=0 before the command",
    "HF32 in matrix products": "torch.npu.matmul.allow_hf32 = False in the model's file",
    "HF32 in convolutions": "torch.npu.conv.allow_hf32 = False in the model's file",
}
COARSE = 30.0  # times the CPU's noise from which a device's is more than another order of additions


@dataclass(frozen=True)
class Device:
    """device: cpu, cuda:0, npu:0 or ascend:0; device_model: what it calls itself; driver, runtime: their versions where
    there are any; switches: what changes the numbers that it computes, by name."""

    device: str
    device_model: str = ""
    driver: str = ""
    runtime: str = ""
    switches: dict[str, bool | str] = field(default_factory=dict)

    @classmethod
    def of(cls, about: Mapping[str, Any], place: Path) -> Device:
        """What the head of a trace says, which may come from anyone. Raises BadTrace for nonsense."""
        said = {each.name: about[each.name] for each in fields(cls) if each.name in about}
        try:
            return typed(cls, {"device": "not said", **said}, whole=False)
        except ValueError as error:
            raise BadTrace(f"{place / 'trace.json'}: says nonsense about its device: {error}") from None

    @property
    def is_cpu(self) -> bool:
        """Whether it is a CPU, or an older trace that does not say."""
        return self.device in ("cpu", "not said")

    def said(self) -> str:
        """cuda:0 (NVIDIA H100, driver 550.54; TF32 in convolutions on, cudnn.benchmark off)."""
        versions = [self.device_model, f"driver {self.driver}" if self.driver else "", self.runtime]
        switches = [f"{name} {_state(value)}" for name, value in self.switches.items()]
        inside = "; ".join(part for part in (", ".join(filter(None, versions)), ", ".join(switches)) if part)
        return f"{self.device} ({inside})" if inside else self.device


def _state(value: bool | str) -> str:
    return value if isinstance(value, str) else "on" if value else "off"


def notes(
    torch: Device, reference: Device, mindspore: Device, precision: str, coarser: float | None = None
) -> list[str]:
    """What to know of these.

    torch, reference: of its float32 and of its float64 run. precision: of the recording. coarser: how many times as far
    from float64 as a float32 run on the CPU the one on the device is, in the middle of all outputs; None: not measured.
    """
    found = []
    if not torch.is_cpu:
        where = "there too" if reference.device == torch.device else "on the CPU"
        found.append(
            f"torch's float32 ran twice on {torch.device}, and what differs between the two counts as noise; float64 "
            f"and a float32 run of another memory layout ran {where}"
        )
    shorter = [name for name in SHORTER if torch.switches.get(name) is True]
    shorter = [] if torch.switches.get("NVIDIA_TF32_OVERRIDE") == "0" else shorter
    if coarser is not None and coarser >= COARSE:
        why = f" ({joined([f'{name} is on' for name in shorter])})" if shorter else ""
        remedy = joined(list(dict.fromkeys(SHORTER[name] for name in shorter)))
        sharper = f"; for a sharper verdict: {remedy}" if remedy else ""
        found.append(
            f"torch on {torch.device} is {coarser:,.0f} times as far from float64 as float32 on the CPU{why}, and "
            f"what differs by less than that noise is not seen{sharper}"
        )
    if mindspore.switches.get("HF32 in convolutions") is True and precision == "fp32":
        found.append(
            "MindSpore's convolutions may be in HF32, Ascend's default, and are judged as float32: --precision hf32 "
            "judges them as what they are"
        )
    return found
