"""The judge sees a wrong argument: one is set in each of these rows, and the row has to fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mapping_cases import Results, runnable
from mapping_judge import judge
from msmigrate.mappings.rows import NOT_APPLICABLE

WRONG = json.loads((Path(__file__).parent / "wrong_arguments.json").read_text())


@pytest.mark.parametrize("torch_name", WRONG)
def test_a_wrong_argument_is_seen(torch_name: str, found_wrong: dict[str, Results]) -> None:
    cases = [item for item in runnable() if item[1].torch == torch_name]
    for mode in ("pynative", "graph"):
        if cases[0][1].status[mode] != NOT_APPLICABLE:
            complaints = [text for case in cases for text in judge(*case, mode, found_wrong)[1]]
            seen = [text for text in complaints if "Traceback" not in text]
            assert seen, complaints
