"""A MindSpore optimizer takes gradients in the order of its groups, and is given each parameter's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msmigrate.parity.result import Report
from msmigrate.parity.tensor_verdict import Verdict

HERE = Path(__file__).parent


def said(folder: Path, worker: str, *arguments: str) -> Any:
    ran = subprocess.run(
        [sys.executable, str(HERE / worker), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,  # where a compiler that fails leaves its files
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return said(tmp_path_factory.mktemp("grouped"), "grouped_mindspore_worker.py")


def test_every_parameter_is_stepped_by_its_own_gradient(quick: Any) -> None:
    """Two layers are alike, so that a gradient in another's place raises no error: it steps the wrong weight."""
    assert len(quick["off"]) >= 20
    assert {case: names for case, names in quick["off"].items() if names} == {}


def test_what_is_no_optimizer_of_this_net_is_refused_with_the_reason(quick: Any) -> None:
    kind, message = quick["refused"]["another net's"]
    assert kind == "BadInput" and "holds one.weight, which is no parameter of the compared net" in message
    kind, message = quick["refused"]["none"]
    assert kind == "BadInput" and "the MindSpore optimizer is NoneType" in message


def test_the_users_function_gets_the_parameters_as_the_net_has_them(quick: Any) -> None:
    """Torch's model may hold them in another order; a step of the user's own counts on the net's."""
    assert quick["order"] == [
        *("one.weight", "one.bias", "two.weight", "two.bias", "plain.weight", "head.weight", "head.bias")
    ]


@pytest.mark.full
def test_every_optimizer_over_every_grouping(tmp_path: Path) -> None:
    off = said(tmp_path, "grouped_mindspore_worker.py", "--full")["off"]
    assert len(off) >= 112
    assert {case: names for case, names in off.items() if names} == {}


def test_torchs_optimizer_may_hold_a_part_of_the_users_own_model(tmp_path: Path) -> None:
    """Each precision steps a copy of that model; the groups follow by name."""
    found = said(tmp_path, "grouped_torch_worker.py")
    assert found["given"] == ["1.bias", "1.weight"]
    assert found["moved by"] == pytest.approx({"0.weight": 0.0, "0.bias": 0.0, "1.weight": 0.5, "1.bias": 0.5})
    assert "holds a parameter that is none of the compared model's" in found["refused"]


def wrong(report: Report, *parts: str) -> set[str]:
    return {f.name for f in report.findings if f.part in parts and f.verdict is Verdict.FAIL}


@pytest.mark.full
def test_groups_in_another_order_than_torchs_agree(verdict: Callable[[str], Report]) -> None:
    report = verdict("grouped")
    assert [f.place for f in report.findings if f.verdict is Verdict.FAIL] == []
    stepped = {f.name for f in report.findings if f.part == "given gradients"}
    assert stepped == {"stem.weight", "stem.bias", "one.weight", "two.weight", "head.weight", "head.bias"}


def test_one_groups_wrong_rate_fails_at_that_groups_parameters(verdict: Callable[[str], Report]) -> None:
    report = verdict("misgrouped")
    assert wrong(report, "given gradients") == {"two.weight", "stem.weight", "stem.bias"}
    assert wrong(report, "step1") == {"two.weight", "stem.weight", "stem.bias"}


def test_gradients_that_the_users_step_hands_over_in_the_nets_order_are_found(
    verdict: Callable[[str], Report],
) -> None:
    """Both are of one shape: no error is raised, and each weight takes the other's step."""
    report = verdict("handed")
    assert wrong(report, "step1") == {"one.weight", "two.weight"}
    assert wrong(report, "parameters") == {"one.weight", "two.weight"}  # as the optimizer is given them
    assert wrong(report, "given gradients") == set()  # the optimizer is right
