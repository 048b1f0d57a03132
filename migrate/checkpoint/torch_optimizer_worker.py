"""Worker for --optimizer: build a torch model and its optimizer, and report which parameter is in which group.

    python -m msmigrate.migrate.checkpoint.torch_optimizer_worker FILE.py:FUNCTION

The function returns (model, optimizer). Prints one line of JSON: `groups`, for each parameter group the names of its
parameters, in the order in which the optimizer counts them; `classes`, what the optimizer's class may be called.
"""

from __future__ import annotations

from typing import Any

import torch

from ...errors import BadInput
from ..model_spec import function, parse, serve


def optimizer_report(text: str) -> dict[str, Any]:
    """Build both and describe the groups; raises BadInput when the function returns something else."""
    spec = parse(text)
    built = function(spec)(*spec.args, **spec.kwargs)
    if not isinstance(built, tuple) or len(built) != 2:
        raise BadInput(f"it returns {type(built).__name__}, not (model, optimizer)")
    model, optimizer = built
    if not isinstance(model, torch.nn.Module) or not isinstance(optimizer, torch.optim.Optimizer):
        raise BadInput(f"it returns ({type(model).__name__}, {type(optimizer).__name__}), not (model, optimizer)")
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = []
    for group in optimizer.param_groups:
        if any(id(parameter) not in names for parameter in group["params"]):
            raise BadInput("the optimizer has a parameter that the model does not have")
        groups.append([names[id(parameter)] for parameter in group["params"]])
    kind = type(optimizer)
    package = ".".join(kind.__module__.split(".")[:2])  # torch.optim.adamw: people write torch.optim.AdamW
    return {"groups": groups, "classes": [f"{kind.__module__}.{kind.__qualname__}", f"{package}.{kind.__qualname__}"]}


if __name__ == "__main__":
    serve(optimizer_report)
