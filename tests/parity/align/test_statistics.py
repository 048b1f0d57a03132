"""What is wrong with running statistics fails, however few steps are compared and whatever they are fed.

The statistics that a fresh net starts with are taken from a batch. Where that is the step's own batch, nothing moves
them: a wrong momentum changed nothing, and every running statistic was without a verdict.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msmigrate.parity.result import Outcome, Report
from msmigrate.parity.tensor_verdict import Verdict
from pair_cases import STATISTICS
from pair_runs import recorded

QUICK = ["norms 1 file whole", "variance_of_norms 1 file whole", "norms 2 images alone"]
QUICK += ["momentum_of_norms 1 images alone"]
SLOW = [name for name in STATISTICS if name not in QUICK]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Report]:
    return recorded(tmp_path_factory.mktemp("statistics"), QUICK)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Report]:
    return recorded(tmp_path_factory.mktemp("statistics"), SLOW)


def check(report: Report, wrong: str) -> None:
    """A fault of the norms is a mismatch at their buffers (eps: at their outputs), and every buffer has a verdict."""
    buffers = [f for f in report.findings if f.stage == "update" and f.part.endswith(" buffers")]
    assert buffers and all(f.verdict is not Verdict.NONE for f in buffers)
    assert report.unproven == []
    if wrong == "norms":
        assert [f.place for f in report.findings if f.verdict is Verdict.FAIL] == []
        assert report.outcome is Outcome.PARITY
        return
    assert report.outcome is Outcome.MISMATCH
    failed = {f.name for f in report.findings if f.verdict is Verdict.FAIL and f.stage in ("forward", "update")}
    told = {
        "momentum_of_norms": {"1.running_mean", "1.running_var", "4.running_mean", "4.running_var"},
        "variance_of_norms": {"1.running_var", "4.running_var"},
        "eps_of_norms": {"1", "4"},
    }
    assert told[wrong] <= failed


@pytest.mark.parametrize("name", QUICK)
def test_a_fault_of_running_statistics_fails(quick: Callable[[str], Report], name: str) -> None:
    check(quick(name), STATISTICS[name][0])


@pytest.mark.full
@pytest.mark.parametrize("name", SLOW)
def test_a_fault_of_running_statistics_fails_however_it_is_fed(slow: Callable[[str], Report], name: str) -> None:
    check(slow(name), STATISTICS[name][0])
