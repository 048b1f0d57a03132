"""The pickle of a state dict as `torch.save` writes it, opcode by opcode, without torch and without pickle.

Every tensor is a call of torch._utils._rebuild_tensor_v2 on a storage of its own class, or, for a dtype that has no
such class, of _rebuild_tensor_v3 on untyped bytes; see torch/_tensor.py, and Lib/pickle.py for the opcodes.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from .contents import Piece, Shape, product
from .torch_tensors import STORAGE_DTYPES

# dtype -> the class of torch, of those on the CPU
STORAGE_CLASSES = {dtype: name.removeprefix("torch.") for name, dtype in STORAGE_DTYPES.items() if name.count(".") == 1}
BATCH = 1000  # entries that are put into a dict at a time, as pickle does


def shared(content: Sequence[Piece], beside: Mapping[str, Any] | None = None) -> dict[Hashable, Piece]:
    """The storages of these pieces, in order: key -> a piece that fills it; those of `beside` come after.

    Pieces whose bytes are the same, seen in the same way, have one.
    """
    found: dict[Hashable, Piece] = {}
    for piece in (*content, *_pieces(beside)):
        found.setdefault(_storage(piece), piece)
    return found


def _pieces(value: Any) -> Iterator[Piece]:
    """The pieces in a tree of dicts, lists and tuples."""
    if isinstance(value, Piece):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _pieces(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _pieces(item)


def _storage(piece: Piece) -> Hashable:
    # Tensors without elements are the same bytes wherever they stand, and share nothing.
    return (piece.tensor, piece.dtype) if piece.nbytes else piece.name


def pickled(content: Sequence[Piece], beside: Mapping[str, Any] | None = None) -> bytes:
    """An OrderedDict of these tensors; the storages are numbered as shared() orders them.

    beside: dicts, lists, tuples, texts, numbers and pieces that stand beside it; then it is a dict, and the tensors are
    under `model`.
    """
    numbers = {storage: str(number) for number, storage in enumerate(shared(content, beside))}
    pickle = _Pickle(numbers)
    if beside is None:
        pickle.state_dict(content)
    else:
        pickle.out += b"}("
        pickle.text("model")
        pickle.state_dict(content)
        for key, value in beside.items():
            pickle.text(key)
            pickle.value(value)
        pickle.out += b"u"
    return bytes(pickle.out + b".")


class _Pickle:
    """Opcodes of protocol 2, and what the memo holds: what was said -> its place there."""

    def __init__(self, numbers: Mapping[Hashable, str]) -> None:
        self.numbers = numbers  # of the storages
        self.out = bytearray(b"\x80\x02")
        self.memo: dict[bytes, int] = {}
        self.count = 0

    def remember(self) -> None:
        self.out += struct.pack("<cB", b"q", self.count) if self.count < 256 else struct.pack("<cI", b"r", self.count)
        self.count += 1

    def again(self, said: bytes) -> None:
        """Say something, or where it was said before."""
        place = self.memo.setdefault(said, self.count)
        if place < self.count:
            self.out += struct.pack("<cB", b"h", place) if place < 256 else struct.pack("<cI", b"j", place)
        else:
            self.out += said
            self.remember()

    def text(self, value: str) -> None:
        encoded = value.encode()
        self.again(b"X" + struct.pack("<I", len(encoded)) + encoded)

    def name(self, module: str, name: str) -> None:
        self.again(f"c{module}\n{name}\n".encode())

    def state_dict(self, content: Sequence[Piece]) -> None:
        self.ordered_dict()
        for start in range(0, len(content), BATCH):
            batch = content[start : start + BATCH]
            self.out += b"(" if len(batch) > 1 else b""
            for piece in batch:
                self.text(piece.name)
                self.tensor(piece)
            self.out += b"u" if len(batch) > 1 else b"s"

    def value(self, value: Any) -> None:
        """Anything that may stand beside a state dict."""
        if isinstance(value, Piece):
            self.tensor(value)
        elif value is None or isinstance(value, bool):
            self.out += {None: b"N", True: b"\x88", False: b"\x89"}[value]
        elif isinstance(value, int):
            self.integer(value)
        elif isinstance(value, float):
            self.out += struct.pack(">cd", b"G", value)
        elif isinstance(value, str):
            self.text(value)
        elif isinstance(value, dict):
            self.out += b"}("
            for key, item in value.items():
                self.value(key)
                self.value(item)
            self.out += b"u"
        else:
            self.out += b"(" if isinstance(value, tuple) else b"]("
            for item in value:
                self.value(item)
            self.out += b"t" if isinstance(value, tuple) else b"e"

    def integer(self, value: int) -> None:
        if -(1 << 31) <= value < 0:
            self.out += struct.pack("<ci", b"J", value)
        elif value < 1 << 8:
            self.out += struct.pack("<cB", b"K", value)
        elif value < 1 << 16:
            self.out += struct.pack("<cH", b"M", value)
        elif value < 1 << 31:
            self.out += struct.pack("<ci", b"J", value)
        else:
            size = value.bit_length() // 8 + 1
            self.out += struct.pack("<cB", b"\x8a", size) + value.to_bytes(size, "little", signed=True)

    def integers(self, values: Shape) -> None:
        """A tuple."""
        short = len(values) <= 3
        self.out += b"" if short else b"("
        for value in values:
            self.integer(value)
        self.out += b")\x85\x86\x87"[len(values) : len(values) + 1] if short else b"t"
        if values:
            self.remember()

    def ordered_dict(self) -> None:
        self.name("collections", "OrderedDict")
        self.out += b")R"
        self.remember()

    def tensor(self, piece: Piece) -> None:
        """A call that builds a contiguous tensor on its storage."""
        key = self.numbers[_storage(piece)]
        kind = STORAGE_CLASSES.get(piece.dtype)
        self.name("torch._utils", "_rebuild_tensor_v2" if kind else "_rebuild_tensor_v3")
        self.out += b"(("
        self.text("storage")
        self.name(*(("torch", kind) if kind else ("torch.storage", "UntypedStorage")))
        self.text(key)
        self.text("cpu")
        self.integer(product(piece.shape) if kind else piece.nbytes)
        self.out += b"t"
        self.remember()
        self.out += b"QK\0"
        self.integers(piece.shape)
        self.integers(_strides(piece.shape))
        self.out += b"\x89"  # needs no gradient
        self.ordered_dict()  # of its hooks
        if not kind:
            self.name("torch", piece.dtype)
        self.out += b"t"
        self.remember()
        self.out += b"R"
        self.remember()


def _strides(shape: Shape) -> Shape:
    """Those of a contiguous tensor, as torch gives them also to one without elements."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
