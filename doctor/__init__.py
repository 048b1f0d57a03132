"""What in this machine and this environment would stop msmigrate or slow it down, and what to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..errors import MsmigrateError
from . import frameworks
from . import machine as resources
from . import packages as versions
from .frameworks import Frameworks
from .machine import PROBLEM, Finding, Machine
from .packages import Packages


def examine(
    machine: Machine,
    packages: Packages,
    *,
    target: str | None = None,
    start: bool = True,
    ask: Frameworks | None = None,
) -> list[Finding]:
    """Run every check. target: the one that has to be usable. start: import the frameworks, in processes of their own,
    which takes ten seconds; otherwise nothing is known about targets. ask: how the frameworks are probed.
    """
    checks: list[tuple[str, Callable[[], Iterable[Finding]]]] = [
        ("versions", lambda: versions.findings(machine, packages, target)),
        ("resources", lambda: resources.findings(machine)),
        ("tools", lambda: frameworks.tool_findings(machine, packages)),
    ]
    if start:
        started = ask or Frameworks()
        checks.insert(1, ("frameworks", lambda: frameworks.findings(machine, packages, started, target)))
    return [finding for name, check in checks for finding in _guarded(name, check)]


def _guarded(name: str, check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """The findings of a check; one that fails because a package is missing reports that, and the next one runs."""
    try:
        yield from check()
    except (ImportError, MsmigrateError, OSError) as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        yield Finding(name, PROBLEM, f"could not be looked at: {text}", "Fix what the lines above name first.")
