"""One step and the next, in both frameworks and every mode: what they compute, and what they leave behind."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent
# MindSpore's distance from float64, in units of torch float32's own, and where torch happens to be nearly exact
RATIO, FLOOR = 4.0, 2e-6
Arrays = dict[str, np.ndarray]


def beside(name: str) -> ModuleType:
    """A file that the workers share, which is no module of the installed package."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


cases = beside("step_cases")
refused = beside("step_refused")
RUNS = [
    pytest.param(name, variant, marks=() if variant in case.quick else pytest.mark.full)
    for name, case in cases.CASES.items()
    for variant in cases.VARIANTS
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


@pytest.fixture(scope="session")
def sides(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    """Both workers' results, torch's and MindSpore's; they run side by side, for neither needs the other."""
    selected = [item for item in request.session.items if item.path == Path(__file__)]
    extent = "all" if any(item.get_closest_marker("full") for item in selected) else "quick"
    folder = tmp_path_factory.mktemp("steps")
    names = ("torch", "mindspore")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # the nets are small, and threads that wait spin
    commands = {name: [sys.executable, str(HERE / f"step_{name}_worker.py"), str(folder), extent] for name in names}
    workers = {
        name: subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=environment)
        for name, command in commands.items()
    }
    found = []
    for name, worker in workers.items():
        errors = worker.communicate(timeout=600)[1]
        assert worker.returncode == 0, errors
        with np.load(folder / f"{name}.npz") as stored:
            arrays = {key: stored[key] for key in stored.files}
        found.append(Side(json.loads((folder / f"{name}.json").read_text(encoding="utf-8")), arrays))
    return found[0], found[1]


def too_far(ours: np.ndarray, noisy: np.ndarray, exact: np.ndarray) -> str:
    """How far `ours` stands from the float64 result when that is more than rounding explains, or nothing."""
    size = np.linalg.norm(exact)
    error, noise = (np.linalg.norm(array.astype(np.float64) - exact) for array in (ours, noisy))
    return "" if error <= RATIO * noise + FLOOR * size else f"{error / size:.1e} away, torch {noise / size:.1e}"


@pytest.mark.parametrize(("case", "variant"), RUNS)
def test_steps_agree(sides, case, variant):
    torch, mindspore = sides
    noisy, exact, ours = torch.of(case, "32"), torch.of(case, "64"), mindspore.of(case, variant)
    optional = {name for name in noisy if name.endswith("/image_grad") and variant == "graph"}
    # torch counts RMSprop's steps and reads the count nowhere: the mapping table drops it
    dropped = {name for name in noisy if "/state/step/" in name and case.startswith("rmsprop")}
    assert ours.keys() == noisy.keys() - optional - dropped
    assert {name: array.shape for name, array in ours.items()} == {name: noisy[name].shape for name in ours}
    wrong = {}
    for name, array in ours.items():
        if np.isfinite(exact[name]).all():
            wrong[name] = too_far(array, noisy[name], exact[name])
        else:
            wrong[name] = "" if not np.isfinite(array).all() else "finite, and torch's is not"
    assert {name: why for name, why in wrong.items() if why} == {}


@pytest.mark.parametrize("case", cases.CASES)
def test_a_case_does_what_it_is_there_for(sides, case):
    """No comparison of two runs that both did nothing: the weights move, except in a step that is skipped."""
    found, overflow = sides[1].of(case, "pynative"), cases.CASES[case].overflow
    shapes = sides[1].facts["shapes"][cases.CASES[case].model]
    start = {name: cases.weight(name, tuple(shape)) for name, shape in shapes.items()}
    for index in range(cases.STEPS):
        now = {name[2:]: array for name, array in found.items() if name.startswith(f"{index}/weights/")}
        before = {name[2:]: array for name, array in found.items() if name.startswith(f"{index - 1}/weights/")}
        before = before or {f"weights/{name}": cases.sampled(array) for name, array in start.items()}
        moved = {name[len("weights/") :] for name in now if not np.array_equal(now[name], before[name])}
        still = cases.CASES[case].frozen
        expected = {name[len("weights/") :] for name in now if not name[len("weights/") :].startswith(still or ("-",))}
        assert moved == (set() if index == overflow else expected)


def test_frozen_parameters_have_no_gradient_and_no_state(sides):
    for side, variant in ((sides[0], "32"), (sides[1], "pynative"), (sides[1], "graph")):
        for kind in ("grads", "state", "rates", "decays"):
            names = {name.rpartition("/")[2] for name in side.of("frozen", variant, kind)}
            assert names == {f"{layer}.weight" for layer in ("conv2", "fc1", "fc2", "fc3")} | {
                f"{layer}.bias" for layer in ("conv2", "fc1", "fc3")
            }


def test_the_first_group_that_matches_wins(sides):
    rates, decays = (
        {name.rpartition("/")[2]: float(array) for name, array in sides[1].of("groups", "pynative", kind).items()}
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
        ("negative rate", "learning rate: -1.0"),
        ("nesterov alone", "esterov"),
        ("nothing left to train", "the model has no parameter that trains"),
    ],
)
def test_both_frameworks_refuse(sides, case, message):
    assert {case for case, _ in test_both_frameworks_refuse.pytestmark[0].args[1]} == refused.REFUSED.keys()
    for side in sides:
        assert message in side.facts["refused"][case]
        assert "\n" not in side.facts["refused"][case]
