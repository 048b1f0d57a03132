"""Layers with inplace=True: what torch reads of a tensor after they have changed it."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]


def test_a_tensor_that_a_layer_changes_in_place_is_read_changed(users: Users) -> None:
    found = users["in_place_residual"]
    found.agrees()
    found.holds("x = self.act(x)\n        out = x\n", "return x + out")


def test_so_is_it_under_its_other_names(users: Users) -> None:
    found = users["in_place_other_names"]
    found.agrees()
    found.holds("x = self.leaky(x)\n        kept = x\n", "y = self.act(y)\n        z = self.skip(y) * y\n")


def test_so_is_what_the_first_layer_of_a_sequential_changes(users: Users) -> None:
    found = users["in_place_containers"]
    found.agrees()
    found.holds("x = self.once[0](x)\n        x = x + self.once(x)", "in_turn(list(self.leaky)[1:], x) + x")


def test_what_nothing_reads_afterwards_stays_as_it_was_written(users: Users) -> None:
    found = users["in_place_not_seen"]
    found.agrees()
    found.holds("x = self.act(self.first(x))", "return ops.sum(y) + self.act(y)")


def test_what_cannot_be_written_so_is_listed_with_its_line(users: Users) -> None:
    source = users["in_place_not_written"].source
    said = {problem.line: problem.text for problem in source.left_out if "in place" in problem.text}
    assert [*said.values()] == [
        "self.act changes `x` in place, which `found` may hold: in MindSpore it stays as it was there. "
        "Leave inplace=True out",
        "self.block changes `y` in place, which is read afterwards: in MindSpore it stays as it was. "
        "Leave inplace=True out",
        "self.act changes `y` in place, which is read afterwards: in MindSpore it stays as it was. "
        "Leave inplace=True out",
    ]
