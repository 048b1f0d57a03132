"""Comparing traces: what is missing, extra, misshapen, empty or not finite is a finding or an error, never a pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from msmigrate.errors import BadTrace
from msmigrate.parity.compare_traces import Traces, compare, without_lone_outputs
from msmigrate.parity.options import STAGES
from msmigrate.parity.result import Finding, Report
from msmigrate.parity.run_folder import MINDSPORE, TORCH32, TORCH32_OTHER, TORCH64, UNJUDGED, matched
from msmigrate.parity.tensor_verdict import Unjudged, Verdict
from msmigrate.parity.trace import STEPS_TAKEN
from traces import MATCHED, STEP, Change, Run, Tensor, only, renamed, values, without


def failed(report: Report) -> list[Finding]:
    return [f for f in report.findings if f.verdict is Verdict.FAIL]


def test_rounding_alone_is_green(tmp_path: Path) -> None:
    report = Run().report(tmp_path)
    assert [(f.place, f.why) for f in report.findings if f.verdict is not Verdict.PASS] == []
    assert report.parity and len(report.findings) == len(STEP)


def test_findings_come_by_stage_given_values_first_then_as_executed(tmp_path: Path) -> None:
    findings = Run().report(tmp_path).findings
    assert [f.order for f in findings] == list(range(len(STEP)))
    stages = [STAGES.index(f.stage) for f in findings]
    assert stages == sorted(stages)
    assert [f.name for f in findings if f.stage == "forward"] == ["conv", "bn", "relu", "relu#1"]
    assert [f.part for f in findings if f.stage == "loss"] == ["given logits", "step1", "step1"]
    assert [f.part for f in findings if f.stage == "update"] == ["given gradients", "step1"]
    assert [f.name for f in findings if f.stage == "gradients"] == ["bn.weight", "conv.weight"]


@pytest.mark.parametrize("tensor", STEP, ids=lambda t: f"{t.stage}-{t.part}-{t.name}-{t.call}")
@pytest.mark.parametrize("way", ["missing", "renamed", "zero", "negated", "nan", "shape", "dtype", "empty", "one more"])
def test_no_tensor_may_be_absent_or_odd(tmp_path: Path, tensor: Tensor, way: str) -> None:
    ways: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "zero": np.zeros_like,
        "negated": lambda a: -a,
        "nan": lambda a: np.where(np.arange(a.size).reshape(a.shape) == a.size - 1, np.float32("nan"), a),
        "shape": lambda a: a.reshape(1, *a.shape),
        "dtype": lambda a: a.astype(np.float64),
        "empty": lambda a: np.zeros((*a.shape, 0), a.dtype),
        "one more": lambda a: np.concatenate([a.reshape(-1), a.reshape(-1)[:1]]),
    }
    if way == "negated" and tensor.part == "distribution":
        return  # the same distribution

    def change(found: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray] | None:
        if found != tensor:
            return found, array
        if way == "missing":
            return None
        if way == "renamed":
            return Tensor(found.stage, found.part, "other.weight", exact=found.exact), array
        return found, ways[way](array)

    report = Run(mindspore=change).report(tmp_path)
    assert not report.parity
    where = {(f.stage, f.part) for f in failed(report)}
    assert where == {(tensor.stage, tensor.part)}
    names = {f.name for f in failed(report)}
    label = f"{tensor.name}#{tensor.call}" if tensor.call else tensor.name
    assert names == ({label, "other.weight"} if way == "renamed" else {label})
    assert all(f.why for f in failed(report))


def test_a_tensor_that_only_mindspore_has_is_a_finding(tmp_path: Path) -> None:
    extra = Tensor("forward", "train", "relu", call=2)
    report = Run(extra=[(extra, np.ones((4, 30), np.float32))]).report(tmp_path)
    (found,) = failed(report)
    assert (found.name, found.why) == ("relu#2", "only MindSpore has this tensor; torch recorded none")
    assert not report.parity


def test_a_transposed_or_renamed_weight_is_never_made_to_agree(tmp_path: Path) -> None:
    turned = Run(mindspore=only("gradients", "conv.weight", np.transpose)).report(tmp_path / "a")
    assert [f.why for f in failed(turned)] == ["expected shape [4, 30], got [30, 4]"]
    names = Run(mindspore=renamed("init", "conv.weight", "conv.gamma")).report(tmp_path / "b")
    assert {f.name for f in failed(names)} == {"conv.weight", "conv.gamma"}


def test_what_is_empty_on_both_sides_was_not_compared(tmp_path: Path) -> None:
    empty = only("forward", "bn", lambda a: a[:0])
    report = Run(empty, empty, empty).report(tmp_path)
    assert [(f.name, "nothing was compared" in f.why) for f in failed(report)] == [("bn", True)]


def test_torchs_own_nan_is_no_pass(tmp_path: Path) -> None:
    nan = only("gradients", "conv.weight", lambda a: np.full_like(a, np.nan))
    report = Run(mindspore=nan, torch32=nan, torch64=nan).report(tmp_path)
    (found,) = [f for f in report.findings if f.verdict is not Verdict.PASS]
    assert found.verdict is Verdict.NONE and "torch float32 itself has 120 values that are not finite" in found.why


def masks(
    place: Path, torch: Callable[..., np.ndarray], folder: str, mindspore: Callable[..., np.ndarray]
) -> list[tuple[str, Verdict]]:
    """What does not pass where both sides have changed one output so."""
    mask = only("forward", "conv", torch)
    report = Run(only("forward", "conv", mindspore), mask, mask).report(place / folder)
    return [(f.name, f.verdict) for f in report.findings if f.verdict is not Verdict.PASS]


def test_the_same_infinities_on_both_sides_are_equal_and_the_rest_is_judged(tmp_path: Path) -> None:
    """A mask of attention has them by design."""

    def masked(*places: int, value: float = -np.inf, off: float = 0.0) -> Callable[[np.ndarray], np.ndarray]:
        def change(array: np.ndarray) -> np.ndarray:
            array.reshape(-1)[list(places)] = value
            return (array + off).astype(array.dtype)

        return change

    verdict = partial(masks, tmp_path, masked(0, 7))
    assert verdict("same", masked(0, 7)) == []
    assert verdict("elsewhere", masked(0, 8)) == [("conv", Verdict.FAIL)]
    assert verdict("other sign", masked(0, 7, value=np.inf)) == [("conv", Verdict.FAIL)]
    assert verdict("nan", masked(0, 7, value=np.nan)) == [("conv", Verdict.FAIL)]
    assert verdict("rest", masked(0, 7, off=1e-3)) == [("conv", Verdict.FAIL)]


def test_the_last_numbers_of_each_dtype_stand_for_infinities(tmp_path: Path) -> None:
    """A mask of attention has torch.finfo(x.dtype).min, which is another number in float64."""

    def lowest(*places: int, off: float = 0.0, share: float = 1.0) -> Callable[[np.ndarray], np.ndarray]:
        def change(array: np.ndarray) -> np.ndarray:
            array = (array + off).astype(array.dtype)
            array.reshape(-1)[list(places)] = share * np.finfo(array.dtype).min
            return array

        return change

    verdict = partial(masks, tmp_path, lowest(0, 7))
    assert verdict("same", lowest(0, 7)) == []
    assert verdict("rest", lowest(0, 7, off=1e-3)) == [("conv", Verdict.FAIL)]
    assert verdict("elsewhere", lowest(0, 8)) == [("conv", Verdict.NONE)]
    assert verdict("half", lowest(0, 7, share=0.5)) == [("conv", Verdict.NONE)]


def test_a_nan_of_float64_alone_is_no_pass(tmp_path: Path) -> None:
    report = Run(torch64=only("gradients", "conv.weight", lambda a: np.full_like(a, np.nan))).report(tmp_path)
    assert [(f.name, f.verdict) for f in report.findings if f.verdict is not Verdict.PASS] == [
        ("conv.weight", Verdict.NONE)
    ]


def test_a_nan_of_one_float32_run_is_no_pass(tmp_path: Path) -> None:
    calls = iter(range(100))

    def second_run(tensor: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray]:
        if (tensor.stage, tensor.name) == ("gradients", "conv.weight") and next(calls):  # not the first
            array = np.full_like(array, np.nan)
        return tensor, array

    report = Run(torch32=second_run).report(tmp_path)
    assert [f.name for f in report.findings if f.verdict is not Verdict.PASS] == ["conv.weight"]


def test_torch_runs_of_several_shapes_are_no_pass(tmp_path: Path) -> None:
    report = Run(torch64=only("forward", "bn", lambda a: a[:1])).report(tmp_path)
    assert [(f.name, "different shapes" in f.why) for f in failed(report)] == [("bn", True)]


@pytest.mark.parametrize("side", ["torch32", "torch64"])
def test_a_torch_trace_with_a_hole_is_no_pass(tmp_path: Path, side: str) -> None:
    report = Run(**{side: without("gradients", "conv.weight")}).report(tmp_path)
    (found,) = failed(report)
    assert found.name == "conv.weight" and "the trace is damaged" in found.why


def test_everything_missing_is_no_parity(tmp_path: Path) -> None:
    report = Run(mindspore=lambda tensor, array: None).report(tmp_path)
    assert not report.parity
    assert all(f.verdict is Verdict.FAIL for f in report.findings) and len(report.findings) == len(STEP)


def test_nothing_recorded_at_all_is_no_parity(tmp_path: Path) -> None:
    run = Run(lambda t, a: None, lambda t, a: None, lambda t, a: None)
    report = run.report(tmp_path)
    assert not report.parity and report.findings == []
    assert all(stage.verdict is Verdict.FAIL for stage in report.stages)


def test_a_stage_without_tensors_is_no_parity(tmp_path: Path) -> None:
    def no_loss(tensor: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray] | None:
        return None if tensor.stage == "loss" else (tensor, array)

    report = Run(no_loss, no_loss, no_loss).report(tmp_path)
    assert not report.parity and not failed(report)


def test_the_first_divergence_is_the_earliest_not_the_largest(tmp_path: Path) -> None:
    def change(tensor: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray]:
        factor = {"bn": 1.0001, "relu": 100.0}.get(tensor.name, 1.0) if tensor.stage == "forward" else 1.0
        return tensor, array * np.float32(factor if tensor.stage == "forward" else 1.0)

    first = Run(mindspore=change).report(tmp_path).first_divergence
    assert first is not None and (first.name, first.module, first.shape) == ("bn", "BatchNorm2d", (4, 30))


def test_starting_weights_are_equal_to_the_bit_even_outside_the_sample(tmp_path: Path) -> None:
    def last_bit(array: np.ndarray) -> np.ndarray:
        array.flat[0] = np.nextafter(array.flat[0], np.float32(9))
        return array

    inside = Run(mindspore=only("init", "conv.weight", last_bit)).report(tmp_path / "a")
    assert "1 of 120 compared elements differ; at 0 expected" in failed(inside)[0].why
    for element in range(120):  # the sample keeps 5 of 120 elements; the digest sees them all

        def one(array: np.ndarray, at: int = element) -> np.ndarray:
            array.flat[at] += 1
            return array

        if element % 24 == 7:
            report = Run(mindspore=only("init", "conv.weight", one), sample=5).report(tmp_path / str(element))
            assert [f.stage for f in failed(report)] == ["init"]


KEYS = slice(30, 60)  # the elements of one row: a key's part of a bias for query, key and value


def divided_by_itself(side: str, at: slice = KEYS, gradient: float = 1.0, moved: float = 1.0) -> Change:
    """What an optimizer that divides by the gradient's size makes of one that is zero but for rounding."""
    size = {"torch64": (1e-18, 1e-9), "torch32": (1e-9, 1.0), "mindspore": (1e-9, 1.0)}[side]

    def change(tensor: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray]:
        signs = np.sign(np.random.default_rng(int(abs(array.flat[0]) * 1e12) % 2**32).standard_normal(array.size))
        array, here = array.copy(), (tensor.stage, tensor.name)
        if here == ("gradients", "conv.weight"):
            array.flat[at] = (gradient * size[0] * signs)[at]
        if here == ("update", "conv.weight") and tensor.part in PARTS:
            array.flat[at] = (moved * size[1] * signs)[at]
        return tensor, array

    return change


SIDES_OF_RUN = ("torch64", "torch32", "mindspore")
ONCE = {matched(name): {STEPS_TAKEN: 1} for name in (TORCH32, TORCH32_OTHER)}
PARTS = ("step1", "step1 momentum_buffer", "step2", "step2 momentum_buffer")
OTHERS = tuple(Tensor("update", part, name, MATCHED) for part in PARTS for name in ("bn.weight", "bn.bias", "fc.bias"))


@pytest.mark.parametrize("later", [False, True])
def test_of_a_gradient_that_is_zero_in_part_the_rest_is_judged(tmp_path: Path, later: bool) -> None:
    sides = {side: divided_by_itself(side) for side in SIDES_OF_RUN}
    run = partial(Run, later=later, about=ONCE if later else {}, more=OTHERS)
    report = run(**sides).report(tmp_path / "right")
    assert not failed(report) and report.parity
    left = {f.part: f for f in report.findings if f.verdict is Verdict.NONE}
    assert set(left) == (set(PARTS) if later else {"step1"})
    assert {f.unjudged for f in left.values()} == {Unjudged.ZERO_GRADIENT}
    assert "of 30 of 120 of its numbers is zero but for rounding" in left["step1"].why

    def wrong(tensor: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray]:
        tensor, array = sides["mindspore"](tensor, array)
        if (tensor.name, tensor.part) == ("conv.weight", "step2" if later else "step1"):
            array.flat[:30] *= np.float32(1.01)
        return tensor, array

    report = run(**{**sides, "mindspore": wrong}).report(tmp_path / "wrong")
    assert [f.part for f in failed(report)] == ["step2" if later else "step1"]
    assert "without 30 of 120 of its numbers" in failed(report)[0].why


def test_units_that_never_fire_are_judged(tmp_path: Path) -> None:
    torch = {side: divided_by_itself(side, gradient=0.0, moved=0.0) for side in ("torch64", "torch32")}
    still = divided_by_itself("mindspore", gradient=0.0, moved=0.0)
    assert Run(**torch, mindspore=still, more=OTHERS).report(tmp_path / "still").parity
    moved = divided_by_itself("mindspore", gradient=0.0, moved=0.01)
    assert [f.part for f in failed(Run(**torch, mindspore=moved).report(tmp_path / "moved"))] == ["step1"]


RETURNED = Tensor("forward", "eval", "(model)")


@pytest.mark.parametrize("only_in", ["torch", "MindSpore"])
def test_what_one_model_alone_returns_in_evaluation_is_a_note(tmp_path: Path, only_in: str) -> None:
    more = Tensor("forward", "eval", "(model).1")
    lone, both = ((more, values(more, 3)), (RETURNED,)) if only_in == "MindSpore" else (None, (RETURNED, more))
    run = Run(more=both, extra=[lone] if lone else [], mindspore=without("forward", more.name))
    traces = run.traces(tmp_path)
    found, (note,) = without_lone_outputs(compare(traces), traces)
    assert [f.name for f in found if f.part == "eval"] == ["(model)"]
    assert all(f.verdict is Verdict.PASS for f in found) and len(found) == len(STEP) + 1
    counts = "torch's 2 and MindSpore's 1" if only_in == "torch" else "torch's 1 and MindSpore's 2"
    assert note.startswith("not judged: 1 of the floating tensors") and counts in note


def test_a_fault_in_what_is_returned_in_evaluation_is_found(tmp_path: Path) -> None:
    run = Run(more=(RETURNED,), mindspore=only("forward", "(model)", lambda array: array * 1.01))
    traces = run.traces(tmp_path)
    found, notes = without_lone_outputs(compare(traces), traces)
    assert [f.place for f in found if f.verdict is Verdict.FAIL] == ["forward (eval) (model)"] and not notes


def test_whole_numbers_that_a_model_returns_in_evaluation_are_a_note(tmp_path: Path) -> None:
    for count, said in ((0, []), (1, ["1 tensor"]), (2, ["2 tensors"])):
        traces = Run(more=(RETURNED,), about={MINDSPORE: {UNJUDGED: count}}).traces(tmp_path / str(count))
        _, notes = without_lone_outputs(compare(traces), traces)
        expected = [f"not judged: {what} that MindSpore's model returns in evaluation, not floating" for what in said]
        assert notes == expected


def test_models_that_return_no_numbers_in_evaluation_are_a_note(tmp_path: Path) -> None:
    traces = Run(more=(Tensor("forward", "eval", "conv", module="Conv2d"),)).traces(tmp_path)
    _, notes = without_lone_outputs(compare(traces), traces)
    assert notes == ["not judged: what the models return in evaluation, which has no floating tensor"]


def test_traces_of_other_recipes_are_not_compared(tmp_path: Path) -> None:
    for name in (MINDSPORE, TORCH64, TORCH32_OTHER, matched(TORCH32)):
        with pytest.raises(BadTrace, match="record both from the same recipe"):
            Run(about={name: {"recipe": "1"}}).traces(tmp_path / name)


@pytest.mark.parametrize("head", [{"recipe": None}, {"recipe": {}}, {"versions": None}, {"versions": [1]}])
@pytest.mark.parametrize("name", [MINDSPORE, TORCH64])
def test_a_trace_without_a_sound_head_is_refused(tmp_path: Path, name: str, head: dict) -> None:
    with pytest.raises(BadTrace, match="does not say which recipe"):
        Run(about={name: head}).traces(tmp_path)


@pytest.mark.parametrize("name", [MINDSPORE, TORCH32, matched(TORCH64)])
def test_a_missing_trace_is_an_error(tmp_path: Path, name: str) -> None:
    folder = Run().write(tmp_path)
    (folder / name / "trace.json").unlink()
    with pytest.raises(BadTrace, match=f"{name}: no trace.json"):
        Traces.load(folder)


def test_a_damaged_tensor_file_is_an_error(tmp_path: Path) -> None:
    folder = Run().write(tmp_path)
    (folder / MINDSPORE / "forward-train.safetensors").write_bytes(b"\0" * 30)
    with pytest.raises(BadTrace, match=r"forward-train\.safetensors"):
        compare(Traces.load(folder))
