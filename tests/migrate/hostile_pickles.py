"""Pickles that try to run something: each would make the file `canary` appear, were anything called.

    python hostile_pickles.py CANARY

lets Python's own unpickler have the live ones, and prints those that made the canary appear, as JSON.
"""

from __future__ import annotations

import json
import marshal
import pickle
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tiny_checkpoints import group, integer, mapping, named, text
from tiny_legacy import module


class Attack(NamedTuple):
    """Opcodes that leave one object; what the refusal says, or None where the object is one that stays inert.

    live: Python's unpickler alone, without torch and whatever else the attack needs, falls for it.
    """

    body: bytes
    says: str | None
    live: bool = True


def call(function: bytes, *arguments: bytes) -> bytes:
    return function + group(*arguments) + b"R"


def stacked(module_name: str, name: str) -> bytes:
    """A name as protocol 4 gives it."""
    return (
        b"\x8c"
        + bytes([len(module_name)])
        + module_name.encode()
        + b"\x8c"
        + bytes([len(name)])
        + name.encode()
        + b"\x93"
    )


def attacks(canary: str) -> dict[str, Attack]:
    """All of them, by a name that says what they try."""
    touch, code = text(f"touch {canary}"), text(f"open({canary!r}, 'w').close()")
    system, partial = named("os", "system"), named("functools", "partial")
    run = call(system, touch)
    os_module = call(named("builtins", "__import__"), text("os"))
    argv = b"](" + text("touch") + text(canary) + b"e"
    inner = b"\x80\x02" + run + b"."
    compiled = marshal.dumps(compile(f"open({canary!r}, 'w').close()", "x", "exec"))
    namespace = named("argparse", "Namespace") + b")\x81"
    path = call(named("pathlib", "PurePosixPath"), text(canary))

    def data(content: bytes) -> bytes:
        return b"B" + len(content).to_bytes(4, "little") + content

    def method(thing: bytes, name: str) -> bytes:
        return call(named("builtins", "getattr"), thing, text(name))

    def fetched(name: str, *arguments: bytes) -> Attack:
        return Attack(call(named(*name.rsplit(".", 1)), *arguments), f"names {name}, which no checkpoint needs", False)

    return {
        "os.system": Attack(run, r"names os\.system, which no checkpoint needs .* nothing was run"),
        "posix.system": Attack(call(named("posix", "system"), touch), r"names posix\.system"),
        "subprocess": Attack(call(named("subprocess", "check_call"), argv), r"names subprocess\.check_call"),
        "eval": Attack(call(named("builtins", "eval"), code), r"names builtins\.eval"),
        "eval of Python 2": Attack(call(named("__builtin__", "eval"), code), r"names builtins\.eval", False),
        "exec": Attack(call(named("builtins", "exec"), code), r"names builtins\.exec"),
        "open": Attack(call(named("builtins", "open"), text(canary), text("w")), r"names builtins\.open"),
        "io.open": Attack(call(named("io", "open"), text(canary), text("w")), r"names io\.open"),
        "getattr of an import": Attack(call(method(os_module, "system"), touch), r"names builtins\."),
        "importlib": Attack(
            call(method(call(named("importlib", "import_module"), text("os")), "system"), touch), r"names importlib\."
        ),
        "timeit": Attack(call(named("timeit", "timeit"), code, text("0"), named("time", "time"), integer(1)), "timeit"),
        "cProfile": Attack(call(named("cProfile", "run"), code), r"names cProfile\.run"),
        "bdb": Attack(call(named("bdb", "Bdb") + b")R" + text("run") + code + b"\x93"), r"bdb\.Bdb|damaged", False),
        "partial": Attack(call(call(partial, system, touch)), r"names os\.system"),
        "partial that waits": Attack(call(partial, system, touch), r"names os\.system", False),
        "methodcaller": Attack(
            call(call(named("operator", "methodcaller"), text("system"), touch), os_module), r"operator\.methodcaller"
        ),
        "attrgetter": Attack(
            call(call(named("_operator", "attrgetter"), text("system")), os_module), r"operator\.attrgetter", False
        ),
        "map": Attack(
            call(named("builtins", "list"), call(named("builtins", "map"), system, b"](" + touch + b"e")), "names "
        ),
        "a pickle in the pickle": Attack(call(named("pickle", "loads"), data(inner)), r"names pickle\.loads"),
        "the same by its C name": Attack(call(named("_pickle", "loads"), data(inner)), r"names _pickle\.loads"),
        "marshalled code": Attack(
            call(call(named("types", "FunctionType"), call(named("marshal", "loads"), data(compiled)), b"}")), "names "
        ),
        "dotted name": Attack(stacked("pathlib", "os.system") + group(touch) + b"R", r"names pathlib\.os\.system"),
        "nested stack global": Attack(
            b"\x8c\x02os\x94\x8c\x06system\x94000h\x00h\x01\x93".replace(b"000", b"00") + group(touch) + b"R",
            "os.system",
        ),
        "__globals__": Attack(
            stacked("torch._utils", "_rebuild_tensor_v2.__globals__"), r"__globals__, which no checkpoint needs", False
        ),
        "__setstate__ of an instance": Attack(
            namespace + mapping([("__setstate__", system)]) + b"b" + touch + b"b", r"names os\.system"
        ),
        "reduce of an object": Attack(
            call(named("copyreg", "_reconstructor"), named("builtins", "object"), named("builtins", "object"), b"N")
            + b"0"
            + run,
            r"names os\.system",
        ),
        "state of a mapping": Attack(named("collections", "OrderedDict") + b")R" + run + b"b", r"names os\.system"),
        "key of a dict": Attack(b"}" + run + b"Ns", r"names os\.system"),
        "persistent id": Attack(group(text("storage"), run, text("0"), text("cpu"), integer(1)) + b"Q", "os.system"),
        "argument of a tensor": Attack(
            call(named("torch._utils", "_rebuild_tensor_v2"), run), r"names os\.system", False
        ),
        "hook of a module": Attack(module("torch.nn.modules.linear.Identity", _hooks=run), r"names os\.system", False),
        "class of a module": Attack(system + group(touch) + b"\x81", r"names os\.system", False),
        "object array": Attack(
            call(
                named("numpy.core.multiarray", "_reconstruct"), named("numpy", "ndarray"), group(integer(0)), data(b"b")
            )
            + group(integer(1), group(integer(1)), named("numpy", "dtype"), b"\x89", b"](" + run + b"e")
            + b"b",
            r"names os\.system",
        ),
        "tensor helper": fetched("torch.storage._load_from_bytes", data(inner)),
        "torch.load": fetched("torch.load", text("other.pth")),
        "torch.hub": fetched("torch.hub.load", text("someone/something"), text("model")),
        "torch.jit": fetched("torch.jit._serialization.load", text("other.pt")),
        "compiled extension": fetched("torch.utils.cpp_extension.load_inline", text("x"), code),
        "numpy's runner": fetched("numpy.testing._private.utils.runstring", code, b"}"),
        "numpy's pickles": fetched("numpy.load", text("other.npy"), b"N", b"\x88"),
        "runpy": fetched("runpy.run_path", text("other.py")),
        "debugger": fetched("pdb.run", code),
        "console": fetched("code.interact"),
        "pseudo-terminal": fetched("pty.spawn", argv),
        "browser": fetched("webbrowser.open", text("http://localhost")),
        "download": fetched("urllib.request.urlretrieve", text("http://localhost"), text(canary)),
        "thread": fetched("threading.Thread", b"N", system),
        "temporary file": fetched("tempfile.NamedTemporaryFile"),
        "library": fetched("ctypes.CDLL", text("libc.so.6")),
        "protocol 0": Attack(b"cos\nsystem\n(S'touch " + canary.encode() + b"'\ntR", r"names os\.system"),
        "protocol 0 without a global": Attack(b"(S'touch " + canary.encode() + b"'\nios\nsystem\n", "opcode 0x53"),
        "INST": Attack(b"(" + touch + b"ios\nsystem\n", "opcode 0x69"),
        "OBJ": Attack(b"(" + system + touch + b"o", r"names os\.system"),
        "NEWOBJ_EX": Attack(named("mypkg", "FileHandler") + group(text(canary)) + b"}\x92", "opcode 0x92", False),
        "extension code": Attack(b"\x82\x01", "opcode 0x82", False),
        # Python's own modules act in more ways than a list can hold, so only their plain data may stand.
        "method of a path": Attack(
            stacked("pathlib", "Path.touch") + group(path) + b"R", r"names pathlib\.Path\.touch"
        ),
        "method of a path by getattr": Attack(
            call(named("functools", "partial"), method(named("pathlib", "Path"), "touch"), path),
            "attribute 'touch'",
            False,
        ),
        "log file": Attack(call(named("logging", "FileHandler"), text(canary)), r"names logging\.FileHandler"),
        "text file": Attack(call(named("codecs", "open"), text(canary), text("w")), r"names codecs\.open"),
        "archive": Attack(call(named("zipfile", "ZipFile"), text(canary), text("w")), r"names zipfile\.ZipFile"),
        "database": Attack(call(named("sqlite3.dbapi2", "connect"), text(canary)), r"names sqlite3\.dbapi2\.connect"),
        "torch's environment": fetched("torch.utils.collect_env.run", argv),
        "torch's file": fetched("torch._C.PyTorchFileWriter", text(canary)),
        "ufunc of any module": fetched("numpy.core._ufunc_reconstruct", text("os"), text("system")),
        "msmigrate itself": fetched("msmigrate.migrate.checkpoint.convert.convert", text(canary), path),
        # Whose function it is nobody knows, and the author of a model may have one; it stays inert.
        "somebody's function": Attack(call(named("mypkg.tools", "_rebuild_tensor_v2"), code), None, False),
    }


def run_all(canary: Path) -> list[str]:
    """The names of those that do what they are for, when Python's own unpickler reads them."""
    found = []
    for name, attack in attacks(str(canary)).items():
        canary.unlink(missing_ok=True)
        if attack.live:
            with suppress(Exception):  # some stop after they have done it
                pickle.loads(b"\x80\x04" + attack.body + b".")
        if canary.exists():
            found.append(name)
    return found


if __name__ == "__main__":
    print("\n" + json.dumps(run_all(Path(sys.argv[1]))))
