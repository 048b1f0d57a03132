"""The state dict is found where scripts put it, and no view reaches outside its storage."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from msmigrate.errors import Ambiguous, BadCheckpoint, MsmigrateError, Unsupported
from msmigrate.migrate.checkpoint.formats import reader
from msmigrate.migrate.checkpoint.formats.reader import Checkpoint
from msmigrate.migrate.checkpoint.formats.registry import open_source
from tiny_checkpoints import (
    SMALL,
    Tensor,
    floats,
    group,
    integer,
    mapping,
    named,
    rebuilt,
    save,
    state_dict,
    text,
    write,
)


def read(path: Path, key: str | None = None) -> Checkpoint:
    with open_source(str(path)) as source:
        return source.checkpoint(key)


def nested(path: Path, **content: bytes) -> Path:
    return write(path, mapping(content.items()), state_dict(SMALL)[1])


WEIGHTS = state_dict(SMALL)[0]


@pytest.mark.parametrize("wrapper", ["state_dict", "model", "net"])
def test_finds_the_wrapped_state_dict_and_reports_the_rest(tmp_path: Path, wrapper: str) -> None:
    content: dict[str, Any] = {wrapper: WEIGHTS, "epoch": integer(90), "optimizer": b"}" + text("state") + b"}s"}
    found = read(nested(tmp_path / "x.pth", **content))
    assert list(found.tensors) == list(SMALL)
    assert found.wrapper == wrapper
    assert found.others == {"epoch": "90", "optimizer": "a dict of 1 (state)"}


def test_a_lone_tensor_beside_the_wrapper_does_not_mislead(tmp_path: Path) -> None:
    found = read(nested(tmp_path / "x.pth", best=rebuilt(SMALL["conv.weight"], "0"), state_dict=WEIGHTS))
    assert found.wrapper == "state_dict"
    assert found.others == {"best": "a tensor"}


def test_two_state_dicts_need_a_key(tmp_path: Path) -> None:
    path = nested(tmp_path / "x.pth", a=WEIGHTS, b=WEIGHTS)
    with pytest.raises(Ambiguous, match="under a, b; say which with --key"):
        read(path)
    assert read(path, "b").wrapper == "b"
    with pytest.raises(BadCheckpoint, match="no state dict under --key c; there is a, b"):
        read(path, "c")


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."])
def test_prefixes_of_wrappers_are_taken_off(tmp_path: Path, prefix: str) -> None:
    found = read(save(tmp_path / "x.pth", {prefix + name: tensor for name, tensor in SMALL.items()}))
    assert (list(found.tensors), found.prefix) == (list(SMALL), prefix)


def test_the_counter_of_averaged_weights_does_not_hide_the_prefix(tmp_path: Path) -> None:
    found = read(save(tmp_path / "x.pth", {"n_averaged": floats(), "module.own": floats(2)}))
    assert (list(found.tensors), found.prefix, found.others) == (["own"], "module.", {"n_averaged": "a tensor"})
    assert list(read(save(tmp_path / "y.pth", {"n_averaged": floats()})).tensors) == ["n_averaged"]


def test_a_prefix_that_not_all_share_stays(tmp_path: Path) -> None:
    names = {"module.own": floats(2), "count": floats()}
    assert list(read(save(tmp_path / "x.pth", names)).tensors) == list(names)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"}", "no tensors"),
        (b"]", "a list of 0"),
        (integer(3), "holds 3"),
        (mapping({"epoch": integer(1)}.items()), "no tensors"),
        (b"}" + integer(1) + rebuilt(floats(2), "0") + b"s", "1 is no name"),
        (b"}" + text("\ud800") + rebuilt(floats(2), "0") + b"s", "is no name of a tensor"),
        (b"}" + text("two\nlines") + rebuilt(floats(2), "0") + b"s", "is no name of a tensor"),
        (b"}" + text("") + rebuilt(floats(2), "0") + b"s", "is no name of a tensor"),
        (b"}" + text("x" * 2000) + rebuilt(floats(2), "0") + b"s", "is no name of a tensor"),
        (b"}N}" + text("a") + rebuilt(floats(2), "0") + b"ss", "no tensors"),
    ],
)
def test_files_without_a_state_dict(tmp_path: Path, body: bytes, says: str) -> None:
    with pytest.raises(BadCheckpoint, match=says):
        read(write(tmp_path / "x.pth", body, {"0": bytes(8)}))


BAD_VIEWS = {
    "too large": Tensor(bytes(16), (5,)),
    "offset past the end": Tensor(bytes(16), (4,), offset=1),
    "negative size": Tensor(bytes(16), (-1,)),
    "negative stride": Tensor(bytes(16), (2,), strides=(-1,)),
    "negative offset": Tensor(bytes(16), (2,), offset=-1),
    "stride past the end": Tensor(bytes(16), (2, 2), strides=(3, 1)),
    "absurd size": Tensor(bytes(16), (1 << 62,)),
    "product overflows 64 bits": Tensor(bytes(16), (1 << 32, 1 << 32)),
    "absurd integer": Tensor(bytes(16), (1 << 2000,)),
    "sizes and strides differ": Tensor(bytes(16), (2, 2), strides=(1,)),
    "rank": Tensor(bytes(4), (1,) * 100),
}


@pytest.mark.parametrize("case", BAD_VIEWS)
def test_views_outside_their_storage_are_refused(tmp_path: Path, case: str) -> None:
    with pytest.raises(BadCheckpoint, match="bad"):
        read(save(tmp_path / "x.pth", {"bad": BAD_VIEWS[case]}))


@pytest.mark.parametrize("numel", [0, -1, 3, 5, 1 << 40, 1 << 63, 1 << 2000])
def test_a_storage_of_another_size_is_refused(tmp_path: Path, numel: int) -> None:
    body = mapping({"bad": rebuilt(floats(4), "0", numel=numel)}.items())
    with pytest.raises(BadCheckpoint, match="bad"):
        read(write(tmp_path / "x.pth", body, {"0": bytes(16)}))


def test_a_tiny_file_cannot_claim_a_huge_tensor(tmp_path: Path) -> None:
    found = read(save(tmp_path / "x.pth", {"ok": floats(2), "huge": Tensor(bytes(4), (1 << 40,), strides=(0,))}))
    assert "expanded view" in found.refused["huge"]


@pytest.mark.parametrize("key", ["../../secret", "/etc/passwd", "0\x00", "\n", "data.pkl"])
def test_storage_keys_lead_nowhere_else(tmp_path: Path, key: str) -> None:
    with pytest.raises(BadCheckpoint) as error:
        read(write(tmp_path / "x.pth", mapping({"a": rebuilt(floats(2), key)}.items()), {"0": bytes(8)}))
    assert "\n" not in str(error.value)


def call(name: str, *arguments: bytes) -> bytes:
    return named("torch._utils", name) + group(*arguments) + b"R"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (call("_rebuild_sparse_tensor", b"N"), "sparse"),
        (call("_rebuild_qtensor", b"N"), "quantized"),
        (call("_rebuild_meta_tensor_no_storage", b"N"), "meta"),
        (call("_rebuild_tensor_v2"), "does not know"),
        (call("_rebuild_parameter", integer(1)), "does not know"),
    ],
)
def test_other_kinds_of_tensor_are_refused_one_by_one(tmp_path: Path, value: bytes, says: str) -> None:
    found = read(
        write(tmp_path / "x.pth", mapping({"a": rebuilt(floats(2), "0"), "b": value}.items()), {"0": bytes(8)})
    )
    assert list(found.tensors) == ["a"]
    assert says in found.refused["b"]


def test_arguments_of_a_wrong_kind_are_a_damaged_file(tmp_path: Path) -> None:
    for position in range(4):
        storage = group(text("storage"), named("torch", "FloatStorage"), text("0"), text("cpu"), integer(2)) + b"Q"
        arguments = [storage, integer(0), group(integer(2)), group(integer(1)), b"\x89", b"}"]
        arguments[position] = text("no")
        body = mapping({"a": call("_rebuild_tensor_v2", *arguments)}.items())
        with pytest.raises(MsmigrateError):
            read(write(tmp_path / "x.pth", body, {"0": bytes(8)}))


def test_contiguity() -> None:
    def contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
        return reader.Tensor("float32", shape, strides, (0, 0)).contiguous  # type: ignore[arg-type]

    assert contiguous((), ())
    assert contiguous((2, 3), (3, 1))
    assert contiguous((1, 3), (99, 1))
    assert contiguous((2, 1), (1, 77))
    assert contiguous((0, 3), (7, 7))
    assert not contiguous((2, 3), (1, 2))
    assert not contiguous((2,), (2,))
    assert not contiguous((3, 2), (0, 1))


def test_unsupported_is_not_raised_for_a_single_tensor(tmp_path: Path) -> None:
    try:
        read(save(tmp_path / "x.pth", {"a": Tensor(struct.pack("<f", 1), (9,), strides=(0,)), "b": floats(1)}))
    except Unsupported:  # pragma: no cover
        pytest.fail("a refusal belongs to its tensor")
