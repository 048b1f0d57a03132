"""What MindSpore's step does at its edges: `python step_parts_mindspore_worker.py FOLDER quick|all`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from msmigrate.errors import MsmigrateError
from msmigrate.workers.worker import leave, prepare_mindspore
from step_cases import COSINE, Case, batches
from step_mindspore_worker import start
from step_parts_cases import OVERFLOWS, RULES, SCALES
from worker import dump

prepare_mindspore()

import mindspore  # noqa: E402
from mindspore import Parameter, Tensor, nn  # noqa: E402
from mindspore.graph import api  # noqa: E402
from msmigrate.training.models.mindspore_models import Canonical, canonical_parameters  # noqa: E402
from msmigrate.training.recipe.schema import Ema  # noqa: E402
from msmigrate.training.step import mindspore_step_state  # noqa: E402
from msmigrate.training.step.mindspore_amp import LossScale, all_times_zero  # noqa: E402
from msmigrate.training.step.mindspore_step import MovingAverage, TrainStep  # noqa: E402

EVERYTHING = {
    "accumulate": 2,
    "clip": {"max_norm": 0.5},
    "dynamic_loss_scale": {"init_scale": 1024.0, "growth_interval": 2},
    "ema": {"decay": 0.9, "warmup": True},
    "schedule": COSINE,
}
SHAPES = [(), (1,), (16, 3, 3, 3), (7,), (1000,), (10, 512), (1, 1), (33, 17, 2), (257, 129)]
ADAM = {"optimizer": {"name": "Adam", "args": {"lr": 0.003}}, "schedule": {**COSINE, "per": "epoch"}}


def feed(case: Case, index: int) -> tuple[Tensor, Tensor]:
    """One batch as tensors."""
    batch = batches(case)[index % case.steps]
    return Tensor(batch.images), Tensor(batch.labels.astype(np.float32 if batch.labels.dtype.kind == "f" else np.int32))


def weights(net: nn.Cell) -> dict[str, np.ndarray]:
    """The net's parameters as they are now."""
    return {held.name: held.parameter.asnumpy().copy() for held in canonical_parameters(net)}


def scales(rule: dict[str, Any]) -> list[tuple[float, int]]:
    """Scale and growth tracker after every step, compiled."""
    scaler = LossScale(rule["init_scale"], rule["growth_factor"], rule["backoff_factor"], rule["growth_interval"])
    update = mindspore.jit(scaler.construct)
    found = []
    for overflows in OVERFLOWS:
        update(Tensor(not overflows))
        found.append((float(scaler.scale.asnumpy()), int(scaler.growth_tracker.asnumpy())))
    return found


def resumed(case: Case) -> dict[str, Any]:
    """Whether a step that was given another's state and weights goes on as that one does, to the bit.

    compiled: how many graphs there are after each step of the one, and after each of the other.
    """
    whole, other = TrainStep(case.recipe, start(case), "graph", look="gradients"), start(case)
    compiled = []
    for index in range(2):
        whole.train(*feed(case, index))
        compiled.append(len(api.ms_compile_cache))
    whole.end_epoch()
    state, held = mindspore_step_state.state(whole), weights(whole.net)
    for each in canonical_parameters(other):
        each.parameter.copy_(Tensor(held[each.name]))
    resumed = TrainStep(case.recipe, other, "graph", look="gradients")
    mindspore_step_state.load_state(
        resumed, {**state, "some.other.tensor": np.zeros(3), "msmigrate.run": np.zeros(9, np.uint8)}
    )
    for step in (whole, resumed):
        for index in range(2, 4):
            step.train(*feed(case, index))
            compiled.append(len(api.ms_compile_cache))
        step.end_epoch()
    ours, theirs = mindspore_step_state.state(resumed), mindspore_step_state.state(whole)
    return {
        "names": sorted(state),
        "dtypes": sorted({str(array.dtype) for array in state.values()}),
        "state": [name for name in theirs if not np.array_equal(ours[name], theirs[name])],
        "weights": [
            name for name, array in weights(whole.net).items() if not np.array_equal(array, weights(other)[name])
        ],
        "moved": [name for name, array in weights(whole.net).items() if not np.array_equal(array, held[name])],
        "rates": resumed.learning_rates() == whole.learning_rates(),
        "compiled": compiled,
    }


def refusals() -> dict[str, str]:
    """What load_state and unknown precisions say."""
    case = Case(EVERYTHING)
    step = TrainStep(case.recipe, start(case))
    state = mindspore_step_state.state(step)
    name = next(iter(state))
    others = mindspore_step_state.state(TrainStep(Case({}).recipe, start(Case({}))))
    attempts: dict[str, Callable[[], Any]] = {
        "missing": lambda: mindspore_step_state.load_state(step, {n: a for n, a in state.items() if n != name}),
        "shape": lambda: mindspore_step_state.load_state(step, {**state, name: np.zeros((2, 3), np.float32)}),
        "dtype": lambda: mindspore_step_state.load_state(step, {**state, name: state[name].astype(np.float64)}),
        "unknown": lambda: mindspore_step_state.load_state(step, {**state, "ema.of.nobody": np.zeros(1, np.float32)}),
        "negative": lambda: mindspore_step_state.load_state(step, {**state, "msmigrate.steps": np.array(-1, np.int64)}),
        "another recipe": lambda: mindspore_step_state.load_state(step, others),
        "bfloat16": lambda: TrainStep(Case({"amp": {"level": "O1", "dtype": "bfloat16"}}).recipe, start(case)),
    }
    found = {}
    for attempt, does in attempts.items():
        try:
            does()
            found[attempt] = "accepted"
        except MsmigrateError as error:
            found[attempt] = f"{type(error).__name__}: {error}"
    left = mindspore_step_state.state(step)
    found["unchanged"] = str(all(np.array_equal(left[n], state[n]) for n in state))
    return found


def accumulated(mode: str) -> dict[str, Any]:
    """By what is looked at before the update, how many weights a step of two micro-batches moves, as a loop takes it
    and as it is recorded, and whether both move them to the same."""
    case, found = Case({"accumulate": 2}), {}
    for look in ("gradients", "loss", None):
        after = []
        for recorded in (False, True):
            step = TrainStep(case.recipe, start(case), mode, look=look)
            before = weights(step.net)
            (step if recorded else step.train)(*feed(case, 0))
            after.append(weights(step.net))
        moved = [sum(not np.array_equal(now[name], before[name]) for name in now) for now in after]
        same = all(np.allclose(after[0][name], after[1][name], rtol=1e-6, atol=1e-8) for name in before)
        found[f"look {look}"] = {"moved": moved, "same": same}
    return found


def stopped(mode: str) -> dict[str, Any]:
    """A step on images that are not finite, with the weights guarded and not."""
    case, found = Case({}), {}
    for look in ("gradients", "loss", None):
        step = TrainStep(case.recipe, start(case), mode, look=look)
        images, labels = feed(case, 0)
        before = weights(step.net)
        good = step.train(images, labels)
        moved = [name for name, array in weights(step.net).items() if not np.array_equal(array, before[name])]
        before = weights(step.net)
        outcome = step.train(images * float("nan"), labels)
        now = weights(step.net)
        found[f"look {look}"] = {
            "finite": [None if each.finite is None else bool(each.finite) for each in (good, outcome)],
            "moved": len(moved),
            "moved after": [name for name in now if not np.array_equal(now[name], before[name])],
        }
    return found


def finite_checks(mode: str) -> dict[str, list[Any]]:
    """The places of one number that is not finite at which the look at gradients says what it should not; none."""
    look = mindspore.jit(all_times_zero) if mode == "graph" else all_times_zero
    generator = np.random.default_rng(0)
    whole = [generator.standard_normal(shape).astype(np.float32) for shape in SHAPES]
    whole[2][0, 0, 0, :] = (3.4e38, -3.4e38, 1e-45)
    found: dict[str, list[Any]] = {"false alarms": [], "missed": []}
    if not bool(look(mindspore.mutable(tuple(Tensor(each) for each in whole))).asnumpy()):
        found["false alarms"].append("finite")
    for index, array in enumerate(whole):
        for bad in (np.nan, np.inf, -np.inf):
            for place in {0, array.size // 2, array.size - 1}:
                wrong = array.copy()
                wrong.reshape(-1)[place] = bad
                given = [*whole[:index], wrong, *whole[index + 1 :]]
                if bool(look(mindspore.mutable(tuple(Tensor(each) for each in given))).asnumpy()):
                    found["missed"].append((SHAPES[index], str(bad), place))
    return found


def reduced() -> float:
    """How far halved gradients with a learning rate of two are from the gradients themselves: nowhere."""
    case = Case({"optimizer": {"name": "SGD", "args": {"lr": 0.02}}, "accumulate": 2, "loss_scale": 8.0})
    double = Case({**case.keys, "optimizer": {"name": "SGD", "args": {"lr": 0.04}}})
    plain = TrainStep(case.recipe, start(case))
    halved = TrainStep(double.recipe, start(case), reduce=lambda grads: tuple(grad * 0.5 for grad in grads))
    for step in (plain, halved):
        step.train(*feed(case, 0))
    return max(float(np.abs(array - weights(halved.net)[name]).max()) for name, array in weights(plain.net).items())


def rates() -> dict[str, list[float]]:
    """The first rate after a step and after an epoch, by what the schedule goes by."""
    found = {}
    for per in ("step", "epoch"):
        case = Case({"schedule": {**COSINE, "per": per}})
        step = TrainStep(case.recipe, start(case))
        name = step.names[0]
        found[per] = [step.learning_rates()[name]]
        step.train(*feed(case, 0))
        found[per].append(step.learning_rates()[name])
        step.end_epoch()
        found[per].append(step.learning_rates()[name])
    return found


def averaged() -> dict[str, dict[str, list[float]]]:
    """What a moving average makes of a weight of ones that becomes zeros, and of buffers of other dtypes."""
    before = {"weight": np.ones(2, np.float32), "places": np.array([1, 2]), "seen": np.array([True, False])}
    after = {"weight": np.zeros(2, np.float32), "places": np.array([5, 9]), "seen": np.array([False, True])}
    found = {}
    for mode in ("pynative", "graph"):
        held = [Parameter(Tensor(value), name=name) for name, value in before.items()]
        average = MovingAverage(Ema(decay=0.75), [Canonical(each.name, "", each) for each in held])
        for each, value in zip(held, after.values(), strict=True):
            each.set_data(Tensor(value))
        average.prepare(1)
        (mindspore.jit(average.construct) if mode == "graph" else average)()
        found[mode] = {name: value.asnumpy().tolist() for name, value in average.tensors().items()}
    return found


def main(folder: Path, quick: bool) -> None:
    """Write what was found; in a quick run each in one mode, where the other takes long."""
    everything = Case({**EVERYTHING, "amp": {"level": "O2"}})
    facts = {
        "scales": {name: scales(RULES[name]) for name in SCALES},
        "resumed": {"everything": resumed(everything)} | ({} if quick else {"adam": resumed(Case(ADAM))}),
        "refusals": refusals(),
        "stopped": {mode: stopped(mode) for mode in ("pynative", "graph")},
        "accumulated": {mode: accumulated(mode) for mode in ("pynative", "graph")[: 1 if quick else 2]},
        "finite": {mode: finite_checks(mode) for mode in ("graph", "pynative")[: 1 if quick else 2]},
        "reduced": reduced(),
        "rates": rates(),
        "averaged": averaged(),
    }
    dump(folder / "mindspore", facts, {})


if __name__ == "__main__":
    main(Path(sys.argv[1]), quick=sys.argv[2] == "quick")
    leave()
