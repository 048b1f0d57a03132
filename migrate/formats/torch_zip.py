"""The zip that `torch.save` writes (since torch 1.6): one pickle, and one stored member for each storage.

    NAME/data.pkl      the objects, with references to storages
    NAME/byteorder     "little" or "big" (since torch 2.1; little before)
    NAME/data/KEY      the raw bytes of one storage

Members are stored, never compressed, so every storage is a byte range of the file. The layout is that of
`torch/csrc/inline_container` (caffe2/serialize); the zip records are those of PKWARE's APPNOTE.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from typing import Any, BinaryIO

from ...errors import BadCheckpoint, Unsupported
from . import restricted_pickle
from .contents import ByteRange, read_at, shown
from .torch_state_dict import TorchSource

LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, …, length of the name, length of the extra field
MAX_MEMBERS = 1_000_000


class TorchZip(TorchSource):
    """An open checkpoint file; raises BadCheckpoint when it is not such a zip."""

    format = "torch zip"

    def __init__(self, path: str, file: BinaryIO) -> None:
        super().__init__(path, [file])
        self.file = file
        self.size = os.fstat(file.fileno()).st_size
        self.members = self._directory()
        self.root = self._root()
        self._check_byteorder()

    def _directory(self) -> dict[str, zipfile.ZipInfo]:
        """Read the zip's directory: member name -> entry."""
        try:
            with zipfile.ZipFile(self.file) as archive:
                entries = archive.infolist()
        except OSError as error:
            raise BadCheckpoint(f"cannot read {self.path}: {error.strerror or error}") from None
        except Exception:  # a damaged directory makes zipfile raise a dozen kinds of errors
            raise BadCheckpoint(
                f"{self.path} begins as a zip but ends too early: truncated or damaged; fetch it again"
            ) from None
        members = {entry.filename: entry for entry in entries}
        if len(members) != len(entries):
            # Two readers could take two different members: nobody writes this by accident.
            raise BadCheckpoint(f"{self.path} holds two members of one name")
        if len(members) > MAX_MEMBERS:
            raise BadCheckpoint(f"{self.path} holds {len(members):,} members; a checkpoint has at most {MAX_MEMBERS:,}")
        return members

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
        offset, length, _ = self.range(name)
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
        return read_at(self.file, self.path, offset, length)

    def load(self) -> Any:
        """Return what data.pkl describes, inert; raises BadCheckpoint with the path in front."""
        data = self.read(f"{self.root}data.pkl", restricted_pickle.MAX_PICKLE)
        try:
            return restricted_pickle.load(data)
        except (BadCheckpoint, Unsupported) as error:
            raise type(error)(f"{self.path}: {error}") from None
