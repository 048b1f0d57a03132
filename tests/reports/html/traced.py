"""Traces as a run leaves them, for histograms: made-up tensors, and the findings that judging them gives."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from msmigrate.parity.result import Finding
from msmigrate.parity.tensor_verdict import judge
from msmigrate.parity.trace import TraceWriter

ABOUT = {"device": "CPU", "recipe": "0", "versions": {}}


def record(folder: Path, names: tuple[str, str, str], tensors: dict[tuple[str, str, str], float], sample: int) -> None:
    """Write float64's, float32's and MindSpore's trace of normal tensors (8, 40); a value is MindSpore's error in units
    of float32's."""
    writers = [TraceWriter(folder / name, ABOUT, sample) for name in names]
    for number, ((stage, part, name), times) in enumerate(tensors.items()):
        draw = np.random.default_rng(number)
        exact = draw.normal(size=(8, 40))
        noise = 1e-7 * draw.normal(size=exact.shape)
        plain, subject = exact + noise, exact + times * noise
        for writer, array in zip(writers, (exact, plain, subject), strict=True):
            kept = array if writer is writers[0] else array.astype(np.float32)
            writer.add(stage, part, name, kept, module="Conv2d")
    for writer in writers:
        writer.close()


def judged(folder: Path, names: tuple[str, str, str], place: tuple[str, str, str], mark: str = "") -> Finding:
    """The finding of one tensor, as compare_traces.py would have it."""
    from msmigrate.parity.trace import Trace

    stage, part, name = place
    exact, plain, subject = (Trace(folder / trace).array((stage, part, name, 0)) for trace in names)
    m = judge(exact, [plain], subject)
    size = m.size or math.nan
    return Finding(
        stage, mark + part, name, 0, m.verdict, m.why, "Conv2d", (8, 40), m.relative, m.noise / size, None, m.ratio
    )
