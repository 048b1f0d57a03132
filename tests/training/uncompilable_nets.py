"""Small nets, most of which MindSpore's graph mode does not compile, at the line that is marked `# here`.

GIVES has, for each class, words of what msmigrate says to write instead; None where it says only what MindSpore says.
What is not in it compiles.
"""

# ruff: noqa: C417, PTH123, SIM105, SIM108

from __future__ import annotations

import logging
import random
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from uncompilable_helper import guarded

GIVES: dict[str, str | None] = {}


def gives(write: str | None) -> Any:
    def note(kind: type) -> type:
        GIVES[kind.__name__] = write
        return kind

    return note


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 3)
        self.count, self.held = 0, [1, 2]

    def construct(self, x: Any) -> Any:
        return self.fc(x)


class Scaled(nn.Cell):
    """Keeps what it measures in one call for the next."""

    def construct(self, x: Any, back: bool) -> Any:
        if back:
            return x * self.size  # here
        self.size = ops.mean(x, 1, True)
        return x / self.size


@gives("what construct (line")
class KeptForTheNextCall(Net):
    def __init__(self) -> None:
        super().__init__()
        self.scaled = Scaled()

    def construct(self, x: Any) -> Any:
        return self.scaled(self.fc(self.scaled(x, False)), True)


@gives("no try and except")
class Try(Net):
    def construct(self, x: Any) -> Any:
        try:  # here
            x = self.fc(x)
        except ValueError:
            pass
        return x


@gives("no try and except")
class InAnotherFile(Net):
    def construct(self, x: Any) -> Any:
        return self.fc(guarded(x))


@gives("no try and except")
class OfAnotherCell(Net):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Try()

    def construct(self, x: Any) -> Any:
        return self.inner(x + 1)


@gives("leaves the graph")
class AsNumpy(Net):
    def construct(self, x: Any) -> Any:
        mean = np.mean(x.asnumpy())  # here
        return self.fc(x) * float(mean)


@gives("mindspore.ops or mindspore.mint, on tensors")
class NumpyFunction(Net):
    def construct(self, x: Any) -> Any:
        x = np.clip(x, 0, 1)  # here
        return self.fc(x)


@gives("no generators")
class Generator(Net):
    def parts(self, x: Any) -> Any:
        yield x  # here

    def construct(self, x: Any) -> Any:
        total = 0
        for part in self.parts(x):
            total = total + part
        return self.fc(total)


@gives("no sets")
class Sets(Net):
    def construct(self, x: Any) -> Any:
        sizes = {1, 2}  # here
        return self.fc(x) * len(sizes)


@gives("jit_class")
class With(Net):
    def construct(self, x: Any) -> Any:
        with open("/dev/null"):  # here
            return self.fc(x)


@gives("what a list grows to")
class ListByTensor(Net):
    def construct(self, x: Any) -> Any:
        parts, i = [], 0
        while x.sum() > i * 1000 and i < 3:
            parts.append(self.fc(x))
            i += 1
        return ops.stack(parts).sum(0)  # here


@gives("same kind of value")
class BranchesOfUnlikeKind(Net):
    def construct(self, x: Any) -> Any:
        x = self.fc(x)
        if x.sum() > 0:  # here
            y = x
        else:
            y = None
        return y


@gives("the same dtype")
class BranchesOfUnlikeDtype(Net):
    def construct(self, x: Any) -> Any:
        x = self.fc(x)
        if x.sum() > 0:  # here
            y = x.astype(ms.float16)
        else:
            y = x
        return y


@gives("a value for it before the `if`")
class OneBranch(Net):
    def construct(self, x: Any) -> Any:
        x = self.fc(x)
        if x.sum() > 0:
            y = x
        return y  # here


@gives("a plain attribute is a constant")
class Counter(Net):
    def construct(self, x: Any) -> Any:
        self.count += 1  # here
        return self.fc(x) * self.count


@gives("self.NAME = Parameter")
class NewParameter(Net):
    def construct(self, x: Any) -> Any:
        scale = Parameter(Tensor(np.ones(3, np.float32)), name="scale")  # here
        return self.fc(x) * scale


Two = namedtuple("Two", "a b")


@gives("constructor of a class")
class NamedTuple(Net):
    def construct(self, x: Any) -> Any:
        two = Two(self.fc(x), 2)  # here
        return two.a * two.b


@gives("ops.stop_gradient")
class Detach(Net):
    def construct(self, x: Any) -> Any:
        return self.fc(x.detach())  # here


@gives("list comprehension")
class Map(Net):
    def construct(self, x: Any) -> Any:
        parts = list(map(lambda k: k * x, [1, 2]))  # here
        return self.fc(parts[0] + parts[1])


@gives("end has to depend on Python values")
class Endless(Net):
    def again(self, x: Any) -> Any:
        return self.again(x + 1)  # here

    def construct(self, x: Any) -> Any:
        return self.again(self.fc(x))


@gives(None)
class Shapes(Net):
    def construct(self, x: Any) -> Any:
        return self.fc(x) + x  # here


@gives(None)
class Evaluated(Net):
    def construct(self, x: Any) -> Any:
        return eval("self.fc(x)")  # here


class Keywords(Net):
    def inner(self, x: Any, **more: Any) -> Any:
        return x * more["a"]

    def construct(self, x: Any) -> Any:
        return self.inner(self.fc(x), a=2.0)


class Printed(Net):
    def construct(self, x: Any) -> Any:
        print(f"mean {x.mean()}")
        logging.info("mean %s", x.mean())
        return self.fc(x)


class HeldList(Net):
    def construct(self, x: Any) -> Any:
        self.held[0] = x
        return self.fc(self.held[0])


class DynamicShape(Net):
    def construct(self, x: Any) -> Any:
        y = self.fc(x)
        return y + y[y > 0].sum()


class DictOfTensors(Net):
    def inner(self, given: Any) -> Any:
        return given["x"] if isinstance(given, dict) else given

    def construct(self, x: Any) -> Any:
        return self.fc(self.inner({"x": x * random.random()}))


@dataclass
class Config:
    width: float = 2.0


class OfAClass(Net):
    def __init__(self) -> None:
        super().__init__()
        self.config = Config()

    def construct(self, x: Any) -> Any:
        return self.fc(x) * self.config.width
