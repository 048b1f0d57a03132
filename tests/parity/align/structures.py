"""Made-up structures: a model as a list of steps, told as torch or as MindSpore would tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from msmigrate.mappings import table
from msmigrate.parity.align.model_structure import Call, Held, Module, Structure, parent

ROWS = {row.short: row for row in table.rows("layer")}
SHAPE = (2, 8, 6, 6)


@dataclass(frozen=True)
class Layer:
    """One call of a layer: its path, its torch class, what tensors go in and which comes out, by any names; which of
    torch's tensors it lacks, and which do not train; whether a recurrent layer goes both ways."""

    path: str
    kind: str
    inputs: str
    output: str
    width: int = 8
    shape: tuple[int, ...] = SHAPE
    lacks: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    both: bool = False


def tensors(kind: str, width: int, both: bool = False) -> dict[str, Held]:
    """Torch's tensors of such a layer."""
    shapes: dict[str, dict[str, tuple[int, ...]]] = {
        "Conv2d": {"weight": (width, 8, 3, 3)},
        "Linear": {"weight": (width, 8), "bias": (width,)},
        "BatchNorm2d": dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (width,)),
        "LayerNorm": {"weight": (width,), "bias": (width,)},
        "Embedding": {"weight": (31, width)},
        "MultiheadAttention": {
            "in_proj_weight": (3 * width, width),
            "in_proj_bias": (3 * width,),
            "out_weight": (width, width),
            "out_bias": (width,),
        },
    }
    for kinds, suffix in ((("LSTM", "GRU"), "_l0"), (("LSTMCell", "GRUCell"), "")):
        weights = {"weight_ih": (4 * width, 8), "weight_hh": (4 * width, 8), "bias_ih": (4 * width,)}
        ends = (suffix, f"{suffix}_reverse") if both else (suffix,)
        shapes |= {key: {f"{name}{end}": shape for end in ends for name, shape in weights.items()} for key in kinds}
    return {n: Held(s, not n.startswith("running")) for n, s in shapes.get(kind, {}).items()}


def structure(framework: str, layers: Sequence[Layer], defined: Sequence[str] = ()) -> Structure:
    """The model that calls these layers in this order; `defined`: their paths in the order of definition, where that
    is another one. Containers are the paths above them."""
    by_path = {layer.path: layer for layer in layers}
    paths = [""]
    for path in defined or by_path:
        above = [path]
        while parent(above[0]):
            above.insert(0, parent(above[0]))
        paths += [p for p in above if p not in paths]
    modules = [Module(p, *_told(framework, by_path[p]) if p in by_path else ("Net",)) for p in paths]
    numbers: dict[str, int] = {}
    calls: list[Call] = []
    counts: dict[str, int] = {}
    clock = 0
    for layer in layers:
        number = [numbers.setdefault(name, len(numbers)) for name in (layer.inputs, layer.output)]
        call = counts.get(layer.path, 0)
        counts[layer.path] = call + 1
        calls.append(Call(layer.path, call, clock + 1, clock + 2, (number[0],), number[1], layer.shape))
        clock += 2
    return Structure(framework, tuple(modules), tuple(_nested(calls)), (SHAPE[:2],))


def _told(framework: str, layer: Layer) -> tuple[str, dict[str, Held]]:
    whole = {
        name: held for name, held in tensors(layer.kind, layer.width, layer.both).items() if name not in layer.lacks
    }
    held = {name: replace(each, trains=each.trains and name not in layer.frozen) for name, each in whole.items()}
    row = ROWS.get(layer.kind)
    if framework == "torch" or row is None or row.mindspore is None:
        return layer.kind, held
    names = {state.torch: state.mindspore for state in row.state}
    return row.mindspore.rsplit(".", 1)[-1], {names.get(n) or n: h for n, h in held.items()}


def _nested(calls: list[Call]) -> list[Call]:
    """The calls with those of the containers around runs of them."""
    events: list[tuple[str, str, Call | None]] = [("enter", "", None)]
    open_: list[str] = [""]
    for call in calls:
        above = []
        path = parent(call.path)
        while path:
            above.insert(0, path)
            path = parent(path)
        while len(open_) > 1 and (len(open_) - 1 > len(above) or open_[1:] != above[: len(open_) - 1]):
            events.append(("leave", open_.pop(), None))
        for path in above[len(open_) - 1 :]:
            open_.append(path)
            events.append(("enter", path, None))
        events += [("enter", call.path, call), ("leave", call.path, call)]
    events += [("leave", path, None) for path in reversed(open_)]
    found: list[Call] = []
    begun: dict[str, list[tuple[int, int]]] = {}
    count: dict[str, int] = {}
    for clock, (what, path, call) in enumerate(events):
        if what == "enter":
            begun.setdefault(path, []).append((clock, count.get(path, 0)))
            count[path] = count.get(path, 0) + 1
            continue
        entered, number = begun[path].pop()
        inputs, output, shape = (call.inputs, call.output, call.shape) if call else ((), None, None)
        found.append(Call(path, number, entered, clock, inputs, output, shape))
    return sorted(found, key=lambda c: c.entered)
