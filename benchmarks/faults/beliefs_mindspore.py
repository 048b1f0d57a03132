"""The MindSpore twin of beliefs_torch.py, written literally: each operation is the one of the same name."""

from __future__ import annotations

from collections.abc import Callable

import mindspore
import numpy as np
from layers_mindspore import conv, norm
from mindspore import Tensor, nn, ops
from mindspore.common.initializer import HeNormal, TruncatedNormal, XavierNormal

INT, FLOAT = mindspore.int64, mindspore.float32


def ties(x: Tensor) -> Tensor:
    """See beliefs_torch.ties."""
    fixed = ops.stop_gradient(x)
    return x - fixed + ops.round(2.0 * fixed) / 2.0


def whole(x: Tensor) -> Tensor:
    """See beliefs_torch.whole."""
    return ops.round(4.0 * ops.stop_gradient(x)).clamp(-9.0, 9.0).astype(INT)


def _grid(x: Tensor) -> Tensor:
    line = np.linspace(-1.2, 1.2, 8, dtype=np.float32)
    rows, columns = np.meshgrid(line, line, indexing="ij")
    grid = np.stack((columns, rows), -1)
    return Tensor(np.broadcast_to(grid, (x.shape[0], 8, 8, 2)).copy())


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "adaptive_avgpool2d_uneven": lambda x: ops.adaptive_avg_pool2d(x, (3, 5)),
    "hardsigmoid_hardswish": lambda x: ops.hardsigmoid(x) + ops.hardswish(x),
    "grad_relu_at_zero": lambda x: ops.relu(ties(x)),
    "grad_abs_at_zero": lambda x: ops.abs(ties(x)),
    "grad_elu_at_zero": lambda x: ops.elu(ties(x)),
    "grad_maximum_tie": lambda x: ops.maximum(ties(x), ties(ops.flip(x, (3,)))),
    "grad_reduce_max_tie": lambda x: ops.amax(ties(x), 3),
    "grad_max_dim_tie": lambda x: ops.max(ties(x), 3)[0],
    "grad_maxpool_tie": lambda x: nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)(ties(x)),
    "g_maxpool_tie_pad_mode": lambda x: nn.MaxPool2d(2, 2)(ties(x)),
    "g_sqrt0": lambda x: ops.sqrt(ops.relu(x) + 0.25),
    "g_l1_at_zero": lambda x: ops.l1_loss(ties(x), ops.zeros_like(x), reduction="none"),
    "g_smooth_l1_beta": lambda x: ops.smooth_l1_loss(ties(x), ops.zeros_like(x), reduction="none", beta=0.5),
    "g_huber_delta": lambda x: ops.huber_loss(ties(x), ops.zeros_like(x), reduction="none", delta=0.5),
    "g_prod_zero": lambda x: ops.prod(ties(x)[:, :, :, :3], 3),
    "g_where_nan": lambda x: ops.where(x > 0, x, ops.zeros_like(x)),
    "topk_ties": lambda x: ops.topk(ties(x), 3, 3)[0],
    "ops_div_int": lambda x: ops.div(whole(x), 4) + 0.0 * x,
    "primitive_div_int": lambda x: ops.Div()(whole(x), ops.abs(whole(x)) + 1) + 0.0 * x,
    "int_true_division": lambda x: whole(x) / 4 + 0.0 * x,
    "floor_div_negative": lambda x: (whole(x) // 4).astype(FLOAT) + 0.0 * x,
    "mod_negative_float": lambda x: ops.remainder(whole(x).astype(FLOAT), 2.5) + 0.0 * x,
    "round_half": lambda x: ops.round(whole(x).astype(FLOAT) / 2.0) + 0.0 * x,
    "median_even": lambda x: ops.median(x, 3)[0],
    "tensor_transpose_two_args": lambda x: x.transpose(2, 3),
    "half_plus_float_dtype": lambda x: ties(x).astype(mindspore.float16) + x,
    "int_times_float_scalar_dtype": lambda x: whole(x) * 0.5 + 0.0 * x,
    "one_hot_dtype": lambda x: (
        ops.one_hot(whole(x)[:, 0] + 9, 19, Tensor(1.0), Tensor(0.0)) + 0.0 * x[:, 0, :, :, None]
    ),
    "interp_bilinear_size": lambda x: ops.interpolate(x, size=(11, 13), mode="bilinear", align_corners=False),
    "interp_bilinear_align_corners": lambda x: ops.interpolate(x, size=(11, 13), mode="bilinear", align_corners=True),
    "interp_nearest_size": lambda x: ops.interpolate(x, size=(11, 13), mode="nearest"),
    "interp_area_size": lambda x: ops.interpolate(x, size=(3, 5), mode="area"),
    "grid_sample_default": lambda x: ops.grid_sample(x, _grid(x), align_corners=False),
    "pad_functional_order": lambda x: ops.pad(x, (1, 2, 3, 0)),
    "pad_circular": lambda x: ops.pad(x, (1, 1, 1, 1), mode="circular"),
    "pixel_shuffle": lambda x: ops.pixel_shuffle(x, 2),
    "unfold": lambda x: ops.unfold(x, 3, padding=1),
}


class TransformerEncoderLayer(nn.TransformerEncoderLayer):
    """MindSpore's own, with torch's names for its two linear layers."""

    def __init__(self, *args: int, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        for i in (1, 2):
            self._cells[f"linear{i}"] = self._cells.pop(f"dense{i}")

    @property
    def dense1(self) -> nn.Cell:
        return self.linear1

    @property
    def dense2(self) -> nn.Cell:
        return self.linear2


class Belief(nn.Cell):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.function = FUNCTIONS[name]

    def construct(self, x: Tensor) -> Tensor:
        return self.function(x)


class Beliefs(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.stem = conv(3, 8, 3, 4, 1, has_bias=False)
        self.bn = norm(8)
        for name in FUNCTIONS:
            self.insert_child_to_cell(name, Belief(name))
        self.g_prelu = nn.PReLU(8)
        self.conv_same_even_kernel = nn.Conv2d(8, 8, 2, pad_mode="same", has_bias=True)
        self.he_fan_out_depthwise = conv(8, 8, 3, 1, 1, group=8, weight_init=HeNormal(0.0, "fan_out", "relu"))
        self.xavier_conv = conv(8, 16, 3, 1, 1, weight_init=XavierNormal(1.0))
        self.trunc_normal_tight = nn.Dense(16, 8, weight_init=TruncatedNormal(0.02, 0.0, -2.0, 2.0))
        self.bn1d_ncl_value = nn.BatchNorm1d(8, eps=1e-5, momentum=0.9)
        self.lstm_same_names_same_gates = nn.LSTM(8, 8, batch_first=True, bidirectional=True)
        self.gru_same_names = nn.GRU(8, 8, batch_first=True)
        self.mha_forward = nn.MultiheadAttention(8, 2, batch_first=True)
        self.transformer_layer_ln_eps = TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        for attention in (self.mha_forward, self.transformer_layer_ln_eps.self_attn):  # torch's starts at 0
            attention.out_proj.bias.set_data(ops.zeros_like(attention.out_proj.bias))
        self.head = nn.Dense(len(FUNCTIONS) + 40, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.bn(self.stem(x))
        found = []
        for name in FUNCTIONS:
            out = getattr(self, name)(x)
            found.append(out.reshape(out.shape[0], -1).mean(1, True))
        x = self.he_fan_out_depthwise(self.conv_same_even_kernel(self.g_prelu(x)))
        wide = self.xavier_conv(x).permute(0, 2, 3, 1)
        x = x + self.trunc_normal_tight(wide).permute(0, 3, 1, 2)
        rows = self.bn1d_ncl_value(x.reshape(x.shape[0], 8, -1)).swapaxes(1, 2)
        found.append(self.lstm_same_names_same_gates(rows)[0].mean(1))
        found.append(self.gru_same_names(rows)[0].mean(1))
        found.append(self.mha_forward(rows, rows, rows, need_weights=False)[0].mean(1))
        found.append(self.transformer_layer_ln_eps(rows).mean(1))
        return self.head(ops.cat(found, 1))
