"""Of small nets, which single modules keep what they computed in the recorded pass, and whether it is to the bit what
they compute alone: prints JSON, case -> label -> the names of what differs."""

import json
import tempfile
from pathlib import Path

import numpy as np
import torch
from msmigrate.migrate.torch_models import let_copy
from msmigrate.parity.record.randomness import Draws
from msmigrate.parity.record.torch_randomness import fixed
from msmigrate.parity.replay.module_calls import FOLDER, Recording
from msmigrate.parity.replay.torch_recording import record_step
from msmigrate.parity.replay.torch_replay import Ahead, Alone
from msmigrate.parity.run_folder import TORCH32
from msmigrate.parity.trace import Kept
from torch import nn

SAMPLE = 50


class Twice(nn.Module):
    """Its gradient is the sum of two."""

    def forward(self, x):
        return x * x.sigmoid()


class Buffered(nn.Module):
    """Counts, and adds noise that it draws."""

    def __init__(self, noise):
        super().__init__()
        self.noise, self.weight = noise, nn.Parameter(torch.ones(8))
        self.register_buffer("seen", torch.zeros(8))

    def forward(self, x):
        self.seen += x.detach().mean(0)
        noise = torch.randn(8) if self.noise else 0.5
        return x * self.weight + noise


class Net(nn.Module):
    """Convolutions, and what `case` has otherwise."""

    def __init__(self, case):
        super().__init__()
        self.case = case
        self.conv, self.bn, self.relu = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.fc, self.norm, self.twice = nn.Linear(8, 8), nn.LayerNorm(8), Twice()
        self.counts, self.drop = Buffered(noise=case == "noise"), nn.Dropout(0.5)
        self.head = nn.Linear(8, 4)
        self.fc.weight.requires_grad_(case != "frozen")
        if case == "weight":
            self.fc.weight.register_hook(lambda gradient: gradient / 2)

    def forward(self, x):
        x = self.conv(x)
        if self.case == "hook":  # of the model's own, that halves a gradient
            x.register_hook(lambda gradient: gradient / 2)
        if self.case == "evaluated":
            self.bn.eval()
        x = self.relu(self.bn(x))
        if self.case == "again":
            x = self.bn(x)
        x = x.mean((2, 3))
        if self.case == "clipped":
            self.fc.weight.data.clamp_(-0.1, 0.1)
        if self.case == "order":
            x = x.t().contiguous().t()
        x = self.fc(self.fc(x)) if self.case == "shared" else self.fc(x)
        x = self.counts(self.twice(self.norm(x)))
        return self.head(self.drop(x))


class Tokens(nn.Module):
    """What has no gradient, no place in NumPy, or several outputs, around one layer that is as others."""

    def __init__(self):
        super().__init__()
        self.flat, self.sparse, self.frozen = nn.Flatten(), nn.Embedding(9, 8, sparse=True), nn.Embedding(9, 8)
        self.short, self.pair, self.fc = (
            nn.Linear(8, 8).bfloat16(),
            nn.MaxPool1d(2, return_indices=True),
            nn.Linear(4, 4),
        )
        self.unused = nn.Linear(8, 8)
        self.frozen.weight.requires_grad_(False)

    def forward(self, x):
        ids = self.flat(x)[:, :3].abs().long() % 9
        self.unused(torch.ones(1, 8))
        x = (self.sparse(ids) + self.frozen(ids)).mean(1)
        x = self.short(x.bfloat16()).float()
        return self.fc(self.pair(x[:, None])[0][:, 0])


def kept(case):
    """Label -> the names of what differs from what the module computes alone."""
    torch.manual_seed(0)
    images = np.random.default_rng(0).standard_normal((4, 3, 6, 6)).astype(np.float32)
    net, ahead = Tokens() if case == "tokens" else let_copy(Net(case)), Ahead(SAMPLE, lambda path: path != "head")
    with tempfile.TemporaryDirectory() as folder:
        given = images, np.arange(4), lambda *_: {}
        record_step(Path(folder), net, nn.CrossEntropyLoss(), *given, ahead=ahead, image_gradient=case != "tokens")
        recording = Recording.open(Path(folder) / FOLDER)
        runner, found = Alone(recording, net, torch.float32), {}
        for label, results in ahead.found[TORCH32].items():
            with fixed(runner.model, Draws(1)):
                alone = {(stage, name): Kept.of(a, SAMPLE) for stage, name, a in runner.run(recording.calls[label])}
            assert [(stage, name) for stage, name, _ in results] == list(alone)
            found[label] = [name for stage, name, one in results if bits(one) != bits(alone[stage, name])]
    return found


def bits(kept):
    return kept.elements.tobytes(), kept.norm, kept.shape, kept.dtype


CASES = ("plain", "noise", "frozen", "hook", "weight", "again", "clipped", "evaluated", "order", "shared", "tokens")
print(json.dumps({case: kept(case) for case in CASES}))
