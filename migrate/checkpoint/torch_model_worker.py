"""Worker for --model: build a torch model and report the class that owns each entry of its state dict.

    python -m msmigrate.migrate.checkpoint.torch_model_worker torchvision:resnet50

Prints one line of JSON: `classes`, module path -> its class and bases by their public names; `shapes`, state-dict name
-> shape. The model is built on the meta device, without memory for its weights, where its code allows that.
"""

from __future__ import annotations

from typing import Any

import torch

from ...errors import BadInput
from ..model_spec import parse, serve
from ..torch_models import build


def report(text: str) -> dict[str, Any]:
    """Build the model and describe it; raises BadInput when the spec leads to no torch model."""
    spec = parse(text)
    try:
        with torch.device("meta"):
            model = build(spec)
    except BadInput:
        raise
    except Exception:  # perhaps its code looks at values, which meta tensors do not have; if not, this fails again
        model = build(spec)
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


if __name__ == "__main__":
    serve(report)
