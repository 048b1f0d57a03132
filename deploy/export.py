"""An export from beginning to end; what has to be run on Ascend (AIR)."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import Unsupported
from ..migrate import model_spec
from ..training.models import model_names
from ..training.recipe import reader as recipes
from ..workers.messages import OnMessage, ignore
from ..workers.parent import call
from .compare_outputs import Comparison, compare
from .job import FACTS, MINDIR, MORE, REQUEST, shape_of
from .options import ExportOptions
from .source_model import Net, settle

PYTHON = (
    "import mindspore as ms; ms.set_device('Ascend'); {make}; net.set_train(False); "
    "ms.load_param_into_net(net, ms.load_checkpoint('{weights}'), strict_load=True); "
    "ms.export(net, *[ms.ops.zeros(shape) for shape in {shapes}], file_name='{out}', file_format='AIR')"
)


def only_on_ascend(asked: ExportOptions) -> Unsupported:
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
        make = f"from msmigrate.training.models.mindspore_models import build; net = build({name!r}{inner})"
    shapes = [_with_batch(text, asked.batch) for text in asked.shapes] or [(asked.batch or 1, 3, 224, 224)]
    steps.append(shlex.join(["python", "-c", PYTHON.format(make=make, weights=weights, shapes=shapes, out=asked.out)]))
    return Unsupported(
        "MindSpore exports AIR with an Ascend backend only, and nothing else runs it, so it cannot be verified here. "
        f"On the Ascend machine: {' && '.join(steps)}   (MindSpore deprecates AIR: --format lite is verified, and "
        "converter_lite --optimize=ascend_oriented makes an offline model of it there)"
    )


def _model(asked: ExportOptions) -> tuple[str, dict[str, object]]:
    if asked.recipe is not None:
        model = recipes.load(asked.recipe).model
        return model.name, model.args
    if asked.model is None:
        return "resnet50", {}
    plain = asked.model.partition("(")[0]
    spec = model_spec.parse(asked.model if ":" in plain else f"msmigrate:{asked.model}")
    return (spec.name if spec.place == "msmigrate" else f"{spec.place}:{spec.name}"), spec.kwargs


def _with_batch(text: str, batch: int | None) -> tuple[int, ...]:
    shape, _ = shape_of(text)
    return (batch or shape[0], *shape[1:])


Worker = Callable[[str], Sequence[str]]


def module(name: str) -> Sequence[str]:
    """The command that runs a worker of this package."""
    return (sys.executable, "-m", f"msmigrate.deploy.{name}")


@dataclass(frozen=True)
class Exported:
    """A file that was exported and run, and all comparisons; it stands in the temporary folder of the export.

    facts: what the workers noted, such as inputs, versions and what was rewritten. sizes: of the batches it ran on.
    """

    file: Path
    net: Net
    facts: dict[str, Any]
    sizes: list[int]
    comparisons: list[Comparison]

    @property
    def sound(self) -> bool:
        """Whether everything agrees."""
        return all(one.passed for one in self.comparisons)


def export(asked: ExportOptions, folder: Path, on_message: OnMessage = ignore, worker: Worker = module) -> Exported:
    """Export a checkpoint into a folder of the caller's, and run what was written; nothing is judged by its existence.

    Raises what settling raises, Unsupported for what cannot be exported or
    does not run, and WorkerFailed.
    """
    net = settle(asked, folder)
    (folder / REQUEST).write_text(net.job.model_dump_json(), encoding="utf-8")
    place = str(folder)
    call("the MindSpore process", [*worker("mindspore_export_worker"), place], folder / "export.log", on_message)
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    batch = int(facts["batch"])
    sizes = [batch, batch + MORE] if asked.dynamic else [batch]
    if net.torch is not None:
        words = [*worker("torch_reference_worker"), place, net.torch, str(batch)]
        call("the torch process", words, folder / "torch.log", on_message)
    shown = [str(size) for size in sizes]
    if net.job.form == MINDIR:
        words = [*worker("mindspore_load_worker"), place, *shown]
        call("the MindSpore process", words, folder / "check.log", on_message)
    else:
        words = [*worker("onnx_check_worker"), place, str(int(asked.dynamic)), *shown]
        call("the onnxruntime process", words, folder / "check.log", on_message)
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    return Exported(folder / facts["file"], net, facts, sizes, compare(folder, sizes, torch=net.torch is not None))
