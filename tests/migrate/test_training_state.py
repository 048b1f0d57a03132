"""What stands beside the weights of a torch training checkpoint, from inert values to entries of the plan."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from msmigrate.errors import BadCheckpoint, MsmigrateError, Unsupported
from msmigrate.migrate.checkpoint.computed_tensors import Maker
from msmigrate.migrate.checkpoint.formats.reader import ByteRange, Shape, Tensor, row_major
from msmigrate.migrate.checkpoint.training_state import parameters_of, training_state

PARAMETERS = {"fc.weight": (2, 3), "fc.bias": (2,)}
SGD = {"lr": 0.1, "momentum": 0.9, "dampening": 0, "weight_decay": 0, "nesterov": False}
ADAMAX = {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0}
GROUP = {**SGD, "params": [0, 1]}


def tensor(*shape: int, dtype: str = "float32", at: int = 0) -> Tensor:
    return Tensor(dtype, shape, row_major(shape), (ByteRange(at, 4),))


class Made:
    """Keeps what is made, and reads numbers from a list."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)
        self.made: dict[int, bytes] = {}

    def constant(self, dtype: str, content: bytes, shape: Shape) -> Tensor:
        at = 1000 + len(self.made)
        self.made[at] = content
        return tensor(*shape, dtype=dtype, at=at)

    @property
    def maker(self) -> Maker:
        return Maker(describe, lambda _: self.numbers.pop(0), self.constant)


def describe(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    raise BadCheckpoint(f"{value!r} stands where a tensor should")


def momentum(**more: Any) -> dict[str, Any]:
    state = {0: {"momentum_buffer": tensor(2, 3, at=8)}, 1: {"momentum_buffer": tensor(2, at=9)}}
    return {"optimizer": {"state": state, "param_groups": [GROUP]}, **more}


def test_momentum_goes_to_the_parameters_names() -> None:
    made = Made()
    found = training_state(momentum(global_step=7), PARAMETERS, None, made.maker)
    targets = {entry.target: entry.tensor for entry in found.entries}
    assert list(targets) == [
        "optimizer.momentum_buffer.fc.weight",
        "optimizer.momentum_buffer.fc.bias",
        "msmigrate.training",
        "msmigrate.steps",
    ]
    assert targets["optimizer.momentum_buffer.fc.bias"] == tensor(2, at=9)
    told = json.loads(next(iter(made.made.values())))
    assert told == {"optimizer": "torch.optim.SGD", "param_groups": [{**SGD, "params": ["fc.weight", "fc.bias"]}]}
    assert struct.unpack("<q", list(made.made.values())[-1]) == (7,)
    assert found.notes == ["optimizer: torch.optim.SGD's state, of 2 parameters"]
    assert found.read == {"optimizer", "global_step"}


def test_steps_are_counted_once_for_all() -> None:
    held = {index: {"exp_inf": tensor(*PARAMETERS[name]), "step": tensor()} for index, name in enumerate(PARAMETERS)}
    optimizer = {"state": held, "param_groups": [{**ADAMAX, "params": [0, 1]}]}
    made = Made(5.0, 5.0)
    found = training_state({"optimizer": optimizer, "step": 6}, PARAMETERS, None, made.maker)
    assert "optimizer.step" in {entry.target for entry in found.entries}
    assert found.notes == [
        "optimizer: torch.optim.Adamax's state after 5 steps, of 2 parameters",
        "step is 6 and the optimizer has taken 5 steps; the optimizer's count is used",
    ]
    with pytest.raises(Unsupported, match=r"parameters have taken 4; 5 steps; MindSpore counts once"):
        training_state({"optimizer": optimizer}, PARAMETERS, None, Made(5.0, 4.0).maker)


def test_the_epoch_and_the_scaler_s_rule_go_along_for_the_way_back() -> None:
    made = Made()
    scaler = {"scale": 2.0, "_growth_tracker": 0, "growth_factor": 2.0, "growth_interval": 5}
    found = training_state(momentum(global_step=7, epoch=3, scaler=scaler), PARAMETERS, None, made.maker)
    told = json.loads(next(iter(made.made.values())))
    assert (told["epoch"], told["scaler"]) == (3, {"growth_factor": 2.0, "growth_interval": 5})
    assert found.read == {"optimizer", "global_step", "epoch", "scaler"}


def test_an_optimizer_that_is_named_and_not_there_is_told() -> None:
    found = training_state({"global_step": 2}, PARAMETERS, None, Made().maker, ["torch.optim.SGD"])
    assert "--optimizer is given, but the file has no optimizer state under" in found.notes[0]


def test_steps_may_stand_in_the_groups() -> None:
    """timm's Lamb keeps them there, as a tensor; a rate that is a tensor is a number in the new file too."""
    lamb = {"bias_correction": True, "grad_averaging": True, "max_grad_norm": 1.0, "trust_clip": False}
    group = {**ADAMAX, **lamb, "always_adapt": False, "params": [0, 1], "lr": tensor(), "step": tensor()}
    state = {index: {"exp_avg": tensor(*PARAMETERS[name])} for index, name in enumerate(PARAMETERS)}
    made = Made(0.5, 4.0)
    found = training_state({"optimizer": {"state": state, "param_groups": [group]}}, PARAMETERS, None, made.maker)
    assert struct.pack("<i", 4) in made.made.values()
    assert "msmigrate.steps" in {entry.target for entry in found.entries}
    told = next(json.loads(content) for content in made.made.values() if content.startswith(b"{"))
    assert (told["optimizer"], told["param_groups"][0]["lr"]) == ("timm.optim.Lamb", 0.5)
    assert "step" not in told["param_groups"][0]


def test_numbers_in_the_state_cross_beside_tensors() -> None:
    """torch before 2 keeps ASGD's eta and mu as numbers; a parameter's shape is that of the tensor with sizes."""
    options = {"lr": 0.1, "lambd": 1e-4, "alpha": 0.75, "t0": 1e6, "weight_decay": 0, "params": [0, 1]}
    state = {
        index: {"step": 3, "eta": 0.25, "mu": tensor(), "ax": tensor(*PARAMETERS[name])}
        for index, name in enumerate(PARAMETERS)
    }
    made = Made()
    found = training_state({"optimizer": {"state": state, "param_groups": [options]}}, PARAMETERS, None, made.maker)
    held = {entry.target: entry.tensor for entry in found.entries}
    eta = held["optimizer.eta.fc.bias"]
    assert eta is not None and made.made[eta.spans[0].offset] == struct.pack("<f", 0.25)
    assert {"optimizer.ax.fc.weight", "optimizer.mu.fc.weight", "optimizer.step"} <= held.keys()


def test_names_in_the_groups_are_believed() -> None:
    swapped = {**GROUP, "param_names": ["module.fc.bias", "module.fc.weight"]}
    state = {0: {"momentum_buffer": tensor(2)}, 1: {"momentum_buffer": tensor(2, 3)}}
    found = training_state(
        {"optimizer": {"state": state, "param_groups": [swapped]}, "iter": 1}, PARAMETERS, None, Made().maker
    )
    assert [entry.target for entry in found.entries][:2] == [
        "optimizer.momentum_buffer.fc.bias",
        "optimizer.momentum_buffer.fc.weight",
    ]


def test_schedule_scale_and_average() -> None:
    made = Made()
    found = training_state(
        {
            "lr_schedulers": [{"last_epoch": 3, "gamma": 0.1}],
            "scaler": {"scale": 1024.0, "_growth_tracker": 2, "growth_interval": 5},
            "ema": {"module": {"module.fc.weight": tensor(2, 3, at=4), "module.n_averaged": tensor()}},
        },
        PARAMETERS,
        None,
        made.maker,
    )
    values = {entry.target: made.made.get(entry.tensor.spans[0].offset) for entry in found.entries if entry.tensor}
    assert values == {
        "msmigrate.schedule_epoch": struct.pack("<q", 3),
        "msmigrate.loss_scale": struct.pack("<f", 1024.0),
        "msmigrate.growth_tracker": struct.pack("<i", 2),
        "ema.fc.weight": None,
    }
    assert found.notes == ["the file does not say how many steps were taken, only where its schedule is"]


DAMAGED: dict[str, tuple[dict[str, Any], str]] = {
    "no groups": ({"optimizer": {"state": {}}}, "lacks state and param_groups"),
    "params of texts": (
        {"optimizer": {"state": {}, "param_groups": [{"params": ["a"]}]}},
        "does not list its parameters by number",
    ),
    "a parameter twice": (
        {"optimizer": {"state": {}, "param_groups": [{"params": [0, 0]}]}},
        "count different parameters",
    ),
    "state of nobody": (
        {"optimizer": {"state": {9: {}}, "param_groups": [GROUP]}},
        "count different parameters",
    ),
    "state that is none": (
        {"optimizer": {"state": {0: 5}, "param_groups": [GROUP]}},
        "the state of parameter 0 is damaged",
    ),
    "an odd key": (
        {"optimizer": {"state": {0: {"a b": tensor(2, 3)}}, "param_groups": [GROUP]}},
        "is no key of an optimizer's state",
    ),
    "an object": (
        {"optimizer": {"state": {0: {"exp_avg": object}}, "param_groups": [GROUP]}},
        "stands where a tensor should",
    ),
    "a schedule before its start": ({"scheduler": {"last_epoch": -1}}, "its last_epoch is -1, not a count"),
    "a scale of nothing": ({"scaler": {"scale": 0.0}}, "are not a GradScaler's"),
    "another shape": (
        {"optimizer": {"state": {0: {"momentum_buffer": tensor(3, 3)}}, "param_groups": [GROUP]}},
        "fit no usual order",
    ),
    "endless steps": (
        {"optimizer": {"state": {0: {"step": 1e30, "exp_inf": 1.0}}, "param_groups": [{**ADAMAX, "params": [0, 1]}]}},
        "a parameter has taken 1e\\+30 steps",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_state_is_refused_in_one_line(damage: str) -> None:
    training, says = DAMAGED[damage]
    with pytest.raises(MsmigrateError, match=says) as caught:
        training_state(training, PARAMETERS, None, Made().maker)
    assert "\n" not in str(caught.value)


def test_parameters_are_told_from_statistics_and_counted_once() -> None:
    weight = tensor(2, 3, at=1)
    tensors = {
        "a.weight": weight,
        "bn.running_mean": tensor(2, at=2),
        "bn.num_batches_tracked": tensor(dtype="int64", at=3),
        "tied.weight": weight,
        "mask": tensor(2, dtype="bool", at=4),
        "bn.bias": tensor(2, at=5),
    }
    assert parameters_of(tensors) == {"a.weight": (2, 3), "bn.bias": (2,)}
