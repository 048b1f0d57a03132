"""parity-step with torch on a device: a clean pair and a wrong one of three nets, with and without TF32.

    python benchmarks/devices.py --device cuda [--net NAME …] [--json FILE]

Prints markdown: for each net the verdict of the clean pair and how far its float32 is from float64 there, beside the
CPU's; what was found first of the wrong pair; and the seconds of recording beside those of torch's bare steps on the
device. NVIDIA_TF32_OVERRIDE switches TF32 off for everything (0); left alone, torch has it on in convolutions.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
NETS = ("convolutional", "transformer", "recurrent")
STEPS = 3
RECIPE = {
    "model": {"name": "resnet_tiny"},  # which the pair takes the place of
    "data": {"source": "synthetic:64x64", "batch": 8, "transforms": [{"name": "ToTensor"}]},
    "loss": {"name": "CrossEntropyLoss"},
    "optimizer": {"name": "SGD", "args": {"lr": 0.01, "momentum": 0.9}},
}
BARE = f"""
import sys, time
sys.path.insert(0, {str(HERE)!r})
import torch, devices_torch
device, name = torch.device(sys.argv[1]), sys.argv[2]
model = getattr(devices_torch, name)().to(device).train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images, labels = torch.rand(8, 3, 64, 64, device=device), torch.arange(8, device=device)
def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()
step()
began = time.perf_counter()
for _ in range({STEPS}):
    step()
print(time.perf_counter() - began)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="as parity-step takes it (cuda)")
    parser.add_argument("--net", nargs="*", choices=NETS, default=list(NETS))
    parser.add_argument("--json", type=Path, help="write every figure there, too")
    given = parser.parse_args()
    with_tf32 = [None, "0"] if given.device.startswith("cuda") else [None]
    rows = [measured(net, given.device, tf32) for net in given.net for tf32 in with_tf32]
    print(f"{rows[0]['device']}\n")
    print(
        "| net | TF32 | clean pair | farther from float64 than the CPU | wrong pair: first | bare steps | parity-step |"
    )
    print("|---|---|---|---:|---|---:|---:|")
    for row in rows:
        coarser = f"{row['coarser']:.1f} x the CPU's" if row["coarser"] else "–"
        seconds = f"{row['bare']:.2f} s | {row['seconds']:.0f} s"
        print(f"| {row['net']} | {row['tf32']} | {row['clean']} | {coarser} | {row['found']} | {seconds} |")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(any(row["clean"] != "parity" or row["found"] == "nothing" for row in rows))


def measured(net: str, device: str, tf32: str | None) -> dict[str, Any]:
    """A row of the table; tf32: what NVIDIA_TF32_OVERRIDE is set to, if anything."""
    environment = {key: value for key, value in os.environ.items() if key != "NVIDIA_TF32_OVERRIDE"}
    if tf32 is not None:
        environment["NVIDIA_TF32_OVERRIDE"] = tf32
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "recipe.yaml").write_text(yaml.safe_dump(RECIPE))
        began = time.perf_counter()
        clean = judged(folder / "clean", net, net, device, environment)
        seconds = time.perf_counter() - began
        wrong = judged(folder / "wrong", net, f"wrong_{net}", device, environment)
        coarser = distance(folder / "clean")
    command = [sys.executable, "-c", BARE, device, net]
    bare = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    first = wrong["first_divergence"]
    on = clean["devices"][0]
    switch = on["switches"].get("TF32 in convolutions")
    return {
        "net": net,
        "device": f"torch {clean['versions'].get('torch')} on {on['device']}, {on['device_model']}, {on['driver']}",
        "tf32": "off" if tf32 == "0" else "–" if switch is None else "convolutions" if switch else "off",
        "clean": clean["outcome"],
        "found": f"{first['stage']} {first['name']}" if first else "nothing",
        "coarser": coarser,
        "bare": float(bare),
        "seconds": seconds,
    }


def judged(folder: Path, torch: str, mindspore: str, device: str, environment: dict[str, str]) -> dict[str, Any]:
    """The report of one pair as JSON; its traces stay in the folder."""
    command = [sys.executable, "-m", "msmigrate", "parity-step", "recipe.yaml", "--device", device]
    command += ["--torch", f"{HERE / 'devices_torch.py'}:{torch}"]
    command += ["--mindspore", f"{HERE / 'devices_mindspore.py'}:{mindspore}"]
    command += ["--steps", str(STEPS), "--keep", folder.name, "--json", f"{folder.name}.json"]
    done = subprocess.run(command, cwd=folder.parent, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    found: dict[str, Any] = json.loads((folder.parent / f"{folder.name}.json").read_text())
    return found


def distance(folder: Path) -> float | None:
    """How many times as far from float64 as the CPU's float32 the device's is, in the middle of all layers' outputs."""
    from msmigrate.parity.build_result import coarser
    from msmigrate.parity.compare import Traces

    return coarser(Traces.load(folder))


if __name__ == "__main__":
    main()
