"""Faults in the order of a step, in the shapes in which people write one: each changes the draft."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.reports.script_analysis import recipe_text

Write = Callable[..., Path]

HEAD = """
import torch
import torch.nn as nn
import torchvision
from accelerate import Accelerator
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
net = torchvision.models.resnet18(num_classes=7)
data = datasets.ImageFolder("/birds/train", transforms.ToTensor())
loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.2)
sched = torch.optim.lr_scheduler.StepLR(opt, 2)
"""
SHAPES = {
    "function step": """
def train_step(x, y):
    opt.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    return loss.item()
for epoch in range(4):
    for x, y in loader:
        train_step(x, y)
    sched.step()
""",
    "trainer": """
class Trainer:
    def __init__(self, net, opt, criterion, sched):
        self.net, self.opt, self.criterion, self.sched = net, opt, criterion, sched
    def step(self, batch):
        x, y = batch
        loss = self.criterion(self.net(x), y)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.opt.step()
        return loss
    def run(self, loader, epochs):
        for epoch in range(epochs):
            self.net.train()
            for batch in loader:
                loss = self.step(batch)
            self.sched.step()
Trainer(net, opt, criterion, sched).run(loader, 4)
""",
    "split functions": """
def compute(model, x, y):
    return criterion(model(x), y)
def update(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
def epoch_of(model, batches, optimizer):
    for i, (x, y) in enumerate(batches):
        loss = compute(model, x, y)
        update(loss, optimizer)
for epoch in range(4):
    epoch_of(net, loader, opt)
    sched.step()
""",
    "while": """
step = 0
it = iter(loader)
while step < 1000:
    x, y = next(it)
    loss = criterion(net(x), y)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    sched.step()
    step += 1
""",
    "closure": """
for epoch in range(4):
    for x, y in loader:
        def closure():
            opt.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            return loss
        opt.step(closure)
    sched.step()
""",
    "accelerate": """
from accelerate import Accelerator
accelerator = Accelerator()
net, opt, loader, sched = accelerator.prepare(net, opt, loader, sched)
for epoch in range(4):
    for x, y in loader:
        loss = criterion(net(x), y)
        opt.zero_grad()
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
    sched.step()
""",
    "scaler": """
scaler = torch.amp.GradScaler()
for epoch in range(4):
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = criterion(net(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
    sched.step()
""",
    "generator": """
def batches(epochs):
    for epoch in range(epochs):
        for batch in loader:
            yield epoch, batch
        sched.step()
for epoch, (x, y) in batches(4):
    opt.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
""",
    "micro function": """
def accumulate(batches):
    for x, y in batches:
        loss = criterion(net(x), y) / 4
        loss.backward()
def step():
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    opt.zero_grad()
for i in range(1000):
    accumulate(read(4))
    step()
    sched.step()
""",
}
CLIP, CLEAR, BACKWARD, MOVE = "clip_grad_norm_", "zero_grad()", "backward(", "sched.step()"
OTHERS = ("scaler.unscale_(", "scaler.update()")


def faults(text: str) -> Iterator[tuple[str, str]]:
    """Each fault in words, and the script with it: a call left out, written twice, or exchanged with another."""
    lines = text.split("\n")
    steps = [n for n, line in enumerate(lines) if re.search(r"(opt|optimizer|scaler)\.step\(", line)]

    def places(of: str) -> list[int]:
        return [n for n, line in enumerate(lines) if of in line]

    found = {"step": steps, **{of: places(of) for of in (CLIP, CLEAR, BACKWARD, MOVE, *OTHERS)}}
    for of, at in found.items():
        for n in at:
            yield f"without {of}", "\n".join([*lines[:n], *lines[n + 1 :]])
            if of in ("step", BACKWARD, MOVE):
                yield f"{of} twice", "\n".join([*lines[: n + 1], *lines[n:]])
    for one, other in ((CLIP, "step"), (CLIP, BACKWARD), (CLEAR, "step"), (CLEAR, BACKWARD), (BACKWARD, "step")):
        if found[one] and found[other] and not ("step" in (one, other) and "closure" in text):
            changed = list(lines)
            first, second = found[one][0], found[other][0]
            texts = lines[first].strip(), lines[second].strip()
            changed[first] = lines[first].replace(texts[0], texts[1])
            changed[second] = lines[second].replace(texts[1], texts[0])
            yield f"{one} and {other} exchanged", "\n".join(changed)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_fault_changes_the_draft(shape: str, write: Write) -> None:
    def drafted(text: str) -> str:
        return re.sub(r"(\.py:|line )\d+", r"\1N", recipe_text(analyze_script(write(HEAD + text))))

    before, tried = drafted(SHAPES[shape]), dict(faults(SHAPES[shape]))
    assert len(tried) >= 10
    assert [words for words, text in tried.items() if drafted(text) == before] == []
