"""Cases of steps that a changed torch takes in MindSpore's place are recorded and explained in one torch process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent / "torch_step_cases.py"
Said = Callable[[str], Any]


@pytest.fixture(scope="session")
def said(request: pytest.FixtureRequest) -> Said:
    """What diagnosis says of a case: causes as dicts. All cases that this session asks for are run at once."""
    found: dict[str, Any] = {}
    asking = [item for item in request.session.items if "said" in getattr(item, "fixturenames", ())]
    calls = [getattr(item, "callspec", None) for item in asking]
    names = [call.params["case"] for call in calls if call is not None and "case" in call.params]

    def of(case: str) -> Any:
        if case not in found:
            left = [name for name in dict.fromkeys((*names, case)) if name not in found]
            command = [sys.executable, str(SCRIPT), *left]
            ran = subprocess.run(
                command, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
            )
            assert ran.returncode == 0, ran.stderr
            found.update(json.loads(ran.stdout.strip().splitlines()[-1]))
        return found[case]

    return of


@pytest.fixture
def first(said: Said) -> Callable[[str, tuple[str, str, str | None]], None]:
    """Check that a case's first cause is the expected one (stage, place, fault), and that it was tried."""

    def check(case: str, expected: tuple[str, str, str | None]) -> None:
        causes = said(case)
        assert [(causes[0][key]) for key in ("stage", "place", "fault")] == list(expected), causes
        assert causes[0]["evidence"]
        if expected[2] is not None and causes[0]["ratio"] is not None:
            assert causes[0]["ratio"] <= 4
            assert causes[0]["before"] is None or causes[0]["before"] > 4

    return check
