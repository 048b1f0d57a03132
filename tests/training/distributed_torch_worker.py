"""PyTorch's ranks in the tests of many devices: `python distributed_torch_worker.py FOLDER quick|all`.

It starts both. DistributedDataParallel over gloo, in a loop written by hand: accumulation under no_sync, unscaling,
clipping, SGD.
"""

from __future__ import annotations

import contextlib
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
from distributed_cases import CASES, LAYER_STEPS, LAYERS, SMALL, WORLD, joined, layer_input, modes, shares
from step_cases import sampled, weight
from step_torch_worker import start
from torch import distributed, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel

Arrays = dict[str, np.ndarray]


class Small(nn.Module):
    """Convolutions and a layer with BatchNorms of both kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, stride=2, padding=2, bias=False)
        self.bn1 = nn.BatchNorm2d(6)
        self.conv2 = nn.Conv2d(6, 8, 3, stride=2, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(8, momentum=0.2)
        self.fc1 = nn.Linear(512, 24)
        self.bn3 = nn.BatchNorm1d(24, eps=1e-3)
        self.fc2 = nn.Linear(24, 10)
        self.act = nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.act(self.bn1(self.conv1(x)))
        x = self.act(self.bn2(self.conv2(x)))
        return self.fc2(self.act(self.bn3(self.fc1(x.flatten(1)))))


def begin(name: str, dtype: torch.dtype) -> nn.Module:
    """A case's model at the starting weights."""
    if name not in SMALL:
        return start(CASES[name], dtype)
    model = Small()
    with torch.no_grad():
        for key, value in model.state_dict().items():
            if value.is_floating_point():
                value.copy_(torch.from_numpy(weight(key, tuple(value.shape))))
    return model.to(dtype)


def train(name: str, dtype: torch.dtype, rank: int | None) -> Arrays:
    """Take the case's steps with this rank's share, or with the whole batch alone (rank None)."""
    case = CASES[name]
    recipe = case.recipe
    model = begin(name, dtype).train()
    inner = model
    if rank is not None:
        model = DistributedDataParallel(model, broadcast_buffers=False)
    optimizer = torch.optim.SGD(model.parameters(), **recipe.optimizer.args)
    parameters = dict(inner.named_parameters())
    scale, parts = recipe.loss_scale, recipe.accumulate
    found: Arrays = {}
    for index, (images, labels) in enumerate(shares(case)):
        x = torch.from_numpy(joined(images, rank)).to(dtype).chunk(parts)
        y = torch.from_numpy(joined(labels, rank)).chunk(parts)
        optimizer.zero_grad()
        total = torch.zeros((), dtype=dtype)
        for part in range(parts):
            last = part == parts - 1
            waiting = contextlib.nullcontext() if rank is None or last else model.no_sync()
            with waiting:
                loss = nn.functional.cross_entropy(model(x[part]), y[part])
                (loss * (scale / parts)).backward()
            total += loss.detach() / parts
        if rank is not None:
            distributed.all_reduce(total)
            total /= WORLD
        for parameter in parameters.values():
            parameter.grad /= scale
        found[f"{index}/loss"] = total.numpy()
        found |= {f"{index}/grads/{name}": sampled(p.grad.numpy()) for name, p in parameters.items()}
        nn.utils.clip_grad_norm_(parameters.values(), recipe.clip.max_norm)
        optimizer.step()
        held = inner.state_dict().items()
        found |= {f"{index}/weights/{name}": sampled(v.numpy()) for name, v in held if "num_batches" not in name}
        for name, parameter in parameters.items():
            found[f"{index}/momentum/{name}"] = sampled(optimizer.state[parameter]["momentum_buffer"].numpy())
    return found


def layers(dtype: torch.dtype) -> Arrays:
    """BatchNorms over the images of all processes at once."""
    found: Arrays = {}
    for name in LAYERS:
        x, upstream = (torch.from_numpy(array).to(dtype) for array in layer_input(name))
        kind = nn.BatchNorm2d if x.ndim == 4 else nn.BatchNorm1d
        layer = kind(x.shape[1]).to(dtype)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(np.linspace(0.5, 2, x.shape[1])))
        for _ in range(LAYER_STEPS):
            layer.zero_grad()
            x = x.detach().requires_grad_()
            y = layer(x)
            (y * upstream).sum().backward()
        named = {"y": y, "dx": x.grad, "dgamma": layer.weight.grad, "dbeta": layer.bias.grad}
        named |= {"mean": layer.running_mean, "variance": layer.running_var, "eval": layer.eval()(x)}
        found |= {f"{name}/{key}": value.detach().numpy() for key, value in named.items()}
    return found


def work(rank: int, folder: str, quick: bool) -> None:
    """One rank; rank 0 also trains alone, with the whole batches."""
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meeting"
    distributed.init_process_group("gloo", meeting, timedelta(seconds=120), world_size=WORLD, rank=rank)
    found: Arrays = {}
    for dtype in (torch.float32, torch.float64):
        bits = str(dtype)[-2:]
        for name in [name for name in CASES if modes(name, quick)]:
            if not name.endswith("sync"):  # torch's SyncBatchNorm wants a GPU; it equals one process with all images
                found |= {f"{name}/{bits}/{key}": array for key, array in train(name, dtype, rank).items()}
            if rank == 0 and not name.endswith("local"):
                found |= {f"{name}/alone{bits}/{key}": array for key, array in train(name, dtype, None).items()}
        found |= {f"layers/{bits}/{key}": array for key, array in layers(dtype).items()}
    np.savez(Path(folder) / f"rank_{rank}.npz", **found)
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    multiprocessing.spawn(work, (sys.argv[1], sys.argv[2] == "quick"), WORLD)
