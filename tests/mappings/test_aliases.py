"""The names that torch gives its calls lead to the rows that speak of them."""

from __future__ import annotations

import pytest
from msmigrate.mappings.aliases import find, is_fact, shown


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("torch.add", "torch.add"),
        ("torch.Tensor.__radd__", "torch.add"),
        ("torch.Tensor.__iadd__", "torch.add"),
        ("torch.Tensor.add_", "torch.add"),
        ("torch.Tensor.matmul", "torch.matmul"),
        ("torch.relu", "torch.nn.functional.relu"),
        ("torch.Tensor.relu_", "torch.nn.functional.relu"),
        ("torch.softmax", "torch.nn.functional.softmax"),
        ("torch.Tensor.view", "torch.reshape"),
        ("torch.nn.Conv2d", "torch.nn.Conv2d"),
        ("torch._C._nn.gelu", "torch.nn.functional.gelu"),
        ("torch._C._fft.fft_rfft", "torch.fft.rfft"),
        ("torch._C._linalg.linalg_inv", "torch.linalg.inv"),
        ("torch.Tensor.real.__get__", "torch.real"),
    ],
)
def test_a_call_finds_its_row(name: str, row: str) -> None:
    found = find(name).row
    assert found is not None and found.torch == row


@pytest.mark.parametrize(
    "name", ["torch.no_such_function", "torch.Tensor.unfold", "collections.OrderedDict.add", "add"]
)
def test_what_only_looks_alike_is_not_taken(name: str) -> None:
    found = find(name).row
    assert found is None or found.torch == name


@pytest.mark.parametrize(
    ("name", "swapped", "in_place"),
    [
        ("torch.Tensor.__rmul__", True, False),
        ("torch.Tensor.__isub__", False, True),
        ("torch.Tensor.__invert__", False, False),
        ("torch.Tensor.relu_", False, True),
        ("torch.Tensor.__setitem__", False, True),
        ("torch.Tensor.__or__", False, False),
        ("torch.Tensor.__ior__", False, True),
    ],
)
def test_how_a_call_stands_to_its_row(name: str, swapped: bool, in_place: bool) -> None:
    assert find(name)[1:] == (swapped, in_place)


def test_a_row_of_the_turned_operator_takes_its_operands_as_they_stand() -> None:
    for name in ("torch.Tensor.__rsub__", "torch.Tensor.__rpow__"):
        row = find(name).row
        assert row is not None and row.torch in ("torch.rsub", name) and not find(name).swapped


def test_facts_of_a_tensor_are_no_operators() -> None:
    assert all(is_fact(f"torch.Tensor.{name}") for name in ("shape.__get__", "device.__get__", "size", "__len__"))
    assert not any(is_fact(f"torch.Tensor.{name}") for name in ("T.__get__", "item", "add", "__bool__"))


def test_names_are_shown_as_one_writes_them() -> None:
    assert shown("torch.Tensor.__radd__") == "torch.add"
    assert shown("torch.Tensor.T.__get__") == "torch.Tensor.T"
    assert shown("torch.functional.einsum") == "torch.einsum"
    assert shown("torch.Tensor.clamp_") == "torch.Tensor.clamp"
    assert shown("torch.Tensor.bernoulli_") == "torch.Tensor.bernoulli_"
    assert shown("torch.Tensor.__getitem__") == "torch.Tensor.__getitem__"
