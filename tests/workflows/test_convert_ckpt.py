"""convert, plan and inspect as a library: the same as the commands, and results that say themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = Path(__file__).with_name("torch_checkpoint_cases.py")
CASES = {
    "file": "a file is converted, and the result says what became of it",
    "module": "a module or state_dict at hand is converted as its file is",
    "plan": "a plan writes nothing, and is false where a tensor is refused",
    "inspection": "an inspection lists what the file holds",
    "no_checkpoint": "what is no checkpoint is refused",
    "function": "a model may be the function that builds it",
    "no_function": "a model that no other process can build is refused",
}


@pytest.fixture(scope="module")
def found_wrong(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Case -> what went wrong."""
    command = [sys.executable, str(WORKER), str(tmp_path_factory.mktemp("cases"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("what", CASES)
def test_it_does_what_the_command_does(found_wrong: dict[str, str], what: str) -> None:
    assert not found_wrong[what], found_wrong[what]


def test_every_case_is_here(found_wrong: dict[str, str]) -> None:
    assert set(found_wrong) == set(CASES)
