"""What may be varied in a row (`vary`: sizes, arguments, dtypes) is drawn by hypothesis and agrees in both frameworks.

By default a few examples in PyNative mode of a twelfth of the rows; `pytest -m full` draws more, of all rows, and
compiles some.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest
from case_client import Server
from hypothesis import HealthCheck, Phase, given, settings
from msmigrate.mappings.rows import Case, Row
from varied_cases import cases, varied
from varied_judge import Engine, Verdicts

EXAMPLES = {"quick": 2, "pynative": 20, "graph": 3}
QUICK = [row for row in varied("pynative") if zlib.crc32(row.torch.encode()) % 12 == 0]


def agree(engine: Engine, row: Row, mode: str, examples: int) -> None:
    """Draw examples of a row; the smallest that does not agree fails the test."""

    verdicts = Verdicts(engine, row, mode)

    @settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        print_blob=True,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases(row))
    def check(case: Case) -> None:
        complaints = verdicts.complaints(case)
        assert not complaints, f"{row.torch}, declared '{row.status[mode]}' in {mode}: {case}\n" + "\n".join(complaints)

    check()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Both workers, for all tests of this file."""
    folder = tmp_path_factory.mktemp("varied")
    started = Engine(Server("torch", folder), Server("mindspore", folder))
    yield started
    started.close()


@pytest.mark.parametrize("row", QUICK, ids=lambda row: row.torch)
def test_row(engine: Engine, row: Row) -> None:
    agree(engine, row, "pynative", EXAMPLES["quick"])


@pytest.mark.full
@pytest.mark.parametrize("row", varied("pynative"), ids=lambda row: row.torch)
def test_row_in_pynative(engine: Engine, row: Row) -> None:
    agree(engine, row, "pynative", EXAMPLES["pynative"])


@pytest.mark.full
@pytest.mark.parametrize("row", varied("graph"), ids=lambda row: row.torch)
def test_row_in_graph(engine: Engine, row: Row) -> None:
    agree(engine, row, "graph", EXAMPLES["graph"])
