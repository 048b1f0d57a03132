"""Pickles with any damage: opcodes and their arguments replaced, moved, doubled, and bombs between them."""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable, Sequence
from functools import cache
from random import Random

import fuzz_bytes
from fuzz_bytes import NUMBERS
from hostile_pickles import attacks
from tiny_checkpoints import integer, named, text


def _words(text: str) -> list[str]:
    return text.split()


GLOBALS = _words(
    "torch._utils._rebuild_tensor_v2 torch._utils._rebuild_tensor_v3 torch._utils._rebuild_tensor "
    "torch._utils._rebuild_parameter torch._utils._rebuild_sparse_tensor torch._utils._rebuild_qtensor "
    "torch.FloatStorage torch.HalfStorage torch.LongStorage torch.QInt8Storage torch.storage.UntypedStorage "
    "torch.float32 torch.bfloat16 torch.float8_e4m3fn torch.nonsense torch.Size torch.device "
    "torch.nn.parameter.Parameter torch._tensor._rebuild_from_type_v2 torch.nn.modules.linear.Linear "
    "torch._dynamo.eval_frame.OptimizedModule torch.fx.graph_module.reduce_graph_module collections.OrderedDict "
    "collections.defaultdict collections.Counter builtins.set builtins.getattr builtins.dict builtins.object "
    "copyreg._reconstructor __builtin__.set numpy.core.multiarray.scalar os.system posix.system builtins.eval "
    "builtins.__import__ torch.load torch.hub.load sys.exit a.b foo.Bar"
)
CODES = bytes(op.code.encode("latin-1")[0] for op in pickletools.opcodes)
KINDS = {op.code.encode("latin-1")[0]: op for op in pickletools.opcodes}


@cache
def split(pickle: bytes) -> tuple[bytes, ...]:
    """The opcodes of a valid pickle, each with its argument."""
    starts = [place or 0 for _, _, place in pickletools.genops(pickle)]
    return tuple(pickle[start:end] for start, end in zip(starts, [*starts[1:], len(pickle)], strict=True))


def damaged(rng: Random, pickle: bytes, others: Sequence[bytes]) -> bytes:
    """The pickle after one to four mutations; `others` lend opcodes."""
    ops = list(split(pickle))
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        rng.choice(MUTATIONS)(rng, ops, others)
        ops = ops or [b"."]
    return b"".join(ops)


def _of_kind(rng: Random, ops: list[bytes], codes: bytes) -> int | None:
    """Where one of these opcodes stands."""
    places = [at for at, op in enumerate(ops) if op[:1] in [codes[i : i + 1] for i in range(len(codes))]]
    return rng.choice(places) if places else None


def _integer(rng: Random, ops: list[bytes], _: Sequence[bytes]) -> None:
    at = _of_kind(rng, ops, b"KMJ\x8a")
    if at is not None:
        ops[at] = said(fuzz_bytes.integer(rng))


def _near(rng: Random, ops: list[bytes], _: Sequence[bytes]) -> None:
    """Change an integer by a little, such as a size or a stride."""
    at = _of_kind(rng, ops, b"J")
    if at is not None:
        ops[at] = said(struct.unpack("<i", ops[at][1:5])[0] + rng.choice((-1, 1, 2)))


def _text(rng: Random, ops: list[bytes], _: Sequence[bytes]) -> None:
    at, other = _of_kind(rng, ops, b"X"), _of_kind(rng, ops, b"X")
    if at is not None and other is not None:
        ops[at] = ops[other] if rng.random() < 0.5 else text(fuzz_bytes.text(rng))


def _global(rng: Random, ops: list[bytes], _: Sequence[bytes]) -> None:
    at = _of_kind(rng, ops, b"c")
    if at is not None:
        ops[at] = a_global(rng)


def _insert(rng: Random, ops: list[bytes], _: Sequence[bytes]) -> None:
    ops.insert(rng.randrange(len(ops)), opcode(rng))


def _replace(rng: Random, ops: list[bytes], _: Sequence[bytes]) -> None:
    ops[rng.randrange(len(ops))] = opcode(rng)


def _value(rng: Random, ops: list[bytes], _: Sequence[bytes]) -> None:
    """Put another value in the place of a number or a text."""
    at = _of_kind(rng, ops, b"KMJX\x88\x89NG")
    if at is not None:
        ops[at] = value(rng)


def _remove(rng: Random, ops: list[bytes], _: Sequence[bytes]) -> None:
    at = rng.randrange(len(ops))
    del ops[at : at + rng.choice((1, 1, 2, 5))]


def _double(rng: Random, ops: list[bytes], _: Sequence[bytes]) -> None:
    at = rng.randrange(len(ops))
    ops[at:at] = ops[at : at + rng.choice((1, 1, 3, 20))] * rng.choice((1, 1, 5))


def _swap(rng: Random, ops: list[bytes], _: Sequence[bytes]) -> None:
    one, other = rng.randrange(len(ops)), rng.randrange(len(ops))
    ops[one], ops[other] = ops[other], ops[one]


def _lend(rng: Random, ops: list[bytes], others: Sequence[bytes]) -> None:
    lent = split(rng.choice(others))
    at, start = rng.randrange(len(ops)), rng.randrange(len(lent))
    ops[at:at] = lent[start : start + rng.choice((1, 5, 30))]


def _bomb(rng: Random, ops: list[bytes], _: Sequence[bytes]) -> None:
    at = _of_kind(rng, ops, b"KMJX\x88\x89NGR")
    ops[rng.randrange(len(ops)) if at is None else at] = bomb(rng)


def _around(rng: Random, ops: list[bytes], _: Sequence[bytes]) -> None:
    """Wrap what is on the stack: in tuples, in pairs of itself, in a list, in a call."""
    wrapped = rng.choice((b"\x85", b"2\x86", b"2\x86" * 40, b"\x85" * 3000, b"]2e", b"0" + named("foo", "Bar") + b")R"))
    ops.insert(rng.randrange(len(ops)), wrapped)


Mutation = Callable[[Random, list[bytes], Sequence[bytes]], None]
KEEPING = (_integer, _integer, _near, _text, _text, _global, _value, _value, _bomb)  # what the machine's stack holds
MUTATIONS: Sequence[Mutation] = (*(*KEEPING, *KEEPING, _insert, _replace, _remove, _double, _swap, _lend, _around),)


def said(number: int) -> bytes:
    """The opcode of an integer of any size."""
    size = number.bit_length() // 8 + 1
    if size > 255:
        return b"\x8b" + struct.pack("<I", size) + number.to_bytes(size, "little", signed=True)
    return integer(number)


def a_global(rng: Random) -> bytes:
    module, _, name = rng.choice(GLOBALS).rpartition(".")
    if rng.random() < 0.1:
        module, name = (
            rng.choice(("", "torch._utils", "a.b" * 400, "é")),
            rng.choice(("", "x" * 5000, "__class__", "a.b.c")),
        )
    if rng.random() < 0.2:
        return text(module) + text(name) + b"\x93"
    return named(module, name)


def value(rng: Random) -> bytes:
    """The opcodes of a value: plain, hostile or an attack."""
    kind = rng.randrange(9)
    if kind == 0:
        return rng.choice(tuple(attacks("canary").values())).body
    if kind == 1:
        return b"G" + struct.pack(">d", rng.choice([n for n in NUMBERS if abs(n) < 1e308 or n != n] + [float("inf")]))
    if kind == 2:
        return bomb(rng)
    return rng.choice(
        (
            *(b"N", b"\x88", b"\x89", b"]", b"}", b")", b"\x8f", a_global(rng), said(fuzz_bytes.integer(rng))),
            *(text(fuzz_bytes.text(rng)), b"C\x03abc", a_global(rng) + b")R", b"}" + text("a") + b"Ns", b"](NNe"),
            *(b"(" + text("storage") + named("torch", "FloatStorage") + text("0") + text("cpu") + b"K\x02tQ",),
        )
    )


def bomb(rng: Random) -> bytes:
    """The opcodes of one value that is far larger, deeper or more entangled than it looks."""
    kind = rng.randrange(12)
    deep = rng.choice((100, 1_500, 20_000))
    if kind == 0:
        return b"N" + b"\x85" * deep  # tuples inside one another
    if kind == 1:
        return b"K\x01" + b"2\x86" * rng.choice((30, 200))  # a pair of the same pair of the same pair …
    if kind == 2:  # a list of eight times the same list of eight times the same …
        again = [struct.pack("<I", 1000 + level) for level in range(rng.choice((3, 20)))]
        return b"K\x01" + b"".join(b"r" + n + b"0](" + (b"j" + n) * 8 + b"e" for n in again)
    if kind == 3:
        return b"]" * deep + b"a" * (deep - 1)  # lists inside one another
    if kind == 4:
        return b"}" + (text("a") + b"}") * deep + b"s" * deep  # dicts inside one another
    if kind == 5:
        return b"}r\xff\0\0\0" + text("me") + b"j\xff\0\0\0s"  # a dict that holds itself
    if kind == 6:
        return b"]r\xff\0\0\0j\xff\0\0\0a"  # a list that holds itself
    if kind == 7:
        return b"".join(b"Nr" + struct.pack("<I", rng.getrandbits(32)) + b"0" for _ in range(deep)) + b"N"  # memo
    if kind == 8:
        return b"(" + b"}" * deep + b"l"  # many containers
    if kind == 9:  # calls inside one another
        return named("foo", "Bar") + b"r\xfe\0\0\0" + b"j\xfe\0\0\0" * (deep - 1) + b"N" + b"\x85R" * deep
    if kind == 10:
        return rng.choice((b"\x8b", b"X", b"T", b"B")) + struct.pack(
            "<I", rng.choice((0xFFFFFFFF, 0x7FFFFFFF, 1 << 20))
        )
    return rng.choice((b"\x8d", b"\x8e", b"\x96")) + struct.pack("<Q", rng.choice(((1 << 64) - 1, 1 << 63, 1 << 40, 9)))


def opcode(rng: Random) -> bytes:
    """Any opcode there is, with an argument of the right form or a random one."""
    code = rng.choice(CODES)
    kind = KINDS[code].arg
    if kind is None:
        return bytes([code])
    if kind.n >= 0:
        return bytes([code]) + (rng.randbytes(kind.n) if rng.random() < 0.5 else bytes(kind.n))
    if kind.n == pickletools.UP_TO_NEWLINE:
        return bytes([code]) + rng.choice(
            (b"0\n", b"os\nsystem\n", b"x\n", b"'a'\n", b"\n", b"\xff\n", b"99999999999\n")
        )
    width = {"1": 1, "4": 4, "8": 8}.get(kind.name[-1:], 4)
    length = rng.choice((0, 1, 3, (1 << 8 * width) - 1))
    return bytes([code]) + length.to_bytes(width, "little") + rng.randbytes(min(length, 3))
