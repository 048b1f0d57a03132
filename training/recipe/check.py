"""Whether the mapping table can run every part of a recipe; the first problem, in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...errors import BadInput, BadRecipe, MsmigrateError, UnknownRow
from ...mappings import table
from ...mappings.rows import Argument, Row
from ..models import model_names
from ..step.parameter_groups import BACK
from . import part_arguments
from .schema import (
    ARRAY_SUFFIXES,
    ARRAYS,
    FINE_TUNING,
    FOLDER,
    IN_FOLDERS,
    PLACES,
    Data,
    Loss,
    Model,
    Part,
    Recipe,
    explain,
    table_args,
    worst,
)

SYNTHETIC = "synthetic"
SOURCES = ("photographs", "digits", "digits:train", "digits:test", SYNTHETIC)
KNOWN = (*SOURCES[:-1], f"{SYNTHETIC}[:COUNT[xSIDE]]", *(f"{kind}PATH" for kind in PLACES))
COUNT, SIDE = 1024, 64  # of the synthetic images, where the source's name leaves them out
LARGEST = {"COUNT": 10_000_000, "SIDE": 4096}


def check_source(source: str) -> None:
    """Raise BadRecipe, with the closest known name, unless `source` is the name of a source."""
    kind, colon, rest = source.partition(":")
    if source in SOURCES:
        return
    if kind + colon in PLACES:
        what = "a folder" if kind + colon in IN_FOLDERS else f"a file that ends in {' or '.join(ARRAY_SUFFIXES)}"
        if not rest or "\0" in rest:
            raise BadRecipe(f"{source!r} has no path: {kind}:PATH, with the path of {what}")
        if kind + colon not in IN_FOLDERS and not rest.endswith(ARRAY_SUFFIXES):
            raise BadRecipe(f"{source!r}: expected the path of {what}, as numpy.savez writes one")
        return
    if kind == SYNTHETIC:
        synthetic_size(source)
        return
    raise BadRecipe(f"there is no source {source!r}; {_hint(source)}")


def synthetic_size(source: str) -> tuple[int, int]:
    """Count and side of 'synthetic:COUNTxSIDE', both optional; raises BadRecipe for other words."""
    words = source.partition(":")[2]
    count, cross, side = words.partition("x")
    parts = ({"COUNT": count} if ":" in source else {}) | ({"SIDE": side} if cross else {})
    for part, word in parts.items():
        if not (word.isascii() and word.isdigit() and len(word) < 12 and 1 <= int(word) <= LARGEST[part]):
            raise BadRecipe(
                f"{source!r} is not {SYNTHETIC}[:COUNT[xSIDE]], such as {SYNTHETIC}:{COUNT}x{SIDE}: "
                f"{part} is a whole number from 1 to {LARGEST[part]}, not {word!r}"
            )
    return int(parts.get("COUNT", COUNT)), int(parts.get("SIDE", SIDE))


def _hint(source: str) -> str:
    """The closest known name, or all of them."""
    kind, colon, _ = source.lower().partition(":")
    near = difflib.get_close_matches(source.lower(), SOURCES, n=1)
    if colon:
        kinds = difflib.get_close_matches(kind + colon, [*PLACES, f"{SYNTHETIC}:"], n=1)
        near = near or [found + source.partition(":")[2] for found in kinds]
    elif "/" in source or source.startswith(("~", ".")):
        near = [f"{FOLDER}{source}"]
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(KNOWN)}"


HANDED_OVER = ("params", "optimizer")  # arguments that the step itself passes to an optimizer and to a schedule
FACTOR = "FILE.py:NAME, a function of your own that makes a factor of a count of moves, or a list of such"
REDUCTIONS = ("mean", "sum")
FEW = 12  # names that a message lists
OUTSIDE = {  # rows of the table that a step cannot run
    "torchvision.transforms.FiveCrop": "makes several images of one, and a step trains on single ones",
    "torchvision.transforms.TenCrop": "makes several images of one, and a step trains on single ones",
    "torchvision.transforms.PILToTensor": "leaves bytes, and a step trains on numbers: use ToTensor",
    "torch.optim.lr_scheduler.ReduceLROnPlateau": "moves by a measured value, a recipe's schedule by steps or epochs: "
    "name MultiStepLR with the epochs at which torch's run moved, or leave the schedule out",
}
# the losses that a step has labels for: class indices for the first, one-hot rows for the others
LOSSES = (
    *("CrossEntropyLoss", "MSELoss", "BCEWithLogitsLoss", "L1Loss", "SmoothL1Loss", "HuberLoss"),
    "MultiLabelSoftMarginLoss",
)
# those that take the labels of a file of arrays as they are, whatever they hold
LOSSES_OF_ARRAYS = (
    *("NLLLoss", "BCELoss", "KLDivLoss", "SoftMarginLoss", "PoissonNLLLoss"),
    *("MultiMarginLoss", "MultiLabelMarginLoss"),
)
Loc = tuple[Any, ...]


@dataclass(frozen=True)
class Problem:
    """What is wrong, and where: the keys and indices that lead to it."""

    loc: Loc
    error: MsmigrateError


def _own_file(model: Model, data: Data) -> Iterator[Problem]:
    """Problems with keys that a model of the user's own needs, and that other models must not have."""
    if model_names.is_ours(model.name) and model.source is not None:
        message = f"model.source: {model.name} is msmigrate's own; source is for torchvision:, timm: and FILE.py:NAME"
        yield Problem(("model", "source"), BadRecipe(message))
    if not model_names.is_file(model.name):
        if model.classes is not None:
            message = f"model.classes is for FILE.py:NAME; {model.name} takes args: {{num_classes: {model.classes}}}"
            yield Problem(("model", "classes"), BadRecipe(message))
        return
    if model.source is None:
        own = Path(model.name.rpartition(":")[0])
        message = f"model: {model.name} needs source: FILE, its counterpart in MindSpore; msmigrate convert-model "
        message += f"{model.name} -o {own.stem}_mindspore.py writes one"
        yield Problem(("model",), BadRecipe(message))
    if model.classes is None and "num_classes" not in model.args and not data.of_arrays:
        message = f"model: say how many classes {model.name} has, as classes: 10"
        yield Problem(("model",), BadRecipe(message))
    if model.classes is not None and model.args.get("num_classes", model.classes) != model.classes:
        message = f"model.classes is {model.classes} and its num_classes {model.args['num_classes']}: leave one out"
        yield Problem(("model", "classes"), BadRecipe(message))


def first_problem(recipe: Recipe) -> Problem | None:
    """The first thing about the recipe that cannot be run, or None."""
    return next(_problems(recipe), None)


def _problems(recipe: Recipe) -> Iterator[Problem]:
    try:
        model_names.check(recipe.model.name, recipe.model.args)
    except MsmigrateError as error:
        argument = next((key for key in recipe.model.args if repr(key) in str(error)), None)
        yield Problem(("model", "args", argument) if argument else ("model",), error)
    if recipe.model.checkpoint is not None and not recipe.model.checkpoint.name:
        yield Problem(("model", "checkpoint"), BadRecipe("model.checkpoint: is empty; it is a file's path"))
    yield from _own_file(recipe.model, recipe.data)
    yield from _fine_tuning(recipe.model)
    for key, source in (("source", recipe.data.source), ("validation", recipe.data.validation)):
        if source is not None:
            yield from _source(key, source)
    yield from _transforms(recipe.data)
    yield from _arrays(recipe)
    yield from _together(recipe)
    yield from _loss(recipe.loss, (*LOSSES, *LOSSES_OF_ARRAYS) if recipe.data.of_arrays else LOSSES)
    yield from _part("optimizer", recipe.optimizer, ("optimizer",))
    for index, group in enumerate(recipe.optimizer.groups):
        part = Part(name=recipe.optimizer.name, args=group.args)
        yield from _part("optimizer", part, ("optimizer", "groups", index), partial=True)
    if recipe.schedule:
        yield from _schedule(recipe.schedule)
        yield from _cycled_momentum(recipe.schedule, recipe.optimizer.name)


def _loss(loss: Loss, known: Sequence[str]) -> Iterator[Problem]:
    """Problems with the loss: the user's own has to name its counterpart; any other is one that a step has targets
    for, one of `known`."""
    if loss.own:
        if loss.source is None:
            message = f"loss: {loss.name} needs source: FILE, with {loss.name.rpartition(':')[2]} in MindSpore"
            yield Problem(("loss",), BadRecipe(message))
        return
    if loss.source is not None:
        message = f"loss.source is for FILE.py:NAME; {loss.name} is msmigrate's own"
        yield Problem(("loss", "source"), BadRecipe(message))
    yield from _part("loss", loss, ("loss",))
    if (name := table.row(loss.name).short) not in known:
        message = f"loss: a recipe has no {name}; it has {', '.join(known)}, and your own as FILE.py:NAME"
        message += f" ({name} takes the labels of data.source: {ARRAYS}FILE)" if name in LOSSES_OF_ARRAYS else ""
        yield Problem(("loss", "name"), BadRecipe(message))
    if loss.args.get("reduction", "mean") not in REDUCTIONS:
        message = f"loss.args.reduction: a step needs one number, so {' or '.join(REDUCTIONS)}"
        yield Problem(("loss", "args", "reduction"), BadRecipe(message))


def _fine_tuning(model: Model) -> Iterator[Problem]:
    """Patterns that make no sense; whether they match is only known with the model."""
    for key in FINE_TUNING:
        patterns = getattr(model, key)
        if patterns and patterns[0].startswith(BACK):
            message = f"model.{key}.0: {patterns[0]!r} excludes names, but no pattern before it includes any: "
            message += "begin with '*'"
            yield Problem(("model", key, 0), BadRecipe(message))
        if "" in patterns:
            yield Problem(("model", key, patterns.index("")), BadRecipe(f"model.{key}: a pattern is empty"))
    if model.fresh and model.checkpoint is None:
        message = "model.fresh: without model.checkpoint every weight starts fresh: remove it, or name a checkpoint"
        yield Problem(("model", "fresh"), BadRecipe(message))


def _together(recipe: Recipe) -> Iterator[Problem]:
    """Keys that do not fit together, each at the key to change."""
    batch, parts = recipe.data.batch, recipe.accumulate
    if batch % parts:
        message = f"accumulate: data.batch {batch} does not divide into accumulate {parts} equal micro-batches"
        yield Problem(("accumulate",), BadRecipe(message))
    if recipe.loss_scale is not None and recipe.dynamic_loss_scale is not None:
        message = "loss_scale and dynamic_loss_scale are both given: leave one out"
        yield Problem(("loss_scale",), BadRecipe(message))
    if recipe.mixup is not None and recipe.loss.args.get("label_smoothing"):
        message = "loss.args.label_smoothing: mixup smooths the labels itself: remove it from loss.args"
        yield Problem(("loss", "args", "label_smoothing"), BadRecipe(message))


def _transforms(data: Data) -> Iterator[Problem]:
    for key, transforms in (("transforms", data.transforms), ("eval_transforms", data.eval_transforms or [])):
        for index, transform in enumerate(transforms):
            yield from _part("transform", transform, ("data", key, index))
            if part_arguments.is_random(transform) and not part_arguments.can_draw(transform):
                message = (
                    f"data.{key}.{index}: {transform.name} draws, and both frameworks cannot be given the same draws"
                )
                yield Problem(("data", key, index), BadRecipe(f"{message}: use {', '.join(part_arguments.DRAWABLE)}"))
            if key == "eval_transforms" and part_arguments.is_random(transform):
                message = f"data.{key}.{index}: {transform.name} is random, and an evaluation has to be repeatable"
                yield Problem(("data", key, index), BadRecipe(f"{message}: leave it out"))
        found = part_arguments.misplaced(transforms)
        if found:
            index, error = found
            yield Problem(("data", key, index), BadRecipe(f"data.{key}.{index}: {error}"))


def _arrays(recipe: Recipe) -> Iterator[Problem]:
    """Keys for images where the data are arrays, which are used as they are; and images together with arrays."""
    data = recipe.data
    if data.validation is not None and data.validation.startswith(ARRAYS) is not data.of_arrays:
        both = f"data.validation: {data.validation} and data.source {data.source}"
        message = f"{both}: both have to be {ARRAYS}FILE, or neither"
        yield Problem(("data", "validation"), BadRecipe(message))
    if not data.of_arrays:
        return
    images = {
        "transforms": data.transforms,
        "eval_transforms": data.eval_transforms,
        "fast_transforms": data.fast_transforms,
        "cache": data.cache,
        "on_corrupt": data.on_corrupt == "skip",
    }
    for key in (key for key, said in images.items() if said):
        message = f"data.{key} is for images, and the arrays of a file are used as they are: leave it out"
        yield Problem(("data", key), BadRecipe(message))
    if recipe.mixup is not None:
        yield Problem(("mixup",), BadRecipe("mixup is for images, and data.source is a file of arrays: leave it out"))


def _source(key: str, source: str) -> Iterator[Problem]:
    try:
        check_source(source)
    except BadRecipe as error:
        yield Problem(("data", key), BadRecipe(f"data.{key}: {error}"))


def _schedule(schedule: Part) -> Iterator[Problem]:
    """A schedule's problems; one that holds others is checked from the inside."""
    if "schedulers" not in schedule.args:
        yield from _part("schedule", schedule, ("schedule",))
        return
    inside = schedule.args["schedulers"]
    loc: Loc = ("schedule", "args", "schedulers")
    if not isinstance(inside, list) or not inside:
        yield Problem(loc, BadRecipe(f"{_dotted(loc)}: must be a list of schedules, each with name and args"))
        return
    for index, raw in enumerate(inside):
        try:
            part = Part.model_validate(raw)
        except ValidationError as error:
            first = worst(error)
            yield Problem((*loc, index, *first["loc"]), BadRecipe(explain(first, Part, (*loc, index))))
            return
        yield from _part("schedule", part, (*loc, index))
    yield from _part("schedule", schedule, ("schedule",))
    if schedule.name.rpartition(".")[2] == "ChainedScheduler":
        return
    milestones = schedule.args.get("milestones", [])
    if len(milestones) != len(inside) - 1 or sorted(set(milestones)) != milestones:
        message = f"{len(inside)} schedules need {len(inside) - 1} milestones between them, in rising order"
        yield Problem(("schedule", "args", "milestones"), BadRecipe(f"schedule.args.milestones: {message}"))


CYCLING = "msmigrate.optim."  # MindSpore's own optimizers compile their momentum in as a constant


def _cycled_momentum(schedule: Part, optimizer: str) -> Iterator[Problem]:
    """A schedule that cycles the momentum of an optimizer that has none, or cannot have another one in every step."""
    if not table.arguments(schedule.name, schedule.args).get("cycle_momentum"):
        return
    row = table.row(optimizer)
    has = {argument.torch for argument in row.arguments} & {"momentum", "betas"}
    if not has or not str(row.mindspore).startswith(CYCLING):
        why = f"{row.short}'s momentum is a constant in MindSpore" if has else f"{row.short} has no momentum"
        message = f"{schedule.name} cycles the momentum, and {why}: write cycle_momentum: false, in torch too"
        yield Problem(("schedule", "args"), BadRecipe(f"schedule.args: {message}"))


def _part(kind: str, part: Part, loc: Loc, partial: bool = False) -> Iterator[Problem]:
    """Whether the table has the part, as this kind, with these arguments."""
    where = _dotted(loc)
    try:
        row = table.row(part.name)
    except UnknownRow:
        yield Problem((*loc, "name"), BadRecipe(f"{where}: there is no {kind} {part.name!r}; {_closest(kind, part)}"))
        return
    if row.kind != kind:
        message = f"{where}: {part.name} is {_article(row.kind)}, not {_article(kind)}; {_closest(kind, part)}"
        yield Problem((*loc, "name"), BadRecipe(message))
        return
    if row.torch in OUTSIDE:
        yield Problem((*loc, "name"), BadRecipe(f"{where}: {row.short} {OUTSIDE[row.torch]}"))
        return
    known = {argument.torch: argument for argument in row.arguments if argument.torch not in HANDED_OVER}
    for name, value in part.args.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known) or 'none'}"
            message = f"{where}: {row.short} has no argument {name!r}; {hint}"
            yield Problem((*loc, "args", name), BadRecipe(message))
            return
        wanted = _wanted(row, known[name], value)
        if wanted:
            message = f"{where}: {row.short}'s {name} must be {wanted}, not {value!r}"
            yield Problem((*loc, "args", name), BadRecipe(message))
            return
    try:
        table.translate(part.name, table_args(part), partial=partial)
        if part_arguments.can_draw(part):
            part_arguments.check(part)
    except BadInput as error:
        yield Problem(loc, BadRecipe(f"{where}: {error}"))
    except MsmigrateError as error:
        argument = next((name for name in part.args if f"{name}=" in str(error)), None)
        yield Problem((*loc, "args", argument) if argument else loc, type(error)(f"{where}: {error}"))


def _wanted(row: Row, argument: Argument, value: Any) -> str | None:
    """What the argument's value should have been, in words; None when it fits, or when translating it will show."""
    if argument.values:
        return None
    if argument.torch in model_names.OWN_FUNCTIONS:
        names = value if isinstance(value, list) else [value]
        return None if names and all(isinstance(one, str) and model_names.is_file(one) for one in names) else FACTOR
    default = None if argument.required else argument.default
    return part_arguments.wanted(row.short, argument.torch, value, default)


def _closest(kind: str, part: Part) -> str:
    rows = [row for row in table.rows(kind) if row.mindspore and row.torch not in OUTSIDE]
    near = [name.rpartition(".")[2] for name in table.closest(part.name, rows)]
    near = [name for name in near if name.startswith(part.name)] or near  # CrossEntropy is short for CrossEntropyLoss
    if near:
        return f"did you mean {' or '.join(near)}?"
    rest = f" and {len(rows) - FEW} more (`msmigrate mappings --kind {kind}`)" if len(rows) > FEW else ""
    return f"known: {', '.join(row.short for row in rows[:FEW])}{rest}"


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _dotted(loc: Loc) -> str:
    return ".".join(str(part) for part in loc)


def check(recipe: Recipe) -> None:
    """Look up every part in the mapping table, so that a recipe that cannot run fails before a framework is started."""

    problem = first_problem(recipe)
    if problem:
        raise problem.error
