"""Hooks: functions that are called with a gradient, or with what a layer is given."""

from __future__ import annotations

import pytest
from written import Written

Users = dict[str, Written]


def test_gradients_of_activations_are_changed(users: Users) -> None:
    found = users["gradients_of_activations"]
    found.agrees()
    found.holds(
        "if self.clips:", "if self.training:", "x.register_hook(partial(self.shrink, factor=self.scale ** place))"
    )
    found.lacks("requires_grad", "is_grad_enabled")
    assert all("PyNative" in problem.text for problem in found.source.left_out)


def test_gradients_are_kept(users: Users) -> None:
    found = users["gradients_that_are_kept"]
    found.agrees()
    found.holds("h.register_hook(self.keep)", "self.b.register_backward_hook(self.keep_last)")
    assert [one.line for one in found.source.left_out if "retain_grad" in one.text] == [77]


def test_gradients_of_layers_are_changed(users: Users) -> None:
    found = users["gradients_of_layers"]
    found.agrees()
    found.holds("self.two.register_backward_hook(self.swap)", "self.a.register_backward_pre_hook(")
    users["guided_gradients"].agrees()


def test_gradients_of_weights_are_changed(users: Users) -> None:
    users["gradients_of_weights"].agrees()


def test_hooks_that_would_get_something_else_are_refused(users: Users) -> None:
    (problem,) = users["gradient_of_another_shape"].source.problems
    assert problem.text.endswith("parameters of torch.nn.Conv1d have other shapes in MindSpore")
    (problem,) = users["gradients_of_the_last_operation"].source.problems
    assert problem.text.endswith("call register_full_backward_hook")
    (problem,) = users["inputs_of_attention_by_a_hook"].source.problems
    assert "MultiheadAttention has other inputs" in problem.text


def test_weights_that_a_hook_computes(users: Users) -> None:
    found = users["weights_computed_by_a_hook"]
    found.agrees()
    found.holds("parameter.name = name")
    found.lacks("update_parameters_name")


def test_inputs_and_outputs_by_hooks(users: Users) -> None:
    found = users["features_by_hooks"]
    found.agrees()
    found.holds("self.head.construct(y)")
    users["hooks_that_are_removed"].agrees()
    users["outputs_of_attention_by_a_hook"].agrees()


@pytest.mark.parametrize(
    "name", ["hooks_in_other_branches", "hooks_by_an_argument", "hooks_on_a_tensor_by_an_argument"]
)
def test_hooks_that_no_run_comes_by(users: Users, name: str) -> None:
    found = users[name]
    found.agrees()
    assert not found.source.not_run
    found.holds("self.a.register_backward_hook(self.of_module)", "h.register_hook(self.normed)")


def test_a_model_that_runs_with_gradients_alone(users: Users) -> None:
    assert "write if h.requires_grad: before it" in str(users["runs_with_gradients_alone"].failed)
