"""What both workers and the tests share: the list of cases, their inputs, and the form of the results.

Imports neither framework. Inputs and weights are drawn from NumPy with a seed taken from their name, so that two
processes that never meet hold the same values.
"""

from __future__ import annotations

import json
import traceback
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from msmigrate.mappings import table
from msmigrate.mappings.rows import Case, Row

MODES = ("pynative", "graph")
RATES = (0.1, 0.013)  # the learning rates of the two groups that every schedule drives
RULES = {  # the functions of an epoch that a schedule's case names
    "warm": lambda epoch: min(1.0, (epoch + 1) / 7) * 0.98**epoch,
    "halved": lambda epoch: 0.5 ** (epoch // 4),
    "shrunk": lambda epoch: 0.9 + 0.001 * epoch,
}
ALL = ("mean", "variance", "entropy")
MEASURES = {  # what MindSpore has of a distribution besides its density
    **dict.fromkeys(("Uniform", "Exponential", "Gamma", "Beta", "Gumbel", "LogNormal"), ALL),
    **dict.fromkeys(("Normal", "Bernoulli", "Categorical"), ()),  # methods that have rows of their own
    "Geometric": ALL,
    "Cauchy": ("entropy",),
    "Poisson": ("mean", "variance"),
    **dict.fromkeys(("Laplace", "HalfNormal", "StudentT"), ()),
}
SHAPES = ((4, 3), (5,), (2, 3, 2))  # the parameters of every optimizer group
FRESH = 60  # new layers whose initial values are compared
IMAGES = ((64, 48), (50, 71), (33, 33))  # height and width


def runnable() -> Iterator[tuple[str, Row, Case]]:
    """Every case that both frameworks run, with its name."""
    for row in table.rows():
        for index, case in enumerate(row.cases):
            if case.raises is None:
                yield f"{row.torch}[{index}]", row, case


WRONG_QUICK = 16  # every sixteenth of the wrong arguments is in a quick run


@cache
def quick(also: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """What a quick run has: the first case of every row, and these also, compiled for a fortieth of the rows."""
    first: dict[str, str] = {}
    for name, row, _ in runnable():
        first.setdefault(row.torch, name)
    names = dict.fromkeys((*first.values(), *also))
    return {n: MODES if zlib.crc32(n.partition("[")[0].encode()) % 40 == 0 else MODES[:1] for n in names}


def is_called(row: Row) -> bool:
    """Whether a row tells how a call crosses; a script's row without arguments is source text instead."""
    return row.kind != "script" or bool(row.arguments)


def draw(name: str, shape: tuple[int, ...], kind: Any = None) -> np.ndarray:
    """Values for one input or weight: float32 normal, or as the mapping `kind` says.

    kind: `values` (written out), `ints` (below a number, or in a range), `choices` (some of these), `uniform` (bounds),
    `simplex`, `mask` (the share that is True), `definite` (symmetric and positive definite matrices), and the `dtype`.
    """
    source = np.random.default_rng(zlib.crc32(name.encode()))
    dtype = kind.get("dtype") if kind else None
    if kind and "values" in kind:
        values = np.array(kind["values"])
        return values.astype(dtype or {"f": np.float32, "i": np.int32}.get(values.dtype.kind, values.dtype))
    if kind and ("ints" in kind or dtype in ("int32", "int64")):
        limits = kind.get("ints", (-9, 10))
        low, high = limits if isinstance(limits, (list, tuple)) else (0, limits)
        return source.integers(low, high, shape).astype(dtype or np.int32)
    if kind and "choices" in kind:
        return source.choice(np.array(kind["choices"], dtype or "float32"), shape)
    if kind and "uniform" in kind:
        return source.uniform(*kind["uniform"], shape).astype(dtype or np.float32)
    if kind and "mask" in kind:  # the share that is hidden; the first of each row never is
        return (source.uniform(size=shape) < kind["mask"]) & (np.arange(shape[-1]) > 0)
    if kind and "simplex" in kind:
        return source.dirichlet(np.ones(shape[-1]), shape[:-1]).astype(np.float32)
    values = source.normal(size=shape)
    if kind and "definite" in kind:
        values = values @ values.swapaxes(-1, -2) + np.eye(shape[-1])
    return values > 0 if dtype == "bool" else values.astype(dtype or np.float32)


def bind(row: Row, case: Case, xs: Sequence[Any]) -> dict[str, Any]:
    """The arguments of one call by their torch names: those of the case, and its inputs in torch's order between them.

    An argument that the case gives is none of its inputs: `{args: {min: null}, inputs: [[3], [3]]}` of torch.clamp
    gives `input` and `max`.
    """
    given, waiting = dict(case.args), [list(xs)] if case.pack else list(xs)
    if case.paired:
        waiting = [waiting[0], tuple(waiting[1:])]
    for argument in row.arguments:
        if waiting and argument.torch not in given:
            alone = len(waiting) == 1 and isinstance(waiting[0], list)  # the rest, packed
            given[argument.torch] = tuple(waiting) if argument.rest and not alone else waiting[0]
            waiting = [] if argument.rest else waiting[1:]
    assert not waiting, "more inputs than arguments"
    return given


def made_of(
    case: Case, xs: Sequence[Any], make: Callable[[str, dict[str, Any]], Any]
) -> tuple[dict[str, Any], list[Any]]:
    """The arguments that a case makes of its first inputs, `{self: {torch.distributions.Normal: [loc, scale]}}`, by
    their torch names; and the other inputs."""
    made, rest = {}, list(xs)
    for argument, classes in case.made.items():
        for cls, names in classes.items():
            made[argument] = make(cls, dict(zip(names, rest, strict=False)))
            rest = rest[len(names) :]
    return made, rest


def without_gradient(case: Case) -> set[int]:
    """The inputs of which a case says that torch gives them no gradient: `{shape: [3], fixed: true}`."""
    return {index for index, spec in enumerate(case.inputs) if isinstance(spec, dict) and spec.get("fixed")}


def pairs(case: Case) -> set[int]:
    """The inputs whose last axis is the two parts of complex numbers: `{shape: [3, 2], complex: true}`."""
    return {index for index, spec in enumerate(case.inputs) if isinstance(spec, dict) and spec.get("complex")}


def draw_weight(case_name: str, case: Case, tensor_name: str, shape: tuple[int, ...]) -> np.ndarray:
    """A weight or buffer by its torch name; running variances are positive."""
    values = draw(f"{case_name}/{tensor_name}", shape) * np.float32(case.weights)
    return np.abs(values) + 0.5 if tensor_name.endswith("running_var") else values


def inputs(case_name: str, case: Case) -> list[np.ndarray]:
    """The inputs of a case, from its shapes."""
    drawn = []
    for index, spec in enumerate(case.inputs):
        shape, kind = (spec.get("shape", ()), spec) if isinstance(spec, dict) else (spec, None)
        drawn.append(draw(f"{case_name}/input{index}", tuple(shape), kind))
    return drawn


def differentiated(row: Row, case: Case, arrays: list[np.ndarray]) -> list[int]:
    """Which inputs' gradients are compared: all of floats, of a loss the first; `grad` in an input says otherwise."""
    told = [spec.get("grad") if isinstance(spec, dict) else None for spec in case.inputs]
    usual = [row.kind != "loss" or index == 0 for index in range(len(arrays))]
    wanted = [usual[index] if told[index] is None else told[index] for index in range(len(arrays))]
    return [index for index, array in enumerate(arrays) if wanted[index] and array.dtype.kind == "f"]


def phases(row: Row, mode: str) -> tuple[str, ...]:
    """What is run of a row in one of MindSpore's modes.

    Compiling modules takes long, and but for dropout, which they have at 0 here, their eval is their train.
    """
    if row.kind not in ("layer", "module") or (row.kind == "module" and mode == "graph"):
        return ("train",)
    return ("train", "eval")


def flat(result: Any) -> list[Any]:
    """The tensors of an output: of a recurrent net the sequence, then its last states."""
    return [tensor for part in result for tensor in flat(part)] if isinstance(result, (tuple, list)) else [result]


def output_names(count: int) -> list[str]:
    """The names of a result's tensors."""
    return ["out", *(f"out{index}" for index in range(1, count))]


def image(height: int, width: int) -> np.ndarray:
    """An image whose red channel is the column, green the row, and blue noise; uint8, height × width × 3."""
    rows, columns = np.mgrid[0:height, 0:width]
    noise = np.random.default_rng(7).integers(0, 256, (height, width))
    return np.stack([columns, rows, noise], axis=-1).astype(np.uint8)


def extent(crop: np.ndarray) -> np.ndarray:
    """Where a crop of `image` came from: column and row, smallest, largest, mean and first; then how much the noise
    deviates; float64 (9,)."""
    *places, noise = (np.ascontiguousarray(np.asarray(crop)[..., channel]).reshape(-1) for channel in range(3))
    kinds = (np.min, np.max, np.mean, lambda values: values[0])
    return np.array([*(kind(place) for kind in kinds for place in places), noise.std()], np.float64)


def measured(step: int) -> float:
    """What a validation might give: a loss that falls, and falls no more."""
    return float(1.0 / (1 + min(step, 14)) + 0.02 * np.sin(step))


def rules(args: Mapping[str, Any]) -> dict[str, Any]:
    """A schedule's arguments, with functions in the place of their names."""
    named = args.get("lr_lambda")
    if named is None:
        return dict(args)
    return {**args, "lr_lambda": [RULES[name] for name in named] if isinstance(named, (list, tuple)) else RULES[named]}


def together(result: Any) -> np.ndarray:
    """A transform's image, or its several of one size, as one array."""
    return np.stack([np.asarray(each) for each in result]) if isinstance(result, tuple) else np.asarray(result)


UNTOUCHED = 9.0  # a value that no erased patch has


def patch(erased: np.ndarray) -> np.ndarray:
    """Where an array (3, H, W) of UNTOUCHED was erased, and with what: top, left, height, width, and mean and standard
    deviation of the patch's channels, all 0 where there is none; float64 (10,)."""
    changed = np.asarray(erased) != UNTOUCHED
    rows, columns = np.flatnonzero(changed.any((0, 2))), np.flatnonzero(changed.any((0, 1)))
    if rows.size == 0:
        return np.zeros(10)
    inside = np.asarray(erased)[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].astype(np.float64)
    return np.array([rows[0], columns[0], *inside.shape[1:], *inside.mean((1, 2)), *inside.std((1, 2))])


class Results:
    """Named arrays and notes of one worker, written as one npz and one JSON file."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.errors: dict[str, str] = {}
        self.notes: dict[str, Any] = {}

    def run(self, key: str, function: Callable[[], dict[str, Any]]) -> None:
        """Run one case and keep its arrays under `key|name`; an exception fails only this key."""
        try:
            for name, value in function().items():
                self.arrays[f"{key}|{name}"] = np.asarray(value)
        except Exception:
            self.errors[key] = traceback.format_exc()

    def save(self, folder: Path) -> None:
        """Write both files."""
        np.savez(folder / "arrays.npz", **self.arrays)
        (folder / "notes.json").write_text(json.dumps({"errors": self.errors, "notes": self.notes}))

    @classmethod
    def load(cls, folder: Path) -> Results:
        """Read what `save` wrote."""
        results = cls()
        with np.load(folder / "arrays.npz") as arrays:
            results.arrays = dict(arrays)
        content = json.loads((folder / "notes.json").read_text())
        results.errors, results.notes = content["errors"], content["notes"]
        return results

    def of(self, key: str) -> dict[str, np.ndarray]:
        """The arrays of one key, by name."""
        return {name.partition("|")[2]: value for name, value in self.arrays.items() if name.startswith(f"{key}|")}
