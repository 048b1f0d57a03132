"""The parts of the step at their edges: loss scales, averages, what is stored and put back, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msmigrate.training.recipe.schema import Ema, decay
from test_step import beside, work

cases = beside("step_parts_cases")


@pytest.fixture(scope="session")
def facts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What both workers found."""
    selected = [item for item in request.session.items if item.path == Path(__file__)]
    extent = "all" if any(item.get_closest_marker("full") for item in selected) else "quick"
    folder = tmp_path_factory.mktemp("parts")
    found = {}
    for name in ("torch", "mindspore"):
        work(f"step_parts_{name}_worker.py", folder, extent, timeout=300)
        found[name] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("rule", cases.SCALES)
def test_loss_scales_follow_torch_s_own_scaler(facts, rule):
    torch = facts["torch"]["scales"][rule]
    assert len({scale for scale, _ in torch}) > 1
    assert facts["torch"]["own scales"][rule] == torch
    assert facts["mindspore"]["scales"][rule] == torch


def test_no_optimizer_writes_into_gradients_that_are_read_later(facts):
    """Gradients are recorded after the update, from where the optimizer read them."""
    found = facts["torch"]["gradients"]
    assert len(found) > 60
    assert [case for case, (said, was) in found.items() if said and not was] == []
    assert found["SGD {'momentum': 0.9, 'nesterov': True, 'foreach': True}"] == [False, False]
    assert [case for case, (said, _) in found.items() if not said and "foreach" not in case] == []


@pytest.mark.parametrize("rule", cases.AVERAGES)
def test_averages_follow_timm(facts, rule):
    apart, away = facts["torch"]["averages"][rule]
    assert away > 0.1
    assert apart < 2e-6


@pytest.mark.parametrize("mode", ["pynative", "graph"])
def test_an_average_of_whole_numbers_is_their_value(facts, mode):
    """As timm copies them; a compiled step with such a buffer did not compile."""
    found = facts["mindspore"]["averaged"][mode]
    assert found == {"weight": [0.75, 0.75], "places": [5, 9], "seen": [False, True]}


@pytest.mark.parametrize("rule", [name for name, rule in cases.AVERAGES.items() if name != "constant"])
def test_decays_are_timm_s(facts, rule):
    ours = [decay(Ema(**cases.AVERAGES[rule]), update) for update in range(1, 2000)]
    assert ours == facts["torch"]["decays"][rule]
    assert ours[0] == 0.0 < ours[-1]


def test_a_constant_decay_is_constant():
    assert {decay(Ema(decay=0.9), update) for update in (1, 2, 1000)} == {0.9}


@pytest.mark.parametrize("recipe", ["everything", pytest.param("adam", marks=pytest.mark.full)])
def test_a_step_goes_on_from_its_state_to_the_bit(facts, recipe):
    found = facts["mindspore"]["resumed"][recipe]
    assert (found["state"], found["weights"], found["rates"]) == ([], [], True)
    assert len(found["moved"]) == 10
    kinds = {name.rpartition(".")[0].split(".conv")[0].split(".fc")[0] for name in found["names"]}
    if recipe == "everything":
        assert kinds == {"optimizer.momentum_buffer", "optimizer.stat", "ema", "msmigrate"}
        ours = {name for name in found["names"] if name.startswith("msmigrate.")}
        assert ours == {f"msmigrate.{key}" for key in ("steps", "schedule_epoch", "loss_scale", "growth_tracker")}
    else:
        assert {"optimizer.exp_avg", "optimizer.exp_avg_sq", "optimizer", "msmigrate"} <= kinds
        assert "optimizer.step" in found["names"]


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(facts):
    said = facts["mindspore"]["refusals"]
    assert said["unchanged"] == "True"
    for attempt, message in {
        "missing": "it was saved under another recipe",
        "shape": "expected float32",
        "dtype": "got float64",
        "unknown": "ema.of.nobody",
        "negative": "it is damaged",
        "another recipe": "it was saved under another recipe",
    }.items():
        assert said[attempt].startswith("BadCheckpoint: ")
        assert message in said[attempt]
        assert "\n" not in said[attempt]


def test_bfloat16_needs_another_target_than_the_cpu(facts):
    said = facts["mindspore"]["refusals"]["bfloat16"]
    assert said.startswith("Unsupported: amp.dtype: MindSpore's CPU has no bfloat16 kernels")


@pytest.mark.parametrize("mode", ["pynative", "graph"])
def test_weights_are_left_alone_where_the_loop_stops_at_an_overflow(facts, mode):
    found = facts["mindspore"]["stopped"][mode]
    for look in ("gradients", "loss"):
        assert found[f"look {look}"] == {"finite": [True, False], "moved": 10, "moved after": []}
    assert found["look None"]["finite"] == [None, None]
    assert len(found["look None"]["moved after"]) == 10


@pytest.mark.parametrize("mode", ["pynative", pytest.param("graph", marks=pytest.mark.full)])
def test_micro_batches_move_the_weights_whatever_is_looked_at_first(facts, mode):
    found = facts["mindspore"]["accumulated"][mode]
    assert found == {f"look {look}": {"moved": [10, 10], "same": True} for look in ("gradients", "loss", None)}


@pytest.mark.parametrize("mode", [pytest.param("pynative", marks=pytest.mark.full), "graph"])
def test_one_number_that_is_not_finite_is_seen_wherever_it_stands(facts, mode):
    assert facts["mindspore"]["finite"][mode] == {"false alarms": [], "missed": []}


def test_the_accumulated_gradients_are_reduced_before_anything_else(facts):
    assert facts["mindspore"]["reduced"] == 0.0


def test_a_schedule_moves_with_steps_or_with_epochs(facts):
    by_step, by_epoch = facts["mindspore"]["rates"]["step"], facts["mindspore"]["rates"]["epoch"]
    assert by_step[0] > by_step[1] == by_step[2]
    assert by_epoch[0] == by_epoch[1] > by_epoch[2] == by_step[1]


def test_nothing_is_compiled_again_after_the_first_step(facts):
    """A graph that is compiled for every step computes the same, a hundred times as slowly."""
    counts = facts["mindspore"]["resumed"]["everything"]["compiled"]
    whole, other = counts[:4], counts[4:]
    assert len(other) == 2
    assert whole[0] == whole[-1]
    assert other[0] == other[-1]
