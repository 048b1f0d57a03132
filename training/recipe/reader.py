"""YAML to Recipe: strict reading, line numbers, paths made absolute."""

from __future__ import annotations

import difflib
import unicodedata
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from ... import yaml_reader
from ...errors import BadInput, BadRecipe, MsmigrateError
from ...printable import shortened
from ..models import model_names
from .schema import ASK, PLACES, Recipe, explain, worst

DEFAULT = Path(__file__).parent.parent.parent / "recipes" / "resnet50.yaml"


def installed() -> dict[str, Path]:
    """The recipes that come with msmigrate, by name."""
    return {file.stem: file for file in sorted(DEFAULT.parent.glob("*.yaml"))}


def find(word: Path | None) -> Path:
    """The file of a recipe: the named file, or the recipe of that name that comes with msmigrate; the default for None.

    A file of that name in the working directory comes first. Raises BadInput, with the known names, for a bare word
    that is neither.
    """
    if word is None:
        return DEFAULT
    brought = installed()
    if word.suffix or word.name != str(word) or (word.exists() and not (word.is_dir() and word.name in brought)):
        return word  # an error is raised where the file is opened
    if word.name in brought:
        return brought[word.name]
    near = difflib.get_close_matches(word.name, brought, n=1)
    meant = f"did you mean {near[0]}? msmigrate" if near else "msmigrate"
    raise BadInput(f"there is no file {word}, and no recipe of that name; {meant} brings {', '.join(brought)}")


class Refusal(NamedTuple):
    """Why a recipe is refused, and on which of its lines."""

    error: type[MsmigrateError]
    line: int
    reason: str


def load(path: Path) -> Recipe:
    """Read and check a recipe.

    A relative `checkpoint` and a relative `folder:` source are taken from the recipe's own folder, `~` is the user's
    home. Nothing in the file is ever executed. Raises BadRecipe with file, line and the nearest known key; Unsupported
    where the mapping table has no counterpart for an argument.
    """
    recipe = _checked(path, draft=False)
    if isinstance(recipe, Refusal):
        raise recipe.error(f"{path}:{recipe.line}: {recipe.reason}")
    return _beside(recipe, path.parent.absolute())  # a worker may read a file while it works in another folder


def check(path: Path, *, draft: bool = False) -> Refusal | None:
    """Why a recipe is refused, or None where it can be run; raises BadRecipe where it is no YAML or no mapping.

    draft: the values that the draft asks for, and the lines that it lists as not in it, are not checked; the rest is.
    """
    recipe = _checked(path, draft=draft)
    return recipe if isinstance(recipe, Refusal) else None


def _checked(path: Path, *, draft: bool) -> Recipe | Refusal:
    from .check import first_problem

    raw, tree = read(path)
    if not isinstance(raw, dict):
        raise BadRecipe(f"{path}: a recipe is a mapping with the keys {', '.join(Recipe.model_fields)}")

    def refused(error: type[MsmigrateError], loc: tuple[Any, ...], text: str) -> Refusal:
        return Refusal(error, yaml_reader.line(tree, loc), shortened(text))

    odd = odd_text(raw)
    if odd is not None:
        place = repr(".".join(map(str, odd[0])))[1:-1]
        return refused(BadRecipe, odd[0], f"{place}: a text must not hold {odd[1]!r}")
    problem = unresolved(raw) if not draft else None
    if problem is not None:
        return refused(BadRecipe, *problem)
    if draft:
        raw = _without_questions(raw)
    try:
        recipe = Recipe.model_validate(raw)
    except ValidationError as error:
        first = worst(error)
        return refused(BadRecipe, first["loc"], _missing(error, first) or explain(first, Recipe))
    found = first_problem(recipe)
    return refused(type(found.error), found.loc, str(found.error)) if found else recipe


def _missing(error: ValidationError, first: Any) -> str:
    """All keys that the recipe lacks, with lines to paste; empty where another error comes first."""
    missing = [str(one["loc"][0]) for one in error.errors() if one["type"] == "missing" and len(one["loc"]) == 1]
    if first["type"] != "missing" or not missing:
        return ""
    lines = ", ".join(f"`{key}: {_line(NEEDED[key])}`" for key in missing)
    own = "; for a pair (--torch, --mindspore) the model is not built, and an optimizer of the pair replaces this one"
    return f"the recipe lacks {' and '.join(missing)}: write {lines}{own}"


def _line(value: Any) -> str:
    """A value as YAML in one line."""
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False).strip()


NEEDED: dict[str, Any] = {"model": {"name": "resnet18"}, "optimizer": {"name": "SGD", "args": {"lr": 0.1}}}
WANTED = {  # what to write where a draft asks
    "model": "torchvision:NAME, timm:NAME, FILE.py:NAME or one of msmigrate's own; a pair's (--torch) is not built",
    "model.checkpoint": "the file of a state_dict that training starts from, or remove the line",
    "data": "where the images come from, and how they are prepared",
    "data.source": "folder:PATH, cifar10:PATH, digits or photographs",
    "data.validation": "folder:PATH or another source, or remove the line",
    "data.batch": "how many images make a step",
    "data.transforms": "the list of transforms of the training images, at least [{name: ToTensor}]",
    "data.eval_transforms": "the list of transforms of the validation images, or remove the line",
    "loss": "the loss, as {name: CrossEntropyLoss}",
    "optimizer": "the optimizer, as {name: SGD, args: {lr: 0.1}}",
    "schedule": "the schedule, or remove the line",
    "schedule.per": "step or epoch",
    "train.epochs": "how many passes over the data",
}


def unresolved(raw: dict[str, Any]) -> tuple[tuple[Any, ...], str] | None:
    """Where a draft still asks for a value, or lists what is not in it, and what to do; None where all is resolved."""
    asked = _questions(raw)
    if asked:
        place = ".".join(map(str, asked[0]))
        wanted = WANTED.get(place, "the value")
        more = f" ({len(asked) - 1} more such)" if len(asked) > 1 else ""
        return asked[0], f"{place}: {ASK} stands for what the script does not say; write {wanted}{more}"
    left = raw.get("not_in_this_recipe")
    if not left:
        return None
    lines = left if isinstance(left, list) else [left]
    loc: tuple[Any, ...] = ("not_in_this_recipe",)
    said = f"{len(lines)} line{'s' * (len(lines) > 1)} of the script that this recipe does not do"
    do = "resolve each: remove it when you have dealt with it, or move it under ignore:"
    return loc, f"not_in_this_recipe: {said}, first {shortened(str(lines[0]), 120)}; {do}"


def _questions(value: Any, loc: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where a tree asks for a value."""
    if value == ASK:
        return [loc]
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in pairs for found in _questions(item, (*loc, key))]


def _without_questions(raw: dict[str, Any]) -> dict[str, Any]:
    """A draft without the values that it asks for; keys that every recipe needs, and arguments without which a part
    cannot be made, get a stand-in."""
    from .part_arguments import stand_ins

    def answered(value: Any) -> Any:
        if isinstance(value, dict):
            found = {key: answered(item) for key, item in value.items() if item != ASK}
            args = value.get("args")
            if isinstance(args, dict) and isinstance(value.get("name"), str):
                found["args"] |= stand_ins(value["name"], [key for key, item in args.items() if item == ASK])
            return found
        return [answered(item) for item in value if item != ASK] if isinstance(value, list) else value

    found: dict[str, Any] = {**NEEDED, **answered(raw)}
    return {key: value for key, value in found.items() if key != "not_in_this_recipe"}


def _beside(recipe: Recipe, folder: Path) -> Recipe:
    model, data = recipe.model, recipe.data
    for key, path in (("checkpoint", model.checkpoint), ("source", model.source)):
        if path is not None:
            model = model.model_copy(update={key: folder / expanded(path)})
    model = model.model_copy(update={"name": _file(model.name, folder)})
    loss = recipe.loss.model_copy(update={"name": _file(recipe.loss.name, folder)})
    if loss.source is not None:
        loss = loss.model_copy(update={"source": folder / expanded(loss.source)})
    schedule = recipe.schedule
    if schedule is not None:
        args = model_names.with_functions(schedule.args, lambda name: _file(name, folder))
        schedule = schedule.model_copy(update={"args": args})
    places = {"source": data.source, "validation": data.validation}
    data = data.model_copy(update={key: _absolute(source, folder) for key, source in places.items()})
    return recipe.model_copy(update={"model": model, "data": data, "loss": loss, "schedule": schedule})


def _file(name: str, folder: Path) -> str:
    """FILE.py:NAME with its file taken from `folder`; any other name as it is."""
    place, _, own = name.rpartition(":")
    return f"{folder / expanded(Path(place))}:{own}" if model_names.is_file(name) else name


def expanded(path: Path) -> Path:
    """The path with `~` replaced by the user's home; unchanged where it begins with ~ and an unknown user's name."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def _absolute(source: str | None, folder: Path) -> str | None:
    """A source that lies in a folder ('folder:PATH', 'cifar10:PATH'), with its path taken from `folder`."""
    kind, colon, path = (source or "").partition(":")
    return f"{kind}:{folder / expanded(Path(path))}" if f"{kind}{colon}" in PLACES and path else source


LARGEST = 256 * 1024  # bytes; weights for 20 000 classes fit


def read(path: Path) -> tuple[Any, yaml.Node | None]:
    """The recipe file's value, and its tree, which knows the lines (None: an empty file); raises BadRecipe."""
    return yaml_reader.read(path, what="a recipe", most=LARGEST, error=BadRecipe)


def odd_text(value: Any, loc: tuple[Any, ...] = ()) -> tuple[tuple[Any, ...], str] | None:
    """The place in a tree of the first text with a control character or half a surrogate pair, and that character.

    No name and no path has one, a terminal obeys some, and JSON cannot hold the others.
    """
    if isinstance(value, str):
        odd = next((letter for letter in value if unicodedata.category(letter) in ("Cc", "Cs")), None)
        return None if odd is None else (loc, odd)
    if isinstance(value, dict):
        inside = [found for key in value if (found := odd_text(key, (*loc, key)))]
        inside += [found for key, item in value.items() if (found := odd_text(item, (*loc, key)))]
    else:
        items = value if isinstance(value, (list, tuple)) else ()
        inside = [found for index, item in enumerate(items) if (found := odd_text(item, (*loc, index)))]
    return next(iter(inside), None)
