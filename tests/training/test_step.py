"""One step and the next, in both frameworks and every mode: what they compute, and what they leave behind."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent
# MindSpore's distance from float64, in units of torch float32's own, and where torch happens to be nearly exact
RATIO, FLOOR = 4.0, 2e-6
# it divides each gradient by its own size, so the kernels' rounding of the smallest decides: 7.5 on an AMD EPYC
RATIOS = {"rmsprop centered": 12.0, "cycled rmsprop": 12.0}
Arrays = dict[str, np.ndarray]


def beside(name: str) -> ModuleType:
    """A file that the workers share, which is no module of the installed package."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


beside("option_cases")
cases = beside("step_cases")
refused = beside("step_refused")
RUNS = [
    pytest.param(name, variant, marks=() if variant in case.quick else pytest.mark.full)
    for name, case in cases.CASES.items()
    for variant in (case.variants if case.full else cases.VARIANTS)
]


@dataclass(frozen=True)
class Side:
    """What one worker found: facts by section, arrays by 'case/variant/step/what'."""

    facts: dict[str, Any]
    arrays: Arrays

    def of(self, case: str, variant: str, kind: str = "") -> Arrays:
        """The arrays of one run: 'step/what' -> array, those whose kind ('weights', 'state', …) is the given one."""
        place = f"{case}/{variant}/"
        found = {name[len(place) :]: array for name, array in self.arrays.items() if name.startswith(place)}
        return {name: array for name, array in found.items() if name.split("/")[1].startswith(kind)}


def read(file: Path) -> Arrays:
    """All arrays of an .npz file; np.load seeks each name in a list, which takes minutes over tens of thousands."""
    with zipfile.ZipFile(file) as stored:
        entries = {entry.filename.removesuffix(".npy"): entry for entry in stored.infolist()}
        return {name: np.lib.format.read_array(stored.open(entry)) for name, entry in entries.items()}


def work(script: str, folder: Path, *words: str, timeout: float) -> None:
    """Run a worker to its end; its nets are small, and threads that wait spin."""
    command = [sys.executable, str(HERE / script), str(folder), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def sides(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    """Both workers' results, torch's and MindSpore's."""
    selected = [item for item in request.session.items if item.path == Path(__file__)]
    extent = "all" if any(item.get_closest_marker("full") for item in selected) else "quick"
    folder = tmp_path_factory.mktemp("steps")
    found = []
    for name in ("torch", "mindspore"):
        work(f"step_{name}_worker.py", folder, extent, timeout=600 if extent == "quick" else 5400)
        arrays = read(folder / f"{name}.npz")
        found.append(Side(json.loads((folder / f"{name}.json").read_text(encoding="utf-8")), arrays))
    return found[0], found[1]


@pytest.fixture(scope="session")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Side:
    """The arrays of the loops written by hand."""
    folder = tmp_path_factory.mktemp("loop")
    work("hand_written_torch_loop.py", folder, timeout=300)
    with np.load(folder / "loop.npz") as stored:
        return Side({}, {key: stored[key] for key in stored.files})


def too_far(ours: np.ndarray, noisy: np.ndarray, exact: np.ndarray, usual: float = 0.0, ratio: float = RATIO) -> str:
    """How far `ours` stands from the float64 result when that is more than rounding explains, or nothing.

    usual: the share of its size by which torch is away in tensors of this kind and number of elements.
    """
    size = np.linalg.norm(exact)
    error, noise = (np.linalg.norm(array.astype(np.float64) - exact) for array in (ours, noisy))
    allowed = ratio * max(noise, usual * size) + FLOOR * size
    return "" if error <= allowed else f"{error / size:.1e} away, torch {noise / size:.1e}"


def usual_noise(noisy: Arrays, exact: Arrays) -> dict[str, float]:
    """What is usual of each tensor's kind in its step: torch may by luck be nearly exact on a few numbers.

    As parity's own floor: the median of the relative noises, times a share that falls with the number of elements.
    """
    noises: dict[str, dict[str, float]] = {}
    for name, values in exact.items():
        size = np.linalg.norm(values)
        if np.isfinite(size) and size > 0 and np.isfinite(noisy[name]).all():
            kind = "/".join(name.split("/")[:3] if "/state/" in name else name.split("/")[:2])
            noises.setdefault(kind, {})[name] = float(np.linalg.norm(noisy[name] - values) / size)
    found = {}
    for kind, members in noises.items():
        # a loss is one number made of its logits, and is known no better than these
        made_of = noises[kind.replace("/loss", "/logits")] if kind.endswith("/loss") else members
        for name in members:
            found[name] = float(np.median([*made_of.values()])) * min(1.0, np.sqrt(16 / exact[name].size))
    return found


@pytest.mark.parametrize(("case", "variant"), RUNS)
def test_steps_agree(sides, case, variant):
    torch, mindspore = sides
    noisy, exact, ours = torch.of(case, "32"), torch.of(case, "64"), mindspore.of(case, variant)
    optional = {name for name in noisy if name.endswith("/image_grad") and variant == "graph"}
    if variant == "lean":
        optional = {name for name in noisy if name.endswith(("/image_grad", "/logits")) or "/grads/" in name}
    # torch counts RMSprop's steps and reads the count nowhere: the mapping table drops it
    dropped = {name for name in noisy if "/state/step/" in name and "rmsprop" in case}
    assert ours.keys() == noisy.keys() - optional - dropped
    assert {name: array.shape for name, array in ours.items()} == {name: noisy[name].shape for name in ours}
    usual = usual_noise(noisy, exact) if cases.CASES[case].recipe.amp else {}
    wrong = {}
    for name, array in ours.items():
        if "/scaler/" in name:
            wrong[name] = "" if array == noisy[name] else f"{array}, torch {noisy[name]}"
        elif np.isfinite(exact[name]).all() and np.isfinite(noisy[name]).all():
            wrong[name] = too_far(array, noisy[name], exact[name], usual.get(name, 0.0), RATIOS.get(case, RATIO))
        else:
            wrong[name] = "" if not np.isfinite(array).all() else "finite, and torch's is not"
    assert {name: why for name, why in wrong.items() if why} == {}


ALONE = [
    pytest.param(name, marks=() if case.quick else pytest.mark.full) for name, case in cases.CASES.items() if case.usual
]


@pytest.mark.parametrize("case", ALONE)
def test_a_case_does_what_it_is_there_for(sides, case):
    """No comparison of two runs that both did nothing: the weights move, except in a step that is skipped."""
    spec = cases.CASES[case]
    found = sides[1].of(case, spec.usual[0])
    shapes = sides[1].facts["shapes"][spec.model]
    start = {name: cases.weight(name, tuple(shape)) for name, shape in shapes.items()}
    for index in range(spec.steps):
        now = {name[2:]: array for name, array in found.items() if name.startswith(f"{index}/weights/")}
        before = {name[2:]: array for name, array in found.items() if name.startswith(f"{index - 1}/weights/")}
        before = before or {f"weights/{name}": cases.sampled(array) for name, array in start.items()}
        moved = {name[len("weights/") :] for name in now if not np.array_equal(now[name], before[name])}
        expected = {name[len("weights/") :] for name in now if not name[len("weights/") :].startswith(spec.still)}
        if not found.get(f"{index}/scaler/finite", True):
            expected = {name for name in expected if "running_" in name}
        assert moved == expected
        skips = index == spec.overflow or (case == "loop in half" and index < 2)
        assert skips == (not found.get(f"{index}/scaler/finite", True))


@pytest.mark.parametrize("case", ["loop", "loop in half"])
def test_steps_agree_with_a_loop_written_by_hand(sides, loop, case):
    """Accumulation, clipping, torch's GradScaler, autocast, timm's averages and a schedule, none of them ours."""
    noisy, exact, ours = loop.of(case, "32"), loop.of(case, "64"), sides[1].of(case, "lean")
    rates = {name: ours[name] for name in ours if "/rates/" in name}
    for step in range(cases.CASES[case].steps):
        of_step = {float(rate) for name, rate in rates.items() if name.startswith(f"{step}/")}
        assert len(of_step) == 1
        assert of_step.pop() == pytest.approx(float(noisy.pop(f"{step}/rates/all")), rel=1e-6)
        scale = f"{step}/scaler/scale"
        assert ours[scale] == noisy.pop(scale) == exact[scale]
    assert {name.split("/")[1] for name in noisy} == {"loss", "logits", "weights", "ema", "state"}
    usual = usual_noise(noisy, {name: exact[name] for name in noisy}) if case == "loop in half" else {}
    noisy = {name: array for name, array in noisy.items() if not name.endswith("/logits")}  # which a loop does not get
    assert noisy.keys() <= ours.keys()
    finite = {name for name in noisy if np.isfinite(exact[name]).all()}
    assert {name for name in noisy if name not in finite} <= {"2/loss"}
    wrong = {name: too_far(ours[name], noisy[name], exact[name], usual.get(name, 0.0)) for name in finite}
    assert {name: why for name, why in wrong.items() if why} == {}


@pytest.mark.parametrize(
    ("case", "variant"),
    [
        pytest.param("O1", "graph", marks=pytest.mark.full),
        ("O2", "pynative"),
        ("O3", "graph"),
        pytest.param("O3", "pynative", marks=pytest.mark.full),
    ],
)
def test_the_level_says_which_weights_are_rounded(sides, case, variant):
    """The gradient of a weight that was rounded on its way in has passed through half precision itself."""
    for side, place in ((sides[0], "32"), (sides[1], variant)):
        grads = {name: array for name, array in side.of(case, place, "grads").items() if name.startswith("0/")}
        rounded = {name for name, grad in grads.items() if np.array_equal(grad, grad.astype(np.float16))}
        norms = {name for name in grads if ".bn" in name or "/bn" in name or ".downsample.1." in name}
        assert bool(norms) == (cases.CASES[case].model == "resnet_tiny")
        assert rounded == (grads.keys() if case == "O3" else grads.keys() - norms)


@pytest.mark.parametrize(
    ("case", "variant"),
    [
        pytest.param("O1", "lean", marks=pytest.mark.full),
        ("O2", "pynative"),
        ("O3", "graph"),
        pytest.param("O3", "pynative", marks=pytest.mark.full),
        ("loop in half", "lean"),
    ],
)
def test_half_precision_is_used_and_not_more_exact_than_it_can_be(sides, case, variant):
    """A MindSpore step in float32 would stand far nearer to the reference than torch's in half precision."""
    noisy, exact, ours = (sides[0].of(case, "32"), sides[0].of(case, "64"), sides[1].of(case, variant))
    last = cases.CASES[case].steps - 1
    names = [name for name in ours if name.startswith(f"{last}/weights/")]
    ratios = [np.linalg.norm(ours[n] - exact[n]) / np.linalg.norm(noisy[n] - exact[n]) for n in names]
    assert 0.25 < np.median(ratios) < RATIO


def test_frozen_parameters_have_no_gradient_and_no_state(sides):
    for side, variant in ((sides[0], "32"), (sides[1], "pynative"), (sides[1], "graph")):
        for kind in ("grads", "state", "rates", "decays"):
            names = {name.rpartition("/")[2] for name in side.of("frozen", variant, kind)}
            assert names == {f"{layer}.weight" for layer in ("conv2", "fc1", "fc2", "fc3")} | {
                f"{layer}.bias" for layer in ("conv2", "fc1", "fc3")
            }


def test_the_first_group_that_matches_wins(sides):
    rates, decays = (
        {
            name.rpartition("/")[2]: float(array)
            for name, array in sides[1].of("first match wins", "pynative", kind).items()
        }
        for kind in ("rates", "decays")
    )
    assert (rates["fc1.weight"], decays["fc1.weight"]) == pytest.approx((0.01, 0.1))
    assert (rates["fc1.bias"], decays["fc1.bias"]) == pytest.approx((0.02, 0.01))
    assert (rates["conv2.weight"], decays["conv2.weight"]) == pytest.approx((0.05, 0.01))
    assert (rates["conv2.bias"], decays["conv2.bias"]) == pytest.approx((0.05, 0.0))


def test_clipping_is_active_in_one_case_and_not_in_the_other(sides):
    weights = {case: sides[1].of(case, "pynative", "weights") for case in ("clip active", "clip inactive")}
    plain = sides[1].of("smoothing", "pynative", "weights")
    assert weights["clip active"].keys() == plain.keys()
    gradients = sides[1].of("clip active", "pynative", "grads")
    norm = np.sqrt(sum(np.square(g).sum() for name, g in gradients.items() if name.startswith("0/")))
    assert cases.CLIP_ACTIVE["max_norm"] < norm < cases.CLIP_INACTIVE["max_norm"]


@pytest.mark.parametrize("case", ["cycled sgd", "cycled nesterov", "cycled adamw"])
def test_a_momentum_that_cycles_goes_down_and_up_and_is_torchs(sides, case):
    exact, ours = sides[0].of(case, "64", "momenta"), sides[1].of(case, "pynative", "momenta")
    assert exact.keys() == ours.keys() and exact
    for name in ours:
        assert float(ours[name]) == pytest.approx(float(exact[name]), rel=1e-7)
    curve = [float(ours[f"{step}/momenta/fc1.weight"]) for step in range(cases.CASES[case].steps)]
    assert min(curve) < min(curve[0], curve[-1]) - 0.05
    assert set(sides[1].of("plain sgd", "pynative", "momenta")) == set()


@pytest.mark.parametrize("case", cases.RATES)
def test_learning_rates_agree(sides, case):
    theirs, ours = (np.array(side.facts["rates"][case]) for side in sides)
    assert ours.shape == theirs.shape == (cases.RATE_STEPS, 2)
    assert len(np.unique(theirs[:, 0])) > 8
    assert np.abs(ours - theirs).max() < 1e-7 * theirs.max()


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("no such parameter", r"optimizer.groups.0: 'conv9.*' matches no parameter"),
        ("hidden group", r"optimizer.groups.1: earlier groups have all the parameters that it matches"),
        ("negative rate", "SGD's lr must be a number from 0 up, not -1.0"),
        ("nesterov alone", "esterov"),
        ("nothing left to train", "has no parameter that trains"),
    ],
)
def test_both_frameworks_refuse(sides, case, message):
    assert {case for case, _ in test_both_frameworks_refuse.pytestmark[0].args[1]} == refused.REFUSED.keys()
    for side in sides:
        assert message in side.facts["refused"][case]
        assert "\n" not in side.facts["refused"][case]
