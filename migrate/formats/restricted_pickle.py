"""Read the pickle inside a torch checkpoint without running anything it asks for.

A pickle is a program. This file interprets the opcodes that `torch.save` emits (protocols 2 to 5, under Python 2 too)
and nothing else, and it never imports, calls or builds what the pickle names: a global becomes a `Global` (a name), a
call becomes a `Call` (a name and its arguments), a storage becomes a `Storage` (where the bytes are). Only dicts,
lists, tuples, sets and constants become Python objects. So there is no object whose `__setstate__`, `__reduce__` or
attributes a hostile file could reach, which is why this is not a subclass of `pickle.Unpickler`: that one calls and
sets attributes, and allocates its memo by the largest index the file mentions.

The opcodes are described in Python's `Lib/pickletools.py`; the storage references in `torch/serialization.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...errors import BadCheckpoint, Unsupported
from .pickled import Call, Global, Storage, allow, hashable, legacy_reference, method, python2_text, zip_reference

MAX_PICKLE = 32 << 20  # bytes; a state dict takes about 130 bytes a tensor
MAX_CONTAINERS = 2_000_000  # an empty set takes one byte in the pickle and 216 in memory
MAX_INTEGER = 1024  # bytes in one integer; seeds and counters need 16

UINT16, UINT32, UINT64, INT32, DOUBLE = map(struct.Struct, ("<H", "<I", "<Q", "<i", ">d"))

MAPPINGS = frozenset({"collections.OrderedDict", "collections.defaultdict", "collections.Counter", "builtins.dict"})


class _Mark:
    """The place on the stack where the items of a tuple, list or dict begin."""


MARK = _Mark()


class Loaded(NamedTuple):
    """What a pickle describes, where it ended, and the storages it refers to, as it first does, by their keys."""

    value: Any
    end: int
    storages: Mapping[str, Storage]


def load(data: bytes) -> Any:
    """Return what the pickle describes, with names, calls and storages left inert.

    Raises BadCheckpoint when the bytes are damaged, too large, or name what only attacks name (which the message
    gives); Unsupported for opcodes that torch.save never writes.
    """
    if len(data) > MAX_PICKLE:
        raise BadCheckpoint(f"its pickle holds {len(data):,} bytes, more than any state dict needs ({MAX_PICKLE:,})")
    return _Machine(data, legacy=False).run().value


def load_legacy(data: bytes) -> Loaded:
    """Read one of the pickles of a file from before torch 1.6, which other bytes may follow; raises as load does."""
    return _Machine(data, legacy=True).run()


class _Machine:
    """The pickle machine: a stack, a memo and a position; one method for each opcode."""

    def __init__(self, data: bytes, *, legacy: bool) -> None:
        self.data, self.at = data, 0
        self.resolve: Callable[[Any], Storage | Global] = legacy_reference if legacy else zip_reference
        self.storages: dict[str, Storage] = {}
        self.stack: list[Any] = []
        self.push: Callable[[Any], None] = self.stack.append
        self.memo: dict[int, Any] = {}
        self.filled = self.containers = 0

    def run(self) -> Loaded:
        data, operations = self.data, OPERATIONS
        try:
            while True:
                code = data[self.at]
                self.at += 1
                if code == 0x2E:  # STOP
                    return Loaded(self.pop(), self.at, self.storages)
                operation = operations.get(code)
                if operation is None:
                    raise Unsupported(f"its pickle uses opcode 0x{code:02x}, which torch.save does not write")
                operation(self)
        except (IndexError, KeyError, ValueError, TypeError, struct.error, OverflowError):
            # Every one of these means: fewer bytes, items or memo entries than the opcodes claim, or text that is
            # not UTF-8. Nothing else runs inside this loop.
            raise BadCheckpoint(f"its pickle is damaged at byte {self.at:,} of {len(data):,}") from None

    # Reading ------------------------------------------------------------------------------------------------------

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise IndexError
        chunk = self.data[self.at : end]
        self.at = end
        return chunk

    def byte(self) -> int:
        value = self.data[self.at]  # IndexError at the end
        self.at += 1
        return value

    def number(self, form: struct.Struct) -> int:
        value: int = form.unpack_from(self.data, self.at)[0]  # struct.error at the end
        self.at += form.size
        return value

    def line(self) -> str:
        end = self.data.index(b"\n", self.at)
        return self.take(end - self.at + 1)[:-1].decode()

    # The stack ----------------------------------------------------------------------------------------------------

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is MARK:
            raise ValueError
        return value

    def pop_to_mark(self) -> list[Any]:
        items: list[Any] = []
        while (item := self.stack.pop()) is not MARK:
            items.append(item)
        items.reverse()
        return items

    def top(self, kind: type) -> Any:
        value = self.stack[-1]
        if type(value) is not kind:
            raise TypeError
        return value

    # Names, calls and storages ------------------------------------------------------------------------------------

    def global_(self) -> None:
        self.push(allow(self.line(), self.line()))

    def stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise TypeError
        self.push(allow(module, name))

    def reduce(self) -> None:
        args, function = self.pop(), self.pop()
        if not isinstance(function, Global) or type(args) is not tuple:
            raise TypeError
        if function.name in MAPPINGS:
            content = args[-1] if args else None
            if type(content) is dict:
                self.push(content)  # shared, not copied: a small file could ask for a million copies
            else:
                self.container({})
                if type(content) is list:
                    self.fill([item for pair in content for item in self.pair(pair)])
        elif function.name == "builtins.getattr":
            self.push(method(args))
        else:
            self.push(Call(function.name, args))

    def persistent(self) -> None:
        value = self.resolve(self.pop())
        if isinstance(value, Storage):
            self.storages.setdefault(value.key, value)
        self.push(value)

    def build(self) -> None:
        state = self.pop()
        target = self.stack[-1]
        if type(target) is Call:
            target.state = state
        elif type(target) is not dict:  # a state dict carries `_metadata` this way; it says nothing we need
            raise TypeError

    # Containers ---------------------------------------------------------------------------------------------------

    def container(self, empty: Any) -> None:
        self.containers += 1
        if self.containers > MAX_CONTAINERS:
            raise BadCheckpoint(f"its pickle makes more than {MAX_CONTAINERS:,} containers; no state dict does")
        self.push(empty)

    def tuple_(self, count: int) -> None:
        items = tuple(self.pop() for _ in range(count))
        self.push(items[::-1])

    def append(self) -> None:
        self.extend([self.pop()])

    def appends(self) -> None:
        self.extend(self.pop_to_mark())

    def extend(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not Call:  # a deque, or an object that behaves as a list; its items go nowhere
            self.top(list).extend(items)

    def pair(self, pair: Any) -> Any:
        if type(pair) not in (tuple, list) or len(pair) != 2:
            raise TypeError
        return pair

    def set_item(self) -> None:
        value, key = self.pop(), self.pop()
        self.fill([key, value])

    def set_items(self) -> None:
        self.fill(self.pop_to_mark())

    def fill(self, items: list[Any]) -> None:
        """Put key, value, key, value, … into the mapping on top."""
        self.filled += len(items)
        if len(items) % 2 or self.filled > len(self.data):  # an item takes at least a byte, unless it is a bomb
            raise ValueError
        if type(self.stack[-1]) is Call:  # an object that behaves as a mapping; its items go nowhere
            return
        target = self.top(dict)
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[hashable(key)] = value

    def add_items(self) -> None:
        items = self.pop_to_mark()
        self.top(set).update(hashable(item) for item in items)

    def integer(self, length: int) -> None:
        if length > MAX_INTEGER:
            raise ValueError
        self.push(int.from_bytes(self.take(length), "little", signed=True))

    def text(self, length: int) -> None:
        self.push(self.take(length).decode("utf-8", "surrogatepass"))

    def put(self, index: int) -> None:
        self.memo[index] = self.stack[-1]


def _protocol(machine: _Machine) -> None:
    if not 2 <= machine.byte() <= 5:
        raise ValueError


Operation = Callable[[_Machine], Any]
OPERATIONS: dict[int, Operation] = {
    ord(code): operation
    for code, operation in {
        "\x80": _protocol,
        "\x95": lambda m: m.take(8),  # FRAME: a hint about buffering
        "(": lambda m: m.push(MARK),
        "0": lambda m: m.pop(),
        "1": lambda m: m.pop_to_mark(),
        "2": lambda m: m.push(m.stack[-1]),
        "N": lambda m: m.push(None),
        "\x88": lambda m: m.push(True),
        "\x89": lambda m: m.push(False),
        "K": lambda m: m.push(m.byte()),
        "M": lambda m: m.push(m.number(UINT16)),
        "J": lambda m: m.push(m.number(INT32)),
        "\x8a": lambda m: m.integer(m.byte()),
        "\x8b": lambda m: m.integer(m.number(UINT32)),
        "G": lambda m: m.push(DOUBLE.unpack(m.take(8))[0]),
        "X": lambda m: m.text(m.number(UINT32)),
        "\x8c": lambda m: m.text(m.byte()),
        "\x8d": lambda m: m.text(m.number(UINT64)),
        "U": lambda m: m.push(python2_text(m.take(m.byte()))),
        "T": lambda m: m.push(python2_text(m.take(m.number(UINT32)))),
        "B": lambda m: m.push(m.take(m.number(UINT32))),
        "C": lambda m: m.push(m.take(m.byte())),
        "\x8e": lambda m: m.push(m.take(m.number(UINT64))),
        ")": lambda m: m.push(()),
        "t": lambda m: m.push(tuple(m.pop_to_mark())),
        "\x85": lambda m: m.tuple_(1),
        "\x86": lambda m: m.tuple_(2),
        "\x87": lambda m: m.tuple_(3),
        "]": lambda m: m.container([]),
        "l": lambda m: m.push(m.pop_to_mark()),
        "a": _Machine.append,
        "e": _Machine.appends,
        "}": lambda m: m.container({}),
        "s": _Machine.set_item,
        "u": _Machine.set_items,
        "\x8f": lambda m: m.container(set()),
        "\x90": _Machine.add_items,
        "\x91": lambda m: m.push(frozenset(hashable(item) for item in m.pop_to_mark())),
        "h": lambda m: m.push(m.memo[m.byte()]),
        "j": lambda m: m.push(m.memo[m.number(UINT32)]),
        "q": lambda m: m.put(m.byte()),
        "r": lambda m: m.put(m.number(UINT32)),
        "\x94": lambda m: m.put(len(m.memo)),
        "c": _Machine.global_,
        "\x93": _Machine.stack_global,
        "R": _Machine.reduce,
        "\x81": _Machine.reduce,  # NEWOBJ: cls.__new__(cls, *args); as inert as a call
        "b": _Machine.build,
        "Q": _Machine.persistent,
    }.items()
}
