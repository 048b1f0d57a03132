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
    found = users["unmarked"].source.problems
    assert [problem.text.partition(" ")[0] for problem in found] == ["y.requires_grad", "torch.Tensor.requires_grad_"]
