"""What builds the model to be converted, in a form that can be called more than once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..analyze.torch_models import build
from ..model_spec import Spec, function


def builder(spec: Spec) -> Callable[[], Any]:
    """A function that makes the model anew; a user's file is imported once. Raises BadInput."""
    if spec.place in ("torchvision", "timm"):
        return lambda: build(spec)
    found = function(spec)
    return lambda: found(*spec.args, **spec.kwargs)
