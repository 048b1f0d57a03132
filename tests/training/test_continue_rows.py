"""With every optimizer of the table, a run that began in one framework goes on in the other as it would have."""

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
from msmigrate.mappings import table
from msmigrate.mappings.rows import Row
from test_step import beside

HERE = Path(__file__).parent
cases = beside("continue_rows_cases")
full = pytest.mark.full
NAMES = [pytest.param(name, marks=() if cases.is_quick(name) else full) for name in cases.RUNS]
ROWS = [row for row in table.rows("optimizer") if row.mindspore is not None]
RATIO = 4.0
FLOOR = 2e-6  # of a tensor's size: what torch's float32 is not known better than over six steps


@pytest.fixture(scope="module")
def sides(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What both went on to, in the cases that are run."""
    selected = [item for item in request.session.items if item.fspath == request.node.fspath]
    extent = "all" if any(item.get_closest_marker("full") for item in selected) else "quick"
    folder = tmp_path_factory.mktemp("continue_rows")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "EXTENT": extent}
    for name, *more in (("torch",), ("mindspore",), ("torch", "back")):
        command = [sys.executable, str(HERE / f"continue_rows_{name}_worker.py"), str(folder), *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=environment)
        assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = {name: dict(np.load(folder / f"{name}.npz")) for name in ("torch", "mindspore", "back")}
    return found | {name: json.loads((folder / f"{name}.json").read_text()) for name in ("mindspore_facts", "again")}


def apart(sides: dict[str, Any], reference: str, place: str, mindspore: str) -> dict[str, tuple[float, float]]:
    """Tensor -> how far MindSpore is from torch's float64, and how far it may be, where it is farther."""
    return {rest: (ours, may) for rest, ours, may in compared(sides, reference, place, mindspore) if not ours <= may}


def compared(sides: dict[str, Any], reference: str, place: str, mindspore: str) -> Iterator[tuple[str, float, float]]:
    torch, ours = sides[reference], sides["mindspore"]
    names = [name.removeprefix(f"{place}/64/") for name in torch if name.startswith(f"{place}/64/")]
    assert {name.split("/")[2] for name in names if "weights" in name} == set(cases.PARAMETERS)
    for name in names:
        if "/state/step/" in name or f"{mindspore}/{name}" not in ours:
            assert "/state/step/" in name or not torch[f"{place}/64/{name}"].any(), name
            continue
        exact = torch[f"{place}/64/{name}"].astype(np.float64)
        size = float(np.linalg.norm(exact)) or 1.0
        noise = float(np.linalg.norm(torch[f"{place}/32/{name}"] - exact)) / size
        yield name, float(np.linalg.norm(ours[f"{mindspore}/{name}"] - exact)) / size, RATIO * max(noise, FLOOR)


@pytest.mark.parametrize("name", NAMES)
def test_an_optimizer_that_is_taken_again_is_as_new(name: str, sides: dict[str, Any]) -> None:
    assert sides["mindspore_facts"]["again"][name] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.torch)
def test_every_optimizer_of_the_table_is_proven(row: Row) -> None:
    """By a case of two parameter groups; a row without one is not proven to go on."""
    assert any(run.torch == row.torch for run in cases.RUNS.values())


MODES = [
    pytest.param(name, mode, marks=() if cases.is_quick(name) and mode == "pynative" else full)
    for name in cases.RUNS
    for mode in ("pynative", "graph")
]


@pytest.mark.parametrize(("name", "mode"), MODES)
def test_it_goes_on_as_torch_does(sides: dict[str, Any], name: str, mode: str) -> None:
    assert apart(sides, "torch", name, f"{name}/{mode}") == {}
    assert sides["mindspore_facts"]["notes"][name] == []


@pytest.mark.parametrize("name", NAMES)
def test_torch_goes_on_from_mindspore_s_checkpoint_as_mindspore_does(sides: dict[str, Any], name: str) -> None:
    assert apart(sides, "back", f"{name}/back", f"{name}/back") == {}


@pytest.mark.parametrize("name", NAMES)
def test_torch_begins_with_a_checkpoint_of_no_step(sides: dict[str, Any], name: str) -> None:
    """Where torch's optimizer holds nothing yet, but for Adagrad's, which does not step without its state."""
    assert apart(sides, "back", f"{name}/new", f"{name}/new") == {}


@pytest.mark.parametrize("name", NAMES)
def test_torch_s_checkpoint_comes_back_to_the_bit(sides: dict[str, Any], name: str) -> None:
    assert sides["again"][name] == []


@pytest.mark.parametrize("name", [name for name in NAMES if name.values[0].endswith(" 0")])
def test_a_state_that_is_left_out_shows(sides: dict[str, Any], name: str) -> None:
    """With the same weights and a new optimizer, torch's next step is off by far more than what passes.

    Of each row's first case: others have rates that are too small to show it in one step.
    """
    torch = sides["torch"]
    at = f"{cases.BEFORE}/weights"
    off = [
        np.linalg.norm(torch[f"{name}/anew/{at}/{parameter}"] - torch[f"{name}/32/{at}/{parameter}"])
        / np.linalg.norm(torch[f"{name}/32/{at}/{parameter}"])
        for parameter in cases.PARAMETERS
    ]
    assert min(off) > 10 * RATIO * FLOOR
