"""Translates and runs the small models that the selected tests name, once, in one process for each framework."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from selected import named

sys.path.insert(0, str(Path(__file__).parent))  # for written

from written import LIBRARY, Written, builders, copied, write


@pytest.fixture(scope="session")
def users(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    """Every model by the name of the function that makes it."""
    folder = tmp_path_factory.mktemp("users")
    (folder / "out").mkdir()
    return write(copied(folder / "models", named(request)), folder / "out")


@pytest.fixture(scope="session")
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    """The models of transformers' classes, which takes long to import, by the names of their functions."""
    folder, wanted = tmp_path_factory.mktemp("library"), named(request)
    (folder / "out").mkdir()
    models = [f"{shutil.copy(file, folder)}:{name}" for file in LIBRARY for name in builders(file) if name in wanted]
    return write(models, folder / "out")
