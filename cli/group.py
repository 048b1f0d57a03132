"""The front door: parse, one library call, print, exit code.

Exit codes: 0 parity (or done), 1 mismatch or unproven, 2 usage or bad input, and 128 and its number for a signal. No
framework, and nothing heavy, is imported at start, so that every `-h` answers at once.
"""

from __future__ import annotations

import shlex
import sys
from importlib import import_module
from signal import Signals

import click

from .. import __version__
from ..errors import MsmigrateError, NotTrusted
from ..printable import echo, printable, printable_lines
from ..processes import INTERRUPTED, exit_code, signals_raised

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


# command: the module of cli/ that has it, and its name there; imported when it is asked for, as its options are made of
# classes that no other command needs
COMMANDS = {
    "analyze": ("analyze", "analyze"),
    "compare": ("parity", "compare"),
    "convert-ckpt": ("convert_ckpt", "convert_ckpt"),
    "convert-model": ("convert_model", "convert_model"),
    "data": ("image_folders", "data"),
    "demo": ("parity", "demo"),
    "doctor": ("doctor", "doctor"),
    "eval": ("train", "evaluate"),
    "explain": ("mappings", "explain"),
    "export": ("export", "export"),
    "inspect": ("convert_ckpt", "inspect"),
    "mappings": ("mappings", "mappings"),
    "parity-step": ("parity", "parity_step"),
    "predict": ("train", "predict"),
    "record": ("parity", "record"),
    "serve": ("export", "serve"),
    "train": ("train", "train"),
}


class Commands(click.Group):
    """The commands of COMMANDS, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of the alphabet."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f".{module}", __package__), name)
        return command


def commands_of(group: click.Group) -> dict[str, click.Command]:
    """The commands of a group by name."""
    context = click.Context(group)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


@click.command(cls=Commands, context_settings=SETTINGS)
@click.version_option(__version__, "-V", "--version", prog_name="msmigrate")
def cli() -> None:
    """Move a PyTorch model to MindSpore and prove that it is still the same model."""


def _again(error: MsmigrateError) -> str:
    """The command with what the user has to say besides, to be pasted."""
    if not isinstance(error, NotTrusted) or not error.add:
        return ""
    return f": {shlex.join(['msmigrate', *sys.argv[1:], *error.add])}"


def main() -> None:
    """Run the command line and exit: 2 with one line on stderr for errors msmigrate can explain, 128 and the signal's
    number for Ctrl-C, SIGTERM and SIGHUP."""
    try:
        with signals_raised():
            cli(prog_name="msmigrate", standalone_mode=False)
    except MsmigrateError as error:
        echo(f"msmigrate: {printable(f'{error}{_again(error)}')}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.message = printable_lines(error.message)  # type: ignore[misc]  # final, and a file's name may be in it
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        code = exit_code(error)
        by = "" if code == INTERRUPTED else f" by {Signals(code - 128).name}"
        echo(f"msmigrate: interrupted{by}", err=True)
        sys.exit(code)


if __name__ == "__main__":
    main()
