"""What the names, calls and storages of a checkpoint's pickle become, all inert, and which names it must not mention.

Every name stays a name, so none can do harm. Names that only attacks have a use for are refused all the same: whoever
is sent such a file should hear of it, and not load it in torch. Every other name is a placeholder: the classes of a
model saved whole, a script's own configuration beside the weights.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from ...errors import BadCheckpoint


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Refused with what is inside them, so that `os.path` is `os`.
REFUSED_PACKAGES = _words(
    "os posix nt sys subprocess importlib asyncio multiprocessing ctypes cffi concurrent urllib http xmlrpc requests "
    "aiohttp httpx urllib2 urllib3 httplib distutils ensurepip pip idlelib lib2to3 "
    "torch.hub torch.jit torch.package torch.ops torch._ops torch.classes torch.multiprocessing "
    "torch.utils.cpp_extension torch.utils.model_zoo torch.distributed.rpc numpy.testing numpy.f2py numpy.distutils"
)
# Python's own, with no modules inside: `code.interact` is Python's, and `code.net.Model` is in somebody's folder.
REFUSED_MODULES = _words(
    "_posixsubprocess _winapi winreg runpy pickle _pickle cPickle marshal shutil socket _socket socketserver ssl "
    "ftplib smtplib telnetlib poplib imaplib nntplib code codeop pty platform commands popen2 webbrowser antigravity "
    "_ctypes threading _thread thread signal gc atexit mmap tempfile pdb bdb timeit cProfile profile trace doctest "
    "pydoc inspect imp zipimport pkgutil site py_compile compileall linecache sched cgitb"
)
# Of modules that hold harmless things too.
REFUSED_NAMES = _words(
    "torch.load torch.save torch.serialization.load torch.serialization.save torch.serialization._load "
    "torch.serialization._legacy_load torch.storage._load_from_bytes torch._utils._import_dotted_name "
    "numpy.load numpy.loads numpy.loadtxt numpy.genfromtxt numpy.fromfile numpy.memmap numpy.save numpy.savetxt "
    "pandas.eval pandas.read_pickle pandas.io.pickle.read_pickle joblib.load dill.load dill.loads cloudpickle.load "
    "cloudpickle.loads io.open io.open_code io.FileIO _io.open _io.open_code _io.FileIO functools.reduce "
    "_functools.reduce operator.attrgetter operator.methodcaller operator.call _operator.attrgetter "
    "_operator.methodcaller _operator.call types.FunctionType types.CodeType types.MethodType types.LambdaType "
    "types.BuiltinFunctionType types.ModuleType logging.config.listen"
)
# The only ones of their module that data needs; of copyreg, how pickle itself puts objects together, and getattr, by
# which it names a method of an object, as a hook is.
ALLOWED_OF = {
    "builtins": _words(
        "set frozenset dict list tuple int float bool str bytes bytearray complex slice range object type Ellipsis "
        "NotImplemented long unicode xrange getattr"
    ),
    "copyreg": _words("_reconstructor __newobj__ __newobj_ex__"),
}
RENAMED = {"__builtin__": "builtins", "copy_reg": "copyreg"}  # as protocol 2, which torch uses, still calls them


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


@lru_cache(maxsize=4096)  # a state dict names a few things ten thousand times
def allow(module: str, name: str) -> Global:
    """Return the inert global, or raise BadCheckpoint naming it, if only attacks have a use for it."""
    module = RENAMED.get(module, module)
    full = f"{module}.{name}"
    if _refused(module, name):
        shown = full if full.isprintable() and len(full) <= 200 else ascii(full)[:200]
        raise BadCheckpoint(
            f"its pickle names {shown}, which no checkpoint needs and attacks use; nothing was run. "
            "If the file is your own, save model.state_dict() alone; if not, do not load it in torch"
        )
    return Global(full)


def method(args: tuple[Any, ...]) -> Call:
    """The call of getattr by which a method is pickled; raises BadCheckpoint when it goes for what no hook is."""
    if len(args) != 2 or not isinstance(args[1], str):
        raise TypeError
    if args[1].startswith("__") or not args[1].isidentifier():
        raise BadCheckpoint(
            f"its pickle names the attribute {ascii(args[1])[:80]} of an object, which no checkpoint needs and attacks "
            "use; nothing was run. If the file is your own, save model.state_dict() alone"
        )
    return Call("builtins.getattr", args)


def _refused(module: str, name: str) -> bool:
    if module in ALLOWED_OF:
        return name not in ALLOWED_OF[module]
    if module in REFUSED_MODULES or f"{module}.{name}" in REFUSED_NAMES:
        return True
    parts = module.split(".")
    if any(".".join(parts[:count]) in REFUSED_PACKAGES for count in range(1, min(len(parts), 8) + 1)):
        return True
    # A name may have dots, with which it goes through the attributes of a module: `torch.serialization` and
    # `os.system`, or `torch._utils` and `_rebuild_tensor_v2.__globals__`.
    *through, last = name.split(".")
    if any(part in REFUSED_PACKAGES or part in REFUSED_MODULES or part in ALLOWED_OF for part in through):
        return True
    return any(part.startswith("__") and part.endswith("__") for part in (*through, last))
