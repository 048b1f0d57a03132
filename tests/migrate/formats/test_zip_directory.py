"""A zip's directory is read as zipfile reads it where it is sound, and refused where two readers could differ."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest
from msmigrate.errors import BadCheckpoint
from msmigrate.migrate.checkpoint.formats import pth_reader
from msmigrate.migrate.checkpoint.formats.pth_reader import directory


def read(path: Path) -> dict[str, pth_reader.Member]:
    with path.open("rb") as file:
        return directory(file, str(path))


def made(path: Path, *, comment: bytes = b"") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/plain", b"x" * 100)
        archive.writestr("a/ö", b"y", zipfile.ZIP_STORED)
        archive.writestr("a/packed", b"z" * 100, zipfile.ZIP_DEFLATED)
        with archive.open("a/wide", "w", force_zip64=True) as member:
            member.write(b"w" * 10)
        archive.comment = comment
    return path


@pytest.mark.parametrize("comment", [b"", b"PK", b"x" * 0xFFFF])
def test_members_are_those_that_zipfile_finds(tmp_path: Path, comment: bytes) -> None:
    path = made(tmp_path / "x.zip", comment=comment)
    with zipfile.ZipFile(path) as archive:
        wanted = {
            entry.filename: (entry.header_offset, entry.file_size, entry.CRC, entry.compress_type == 0)
            for entry in archive.infolist()
        }
    assert read(path) == wanted
    assert not read(path)["a/packed"].plain


def wide(path: Path, *, count: int = 4) -> Path:
    """The same with a directory whose place and sizes stand in 64 bits, as torch writes it."""
    content = made(path).read_bytes()
    at = content.rindex(b"PK\5\6")
    _, entries, size, start, _ = pth_reader.END.unpack_from(content, at)
    assert entries == 4
    record = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start)
    place = struct.pack("<4sIQI", b"PK\6\7", 0, at, 1)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    path.write_bytes(content[:at] + record + place + end)
    return path


def test_a_directory_in_64_bits(tmp_path: Path) -> None:
    assert read(wide(tmp_path / "w.zip")) == read(made(tmp_path / "x.zip"))
    with pytest.raises(BadCheckpoint, match="truncated or damaged"):
        read(wide(tmp_path / "y.zip", count=3))  # one reader goes by the count, another by the size
    with pytest.raises(BadCheckpoint, match=r"holds 9,223,372,036,854,775,808 members"):
        read(wide(tmp_path / "z.zip", count=1 << 63))


def test_more_members_than_any_file_has_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "x.zip")
    with path.open("rb") as file, pytest.raises(BadCheckpoint, match=r"holds 4 members, .* such a file has at most 3"):
        directory(file, str(path), 3)
    monkeypatch.setattr(pth_reader, "MAX_DIRECTORY", 100)
    with pytest.raises(BadCheckpoint, match="such a file has at most"):
        read(path)


def test_every_damaged_byte_of_it_is_one_error_or_none(tmp_path: Path) -> None:
    whole = wide(tmp_path / "x.zip").read_bytes()
    path = tmp_path / "y.zip"
    for at in range(whole.index(b"PK\1\2"), len(whole)):
        for bit in (1, 0x80):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
            try:
                read(path)
            except BadCheckpoint as error:
                assert "\n" not in str(error)
