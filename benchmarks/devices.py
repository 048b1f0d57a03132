"""torch on a device: a clean pair and a wrong one of four nets, with and without TF32.

    python benchmarks/devices.py --device cuda [--net NAME …] [--json FILE]

Where the device's machine has no MindSpore, on one that has it, and then on the device's, with the folder:

    python benchmarks/devices.py --record FOLDER
    python benchmarks/devices.py --device cuda --with FOLDER

Prints markdown: for each net the verdict of the clean pair, and how far its float32 is from float64 there, beside the
CPU's; what was found first of the wrong pair, and the cause; and two halves of torch's, one of the device.
NVIDIA_TF32_OVERRIDE switches TF32 off for everything (0); left alone, torch has it on in convolutions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from msmigrate.errors import MsmigrateError
from msmigrate.parity import run_folder
from msmigrate.parity.build_result import coarser
from msmigrate.parity.compare_traces import Traces
from msmigrate.parity.result import Report
from msmigrate.parity.run import with_causes
from msmigrate.workers.messages import ignore
from msmigrate.workflows.compare import compare_folders

HERE = Path(__file__).parent
NETS = ("convolutional", "transformer", "recurrent", "fused")
ALONE = "resnet50"  # of torch alone: what is recorded of it is too large to travel
STEPS = 2
TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
OF_MINDSPORE = ("clean", "wrong")
RECIPE = {
    "model": {"name": "resnet_tiny"},  # which the pair takes the place of
    "data": {"source": "synthetic:32x32", "batch": 8, "transforms": [{"name": "ToTensor"}]},
    "loss": {"name": "CrossEntropyLoss"},
    "optimizer": {"name": "SGD", "args": {"lr": 0.01, "momentum": 0.9}},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="as parity-step takes it (cuda)")
    parser.add_argument("--net", nargs="*", choices=(*NETS, ALONE), default=[*NETS, ALONE])
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="MindSpore's halves alone, for another machine")
    parser.add_argument("--with", type=Path, metavar="FOLDER", dest="other", help="what --record made elsewhere")
    parser.add_argument("--at-once", type=int, default=1, help="how many are recorded side by side (1)")
    parser.add_argument("--json", type=Path, help="write every figure there, too")
    given = parser.parse_args()
    if given.other is not None and not given.other.is_dir():
        parser.error(f"--with {given.other}: there is no such folder; --record makes it where MindSpore is")
    if given.record is None and not re.fullmatch(r"(cuda|npu)(:\d+)?", given.device):
        parser.error(f"--device {given.device}: expected cuda, cuda:1, npu or npu:1; the CPU's half is recorded anyway")
    if given.record is not None:
        for net in given.net:
            of_mindspore(net, given.record)
        return
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(given.at_once) as pool:
        halves = given.other or Path(temporary)
        if given.other is None:
            for net in given.net:
                of_mindspore(net, halves)
        wanted = [(net, tf32) for net in given.net for tf32 in ((None, "0") if "cuda" in given.device else (None,))]
        rows = list(pool.map(lambda each: measured(each[0], each[1], given.device, halves, Path(temporary)), wanted))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    print("\n".join(dict.fromkeys(row.get("device", "") for row in rows)))
    print(
        "\n| net | NVIDIA_TF32_OVERRIDE | clean pair | farther from float64 | wrong pair | by the CPU | by the device |"
    )
    print("|---|---|---|---:|---|---|---|")
    for row in rows:
        coarse = f"{row['coarser']:.1f} x" if row.get("coarser") else "–"
        cells = [row["net"], row["tf32"] or "–", row.get("clean", "–"), coarse, row.get("wrong", "–")]
        cells += [row["by the CPU"], row["by the device"]]
        print(f"| {' | '.join(cells)} |")
    right = ("parity", "unproven")
    sys.exit(any(row.get("clean", right[0]) not in right or row.get("wrong") in right for row in rows))


def of_mindspore(net: str, halves: Path) -> None:
    """MindSpore's halves of a net, and of what is wrong with it; both begin as torch's on this machine's CPU did."""
    (halves / net).mkdir(parents=True, exist_ok=True)
    if net == ALONE:
        return
    torch = recorded("torch", net, halves / "torch")
    for way in OF_MINDSPORE:
        recorded("mindspore", net, halves / net / way, "--with", str(torch), wrong=way == "wrong")
    shutil.rmtree(torch)


def measured(net: str, tf32: str | None, device: str, halves: Path, work: Path) -> dict[str, Any]:
    """A row of the table; tf32: what NVIDIA_TF32_OVERRIDE is set to, if anything."""
    folder = work / f"{net}-{tf32}"
    began = time.perf_counter()

    def pair(way: str) -> Report:
        half = halves / net / way
        torch = recorded("torch", net, folder / way, "--with", str(half), "--device", device, tf32=tf32)
        found = compare_folders(torch, half)
        if found.parity:
            return found
        return with_causes(run_folder.read(torch).options(torch), found, ignore)  # `compare` would not run this net

    def alone(*devices: str) -> Report:
        one, other = (folder / f"{place}-of-{'-'.join(devices)}" for place in ("first", "second"))
        recorded("torch", net, one, "--device", devices[0], tf32=tf32)
        recorded("torch", net, other, "--with", str(one), "--device", devices[1], tf32=tf32)
        return compare_folders(one, other, explain=lambda job, report: with_causes(job, report, ignore))

    row: dict[str, Any] = {"net": net, "tf32": tf32, "reports": {}}
    ways = {way: partial(pair, way) for way in OF_MINDSPORE if net != ALONE}
    ways |= {"by the CPU": partial(alone, "cpu", device), "by the device": partial(alone, device, "cpu")}
    for way, compared in ways.items():
        try:
            found = compared()
        except (MsmigrateError, RuntimeError) as error:
            row[way] = f"stopped: {error}"
            continue
        row["reports"][way] = found.as_json()
        row[way] = found.outcome.value if found.first_divergence is None else found.first_divergence.place
        row[way] += "".join(f"; {cause.place}: {cause.text}" for cause in found.causes[:1])
        on = next((each for each in found.devices if each.device != "cpu"), found.devices[0])
        row["device"] = f"torch {found.versions.get('torch') or found.versions['torch (2)']}, {on.said()}"
        if way == "clean":
            row["coarser"] = coarser(Traces.load(folder / way))
    row["seconds"] = time.perf_counter() - began
    shutil.rmtree(folder, ignore_errors=True)
    return row


def recorded(framework: str, net: str, out: Path, *more: str, wrong: bool = False, tf32: str | None = None) -> Path:
    """One framework's half of a net, in the folder `out`; more: further words of the command."""
    out.parent.mkdir(parents=True, exist_ok=True)
    recipe = out.parent / f"{net}.yaml"
    recipe.write_text(yaml.safe_dump({**RECIPE, "model": {"name": ALONE}} if net == ALONE else RECIPE))
    command = [sys.executable, "-m", "msmigrate", "record", str(recipe), "--framework", framework, "-o", str(out)]
    if net != ALONE:
        command += ["--torch", f"{HERE / 'devices_torch.py'}:{net}"]
        command += ["--mindspore", f"{HERE / 'devices_mindspore.py'}:{'wrong_' * wrong}{net}"]
    environment = {key: value for key, value in os.environ.items() if key != TF32_OVERRIDE}
    environment |= {TF32_OVERRIDE: tf32} if tf32 is not None else {}
    done = subprocess.run(
        [*command, *more, "--steps", str(STEPS)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return out


if __name__ == "__main__":
    main()
