"""Evaluate or predict: resolve the job, its images and its weights, and have a worker carry it out.

What the user names (`--model`, `--recipe`) is built as given. What only the checkpoint names is data, which is not
trusted: see training/recipe/recipe_in_checkpoint.py.
"""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, ValidationError

from ..errors import Ambiguous, BadCheckpoint, BadInput, BadRecipe, NotTrusted
from ..input_files import read_text
from ..migrate import model_spec
from ..migrate.checkpoint.convert import convert
from ..migrate.checkpoint.inspect_file import OPTION, StoredSource, stored_source, trusted
from ..printable import few
from ..workers.messages import OnMessage, ignore
from ..workers.parent import call
from . import device_targets
from .checkpoints import Checkpoint, is_foreign
from .checkpoints import read as read_checkpoint
from .data.image_folder import SUFFIXES, class_names, read
from .data.image_folder import image_files as images_below
from .data.sample import Sample
from .data.sources import Source, check_place, open_arrays, open_source
from .metrics import Results
from .models import model_names
from .models.converted_models import maker, takes_arguments, torch_spec
from .options import NetOptions
from .recipe import check, schema
from .recipe import reader as recipes
from .recipe import recipe_in_checkpoint as stored_recipe
from .recipe.part_arguments import is_random
from .recipe.schema import ARRAY_SUFFIXES, ARRAYS, FOLDER, PLACES, Data, Model, Optimizer, Part, Recipe, Strict


class ImageFiles:
    """Files of images without labels, as a source; all of them decoded to one mode."""

    def __init__(self, paths: Sequence[str], mode: Mode) -> None:
        self.name = "images"
        self.classes: tuple[str, ...] = ()
        self.labels = np.zeros(len(paths), dtype=np.int32)
        self.mode = mode
        self._paths = list(paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> Sample:
        """The file's bytes, undecoded; raises BadInput that names a file that cannot be read."""
        path = self._paths[index]
        return Sample(read(Path(path)), 0, path, self.mode)


class Prepared:
    """A labelled source as a net needs it: its classes numbered as the net numbers them, in the net's own mode.

    classes: the net's number for class i of the source (None: the same); mode: of the images (None: their own).
    """

    def __init__(self, source: Source, classes: Sequence[int] | None, mode: Mode | None) -> None:
        self.name, self.classes = source.name, source.classes
        self.mode: Mode = mode or source.mode
        self._source = source
        self._number = np.asarray(range(len(source.classes)) if classes is None else classes, dtype=np.int32)
        self.labels = self._number[np.asarray(source.labels, dtype=np.int64)]

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> Sample:
        """The source's sample, relabelled."""
        sample = self._source[index]
        label = int(self._number[sample.label])
        return dataclasses.replace(sample, label=label, mode=self.mode)


def images_of(request: Request) -> Source:
    """The images that a request names, each read when it is needed."""
    if request.images is not None:
        return ImageFiles(request.images, request.mode or "RGB")
    assert request.source is not None
    count = request.recipe.model.num_classes
    return Prepared(open_source(request.source, count, training=False), request.classes, request.mode)


def image_files(places: Sequence[Path]) -> list[str]:
    """The files to predict: each file as named, each folder's images at any depth, sorted.

    Raises BadInput for a path that is not there and for a folder without images.
    """
    files: list[str] = []
    for place in places:
        if place.is_dir():
            found = list(images_below(place))
            if not found:
                raise BadInput(f"{place} has no images in it (looked for {', '.join(SUFFIXES)})")
            files += found
        elif place.exists():
            files.append(str(place))
        else:
            raise BadInput(f"there is no file or folder {place}")
    return files


WORKER = (sys.executable, "-m", "msmigrate.training.mindspore_inference_worker")
REQUEST, LOG = "request.json", "worker.log"
OUTPUTS = "outputs.npz"


def infer(request: Request, folder: Path, on_message: OnMessage = ignore, worker: Sequence[str] = WORKER) -> Results:
    """Have the request carried out; `folder` is the worker's own.

    worker: the command that carries out requests. Raises, before any work, Unsupported for a target that this machine's
    MindSpore cannot use, then what the worker raised, or WorkerFailed with its last words when it gave no reason.
    """
    if request.target not in (None, "CPU"):
        device_targets.ask().check(str(request.target), request.recipe.train.device_id)
    request.write(folder / REQUEST)
    call("the MindSpore process", [*worker, str(folder / REQUEST)], folder / LOG, on_message)
    return Results.read(folder)


Mode = Literal["RGB", "L"]
Target = Literal["Ascend", "GPU", "CPU"]


class Request(Strict):
    """The worker's job.

    weights: the MindSpore checkpoint that is read; shown: the user's name for it. net: `FILE.py:FUNCTION` that makes
    the Cell, where that is not the recipe's model. ema: take its moving average. source: labelled images, whose class i
    is the net's class classes[i] (None: the same numbers); or images: files without labels. mode: what they are decoded
    to (None: what the source says). outputs: for arrays, the net's outputs are kept, and labels may be missing. batch:
    images at a time. target: None takes the best available. top: how many classes are kept for each image. on_corrupt:
    an image that cannot be read or decoded ends the work, or is passed over and named.
    """

    recipe: Recipe
    weights: Path = Field(strict=False)
    shown: str
    net: str | None = None
    ema: bool = False
    source: str | None = None
    classes: list[int] | None = None
    images: list[str] | None = None
    mode: Mode | None = None
    batch: int = 32
    target: Target | None = None
    top: int = 5
    outputs: bool = False
    on_corrupt: Literal["fail", "skip"] = "fail"


def preparation(recipe: Recipe) -> list[Part]:
    """The transforms that prepare images for evaluation; raises BadRecipe where they draw random numbers."""
    own = recipe.data.eval_transforms
    transforms = recipe.data.transforms if own is None else own
    drawing = [part.name for part in transforms if is_random(part)]
    if drawing:
        section = "data.transforms" if own is None else "data.eval_transforms"
        remedy = "add data.eval_transforms" if own is None else "remove it there"
        raise BadRecipe(f"the recipe's {section} prepare images at random ({drawing[0]}): {remedy}")
    return transforms


def source_named(data: str | None, recipe: Recipe, *, stored: bool = False) -> str:
    """The source that DATA names: one that a recipe may name, or the path of a tree of class folders.

    Without DATA, the recipe's data.validation; stored: the recipe is the checkpoint's own. Raises BadInput where there
    is neither, or no such folder; NotTrusted for a path that only a checkpoint names.
    """
    if data is not None:
        return source_at(data)
    named = recipe.data.validation
    if named is None:
        raise BadInput("the recipe has no data.validation: say on which images, such as folder:PATH or digits:test")
    if stored and named.startswith(PLACES):
        what = "data are" if named.startswith(ARRAYS) else "images are"
        raise NotTrusted(
            f"the checkpoint's validation {what} in {named}, and no path is read only because a checkpoint names it; "
            "if you mean these",
            (named,),
        )
    return named


def source_at(data: str) -> str:
    """The source that DATA names, or whose path it is. Raises BadInput for an unknown source, folder or file."""
    place = recipes.expanded(Path(data))
    if data not in check.SOURCES and place.is_dir():
        return f"{FOLDER}{place.absolute()}"
    if data.endswith(ARRAY_SUFFIXES) and not data.startswith(PLACES):
        data = f"{ARRAYS}{place.absolute()}"
    if ":" not in data and ("/" in data or data.startswith("~")):
        raise BadInput(f"there is no folder {data}")
    try:
        check.check_source(data)
    except BadRecipe as error:
        nor = "" if ":" in data else f"there is no folder {data}, and "
        raise BadInput(f"{nor}{error}") from error
    check_place(data)
    return data


def own_mode(recipe: Recipe) -> Mode:
    """The mode of the images that the net was trained on: digits are grey, all others are in colour."""
    return "L" if recipe.data.source.partition(":")[0] == "digits" else "RGB"


def mode_of(source: str, recipe: Recipe) -> Mode | None:
    """The mode for a source's images: files are decoded as the net's own were; other sources decide it (None)."""
    return own_mode(recipe) if source.startswith(FOLDER) else None


def batch_of(recipe: Recipe) -> int:
    """How many images at a time the recipe evaluates."""
    return recipe.data.eval_batch or recipe.data.batch


SIDE, LARGER = 224, 256 / 224  # the side of a net's input image, and how much larger the image is before the crop
LONGEST_CLASS = 500  # letters of a class's name; ImageNet's longest has 130
GREY = ("lenet5", "resnet_tiny")  # models whose images are unknown without a recipe
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]  # of ImageNet, as torchvision's models take it


class Subject(NamedTuple):
    """What is evaluated: the checkpoint as the user names it, the MindSpore file with its weights, the recipe that
    says how to use it, the names of its classes in label order (None: it does not say), and its position in its
    training run (None: it comes from no run).

    torch: whether it was converted. ema: whether its moving average is taken. averaged: whether it holds one. net:
    `FILE.py:FUNCTION` that makes the Cell, where the user names one in place of the recipe's model. stored: whether the
    recipe is the checkpoint's own. assumed: whether nothing says how images are prepared. foreign: an argument of its
    torch model that is only used if the user gives it.
    """

    checkpoint: Path
    weights: Path
    recipe: Recipe
    classes: tuple[str, ...] | None
    run: dict[str, Any] | None
    torch: bool
    ema: bool = False
    averaged: bool = False
    net: str | None = None
    stored: bool = False
    assumed: bool = False
    foreign: str | None = None

    @property
    def num_classes(self) -> int:
        """How many classes the model has."""
        return self.recipe.model.num_classes

    @property
    def counted(self) -> bool:
        """Whether the number of classes is known before the net runs: it is not for a Cell of the user's."""
        return self.net is None or "num_classes" in self.recipe.model.args

    @property
    def digest(self) -> str:
        """The recipe's digest: the one that the run recorded, where the recipe is the checkpoint's."""
        noted = (self.run or {}).get("recipe_digest") if self.stored else None
        if isinstance(noted, str) and noted.isalnum() and len(noted) == 16:
            return noted
        # a file that only a checkpoint names is not opened
        return "unknown" if self.stored and model_names.is_file(self.recipe.model.name) else self.recipe.digest

    def request(self, **images: Any) -> Request:
        """The worker's job for this net; images: the fields of the job about images."""
        return Request(
            recipe=self.recipe,
            weights=self.weights,
            shown=str(self.checkpoint),
            net=self.net,
            ema=self.ema,
            **images,
        )

    def names(self, known: Sequence[str] | None = None) -> list[str]:
        """A name for every class of the model; classes that `known` (or the checkpoint) does not name get a number."""
        names = list(known if known is not None else self.classes or ())[: self.num_classes]
        return names + [f"class {index}" for index in range(len(names), self.num_classes)]


def subject(
    options: NetOptions,
    folder: Path,
    *,
    torch_model: str | None = None,
    side: int | None = None,
    hint: str = "add --recipe FILE",
) -> Subject:
    """Settle what a checkpoint is and how it is used; a torch checkpoint is converted into `folder`.

    torch_model: the torch model of a Cell. side: of the images, where nothing says how they are prepared; None: then
    this is an error, whose remedy is hint.

    Raises BadCheckpoint, Ambiguous or Unsupported for a file that cannot be used, BadRecipe for a recipe that cannot,
    BadInput where nothing says which model this is, and NotTrusted where the checkpoint alone does and what it names
    is not harmless.
    """
    checkpoint = options.checkpoint
    if options.model is not None and options.recipe is not None:
        raise BadInput("--model or --recipe, not both: a recipe names its model")
    net = options.model if options.model is not None and not _is_recipes(options.model) else None
    named = _named(options.model) if options.model is not None and net is None else None
    if net is not None:
        model_spec.parse(net)
    if checkpoint.is_dir() and net is None:
        inside = checkpoint / "checkpoints" / "best.ckpt"
        file = inside if inside.exists() else "a file in it"
        raise BadCheckpoint(f"{checkpoint} is a folder; a checkpoint is a file: name {file}")
    given = recipes.load(recipes.find(options.recipe)) if options.recipe is not None else None
    torch = checkpoint.is_dir() or is_foreign(checkpoint)
    if torch:
        if options.ema:
            raise BadInput(f"{checkpoint} is a torch checkpoint; --ema takes the moving average that msmigrate keeps")
        weights = folder / "converted.ckpt"
        if net is not None:
            convert(checkpoint, weights, to="mindspore", into=net, model=torch_model)
        else:
            _convert(checkpoint, weights, given.model if given is not None else named)
        stored = Checkpoint({}, None)
    else:
        weights, stored = checkpoint, read_checkpoint(checkpoint)
        if options.ema and not stored.ema:
            raise BadInput(f"{checkpoint} holds no moving average; leave --ema out")
    classes, run = _classes(checkpoint, stored), stored.run
    recipe, foreign = given, None
    if recipe is None and run is not None:
        recipe, net, foreign = _stored(run, named, net, options, folder)
    elif options.trust_source is not None:
        raise BadInput(f"{OPTION} is for the source that a checkpoint names, and {checkpoint} is not needed for that")
    assumed = recipe is None
    if recipe is None:
        if options.model is None:
            raise BadInput(f"{checkpoint} does not say which model it belongs to: add --model NAME or --recipe FILE")
        recipe = _assumed(named or Model(name=options.model), side, hint)
    preparation(recipe)  # refuses a random preparation now
    own = given is None and run is not None
    found = Subject(
        checkpoint, weights, recipe, classes, run, torch, options.ema, bool(stored.ema), net, own, assumed, foreign
    )
    if classes is not None and len(classes) > found.num_classes:
        raise BadInput(
            f"{checkpoint} was trained on {len(classes)} classes and the recipe's {recipe.model.name} has "
            f"{found.num_classes}: the recipe is for another model"
        )
    return found


def _is_recipes(name: str) -> bool:
    """Whether a recipe could name this model: one of msmigrate's own, torchvision's or timm's, with or without (…)."""
    plain = name.partition("(")[0]
    return ":" not in plain or plain.partition(":")[0] in model_names.ZOOS


def _named(text: str) -> Model:
    """The model, as in a recipe, that `--model NAME(…)` names. Raises BadInput and BadRecipe where it names none."""
    spec = model_spec.parse(text if ":" in text.partition("(")[0] else f"msmigrate:{text}")
    if spec.args or spec.words:
        raise BadInput(f"--model {text}: write its arguments with their names, as in resnet18(num_classes=10)")
    name = spec.name if spec.place == "msmigrate" else f"{spec.place}:{spec.name}"
    model_names.check(name, spec.kwargs)
    try:
        return Model(name=name, args=spec.kwargs)
    except ValidationError as error:
        raise BadInput(f"--model {text}: {schema.explain(schema.worst(error), Model)}") from None


def _convert(checkpoint: Path, weights: Path, model: Model | None) -> None:
    """Convert a torch checkpoint; the classes come from a torchvision or timm model."""
    spec = torch_spec(model.name, model.args) if model is not None and not model_names.is_ours(model.name) else None
    try:
        try:
            convert(checkpoint, weights, to="mindspore")
        except Ambiguous:
            if spec is None:
                raise
            convert(checkpoint, weights, to="mindspore", model=spec)
    except Ambiguous as error:
        advice = "convert it with msmigrate convert-ckpt, which has options for this, and name the new file"
        raise Ambiguous(f"{error}; {advice}") from error


def _stored(
    run: dict[str, Any], named: Model | None, net: str | None, options: NetOptions, folder: Path
) -> tuple[Recipe, str | None, str | None]:
    """The recipe in a checkpoint of msmigrate's, the Cell that takes the place of its model, and an argument of its
    torch model that only the user may give, where there is one.

    Raises NotTrusted for a source that only the checkpoint names, and for such an argument where it would be needed.
    """
    checkpoint, tree = options.checkpoint, run.get("recipe")
    if net is not None or named is not None:
        if options.trust_source is not None:
            raise BadInput(f"--model names the source of the net, and so does {OPTION}: leave one out")
        # for a Cell of the user's, the recipe's model is only a name
        recipe = stored_recipe.read(checkpoint, tree, named or Model(name=model_names.NAMES[0]))
        return (recipe if net is None else _called(recipe, net, tree, run)), net, None
    recipe = stored_recipe.read(checkpoint, tree, None)
    foreign, source = stored_recipe.foreign_argument(recipe.model), stored_source(run)
    if source is None:
        if options.trust_source is not None:
            raise BadInput(f"{OPTION} is for the source that a checkpoint names, and {checkpoint} names none")
        if foreign is not None:
            spec = stored_recipe.spelled(recipe.model)
            raise NotTrusted(
                f"{checkpoint} says that its model is {recipe.model.name} with {foreign}; if you want it, say so",
                ("--model", spec) if spec is not None else (),
            )
        return recipe, None, None
    if options.trust_source is None:
        otherwise = f"--model FILE.py:{recipe.model.name.rpartition(':')[2]} names a file yourself"
        if source.trusting is None:
            raise NotTrusted(f"{_wants(checkpoint, source)}: {otherwise}")
        raise NotTrusted(f"{_wants(checkpoint, source)}: {otherwise}; if you trust that one", source.trusting)
    file = trusted(options.trust_source, folder)
    own = model_names.is_file(recipe.model.name)
    given = own and takes_arguments(maker(file, recipe.model.name))
    odd = stored_recipe.odd_argument(recipe.model) if given else None
    if odd is not None:
        raise NotTrusted(f"{checkpoint} says that its model is {recipe.model.name} with {odd}: add --recipe FILE", ())
    if foreign is not None and not own:  # the file needs no arguments, and the torch model is not built
        net = f"{file}:{maker(file, recipe.model.name).name}"
        return _called(recipe, recipe.model.name, tree, run), net, foreign
    return recipe.model_copy(update={"model": recipe.model.model_copy(update={"source": file})}), None, foreign


def _called(recipe: Recipe, name: str, tree: Any, run: dict[str, Any]) -> Recipe:
    """The recipe with a model of this name that is built otherwise, with as many classes as the checkpoint says."""
    model = Model(name=name, args=stored_recipe.classes_of(tree, run.get("classes")))
    return recipe.model_copy(update={"model": model})


def _wants(checkpoint: Path, source: StoredSource) -> str:
    path = shlex.quote(source.path)
    return f"{checkpoint} names {path}, {source.words}, as its net's source, and no file that a checkpoint names is run"


def _classes(checkpoint: Path, stored: Checkpoint) -> tuple[str, ...] | None:
    """The class names that training left in the checkpoint."""
    names = (stored.run or {}).get("classes")
    if not names:
        return None
    sound = isinstance(names, list) and all(isinstance(name, str) and name.isprintable() for name in names)
    if not sound or len(set(names)) < len(names):
        raise BadCheckpoint(f"{checkpoint} is damaged: its class names are not a list of different names")
    if len(max(names, key=len)) > LONGEST_CLASS:
        raise BadCheckpoint(
            f"{checkpoint} is damaged: it has the name of a class with more than {LONGEST_CLASS} letters"
        )
    return tuple(names)


def _assumed(model: Model, side: int | None, hint: str) -> Recipe:
    """A recipe for a model where nothing says how its images are prepared: as for torchvision's classifiers, resized,
    cropped to `side`, and normalized as ImageNet's are."""
    if model.name in GREY:
        if side is None:
            raise BadInput(f"--model {model.name} does not say which images it takes: {hint}")
        return Recipe(model=model, data=Data(), optimizer=Optimizer(name="SGD"))
    side = side or SIDE
    parts = [
        Part(name="Resize", args={"size": round(side * LARGER)}),
        Part(name="CenterCrop", args={"size": side}),
        Part(name="ToTensor"),
        Part(name="Normalize", args={"mean": MEAN, "std": STD}),
    ]
    return Recipe(model=model, data=Data(transforms=parts), optimizer=Optimizer(name="SGD"))


def labelled(subject: Subject, named: str) -> tuple[tuple[str, ...], list[int] | None]:
    """The classes of a source, and the net's number for each, by name (None: the checkpoint names no classes).

    Raises BadInput with the classes that the checkpoint does not know, and what open_source raises.
    """
    if named.startswith(ARRAYS) is not subject.recipe.data.of_arrays:
        what = "arrays of a file" if subject.recipe.data.of_arrays else "images"
        raise BadInput(f"{named}: the net of {subject.checkpoint} was trained on {what}, and takes no other data")
    if named.startswith(ARRAYS):
        return open_arrays(named, subject.recipe.model).classes, None
    if subject.classes is not None and named.startswith(FOLDER):  # unknown classes are more helpful than a count
        _refuse_unknown(class_names(recipes.expanded(Path(named.removeprefix(FOLDER)))), subject, named)
    classes = open_source(named, subject.num_classes, training=False).classes
    if subject.classes is None:
        return classes, None
    _refuse_unknown(classes, subject, named)
    number = {name: index for index, name in enumerate(subject.classes)}
    return classes, [number[name] for name in classes]


def _refuse_unknown(classes: Sequence[str], subject: Subject, named: str) -> None:
    assert subject.classes is not None
    unknown = [name for name in classes if name not in subject.classes]
    if unknown:
        raise BadInput(
            f"{named} has classes that {subject.checkpoint} was not trained on: {few(unknown, 5)}; "
            f"it knows {few(subject.classes, 5)}"
        )


MOST_NAMES = 1 << 24  # bytes of a file of class names


def names_in(place: Path, subject: Subject) -> list[str]:
    """Class names from a tree of class folders, or from a file with one a line, as many as the model has classes, where
    that is known."""
    names = class_file(place)
    if subject.counted and len(names) != subject.num_classes:
        raise BadInput(
            f"--classes {place} names {len(names)} classes and the model of {subject.checkpoint} has "
            f"{subject.num_classes}"
        )
    return names


def class_file(place: Path) -> list[str]:
    """The names in a tree of class folders, or in a file with one a line. Raises BadInput."""
    if place.is_dir():
        return class_names(place)
    try:
        names = [line.strip() for line in read_text(place, MOST_NAMES).rstrip().splitlines()]
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"--classes {place} cannot be read: {why}") from error
    for number, name in enumerate(names, 1):
        if len(name) > LONGEST_CLASS:
            raise BadInput(
                f"--classes {place}, line {number}: {len(name):,} letters, and the name of a class has at most "
                f"{LONGEST_CLASS}: give a file with one name on each line"
            )
    return names
