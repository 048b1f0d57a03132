"""Mixed precision, the loss scale, and the look at gradients that it begins with; what a net returns, in float32."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import mindspore
from mindspore import Parameter, Tensor, nn, ops
from mindspore import dtype as mstype

from ...errors import Unsupported
from ...mappings import table
from ..recipe.schema import Amp, Recipe
from .parameter_groups import is_norm

HALVES = {"float16": mstype.float16, "bfloat16": mstype.bfloat16}
# torch.autocast's layers: convolutions and matrix products
FLOATING = (mstype.float16, mstype.bfloat16, mstype.float32, mstype.float64)
PRODUCTS = (
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.Conv1dTranspose,
    nn.Conv2dTranspose,
    nn.Conv3dTranspose,
    nn.Dense,
)
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)

_map = ops.HyperMap()
_nothing_times = ops.MultitypeFuncGraph("msmigrate_nothing_times")


@_nothing_times.register("Tensor")
def _nothing_times_one(grad: Any) -> Any:
    rows = grad.reshape(1, -1) if grad.ndim < 2 else grad.reshape(grad.shape[0], -1)
    return ops.matmul(rows, ops.zeros((rows.shape[1], 1), rows.dtype)).reshape(-1)


def finite_check() -> Callable[[Any], Any]:
    """The function that tells whether a tuple of gradients, of any shapes, is all finite; also under jit.

    A device has a kernel for that, `mindspore.amp.all_finite`. The CPU's takes 0.2 s for the 11 million gradients of
    ResNet-18, five times as long as multiplying them by zeros (`benchmarks/finite_look.py`).
    """
    return all_times_zero if mindspore.get_context("device_target") == "CPU" else mindspore.amp.all_finite


def all_times_zero(grads: Any) -> Any:
    """Whether the tensors times zero are all zero: any finite number is, however large; infinity and NaN give NaN."""
    return ops.equal(ops.sum(ops.cat(_map(_nothing_times, grads))), 0.0)


class Precision:
    """Within `with precision:` the net computes as the recipe's `amp` says, outside in float32, evaluation included.

    The parameters stay float32; a layer rounds its own before use, and their gradients arrive rounded and as float32.
    The output of a half-precision layer is in half precision, and so is everything computed from it, up to the loss:

    O1: convolutions and linear layers round their inputs and weights, as under torch.autocast. O2: every layer with
    weights but the norms does, and the images are rounded first. O3: the norms too round scale and shift. A norm takes
    and returns half precision at every level, with statistics in float32 in between.

    Raises Unsupported for bfloat16 on the CPU, where MindSpore has no bfloat16 kernels, for spectral_norm, and at O3
    for a norm that is no BatchNorm.
    """

    def __init__(self, amp: Amp | None, net: nn.Cell) -> None:
        self.active = amp is not None and amp.level != "O0"
        self.dtype = mstype.float32
        self.images = self.dtype  # what the images are cast to before the net
        self._half: list[nn.Cell] = []
        self._norms: list[nn.Cell] = []
        if amp is None or not self.active:
            return
        self.dtype = HALVES[amp.dtype]
        if amp.dtype == "bfloat16" and mindspore.get_context("device_target") == "CPU":
            raise Unsupported("amp.dtype: MindSpore's CPU has no bfloat16 kernels; take float16, or another target")
        if amp.level != "O1":
            self.images = self.dtype
        norms = norm_classes()
        for name, cell in net.cells_and_names():
            if any(kind.__name__ == "SpectralNorm" for kind in type(cell).mro()):
                raise Unsupported(
                    f"amp: {name} has spectral_norm, whose vectors torch.autocast finds in half precision, and this "
                    "step would in float32; leave amp out, in torch too"
                )
            if any(kind.__name__ in norms for kind in type(cell).mro()):
                if amp.level == "O3" and getattr(cell, "gamma", cell) is not None:  # one without weights rounds none
                    self._norms.append(_refuse_unless_batch_norm(name, cell))
            elif isinstance(cell, PRODUCTS) or (amp.level != "O1" and _has_weights(cell)):
                self._half.append(cell)

    def __enter__(self) -> None:
        """Switch the layers to half precision; 20 us each, and nothing is compiled again."""
        for cell in self._half:
            cell.to_float(self.dtype)
        construct = _half_batch_norm if self.dtype == mstype.float16 else _bfloat16_batch_norm
        for norm in self._norms:
            norm.construct = types.MethodType(construct, norm)

    def __exit__(self, *_: object) -> None:
        """Switch them back."""
        for cell in self._half:
            cell.to_float(mstype.float32)
        for norm in self._norms:
            norm.construct = types.MethodType(type(norm).construct, norm)


def norm_classes() -> set[str]:
    """The names of MindSpore's normalisation classes that the mapping table knows."""
    rows = [row for row in table.rows("layer") if row.mindspore and is_norm(row.torch.rsplit(".", 1)[-1])]
    return {row.mindspore.rsplit(".", 1)[-1] for row in rows if row.mindspore}


def _has_weights(cell: nn.Cell) -> bool:
    return any(True for _ in cell.parameters_and_names(expand=False)) and not cell.cells()


def _refuse_unless_batch_norm(name: str, cell: nn.Cell) -> nn.Cell:
    if isinstance(cell, BATCH_NORMS):
        return cell
    raise Unsupported(f"amp.level O3: {name} is a {type(cell).__name__}, which O3 does not round here; take O2")


def _half_batch_norm(self: Any, x: Any) -> Any:
    """A BatchNorm's construct in training with scale and shift rounded: `to_float` does not round these two."""
    gamma = ops.cast(ops.cast(self.gamma, mstype.float16), mstype.float32)
    beta = ops.cast(ops.cast(self.beta, mstype.float16), mstype.float32)
    return self.bn_train(x, gamma, beta, self.moving_mean, self.moving_variance)[0]


def _bfloat16_batch_norm(self: Any, x: Any) -> Any:
    """As _half_batch_norm."""
    gamma = ops.cast(ops.cast(self.gamma, mstype.bfloat16), mstype.float32)
    beta = ops.cast(ops.cast(self.beta, mstype.bfloat16), mstype.float32)
    return self.bn_train(x, gamma, beta, self.moving_mean, self.moving_variance)[0]


def in_float32(output: Any) -> Any:
    """A net's output, of any structure, with its tensors of half precision in float32, as torch's loss gets them; also
    under jit."""
    if isinstance(output, Tensor):
        return ops.cast(output, mstype.float32) if output.dtype in (mstype.float16, mstype.bfloat16) else output
    if isinstance(output, tuple):
        return tuple([in_float32(each) for each in output])
    if isinstance(output, list):
        return [in_float32(each) for each in output]
    if isinstance(output, dict):
        return {key: in_float32(each) for key, each in output.items()}
    return output


def first_tensor(output: Any) -> Any:
    """The first floating tensor of a nest of tuples, lists and dicts, or the first one, in float32; also under jit."""
    tensors = _tensors(output)
    for each in tensors:
        if each.dtype in FLOATING:
            return ops.cast(each, mstype.float32)
    return ops.cast(tensors[0], mstype.float32)


def _tensors(output: Any) -> Any:
    if isinstance(output, Tensor):
        return (output,)
    if isinstance(output, dict):
        output = list(output.values())
    found = ()
    if isinstance(output, (tuple, list)):
        for each in output:
            found = found + _tensors(each)
    return found


class LossScale(nn.Cell):
    """The scale and GradScaler's growth tracker, as parameters, so that a compiled step reads and writes them.

    Calling it with whether the gradients were finite (a bool scalar) is GradScaler's `update()`: shrink at once after
    an overflow, grow after growth_interval good steps in a row, and not beyond float32. A static scale never changes.
    The new scale is a float32 product, where torch rounds a float64 one: equal for factors that float32 can hold, such
    as 2 and 0.5, and within one unit in the last place otherwise.
    """

    def __init__(self, scale: float, growth: float, backoff: float, interval: int) -> None:
        super().__init__(auto_prefix=False)
        self.scale = Parameter(Tensor(scale, mstype.float32), name="loss_scale", requires_grad=False)
        self.growth_tracker = Parameter(Tensor(0, mstype.int32), name="growth_tracker", requires_grad=False)
        self.dynamic = interval > 0
        self.growth, self.backoff, self.interval = growth, backoff, interval

    @classmethod
    def of(cls, recipe: Recipe) -> LossScale | None:
        """The recipe's loss scale, or None where it has none."""
        rule = recipe.dynamic_loss_scale
        if rule is not None:
            return cls(rule.init_scale, rule.growth_factor, rule.backoff_factor, rule.growth_interval)
        return cls(recipe.loss_scale, 1.0, 1.0, 0) if recipe.loss_scale is not None else None

    def construct(self, finite: Any) -> bool:
        """See the class."""
        if self.dynamic:
            good = self.growth_tracker + 1
            full = good >= self.interval
            grown = self.scale * self.growth
            grown = ops.where(ops.isfinite(grown), grown, self.scale)
            kept = ops.where(full, grown, self.scale)
            count = ops.where(ops.logical_and(finite, ops.logical_not(full)), good, ops.zeros_like(good))
            ops.assign(self.scale, ops.where(finite, kept, self.scale * self.backoff))
            ops.assign(self.growth_tracker, ops.cast(count, mstype.int32))
        return True
