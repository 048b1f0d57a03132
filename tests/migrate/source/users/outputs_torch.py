"""Small models as users write them: what goes into a forward and what comes out, and its control flow."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten


def vectors(width: int = 6) -> tuple[torch.Tensor]:
    torch.manual_seed(1)
    return (torch.randn(4, width),)


class KeywordNet(nn.Module):
    """Takes its inputs by name."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(6, 4)
        self.b = nn.Linear(3, 4)

    def forward(self, *, left: Tensor, right: Optional[Tensor] = None, scale: float = 1.0) -> Tensor:
        out = self.a(left)
        if right is not None:
            out = out + self.b(right)
        return out * scale


def keywords():
    torch.manual_seed(1)
    return KeywordNet(), {"left": torch.randn(2, 6), "right": torch.randn(2, 3)}


class TwoNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 4)
        self.b = nn.Linear(3, 4)

    def forward(self, x, y=None, return_both: bool = True) -> Tuple[Tensor, List[Tensor]]:
        one, two = self.a(x), self.b(y)
        return one + two, [one, two]


def several():
    torch.manual_seed(1)
    return TwoNet(), (torch.randn(2, 6), torch.randn(2, 3))


@dataclass
class Output:
    """What the net returns."""

    logits: Tensor
    hidden: Optional[Tensor] = None
    loss: Optional[Tensor] = None


class DataclassNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, x) -> Output:
        hidden = self.fc(x)
        return Output(logits=self.head(hidden), hidden=hidden)


def dataclass_output():
    return DataclassNet(), vectors()


class Outputs(NamedTuple):
    """In training there is a second one."""

    logits: Tensor
    aux: Optional[Tensor]


class NamedTupleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.aux = nn.Linear(6, 2)

    def forward(self, x):
        aux: Optional[Tensor] = None
        if self.training:
            aux = self.aux(x)
        x = self.fc(x)
        if self.training:
            return Outputs(x, aux)
        return x


def named_tuple_output():
    return NamedTupleNet(), vectors()


class Limits(NamedTuple):
    """Holds no tensor, and stays what it is."""

    low: float = -1.0
    high: float = 1.0


class FieldsNet(nn.Module):
    """Reads what nets inside give, by the names of its fields."""

    def __init__(self, limits: Limits = Limits()):
        super().__init__()
        self.inner = DataclassNet()
        self.named = NamedTupleNet()
        self.limits = limits

    def forward(self, x):
        inner = self.inner(x)
        named = Outputs(aux=x * 2, logits=inner.hidden)
        limits = self.limits
        return (inner.hidden + inner.logits.mean()).clamp(limits.low, limits.high) + named.logits * named.aux


def fields():
    return FieldsNet(), vectors()


class DictNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(OrderedDict([("one", nn.Linear(6, 6)), ("act", nn.Tanh()), ("two", nn.Linear(6, 6))]))
        self.heads = nn.ModuleDict({"cls": nn.Linear(6, 3), "box": nn.Linear(6, 4)})

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        result = OrderedDict()
        features: Dict[str, Tensor] = {}
        for name, module in self.body.named_children():
            x = module(x)
            features[name] = x
        for key in self.heads:
            result[key] = self.heads[key](x)
        result["features"] = features["act"]
        result.update({"sum": sum(features.values())})
        return result


def dict_output():
    return DictNet(), vectors()


class Pyramid(nn.Module):
    """Features of every level, as torchvision's detectors name them."""

    def __init__(self):
        super().__init__()
        self.levels = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        found = []
        for level in self.levels:
            x = level(x).tanh()
            found.append(x)
        first = dict([("first", found[0])])  # noqa: C406
        return OrderedDict([(str(i), v + first["first"]) for i, v in enumerate(found)])


def pyramid():
    return Pyramid(), vectors()


class NamedLevels(nn.Module):
    """Levels by name, of which the list grows; names given inside of expressions."""

    def __init__(self):
        super().__init__()
        self.levels = nn.ModuleList(nn.Linear(6, 6) for _ in range(2))

    def further(self, results, names, **kwargs):
        kwargs.pop("scale", None)
        names.extend(["p6", "p7"])
        results.extend([results[-1].tanh(), results[-1] * 2])
        return results, names

    def forward(self, x: Tensor, scale: Optional[float] = None):
        if (width := x.shape[1]) > 3 and (half := width // 2) > 1:
            x = x * half
        if not isinstance((factor := scale), float):
            factor = 2.0
        names = ["p4", "p5"]
        results = [level(x) for level in self.levels]
        results, names = self.further(results, names)
        found = {name: value * factor for name, value in zip(names, results)}
        total = (first := found["p4"]) + found["p7"]
        return found, total * first


def named_levels():
    return NamedLevels(), vectors()


class FlowNet(nn.Module):
    """Loops on numbers, and questions that Python answers."""

    def __init__(self, steps: int = 3, widths=(6, 6)) -> None:
        super().__init__()
        self.steps = steps
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths))
        self.skip = None
        assert steps > 0, f"{steps} steps are too few"

    def forward(self, x, state: Optional[Tensor] = None):
        if x.dim() != 2:
            raise ValueError(f"expected (batch, width), got {tuple(x.shape)}")
        state = torch.zeros_like(x) if state is None else state
        size = x.shape[-1]
        step = 0
        outs = []
        while step < self.steps and size > 1:
            layer = self.layers[min(step, len(self.layers) - 1)]
            state = torch.tanh(layer(x + state))
            if step % 2 == 0:
                outs.append(state)
            elif step == 5:
                continue
            step += 1
            size //= 2
        if self.skip is not None:
            state = state + self.skip(x)
        best = max(outs, key=lambda t: t.shape[0])
        total = sum([o.mean() for o in outs])
        return torch.stack(outs, 0).mean(0) * (2 if isinstance(x, Tensor) else 1) + best + total


def flow():
    return FlowNet(), vectors()


class DynamicNet(nn.Module):
    """Asks for a tensor's value."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        y = self.fc(x)
        if y.sum() > 0:
            y = y * 2
        else:
            y = y - 1
        n = int(y.abs().max().item()) + 1
        for _ in range(n):
            y = y * 0.5
        while y.norm() > 1:
            y = y * 0.5
        return y


def dynamic():
    return DynamicNet(), vectors()


class MissingNet(nn.Module):
    """Uses what MindSpore has nothing for."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        y = self.fc(x)
        z = torch.vander(x[0]).sum()
        return y + z


def missing():
    return MissingNet(), vectors()


class Leaves(nn.Module):
    """Changes the first of whatever a branch gives: one tensor, or several in dicts and tuples."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)

    def changed(self, tree):
        (leaf, *rest), spec = tree_flatten(tree)
        return tree_unflatten((self.first(leaf), *rest), spec)

    def forward(self, x: Tensor):
        found = self.changed({"b": (x, x + 1), "a": [x * 2]})
        return self.changed(x), found["b"][0], found["b"][1], found["a"][0]


def leaves():
    torch.manual_seed(1)
    return Leaves(), vectors()


def scaled(x: Tensor, factor: float) -> Tensor:
    return x * factor


class Given(nn.Module):
    """Calls a function that the class is given after it was made."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        return Given.scaled(self.first(x), 2.0)


Given.scaled = staticmethod(scaled)


def given_later():
    torch.manual_seed(1)
    return Given(), vectors()
