"""The file that `torch.save` wrote before torch 1.6, and still does when told: pickles one after another, then bytes.

    magic number, protocol version, sys_info     a pickle each, to know the file by
    the objects                                  a pickle with references to storages
    the keys of the storages                     a pickled list
    for each key, in this order                  the number of elements (int64, little-endian), and their bytes

So every storage is a byte range of the file. The layout is that of `torch/serialization.py`, `_legacy_save`.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

from ...errors import BadCheckpoint, Unsupported
from . import restricted_pickle
from .contents import ByteRange, read_at, shown
from .pickled import Storage
from .restricted_pickle import Loaded
from .torch_state_dict import TorchSource
from .torch_tensors import storage_item_size

MAGIC = 0x1950A86A20F9469CFC6C
BEGINNING = re.compile(  # protocol, perhaps a frame, and the magic number as a LONG1
    rb"\x80[\x02-\x05](\x95.{8})?\x8a\n" + re.escape(MAGIC.to_bytes(10, "little")) + rb"\.", re.DOTALL
)
VERSION = 1001
HEADER = 4096  # bytes that each of the first three pickles fits in
SIZES = {"short": (2,), "int": (4,), "long": (4, 8)}  # of the machine that wrote the file
COUNT = struct.Struct("<q")


def begins(head: bytes) -> bool:
    """Whether the first bytes of a file are those of such a file."""
    return BEGINNING.match(head) is not None


class TorchLegacy(TorchSource):
    """An open checkpoint file; raises BadCheckpoint when it is not such a file, Unsupported for a big-endian one."""

    format = "torch before 1.6"

    def __init__(self, path: str, file: BinaryIO) -> None:
        super().__init__(path, [file])
        self.size = os.fstat(file.fileno()).st_size
        magic = self._pickle(0, HEADER)
        version = self._pickle(magic.end, HEADER)
        system = self._pickle(version.end, HEADER)
        if magic.value != MAGIC or version.value != VERSION or type(system.value) is not dict:
            raise BadCheckpoint(f"{path} begins as a file from before torch 1.6 and goes on as none")
        if system.value.get("little_endian") is False:
            raise Unsupported(f"{path} was written on a big-endian machine; load and save it again on another")
        sizes = system.value.get("type_sizes")
        if system.value.get("little_endian") is not True or not _usual(sizes):
            raise BadCheckpoint(f"{path} was written on a machine whose numbers are of unknown sizes")
        self.content = self._pickle(system.end, restricted_pickle.MAX_PICKLE)
        keys = self._pickle(self.content.end, restricted_pickle.MAX_PICKLE, restricted_pickle.MAX_MEMORY // 4)
        self.storages = self._storages(keys)

    def load(self) -> Loaded:
        return self.content

    def storage(self, key: str) -> ByteRange:
        if key not in self.storages:
            raise BadCheckpoint(f"{self.path} lacks its storage {shown(key)}; the file is incomplete")
        return self.storages[key]

    def _pickle(self, start: int, limit: int, memory: int | None = None) -> Loaded:
        """The pickle that begins at `start`, with its end counted from the start of the file."""
        data = read_at(self.files[0], self.path, start, limit)
        try:
            found = restricted_pickle.read(data, legacy=True, memory=memory)
        except (BadCheckpoint, Unsupported) as error:
            cut = f", unless it is larger than {limit:,} bytes, which none needs to be" if len(data) == limit else ""
            raise type(error)(f"{self.path}: {error}{cut}") from None
        return found._replace(end=start + found.end)

    def _storages(self, keys: Loaded) -> Mapping[str, ByteRange]:
        """Where each storage's bytes stand; raises BadCheckpoint unless they fill the file to its end."""
        known = self.content.storages
        listed = keys.value
        if (
            type(listed) is not list
            or not all(isinstance(key, str) for key in listed)
            or sorted(listed) != sorted(known)
        ):
            raise BadCheckpoint(f"{self.path}: the storages at its end are not those that its tensors refer to")
        found: dict[str, ByteRange] = {}
        at = keys.end
        for key in listed:
            length = self._length(key, known[key], at)
            found[key] = ByteRange(at + COUNT.size, length)
            at += COUNT.size + length
        if at != self.size:
            raise BadCheckpoint(f"{self.path} holds {self.size - at:,} bytes after its last storage; it is damaged")
        return found

    def _length(self, key: str, storage: Storage, at: int) -> int:
        """The bytes of the storage whose count stands at an offset."""
        count = read_at(self.files[0], self.path, at, COUNT.size)
        try:
            length = storage.numel * storage_item_size(storage.kind)
        except Unsupported as error:
            raise Unsupported(f"{self.path}: {error}") from None
        if len(count) < COUNT.size or at + COUNT.size + max(length, 0) > self.size:
            raise BadCheckpoint(f"{self.path} ends within its storage {shown(key)}: truncated; fetch it again")
        if length < 0 or COUNT.unpack(count)[0] != storage.numel:
            raise BadCheckpoint(
                f"{self.path}: its storage {shown(key)} is not as large as its tensors say; the file is damaged"
            )
        return length


def _usual(sizes: Any) -> bool:
    return sizes is None or (
        type(sizes) is dict and all(sizes.get(name, usual[0]) in usual for name, usual in SIZES.items())
    )
