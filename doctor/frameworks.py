"""Whether MindSpore and torch start; targets, launcher, cache server, the user's own rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from ..errors import MsmigrateError
from ..migrate.model_spec import ask_worker
from ..training import device_targets
from ..training.device_targets import Targets, ascend_versions
from ..training.options import TARGETS
from .machine import OK, PROBLEM, WARNING, Finding, Machine, python_on_path
from .packages import Packages

LOOK = 0.02  # seconds between two looks for an answer
SECONDS = 300  # an import over a network drive may take minutes; one that takes longer hangs
DRIVERS = {"Ascend": ("davinci*", "davinci_manager"), "GPU": ("nvidia[0-9]*", "nvidiactl")}  # below /dev
READ = "2026-11-25"  # the day on which both tables were read; later releases are not in them
# MindSpore -> the releases of CANN that it accepts, from the check that its wheel runs at the start (run_check)
CANN = {
    "2.7.2": ("8.5",),
    "2.8": ("8.2", "8.3", "8.5"),
    "2.9": ("8.2", "8.3", "8.5", "9.0"),
    "2.10": ("8.2", "8.3", "8.5", "9.0", "9.1"),
}
# CANN -> the releases of the driver (Ascend HDK) that it is documented with, by the release notes of MindIE 2.1.RC1
# (8.2) and of CANN 8.5.0 and 9.1.1 (8.5 and later)
HDK = {
    "8.2": ("24.1", "25.0", "25.2"),
    "8.5": ("25.0", "25.2", "25.3", "25.5", "25.7", "26.0", "26.1"),
    "9.0": ("25.0", "25.2", "25.3", "25.5", "25.7", "26.0", "26.1"),
    "9.1": ("25.2", "25.3", "25.5", "25.7", "26.0", "26.1"),
}


def ask_mindspore() -> Targets:
    """Import MindSpore in a process and ask for its targets; raises MsmigrateError."""
    return device_targets.ask(seconds=SECONDS)


def ask_torch() -> dict[str, Any]:
    """Import torch and torchvision in a process and try them; raises MsmigrateError."""
    return ask_worker("torch_probe_worker", [], "importing torch", SECONDS)


@dataclass(frozen=True)
class Frameworks:
    """How the frameworks are probed."""

    mindspore: Callable[[], Targets] = ask_mindspore
    torch: Callable[[], dict[str, Any]] = ask_torch


def findings(
    machine: Machine, packages: Packages, frameworks: Frameworks, target: str | None = None
) -> Iterator[Finding]:
    """Start both at once. target: the one that is wanted; without it, one that can be used is enough."""
    mindspore = _in_a_thread(frameworks.mindspore) if packages.folder("mindspore", "mindspore") else None
    torch = _in_a_thread(frameworks.torch) if packages.version("torch") else None
    if mindspore is not None:
        yield from _mindspore(_awaited(mindspore), machine, packages, target)
    if torch is not None:
        yield _torch(_awaited(torch), machine, packages)


def _in_a_thread(ask: Callable[[], Any]) -> Future[Any]:
    """Call `ask` in a thread; the future becomes its answer, or the MsmigrateError that it raised."""
    answer: Future[Any] = Future()

    def work() -> None:
        try:
            answer.set_result(ask())
        except MsmigrateError as error:
            answer.set_result(error)
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=work, daemon=True).start()  # an interruption does not wait for it, as it would for a pool's
    return answer


def _awaited(answer: Future[Any]) -> Any:
    """The answer, by short waits: a signal that comes just before a wait without an end does not end it."""
    while not answer.done():
        time.sleep(LOOK)
    return answer.result()


def _mindspore(
    answer: Targets | MsmigrateError, machine: Machine, packages: Packages, wanted: str | None
) -> Iterator[Finding]:
    again = machine.install(packages.wanted("mindspore"), options="--force-reinstall")
    if isinstance(answer, MsmigrateError):
        yield Finding("mindspore starts", PROBLEM, str(answer), *_remedy(packages, again))
        return
    installed = packages.version("mindspore")
    if answer.version != installed:
        change = "Another MindSpore comes before it, in PYTHONPATH or in this folder; remove that."
        yield Finding("mindspore starts", WARNING, f"{answer.version} is imported, {installed} installed", change)
    else:
        yield Finding("mindspore starts", OK, f"{answer.version} is imported")
    for name in TARGETS:
        yield _target(name, answer, machine, wanted, again)


def _remedy(packages: Packages, command: str) -> tuple[str, str]:
    """What to do about a framework that does not start: nothing yet, where its requirements are not met."""
    return ("Fix what the lines above name first.", "") if packages.unmet() else ("Install it again.", command)


def _target(name: str, answer: Targets, machine: Machine, wanted: str | None, again: str) -> Finding:
    count = answer.devices.get(name, 0)
    check = f"target {name}"
    if count:
        default = "; the default" if answer.default == name else ""
        devices = "" if name == "CPU" else f"{count} device{'s' * (count > 1)}"
        return Finding(check, OK, f"can be used{f': {devices}' * bool(devices)}{default}")
    found = f"cannot be used: {answer.missing.get(name, 'no device')}"
    remedy = device_targets.REMEDY.get(name, "install MindSpore again")
    change = f"{remedy[0].upper()}{remedy[1:]}."
    if name == wanted or name == "CPU":
        return Finding(check, PROBLEM, found, change, again if name == "CPU" else "")
    driver = next((path.name for pattern in DRIVERS[name] for path in sorted(machine.dev.glob(pattern))), None)
    if driver is not None and wanted is None:
        return Finding(check, WARNING, f"{found}, though {machine.dev / driver} is there", change)
    return Finding(check, OK, f"not on this machine: {answer.missing.get(name, 'no device')}")


def _torch(answer: dict[str, Any] | MsmigrateError, machine: Machine, packages: Packages) -> Finding:
    both = machine.install(packages.wanted("torch"), packages.wanted("torchvision"), options="--force-reinstall")
    check = "torch starts"
    if isinstance(answer, MsmigrateError):
        return Finding(check, PROBLEM, str(answer), *_remedy(packages, both))
    if answer["numpy"]:
        change = "Install a NumPy that both frameworks take."
        command = machine.install(packages.required().get("numpy", "numpy<2"))
        return Finding(check, PROBLEM, f"torch makes no NumPy array: {answer['numpy']}", change, command)
    if answer["torchvision"] is None and packages.version("torchvision"):
        change = "Install a pair that fits together."
        return Finding(check, PROBLEM, f"torchvision does not work with it: {answer['problem']}", change, both)
    return Finding(check, OK, f"{answer['torch']} is imported, torchvision {answer['torchvision']} works with it")


def tool_findings(machine: Machine, packages: Packages) -> Iterator[Finding]:
    """Ascend's software, the launcher, the Python it would start, the cache server, and the files of
    MSMIGRATE_MAPPINGS."""
    yield from ascend(machine, packages)
    if packages.version("mindspore"):
        yield launcher(machine, packages)
    yield python(machine)
    if packages.version("mindspore"):
        yield cache(machine, packages)
    yield from own_rows()


def _again(machine: Machine, packages: Packages) -> str:
    return machine.install(packages.wanted("mindspore"), options="--force-reinstall --no-deps")


def ascend(machine: Machine, packages: Packages) -> Iterator[Finding]:
    """CANN and the driver, where one of them is installed: whether this MindSpore accepts that CANN, and that CANN that
    driver.

    Read from files that they install; untested, because no machine with them was available.
    """
    cann, driver = ascend_versions(machine.environment, machine.ascend)
    if cann is None and driver is None:
        return
    found = f"CANN {cann or 'not found'}, driver {driver or 'not found'}"
    if cann is None:
        yield Finding("Ascend", WARNING, found, "Install CANN, and source its set_env.sh.")
        return
    installed = packages.version("mindspore")
    takes = _known(CANN, installed) if installed else None
    if takes and _short(cann) not in takes:
        fitting = [version for version, releases in CANN.items() if _short(cann) in releases]
        change = f"MindSpore {installed} takes CANN {', '.join(takes)}, as read on {READ}: install one of these"
        change += f", or the MindSpore that takes CANN {cann}." if fitting else "."
        command = machine.install(f"mindspore=={fitting[-1]}.*") if fitting else ""
        yield Finding("Ascend", WARNING, f"{found}, and MindSpore {installed}", change, command)
        return
    documented = HDK.get(_short(cann))
    if driver is not None and documented and _short(driver) not in documented:
        those = f"{', '.join(documented)} (read on {READ})"
        change = f"CANN {cann} is documented with the drivers {those}: install one of these."
        yield Finding("Ascend", WARNING, found, change)
        return
    with_it = f"; MindSpore {installed} takes it, as read on {READ}" if takes else ""
    yield Finding("Ascend", OK, f"{found}{with_it}")


def _short(version: str) -> str:
    """The 8.5 of 8.5.0: the part by which releases are matched."""
    return ".".join(version.split(".")[:2])


def _known(table: dict[str, tuple[str, ...]], version: str) -> tuple[str, ...] | None:
    return table.get(version) or table.get(_short(version))


def launcher(machine: Machine, packages: Packages) -> Finding:
    """Whether msrun, which starts the processes of `train --nproc`, is there, and so is its interpreter."""
    try:
        script = Path(device_targets.msrun()[-1])
    except MsmigrateError as error:
        command = _again(machine, packages)
        return Finding("launcher", WARNING, str(error), "Only `train --nproc` needs it.", command)
    try:
        first = script.read_bytes()[:300].split(b"\n")[0].decode(errors="replace")
    except OSError as error:
        first = f"#!{script}: {error.strerror}"
    interpreter = Path(first.removeprefix("#!").strip().split(" ")[0])
    if first.startswith("#!") and not interpreter.exists():
        found = f"{script} needs {interpreter}, which is not there: the environment was moved"
        return Finding("launcher", WARNING, found, "Install it again.", _again(machine, packages))
    return Finding("launcher", OK, str(script))


def python(machine: Machine) -> Finding:
    """Whether the `python` on PATH is this one: msrun starts that, not the interpreter that it is run with."""
    prefix = python_on_path(machine)
    if prefix == machine.prefix:
        return Finding("python on PATH", OK, f"this one, of {prefix}")
    which = "no `python` that starts" if prefix is None else f"that of {prefix}"
    found = f"{which}; msmigrate puts its own first when it starts msrun, but msrun called by hand would fail"
    command = f"export PATH={machine.executable.parent}:$PATH"
    return Finding("python on PATH", WARNING, found, "Before msrun is called by hand:", command)


def cache(machine: Machine, packages: Packages) -> Finding:
    """The server behind `data.cache`."""
    from ..training.data.dataset_cache import program

    try:
        return Finding("dataset cache", OK, program()[0])
    except MsmigrateError as error:
        return Finding("dataset cache", WARNING, str(error), "Or install MindSpore again.", _again(machine, packages))


def own_rows() -> Iterator[Finding]:
    """The files of rows that the environment names: a wrong one stops every command that reads the table."""
    from ..mappings import user_rows

    paths = user_rows.paths()
    if not paths:
        return
    from ..mappings import table

    named = ", ".join(map(str, paths))
    try:
        count = len(table.own_rows())
        for kind in {row.kind for row in table.own_rows()}:
            table.load(kind)
    except MsmigrateError as error:
        command = f"unset {user_rows.VARIABLE}"
        yield Finding(user_rows.VARIABLE, PROBLEM, str(error), "Fix the file, or go without:", command)
        return
    yield Finding(user_rows.VARIABLE, OK, f"{count} row{'s' * (count != 1)} of {named}")
