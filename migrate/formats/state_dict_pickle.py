"""The pickle of a torch checkpoint as `torch.save` writes it, opcode by opcode, without torch and without pickle.

Every tensor is a call of torch._utils._rebuild_tensor_v2 on a storage of its own class, or, for a dtype that has no
such class, of _rebuild_tensor_v3 on untyped bytes; see torch/_tensor.py, and Lib/pickle.py for the opcodes.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .contents import Piece, Shape, product
from .torch_tensors import STORAGE_DTYPES

# dtype -> the class of torch, of those on the CPU
STORAGE_CLASSES = {dtype: name.removeprefix("torch.") for name, dtype in STORAGE_DTYPES.items() if name.count(".") == 1}
BATCH = 1000  # entries that are put into a dict at a time, as pickle does
MODEL = "model"  # where the weights stand in a training checkpoint

# What stands beside the weights, by its key: dicts, lists and tuples of plain values and of Pieces.
Beside = Mapping[str, Any]


def shared(content: Sequence[Piece], beside: Beside | None = None) -> dict[Hashable, Piece]:
    """The storages of these pieces, in order: key -> a piece that fills it.

    Pieces whose bytes are the same, seen in the same way, have one.
    """
    found: dict[Hashable, Piece] = {}
    for piece in (*content, *_pieces(beside)):
        found.setdefault(_storage(piece), piece)
    return found


def _pieces(value: Any) -> Iterator[Piece]:
    """The pieces in dicts, lists and tuples inside one another, in order."""
    if isinstance(value, Piece):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _pieces(item)


def _storage(piece: Piece) -> Hashable:
    # Tensors without elements are the same bytes wherever they stand, and share nothing.
    return (piece.tensor, piece.dtype) if piece.nbytes else (piece.name, piece.tensor)


def pickled(content: Sequence[Piece], beside: Beside | None = None) -> bytes:
    """An OrderedDict of these tensors; the storages are numbered as shared() orders them.

    beside: makes it a dict instead, with the OrderedDict under `model`, and with these entries.
    """
    numbers = {storage: str(number) for number, storage in enumerate(shared(content, beside))}
    pickle = _Pickle(numbers)
    state = _StateDict(content)
    pickle.value(state if beside is None else {MODEL: state, **beside})
    return bytes(pickle.out + b".")


class _StateDict(NamedTuple):
    """What becomes an OrderedDict."""

    pieces: Sequence[Piece]


class _Pickle:
    """Opcodes of protocol 2, and what the memo holds: what was said -> its place there.

    numbers: storage -> its name in the file.
    """

    def __init__(self, numbers: Mapping[Hashable, str]) -> None:
        self.out = bytearray(b"\x80\x02")
        self.numbers = numbers
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
        encoded = value.encode("utf-8", "surrogatepass")  # as pickle does
        self.again(b"X" + struct.pack("<I", len(encoded)) + encoded)

    def name(self, module: str, name: str) -> None:
        self.again(f"c{module}\n{name}\n".encode())

    def integer(self, value: int) -> None:
        if 0 <= value < 1 << 8:
            self.out += struct.pack("<cB", b"K", value)
        elif 0 <= value < 1 << 16:
            self.out += struct.pack("<cH", b"M", value)
        elif -(1 << 31) <= value < 1 << 31:
            self.out += struct.pack("<ci", b"J", value)
        else:
            size = value.bit_length() // 8 + 1
            self.out += struct.pack("<cB", b"\x8a", size) + value.to_bytes(size, "little", signed=True)

    def value(self, value: Any) -> None:
        """Say a tensor, or a dict or list of such, or a plain value."""
        if isinstance(value, Piece):
            self.tensor(value)
        elif isinstance(value, _StateDict):
            self.ordered_dict()
            self.items([(piece.name, piece) for piece in value.pieces])
        elif isinstance(value, dict):
            self.out += b"}"
            self.remember()
            self.items(list(value.items()))
        elif isinstance(value, list):
            self.out += b"]"
            self.remember()
            self.batches([[item] for item in value], b"ae")
        elif isinstance(value, tuple):
            self.out += b"("
            for item in value:
                self.value(item)
            self.out += b"t"
            self.remember()
        elif isinstance(value, str):
            self.text(value)
        elif isinstance(value, float):
            self.out += struct.pack(">cd", b"G", value)
        elif value is None or isinstance(value, bool):
            self.out += {None: b"N", True: b"\x88", False: b"\x89"}[value]
        else:
            self.integer(value)

    def items(self, items: Sequence[tuple[Any, Any]]) -> None:
        self.batches(items, b"su")

    def batches(self, groups: Sequence[Sequence[Any]], codes: bytes) -> None:
        """Put what is said into the dict or list before it, by the code for one or the one for several."""
        for start in range(0, len(groups), BATCH):
            batch = groups[start : start + BATCH]
            several = len(batch) > 1
            self.out += b"(" * several
            for group in batch:
                for item in group:
                    self.value(item)
            self.out.append(codes[several])

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
        kind = STORAGE_CLASSES.get(piece.dtype)
        self.name("torch._utils", "_rebuild_tensor_v2" if kind else "_rebuild_tensor_v3")
        self.out += b"(("
        self.text("storage")
        self.name(*(("torch", kind) if kind else ("torch.storage", "UntypedStorage")))
        self.text(self.numbers[_storage(piece)])
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
