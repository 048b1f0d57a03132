"""The judge sees a wrong argument: one is set in each of these cases, and the case has to fail.

And it sees a case that is nearer, or further away, than its row says.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from mapping_cases import MODES, WRONG_QUICK, Results, quick, runnable
from mapping_judge import apart, judge
from msmigrate.mappings import table
from msmigrate.mappings.rows import NOT_APPLICABLE, Case

WRONG = json.loads((Path(__file__).parent / "wrong_arguments.json").read_text())


@pytest.mark.parametrize("name", [*WRONG][::WRONG_QUICK])
def test_a_wrong_argument_is_seen(name: str, found_wrong: dict[str, Results]) -> None:
    goes_red(name, quick(tuple(WRONG))[name], found_wrong)


@pytest.mark.full
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_seen_in_both_modes(name: str, found_all_wrong: dict[str, Results]) -> None:
    goes_red(name, MODES, found_all_wrong)


def goes_red(name: str, modes: tuple[str, ...], found_wrong: dict[str, Results]) -> None:
    """The judge complains of the case in these modes, and not of an error."""
    case = next(item for item in runnable() if item[0] == name)
    for mode in modes:
        if case[1].status[mode] != NOT_APPLICABLE:
            complaints = judge(*case, mode, found_wrong)[1]
            assert [text for text in complaints if "Traceback" not in text], complaints


@pytest.mark.parametrize(
    ("distance", "says"),
    [(0.0, "as near as noise"), (1e-3, None), (3e-2, "0.03 of its largest apart, the row says 0.01")],
)
def test_a_case_that_is_not_as_far_off_as_its_row_says(distance: float, says: str | None) -> None:
    name, exact = "torch.nn.Tanh[1]/train", np.linspace(-1, 1, 5)
    torch, mindspore = Results(), Results()
    torch.arrays = {f"{name}/float32|out": exact.astype(np.float32), f"{name}/float64|out": exact}
    mindspore.arrays = {f"{name}/pynative|out": (exact + distance).astype(np.float32)}
    found = {"torch": torch, "mindspore": mindspore}
    wrong = apart("torch.nn.Tanh[1]", table.row("torch.nn.Tanh"), Case(apart=0.01), "train", "pynative", found)
    assert len(wrong) == (says is not None)
    assert says is None or says in wrong[0]
