"""A run that is killed at any moment and resumed ends in the very bits of one that was never interrupted."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from loop_runs import assert_equal_to_the_bit, events, final, finish, kill_at, make_job, merged, start
from msmigrate.training import checkpoints
from msmigrate.training.run.train_job import Job

# All that a step remembers: momentum, a schedule, a loss scale that moves, a moving average that warms up.
REMEMBERS: dict[str, Any] = {
    "model": {"args": {"block": "basic"}},
    "schedule": {"name": "CosineAnnealingLR", "args": {"T_max": 40}},
    "dynamic_loss_scale": {"init_scale": 1024.0, "growth_interval": 4},
    "ema": {"decay": 0.9, "warmup": True},
    "train": {"epochs": 2, "max_steps": 30, "checkpoint_steps": 5, "keep": 100},
    # an epoch of 14 steps, so that the run passes two ends of epochs
    "data": {"batch": 100, "eval_batch": 120},
}
# the same of few images and a net of few tensors: an epoch of 7 steps, and again a run that passes two ends of epochs
GREY = [{"name": "Grayscale"}, {"name": "ToTensor"}]
FEW: dict[str, Any] = {
    "model": {"name": "lenet5", "args": {"block": None}},
    "optimizer": {"no_weight_decay": ["bias"]},
    "data": {
        "source": "synthetic:112x32",
        "validation": "synthetic:24x32",
        "batch": 16,
        "eval_batch": 16,
        "transforms": [{"name": "RandomCrop", "args": {"size": 32, "padding": 1}}, *GREY],
        "eval_transforms": GREY,
    },
    "train": {"epochs": 3, "max_steps": 16, "checkpoint_steps": 3},
}
MIXED = {"mixup": {"mixup_alpha": 0.8, "cutmix_alpha": 1.0}, "loss": {"name": "CrossEntropyLoss"}}


def interrupted(tmp_path: Path, mode: str, moments: list[tuple[int, float]], *changes: dict[str, Any]) -> None:
    """Compare a run with one that is killed at these steps and seconds."""
    whole = make_job(tmp_path / "whole", REMEMBERS, *changes, mode=mode)
    other = make_job(tmp_path / "killed", REMEMBERS, *changes, mode=mode)
    undisturbed = start(whole)
    process = start(other)
    for step, delay in moments:
        kill_at(process, other, step, delay)
        other = make_job(tmp_path / "killed", REMEMBERS, *changes, mode=mode, resume=True)
        process = start(other)
    finish(process)
    finish(undisturbed)
    assert_equal_to_the_bit(final(whole), final(other))
    compare_logs(whole, other, len(moments))


def compare_logs(whole: Path, killed: Path, kills: int) -> None:
    """Every step that was done again had the loss that it had before, and the end says the same."""
    expected = {event["step"]: event for event in events(whole, "step")}
    for event in events(killed, "step"):
        for fact in ("lr", "loss_scale", "epoch"):
            assert event[fact] == expected[event["step"]][fact], (event["step"], fact)
        assert event["loss"] == pytest.approx(expected[event["step"]]["loss"], rel=1e-6)
    notes = [event["text"] for event in events(killed, "note") if event["text"].startswith("going on from")]
    assert len(notes) == kills
    (end,) = events(killed, "end")
    (other,) = events(whole, "end")
    same = ("steps", "epochs", "best_top1", "best_step", "final")
    assert {fact: end[fact] for fact in same} == {fact: other[fact] for fact in same}
    last = {event["step"]: event for event in events(killed, "validation")}
    for event in events(whole, "validation"):
        again = last[event["step"]]
        assert {**again, "time": 0} == {**event, "time": 0}


def test_killed_at_a_random_moment(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    print(f"random moment of seed {seed}")
    generator = random.Random(seed)
    moment = (generator.randint(4, 13), generator.uniform(0, 0.1))
    interrupted(tmp_path, "pynative", [moment], FEW)


@pytest.mark.full
def test_killed_at_a_random_moment_of_a_longer_run(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    print(f"random moment of seed {seed}")
    generator = random.Random(seed)
    moment = (generator.randint(6, 26), generator.uniform(0, 0.1))
    interrupted(tmp_path, "pynative", [moment])


@pytest.mark.full
@pytest.mark.parametrize("mode", ["graph", "pynative"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        MIXED,
        {"amp": {"level": "O2"}},
        {"accumulate": 4, "clip": {"max_norm": 1.0}},
        {"optimizer": {"name": "AdamW", "args": {"lr": 1e-3, "momentum": None}}},
        {"schedule": {"name": "StepLR", "args": {"step_size": 1, "gamma": 0.5, "T_max": None}, "per": "epoch"}},
        {"data": {"drop_last": False}},
    ],
    ids=["plain", "mixup", "amp", "accumulate", "adamw", "per-epoch", "keep-last"],
)
def test_killed_several_times(tmp_path: Path, mode: str, changes: dict[str, Any]) -> None:
    generator = random.Random(str((mode, sorted(changes))))
    moments = [(step, generator.uniform(0, 0.3)) for step in (6, 13, 14, 22)]
    interrupted(tmp_path, mode, moments, changes)


@pytest.mark.full
def test_a_damaged_newest_checkpoint_is_passed_over(tmp_path: Path) -> None:
    whole = make_job(tmp_path / "whole", REMEMBERS)
    finish(start(whole))
    other = make_job(tmp_path / "other", REMEMBERS, max_steps=20)
    finish(start(other))
    folder = Job.read(other).checkpoints
    damaged = checkpoints.path_of(folder, 20)
    damaged.write_bytes(damaged.read_bytes()[:-1000])
    other = make_job(tmp_path / "other", REMEMBERS, resume=True)
    finish(start(other))
    assert_equal_to_the_bit(final(whole), final(other))
    assert any(str(damaged) in event["text"] for event in events(other, "warning"))
    assert damaged.with_name(damaged.name + ".damaged").exists()


@pytest.mark.full
def test_a_run_may_be_made_longer_and_another_one_is_refused(tmp_path: Path) -> None:
    whole = make_job(tmp_path / "whole", REMEMBERS)
    finish(start(whole))
    other = make_job(tmp_path / "other", REMEMBERS, max_steps=9)
    finish(start(other))
    refused = make_job(tmp_path / "other", merged(REMEMBERS, {"optimizer": {"args": {"lr": 0.2}}}), resume=True)
    output = finish(start(refused), 2)
    assert "optimizer.args.lr was 0.1 and is now 0.2" in output
    output = finish(start(make_job(tmp_path / "other", REMEMBERS)), 2)
    assert "holds the checkpoints of another run" in output
    other = make_job(tmp_path / "other", REMEMBERS, resume=True)
    finish(start(other))
    assert_equal_to_the_bit(final(whole), final(other))
    finish(start(other))
    assert "nothing is left to do" in events(other, "note")[-1]["text"]
