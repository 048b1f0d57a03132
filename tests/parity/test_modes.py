"""The compiled step is judged end to end, and what it does differently from the PyNative one is named."""

from __future__ import annotations

from pathlib import Path

import modes_cases
import pytest
from msmigrate.errors import BadInput, BadTrace
from msmigrate.parity.compare_traces import Traces, compare, is_model_output, without_lone_outputs
from msmigrate.parity.graph_mode import AGAIN, EVALUATION_FAILED, FAILED, GRAPH, UNSEEN, Compiled, judge_compiled
from msmigrate.parity.job import ParityJob
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import Trace, TraceWriter
from msmigrate.training.recipe import reader as recipes
from traces import Run, Tensor, values

RECIPE = Path(__file__).parent / "tiny.yaml"


def compiled(root: Path, case: str, half: bool = False) -> Compiled:
    folder = modes_cases.options_of(root, case).folder
    traces = Traces.load(folder)
    return judge_compiled(folder, traces, compare(traces), half)


def test_a_compiled_step_is_at_parity(modes_root: Path) -> None:
    """It draws by layers, by one that runs twice, and by a function."""
    found = compiled(modes_root, "compiled")
    assert len(found.findings) > 40 and all(f.verdict is Verdict.PASS for f in found.findings)
    parts = {(f.stage, f.part) for f in found.findings}
    for place in (
        ("forward", "graph eval"),
        ("loss", "graph step1"),
        ("gradients", "graph parameters"),
        ("update", "graph step2"),
    ):
        assert place in parts
    assert ("update", "graph step2 momentum_buffer") in parts and ("update", "graph step2 buffers") in parts
    assert not [f for f in found.findings if not f.part.startswith("graph ")]
    (note,) = found.notes
    assert note.startswith("the compiled step equals the PyNative one to the bit")


def test_a_fault_of_the_compiled_step_alone_is_told_apart(modes_root: Path) -> None:
    found = compiled(modes_root, "compiled eps")
    first = next(f for f in found.findings if f.verdict is Verdict.FAIL)
    assert first.place == "loss (graph step1) logits" and "in PyNative mode it does not fail" in first.why
    (note,) = found.notes
    assert "differs by more than noise in" in note and "loss (step1) logits" in note


def test_a_fault_of_the_compiled_evaluation_alone_is_found(modes_root: Path) -> None:
    found = compiled(modes_root, "compiled evaluation")
    (failed,) = [f for f in found.findings if f.verdict is Verdict.FAIL]
    assert failed.place == "forward (graph eval) (model)" and "in PyNative mode it does not fail" in failed.why


@pytest.mark.full
def test_a_compiled_step_goes_on_with_its_own_state(slow_modes_root: Path) -> None:
    found = compiled(slow_modes_root, "compiled momentum").findings
    failed = {(f.stage, f.part) for f in found if f.verdict is Verdict.FAIL}
    assert failed == {("update", "graph step2"), ("update", "graph step2 momentum_buffer")}


@pytest.mark.full
def test_a_compiled_step_begins_with_the_weights_that_the_pynative_one_had(slow_modes_root: Path) -> None:
    """Else rounding of one step would take the other side at a ReLU of the next."""
    found = compiled(slow_modes_root, "compiled drift")
    assert len(found.findings) > 40 and all(f.verdict is Verdict.PASS for f in found.findings)


@pytest.mark.full
def test_half_precision_with_accumulation_and_scaling_has_no_false_alarm(slow_modes_root: Path) -> None:
    found = compiled(slow_modes_root, "compiled half", half=True)
    assert not [f for f in found.findings if f.verdict is Verdict.FAIL]
    assert sum(f.verdict is Verdict.PASS for f in found.findings) > 40


@pytest.mark.full
def test_what_draws_where_nothing_can_be_put_in_has_no_verdict(slow_modes_root: Path) -> None:
    (finding,), (note,) = vars(compiled(slow_modes_root, "compiled primitive draws")).values()
    assert finding.verdict is Verdict.NONE and "in head: compiled, other draws are taken" in finding.why
    assert "not judged" in note


def made_up(folder: Path, leave_out: str = "", run: Run | None = None, **about: object) -> tuple[Path, Traces]:
    """A run whose compiled step is the PyNative one, written again."""
    traces = (run or Run()).traces(folder)
    stepped = {key for trace in traces.matched for key in trace.entries}
    stepped |= {key for key, entry in traces.mindspore.entries.items() if is_model_output(entry)}
    writer = TraceWriter(folder / GRAPH, {**traces.mindspore.about, **about}, None)
    for key, entry in traces.mindspore.entries.items():
        if key in stepped and entry.name != leave_out:
            writer.add(entry.stage, entry.part, entry.name, traces.mindspore.array(key).reshape(entry.shape))
    writer.close()
    return folder, traces


def test_a_tensor_that_the_compiled_step_lacks_is_a_finding(tmp_path: Path) -> None:
    folder, traces = made_up(tmp_path, "bn.weight")
    found = judge_compiled(folder, traces, compare(traces)).findings
    assert [(f.place, f.why) for f in found if f.verdict is Verdict.FAIL] == [
        ("gradients (graph parameters) bn.weight", "MindSpore has no such tensor; in PyNative mode it does not fail")
    ]


RETURNED = Tensor("forward", "eval", "(model)"), Tensor("forward", "eval", "(model).1")


@pytest.mark.parametrize(
    ("leave_out", "kept", "expected"),
    [
        ("", RETURNED, []),
        ("(model).1", RETURNED, ["forward (graph eval) (model).1"]),
        ("", RETURNED[:1], []),  # torch's model returns one, which a note says
    ],
)
def test_what_the_compiled_net_returns_in_evaluation_is_judged(
    tmp_path: Path, leave_out: str, kept: tuple[Tensor, ...], expected: list[str]
) -> None:
    lone = [(each, values(each, 3)) for each in RETURNED if each not in kept]
    folder, traces = made_up(tmp_path, leave_out, Run(more=kept, extra=lone))
    pynative, notes = without_lone_outputs(compare(traces), traces)
    found = judge_compiled(folder, traces, pynative).findings
    assert [f.place for f in found if f.verdict is Verdict.FAIL] == expected
    assert [f.name for f in found if f.stage == "forward"] == [each.name for each in kept]
    said = "not judged: 1 of the floating tensors that the models return in evaluation: torch's 1 and MindSpore's 2"
    assert [note.removesuffix(" of them") for note in notes] == ([said] if lone else [])


def test_an_evaluation_that_does_not_compile_is_a_finding(tmp_path: Path) -> None:
    folder, traces = made_up(tmp_path, **{EVALUATION_FAILED: "Unsupported statement 'Try'"})
    (failed,) = [f for f in judge_compiled(folder, traces, compare(traces)).findings if f.verdict is Verdict.FAIL]
    assert (failed.place, failed.why) == (
        "forward (graph eval) (model)",
        "does not compile: Unsupported statement 'Try'",
    )


def test_what_compiles_only_without_fixed_draws_fails_in_one_line(tmp_path: Path) -> None:
    folder, traces = made_up(tmp_path, **{FAILED: "Unsupported statement 'Try'"})
    (finding,) = judge_compiled(folder, traces, compare(traces)).findings
    assert finding.verdict is Verdict.FAIL and finding.why == "does not compile: Unsupported statement 'Try'"


def test_what_an_own_step_hides_once_it_is_compiled_is_a_note(tmp_path: Path) -> None:
    folder, traces = made_up(tmp_path, "logits", **{UNSEEN: True, AGAIN: ["f is compiled again: x differs"]})
    found = judge_compiled(folder, traces, compare(traces))
    assert found.findings and all(f.verdict is Verdict.PASS and f.name != "logits" for f in found.findings)
    assert "not judged in the compiled step: the logits, which it shows where it returns them in a dict" in found.notes
    assert found.notes[-1] == "f is compiled again: x differs"


def test_an_empty_compiled_trace_does_not_pass(tmp_path: Path) -> None:
    traces = Run().traces(tmp_path)
    TraceWriter(tmp_path / GRAPH, traces.mindspore.about).close()
    found = judge_compiled(tmp_path, traces, compare(traces))
    assert found.findings and all(f.verdict is Verdict.FAIL for f in found.findings)
    assert found.notes == ["the compiled and the PyNative step recorded nothing in common"]


def test_a_compiled_trace_of_another_recipe_is_refused(tmp_path: Path) -> None:
    folder, traces = made_up(tmp_path, recipe="other")
    with pytest.raises(BadTrace, match="is of recipe other"):
        judge_compiled(folder, traces, compare(traces))
    with pytest.raises(BadTrace):
        Trace(tmp_path / "nowhere")


def test_mode_and_precision_reach_the_workers(tmp_path: Path) -> None:
    options = ParityJob(recipes.load(RECIPE), Path("x"), mode="graph", precision="hf32")
    options.write(tmp_path / "job.json")
    again = ParityJob.read(tmp_path / "job.json")
    assert (again.mode, again.precision) == ("graph", "hf32")
    for wrong in ({"mode": "eager"}, {"precision": "fp8"}):
        with pytest.raises(BadInput, match="expected one of"):
            ParityJob(recipes.load(RECIPE), Path("x"), **wrong)
