"""How fast `msmigrate convert-ckpt` is, next to `cp` and to the script people write by hand, in one run on one disk.

    python benchmarks/convert_ckpt.py [--folder DIR] [--repeats N] [--only resnet50|1.2GB|2.5GB|5GB|many …]

Every figure is a whole process, from start to exit: wall time (median of the repeats, and their range), processor time
(user and system, median; other programs on the machine disturb it less) and peak resident memory (ru_maxrss from
wait4). The commands take turns, so that none has a quieter machine than the others.
The source is in the page cache (it is read once before each run), the destination does not exist, and earlier writes
are on the disk (sync) before a run starts. msmigrate fsyncs its file before it exits; cp and the script do not, so
`cp` is also shown with an fsync (`sync FILE`). Bytecode is cached, as in any installation.

Targets are judged on medians: a thirtieth of the script's time and a twentieth of its memory up to 2.5 GB, 0.6 of cp's
rate and 64 MB for the 5 GB; `many` are 10,000 and 100,000 small tensors, for how the time grows with their number.

Weights are random and made here; everything is deleted at the end. Needs about 25 GB of disk for the largest file.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

MAKE = """
import sys, torch
case, count = sys.argv[2], int(sys.argv[3])
if case == "resnet50":
    import torchvision
    state = torchvision.models.resnet50().state_dict()
else:  # linear layers with their norms, of 16.8 MB or of 64 numbers each
    n = 8 if case == "many" else 2048
    names = ("fc.weight", (n, n)), ("fc.bias", (n,)), ("norm.weight", (n,)), ("norm.bias", (n,))
    state = {f"blocks.{i}.{name}": torch.randn(shape) for i in range(count) for name, shape in names}
torch.save(state, sys.argv[1])
"""

BY_HAND = """
import os, sys
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
import mindspore, torch
state = torch.load(sys.argv[1], map_location="cpu")
norm = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}
parameters = []
for name, value in state.items():
    module, _, leaf = name.rpartition(".")
    if leaf == "num_batches_tracked":
        continue
    if state[f"{module}.weight"].dim() == 1:
        leaf = norm[leaf]
    parameters.append({"name": f"{module}.{leaf}", "data": mindspore.Tensor(value.numpy())})
mindspore.save_checkpoint(parameters, sys.argv[2])
"""

MSMIGRATE, COPY, COPY_SYNC, SCRIPT = (
    "msmigrate: .pth to .ckpt",
    "cp",
    "cp, then sync FILE",
    "torch.load + save_checkpoint",
)
SAFE, BACK, UNSAFE = ".pth to .safetensors", ".ckpt to .pth", ".safetensors to .ckpt"
CASES = {"resnet50": 0, "1.2GB": 71, "2.5GB": 149, "5GB": 300, "many": 25_000}  # how many layers
SCRIPTED = ("resnet50", "1.2GB", "2.5GB")  # the script needs several times the file in memory
NAMES = {SAFE: "out.safetensors", BACK: "back.pth", UNSAFE: "again.ckpt", MSMIGRATE: "0.ckpt", SCRIPT: "3.ckpt"}


def commands(source: Path, case: str) -> dict[str, list[str]]:
    """The command lines to compare; some read what one before them has written."""
    folder = source.parent
    ours = Path(sys.executable).with_name("msmigrate")
    msmigrate = [*([str(ours)] if ours.exists() else [sys.executable, "-m", "msmigrate"]), "convert-ckpt"]
    out = {label: str(folder / name) for label, name in NAMES.items()}
    found = {
        MSMIGRATE: [*msmigrate, str(source), out[MSMIGRATE]],
        COPY: ["cp", str(source), str(folder / "copy")],
        COPY_SYNC: ["sh", "-c", 'cp "$0" "$1" && sync "$1"', str(source), str(folder / "copy")],
        SAFE: [*msmigrate, str(source), out[SAFE]],
        UNSAFE: [*msmigrate, out[SAFE], out[UNSAFE], "--to", "mindspore"],
        BACK: [*msmigrate, out[MSMIGRATE], out[BACK]],
    }
    if case in SCRIPTED:
        found[SCRIPT] = [sys.executable, "-c", BY_HAND, str(source), out[SCRIPT]]
    return found


class Figure(NamedTuple):
    """One run of a command: seconds on the clock and of processor time, and peak resident MB."""

    wall: float
    cpu: float
    peak: float


def run(command: list[str], environment: dict[str, str]) -> Figure:
    """Run a command to its end. This process stays small: a child starts at its size."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    complaint = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[:3]} failed: {complaint.decode(errors='replace')[-500:]}")
    return Figure(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def measure(name: str, count: int, folder: Path, repeats: int, environment: dict[str, str]) -> dict[str, list[Figure]]:
    """Make the file, let the commands take turns, print a table."""
    source = folder / f"{name}.pth"
    subprocess.run([sys.executable, "-c", MAKE, str(source), name, str(count)], check=True, env=environment)
    size = source.stat().st_size
    figures: dict[str, list[Figure]] = {}
    same = True
    for turn in range(repeats + 1):  # the first turn warms bytecode and libraries, and is not counted
        for label, command in commands(source, name).items():
            for read in {folder / Path(word).name for word in command if len(word) < 200} & set(folder.iterdir()):
                with read.open("rb") as file:
                    while file.read(1 << 18):
                        pass
            os.sync()
            figure = run(command, environment)
            if turn:
                figures.setdefault(label, []).append(figure)
            (folder / "copy").unlink(missing_ok=True)
        if name in SCRIPTED:
            same &= begins_as(folder / NAMES[UNSAFE], folder / NAMES[SCRIPT])
        for path in folder.glob("*.*"):
            if path != source:
                path.unlink()
    source.unlink()
    print(f"\n### {name}: {size / 1e6:.1f} MB, {repeats} repeats\n")
    table(figures)
    if name in SCRIPTED:
        print(
            f"\nBut for the note at its end, ours is byte for byte {'the' if same else 'NOT the'} script's checkpoint."
        )
    if name != "many":
        print(verdict(name, figures), flush=True)
    return figures


def begins_as(ours: Path, theirs: Path) -> bool:
    """Whether the one file begins with all of the other."""
    with ours.open("rb") as one, theirs.open("rb") as other:
        while block := other.read(1 << 20):
            if one.read(len(block)) != block:
                return False
    return True


def table(figures: dict[str, list[Figure]]) -> None:
    """Print one line for each command."""
    ours, copy = median(figures[MSMIGRATE]), median(figures[COPY])
    print("| whole process | wall, median (range) | processor, median | peak memory | ÷ cp | ÷ msmigrate |")
    print("|---|---|---|---|---|---|")
    for label, found in figures.items():
        walls = [figure.wall for figure in found]
        print(
            f"| {label} | {median(found):.3f} s ({min(walls):.3f}–{max(walls):.3f}) "
            f"| {statistics.median(figure.cpu for figure in found):.3f} s | {peak(found):.0f} MB "
            f"| {median(found) / copy:.2f} | {median(found) / ours:.1f} |"
        )


def median(found: list[Figure]) -> float:
    """The median of the wall times."""
    return statistics.median(figure.wall for figure in found)


def peak(found: list[Figure]) -> float:
    """The most memory that any run took, in MB."""
    return max(figure.peak for figure in found)


def verdict(name: str, figures: dict[str, list[Figure]]) -> str:
    """Whether this run met the targets, and by how much it missed."""
    ours, memory = median(figures[MSMIGRATE]), peak(figures[MSMIGRATE])
    if name in SCRIPTED:
        speed, less = median(figures[SCRIPT]) / ours, peak(figures[SCRIPT]) / memory
        bound = median(figures[SCRIPT]) / median(figures[COPY_SYNC])
        return (
            f"Target 30 ×: {said(speed >= 30)}, {speed:.1f} × as fast as the script (cp and sync: {bound:.1f} ×). "
            f"Target a twentieth of its memory: {said(less >= 20)}, 1/{less:.0f}."
        )
    rate = median(figures[COPY]) / ours
    fast, small = said(rate >= 0.6), said(memory <= 64)
    return f"Target 0.6 of cp's rate: {fast}, {rate:.2f}. Target 64 MB: {small}, {memory:.0f} MB."


def said(met: bool) -> str:
    return "met in this run" if met else "NOT MET in this run"


def machine() -> str:
    """The processor, from /proc/cpuinfo where there is one, and how many."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def file_system(folder: Path) -> str:
    """The type of the file system a folder is on, from /proc/mounts."""
    best = ("", "unknown")
    mounts = Path("/proc/mounts")
    for line in mounts.read_text().splitlines() if mounts.exists() else []:
        _, point, kind, *_ = line.split()
        if folder.resolve().is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where to put the files (default: the system's temporary folder)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="convert-ckpt-") as name:
        folder = Path(name)
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        version, load = sys.version.split()[0], os.getloadavg()[0]
        print(f"{machine()}, {file_system(folder)}, Python {version}, load {load:.1f} before the start.")
        print("Page cache warm. msmigrate fsyncs; cp and the script do not.")
        for case in options.only:
            if case == "many":  # 10,000 tensors, and ten times as many
                few = measure(case, CASES[case] // 10, folder, options.repeats, environment)
                many = measure(case, CASES[case], folder, options.repeats, environment)
                longer = median(many[MSMIGRATE]) / median(few[MSMIGRATE])
                print(f"\nTen times the tensors take {longer:.1f} times as long.")
            else:
                measure(case, CASES[case], folder, options.repeats, environment)


if __name__ == "__main__":
    main()
