"""What runs, or is chosen, while a model is made."""

from __future__ import annotations

import pytest
from written import Written

Users = dict[str, Written]


def test_what_runs_while_it_is_made_runs_in_training_mode(users: Users) -> None:
    found = users["runs_while_it_is_made"]
    found.agrees()
    found.holds(
        "set_mode(self, training=True)\n        self.width = self._width(shape)\n        set_mode(self, training=False)"
    )


def test_layers_by_a_table_of_torchs_and_own_classes(users: Users) -> None:
    found = users["layers_by_a_table"]
    found.agrees()
    found.holds("layer = kind(*args)", "found = detached(self.construct(", "name=conv.bias.name)")


def test_a_norms_check_and_a_cache_by_device(users: Users) -> None:
    found = users["checks_its_input_and_keeps_by_device"]
    found.agrees()
    found.holds("check_axes(x, 4)", "CHECKS")


def test_states_that_another_part_begins_with(users: Users) -> None:
    found = users["begins_with_the_state_of_another"]
    found.agrees()
    found.holds("load_state_dict(self.teacher, state_dict(self.student))")
    for name in ("l.weight", "c.weight", "bn.gamma", "shift"):
        student, teacher = (found.mindspore[f"fresh/{part}.{name}"] for part in ("student", "teacher"))
        assert (student == teacher).all()
    assert (found.mindspore["fresh/small.weight"] == found.mindspore["fresh/student.l.weight"]).all()


def test_states_by_torchs_names_and_in_its_order(users: Users) -> None:
    found = users["states_by_names"]
    found.agrees()
    assert (found.mindspore["fresh/other.0.weight"] == found.mindspore["fresh/whole.enc.weight"]).all()


@pytest.mark.parametrize("name", ["writes_into_its_state", "scales_its_state", "hands_on_its_state"])
def test_what_writes_into_a_states_tensors_is_refused(users: Users, name: str) -> None:
    problems = users[name].source.problems
    assert problems and all("may write into what this gives" in problem.text for problem in problems)


def test_classes_of_the_file_by_their_names(users: Users) -> None:
    found = users["layers_of_this_file_by_name"]
    found.agrees()
    found.holds("{'Doubled': Doubled, 'Narrowed': Narrowed}[name](*args)", "nn.Conv1d(1, 2, 3, ")


def test_what_the_first_object_of_a_class_makes(users: Users) -> None:
    users["shared_by_their_class"].agrees()


def test_what_an_expression_gives_is_called(users: Users) -> None:
    """`(norm or nn.LayerNorm)(6)` and `by_kind(kind)()` were what they gave as the model ran."""
    for name in ("by_expression", "by_expression_tanh"):
        found = users[name]
        found.agrees()
        found.holds(
            "self.inner = (linear or nn.Dense)(6, 6, has_bias=False)",
            "self.norm = (norm or ",
            "self.bent = by_kind(kind)()",
            "(self.gate or ops.sigmoid)(x)",
            "(last or partial(",
        )


def test_weights_of_a_bags_values_and_settings_of_torch(users: Users) -> None:
    """The layer took no weights, and the settings were not left out."""
    found = users["bagged"]
    found.agrees()
    found.lacks("cudnn", "backends")
