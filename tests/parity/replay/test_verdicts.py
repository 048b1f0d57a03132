"""Whose the fault is, on made-up findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msmigrate.errors import BadTrace
from msmigrate.parity.build_result import module_verdicts
from msmigrate.parity.replay.module_calls import NOT_ASKED, Outcome
from msmigrate.parity.tensor_verdict import Verdict
from recordings import finding, run

PASS, FAIL, NONE = Verdict.PASS, Verdict.FAIL, Verdict.NONE


def own(folder: Path, *names: str, wiring: tuple[str, ...] = (), outcome: Outcome | None = None) -> list[str]:
    found = [finding(name) for name in names] + [finding(name, part="wiring") for name in wiring]
    return [module.name for module in module_verdicts(run(folder, outcome), found) if module.own]


def test_the_deepest_failing_module_is_at_fault(tmp_path: Path) -> None:
    assert own(tmp_path, "(model) output", "block output", "block.conv output") == ["block.conv"]


def test_a_container_is_at_fault_where_all_inside_pass(tmp_path: Path) -> None:
    assert own(tmp_path, "(model) output", "block conv.weight.grad") == ["block"]
    assert own(tmp_path, "(model) output") == [""]


def test_several_faults_are_told_apart(tmp_path: Path) -> None:
    assert own(tmp_path, "(model) output", "block output", "block.relu#1 input.grad", "fc output") == [
        "block.relu",
        "fc",
    ]


def test_what_reaches_a_module_is_the_fault_of_who_called_it(tmp_path: Path) -> None:
    assert own(tmp_path, wiring=("block.relu#1 input",)) == ["block"]
    assert own(tmp_path, wiring=("fc input.1",)) == [""]
    assert own(tmp_path, "block.conv output", wiring=("block output",)) == ["block", "block.conv"]


def test_a_call_that_only_mindspore_makes_is_the_fault_of_the_container(tmp_path: Path) -> None:
    assert own(tmp_path, wiring=("block.relu#2 input",)) == ["block"]


def test_a_caller_that_was_not_wired_hands_the_fault_on(tmp_path: Path) -> None:
    outcome = Outcome(unwired={"block": "its Cell is called 2 times, torch's module 1 times"})
    assert own(tmp_path, wiring=("block.conv input",), outcome=outcome) == [""]


def test_modules_come_as_executed_and_uncalled_ones_not_at_all(tmp_path: Path) -> None:
    modules = module_verdicts(run(tmp_path), [])
    assert [m.name for m in modules] == ["", "block", "block.conv", "block.relu", "fc"]
    assert [m.depth for m in modules] == [0, 1, 2, 2, 1]


def test_a_module_without_findings_has_no_verdict(tmp_path: Path) -> None:
    outcome = Outcome(left_out={"fc": "no Cell"}, cells={"fc": "head (Dense)"}, notes={"fc": "so"})
    found = [finding("block.conv output", PASS, ratio=2.0), finding("block.conv weight.grad", PASS, ratio=3.0)]
    found += [finding("block.relu output", NONE, ratio=None)]
    by = {m.name: m for m in module_verdicts(run(tmp_path, outcome), found)}
    assert (by["fc"].verdict, by["fc"].note) == (NONE, "did not run alone: no Cell; so")
    assert (by["fc"].mindspore, by["fc"].kind) == ("head (Dense)", "Linear")
    assert (by["block.conv"].verdict, by["block.conv"].ratio) == (PASS, 3.0)
    assert by["block.relu"].verdict is NONE


def test_a_container_that_fails_around_something_unknown_says_so(tmp_path: Path) -> None:
    outcome = Outcome(left_out={"block.relu#1": "MindSpore's net has no Cell of this name"})
    by = {m.name: m for m in module_verdicts(run(tmp_path, outcome), [finding("block output")])}
    assert by["block"].own and by["block"].note == "block.relu#1 in it did not run alone, and may be at fault"


def test_nothing_replayed_is_nothing_said(tmp_path: Path) -> None:
    assert module_verdicts(tmp_path, []) == []


@pytest.mark.parametrize("head", [1, {}, {"left_out": {"a": 1}}, None])
def test_a_replay_that_does_not_say_what_it_left_out_is_refused(tmp_path: Path, head: object) -> None:
    trace = run(tmp_path) / "mindspore-replay" / "trace.json"
    trace.write_text(json.dumps({**json.loads(trace.read_text()), "replay": head}))
    with pytest.raises(BadTrace, match="does not say which modules were replayed"):
        module_verdicts(tmp_path, [])


def test_a_module_that_was_not_asked_for_is_not_mentioned(tmp_path: Path) -> None:
    outcome = Outcome(left_out=dict.fromkeys(("fc", "block.relu", "block.relu#1"), NOT_ASKED))
    assert [m.name for m in module_verdicts(run(tmp_path, outcome), [])] == ["", "block", "block.conv"]
