"""What the names, calls and storages of a checkpoint's pickle become: placeholders, of which none can do anything."""

from __future__ import annotations

from typing import Any, NamedTuple


class Global(NamedTuple):
    """A name that the pickle mentions, such as `torch.float32`; nothing was imported."""

    name: str


class Storage(NamedTuple):
    """A block of bytes in the file: `key` says which, `numel` counts elements of `kind`.

    `kind` is the storage class, such as `torch.FloatStorage`; for `torch.storage.UntypedStorage` numel counts bytes.
    `view` is the part of the block that counts, as offset and number of elements; None means all of it.
    """

    kind: str
    key: str
    numel: int
    view: tuple[int, int] | None = None


class Call:
    """A call that the pickle asks for and that was not made: `name(*args)`, then `state` set on the result."""

    __slots__ = ("args", "name", "state")

    def __init__(self, name: str, args: tuple[Any, ...]) -> None:
        self.name, self.args, self.state = name, args, None


MAX_KEY = 100  # items in a tuple that is a key
COMMON = 1 << 20  # of a number that is a key: an index
SCALARS = (str, int, float, bytes, type(None), Global, Call)  # a Call is hashed by its identity


def zip_reference(reference: Any) -> Storage:
    """The storage that a persistent id of the zip format refers to; raises TypeError when it is none."""
    if type(reference) is not tuple or len(reference) != 5 or reference[0] != "storage":
        raise TypeError
    return _storage(*reference[1:])


def legacy_reference(reference: Any) -> Storage | Global:
    """What a persistent id from before torch 1.6 refers to; raises TypeError when it is no such id.

    That is a storage, perhaps only part of one, or the class of a module; its source code, which comes with it, is not
    looked at.
    """
    if type(reference) is not tuple or len(reference) not in (4, 6):
        raise TypeError
    if len(reference) == 4 and reference[0] == "module" and isinstance(reference[1], Global):
        return reference[1]
    if len(reference) != 6 or reference[0] != "storage":
        raise TypeError
    storage, view = _storage(*reference[1:5]), reference[5]
    if view is None:
        return storage
    if type(view) is not tuple or [type(item) for item in view] != [str, int, int]:
        raise TypeError
    return storage._replace(view=view[1:])


def _storage(kind: Any, key: Any, _: Any, numel: Any) -> Storage:
    if not isinstance(kind, Global) or not isinstance(key, str) or type(numel) is not int:
        raise TypeError
    return Storage(kind.name, key, numel)


def is_common_key(key: Any) -> bool:
    """Whether it is a name, an index or an object: of others somebody can choose many that collide in a dict."""
    return type(key) in (str, Call, bytes, Global) or (type(key) is int and 0 <= key < COMMON)


def hashable(key: Any) -> Any:
    """Return the key when it may stand in a dict; raises TypeError.

    Hashing a deeply nested tuple would overflow the C stack, and huge integers can be made to collide.
    """
    if type(key) is tuple and len(key) > MAX_KEY:  # a long one would be hashed anew each time that it is said
        raise TypeError
    for item in key if type(key) is tuple else (key,):
        if not isinstance(item, SCALARS) or (isinstance(item, int) and abs(item) >= 1 << 60):
            raise TypeError
    return key


def python2_text(content: bytes) -> str | bytes:
    """Python 2's str: text, unless it cannot be, as in the bytes of a NumPy number."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content
