"""Small torch models, as their users write them; pair_nets_mindspore.py has each by hand, under other names."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride > 1:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)) + identity)


class Residual(nn.Module):
    """The ReLU and the pooling at its ends are functions in the other framework's net."""

    def __init__(self, classes: int = 7) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 2, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Block(8, 8, 1), Block(8, 8, 1))
        self.layer2 = nn.Sequential(Block(8, 16, 2))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(16, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.layer2(self.layer1(x))), 1))


class Branches(nn.Module):
    """Two branches of one shape, which the other framework's net runs in the other order."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Conv2d(3, 4, 3, padding=1)
        self.right = nn.Conv2d(3, 4, 3, padding=1)
        self.fc = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = self.left(x), self.right(x)
        return self.fc(torch.cat([left, right.tanh()], 1).mean((2, 3)))


class Tokens(nn.Module):
    """A transformer's parts on whole numbers: an embedding, a parameter of its own, attention by hand."""

    def __init__(self, words: int = 31, width: int = 12, length: int = 6, classes: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.position = nn.Parameter(torch.randn(1, length, width) * 0.1)
        self.norm = nn.LayerNorm(width)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.head = nn.Linear(width, classes)
        self.register_buffer("scale", torch.tensor(width**-0.5))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.embed(ids) + self.position)
        attention = torch.softmax(self.q(x) @ self.k(x).transpose(1, 2) * self.scale, -1)
        return self.head((x + attention @ self.v(x)).mean(1))


class TwoInputs(nn.Module):
    """Features over time (one-dimensional convolution, whose weight has another rank in MindSpore) and a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 3, padding=1)
        self.fc = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.conv(x)) * mask[:, None, :].to(x.dtype)
        return self.fc(y.mean(2))


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, stride=2)
        self.norm = nn.BatchNorm2d(6)
        self.fc = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(torch.tanh(self.norm(self.conv(x))).mean((2, 3)))


class Auxiliary(Small):
    """Returns two outputs, so that the recipe's loss cannot take it."""

    def __init__(self) -> None:
        super().__init__()
        self.aux = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> Any:
        y = torch.tanh(self.norm(self.conv(x))).mean((2, 3))
        return self.fc(y), self.aux(y)


def parts() -> dict[str, Any]:
    """A model with a loss over both its outputs, and an optimizer."""

    def loss(outputs: tuple[torch.Tensor, torch.Tensor], labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(outputs[0], labels) + 0.4 * F.cross_entropy(outputs[1], labels)

    return {"model": Auxiliary(), "loss": loss, "optimizer": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9)}


def stepped() -> dict[str, Any]:
    """A model with its whole training step; the optimizer is the recipe's."""

    def step(
        model: nn.Module, optimizer: torch.optim.Optimizer, images: torch.Tensor, labels: torch.Tensor
    ) -> dict[str, Any]:
        logits = model(images)
        loss = F.cross_entropy(logits, labels) + 1e-3 * model.fc.weight.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss, "logits": logits}

    return {"model": Small(), "step": step}


class Swapped(Tokens):
    """The same; in the other framework's net queries and keys go by each other's name."""


def norms() -> nn.Module:
    conv = [nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, bias=False)]
    return nn.Sequential(*conv, nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))


class Alike(nn.Module):
    """Two layers of one shape, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(3, 6)
        self.one = nn.Linear(6, 6, bias=False)
        self.two = nn.Linear(6, 6, bias=False)
        self.head = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.one(torch.tanh(self.stem(x.mean((2, 3))))))
        return self.head(torch.tanh(self.two(x)))


def grouped(rate: float = 0.02) -> dict[str, Any]:
    """An optimizer whose groups are made of the model's own layers, the other framework's last group first."""
    model = Alike()

    def optimizer(_: list[nn.Parameter]) -> torch.optim.Optimizer:
        rest = [*model.head.parameters(), model.one.weight]
        ours = [*model.stem.parameters(), model.two.weight]
        groups = [{"params": rest, "weight_decay": 0.0}, {"params": ours, "lr": rate}]
        return torch.optim.SGD(groups, 0.05, momentum=0.9, weight_decay=0.01)

    return {"model": model, "optimizer": optimizer}


misgrouped = grouped


def handed() -> dict[str, Any]:
    """The same optimizer, and a step of one's own."""

    def step(
        model: nn.Module, optimizer: torch.optim.Optimizer, images: torch.Tensor, labels: torch.Tensor
    ) -> dict[str, Any]:
        logits = model(images)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        optimizer.step()
        return {"loss": loss, "logits": logits}

    return {**grouped(), "step": step}


class NormAct(nn.BatchNorm2d):
    """A norm with its activation inside, as timm has them; two layers in the other framework."""

    def __init__(self, width: int, act: type[nn.Module] = nn.ReLU) -> None:
        super().__init__(width)
        self.drop, self.act = nn.Identity(), act()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.drop(super().forward(x)))


class Permute(nn.Module):
    def __init__(self, *order: int) -> None:
        super().__init__()
        self.order = order

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.permute(self.order)


class ChannelNorm(nn.LayerNorm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Gated(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.reduce, self.norm = nn.Conv2d(width, width, 3, padding=1, bias=False), NormAct(width)
        self.squeeze, self.gate = nn.Conv2d(width, width, 1), nn.Hardsigmoid()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.reduce(x))
        return x + y * self.gate(self.squeeze(y.mean((2, 3), keepdim=True)))


class Mixer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.fc, self.act = nn.LayerNorm(width), nn.Linear(width, width), nn.Hardswish()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.act(self.fc(self.norm(x)))


class Composed(nn.Module):
    """What is one module here is several there, or a function, and the reverse."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 3, 2, 1, bias=False), NormAct(8)
        self.stages = nn.Sequential(nn.Sequential(Gated(8), Gated(8)), nn.Sequential(nn.Conv2d(8, 12, 2, 2), Gated(12)))
        self.mix = nn.Sequential(Permute(0, 2, 3, 1), Mixer(12), Permute(0, 3, 1, 2))
        self.pool, self.last, self.flat = nn.AdaptiveAvgPool2d(1), ChannelNorm(12), nn.Flatten()
        self.fc = nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stages(self.norm(self.stem(x)))
        return self.fc(self.flat(self.last(self.pool(x + self.mix(x)))))


class Encoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width), nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm2, self.mlp = nn.LayerNorm(width), nn.Sequential(nn.Linear(width, 20), nn.Tanh(), nn.Linear(20, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Steps(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gru = nn.GRU(width, 9, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gru(x)[0]


class Fused(nn.Module):
    """The other net has the activations behind norms as functions, attention written out, and the GRU's steps in a
    loop; the mean of two heads is the logits."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 6, 4, 4, bias=False), NormAct(6)
        self.down, self.last = nn.Conv2d(6, 12, 2, 2, bias=False), NormAct(12, nn.SiLU)
        self.mix = nn.Conv2d(12, 12, 1)
        self.blocks = nn.Sequential(Encoder(12), Encoder(12))
        self.steps, self.norm = Steps(12), nn.LayerNorm(9)
        self.heads = nn.ModuleList([nn.Linear(9, 5), nn.Linear(9, 5)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.mix(self.last(self.down(self.bn(self.stem(x)))))
        x = self.norm(self.steps(self.blocks(x.flatten(2).transpose(1, 2))))
        return torch.stack([self.heads[0](x[:, -1]), self.heads[1](x.mean(1))]).mean(0)


class Mixing(nn.Module):
    """A layer that is the net's, too; and another of the same positions for every example."""

    def __init__(self, shared: nn.Module) -> None:
        super().__init__()
        self.own, self.shared, self.place = nn.Linear(8, 8), shared, nn.Linear(2, 8)
        self.register_buffer("places", torch.zeros(1, 16, 2), persistent=False)
        self.filled = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.filled:
            steps = torch.arange(16.0, dtype=x.dtype)
            self.places.copy_(torch.stack([steps // 4, steps % 4], -1)[None] / 4)
            self.filled = True
        return x + self.own(torch.tanh(self.shared(x))) + self.place(self.places.expand(len(x), -1, -1))


class Shared(nn.Module):
    """A layer that two blocks share, and a constant that the first pass fills, as timm's CoaT and ConViT have them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.mix = nn.Conv2d(3, 8, 8, 8), nn.Linear(8, 8)
        self.blocks = nn.ModuleList([Mixing(self.mix) for _ in range(2)])
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


class ChannelNorm2d(nn.LayerNorm):
    """Over the channels of images."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class ChannelsFirst(nn.Module):
    """Blocks of ConvNeXt's kind, whose layers behind the norm are convolutions of one point."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 4, 4)
        self.blocks = nn.ModuleList([nn.ModuleDict(self.parts()) for _ in range(2)])
        self.head = nn.Linear(6, 5)

    @staticmethod
    def parts() -> dict[str, nn.Module]:
        ends = {"fc1": nn.Conv2d(6, 10, 1), "act": nn.GELU(), "fc2": nn.Conv2d(10, 6, 1)}
        return {"dw": nn.Conv2d(6, 6, 3, 1, 1, groups=6), "norm": ChannelNorm2d(6), **ends}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = x + block["fc2"](block["act"](block["fc1"](block["norm"](block["dw"](x)))))
        return self.head(x.mean((2, 3)))


class Unset(nn.Module):
    """Tensors that nothing fills before weights are loaded, as whisper's positions; and one that is NaN on purpose."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 8, 8, 8), nn.Linear(8, 5)
        self.place, self.wide = nn.Parameter(torch.empty(1, 8, 1, 1)), nn.Parameter(torch.empty(8, 5).mul(2))
        self.register_buffer("least", torch.full((8,), float("nan")))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = (self.stem(x) + self.place).mean((2, 3))
        return self.head(torch.fmax(x, self.least)) + x @ self.wide


class Bare(nn.Module):
    """No layers, and two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(48, width) / 7) for width in (5, 4)])

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        x = x.unfold(2, 8, 8).unfold(3, 8, 8).mean((4, 5)).flatten(1)
        return x @ self.weights[0], {"more": torch.tanh(x @ self.weights[1])}


class Spare(Small):
    """Has a layer and a parameter with which it computes nothing, and gives its input no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.spare = nn.Conv2d(6, 6, 1)
        self.shift = nn.Parameter(torch.randn(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.detach().requires_grad_())
