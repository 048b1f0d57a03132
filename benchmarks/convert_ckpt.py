"""How fast `msmigrate convert-ckpt` is, next to `cp` and to the script people write by hand, in one run on one disk.

    python benchmarks/convert_ckpt.py [--folder DIR] [--repeats N] [--only resnet50|large]

Every figure is a whole process, from start to exit: wall time (median of the repeats, and their range), processor time
(user and system, median; other programs on the machine disturb it less) and peak resident memory (ru_maxrss from
wait4). The commands take turns, so that none has a quieter machine than the others.
The source is in the page cache (it is read once before each run), the destination does not exist, and earlier writes
are on the disk (sync) before a run starts. msmigrate fsyncs its file before it exits; cp and the script do not, so
`cp` is also shown with an fsync (`sync FILE`). Bytecode is cached, as in any installation.

Two targets are judged on medians: ResNet50 in a fiftieth of the script's time and 60 MB, the large file in 2.5 times
the time of cp and 100 MB.

Weights are random and made here; everything is deleted at the end. Needs about 6 GB of disk for the large file.
"""

from __future__ import annotations

import argparse
import filecmp
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
if sys.argv[2] == "resnet50":
    import torchvision
    state = torchvision.models.resnet50().state_dict()
else:  # 1.7 GB: 100 linear layers of 2048 x 2048 with their norms
    names = ("fc.weight", (2048, 2048)), ("fc.bias", (2048,)), ("norm.weight", (2048,)), ("norm.bias", (2048,))
    state = {f"blocks.{i}.{name}": torch.randn(shape) for i in range(101) for name, shape in names}
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
    "msmigrate convert-ckpt",
    "cp",
    "cp, then sync FILE",
    "torch.load + save_checkpoint",
)


def commands(source: Path, destination: Path) -> dict[str, list[str]]:
    """The command lines to compare."""
    ours = Path(sys.executable).with_name("msmigrate")
    msmigrate = [str(ours)] if ours.exists() else [sys.executable, "-m", "msmigrate"]
    files = [str(source), str(destination)]
    return {
        MSMIGRATE: [*msmigrate, "convert-ckpt", *files],
        COPY: ["cp", *files],
        COPY_SYNC: ["sh", "-c", 'cp "$0" "$1" && sync "$1"', *files],
        SCRIPT: [sys.executable, "-c", BY_HAND, *files],
    }


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


def measure(name: str, folder: Path, repeats: int, environment: dict[str, str]) -> None:
    """Make the file, let the commands take turns, print a table."""
    source = folder / f"{name}.pth"
    subprocess.run([sys.executable, "-c", MAKE, str(source), name], check=True, env=environment)
    size = source.stat().st_size
    figures: dict[str, list[Figure]] = {}
    for turn in range(repeats + 1):  # the first turn warms bytecode and libraries, and is not counted
        for number, label in enumerate(commands(source, folder)):
            destination = folder / f"{number}.ckpt"
            destination.unlink(missing_ok=True)
            with source.open("rb") as file:
                while file.read(1 << 18):
                    pass
            os.sync()
            figure = run(commands(source, destination)[label], environment)
            if turn:
                figures.setdefault(label, []).append(figure)
            if label != MSMIGRATE and label != SCRIPT:
                destination.unlink()
    same = filecmp.cmp(folder / "0.ckpt", folder / "3.ckpt", shallow=False)
    for path in folder.glob("*.ckpt"):
        path.unlink()
    source.unlink()
    print(f"\n### {name}: {size / 1e6:.1f} MB, {repeats} repeats\n")
    table(figures)
    print(f"\nThe two checkpoints are byte for byte {'the same' if same else 'DIFFERENT'}.")
    print(verdict(name, figures), flush=True)


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
    if name == "resnet50":
        ratio = median(figures[SCRIPT]) / ours
        best = min(figure.wall for figure in figures[SCRIPT]) / min(figure.wall for figure in figures[MSMIGRATE])
        speed, most = (
            (ratio >= 50, f"{ratio:.1f} × as fast as the script (minimum by minimum: {best:.1f} ×)", "50 ×"),
            60,
        )
    else:
        ratio = ours / median(figures[COPY])
        speed, most = (ratio <= 2.5, f"{ratio:.2f} × the time of cp", "2.5 ×"), 100
    met, text, wanted = speed
    return (
        f"Target {wanted}: {'met' if met else 'NOT MET'} in this run, {text}. "
        f"Target {most} MB: {'met' if memory <= most else 'NOT MET'}, {memory:.0f} MB."
    )


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
    parser.add_argument("--only", choices=["resnet50", "large"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="convert-ckpt-") as name:
        folder = Path(name)
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        version, load = sys.version.split()[0], os.getloadavg()[0]
        print(f"{machine()}, {file_system(folder)}, Python {version}, load {load:.1f} before the start.")
        print("Page cache warm. msmigrate fsyncs; cp and the script do not.")
        for case in [options.only] if options.only else ["resnet50", "large"]:
            measure(case, folder, options.repeats, environment)


if __name__ == "__main__":
    main()
