"""Made-up recordings and findings for the replay's own rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msmigrate.parity.replay.module_calls import FOLDER, Call, Module, Outcome, Writer
from msmigrate.parity.result import Finding
from msmigrate.parity.run_folder import MINDSPORE_REPLAY
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import ALONE, TraceWriter

MODULES = [
    Module("", "Net", ("block", "fc"), ("block.conv.weight",)),
    Module("block", "Block", ("block.conv", "block.relu"), ("conv.weight",)),
    Module("block.conv", "Conv2d", (), ("weight",)),
    Module("block.relu", "ReLU"),
    Module("fc", "Linear"),
    Module("unused", "Linear"),
]
CALLS = [
    ("", 0, None),
    ("block", 0, "(model)"),
    ("block.conv", 0, "block"),
    ("block.relu", 0, "block"),
    ("block.relu", 1, "block"),
    ("fc", 0, "(model)"),
]


def run(folder: Path, outcome: Outcome | None = None) -> Path:
    """A folder with a recording, and with a replay of MindSpore's that has no tensors."""
    writer = Writer(folder / FOLDER)
    given = writer.store(np.arange(6.0, dtype=np.float32).reshape(2, 3), True)
    writer.close(MODULES, [Call(*called, (given,), {}, given, (given,)) for called in CALLS], {"recipe": "0"})
    trace = TraceWriter(folder / MINDSPORE_REPLAY, (outcome or Outcome()).head())
    trace.close()
    return folder


def finding(name: str, verdict: Verdict = Verdict.FAIL, part: str = ALONE, ratio: float | None = 9.0) -> Finding:
    return Finding("forward", part, name, 0, verdict, "off" if verdict is Verdict.FAIL else "", ratio=ratio)
