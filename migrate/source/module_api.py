"""What a torch Module and a MindSpore Cell call alike things: methods, containers, and what a model does not need."""

from __future__ import annotations

# methods that a model's own source calls on its modules -> on Cells
METHODS = {
    "forward": "construct",
    "add_module": "insert_child_to_cell",
    "children": "cells",
    "modules": "_cells_and_self",
    "named_modules": "cells_and_names",
    "named_children": "name_cells",
    "parameters": "get_parameters",
    "named_parameters": "parameters_and_names",
    "apply": "apply",
}
MODULES = ("torch.nn.Module.", "torch.nn.Sequential.", "torch.nn.ModuleList.", "torch.nn.ModuleDict.")
GROWING = {"append", "extend", "insert", "update"}
KEPT = {*METHODS, *GROWING, "__init__", "items", "values", "keys"}  # the others have another name
CONTAINERS = {
    "torch.nn.Sequential": "mindspore.nn.SequentialCell",
    "torch.nn.ModuleList": "mindspore.nn.CellList",
    "torch.nn.ModuleDict": "msmigrate.nn.NamedCells",
}
NAMES = {
    "torch.Tensor": "mindspore.Tensor",
    **{f"torch.{kind}Tensor": "mindspore.Tensor" for kind in ("Float", "Half", "Double", "Long", "Int", "Bool")},
    "torch.nn.Module": "mindspore.nn.Cell",
    "torch.nn.modules.module.Module": "mindspore.nn.Cell",
    "torch.nn.Parameter": "mindspore.Parameter",
    "torch.nn.parameter.Parameter": "mindspore.Parameter",
}
# attributes to which MindSpore's layer puts a 1 in front: Conv1d is a Conv2d of one row
ONE_ROW = ("torch.nn.Conv1d", "torch.nn.ConvTranspose1d")
BEHIND = {"kernel_size": ONE_ROW, "stride": ONE_ROW, "dilation": ONE_ROW}
# an argument that MindSpore's class has not, or has otherwise, where it is given -> the composed class that has it
OTHERWISE = {
    ("torch.nn.Embedding", "padding_idx"): "msmigrate.nn.PaddedEmbedding",
    ("torch.nn.LayerNorm", "elementwise_affine"): "msmigrate.nn.PartialLayerNorm",
    ("torch.nn.LayerNorm", "bias"): "msmigrate.nn.PartialLayerNorm",
}
# arguments of a layer's call that MindSpore calls otherwise, or has not: what is only told beside a mask
_CAUSAL = {"is_causal": None}
_BOTH = {"tgt_is_causal": None, "memory_is_causal": None}
FORWARDS: dict[str, dict[str, str | None]] = {
    "torch.nn.TransformerEncoder": {"mask": "src_mask", **_CAUSAL},
    "torch.nn.TransformerEncoderLayer": {**_CAUSAL},
    "torch.nn.TransformerDecoder": {**_BOTH},
    "torch.nn.TransformerDecoderLayer": {**_BOTH},
    "torch.nn.Transformer": {"src_is_causal": None, **_BOTH},
    "torch.nn.MultiheadAttention": {**_CAUSAL},
    "torch.nn.LSTM": {"input": "x"},
    "torch.nn.GRU": {"input": "x"},
    "torch.nn.RNN": {"input": "x"},
}
# said to torch's own statistics, and no part of a model
# what is simplified of libraries; of its classes, methods that are not there do something else than compute
SIMPLIFIED = "msmigrate.migrate.source.observe.torch_simplified_transformers."
DROPPED = {"torchvision.utils._log_api_usage_once", "torch._C._log_api_usage_once", "torch._assert", "_warnings.warn"}
# methods that fill a tensor with one number, and that number; None: the one that they are given
VALUES = {"zero_": 0, "fill_": None}
# torch's functions that draw weights, under whose names transformers has its own
DRAWING = (
    *("uniform_", "normal_", "constant_", "ones_", "zeros_", "eye_", "dirac_", "orthogonal_", "sparse_"),
    *("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "trunc_normal_"),
)
COPY = "transformers.initialization.copy_"  # (tensor, values)
# written by the row of the mapping table, not from their source, which draws in place: where it stands -> the row
ROWS_FIRST = {
    "torchvision.ops.stochastic_depth.StochasticDepth": "torchvision.ops.StochasticDepth",
    "torchvision.ops.stochastic_depth.stochastic_depth": "torchvision.ops.stochastic_depth",
    "timm.layers.drop.DropPath": "timm.layers.DropPath",
    "timm.layers.weight_init.trunc_normal_": "torch.nn.init.trunc_normal_",
    "timm.layers.weight_init._trunc_normal_": "torch.nn.init.trunc_normal_",
    **{f"transformers.initialization.{name}": f"torch.nn.init.{name}" for name in DRAWING},
}
# stands where something could not be written, and raises NotImplementedError
NOT_CONVERTED = "msmigrate.nn.not_converted"
# questions about how torch runs, whose answer is a constant here
CONSTANT = {
    *("torch.jit.is_scripting", "torch.jit.is_tracing", "torch._jit_internal.is_scripting"),
    *("torch.jit._trace.is_tracing", "torch._C._get_tracing_state", "torch.fx._symbolic_trace.is_fx_tracing"),
    *("torch.compiler.is_exporting", "torch.compiler.is_compiling", "torch.compiler.is_dynamo_compiling"),
    *("torch.are_deterministic_algorithms_enabled", "torch.cuda.is_available"),
    "transformers.utils.import_utils.is_torchdynamo_compiling",
}
DEFAULT_DTYPE = "torch.get_default_dtype"  # which a model that is written keeps: float32
LIMITS = {"torch.finfo", "torch.iinfo"}  # what numbers a dtype can hold
ANNOTATE = "torch.jit.annotate"  # (type, value): tells TorchScript's compiler, and is the value
# functions of torch's own that compute in plain Python what initialisation needs: written from their source
WRITTEN_FROM_SOURCE = ("torch.nn.init._calculate_fan_in_and_fan_out", "torch.nn.init.calculate_gain")
# parameters of functions that may load trained weights: what such a function builds is told by its class
LOADS = {"pretrained", "weights"}
