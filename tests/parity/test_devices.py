"""Torch's half on a device: what it is judged by there, what the report says of it, and what is told to do instead.

The device is made up (made_up_device.py): no machine that runs the tests needs one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.errors import BadTrace
from msmigrate.parity.compare_traces import Traces, compare
from msmigrate.parity.job import ParityJob
from msmigrate.parity.result import Report
from msmigrate.parity.run import parity_step
from msmigrate.parity.run_folder import TORCH32, TORCH32_AGAIN, TORCH32_OTHER, TORCH64, matched, torch_runs
from msmigrate.parity.trace import COARSE, Device, Trace, device_notes
from msmigrate.training.recipe import reader as recipes
from msmigrate.workflows.compare import compare_folders
from msmigrate.workflows.record import record_side
from traces import Run, only

HERE = Path(__file__).parent
RECIPE = HERE / "tiny.yaml"
BROKEN = json.loads((HERE / "cases.json").read_text())["faults"]["bn_eps"]["tensor"]
CPU = Device("cpu", "a CPU")
GPU = Device(
    "cuda:0",
    "NVIDIA H100",
    "550.54",
    "CUDA 12.4, cuDNN 90100",
    {"TF32 in matrix products": False, "TF32 in convolutions": True},
)


def on_device(way: str) -> tuple[str, ...]:
    """Torch's worker on that device, which computes in this way."""
    return sys.executable, str(HERE / "made_up_device.py"), way


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Torch's half of one step, recorded where sums come out otherwise each time."""
    folder = tmp_path_factory.mktemp("device") / "A"
    job = ParityJob(recipes.load(RECIPE), folder, steps=1, device="npu", no_replay=True)
    record_side("torch", RECIPE, job, torch_worker=on_device("restless"))
    return folder


def test_float32_runs_twice_there_and_the_reference_where_there_is_float64(half: Path) -> None:
    runs = {name: Trace(half / name) for name in torch_runs(half)}
    assert set(runs) == {TORCH64, TORCH32, TORCH32_AGAIN, TORCH32_OTHER}
    on = {name: Device.of(trace.about, half / name).device for name, trace in runs.items()}
    assert on == {TORCH64: "cpu", TORCH32: "npu:0", TORCH32_AGAIN: "npu:0", TORCH32_OTHER: "cpu"}


def test_what_the_device_moves_differs_between_the_two(half: Path) -> None:
    """It is restless in products of the backward pass alone, so that what is seen is neither nothing nor everything."""
    moved = set()
    for called in (str, matched):
        one, again = (Trace(half / called(name)) for name in (TORCH32, TORCH32_AGAIN))
        moved |= {key[0] for key in again.entries if (one.array(key) != again.array(key)).any()}
    assert moved == {"gradients", "update"}


def judged(root: Path, way: str, *mindspore: str) -> Report:
    job = ParityJob(recipes.load(RECIPE), root / "run", steps=2, device="npu", init_seeds=1)
    workers: dict[str, Any] = {"torch_worker": on_device(way)}
    if mindspore:
        workers["mindspore_worker"] = (sys.executable, str(HERE / "mindspore_broken_worker.py"), *mindspore)
    return parity_step(RECIPE, replace(job, no_diagnosis=bool(mindspore)), **workers)


@pytest.mark.full
@pytest.mark.parametrize("way", ["steady", "restless", "coarse"])
def test_a_clean_step_agrees_on_whatever_device(way: str, tmp_path: Path) -> None:
    found = judged(tmp_path, way)
    assert found.parity, found.first_divergence
    assert [each.device_model for each in found.devices][:1] == ["a made-up device"]
    said = " ".join(found.notes)
    assert "torch's float32 ran twice on npu:0" in said
    assert ("times as far from float64 as float32 on the CPU" in said) == (way == "coarse")
    assert [each["device"] for each in found.as_json()["devices"]] == ["npu:0", "cpu"]


@pytest.mark.full
@pytest.mark.parametrize("way", ["steady", "restless", "coarse"])
def test_a_planted_fault_is_found_on_whatever_device(way: str, tmp_path: Path) -> None:
    first = judged(tmp_path, way, "bn_eps").first_divergence
    assert first is not None and (first.stage, first.name.split()[0]) == ("forward", BROKEN)


@pytest.mark.full
def test_what_a_recipe_s_loss_holds_is_on_the_device(tmp_path: Path) -> None:
    """Class weights, in the step and in the loss whose gradients flow into modules that run alone."""
    file = tmp_path / "weighted.yaml"
    weights = [0.5 + 0.1 * i for i in range(10)]
    file.write_text(RECIPE.read_text().replace("label_smoothing: 0.1", f"weight: {weights}"))
    job = ParityJob(recipes.load(file), tmp_path / "run", steps=1, device="npu", init_seeds=1)
    found = parity_step(file, job, torch_worker=on_device("steady"))
    assert found.parity, found.first_divergence


def test_the_second_run_on_a_device_is_noise_too(tmp_path: Path) -> None:
    moved = only("gradients", "bn.weight", lambda values: values * (1 + 1e-5 * np.cos(values).astype(np.float32)))
    folder = Run(mindspore=moved).write(tmp_path / "run")
    assert not Report("made-up", "0", {}, compare(Traces.load(folder))).parity
    other = Run(torch32=moved).write(tmp_path / "other")
    for called in (str, matched):
        (other / called(TORCH32)).rename(folder / called(TORCH32_AGAIN))
    assert Report("made-up", "0", {}, compare(Traces.load(folder))).parity


@pytest.mark.full
def test_a_device_is_compared_with_the_cpu(half: Path, tmp_path: Path) -> None:
    job = ParityJob(recipes.load(RECIPE), tmp_path / "A2", steps=1, no_replay=True)
    record_side("torch", RECIPE, job, half)
    found = compare_folders(half, tmp_path / "A2")
    assert found.parity, found.first_divergence
    assert {each.device for each in found.devices} == {"npu:0", "cpu"}


ASKED = """
import json
import torch
from unittest.mock import patch
from msmigrate.errors import Unsupported
from msmigrate.parity.record import torch_device, torch_randomness
from msmigrate.parity.record.randomness import Draws

def asked(name):
    try:
        return str(torch_device.device(name))
    except Unsupported as error:
        return f"refused: {error}"

def switches():
    return torch_device.switches(torch.backends, torch_device.OF_CUDA)

said = {name: asked(name) for name in ("cpu", "npu", "npu:3")}
with patch("torch.cuda.is_available", lambda: True), patch("torch.cuda.device_count", lambda: 2):
    said |= {name: asked(name) for name in ("cuda", "cuda:1", "cuda:2")}

def fused(dropout, training):
    # whether an attention may be one kernel where its dropout is to be fixed
    layer, x, seen = torch.nn.MultiheadAttention(8, 2, dropout=dropout).train(training), torch.ones(3, 2, 8), []
    def spy(*args):
        seen.append(torch.backends.cuda.mem_efficient_sdp_enabled())
        return torch_randomness.ATTENTION(*args)
    with patch("torch.nn.functional.scaled_dot_product_attention", spy), torch_randomness.fixed(layer, Draws(1)):
        layer(x, x, x, need_weights=False)
    return seen

before = switches()
torch.backends.cudnn.benchmark = not torch.backends.cudnn.benchmark
attention = [fused(0.1, True), fused(0.1, False), fused(0.0, True)]
print(json.dumps([said, before, switches(), torch.backends.cudnn.allow_tf32, attention]))
"""


def test_devices_and_switches_are_what_this_torch_says() -> None:
    """Asked in a process of its own: tests import no framework."""
    done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True)
    said, before, after, tf32, attention = json.loads(done.stdout)
    assert {name: said[name] for name in ("cpu", "cuda", "cuda:1")} == {
        "cpu": "cpu",
        "cuda": "cuda:0",
        "cuda:1": "cuda:1",
    }
    assert "it sees none, and torch_npu, which provides it, is not loaded; use --device cpu, or record" in said["npu"]
    assert said["npu:3"].startswith("refused: --device npu:3: torch ")
    assert "it sees 2, numbered from 0" in said["cuda:2"]
    assert before["TF32 in convolutions"] is tf32 and before["deterministic algorithms"] is False
    assert {name for name in before if before[name] != after[name]} == {"cudnn.benchmark"}
    assert attention == [[False], [True], [True]]  # of a GPU's one kernel nobody could fix the dropout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--device", "gpu"), "expected cpu, cuda, cuda:1, npu or npu:1"),
        (("--device", "cuda:x"), "expected cpu, cuda, cuda:1, npu or npu:1"),
        (("--target", "TPU"), "TPU"),
    ],
)
def test_a_device_that_is_none_is_refused_before_a_framework_starts(words: tuple[str, ...], why: str) -> None:
    command = [sys.executable, "-m", "msmigrate", "parity-step", str(RECIPE), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and why in done.stderr, done.stderr


def test_what_a_reader_has_to_know() -> None:
    assert device_notes(CPU, CPU, CPU, "fp32") == []
    twice, coarse = device_notes(GPU, CPU, CPU, "fp32", 8000.0)
    assert "ran twice on cuda:0" in twice and "ran on the CPU" in twice
    assert "8,000 times" in coarse and "TF32 in convolutions is on" in coarse and "matrix products" not in coarse
    assert coarse.endswith("for a sharper verdict: NVIDIA_TF32_OVERRIDE=0 before the command")
    assert len(device_notes(GPU, CPU, CPU, "fp32", COARSE / 2)) == 1
    assert "there too" in device_notes(GPU, GPU, CPU, "fp32")[0]
    ascend = Device("ascend:0", switches={"HF32 in convolutions": True})
    assert "--precision hf32" in device_notes(CPU, CPU, ascend, "fp32")[0]
    assert device_notes(CPU, CPU, ascend, "hf32") == []


def test_a_device_says_what_changes_its_numbers() -> None:
    assert GPU.said() == (
        "cuda:0 (NVIDIA H100, driver 550.54, CUDA 12.4, cuDNN 90100; TF32 in matrix products off, "
        "TF32 in convolutions on)"
    )


def test_a_trace_that_says_nonsense_of_its_device_is_refused(tmp_path: Path) -> None:
    assert Device.of({}, tmp_path).device == "not said"
    with pytest.raises(BadTrace, match="says nonsense about its device"):
        Device.of({"device": ["cpu"]}, tmp_path)
