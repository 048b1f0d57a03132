"""The programs that MindSpore brings along: its launcher and its cache server; and the user's own rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...errors import MsmigrateError
from .finding import OK, PROBLEM, WARNING, Finding
from .machine import Machine, python_on_path
from .packages import Packages


def findings(machine: Machine, packages: Packages) -> Iterator[Finding]:
    """The launcher, the Python it would start, the cache server, and the files of MSMIGRATE_MAPPINGS."""
    if packages.version("mindspore"):
        yield launcher(machine, packages)
    yield python(machine)
    if packages.version("mindspore"):
        yield cache(machine, packages)
    yield from own_rows()


def _again(machine: Machine, packages: Packages) -> str:
    return machine.install(packages.ours().get("mindspore", "mindspore"), options="--force-reinstall --no-deps")


def launcher(machine: Machine, packages: Packages) -> Finding:
    """msrun, which starts the processes of `train --nproc`: there, and with an interpreter that is there."""
    from ..run.launch_command import msrun

    try:
        script = Path(msrun()[-1])
    except MsmigrateError as error:
        command = _again(machine, packages)
        return Finding("launcher", WARNING, str(error), "Only `train --nproc` needs it.", command)
    try:
        first = script.read_bytes()[:300].split(b"\n")[0].decode(errors="replace")
    except OSError as error:
        first = f"#!{script}: {error.strerror}"
    interpreter = Path(first.removeprefix("#!").strip().split(" ")[0])
    if first.startswith("#!") and not interpreter.exists():
        found = f"{script} wants {interpreter}, which is not there: the environment was moved"
        return Finding("launcher", WARNING, found, "Install it again.", _again(machine, packages))
    return Finding("launcher", OK, str(script))


def python(machine: Machine) -> Finding:
    """msrun executes the `python` of PATH, not the interpreter that it is run with."""
    prefix = python_on_path(machine)
    if prefix == machine.prefix:
        return Finding("python on PATH", OK, f"this one, of {prefix}")
    which = "no `python` that starts" if prefix is None else f"that of {prefix}"
    found = f"{which}; msmigrate puts its own first when it starts msrun, by hand msrun would fail"
    command = f"export PATH={machine.executable.parent}:$PATH"
    return Finding("python on PATH", WARNING, found, "Before msrun is called by hand:", command)


def cache(machine: Machine, packages: Packages) -> Finding:
    """The server behind `data.cache`."""
    from ..data.dataset_cache import program

    try:
        return Finding("dataset cache", OK, program()[0])
    except MsmigrateError as error:
        return Finding("dataset cache", WARNING, str(error), "Or install MindSpore again.", _again(machine, packages))


def own_rows() -> Iterator[Finding]:
    """The files of rows that the environment puts in force: a wrong one stops every command that reads the table."""
    from ...mappings import user_files

    paths = user_files.paths()
    if not paths:
        return
    from ...mappings import table

    named = ", ".join(map(str, paths))
    try:
        count = len(table.own_rows())
        for kind in {row.kind for row in table.own_rows()}:
            table.load(kind)
    except MsmigrateError as error:
        command = f"unset {user_files.VARIABLE}"
        yield Finding(user_files.VARIABLE, PROBLEM, str(error), "Mend the file, or go without:", command)
        return
    yield Finding(user_files.VARIABLE, OK, f"{count} row{'s' * (count != 1)} of {named}")
