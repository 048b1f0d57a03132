"""Read the pickle inside a torch checkpoint without running anything it asks for.

A pickle is a program. This file interprets the opcodes that `torch.save` emits (protocols 2 to 5, under Python 2 too)
and nothing else, and it never imports, calls or builds what the pickle names: a global becomes a `Global` (a name), a
call becomes a `Call` (a name and its arguments), a storage becomes a `Storage` (where the bytes are). Only dicts,
lists, tuples, sets and constants become Python objects. So there is no object whose `__setstate__`, `__reduce__` or
attributes a hostile file could reach, which is why this is not a subclass of `pickle.Unpickler`: that one calls and
sets attributes, and allocates its memo by the largest index the file mentions.

A byte of a pickle can take hundreds of bytes of memory. So every opcode has a price, the most memory that it can take,
and the budget of a pickle grows with its length, up to MAX_MEMORY.

The opcodes are described in Python's `Lib/pickletools.py`; the storage references in `torch/serialization.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, NamedTuple

from ....errors import BadCheckpoint, Unsupported
from .pickle_names import MAX_NAME, RENAMED, is_method_refused, is_refused
from .pth_tensors import Call, Global, Storage, legacy_reference, zip_reference

MAX_PICKLE = 32 << 20  # bytes; a state dict takes about 110 bytes a tensor
MAX_STEPS = 10_000_000  # opcodes; a state dict takes about 30 a tensor
MAX_MEMORY = 272 << 20  # bytes that the objects of one pickle may take, by the prices below
LEAST_MEMORY = 32 << 20  # bytes that they may take, however short the pickle is
MEMORY_OF_A_BYTE = 40  # bytes that they may take per byte of the pickle; a state dict takes ten, a whole model twenty
MAX_INTEGER = 1024  # bytes in one integer; seeds and counters need 16
MAX_KEY = 100  # items in a tuple that is a key
COMMON = 1 << 20  # integers below this are ordinary keys: an index
MAX_ODD_KEYS = 20_000  # keys such as floats and large integers, which an attacker can choose so that they all collide

SCALARS = (str, int, float, bytes, type(None), Global, Call)  # a Call is hashed by its identity
UINT16, UINT32, UINT64, INT32, DOUBLE = map(struct.Struct, ("<H", "<I", "<Q", "<i", ">d"))

MAPPINGS = frozenset({"collections.OrderedDict", "collections.defaultdict", "collections.Counter", "builtins.dict"})
# These names build plain data only where they are called in the way pickle calls them.
GETATTR = "builtins.getattr"
PARTIAL = frozenset({"functools.partial", "_functools.partial"})
GETITEM = frozenset({"operator.getitem", "_operator.getitem"})
CALLED = frozenset({GETATTR, *PARTIAL, *GETITEM})

# Bytes of memory in CPython 3.10 to 3.12 on 64 bits. Places on the stack are free: MAX_STEPS bounds them.
PLACE, NUMBER, TEXT, TUPLE, LIST, DICT, SET, CALL, NAME = 8, 32, 56, 56, 88, 80, 232, 72, 256
REFERENCE = 208  # a storage, and its key in the list of all
ITEM, FIRST, ELEMENT, FAR = 104, 168, 112, 160  # of a dict (and its first), of a set, of the memo filled out of order


class _Mark:
    """The place on the stack where the items of a tuple, list or dict begin."""


MARK = _Mark()


class Loaded(NamedTuple):
    """What a pickle describes, where it ended, and the storages it refers to, by their keys, each as first referred to.

    refused: the names that no checkpoint needs -> how a message names them. beside: what the pickle gives to an object
    that is dropped here (the state of a dict, the items of an object), by the object's id.
    """

    value: Any
    end: int
    storages: Mapping[str, Storage]
    refused: Mapping[str, str]
    beside: Mapping[int, list[Any]]

    def refused_in(self, value: Any) -> str | None:
        """A refused name anywhere in the value, as a message names it; None where there is none."""
        if not self.refused:
            return None
        return next((self.refused[name] for name in _names_in(value, self.beside) if name in self.refused), None)


def load(data: bytes) -> Any:
    """Return what the pickle describes, with names, calls and storages left inert.

    Raises BadCheckpoint when the bytes are damaged, too large, or use names that only attacks use (the message lists
    them); Unsupported for opcodes that torch.save never writes.
    """
    found = read(data)
    if found.refused:
        raise hostile(found.refused.values())
    return found.value


def read(data: bytes, *, legacy: bool = False, memory: int | None = None) -> Loaded:
    """Read a pickle that may use names that only attacks use; `refused_in` finds them. Raises as load does otherwise.

    legacy: the pickle is in a file from before torch 1.6, and other bytes may follow it. memory: bytes that it may
    take, by default MAX_MEMORY.
    """
    if len(data) > MAX_PICKLE and not legacy:
        raise BadCheckpoint(f"its pickle holds {len(data):,} bytes, more than any state dict needs ({MAX_PICKLE:,})")
    return _Machine(data, legacy=legacy, memory=MAX_MEMORY if memory is None else memory).run()


def hostile(names: Iterable[str]) -> BadCheckpoint:
    """The error for refused names."""
    shown, *more = names
    also = f" (and {len(more)} more such names)" if more else ""
    return BadCheckpoint(
        f"its pickle names {shown}, which no checkpoint needs and attacks use{also}; nothing was run. "
        "If the file is your own, save model.state_dict() alone; if not, do not load it in torch"
    )


class _Machine:
    """The pickle machine: a stack, a memo and a position; one method for each opcode.

    left: bytes of memory that may still be spent. far: entries of the memo that were not put there in order.
    """

    def __init__(self, data: bytes, *, legacy: bool, memory: int) -> None:
        self.data, self.at = data, 0
        self.left = min(memory, LEAST_MEMORY + MEMORY_OF_A_BYTE * len(data))
        self.resolve: Callable[[Any], Storage | Global] = legacy_reference if legacy else zip_reference
        self.storages: dict[str, Storage] = {}
        self.stack: list[Any] = []
        self.push: Callable[[Any], None] = self.stack.append
        self.memo: list[Any] = []
        self.far: dict[int, Any] = {}
        self.odd_keys = 0
        self.refused: dict[str, str] = {}
        self.beside: dict[int, list[Any]] = {}
        self.called: set[str] = set()

    def run(self) -> Loaded:
        try:
            return self.loaded()
        except (BadCheckpoint, Unsupported):
            if not self.refused:
                raise
        raise hostile(self.refused.values())  # more important to the user than the damage

    def loaded(self) -> Loaded:
        data, operations = self.data, OPERATIONS
        try:
            for _ in repeat(None, MAX_STEPS):
                code = data[self.at]
                self.at += 1
                if code == 0x2E:  # STOP
                    break
                found = operations.get(code)
                if found is None:
                    raise Unsupported(f"its pickle uses opcode 0x{code:02x}, which torch.save does not write")
                price, operation = found
                if price:
                    self.left -= price
                    if self.left < 0:
                        self.spend(0)
                operation(self)
            else:
                raise BadCheckpoint(f"its pickle has more than {MAX_STEPS:,} opcodes, which no state dict has")
            value = self.pop()
        except (IndexError, KeyError, ValueError, TypeError, struct.error, OverflowError):
            # Each of these means that there are fewer bytes, items or memo entries than the opcodes claim, or text
            # that is not UTF-8. Nothing else runs inside this loop.
            raise BadCheckpoint(f"its pickle is damaged at byte {self.at:,} of {len(data):,}") from None
        for name in self.called and _names_in(value, self.beside, called=False):
            if name in self.called:
                self.refuse(name)
        return Loaded(value, self.at, self.storages, self.refused, self.beside)

    def spend(self, nbytes: int) -> None:
        """Take from the memory budget; raises BadCheckpoint when it is used up."""
        self.left -= nbytes
        if self.left < 0:
            raise BadCheckpoint(
                f"its pickle of {len(self.data):,} bytes asks for more memory than any state dict of that size needs, "
                f"at byte {self.at:,}; save model.state_dict() alone"
            )

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
        self.mention(self.line(), self.line())

    def stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise TypeError
        self.mention(module, name)

    def mention(self, module: str, name: str) -> None:
        """Push a name of a module."""
        if len(module) + len(name) > MAX_NAME:
            raise ValueError
        full = f"{RENAMED.get(module, module)}.{name}"
        if is_refused(module, name):
            self.refuse(full)
        elif full in CALLED:
            self.called.add(full)
        self.push(Global(full))

    def refuse(self, name: str, shown: str | None = None) -> None:
        """Note a name that no checkpoint needs, and how a message names it."""
        shown = name if shown is None else shown
        if len(self.refused) < MAX_NAME:
            self.refused.setdefault(name, shown if shown.isprintable() and len(shown) <= 200 else ascii(shown)[:200])

    def reduce(self) -> None:
        args, function = self.pop(), self.pop()
        if not isinstance(function, Global) or type(args) is not tuple:
            raise TypeError
        name = function.name
        if name in MAPPINGS:
            self.mapping(args)
            return
        if name in CALLED:
            self.check_reduced(name, args)
        self.push(Call(name, args))

    def mapping(self, args: tuple[Any, ...]) -> None:
        content = args[-1] if args else None
        if type(content) is dict:
            self.push(content)  # shared, not copied: a small file could ask for a million copies
        else:
            self.spend(DICT - CALL)
            self.push({})
            if type(content) is list:
                self.fill([item for pair in content for item in self.pair(pair)])
        if args and type(args[0]) not in (dict, list):  # the default factory of a defaultdict
            self.set_beside(args)

    def check_reduced(self, name: str, args: tuple[Any, ...]) -> None:
        """Refuse the call of a name that builds data, where pickle would not call it so."""
        first = args[0] if args else None
        if name == GETATTR:  # with it pickle names a method of an object, such as a hook
            attribute = args[1] if len(args) == 2 and isinstance(args[1], str) else ""
            plain = isinstance(first, (Global, Call)) and attribute.isidentifier() and not attribute.startswith("__")
            if not plain or (isinstance(first, Global) and is_method_refused(first.name, attribute)):
                of = first.name if isinstance(first, Global) else "an object"
                self.refuse(name, f"the attribute {ascii(attribute)[:80]} of {of}")
        elif name in PARTIAL:
            if not isinstance(first, (Global, Call)):
                self.refuse(name)
        elif not (isinstance(first, Global) and first.name.startswith("typing.")):  # typing.List[int]
            self.refuse(name)

    def persistent(self) -> None:
        value = self.resolve(self.pop())
        if isinstance(value, Storage):
            self.storages.setdefault(value.key, value)
        self.push(value)

    def build(self) -> None:
        state = self.pop()
        target = self.stack[-1]
        if type(target) is Call:
            if target.state is not None:
                self.set_beside(target.state)
            target.state = state
        elif type(target) is dict:  # a state dict carries `_metadata` this way, which is not needed
            self.set_beside(state)
        else:
            raise TypeError

    def set_beside(self, thing: Any) -> None:
        """Note what is given to the object on top of the stack and dropped here."""
        self.spend(FAR)
        self.beside.setdefault(id(self.stack[-1]), [self.stack[-1]]).append(thing)  # the object, so that its id stays

    # Containers ---------------------------------------------------------------------------------------------------

    def tuple_(self, count: int) -> None:
        items = tuple(self.stack[-count:])
        if len(items) < count or MARK in items:
            raise ValueError
        del self.stack[-count:]
        self.push(items)

    def long_tuple(self) -> None:
        items = tuple(self.pop_to_mark())
        self.spend(PLACE * len(items))
        self.push(items)

    def long_list(self) -> None:
        items = self.pop_to_mark()
        self.spend(PLACE * len(items))
        self.push(items)

    def append(self) -> None:
        self.extend([self.pop()])

    def appends(self) -> None:
        self.extend(self.pop_to_mark())

    def extend(self, items: list[Any]) -> None:
        self.spend(PLACE * len(items))
        if type(self.stack[-1]) is Call:  # a deque, or an object that behaves as a list
            self.set_beside(items)
        else:
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
        if len(items) % 2:
            raise ValueError
        self.spend(ITEM // 2 * len(items))
        if type(self.stack[-1]) is Call:  # an object that behaves as a mapping
            self.set_beside(items)
            return
        target = self.top(dict)
        if not target:
            self.spend(FIRST)
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[key if type(key) is str else self.key(key)] = value

    def key(self, key: Any) -> Any:
        """The key, if it may stand in a dict or set."""
        if not is_common_key(key):
            self.odd_keys += 1
            if self.odd_keys > MAX_ODD_KEYS:
                raise BadCheckpoint(
                    f"its pickle has more than {MAX_ODD_KEYS:,} keys that are neither names nor small numbers; no "
                    "state dict does"
                )
        return hashable(key)

    def add_items(self) -> None:
        items = self.pop_to_mark()
        self.spend(ELEMENT * len(items))
        self.top(set).update(map(self.key, items))

    def frozen(self) -> None:
        items = self.pop_to_mark()
        self.spend(ELEMENT * len(items))
        self.push(frozenset(map(self.key, items)))

    def integer(self, length: int) -> None:
        if length > MAX_INTEGER:
            raise ValueError
        self.spend(length)
        self.push(int.from_bytes(self.take(length), "little", signed=True))

    def text(self, length: int) -> None:
        chunk = self.take(length)
        self.left -= length if chunk.isascii() else 4 * length  # one wide letter makes all of them wide
        self.push(chunk.decode("utf-8", "surrogatepass"))

    def old_text(self, length: int) -> None:
        self.spend(4 * length)
        self.push(python2_text(self.take(length)))

    def bytes_(self, length: int) -> None:
        self.spend(length)
        self.push(self.take(length))

    # The memo -----------------------------------------------------------------------------------------------------

    def put(self, index: int) -> None:
        if index == len(self.memo):
            self.memo.append(self.stack[-1])
        elif index < len(self.memo):
            self.memo[index] = self.stack[-1]
        else:
            self.spend(FAR)
            self.far[index] = self.stack[-1]

    def get(self, index: int) -> None:
        self.push(self.memo[index] if index < len(self.memo) else self.far[index])

    # The most frequent opcodes, in as few steps as possible.

    def short_put(self) -> None:
        self.put(self.byte())

    def long_put(self) -> None:
        index: int = UINT32.unpack_from(self.data, self.at)[0]
        self.at += 4
        if index == len(self.memo):
            self.memo.append(self.stack[-1])
        else:
            self.put(index)

    def short_get(self) -> None:
        index = self.data[self.at]
        self.at += 1
        self.push(self.memo[index] if index < len(self.memo) else self.far[index])

    def small_number(self) -> None:
        self.push(self.data[self.at])
        self.at += 1


def is_common_key(key: Any) -> bool:
    """Whether it is a name, an index or an object: other keys can be chosen so that they collide in a dict."""
    return type(key) in (str, Call, bytes, Global) or (type(key) is int and 0 <= key < COMMON)


def hashable(key: Any) -> Any:
    """Return the key when it may stand in a dict; raises TypeError.

    Hashing a deeply nested tuple would overflow the C stack, and huge integers can be made to collide.
    """
    if type(key) is tuple and len(key) > MAX_KEY:  # a long one would be hashed anew at each use
        raise TypeError
    for item in key if type(key) is tuple else (key,):
        if not isinstance(item, SCALARS) or (isinstance(item, int) and abs(item) >= 1 << 60):
            raise TypeError
    return key


def python2_text(content: bytes) -> str | bytes:
    """Python 2's str: text, or bytes where it is not valid text, as the bytes of a NumPy number."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def _names_in(value: Any, beside: Mapping[int, list[Any]], *, called: bool = True) -> Iterator[str]:
    """The names that a value holds, at any depth; called: also those of its calls and storages."""
    seen: set[int] = set()
    waiting: list[Any] = [[value]]
    while waiting:
        thing = waiting.pop()
        kind = type(thing)
        if kind is Global:
            yield thing.name
            continue
        if kind in (str, int, float, bool, bytes, type(None)):
            continue
        if kind is Storage:
            if called:
                yield thing.kind
            continue
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if kind is Call:
            if called:
                yield thing.name
            waiting.append(thing.args)
            if thing.state is not None:
                waiting.append(thing.state)
        elif kind is dict:
            waiting += thing.keys()
            waiting += thing.values()
        elif kind in (list, tuple, set, frozenset):
            waiting += thing
        waiting += beside.get(id(thing), ())


def _protocol(machine: _Machine) -> None:
    if not 2 <= machine.byte() <= 5:
        raise ValueError


Operation = Callable[[_Machine], Any]
# Opcode -> the most memory that it takes, apart from what depends on a length, and what it does.
OPERATIONS: dict[int, tuple[int, Operation]] = {
    ord(code): (price, operation)
    for code, (price, operation) in {
        "\x80": (0, _protocol),
        "\x95": (0, lambda m: m.take(8)),  # FRAME: a hint about buffering
        "(": (0, lambda m: m.push(MARK)),
        "0": (0, lambda m: m.pop()),
        "1": (0, lambda m: m.pop_to_mark()),
        "2": (0, lambda m: m.push(m.stack[-1])),
        "N": (0, lambda m: m.push(None)),
        "\x88": (0, lambda m: m.push(True)),
        "\x89": (0, lambda m: m.push(False)),
        "K": (0, _Machine.small_number),
        "M": (NUMBER, lambda m: m.push(m.number(UINT16))),
        "J": (NUMBER, lambda m: m.push(m.number(INT32))),
        "\x8a": (NUMBER, lambda m: m.integer(m.byte())),
        "\x8b": (NUMBER, lambda m: m.integer(m.number(UINT32))),
        "G": (NUMBER, lambda m: m.push(DOUBLE.unpack(m.take(8))[0])),
        "X": (TEXT, lambda m: m.text(m.number(UINT32))),
        "\x8c": (TEXT, lambda m: m.text(m.byte())),
        "\x8d": (TEXT, lambda m: m.text(m.number(UINT64))),
        "U": (TEXT, lambda m: m.old_text(m.byte())),
        "T": (TEXT, lambda m: m.old_text(m.number(UINT32))),
        "B": (TEXT, lambda m: m.bytes_(m.number(UINT32))),
        "C": (TEXT, lambda m: m.bytes_(m.byte())),
        "\x8e": (TEXT, lambda m: m.bytes_(m.number(UINT64))),
        ")": (0, lambda m: m.push(())),
        "t": (TUPLE, _Machine.long_tuple),
        "\x85": (TUPLE + 1 * PLACE, lambda m: m.tuple_(1)),
        "\x86": (TUPLE + 2 * PLACE, lambda m: m.tuple_(2)),
        "\x87": (TUPLE + 3 * PLACE, lambda m: m.tuple_(3)),
        "]": (LIST, lambda m: m.push([])),
        "l": (LIST, _Machine.long_list),
        "a": (0, _Machine.append),
        "e": (0, _Machine.appends),
        "}": (DICT, lambda m: m.push({})),
        "s": (0, _Machine.set_item),
        "u": (0, _Machine.set_items),
        "\x8f": (SET, lambda m: m.push(set())),
        "\x90": (0, _Machine.add_items),
        "\x91": (SET, _Machine.frozen),
        "h": (0, _Machine.short_get),
        "j": (0, lambda m: m.get(m.number(UINT32))),
        "q": (PLACE, _Machine.short_put),
        "r": (PLACE, _Machine.long_put),
        "\x94": (PLACE, lambda m: m.put(len(m.memo) + len(m.far))),
        "c": (NAME, _Machine.global_),
        "\x93": (NAME, _Machine.stack_global),
        "R": (CALL, _Machine.reduce),
        "\x81": (CALL, _Machine.reduce),  # NEWOBJ: cls.__new__(cls, *args); as inert as a call
        "b": (0, _Machine.build),
        "Q": (REFERENCE, _Machine.persistent),
    }.items()
}
