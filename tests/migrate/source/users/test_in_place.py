"""Layers with inplace=True: what torch reads of a tensor after they have changed it."""

from __future__ import annotations

from pathlib import Path

from written import Written, copied, write

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


def test_a_call_within_an_expression_writes_first(users: Users) -> None:
    """In the model where it ran, and the text is the same in another one, where it did not."""
    ran = ("in_place_within_method", "in_place_within_view", "in_place_within_row", "in_place_within_function")
    ran += ("in_place_within_list", "in_place_turned", "in_place_data", "in_place_seen", "in_place_weight")
    users["in_place_returned"].agrees()
    for found in [users[name] for name in ran]:
        found.agrees()
        found.holds("y = ops.mul(y, 2)\n            z = ops.tanh(y) + y\n")
        found.holds("y[0] = ops.sub(y[0], 1)\n            z = y[0] + y\n", "z = [y, y][0]\n")
        found.holds("y = part.reshape(y.shape)\n            z = ops.sum(y.reshape(-1)) * y\n")
        found.holds("y = y + ops.stop_gradient(ops.mul(y, 3) - y)\n")  # the gradient is as it was
        found.holds("= ops.t(y)\n", "y = ops.t(part", "= copy(")
        assert not found.source.not_run


def test_what_a_statement_has_computed_before_is_refused(users: Users) -> None:
    said = [problem.text for problem in users["in_place_out_of_order"].source.problems]
    assert said == [
        "y.add_(1) writes into y, which is read elsewhere: write it as a statement of its own",
        "halved writes into `z`, which is read afterwards, and does not return it: return the tensor, and use the "
        "result",
    ]


def test_masks_of_bytes_are_bools(users: Users) -> None:
    found = users["in_place_masks_of_bytes"]
    found.agrees()
    found.holds("y[:, ops.cast(self.kept, mindspore.bool_)]")


def test_a_name_that_a_branch_may_give_another_tensor_where_it_ran(users: Users) -> None:
    """It has the new values, and the branch that did not run, in which it would not have them, is refused."""
    written = {
        "in_place_rebound_if": ("y = ops.add(y, 1)\n            z = y\n", "y.add_(1) may change `z`"),
        "in_place_rebound_else": ("y = ops.mul(y, 2)\n            z = y\n", "y.mul_(2) may change `z`"),
        "in_place_rebound_loop": ("y = ops.sub(y, 1)\n            z = y\n", "y.sub_(1) may change `z`"),
        "in_place_rebound_pair": ("y = ops.add(y, w)\n            z = y\n", "y.add_(w) may change `z`"),
        "in_place_rebound_aug": ("z = z + 1\n            y = z\n", "z += 1 may change `z`"),
        "in_place_rebound_row": ("z = ops.mul(z, 2)\n            y[0] = z\n", "z.mul_(2) may change `z`"),
    }
    for name, (text, why) in written.items():
        users[name].agrees()
        users[name].holds(text)
        (said,) = [one.text for one in users[name].source.not_run if "gets another value" in one.text]
        assert said == f"`z` gets another value, and {why} too, which is read afterwards"


def test_a_name_that_a_branch_may_give_another_tensor_where_it_did_not_run(users: Users) -> None:
    found = users["in_place_rebound_none"]
    found.agrees()
    said = [one.text for one in found.source.not_run]
    assert said == [
        *(f"{write} may change `z` too, which is read afterwards" for write in ("y.add_(1)", "y.mul_(2)", "y.sub_(1)")),
        "y.add_(w) may change `z` too, which is read afterwards",
        *(f"{write} may change `y` too, which is read afterwards" for write in ("z += 1", "z.mul_(2)")),
    ]
    found = users["in_place_chosen"]
    found.agrees()
    said = [one.text for one in found.source.not_run]
    assert said == [
        *(f"{write} may change `z` too, which is read afterwards" for write in ("y.add_(1)", "y.mul_(2)")),
        "row.add_(z[0]) may change `y` too, which is read afterwards",
        "y.neg_() may change `z` too, which is read afterwards",
    ]
    found.holds("y = ops.sub(y, 1)\n                    z = y\n", "z = z * 2\n            y = ops.add(y, 1)\n")


def test_a_choice_that_ran_is_listed_and_what_always_runs_is_written(users: Users) -> None:
    (said,) = [one.text for one in users["in_place_chosen_or"].source.left_out]
    assert said == "y.mul_(2) may change `z` too, which is read afterwards, on one way through forward: use .clone()"
    found = users["in_place_tried"]
    found.agrees()
    found.holds("y = ops.add(y, 1)\n", "z = y\n        w = y\n        return")


def test_nothing_is_read_after_a_return(users: Users) -> None:
    """As timm's hard_sigmoid is written: the call was refused, for the other branch reads the tensor."""
    found = users["gated"]
    found.agrees()
    found.lacks("does not return it")


def test_arguments_that_a_call_changes_and_its_names_get_back_are_not_listed(users: Users) -> None:
    users["in_place_bounced"].agrees()
    assert users["in_place_bounced"].source.left_out == []
    said = [problem.text for problem in users["in_place_half_bounced"].source.left_out]
    assert said[0].startswith("bounce changes `speed`, which is read afterwards; in graph mode")
    assert not any("`place`" in text for text in said)


def test_what_is_written_into_a_parameter_gets_into_its_own_memory(users: Users) -> None:
    """While gradients are taken, MindSpore's `data` is a copy, and what is written into it is lost. What a part of the
    parameter, or set_data, puts in place is not: but then an optimizer that has run trains the memory of before."""
    found = users["in_place_masked_weight"]
    found.agrees()
    found.holds("weight = ops.stop_gradient(self.fc.weight)\n        weight[:, 2:] = 0\n", "(self.fc.weight, weight)\n")
    found.holds("weight[0] = ops.stop_gradient(ops.mean(x) * 0.1)\n        ops.assign(self.out.weight, weight)\n")

    found = users["in_place_limited"]
    found.agrees()
    found.lacks("set_data", "NotImplementedError")
    found.holds("weight = ops.stop_gradient(ops.squeeze(self.conv.weight, 2))\n        weight[:, :, -1] = 0\n")
    found.holds("ops.assign(self.conv.weight, ops.unsqueeze(weight, 2))\n", "self.mask[0] = 1\n")
    found.holds("ops.assign(layer.bias, ops.stop_gradient(copy(layer.bias, layer.bias * 0.5)))\n")
    found.holds("ops.assign(weight, ops.stop_gradient(clamp(weight.data, min=-bound, max=bound)))\n")
    found.holds("ops.assign(self.out.weight, ops.stop_gradient(self.out.weight * 2))\n")


def test_what_it_becomes_is_trained(tmp_path: Path) -> None:
    """Each update by an optimizer of MindSpore's, which it compiles, reaches the weights that the next run reads."""
    (tmp_path / "out").mkdir()
    names = ("in_place_masked_weight", "in_place_limited")
    for found in write(copied(tmp_path / "models", names), tmp_path / "out", "updates").values():
        assert found.failed is None, f"{found.failed}\n{found.source.text}"


def test_values_change_past_the_gradient(users: Users) -> None:
    near, far = users["in_place_past_gradient"], users["in_place_past_gradient_far"]
    for found in (near, far):
        found.agrees()
        found.holds("y_values[:, 0] = 0.5\n        y = y + ops.stop_gradient(y_values - y)\n", "self.shift[0] = 3\n")
        found.holds("y = y + ops.stop_gradient(y * 3 - y)\n", "y = y + ops.stop_gradient(y - 1 - y)\n")
    assert near.source.text.count("# not run") == 1 and "NotImplementedError" not in near.source.text
