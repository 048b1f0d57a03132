"""How many images a second the data pipeline prepares, with nothing else to do, next to torch's DataLoader.

    python benchmarks/data_pipeline.py [--images N] [--epochs N] [--batch N]

A folder of JPEGs with sides of 224 to 427 pixels is cut from the two photographs that scikit-learn ships. Every line
is a process of its own, on the same files (in the page cache) with the same transforms: RandomResizedCrop(224),
RandomHorizontalFlip, ToTensor, Normalize. images/s is that of the fastest epoch after the first, since other programs
only ever slow one down; the first epoch is the one that fills the cache. CPU is user and system time of the process
and its children (not of the cache server) over all epochs, in milliseconds an image: other programs disturb it least.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from msmigrate.training.data.sources import crops

CLASSES = 8
TRANSFORMS = [
    {"name": "RandomResizedCrop", "args": {"size": 224}},
    {"name": "RandomHorizontalFlip"},
    {"name": "ToTensor"},
    {"name": "Normalize", "args": {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}},
]

REPORT = """
def report(epoch, count, epochs):
    rates = []
    for number in range(epochs):
        began = time.perf_counter()
        images = sum(epoch(number))
        assert images == count, (images, count)
        rates.append(images / (time.perf_counter() - began))
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(u.ru_utime + u.ru_stime for u in used) - started
    print(json.dumps({"first": rates[0], "best": max(rates[1:]), "cpu": 1000 * seconds / count / epochs}), flush=True)
"""

OURS = (
    """
import json, resource, sys, time
from msmigrate.workers.worker import leave, prepare_mindspore
prepare_mindspore()
from msmigrate.training.data.sources import open_source
from msmigrate.training.data.mindspore_dataloader import Loader
from msmigrate.training.recipe.reader import Recipe
"""
    + REPORT
    + """
job = json.loads(sys.argv[1])
source = open_source("folder:" + job["folder"], job["classes"], training=True)
recipe = Recipe.model_validate({
    "model": {"name": "resnet50", "args": {"num_classes": job["classes"]}},
    "optimizer": {"name": "SGD", "args": {"lr": 0.1}},
    "data": {"batch": job["batch"], "transforms": job["transforms"], **job["data"]},
})
loader = Loader(source, recipe, training=True)
used = resource.getrusage(resource.RUSAGE_SELF)
started = used.ru_utime + used.ru_stime
report(lambda number: (len(batch.indices) for batch in loader.epoch(number)), loader.images_per_epoch, job["epochs"])
leave()
"""
)

THEIRS = (
    """
import json, resource, sys, time
import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
"""
    + REPORT
    + """
job = json.loads(sys.argv[1])
steps = [getattr(transforms, part["name"])(**part.get("args", {})) for part in job["transforms"]]
source = datasets.ImageFolder(job["folder"], transforms.Compose(steps))
loader = DataLoader(source, job["batch"], shuffle=True, drop_last=True, num_workers=job["data"]["workers"])
used = resource.getrusage(resource.RUSAGE_SELF)
started = used.ru_utime + used.ru_stime
report(lambda number: (len(labels) for _, labels in loader), len(loader) * job["batch"], job["epochs"])
"""
)


class Line(NamedTuple):
    """One line of the table: its name, the program, and the recipe's data section."""

    name: str
    program: str
    data: dict[str, object]


def lines() -> list[Line]:
    """What is compared; MindSpore refuses more workers than cores, so the loader takes no more."""
    table = [Line(f"torch DataLoader, {n} worker{'s' * (n > 1)}", THEIRS, {"workers": n}) for n in (1, 2, 4)]
    cores = os.cpu_count() or 1
    counts = [n for n in (1, 2, 4) if n <= cores]
    table += [Line(f"msmigrate, {n} worker{'s' * (n > 1)}", OURS, {"workers": n}) for n in counts]
    most = counts[-1]
    table.append(Line(f"msmigrate, {most} workers, fast_transforms", OURS, {"workers": most, "fast_transforms": True}))
    table.append(Line(f"msmigrate, {most} workers, cache", OURS, {"workers": most, "cache": True}))
    return table


def make_images(folder: Path, count: int) -> int:
    """Write the JPEGs; their size together, in bytes."""
    total = 0
    for index, sample in enumerate(crops(count, 224, seed=1, num_classes=CLASSES)):
        place = folder / f"class{sample.label}"
        place.mkdir(exist_ok=True)
        total += (place / f"{index:05}.jpg").write_bytes(sample.data)
    return total


def measure(line: Line, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """Run one line's process to its end."""
    job = {
        "folder": str(folder),
        "classes": CLASSES,
        "batch": options.batch,
        "epochs": options.epochs,
        "transforms": TRANSFORMS,
        "data": line.data,
    }
    done = subprocess.run([sys.executable, "-c", line.program, json.dumps(job)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{line.name} failed: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def processor() -> str:
    """The processor's name, and how many cores there are."""
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=4, help="the first is not counted; at least 2")
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args()
    if options.epochs < 2 or options.images < options.batch:
        parser.error("at least 2 epochs and one batch of images")
    with tempfile.TemporaryDirectory(prefix="data-pipeline-") as place:
        size = make_images(Path(place), options.images)
        print(f"{options.images} JPEGs, {size / options.images / 1024:.0f} KB each, batch {options.batch}\n")
        print(f"| {processor()} | images/s | first epoch | CPU ms an image |\n|---|---|---|---|")
        for line in lines():
            found = measure(line, Path(place), options)
            print(f"| {line.name} | {found['best']:.0f} | {found['first']:.0f} | {found['cpu']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
