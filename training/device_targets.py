"""Which devices this machine's MindSpore can use, how much memory is free, and what the CPU and CANN are; and the
device that MindSpore computes on in this process: chosen, and described for a trace.

The code for Ascend follows MindSpore's documentation, and is untested.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import Unsupported, WorkerFailed
from ..workers.parent import Silent, Stopped, call
from .options import TARGETS

CGROUP = Path("/sys/fs/cgroup")
FILES = ("max", "current", "stat")


def free_memory() -> int | None:
    """Bytes still free on this machine, or in the container around this process; None where that is not known."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError, IndexError):
        pass
    try:
        limit, used, stat = ((CGROUP / f"memory.{name}").read_text(encoding="ascii") for name in FILES)
        cached = next(int(line.split()[1]) for line in stat.splitlines() if line.startswith("inactive_file "))
        found.append(int(limit) - int(used) + cached)
    except (OSError, ValueError, StopIteration):
        pass
    return min(found, default=None)


def cpu_model() -> str:
    """The CPU's name for itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


CANN_HOME = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")  # variables that CANN's set_env.sh sets
ASCEND = Path("/usr/local/Ascend")


def ascend_versions(environment: Mapping[str, str], root: Path = ASCEND) -> tuple[str | None, str | None]:
    """The versions of CANN and of the driver, from files that they leave; None where there is no such file.

    root: where they are installed unless the environment says otherwise. Untested: no machine with them was available.
    """
    homes = [Path(environment[name]) for name in CANN_HOME if environment.get(name)]
    homes += [root / "ascend-toolkit" / "latest", root / "cann"]
    cann = next((version for home in homes if (version := _release(home / "compiler" / "version.info"))), None)
    return cann, _release(root / "driver" / "version.info")


def _release(file: Path) -> str | None:
    """The version in a file of lines such as `Version=8.5.0`."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace")[:10_000].splitlines()
    except OSError:
        return None
    return next((line.partition("=")[2].strip() for line in lines if line.startswith("Version=")), None) or None


PROBE = (sys.executable, "-m", "msmigrate.training.mindspore_probe_worker")
REMEDY = {
    "Ascend": "install the Ascend driver and CANN, source CANN's set_env.sh",
    "GPU": "install the CUDA and cuDNN that this MindSpore was built for, and a wheel with GPU support",
}
LIBRARY = re.compile(
    r"([\w.+-]+\.so[\w.]*)(?:: cannot open shared object file| \(need by mindspore-gpu\) is not found)"
)
OF_TARGET = {"Ascend": ("ge_runner", "ascend", "hccl"), "GPU": ("cu", "gpu", "nccl")}


@dataclass(frozen=True)
class Targets:
    """MindSpore's answer: its version, how many devices of each target it can use, why it cannot use the others, and
    facts about a recipe's net and its graphs, where they were requested."""

    version: str
    devices: dict[str, int]
    missing: dict[str, str]
    net: dict[str, Any] | None = None
    graph: dict[str, Any] | None = None

    def usable(self, target: str) -> bool:
        """Whether MindSpore can use at least one device of this target here."""
        return self.devices.get(target, 0) > 0

    @property
    def default(self) -> str:
        """Ascend if it can be used, else a GPU, else the CPU."""
        return next((target for target in TARGETS if self.usable(target)), "CPU")

    def problem(self, target: str, device_id: int = 0, processes: int = 1) -> str | None:
        """Why this machine cannot give `processes` devices of `target` from `device_id` on, in one line, or None."""
        if not self.usable(target):
            there = " or ".join(name for name in TARGETS if self.usable(name))
            return (
                f"MindSpore {self.version} cannot use {target} here: {self.missing.get(target, 'no device')}; "
                f"{REMEDY.get(target, 'install mindspore again')}, or use --target {there or 'CPU'}"
            )
        count = self.devices[target]
        if target != "CPU" and device_id + processes > count:
            return (
                f"this machine has {count} {target} device{'s' * (count != 1)}, numbered from 0, and {processes} from "
                f"{device_id} on were requested: lower --nproc or --device-id"
            )
        return None

    def check(self, target: str, device_id: int = 0, processes: int = 1) -> None:
        """Raise Unsupported where problem() returns a text."""
        problem = self.problem(target, device_id, processes)
        if problem:
            raise Unsupported(problem)


def ask(arguments: Sequence[str] = (), probe: Sequence[str] = PROBE, seconds: float | None = None) -> Targets:
    """Run the probe, for at most `seconds`; `arguments` are those of mindspore_probe_worker.

    Takes as long as importing MindSpore. Raises WorkerFailed with MindSpore's last words when it does not start, and
    the probe's own error otherwise.
    """
    # a file without a name: doctor runs this in a thread, which a signal does not end, and a named file would stay
    with tempfile.TemporaryFile("r", encoding="utf-8", errors="replace") as file:
        log = Path(f"/proc/self/fd/{file.fileno()}")
        try:
            answer = call("the MindSpore process", [*probe, *arguments], log, timeout=seconds)
        except Silent:
            raise WorkerFailed(f"MindSpore does not start: it was stopped after {seconds:g} s") from None
        except Stopped as error:
            raise WorkerFailed(f"MindSpore does not start: {error.how}") from None
        except OSError as error:
            raise WorkerFailed(f"cannot start {probe[0]}: {error.strerror or error}") from None
        printed = file.read()
    missing = {target: _missing(target, words, printed) for target, words in answer["missing"].items()}
    return Targets(answer["version"], answer["devices"], missing, answer.get("net"), answer.get("graph"))


def _missing(target: str, words: str, printed: str) -> str:
    """The libraries that MindSpore did not find, by name; else its first sentence."""
    found = [name for name in LIBRARY.findall(words + "\n" + printed) if _belongs(name, target)]
    if found:
        names = list(dict.fromkeys(found))
        return f"{' and '.join(names)} {'are' if len(names) > 1 else 'is'} not found"
    lines = words.strip().splitlines()
    return lines[0].split(". ")[0][:200].rstrip(".") if lines else "no device"


def _belongs(library: str, target: str) -> bool:
    """Whether a library is the target's: MindSpore lists every target's libraries when one is missing."""
    return not library.startswith("libmindspore") and any(part in library for part in OF_TARGET.get(target, ()))


def msrun() -> list[str]:
    """The launcher of the MindSpore that this interpreter imports; raises WorkerFailed where there is none."""
    script = Path(sys.executable).parent / "msrun"
    if script.exists():
        return [str(script)]
    found = shutil.which("msrun")
    if found:
        return [sys.executable, found]  # whichever interpreter its first line names
    raise WorkerFailed(
        f"MindSpore's launcher msrun is neither next to {sys.executable} nor in PATH: install MindSpore in this "
        "environment again, or train with --nproc 1"
    )


SWITCHES = {"conv_allow_hf32": "HF32 in convolutions", "matmul_allow_hf32": "HF32 in matrix products"}
PRECISION_MODES = ("precision_mode", "op_precision_mode")
CONVOLUTIONS_IN_HF32 = {"conv_allow_hf32": True, "matmul_allow_hf32": False}  # Ascend's defaults


def use(target: str, device_id: int, mode: int) -> None:
    """Compute on this device, in mindspore.PYNATIVE_MODE or GRAPH_MODE; a CPU launches each operator by itself.

    Raises Unsupported in one line where MindSpore cannot.
    """
    import mindspore

    try:
        mindspore.set_context(mode=mode)
        mindspore.set_device(target, 0 if target == "CPU" else device_id)
        if target == "CPU":
            mindspore.runtime.launch_blocking()  # its threads for that spin: most of the time of a small eager step
    except (RuntimeError, ValueError) as error:
        first = " ".join(str(error).strip().splitlines()[:1]).split(". ")[0]
        raise Unsupported(f"MindSpore {mindspore.__version__} cannot use {target} here: {first}") from error


def described(device_id: int) -> dict[str, Any]:
    """A trace's description of the device in use: device, device_model, driver and runtime, and switches by name."""
    import mindspore

    target = str(mindspore.get_context("device_target"))
    if target == "CPU":
        return {"device": "cpu", "device_model": cpu_model()}
    found: dict[str, Any] = {"device": f"{target.lower()}:{device_id}"}
    found["device_model"] = str(mindspore.hal.get_device_name(device_id))
    if target != "Ascend":
        return found
    cann, driver = ascend_versions(os.environ)
    given = mindspore.get_context("ascend_config") or {}
    switches: dict[str, bool | str] = {
        name: bool(given.get(key, CONVOLUTIONS_IN_HF32[key])) for key, name in SWITCHES.items()
    }
    switches |= {name.replace("_", " "): str(given[name]) for name in PRECISION_MODES if name in given}
    switches["deterministic"] = str(mindspore.get_context("deterministic"))
    return {**found, "driver": driver or "not said", "runtime": f"CANN {cann or 'not said'}", "switches": switches}
