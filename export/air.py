"""AIR, which MindSpore writes on Ascend alone: what has to be run there."""

from __future__ import annotations

import shlex
from pathlib import Path

from ..errors import Unsupported
from ..migrate import model_spec
from ..train import recipe as recipes
from ..train.models import model_names
from .asked import Asked

PYTHON = (
    "import mindspore as ms; ms.set_device('Ascend'); {make}; net.set_train(False); "
    "ms.load_param_into_net(net, ms.load_checkpoint('{weights}'), strict_load=True); "
    "ms.export(net, *[ms.ops.zeros(shape) for shape in {shapes}], file_name='{out}', file_format='AIR')"
)


def only_on_ascend(asked: Asked, out: Path) -> Unsupported:
    """The error, with the commands for the Ascend machine. Raises BadInput and BadRecipe for what names no model."""
    steps = []
    weights = str(asked.checkpoint)
    if asked.checkpoint.suffix != ".ckpt":
        weights = f"{asked.checkpoint.stem}.ckpt"
        steps.append(shlex.join(["msmigrate", "convert-ckpt", str(asked.checkpoint), weights]))
    name, args = _model(asked)
    if model_names.is_zoo(name):
        own = name.partition(":")[2]
        inner = ", ".join(f"{key}={value!r}" for key, value in args.items())
        spec = f"{name}({inner})" if inner else name
        steps.append(shlex.join(["msmigrate", "convert-model", spec, "-o", f"{own}_ms.py", "--no-proof"]))
        make = f"from {own}_ms import {own} as make; net = make()"
    elif ":" in name:
        place, _, function = name.rpartition(":")
        make = f"from {Path(place).stem if place.endswith('.py') else place} import {function} as make; net = make()"
    else:
        inner = "".join(f", {key}={value!r}" for key, value in args.items())
        make = f"from msmigrate.train.models.mindspore_models import build; net = build({name!r}{inner})"
    shapes = [_with_batch(text, asked.batch) for text in asked.shapes] or [(asked.batch or 1, 3, 224, 224)]
    steps.append(shlex.join(["python", "-c", PYTHON.format(make=make, weights=weights, shapes=shapes, out=out)]))
    return Unsupported(
        "MindSpore exports AIR with an Ascend backend only, and nothing else runs it, so it cannot be verified here. "
        f"On the Ascend machine: {' && '.join(steps)}   (MindSpore deprecates AIR: --format lite is verified, and "
        "converter_lite --optimize=ascend_oriented makes an offline model of it there)"
    )


def _model(asked: Asked) -> tuple[str, dict[str, object]]:
    if asked.recipe is not None:
        model = recipes.load(asked.recipe).model
        return model.name, model.args
    if asked.model is None:
        return "resnet50", {}
    plain = asked.model.partition("(")[0]
    spec = model_spec.parse(asked.model if ":" in plain else f"msmigrate:{asked.model}")
    return (spec.name if spec.place == "msmigrate" else f"{spec.place}:{spec.name}"), spec.kwargs


def _with_batch(text: str, batch: int | None) -> tuple[int, ...]:
    from .asked import shape_of

    shape, _ = shape_of(text)
    return (batch or shape[0], *shape[1:])
