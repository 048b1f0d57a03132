"""The front door: parse, one library call, print, exit code.

Exit codes: 0 parity (or done), 1 mismatch or unproven, 2 usage or bad input, and 128 and its number for a signal. No
framework, and nothing heavy, is imported at start, so that every `-h` answers at once.
"""

from __future__ import annotations

import difflib
import shlex
import sys
from importlib import import_module
from signal import Signals
from typing import Any

import click

from .. import __version__
from ..errors import MsmigrateError, NotTrusted
from ..printable import echo, printable
from ..processes import INTERRUPTED, exit_code, signals_raised
from .options import manner_options

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


# what commands are for -> command -> the module of cli/ that has it, and its name there. A module is imported only when
# its command is used, because its options are made of classes that no other command needs.
TASKS = {
    "Begin": {"demo": ("parity", "demo"), "doctor": ("analyze", "doctor")},
    "Look before moving": {
        "analyze": ("analyze", "analyze"),
        "mappings": ("analyze", "mappings"),
        "inspect": ("convert_ckpt", "inspect"),
    },
    "Move": {"convert-model": ("convert_model", "convert_model"), "convert-ckpt": ("convert_ckpt", "convert_ckpt")},
    "Prove": {
        "parity-step": ("parity", "parity_step"),
        "explain": ("analyze", "explain"),
        "record": ("parity", "record"),
        "compare": ("parity", "compare"),
    },
    "Train": {"data": ("train", "data"), "train": ("train", "train")},
    "Use": {
        "eval": ("train", "evaluate"),
        "predict": ("train", "predict"),
        "export": ("export", "export"),
        "serve": ("export", "serve"),
    },
}
COMMANDS = {name: place for commands in TASKS.values() for name, place in commands.items()}


class Commands(click.Group):
    """The commands of COMMANDS, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f".{module}", __package__), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command of the first word. Raises UsageError for an unknown word, with the nearest command."""
        near = difflib.get_close_matches(args[0], COMMANDS, n=1, cutoff=0.5)
        if near and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"No such command {args[0]!r}; did you mean {near[0]}?", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, grouped by what they are for, each with its first sentence."""
        width = max(map(len, COMMANDS))
        for task, names in TASKS.items():
            with formatter.section(task):
                commands = {name: self.get_command(ctx, name) for name in names}
                room = formatter.width - width - 4
                rows = [(name, command.get_short_help_str(room)) for name, command in commands.items() if command]
                formatter.write_dl([(f"{name:{width}}", help) for name, help in rows])


def commands_of(group: click.Group) -> dict[str, click.Command]:
    """The commands of a group by name."""
    context = click.Context(group)
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in commands.items() if command is not None}


@click.command(cls=Commands, context_settings=SETTINGS)
@click.version_option(__version__, "-V", "--version", prog_name="msmigrate")
def cli() -> None:
    """Move a PyTorch model to MindSpore and prove that it is still the same model.

    Where a command takes a RECIPE, a name such as digits means one that msmigrate brings; a file of that name in the
    working directory comes first. Tab completion: eval "$(_MSMIGRATE_COMPLETE=bash_source msmigrate)", or zsh_source.
    """


cli.params += manner_options()


# what click raises for a group without a command, whose help is then shown; before 8.2 click showed it itself
NO_WORDS = (click.exceptions.NoArgsIsHelpError,) if hasattr(click.exceptions, "NoArgsIsHelpError") else ()


def _in_one_line(error: click.ClickException) -> str:
    """Click's message about wrong usage, and where the right usage is explained."""
    message = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    path = "msmigrate" if context is None else context.command_path
    return f"{path}: {message} (try '{path} -h')"


def _again(error: MsmigrateError) -> str:
    """The same command with what the user has to add, to be pasted."""
    if not isinstance(error, NotTrusted) or not error.add:
        return ""
    return f": {shlex.join(['msmigrate', *sys.argv[1:], *error.add])}"


def main() -> None:
    """Run the command line and exit: 2 with one line on stderr for errors msmigrate can explain, 128 and the signal's
    number for Ctrl-C, SIGTERM and SIGHUP."""
    try:
        with signals_raised():
            wide: dict[str, Any] = {} if sys.stdout.isatty() else {"terminal_width": SETTINGS["max_content_width"]}
            try:
                cli(prog_name="msmigrate", standalone_mode=False, **wide)
            except (click.Abort, KeyboardInterrupt) as error:  # caught in here, where a second signal does not end it
                code = exit_code(error)
                by = "" if code == INTERRUPTED else f" by {Signals(code - 128).name}"
                echo(f"msmigrate: interrupted{by}", err=True)
                sys.exit(code)
    except MsmigrateError as error:
        echo(printable(f"{error.command or 'msmigrate'}: {error}{_again(error)}"), err=True)
        sys.exit(2)
    except click.ClickException as error:
        if isinstance(error, NO_WORDS):
            error.show()  # the help
        else:
            echo(printable(_in_one_line(error)), err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
