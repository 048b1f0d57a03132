"""Worker for --model and --optimizer: build a torch model, perhaps with its optimizer, and report its classes.

    python -m msmigrate.migrate.checkpoint.torch_model_worker torchvision:resnet50
    python -m msmigrate.migrate.checkpoint.torch_model_worker FILE.py:FUNCTION optimizer

Prints one line of JSON. Of a model: `classes`, module path -> its class and bases by their public names; `shapes`,
state-dict name -> shape. It is built on the meta device, without memory for its weights, where its code allows that.

Of an optimizer, whose function returns (model, optimizer): `groups`, for each parameter group the names of its
parameters, in the optimizer's order; `classes`, the possible names of the optimizer's class.
"""

from __future__ import annotations

from typing import Any

import torch

from ...errors import BadInput
from ..model_spec import parse, serve
from ..torch_models import build, builder


def report(text: str, what: str = "model") -> dict[str, Any]:
    """Build the named model, or model and optimizer, and describe it; raises BadInput when the spec builds something
    else."""
    return optimizer_report(text) if what == "optimizer" else model_report(text)


def model_report(text: str) -> dict[str, Any]:
    """Build the model and describe it; raises BadInput when the spec leads to no torch model."""
    spec = parse(text)
    make = builder(spec)
    try:
        with torch.device("meta"):
            model = make()
    except BadInput:
        raise
    except Exception:  # its code may read values, which meta tensors do not have; any other error is raised again
        model = make()
    if isinstance(model, tuple) and len(model) == 2:  # with its inputs
        model = model[0]
    if not isinstance(model, torch.nn.Module):
        raise BadInput(f"it returns {type(model).__name__}, not a torch.nn.Module")
    modules = dict(model.named_modules(remove_duplicate=False))
    entries = {name: value for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)}
    return {
        "classes": {path: [public_name(base) for base in type(module).__mro__] for path, module in modules.items()},
        "shapes": {name: list(value.shape) for name, value in entries.items()},
    }


def public_name(cls: type) -> str:
    """The name under which a class is documented: `torch.nn.Conv2d`, not `torch.nn.modules.conv.Conv2d`."""
    if getattr(torch.nn, cls.__name__, None) is cls:
        return f"torch.nn.{cls.__name__}"
    return f"{cls.__module__}.{cls.__qualname__}"


def optimizer_report(text: str) -> dict[str, Any]:
    """Build both and describe the groups; raises BadInput when the function returns something else."""
    spec = parse(text)
    built = build(spec)
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
    serve(report)
