"""Files at the edge of what makes sense, one fault in each, as fuzzing found them; and what becomes of them."""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

from fuzz_bombs import optimizer_body, state
from fuzz_containers import Field, Member, record, value, zipped
from fuzz_inputs import Case
from tiny_checkpoints import Tensor, floats, integer, mapping, rebuilt, state_dict, text
from tiny_legacy import pickled


class Edge(NamedTuple):
    """An input, and what its refusal says; None where it is converted."""

    case: Case
    says: str | None


def mindspore(fields: list[Field], says: str | None, destination: str = "x.pth", **options: Any) -> Edge:
    return Edge(Case({"x": b"".join(f.encoded() for f in fields)}, "x", destination, options, 1 << 29), says)


def run(told: dict[str, Any] | None = None, numbers: dict[str, tuple[str, bytes]] | None = None) -> list[Field]:
    """A MindSpore checkpoint of a training run; told: of its parameter groups. numbers: name -> type and bytes."""
    groups = {"optimizer": "torch.optim.Adam", "param_groups": [{"params": ["a.x"], "lr": 0.1}], **(told or {})}
    content = json.dumps(groups).encode()
    fields = [value("a.x", [1], "Float32", bytes(4)), value("msmigrate.training", [len(content)], "UInt8", content)]
    given = {"optimizer.step": ("Int32", struct.pack("<i", 3)), **(numbers or {})}
    return fields + [value(name, [], kind, held) for name, (kind, held) in given.items()]


def trained(says: str | None, *given: Any) -> Edge:
    return mindspore(run(*given), says, training=True)


def noted(says: str | None, **note: Any) -> Edge:
    content = json.dumps({"format": 1, **note}).encode()
    return mindspore([value("a", [3], "Int8", b"abc"), record(content)], says)


def torch(tensors: dict[str, Tensor], says: str | None, destination: str = "x.ckpt") -> Edge:
    body, storages = state_dict(tensors)
    members = [Member(b"x/data.pkl", pickled(body))]
    members += [Member(f"x/data/{key}".encode(), content) for key, content in storages.items()]
    return Edge(Case({"x": zipped(members)}, "x", destination, {}, 1 << 29), says)


def training(body: bytes, says: str | None) -> Edge:
    members = [Member(b"x/data.pkl", pickled(body)), Member(b"x/data/0", floats(2).content)]
    return Edge(Case({"x": zipped(members)}, "x", "x.ckpt", {"training": True}, 1 << 29), says)


def far_away() -> Edge:
    """A member of a zip that begins behind what any file has."""
    wide = struct.pack("<HHQ", 1, 8, (1 << 63) + 5)
    members = [Member(b"x/data.pkl", pickled(b"}")), Member(b"x/data/0", b"", extra=wide, entry={"offset": 0xFFFFFFFF})]
    members[0].extra, members[0].entry = wide, {"offset": 0xFFFFFFFF}
    return Edge(Case({"x": zipped(members)}, "x", "x.ckpt", {}, 1 << 29), "damaged|too early")


HALVES = [value("a", [2], "Float32", part) for part in (b"\0\0\x80", b"\x3f\0", b"\0\0\x40")]
NORM = ("weight", "bias", "running_mean", "running_var")
SAME = floats(3)._replace(storage="s")
NAN = struct.pack("<f", float("nan"))
SGD = [(name, integer(0)) for name in ("lr", "momentum", "dampening", "weight_decay", "nesterov")]
GROUP = b"](" + mapping([("params", b"](" + integer(0) + b"e"), ("name", text("\ud800")), *SGD]) + b"e"

EDGES: dict[str, Edge] = {
    "more sizes than a tensor has": mindspore([value("a", [1] * 65, "Int8", b"x")], "damaged at byte"),
    "a size beyond all memory": mindspore([value("a", [0, 1 << 63], "Int8", b"")], "damaged at byte"),
    "sizes whose product is beyond all": mindspore([value("a", [1 << 40] * 60, "Int8", b"x")], "needs absurdly many"),
    "elements cut in two, and cast": mindspore(HALVES, None, dtype="float16", destination="x.safetensors"),
    "a number cut in two": mindspore(
        [*run(), *(value("msmigrate.steps", [], "Int64", bytes(size)) for size in (3, 5))], None, training=True
    ),
    "no number of steps": trained("is nan, not a count", {}, {"msmigrate.steps": ("Float32", NAN)}),
    "half a step": trained("is 0.5, not a count", {}, {"msmigrate.steps": ("Float32", struct.pack("<f", 0.5))}),
    "a step before the first": trained("not a count", {}, {"optimizer.step": ("Int32", struct.pack("<i", -3))}),
    "a scale without its tracker": trained(
        "holds no msmigrate.growth_tracker", {}, {"msmigrate.loss_scale": ("Float32", bytes(4))}
    ),
    "an integer of thousands of digits": trained("training is damaged", {"scaler": {"x": 10**4000}}),
    "lists in lists in a group": trained("training is damaged", {"param_groups": [{"params": [], "lr": [[[[[1]]]]]}]}),
    "half a letter": trained(None, {"param_groups": [{"params": ["a.x"], "note": "\ud800"}]}),
    "a name that cannot be printed, noted": noted(
        "note of an earlier conversion in it is damaged", names={"\x1b[2J": "a"}
    ),
    "half a letter, noted": noted("note of an earlier conversion in it is damaged", aliases={"b": "\ud800"}),
    "more sizes than a tensor has, noted": noted(
        "note of an earlier conversion in it is damaged", names={"b": "a"}, shapes={"b": [1] * 65}
    ),
    "a name that begins with a dot": torch({".weight": floats(2)}, "is no name of a tensor"),
    "a name of dots": torch({"..": floats(2)}, "is no name of a tensor"),
    "a name that ends with a dot": torch({"a.": floats(2)}, "is no name of a tensor"),
    "more axes than an array has": torch(
        {"a.x": Tensor(floats(6).content, (1,) * 40 + (2, 3), strides=(0,) * 40 + (1, 2))}, None
    ),
    "very long names": torch({f"{n}{'l' * 980}.weight": floats(2, n + 1) for n in range(9)}, "…; the tensors alone"),
    "a name that gets too long": torch({f"{'l' * 985}.{n}": floats(3) for n in NORM}, "more than 1,000 letters"),
    "a tensor called as a note": torch({"format": floats(2)}, None, destination="x.safetensors"),
    "a tensor called as the other note": torch(
        {"msmigrate": floats(2), "a.tied": SAME, "b.tied": SAME},
        "a tensor called msmigrate",
        destination="x.safetensors",
    ),
    "half a letter in a group": training(optimizer_body(b"}", GROUP), None),
    "an average of no name": training(
        state(("ema", mapping([("a\x1b", rebuilt(floats(2), "0"))]))), "is no name of a tensor"
    ),
    "far away": far_away(),
}
