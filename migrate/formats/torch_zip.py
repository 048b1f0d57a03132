"""The zip that `torch.save` writes (since torch 1.6): one pickle, and one stored member for each storage.

    NAME/data.pkl      the objects, with references to storages
    NAME/byteorder     "little" or "big" (since torch 2.1; little before)
    NAME/data/KEY      the raw bytes of one storage

Members are stored, never compressed, so every storage is a byte range of the file. The layout is that of
`torch/csrc/inline_container` (caffe2/serialize); the zip records are those of PKWARE's APPNOTE.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import BadCheckpoint, Unsupported
from . import restricted_pickle

LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, …, length of the name, length of the extra field
MAX_MEMBERS = 1_000_000


class ByteRange(NamedTuple):
    """Where bytes stand in the source file."""

    offset: int
    length: int


class TorchZip:
    """An open checkpoint file; use it as a context manager.

    `fd` is the file descriptor that byte ranges refer to. Raises BadCheckpoint when the file is not such a zip, and
    then says what it looks like instead.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            if not stat.S_ISREG(Path(path).stat().st_mode) and not Path(path).is_dir():
                raise BadCheckpoint(f"{path} is not a regular file")  # opening a pipe would wait for ever
            self.file = Path(path).open("rb")  # noqa: SIM115 (closed by __exit__, and below on failure)
        except OSError as error:
            raise BadCheckpoint(f"cannot read {path}: {error.strerror}") from None
        self.fd = self.file.fileno()
        try:
            self.size = os.fstat(self.fd).st_size
            self.members = self._directory()
            self.root = self._root()
            self._check_byteorder()
        except BaseException:
            self.file.close()
            raise

    def __enter__(self) -> TorchZip:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def _directory(self) -> dict[str, zipfile.ZipInfo]:
        """Read the zip's directory: member name -> entry."""
        try:
            with zipfile.ZipFile(self.file) as archive:
                entries = archive.infolist()
        except OSError as error:
            raise BadCheckpoint(f"cannot read {self.path}: {error.strerror or error}") from None
        except Exception:  # a damaged directory makes zipfile raise a dozen kinds of errors
            raise BadCheckpoint(f"{self.path} {self._looks_like()}") from None
        members = {entry.filename: entry for entry in entries}
        if len(members) != len(entries):
            # Two readers could take two different members: nobody writes this by accident.
            raise BadCheckpoint(f"{self.path} holds two members of one name")
        if len(members) > MAX_MEMBERS:
            raise BadCheckpoint(f"{self.path} holds {len(members):,} members; a checkpoint has at most {MAX_MEMBERS:,}")
        return members

    def _looks_like(self) -> str:
        """Say what a file that is not a readable zip seems to be."""
        head = self._at(0, 512)
        for test, text in (
            (head == b"", "is empty"),
            (head[:4] == b"PK\x03\x04", "begins as a zip but ends too early: truncated or damaged; fetch it again"),
            (head[:2] == b"\x80\x02" and b"\x8a\x0al\xfc\x9cF\xf9" in head, LEGACY),
            (head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05", "is a bare pickle, not a torch.save archive"),
            (head[8:10] == b'{"', "looks like a safetensors file; a later version will read those"),
            (head.startswith(b"version https://git-lfs"), "is a git-lfs pointer; run `git lfs pull` for the real file"),
            (head.lstrip()[:1] == b"<", "is an HTML or XML page, not a checkpoint; the download went wrong"),
            (head[:3] == b"\x1f\x8b\x08", "is gzip-compressed; unpack it first"),
            (head[257:262] == b"ustar", "is a tar archive; unpack it first"),
            (head[:8] == b"\x89HDF\r\n\x1a\n", "is an HDF5 file, not a torch checkpoint"),
            (head[:4] == b"GGUF", "is a GGUF file, not a torch checkpoint"),
        ):
            if test:
                return text
        return "is not a torch.save archive (no zip directory found)"

    def _root(self) -> str:
        """Return the folder inside the zip, with its slash."""
        roots = [name[: -len("data.pkl")] for name in self.members if name.endswith("/data.pkl")]
        roots = [root for root in roots if root.count("/") == 1]
        if len(roots) != 1:
            raise BadCheckpoint(f"{self.path} is a zip without torch's data.pkl; it was not written by torch.save")
        if f"{roots[0]}constants.pkl" in self.members:
            raise Unsupported(f"{self.path} is a TorchScript archive; save model.state_dict() with torch.save instead")
        return roots[0]

    def _check_byteorder(self) -> None:
        name = f"{self.root}byteorder"
        if name in self.members and self.read(name, limit=16) != b"little":
            raise Unsupported(f"{self.path} was written on a big-endian machine; load and save it again on another")

    def range(self, name: str) -> ByteRange:
        """Return the byte range of a stored member; raises BadCheckpoint when it is missing or cannot be one."""
        entry = self.members.get(name)
        if entry is None:
            raise BadCheckpoint(f"{self.path} lacks its member {shown(name)}; the file is incomplete")
        if entry.flag_bits & 1 or entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise BadCheckpoint(
                f"{self.path}: the member {shown(name)} is compressed or encrypted; torch.save stores members as they "
                "are, so the file was packed again by another tool"
            )
        header = self._at(entry.header_offset, LOCAL_HEADER.size) if entry.header_offset >= 0 else b""
        if len(header) == LOCAL_HEADER.size:
            signature, name_length, extra_length = LOCAL_HEADER.unpack(header)
            offset = entry.header_offset + LOCAL_HEADER.size + name_length + extra_length
            if signature == b"PK\x03\x04" and offset + entry.file_size <= self.size:
                return ByteRange(offset, entry.file_size)
        raise BadCheckpoint(f"{self.path}: the member {shown(name)} reaches past the end of the file or is damaged")

    def storage(self, key: str) -> ByteRange:
        """Return the byte range of a storage; raises BadCheckpoint when the file lacks it."""
        return self.range(f"{self.root}data/{key}")

    def read(self, name: str, limit: int) -> bytes:
        """Return a small member whole; raises BadCheckpoint when it is larger than `limit` or its checksum is off."""
        offset, length = self.range(name)
        if length > limit:
            raise BadCheckpoint(
                f"{self.path}: the member {shown(name)} holds {length:,} bytes, at most {limit:,} make sense"
            )
        data = self._at(offset, length)
        if len(data) != length:
            raise BadCheckpoint(f"{self.path} became shorter while it was read")
        if self.members[name].CRC not in (0, zlib.crc32(data)):  # 0: torch was told not to compute checksums
            raise BadCheckpoint(f"{self.path}: the checksum of {shown(name)} is wrong; the file is damaged")
        return data

    def _at(self, offset: int, length: int) -> bytes:
        """Read at an offset; raises BadCheckpoint when the disk cannot."""
        try:
            return os.pread(self.fd, length, offset)
        except OSError as error:
            raise BadCheckpoint(f"cannot read {self.path}: {error.strerror}") from None

    def load(self) -> Any:
        """Return what data.pkl describes, inert; raises BadCheckpoint with the path in front."""
        data = self.read(f"{self.root}data.pkl", restricted_pickle.MAX_PICKLE)
        try:
            return restricted_pickle.load(data)
        except (BadCheckpoint, Unsupported) as error:
            raise type(error)(f"{self.path}: {error}") from None


LEGACY = "is in the format of torch before 1.6; load it with torch and torch.save it again"


def shown(name: str) -> str:
    """A name from the file, safe to print on one line."""
    return name if name.isprintable() and len(name) <= 200 else ascii(name)[:200]
