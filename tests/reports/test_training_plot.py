"""The picture of a run: there is one however the run went, and the smoothed curve follows the raw one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from msmigrate.errors import BadDestination
from msmigrate.reports.training_run import plot, smoothed
from msmigrate.training.run.run_log import history
from PIL import Image

PLAN: dict[str, Any] = {"event": "plan", "steps": 100, "first_step": 0}


def steps(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"event": "step", "epoch": 0, "step": n, "loss": 1 / n, "lr": 0.1, **more} for n in range(1, count + 1)]


def validated(count: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"event": "validation", "epoch": n, "step": n, "loss": 0.5, "top1": 0.5, "top5": 0.9, **more}
        for n in range(1, count + 1)
    ]


RUNS: dict[str, list[dict[str, Any]]] = {
    "many steps": [PLAN, *steps(500), *validated(5)],
    "one step": [PLAN, *steps(1)],
    "validation alone": [PLAN, *validated(1)],
    "with a moving average": [PLAN, *steps(5), *validated(3, ema={"loss": 0.4, "top1": 0.6, "top5": 0.9})],
    "stopped": [PLAN, *steps(9), *steps(1, step=10, loss="nan"), {"event": "stopped", "step": 10, "text": "why"}],
    "nothing finite": [PLAN, *steps(3, loss="inf", lr=None), *validated(2, loss="nan", top1="nan", top5="nan")],
    "five decades": [PLAN, *[{**line, "loss": 10.0 ** -line["step"]} for line in steps(5)]],
}


@pytest.mark.parametrize("run", RUNS)
def test_every_run_has_a_picture(tmp_path: Path, run: str) -> None:
    file = tmp_path / "training.png"
    plot(history(RUNS[run]), file, "lenet5 on $digits_{$")
    with Image.open(file) as image:
        assert image.format == "PNG" and image.width == 960 and image.height > 500
        assert len(image.convert("RGB").getcolors(1 << 20) or []) > 10  # something was drawn
    plot(history(RUNS[run]), file, "again")
    assert [path.name for path in tmp_path.iterdir()] == ["training.png"]


def test_a_picture_that_cannot_be_stored_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(BadDestination):
        plot(history(RUNS["one step"]), tmp_path / "none" / "training.png", "t")


def test_the_smoothed_curve_neither_lags_nor_leaves_the_ends() -> None:
    line = [3.0 - 0.01 * i for i in range(200)]
    assert smoothed(line) == pytest.approx(line)
    noisy = [value + (0.5 if i % 2 else -0.5) for i, value in enumerate(line)]
    assert max(abs(a - b) for a, b in zip(smoothed(noisy)[10:-10], line[10:-10], strict=True)) < 0.1


def test_values_that_are_not_finite_are_left_out_of_the_mean() -> None:
    assert smoothed([1.0] * 50 + [math.nan] + [1.0] * 50) == pytest.approx([1.0] * 101)
    assert math.isnan(smoothed([math.nan])[0]) and smoothed([]) == []
