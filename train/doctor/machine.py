"""The facts of this machine and this Python that the checks look at, taken once."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ... import processes
from ..run.free_memory import free_memory

CPUINFO = Path("/proc/cpuinfo")
SECONDS = 20  # for a Python that is asked where it lives


@dataclass(frozen=True)
class Machine:
    """python: version. executable, prefix: of this interpreter. extension: how its compiled modules end.

    system, architecture: as `platform` names them, in lower case. flags: what the CPU says it can do. cores: those that
    this process may use. memory: bytes that can still be given, None where the machine does not say. folder: where
    runs are kept; temporary: where traces are, None where no such folder can be written. dev: where devices are.
    """

    python: str
    executable: Path
    prefix: Path
    extension: str
    system: str
    architecture: str
    environment: Mapping[str, str]
    flags: frozenset[str]
    cores: int
    memory: int | None
    folder: Path
    temporary: Path | None
    dev: Path = Path("/dev")

    @property
    def pip(self) -> str:
        """The pip of this interpreter, for a shell: `python -m pip` where `python` is this interpreter."""
        mine = python_on_path(self) == self.prefix
        return f"{'python' if mine else shlex.quote(str(self.executable))} -m pip"

    def install(self, *requirements: str, options: str = "") -> str:
        """The command that installs these."""
        return " ".join([self.pip, "install", *options.split(), *(shlex.quote(item) for item in requirements)])


def here() -> Machine:
    """The machine and the Python of this process."""
    try:
        temporary: Path | None = Path(tempfile.gettempdir())
    except FileNotFoundError:
        temporary = None
    return Machine(
        platform.python_version(),
        Path(sys.executable),
        Path(sys.prefix),
        str(sysconfig.get_config_var("EXT_SUFFIX")),
        platform.system().lower(),
        platform.machine().lower(),
        os.environ,
        cpu_flags(),
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        free_memory(),
        Path.cwd(),
        temporary,
    )


def cpu_flags(file: Path = CPUINFO) -> frozenset[str]:
    """What the first core says it can do; empty where the machine does not say."""
    try:
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip().lower() in ("flags", "features"):
                return frozenset(value.split())
    except OSError:
        pass
    return frozenset()


def python_on_path(machine: Machine) -> Path | None:
    """The prefix of the interpreter that `python` starts; None where there is none, or it does not start.

    Two environments may share one binary, so that it is asked, and not its path compared.
    """
    found = shutil.which("python", path=machine.environment.get("PATH", os.defpath))
    if found is None:
        return None
    ask = [found, "-I", "-c", "import sys; print(sys.prefix)"]
    try:
        done = processes.run(ask, SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Path(done.stdout.strip()) if done.returncode == 0 and done.stdout.strip() else None
