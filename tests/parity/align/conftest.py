"""Every pair is recorded once a session: one torch process and one MindSpore process run them all."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msmigrate.parity.result import Report

sys.path.insert(0, str(Path(__file__).parent))  # for structures, pair_cases and pair_runs

from pair_cases import QUICK, QUICK_DRAWING, SLOW, SLOW_DRAWING
from pair_runs import recorded
from selected import named

Verdict = Callable[[str], Report]


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the quick pairs leave their folders."""
    return tmp_path_factory.mktemp("pairs")


@pytest.fixture(scope="session")
def verdict(request: pytest.FixtureRequest, pairs: Path) -> Verdict:
    """The report of a quick pair."""
    return recorded(pairs, [name for name in QUICK if name in named(request)])


@pytest.fixture(scope="session")
def slow_verdict(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    """The report of another pair."""
    return recorded(tmp_path_factory.mktemp("slow-pairs"), SLOW)


@pytest.fixture(scope="session")
def drawing(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    """The report of a quick pair that draws."""
    return recorded(tmp_path_factory.mktemp("drawing"), QUICK_DRAWING)


@pytest.fixture(scope="session")
def slow_drawing(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    """The report of another one."""
    return recorded(tmp_path_factory.mktemp("slow-drawing"), SLOW_DRAWING)
