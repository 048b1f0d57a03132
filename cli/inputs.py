"""Types of the options and arguments that name something to be read. Each is checked when it is parsed, by reading
alone, so that no framework starts for a file that is not there.

What a command writes has the plain type click.Path; a test checks this for every command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from ..errors import BadInput, MsmigrateError


def completed(known: Callable[[], Iterable[str]], incomplete: str) -> list[CompletionItem]:
    """The known names that begin with an incomplete word, for a shell; none where they cannot be read."""
    try:
        return [CompletionItem(name) for name in known() if name.startswith(incomplete)]
    except (OSError, MsmigrateError):  # completion prints no errors
        return []


class Input(click.ParamType):
    """A word that `check` accepts, or refuses by raising one of msmigrate's errors, to which the option's name is
    added."""

    def __init__(
        self,
        name: str,
        check: Callable[[str], object],
        kind: type = Path,
        known: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        self.name, self.check, self.kind, self.known = name, check, kind, known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not self._used(ctx):
            return self.kind(value)
        try:
            self.check(str(value))
        except MsmigrateError as error:
            option = f"{max(param.opts, key=len)}: " if isinstance(param, click.Option) else ""
            raise type(error)(f"{option}{error}") from None
        return self.kind(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The known names that begin with the word, and files, which come first: bash drops what comes before them."""
        names = completed(self.known, incomplete) if self.known is not None else []
        return [CompletionItem(incomplete, type="file"), *names]

    def _used(self, ctx: click.Context | None) -> bool:
        """Whether this word is for the side that runs here."""
        return True


class OfSide(Input):
    """An input of one framework, which a recording of the other does not use; it need not be on that machine."""

    def __init__(
        self,
        framework: str,
        name: str,
        check: Callable[[str], object],
        kind: type = Path,
        known: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        super().__init__(name, check, kind, known)
        self.framework = framework

    def _used(self, ctx: click.Context | None) -> bool:
        side = None if ctx is None else ctx.params.get("framework")
        return side in (None, self.framework)


def _model(framework: str) -> Callable[[str], None]:
    def check(word: str) -> None:
        from ..training.models.model_names import check_spec

        check_spec(word, framework)

    return check


def _checkpoint(word: str, *, for_torch: bool = False) -> None:
    from ..migrate.checkpoint.formats.registry import check_checkpoint

    path = Path(word).expanduser()
    if not path.is_dir():
        _file(str(path))
    check_checkpoint(str(path), for_torch=for_torch)


def _net(word: str) -> None:
    """A checkpoint or a MindIR; for a folder, the command says which file in it is meant."""
    if Path(word).suffix.lower() == ".mindir":
        _file(word)
    elif not Path(word).is_dir():
        _checkpoint(word)


def _batch(word: str) -> None:
    from ..parity.job import check_batch

    check_batch(Path(word))


def _map(word: str) -> None:
    from ..migrate.checkpoint.user_map import read_rules

    read_rules(Path(word))


def _recipe_or_model(word: str) -> None:
    from ..migrate.model_spec import names_a_model

    _model("torch")(word) if names_a_model(Path(word)) else _recipe(word)


def _recipe(word: str) -> None:
    """A file, or the name of a recipe that msmigrate brings."""
    from ..training.recipe.reader import find

    _file(str(find(Path(word))))


def _exported(word: str) -> None:
    """A model that a recipe may name, or a function that makes a Cell."""
    from ..training.models.model_names import ZOOS

    place, colon, _ = word.partition("(")[0].partition(":")
    if colon:
        _model("torch" if place in ZOOS else "mindspore")(word)


def _optimizer(word: str) -> None:
    if not all(part.isidentifier() for part in word.split(".")):
        _model("torch")(word)


def _images(word: str) -> None:
    from ..training.inference import source_at

    source_at(word)


def _file(word: str) -> None:
    from ..input_files import unreadable

    why = f"{word} is a folder, not a file" if Path(word).is_dir() else unreadable(word)
    if why is not None:
        raise BadInput(why)


def _report(word: str) -> None:
    try:
        _file(word)
    except BadInput as error:
        raise BadInput(f"{error}; make it with msmigrate parity-step RECIPE --json {Path(word).name}") from None


def _file_or_folder(word: str) -> None:
    if not Path(word).is_dir():
        _file(word)


def _recipes() -> Iterable[str]:
    from ..training.recipe.reader import installed

    return installed()


def _torch_models() -> Iterable[str]:
    from ..migrate.model_spec import zoo_names

    return [f"{zoo}:{name}" for zoo in ("torchvision", "timm") for name in sorted(zoo_names(zoo))]


def _own_models() -> Iterable[str]:
    from ..training.models.model_names import NAMES

    return [f"msmigrate:{name}" for name in NAMES]


def _exported_models() -> Iterable[str]:
    from ..training.models.model_names import NAMES

    return [*NAMES, *_torch_models()]


TORCH_MODEL = OfSide("torch", "model", _model("torch"), str, _torch_models)
MINDSPORE_MODEL = OfSide("mindspore", "model", _model("mindspore"), str, _own_models)
EXPORTED_MODEL = Input("model", _exported, str, _exported_models)
RECIPE_OR_MODEL = Input("recipe", _recipe_or_model, known=lambda: [*_recipes(), *_torch_models()])
OPTIMIZER = Input("optimizer", _optimizer, str)
CHECKPOINT = Input("checkpoint", _checkpoint)
TORCH_WEIGHTS = OfSide("torch", "checkpoint", partial(_checkpoint, for_torch=True))
NET = Input("checkpoint", _net)
BATCH_FILE = OfSide("torch", "batch", _batch)
NAME_MAP = Input("map", _map)
RECIPE = Input("recipe", _recipe, known=_recipes)
PARITY_REPORT = Input("report", _report)
FILE_OR_FOLDER = Input("path", _file_or_folder)
IMAGES = Input("images", _images, str)
READ_FIRST = Input("file", lambda word: None)  # its command reads it before anything else, and says what is wrong

READS: dict[str, click.ParamType] = {  # by Option.reads (option_fields.py)
    "torch model": TORCH_MODEL,
    "MindSpore model": MINDSPORE_MODEL,
    "checkpoint": CHECKPOINT,
    "torch weights": TORCH_WEIGHTS,
    "batches": BATCH_FILE,
    "name map": NAME_MAP,
    "exported model": EXPORTED_MODEL,
    "recipe": RECIPE,
    "file or folder": FILE_OR_FOLDER,
    "key": READ_FIRST,
    "parity report": PARITY_REPORT,
}
