"""What several commands share: the class of all commands, options, and types of options."""

from __future__ import annotations

import os
import re
import textwrap
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import click

from ..errors import BadInput, MsmigrateError
from ..option_fields import SHAPES, STDOUT, Declared, Option, options_in
from ..printable import MANNER, Manner
from .inputs import READS

Decorator = Callable[[Any], Any]
EXAMPLES = Path(__file__).with_name("examples.yaml")  # a command's name -> its examples, each with run, out, and says


@cache
def examples() -> dict[str, list[dict[str, str]]]:
    """The worked examples of every command, which -h and the pages of docs/commands show."""
    import yaml  # not above: only help needs it

    loaded: dict[str, list[dict[str, str]]] = yaml.load(EXAMPLES.read_bytes(), Loader=yaml.CSafeLoader)
    return loaded


def _comment(says: str, width: int) -> list[str]:
    """What an example shows, as comment lines without the Markdown that the pages need."""
    parts = re.split(r"```\w*\n", re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", says.strip().rstrip(":")))
    lines = [textwrap.wrap(part.strip(), width - 2) for part in parts]
    lines[1::2] = [part.splitlines() for part in parts[1::2]]  # what was fenced
    return [f"# {line}".rstrip() for part in lines for line in part]


def manner_options() -> list[click.Parameter]:
    """The options that the group and every command have for how it prints."""

    def option(*names: str, **more: Any) -> click.Option:
        return click.Option(names, expose_value=False, is_eager=True, callback=_set_manner, **more)

    return [
        option("-q", "--quiet", is_flag=True, help="Only the result and errors: no notes, no progress."),
        option("-v", "--verbose", is_flag=True, help="Every step on a line, and where an error was raised."),
        option(
            "--color",
            metavar="WHEN",
            type=click.Choice(("auto", "always", "never"), case_sensitive=False),
            help="auto, always or never.  [default: auto, in a terminal and without NO_COLOR]",
        ),
    ]


def _set_manner(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if not value:
        return
    setattr(MANNER, str(parameter.name), value)
    if parameter.name == "color":
        context.color = {"always": True, "never": False}.get(value)
    context.find_root().call_on_close(lambda: vars(MANNER).update(vars(Manner())))


@contextmanager
def _errors_named(context: click.Context) -> Iterator[None]:
    """Note in an error of msmigrate's which command raised it; with --verbose, print where it was raised."""
    try:
        yield
    except MsmigrateError as error:
        error.command = context.command_path
        if MANNER.verbose:
            traceback.print_exc()
        raise


class Command(click.Command):
    """A command of msmigrate, with the options for how it prints, and its examples under -h."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.params += manner_options()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read its words."""
        with _errors_named(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run it."""
        if MANNER.quiet and MANNER.verbose:
            raise click.UsageError("--quiet or --verbose, not both.", ctx)
        with _errors_named(ctx):
            return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, to be pasted."""
        shown = examples().get(" ".join(ctx.command_path.split()[1:]), [])
        if not shown:
            return
        with formatter.section("Examples"):
            for number, example in enumerate(shown):
                lines = [*_comment(example["says"], formatter.width - 2), *example["run"].strip().splitlines()]
                formatter.write("\n" * bool(number) + textwrap.indent("\n".join(lines), "  ") + "\n")


def command(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """Make a function a command of that name."""
    return click.command(name, cls=Command)


class JsonFile(click.Path):
    """The file of --json: - for stdout, or a name that ends in .json. It is refused at once where it cannot be written.

    --json alone means -, so a word after it may be meant for the command: it is refused unless it ends in .json.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from ..atomic_files import refuse_unwritable

        file = Path(value)
        if file == STDOUT:
            return file
        if file.suffix.lower() != ".json":
            raise BadInput(
                f"--json {value}: the file's name has to end in .json; write --json - for stdout where another word "
                "follows"
            )
        refuse_unwritable(file)
        return file


def json_option(what: str) -> Decorator:
    """Add --json to a command; what: the name of what it prints, for the help."""
    return click.option("--json", "json_file", **_json(what))


def _json(what: str) -> dict[str, Any]:
    text = f"{what} as JSON, to FILE; without FILE or with - to stdout, in place of the text."
    return {"help": text, "metavar": "[FILE]", "type": JsonFile(), "is_flag": False, "flag_value": "-"}


def target_option(help: str, default: str | None = None) -> Decorator:
    """Add --target to a command, in upper or lower case."""
    from ..training.options import TARGETS  # not above: convert-ckpt starts faster without

    return _made("target", Declared(Option(help, choices=TARGETS, any_case=True), str, default), help)


def input_option(name: str) -> Decorator:
    """Add --input SHAPE to a command; name: that of the function's argument."""
    return _made(name, Declared(SHAPES, tuple, ()), SHAPES.help)


def options_of(kind: type[Any], *names: str, **helps: str) -> Decorator:
    """Click's options for these fields of a dataclass; helps: help texts of a command's own, by field."""
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
    if option.stdout:
        more = _json(help)
    elif kind is bool:
        more["is_flag"] = True
    elif option.reads is not None:
        more["type"] = READS[option.reads]
    elif option.choices:
        more["type"] = click.Choice(option.choices, case_sensitive=not option.any_case)
        more["metavar"] = f"[{'|'.join(option.choices)}]"  # click writes case-insensitive choices in lower case
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
        match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kKMGT]i?)?B?", str(value))
        if match is None:
            self.fail(f"{value!r} is no size such as 5GB or 500MB.", param, ctx)
        return int(float(match[1]) * UNITS[(match[2] or "").replace("K", "k")])


VARIABLE, MINDSPORE = "MSMIGRATE_MAPPINGS", "MSMIGRATE_MINDSPORE"


def _in_force(context: click.Context, parameter: click.Parameter, files: tuple[Path, ...]) -> None:
    """Use the rows of these files in this process and its workers, and check them, so that no worker fails on them."""
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
        help="Show what holds in this MindSpore version, such as 2.8.0, installed here or not.  "
        "[default: the installed one, else the newest; env: MSMIGRATE_MINDSPORE]",
    )(function)


def _of_version(context: click.Context, parameter: click.Parameter, version: str | None) -> None:
    """Use the rows of this MindSpore version in this process and its workers."""
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
