"""Modules that ran alone in two halves of one framework: what they are judged by, and where they are not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from msmigrate.parity import run_folder
from msmigrate.parity.job import ParityJob
from msmigrate.parity.replay.module_calls import BOTH_WAYS, FAILED, FOLDER, Call, Module, Outcome, Writer
from msmigrate.parity.result import Finding, Report
from msmigrate.parity.run_folder import (
    CHOICES,
    INPUTS,
    MINDSPORE_REPLAY,
    MOVED,
    TORCH32,
    TORCH32_OTHER,
    TORCH64,
    replayed,
)
from msmigrate.parity.tensor_verdict import Unjudged, Verdict
from msmigrate.parity.trace import ALONE, SIDES_STAGE, WIRING, Part, TraceWriter
from msmigrate.training.recipe import reader as recipes
from msmigrate.workflows.compare import (
    NO_START,
    NO_TORCH,
    NOT_ALONE,
    NOT_BUILT,
    OTHER_CALLS,
    compare,
    compare_folders,
)
from traces import NOISE, Run

RECIPE = Path(__file__).parent / "tiny.yaml"
MODULES = [Module("", "Net", ("conv", "relu")), Module("conv", "Conv2d"), Module("relu", "ReLU")]
CALLS = [("", 0, None), ("conv", 0, "(model)"), ("relu", 0, "(model)")]
CONTAINER = "(model)"
TENSORS = [
    ("forward", ALONE, "conv output"),
    ("gradients", ALONE, "conv input.grad"),
    ("forward", ALONE, "relu output"),
    ("forward", ALONE, f"{CONTAINER} output"),
    ("gradients", ALONE, f"{CONTAINER} input.grad"),
    ("forward", WIRING, "conv input"),
    ("forward", WIRING, "relu input"),
    ("forward", WIRING, f"{CONTAINER} output"),
    ("gradients", WIRING, f"{CONTAINER} input.grad"),
]
Off = dict[str, float]  # "PART NAME" -> what a tensor is multiplied by
BITS = np.packbits(np.arange(8192) % 3 == 0)
TURNED = BITS ^ np.uint8([0] * 5 + [8] + [0] * (BITS.size - 6))


def replay(folder: Path, run: int, off: Off, sides: np.ndarray | None = None, by_parts: bool = False) -> None:
    """A trace of modules alone, rounded as run 1, 2, … and exact as 0."""
    outcome = Outcome(wired={CONTAINER: BOTH_WAYS}, by_parts=[CONTAINER] if by_parts else [])
    head = {"recipe": "0", "versions": {"made-up": "1"}, FAILED: {}, **outcome.head()}
    writer = TraceWriter(folder, head)
    for at, (stage, part, name) in enumerate(TENSORS):
        if by_parts and part == ALONE and name.startswith(CONTAINER):
            continue
        exact = np.random.default_rng(at).standard_normal((4, 30))
        noise = np.random.default_rng([run, at]).standard_normal(exact.shape) * NOISE * (run > 0)
        array = exact * (1 + noise) * off.get(f"{part} {name}", 1.0)
        writer.add(stage, part, name, array if run == 0 else array.astype(np.float32))
    if sides is not None:
        writer.add(SIDES_STAGE, Part.of_call("", 0), "relu", sides, whole=True)
    writer.close()


def half(folder: Path, side: str, inputs: float = 1.0) -> Path:
    """A half without its modules, but with what they are given."""
    whole = folder.parent / f"whole {folder.name}"
    Run().write(whole)
    folder.mkdir()
    for trace in whole.glob(f"{side}-*"):
        trace.rename(folder / trace.name)
    shutil.rmtree(whole)
    (folder / INPUTS).write_bytes(b"the same batches")
    writer = Writer(folder / FOLDER)
    given = writer.store(np.full((2, 3), inputs, np.float32), True)
    writer.close(MODULES, [Call(*called, (given,), {}, given, (given,)) for called in CALLS], {"recipe": "0"})
    run_folder.write(RECIPE, ParityJob(recipes.load(RECIPE), folder, alone=side == "torch"), side)
    return folder


def torch_half(folder: Path, off: Off, run: int = 1, inputs: float = 1.0) -> Path:
    half(folder, "torch", inputs)
    for at, name in enumerate((TORCH64, TORCH32, TORCH32_OTHER)):
        replay(folder / replayed(name), 0 if name == TORCH64 else run + at, off, by_parts=True)
    replay(folder / CHOICES, 0, {}, by_parts=True)
    return folder


def mindspore_half(folder: Path, off: Off, run: int, sides: np.ndarray | None = None) -> Path:
    half(folder, "mindspore")
    replay(folder / MINDSPORE_REPLAY, run, off, sides)
    for at, name in enumerate(MOVED):
        shutil.copytree(folder / "mindspore-fp32", folder / name)
        replay(folder / replayed(name), run + 10 + at, off, sides)
    return folder


def alone(found: Report) -> dict[str, Finding]:
    return {f"{f.part} {f.name}": f for f in found.findings if f.part.alone}


def own(found: Report) -> list[str]:
    return [module.name for module in found.modules if module.own]


Pair = Callable[[Path, Off, Off], tuple[Path, Path, Path | None]]


def of_torch(root: Path, off: Off, other: Off) -> tuple[Path, Path, Path | None]:
    return torch_half(root / "A", off), torch_half(root / "A2", other, 4), None


def of_mindspore(root: Path, off: Off, other: Off) -> tuple[Path, Path, Path | None]:
    return mindspore_half(root / "B", off, 4), mindspore_half(root / "B2", other, 5), None


def by_torch(root: Path, off: Off, other: Off) -> tuple[Path, Path, Path | None]:
    """Torch's half does otherwise than both: that is no difference between the two."""
    start = torch_half(root / "A", {f"{part} {name}": 1.5 for _, part, name in TENSORS})
    return (*of_mindspore(root, off, other)[:2], start)


@pytest.mark.parametrize("pair", [of_torch, of_mindspore, by_torch])
def test_the_same_modules_agree(pair: Pair, tmp_path: Path) -> None:
    one, other, start = pair(tmp_path, {}, {})
    found = compare_folders(one, other, start)
    assert found.parity and {m.verdict for m in found.modules} == {Verdict.PASS} and len(found.modules) == 3
    assert f"{ALONE} conv output" in alone(found) and f"{ALONE} {CONTAINER} output" not in alone(found)


@pytest.mark.parametrize("pair", [of_torch, of_mindspore, by_torch])
def test_a_module_and_a_container_that_compute_otherwise_are_named(pair: Pair, tmp_path: Path) -> None:
    off = {f"{ALONE} conv output": 1.001, f"{WIRING} {CONTAINER} output": 1.001}
    found = compare_folders(*pair(tmp_path, {}, off))
    assert own(found) == ["", "conv"] and not found.parity
    assert {m.name for m in found.modules if m.verdict is Verdict.PASS} == {"relu"}


@pytest.mark.parametrize("pair", [of_torch, by_torch])
def test_a_container_that_did_not_run_alone_fails_with_what_is_in_it(pair: Pair, tmp_path: Path) -> None:
    found = compare_folders(*pair(tmp_path, {}, {f"{ALONE} conv input.grad": 1.001}))
    assert own(found) == ["conv"]
    assert {m.name for m in found.modules if m.verdict is Verdict.FAIL} == {"", "conv"}


def test_what_a_container_of_mindspore_s_gives_alone_counts_where_its_parts_do_not_judge_it(tmp_path: Path) -> None:
    """Each made its own choices in it: alone, a gradient behind one that fell to the other side has no verdict."""
    off = {f"{ALONE} conv output": 1.001, f"{ALONE} {CONTAINER} input.grad": 1.01}
    for sides, verdict in ((BITS, Verdict.FAIL), (TURNED, Verdict.NONE)):
        one = mindspore_half(tmp_path / "B", {}, 4, BITS)
        other = mindspore_half(tmp_path / "B2", off, 5, sides)
        finding = alone(compare_folders(one, other))[f"{ALONE} {CONTAINER} input.grad"]
        assert (finding.verdict, finding.unjudged) == (verdict, Unjudged.KINKS if verdict is Verdict.NONE else None)
        shutil.rmtree(one)
        shutil.rmtree(other)


@pytest.mark.parametrize("pair", [of_torch, of_mindspore, by_torch])
def test_without_modules_or_with_others_inputs_it_is_said(pair: Pair, tmp_path: Path) -> None:
    one, other, start = pair(tmp_path, {}, {f"{ALONE} conv output": 1.001})
    (other / FOLDER / "replay.json").write_text("{}")
    assert OTHER_CALLS.format(one, other) in compare_folders(one, other, start).notes
    lacking = start or other
    names = [trace.name for trace in lacking.glob("*-replay")]
    for name in names:
        shutil.rmtree(lacking / name)
    run = run_folder.read(lacking)
    kept = replace(run, traces=[name for name in run.traces if name not in names])
    (lacking / run_folder.RUN).write_text(json.dumps({"format": run_folder.FORMAT, **asdict(kept)}))
    shutil.copyfile(one / FOLDER / "replay.json", other / FOLDER / "replay.json")
    found = compare_folders(one, other, start)
    assert NOT_ALONE.format(lacking) in found.notes and not found.modules and found.parity


def test_why_causes_are_not_looked_for_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    off = {f"{ALONE} conv output": 1.001}
    one, other, _ = of_mindspore(tmp_path, {}, off)
    assert NO_START in compare(one, other).report.notes
    assert not {NO_START, NO_TORCH} & {*compare(one, other, no_diagnosis=True).report.notes}
    one, other, _ = of_torch(tmp_path, {}, off)
    with monkeypatch.context() as without:
        without.setattr("msmigrate.workflows.compare.find_spec", lambda name: None)
        found = compare(one, other).report
    assert NO_TORCH in found.notes and found.causes == [] and own(found) == ["conv"]
    for place in (one, other):  # as a stranger may have written it
        run = replace(run_folder.read(place), pair={"torch": "evil.py:f", "mindspore": "evil.py:f"})
        (place / run_folder.RUN).write_text(json.dumps({"format": run_folder.FORMAT, **asdict(run)}))
    assert NOT_BUILT.format("evil.py:f") in compare(one, other).report.notes
