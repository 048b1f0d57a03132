"""parity-step on a torch model alone: its MindSpore side is converted first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..errors import BadInput
from ..migrate import model_spec
from ..migrate.source.conversion import start
from ..parity.narrowing import Narrowing
from ..train.models import converted
from ..train.models.model_names import is_zoo
from .convert_command import UNPROVEN, doing
from .parity_command import Asked

BATCH = 4  # examples of a step on random inputs


def with_mindspore(asked: Asked, folder: Path) -> Asked:
    """The same with the MindSpore side of --torch, converted now; a recipe says the rest.

    folder: a new one, where the source of a user's own model goes; it has to last as long as the comparison. Raises
    Unsupported where the model cannot be written whole, and BadInput.
    """
    assert asked.torch is not None
    spec = model_spec.parse(asked.torch)
    if asked.modules:  # a glob that matches nothing is refused before the model runs
        with doing("building the torch model"):
            names = model_spec.ask("torch_classes", asked.torch, "--torch")["classes"]
        Narrowing.to(asked.stages, asked.modules).check(names, asked.torch)
    with doing("writing the model in MindSpore"):
        if is_zoo(f"{spec.place}:{spec.name}") and not spec.args:
            made = converted.mindspore_spec(f"{spec.place}:{spec.name}", spec.kwargs)
        else:
            folder.mkdir(parents=True)
            converted.write(asked.torch, folder / "converted_model.py")
            made = converted.mindspore_spec(f"{spec.place}:{spec.name}", {}, folder / "converted_model.py")
    return replace(asked, mindspore=made)


def whole_pair(model: str, asked: Asked, folder: Path) -> Asked:
    """The pair of a torch model and its conversion, on random inputs like those that it takes unless there is a batch.

    Raises what `with_mindspore` does, and BadInput for a model that parity-step cannot give its inputs.
    """
    found = with_mindspore(replace(asked, torch=model), folder)
    if asked.batch_file is not None:
        return found
    inputs = folder.with_name(f"{folder.name}-inputs")
    inputs.mkdir(parents=True)
    with doing("making a batch"):
        begin = start(model, (), inputs, seed=0, batch=asked.batch or BATCH, steps=asked.steps)
    if begin.batch is None:
        raise BadInput(f"{model}: {UNPROVEN}")
    return replace(found, batch_file=begin.batch, outputs=not begin.plain)
