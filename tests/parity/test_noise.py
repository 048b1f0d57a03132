"""The usual noise of a part: a floor under each tensor's own, which falls with the tensor's size."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from msmigrate.parity.noise import LOG_SUM, UsualNoise, is_of_a_step
from msmigrate.parity.tensor_verdict import FEW
from msmigrate.parity.trace import Entry, Trace, TraceWriter

PART = ("gradients", "parameters")


def family(folder: Path, **noises: tuple[int, float]) -> list[Trace]:
    """Float64 and two float32 runs of tensors of ones: name -> (elements, relative noise of the worse run)."""
    factors = {"fp64": 0.0, "fp32": 0.5, "other": 1.0}
    for run, factor in factors.items():
        writer = TraceWriter(folder / run, {})
        for name, (elements, noise) in noises.items():
            writer.add(*PART, name, np.full(elements, 1 + factor * noise))
        writer.close()
    return [Trace(folder / run) for run in factors]


def entry(traces: list[Trace], name: str) -> Entry:
    return traces[0].entries[(*PART, name, 0)]


def test_few_elements_are_given_the_usual_noise_and_many_their_share(tmp_path: Path) -> None:
    sizes = {"one": 1, "few": FEW, "some": 4 * FEW, "many": 100 * FEW}
    traces = family(tmp_path, **{name: (size, 1e-6) for name, size in sizes.items()}, lucky=(4, 0.0), wild=(4, 1.0))
    usual = UsualNoise(traces, traces[0])
    floors = {name: usual.floor(entry(traces, name)) for name in (*sizes, "lucky", "wild")}
    expected = {"one": 1e-6, "few": 1e-6, "some": 5e-7, "many": 1e-7, "lucky": 1e-6, "wild": 1e-6}
    assert floors == pytest.approx(expected, rel=1e-6)


def test_one_wild_tensor_does_not_make_the_others_lenient(tmp_path: Path) -> None:
    calm = {f"w{i}": (4, 1e-6) for i in range(8)}
    traces = family(tmp_path, **calm, wild=(4, 1.0), wilder=(4, 10.0), zeroed=(4, -1.0))
    assert UsualNoise(traces, traces[0]).floor(entry(traces, "w0")) == pytest.approx(1e-6, rel=1e-6)


def test_parts_are_apart(tmp_path: Path) -> None:
    for run, noise in (("fp64", 0.0), ("fp32", 1e-6)):
        writer = TraceWriter(tmp_path / run, {})
        writer.add("update", "step1", "w", np.full(4, 1 + noise))
        writer.add("update", "step3", "w", np.full(4, 1 + 1000 * noise))
        writer.close()
    traces = [Trace(tmp_path / "fp64"), Trace(tmp_path / "fp32")]
    usual = UsualNoise(traces, traces[0])
    floors = [usual.floor(traces[0].entries["update", part, "w", 0]) for part in ("step1", "step3")]
    assert floors == pytest.approx([1e-6, 1e-3], rel=1e-6)


def test_a_loss_is_known_no_better_than_its_logits(tmp_path: Path) -> None:
    traces = family(tmp_path, logits=(4000, 1e-5), loss=(1, 0.0))
    assert UsualNoise(traces, traces[0]).floor(entry(traces, "loss")) == pytest.approx(1e-5, rel=1e-6)


def test_a_small_loss_rounds_as_the_sum_does_whose_logarithm_it_is(tmp_path: Path) -> None:
    for run in ("fp64", "fp32"):
        writer = TraceWriter(tmp_path / run, {})
        writer.add(*PART, "logits", np.ones(4000))
        writer.add(*PART, "loss", np.full(1, 1e-3))
        writer.close()
    traces = [Trace(tmp_path / "fp64"), Trace(tmp_path / "fp32")]
    assert UsualNoise(traces, traces[0]).floor(entry(traces, "loss")) == pytest.approx(LOG_SUM / 1e-3, rel=1e-6)


def test_tensors_of_zeros_or_of_one_run_only_tell_nothing(tmp_path: Path) -> None:
    for run, noise in (("fp64", 0.0), ("fp32", 1e-6)):
        writer = TraceWriter(tmp_path / run, {})
        writer.add(*PART, "zero", np.full(4, noise))
        writer.add(*PART, "shape", np.ones(4 if noise else 5))
        if not noise:
            writer.add(*PART, "alone", np.ones(4))
        writer.close()
    traces = [Trace(tmp_path / "fp64"), Trace(tmp_path / "fp32")]
    floor = UsualNoise(traces, traces[0]).floor(entry(traces, "zero"))
    assert floor == 0.0 and math.isfinite(floor)


def test_a_change_is_known_no_better_than_the_weight_that_stores_it(tmp_path: Path) -> None:
    for run in ("fp64", "fp32"):
        writer = TraceWriter(tmp_path / run, {})
        writer.add("init", "values", "bn.running_mean", np.full(4, 2.0))
        for part in ("step1 buffers", "step3 buffers", "step1 momentum_buffer"):
            writer.add("update", part, "bn.running_mean", np.full(4, 1e-3))
        writer.close()
    traces = [Trace(tmp_path / "fp64"), Trace(tmp_path / "fp32")]
    usual = UsualNoise(traces, traces[0])
    floors = {e.part: usual.floor(e) for e in traces[0].select("update")}
    stored = 0.25 * 2.0**-23 * 2.0 / 1e-3
    assert floors["step1 buffers"] == floors["step3 buffers"] == pytest.approx(stored)
    assert floors["step1 momentum_buffer"] == 0.0  # a value, not a change


def test_statistics_that_hardly_move_do_not_make_the_others_noise_look_large(tmp_path: Path) -> None:
    """A statistic that is the batch's own already changes by rounding alone."""
    noises = {"fp64": 0.0, "fp32": 1e-7}
    for run, noise in noises.items():
        writer = TraceWriter(tmp_path / run, {})
        for i in range(4):
            writer.add("init", "values", f"bn{i}.running_var", np.full(4, 1.0))
            change = 1e-9 if i < 3 else 0.1
            writer.add("update", "step1 buffers", f"bn{i}.running_var", np.full(4, change + noise))
        writer.close()
    traces = [Trace(tmp_path / run) for run in noises]
    usual = UsualNoise(traces, traces[0])
    moved = traces[0].entries["update", "step1 buffers", "bn3.running_var", 0]
    assert usual.floor(moved) == pytest.approx(1e-7 / 0.1, rel=1e-3)  # it was 100, of the change that there is none


def test_a_gradient_is_zero_where_float64_says_so(tmp_path: Path) -> None:
    values = {"fp64": (1e-17, 1e-3), "fp32": (1e-8, 1e-3 + 1e-9)}
    for run, (zero, other) in values.items():
        writer = TraceWriter(tmp_path / run, {})
        for name, value in (("conv.bias", zero), ("fc.bias", other)):
            writer.add("gradients", "parameters", name, np.full(4, value))
            writer.add("gradients", "alone", f"{name.replace('.', ' ')}.grad", np.full(4, 1e-9))
            writer.add("update", "step1 exp_avg", name, np.full(4, value))
            writer.add("update", "given gradients", name, np.full(4, 0.1))
        writer.close()
    traces = [Trace(tmp_path / run) for run in values]
    usual = UsualNoise(traces, traces[0])
    zero = {(e.part, e.name) for e in traces[0].entries.values() if usual.is_zero(e)}
    assert zero == {("alone", "conv bias.grad"), ("step1 exp_avg", "conv.bias")}


def test_what_an_optimizer_made_of_a_real_step_is_told_from_the_rest(tmp_path: Path) -> None:
    parts = ("step1", "step12 momentum_buffer", "step1 ema", "step1 buffers", "given gradients", "loss scale")
    writer = TraceWriter(tmp_path / "run", {})
    for part in parts:
        writer.add("update", part, "w", np.ones(2))
    writer.add("loss", "step1", "loss", np.ones(()))
    writer.close()
    entries = Trace(tmp_path / "run").entries.values()
    assert [e.part for e in entries if is_of_a_step(e)] == list(parts[:3])
