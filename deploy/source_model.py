"""Which net is exported: its weights for MindSpore, how images are prepared for it, and the torch model it is of."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import Ambiguous, BadInput, MsmigrateError
from ..migrate import model_spec
from ..migrate.checkpoint.convert import convert
from ..training import inference
from ..training.inference import Subject, image_files
from ..training.models import model_names
from ..training.models.converted_models import torch_spec
from ..training.recipe.schema import Model
from .job import Job, shape_of
from .options import ExportOptions, NetChoice
from .output_files import stem_for

MOST_IMAGES = 32


class Net(NamedTuple):
    """The job of the MindSpore process, and the torch model it is compared with.

    torch: its name, None where there is none or torch is not installed. state: its weights. notes: what a reader of the
    verdict has to know.
    """

    job: Job
    subject: Subject
    torch: str | None
    state: Path | None
    notes: list[str]


def settle(options: ExportOptions, folder: Path) -> Net:
    """Settle what is exported; a torch checkpoint is converted into `folder`, and so are weights for the torch model.

    Raises what reading the checkpoint and the recipe raises, and BadInput for options that do not fit together.
    """
    notes: list[str] = []
    if options.torch is not None:
        model_spec.parse(options.torch)
    subject = subject_of(options, folder)
    if subject.assumed and options.form == "serving":
        raise BadInput("--format serving prepares images as a recipe says: give --recipe FILE in place of --model")
    if subject.assumed and options.images is not None:
        notes.append("images were prepared as for torchvision's classifiers; --recipe FILE says otherwise")
    if subject.foreign is not None and options.torch is None:
        notes.append(
            f"nothing was compared with torch: the checkpoint says that its model has {subject.foreign}; --torch SPEC"
        )
    if options.torch is not None and subject.net is None:
        raise BadInput("--torch names the torch model of a Cell of your own; that of a recipe's model is known")
    torch = options.torch if subject.net is not None else _spec(subject.recipe.model)
    if torch is not None and find_spec("torch") is None:
        notes.append("torch is not installed, so nothing was compared with it")
        torch = None
    state = _state(options, subject, torch, folder, notes) if torch is not None else None
    images = image_files([options.images])[:MOST_IMAGES] if options.images is not None else []
    if len(images) == MOST_IMAGES:
        notes.append(f"of the images, the first {MOST_IMAGES} were run")
    made = {"form": options.net_form, "batch": options.batch, "dynamic": options.dynamic, "stem": stem_for(options.out)}
    job = job_of(options, subject, images).model_copy(update={**made, "noise": state is None})
    return Net(job, subject, torch if state is not None else None, state, notes)


def subject_of(options: NetChoice, folder: Path) -> Subject:
    """What the checkpoint is, and how images are prepared for it."""
    shapes = [shape_of(text)[0] for text in options.shapes]
    side = (shapes[0][-1] if len(shapes[0]) == 4 else inference.SIDE) if shapes else None
    hint = "add --input SHAPE, or --recipe FILE"
    return inference.subject(options, folder, torch_model=options.torch, side=side, hint=hint)


def job_of(options: NetChoice, subject: Subject, images: Sequence[str] = ()) -> Job:
    """What the MindSpore process has to load and to run. images: those that it runs on; none: on drawn numbers."""
    request = subject.request(images=list(images) or None, mode=inference.own_mode(subject.recipe), target="CPU")
    encryption: Any = {"key_file": options.key_file, "enc_mode": options.encryption}
    return Job(request=request, shapes=list(options.shapes), **encryption)


def _spec(model: Model) -> str:
    """The torch model of a recipe's."""
    return torch_spec(f"msmigrate:{model.name}" if model_names.is_ours(model.name) else model.name, model.args)


def _state(options: ExportOptions, subject: Subject, torch: str, folder: Path, notes: list[str]) -> Path | None:
    """The weights as a state dict for the torch model: the user's own file, rewritten so that nothing in it can run,
    or the MindSpore checkpoint converted back."""
    if options.ema:
        notes.append("nothing was compared with torch: the moving average is the MindSpore run's own")
        return None
    state = folder / "torch.pth"
    source = options.checkpoint if subject.torch else subject.weights
    model = None if torch.startswith("msmigrate:") else torch
    try:
        try:
            convert(source, state, to="torch")
        except Ambiguous:
            convert(source, state, to="torch", model=model)
    except MsmigrateError as error:
        state.unlink(missing_ok=True)
        if options.torch is not None:
            raise
        notes.append(f"nothing was compared with torch: {error}")
        return None
    return state
