"""Classes within classes are written at the file's top, and found where they were; a train() may return nothing."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]


def test_functions_with_a_gradient_within_classes(users: Users) -> None:
    found = users["functions_of_one_name_in_two_classes"]
    found.agrees()
    found.holds("class Swish_Fn:", "class Step_Fn(nn.Cell):", "step = Step_Fn()")


def test_modules_enums_and_tuples_within_a_class(users: Users) -> None:
    found = users["classes_in_a_class"]
    found.agrees()
    found.holds("class Tower_Layer(nn.Cell):", "How = Tower_How", "# how they are", "KINDS = {'plain': Tower_Layer, ")


def test_a_class_in_a_class_in_a_class_and_an_inherited_one(users: Users) -> None:
    found = users["classes_in_a_class_and_in_the_one_that_derives"]
    found.agrees()
    found.holds("class Head_Gate(nn.Cell):", "class Doubled_Head(nn.Cell):", "class Tower_Steep(Tower_Layer):")


def test_a_train_that_returns_nothing(users: Users) -> None:
    users["train_returns_nothing"].agrees()
