"""Translates and runs all of the small models once, in one process for each framework."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for written

from written import Written, copied, write


@pytest.fixture(scope="session")
def users(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    """Every model by the name of the function that makes it."""
    folder = tmp_path_factory.mktemp("users")
    (folder / "out").mkdir()
    return write(copied(folder / "models"), folder / "out")
