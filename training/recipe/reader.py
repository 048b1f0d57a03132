"""YAML to Recipe: strict reading, line numbers, places made absolute."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from ... import yaml_reader
from ...errors import BadRecipe, MsmigrateError
from ...printable import shortened
from .schema import IN_FOLDERS, Recipe, explain, worst

DEFAULT = Path(__file__).parent.parent.parent / "recipes" / "resnet50.yaml"


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
    recipe = _checked(path)
    if isinstance(recipe, Refusal):
        raise recipe.error(f"{path}:{recipe.line}: {recipe.reason}")
    return _beside(recipe, path.parent)


def check(path: Path) -> Refusal | None:
    """Why a recipe is refused, or None where it can be run; raises BadRecipe for what is no YAML or no mapping."""
    recipe = _checked(path)
    return recipe if isinstance(recipe, Refusal) else None


def _checked(path: Path) -> Recipe | Refusal:
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
    try:
        recipe = Recipe.model_validate(raw)
    except ValidationError as error:
        first = worst(error)
        return refused(BadRecipe, first["loc"], explain(first, Recipe))
    problem = first_problem(recipe)
    return refused(type(problem.error), problem.loc, str(problem.error)) if problem else recipe


def _beside(recipe: Recipe, folder: Path) -> Recipe:
    model, data = recipe.model, recipe.data
    for key, path in (("checkpoint", model.checkpoint), ("source", model.source)):
        if path is not None:
            model = model.model_copy(update={key: folder / expanded(path)})
    places = {"source": data.source, "validation": data.validation}
    data = data.model_copy(update={key: _absolute(source, folder) for key, source in places.items()})
    return recipe.model_copy(update={"model": model, "data": data})


def expanded(path: Path) -> Path:
    """The path with `~` for the user's home; as it stands where it begins with another user's name that is none."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def _absolute(source: str | None, folder: Path) -> str | None:
    """A source that lies in a folder ('folder:PATH', 'cifar10:PATH'), with its path taken from `folder`."""
    kind, colon, path = (source or "").partition(":")
    return f"{kind}:{folder / expanded(Path(path))}" if f"{kind}{colon}" in IN_FOLDERS and path else source


LARGEST = 256 * 1024  # bytes; weights for 20 000 classes fit


def read(path: Path) -> tuple[Any, yaml.Node | None]:
    """The recipe file's value, and its tree, which knows the lines (None: an empty file); raises BadRecipe."""
    return yaml_reader.read(path, what="a recipe", most=LARGEST, error=BadRecipe)


def odd_text(value: Any, loc: tuple[Any, ...] = ()) -> tuple[tuple[Any, ...], str] | None:
    """Where in a tree the first text stands with a control character or half of a character, and that character.

    No name and no path has one, a terminal obeys some, and JSON cannot say the others.
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
