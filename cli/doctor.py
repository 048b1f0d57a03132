"""`msmigrate doctor`: parse, one library call, print, exit code."""

from __future__ import annotations

import sys

import click

from ..printable import echo, json_line


@click.command("doctor")
@click.option(
    "--target",
    type=click.Choice(["Ascend", "GPU", "CPU"], case_sensitive=False),
    help="Where you want to train: it is a problem if MindSpore cannot use it.  [default: any that it can use]",
)
@click.option("--quick", is_flag=True, help="Start no framework: a second, and nothing is said of targets.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(target: str | None, quick: bool, as_json: bool) -> None:
    """Look at this machine and this environment, and say what to change, with the command.

    Versions are read from the packages' metadata, against each other and against this Python. MindSpore and torch are
    then started, each in a process of its own, and MindSpore is asked for its targets. Then come the instruction set,
    memory, disk, MindSpore's launcher and its cache server. It works where a framework is missing or broken.

    ok: nothing to do. warning: an option cannot be used, or something is slower than it need be. problem: commands
    fail until it is changed.

    Exit code: 0 nothing has to be changed (warnings do not count), 1 something has to be, 2 wrong usage.
    """
    if quick and target is not None:
        raise click.UsageError("--quick asks for no target: leave out --quick or --target.")

    from ..doctor import examine
    from ..doctor.machine import blocks, here
    from ..doctor.packages import Packages
    from ..reports import environment
    from ..reports.terminal import Console

    with Console(stderr=True).status("looking" if quick else "starting MindSpore and torch"):
        findings = examine(here(), Packages(), target=target, start=not quick)
    if as_json:
        echo(json_line(environment.as_json(findings)))
    else:
        environment.show(findings, Console())
    sys.exit(1 if blocks(findings) else 0)
