"""What the worker reports: kinds and constructions, through JSON and back, and in words; and what is on nodes."""

from __future__ import annotations

import ast
import copy
import json
from typing import get_args

import pytest
from msmigrate.migrate.source.observe import observations as kinds
from msmigrate.migrate.source.observe.observations import (
    CallableKind,
    Changes,
    DictKind,
    DtypeKind,
    Items,
    Kind,
    Made,
    ModuleKind,
    ObjectKind,
    Placed,
    PlainKind,
    PythonModule,
    Reference,
    SequenceKind,
    SizeKind,
    Step,
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
    (PythonModule("torch.nn"), "python torch.nn"),
    (ObjectKind("net.Config"), "object net.Config"),
]


@pytest.mark.parametrize(("kind", "words"), WORDS)
def test_a_kind_goes_through_json_and_has_words(kind: Kind, words: str) -> None:
    assert kinds.from_json(json.loads(json.dumps(kinds.to_json(kind)))) == kind
    assert str(kind) == words


def test_every_kind_is_tried() -> None:
    assert {type(kind) for kind, _ in WORDS} == {*get_args(Kind)}


def test_a_construction_goes_through_json() -> None:
    changes = Changes((Placed((Step("fc", ""),), Made("torch.nn.Linear", (3,), (("bias", False),)), new=False),))
    made = Made("net.build", (Items("list", (1, None)), Reference("torch.nn.ReLU")), (), 7, changes)
    assert kinds.from_json(json.loads(json.dumps(kinds.to_json(made)))) == made
    assert [*kinds.functions_in(made)] == ["net.build", "torch.nn.Linear"]


def test_what_was_seen_of_a_node_is_known_of_its_copies_and_of_what_replaces_it() -> None:
    node = kinds.set_kinds(ast.parse("x + 1", mode="eval").body, [TENSOR])
    other = kinds.replacing(ast.Name("y", ast.Load()), node)
    assert kinds.kinds_of(copy.deepcopy(node)) == kinds.kinds_of(other) == [TENSOR]
    assert kinds.kinds_of(ast.Name("z", ast.Load())) == []


def test_nothing_seen_is_no_tensor() -> None:
    assert not kinds.always([], TensorKind)
    assert kinds.always([TENSOR, WEIGHT], TensorKind)
    assert kinds.always([TENSOR], TensorKind, parameter=False) and not kinds.always(
        [TENSOR, WEIGHT], TensorKind, parameter=False
    )
    assert kinds.always([WEIGHT], TensorKind, parameter=True) and not kinds.always(
        [TENSOR, WEIGHT], TensorKind, parameter=True
    )


def test_a_tensor_is_found_at_any_depth() -> None:
    assert kinds.holds_tensor(DictKind((("a", SequenceKind("list", (TENSOR,))),)))
    assert not kinds.holds_tensor(DictKind((("a", PlainKind("int")),)))


def test_constants_of_the_source() -> None:
    assert kinds.of_constant((1, 2.0, 3)) == SequenceKind("tuple", (PlainKind("int"), PlainKind("float")))
    assert kinds.of_constant(None) == kinds.NONE
