"""Blocks are shared where the file system can, and copied where it cannot; the new file reads the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msmigrate.migrate.checkpoint import convert
from msmigrate.migrate.checkpoint.formats import byte_copy, ckpt
from msmigrate.migrate.checkpoint.formats.byte_copy import BLOCK
from msmigrate.migrate.checkpoint.formats.ckpt import LEAST, padding
from msmigrate.migrate.checkpoint.formats.registry import open_source
from tiny_checkpoints import SMALL, floats, save

LARGE = {**SMALL, "a": floats(700_000), "b": floats(300, 1000, start=7.0), "c": floats(5), "d": floats(900_001)}


@pytest.fixture
def sharing(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """A file system that can share blocks, as far as the converter sees; what it was asked for: (from, to, length)."""
    asked: list[tuple[int, int, int]] = []

    def clone(source: int, offset: int, output: int, at: int, length: int) -> bool:
        assert not offset % BLOCK and not at % BLOCK and not length % BLOCK and length
        asked.append((offset, at, length))
        os.pwrite(output, os.pread(source, length, offset), at)
        return True

    monkeypatch.setattr(byte_copy, "clone", clone)
    monkeypatch.setattr(byte_copy, "clone", clone)
    return asked


def contents(path: Path) -> dict[str, bytes]:
    with path.open("rb") as file:
        values = ckpt.entries(file.fileno(), str(path))
        return {
            value.tag: b"".join(os.pread(file.fileno(), length, at) for at, length in value.pieces) for value in values
        }


def test_large_contents_are_shared_and_read_the_same(tmp_path: Path, sharing: list[tuple[int, int, int]]) -> None:
    source = save(tmp_path / "x.pth", LARGE)
    convert.convert(source, tmp_path / "x.ckpt")
    shared = sharing[1:]  # the first one asks whether it can
    assert len(shared) == 3 and sum(length for _, _, length in shared) > 7_000_000
    found = contents(tmp_path / "x.ckpt")
    assert {name: found[name] for name in "abcd"} == {name: LARGE[name].content for name in "abcd"}


def test_pieces_of_a_cut_tensor_are_shared_each(
    tmp_path: Path, sharing: list[tuple[int, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ckpt, "CHUNK", 3_000_001)
    source = save(tmp_path / "x.pth", {"a": floats(2_000_000)})
    convert.convert(source, tmp_path / "x.ckpt")
    assert len(sharing[1:]) == 3
    assert contents(tmp_path / "x.ckpt")["a"] == floats(2_000_000).content


def test_mindspore_reads_such_a_file(
    tmp_path: Path, sharing: list[tuple[int, int, int]], read_by_mindspore: Callable[[Path], dict[str, Any]]
) -> None:
    source = save(tmp_path / "x.pth", LARGE)
    convert.convert(source, tmp_path / "shared.ckpt")
    assert len(sharing) > 1
    source.rename(tmp_path / "x.source")
    with pytest.MonkeyPatch.context() as plain:
        plain.setattr(byte_copy, "clone", lambda *_: False)
        plain.setattr(byte_copy, "clone", lambda *_: False)
        convert.convert(tmp_path / "x.source", tmp_path / "copied.ckpt")
    found = read_by_mindspore(tmp_path)
    assert found["shared.ckpt"] == found["copied.ckpt"]


@pytest.mark.parametrize("count", [0, 1, LEAST - 1, LEAST, 127, 128, 300, BLOCK - 1])
def test_padding_is_as_long_as_asked_and_passed_over(tmp_path: Path, count: int) -> None:
    found = padding(count)
    assert len(found) % BLOCK == count
    header = ckpt.header("a", (2,), "Float32", 8)
    path = tmp_path / "x.ckpt"
    path.write_bytes(found + header + bytes(8))
    with open_source(str(path)) as source:
        assert list(source.checkpoint().tensors) == ["a"]


def test_a_file_system_that_cannot_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(byte_copy, "clone", lambda *told: asked.append(told))
    monkeypatch.setattr(byte_copy, "clone", lambda *told: asked.append(told))
    convert.convert(save(tmp_path / "x.pth", LARGE), tmp_path / "x.ckpt")
    assert len(asked) <= 2
    assert contents(tmp_path / "x.ckpt")["d"] == LARGE["d"].content
