"""What decides about a zoo's model is as it was, or raises."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]


def test_the_name_of_a_model_that_is_an_argument(users: Users) -> None:
    """Any other name gave the model of the run, in silence."""
    found = users["of_a_zoo_by_name"]
    found.agrees("eval")
    found.holds("if name not in ('shufflenet_v2_x0_5',):", "when this was written, name was 'shufflenet_v2_x0_5'")
    found.holds("if more:", "when this was written, more was empty")


def test_a_name_that_is_computed(users: Users) -> None:
    found = users["of_a_zoo_by_number"]
    found.agrees("eval")
    found.holds("if f'shufflenet_v2_x{size}' not in ('shufflenet_v2_x0_5',):")


def test_a_name_that_is_a_key(users: Users) -> None:
    found = users["of_a_zoo_by_key"]
    found.agrees("eval")
    found.holds("if arch not in ('shufflenet_v2_x0_5',):")


def test_settings_that_a_function_gets_whole_are_refused(users: Users) -> None:
    """They were ignored."""
    problems = [one.text for one in users["of_a_zoo_by_settings"].source.problems]
    assert "settings decides about a model of a zoo, and is not one of a few constants" in problems
