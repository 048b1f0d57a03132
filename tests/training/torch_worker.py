"""The PyTorch half of the tests of models and data: `python torch_worker.py FOLDER` writes torch.json and torch.npz."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from msmigrate.errors import MsmigrateError
from msmigrate.training.data import torch_pipeline
from msmigrate.training.data.sources import samples
from msmigrate.training.models import torch_models
from worker import CASES, LARGEST_DRAW, damaged_batches, dump, keys_for

FOLDER = Path(sys.argv[1])
arrays: dict[str, np.ndarray] = {}
facts: dict[str, dict] = {"shapes": {}, "modules": {}, "calls": {}, "errors": {}}


def shapes(net: torch.nn.Module) -> dict[str, list]:
    """State name -> [class of the module that owns it, shape]."""
    owners = dict(net.named_modules())
    return {
        name: [type(owners[name.rpartition(".")[0]]).__name__, list(value.shape)]
        for name, value in net.state_dict().items()
    }


def record_calls(net: torch.nn.Module, calls: list) -> None:
    """Note [name, output shape] at every call of a module that has no modules of its own."""
    for name, module in net.named_modules():
        if not list(module.children()):
            module.register_forward_hook(lambda _, __, out, name=name: calls.append([name, list(out.shape)]))


def perturb(net: torch.nn.Module) -> None:
    """Give norms weights and statistics that are not 1 and 0, as a trained network has."""
    for name, value in net.state_dict().items():
        if name.endswith("running_var"):
            value.uniform_(0.5, 2)
        elif name.endswith("running_mean") or (value.ndim == 1 and value.dtype == torch.float32):
            value.add_(torch.randn_like(value) * 0.2)


for case, (name, arguments) in CASES["shapes"].items():
    with torch.device("meta"):
        model = torch_models.build(name, **arguments)
    facts["shapes"][case] = shapes(model)
    facts["modules"][case] = [path for path, _ in model.named_modules()]

for case, (name, arguments) in CASES["initial"].items():
    for seed in CASES["seeds"]:
        torch.manual_seed(seed)
        for key, value in torch_models.build(name, **arguments).named_parameters():
            arrays[f"initial/{case}/{seed}/{key}"] = value.detach().numpy().ravel()[:LARGEST_DRAW]

for case, (name, arguments, size) in CASES["forward"].items():
    torch.manual_seed(5)
    net = torch_models.build(name, **arguments)
    perturb(net)
    images = torch.randn(size)
    arrays[f"forward/{case}/images"] = images.numpy()
    for key, value in net.state_dict().items():
        arrays[f"forward/{case}/weights/{key}"] = value.numpy().copy()
    with torch.no_grad():
        arrays[f"forward/{case}/eval"] = net.eval()(images).numpy()
        record_calls(net, facts["calls"].setdefault(case, []))
        arrays[f"forward/{case}/train"] = net.train()(images).numpy()
    for key, value in net.named_buffers():
        arrays[f"forward/{case}/buffers/{key}"] = value.numpy()

for case, transforms in CASES["data"].items():
    source = f"folder:{FOLDER / 'images'}" if case == "folder" else case
    arrays[f"data/{case}/images"], arrays[f"data/{case}/labels"] = torch_pipeline.batch(
        samples(source, 8, 1, seed=3)[0], transforms
    )

for case, transforms in CASES["random"].items():
    batch = samples(case.removeprefix("augmented "), 8, 1, seed=3)[0]
    for name, epoch in (("images", 0), ("other images", 1)):
        arrays[f"data/{case}/{name}"], _ = torch_pipeline.batch(batch, transforms, keys_for(case, epoch, 8))

for case, (batch, transforms) in damaged_batches().items():
    try:
        torch_pipeline.batch(batch, transforms, keys_for(case, 0, len(batch)))
    except MsmigrateError as error:
        facts["errors"][case] = [type(error).__name__, str(error)]

dump(FOLDER / "torch", facts, arrays)
