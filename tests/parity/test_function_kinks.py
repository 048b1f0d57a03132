"""ReLUs that are function calls: what MindSpore is seen to choose, and that torch takes the same side."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


def run(worker: str) -> dict[str, Any]:
    """What a worker prints."""
    done = subprocess.run([sys.executable, str(HERE / worker)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def mindspore() -> dict[str, Any]:
    return run("function_kinks_mindspore_worker.py")


@pytest.fixture(scope="module")
def torch() -> dict[str, Any]:
    return run("function_kinks_torch_worker.py")


def names(seen: list[Any]) -> list[list[Any]]:
    return [call[:3] for call in seen]


def test_calls_are_numbered_in_the_module_that_makes_them(mindspore: dict[str, Any]) -> None:
    inner = [["inner.relu()", 0, "ReLU"], ["inner.hardswish()", 0, "Hardswish"]]
    again = [[name, 1, kind] for name, _, kind in inner]
    assert names(mindspore["all known"]) == [["relu()", 0, "ReLU"], *inner, *again, ["relu()", 1, "ReLU"]]


def test_the_bits_say_which_side(mindspore: dict[str, Any]) -> None:
    seen = mindspore["all known"]
    assert seen[0][3][:3] == [0, 1, 1]
    assert seen[1][3][:3] == [0, 0, 1]  # the input less one
    assert seen[2][3][:6] == [1, 1, 1, 0, 0, 1]  # above -3, above 3: 0, 0, 10


def test_a_layer_that_torch_lacks_counts_as_a_call(mindspore: dict[str, Any]) -> None:
    relus = [call[:2] for call in mindspore["no layer"] if call[2] == "ReLU"]
    assert relus == [["relu()", 0], *(["inner.relu()", i] for i in range(4)), ["relu()", 1]]


def test_a_module_that_torch_lacks_leaves_its_calls_to_the_one_above(mindspore: dict[str, Any]) -> None:
    relus = [call[:2] for call in mindspore["no inner"] if call[2] == "ReLU"]
    assert relus == [["relu()", i] for i in range(4)]


@pytest.mark.parametrize("case", ["function", "tensor method", "in place", "module that the other lacks", "no module"])
def test_torch_takes_the_other_side(torch: dict[str, Any], case: str) -> None:
    assert torch[case] == {"grad": [1.0, 0.0, 0.0, 1.0], "matched": 2}


def test_a_function_that_was_not_recorded_is_left_alone(torch: dict[str, Any]) -> None:
    assert torch["not recorded"] == {"grad": [1.0, 0.0, 1.0, 0.0], "matched": 0}
    assert torch["afterwards"] == {"grad": [1.0, 0.0, 1.0, 0.0], "matched": 0}
