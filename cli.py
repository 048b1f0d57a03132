"""The front door: parse, one library call, print, exit code.

Exit codes: 0 parity (or done), 1 mismatch, 2 usage or bad input. No framework, and nothing heavy, is imported at
start, so that every `-h` answers at once.
"""

from __future__ import annotations

import sys

import click

from . import __version__
from .errors import MsmigrateError

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(context_settings=SETTINGS)
@click.version_option(__version__, "-V", "--version", prog_name="msmigrate")
def cli() -> None:
    """Move a PyTorch model to MindSpore and prove that it is still the same model."""


def main() -> None:
    """Run the command line; errors msmigrate can explain become one line on stderr and exit code 2."""
    try:
        cli(prog_name="msmigrate")
    except MsmigrateError as error:
        click.echo(f"msmigrate: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
