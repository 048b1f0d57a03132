"""Worker for --into: build a MindSpore net and report its parameters.

    python -m msmigrate.migrate.mindspore_target path/to/net.py:build

Prints one line of JSON: `parameters`, name -> [shape, dtype]; the names are attribute paths, from
`parameters_and_names()`. A parameter's own `name` may differ (a cell without a parent names its tensors without
`moving_`), and MindSpore's loader goes by that one: such parameters are listed in `misnamed`.
"""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")  # MindSpore's convolution is 30 times slower on some CPUs without

import mindspore

from ..errors import BadInput
from .model_spec import function, parse, serve


def report(text: str) -> dict[str, Any]:
    """Build the net and describe it; raises BadInput when the spec leads to no MindSpore net."""
    spec = parse(text)
    net = function(spec)(*spec.args, **spec.kwargs)
    if not isinstance(net, mindspore.nn.Cell):
        raise BadInput(f"it returns {type(net).__name__}, not a mindspore.nn.Cell")
    parameters = dict(net.parameters_and_names())
    return {
        "parameters": {
            path: [list(parameter.shape), str(parameter.dtype).lower()] for path, parameter in parameters.items()
        },
        "misnamed": {path: parameter.name for path, parameter in parameters.items() if parameter.name != path},
    }


if __name__ == "__main__":
    serve(report)
