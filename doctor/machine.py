"""This machine, as a process sees it (CPU flags, memory, disk), the finding of one check, and the verdict of all."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import processes
from ..printable import count_text
from ..training.device_targets import free_memory
from ..workers.worker import INSTRUCTION_SET

OK, WARNING, PROBLEM = "ok", "warning", "problem"


@dataclass(frozen=True)
class Finding:
    """What one check looked at, and its result.

    state: OK; WARNING, where one option cannot be used or something is slower than it need be; PROBLEM, where commands
    fail until it is changed. found: one line. change: what to do, in words; command: the same for a shell. Both are
    empty where there is nothing to do.
    """

    check: str
    state: str
    found: str
    change: str = ""
    command: str = ""


def blocks(findings: Iterable[Finding]) -> bool:
    """Whether something has to be changed before msmigrate works."""
    return any(finding.state == PROBLEM for finding in findings)


def verdict(findings: Sequence[Finding]) -> str:
    """One sentence: what has to be changed, and how many warnings there are."""
    problems = [finding.check for finding in findings if finding.state == PROBLEM]
    warnings = sum(finding.state == WARNING for finding in findings)
    also = f" {count_text(warnings, 'warning')}." if warnings else ""
    if not problems:
        return f"Nothing has to be changed.{also}"
    return f"To change: {', '.join(problems)}.{also}"


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """The same for programs; `sound` says that nothing has to be changed."""
    return {"sound": not blocks(findings), "checks": [asdict(finding) for finding in findings]}


CPUINFO = Path("/proc/cpuinfo")
SECONDS = 20  # for a Python to say where its environment is


@dataclass(frozen=True)
class Machine:
    """The machine and its Python. python: version. executable, prefix: of this interpreter. extension: the ending of
    its compiled modules.

    system, architecture: as `platform` names them, in lower case. flags: what the CPU says it can do. cores: those that
    this process may use. memory: bytes that are still available, None where the machine does not say. folder: where
    runs are kept; temporary: where traces are, None where no such folder can be written. dev: where devices are.
    ascend: where Ascend's driver and CANN are installed unless the environment says otherwise.
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
    ascend: Path = Path("/usr/local/Ascend")

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

    It is run, because two environments may share one binary, so that comparing its path is not enough.
    """
    executable = shutil.which("python", path=machine.environment.get("PATH", os.defpath))
    if executable is None:
        return None
    command = [executable, "-I", "-c", "import sys; print(sys.prefix)"]
    try:
        done = processes.run(command, SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Path(done.stdout.strip()) if done.returncode == 0 and done.stdout.strip() else None


NARROW = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2")  # of oneDNN's names, those without 512-bit registers
WIDE = ("avx512", "amx")  # how the CPU flags begin for which oneDNN picks its wide kernels

# Peak bytes of the default recipe (ResNet50 on two 224-pixel images), both frameworks together, as
# `python benchmarks/parity_step.py` prints them, and of one framework's bare step there.
PARITY = 8_700_000_000
STEP = 2_400_000_000

TRACES = 4_600_000_000  # `parity-step --keep` on the default recipe, every module alone included
CHECKPOINT = 205_000_000  # a ResNet50 with SGD's momentum: 25.6 M float32 twice
KEPT = 5  # of a run: three, the best one, and one that is being written


def findings(machine: Machine) -> Iterator[Finding]:
    """One line each for the instruction set, memory, the folder of runs, and that of traces."""
    yield instructions(machine)
    yield memory(machine)
    yield disk("disk for runs", machine.folder, KEPT * CHECKPOINT, CHECKPOINT, "checkpoints of a ResNet50's run")
    yield temporary(machine)


def instructions(machine: Machine) -> Finding:
    """oneDNN's instruction set in MindSpore's processes, if this CPU has one with which MindSpore is slow."""
    variable, value = INSTRUCTION_SET
    there = sorted({flag.split("_")[0] for flag in machine.flags if flag.startswith(WIDE)})
    check = "instruction set"
    if not there:
        has = "no AVX-512 and no AMX here" if machine.flags else "the CPU does not say what it can do"
        return Finding(check, OK, f"{has}; {machine.cores} core{'s' * (machine.cores > 1)}")
    has = f"this CPU has {' and '.join(dict.fromkeys(_family(flag) for flag in there))}"
    given = machine.environment.get(variable)
    if given is None:
        found = f"{has}; msmigrate sets {variable}={value} for MindSpore, {machine.cores} cores"
        return Finding(check, OK, found)
    if given.upper() in NARROW:
        return Finding(check, OK, f"{has}; {variable}={given} is set, and slows torch down, which reads it too")
    known = given.upper().startswith(("AVX512", "AVX10", "DEFAULT", "ALL"))
    what = "" if known else ", which is none of oneDNN's names"
    found = f"{has}, and {variable}={given} is set{what}: MindSpore's convolutions were 30 times slower with it"
    return Finding(check, WARNING, found, "Leave it to msmigrate, which sets it for MindSpore:", f"unset {variable}")


def _family(flag: str) -> str:
    return "AMX" if flag.startswith("amx") else "AVX-512"


def memory(machine: Machine) -> Finding:
    """The available memory, against what a step of ResNet50 takes."""
    if machine.memory is None:
        return Finding("memory", WARNING, "this machine does not say how much is free")
    found = f"{_size(machine.memory)} available"
    if machine.memory >= PARITY:
        return Finding("memory", OK, f"{found}; parity-step on ResNet50 takes {_size(PARITY)}")
    if machine.memory >= STEP:
        change = "End other processes, or take fewer images and do not run every module alone:"
        command = "msmigrate parity-step --batch 1 --no-replay"
        return Finding("memory", WARNING, f"{found}; parity-step on ResNet50 takes {_size(PARITY)}", change, command)
    found += f"; one bare step of ResNet50 in one framework takes {_size(STEP)}"
    return Finding("memory", PROBLEM, found, "End other processes, or raise the limit of this container.")


def temporary(machine: Machine) -> Finding:
    """The disk on which traces are while they are compared."""
    check = "disk for traces"
    if machine.temporary is None:
        change = "Name a folder that can be written:"
        return Finding(check, PROBLEM, "no temporary folder can be written", change, "export TMPDIR=$HOME/tmp")
    return disk(check, machine.temporary, TRACES, TRACES // 10, "the traces of parity-step on ResNet50", "TMPDIR")


def disk(check: str, folder: Path, wanted: int, least: int, what: str, variable: str = "") -> Finding:
    """Whether a folder can be written and has `wanted` bytes free; below `least` it is a problem.

    variable: the environment variable that names another folder; without one, a command's --out does.
    """
    change = f"Free some, or name another folder with {variable or '--out'}."
    command = f"export {variable}=FOLDER" if variable else ""
    try:
        usage, files = shutil.disk_usage(folder), os.statvfs(folder)
    except OSError as error:
        return Finding(check, PROBLEM, f"{folder}: {error.strerror}", change, command)
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding(
            check, WARNING, f"{folder} cannot be written", f"Name another with {variable or '--out'}.", command
        )
    if files.f_files and not files.f_favail:
        return Finding(check, PROBLEM, f"{folder}: its file system can hold no more files", change, command)
    found = f"{_size(usage.free)} free in {folder}"
    if usage.free >= wanted:
        return Finding(check, OK, found)
    state = WARNING if usage.free >= least else PROBLEM
    return Finding(check, state, f"{found}; {what} take {_size(wanted)}", change, command)


def _size(size: int) -> str:
    return f"{size / 10**9:.1f} GB" if size >= 10**9 else f"{size / 10**6:.0f} MB"
