"""Why the starting weights, or the distributions that they are drawn from, differ.

A start has to be equal to the bit, so these hypotheses are tested to the bit, by the digest of the whole tensor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

import numpy as np

from ....training.step.parameter_groups import is_norm
from ...compare import Traces, compare_distributions
from ...result import Cause, Finding
from ...trace import DISTRIBUTION, Entry, sample_positions
from ..context import Context, owners, place
from ..differences import pattern
from ..evidence import cause, failed, key_of
from . import init_distributions

VALUES = "values"
GATES = {4: "LSTM gates", 3: "GRU gates or query, key and value"}
FRESH = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}
NOT_LOADED = "it was not loaded: it still has its initial values"
FEWEST = 50  # values whose distribution can be known again
NEAR = 4  # units in the last place that count as rounding
RENAMED = {"Embedding": "embedding-name", "PReLU": "prelu-ln-transformer-names"}  # their weight has another name
Told = tuple[str | None, str, str]  # fault, text, fix


def starting_weights(traces: Traces, findings: Sequence[Finding], start: Mapping[str, np.ndarray]) -> list[Cause]:
    """Causes of what failed in the starting values; start: torch's tensors by state_dict name."""
    wrong = failed(findings, "init", VALUES)
    names = [e.name for e in traces.alone[1].select("init", VALUES)]
    kinds = owners(traces.alone[1], names)
    shown: dict[Told, list[str]] = {}
    absent: dict[Told, list[str]] = {}
    left = []
    for finding in wrong:
        entry = traces.mindspore.entries.get(key_of(finding))
        if entry is None or finding.name not in start or finding.name not in names:
            absent.setdefault(_absent(finding.name, entry is None, start, kinds, traces), []).append(finding.name)
        else:
            left.append((finding, entry))
    causes = [
        cause("init", place(found, [*names, *found], kinds), fault, text, f"{len(found)} tensors", fix=fix)
        for (fault, text, fix), found in absent.items()
    ]
    swapped, rest = _swapped(traces, left, start, kinds)
    unknown = []
    for finding, entry in rest:
        said = next(_sayings(traces, entry, start, kinds), None)
        if said is None:
            unknown.append((finding.name, entry))
        else:
            shown.setdefault(said, []).append(finding.name)
    for name, entry in unknown:
        # a handful of drawn values has no distribution to know it by: it was left out with the rest of its layer
        layer = name.rpartition(".")[0]
        left_out = [
            said for said, of in shown.items() if NOT_LOADED in said and any(layer == n.rpartition(".")[0] for n in of)
        ]
        if left_out and np.prod(entry.shape) < FEWEST:
            shown[left_out[0]].append(name)
        else:
            causes.append(_unexplained(traces, entry, start))
    causes += swapped
    causes += [
        cause(
            "init",
            place(found, names, kinds),
            fault,
            text,
            f"equal to the bit then, {len(found)} tensors",
            0.0,
            fix=fix,
        )
        for (fault, text, fix), found in shown.items()
    ]
    return causes


def _absent(
    name: str, missing: bool, start: Mapping[str, np.ndarray], kinds: Mapping[str, str], traces: Traces
) -> Told:
    """Why only one side has a tensor: the fault, in words, and what to write."""
    kind, last = kinds.get(name, ""), name.rpartition(".")[2]
    owner = name.rpartition(".")[0]
    if missing:
        if last == "bias" and ("Conv" in kind or kind == "Linear"):
            return "conv-bias-default", "the layer has no bias", "has_bias=True"
        if any(e.name == name for e in traces.alone[1].select("update", "given gradients")):
            return "tensor-not-parameter", "MindSpore has no such tensor: it is no Parameter", "mindspore.Parameter"
        text = "MindSpore has no such tensor: what is no Parameter is neither saved nor loaded"
        return "buffers-not-saved", text, "Parameter(…, requires_grad=False)"
    if name in start:
        return (
            "shared-weights",
            "it is one with another weight in torch, and two in MindSpore",
            "one Parameter for both",
        )
    classes = {e.name: e.module or "" for e in traces.alone[1].entries.values() if e.stage == "forward"}
    if "InstanceNorm" in classes.get(owner, ""):
        return "in-affine-default", "only MindSpore has it: the norm is affine", "affine=False"
    return None, "only MindSpore has this tensor", ""


def _equal(traces: Traces, entry: Entry, candidate: np.ndarray) -> bool:
    """Whether MindSpore's tensor is this one to the bit."""
    if candidate.shape != entry.shape or str(candidate.dtype) != entry.dtype:
        return False
    whole = np.ascontiguousarray(candidate)
    if entry.digest is not None:
        return hashlib.sha256(whole.reshape(-1).data).hexdigest() == entry.digest
    return bool(np.array_equal(_kept(whole, traces.mindspore.array(entry.key).size), traces.mindspore.array(entry.key)))


def _kept(array: np.ndarray, count: int) -> np.ndarray:
    flat = array.reshape(-1)
    return flat if flat.size == count else flat[sample_positions(flat.size, count)]


def _swapped(
    traces: Traces,
    left: Sequence[tuple[Finding, Entry]],
    start: Mapping[str, np.ndarray],
    kinds: Mapping[str, str],
) -> tuple[list[Cause], list[tuple[Finding, Entry]]]:
    """Tensors that hold another one's values, and those that do not."""
    digests: dict[tuple[tuple[int, ...], str], list[str]] = {}
    for name, array in start.items():
        digest = hashlib.sha256(np.ascontiguousarray(array).reshape(-1).data).hexdigest()
        digests.setdefault((array.shape, digest), []).append(name)
    holds, rest = {}, []
    for finding, entry in left:
        sources = digests.get((entry.shape, entry.digest or ""), [])
        if len(sources) == 1 and sources[0] != finding.name:  # equal constants tell nothing
            holds[finding.name] = sources[0]
        else:
            rest.append((finding, entry))
    causes, seen = [], set()
    families: dict[str, list[tuple[str, str]]] = {}
    for name, source in holds.items():
        if name in seen:
            continue
        mutual = holds.get(source) == name
        seen |= {name, source} if mutual else {name}
        pair = tuple(sorted((name.rpartition(".")[2], source.rpartition(".")[2])))
        same = name.rpartition(".")[0] == source.rpartition(".")[0]
        words = {
            ("bias", "weight"): "gamma and beta" if is_norm(kinds.get(name, "")) else "weight and bias",
            ("running_mean", "running_var"): "moving_mean and moving_variance",
        }.get((pair[0], pair[1]), "")
        if same and mutual and words:
            families.setdefault(f"{words} have each other's values", []).append((name, source))
            continue
        text = f"{name} and {source} have each other's values" if mutual else f"it has the values of {source}"
        where = f"{name} and {source}" if mutual else name
        fix = "one rule for each name; rename by the layer that owns the tensor"
        causes.append(cause("init", where, "weights-swapped", text, "equal to the bit", 0.0, fix=fix))
    for text, pairs in families.items():
        modules = [name.rpartition(".")[0] for name, _ in pairs]
        where = ", ".join(modules[:3]) + (f" and {len(modules) - 3} more" if len(modules) > 3 else "")
        fix = "weight is gamma, bias is beta, running_mean moving_mean, running_var moving_variance"
        causes.append(cause("init", where, "weights-swapped", text, "equal to the bit", 0.0, fix=fix))
    return causes, rest


def _sayings(traces: Traces, entry: Entry, start: Mapping[str, np.ndarray], kinds: Mapping[str, str]) -> Iterator[Told]:
    """What was done to one tensor: the fault, in words, and what to write."""
    array = start[entry.name]
    for axes in permutations(range(array.ndim)):
        if axes != tuple(range(array.ndim)) and _equal(traces, entry, array.transpose(axes)):
            if array.ndim == 2:
                yield "dense-transposed", "the weight is transposed", "never transpose: nn.Dense has torch's layout"
            else:
                yield "weight-transposed", f"the weight's axes are permuted: {list(axes)}", "keep torch's axes"
    for axes_flipped, words in _flips(array.ndim):
        if _equal(traces, entry, np.flip(array, axes_flipped)):
            yield "weight-flipped", f"the weight is reversed along {words}", ""
    yield from _blocks(traces, entry, array)
    if array.dtype == np.float32:
        for bits, what in ((_half(array), "float16"), (_bfloat(array), "bfloat16")):
            if _equal(traces, entry, bits):
                yield "weights-rounded", f"the values went through {what}", "store checkpoints in float32"
        with np.errstate(all="ignore"):
            for factor in (-1.0, 0.5, 2.0, 255.0, 1 / 255.0):
                if np.any(array) and _equal(traces, entry, array * np.float32(factor)):
                    yield "weights-scaled", f"the values are {factor:.6g} times torch's", ""
    whole = traces.mindspore.array(entry.key)
    if whole.size == array.size and np.array_equal(np.sort(whole), np.sort(array.reshape(-1))):
        yield "weight-transposed", "the same values in another order: reshaped or transposed on the way", ""
    yield from _fresh(traces, entry, array, kinds)
    of_mindspore = traces.mindspore.array(entry.key)
    of_torch = _kept(array, of_mindspore.size)
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


def _flips(rank: int) -> Iterator[tuple[tuple[int, ...], str]]:
    if rank == 4:
        yield (2, 3), "height and width"
        yield (1,), "the input channels"
    if rank >= 1:
        yield (0,), "the output channels"
    if rank == 2:
        yield (1,), "the inputs"


def _blocks(traces: Traces, entry: Entry, array: np.ndarray) -> Iterator[Told]:
    """Gates, or query, key and value, in another order along the first axis."""
    for count, what in GATES.items():
        if array.ndim and array.shape[0] % count == 0 and array.shape[0] > count:
            parts = np.split(array, count)
            for chosen in permutations(range(count)):
                if list(chosen) != sorted(chosen) and _equal(traces, entry, np.concatenate([parts[i] for i in chosen])):
                    fault = "lstm-gate-order" if count == 4 else "mha-packed-order"
                    yield fault, f"the {what} are in the order {list(chosen)}", "keep torch's order"
    if array.ndim and array.shape[0] % 3 == 0:
        width = array.shape[0] // 3
        for heads in range(2, min(width, 33)):
            if width % heads == 0:
                packed = array.reshape(3, heads, width // heads, *array.shape[1:]).swapaxes(0, 1).reshape(array.shape)
                if _equal(traces, entry, packed):
                    yield "mha-packed-order", f"packed by {heads} heads, each with its query, key and value", ""


def _fresh(traces: Traces, entry: Entry, array: np.ndarray, kinds: Mapping[str, str]) -> Iterator[Told]:
    """Values that no checkpoint put there: constants, or draws from the net's own initial distribution."""
    of_mindspore = traces.mindspore.array(entry.key)
    last, norm = entry.name.rpartition(".")[2], is_norm(kinds.get(entry.name, ""))
    fault = "load-silent"
    if norm:
        fault = "bn-params-names" if "BatchNorm" in kinds.get(entry.name, "") else "prelu-ln-transformer-names"
    elif kinds.get(entry.name) in RENAMED:
        fault = RENAMED[kinds[entry.name]]
    text = NOT_LOADED
    fix = "look at what load_param_into_net returns; strict_load=True"
    if of_mindspore.size and np.all(of_mindspore == of_mindspore[0]) and not np.all(array == array.reshape(-1)[0]):
        value = float(of_mindspore[0])
        if value == FRESH.get(last) or value in (0.0, 0.25):  # 0.25: a PReLU
            yield fault, text, fix
        else:
            yield None, f"it is {value:g} throughout", fix
        return
    key = ("init", DISTRIBUTION, entry.name, 0)
    drawn = traces.mindspore.entries.get(key)
    if (
        drawn is None
        or of_mindspore.size < FEWEST
        or entry.nonfinite
        or abs(pattern(_kept(array, of_mindspore.size), of_mindspore).cosine) > 0.3
    ):
        return
    if compare_distributions(traces.mindspore.array(key), of_mindspore, 1).agree:
        yield fault, text, fix


def _half(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return array.astype(np.float16).astype(np.float32)


def _bfloat(array: np.ndarray) -> np.ndarray:
    """To bfloat16 and back, rounding to the nearest even."""
    bits = np.ascontiguousarray(array).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return np.asarray(rounded.astype(np.uint32).view(np.float32)).reshape(array.shape)


def _ordered(values: np.ndarray) -> np.ndarray:
    """float32 values as whole numbers in their order, so that neighbours differ by one."""
    bits = np.ascontiguousarray(values).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def _unexplained(traces: Traces, entry: Entry, start: Mapping[str, np.ndarray]) -> Cause:
    array, of_mindspore = start[entry.name], traces.mindspore.array(entry.key)
    if entry.shape != array.shape:
        text = f"it has shape {list(entry.shape)} where torch has {list(array.shape)}"
        return cause("init", entry.name, None, text)
    of_torch = _kept(array, of_mindspore.size)
    different = int((of_torch != of_mindspore).sum())
    evidence = f"{different} of {of_mindspore.size} compared values differ; {pattern(of_torch, of_mindspore)}"
    return cause("init", entry.name, None, "nothing known makes these starting values", evidence)


def explain(context: Context) -> list[Cause]:
    """The causes of what failed in stage init."""
    if not failed(context.findings, "init"):
        return []
    start: dict[str, np.ndarray] = {name: t.detach().numpy() for name, t in context.model.state_dict().items()}
    causes = starting_weights(context.traces, context.findings, start)
    return causes + init_distributions.explain(context.traces, context.findings)
