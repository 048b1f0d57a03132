"""No pickle, however made, runs anything, and each bad one is one clear error."""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import pytest
from msmigrate.errors import BadCheckpoint, MsmigrateError, Unsupported
from msmigrate.migrate.checkpoint.formats import restricted_pickle
from msmigrate.migrate.checkpoint.formats.pth_tensors import Call, Global, Storage
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


# What one byte or a few ask for, of every kind: opcodes before, and those that are said again and again.
FLOODS = {
    "memo": (b"N", b"\x94"),
    "memo, by its largest index": (b"", lambda at: b"Nr" + struct.pack("<I", (at * 977) & 0xFFFFFFFF)),
    "frozensets": (b"", b"(\x91"),
    "sets": (b"", b"\x8f"),
    "lists": (b"", b"(l"),
    "empty lists": (b"", b"]"),
    "dicts": (b"", b"}"),
    "dicts of a call": (ORDERED + b"q\x00", b"h\x00)R"),
    "tuples in tuples": (b"N", b"\x85"),
    "tuples": (b"", b"N\x85"),
    "marks": (b"", b"("),
    "nothings": (b"", b"N"),
    "copies": (b"N", b"2"),
    "numbers": (b"", b"M\xff\xff"),
    "long numbers": (b"", b"\x8b\x10\x00\x00\x00" + b"\x7f" * 16),
    "floats": (b"", b"G" + b"\x40" * 8),
    "letters": (b"", b"\x8c\x02\xc4\x81"),
    "letters of Python 2": (b"", b"U\x02\xc4\x81"),
    "bytes": (b"", b"C\x02ab"),
    "calls": (named("foo", "bar") + b"q\x00", b"h\x00)R"),
    "new objects": (named("foo", "bar") + b"q\x00", b"h\x00)\x81"),
    "names": (b"", lambda at: named(f"m{at:06x}", "n")),
    "stack names": (b"", lambda at: b"\x8c\x06%06x\x8c\x01n\x93" % at),
    "items of a list": (b"](", b"K\x01"),
    "items of a dict": (b"}(", lambda at: b"J" + struct.pack("<i", at) + b"N"),
    "items of a set": (b"\x8f(", lambda at: b"J" + struct.pack("<i", at)),
    "names in a dict": (b"}(", lambda at: b"\x8c\x06%06xN" % at),
    "one dict filled again": (b"}", b"K\x01NK\x02Nsu"[:5] + b"s"),
    "states of a call": (named("foo", "bar") + b")R", b"Nb"),
    "items of an object": (named("foo", "bar") + b")R", b"Na"),
    "states of a dict": (b"}", b"Nb"),
    "pairs of one list": (
        ORDERED + b"q\x00](" + b"".join(b"M" + struct.pack("<H", at) + b"N\x86" for at in range(1000)) + b"eq\x01",
        b"h\x00h\x01\x85R",
    ),
    "references": (
        named("torch", "FloatStorage") + b"q\x00" + text("storage") + b"q\x01",
        lambda at: b"(h\x01h\x00\x8c\x06%06xh\x01K\x01tQ" % at,
    ),
}

ASKING = """
import gc, json, pathlib, sys, time
from msmigrate.errors import MsmigrateError
from msmigrate.migrate.checkpoint.formats import restricted_pickle
restricted_pickle.LEAST_MEMORY = int(sys.argv[2])
gc.disable()
found = {}
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    data = path.read_bytes()
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak is measured anew
    before = int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096
    began = time.process_time()
    try:
        restricted_pickle.load(data)
    except MsmigrateError:
        pass
    peak = int(pathlib.Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) << 10
    found[path.name] = peak - before, time.process_time() - began
print(json.dumps(found))
"""


def floods(folder: Path, size: int, least: int) -> dict[str, tuple[int, float]]:
    """What every kind of flood of so many bytes takes in memory, and in seconds."""
    for name, (before, again) in FLOODS.items():
        if isinstance(again, bytes):
            body = again * (size // len(again))
        else:
            body = b"".join(map(again, range(size // len(again(0)))))
        (folder / name).write_bytes(b"\x80\x04" + before + body + b".")
    command = [sys.executable, "-c", ASKING, str(folder), str(least)]
    found: dict[str, tuple[int, float]] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def test_memory_goes_by_the_length_of_the_pickle(tmp_path: Path) -> None:
    """Whatever is repeated, a byte asks for no more than forty, and a few megabytes for all of them."""
    size, least = 500_000, 1 << 20
    most = least + restricted_pickle.MEMORY_OF_A_BYTE * size
    taken = {name: memory for name, (memory, _) in floods(tmp_path, size, least).items()}
    assert len(taken) == len(FLOODS) > 30
    assert {name: memory for name, memory in taken.items() if memory > most + (2 << 20)} == {}


@pytest.mark.full
def test_memory_and_time_have_an_end(tmp_path: Path) -> None:
    """As many bytes as a pickle may have."""
    found = floods(tmp_path, restricted_pickle.MAX_PICKLE - 4000, restricted_pickle.LEAST_MEMORY)
    assert {name: taken for name, taken in found.items() if taken[0] > 400 << 20 or taken[1] > 30} == {}


def test_what_a_pickle_may_spend_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restricted_pickle, "MAX_MEMORY", 10_000)
    with pytest.raises(BadCheckpoint, match="asks for more memory than any state dict of that size needs"):
        load(b"]" * 1000)
    monkeypatch.setattr(restricted_pickle, "MAX_STEPS", 100)
    with pytest.raises(BadCheckpoint, match="more than 100 opcodes"):
        load(b"N0" * 100)


def test_keys_that_can_be_made_to_collide_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restricted_pickle, "MAX_ODD_KEYS", 10)
    large = b"}(" + b"".join(b"\x8a\x05" + (at << 30).to_bytes(5, "little") + b"N" for at in range(1, 12)) + b"u"
    decimal = b"\x8f(" + b"".join(b"G" + struct.pack(">d", at + 0.5) for at in range(11)) + b"\x90"
    for body in (large, decimal):
        with pytest.raises(BadCheckpoint, match="more than 10 keys that are neither names nor small numbers"):
            load(body)
    assert len(load(b"}(" + b"".join(b"J" + struct.pack("<i", at) + b"N" for at in range(1000)) + b"u")) == 1000


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
