"""What each later step begins with: kept by one side, held by the other, and refused where nothing could begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msmigrate.parity.record.recorder import StepStarts, record_evaluation
from msmigrate.parity.trace import TraceWriter

ONES = np.ones(3, np.float32)


@dataclass
class Side:
    weight: np.ndarray = field(default_factory=lambda: ONES)

    def parameters(self) -> Mapping[str, np.ndarray]:
        return {"fc.weight": self.weight}

    def buffers(self) -> Mapping[str, np.ndarray]:
        return {"bn.running_mean": 2 * ONES, "bn.count": np.ones(1, np.int64)}

    def ema(self) -> Mapping[str, np.ndarray]:
        return {"fc.weight": 3 * ONES}

    def optimizer_state(self) -> Mapping[str, Mapping[str, np.ndarray]]:
        return {"exp_avg": {"fc.weight": 4 * ONES}, "step": {"fc.weight": np.ones((), np.int32)}}


def test_what_was_kept_is_what_a_step_begins_with(tmp_path: Path) -> None:
    starts = StepStarts(tmp_path)
    starts.keep(Side(), 1)
    starts.keep(Side(), 2)
    assert starts.of(1) is None and starts.of(3) is None
    found = starts.of(2)
    assert found is not None
    assert {name: array.tolist() for name, array in found.values.items()} == {
        "fc.weight": [1, 1, 1],
        "bn.running_mean": [2, 2, 2],
    }
    assert found.ema["fc.weight"].tolist() == [3, 3, 3]
    assert {key: list(arrays) for key, arrays in found.state.items()} == {"exp_avg": ["fc.weight"]}
    starts.remove()
    assert not list(tmp_path.iterdir()) and starts.of(2) is None


def test_nothing_begins_with_what_is_not_finite(tmp_path: Path) -> None:
    starts = StepStarts(tmp_path)
    starts.keep(Side(np.array([1, np.nan, 1], np.float32)), 2)
    assert starts.of(2) is None


@pytest.mark.parametrize("changed", ["weight", "statistic", ""])
def test_what_evaluation_changes_is_put_back_before_a_step(tmp_path: Path, changed: str) -> None:
    """A statistic, and a weight that a forward pass writes into."""
    held, again = {"weight": ONES.copy(), "statistic": 2 * ONES}, []

    def evaluate(images: Any, seen: Any) -> list[np.ndarray]:
        if changed:
            held[changed] *= 0.5  # in place, as frameworks do
        return [ONES]

    side: Any = SimpleNamespace(
        evaluate=evaluate,
        parameters=lambda: {"fc.weight": held["weight"]},
        buffers=lambda: {"bn.running_mean": held["statistic"]},
        restart=lambda: again.append(True),
    )
    inputs: Any = SimpleNamespace(images=[ONES])
    record_evaluation(side, inputs, TraceWriter(tmp_path / "trace", {}, None))
    assert bool(again) == bool(changed)
