"""Every faulty module of a net is found in one run, at its own place, and nothing else is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import AHEAD, CASES, QUICK
from msmigrate.parity.replay.module_calls import FOLDER, Recording
from msmigrate.parity.run_folder import replayed as replay_of
from msmigrate.parity.run_folder import torch_runs
from msmigrate.parity.tensor_verdict import RATIO, Verdict
from msmigrate.parity.trace import Trace

EVERY = [name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in CASES]
HERE = Path(__file__).parent
Of = Callable[[str], Any]


@pytest.mark.parametrize("case", EVERY)
def test_exactly_the_faulty_modules_are_at_fault(replayed: Of, case: str) -> None:
    seen = replayed(case)
    assert seen.own == sorted(CASES[case][2]), [(m.name, m.why) for m in seen.modules if m.own]
    if not CASES[case][2]:
        trouble = [(f.place, f.why) for f in seen.findings if f.verdict is not Verdict.PASS]
        assert not trouble
        assert max(f.ratio for f in seen.findings if f.ratio is not None) < RATIO


def test_what_ran_ahead_is_what_runs_later(replayed: Of) -> None:
    """But for what draws or has kinks, and for what was not wanted, which run when MindSpore's side is known."""
    later = replayed("odd").folder
    before = later.with_name(AHEAD["odd"])
    ran = json.loads((before / "ahead.json").read_text())
    assert len(ran) == 3 and all({"bn", "word", "stack.1"} <= {*labels} for labels in ran.values())
    assert not any({"drop", "drop#1", "pair", "relu"} & {*labels} for labels in ran.values())
    for name in torch_runs(later, replay_of):
        one, other = Trace(later / name), Trace(before / name)
        assert one.entries == other.entries and {"drop output", "pair output"} <= {e.name for e in one.entries.values()}
        assert all(one.array(key).tobytes() == other.array(key).tobytes() for key in one.entries)


def test_what_the_recorded_pass_keeps_is_what_a_module_computes_alone() -> None:
    """To the bit, and nothing is kept of a module that would compute something else alone."""
    done = subprocess.run([sys.executable, str(HERE / "recorded_torch.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    cases = json.loads(done.stdout)
    assert not [(case, label) for case, kept in cases.items() for label, other in kept.items() if other]
    single = {"conv", "bn", "fc", "norm", "counts"}  # what is called once, draws nothing, and uses its input once
    lacking = {
        "hook": {"conv"},
        "weight": {"fc"},
        "clipped": {"fc"},
        "evaluated": {"bn"},
        "order": {"fc"},
        "noise": {"counts"},
    }
    more = {"shared": {"fc#1"}}
    expected = {case: single - lacking.get(case, set()) | more.get(case, set()) for case in cases}
    expected["tokens"] = {"unused", "fc"}
    assert {case: {*kept} for case, kept in cases.items()} == expected and len(cases) == 11


def test_a_container_around_a_fault_fails_without_being_at_fault(replayed: Of) -> None:
    seen = replayed("resnet many")
    assert seen.module("layer1.0").verdict is Verdict.FAIL and not seen.module("layer1.0").own
    assert seen.module("").verdict is Verdict.FAIL and not seen.module("").own
    assert seen.module("layer1.0.conv1").verdict is Verdict.PASS
    assert (seen.module("layer1.0.bn2").depth, seen.module("layer1.0.bn2").kind) == (3, "BatchNorm2d")
    assert seen.module("layer1.0.bn2").mindspore == "layer1.0.bn2 (BatchNorm2d)"


def test_what_a_forgotten_residual_gives_to_the_next_layer_is_the_containers_doing(replayed: Of) -> None:
    failed = {f.name for f in replayed("resnet many").findings if f.part == "wiring" and f.verdict is Verdict.FAIL}
    assert failed == {"layer2.0.relu#2 input", "layer2.0.downsample output.grad"}


def test_an_eps_of_a_hundredth_more_stands_out(replayed: Of) -> None:
    ratios = {f.name: f.ratio for f in replayed("resnet many").findings}
    assert ratios["layer3.0.bn1 output"] > 1.5 * RATIO
    assert ratios["layer3.0.bn1 input.grad"] > 1.5 * RATIO


def test_a_containers_own_fault_is_found_besides_that_of_a_module_in_it(replayed: Of) -> None:
    seen = replayed("transformer many")
    assert {"blocks.1", "blocks.1.act"} < set(seen.own)
    assert seen.module("blocks.1").why.startswith("forward (alone) blocks.1 output")


def test_a_wrong_momentum_shows_in_the_buffers_alone(replayed: Of) -> None:
    seen = replayed("resnet many")
    failed = {
        (f.stage, f.name) for f in seen.findings if f.name.startswith("layer4.0.bn3 ") and f.verdict is Verdict.FAIL
    }
    assert failed == {("update", "layer4.0.bn3 running_mean"), ("update", "layer4.0.bn3 running_var")}


def test_every_tensor_of_a_module_is_judged(replayed: Of) -> None:
    names = {f"{f.stage} {f.name}" for f in replayed("odd").findings if f.part == "alone"}
    called = {"forward pair output", "forward pair output.1", "forward pair output.2", "gradients pair input.grad"}
    called |= {"gradients pair input.1.grad", "gradients pair left.weight.grad", "gradients pair right.bias.grad"}
    assert called < names
    # whole numbers have no gradient, the table has one; an output that nobody used has none to give
    assert {"forward word output", "gradients word weight.grad"} < names and "gradients word input.grad" not in names
    assert "forward pair.idle output" in names and "gradients pair.idle input.grad" not in names
    # one module, three calls; none of its own parameters
    assert {"gradients relu input.grad", "gradients relu#1 input.grad", "gradients relu#2 input.grad"} < names
    assert {"update bn running_mean", "update bn running_var", "update (model) bn.running_mean"} < names
    assert not [name for name in names if "num_batches_tracked" in name]


def test_random_layers_draw_alike_and_the_verdict_says_so(replayed: Of) -> None:
    drop = replayed("odd").module("drop")
    assert drop.verdict is Verdict.PASS and drop.note == "took the same random draws in both frameworks"
    outputs = [f for f in replayed("odd").findings if f.name.startswith("drop") and f.stage == "forward"]
    assert len(outputs) == 4 and all(f.verdict is Verdict.PASS for f in outputs)  # two calls, alone and wired


def test_an_output_of_another_shape_says_both(replayed: Of) -> None:
    seen = replayed("odd many")
    assert seen.module("pair").why.endswith("output.1: expected shape [4, 1, 8], got [4, 32, 8]")
    missing = next(f for f in seen.findings if f.name == "pair left.weight.grad")
    assert missing.verdict is Verdict.FAIL and "which torch's gradients do not fit" in missing.why


def test_each_tensor_is_stored_once(replayed: Of) -> None:
    folder = replayed("resnet many").folder / FOLDER
    recording = Recording.open(folder)
    named = [s.file for call in recording.calls.values() for s in call.inputs] + [
        g.file for call in recording.calls.values() for g in call.gradients if g is not None
    ]
    stored = {file.stem for file in folder.glob("*.npy")}
    assert set(named) <= stored and len(stored) < 0.8 * len(named)


@pytest.mark.full
def test_an_exception_is_the_modules_failure_and_nobody_elses(replayed: Of) -> None:
    seen = replayed("resnet raises")
    assert "MindSpore raised ValueError: no such kernel" in seen.module("layer3.0.conv2").why
    assert seen.module("layer3.0").verdict is Verdict.FAIL and seen.module("layer3.0.bn2").verdict is Verdict.PASS


@pytest.mark.full
def test_what_has_no_cell_is_noted_and_nothing_is_blamed(replayed: Of) -> None:
    relu = replayed("lenet functional").module("relu")
    assert relu.verdict is Verdict.NONE and relu.note == "did not run alone: MindSpore's net has no Cell of this name"


def test_an_identity_without_a_cell_has_nothing_to_run_and_its_container_is_judged_by_parts(replayed: Of) -> None:
    seen, without = replayed("by parts: odd"), replayed("by parts: odd idle")
    assert without.module("idle").note == "" and without.module("idle").verdict is Verdict.NONE
    assert [m.name for m in without.modules if m.by_parts] == [m.name for m in seen.modules if m.by_parts] != []


@pytest.mark.full
def test_a_construct_without_an_argument_that_the_net_never_gives_runs_without_it_and_is_at_fault(replayed: Of) -> None:
    pair = replayed("odd scale").module("pair")
    assert pair.own and pair.note == "" and pair.why.startswith("forward (alone) pair output")


@pytest.mark.full
def test_a_cell_that_is_called_once_more_is_not_forced_and_the_head_says_so(replayed: Of) -> None:
    head = json.loads((replayed("resnet again").folder / "mindspore-replay" / "trace.json").read_text())["replay"]
    assert head["unwired"] == {"layer3.0.relu": "its Cell is called 4 times, torch's module 3 times"}


@pytest.mark.full
def test_what_was_not_asked_for_is_not_replayed(replayed: Of) -> None:
    seen = replayed("resnet narrowed")
    assert {f.name.split(".")[0].split(" ")[0] for f in seen.findings} == {"layer3"}
    # what reaches layer3 is the model's doing, which did not run alone itself
    assert {module.name.split(".")[0] for module in seen.modules} == {"layer3", ""}
    assert seen.module("").note == "did not run alone: not asked for" and not seen.module("").own
