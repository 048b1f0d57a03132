"""parity-step on the default recipe: its time and memory next to the bare steps, and the ratios behind its verdict.

    python benchmarks/parity_step.py [RECIPE] [--steps 3]

Prints markdown. The bare steps are what the run has to compute anyway (imports, passes and steps of torch in three
precisions and of MindSpore), each framework alone, one after the other; parity-step runs the two at the same time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DEFAULT = HERE.parent / "recipes" / "resnet50.yaml"


def run(command: list[str]) -> tuple[float, float, float, int]:
    """Wall seconds, CPU seconds, peak resident MB of the largest process, and exit code of a command."""
    before = os.times()
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall, after = time.perf_counter() - started, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu, usage.ru_maxrss / 1024, process.returncode


def peak_of_children(command: list[str]) -> tuple[float, float, dict[str, float], int]:
    """The same for a command that starts workers: peak resident MB of each worker, sampled from /proc."""
    before = os.times()
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peaks: dict[str, float] = {}
    while process.poll() is None:
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            try:
                name = Path(f"/proc/{child}/cmdline").read_text().split("\0")[2].rpartition(".")[2]
                status = Path(f"/proc/{child}/status").read_text()
                peaks[name] = int(status.partition("VmHWM:")[2].split()[0]) / 1024
            except (OSError, IndexError, ValueError):
                continue
        time.sleep(0.1)
    wall, after = time.perf_counter() - started, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu, peaks, process.returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--steps", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        common = [str(arguments.recipe), str(folder)]
        torch = run([sys.executable, str(HERE / "bare_torch.py"), *common, str(arguments.steps)])
        mindspore = run([sys.executable, str(HERE / "bare_mindspore.py"), *common])
        found = folder / "report.json"
        command = [sys.executable, "-m", "msmigrate", "parity-step", str(arguments.recipe), "--json", str(found)]
        wall, cpu, peaks, code = peak_of_children([*command, f"--steps={arguments.steps}"])
        report = json.loads(found.read_text())
    print(
        f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}\n"
    )
    print("| | wall s | CPU s | peak MB |\n|---|---|---|---|")
    print(f"| bare torch | {torch[0]:.1f} | {torch[1]:.1f} | {torch[2]:.0f} |")
    print(f"| bare MindSpore | {mindspore[0]:.1f} | {mindspore[1]:.1f} | {mindspore[2]:.0f} |")
    memory = ", ".join(f"{name} {peak:.0f}" for name, peak in peaks.items())
    print(f"| parity-step (exit {code}) | {wall:.1f} | {cpu:.1f} | {memory} |")
    bare = torch[0] + mindspore[0]
    of_cpu = cpu / (torch[1] + mindspore[1])
    print(f"\nparity-step takes {wall / bare:.2f} times the bare steps ({bare:.1f} s), {of_cpu:.2f} times their CPU")
    print(f"seconds; the target is at most 1.5. {_judged(report)}\n")
    print("| stage | tensors | ratio: median | 95th percentile | largest | largest error |\n|---|---|---|---|---|---|")
    for stage in report["stages"]:
        findings = [f for f in report["findings"] if f["stage"] == stage["stage"]]
        ratios = sorted(f["ratio"] for f in findings if f["ratio"] is not None)
        if len(ratios) > 1:
            p95 = statistics.quantiles(ratios, n=20, method="inclusive")[-1]
            shown = f"{statistics.median(ratios):.2f} | {p95:.2f} | {ratios[-1]:.2f} | {stage['max_error']:.1e}"
        else:
            shown = "equal to the bit, distributions agree | | | "
        print(f"| {stage['stage']} | {len(findings)} | {shown} |")
    print("\n" + "\n".join(f"{note}." for note in report["notes"]))
    sys.exit(code)


def _judged(report: dict[str, Any]) -> str:
    """How many tensors were judged, and how many calls of modules by what."""
    alone = {finding["name"].rpartition(" ")[0] for finding in report["findings"] if finding["part"] == "alone"}
    wiring = sum(finding["part"] == "wiring" for finding in report["findings"])
    parts = sum(module["by_parts"] for module in report["modules"])
    return (
        f"It judged {len(report['findings'])} tensors; {len(alone)} calls of modules ran alone, {parts} containers "
        f"were judged by their parts, and {wiring} of the tensors are of what containers compute themselves."
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


if __name__ == "__main__":
    main()
