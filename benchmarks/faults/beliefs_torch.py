"""A net of operations that people believe to differ in MindSpore, and that were measured to be equal: one leaf each."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def ties(x: Tensor) -> Tensor:
    """x rounded to halves, so that many elements are equal or exactly 0, with the gradient of x."""
    return x - x.detach() + (2.0 * x.detach()).round() / 2.0


def whole(x: Tensor) -> Tensor:
    """Whole numbers in -9 … 9, int64."""
    return (4.0 * x.detach()).round().clamp(-9.0, 9.0).long()


def _grid(x: Tensor) -> Tensor:
    line = torch.linspace(-1.2, 1.2, 8, dtype=x.dtype)
    rows, columns = torch.meshgrid(line, line, indexing="ij")
    return torch.stack((columns, rows), -1).expand(x.shape[0], 8, 8, 2)


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "adaptive_avgpool2d_uneven": lambda x: F.adaptive_avg_pool2d(x, (3, 5)),
    "hardsigmoid_hardswish": lambda x: F.hardsigmoid(x) + F.hardswish(x),
    "grad_relu_at_zero": lambda x: F.relu(ties(x)),
    "grad_abs_at_zero": lambda x: ties(x).abs(),
    "grad_elu_at_zero": lambda x: F.elu(ties(x)),
    "grad_maximum_tie": lambda x: torch.maximum(ties(x), ties(x.flip(3))),
    "grad_reduce_max_tie": lambda x: ties(x).amax(dim=3),
    "grad_max_dim_tie": lambda x: ties(x).max(dim=3)[0],
    "grad_maxpool_tie": lambda x: F.max_pool2d(ties(x), 3, 2, 1),
    "g_maxpool_tie_pad_mode": lambda x: F.max_pool2d(ties(x), 2, 2),
    "g_sqrt0": lambda x: F.relu(x).add(0.25).sqrt(),
    "g_l1_at_zero": lambda x: F.l1_loss(ties(x), torch.zeros_like(x), reduction="none"),
    "g_smooth_l1_beta": lambda x: F.smooth_l1_loss(ties(x), torch.zeros_like(x), reduction="none", beta=0.5),
    "g_huber_delta": lambda x: F.huber_loss(ties(x), torch.zeros_like(x), reduction="none", delta=0.5),
    "g_prod_zero": lambda x: ties(x)[:, :, :, :3].prod(dim=3),
    "g_where_nan": lambda x: torch.where(x > 0, x, torch.zeros_like(x)),
    "topk_ties": lambda x: ties(x).topk(3, dim=3)[0],
    "ops_div_int": lambda x: torch.div(whole(x), 4).to(x.dtype) + 0.0 * x,
    "primitive_div_int": lambda x: (whole(x) / (whole(x).abs() + 1)).to(x.dtype) + 0.0 * x,
    "int_true_division": lambda x: (whole(x) / 4).to(x.dtype) + 0.0 * x,
    "floor_div_negative": lambda x: (whole(x) // 4).to(x.dtype) + 0.0 * x,
    "mod_negative_float": lambda x: torch.remainder(whole(x).to(x.dtype), 2.5) + 0.0 * x,
    "round_half": lambda x: (whole(x).to(x.dtype) / 2.0).round() + 0.0 * x,
    "median_even": lambda x: x.median(dim=3)[0],
    "tensor_transpose_two_args": lambda x: x.transpose(2, 3),
    "half_plus_float_dtype": lambda x: ties(x).half() + x,
    "int_times_float_scalar_dtype": lambda x: (whole(x) * 0.5).to(x.dtype) + 0.0 * x,
    "one_hot_dtype": lambda x: F.one_hot(whole(x)[:, 0] + 9, 19).to(x.dtype) + 0.0 * x[:, 0, :, :, None],
    "interp_bilinear_size": lambda x: F.interpolate(x, size=(11, 13), mode="bilinear", align_corners=False),
    "interp_bilinear_align_corners": lambda x: F.interpolate(x, size=(11, 13), mode="bilinear", align_corners=True),
    "interp_nearest_size": lambda x: F.interpolate(x, size=(11, 13), mode="nearest"),
    "interp_area_size": lambda x: F.interpolate(x, size=(3, 5), mode="area"),
    "grid_sample_default": lambda x: F.grid_sample(x, _grid(x), align_corners=False),
    "pad_functional_order": lambda x: F.pad(x, (1, 2, 3, 0)),
    "pad_circular": lambda x: F.pad(x, (1, 1, 1, 1), mode="circular"),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "unfold": lambda x: F.unfold(x, 3, padding=1),
}


class Belief(nn.Module):
    """One function as a leaf of the net."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        return FUNCTIONS[self.name](x)


class Beliefs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 4, 1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        for name in FUNCTIONS:
            self.add_module(name, Belief(name))
        self.g_prelu = nn.PReLU(8)
        self.conv_same_even_kernel = nn.Conv2d(8, 8, 2, padding="same")
        self.he_fan_out_depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        nn.init.kaiming_normal_(self.he_fan_out_depthwise.weight, mode="fan_out", nonlinearity="relu")
        self.xavier_conv = nn.Conv2d(8, 16, 3, padding=1)
        nn.init.xavier_normal_(self.xavier_conv.weight)
        self.trunc_normal_tight = nn.Linear(16, 8)
        nn.init.trunc_normal_(self.trunc_normal_tight.weight, std=0.02)
        self.bn1d_ncl_value = nn.BatchNorm1d(8)
        self.lstm_same_names_same_gates = nn.LSTM(8, 8, batch_first=True, bidirectional=True)
        self.gru_same_names = nn.GRU(8, 8, batch_first=True)
        self.mha_forward = nn.MultiheadAttention(8, 2, batch_first=True)
        self.transformer_layer_ln_eps = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(len(FUNCTIONS) + 40, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.bn(self.stem(x))
        found = [getattr(self, name)(x).to(x.dtype).flatten(1).mean(dim=1, keepdim=True) for name in FUNCTIONS]
        x = self.he_fan_out_depthwise(self.conv_same_even_kernel(self.g_prelu(x)))
        wide = self.xavier_conv(x).permute(0, 2, 3, 1)
        x = x + self.trunc_normal_tight(wide).permute(0, 3, 1, 2)
        rows = self.bn1d_ncl_value(x.flatten(2)).transpose(1, 2)
        found.append(self.lstm_same_names_same_gates(rows)[0].mean(dim=1))
        found.append(self.gru_same_names(rows)[0].mean(dim=1))
        found.append(self.mha_forward(rows, rows, rows, need_weights=False)[0].mean(dim=1))
        found.append(self.transformer_layer_ln_eps(rows).mean(dim=1))
        return self.head(torch.cat(found, dim=1))
