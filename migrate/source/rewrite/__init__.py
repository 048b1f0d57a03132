"""The code of a model's functions that ran, rewritten for MindSpore by a handler for each callee or form of syntax."""

# The files that have handlers. Where several have one for a form of syntax, they are tried in this order, and the first
# that returns something is used: what is known more exactly comes before what holds for any value.
ORDER = (
    "autograd_functions",
    "devices_and_no_grad",
    "argument_kinds",
    "layer_methods",
    "einops_patterns",
    "initializers",
    "library_lookups",
    "replaced_methods",
    "graph_mode",
    "dataclasses_and_configs",
    "modules",
    "tensors",
    "signatures",
    "control_flow",
    "rewriter",
)
