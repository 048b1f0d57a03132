"""The fault benchmark: what it plants is sound, its scores mean what they say, and a minute of it is all found."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from msmigrate.mappings import table

BENCHMARK = Path(__file__).parent.parent.parent / "benchmarks" / "faults"
sys.path.insert(0, str(BENCHMARK))

import plan as planning  # noqa: E402
from fixes import SAME, WAYS, application, written  # noqa: E402
from scoring import describe, entries, false_alarm, faults, score, unlisted  # noqa: E402

STAGES = ("data", "init", "forward", "loss", "gradients", "update")


def injectors() -> set[str]:
    """The injectors' names, read from the sources: importing them would load MindSpore."""
    found = set()
    for file in BENCHMARK.glob("mindspore_*_faults.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                marks = {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)}
                found |= {node.name} if marks & {"injector", "early_injector"} else set()
    return found


def test_every_known_fault_is_planted_or_says_why_not() -> None:
    listed = {entry["id"] for entry in entries()}
    assert len(listed) == 160
    assert all(("inject" in entry) != bool(entry.get("not_injectable")) for entry in entries())
    assert len({fault.id for fault in faults()}) >= 110
    assert len(faults()) > len({fault.id for fault in faults()}), "a fault of two layers is planted in both"


def test_what_is_planted_exists() -> None:
    steps = yaml.safe_load((BENCHMARK / "bases.yaml").read_text())
    known = injectors()
    for fault in (*faults(), *unlisted()):
        assert fault.inject in known, fault.id
        assert set(fault.nets) <= set(planning.NETS), fault.id
        assert fault.step in steps, fault.id
        assert fault.stage in STAGES, fault.id
    for entry in yaml.safe_load((BENCHMARK / "equals.yaml").read_text()):
        assert entry.get("inject", "optimizer_class") in known
        assert entry.get("step", "default") in steps


def test_expected_causes_are_faults_that_diagnosis_may_name() -> None:
    ids = set(table.faults())
    for fault in faults():
        assert fault.id in ids or ids & set(fault.causes), f"{fault.id}: no cause that the tables know"
    assert not any(fault.causes for fault in unlisted())


def test_each_kind_is_planted_in_several_nets() -> None:
    nets: dict[str, set[str]] = {}
    for fault in faults():
        nets.setdefault(fault.kind, set()).update(fault.nets)
    assert {kind for kind, of in nets.items() if len(of) < 4} == set()


def made_up(**fields: Any) -> dict[str, Any]:
    """A red report that says one cause in one place."""
    cause = {"stage": "forward", "place": "layer1.0.bn1", "fault": "bn-momentum-complement"}
    first = {"stage": "forward", "name": "conv1", "part": "eval"}
    return {"parity": False, "causes": [cause], "modules": [], "first_divergence": first, "stages": [], **fields}


FAULT = next(fault for fault in faults() if fault.id == "bn-momentum-complement")


def test_the_right_cause_at_the_right_place_scores_all() -> None:
    (one,) = score(made_up(), [FAULT], ["layer1.0.bn1"])
    assert (one.detected, one.placed, one.named, one.missed) == (True, True, True, "")


def test_parity_scores_nothing() -> None:
    (one,) = score(made_up(parity=True), [FAULT], ["layer1.0.bn1"])
    assert (one.detected, one.placed, one.named) == (False, False, False)


def test_another_module_is_not_the_place() -> None:
    (one,) = score(made_up(), [FAULT], ["layer1.0.bn2"])
    assert (one.detected, one.placed) == (True, False)
    assert "layer1.0.bn1: bn-momentum-complement" in one.missed


def test_a_cause_that_comes_second_is_not_first() -> None:
    first = {"stage": "init", "place": "conv1.weight", "fault": "load-silent"}
    report = made_up(causes=[first, *made_up()["causes"]])
    (one,) = score(report, [FAULT], ["layer1.0.bn1"])
    assert (one.placed, one.named) == (True, False)
    both = score(report, [FAULT, FAULT], ["layer1.0.bn1"])
    assert [each.named for each in both] == [True, True], "of several at once, each has to be named at its own place"


def test_where_no_cause_is_given_modules_and_the_first_divergence_are_places() -> None:
    (one,) = score(made_up(causes=[]), [FAULT], ["conv1"])
    assert (one.placed, one.named) == (True, False)
    modules = [{"name": "layer1.0.bn1", "own": True}, {"name": "conv1", "own": False}]
    (one,) = score(made_up(causes=[], modules=modules), [FAULT], ["conv1"])
    assert not one.placed


def test_a_list_of_tensors_is_the_place_only_if_all_of_them_are() -> None:
    fault = next(each for each in faults() if each.id == "bn-params-names")

    def placed(place: str) -> bool:
        return score(made_up(causes=[{"stage": "init", "place": place, "fault": None}]), [fault], ["a.w", "a.b", "a"])[
            0
        ].placed

    assert placed("a.w and a.b") and placed("a.*") and placed("a")
    assert not placed("c.w, a.b") and not placed("c")


def test_a_red_report_without_a_fault_is_a_false_alarm() -> None:
    assert false_alarm(made_up()) and describe(made_up())
    assert not false_alarm(made_up(parity=True))


def test_every_fix_is_applied_in_one_way_or_says_why_not() -> None:
    known = set(table.faults())
    for fault, entry in written().items():
        assert fault in known, fault
        (how,) = set(entry) - {"fault"}
        assert how in (*WAYS, *SAME) and entry[how], fault


def test_a_change_for_programs_comes_before_what_is_written_of_the_fault() -> None:
    change = {"cells": ["bn1"], "target": "mindspore.nn.BatchNorm2d", "arguments": {"eps": "1e-05"}, "whole": False}
    assert application({"fault": "mish-overflow", "change": change}).way == "arguments"
    assert application({"fault": "mish-overflow", "change": None}).way == "forward"
    nothing = application({"fault": None, "change": None})
    assert not nothing.way and nothing.why


@pytest.mark.full
def test_printed_fixes_mend_what_they_name(tmp_path: Path) -> None:
    """One of each way of applying a fix; benchmarks/faults/run.py --fixes does it for every fault in every net."""
    told = tmp_path / "scores.json"
    some = ["bn-momentum-complement", "he-gain", "mish-overflow", "vector-loss-sums", "clip-per-tensor", "leaky-slope"]
    command = [sys.executable, str(BENCHMARK / "run.py"), "--fixes", "--once", "--json", str(told), "--only", *some]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    runs = json.loads(told.read_text()) if told.exists() else []
    assert {run["case"]: bool(run["again"] and run["again"]["parity"]) for run in runs} == dict.fromkeys(some, True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
def test_a_minutes_worth_is_detected_and_placed(tmp_path: Path) -> None:
    """Some of each kind, those that stand in no table among them: the hold-out."""
    told = tmp_path / "scores.json"
    command = [sys.executable, str(BENCHMARK / "run.py"), "--quick", "--json", str(told)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    runs = json.loads(told.read_text()) if told.exists() else []
    assert runs, done.stdout + done.stderr
    trouble = {f"{run['base']} {run['case']}": run["trouble"] for run in runs if run["trouble"]}
    assert not trouble
    scores = {f"{run['base']} {run['case']}": run["scores"][0] for run in runs if run["scores"]}
    assert not [name for name, one in scores.items() if not one["detected"]]
    assert not {name: one["missed"] for name, one in scores.items() if not one["placed"]}
    assert done.returncode == 0
