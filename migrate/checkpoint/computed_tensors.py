"""Content that stands in no source, such as a single number: it goes by way of a file without a name."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, NamedTuple

from ...errors import BadCheckpoint
from .formats.byte_copy import cast, castable, chunks, read_range, widened
from .formats.reader import ByteRange, Piece, Shape, Tensor, product, row_major

NUMBERS = {
    name: struct.Struct(f"<{code}")
    for name, code in {"float64": "d", "float32": "f", "int64": "q", "int32": "i", "int16": "h", "uint8": "B"}.items()
}


class Maker(NamedTuple):
    """How to describe an inert tensor of the file, to read a single number of it, to make one that stands nowhere yet
    (dtype, bytes, shape), and to see the entries of a state dict or of a model that was saved whole."""

    tensor: Callable[[Any], Tensor]
    number: Callable[[Tensor], float]
    constant: Callable[[str, bytes, Shape], Tensor]
    weights: Callable[[Any], Mapping[Any, Any]] = dict


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

    def add(self, dtype: str, content: bytes, shape: Shape) -> Tensor:
        """A tensor of this content."""
        if self.file is None:
            import tempfile  # here, and others elsewhere: a small conversion is mostly imports

            self.file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (closed by __exit__)
        self.file.write(content)
        span = ByteRange(self.at, len(content), self.number)
        self.at += len(content)
        return Tensor(dtype, shape, row_major(shape), (span,))

    def add_integer(self, value: int) -> Tensor:
        """A tensor of one int64."""
        return self.add("int64", struct.pack("<q", value), ())

    def arrays(self, sources: Sequence[int]) -> tuple[Callable[[Tensor], Any], Callable[[Any, str], Tensor]]:
        """Functions that read a tensor of the sources as an array of float64, and keep such an array in a dtype.

        The first one raises BadCheckpoint when a source ends before.
        """
        return lambda tensor: array(sources, tensor), self._keep

    def _keep(self, values: Any, dtype: str) -> Tensor:
        shape = tuple(values.shape)
        wide = Tensor("float64", shape, row_major(shape), ())
        return self.add(dtype, cast(values.view("u8"), Piece("", dtype, shape, wide)), shape)


def array(sources: Sequence[int], tensor: Tensor) -> Any:
    """A floating-point tensor of one of the sources, as float64, in its shape."""
    import numpy as np

    blocks = chunks(sources, Piece("", tensor.dtype, tensor.shape, tensor))
    content = b"".join(
        block if isinstance(block, bytes) else read_range(sources[block.file], block.offset, block.length)
        for block in blocks
    )
    bits = np.frombuffer(content, f"u{tensor.item_size}")
    wide = widened(bits, tensor.dtype) if castable(tensor.dtype) else np.frombuffer(content, tensor.dtype)
    return wide.astype(np.float64).reshape(tensor.shape)


def number(sources: Sequence[int], tensor: Tensor) -> float:
    """The value of a tensor of one number in one of the sources.

    Raises BadCheckpoint when the source ends before, or for what is no single number.
    """
    form = NUMBERS.get(tensor.dtype)
    if form is None or product(tensor.shape) != 1:
        raise BadCheckpoint(f"a tensor of {tensor.dtype} {list(tensor.shape)} stands where a single number should")
    content = b"".join(read_range(sources[span.file], span.offset, span.length) for span in tensor.spans)
    value: float = form.unpack(content)[0]
    return value
