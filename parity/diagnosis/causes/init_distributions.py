"""Why initial distributions differ: the initializers that MindSpore's values may have been drawn with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...compare import Traces
from ...result import Cause, Finding
from ...trace import DISTRIBUTION
from ..context import owners, place
from ..evidence import cause, failed, key_of

ALPHA = 1e-5  # chance that the right initializer is refused
FEWEST = 10
ENOUGH = 4096  # values that tell two initializers apart
Cdf = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Initializer:
    """One way to draw values: as MindSpore writes it, its family, and the distribution function."""

    text: str
    family: str
    cdf: Cdf


@dataclass(frozen=True)
class FittedInitializer:
    """An initializer that the values fit, and their Kolmogorov-Smirnov distance from it."""

    initializer: Initializer
    distance: float


def explain(traces: Traces, findings: Sequence[Finding]) -> list[Cause]:
    """Causes of what failed in the initial distributions."""
    wrong = failed(findings, "init", DISTRIBUTION)
    everything = [e.name for e in traces.alone[1].select("init", DISTRIBUTION)]
    kinds = owners(traces.alone[1], everything)
    frozen, found = [], {}
    for finding in wrong:
        key = key_of(finding)
        of_mindspore, of_torch = traces.mindspore.entries.get(key), traces.alone[1].entries.get(key)
        if of_mindspore is None:
            if ("init", "values", finding.name, 0) in traces.mindspore.entries:
                frozen.append(finding.name)
            continue
        shape = _shape(traces, finding.name)
        if of_torch is not None and shape is not None and not of_mindspore.nonfinite:
            found[finding.name] = (traces.mindspore.array(key), traces.alone[1].array(key), shape)
    causes = []
    if frozen:
        text = "the parameter does not train: requires_grad is off in the new net"
        where = place(frozen, everything, kinds)
        causes.append(
            cause("init", where, "parameter-frozen", text, f"{len(frozen)} parameters", fix="requires_grad=True")
        )
    theirs_by = common({name: matches(drawn, shape) for name, (drawn, _, shape) in found.items()})
    ours_by = common({name: matches(wanted, shape) for name, (_, wanted, shape) in found.items()})
    shown: dict[tuple[str | None, str], list[str]] = {}
    for name, (drawn, wanted, _) in found.items():
        match = theirs_by.get(name)
        ratio = drawn.std() / wanted.std() if wanted.std() else math.inf
        text = f"drawn as {match.initializer.text}" if match else f"drawn with {ratio:.3g} times torch's deviation"
        shown.setdefault((_fault(match, kinds.get(name, "")) if match else None, text), []).append(name)
    for (fault, text), names in shown.items():
        torch = list(dict.fromkeys(ours_by[name].initializer.text for name in names if name in ours_by))
        text += f" where torch draws as {' or '.join(torch)}" if torch else ""
        distances = [theirs_by[name].distance for name in names if name in theirs_by]
        evidence = f"{len(names)} parameters"
        evidence += f"; Kolmogorov-Smirnov distance from that at most {max(distances):.3f}" if distances else ""
        where = place(names, everything, kinds)
        causes.append(cause("init", where, fault, text, evidence, fix=" or ".join(torch)))
    return causes


def common(found: dict[str, list[FittedInitializer]]) -> dict[str, FittedInitializer]:
    """One initializer for each name among those that it fits: the one that fits the most names first.

    In a layer whose fan_in happens to equal another fan, several are the same; the other layers tell them apart.
    """
    chosen: dict[str, FittedInitializer] = {}
    while left := [name for name in found if name not in chosen and found[name]]:
        votes: dict[str, tuple[int, float]] = {}
        for name in left:
            for match in found[name]:
                count, off = votes.get(match.initializer.text, (0, 0.0))
                votes[match.initializer.text] = count + 1, off - match.distance
        best = max(votes, key=lambda text: votes[text])  # the closest of as many, and of equals the first
        for name in left:
            chosen.update((name, match) for match in found[name] if match.initializer.text == best)
    return chosen


def _shape(traces: Traces, name: str) -> tuple[int, ...] | None:
    for trace in (traces.alone[1], traces.mindspore):
        entry = trace.entries.get(("init", "values", name, 0))
        if entry is not None:
            return entry.shape
    return None


def _fault(match: FittedInitializer, kind: str) -> str:
    """The fault by what MindSpore drew from: its own defaults have names of their own."""
    text = match.initializer.text
    if text == "Normal(0.01)":
        return "embedding-init" if kind == "Embedding" else "conv-init-old"
    if text in ("Uniform(0.07)", "TruncatedNormal(0.01)"):
        return "init-strings"
    return {"HeUniform(fan_in, relu)": "he-gain", "HeNormal(fan_in, relu)": "he-fan-out"}.get(text, "initializer-other")


def matches(values: np.ndarray, shape: Sequence[int]) -> list[FittedInitializer]:
    """The initializers of a tensor of this shape that the values fit, in the order of `initializers`.

    One-sample Kolmogorov-Smirnov test: sqrt(-ln(a / 2) / 2n) is the asymptotic critical distance.
    """
    x = np.sort(values[:: max(1, len(values) // ENOUGH)].astype(np.float64))
    n = len(x)
    if n and x[0] == x[-1]:
        return [FittedInitializer(Initializer(f"Constant({x[0]:g})", "Constant", lambda v: v), 0.0)]
    if n < FEWEST:
        return []
    steps = np.arange(1, n + 1) / n
    critical = math.sqrt(-math.log(ALPHA / 2) / (2 * n))
    found = []
    for one in initializers(shape):
        at = one.cdf(x)
        distance = float(max(np.abs(steps - at).max(), np.abs(steps - 1 / n - at).max()))
        if distance <= critical:
            found.append(FittedInitializer(one, distance))
    return found


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """fan_in and fan_out of a weight (out, in, …), as both frameworks count them; of a vector its length, twice."""
    if len(shape) < 2:
        size = int(shape[0]) if shape else 1
        return size, size
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def initializers(shape: Sequence[int]) -> Iterator[Initializer]:
    """What a tensor of this shape may be drawn with, the likelier first."""
    fan_in, fan_out = fans(shape)
    for mode, fan in (("fan_in", fan_in), ("fan_out", fan_out)):
        for gain, what in (
            (math.sqrt(2.0), "relu"),
            (math.sqrt(1 / 3), "leaky_relu, negative_slope=√5"),
            (1.0, "linear"),
        ):
            deviation = gain / math.sqrt(fan)
            yield normal(deviation, f"HeNormal({mode}, {what})", "HeNormal")
            yield uniform(math.sqrt(3.0) * deviation, f"HeUniform({mode}, {what})", "HeUniform")
    xavier = math.sqrt(2.0 / (fan_in + fan_out))
    yield normal(xavier, "XavierNormal()", "XavierNormal")
    yield uniform(math.sqrt(3.0) * xavier, "XavierUniform()", "XavierUniform")
    for deviation in (0.01, 0.02, 1.0, 0.05, 0.001):
        yield normal(deviation, f"Normal({deviation:g})", "Normal")
        yield truncated(deviation, 2.0 * deviation, f"TruncatedNormal({deviation:g})", "TruncatedNormal")
        if deviation in (0.02, 0.01):  # torch's trunc_normal_ cuts at absolute -2 and 2
            yield truncated(deviation, 2.0, f"TruncatedNormal({deviation:g}, a=-2, b=2)", "TruncatedNormal")
    for bound in (0.07, 1.0, 0.05, 0.01):
        yield uniform(bound, f"Uniform({bound:g})", "Uniform")
    for fan, mode in ((fan_in, "fan_in"), (fan_out, "fan_out")):
        yield uniform(1 / math.sqrt(fan), f"Uniform(1/√{mode})", "Uniform")
    yield Initializer("uniform on [0, 1)", "Uniform", lambda x: np.clip(x, 0.0, 1.0))
    for fan, mode in ((fan_in, "fan_in"), (fan_out, "fan_out")):
        deviation = 1 / math.sqrt(fan)
        yield truncated(
            deviation / 0.87962566, 2 * deviation / 0.87962566, f"VarianceScaling({mode}, truncated)", "Truncated"
        )


def normal(deviation: float, text: str, family: str) -> Initializer:
    """A normal distribution around 0."""
    return Initializer(text, family, lambda x: _phi(x / deviation))


def uniform(bound: float, text: str, family: str) -> Initializer:
    """A uniform distribution within ±bound."""
    return Initializer(text, family, lambda x: np.clip((x + bound) / (2 * bound), 0.0, 1.0))


def truncated(deviation: float, bound: float, text: str, family: str) -> Initializer:
    """A normal distribution cut off at ±bound."""
    low = float(_phi(np.array([-bound / deviation]))[0])

    def cdf(x: np.ndarray) -> np.ndarray:
        return np.asarray(np.clip((_phi(x / deviation) - low) / (1 - 2 * low), 0.0, 1.0))

    return Initializer(text, family, cdf)


def _phi(x: np.ndarray) -> np.ndarray:
    """The standard normal distribution function."""
    return np.array([0.5 * (1.0 + math.erf(v / math.sqrt(2.0))) for v in x])
