"""Options that several commands have."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..option_fields import Declared, Option, options_in
from .inputs import READS

Decorator = Callable[[Any], Any]


def options_of(kind: type[Any], *names: str, **helps: str) -> Decorator:
    """Click's options for these fields of a dataclass; helps: what a command says of one otherwise."""
    declared = options_in(kind)
    made = [_made(name, declared[name], helps.get(name, declared[name].option.help)) for name in names]

    def add(function: Any) -> Any:
        for each in reversed(made):
            function = each(function)
        return function

    return add


def _made(name: str, declared: Declared, help: str) -> Decorator:
    option, kind, default = declared
    more: dict[str, Any] = {"help": help, "metavar": option.metavar}
    if kind is bool:
        more["is_flag"] = True
    elif option.reads is not None:
        more["type"] = READS[option.reads]
    elif option.choices:
        more["type"] = click.Choice(option.choices, case_sensitive=not option.any_case)
    elif kind is Path:
        more["type"] = click.Path(path_type=Path)
    elif kind in (int, float):
        more["type"] = _range(kind, option)
    if default == ():
        more["multiple"] = True
    elif default is not None and kind is not bool:
        more |= {"default": default, "show_default": True}
    return click.option(f"--{option.flag or name.replace('_', '-')}", name, **more)


def _range(kind: type[Any], option: Option) -> click.ParamType:
    if kind is float:
        return click.FloatRange(option.least, option.most)
    least, most = (None if bound is None else int(bound) for bound in (option.least, option.most))
    return click.IntRange(least, most)


UNITS = {
    prefix + more: base**power
    for power, prefix in enumerate(("", "k", "M", "G", "T"))
    for more, base in (("", 1000), ("i", 1024))
    if prefix or not more
}


class Size(click.ParamType):
    """A number of bytes such as 5GB (10⁹), 500MB or 2GiB (2³⁰)."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kKMGT]i?)?B?", str(value))
        if found is None:
            self.fail(f"{value!r} is no size such as 5GB or 500MB.", param, ctx)
        return int(float(found[1]) * UNITS[(found[2] or "").replace("K", "k")])


VARIABLE, MINDSPORE = "MSMIGRATE_MAPPINGS", "MSMIGRATE_MINDSPORE"


def _in_force(context: click.Context, parameter: click.Parameter, files: tuple[Path, ...]) -> None:
    """Put the files in force for this process and its workers, and check them, so that no worker has to complain."""
    before = os.environ.get(VARIABLE)
    if not files and not before:
        return

    from ..mappings import table, user_rows

    context.call_on_close(lambda: _back(before, VARIABLE))
    user_rows.use(files)
    for kind in {row.kind for row in table.own_rows()}:
        table.load(kind)


def _back(before: str | None, variable: str) -> None:
    """Leave the environment as it was: a program may call several commands in one process."""
    if before is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = before


def mappings_option(function: Any) -> Any:
    """Add --mappings to a command."""
    return click.option(
        "--mappings",
        metavar="FILE",
        type=click.Path(path_type=Path),
        multiple=True,
        expose_value=False,
        callback=_in_force,
        help="Rows of your own for the mapping table (YAML); may be repeated.  [env: MSMIGRATE_MAPPINGS]",
    )(function)


def mindspore_version_option(function: Any) -> Any:
    """Add --mindspore-version to a command."""
    return click.option(
        "--mindspore-version",
        metavar="VERSION",
        expose_value=False,
        callback=_of_version,
        help="What holds in this MindSpore, such as 2.8.0, installed here or not.  "
        "[default: the installed one, else the newest; env: MSMIGRATE_MINDSPORE]",
    )(function)


def _of_version(context: click.Context, parameter: click.Parameter, version: str | None) -> None:
    """Put the rows of a MindSpore in force for this process and its workers."""
    before = os.environ.get(MINDSPORE)
    named = version or before
    if not named:
        return

    from packaging.version import InvalidVersion, Version

    from ..mappings.rows import OLDEST

    try:
        old = Version(named) < Version(OLDEST)
    except InvalidVersion:
        raise click.BadParameter(f"{named!r} is no version such as {OLDEST}.", context, parameter) from None
    if old:
        raise click.BadParameter(f"the rows hold from MindSpore {OLDEST} on; {named} is older.", context, parameter)
    context.call_on_close(lambda: _back(before, MINDSPORE))
    os.environ[MINDSPORE] = named
