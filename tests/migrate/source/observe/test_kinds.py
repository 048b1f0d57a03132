"""Kinds: through JSON and back, and in words."""

from __future__ import annotations

import json

import pytest
from msmigrate.migrate.source.observe import kinds
from msmigrate.migrate.source.observe.kinds import (
    CallableKind,
    DeviceKind,
    DictKind,
    DtypeKind,
    Kind,
    ModuleKind,
    ObjectKind,
    PlainKind,
    PythonModule,
    SequenceKind,
    SizeKind,
    TensorKind,
)

TENSOR, WEIGHT = TensorKind("float32", 4), TensorKind("float16", 1, parameter=True)
WORDS: list[tuple[Kind, str]] = [
    (TENSOR, "Tensor float32 4"),
    (WEIGHT, "Parameter float16 1"),
    (ModuleKind("torch.nn.Conv2d"), "module torch.nn.Conv2d"),
    (CallableKind("class", "torch.nn.ReLU"), "class torch.nn.ReLU"),
    (CallableKind("partial", "torch.nn.ReLU"), "partial torch.nn.ReLU"),
    (SequenceKind("tuple", (PlainKind("int"), SequenceKind("list", (TENSOR,)))), "tuple(int, list(Tensor float32 4))"),
    (SequenceKind("list"), "list()"),
    (SizeKind(2), "Size 2"),
    (DictKind((("a", TENSOR), ("b", DictKind()))), "dict {a: Tensor float32 4, b: dict {}}"),
    (PlainKind("NoneType"), "NoneType"),
    (DtypeKind(), "dtype"),
    (DeviceKind(), "device"),
    (PythonModule("torch.nn"), "python torch.nn"),
    (ObjectKind("net.Config"), "object net.Config"),
]


@pytest.mark.parametrize(("kind", "words"), WORDS)
def test_a_kind_goes_through_json_and_has_words(kind: Kind, words: str) -> None:
    assert kinds.from_json(json.loads(json.dumps(kinds.to_json(kind)))) == kind
    assert str(kind) == words


def test_every_kind_is_tried() -> None:
    assert {type(kind) for kind, _ in WORDS} == {*kinds.TYPES.values()}


def test_nothing_seen_is_no_tensor() -> None:
    assert not kinds.always_tensors([])
    assert kinds.always_tensors([TENSOR, WEIGHT])
    assert kinds.always_computed([TENSOR]) and not kinds.always_computed([TENSOR, WEIGHT])
    assert kinds.always_parameters([WEIGHT]) and not kinds.always_parameters([TENSOR, WEIGHT])


def test_a_tensor_is_found_at_any_depth() -> None:
    assert kinds.holds_tensor(DictKind((("a", SequenceKind("list", (TENSOR,))),)))
    assert not kinds.holds_tensor(DictKind((("a", PlainKind("int")),)))


def test_constants_of_the_source() -> None:
    assert kinds.of_constant((1, 2.0, 3)) == SequenceKind("tuple", (PlainKind("int"), PlainKind("float")))
    assert kinds.of_constant(None) == kinds.NONE
