"""ReLUs that are function calls: what MindSpore is seen to choose, and that torch takes the same side."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.run import parity_step
from msmigrate.parity.run_folder import MINDSPORE
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import SIDES_STAGE, Part, Trace
from msmigrate.training.recipe import reader as recipes

HERE = Path(__file__).parent


def run(worker: str) -> dict[str, Any]:
    """What a worker prints."""
    done = subprocess.run([sys.executable, str(HERE / worker)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def mindspore() -> dict[str, Any]:
    return run("function_kinks_mindspore_worker.py")


@pytest.fixture(scope="module")
def torch() -> dict[str, Any]:
    return run("function_kinks_torch_worker.py")


def names(seen: list[Any]) -> list[list[Any]]:
    return [call[:3] for call in seen]


def test_calls_are_numbered_in_the_module_that_makes_them(mindspore: dict[str, Any]) -> None:
    inner = [["inner.relu()", 0, "ReLU"], ["inner.hardswish()", 0, "Hardswish"]]
    again = [[name, 1, kind] for name, _, kind in inner]
    assert names(mindspore["all known"]) == [["relu()", 0, "ReLU"], *inner, *again, ["relu()", 1, "ReLU"]]


def test_the_bits_say_which_side(mindspore: dict[str, Any]) -> None:
    seen = mindspore["all known"]
    assert seen[0][3][:3] == [0, 1, 1]
    assert seen[1][3][:3] == [0, 0, 1]  # the input less one
    assert seen[2][3][:6] == [1, 1, 1, 0, 0, 1]  # above -3, above 3: 0, 0, 10


def test_a_layer_that_torch_lacks_counts_as_a_call(mindspore: dict[str, Any]) -> None:
    relus = [call[:2] for call in mindspore["no layer"] if call[2] == "ReLU"]
    assert relus == [["relu()", 0], *(["inner.relu()", i] for i in range(4)), ["relu()", 1]]


def test_a_module_that_torch_lacks_leaves_its_calls_to_the_one_above(mindspore: dict[str, Any]) -> None:
    relus = [call[:2] for call in mindspore["no inner"] if call[2] == "ReLU"]
    assert relus == [["relu()", i] for i in range(4)]


@pytest.mark.parametrize("case", ["function", "tensor method", "in place", "module that the other lacks", "no module"])
def test_torch_takes_the_other_side(torch: dict[str, Any], case: str) -> None:
    assert torch[case] == {"grad": [1.0, 0.0, 0.0, 1.0], "matched": 2}


def test_a_function_that_was_not_recorded_is_left_alone(torch: dict[str, Any]) -> None:
    assert torch["not recorded"] == {"grad": [1.0, 0.0, 1.0, 0.0], "matched": 0}
    assert torch["afterwards"] == {"grad": [1.0, 0.0, 1.0, 0.0], "matched": 0}


def test_the_numbers_of_a_maximum_are_no_sides_though_they_are_as_many(torch: dict[str, Any]) -> None:
    assert torch["as many numbers"] == {"grad": [0.0] * 16 + [1.0] * 16, "matched": 1}


def test_an_abs_does_not_say_the_sides_of_another_bound(torch: dict[str, Any]) -> None:
    assert torch["above a bound"] == {"grad": [1.0, 1.0, 0.0, 1.0], "matched": 0}


def test_a_clamp_exactly_at_its_bounds_keeps_its_own_gradient(torch: dict[str, Any]) -> None:
    assert torch["clamp at its bounds"] == {"grad": [0.0, 1.0, 0.0], "matched": 0}  # torch 2.14's


def test_every_function_takes_what_the_other_took_whatever_it_is_called_there(torch: dict[str, Any]) -> None:
    seen = torch["functions"]
    assert not [name for name, each in seen.items() if not each["theirs"]]
    assert not [name for name, each in seen.items() if each["before"]]  # without it, each had another gradient


def test_every_function_takes_what_another_run_of_torch_took(torch: dict[str, Any]) -> None:
    assert not [name for name, each in torch["functions"].items() if not each["torch's"]]


KEPT = {
    "MaxPool": ["ops.max_pool2d", "nn.MaxPool2d", "nn.MaxPool2d padded", "nn.MaxPool1d", "nn.MaxPool3d"],
    "Max": ["ops.max", "mint.max", "mint.max by keyword", "tensor.max", "tensor.max along an axis"],
    "Max_evenly": ["tensor.max of all", "ops.amax"],
    "Min_evenly": ["mint.amin"],
    "Maximum": ["mint.max of two", "ops.leaky_relu"],
    "Minimum": ["ops.minimum"],
    "Clamp": ["ops.clamp", "tensor.clamp", "tensor.clip by keyword", "mint.clamp"],
    "Abs": ["tensor.abs"],
}


def test_every_way_to_a_function_is_seen_once(mindspore: dict[str, Any]) -> None:
    seen = mindspore["functions"]
    for kind, names in KEPT.items():
        assert {name: seen[name] for name in names} == {
            name: [[kind, "M" in kind and "mum" not in kind]] for name in names
        }
    assert seen["ops.adaptive_max_pool2d"] == [["MaxPool", True]]
    assert seen["ops.hardtanh"] == [["Maximum", False], ["Minimum", False]]
    assert seen["whole numbers"] == []


PAIRS = [("Inside", "Inside"), ("Functions", "Modules"), ("Modules", "Functions"), ("Functions", "Functions")]
PAIRS += [("Rare", "Rare")]


@pytest.mark.parametrize(
    ("torch_net", "mindspore_net"),
    [pytest.param(*pair, marks=pytest.mark.full if i else ()) for i, pair in enumerate(PAIRS)],
)
def test_a_net_agrees_whose_pools_hold_elements_that_rounding_alone_tells_apart(
    torch_net: str, mindspore_net: str, tmp_path: Path
) -> None:
    draws = np.random.default_rng(0)
    shades = draws.uniform(0.2, 1.0, (16, 1, 1, 1))  # of one shade each, but for the last bit
    images = np.broadcast_to(shades, (16, 1, 8, 8)) * (1 + 2e-7 * draws.standard_normal((16, 1, 8, 8)))
    np.savez(tmp_path / "batch.npz", images=images.astype(np.float32), labels=draws.integers(0, 10, 16))
    recipe = HERE / "tiny.yaml"
    models = f"{HERE}/kinked_torch.py:{torch_net}", f"{HERE}/kinked_mindspore.py:{mindspore_net}"
    pair = Pair(*models, batch=tmp_path / "batch.npz")
    job = ParityJob(recipes.load(recipe), tmp_path / "run", pair=pair, steps=1, init_seeds=1)
    found = parity_step(recipe, job)
    assert found.parity, [(f.place, f.why) for f in found.findings if f.verdict is not Verdict.PASS]
    assert any("rounding alone decides" in note for note in found.notes)
    if torch_net == "Inside":  # of a layer inside of a layer, by its name; of one by itself, as its own
        kept = {entry.name for entry in Trace(job.folder / MINDSPORE).select(SIDES_STAGE, Part.of_step(1))}
        assert {"conv1.act.relu()", "conv2.act.relu()", "act"} <= kept and "conv1.act" not in kept
