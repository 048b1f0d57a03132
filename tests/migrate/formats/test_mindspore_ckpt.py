"""The bytes around the contents are protobuf's, and the reader trusts no length."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msmigrate.errors import BadCheckpoint
from msmigrate.migrate.checkpoint.formats import ckpt, reader
from msmigrate.migrate.checkpoint.formats.ckpt import LEAST, Value, header, padding, pieces, varint

# What mindspore.save_checkpoint 2.10 wrote for a float32 vector 0, 1, 2 called v and a Bool pair called b.
SAVED = bytes.fromhex(
    "0a1e0a0176121908031207466c6f617433321a0c000000000000803f000000400a110a0162120c08021204426f6f6c1a020100"
)


def structure(path: Path, content: bytes) -> list[Value]:
    path.write_bytes(content)
    with path.open("rb") as file:
        return ckpt.entries(file.fileno(), "x.ckpt")


def test_headers_are_what_mindspore_writes() -> None:
    assert header("v", (3,), "Float32", 12) + SAVED[20:32] + header("b", (2,), "Bool", 2) + b"\x01\x00" == SAVED


def test_varint() -> None:
    assert [varint(n).hex() for n in (0, 1, 127, 128, 300, 1 << 35)] == [
        "00",
        "01",
        "7f",
        "8001",
        "ac02",
        "808080808001",
    ]


def test_reads_what_mindspore_writes(tmp_path: Path) -> None:
    assert structure(tmp_path / "x", SAVED) == [
        Value("v", (3,), "Float32", ((20, 12),)),
        Value("b", (2,), "Bool", ((49, 2),)),
    ]
    assert len(structure(tmp_path / "x", SAVED + b"crc_num" + bytes(10))) == 2


def test_pieces_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ckpt, "CHUNK", 8)
    assert list(pieces(20)) == [(0, 8), (8, 8), (16, 4)]
    assert list(pieces(8)) == [(0, 8)]
    assert list(pieces(0)) == [(0, 0)]
    content = b"".join(header("t", (5,), "Float32", length) + bytes(length) for _, length in pieces(20))
    (value,) = structure(tmp_path / "x", content)
    assert [length for _, length in value.pieces] == [8, 8, 4]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (header("t", (3,), "Float32", 8) + bytes(8), "holds 8 bytes, its shape"),
        (header("t", (3,), "Float32", 16) + bytes(16), "holds 16 bytes, its shape"),
        (header("t", (3,), "Complex64", 24) + bytes(24), "unknown type"),
        (2 * (header("t", (1,), "Int8", 1) + b"x"), "holds 2 bytes"),
        (
            b"".join(header(tag, (1,), "Int8", 1) + b"x" for tag in "aba"),
            "occurs twice",
        ),
        (
            header("t", (2,), "Int8", 1) + b"x" + header("t", (2,), "Bool", 1) + b"x",
            "disagree",
        ),
        (SAVED[:-1], "damaged"),
        (SAVED[:5], "damaged"),
        (b"hello", "not a MindSpore checkpoint"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "damaged"),
    ],
)
def test_lengths_that_would_corrupt_mindspores_heap_are_noticed(tmp_path: Path, content: bytes, says: str) -> None:
    with pytest.raises(BadCheckpoint, match=says):
        structure(tmp_path / "x", content)


def test_random_bytes_are_one_kind_of_error(tmp_path: Path) -> None:
    for seed in range(200):
        damaged = bytearray(SAVED)
        damaged[seed % len(SAVED)] ^= os.urandom(1)[0] | 1
        try:
            structure(tmp_path / "x", bytes(damaged))
        except BadCheckpoint:
            continue


def test_tensors_and_what_fills_up_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes in the file could be any number of them."""
    empty = [b"\x0a\x07\x0a\x01%c\x12\x02\x12\x00" % letter for letter in b"abcdef"]
    monkeypatch.setattr(ckpt, "MOST_FIELDS", 50)
    with pytest.raises(BadCheckpoint, match="holds more than 50 fields"):
        structure(tmp_path / "x", padding(LEAST) * 50 + empty[0])
    monkeypatch.setattr(reader, "MAX_TENSORS", 5)
    with pytest.raises(BadCheckpoint, match="has 6 entries among its tensors; a checkpoint has at most 5"):
        structure(tmp_path / "x", b"".join(empty))
    monkeypatch.setattr(ckpt, "MOST_PIECES", 10)
    with pytest.raises(BadCheckpoint, match="a is cut into more than 10 pieces"):
        structure(tmp_path / "x", empty[0] * 12)
