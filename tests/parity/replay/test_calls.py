"""A recording comes back as it was, and a damaged or made-up one is refused by name."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msmigrate.errors import BadTrace
from msmigrate.parity.replay.module_calls import (
    FILE,
    FOLDER,
    Call,
    Module,
    Packed,
    Recording,
    Stored,
    Unsupported,
    Writer,
    decoded,
    encoded,
    label,
    parse_label,
    rebuilt,
    relative,
    state_name,
)
from msmigrate.training.models.model_names import flat
from recordings import run


def test_a_call_comes_back_as_it_was(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    arrays = [np.float32(3.5).reshape(()), np.arange(4, dtype=np.int64), np.zeros((2, 0), np.float32), np.ones(3, bool)]
    a, b, c, d = (writer.store(array) for array in arrays)
    nest = ((a, [b, None]), {"k": {"deep": c, "n": -1, "x": math.inf}, "s": "text", "t": True})
    call = Call("m", 2, "", nest, {"mask": d, "odd": Unsupported("Tree")}, [a], (None, b))
    writer.close([Module("m", "M", ("m.a",), ("w",), ("b",))], [call], {"recipe": "r"})
    recording = Recording.open(tmp_path)
    assert recording.calls == {"m#2": call} and recording.about["recipe"] == "r"
    assert recording.modules == {"m": Module("m", "M", ("m.a",), ("w",), ("b",))}
    for stored, array in zip((a, b, c, d), arrays, strict=True):
        found = recording.array(stored)
        assert found.dtype == array.dtype and found.shape == array.shape and (found == array).all()
    assert call.inputs == [a, b, c, d] and call.unsupported == "Tree"
    assert rebuilt(nest, lambda stored: stored.dtype)[0] == ("float32", ["int64", None])


def test_equal_tensors_are_stored_once_and_others_are_not_mixed(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    zeros = np.zeros(4, np.float32)
    assert writer.store(zeros) == writer.store(zeros.copy())
    assert len({writer.store(x).file for x in (zeros, zeros.reshape(2, 2), zeros.astype(np.int32), zeros - 0.0)}) == 3
    assert len(list(tmp_path.glob("*.npy"))) == 3
    with pytest.raises(ValueError, match="complex64"):
        writer.store(zeros.astype(np.complex64))


@pytest.mark.parametrize(("path", "number", "text"), [("", 0, "(model)"), ("", 1, "(model)#1"), ("a.b", 2, "a.b#2")])
def test_labels(path: str, number: int, text: str) -> None:
    assert label(path, number) == text and parse_label(text) == (path, number)


def test_names() -> None:
    assert state_name("a.bn#1 running_mean") == "a.bn.running_mean" and state_name("(model) bn.x") == "bn.x"
    assert (relative("a.b.c", "a.b"), relative("a.b", "a.b"), relative("a.bc", "a.b"), relative("a", "")) == (
        "c",
        "",
        None,
        "a",
    )


def test_a_damaged_tensor_is_refused_by_name(tmp_path: Path) -> None:
    recording = Recording.open(run(tmp_path) / FOLDER)
    stored = recording.calls["fc"].inputs[0]
    file = tmp_path / FOLDER / f"{stored.file}.npy"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(BadTrace, match=f"{stored.file}.npy: is damaged"):
        recording.array(stored)
    np.save(file, np.zeros(3, np.float32))
    with pytest.raises(BadTrace, match=r"is float32 \[3\], not float32 \[2, 3\]"):
        recording.array(stored)
    file.write_bytes(b"")
    with pytest.raises(BadTrace, match="cannot be read"):
        recording.array(stored)
    file.unlink()
    with pytest.raises(BadTrace, match="cannot be read"):
        recording.array(stored)


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    recording = Recording.open(run(tmp_path) / FOLDER)
    stored = recording.calls["fc"].inputs[0]
    np.save(tmp_path / FOLDER / f"{stored.file}.npy", np.array([print], object), allow_pickle=True)
    with pytest.raises(BadTrace, match="cannot be read"):
        recording.array(stored)


def test_no_recording_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="did not finish"):
        Recording.open(tmp_path)


BROKEN: list[tuple[Any, ...]] = [
    ("format", 3),
    ("calls", [{}]),
    ("calls", "x"),
    ("calls", 0, "path", "elsewhere"),
    ("calls", 0, "number", -1),
    ("calls", 0, "caller", 1),
    ("calls", 0, "args", None),
    ("calls", 0, "args", "tuple", 0, "tensor", 0, "../../etc/passwd"),
    ("calls", 0, "args", "tuple", 0, "tensor", 2, "object"),
    ("calls", 0, "args", "tuple", 0, "tensor", 1, [-1]),
    ("calls", 0, "kwargs", {"list": []}),
    ("calls", 0, "gradients", {"tuple": ["x"]}),
    ("calls", 0, "output", {"module": "os"}),
    ("modules", 0, "kind", 3),
    ("modules", 0, "children", 3),
]


@pytest.mark.parametrize("change", BROKEN, ids=str)
def test_a_made_up_recording_is_refused(tmp_path: Path, change: tuple[Any, ...]) -> None:
    file = run(tmp_path) / FOLDER / FILE
    document = at = json.loads(file.read_text())
    for key in change[:-2]:
        at = at[key]
    at[change[-2]] = change[-1]
    file.write_text(json.dumps(document))
    with pytest.raises(BadTrace, match=FILE) as refused:
        Recording.open(tmp_path / FOLDER)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "[]", "null", '{"format": 1}', "[" * 100_000, "\x00"])
def test_what_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(BadTrace):
        Recording.open(tmp_path)


def test_a_nest_without_end_is_refused() -> None:
    nest: Any = 1
    for _ in range(200):
        nest = {"list": [nest]}
    with pytest.raises(ValueError, match="too deep"):
        decoded(nest)


TENSORS = st.builds(Stored, st.just("0" * 32), st.just((2, 3)), st.sampled_from(["float32", "int64"]), st.booleans())
LENGTHS = Stored("1" * 32, (2,), "int64")
PACKED = st.builds(Packed, TENSORS, st.just(LENGTHS))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | TENSORS | PACKED
NESTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(NESTS)
def test_every_nest_comes_back(nest: Any) -> None:
    again = decoded(json.loads(json.dumps(encoded(nest))))
    assert again == nest and type(again) is type(nest) and flat(again, Stored) == flat(nest, Stored)


@pytest.mark.parametrize(
    "parts", [[], [LENGTHS], [LENGTHS, LENGTHS], [Stored("0" * 32, (3, 4), "float32"), LENGTHS], [1, 2]]
)
def test_what_is_no_packed_sequence_is_refused(parts: list[Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        decoded({"packed": [encoded(part) for part in parts]})


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_other_json_is_refused_or_a_value(document: Any) -> None:
    with contextlib.suppress(ValueError, TypeError):
        decoded(document)
