"""A gradient that somebody takes is none of what the model computes: MindSpore takes it of a function."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]
NOTE = "# torch keeps a gradient here; in MindSpore mindspore.grad of a function of this tensor gives it\n"


def test_what_is_to_have_a_gradient_is_what_it_was(users: Users) -> None:
    found = users["coordinates"]
    found.agrees()
    found.holds(
        f"{NOTE}        at = ops.stop_gradient(ops.deepcopy(x))", f"{NOTE}        return (at, self.mix(at * 2))"
    )
    found.lacks("requires_grad")
    found = users["marked"]
    found.agrees()
    found.holds(f"{NOTE}        y = ops.stop_gradient(x)\n        {NOTE}        return self.mix(x) * ")
    found.lacks("requires_grad")


def test_what_takes_gradients_or_switches_them_is_refused(users: Users) -> None:
    found = users["switching"].source.problems
    assert [problem.text.partition(" ")[0] for problem in found] == [
        "torch.Tensor.requires_grad_",
        "torch.autograd.grad",
    ]
    found = users["alias_unmarked"].source.problems
    assert [problem.text for problem in found] == ["y.requires_grad, and z is the same tensor"]


def test_whether_a_tensor_has_a_gradient_is_not_known(users: Users) -> None:
    """MindSpore's tensors have no such attribute: it ended in an AttributeError of the written file."""
    (problem,) = users["asks_for_gradients"].source.problems
    assert problem.text == "y.requires_grad is not known: MindSpore differentiates functions; ask self.training"
    users["asks_for_gradients"].holds("if self.deep and x.requires_grad:")


def test_what_is_to_have_no_gradient_lets_none_through(users: Users) -> None:
    found = users["unmarked"]
    found.agrees()
    found.holds("y = ops.stop_gradient(y)\n        z = ops.stop_gradient(z)\n        return y * ops.mean(z) + ")
    found.holds("self.mix(ops.stop_gradient(ops.stop_gradient(x) + 1))")


def test_a_context_without_gradients_cuts_off_whatever_is_made_in_it(users: Users) -> None:
    """Only what was assigned alone was, so that gradients flowed through tuples, lists and branches."""
    found = users["cut_off"]
    found.agrees()
    found.holds("a, b = self.pair(x)\n        a = ops.stop_gradient(a)\n        b = ops.stop_gradient(b)\n")
    found.holds("c = ops.stop_gradient(self.more(a))", "found.append(ops.stop_gradient(self.more(x) * k))")
    found.holds("other = same", "'same': same", "if not self.frozen:\n            y = self.more(x)\n")
    assert not found.source.not_run


def test_tensors_that_stay_together_are_cut_off_there(users: Users) -> None:
    found = users["cut_tuple"]
    found.agrees()
    found.holds("both = detached(self.pair(x))")


def test_a_tensor_that_is_kept_as_an_attribute_has_a_name_besides(users: Users) -> None:
    """Compiled, no gradient flows through an attribute that a construct has set."""
    found = users["showing"]
    found.agrees()
    found.holds(
        "mixed_now = ops.tanh(self.mix(x))\n        self.mixed = mixed_now\n",
        "low_now, high_now = ops.chunk(mixed_now, 2, axis=-1)\n        self.low = low_now\n        self.high = ",
        "state_now = self.cell(mixed_now * ops.mean(state_now), state_now)\n            self.state = state_now",
        "table_now[0] = 0.0\n        self.table = table_now\n",
        "return high_now * low_now + ops.sum(seen_now) * ops.mean(table_now) + shape_now[0]",
    )


def test_what_goes_into_a_tensor_without_gradients_has_none(users: Users) -> None:
    """`found.add_(y)`, `found += y` and `found[0] = y` let y's gradient through, in branches that did not run, too."""
    found = users["into_others"]
    found.agrees()
    found.holds("found = found + ops.stop_gradient(z)", "part = part - ops.stop_gradient(y)")
