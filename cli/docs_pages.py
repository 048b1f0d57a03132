"""The pages of docs/ that are made from the code: commands/NAME.md and their list, and api.md.

`python -m msmigrate.cli.docs_pages docs` rewrites them. A command's page is made from the command itself and from
cli/examples.yaml, that of the API from the functions' signatures and docstrings. It imports no framework.
"""

from __future__ import annotations

import inspect
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from .group import TASKS, cli, commands_of
from .options import examples

INDEX = "README.md"
WIDTH = 110  # of the usage line, as -h is printed at most
FROM = "Generated from the command by `python -m msmigrate.cli.docs_pages docs`; do not edit."
API = """# The library

`import msmigrate` imports neither framework. Each function does what the command of that name does, in processes
of its own. It returns a result, which is true where the command would end with exit code 0, prints as the command does,
shows itself as a page in a notebook, and has `as_dict()` and `to_json(file)`. An error is one of the exceptions in
`msmigrate.errors`, with the message that the command would print.

This page is made from the docstrings: `python -m msmigrate.cli.docs_pages docs`.
"""
ALL = """

`msmigrate NAME -h` prints the same at once. Ctrl-C ends every command with exit code 130, SIGTERM with
143, SIGHUP with 129; none of them leaves a process or a temporary folder.

## What all commands share

A result goes to stdout, everything else to stderr: what runs, how far it is (in a terminal it moves, elsewhere a line
comes every ten seconds), and errors, each one line that begins with the command. `--quiet` leaves the result and
errors, `--verbose` adds each step on a line and where an error was raised. `--color always` or `never`, or `NO_COLOR`,
decides on colours. Lines are cut to a width only in a terminal, or in a pipe with `COLUMNS=100`.

`--json` prints JSON to stdout in place of the text, as `--json -` does; `--json FILE.json` writes it too.

A RECIPE is a file, or the name of one that msmigrate brings, such as `digits`; a file of that name comes first.

## Tab completion

It completes commands, options, files, and the names of faults, rows, recipes and models. To keep it, write the line
into the shell's start file:

```bash
eval "$(_MSMIGRATE_COMPLETE=bash_source msmigrate)"; COMP_WORDBREAKS=${COMP_WORDBREAKS//:}   # bash: names have colons
eval "$(_MSMIGRATE_COMPLETE=zsh_source msmigrate)"                                           # zsh
_MSMIGRATE_COMPLETE=fish_source msmigrate | source                                           # fish
```
"""
EXIT_CODE = re.compile(r"(?P<code>\d) (?P<means>.+?)(?=, \d |\.$)")


def commands(command: click.Command = cli, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with the words that call it; of a group, the commands in it."""
    if isinstance(command, click.Group):
        for name, inner in commands_of(command).items():
            yield from commands(inner, (*words, name))
    else:
        yield words, command


def pages(shown: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    """The file name and the text of every page. shown: a command's name -> its examples, as in cli/examples.yaml."""
    written = {f"{'-'.join(words)}.md": _page(words, command, shown) for words, command in commands()}
    return {INDEX: _index(), **written}


def _index() -> str:
    lines = ["# The commands", "", FROM, "", "| to | command | |", "|---|---|---|"]
    for task, names in TASKS.items():
        for words, command in commands():
            if words[0] in names:
                linked = f"[`{' '.join(words)}`]({'-'.join(words)}.md)"
                lines.append(f"| {task.lower()} | {linked} | {_cell(_paragraphs(command)[0])} |")
    return "\n".join(lines) + ALL


def _page(words: tuple[str, ...], command: click.Command, shown: dict[str, list[dict[str, str]]]) -> str:
    name = " ".join(words)
    context = _context(words, command)
    first, *others = _paragraphs(command)
    described = [text for text in others if not text.startswith("Exit code:")]
    parts = [f"# msmigrate {name}", FROM, _escaped(first), _code(" ".join(_usage(context)), "")]
    parts += [text if text.startswith("```") else _escaped(text) for text in described]
    parts += ["## Options", _options(command, context), "## Exit codes", _exit_codes(others)]
    parts += [part for number, example in enumerate(shown.get(name, [])) for part in _example(number, example)]
    parts.append(f"All commands: [{INDEX}]({INDEX}).")
    return "\n\n".join(parts) + "\n"


def _context(words: tuple[str, ...], command: click.Command) -> click.Context:
    """The context that gives `Usage: msmigrate data stats …` and the options that every command has."""
    context = click.Context(cli, info_name="msmigrate", help_option_names=["-h", "--help"])
    for word in words[:-1]:
        context = click.Context(click.Group(word), info_name=word, parent=context)
    return click.Context(command, info_name=words[-1], parent=context)


def _usage(context: click.Context) -> list[str]:
    return [context.command_path, *context.command.collect_usage_pieces(context)]


def _paragraphs(command: click.Command) -> list[str]:
    """The help text, a paragraph an entry; one that click must not wrap becomes a block of code."""
    paragraphs = []
    for text in re.split(r"\n\s*\n", textwrap.dedent(command.help or "").strip()):
        if text.lstrip().startswith("\b"):
            paragraphs.append(_code(textwrap.dedent(text.lstrip().removeprefix("\b").strip("\n")), "text"))
        else:
            paragraphs.append(" ".join(text.split()))
    return paragraphs


def _options(command: click.Command, context: click.Context) -> str:
    rows = ["| option | |", "|---|---|"]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Option) and record is not None:  # the text above explains the arguments
            rows.append(f"| `{_cell(record[0], code=True)}` | {_cell(record[1])} |")
    return "\n".join(rows)


def _exit_codes(paragraphs: list[str]) -> str:
    """The codes that the help text names, one a row; raises ValueError where it names none."""
    text = next((text for text in paragraphs if text.startswith("Exit code:")), "")
    if not text:
        raise ValueError("the help has no paragraph of the form `Exit code: 0 done, 2 bad input.`")
    codes = [match.groupdict() for match in EXIT_CODE.finditer(text)]
    return "\n".join(["| code | |", "|---|---|", *(f"| {one['code']} | {_cell(one['means'])} |" for one in codes)])


def _example(number: int, example: dict[str, str]) -> Iterator[str]:
    if number == 0:
        yield "## Examples"
    yield example["says"].strip()
    prompt = "\n".join(f"$ {line}" for line in example["run"].strip().splitlines())
    yield _code("\n".join(part for part in (prompt, example.get("out", "").rstrip()) if part), "text")


def _code(text: str, language: str) -> str:
    return f"```{language}\n{text}\n```"


def _escaped(text: str) -> str:
    """Plain text in Markdown: stars, bars and angle brackets are escaped, except between backticks."""
    parts = text.split("`")
    return "`".join(re.sub(r"([*<|])", r"\\\1", part) if place % 2 == 0 else part for place, part in enumerate(parts))


def _cell(text: str, *, code: bool = False) -> str:
    """The text in one cell of a table."""
    plain = " ".join(text.split())
    return plain.replace("|", "\\|") if code else _escaped(plain)


def api_page() -> str:
    """The page of the API, as Markdown."""
    public = import_module("..", __package__)
    return "\n".join([API, *(_function(name, getattr(public, name)) for name in public.__all__ if name[0] != "_")])


def _function(name: str, function: Any) -> str:
    """One function: its signature, and its docstring with an argument a line."""
    sentence, _, rest = (inspect.getdoc(function) or "").partition("\n\n")
    first = " ".join(sentence.split())
    return f"## {name}\n\n{_code(_signature(name, function), 'python')}\n\n{first}\n\n{_arguments(rest)}"


def _signature(name: str, function: Any) -> str:
    """The call with every argument, one a line where it is long."""
    signature = inspect.signature(function)
    parts = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        default = (
            ""
            if parameter.default is parameter.empty
            else f" = {parameter.default!r}".replace(sys.executable, "python")
        )
        parts.append(f"{stars}{parameter.name}: {parameter.annotation}{default}")
    line = f"{name}({', '.join(parts)}) -> {signature.return_annotation}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f") -> {signature.return_annotation}"])


def _arguments(text: str) -> str:
    """Docstring paragraphs; lines of the form `name: what it is` become a list."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        items: list[str] = []
        for line in paragraph.split("\n"):
            head, colon, _ = line.partition(": ")
            if colon and all(part.isidentifier() for part in head.split(", ")):
                items.append(f"- `{head}`{line[len(head) :]}")
            elif items:
                items[-1] += f" {line.strip()}"
            else:
                items.append(line.strip())
        paragraphs.append("\n".join(items) if any(item.startswith("- ") for item in items) else " ".join(items))
    return "\n\n".join(part for part in paragraphs if part) + "\n"


def called(text: str) -> Iterator[list[str]]:
    """The words of every call of msmigrate in shell lines, without its own name, up to a pipe or a redirection.

    What is in brackets, as in `[--map FILE]`, counts.
    """
    for line in re.sub(r"\[(-[^\]]*)\]", r"\1", text.replace("\\\n", " ")).splitlines():
        if re.match(r"\s*msmigrate( [a-z-]+)*: ", line):  # an error, which begins with the command
            continue
        lexer = shlex.shlex(line.strip().removeprefix("$ "), posix=True, punctuation_chars="|&;<>")
        lexer.commenters, lexer.whitespace_split = "#", True
        try:
            words = [word if set(word) - set("|&;<>") else None for word in lexer]
        except ValueError:  # a line of output, with an apostrophe in it
            continue
        if words[:1] == ["msmigrate"]:
            yield [word for word in words[1 : words.index(None) if None in words else None] if word is not None]


def parses(words: list[str]) -> str:
    """Why click would not take these words after `msmigrate`, or an empty text; nothing is run, no file opened."""
    command: click.Command = cli
    context = click.Context(cli, info_name="msmigrate", help_option_names=["-h", "--help"])
    while isinstance(command, click.Group) and words:
        below = commands_of(command)
        if words[0] not in below:
            return f"{context.command_path} has no command {words[0]!r}"
        command = below[words[0]]
        context = click.Context(command, info_name=words[0], parent=context)
        words = words[1:]
    try:
        left = command.make_parser(context).parse_args(list(words))[1]
    except click.UsageError as error:
        return f"{context.command_path}: {error.format_message()}"
    return f"{context.command_path} takes no {' '.join(left)}" if left else ""


if __name__ == "__main__":
    from ..atomic_files import write_whole

    place = Path(sys.argv[1])
    for name, text in pages(examples()).items():
        write_whole(text, place / "commands" / name)
    write_whole(api_page(), place / "api.md")
