"""Which net a checkpoint is of, how images are prepared for it, and what of that the checkpoint may say itself.

What the user names (`--model`, `--recipe`) is built as it stands. What only the checkpoint names is data: see
train/stored_recipe.py.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from ...errors import Ambiguous, BadCheckpoint, BadInput, NotTrusted
from ...migrate import model_spec
from ...migrate.convert import convert
from ...migrate.stored_source import OPTION, StoredSource, stored_source, trusted
from .. import recipe as recipes
from .. import stored_recipe
from ..data.data_sources import open_source
from ..data.image_folder import class_names
from ..models import model_names
from ..models.converted import maker, torch_spec
from ..recipe import FOLDER, Data, Model, Optimizer, Part, Recipe
from ..run.checkpoints import Checkpoint
from ..run.checkpoints import read as read_checkpoint
from .inference_weights import is_foreign
from .request import preparation

SIDE, LARGER = 224, 256 / 224  # the image that a net takes, and how much larger the one is from which it is cut
LONGEST_CLASS = 500  # letters of a class's name; ImageNet's longest has 130
GREY = ("lenet5", "resnet_tiny")  # models whose images nobody knows without a recipe
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]  # of ImageNet, as torchvision's models take it


class Subject(NamedTuple):
    """What is evaluated: the checkpoint as the user names it, the MindSpore file with its weights, the recipe that
    says how to use it, the names of its classes in label order (None: it does not say), and where it stands in its
    training run (None: it is of none).

    torch: whether it was converted. averaged: whether it holds a moving average too. net: `FILE.py:FUNCTION` that makes
    the Cell, where the user names one in place of the recipe's model. stored: whether the recipe is the checkpoint's
    own. assumed: whether nothing said how images are prepared. foreign: an argument of its torch model, with which that
    is built only where the user says so.
    """

    checkpoint: Path
    weights: Path
    recipe: Recipe
    classes: tuple[str, ...] | None
    run: dict[str, Any] | None
    torch: bool
    averaged: bool = False
    net: str | None = None
    stored: bool = False
    assumed: bool = False
    foreign: str | None = None

    @property
    def num_classes(self) -> int:
        """How many classes the model tells apart."""
        return model_names.num_classes(self.recipe.model.name, self.recipe.model.args)

    @property
    def counted(self) -> bool:
        """Whether the number of classes is known before the net runs, and not of a Cell of the user's."""
        return self.net is None or "num_classes" in self.recipe.model.args

    @property
    def digest(self) -> str:
        """The recipe's digest: that which the run noted, where the recipe is the checkpoint's."""
        noted = (self.run or {}).get("recipe_digest") if self.stored else None
        return noted if isinstance(noted, str) and noted.isalnum() and len(noted) == 16 else self.recipe.digest

    def names(self, known: Sequence[str] | None = None) -> list[str]:
        """A name for every class of the model; those that `known` (or the checkpoint) does not name get a number."""
        names = list(known if known is not None else self.classes or ())[: self.num_classes]
        return names + [f"class {index}" for index in range(len(names), self.num_classes)]


class NetOptions(NamedTuple):
    """What the user says of the net.

    model: a model that a recipe may name, `torchvision:NAME(…)`, or `FILE.py:FUNCTION` that makes a MindSpore Cell.
    trust: `FILE@sha256:DIGEST` of a source that the checkpoint names. torch: the torch model of a Cell. side: of the
    images, where nothing says how they are prepared; None: a model of which nobody knows it has to be said otherwise,
    for which hint has the words.
    """

    model: str | None = None
    recipe: Path | None = None
    trust: str | None = None
    ema: bool = False
    torch: str | None = None
    side: int | None = None
    hint: str = "add --recipe FILE"


def subject(checkpoint: Path, options: NetOptions, folder: Path) -> Subject:
    """Settle what a checkpoint is and how it is used; a torch checkpoint is converted into `folder`.

    Raises BadCheckpoint, Ambiguous or Unsupported for a file that cannot be used, BadRecipe for a recipe that cannot,
    BadInput where nothing says which model this is, and NotTrusted where the checkpoint alone does and what it names
    is not harmless.
    """
    if options.model is not None and options.recipe is not None:
        raise BadInput("--model or --recipe, not both: a recipe names its model")
    net = options.model if options.model is not None and not _is_recipes(options.model) else None
    named = _named(options.model) if options.model is not None and net is None else None
    if net is not None:
        model_spec.parse(net)
    if checkpoint.is_dir() and net is None:
        inside = checkpoint / "checkpoints" / "best.ckpt"
        hint = inside if inside.exists() else "a file in it"
        raise BadCheckpoint(f"{checkpoint} is a folder; a checkpoint is a file: name {hint}")
    given = recipes.load(options.recipe) if options.recipe is not None else None
    torch = checkpoint.is_dir() or is_foreign(checkpoint)
    if torch:
        if options.ema:
            raise BadInput(f"{checkpoint} is a torch checkpoint; --ema takes the moving average that msmigrate keeps")
        weights = folder / "converted.ckpt"
        if net is not None:
            convert(checkpoint, weights, to="mindspore", into=net, model=options.torch)
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
        recipe, net, foreign = _stored(checkpoint, run, named, net, options, folder)
    elif options.trust is not None:
        raise BadInput(f"{OPTION} is for the source that a checkpoint names, and {checkpoint} is not needed for that")
    assumed = recipe is None
    if recipe is None:
        if options.model is None:
            raise BadInput(f"{checkpoint} does not say which model it is of: add --model NAME or --recipe FILE")
        recipe = _assumed(named or Model(name=options.model), options)
    preparation(recipe)  # or refuse it now
    own = given is None and run is not None
    found = Subject(checkpoint, weights, recipe, classes, run, torch, bool(stored.ema), net, own, assumed, foreign)
    if classes is not None and len(classes) > found.num_classes:
        raise BadInput(
            f"{checkpoint} was trained on {len(classes)} classes and the recipe's {recipe.model.name} has "
            f"{found.num_classes}: the recipe is of another model"
        )
    return found


def _is_recipes(name: str) -> bool:
    """Whether a recipe could name this model: one of msmigrate's own, torchvision's or timm's, perhaps called."""
    plain = name.partition("(")[0]
    return ":" not in plain or plain.partition(":")[0] in model_names.ZOOS


def _named(text: str) -> Model:
    """The recipe's model that `--model NAME(…)` is. Raises BadInput and BadRecipe for what names none."""
    spec = model_spec.parse(text if ":" in text.partition("(")[0] else f"msmigrate:{text}")
    if spec.args:
        raise BadInput(f"--model {text}: write its arguments with their names, as in resnet18(num_classes=10)")
    name = spec.name if spec.place == "msmigrate" else f"{spec.place}:{spec.name}"
    model_names.check(name, spec.kwargs)
    try:
        return Model(name=name, args=spec.kwargs)
    except ValidationError as error:
        raise BadInput(f"--model {text}: {recipes.explain(recipes.worst(error), Model)}") from None


def _convert(checkpoint: Path, weights: Path, model: Model | None) -> None:
    """Convert a torch checkpoint; a model of torchvision or timm tells its classes."""
    spec = torch_spec(model.name, model.args) if model is not None and model_names.is_zoo(model.name) else None
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
    checkpoint: Path, run: dict[str, Any], named: Model | None, net: str | None, options: NetOptions, folder: Path
) -> tuple[Recipe, str | None, str | None]:
    """The recipe that a checkpoint of ours carries, the Cell that stands for its model, and an argument of its torch
    model that only the user may say, where there is one.

    Raises NotTrusted for a source that only the checkpoint names, and for such an argument where it would be needed.
    """
    tree = run.get("recipe")
    if net is not None or named is not None:
        if options.trust is not None:
            raise BadInput(f"--model names the source of the net, and so does {OPTION}: leave one out")
        # a Cell of the user's stands for itself: the name is only what it is called
        recipe = stored_recipe.read(checkpoint, tree, named or Model(name=model_names.NAMES[0]))
        return (recipe if net is None else _called(recipe, net, tree, run)), net, None
    recipe = stored_recipe.read(checkpoint, tree, None)
    foreign, source = stored_recipe.foreign_argument(recipe.model), stored_source(run)
    if source is None:
        if options.trust is not None:
            raise BadInput(f"{OPTION} is for the source that a checkpoint names, and {checkpoint} names none")
        if foreign is not None:
            spec = stored_recipe.spelled(recipe.model)
            raise NotTrusted(
                f"{checkpoint} says that its model is {recipe.model.name} with {foreign}; if you want it, say so",
                ("--model", spec) if spec is not None else (),
            )
        return recipe, None, None
    if options.trust is None:
        otherwise = f"--model FILE.py:{recipe.model.name.rpartition(':')[2]} names a file yourself"
        if source.trusting is None:
            raise NotTrusted(f"{_wants(checkpoint, source)}: {otherwise}")
        raise NotTrusted(f"{_wants(checkpoint, source)}: {otherwise}; if you trust that one", source.trusting)
    file = trusted(options.trust, folder)
    if foreign is not None:  # the file needs no arguments, and the torch model is not built
        net = f"{file}:{maker(file, recipe.model.name)}"
        return _called(recipe, recipe.model.name, tree, run), net, foreign
    return recipe.model_copy(update={"model": recipe.model.model_copy(update={"source": file})}), None, None


def _called(recipe: Recipe, name: str, tree: Any, run: dict[str, Any]) -> Recipe:
    """The recipe with a model that is built otherwise, under a name, with as many classes as the checkpoint says."""
    model = Model(name=name, args=stored_recipe.classes_of(tree, run.get("classes")))
    return recipe.model_copy(update={"model": model})


def _wants(checkpoint: Path, source: StoredSource) -> str:
    path = shlex.quote(source.path)
    return f"{checkpoint} names {path}, {source.words}, as its net's source, and nothing that a checkpoint names is run"


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


def _assumed(model: Model, options: NetOptions) -> Recipe:
    """A recipe for a model of which nothing says how its images are prepared: as for torchvision's classifiers,
    resized, cropped to `options.side`, and normalized as ImageNet's are."""
    if model.name in GREY:
        if options.side is None:
            raise BadInput(f"--model {model.name} does not say which images it takes: {options.hint}")
        return Recipe(model=model, data=Data(), optimizer=Optimizer(name="SGD"))
    side = options.side or SIDE
    parts = [
        Part(name="Resize", args={"size": round(side * LARGER)}),
        Part(name="CenterCrop", args={"size": side}),
        Part(name="ToTensor"),
        Part(name="Normalize", args={"mean": MEAN, "std": STD}),
    ]
    return Recipe(model=model, data=Data(transforms=parts), optimizer=Optimizer(name="SGD"))


def labelled(subject: Subject, named: str) -> tuple[tuple[str, ...], list[int] | None]:
    """The classes of a source, and of each its number in the net, by name (None: the checkpoint names no classes).

    Raises BadInput that lists the classes which the checkpoint does not know, and what open_source raises.
    """
    if subject.classes is not None and named.startswith(FOLDER):  # an unknown class is the better news than too many
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
            f"{named} has classes that {subject.checkpoint} was not trained on: {_few(unknown)}; "
            f"it knows {_few(subject.classes)}"
        )


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
