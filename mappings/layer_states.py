"""How the tensors of every layer are called in MindSpore: torch class -> tensor -> where it goes.

Generated from layers.yaml by `python -m msmigrate.mappings.write_layer_states`; do not edit.
"""

from __future__ import annotations

from .crossing import Crossing

# fmt: off
LAYER_STATES: dict[str, dict[str, Crossing]] = {
    "torch.nn.Conv2d": {
        "weight": Crossing("weight"),
        "bias": Crossing("bias"),
    },
    "torch.nn.Conv1d": {
        "weight": Crossing("weight", verb="expand_dims"),
        "bias": Crossing("bias"),
    },
    "torch.nn.Conv3d": {
        "weight": Crossing("weight"),
        "bias": Crossing("bias"),
    },
    "torch.nn.BatchNorm2d": {
        "weight": Crossing("gamma"),
        "bias": Crossing("beta"),
        "running_mean": Crossing("moving_mean"),
        "running_var": Crossing("moving_variance"),
        "num_batches_tracked": Crossing(None, why="only torch's cumulative average reads it"),
    },
    "torch.nn.BatchNorm1d": {
        "weight": Crossing("gamma"),
        "bias": Crossing("beta"),
        "running_mean": Crossing("moving_mean"),
        "running_var": Crossing("moving_variance"),
        "num_batches_tracked": Crossing(None, why="only torch's cumulative average reads it"),
    },
    "torch.nn.BatchNorm3d": {
        "weight": Crossing("bn2d.gamma"),
        "bias": Crossing("bn2d.beta"),
        "running_mean": Crossing("bn2d.moving_mean"),
        "running_var": Crossing("bn2d.moving_variance"),
        "num_batches_tracked": Crossing(None, why="only torch's cumulative average reads it"),
    },
    "torch.nn.LayerNorm": {
        "weight": Crossing("gamma"),
        "bias": Crossing("beta"),
    },
    "torch.nn.GroupNorm": {
        "weight": Crossing("gamma"),
        "bias": Crossing("beta"),
    },
    "torch.nn.Linear": {
        "weight": Crossing("weight"),
        "bias": Crossing("bias"),
    },
    "torch.nn.Embedding": {
        "weight": Crossing("embedding_table"),
    },
    "torch.nn.ReLU": {},
    "torch.nn.PReLU": {
        "weight": Crossing("w"),
    },
    "torch.nn.Tanh": {},
    "torch.nn.Sigmoid": {},
    "torch.nn.GELU": {},
    "torch.nn.SiLU": {},
    "torch.nn.ReLU6": {},
    "torch.nn.LeakyReLU": {},
    "torch.nn.Hardswish": {},
    "torch.nn.Hardsigmoid": {},
    "torch.nn.MaxPool2d": {},
    "torch.nn.AvgPool2d": {},
    "torch.nn.AdaptiveAvgPool2d": {},
    "torch.nn.Flatten": {},
    "torch.nn.Dropout": {},
    "torch.nn.Identity": {},
    "torch.nn.Sequential": {},
}
