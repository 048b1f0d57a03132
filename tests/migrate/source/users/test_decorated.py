"""Decorators, registers, buffers by their class, and names that the new file could not have."""

from __future__ import annotations

import pytest
from written import Written

Users = dict[str, Written]


def test_decorators_that_change_nothing_are_left_out(users: Users) -> None:
    found = users["handing_on"]
    found.agrees()
    found.lacks("@", "register(", "wrapper", "nn.Buffer")
    found.holds("def part(self, x, *, scale=1.0):", "self.shift = Parameter(", "return 0.5 * self.part(")


def test_a_decorator_that_does_more_is_told(users: Users) -> None:
    found = users["doubling"]
    said = [
        "the decorator doubled does more than call part: write that into part",
        "the decorator replaced does more than call other: write that into other",
    ]
    assert [problem.text for problem in found.source.problems] == said
    found.holds(*(f"not_converted('{text}')" for text in said))
    assert "NotImplementedError" in str(found.failed)


@pytest.mark.full
def test_a_name_that_nothing_defines_is_told(users: Users) -> None:
    found = users["lacking"]
    assert [problem.text for problem in found.source.problems] == ["Lacking uses GAINS, which could not be written"]
    found.holds("not_converted('GAINS could not be written').get(2.0)", "return GAINS * 2")


def test_dictionaries_are_written_as_import_left_them(users: Users) -> None:
    found = users["filled"]
    found.agrees()
    found.holds("{'kind': Narrow, 'says': {'url': 'somewhere'}, 'params': {'width': 3, 'steps': (1, 2.5)}}")
    found.holds("'small': {'kind': Narrow", "ENDS = {'tanh': (as_tanh, 2)}", "SIZES = {'first': 1, 'last': 4}")
    found.lacks("Wide", "as_nothing")
    said = [one.text for one in found.source.left_out]
    assert "FILLED lacks entries that did not run: wide" in said
    assert "ENDS lacks entries that did not run: never" in said


def test_a_model_that_seeds_as_it_is_made(users: Users) -> None:
    found = users["seeded"]
    found.agrees()
    found.holds("manual_seed(seed)\n    np.random.seed(seed)\n")
    assert (found.mindspore["fresh/first.weight"] == found.mindspore["fresh/second.weight"]).all()


def test_functions_that_torch_compiles_are_written(users: Users) -> None:
    found = users["scripted"]
    found.agrees()
    found.holds("def gated(a, b, width", "ops.tanh(both[:, :first]) * ops.sigmoid(both[:, first:])")
    found.lacks("jit", "not_converted")


def test_constructors_whose_arguments_are_kept(users: Users) -> None:
    """What no function of the model reads is left out; what its decorator does besides is asked for."""
    found = users["keeps_what_it_is_given"]
    found.agrees()
    found.lacks("_init_args_kwargs")
    for name, decorator in (("counts_what_it_is_given", "counted_arguments"), ("begins_twice", "begun_twice")):
        texts = [problem.text for problem in users[name].source.problems]
        assert f"the decorator {decorator} does more than call __init__: write that into __init__" in texts
