"""Models that somebody's function made, and then changed: other heads, layers put in place, frozen parts."""

from __future__ import annotations

import argparse
from collections import defaultdict
from functools import partial

import torch
from torch import nn


def images() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(1)
    return (torch.randn(2, 3, 6, 6),)


class Features(nn.Module):
    """A backbone with a head."""

    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.body = nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU(), nn.Conv2d(4, 4, 1))
        self.parts = nn.ModuleDict({"gate": nn.Conv2d(4, 4, 1)})
        self.rate = 0.5
        self.unknown = float("nan")  # which equals nothing, and was set by nobody
        self.head = nn.Linear(4, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(self.norm(self.stem(x))) * self.rate
        x = x * torch.sigmoid(self.parts["gate"](x))
        return self.head(x.mean((2, 3)))


def other_head():
    net = Features(7)
    net.head = nn.Sequential(nn.Dropout(0.0), nn.Linear(net.head.in_features, 2))
    net.body[2] = nn.Conv2d(4, 4, 3, padding=1)
    net.body.append(nn.Tanh())
    net.parts["gate"] = nn.Conv2d(4, 4, 3, padding=1, bias=False)
    return net, images()


class Wrapped(nn.Module):
    """A backbone of another's, with a head of its own."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.fc = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.backbone(x))


def frozen():
    backbone = Features()
    for parameter in backbone.parameters():
        parameter.requires_grad = False
    backbone.body.requires_grad_(True)
    backbone.head = nn.Identity()
    net = Wrapped(backbone)
    net.backbone.norm.weight.requires_grad = True
    net.fc.bias.requires_grad = False
    return net, images()


def extended():
    blocks = nn.Sequential(nn.Conv2d(3, 4, 3))
    blocks.add_module("act", nn.ReLU())
    blocks.append(nn.Flatten())
    blocks.add_module("fc", nn.Linear(64, 2))
    blocks.act = nn.Tanh()
    return blocks, images()


def set_otherwise():
    net = Features()
    net.norm.eps = 1e-2
    net.body[0].padding = (2, 2)
    net.body[0].stride = (2, 2)
    return net, images()


def set_and_frozen():
    net = Features()
    net.norm.eps = 1e-2
    net.norm.bias.requires_grad = False
    return net, images()


def numbers():
    net = Features()
    net.rate = 0.25
    return net, images()


def removed():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten())
    del net[1]
    return net, images()


class Measured(nn.Module):
    """Runs its backbone once to learn how wide the features are, as timm's hybrids do."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.0))
        training = self.backbone.training
        if training:
            self.backbone.eval()
        width = self.backbone(torch.zeros(1, 3, 6, 6)).shape[1]
        self.backbone.train(training)
        self.fc = nn.Linear(width, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.backbone(x).mean((2, 3)))


def measured_modes():
    return Measured(), images()


class Tokens(nn.Module):
    """What tells tokens from vectors, and vectors from tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.head = nn.Linear(4, 9)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.embed(ids)))


def tied_later():
    model = Tokens()
    model.head.weight = model.embed.weight
    return model, (torch.tensor([[1, 2, 5], [0, 8, 3]]),)


def init_head(module):
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        module.bias.data.fill_(0.01)


def draw_convolutions(model, std=0.1):
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.normal_(module.weight, std=std)


def mean_of(part: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return part(x).mean((2, 3))


def called_otherwise():
    model = Features()
    model.forward = partial(mean_of, model.body)
    return model, (torch.randn(2, 4, 8, 8),)


def drawn_by_a_function():
    model = Features()
    draw_convolutions(model, 0.3)
    model.head = nn.Linear(4, 2)
    model.head.apply(init_head)
    return model, images()


def drawn_by_a_lambda():
    model = Features()
    model.apply(lambda module: init_head(module))
    return model, images()


class Classifier(nn.Module):
    """Draws anew what it is given, as torchvision's VGG does."""

    def __init__(self, features: nn.Module) -> None:
        super().__init__()
        self.features = features
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.normal_(module.weight, std=0.3)
                module.bias.data.zero_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.features(x).mean((2, 3))


def layers(width: int = 4) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, width, 3), nn.MaxPool2d(2), nn.Conv2d(width, 4, 1))


def taken_out():
    features = Classifier(layers(5)).features
    features[1].ceil_mode = True
    pool = nn.MaxPool2d(2)
    pool.stride = 1
    return Wrapped(nn.Sequential(features[0], features[1], pool, *features[2:], nn.Flatten())), images()


MADE = defaultdict(lambda: 0)


class Words:
    """A vocabulary, which is empty when it is made."""

    def __init__(self):
        self.words, self.counts, self.places = [], [], {}
        self.pad = self.add("<pad>")

    def add(self, word, n=1):
        if word in self.places:
            self.counts[self.places[word]] += n
        else:
            self.places[word] = len(self.words)
            self.words.append(word)
            self.counts.append(n)
        return self.places[word]

    def __len__(self):
        return len(self.words)


class Table(nn.Module):
    def __init__(self, args, words):
        super().__init__()
        self.table = nn.Embedding(len(words), args.width, padding_idx=words.pad)
        self.rate = args.rate
        MADE[type(self).__name__] += 1

    def forward(self, tokens):
        return self.table(tokens) * self.rate * (1 if MADE["Table"] else 2)


class TwoTables(nn.Module):
    def __init__(self, args, one, two):
        super().__init__()
        self.one, self.two = one, two
        self.fc = nn.Linear(args.width, 3)

    @classmethod
    def build(cls, args, words):
        defaults(args)
        return cls(args, Table(args, words), Table(args, words))

    def forward(self, tokens):
        return self.fc(self.one(tokens) + self.two(tokens))


def defaults(args):
    args.width = getattr(args, "width", 4)
    args.rate = args.rate * 2


def tokens():
    return (torch.tensor([[1, 4, 5, 0], [2, 3, 1, 0]]),)


def filled_later():
    args, words = argparse.Namespace(rate=0.5), Words()
    for word in "abcde":
        words.add(word)
    return TwoTables.build(args, words), tokens()


def changed_between():
    args, words = argparse.Namespace(rate=0.5, width=4), Words()
    for word in "abcde":
        words.add(word)
    one = Table(args, words)
    args.rate = 2.0
    return TwoTables(args, one, Table(args, words)), tokens()


def cut(x, share=0.5):
    return x * (x > share)


class Hooked(nn.Module):
    """Does more where somebody gave it functions and numbers after it was made."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act, self.after = torch.relu, None
        self.rates, self.by_name = [1.0, 2.0], {"a": 1.0}

    def forward(self, x):
        x = self.act(self.fc(x)) * self.rates[0] * self.by_name["a"]
        if self.after is not None:
            x = self.after(x)
        if hasattr(self, "probe"):
            x = self.probe(x)
        for factor in getattr(self, "factors", ()):
            x = x * factor
        return x


def hooked():
    net = Hooked()
    net.act, net.after, net.probe = torch.tanh, cut, partial(cut, share=0.1)
    net.factors, net.rates = [2.0, 3.0], [1.5, 2.0]
    net.by_name["a"] = 0.5
    net.trained_by = torch.optim.SGD(net.parameters(), 0.1)  # which it does not read
    return net, (torch.randn(2, 4),)


def hooked_by_lambda():
    net = Hooked()
    net.probe = lambda x: x * 2
    return net, (torch.randn(2, 4),)


class Options:
    """Hands itself on before it is made."""

    def __init__(self, given):
        self.held, self.sizes = {}, []
        note(self, given)


def note(options, given):
    options.held.update(given)
    options.sizes += given.values()


class ByOptions(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.fc = nn.Linear(options.held["width"], options.sizes[-1])

    def forward(self, x):
        return self.fc(x)


def by_options():
    options = Options({"width": 4})
    options.sizes.append(3)
    return ByOptions(options), (torch.randn(2, 4),)


class Once(Hooked):
    """Cannot be made a second time."""

    made = []

    def __init__(self, config):
        super().__init__()
        self.made.append(config.share)
        assert len(self.made) < 2, "one is enough"
        self.share = config.share

    def forward(self, x):
        return super().forward(x) * self.share


def hooked_once():
    Once.made.clear()
    net = Once(argparse.Namespace(share=0.5))
    net.probe, net.share = partial(cut, share=0.1), 0.25
    return net, (torch.randn(2, 4),)


def with_drawn_weights(width=6, gain=0.5):
    """Draws the weights of a net that it has made, in its own body."""
    net = Drawn(width)
    for name, p in net.named_parameters():
        if p.dim() > 1:
            nn.init.orthogonal_(p, gain=gain)
        elif name.startswith("last"):
            nn.init.constant_(p, 0.1)
    return net


class Drawn(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.last = nn.Linear(4, width), nn.Linear(width, 3)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


def drawn_by_statements():
    return with_drawn_weights(8), (torch.randn(2, 4),)


def drawn_here():
    net = Drawn(5)
    net.first.weight.data.normal_(0, 0.02)
    return net, (torch.randn(2, 4),)
