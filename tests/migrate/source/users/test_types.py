"""Type checks answer as torch's do, for every layer and class, and for classes in variables."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]


def test_no_layer_is_of_another_class_than_torchs(users: Users) -> None:
    users["of_what_class"].agrees()


def test_classes_in_variables_are_compared_and_asked_for(users: Users) -> None:
    found = users["classes_in_variables"]
    found.agrees()
    found.holds("is_class(act, DEFAULT)", "isinstance(layer, classes_themselves(kind))")
    found.holds("issubclass(classes_themselves(conv), nn.Conv2d)")
