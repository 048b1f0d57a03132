"""Worker for --into: build a MindSpore net and report its parameters.

    python -m msmigrate.migrate.checkpoint.mindspore_net_worker path/to/net.py:build [CHECKPOINT]

Prints one line of JSON: `parameters`, name -> [shape, dtype]; the names are attribute paths, from
`parameters_and_names()`. A parameter's own `name` may differ (a cell without a parent names its tensors without
`moving_`), and MindSpore's loader looks for that name: such parameters are listed in `misnamed`. A checkpoint, if
given, is loaded into the net first, and `digests` has the SHA-256 of every parameter's bytes by path.
"""

from __future__ import annotations

import hashlib
from typing import Any

from ...workers.worker import prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402

from ...errors import BadInput  # noqa: E402
from ...mappings.state_names import is_constant  # noqa: E402
from ..model_spec import called, parse, serve  # noqa: E402


def report(text: str, checkpoint: str | None = None) -> dict[str, Any]:
    """Build the net, load the checkpoint, and describe it; raises BadInput when the spec leads to no MindSpore net."""
    spec = parse(text)
    net = called(spec)
    if not isinstance(net, mindspore.nn.Cell):
        raise BadInput(f"it returns {type(net).__name__}, not a mindspore.nn.Cell")
    constants = {
        id(parameter)
        for _, cell in net.cells_and_names()
        for name, parameter in cell.parameters_and_names(expand=False)
        if is_constant(cell, name)
    }
    parameters = {path: each for path, each in net.parameters_and_names() if id(each) not in constants}
    digests = {}
    if checkpoint is not None:
        form = "safetensors" if checkpoint.endswith(".safetensors") else "ckpt"
        mindspore.load_param_into_net(net, mindspore.load_checkpoint(checkpoint, format=form))
        digests = {path: hashlib.sha256(content(parameter)).hexdigest() for path, parameter in parameters.items()}
    return {
        "digests": digests,
        "parameters": {
            path: [list(parameter.shape), str(parameter.dtype).lower()] for path, parameter in parameters.items()
        },
        "misnamed": {path: parameter.name for path, parameter in parameters.items() if parameter.name != path},
    }


def content(parameter: mindspore.Parameter) -> bytes:
    """The bytes of a parameter; NumPy has no bfloat16, whose bits are the upper half of a float32's."""
    if parameter.dtype == mindspore.bfloat16:
        return (parameter.astype(mindspore.float32).asnumpy().view("u4") >> 16).astype("u2").tobytes()
    return bytes(parameter.asnumpy().tobytes())


if __name__ == "__main__":
    serve(report)
