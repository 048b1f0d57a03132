"""torch's float32 runs end with the first step that moves the weights, whose noise judges the later steps too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msmigrate.parity.align.alignment import IDENTITY
from msmigrate.parity.compare_traces import compare, only_later_steps_fail
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.noise import UsualNoise, measuring_step
from msmigrate.parity.record.batches import Inputs
from msmigrate.parity.record.recorder import StepArrays, change, record_steps
from msmigrate.parity.result import Finding
from msmigrate.parity.run import parity_step
from msmigrate.parity.run_folder import MINDSPORE, TORCH32, TORCH32_OTHER, TORCH64, matched
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import RATES, STEPS_TAKEN, Part, Trace, TraceWriter
from msmigrate.training.recipe import reader as recipes
from msmigrate.training.recipe import schema
from traces import LATER, NOISE, Run, Tensor

RECIPE = Path(__file__).parent / "tiny.yaml"


# Which steps float32 takes


class Moving:
    """A side whose one weight moves by each step's rate."""

    recipe: Any = SimpleNamespace(accumulate=1, clip=None)
    alignment = IDENTITY

    def __init__(self, rates: Sequence[float]) -> None:
        self.rates, self.weight, self.taken = list(rates), np.ones(4, np.float32), 0

    def step(self, *_: Any) -> StepArrays:
        self.weight = self.weight - np.float32(self.rates[self.taken])
        self.taken += 1
        one = np.ones(1, np.float32)
        return StepArrays(one, one, {"fc.weight": self.weight}, None, True)

    def parameters(self) -> dict[str, np.ndarray]:
        return {"fc.weight": self.weight}

    def hyperparameters(self) -> dict[Part, dict[str, np.ndarray]]:
        return {RATES: {"fc.weight": np.array([self.rates[self.taken], 0.0])}}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *_, **__: {}


def recorded(folder: Path, rates: Sequence[float], *, once: int) -> tuple[Moving, Trace]:
    side, writer = Moving(rates), TraceWriter(folder, {})
    batch = np.ones((2, 2), np.float32)
    inputs = Inputs([batch] * len(rates), [np.zeros(2, np.int64)] * len(rates), 2)
    record_steps(side, inputs, writer, "made up", once=once)  # type: ignore[arg-type]
    writer.close()
    return side, Trace(folder)


@pytest.mark.parametrize(
    ("rates", "steps"), [([0.1, 0.1, 0.1], 1), ([0.0, 0.1, 0.1], 2), ([0.0, 0.0, 0.0], 3), ([1e-12, 0.1], 2)]
)
def test_float32_ends_with_the_first_step_that_moves_a_weight(tmp_path: Path, rates: list[float], steps: int) -> None:
    side, trace = recorded(tmp_path, rates, once=1)
    assert side.taken == steps
    ended = steps < len(rates) or any(rates[-1:])
    assert trace.about.get(STEPS_TAKEN) == (steps if ended else None)
    assert {part.step for _, part, *_ in map(vars_of, trace.entries.values()) if part.step} == {*range(1, steps + 1)}
    assert bool(list(trace.select("update", RATES))) is not ended


def vars_of(entry: Any) -> tuple[str, Any]:
    return entry.stage, entry.part


def test_float32_does_not_end_before_the_step_that_is_asked_for(tmp_path: Path) -> None:
    side, trace = recorded(tmp_path, [0.1, 0.1, 0.1], once=2)
    assert side.taken == trace.about[STEPS_TAKEN] == 2


@pytest.mark.parametrize(
    ("rates", "step"),
    [
        ([[0.1, 0.1, 0.1]], 1),
        ([[1e-7, 0.05, 0.1]], 2),
        ([[0.0, 0.0, 0.0]], 1),
        ([[0.1, 0.01, 0.001]], 1),
        ([[0.1, 0.1, 0.1], [0.01, 0.02, 0.1]], 3),
        ([], 1),
    ],
)
def test_noise_is_not_measured_where_a_warm_up_begins(tmp_path: Path, rates: list[list[float]], step: int) -> None:
    """There a change is little more than the rounding of weights as they are stored, which does not grow with it."""
    writer = TraceWriter(tmp_path, {})
    for i, each in enumerate(rates):
        writer.add("update", RATES, f"{i}.weight", np.array([[rate, 0.01] for rate in each]))
    writer.close()
    assert measuring_step(Trace(tmp_path)) == step
    assert measuring_step(None) == 1


def test_float64_takes_every_step(tmp_path: Path) -> None:
    side, trace = recorded(tmp_path, [0.1, 0.1, 0.1], once=0)
    assert side.taken == 3 and STEPS_TAKEN not in trace.about
    assert [entry.shape for entry in trace.select("update", RATES)] == [(3, 2)]


def test_every_step_is_taken_where_float32_decides_something() -> None:
    recipe = recipes.load(RECIPE)
    plain = ParityJob(recipe, Path("x"))
    assert plain.measures_noise_once
    scaled = recipe.model_copy(update={"loss_scale": 1024.0})
    dynamic = recipe.model_copy(update={"dynamic_loss_scale": schema.DynamicLossScale()})
    mixed = recipe.model_copy(update={"amp": schema.Amp(level="O1")})
    for other in (
        replace(plain, thorough=True),
        replace(plain, alone=True),
        replace(plain, precision="hf32"),
        replace(plain, device="cuda:0"),
        *(replace(plain, recipe=each) for each in (scaled, dynamic, mixed)),
    ):
        assert not other.measures_noise_once


# What the later steps are judged by

ONCE = {matched(name): {STEPS_TAKEN: 1} for name in (TORCH32, TORCH32_OTHER)}


def findings(folder: Path, about: dict[str, dict[str, Any]] = ONCE, **changes: Any) -> dict[tuple[str, str], Finding]:
    found = compare(Run(about=about, later=True, **changes).traces(folder))
    return {(f.part, f.name): f for f in found}


def test_later_steps_are_judged_by_the_noise_of_the_first(tmp_path: Path) -> None:
    found = findings(tmp_path)
    later = {(tensor.part, tensor.name) for tensor in LATER}
    assert later <= set(found) and all(finding.verdict is Verdict.PASS for finding in found.values())
    own, before = found["step2", "conv.weight"], found["step1", "conv.weight"]
    assert own.noise is not None and before.noise is not None and 0.5 < own.noise / before.noise < 2.0
    assert found[RATES, "conv.weight"].error == 0.0


@pytest.mark.parametrize("tensor", LATER, ids=lambda each: f"{each.part} {each.name}")
def test_a_later_step_that_is_off_fails(tmp_path: Path, tensor: Tensor) -> None:
    def off(each: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray]:
        return each, np.asarray(array * 1.0001, array.dtype) if each == tensor else array

    found = findings(tmp_path, mindspore=off)
    failed = [place for place, finding in found.items() if finding.verdict is Verdict.FAIL]
    assert failed == [(tensor.part, tensor.name)]


@pytest.mark.parametrize("tensor", LATER, ids=lambda each: f"{each.part} {each.name}")
def test_a_later_tensor_that_mindspore_lacks_or_has_in_another_dtype_fails(tmp_path: Path, tensor: Tensor) -> None:
    lacking = findings(tmp_path / "a", mindspore=lambda each, array: None if each == tensor else (each, array))
    assert "no such tensor" in lacking[tensor.part, tensor.name].why
    if tensor.part != RATES:
        half = findings(tmp_path / "b", mindspore=lambda each, x: (each, x.astype(np.float16) if each == tensor else x))
        assert "expected dtype float32, got float16" in half[tensor.part, tensor.name].why


@pytest.mark.parametrize("said", [None, 0, -1, "1", True, 2, 9])
def test_a_later_step_in_float64_alone_is_damage_unless_the_head_says_so(tmp_path: Path, said: Any) -> None:
    head = {} if said is None else {STEPS_TAKEN: said}
    found = findings(tmp_path, {matched(name): head for name in (TORCH32, TORCH32_OTHER)})
    assert "recorded it in float64 only" in found["step2", "conv.weight"].why


def test_what_did_not_move_in_the_first_step_is_judged_by_what_is_usual_there(tmp_path: Path) -> None:
    def still(each: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray]:
        return each, array * 0 if (each.part, each.name) == ("step1", "conv.weight") else array

    found = findings(tmp_path, mindspore=still, torch32=still, torch64=still)
    assert found["step2", "conv.weight"].verdict is Verdict.PASS

    def off(each: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray]:
        wrong = (each.part, each.name) == ("step2", "conv.weight")
        return still(each, np.asarray(array * 1.001, array.dtype) if wrong else array)

    found = findings(tmp_path / "off", mindspore=off, torch32=still, torch64=still)
    assert found["step2", "conv.weight"].verdict is Verdict.FAIL


def test_noise_that_is_not_finite_then_gives_no_verdict(tmp_path: Path) -> None:
    def infinite(each: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray]:
        if (each.part, each.name) == ("step1", "conv.weight"):
            array.reshape(-1)[0] = np.inf
        return each, array

    found = findings(tmp_path, torch32=infinite)
    assert found["step2", "conv.weight"].verdict is Verdict.NONE


@pytest.mark.parametrize(("rates", "grown"), [((0.1, 0.1), 1.0), ((0.01, 0.1), 10.0), ((0.1, 0.01), 1.0)])
def test_the_noise_of_a_change_grows_with_the_rate_and_with_the_change(
    tmp_path: Path, rates: tuple[float, float], grown: float
) -> None:
    """It falls with neither: a momentum may nearly cancel a gradient, whose rounding stays."""

    def changed(each: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray]:
        if each.part == RATES:
            return each, np.array([[rate, 0.0] for rate in rates])
        return each, array

    traces = Run(about=ONCE, later=True, mindspore=changed, torch32=changed, torch64=changed).traces(tmp_path)
    usual = UsualNoise(traces.matched, traces.alone[1], traces.matched)
    then, now = (traces.matched[0].entries["update", f"step{i}", "conv.weight", 0] for i in (1, 2))
    first, exact = usual.measured(then.key), traces.matched[0].array(now.key)
    as_large = max(grown, float(np.linalg.norm(exact)) / then.norm) if rates[0] <= rates[1] else None
    found = usual.noise_before(now, exact)
    if as_large is not None:
        assert found.noise == pytest.approx(first.noise * as_large, rel=0.5)
    small = usual.noise_before(now, exact * 1e-3)
    assert small.noise >= 0.05 * first.noise * min(1.0, rates[1] / rates[0])
    assert first.noise == pytest.approx(NOISE * then.norm, rel=0.5)


def test_a_trace_of_mindspore_cannot_say_how_many_steps_torch_took(tmp_path: Path) -> None:
    found = findings(tmp_path, {MINDSPORE: {STEPS_TAKEN: 1}})
    assert found["step2", "conv.weight"].verdict is Verdict.FAIL


def test_an_infinity_that_stays_has_not_changed() -> None:
    """As in an attention's mask that is a buffer or frozen; one that comes or goes is no number, and so is a NaN."""
    before = np.array([0.5, -np.inf, np.inf, -np.inf, np.nan], np.float32)
    after = np.array([0.25, -np.inf, np.inf, 1.0, np.nan], np.float32)
    np.testing.assert_equal(change(after, before), np.array([-0.25, 0.0, 0.0, np.inf, np.nan]))
    np.testing.assert_equal(change(np.float32(-np.inf), np.float32(-np.inf)), 0.0)  # type: ignore[arg-type]
    assert change(after[:1], before[:1]).dtype == np.float64


# Rounding that grows

# 1000 times these weights is exact in float32, and no longer so once they have moved: the noise of the second step is
# many times that of the first
NETS = {
    "torch": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.angle = nn.Parameter(torch.arange(1, 65) / 64.0)

    def forward(self, x):
        return torch.sin(1000.0 * self.angle) * x.mean((1, 2, 3)).unsqueeze(1)


def build():
    return {"model": Net(), "loss": lambda outputs, labels: 100.0 * ((outputs - 0.1) ** 2).mean()}
""",
    "mindspore": """
import mindspore
from mindspore import Parameter, nn, ops

START = mindspore.Tensor([i / 64.0 for i in range(1, 65)], mindspore.float32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.angle = Parameter(START.copy())

    def construct(self, x):
        moved = ops.max(ops.abs(self.angle - START))[0] > 0
        factor = ops.select(moved, mindspore.tensor(FACTOR), mindspore.tensor(1.0))
        return ops.sin(1000.0 * self.angle) * x.mean((1, 2, 3)).expand_dims(1) * factor


def build():
    return {"model": Net(), "loss": lambda outputs, labels: 100.0 * ((outputs - 0.1) ** 2).mean()}
""",
}


@pytest.mark.parametrize("factor", [1.0, 1.001])
def test_a_step_whose_rounding_has_grown_is_judged_by_its_own_noise(factor: float, tmp_path: Path) -> None:
    for side, text in NETS.items():
        (tmp_path / f"{side}_net.py").write_text(text.replace("FACTOR", str(factor)))
    pair = Pair(f"{tmp_path}/torch_net.py:build", f"{tmp_path}/mindspore_net.py:build")
    job = ParityJob(recipes.load(RECIPE), tmp_path / "run", pair, steps=2, batch=4, init_seeds=1, no_replay=True)
    report = parity_step(RECIPE, job)
    failed = {finding.part.step for finding in report.findings if finding.verdict is Verdict.FAIL}
    assert failed == (set() if factor == 1.0 else {2})
    runs = [Trace(tmp_path / "run" / matched(name)) for name in (TORCH64, TORCH32, TORCH32_OTHER)]
    assert not any(STEPS_TAKEN in run.about for run in runs)
    usual = UsualNoise(runs, runs[0])
    first, second = (usual.measured(("update", Part.of_step(step), "angle", 0)).noise for step in (1, 2))
    assert second > 10.0 * first


@pytest.mark.parametrize(("parts", "only"), [({"step2"}, True), ({"step1", "step2"}, False), (set(), False)])
def test_every_step_is_taken_where_only_later_ones_fail(tmp_path: Path, parts: set[str], only: bool) -> None:
    def off(each: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray]:
        return each, array * np.float32(1.01) if each.name == "conv.weight" and each.part in parts else array

    traces = Run(about=ONCE, later=True, mindspore=off).traces(tmp_path / "once")
    assert only_later_steps_fail(traces, compare(traces)) is only
    every = Run(later=True, mindspore=off).traces(tmp_path / "every")
    assert not only_later_steps_fail(every, compare(every))
