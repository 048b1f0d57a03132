"""Pairs that were written by hand: the twins agree under their own names, and what is wrong is found at its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msmigrate.parity.replay import module_calls
from msmigrate.parity.result import Outcome, Report
from msmigrate.parity.run_folder import MINDSPORE_REPLAY
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import Trace

# a fresh embedding is drawn from another distribution in MindSpore: a real difference, not one of the twins
KNOWN = {("init", "embed.weight")}
MARGINAL = 1.5  # of four-element tensors in nets this small: rounding's luck, not a fault


def failed(report: Report) -> list[str]:
    found = [f for f in report.findings if f.verdict is Verdict.FAIL and (f.stage, f.name) not in KNOWN]
    return [f"{f.place}: {f.why}" for f in found if f.ratio is None or f.ratio > 4 * MARGINAL]


def test_a_residual_net_under_foreign_names(verdict: Callable[[str], Report]) -> None:
    report = verdict("Residual")
    assert failed(report) == []
    names = {finding.name for finding in report.findings if finding.stage == "forward"}
    assert {"layer1.1.bn2", "layer2.0.downsample.1", "fc"} <= names and "relu" not in names  # a function there
    assert any("27 modules and 42 tensors were aligned" in note for note in report.notes)
    assert any("relu (ReLU)" in note for note in report.notes)


def test_how_a_cell_was_made_is_known_with_its_line(verdict: Callable[[str], Report], pairs: Path) -> None:
    assert verdict("Residual")
    made = module_calls.Outcome.of(Trace(pairs / "Residual" / MINDSPORE_REPLAY)).made
    norm, conv, block = made["bn1"], made["conv1"], made["layer1.0"]
    assert (norm.target, norm.line) == ("mindspore.nn.BatchNorm2d", "self.norm = nn.BatchNorm2d(8)")
    assert norm.arguments["momentum"] == 0.9 and norm.arguments["num_features"] == 8  # its default, as it is written
    assert norm.positional == ("num_features",) and norm.place.startswith("pair_nets_mindspore.py, line ")
    assert conv.line == "self.stem = conv(3, 8, 3, 2, 1)", "by a helper"
    assert (conv.target, conv.arguments["padding"]) == ("mindspore.nn.Conv2d", 1)
    assert (block.target, block.line) == ("", "") and block.place.startswith("pair_nets_mindspore.py, line ")


def test_whole_numbers_go_in_and_have_no_gradient(verdict: Callable[[str], Report]) -> None:
    report = verdict("Tokens")
    assert failed(report) == []
    parts = {(f.stage, f.part) for f in report.findings}
    assert ("gradients", "parameters") in parts and ("gradients", "images") not in parts
    assert ("init", "values", "position") in {(f.stage, f.part, f.name) for f in report.findings}
    assert "scale" not in {f.name for f in report.findings}  # torch's constant, a number in the other net
    assert any("not recorded for this pair: the gradient of the input" in note for note in report.notes)


def test_a_whole_step_of_the_users(verdict: Callable[[str], Report]) -> None:
    report = verdict("stepped")
    assert failed(report) == []
    parts = {(f.stage, f.part) for f in report.findings}
    assert {("loss", "step1"), ("gradients", "parameters"), ("update", "step2"), ("update", "given gradients")} <= parts
    assert ("gradients", "images") not in parts


def test_what_is_shared_filled_by_a_pass_or_made_once_for_all_examples_is_compared(
    verdict: Callable[[str], Report],
) -> None:
    """Alone MindSpore had "no such tensor", torch's first pass left a mixture with zeros, and the shape was "expected
    [4, 16, 8], got [1, 16, 8]"."""
    report = verdict("Shared")
    assert report.outcome is Outcome.PARITY, failed(report)
    judged = {(f.stage, f.part, f.name) for f in report.findings if f.verdict is Verdict.PASS}
    alone = {("gradients", "alone", f"blocks.{i} shared.weight.grad") for i in (0, 1)}
    assert alone | {("forward", "eval", "blocks.1.place"), ("forward", "wiring", "blocks.1.place input")} <= judged


@pytest.mark.full
def test_layers_that_have_the_channels_last_are_compared(verdict: Callable[[str], Report]) -> None:
    """They had another shape in the net, and alone they raised."""
    report = verdict("ChannelsFirst")
    assert report.outcome is Outcome.PARITY, failed(report)
    judged = {(f.stage, f.part, f.name) for f in report.findings if f.verdict is Verdict.PASS}
    assert {
        ("forward", "train", "blocks.1.norm"),
        ("forward", "wiring", "blocks.0.norm input"),
        ("forward", "alone", "blocks.1.fc1 output"),
        ("gradients", "alone", "blocks.0.fc2 input.grad"),
    } <= judged, sorted(name for stage, _, name in judged if stage == "forward")


def test_a_net_without_layers_is_judged_by_all_that_it_gives(verdict: Callable[[str], Report]) -> None:
    """It was unproven, for nothing was compared in forward."""
    report = verdict("Bare")
    found = {(f.part, f.name): f.verdict for f in report.findings if f.stage == "forward"}
    expected = {
        (part, f"outputs.{index}"): Verdict.FAIL if index else Verdict.PASS
        for part in ("eval", "train")
        for index in (0, 1)
    }
    returned = {("eval", "(model)"): Verdict.PASS, ("eval", "(model).1"): Verdict.FAIL}
    assert found == expected | returned
    assert report.first_divergence is not None and report.first_divergence.name == "outputs.1"


@pytest.mark.full
def test_what_torch_leaves_as_memory_is_has_no_distribution_to_differ_in(verdict: Callable[[str], Report]) -> None:
    """MindSpore's values were "not torch's", which were whatever lay there: now and then 1e36."""
    report = verdict("Unset")
    assert report.outcome is Outcome.PARITY, failed(report)
    (note,) = [note for note in report.notes if "uninitialized" in note]
    assert note.endswith(": place, wide")  # and not `least`, which is meant to be NaN


def test_what_the_net_lacks_is_a_mismatch_and_hides_no_other_fault(verdict: Callable[[str], Report]) -> None:
    """A layer without its bias and a position that does not train: named once each, and the wrong eps is seen too."""
    report = verdict("Biasless")
    assert report.outcome is Outcome.MISMATCH and not report.unproven
    causes = {cause.place: (cause.fault, cause.fix) for cause in report.causes}
    assert causes["q.bias"] == ("conv-bias-default", "net.query: nn.Dense(…, has_bias=True)")
    assert causes["position"] == ("parameter-frozen", "net.pos.requires_grad = True")
    lacking = [f.place for f in report.findings if f.verdict is Verdict.FAIL and f.ratio is None and f.name == "q.bias"]
    assert {place.split()[0] for place in lacking} == {"init", "gradients", "update"}
    alone = {(f.stage, f.name): f.verdict for f in report.findings if f.part == "alone" and f.ratio is not None}
    failing = {name for (stage, name), kind in alone.items() if stage == "forward" and kind is Verdict.FAIL}
    assert failing == {"norm output", "q output", "(model) output"}  # k, v and head are computed, and right
    assert alone["forward", "k output"] is alone["forward", "head output"] is Verdict.PASS


def test_what_nothing_is_computed_with_may_be_frozen_and_not_decayed(verdict: Callable[[str], Report]) -> None:
    """torch's optimizer leaves alone what has no gradient: frozen it "does not train; torch's does"."""
    report = verdict("Spare")
    assert failed(report) == [] and not report.causes
    (note,) = [note for note in report.notes if note.startswith("frozen in MindSpore")]
    assert note.endswith("leaves them alone: shift, spare.weight, spare.bias")
    judged = {(f.part, f.name) for f in report.findings if f.stage == "update" and f.verdict is Verdict.PASS}
    assert {("step1 buffers", "spare.weight"), ("step2 buffers", "shift")} <= judged
    assert Verdict.PASS in [f.verdict for f in report.findings if f.part == "images"]  # zeros, or none
    wrong = verdict("decayed")
    assert wrong.outcome is Outcome.MISMATCH
    only = {f.name: f.why for f in wrong.findings if f.stage == "gradients" and f.verdict is Verdict.FAIL}
    assert only == dict.fromkeys(
        ("shift", "spare.weight", "spare.bias"), "only MindSpore has this tensor; torch recorded none"
    )


@pytest.mark.full
def test_among_what_may_be_frozen_what_trains_in_torch_is_found(verdict: Callable[[str], Report]) -> None:
    report = verdict("frozen_too_much")
    assert report.outcome is Outcome.MISMATCH
    assert {cause.place: cause.fault for cause in report.causes} == {"fc.bias": "parameter-frozen"}


def at_fault(report: Report) -> dict[str, str]:
    """The modules whose own computation differs: torch's name -> the Cell's."""
    modules = [m for m in report.modules if m.verdict is Verdict.FAIL and m.own]
    return {m.name: m.mindspore.partition(" ")[0] for m in modules}


@pytest.mark.full
def test_what_is_one_module_here_and_several_there(slow_verdict: Callable[[str], Report]) -> None:
    """A hand-written gate around a ReLU6, a norm with its activation inside, a pool that keeps no axes of 1, lists that
    nobody calls, permutations that are functions, points in rows: nothing of a right net is red, and nearly all of it
    runs alone."""
    report = slow_verdict("Composed")
    assert failed(report) == [] and at_fault(report) == {}
    cells = {m.name: m.mindspore.partition(" ")[0] for m in report.modules if m.verdict is Verdict.PASS}
    assert cells["stages.0.0.gate"] == "groups.0.0.hard" and cells["mix.1.act"] == "rows.swish"
    assert cells["norm"] == "begin_norm" and cells["norm.act"] == "begin_act"
    assert cells["pool"] == "gap" and cells["last"] == "end_norm" and cells["mix.1"] == "rows"
    assert not any("branch" in cell for cell in cells.values())  # an Identity is no permutation


@pytest.mark.full
def test_a_fault_in_such_a_place_is_found_there_and_nowhere_else(verdict: Callable[[str], Report]) -> None:
    assert at_fault(verdict("composed_wrong")) == {
        "stages.0.0.gate": "groups.0.0.hard",
        "stages.0.1.norm": "groups.0.1.bn",
        "mix.1.norm": "rows.layer_norm",
        "pool": "gap",
    }


@pytest.mark.full
def test_one_module_here_and_several_there_with_functions_between(slow_verdict: Callable[[str], Report]) -> None:
    """A norm whose activation is a function there runs alone as far as that function; attention is one layer; the steps
    of a GRU are judged by the module around them. No map is given."""
    report = slow_verdict("Fused")
    drawn = {f.name for f in report.findings if f.stage == "init" and f.part == "distribution"}
    assert [place for place in failed(report) if not place.startswith("init (distribution)")] == [] and drawn
    assert at_fault(report) == {}
    cells = {m.name: m.mindspore.partition(" ")[0] for m in report.modules if m.verdict is Verdict.PASS}
    assert (cells["bn"], cells["last"], cells["blocks.0.attn"]) == ("n1", "n2", "layers.0.at")
    assert cells["steps"] == "loop"


@pytest.mark.full
def test_faults_in_such_places_are_found_there(slow_verdict: Callable[[str], Report]) -> None:
    assert at_fault(slow_verdict("fused_wrong")) == {
        "bn": "n1",
        "last": "n2",
        "blocks.0.attn": "layers.0.at",
        "blocks.1": "layers.1",
        "steps": "loop",
    }


@pytest.mark.full
def test_several_inputs_and_a_weight_of_another_rank(slow_verdict: Callable[[str], Report]) -> None:
    report = slow_verdict("TwoInputs")
    assert failed(report) == []
    (weight,) = [f for f in report.findings if (f.stage, f.part, f.name) == ("init", "values", "conv.weight")]
    assert weight.shape == (6, 4, 3)  # torch's; the net holds (6, 4, 1, 3)


@pytest.mark.full
def test_the_users_loss_and_optimizer(slow_verdict: Callable[[str], Report]) -> None:
    report = slow_verdict("parts")
    assert failed(report) == []
    assert ("update", "step1 momentum_buffer") not in {(f.stage, f.part) for f in report.findings}


@pytest.mark.full
def test_branches_that_a_map_settles(slow_verdict: Callable[[str], Report]) -> None:
    assert failed(slow_verdict("Branches")) == []


@pytest.mark.full
def test_swapped_names_are_found_at_the_module_that_uses_them(slow_verdict: Callable[[str], Report]) -> None:
    """q and k have each other's name: aligned by name they run alone without fault; the model fails."""
    report = slow_verdict("Swapped")
    places = failed(report)
    assert any(place.startswith("forward (alone) (model) output") for place in places)
    assert not any(place.startswith(("forward (alone) q ", "forward (alone) k ", "init (values)")) for place in places)
