"""The zip that `torch.save` writes (since torch 1.6): one pickle, and one stored member for each storage.

    NAME/data.pkl      the objects, with references to storages
    NAME/byteorder     "little" or "big" (since torch 2.1; little before)
    NAME/data/KEY      the raw bytes of one storage

Members are stored, never compressed, so every storage is a byte range of the file. The layout is that of
`torch/csrc/inline_container` (caffe2/serialize).
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import BinaryIO

from ...errors import BadCheckpoint, Unsupported
from . import restricted_pickle
from .contents import ByteRange, Checksum, read_at, shown
from .restricted_pickle import Loaded
from .torch_state_dict import TorchSource
from .zip_directory import directory

LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, …, length of the name, length of the extra field


class TorchZip(TorchSource):
    """An open checkpoint file; raises BadCheckpoint when it is not such a zip."""

    format = "torch zip"

    def __init__(self, path: str, file: BinaryIO) -> None:
        super().__init__(path, [file])
        self.file = file
        self.size = os.fstat(file.fileno()).st_size
        self.members = directory(file, path)
        self.root = self._root()
        self.ranges: dict[str, ByteRange] = {}  # of the members that were asked for
        self._check_byteorder()

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
        if name in self.ranges:
            return self.ranges[name]
        member = self.members.get(name)
        if member is None:
            raise BadCheckpoint(f"{self.path} lacks its member {shown(name)}; the file is incomplete")
        if not member.plain:
            raise BadCheckpoint(
                f"{self.path}: the member {shown(name)} is compressed or encrypted; torch.save stores members as they "
                "are, so the file was packed again by another tool"
            )
        header = self._at(member.at, LOCAL_HEADER.size)
        if len(header) == LOCAL_HEADER.size:
            signature, name_length, extra_length = LOCAL_HEADER.unpack(header)
            offset = member.at + LOCAL_HEADER.size + name_length + extra_length
            if signature == b"PK\x03\x04" and offset + member.size <= self.size:
                self.ranges[name] = ByteRange(offset, member.size)
                return self.ranges[name]
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
        if self.members[name].checksum not in (0, zlib.crc32(data)):  # 0: torch was told not to compute checksums
            raise BadCheckpoint(f"{self.path}: the checksum of {shown(name)} is wrong; the file is damaged")
        return data

    def _at(self, offset: int, length: int) -> bytes:
        return read_at(self.file, self.path, offset, length)

    def load(self) -> Loaded:
        data = self.read(f"{self.root}data.pkl", restricted_pickle.MAX_PICKLE)
        try:
            return restricted_pickle.read(data)
        except (BadCheckpoint, Unsupported) as error:
            raise type(error)(f"{self.path}: {error}") from None

    def checksums(self, *, whole: bool = False) -> list[Checksum]:
        start = f"{self.root}data/"
        names = self.members if whole else self.ranges
        return [
            Checksum(self.range(name), self.members[name].checksum, name)
            for name in names
            if name.startswith(start) and self.members[name].checksum
        ]
