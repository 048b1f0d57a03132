"""The MindSpore lines of the fault pages, wrong and right, run; see example_runner.py."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import example_runner
import mindspore
import msmigrate.nn.functional
import msmigrate.optim
import msmigrate.optim.lr_scheduler
import numpy as np
from example_runner import numbers
from mindspore import Parameter, Tensor, dataset, nn, ops
from mindspore.amp import FixedLossScaleManager
from mindspore.common import initializer as initializers
from mindspore.dataset import vision
from mindspore.experimental.optim import Optimizer
from mindspore.nn.learning_rate_schedule import LearningRateSchedule
from msmigrate.training.data import pil_transforms, random_draws
from PIL import Image


class Net(nn.Cell):
    """Layers under the given names; all but `unused` run one after the other."""

    def __init__(self, **layers: nn.Cell) -> None:
        super().__init__()
        for name, layer in layers.items():
            self.insert_child_to_cell(name, layer)
        self.update_parameters_name()

    def construct(self, x: Any) -> Any:
        for name, layer in self.name_cells().items():
            x = x if name == "unused" else layer(x)
        return x


class Head(nn.Cell):
    """A layer and a norm in a method that mixed precision can rewrite."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 10)
        self.norm = nn.LayerNorm((10,), epsilon=1e-5)

    def construct(self, x: Any) -> Any:
        return self.norm(self.fc(x))


def tensor(values: Any, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.array(values, np.int32 if dtype == np.int64 else dtype))


def filled(net: nn.Cell) -> nn.Cell:
    """The net with `numbers` in every parameter that trains."""
    for weight in net.trainable_params():
        weight.set_data(tensor(numbers(*weight.shape)))
    return net


def ran(net: nn.Cell, *inputs: Any) -> Any:
    """What a filled net makes of its inputs in training, and its buffers."""
    output = filled(net).set_train()(*inputs)
    return [output, *buffers] if (buffers := net.untrainable_params()) else output


def gradients(function: Callable[..., Any], weights: Any, *inputs: Any) -> list[Any]:
    return list(mindspore.value_and_grad(function, None, weights)(*inputs)[1])


def slopes(function: Callable[..., Any], x: Tensor) -> Any:
    """The gradient of the sum of a line's value by its x."""
    return mindspore.grad(lambda x: function(x=x).sum())(x)


def learned(optimizer: Any, loss: Callable[..., Any], *inputs: Any) -> None:
    """One step."""
    optimizer(mindspore.value_and_grad(loss, None, optimizer.parameters)(*inputs)[1])


def stepped(optimizer: Any, size: float = 1.0, times: int = 2) -> list[Any]:
    """The parameters after some steps with gradients of this size."""
    for _ in range(times):
        optimizer(tuple(tensor(numbers(*weight.shape) * size) for weight in optimizer.parameters))
    return list(optimizer.parameters)


def rates_of(schedule: Any, times: int = 8) -> list[float]:
    """The rates of the first steps: of a schedule, or of an optimizer without one."""
    found = []
    for step in range(times):
        if isinstance(schedule, LearningRateSchedule):
            found.append(schedule(Tensor(step, mindspore.int32)))
        elif isinstance(schedule, Optimizer):
            found.append(schedule.param_groups[0]["lr"])
        else:
            found += schedule.get_last_lr()
            schedule.step()
    return [float(rate) for rate in found]


def method_net(method: Callable[..., Any], **layers: nn.Cell) -> Any:
    """A net with a method of a line: what runs, or what `Scaling` calls."""
    base = Net if method.__name__ == "construct" else Scaling
    return type("MethodNet", (base,), {method.__name__: method})(**layers)


class Scaling(Net):
    """A net that runs its method `scale`."""

    def construct(self, x: Any) -> Any:
        return self.scale(x)


def compiled_value(method: Callable[..., Any], x: Tensor) -> Any:
    net = method_net(method, fc=nn.Dense(4, 10))
    filled(net)

    @mindspore.jit
    def forward(x: Tensor) -> Any:
        return net(x)

    return forward(x)


def itself(output: Any) -> Any:
    return output


def by_field(output: Any) -> Any:
    return output.logits


def by_key(output: Any) -> Any:
    return output["logits"]


def compiled_gradients(method: Callable[..., Any], x: Tensor, part: Callable[[Any], Any] = itself) -> list[Any]:
    """The gradients of three compiled runs."""
    net = method_net(method, fc=nn.Dense(4, 10))
    filled(net)

    def forward(x: Tensor) -> Any:
        return (part(net(x)) ** 2).sum()

    step = mindspore.jit(mindspore.value_and_grad(forward, None, net.trainable_params()))
    return [list(step(x)[1]) for _ in range(3)]


def kind(value: Any) -> str:
    return str(value.dtype).lower()


def spread(value: Any) -> float:
    return float((value.init_data() if value.has_init else value).asnumpy().std())


BASE = {
    "__name__": __name__,
    "mindspore": mindspore,
    "msmigrate": msmigrate,
    "nn": nn,
    "ops": ops,
    "math": math,
    "Tensor": Tensor,
    "Parameter": Parameter,
    "dataset": dataset,
    "vision": vision,
    "Inter": vision.Inter,
    "initializer": initializers.initializer,
    **{name: getattr(initializers, name) for name in ("Normal", "HeUniform", "HeNormal", "TruncatedNormal")},
    "FixedLossScaleManager": FixedLossScaleManager,
    "pil_transforms": pil_transforms,
    "draws": random_draws,
    "subprocess": subprocess,
    **{
        function.__name__: function
        for function in (
            Net, Head, tensor, filled, ran, gradients, slopes, learned, stepped, rates_of, kind, spread, compiled_value,
            compiled_gradients, by_field, by_key
        )
    },
}  # fmt: skip


def usual_show(result: Any) -> str:
    """How a line of this result is looked at, where the fault's data do not say it."""
    if isinstance(result, nn.loss.loss.LossBase):
        return "result(logits, labels)"
    if isinstance(result, nn.Optimizer | Optimizer):
        return "stepped(result)"
    if isinstance(result, LearningRateSchedule | msmigrate.optim.lr_scheduler.Schedule):
        return "rates_of(result)"
    return "ran(result, x)" if isinstance(result, nn.Cell) else "result"


def plain(value: Any) -> Any:
    """Lists and numbers."""
    if isinstance(value, Tensor):
        return (value if value.dtype != mindspore.bfloat16 else value.astype(mindspore.float32)).asnumpy().tolist()
    if isinstance(value, np.ndarray | np.generic | Image.Image):
        return np.asarray(value).tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str) else None


if __name__ == "__main__":
    example_runner.main(sys.argv[1], BASE, usual_show, plain)
