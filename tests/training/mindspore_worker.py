"""The MindSpore half of the tests of models and data: `python mindspore_worker.py FOLDER` reads torch.npz there."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from msmigrate.errors import MsmigrateError
from msmigrate.training.data.sources import samples
from msmigrate.workers.worker import leave, prepare_mindspore
from worker import CASES, LARGEST_DRAW, damaged_batches, dump, keys_for

prepare_mindspore()

import mindspore  # noqa: E402
from msmigrate.training.data import mindspore_pipeline  # noqa: E402
from msmigrate.training.models import mindspore_models  # noqa: E402

FOLDER = Path(sys.argv[1])
TORCH = np.load(FOLDER / "torch.npz")
NORM = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}
arrays: dict[str, np.ndarray] = {}
facts: dict[str, dict] = {"shapes": {}, "calls": {}, "errors": {}, "names": {}}


def shapes(net: mindspore.nn.Cell) -> dict[str, list]:
    """Parameter name -> [class of the Cell that owns it, shape]."""
    owners = dict(net.cells_and_names())
    return {
        name: [type(owners[name.rpartition(".")[0]]).__name__, list(value.shape)]
        for name, value in net.parameters_and_names()
    }


def record_calls(net: mindspore.nn.Cell, calls: list) -> None:
    """Note [name, output shape] at every call of a Cell that has no Cells of its own."""
    for name, cell in net.cells_and_names():
        if not list(cell.cells()):
            cell.register_forward_hook(lambda _, __, out, name=name: calls.append([name, list(out.shape)]))


def torch_name(net: mindspore.nn.Cell, name: str) -> str:
    """The state_dict name of a parameter, by the class of its owner."""
    path, _, leaf = name.rpartition(".")
    if isinstance(dict(net.cells_and_names())[path], mindspore.nn.BatchNorm2d):
        leaf = {theirs: ours for ours, theirs in NORM.items()}[leaf]
    return f"{path}.{leaf}"


for case, (name, arguments) in CASES["shapes"].items():
    net = mindspore_models.build(name, **arguments)
    facts["shapes"][case] = shapes(net)
    facts["names"][case] = [value.name for _, value in net.parameters_and_names()]

for case, (name, arguments) in CASES["initial"].items():
    for seed in [*CASES["seeds"], CASES["seeds"][0]]:
        mindspore.set_seed(seed)
        net = mindspore_models.build(name, **arguments)
        for key, value in net.parameters_and_names():
            if value.requires_grad:
                place = f"initial/{case}/{seed}/{torch_name(net, key)}"
                place = f"again/{place}" if place in arrays else place
                arrays[place] = value.asnumpy().ravel()[:LARGEST_DRAW].copy()

for case, (name, arguments, _) in CASES["forward"].items():
    net = mindspore_models.build(name, **arguments)
    for key, value in net.parameters_and_names():
        value.set_data(mindspore.Tensor(TORCH[f"forward/{case}/weights/{torch_name(net, key)}"]))
    images = mindspore.Tensor(TORCH[f"forward/{case}/images"])
    arrays[f"forward/{case}/eval"] = net.set_train(False)(images).asnumpy()
    record_calls(net, facts["calls"].setdefault(case, []))
    arrays[f"forward/{case}/train"] = net.set_train(True)(images).asnumpy()
    for key, value in net.parameters_and_names():
        if not value.requires_grad:
            arrays[f"forward/{case}/buffers/{torch_name(net, key)}"] = value.asnumpy()

for case, transforms in CASES["data"].items():
    source = f"folder:{FOLDER / 'images'}" if case == "folder" else case
    arrays[f"data/{case}/images"], arrays[f"data/{case}/labels"] = mindspore_pipeline.batch(
        samples(source, 8, 1, seed=3)[0], transforms
    )

for case, transforms in CASES["random"].items():
    batch = samples(case.removeprefix("augmented "), 8, 1, seed=3)[0]
    for name, epoch in (("images", 0), ("other images", 1)):
        arrays[f"data/{case}/{name}"], _ = mindspore_pipeline.batch(batch, transforms, keys_for(case, epoch, 8))

for case, (batch, transforms) in damaged_batches().items():
    try:
        mindspore_pipeline.batch(batch, transforms, keys_for(case, 0, len(batch)))
    except MsmigrateError as error:
        facts["errors"][case] = [type(error).__name__, str(error)]

dump(FOLDER / "mindspore", facts, arrays)
leave()
