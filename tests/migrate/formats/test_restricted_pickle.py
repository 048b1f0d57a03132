"""No pickle, however made, runs anything, and each bad one is one clear error."""

from __future__ import annotations

import os
import pickle
import struct
from collections import Counter, OrderedDict, defaultdict
from typing import Any

import pytest
from msmigrate.errors import BadCheckpoint, MsmigrateError, Unsupported
from msmigrate.migrate.formats import restricted_pickle
from msmigrate.migrate.formats.pickled import Call, Global, Storage
from tiny_checkpoints import group, integer, named, text


def load(body: bytes) -> Any:
    return restricted_pickle.load(b"\x80\x02" + body + b".")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_are_read_as_pickle_reads_them(protocol: int) -> None:
    content = {
        "numbers": [0, 1, -1, 255, 65536, -(2**40), 2**70, 1.5, float("inf")],
        "text": ["", "ö", "x" * 300, b"", b"\x00\xff", b"y" * 300],
        "nothing": (None, True, False, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        3: OrderedDict([("a", 1), ("b", [])]),
        "long": list(range(3000)),
    }
    again = restricted_pickle.load(pickle.dumps(content, protocol=protocol))
    if protocol == 2:  # bytes are written as a call of _codecs.encode there
        assert isinstance(again["text"][3], Call)
        again["text"], content["text"] = again["text"][:3], content["text"][:3]
    assert again == content


@pytest.mark.parametrize("protocol", [4, 5])
def test_sets_are_read(protocol: int) -> None:
    assert restricted_pickle.load(pickle.dumps(({1, 2}, frozenset({3})), protocol=protocol)) == ({1, 2}, {3})


def test_counters_and_defaultdicts_become_dicts() -> None:
    content = {"c": Counter("aab"), "d": defaultdict(list, {"k": [1]})}
    assert restricted_pickle.load(pickle.dumps(content, 2)) == {"c": {"a": 2, "b": 1}, "d": {"k": [1]}}


def test_names_calls_and_storages_stay_inert() -> None:
    assert load(named("torch", "float32")) == Global("torch.float32")
    call = load(named("torch", "device") + group(text("cpu")) + b"R")
    assert (type(call), call.name, call.args) == (Call, "torch.device", ("cpu",))
    storage = group(text("storage"), named("torch", "FloatStorage"), text("7"), text("cuda:0"), integer(3))
    assert load(storage + b"Q") == Storage("torch.FloatStorage", "7", 3)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("posix", "system"),
        ("builtins", "eval"),
        ("builtins", "setattr"),
        ("torch", "load"),
        ("torch.hub", "load"),
        ("torch._utils", "_rebuild_tensor_v2.__globals__"),
        ("numpy", "load"),
    ],
)
def test_a_global_that_only_attacks_need_is_refused_by_name(module: str, name: str) -> None:
    for body in (named(module, name), text(module) + text(name) + b"\x93"):
        with pytest.raises(BadCheckpoint, match=f"names {module}.{name}".replace(".", r"\.") + r".* nothing was run"):
            load(body + group(text("x")) + b"R")


class Attack:
    """Pickles to a call of os.system."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize("protocol", range(6))
def test_the_classic_attack_does_nothing(protocol: int, tmp_path: Any) -> None:
    marker = tmp_path / "ran"
    with pytest.raises(MsmigrateError):
        restricted_pickle.load(pickle.dumps({"a": Attack(str(marker))}, protocol=protocol))
    assert not marker.exists()


ORDERED = named("collections", "OrderedDict")
TENSOR = named("torch._utils", "_rebuild_tensor_v2")


@pytest.mark.parametrize(
    "body",
    [
        b"(i" + b"os\nsystem\n",  # INST
        b"\x82\x01",  # EXT1
        b"\x83\x01\x00",
        b"\x84\x01\x00\x00\x00",
        b"(cos\nsystem\n" + text("x") + b"o",  # OBJ
        TENSOR + b")}\x92",  # NEWOBJ_EX
        b"P0\n",  # PERSID
        b"I1\n",  # protocol 0
        b"\x97",  # NEXT_BUFFER
    ],
)
def test_opcodes_that_torch_does_not_write_are_refused(body: bytes) -> None:
    with pytest.raises(MsmigrateError):
        load(body)


@pytest.mark.parametrize(
    "body",
    [
        text("f") + b")R",  # calling text
        ORDERED + b")R)R",  # calling a result
        TENSOR + text("x") + b"R",  # arguments that are no tuple
        TENSOR + b"}" + text("__setstate__") + ORDERED + b"sb",  # setting attributes on a name
        ORDERED + b"N}" + text("__init__") + ORDERED + b"s\x86b",  # slot state on a class
        b"]}b",
        text("x") + b"Q",  # a persistent id of another form
        group(text("module"), TENSOR, text("1"), text("cpu"), integer(1)) + b"Q",
        group(text("storage"), TENSOR, text("1"), text("cpu"), text("many")) + b"Q",
        b"}(" + text("a") + b"u",  # a key without a value
        b"}]]s",  # a list as a key
        b"}" + integer(1 << 70) + b"Ns",
        b"h\x05",  # nothing remembered there
        b"0",
        b"1",
        b"t",
        b"(.",
        b"",
        b"X\xff\xff\xff\x7fabc",
        b"\x8d" + struct.pack("<Q", 1 << 62),
        b"\x8e" + struct.pack("<Q", 1 << 63),
        b"\x8b" + struct.pack("<I", 1 << 30),
        b"\x80\x09",
        b"c" + b"no newline",
        b"c\xff\xfe\n\xff\n",
        b"X\x01\x00\x00\x00\xff",
    ],
)
def test_damaged_or_twisted_pickles_are_bad_checkpoints(body: bytes) -> None:
    with pytest.raises(BadCheckpoint):
        load(body)


def test_state_set_on_a_call_goes_nowhere() -> None:
    call = load(named("argparse", "Namespace") + b")R}" + text("__class__") + text("evil") + b"sb")
    assert type(call) is Call
    assert call.state == {"__class__": "evil"}


def test_items_of_an_object_go_nowhere() -> None:
    call = load(named("collections", "deque") + b")R" + integer(1) + b"a(" + integer(2) + integer(3) + b"e")
    assert (type(call), call.args, call.state) == (Call, (), None)


def test_objects_may_be_keys() -> None:
    color = named("mypkg", "Color") + group(integer(1)) + b"R"
    [key] = load(b"}" + color + b"Ns")
    assert (type(key), key.name) == (Call, "mypkg.Color")
    assert len(load(b"}" + color + b"Ns" + color + b"Ns")) == 2  # nobody asks an object whether it equals another


def test_text_of_python_2_is_text_where_it_can_be() -> None:
    assert load(b"U\x02\xc3\xb6") == "ö"
    assert load(b"T\x02\x00\x00\x00\xff\x00") == b"\xff\x00"
    for cut in (b"U\x09ab", b"T\xff\xff\xff\xffab"):
        with pytest.raises(BadCheckpoint):
            load(cut)


def test_a_memo_index_of_four_billion_allocates_nothing() -> None:
    assert load(b"Nr\xff\xff\xff\xff") is None


def test_a_million_nested_containers_are_no_trouble() -> None:
    depth = 1_000_000
    assert len(load(b"]" * depth + b"a" * (depth - 1))) == 1


def test_hashing_nested_tuples_is_refused() -> None:
    with pytest.raises(BadCheckpoint):
        load(b"}N" + b"\x85" * 500_000 + b"Ns")


@pytest.mark.parametrize("empty", [b"}", b"]", b"\x8f", b"h\x00)R"])
def test_containers_are_counted(empty: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restricted_pickle, "MAX_CONTAINERS", 1000)
    with pytest.raises(BadCheckpoint, match="containers"):
        load(ORDERED + b"q\x00" + empty * (restricted_pickle.MAX_CONTAINERS + 1))


def test_copies_of_a_large_list_are_not_made() -> None:
    pairs = b"](" + b"(NNl" * 1000 + b"eq\x01"
    with pytest.raises(BadCheckpoint):
        load(ORDERED + b"q\x00" + pairs + b"h\x00h\x01\x85R" * 1000)


def test_an_oversized_pickle_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restricted_pickle, "MAX_PICKLE", 10)
    with pytest.raises(BadCheckpoint, match="more than any state dict needs"):
        load(b"N" * 20)


def test_unsupported_names_the_opcode() -> None:
    with pytest.raises(Unsupported, match="opcode 0x69"):
        load(b"(ios\nsystem\n")


def test_a_method_of_an_object_stays_a_name() -> None:
    """As a hook is pickled."""
    found = load(named("builtins", "getattr") + group(named("net", "Model"), text("extra_repr")) + b"R")
    assert (found.name, found.args[1]) == ("builtins.getattr", "extra_repr")


@pytest.mark.parametrize("attribute", ["__globals__", "__import__", "a.b", ""])
def test_other_attributes_of_an_object_are_refused(attribute: str) -> None:
    body = named("builtins", "getattr") + group(named("net", "Model"), text(attribute)) + b"R"
    with pytest.raises(BadCheckpoint, match=r"names the attribute .* which no checkpoint needs"):
        load(body)
