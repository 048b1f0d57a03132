"""MindSpore's ranks in the tests of many devices: `msrun … python distributed_mindspore_worker.py JOB.json`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from msmigrate.training.run import mindspore_worker
from msmigrate.workers.worker import leave, prepare_mindspore

mindspore_worker.begin()  # the scheduler stays here
prepare_mindspore()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from distributed_cases import CASES, LAYER_STEPS, LAYERS, SMALL, joined, layer_input, modes, share, shares  # noqa: E402
from mindspore import Parameter, Tensor, nn  # noqa: E402
from msmigrate.training import device_targets  # noqa: E402
from msmigrate.training.models import mindspore_models  # noqa: E402
from msmigrate.training.models.mindspore_models import canonical_parameters  # noqa: E402
from msmigrate.training.run.mindspore_distributed import Team  # noqa: E402
from msmigrate.training.run.run_log import EventFile  # noqa: E402
from msmigrate.training.run.train_job import Job  # noqa: E402
from msmigrate.training.step import mindspore_step_state  # noqa: E402
from msmigrate.training.step.mindspore_step import TrainStep  # noqa: E402
from step_cases import sampled, weight  # noqa: E402
from step_mindspore_worker import smooth  # noqa: E402

Arrays = dict[str, np.ndarray]


class Small(nn.Cell):
    """Convolutions and a layer with BatchNorms of both kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, stride=2, pad_mode="pad", padding=2, has_bias=False)
        self.bn1 = nn.BatchNorm2d(6, eps=1e-5, momentum=0.9)
        self.conv2 = nn.Conv2d(6, 8, 3, stride=2, pad_mode="pad", padding=1, has_bias=False)
        self.bn2 = nn.BatchNorm2d(8, eps=1e-5, momentum=0.8)
        self.fc1 = nn.Dense(512, 24)
        self.bn3 = nn.BatchNorm1d(24, eps=1e-3, momentum=0.9)
        self.fc2 = nn.Dense(24, 10)
        self.act = nn.SiLU()

    def construct(self, x):
        x = self.act(self.bn1(self.conv1(x)))
        x = self.act(self.bn2(self.conv2(x)))
        return self.fc2(self.act(self.bn3(self.fc1(x.reshape(x.shape[0], 512)))))


def start(name: str, seed: float = 0.0) -> nn.Cell:
    """A case's net at the starting weights, each of them shifted by `seed`."""
    net = Small() if name in SMALL else smooth(mindspore_models.build(CASES[name].model))
    for held in canonical_parameters(net):
        held.parameter.set_data(Tensor(weight(held.name, held.parameter.shape) + np.float32(seed)))
    return net.set_train()


def train(name: str, mode: str, world: Team, alone: bool) -> Arrays:
    """Take the case's steps: this rank's share, or the whole batch by itself."""
    case = CASES[name]
    if alone:
        net = start(name)
    else:
        net = start(name, seed=float(world.rank))
        world.share(net)
        if case.recipe.sync_batchnorm:
            net = world.with_shared_statistics(net)
    step = TrainStep(case.recipe, net, mode)
    if not alone:
        step.reduce = world.reducer(step.weights)
    found: Arrays = {}
    for index, (images, labels) in enumerate(shares(case)):
        rank = None if alone else world.rank
        result = step(Tensor(joined(images, rank)), Tensor(joined(labels, rank).astype(np.int32)))
        loss = float(result.loss.asnumpy())
        found[f"{index}/loss"] = np.float64(loss if alone else world.mean([loss])[0])
        named = {f"grads/{name}": grad for name, grad in result.grads.items()}
        named |= {f"weights/{held.name}": held.parameter for held in canonical_parameters(net)}
        momentum = mindspore_step_state.optimizer_state(step)["momentum_buffer"]
        named |= {f"momentum/{name}": tensor for name, tensor in momentum.items()}
        found |= {f"{index}/{name}": sampled(tensor.asnumpy()) for name, tensor in named.items()}  # a view else
    return found


def weighted(layer: nn.Cell, upstream: Tensor) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """The layer's output times a given gradient, and the output."""

    def forward(x):
        y = layer(x)
        return (y * upstream).sum(), y

    return forward


def layers(world: Team, compiled: bool) -> Arrays:
    """BatchNorms over both processes: output, gradients and statistics, in training and then in evaluation."""
    found: Arrays = {}
    for name in LAYERS:
        x, upstream = (Tensor(share(array, name, world.rank)) for array in layer_input(name))
        kind = nn.BatchNorm2d if x.ndim == 4 else nn.BatchNorm1d
        layer = kind(x.shape[1], eps=1e-5, momentum=0.9).set_train()
        paths = [path for path, _ in layer.cells_and_names()]
        layer.gamma.set_data(Tensor(np.linspace(0.5, 2, x.shape[1]), mindspore.float32))
        world.with_shared_statistics(layer)
        assert [path for path, _ in layer.cells_and_names()] == paths
        weights = mindspore.ParameterTuple([layer.gamma, layer.beta])
        compute = mindspore.value_and_grad(weighted(layer, upstream), 0, weights, has_aux=True)
        compute = mindspore.jit(compute) if compiled else compute
        for _ in range(LAYER_STEPS):
            (_, y), (dx, (dgamma, dbeta)) = compute(x)
        named = {"y": y, "dx": dx, "dgamma": dgamma, "dbeta": dbeta}
        named |= {"mean": layer.moving_mean, "variance": layer.moving_variance, "eval": layer.set_train(False)(x)}
        found |= {f"{name}/{key}": sampled(value.asnumpy()) for key, value in named.items()}  # before they move on
        assert layer.set_train()(x.astype(mindspore.float16)).dtype == mindspore.float16
    return found


def collectives(world: Team) -> Arrays:
    """What the ranks do together, on numbers that show it."""
    net = nn.SequentialCell([nn.Dense(3, 2), nn.BatchNorm1d(2)])
    for number, parameter in enumerate(net.get_parameters()):
        parameter.set_data(Tensor(np.full(parameter.shape, number + 10 * world.rank, np.float32)))
    net.insert_param_to_cell("count", Parameter(Tensor(7 + world.rank, mindspore.int64), requires_grad=False))
    world.share(net)
    found = {f"broadcast/{p.name}": p.asnumpy() for p in net.get_parameters()}
    wide = Parameter(Tensor(np.zeros(3, np.float32)), name="wide")
    narrow = Parameter(Tensor(np.zeros(2, np.float16)), name="narrow")
    reducer = world.reducer([wide, narrow])
    assert reducer is not None
    grads = (Tensor(np.float32([1, 2, 3]) * (1 + world.rank)), Tensor(np.float16([60000, 1]) * (world.rank or 1)))

    @mindspore.jit
    def compiled(grads):
        return reducer(grads)

    for way, reduce in (("pynative", reducer), ("jit", compiled)):
        found |= {f"reduce/{way}/{index}": grad.asnumpy() for index, grad in enumerate(reduce(grads))}
    values = [16777215.0, 1e-9, 0.1 + world.rank, -3.0 * world.rank, float("nan"), float("inf"), 1e300]
    found["mean"] = np.array(world.mean(values))
    found["nothing"] = np.array(world.mean([]))
    found["cores"] = np.array(sorted(os.sched_getaffinity(0)))
    return found


def messages(world: Team) -> Arrays:
    """The number of the message of each of three gradients, with another one behind the first; and their means.

    It comes last: MindSpore does not take the setting back.
    """
    weights = [Parameter(Tensor(np.zeros(2, np.float32)), name=name) for name in "abc"]
    reducer = world.reducer(weights, fusion=[0])
    assert reducer is not None
    means = reducer(tuple(Tensor(np.float32([number, world.rank])) for number in range(3)))
    found = {str(index): mean.asnumpy() for index, mean in enumerate(means)}
    return found | {"numbers": np.array([operator.fusion for operator in reducer.op_list])}


def main(job_file: Path) -> None:
    """Everything in one job: starting it takes longer than most of what it does."""
    job = Job.read(job_file)
    quick = job.gate["extent"] == "quick"
    device_targets.use("CPU", 0, mindspore.PYNATIVE_MODE)  # as a rank of `msmigrate train` does
    world = Team(job)
    events = EventFile(job.events(world.rank))
    found: Arrays = {f"collectives/{name}": array for name, array in collectives(world).items()}
    for compiled in (False, True):
        found |= {f"layers/{('pynative', 'graph')[compiled]}/{k}": v for k, v in layers(world, compiled).items()}
    for name in CASES:
        for mode in modes(name, quick):
            found |= {f"{name}/{mode}/{key}": array for key, array in train(name, mode, world, alone=False).items()}
            events.say("note", text=f"{name} {mode}")
    found |= {f"messages/{name}": array for name, array in messages(world).items()}
    if world.rank == 0:
        for name in ("lenet", "sync"):
            alone = train(name, "pynative", world, alone=True)
            found |= {f"{name}/alone/{key}": array for key, array in alone.items()}
    np.savez(job.folder / f"rank_{world.rank}.npz", **found)
    events.say("end", steps=0)
    world.farewell()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    leave()
