"""Small files that ask for a great deal, each in its own way: one thing said once and meant any number of times."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

from fuzz_containers import Member, record, value, zipped
from fuzz_inputs import Case
from msmigrate.migrate.checkpoint.formats.ckpt import sized
from tiny_checkpoints import Tensor, floats, group, integer, mapping, named, rebuilt, text
from tiny_legacy import module, pickled

MANY = 10_000


def keep(body: bytes, place: int) -> bytes:
    """The opcodes of a value, remembered."""
    return body + b"r" + struct.pack("<I", place)


def again(place: int) -> bytes:
    return b"j" + struct.pack("<I", place)


def listed(items: list[bytes]) -> bytes:
    return b"](" + b"".join(items) + b"e"


def torch(body: bytes, *, training: bool = False) -> Case:
    """A zip of torch with these opcodes beside, or around, one tensor."""
    members = [Member(b"x/data.pkl", pickled(body)), Member(b"x/data/0", floats(2).content)]
    return Case({"x": zipped(members)}, "x", "x.ckpt", {"training": True} if training else {}, 1 << 29)


def state(*more: tuple[str, bytes]) -> bytes:
    """A training checkpoint of one tensor, and what stands beside it."""
    return mapping([("model", mapping([("a.x", rebuilt(floats(2), "0"))])), *more])


def optimizer(held: bytes, groups: bytes) -> Case:
    return torch(state(("optimizer", mapping([("state", held), ("param_groups", groups)]))), training=True)


def numbered(items: list[bytes]) -> bytes:
    return b"}(" + b"".join(integer(number) + item for number, item in enumerate(items)) + b"u"


def many_keys() -> Case:
    """A long tuple is the key of many dicts."""
    key = keep(group(*[b"N"] * MANY), 0) + b"0"
    return torch(key + b"}(" + b"".join(again(0) + b"N" for _ in range(MANY)) + b"u")


def nothing_in_modules() -> Case:
    """Many modules have the same many parameters, all of them None."""
    nothing = keep(mapping((str(number), b"N") for number in range(MANY)), 0) + b"0"
    rest = mapping([("_buffers", b"}"), ("_modules", b"}")])
    dicts = keep(rest, 1) + text("_parameters") + again(0) + b"s0"
    inner = mapping((str(number), named("a", "B") + b")\x81" + again(1) + b"b") for number in range(MANY))
    return torch(nothing + dicts + module("a.B").replace(text("_modules") + b"}(u", text("_modules") + inner))


def names_left_out() -> Case:
    """Many modules leave the same many buffers out."""
    left = keep(listed([text(str(number)) for number in range(MANY)]), 0) + b"0"
    dicts = [("_parameters", b"}"), ("_buffers", mapping([("x", b"N")])), ("_modules", b"}")]
    dicts.append(("_non_persistent_buffers_set", again(0)))
    inner = mapping((str(number), named("a", "B") + b")\x81" + again(1) + b"b") for number in range(MANY))
    whole = module("a.B").replace(text("_modules") + b"}(u", text("_modules") + inner)
    return torch(left + keep(mapping(dicts), 1) + b"0" + whole)


def modules_in_modules() -> Case:
    """Ten modules in each of ten modules, and so on, all of a level the same."""
    body = keep(module("a.B", {"w": rebuilt(floats(2), "0")}), 0)
    for level in range(1, 12):
        body += b"0" + keep(module("a.B", modules={str(at): again(level - 1) for at in range(10)}), level)
    return torch(body)


def weights_in_dicts() -> Case:
    """Many dicts hold the same many numbers as a model that is none."""
    held = keep(mapping((str(number), b"N") for number in range(MANY)), 0) + b"0"
    some = rebuilt(floats(2), "0")
    dicts = ((str(number), mapping([("x", some), ("model", again(0))])) for number in range(2_000))
    return torch(held + mapping(dicts))


def state_dicts_under_keys() -> Case:
    """Many keys lead to a state dict each, so that all of them could be meant."""
    held = keep(mapping([("x", rebuilt(floats(2), "0"))]), 0) + b"0"
    return torch(held + mapping((str(number), again(0)) for number in range(MANY)))


def groups_of_parameters() -> Case:
    """Many groups list the same many parameters."""
    numbers = keep(listed([integer(number) for number in range(MANY)]), 0) + b"0"
    groups = keep(mapping([("params", again(0))]), 1) + b"0"
    return torch(numbers + groups + optimizer_body(b"}", listed([again(1)] * MANY)), training=True)


def optimizer_body(held: bytes, groups: bytes) -> bytes:
    return state(("optimizer", mapping([("state", held), ("param_groups", groups)])))


def groups_of_nothing() -> Case:
    """The same group again and again."""
    one = keep(mapping([("params", b"]"), ("note", text("x" * 900))]), 0) + b"0"
    return torch(one + optimizer_body(b"}", listed([again(0)] * 10 * MANY)), training=True)


def states_of_parameters() -> Case:
    """Many parameters have the same state of many parts."""
    parts = keep(mapping((f"p{number}", integer(1)) for number in range(MANY)), 0) + b"0"
    groups = listed([mapping([("params", listed([integer(number) for number in range(MANY)]))])])
    return torch(parts + optimizer_body(numbered([again(0)] * MANY), groups), training=True)


def many_parameters() -> Case:
    """As many parameters as an optimizer may have, in an order that fits none."""
    groups = listed([mapping([("params", listed([integer(number) for number in range(MANY)]))])])
    return torch(optimizer_body(numbered([b"}"] * MANY), groups), training=True)


def options_of_pairs(code: bytes) -> Callable[[], Case]:
    """An option of a group is a pair of the same pair of the same pair, or a tuple in a tuple in a tuple."""

    def made() -> Case:
        group_ = mapping([("params", listed([integer(0)])), ("lr", b"K\x01" + code)])
        last = mapping([("last_epoch", b"K\x01" + code)])
        body = state(
            ("optimizer", mapping([("state", b"}"), ("param_groups", listed([group_]))])), ("lr_scheduler", last)
        )
        return torch(body, training=True)

    return made


def pieces_of_a_tensor() -> Case:
    """A tensor in a very many pieces."""
    piece = value("a", [50_000], "Int8", b"x").encoded()
    return Case({"x": piece * 50_000}, "x", "x.pth", {}, 1 << 29)


def ckpt(name: str, tensor: bytes, again: int) -> Case:
    """A MindSpore checkpoint of one tensor, and what is said in it again and again."""
    whole = value("a", [4], "Int8", b"xxxx").encoded()
    inside = b"\x0a" + sized(name.encode()) + b"\x12" + sized(tensor * again)
    return Case({"x": whole + b"\x0a" + sized(inside)}, "x", "x.pth", {}, 1 << 29)


def sizes_in_a_ckpt() -> Case:
    """A tensor of millions of dimensions."""
    return ckpt("b", b"\x08\x01", 8_000_000)


def types_in_a_ckpt() -> Case:
    """A tensor whose type is said millions of times."""
    return ckpt("b", b"\x12\x00", 8_000_000)


def contents_in_a_ckpt() -> Case:
    return ckpt("b", b"\x1a\x00", 8_000_000)


def values_in_a_ckpt() -> Case:
    """Millions of tensors without a name or anything else."""
    whole = value("a", [4], "Int8", b"xxxx").encoded()
    return Case({"x": whole + b"\x0a\x04\x0a\x00\x12\x00" * 3_000_000}, "x", "x.pth", {}, 1 << 29)


def sizes_of_a_shape() -> Case:
    """The note for the way back gives a tensor a shape of many sizes."""
    note = {"format": 1, "names": {"b": "a"}, "shapes": {"b": [9] * 500_000}}
    tensor = value("a", [4], "Int8", b"xxxx").encoded()
    return Case({"x": tensor + record(json.dumps(note).encode()).encoded()}, "x", "x.pth", {}, 1 << 29)


def groups_in_json() -> Case:
    """The parameter groups of a training run are deeper than any stack, or hold an integer of thousands of digits."""
    told = {"optimizer": "torch.optim.SGD", "param_groups": [{"params": ["a"], "lr": 10**4000, "x": "\ud800"}]}
    content = json.dumps(told).replace('"x"', '"y": ' + "[" * 400 + "]" * 400 + ', "x"').encode()
    fields = [value("a", [1], "Int8", b"x"), value("msmigrate.training", [len(content)], "UInt8", content)]
    fields.append(value("optimizer.step", [], "Int32", bytes(4)))
    return Case({"x": b"".join(f.encoded() for f in fields)}, "x", "x.pth", {"training": True}, 1 << 29)


def doubles(shape: tuple[int, ...], *values: float) -> Tensor:
    return Tensor(struct.pack(f"<{len(values)}d", *values), shape, "float64")


# Tensors from which a weight is computed, which do not fit together or lead to no number.
ODD: dict[str, dict[str, Tensor]] = {
    "more axes than an array has": {"c.weight_g": floats(), "c.weight_v": floats(*[1] * 40, 2, 3)},
    "no elements": {"c.weight_g": floats(3, 1), "c.weight_v": floats(3, 0)},
    "no rows": {"c.weight_orig": floats(0, 3), "c.weight_u": floats(0), "c.weight_v": floats(3)},
    "no axes": {"c.weight_orig": floats(), "c.weight_u": floats(1)},
    "overflow": {"c.weight_g": doubles((1, 1), 1e300), "c.weight_v": doubles((1, 2), 1e300, 1e300)},
    "overflow in a product": {
        "c.weight_orig": doubles((2, 1), 1e300, 1e300),
        "c.weight_u": doubles((2,), 1e300, 1e300),
    },
    "no number": {"c.weight_orig": doubles((1, 1), float("nan")), "c.weight_u": doubles((1,), 1)},
    "infinity without a mask": {"c.weight_orig": doubles((1,), float("inf")), "c.weight_mask": doubles((1,), 0)},
    "whole numbers": {"c.weight_g": floats(2, 1), "c.weight_v": Tensor(bytes(32), (2, 2), "int64")},
    "no name": {"_g": floats(2, 1), "_v": floats(2, 2)},
    "no name in a module": {"a._g": floats(2, 1), "a._v": floats(2, 2)},
}

BOMBS: dict[str, Callable[[], Case]] = {
    made.__name__: made
    for made in (
        *(many_keys, nothing_in_modules, names_left_out, modules_in_modules, weights_in_dicts, state_dicts_under_keys),
        *(groups_of_parameters, groups_of_nothing, states_of_parameters, many_parameters, pieces_of_a_tensor),
        *(sizes_of_a_shape, groups_in_json, sizes_in_a_ckpt, types_in_a_ckpt, contents_in_a_ckpt, values_in_a_ckpt),
    )
}
BOMBS["options_of_pairs"] = options_of_pairs(b"2\x86" * 60)
BOMBS["options_of_depth"] = options_of_pairs(b"\x85" * 100_000)
