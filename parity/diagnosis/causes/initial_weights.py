"""Why the starting weights, or the distributions that they are drawn from, differ.

Starting weights have to be equal to the bit, so hypotheses on them are tested to the bit, by the digest of the whole
tensor. For a distribution, the initializers are named that MindSpore's values may have been drawn with.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from ....training.step.parameter_groups import is_norm
from ...compare_traces import compare_distributions
from ...result import Cause, CellChange
from ...trace import DISTRIBUTION, Entry, Trace
from ..context import Context, cell_of, key_of, recorded
from ..differences import pattern
from ..hypotheses import cause

VALUES = "values"
GATES = {4: "LSTM gates", 3: "GRU gates or query, key and value"}
FRESH = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}
NOT_LOADED = "it was not loaded: it still has its initial values"
FEWEST = 50  # from this many values on a distribution can be recognized
NEAR = 4  # units in the last place that count as rounding
RENAMED = {"Embedding": "embedding-name", "PReLU": "prelu-ln-transformer-names"}  # their weight has another name
ALPHA = 1e-5  # chance that the right initializer is rejected
FEWEST_DRAWN = 10  # from this many values on an initializer is named
ENOUGH = 4096  # this many values tell two initializers apart
NORMAL, UNIFORM = "Normal(sigma={:g})", "Uniform(scale={:g})"
CUT = "TruncatedNormal(sigma={0:g}, a=-{1:g}, b={1:g})"
# normal distributions that a TruncatedNormal of MindSpore's equals: its a and b are values, as in torch's trunc_normal_
FAR_CUTS = {NORMAL.format(sigma): f"TruncatedNormal(sigma={sigma:g})" for sigma in (0.01, 0.02, 0.05, 0.001)}
OF_THE_WEIGHT = "HeUniform(mode='fan_in', negative_slope=math.sqrt(5))"  # torch's default for a layer and its bias
AFTER_THE_CUT = 0.87962566  # deviation of what is left of the standard normal distribution between -2 and 2
Reading = tuple[str | None, str, str]  # fault, text, fix
Cdf = Callable[[np.ndarray], np.ndarray]


def explain(context: Context) -> list[Cause]:
    """The causes of what failed in stage init."""
    if not context.failed("init"):
        return []
    return _StartingWeights(context).causes() + distributions(context)


class _StartingWeights:
    """What MindSpore's net began with, and torch's tensors by state_dict name."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.start: dict[str, np.ndarray] = {n: t.detach().numpy() for n, t in context.model.state_dict().items()}
        self.names = [e.name for e in context.traces.alone[1].select("init", VALUES)]
        self.kinds = context.kinds(self.names)

    def causes(self) -> list[Cause]:
        """Causes of what failed in the starting values."""
        shown: dict[Reading, list[str]] = {}
        absent: dict[Reading, list[str]] = {}
        left, unknown = [], []
        for finding in self.context.failed("init", VALUES):
            entry = self.context.mindspore.entries.get(key_of(finding))
            if entry is None or finding.name not in self.start or finding.name not in self.names:
                absent.setdefault(self._absent(finding.name, entry is None), []).append(finding.name)
            else:
                left.append(entry)
        causes = [
            cause("init", self.context.place(found, [*self.names, *found]), fault, text, _tensors(found), fix=fix)
            for (fault, text, fix), found in absent.items()
        ]
        swapped, rest = self._swapped(left)
        for entry in rest:
            reading = next(self._readings(entry), None)
            if reading is None:
                unknown.append(entry)
            else:
                shown.setdefault(reading, []).append(entry.name)
        for entry in unknown:
            # too few values to recognize their distribution: the tensor was left out with the rest of its layer
            layer = _owner(entry.name)
            left_out = [of for reading, of in shown.items() if NOT_LOADED in reading and layer in map(_owner, of)]
            if left_out and np.prod(entry.shape) < FEWEST:
                left_out[0].append(entry.name)
            else:
                causes.append(self._unexplained(entry))
        causes += swapped
        for (fault, text, fix), found in shown.items():
            evidence = f"equal to the bit then, {_tensors(found)}"
            causes.append(cause("init", self.context.place(found, self.names), fault, text, evidence, 0.0, fix=fix))
        return causes

    def _absent(self, name: str, missing: bool) -> Reading:
        """Why only one side has a tensor."""
        kind, last = self.kinds.get(name, ""), name.rpartition(".")[2]
        alone = self.context.traces.alone[1]
        if missing:
            if last == "bias" and ("Conv" in kind or kind == "Linear"):
                return "conv-bias-default", "the layer has no bias", "has_bias=True"
            if any(e.name == name for e in alone.select("update", "given gradients")):
                return "tensor-not-parameter", "MindSpore has no such tensor: it is no Parameter", "mindspore.Parameter"
            text = "MindSpore has no such tensor: only a Parameter is saved and loaded"
            return "buffers-not-saved", text, "Parameter(…, requires_grad=False)"
        if name in self.start:
            text = "it is one parameter with another weight in torch, and two in MindSpore"
            return "shared-weights", text, "one Parameter for both"
        owners = [e.module or "" for e in alone.entries.values() if e.stage == "forward" and e.name == _owner(name)]
        if owners and "InstanceNorm" in owners[-1]:
            return "in-affine-default", "only MindSpore has it: the norm is affine", "affine=False"
        return None, "only MindSpore has this tensor", ""

    def _equal(self, entry: Entry, candidate: np.ndarray) -> bool:
        """Whether MindSpore's tensor equals this one to the bit."""
        if candidate.shape != entry.shape or str(candidate.dtype) != entry.dtype:
            return False
        if entry.digest is not None:
            return _digest(candidate) == entry.digest
        of_mindspore = self.context.mindspore_values(entry.key)
        return bool(np.array_equal(recorded(candidate, of_mindspore.size), of_mindspore))

    def _swapped(self, left: Sequence[Entry]) -> tuple[list[Cause], list[Entry]]:
        """Tensors that hold another one's values, and those that do not."""
        digests: dict[tuple[tuple[int, ...], str], list[str]] = {}
        for name, array in self.start.items():
            digests.setdefault((array.shape, _digest(array)), []).append(name)
        holds, rest = {}, []
        for entry in left:
            sources = digests.get((entry.shape, entry.digest or ""), [])
            if len(sources) == 1 and sources[0] != entry.name:  # equal constants show nothing
                holds[entry.name] = sources[0]
            else:
                rest.append(entry)
        causes, seen = [], set()
        families: dict[str, list[str]] = {}
        for name, source in holds.items():
            if name in seen:
                continue
            mutual = holds.get(source) == name
            seen |= {name, source} if mutual else {name}
            pair = sorted((name.rpartition(".")[2], source.rpartition(".")[2]))
            words = {
                ("bias", "weight"): "gamma and beta" if is_norm(self.kinds.get(name, "")) else "weight and bias",
                ("running_mean", "running_var"): "moving_mean and moving_variance",
            }.get((pair[0], pair[1]), "")
            if _owner(name) == _owner(source) and mutual and words:
                families.setdefault(f"{words} have each other's values", []).append(_owner(name))
                continue
            text = f"{name} and {source} have each other's values" if mutual else f"it has the values of {source}"
            where = f"{name} and {source}" if mutual else name
            fix = "one rule for each name; rename by the layer that owns the tensor"
            causes.append(cause("init", where, "weights-swapped", text, "equal to the bit", 0.0, fix=fix))
        for text, modules in families.items():
            where = ", ".join(modules[:3]) + (f" and {len(modules) - 3} more" if len(modules) > 3 else "")
            fix = "weight is gamma, bias is beta, running_mean moving_mean, running_var moving_variance"
            causes.append(cause("init", where, "weights-swapped", text, "equal to the bit", 0.0, fix=fix))
        return causes, rest

    def _readings(self, entry: Entry) -> Iterator[Reading]:
        """What may have been done to one tensor."""
        array = self.start[entry.name]
        for (fault, text, fix), candidate in _arrangements(array):
            if self._equal(entry, candidate):
                yield fault, text, fix
        of_mindspore = self.context.mindspore_values(entry.key)
        if of_mindspore.size == array.size and np.array_equal(of_mindspore, array.reshape(-1)):
            if of_mindspore.dtype != array.dtype:
                yield None, f"the same values as {of_mindspore.dtype}, which are {array.dtype} in torch", ""
        elif of_mindspore.size == array.size and np.array_equal(np.sort(of_mindspore), np.sort(array.reshape(-1))):
            yield "weight-transposed", "the same values in another order: reshaped or transposed on loading", ""
        yield from self._fresh(entry, array)
        of_torch = recorded(array, of_mindspore.size)
        if of_mindspore.dtype != np.float32 or of_torch.dtype != np.float32 or entry.shape != array.shape:
            return
        ulps = np.abs(_ordered(of_mindspore) - _ordered(of_torch))
        if not entry.nonfinite and ulps.max() <= NEAR:
            text = f"{int((ulps > 0).sum())} values are off by {int(ulps.max())} unit in the last place"
            yield "weights-rounded", text, "copy the bytes; no arithmetic on the way"
        found = pattern(of_torch, of_mindspore)
        if found.constant and not np.array_equal(of_torch, of_mindspore) and found.factor:
            yield "weights-scaled", f"the values are {found.factor:.6g} times torch's", ""
        off = of_mindspore.astype(np.float64) - of_torch
        if of_torch.size > 1 and abs(off.mean()) > 1e3 * off.std():
            yield "weights-scaled", f"the values are torch's plus {off.mean():.6g}", ""

    def _fresh(self, entry: Entry, array: np.ndarray) -> Iterator[Reading]:
        """Values that come from no checkpoint: constants, or draws from the net's own initial distribution."""
        of_mindspore, kind = self.context.mindspore_values(entry.key), self.kinds.get(entry.name, "")
        fault = RENAMED.get(kind, "load-silent")
        if is_norm(kind):
            fault = "bn-params-names" if "BatchNorm" in kind else "prelu-ln-transformer-names"
        fix = "look at what load_param_into_net returns; strict_load=True"
        if of_mindspore.size and np.all(of_mindspore == of_mindspore[0]) and not np.all(array == array.reshape(-1)[0]):
            value = float(of_mindspore[0])
            if value == FRESH.get(entry.name.rpartition(".")[2]) or value in (0.0, 0.25):  # 0.25: a PReLU
                yield fault, NOT_LOADED, fix
            else:
                yield None, f"it is {value:g} throughout", fix
            return
        key = ("init", DISTRIBUTION, entry.name, 0)
        if (
            key in self.context.mindspore.entries
            and of_mindspore.size >= FEWEST
            and not entry.nonfinite
            and abs(pattern(recorded(array, of_mindspore.size), of_mindspore).cosine) <= 0.3
            and compare_distributions(self.context.mindspore_values(key), of_mindspore, 1).agree
        ):
            yield fault, NOT_LOADED, fix

    def _unexplained(self, entry: Entry) -> Cause:
        array, of_mindspore = self.start[entry.name], self.context.mindspore_values(entry.key)
        if entry.shape != array.shape:
            text = f"it has shape {list(entry.shape)} where torch has {list(array.shape)}"
            return cause("init", entry.name, None, text)
        of_torch = recorded(array, of_mindspore.size)
        different = int((of_torch != of_mindspore).sum())
        evidence = f"{different} of {of_mindspore.size} compared values differ; {pattern(of_torch, of_mindspore)}"
        return cause("init", entry.name, None, "nothing known gives these starting values", evidence)


def _tensors(names: Sequence[str]) -> str:
    return f"{len(names)} tensors"


def _owner(name: str) -> str:
    return name.rpartition(".")[0]


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).reshape(-1).data).hexdigest()


def _arrangements(array: np.ndarray) -> Iterator[tuple[Reading, np.ndarray]]:
    """What a faulty conversion may have made of a tensor: its reading, and the tensor."""
    for axes in permutations(range(array.ndim)):
        if axes != tuple(range(array.ndim)):
            how = "dense-transposed", "the weight is transposed", "never transpose: nn.Dense has torch's layout"
            if array.ndim != 2:
                how = "weight-transposed", f"the weight's axes are permuted: {list(axes)}", "keep torch's axes"
            yield how, array.transpose(axes)
    flips = {4: [((2, 3), "height and width"), ((1,), "the input channels")]}.get(array.ndim, [])
    flips += [((0,), "the output channels")] if array.ndim else []
    flips += [((1,), "the inputs")] if array.ndim == 2 else []
    for flipped, words in flips:
        yield ("weight-flipped", f"the weight is reversed along {words}", ""), np.flip(array, flipped)
    for count, what in GATES.items():
        if array.ndim and array.shape[0] % count == 0 and array.shape[0] > count:
            parts, fault = np.split(array, count), "lstm-gate-order" if count == 4 else "mha-packed-order"
            for order in permutations(range(count)):
                if list(order) != sorted(order):
                    text = f"the {what} are in the order {list(order)}"
                    yield (fault, text, "keep torch's order"), np.concatenate([parts[i] for i in order])
    if array.ndim and array.shape[0] % 3 == 0:
        width = array.shape[0] // 3
        for heads in (n for n in range(2, min(width, 33)) if width % n == 0):
            packed = array.reshape(3, heads, width // heads, *array.shape[1:]).swapaxes(0, 1).reshape(array.shape)
            text = f"packed by {heads} heads, each with its query, key and value"
            yield ("mha-packed-order", text, ""), packed
    if array.dtype == np.float32:
        for bits, what in ((_half(array), "float16"), (_bfloat(array), "bfloat16")):
            yield ("weights-rounded", f"the values went through {what}", "store checkpoints in float32"), bits
        for factor in (-1.0, 0.5, 2.0, 255.0, 1 / 255.0) if np.any(array) else ():
            with np.errstate(all="ignore"):
                scaled = array * np.float32(factor)
            yield ("weights-scaled", f"the values are {factor:.6g} times torch's", ""), scaled


def _half(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return array.astype(np.float16).astype(np.float32)


def _bfloat(array: np.ndarray) -> np.ndarray:
    """To bfloat16 and back, rounding to nearest even."""
    bits = np.ascontiguousarray(array).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return np.asarray(rounded.astype(np.uint32).view(np.float32)).reshape(array.shape)


def _ordered(values: np.ndarray) -> np.ndarray:
    """float32 values as integers in the same order, so that neighbours differ by one."""
    bits = np.ascontiguousarray(values).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


@dataclass(frozen=True)
class FittedInitializer:
    """An initializer that the values fit, as MindSpore writes it, and their Kolmogorov-Smirnov distance from it."""

    text: str
    distance: float


def distributions(context: Context) -> list[Cause]:
    """Causes of what failed in the initial distributions."""
    traces, frozen = context.traces, []
    cuts = () if context.paired is None else context.paired.alignment.cuts
    cut = {name for each in cuts for name in each.torch}
    everything = [e.name for e in traces.alone[1].select("init", DISTRIBUTION)]
    kinds, cells = context.kinds(everything), {module.name: cell_of(module) for module in context.modules}
    drawn: dict[str, np.ndarray] = {}
    expected: dict[str, np.ndarray] = {}
    for finding in context.failed("init", DISTRIBUTION):
        name, key = finding.name, key_of(finding)
        values = ("init", VALUES, name, 0)
        entry = traces.mindspore.entries.get(key)
        if entry is None and values in traces.mindspore.entries:
            frozen.append(name)
        elif entry is not None and not entry.nonfinite and key in traces.alone[1].entries:
            drawn[name], expected[name] = traces.mindspore.array(key), traces.alone[1].array(key)
    causes = []
    if frozen:
        text, where = (
            "the parameter does not train: requires_grad is off in the new net",
            context.place(frozen, everything),
        )
        evidence = f"{len(frozen)} parameters"
        causes.append(cause("init", where, "parameter-frozen", text, evidence, fix="requires_grad=True"))
    # layers that agree count too: two initializers that are the same in one layer may differ in another
    fitted, right = (_fitted(trace) if drawn else {} for trace in (traces.mindspore, traces.alone[1]))
    shown: dict[tuple[str | None, str, str], list[str]] = {}
    for name in drawn:
        match = fitted.get(name)
        ratio = drawn[name].std() / expected[name].std() if expected[name].std() else math.inf
        text = f"drawn as {match.text}" if match else f"drawn with {ratio:.3g} times torch's deviation"
        if match and match.text in FAR_CUTS:
            text += f" (or {FAR_CUTS[match.text]}, which cuts at -2 and 2 whatever sigma is)"
        torch = right[name].text if name in right else ""
        shown.setdefault((_fault(match, torch, kinds.get(name, "")) if match else None, text, torch), []).append(name)
    for (fault, text, torch), names in shown.items():
        text += f" where torch draws as {torch}" if torch else ""
        distances = [fitted[name].distance for name in names if name in fitted]
        evidence = f"{len(names)} parameters"
        evidence += f"; Kolmogorov-Smirnov distance from that at most {max(distances):.3f}" if distances else ""
        otherwise = bool(torch) and not torch.startswith("Constant") and any(name in cut for name in names)
        argument = _argument(names, kinds) if torch and not otherwise else ""
        code = _as_argument(argument, torch)
        found = [cells[_owner(name)] for name in names if _owner(name) in cells]
        change = CellChange(tuple(found), "", {argument: code}) if argument and len(found) == len(names) else None
        fix = f"{argument}={code}" if argument else torch
        fix += " of a tensor of torch's shape, cut as MindSpore's net has it" if otherwise else ""
        causes.append(cause("init", context.place(names, everything), fault, text, evidence, fix=fix, change=change))
    return causes


def _fitted(trace: Trace) -> dict[str, FittedInitializer]:
    """Parameter -> the initializer that fits its values in newly drawn models of this side."""
    found = {}
    for entry in trace.select("init", DISTRIBUTION):
        own = trace.entries.get(("init", VALUES, entry.name, 0))
        weight = trace.entries.get(("init", VALUES, f"{_owner(entry.name)}.weight", 0))
        if own is not None and not entry.nonfinite:
            feeding = weight.shape if weight is not None and entry.name.endswith(".bias") else ()
            feeding = feeding if len(feeding) > 1 else ()
            found[entry.name] = matches(trace.array(entry.key), own.shape, feeding)
    return common(found)


def _argument(names: Sequence[str], kinds: Mapping[str, str]) -> str:
    """The argument by which MindSpore's layers take the initializer of these parameters, if all have the same."""
    taken = set()
    for name in names:
        kind, own = kinds.get(name, ""), name.rpartition(".")[2]
        plain = own in ("weight", "bias") and ("Conv" in kind or kind == "Linear")
        taken.add("embedding_table" if kind == "Embedding" else f"{own}_init" if plain else "")
    return taken.pop() if len(taken) == 1 else ""


def _as_argument(argument: str, initializer: str) -> str:
    """An initializer as code for a layer's argument: None for a bias drawn by its weight's fans, which both frameworks'
    layers then do; MindSpore cannot compute fans of one dimension."""
    return "None" if argument == "bias_init" and initializer == OF_THE_WEIGHT else initializer


def common(found: dict[str, list[FittedInitializer]]) -> dict[str, FittedInitializer]:
    """One initializer for each name among those that fit it: the one that fits the most names first.

    In a layer whose fan_in happens to equal another fan, several are the same; other layers tell them apart.
    """
    chosen: dict[str, FittedInitializer] = {}
    while left := [name for name in found if name not in chosen and found[name]]:
        votes: dict[str, tuple[int, float]] = {}
        for name in left:
            for match in found[name]:
                count, off = votes.get(match.text, (0, 0.0))
                votes[match.text] = count + 1, off - match.distance
        best = max(votes, key=lambda text: votes[text])  # with equally many names the closest, then the first
        for name in left:
            chosen.update((name, match) for match in found[name] if match.text == best)
    return chosen


def _fault(match: FittedInitializer, torch: str, kind: str) -> str:
    """The fault, by the initializers of MindSpore and torch: MindSpore's own defaults are faults of their own."""
    if match.text == NORMAL.format(0.01) and kind == "Embedding" and torch == NORMAL.format(1):
        return "embedding-init"
    if match.text in (NORMAL.format(0.01), UNIFORM.format(0.07)):
        return "init-strings"
    if match.text == "HeUniform(mode='fan_in', nonlinearity='relu')" and "math.sqrt(5)" in torch:
        return "he-gain"
    if match.text == "HeNormal(mode='fan_in', nonlinearity='relu')" and torch.startswith("HeNormal(mode='fan_out'"):
        return "he-fan-out"
    return "initializer-other"


def matches(values: np.ndarray, shape: Sequence[int], feeding: Sequence[int] = ()) -> list[FittedInitializer]:
    """The initializers for a tensor of this shape that fit the values, in the order of `initializers`; if none of those
    fits, from each family the one with the values' own size.

    feeding: the weight's shape, where the tensor is its bias. One-sample Kolmogorov-Smirnov test:
    sqrt(-ln(a / 2) / 2n) is the asymptotic critical distance. Besides that, an initializer is rejected by a value that
    it cannot draw, and by a largest value that it would almost surely exceed: a normal distribution and a truncated one
    differ in nothing else.
    """
    x = np.sort(values[:: max(1, len(values) // ENOUGH)].astype(np.float64))
    n = len(x)
    if n and x[0] == x[-1]:
        return [FittedInitializer(f"Constant({x[0]:g})", 0.0)]
    if n < FEWEST_DRAWN:
        return []
    if gain := orthogonal(values, shape):
        return [FittedInitializer(f"Orthogonal(gain={gain:.4g})", 0.0)]
    return _that_fit(x, initializers(feeding or shape)) or _that_fit(x, _of_their_own_size(x))


def _that_fit(x: np.ndarray, candidates: Iterator[tuple[str, Cdf]]) -> list[FittedInitializer]:
    """The candidates that fit the sorted values."""
    n = len(x)
    steps = np.arange(1, n + 1) / n
    critical = math.sqrt(-math.log(ALPHA / 2) / (2 * n))
    largest = float(np.abs(x).max())
    found = []
    for text, cdf in candidates:
        at = cdf(x)
        distance = float(max(np.abs(steps - at).max(), np.abs(steps - 1 / n - at).max()))
        below, within = cdf(np.array([-largest, largest]) * (1 - 1e-5))
        possible = cdf(x[-1:] * (1 - 1e-5))[0] < 1.0 and cdf(x[:1] * (1 - 1e-5))[0] > 0.0
        if distance <= critical and possible and (within - below) ** n >= ALPHA:
            found.append(FittedInitializer(text, distance))
    return found


def _of_their_own_size(x: np.ndarray) -> Iterator[tuple[str, Cdf]]:
    """Each family with its size taken from the values, rounded to as many digits as these determine."""
    deviation = float(np.sqrt((x**2).mean()))
    for digits in (1, 2, 3):
        bound, sigma, cut = (
            float(f"{size:.{digits}g}") for size in (math.sqrt(3.0) * deviation, deviation, deviation / AFTER_THE_CUT)
        )
        yield UNIFORM.format(bound), uniform(bound)
        yield CUT.format(cut, 2 * cut), truncated(cut, 2 * cut)
        yield NORMAL.format(sigma), normal(sigma)


def orthogonal(values: np.ndarray, shape: Sequence[int]) -> float | None:
    """The gain, where fully recorded values begin with a matrix of orthogonal rows or columns; else None."""
    rows, columns = (shape[0], math.prod(shape[1:])) if len(shape) > 1 else (0, 0)
    if min(rows, columns) < 2 or len(values) < rows * columns or len(values) % (rows * columns):
        return None
    matrix = values[: rows * columns].astype(np.float64).reshape(rows, columns)
    product = matrix @ matrix.T if rows <= columns else matrix.T @ matrix
    squared = float(np.trace(product)) / len(product)
    same = squared > 0.0 and np.allclose(product, squared * np.eye(len(product)), rtol=0.0, atol=1e-4 * squared)
    return math.sqrt(squared) if same else None


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """fan_in and fan_out of a weight (out, in, …), as both frameworks count them; for a vector twice its length."""
    if len(shape) < 2:
        size = int(shape[0]) if shape else 1
        return size, size
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def initializers(shape: Sequence[int]) -> Iterator[tuple[str, Cdf]]:
    """The initializers for a tensor of this shape, as MindSpore writes them, with their distribution functions; the
    likelier first."""
    fan_in, fan_out = fans(shape)
    modes = (("fan_in", fan_in), ("fan_out", fan_out))
    gains = {
        "nonlinearity='relu'": math.sqrt(2.0),
        "negative_slope=math.sqrt(5)": math.sqrt(1 / 3),  # the layers' own default in both frameworks
        "nonlinearity='linear'": 1.0,
    }
    for mode, fan in modes:
        for argument, gain in gains.items():
            deviation = gain / math.sqrt(fan)
            yield f"HeNormal(mode='{mode}', {argument})", normal(deviation)
            yield f"HeUniform(mode='{mode}', {argument})", uniform(math.sqrt(3.0) * deviation)
    xavier = math.sqrt(2.0 / (fan_in + fan_out))
    yield "XavierNormal()", normal(xavier)
    yield "XavierUniform()", uniform(math.sqrt(3.0) * xavier)
    for deviation in (0.01, 0.02, 1.0, 0.05, 0.001):
        yield NORMAL.format(deviation), normal(deviation)
        yield CUT.format(deviation, 2 * deviation), truncated(deviation, 2.0 * deviation)
    for bound in (0.07, 1.0, 0.05, 0.01):
        yield UNIFORM.format(bound), uniform(bound)
    yield "uniform on [0, 1)", lambda x: np.clip(x, 0.0, 1.0)
    for mode, fan in modes:
        # VarianceScaling's in every library but MindSpore, whose 2.10 draws it uniformly
        deviation = 1 / math.sqrt(fan) / AFTER_THE_CUT
        yield (
            f"TruncatedNormal(sigma=s, a=-2 * s, b=2 * s) with s = 1.1368 / √{mode}",
            truncated(deviation, 2 * deviation),
        )


def normal(deviation: float) -> Cdf:
    """A normal distribution around 0."""
    return lambda x: _phi(x / deviation)


def uniform(bound: float) -> Cdf:
    """A uniform distribution within ±bound."""
    return lambda x: np.clip((x + bound) / (2 * bound), 0.0, 1.0)


def truncated(deviation: float, bound: float) -> Cdf:
    """A normal distribution cut off at ±bound."""
    low = float(_phi(np.array([-bound / deviation]))[0])
    return lambda x: np.clip((_phi(x / deviation) - low) / (1 - 2 * low), 0.0, 1.0)


_GRID = np.linspace(-8.0, 8.0, 16001)
_ON_GRID = np.array([0.5 * math.erfc(-v / math.sqrt(2.0)) for v in _GRID])


def _phi(x: np.ndarray) -> np.ndarray:
    """The standard normal distribution function, to 1e-7."""
    return np.interp(x, _GRID, _ON_GRID)
