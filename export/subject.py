"""Which net is exported: its weights for MindSpore, how images are prepared for it, and the torch model it is of."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ..errors import Ambiguous, BadInput, MsmigrateError
from ..migrate import model_spec
from ..migrate.convert import convert
from ..train.inference import request as requests
from ..train.inference.inference_images import image_files
from ..train.inference.inference_weights import is_foreign
from ..train.inference.request import Request
from ..train.models import model_names
from ..train.models.converted import torch_spec
from ..train.recipe import Data, Model, Optimizer, Part, Recipe
from .asked import Asked, Job, shape_of

MOST_IMAGES = 32
TELL_RECIPE = "add --recipe FILE"  # what eval and predict advise, which have no --model
SIDE, LARGER = 224, 256 / 224  # the image that a net takes, and how much larger the one is from which it is cut
GREY = ("lenet5", "resnet_tiny")  # models whose images nobody knows without a recipe
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]  # of ImageNet, as torchvision's models take it


class Net(NamedTuple):
    """The job of the MindSpore process, and the torch model it is held against.

    torch: its name, None where there is none or torch is not installed. state: its weights. notes: what a reader of the
    verdict has to know.
    """

    job: Job
    subject: requests.Subject
    torch: str | None
    state: Path | None
    notes: list[str]


def settle(asked: Asked, folder: Path) -> Net:
    """Settle what is exported; a torch checkpoint is converted into `folder`, and so are weights for the torch model.

    Raises what reading the checkpoint and the recipe raises, and BadInput for options that do not fit together.
    """
    notes: list[str] = []
    subject, net = subject_of(asked, folder, notes)
    if asked.torch is not None and net is None:
        raise BadInput("--torch names the torch model of a Cell of your own; that of a recipe's model is known")
    torch = asked.torch if net is not None else _spec(subject.recipe.model)
    if torch is not None and find_spec("torch") is None:
        notes.append("torch is not installed, so nothing was held against it")
        torch = None
    state = _state(asked, subject, torch, folder, notes) if torch is not None else None
    job = job_of(asked, subject, net)
    count = len(job.request.images or ())
    if asked.images is not None and count == MOST_IMAGES:
        notes.append(f"of the images, the first {MOST_IMAGES} were run")
    job = job.model_copy(update={"noise": state is None})
    return Net(job, subject, torch if state is not None else None, state, notes)


def subject_of(asked: Asked, folder: Path, notes: list[str]) -> tuple[requests.Subject, str | None]:
    """The checkpoint with its recipe, and the Cell of the user's that it is of, where it is no recipe's model."""
    if asked.model is not None and asked.recipe is not None:
        raise BadInput("--model or --recipe, not both: a recipe names its model")
    for text in asked.shapes:
        shape_of(text)
    net = asked.model if asked.model is not None and not _is_recipes(asked.model) else None
    if net is not None:
        subject = _of_cell(asked, net, folder)
    else:
        known = _recipe_for(asked, notes) if asked.model is not None else None
        try:
            subject = requests.subject(asked.checkpoint, asked.recipe, ema=asked.ema, folder=folder, known=known)
        except BadInput as error:
            raise type(error)(str(error).replace(TELL_RECIPE, f"add --model NAME or {TELL_RECIPE[4:]}")) from None
    return subject, net


def job_of(asked: Asked, subject: requests.Subject, net: str | None) -> Job:
    """What the MindSpore process has to make. Raises BadInput for images that are not there."""
    images = image_files([asked.images]) if asked.images is not None else []
    request = Request(
        recipe=subject.recipe,
        weights=subject.weights,
        shown=str(asked.checkpoint),
        ema=asked.ema,
        images=images[:MOST_IMAGES] or None,
        mode=requests.own_mode(subject.recipe),
        target="CPU",
    )
    return Job(
        request=request,
        net=net,
        form="onnx" if asked.form == "onnx" else "mindir",
        shapes=list(asked.shapes),
        batch=asked.batch,
        dynamic=asked.dynamic,
        key_file=asked.key_file,
        stem=asked.stem,
        enc_mode=asked.enc_mode,  # type: ignore[arg-type] # pydantic checks it
    )


def _is_recipes(name: str) -> bool:
    """Whether a recipe could name this model: one of msmigrate's own, torchvision's or timm's, perhaps called."""
    plain = name.partition("(")[0]
    return ":" not in plain or plain.partition(":")[0] in model_names.ZOOS


def _recipe_for(asked: Asked, notes: list[str]) -> Recipe:
    """A recipe for `--model NAME(…)`: images are prepared as for torchvision's classifiers."""
    assert asked.model is not None
    spec = model_spec.parse(asked.model if ":" in asked.model.partition("(")[0] else f"msmigrate:{asked.model}")
    if spec.args:
        raise BadInput(f"--model {asked.model}: write its arguments with their names, as in resnet18(num_classes=10)")
    name = spec.name if spec.place == "msmigrate" else f"{spec.place}:{spec.name}"
    model_names.check(name, spec.kwargs)
    model = Model(name=name, args=spec.kwargs)
    if name in GREY:
        if not asked.shapes:
            raise BadInput(f"--model {name} does not say which images it takes: add --input SHAPE, or --recipe")
        return _recipe(model, Data())
    data = _prepared(asked)
    if asked.images is not None:
        notes.append("images were prepared as for torchvision's classifiers; --recipe FILE says otherwise")
    return _recipe(model, data)


def _prepared(asked: Asked) -> Data:
    """Resize, crop, and normalize as ImageNet's images are, to the size that --input says."""
    shape = shape_of(asked.shapes[0])[0] if asked.shapes else ()
    side = shape[-1] if len(shape) == 4 else SIDE
    parts = [
        Part(name="Resize", args={"size": round(side * LARGER)}),
        Part(name="CenterCrop", args={"size": side}),
        Part(name="ToTensor"),
        Part(name="Normalize", args={"mean": MEAN, "std": STD}),
    ]
    return Data(transforms=parts)


def _recipe(model: Model, data: Data) -> Recipe:
    return Recipe(model=model, data=data, optimizer=Optimizer(name="SGD", args={"lr": 0.1}))


def _spec(model: Model) -> str:
    """The torch model of a recipe's."""
    return torch_spec(model.name if model_names.is_zoo(model.name) else f"msmigrate:{model.name}", model.args)


def _of_cell(asked: Asked, net: str, folder: Path) -> requests.Subject:
    """The subject that a Cell of the user's is, with the weights that it takes."""
    model_spec.parse(net)
    if asked.ema:
        raise BadInput("--ema takes the moving average that msmigrate keeps for a recipe's model")
    if asked.torch is not None:
        model_spec.parse(asked.torch)
    weights = asked.checkpoint
    if asked.checkpoint.is_dir() or is_foreign(asked.checkpoint):
        weights = folder / "converted.ckpt"
        convert(asked.checkpoint, weights, to="mindspore", into=net, model=asked.torch)
    recipe = _recipe(Model(name=net), _prepared(asked))
    return requests.Subject(asked.checkpoint, weights, recipe, None, None, weights != asked.checkpoint)


def _state(asked: Asked, subject: requests.Subject, torch: str, folder: Path, notes: list[str]) -> Path | None:
    """The weights as a state dict for the torch model: the user's own file, rewritten so that nothing in it can run,
    or the MindSpore checkpoint converted back."""
    if asked.ema:
        notes.append("nothing was held against torch: the moving average is the MindSpore run's own")
        return None
    state = folder / "torch.pth"
    source = asked.checkpoint if subject.torch else subject.weights
    model = None if torch.startswith("msmigrate:") else torch
    try:
        try:
            convert(source, state, to="torch")
        except Ambiguous:
            convert(source, state, to="torch", model=model)
    except MsmigrateError as error:
        state.unlink(missing_ok=True)
        if asked.torch is not None:
            raise
        notes.append(f"nothing was held against torch: {error}")
        return None
    return state
