"""What runs, or is chosen, while a model is made."""

from __future__ import annotations

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
