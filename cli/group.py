"""The front door: parse, one library call, print, exit code.

Exit codes: 0 parity (or done), 1 mismatch or unproven, 2 usage or bad input, and 128 and its number for a signal. No
framework, and nothing heavy, is imported at start, so that every `-h` answers at once.
"""

from __future__ import annotations

import shlex
import sys
from signal import Signals

import click

from .. import __version__
from ..errors import MsmigrateError, NotTrusted
from ..printable import echo, json_line, printable, printable_lines
from ..processes import INTERRUPTED, exit_code, signals_raised
from . import analyze, checkpoints, convert_model, doctor, export, image_folders, parity, train
from .options import mappings_option

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(context_settings=SETTINGS)
@click.version_option(__version__, "-V", "--version", prog_name="msmigrate")
def cli() -> None:
    """Move a PyTorch model to MindSpore and prove that it is still the same model."""


@cli.command("mappings")
@click.argument("name", required=False)
@click.option("--kind", metavar="KIND", help="Only the rows of one kind, such as layer, loss or optimizer.")
@mappings_option
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON, with every argument and pitfall.")
def mappings(name: str | None, kind: str | None, as_json: bool) -> None:
    """Print what corresponds in torch and MindSpore: the table, or the row of NAME with its pitfalls.

    NAME is a torch name, qualified or short: torch.nn.Conv2d, Conv2d, operator.add.

    Exit code: 0 printed, 2 there is no such row, or wrong usage.
    """
    from ..mappings import table
    from ..reports import mapping_table

    if name is not None and kind is not None:
        raise click.UsageError("NAME or --kind, not both.")
    rows = table.rows(kind) if name is None else [table.row(name)]
    if as_json:
        echo(json_line(mapping_table.as_json(rows)))
    else:
        mapping_table.show(rows, whole=name is not None)


@cli.command("explain")
@click.argument("fault", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def explain(fault: str | None, as_json: bool) -> None:
    """Explain a fault that parity-step named: both sides, where it shows, the fix, the smallest example.

    Without FAULT, list every fault that is known.

    Exit code: 0 printed, 2 there is no such fault, or wrong usage.
    """
    from ..mappings import table
    from ..reports import mapping_table
    from ..reports.terminal import Console

    chosen = list(table.faults().values()) if fault is None else [mapping_table.find(fault)]
    if as_json:
        echo(json_line(mapping_table.fault_json(chosen)))
    elif fault is None:
        mapping_table.show_all(Console())
    else:
        mapping_table.show_fault(chosen[0], Console())


COMMANDS = (
    analyze.analyze,
    convert_model.convert_model,
    *(checkpoints.convert_ckpt, checkpoints.inspect),
    *(parity.parity_step, parity.record, parity.compare),
    *(train.train, train.evaluate, train.predict),
    *(export.export, export.serve),
    image_folders.data,
    doctor.doctor,
)
for command in COMMANDS:
    cli.add_command(command)


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
