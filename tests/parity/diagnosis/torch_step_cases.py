"""Steps that a changed torch takes in MindSpore's place, and what diagnosis says of them.

python torch_step_cases.py CASE …      # prints one JSON object: case -> causes; `formulas` -> optimizer -> error;
                                      # `own losses` -> loss -> what is found; `heads` -> what makes the logits ->
                                      # of which tensors the gradients follow from them

Each case is a recipe for torch, and what MindSpore's side does otherwise: another recipe, other starting weights, or a
function of torch that is another one while it records.
"""

from __future__ import annotations

import copy
import gc
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from msmigrate.parity.align.alignment import Left
from msmigrate.parity.compare_traces import Traces, compare
from msmigrate.parity.diagnosis import torch_diagnosis_worker
from msmigrate.parity.diagnosis.causes import torch_gradients, torch_loss, torch_modules
from msmigrate.parity.diagnosis.context import Context
from msmigrate.parity.diagnosis.mutations.optimizers import run
from msmigrate.parity.job import ParityJob
from msmigrate.parity.record import recorder, torch_worker
from msmigrate.parity.record.recorder import add_initial_values
from msmigrate.parity.record.torch_device import CPU
from msmigrate.parity.record.torch_runner import TorchSide
from msmigrate.parity.result import Cause, ModuleVerdict
from msmigrate.parity.run_folder import MINDSPORE
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import TraceWriter
from msmigrate.training.recipe.schema import Recipe
from msmigrate.training.step import torch_step
from torch import nn
from torch.nn.functional import cross_entropy

EXPLAINERS = [
    each
    for explainers in torch_diagnosis_worker.EXPLAINERS.values()
    for each in explainers
    if each is not torch_modules.explain
]
SGD = {"name": "SGD", "args": {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}}
DIGITS = {
    "model": {"name": "lenet5"},
    "data": {
        "source": "digits",
        "batch": 4,
        "transforms": [
            {"name": "Resize", "args": {"size": 36}},
            {"name": "CenterCrop", "args": {"size": 32}},
            {"name": "ToTensor"},
            {"name": "Normalize", "args": {"mean": [0.4], "std": [0.3]}},
        ],
    },
    "loss": {"name": "CrossEntropyLoss", "args": {"label_smoothing": 0.1}},
    "optimizer": SGD,
    "schedule": {"name": "StepLR", "args": {"step_size": 2, "gamma": 0.5}},
}
PHOTOGRAPHS = [
    {"name": "Resize", "args": {"size": 32}},
    {"name": "CenterCrop", "args": {"size": 32}},
    {"name": "ToTensor"},
]
BASES: dict[str, dict[str, Any]] = {
    "sgd": DIGITS,
    "adamw": {**DIGITS, "optimizer": {"name": "AdamW", "args": {"lr": 0.01, "weight_decay": 0.1}}},
    "rmsprop": {**DIGITS, "optimizer": {"name": "RMSprop", "args": {"lr": 0.01, "momentum": 0.9, "eps": 1.0e-6}}},
    "clipped": {**DIGITS, "clip": {"max_norm": 0.05}, "accumulate": 2, "loss_scale": 1024.0},
    "resnet": {
        **DIGITS,
        "model": {"name": "resnet_tiny", "args": {"num_classes": 10, "width": 4}},
        "data": {"source": "photographs", "batch": 4, "transforms": PHOTOGRAPHS},
        "accumulate": 2,
    },
    "average": {**DIGITS, "ema": {"decay": 0.9}},
    "warm": {**DIGITS, "schedule": {"name": "LinearLR", "args": {"start_factor": 0.2, "total_iters": 4}}},
}


@dataclass(frozen=True)
class Case:
    """base: of BASES; recipe: what MindSpore's side has otherwise; start: what becomes of its weights; drawn: of its
    initial values; during: in force while it records."""

    base: str = "sgd"
    recipe: Callable[[dict[str, Any]], None] = lambda recipe: None
    start: Callable[[nn.Module], None] = lambda model: None
    drawn: Callable[[str, np.ndarray], np.ndarray] = lambda name, values: values
    during: Callable[[], AbstractContextManager[Any]] = nullcontext


def optimizer(**args: Any) -> Callable[[dict[str, Any]], None]:
    return lambda recipe: recipe["optimizer"]["args"].update(args)


def part(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda recipe: recipe.update({key: value})


def loss(**args: Any) -> Callable[[dict[str, Any]], None]:
    return lambda recipe: recipe["loss"]["args"].update(args)


def transform(at: int, **args: Any) -> Callable[[dict[str, Any]], None]:
    return lambda recipe: recipe["data"]["transforms"][at]["args"].update(args)


def several(*changes: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return lambda recipe: [change(recipe) for change in changes] and None


class RootInside(torch.optim.Optimizer):
    """RMSprop as nn.RMSProp has it: a mean square that starts at one, eps inside the root, the rate in the velocity."""

    def __init__(self, params: Any, **args: Any) -> None:
        super().__init__(params, {"alpha": 0.99, "eps": 1e-8, "momentum": 0.0, "weight_decay": 0.0, **args})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state.setdefault("square_avg", torch.ones_like(p))
                state.setdefault("momentum_buffer", torch.zeros_like(p))
                state["square_avg"].mul_(group["alpha"]).addcmul_(p.grad, p.grad, value=1 - group["alpha"])
                slope = p.grad / (state["square_avg"] + group["eps"]).sqrt()
                state["momentum_buffer"].mul_(group["momentum"]).add_(slope, alpha=group["lr"])
                p.sub_(state["momentum_buffer"])


def over_others(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    rows = torch.full_like(logits, 0.1 / 9).scatter_(1, labels.view(-1, 1), 0.9)
    return -(rows * F.log_softmax(logits, 1)).sum(1).mean()


def another_loss(function: Callable[..., torch.Tensor]) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: patch.object(torch_step, "build_loss", lambda recipe, like: function)


@contextmanager
def gradients(change: Callable[[str, torch.Tensor], torch.Tensor]) -> Iterator[None]:
    """The step's gradients are changed by name before anyone sees them."""
    real = torch_step.TrainStep.gradients

    def changed(self: Any, *args: Any, **options: Any) -> Any:
        result = real(self, *args, **options)
        return replace(result, grads={name: change(name, g) for name, g in result.grads.items()})

    with patch.object(torch_step.TrainStep, "gradients", changed):
        yield


@contextmanager
def logits_added() -> Iterator[None]:
    """The loss and the sum of the logits are differentiated, and the loss that is told is the right one."""
    real = torch_step.build_loss

    class Both(nn.Module):
        def __init__(self, recipe: Any, like: Any) -> None:
            super().__init__()
            self.loss = real(recipe, like)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            value = self.loss(x, y)
            if x.is_leaf:  # the loss alone, on given logits, is as it should be
                return value
            return value + (x.sum() - x.sum().detach())

    with patch.object(torch_step, "build_loss", Both):
        yield


def weight(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[nn.Module], None]:
    def apply(model: nn.Module) -> None:
        with torch.no_grad():
            model.get_parameter(name).copy_(change(model.get_parameter(name).clone()))

    return apply


CASES = {
    "untouched": Case(),
    # the optimizer
    "nesterov": Case(recipe=optimizer(nesterov=False)),
    "momentum": Case(recipe=optimizer(momentum=0.83)),  # no table knows this number
    "rate": Case(recipe=optimizer(lr=0.0501)),
    "undecayed biases": Case(recipe=lambda r: r["optimizer"].update(no_weight_decay=["bias"])),
    "nesterov and decay": Case(recipe=optimizer(nesterov=False, weight_decay=0.0)),
    "three at once": Case(recipe=several(optimizer(nesterov=False, weight_decay=0.0), part("schedule", None))),
    "no schedule": Case(recipe=part("schedule", None)),
    "from zero": Case("warm", during=lambda: patch.object(torch.optim.lr_scheduler.LinearLR, "get_lr", from_zero)),
    "epochs of two": Case("warm", during=lambda: patch.object(torch.optim.lr_scheduler.LinearLR, "get_lr", in_twos)),
    "coupled": Case("adamw", recipe=lambda r: r["optimizer"].update(name="Adam")),
    "betas": Case("adamw", recipe=optimizer(betas=[0.999, 0.9])),
    "eps": Case("adamw", recipe=optimizer(eps=1.0e-6)),
    "nn.RMSProp": Case("rmsprop", during=lambda: patch.object(torch.optim, "RMSprop", RootInside)),
    "unclipped": Case("clipped", recipe=part("clip", None)),
    "cubic": Case(during=lambda: patch.object(torch.optim.SGD, "step", cubic)),  # nothing that anyone knows
    "average": Case("average", recipe=part("ema", {"decay": 0.1})),
    "average slightly": Case("average", recipe=part("ema", {"decay": 0.907})),
    # the loss
    "smoothed over others": Case(during=another_loss(over_others)),
    "summed": Case(recipe=loss(reduction="sum")),
    "smoothing": Case(recipe=loss(label_smoothing=0.137)),
    "squared": Case(during=another_loss(lambda x, y: (F.cross_entropy(x, y, label_smoothing=0.1)) ** 2)),
    # the gradients
    "logits added": Case(during=logits_added),
    "halved": Case("clipped", during=lambda: gradients(lambda name, g: 0.5 * g)),
    "not unscaled": Case("clipped", during=lambda: gradients(lambda name, g: 1024.0 * g)),
    "one of them": Case(during=lambda: gradients(lambda name, g: 1.01 * g if name == "conv2.weight" else g)),
    "uphill": Case(during=lambda: gradients(lambda name, g: -g)),
    "in one": Case("resnet", recipe=part("accumulate", 1)),
    "in pieces": Case(
        recipe=part("accumulate", 2), during=lambda: patch.object(torch.Tensor, "chunk", lambda x, n: x.split([3, 1]))
    ),
    # the data
    "mean": Case(recipe=transform(3, mean=[0.0])),
    "deviation": Case(recipe=transform(3, std=[0.31])),
    "size": Case(recipe=transform(0, size=37)),
    "mean and interpolation": Case(recipe=several(transform(0, interpolation="nearest"), transform(3, mean=[0.0]))),
    # the starting weights
    "transposed": Case(start=weight("conv1.weight", lambda w: w.transpose(2, 3))),
    "half": Case(start=weight("fc1.weight", lambda w: w.half().float())),
    "ulp": Case(start=weight("fc2.bias", lambda w: torch.nextafter(w, w + 1))),
    "scaled": Case(start=weight("fc1.weight", lambda w: w * 1.01)),
    "shuffled": Case(start=weight("fc1.weight", lambda w: w.flatten()[torch.randperm(w.numel())].view_as(w))),
    "drawn": Case(drawn=lambda name, v: 0.01 * np.random.default_rng(len(name)).standard_normal(v.shape, np.float32)),
}


def in_twos(self: Any) -> list[float]:
    """The warm-up of factor 0.2 over 4 steps, where two steps have one rate."""
    step = self.last_epoch - self.last_epoch % 2
    return [base * min(1.0, 0.2 + 0.8 * step / 4) for base in self.base_lrs]


def from_zero(self: Any) -> list[float]:
    return [base * min(self.last_epoch, self.total_iters) / self.total_iters for base in self.base_lrs]


@torch.no_grad()
def cubic(self: Any, closure: Any = None) -> None:
    for group in self.param_groups:
        for p in group["params"]:
            p.sub_(group["lr"] * 100 * p.grad**3)


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    gc.freeze()  # as the worker does: else every collection goes through all imported objects
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as root:
        starts: dict[str, Any] = {}
        for i, name in enumerate(names):
            if name == "formulas":
                told[name] = formulas()
            elif name == "strided later":
                told[name] = strided_later()
            elif name == "strided, averaged later":
                told[name] = strided_later({("block.conv3", 0): (4, 4)})
            elif name == "own losses":
                told[name] = own_losses()
            elif name == "heads":
                told[name] = heads()
            else:
                told[name] = causes(CASES[name], Path(root), Path(root) / str(i), starts)
    print(json.dumps(told))


def causes(case: Case, root: Path, folder: Path, starts: dict[str, Any]) -> list[dict[str, Any]]:
    """Record a case and have it explained."""
    options = ParityJob(Recipe.model_validate(copy.deepcopy(BASES[case.base])), folder, no_replay=True)
    if case.base not in starts:
        first = replace(options, folder=root / case.base)
        first.folder.mkdir()
        starts[case.base] = torch_worker.record_start_of(first)
    folder.mkdir()
    for made in (root / case.base).iterdir():
        (folder / made.name).symlink_to(made)
    model, inputs, _ = starts[case.base]
    mindspore(case, options, model, inputs)
    torch_worker.record_matched(options, model, inputs)
    findings = [f for f in compare(Traces.load(folder)) if f.verdict is not Verdict.PASS]
    context = Context(options, findings, [], model)
    found = [cause for explain in EXPLAINERS for cause in explain(context)]
    return [asdict(cause) for cause in found]


def mindspore(case: Case, options: ParityJob, model: nn.Module, inputs: Any) -> None:
    """Torch in MindSpore's place, with what the case has otherwise."""
    changed = copy.deepcopy(BASES[case.base])
    case.recipe(changed)
    recipe = Recipe.model_validate(changed)
    writer = TraceWriter(
        options.folder / MINDSPORE, torch_worker.about(options.recipe, torch.float32, CPU), options.sample
    )
    theirs = copy.deepcopy(model)
    case.start(theirs)
    with case.during():
        recorder.record_data(torch_worker.data_batches(recipe, options.steps), writer)
        add_initial_values(
            writer,
            options.seeds,
            lambda seed: {n: case.drawn(n, v) for n, v in torch_worker.initial_values(options, seed + 7).items()},
        )
        side = TorchSide(recipe, theirs, torch.float32, 1)
        recorder.record_start(side, writer)
        recorder.record_evaluation(side, inputs, writer)
        recorder.record_steps(side, inputs, writer, "MindSpore", sides=True)
        recorder.record_probes(side, inputs, writer)
    writer.close()


def formulas() -> dict[str, float]:
    """How far the formulas, without any switch, are from torch's own optimizers in float64, over ten updates."""
    rng = np.random.default_rng(0)
    start, grads = rng.standard_normal(50), [rng.standard_normal(50) for _ in range(10)]
    start = start.astype(np.float32)
    worst = {}
    for kind, given in {
        "SGD": {"momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1, "nesterov": False},
        "SGD nesterov": {"momentum": 0.9, "dampening": 0, "weight_decay": 0.1, "nesterov": True},
        "Adam": {"betas": [0.8, 0.95], "eps": 1e-3, "weight_decay": 0.1, "amsgrad": False},
        "AdamW": {"betas": [0.8, 0.95], "eps": 1e-3, "weight_decay": 0.1, "amsgrad": True},
        "RMSprop": {"alpha": 0.9, "eps": 1e-3, "weight_decay": 0.1, "momentum": 0.5, "centered": True},
    }.items():
        name = kind.split()[0]
        p = nn.Parameter(torch.from_numpy(start.astype(np.float64)))
        made = getattr(torch.optim, name)([p], lr=0.05, **given)
        for g in grads:
            p.grad = torch.from_numpy(g.copy())
            made.step()
        change, state = run(name, start, grads, [0.05] * 10, [0.1] * 10, given, frozenset(), np.float64)
        off = [np.abs(p.detach().numpy() - start.astype(np.float64) - change).max()]
        off += [np.abs(made.state[p][key].numpy() - value).max() for key, value in state.items()]
        worst[kind] = float(max(off))
    return worst


def own_losses() -> dict[str, str]:
    """Of a loss that is torch's user's, by what another computes in its place: what is found."""
    weight = torch.arange(1.0, 6.0)
    x, y = torch.randn(8, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 5

    def others(share: float, of: torch.Tensor | None = None) -> Any:
        rows = torch.full((8, 5), share / 4, dtype=torch.float64)
        rows[torch.arange(8), y] = 1 - share
        each = -rows * x.log_softmax(1) * (1.0 if of is None else of)
        return each.sum() / (8 if of is None else of[y].sum())

    def weighted(x: Any, y: Any) -> Any:
        return F.cross_entropy(x, y, weight.to(x.dtype), label_smoothing=0.2)

    smooth = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    pairs = {
        "module": (smooth, others(0.1)),
        "imported by name": (partial(cross_entropy, label_smoothing=0.1), others(0.1)),
        "weighted": (weighted, others(0.2, weight)),
        "no weight": (weighted, F.cross_entropy(x, y, label_smoothing=0.2)),
        "no smoothing": (smooth, F.cross_entropy(x, y)),
        "summed": (smooth, F.cross_entropy(x, y, label_smoothing=0.1, reduction="sum")),
        "by count": (weighted, F.cross_entropy(x, y, weight.double(), label_smoothing=0.2, reduction="none").mean()),
        "squared": (smooth, F.cross_entropy(x, y) ** 2),
    }
    found = {}
    for name, (own, value) in pairs.items():
        tried = torch_loss.hypotheses(recipe_of_digits(), (8, 5), own)
        near = (each for each in tried if _equals(each.change, x, y, value))
        found[name] = next((each.text for each in near), "")
    return found


def _equals(loss: Any, x: torch.Tensor, y: torch.Tensor, value: torch.Tensor) -> bool:
    try:
        return torch.allclose(loss(x, y), value, rtol=1e-9)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return False


def heads() -> dict[str, list[str] | None]:
    """Of which tensors of a net's last linear layer the gradients are computed from the logits, by what makes these."""
    draw = torch.Generator().manual_seed(0)
    x, labels = [torch.randn(6, 8, generator=draw) for _ in range(2)], torch.arange(6) % 5
    net = nn.ModuleDict({"one": nn.Linear(8, 5), "two": nn.Linear(8, 5)})
    gave = {name: net[name](features).detach() for name, features in zip(net, x, strict=True)}
    made = {
        "the last": (gave["two"], x[1]),
        "the last, from a branch that is not recorded": (gave["two"], x[0]),
        "the mean of both": ((gave["one"] + gave["two"]) / 2, x[1]),
        "the last one scaled": (0.5 * gave["two"], x[1]),
    }
    found = {}
    for name, (logits, features) in made.items():
        outputs = {"one": gave["one"], "pool": features, "two": gave["two"]}
        values = {
            ("loss", "step1", "logits", 0): logits,
            **{("forward", "train", path, 0): array for path, array in outputs.items()},
            **{("gradients", "parameters", path, 0): weight for path, weight in net.named_parameters()},
        }
        entries = {
            key: SimpleNamespace(key=key, name=key[2], shape=tuple(array.shape), sampled=False, nonfinite=0)
            for key, array in values.items()
        }
        context: Any = SimpleNamespace(
            model=net,
            inputs=SimpleNamespace(labels=[labels.numpy()]),
            recipe=SimpleNamespace(accumulate=1),
            mindspore_values=lambda key, values=values: values[key].detach().numpy().reshape(-1),
            family=lambda key: [SimpleNamespace(entries={})],  # without the loss, which is then taken to be of these
            mindspore=SimpleNamespace(
                entries=entries,
                select=lambda *part, entries=entries: [each for key, each in entries.items() if key[:2] == part],
            ),
        )
        basis = torch_gradients.last_layer_gradients(context, F.cross_entropy, 1)
        found[name] = None if basis is None else sorted(basis.loss)
    return found


def strided_later(of_torch: dict[tuple[str, int], tuple[int, ...]] | None = None) -> list[list[str]]:
    """Place, text and fix of a convolution without its stride, after whose activation MindSpore's net pools; of_torch:
    the shapes of torch's own net without that stride, which does not run where there are none."""
    shapes = {"block.conv2": (8, 4), "block.relu": (8, 4), "block.conv3": (4, 4)}

    def entry(name: str, shape: tuple[int, ...]) -> Any:
        return SimpleNamespace(name=name, key=("forward", "eval", name, 0), shape=shape)

    of_mindspore = {entry(name, shape).key: entry(name, shape) for name, shape in shapes.items()}
    torchs = [entry(name, (4, 4)) for name in shapes]
    modules = [ModuleVerdict(n, "", c, Verdict.FAIL, True, 0, 0) for n, c in (("block", "block"), *CELLS.items())]
    context: Any = SimpleNamespace(
        modules=modules,
        paired=SimpleNamespace(
            alignment=SimpleNamespace(
                left=[Left("mindspore", "block.e2.2", "MaxPool2d"), Left("torch", "block.drop", "Dropout")],
                calls=[(name, 0, cell, 0) for name, cell in CELLS.items()],
            )
        ),
        traces=SimpleNamespace(
            alone=[SimpleNamespace(select=lambda *part: torchs, entries={e.key: e for e in torchs})]
        ),
        mindspore=SimpleNamespace(entries=of_mindspore),
    )
    found = [
        Cause("forward", "block", None, "nothing known reproduces it", "compare"),
        Cause("forward", "block.conv2", None, "stride 1", "stride=2", "", 0.3),
    ]
    known = {"block.conv2": [torch_modules.with_value("stride", 1, "")]}
    with patch.object(torch_modules, "shapes_with", lambda *_: of_torch or {}):
        explained = torch_modules.strided_elsewhere(context, found, known)
    return [[cause.place, cause.text, cause.fix] for cause in explained]


CELLS = {"block.conv2": "block.e2.0", "block.relu": "block.e2.1", "block.conv3": "block.conv3"}


def recipe_of_digits() -> Recipe:
    return Recipe.model_validate(copy.deepcopy(BASES["sgd"]))


if __name__ == "__main__":
    main(sys.argv[1:])
