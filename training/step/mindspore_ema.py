"""The exponential moving average of a MindSpore net's weights and buffers."""

from __future__ import annotations

from typing import Any

from mindspore import Parameter, ParameterTuple, Tensor, nn, ops
from mindspore import dtype as mstype

from ..models.mindspore_parameter_names import Canonical
from ..recipe.schema import Ema, decay

_towards = ops.MultitypeFuncGraph("msmigrate_ema_towards")


@_towards.register("Tensor", "Tensor", "Tensor")
def _towards_one(weight: Any, average: Any, value: Any) -> bool:
    """Move one average towards its value: torch's lerp.

    decay·average + (1 - decay)·value, the other way to write it, has a bias: the float32 decay and 1 - decay do not
    add up to one, and with a decay of 0.9998 that error is multiplied by 5000.
    """
    ops.assign(average, average + weight * (value - average))
    return True


class MovingAverage(nn.Cell):
    """Averages of the given parameters, which start as copies of them; calling it takes one update, also under jit.

    Call `prepare(update)` before each update: under warm-up the decay depends on it.
    """

    def __init__(self, ema: Ema, held: list[Canonical]) -> None:
        super().__init__(auto_prefix=False)
        self._rule = ema
        self.names = tuple(each.name for each in held)
        self.values = ParameterTuple([each.parameter for each in held])
        self.averages = ParameterTuple(
            [Parameter(Tensor(each.parameter.asnumpy()), name=f"ema.{each.name}", requires_grad=False) for each in held]
        )
        self._weight = 1.0 - decay(ema, 1)
        self.weight = Parameter(Tensor(self._weight, mstype.float32), name="ema_weight", requires_grad=False)
        self.map_ = ops.HyperMap()

    def prepare(self, update: int) -> None:
        """Settle how much the given update (from 1) takes of the values; written only where it changes."""
        weight = 1.0 - decay(self._rule, update)
        if weight != self._weight:
            self.weight.copy_(Tensor(weight, mstype.float32))  # set_data is not seen by a compiled graph
            self._weight = weight

    def construct(self) -> bool:
        """Take one update."""
        self.map_(ops.partial(_towards, self.weight), self.averages, self.values)
        return True

    def tensors(self) -> dict[str, Parameter]:
        """State_dict name -> the average."""
        return dict(zip(self.names, self.averages, strict=True))
