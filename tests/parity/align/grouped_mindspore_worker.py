"""MindSpore optimizers over groups of every sort: grouped_mindspore_worker.py [--full] prints what was off, as JSON.

A step with the user's grouped optimizer has to do with every parameter what an optimizer of that parameter alone, with
its group's options, does with its gradient. Two layers have equal shapes, so that gradients which change places do not
show as an error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from msmigrate.workers.worker import prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Parameter, Tensor, nn, ops  # noqa: E402
from mindspore.experimental import optim as experimental  # noqa: E402
from msmigrate.parity.align.mindspore_user_model import PairStep  # noqa: E402
from msmigrate.parity.align.user_model import Given  # noqa: E402
from msmigrate.parity.record.mindspore_runner import accumulated, given_to_optimizer  # noqa: E402
from msmigrate.training.models.mindspore_models import canonical_parameters  # noqa: E402
from msmigrate.training.recipe.schema import Recipe  # noqa: E402

BASE: dict[str, Any] = {
    "model": {"name": "resnet_tiny"},
    "data": {"source": "synthetic:8x8", "batch": 4, "transforms": [{"name": "ToTensor"}]},
    "loss": {"name": "CrossEntropyLoss"},
    "optimizer": {"name": "SGD", "args": {"lr": 0.1}},
}
STEPS = 3
RATE, OWN_RATE, OWN_DECAY = 0.05, 0.02, 0.1


class Net(nn.Cell):
    """Two layers of one shape, one without bias, one that is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Dense(4, 4)
        self.two = nn.Dense(4, 4)
        self.plain = nn.Dense(4, 4, has_bias=False)
        self.fixed = nn.Dense(4, 4)
        self.head = nn.Dense(4, 3)
        for parameter in self.fixed.get_parameters():
            parameter.requires_grad = False

    def construct(self, x: Tensor) -> Tensor:
        x = ops.tanh(self.two(ops.tanh(self.one(x))))
        return self.head(ops.tanh(self.fixed(ops.tanh(self.plain(x)))))


Make = Callable[[Any], Any]
OPTIMIZERS: dict[str, Make] = {
    "nn.SGD": lambda p: nn.SGD(p, RATE, momentum=0.9, weight_decay=0.01),
    "nn.SGD nesterov": lambda p: nn.SGD(p, RATE, momentum=0.9, nesterov=True),
    "nn.Momentum": lambda p: nn.Momentum(p, RATE, 0.9, weight_decay=0.01),
    "nn.Adam": lambda p: nn.Adam(p, RATE),
    "nn.AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, RATE, weight_decay=0.01),
    "nn.RMSProp": lambda p: nn.RMSProp(p, RATE),
    "nn.Adagrad": lambda p: nn.Adagrad(p, learning_rate=RATE),
    "nn.AdaMax": lambda p: nn.AdaMax(p, RATE),
    "experimental.SGD": lambda p: experimental.SGD(p, RATE, momentum=0.9, weight_decay=0.01),
    "experimental.Adam": lambda p: experimental.Adam(p, RATE),
    "experimental.AdamW": lambda p: experimental.AdamW(p, RATE, weight_decay=0.01),
    "experimental.RMSprop": lambda p: experimental.RMSprop(p, RATE),
}

COMPILED = [name for name in OPTIMIZERS if name.startswith("experimental")]  # a second for each optimizer that is made


def decaying(start: float) -> Any:
    """A learning rate that changes with every step."""
    return nn.ExponentialDecayLR(start, 0.5, 1)


def is_bias(parameter: Parameter) -> bool:
    return bool(parameter.name.endswith("bias"))


def halves(p: list[Parameter]) -> tuple[list[Parameter], list[Parameter]]:
    return [x for x in p if is_bias(x)], [x for x in p if not is_bias(x)]


def two_rates(p: list[Parameter]) -> list[Any]:
    return [{"params": halves(p)[0], "lr": OWN_RATE}, {"params": halves(p)[1]}]


# name -> the groups of the trained parameters
GROUPINGS: dict[str, Callable[[list[Parameter]], Any]] = {
    "none": lambda p: p,
    "one group, backwards": lambda p: [{"params": p[::-1]}],
    "biases first": lambda p: [{"params": halves(p)[0], "weight_decay": 0.0}, {"params": halves(p)[1]}],
    "a rate each": lambda p: [{"params": halves(p)[0], "lr": OWN_RATE}, {"params": halves(p)[1], "lr": RATE / 3}],
    "a decay each": lambda p: [
        {"params": halves(p)[0], "weight_decay": 0.0},
        {"params": halves(p)[1][::-1], "weight_decay": OWN_DECAY},
    ],
    "a part of the net": lambda p: [{"params": [x for x in p if x.name.startswith("two")]}, {"params": p[:1]}],
}
ONLY_NN = {
    "in the net's order": lambda p: [*two_rates(p), {"order_params": p}],
    "in another order": lambda p: [*two_rates(p), {"order_params": p[::-1]}],
    "a changing rate each": lambda p: [
        {"params": halves(p)[0], "lr": decaying(OWN_RATE)},
        {"params": halves(p)[1], "lr": decaying(RATE)},
    ],
}


def gradient(name: str, step: int, shape: tuple[int, ...]) -> np.ndarray:
    draw = np.random.default_rng([step, *name.encode()])
    return draw.normal(size=shape).astype(np.float32)


def made(recipe: dict[str, Any], optimizer: Make, mode: str = "pynative") -> tuple[PairStep, Net]:
    mindspore.set_seed(0)
    net = Net()
    held = canonical_parameters(net)[::-1]  # another order than the net's: torch's may be
    given = Given(net, optimizer=optimizer)
    return PairStep(Recipe.model_validate({**BASE, **recipe}), net, given, held, mode=mode), net


def alone(make: Make, groups: Any, net: Net, grads: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Each parameter after steps of an optimizer that holds it alone."""
    start = net.trainable_params()
    groups = groups(start) if isinstance(groups(start)[0], dict) else [{"params": start}]
    found = {p.name: p.asnumpy() for p in start}
    for group in groups:
        for parameter in group.get("params", ()):
            twin = Parameter(Tensor(found[parameter.name]), name=parameter.name)
            # always as a group: without one, MindSpore goes by the names of norms
            optimizer = make([{**group, "params": [twin]}])
            for given in grads:
                optimizer((Tensor(given[parameter.name]),))
            found[parameter.name] = twin.asnumpy()
    return found


def off(net: Net, expected: dict[str, np.ndarray]) -> list[str]:
    """The names of the parameters that are not as expected."""
    now = {p.name: p.asnumpy() for p in net.trainable_params()}
    return [name for name in expected if not np.allclose(now[name], expected[name], rtol=2e-5, atol=1e-6)]


def given_gradients(names: Sequence[str], full: bool) -> dict[str, list[str]]:
    """These optimizers over every grouping, on given gradients."""
    found: dict[str, list[str]] = {}
    for name in names:
        make = OPTIMIZERS[name]
        groupings = {**GROUPINGS, **(ONLY_NN if name.startswith("nn.") else {})}
        if name in COMPILED and not full:
            groupings = {"a decay each": GROUPINGS["a decay each"]}
        for grouping, groups in groupings.items():
            step, net = made({}, lambda p, make=make, groups=groups: make(groups(p)))
            grads = [{p.name: gradient(p.name, i, p.shape) for p in net.trainable_params()} for i in range(STEPS)]
            expected = alone(make, groups, net, grads)
            for each in grads:
                step.apply({n: Tensor(each[n]) for n in step.names})
            found[f"{name}, {grouping}"] = off(net, expected)
    return found


def whole_steps(groupings: Sequence[str], full: bool) -> dict[str, list[str]]:
    """Whole steps, with what stands between the gradients and the optimizer, in both modes."""
    found: dict[str, list[str]] = {}
    x, y = Tensor(gradient("x", 0, (4, 4))), Tensor(np.array([0, 1, 2, 0], np.int32))
    make, loss = OPTIMIZERS["nn.Momentum"], nn.CrossEntropyLoss()
    for grouping in groupings:
        groups = {**GROUPINGS, **ONLY_NN}[grouping]
        for what, recipe in {
            "plain": {},
            "clipped": {"clip": {"max_norm": 0.05}},
            "accumulated": {"accumulate": 2},
            "scaled": {"loss_scale": 1024.0},
        }.items():
            for mode in ("pynative", "graph") if what == "plain" or (what == "scaled" and full) else ("pynative",):
                step, net = made(recipe, lambda p, groups=groups: make(groups(p)), mode)
                weights = net.trainable_params()
                exact = mindspore.value_and_grad(lambda a, b, net=net: loss(net(a), b), None, weights)(x, y)[1]
                wanted = {p.name: g.asnumpy() for p, g in zip(weights, exact, strict=True)}
                norm = np.sqrt(sum(float((g.astype(np.float64) ** 2).sum()) for g in wanted.values()))
                share = min(1.0, 0.05 / (norm + 1e-6)) if what == "clipped" else 1.0
                expected = alone(make, groups, net, [{n: g * np.float32(share) for n, g in wanted.items()}])
                grads = step(x, y).grads
                wrong = [n for n, g in wanted.items() if not np.allclose(grads[n].asnumpy(), g, rtol=1e-4, atol=1e-6)]
                found[f"{what}, {grouping}, {mode}"] = wrong + off(net, expected)
    return found


def taken_apart() -> dict[str, list[str]]:
    """What the parts of a step that are recorded on their own say, by name."""
    found = {}
    for name in ("in another order", "a part of the net"):
        groups = {**GROUPINGS, **ONLY_NN}[name]
        step, net = made({"clip": {"max_norm": 1e9}, "accumulate": 2}, lambda p: OPTIMIZERS["nn.SGD"](groups(p)))  # noqa: B023
        parts = [{p.name: gradient(p.name, i, p.shape) for p in net.trainable_params()} for i in range(2)]
        held = [p.name for p in step.optimizer.parameters]
        given = given_to_optimizer(step, {n: Tensor(parts[0][n]) for n in step.names})
        found[f"clipping, {name}"] = [n for n in held if not np.allclose(given[n].asnumpy(), parts[0][n], rtol=1e-5)]
        found[f"clipping, {name}"] += sorted(given.keys() ^ set(held))
        sums = accumulated(step, parts)
        means = {n: (parts[0][n] + parts[1][n]) / 2 for n in parts[0]}
        found[f"accumulation, {name}"] = [n for n in means if not np.allclose(sums[n].asnumpy(), means[n], atol=1e-6)]
    return found


def a_frozen_one() -> dict[str, list[str]]:
    """An optimizer that holds a parameter which does not train: its gradient is zero, and the others' are their own."""

    def optimizer(p: list[Parameter]) -> Any:
        return OPTIMIZERS["nn.Momentum"]([{"params": [net_of[0].fixed.weight]}, {"params": p}])

    net_of: list[Net] = []
    mindspore.set_seed(0)
    net_of.append(Net())
    net = net_of[0]
    held = [c for c in canonical_parameters(net) if not c.name.startswith("fixed")]  # a constant, nobody's counterpart
    step = PairStep(Recipe.model_validate(BASE), net, Given(net, optimizer=optimizer), held)
    grads = {p.name: gradient(p.name, 0, p.shape) for p in net.trainable_params()}
    expected = alone(OPTIMIZERS["nn.Momentum"], lambda p: p, net, [grads])
    step.apply(
        {
            n: Tensor(grads[n]) if n in grads else ops.zeros_like(w)
            for n, w in zip(step.names, step.weights, strict=True)
        }
    )
    return {"a frozen parameter in a group": off(net, expected)}


def refused() -> dict[str, list[str]]:
    """What an optimizer that cannot be the net's is refused with."""
    other = Net()
    found = {}
    for name, optimizer in {
        "another net's": lambda p: nn.SGD(other.trainable_params(), 0.1),
        "none": lambda p: None,
    }.items():
        try:
            made({}, optimizer)
            found[name] = ["was taken"]
        except Exception as error:
            found[name] = [type(error).__name__, str(error)]
    return found


def order_given() -> list[str]:
    """The names in the order in which the user's function gets the parameters."""
    seen: list[str] = []

    def optimizer(p: list[Parameter]) -> Any:
        seen.extend(each.name for each in p)
        return nn.SGD(p, 0.1)

    made({}, optimizer)
    return seen


def main(full: bool) -> None:
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    optimizers = [*OPTIMIZERS] if full else ["nn.Momentum", "experimental.SGD"]
    groupings = ["a rate each", "a part of the net", "in another order"] if full else ["a part of the net"]
    off_by = {**given_gradients(optimizers, full), **whole_steps(groupings, full), **taken_apart(), **a_frozen_one()}
    print(json.dumps({"off": off_by, "refused": refused(), "order": order_given()}))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main("--full" in sys.argv)
