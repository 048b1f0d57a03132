"""Layers that never run do not train, as in torch, whose optimizer leaves alone what has no gradient."""

from __future__ import annotations

import pytest
from written import Written

Users = dict[str, Written]
REASON = "# torch's optimizer skips layers that never run, MindSpore's would decay them"


def test_what_never_runs_and_what_does_not_under_a_setting_is_frozen(users: Users) -> None:
    found = users["never_run"]
    found.agrees()
    found.holds(REASON)
    found.holds(
        "self.shift.requires_grad = False\n"
        "        for cell in (self.norm, self.spare):\n"
        "            for parameter in cell.get_parameters():\n"
        "                parameter.requires_grad = False\n",
        "if self.times == 1:\n            for cell in (self.widen, self.act):\n",
    )
    for name in ("dropped", "plain", "loss"):  # without parameters
        found.holds(f"self.{name} = ")
        found.lacks(f"self.{name}.get_parameters()", f"self.{name}, ", f", self.{name}")


@pytest.mark.full
def test_a_setting_by_which_a_method_returns_is_one(users: Users) -> None:
    found = users["left_early"]
    found.agrees()
    found.holds(
        "for parameter in self.second.get_parameters():\n            parameter.requires_grad = False",
        "if self.kind == 'short':\n            for parameter in self.second.get_parameters():",
        "if not self.more and self.kind == 'short':\n            for parameter in self.third.get_parameters():",
    )


@pytest.mark.full
def test_what_other_inputs_modes_or_calls_run_trains(users: Users) -> None:
    found = users["on_some_inputs"]
    found.agrees()
    found.lacks("requires_grad")


def test_what_others_run_or_hold_trains(users: Users) -> None:
    found = users["lent"]
    found.agrees()
    found.lacks("requires_grad")


@pytest.mark.full
def test_what_a_derived_class_runs_trains(users: Users) -> None:
    found = users["run_by_the_derived"]
    found.agrees()
    assert found.source.text.count("requires_grad") == 1
    found.holds("for parameter in self.unwanted.get_parameters():")


def test_a_setting_of_several_branches_of_a_constructor_is_one(users: Users) -> None:
    found = users["skips"]
    found.agrees()
    found.holds("if not self.need_side:", "for parameter in self.side.get_parameters():")
    users["skips_later"].agrees()
    users["skips_later"].lacks("self.over.get_parameters()")
