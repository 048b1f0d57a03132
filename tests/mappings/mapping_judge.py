"""Whether what MindSpore did agrees with what torch did.

The judge is the noise that torch itself has: MindSpore's distance from torch in float64 may be four times torch
float32's own distance, plus 1e-6 of the tensor's scale for where torch happens to be nearly exact. Results in float16
and float64 are judged alike, by the noise that torch has in them. Integers and truth values have none: they are equal.
"""

from __future__ import annotations

import math

import numpy as np
from mapping_cases import Results, inputs, phases
from msmigrate.mappings.rows import EQUAL, SAME_DISTRIBUTION, Case, Row
from msmigrate.mappings.state_names import renamed

NOISE, FLOORS = 4.0, {"float16": 1e-3, "float32": 1e-6, "float64": 1e-12}
PLAIN = (np.float32, np.float64, np.int32, np.int64)  # of what layers and training give


def complaint(ours: np.ndarray, reference: np.ndarray, theirs: np.ndarray) -> str | None:
    """Why a MindSpore tensor does not agree (torch float32, torch float64, MindSpore), or None."""
    if theirs.shape != ours.shape:
        return f"shape {theirs.shape}, torch has {ours.shape}"
    if "f" not in (theirs.dtype.kind, ours.dtype.kind):
        apart = int((theirs != ours).sum())
        return f"{apart} of {theirs.size} differ: {theirs.ravel()[:8]}, torch has {ours.ravel()[:8]}" if apart else None
    finite = np.isfinite(ours)
    if not np.isfinite(theirs[finite]).all():
        return "not finite"
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True):
        return f"{theirs[~finite][:8]} where torch has {ours[~finite][:8]}"
    noise = float(np.abs(ours[finite] - reference[finite]).max(initial=0))
    error = float(np.abs(theirs[finite] - reference[finite]).max(initial=0))
    scale = float(np.abs(reference[finite]).max(initial=0))
    allowed = NOISE * noise + FLOORS.get(theirs.dtype.name, FLOORS["float32"]) * scale
    return None if error <= allowed else f"{error:.3g} from float64, allowed {allowed:.3g}, torch's own {noise:.3g}"


def other_dtype(row: Row, case: Case, ours: np.ndarray, theirs: np.ndarray) -> str | None:
    """Why the dtype of a result is another than torch's, or None.

    Integers may be narrower where the row says that it is not exact, or where the case leaves their width to the
    framework: int64 for torch, int32 for MindSpore.
    """
    if theirs.dtype.kind in "iu" and ours.dtype.kind in "iu":
        specs = [spec for spec in case.inputs if isinstance(spec, dict)]
        if not row.exact or any("ints" in spec and "dtype" not in spec for spec in specs):
            return None
    return None if theirs.dtype == ours.dtype else f"dtype {theirs.dtype}, torch has {ours.dtype}"


def compare(name: str, row: Row, case: Case, phase: str, mode: str, found: dict[str, Results]) -> list[str]:
    """Every tensor of one run in both frameworks; a missing or an additional one is a complaint."""
    key = f"{name}/{phase}/{mode}"
    if key in found["mindspore"].errors:
        return [f"{phase} {mode}: {found['mindspore'].errors[key]}"]
    ours = found["torch"].of(f"{name}/{phase}/float32")
    reference = found["torch"].of(f"{name}/{phase}/float64")
    theirs = found["mindspore"].of(key)
    dropped = {f"state.{state.torch}" for state in row.state if not state.mindspore}
    ours = {tensor: values for tensor, values in ours.items() if tensor.rpartition(".")[0] not in dropped}
    # torch makes optimizer state only when a formula reads it; MindSpore always does.
    made = {tensor.rpartition(".")[0] for tensor in ours}
    theirs = {k: v for k, v in theirs.items() if not k.startswith("state.") or k.rpartition(".")[0] in made}
    if not ours or set(ours) != set(theirs):
        return [f"{phase} {mode}: torch has {sorted(ours)}, MindSpore {sorted(theirs)}"]
    wrong = []
    for tensor, values in theirs.items():
        trouble = None
        if row.kind == "function" and (other := other_dtype(row, case, ours[tensor], values)):
            wrong.append(f"{phase} {mode} {tensor}: {other}")
        if row.kind != "function" and not (np.isfinite(values).all() and values.dtype in PLAIN):
            wrong.append(f"{phase} {mode} {tensor}: dtype {values.dtype}, or not finite")
        if tensor != "rates":
            trouble = complaint(ours[tensor], reference[tensor], values)
        elif not np.allclose(values, ours[tensor], rtol=2e-7, atol=1e-12):
            trouble = f"{np.abs(values / ours[tensor] - 1).max():.3g} (relative) from torch"
        if trouble:
            wrong.append(f"{phase} {mode} {tensor}: {trouble}")
    return wrong


def apart(name: str, row: Row, case: Case, phase: str, mode: str, found: dict[str, Results]) -> list[str]:
    """Further from torch than noise somewhere, as the case says, and nowhere further than its share of a tensor."""
    key = f"{name}/{phase}/{mode}"
    if key in found["mindspore"].errors:
        return [f"{phase} {mode}: {found['mindspore'].errors[key]}"]
    near = not compare(name, row, case, phase, mode, found)
    wrong = [f"{phase} {mode}: as near as noise, though the row says not"] if near else []
    reference, theirs = found["torch"].of(f"{name}/{phase}/float64"), found["mindspore"].of(key)
    for tensor, values in theirs.items():
        far = float(np.abs(values - reference[tensor]).max() / np.abs(reference[tensor]).max())
        if not far <= (case.apart or 0):
            wrong.append(f"{phase} {mode} {tensor}: {far:.3g} of its largest apart, the row says {case.apart:.3g}")
    return wrong


def random_alike(name: str, row: Row, case: Case, mode: str, found: dict[str, Results]) -> list[str]:
    """A layer that is random in training: of one distribution, and Dropout itself value by value."""
    if row.short == "Dropout":
        return dropped_alike(name, row, case, mode, found)
    key = f"{name}/train/{mode}"
    if key in found["mindspore"].errors:
        return [found["mindspore"].errors[key]]
    ours, theirs = found["torch"].of(f"{name}/train/float32")["random"], found["mindspore"].of(key)["random"]
    if ours.shape != theirs.shape:
        return [f"{mode}: shape {theirs.shape}"]
    # what many values are set to differs in its last bit, which is no other distribution
    return distributed_alike(np.round(ours.ravel(), 4), np.round(theirs.ravel(), 4))


def dropped_alike(name: str, row: Row, case: Case, mode: str, found: dict[str, Results]) -> list[str]:
    """Dropout: the share that is dropped within five standard deviations, the rest scaled by 1/(1-p)."""
    key = f"{name}/train/{mode}"
    if key in found["mindspore"].errors:
        return [found["mindspore"].errors[key]]
    values, wrong = inputs(name, case)[0], []
    p = case.args["p"]
    for framework, result in (
        ("torch", found["torch"].of(f"{name}/train/float32")["random"]),
        ("mindspore", found["mindspore"].of(key)["random"]),
    ):
        kept = result != 0
        if abs(kept.mean() - (1 - p)) > 5 * math.sqrt(p * (1 - p) / result.size):
            wrong.append(f"{framework} {mode}: keeps {kept.mean():.4f} of the values")
        if not np.allclose(result[kept], values[kept] / (1 - p), rtol=1e-6):
            wrong.append(f"{framework} {mode}: the values that stay are not scaled by 1/(1-p)")
    return wrong


def drawn_alike(name: str, row: Row, case: Case, mode: str, found: dict[str, Results]) -> list[str]:
    """A function that draws: shape, dtype and distribution of what it draws are torch's."""
    key = f"{name}/train/{mode}"
    if key in found["mindspore"].errors:
        return [found["mindspore"].errors[key]]
    ours, theirs = found["torch"].of(f"{name}/train/float32")["random"], found["mindspore"].of(key)["random"]
    if ours.shape != theirs.shape or (other := other_dtype(row, case, ours, theirs)):
        return [f"shape {theirs.shape}, torch has {ours.shape}" if ours.shape != theirs.shape else other]
    alike = distributed_alike(ours.astype(np.float64).ravel(), theirs.astype(np.float64).ravel())
    return [f"{mode}: {text}" for text in alike]


def distance(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """The two-sample Kolmogorov–Smirnov distance, and what it stays below but once in a million times."""
    ours, theirs = np.sort(ours, axis=None), np.sort(theirs, axis=None)
    both = np.concatenate([ours, theirs])
    shares = [np.searchsorted(sample, both, side="right") / sample.size for sample in (ours, theirs)]
    critical = math.sqrt(-math.log(1e-6 / 2) / 2) * math.sqrt(1 / ours.size + 1 / theirs.size)
    return float(np.abs(shares[0] - shares[1]).max()), critical


def distributed_alike(ours: np.ndarray, theirs: np.ndarray) -> list[str]:
    """Two samples of one distribution: Kolmogorov–Smirnov, and the ratio of their standard deviations."""
    measured, critical = distance(ours, theirs)
    wrong = [] if measured < critical else [f"KS distance {measured:.4f}, critical {critical:.4f}"]
    # The deviation of a sample's standard deviation, from its fourth moment.
    spread = [float(sample.std()) for sample in (ours, theirs)]
    if not all(spread):
        return wrong if spread[0] == spread[1] else [*wrong, f"standard deviations {spread[0]} and {spread[1]}"]
    kurtosis = [((sample - sample.mean()) ** 4).mean() for sample in (ours, theirs)]
    doubt = 5 * math.sqrt(sum((k - s**4) / (4 * s**2 * ours.size) for k, s in zip(kurtosis, spread, strict=True)))
    if abs(spread[0] - spread[1]) > doubt:
        wrong.append(f"standard deviations {spread[0]:.5g} and {spread[1]:.5g}, allowed apart {doubt:.2g}")
    return wrong


def judge(name: str, row: Row, case: Case, mode: str, found: dict[str, Results]) -> tuple[str, list[str]]:
    """The status that one case deserves in one mode, and what speaks against it."""
    if row.kind in ("initializer", "transform"):
        return judge_whole(name, row, found)
    wrong, status = [], EQUAL
    for phase in phases(row, mode):
        if phase == "train" and not case.train:
            status = SAME_DISTRIBUTION
            wrong += random_alike(name, row, case, mode, found)
        elif case.apart is not None:
            wrong += apart(name, row, case, phase, mode, found)
        else:
            wrong += compare(name, row, case, phase, mode, found)
    return status, wrong + fresh_alike(name, row, found)


def fresh_alike(name: str, row: Row, found: dict[str, Results]) -> list[str]:
    """New layers draw their parameters from the same distributions, but for those of which the row says otherwise."""
    key = f"{name}/fresh"
    if key in found["mindspore"].errors:
        return [found["mindspore"].errors[key]]
    ours, theirs = (found[framework].of(key) for framework in ("torch", "mindspore"))
    if set(ours) != set(theirs):
        return [f"new layers in torch have {sorted(ours)}, in MindSpore {sorted(theirs)}"]
    otherwise = [state.torch for state in row.state if state.torch and state.drawn_otherwise]
    other = {key for key in ours for name in otherwise if renamed(key, name, name) is not None}
    wrong = {key: distributed_alike(ours[key].ravel(), theirs[key].ravel()) for key in ours}
    alike = [f"new {key}: drawn as in torch, though the row says otherwise" for key in other if not wrong[key]]
    for state in row.state:
        held = [] if state.start is None else [key for key in ours if renamed(key, str(state.torch), "") is not None]
        alike += [
            f"new {key}: not {state.start} throughout in torch" for key in held if (ours[key] != state.start).any()
        ]
    return alike + [f"new {key}: {text}" for key in ours if key not in other for text in wrong[key]]


def judge_whole(name: str, row: Row, found: dict[str, Results]) -> tuple[str, list[str]]:
    """An initializer or a transform: bit-equal where the row says equal, equal in distribution otherwise."""
    if name in found["mindspore"].errors:
        return EQUAL, [found["mindspore"].errors[name]]
    ours, theirs = (found[framework].of(name) for framework in ("torch", "mindspore"))
    if not ours or set(ours) != set(theirs):
        return EQUAL, [f"torch has {sorted(ours)}, MindSpore {sorted(theirs)}"]
    if row.status["pynative"] == SAME_DISTRIBUTION:
        pairs = [columns for key in ours for columns in zip(samples(key, ours), samples(key, theirs), strict=True)]
        return SAME_DISTRIBUTION, [trouble for pair in pairs for trouble in distributed_alike(*pair)]
    # Normalize divides; its last bit is the only one that may differ.
    allowed = 3e-7 if row.short == "Normalize" else 0.0
    wrong = []
    for key, mine in ours.items():
        other = theirs[key]
        if (mine.dtype, mine.shape) != (other.dtype, other.shape):
            wrong.append(f"{key}: torch {mine.dtype} {mine.shape}, MindSpore {other.dtype} {other.shape}")
        elif not np.allclose(mine, other, rtol=allowed, atol=allowed):
            wrong.append(f"{key}: {np.abs(mine.astype(float) - other).max()} apart")
    return EQUAL, wrong


def samples(key: str, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """One sample from a filled tensor, one from each measure of the crops."""
    return list(arrays[key].T) if key == "extents" else [arrays[key].ravel()]
