"""How long training waits for its data: `msmigrate train` on a folder of JPEGs, batch 32, random crops of 224 pixels.

    python benchmarks/data_wait.py [--model resnet18] [--steps 12] [--workers 2]

The folder of JPEGs with sides of 224 to 427 pixels is cut from the two photographs that scikit-learn ships. Prints
markdown; the share is what the run's own log says of the steps after the first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from data_pipeline import CLASSES, TRANSFORMS  # type: ignore[import-not-found]
from msmigrate.training.data.sources import crops


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for index, sample in enumerate(crops(32 * arguments.steps, 224, seed=1, num_classes=CLASSES)):
            file = folder / "images" / f"class{sample.label}" / f"{index:05}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(sample.data)
        source = f"folder:{folder / 'images'}"
        recipe = {
            "model": {"name": arguments.model, "args": {"num_classes": CLASSES}},
            "data": {"source": source, "batch": 32, "transforms": TRANSFORMS, "workers": arguments.workers},
            "optimizer": {"name": "SGD", "args": {"lr": 0.001, "momentum": 0.9}},
            "train": {"epochs": 1, "log_every": 1},
        }
        file = folder / "recipe.yaml"
        file.write_text(yaml.safe_dump(recipe))
        command = [sys.executable, "-m", "msmigrate", "train", str(file), "--skip-parity", "--out", str(folder / "run")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        events = [json.loads(line) for line in (folder / "run" / "log.jsonl").read_text().splitlines()]
    end = next(event for event in events if event["event"] == "end")
    print("| model, batch, workers | images/s | waiting for data |\n|---|---|---|")
    print(
        f"| {arguments.model}, 32, {arguments.workers} of {os.cpu_count()} cores | {end['images_per_second']:.1f} | "
        f"{100 * end['waited']:.2f} % ({end['waited_seconds']:.2f} s) |"
    )


if __name__ == "__main__":
    main()
