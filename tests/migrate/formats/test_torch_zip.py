"""What is not a whole torch archive is refused with a line that says what it is."""

from __future__ import annotations

import os
import random
import zipfile
from pathlib import Path

import pytest
from msmigrate.errors import BadCheckpoint, MsmigrateError, Unsupported
from msmigrate.migrate.checkpoint.formats.registry import open_source
from tiny_checkpoints import SMALL, save, state_dict, write


def reading(path: Path) -> None:
    with open_source(str(path)) as source:
        source.checkpoint()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git-lfs pointer"),
        (b"\x40\x00\x00\x00\x00\x00\x00\x00" + b'{"a":{"dtype"', "safetensors"),
        (b"\x80\x04N.", "bare pickle"),
        (b"\x1f\x8b\x08\x00\x00", "gzip"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
        (b"GGUF\x03", "GGUF"),
        (b"PK\x03\x04\x14\x00", "ends too early"),
        (b"\x00" * 257 + b"ustar\x00", "tar archive"),
        (random.Random(0).randbytes(100), "no checkpoint of torch"),
    ],
)
def test_says_what_the_file_looks_like(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "x.pth"
    path.write_bytes(content)
    with pytest.raises(BadCheckpoint, match=says):
        reading(path)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match="No such file"):
        reading(tmp_path / "absent.pth")
    with pytest.raises(BadCheckpoint, match="Is a directory"):
        reading(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadCheckpoint, match="not a regular file"):
        reading(tmp_path / "pipe")


def test_a_zip_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", b"x")
    with pytest.raises(BadCheckpoint, match=r"without torch's data\.pkl"):
        reading(path)


def test_torchscript_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.pt", *state_dict(SMALL), extra={"archive/constants.pkl": b"\x80\x02)."})
    with pytest.raises(Unsupported, match="TorchScript"):
        reading(path)


def test_compressed_members_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.pth", *state_dict(SMALL), compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(BadCheckpoint, match="compressed or encrypted"):
        reading(path)


def test_big_endian_is_refused_and_no_byteorder_means_little(tmp_path: Path) -> None:
    pickled, storages = state_dict(SMALL)
    with pytest.raises(Unsupported, match="big-endian"):
        reading(write(tmp_path / "big.pth", pickled, storages, byteorder=b"big"))
    reading(write(tmp_path / "old.pth", pickled, storages, byteorder=None))


def test_a_missing_storage_is_named(tmp_path: Path) -> None:
    pickled, storages = state_dict(SMALL)
    del storages["3"]
    with pytest.raises(BadCheckpoint, match="lacks its member archive/data/3"):
        reading(write(tmp_path / "x.pth", pickled, storages))


def test_a_short_storage_is_refused(tmp_path: Path) -> None:
    pickled, storages = state_dict(SMALL)
    storages["0"] = storages["0"][:-4]
    with pytest.raises(BadCheckpoint, match=r"conv\.weight: its storage 0 should hold 216 bytes and holds 212"):
        reading(write(tmp_path / "x.pth", pickled, storages))


def test_a_flipped_bit_in_the_pickle_is_noticed(tmp_path: Path) -> None:
    path = save(tmp_path / "x.pth", SMALL)
    path.write_bytes(path.read_bytes().replace(b"conv.weight", b"conw.weight"))
    with pytest.raises(BadCheckpoint, match=r"checksum of archive/data\.pkl is wrong"):
        reading(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "x.pth", SMALL)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
    with pytest.raises(BadCheckpoint, match="two members of one name"):
        reading(path)


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    whole = save(tmp_path / "x.pth", SMALL).read_bytes()
    path = tmp_path / "cut.pth"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(MsmigrateError):
            reading(path)
