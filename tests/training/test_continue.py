"""A run that began in one framework goes on in the other as it would have: weights, optimizer, schedule, average."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_step import beside

HERE = Path(__file__).parent
cases = beside("continue_cases")
full = pytest.mark.full
NAMES = [pytest.param(name, marks=() if name in cases.QUICK else full) for name in cases.CASES]

RATIO = 4.0
FLOOR = 2e-6  # of a tensor's size: what torch's float32 is not known better than over seven steps


@pytest.fixture(scope="module")
def sides(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What both went on to, in the cases that are run."""
    selected = [item for item in request.session.items if item.fspath == request.node.fspath]
    extent = "all" if any(item.get_closest_marker("full") for item in selected) else "quick"
    folder = tmp_path_factory.mktemp("continue")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "EXTENT": extent}
    for name, *more in (("torch",), ("mindspore",), ("torch", "back")):
        command = [sys.executable, str(HERE / f"continue_{name}_worker.py"), str(folder), *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
        assert done.returncode == 0, done.stderr[-3000:]
    facts = json.loads((folder / "mindspore.json").read_text(encoding="utf-8"))
    arrays = {name: np.load(folder / f"{name}.npz") for name in ("torch", "mindspore", "back")}
    return {**arrays, "facts": facts}


def compared(
    sides: dict[str, Any], name: str, mode: str, reference: str = "torch"
) -> Iterator[tuple[str, float, float]]:
    """Tensor, how far MindSpore is from float64, and how far it may be."""
    torch = sides[reference]
    names = [key for key in torch.files if key.startswith(f"{name}/64/")]
    assert len(names) > 40
    for key in names:
        rest = key.removeprefix(f"{name}/64/")
        exact = torch[key].astype(np.float64)
        size = float(np.linalg.norm(exact)) or 1.0
        torch32 = float(np.linalg.norm(torch[f"{name}/32/{rest}"] - exact)) / size
        ours = float(np.linalg.norm(sides["mindspore"][f"{name}/{mode}/{rest}"] - exact)) / size
        yield rest, ours, RATIO * max(torch32, FLOOR)


MODES = [
    pytest.param(name, mode, marks=() if name in cases.QUICK and mode == "pynative" else full)
    for name in cases.CASES
    for mode in ("graph", "pynative")
]


@pytest.mark.parametrize(("name", "mode"), MODES)
def test_it_goes_on_as_torch_does(sides: dict[str, Any], name: str, mode: str) -> None:
    off = {rest: (ours, may) for rest, ours, may in compared(sides, name, mode) if not ours <= may}
    assert not off


@pytest.mark.parametrize("name", NAMES)
def test_torch_goes_on_from_mindspore_s_checkpoint_as_mindspore_does(sides: dict[str, Any], name: str) -> None:
    off = {rest: (ours, may) for rest, ours, may in compared(sides, name, "began", "back") if not ours <= may}
    assert not off


@pytest.mark.parametrize("name", NAMES)
def test_the_steps_move_what_is_compared(sides: dict[str, Any], name: str) -> None:
    """A state that were left out would show: without it the next step is another one."""
    before, after = (
        sides["torch"][f"{name}/{place}"] for place in ("before/2/weights/conv1.weight", "32/6/weights/conv1.weight")
    )
    assert np.linalg.norm(after - before) > 100 * FLOOR * np.linalg.norm(before)


@pytest.mark.parametrize("name", NAMES)
def test_it_stands_where_torch_stood(sides: dict[str, Any], name: str) -> None:
    assert sides["facts"]["progress"][name] == [3, 3, 0]
    assert sides["facts"]["notes"][name] == []


def test_a_state_of_another_optimizer_is_refused(sides: dict[str, Any]) -> None:
    said = sides["facts"]["refused"]
    assert "its state is not torch.optim.SGD's: its parameter groups have no dampening" in said["adam as sgd"]
    assert said["adam as sgd"].startswith("BadCheckpoint: ")
    assert "it looks like torch.optim.Adam" in said["adam as sgd"]
    assert "it looks like torch.optim.SGD" in said["sgd as adam"]
    assert "it looks like torch.optim.AdamW" in said["adamw as adam"]
    assert "the file's optimizer is torch.optim.AdamW, the recipe's torch.optim.Adam" in said["adamw.ckpt as adam"]


def test_other_options_are_told(sides: dict[str, Any]) -> None:
    said = sides["facts"]["refused"]["everything as dampening"]
    assert "the file's moving average is left out: the recipe has no ema" in said
    assert "was trained with dampening 0, the recipe says 0.3" in said
    assert "was trained with weight_decay 0.0, the recipe says 0.01" in said
