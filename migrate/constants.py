"""Single numbers that go from one file to the other by way of memory: they stand in a file without a name."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Sequence
from typing import IO

from .formats.byte_copy import read_range
from .formats.contents import ByteRange, Tensor

INT64 = struct.Struct("<q")


class Constants:
    """A context manager; `number` is that of its file, after those of the source."""

    def __init__(self, number: int) -> None:
        self.number, self.at = number, 0
        self.file: IO[bytes] | None = None  # opened when there is something to hold

    def __enter__(self) -> Constants:
        return self

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()

    @property
    def descriptors(self) -> list[int]:
        return [] if self.file is None else [self.file.fileno()]

    def add(self, value: int) -> Tensor:
        """A tensor of one int64."""
        if self.file is None:
            self.file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (closed by __exit__)
        self.file.write(INT64.pack(value))
        span = ByteRange(self.at, INT64.size, self.number)
        self.at += INT64.size
        return Tensor("int64", (), (), (span,))

    def read(self, sources: Sequence[int], tensor: Tensor) -> int:
        """The value of such a tensor in one of the sources; raises BadCheckpoint when that ends before."""
        (span,) = tensor.spans
        value: int = INT64.unpack(read_range(sources[span.file], span.offset, span.length))[0]
        return value
