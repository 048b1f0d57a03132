"""Why updates differ where both sides bring their own optimizer: torch's says itself what a recipe would say of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.result import Report
from msmigrate.parity.run import parity_step
from msmigrate.training.recipe import reader as recipes

RECIPE = """
model: {name: lenet5}  # not built
data: {source: "synthetic:16x12", batch: 4, transforms: [{name: ToTensor}]}
optimizer: {name: SGD, args: {lr: 1.0}}
"""
TORCH = """
import torch
from torch import nn

class Signs(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.01})
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad.sign(), alpha=-group["lr"])

class OwnAdam(torch.optim.Optimizer):
    def __init__(self, parameters, learning_rate=1e-3, beta1=0.9, beta2=0.99, epsilon=1e-3):
        options = {"lr": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "weight_decay": 0.1}
        super().__init__(parameters, options)
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            one, two = group["beta1"], group["beta2"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["t"], state["m"], state["v"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                state["t"] += 1
                p.mul_(1 - group["lr"] * group["weight_decay"])
                state["m"].lerp_(p.grad, 1 - one)
                state["v"].mul_(two).addcmul_(p.grad, p.grad, value=1 - two)
                m, v = state["m"] / (1 - one ** state["t"]), state["v"] / (1 - two ** state["t"])
                p.sub_(group["lr"] * m / (v.sqrt() + group["epsilon"]))

def net(make):
    model = nn.Sequential(nn.Conv2d(3, 6, 3, stride=2), nn.BatchNorm2d(6), nn.Tanh(), nn.Flatten(), nn.Linear(150, 5))
    return {"model": model, "optimizer": make(model)}

def decayed(rate=0.05):
    return net(lambda m: torch.optim.SGD(m.parameters(), lr=rate, momentum=0.9, weight_decay=1e-2))

def grouped():
    def make(m):
        whole = [p for p in m.parameters() if p.dim() > 1]
        rest = [p for p in m.parameters() if p.dim() == 1]
        groups = [{"params": whole}, {"params": rest, "weight_decay": 0.0, "lr": 2e-3}]
        return torch.optim.AdamW(groups, 1e-3, weight_decay=0.1)
    return net(make)

def called():
    made = net(lambda m: None)
    return {**made, "optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.05, weight_decay=1e-2)}

def own():
    def make(m):
        whole = [p for p in m.parameters() if p.dim() > 1]
        rest = [p for p in m.parameters() if p.dim() == 1]
        return OwnAdam([{"params": whole}, {"params": rest, "weight_decay": 0.0, "lr": 2e-3}])
    return net(make)

def signs():
    return net(lambda m: Signs(m.parameters()))
"""
MINDSPORE = """
import mindspore
from mindspore import Parameter, Tensor, nn, ops
from msmigrate import optim

def net(make):
    kernel = nn.Conv2d(3, 6, 3, stride=2, pad_mode="valid", has_bias=True)
    cell = nn.SequentialCell(kernel, nn.BatchNorm2d(6), nn.Tanh(), nn.Flatten(), nn.Dense(150, 5))
    return {"model": cell, "optimizer": make(cell.trainable_params())}

class OwnAdam(nn.Optimizer):
    def __init__(self, parameters, fault=""):
        super().__init__(1e-3, parameters)
        self.m, self.v = (self.parameters.clone(prefix=name, init="zeros") for name in "mv")
        self.t, self.fault = Parameter(Tensor(0, mindspore.int32), name="t"), fault
    def construct(self, gradients):
        rates, decays = self.get_lr(), self.get_weight_decay()
        self.t += 1
        t = 1e9 if self.fault == "uncorrected" else self.t.astype(mindspore.float32)
        for i, (p, g, m, v) in enumerate(zip(self.parameters, gradients, self.m, self.v)):
            rate, decay = rates[i] if self.is_group_lr else rates, decays[i] if self.is_group else decays
            g = g + decay * p if self.fault == "coupled" else g
            ops.assign(m, m + 0.1 * (g - m))
            ops.assign(v, 0.99 * v + 0.01 * g * g)
            one, two = m / (1 - 0.9 ** t), v / (1 - 0.99 ** t)
            step = one / ops.sqrt(two + 1e-3) if self.fault == "inside" else one / (ops.sqrt(two) + 1e-3)
            ops.assign(p, (p if self.fault == "coupled" else p * (1 - rate * decay)) - rate * step)

def own(fault=""):
    def make(ps):
        whole, rest = [p for p in ps if p.ndim > 1], [p for p in ps if p.ndim == 1]
        groups = [{"params": whole, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0, "lr": 2e-3}]
        return OwnAdam([{"params": ps, "weight_decay": 0.1}] if fault == "groups" else groups, fault)
    return net(make)

def decayed(rate=0.05, decay=1e-2):
    return net(lambda ps: optim.SGD(ps, lr=rate, momentum=0.9, weight_decay=decay))

def skipping():
    return net(lambda ps: nn.SGD(ps, learning_rate=0.05, momentum=0.9, weight_decay=1e-2))

def grouped(decay=0.1):
    def make(ps):
        whole, rest = [p for p in ps if p.ndim > 1], [p for p in ps if p.ndim == 1]
        groups = [{"params": whole}, {"params": rest, "weight_decay": 0.0, "lr": 2e-3}]
        return optim.AdamW(groups, 1e-3, weight_decay=decay)
    return net(make)

def called():
    return {**net(lambda ps: None), "optimizer": lambda ps: optim.SGD(ps, lr=0.05)}
"""
# torch's function, MindSpore's: the cause's fault, its place, and what it says
FOUND = {
    ("decayed", "skipping"): ("wd-skips-gamma-beta", "1", "the weight decay skips"),
    ("decayed", "decayed(rate=0.5)"): (
        "optimizer-argument",
        "every parameter",
        "the learning rate is 10 times torch's",
    ),
    ("decayed", "decayed(decay=0.0)"): ("optimizer-argument", "every parameter", "weight_decay is 0"),
    ("grouped", "grouped(decay=0.05)"): ("optimizer-argument", "", "weight_decay is 0.0"),
    ("called", "called"): ("optimizer-argument", "every parameter", "weight_decay is 0"),
    ("signs", "decayed"): (None, "every parameter", "torch's Signs follows no rule that is known"),
    ("own", "own(fault='coupled')"): ("adamw-as-adam-wd", "", "the decay is added to the gradient"),
    ("own", "own(fault='inside')"): (None, "every parameter", "eps stands inside the root"),
    ("own", "own(fault='uncorrected')"): ("adamweightdecay-no-bias-correction", "every parameter", "bias correction"),
    ("own", "own(fault='groups')"): ("group-ignored", "", "the group"),
}


def judged(folder: Path, torch: str, mindspore: str) -> Report:
    for name, text in (("recipe.yaml", RECIPE), ("torch_side.py", TORCH), ("mindspore_side.py", MINDSPORE)):
        (folder / name).write_text(text)
    pair = Pair(f"{folder / 'torch_side.py'}:{torch}", f"{folder / 'mindspore_side.py'}:{mindspore}")
    job = ParityJob(recipes.load(folder / "recipe.yaml"), folder / "run", pair, steps=2, init_seeds=1, no_replay=True)
    return parity_step(folder / "recipe.yaml", job)


@pytest.mark.full
@pytest.mark.parametrize(("torch", "mindspore"), FOUND)
def test_what_is_wrong_with_ones_own_optimizer_is_named(torch: str, mindspore: str, tmp_path: Path) -> None:
    fault, place, text = FOUND[torch, mindspore]
    found = judged(tmp_path, torch, mindspore)
    causes = [cause for cause in found.causes if cause.stage == "update"]
    assert [cause.fault for cause in causes] == [fault], causes
    assert place in causes[0].place and text in causes[0].text, causes


@pytest.mark.full
@pytest.mark.parametrize("both", ["decayed", "grouped", "own"])
def test_optimizers_that_agree_have_no_causes(both: str, tmp_path: Path) -> None:
    found = judged(tmp_path, both, both)
    assert not [f for f in found.findings if f.verdict.value == "fail" and f.stage == "update"] and not found.causes
