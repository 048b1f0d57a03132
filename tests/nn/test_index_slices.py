"""getitem and setitem of nn against NumPy, whose indices mean what torch's do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for index_slices, which the test and its process import

from index_slices import COMPILED, INDICES, tensor, written  # noqa: E402

RUNS = [
    pytest.param(number, mode, marks=() if mode == "pynative" or number in COMPILED else pytest.mark.full)
    for number in range(len(INDICES))
    for mode in ("pynative", "graph")
]


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """What MindSpore gave, by `function/number/mode/name`."""
    selected = [item for item in request.session.items if item.path == Path(__file__)]
    extent = "all" if any(item.get_closest_marker("full") for item in selected) else "quick"
    folder = tmp_path_factory.mktemp("slices")
    command = [sys.executable, str(HERE / "index_slices_mindspore.py"), str(folder / "found.npz"), extent]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(folder / "found.npz") as arrays:
        return dict(arrays)


@pytest.mark.parametrize(("number", "mode"), RUNS)
def test_getitem_picks_what_numpy_picks_and_hands_gradients_back(
    number: int, mode: str, found: dict[str, np.ndarray]
) -> None:
    index, a = INDICES[number], tensor()
    grad = np.zeros_like(a)
    grad[index] = 2 * a[index]
    np.testing.assert_array_equal(found[f"getitem/{number}/{mode}/values"], a[index], strict=True)
    np.testing.assert_array_equal(found[f"getitem/{number}/{mode}/grad"], grad, strict=True)


@pytest.mark.parametrize(("number", "mode"), RUNS)
def test_setitem_gives_a_new_tensor_and_both_gradients(number: int, mode: str, found: dict[str, np.ndarray]) -> None:
    index, a = INDICES[number], tensor()
    result = a.copy()
    result[index] = written(index)
    grad = 2 * a
    grad[index] = 0
    np.testing.assert_array_equal(found[f"setitem/{number}/{mode}/result"], result, strict=True)
    np.testing.assert_array_equal(found[f"setitem/{number}/{mode}/kept"], a, strict=True)
    np.testing.assert_array_equal(found[f"setitem/{number}/{mode}/grad"], grad, strict=True)
    np.testing.assert_array_equal(found[f"setitem/{number}/{mode}/grad_values"], 2 * written(index), strict=True)
