"""One run of each framework for all tests of models and data; the tests themselves import neither."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from msmigrate.training.data.sample import decode
from msmigrate.training.data.sources import samples
from PIL import Image

HERE = Path(__file__).parent
sys.path.append(str(HERE))  # for augment_cases, draw_cases and mixing_cases, which tests and a worker share


@dataclass(frozen=True)
class Side:
    """What one framework's worker found out: facts by section and case, arrays by path."""

    facts: dict[str, dict]
    arrays: dict[str, np.ndarray]

    def under(self, prefix: str) -> dict[str, np.ndarray]:
        """The arrays below `prefix`, by the rest of their path."""
        return {name[len(prefix) :]: array for name, array in self.arrays.items() if name.startswith(prefix)}


@dataclass(frozen=True)
class Pair:
    torch: Side
    mindspore: Side


def run(framework: str, folder: Path) -> Side:
    """Run one worker to its end and read what it wrote."""
    done = subprocess.run(
        [sys.executable, str(HERE / f"{framework}_worker.py"), str(folder)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    with np.load(folder / f"{framework}.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    return Side(json.loads((folder / f"{framework}.json").read_text(encoding="utf-8")), arrays)


def make_image_folder(folder: Path) -> None:
    """Two classes of images of all kinds: JPEG, PNG, grey, with palette, with transparency, below another folder."""
    for index, sample in enumerate(samples("photographs", 6, 1, seed=9)[0]):
        place = folder / ("cities" if index % 2 == 0 else "blossoms/red")
        place.mkdir(parents=True, exist_ok=True)
        image = decode(sample)
        if index < 2:
            (place / f"{index}.JPG").write_bytes(sample.data)
        elif index == 2:
            image.convert("L").save(place / "grey.jpeg", quality=80)
        elif index == 3:
            image.convert("RGBA").save(place / "transparent.png")
        elif index == 4:
            image.quantize(32).save(place / "palette.png")
        else:
            image.save(place / "plain.webp", quality=90)
    (folder / "cities" / "notes.txt").write_text("not an image", encoding="utf-8")


@pytest.fixture(scope="session")
def models_and_data(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Both workers' results; MindSpore's runs second because it loads the weights that PyTorch drew."""
    folder = tmp_path_factory.mktemp("models_and_data")
    make_image_folder(folder / "images")
    return Pair(run("torch", folder), run("mindspore", folder))


def tiny_tree(folder: Path) -> None:
    """Two classes, folders below them whose order is easily mistaken, and files that are no images of a class."""
    for index, name in enumerate(
        ["b/z.png", "b/a/y.PNG", "b/a.png", "b/a-b/x.png", "Big/1.jpg", "Big/10.jpg", "Big/2.jpg"]
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(index).integers(0, 256, (50 + 3 * index, 70 - 5 * index, 3), dtype=np.uint8)
        image = Image.fromarray(pixels)
        (image.convert("L") if index == 1 else image.quantize(9) if index == 2 else image).save(folder / name)
    Image.new("RGBA", (60, 50), (10, 20, 30, 40)).save(folder / "b" / "clear.webp")
    (folder / "b" / "notes.txt").write_text("not an image", encoding="utf-8")
    (folder / "loose.png").write_bytes((folder / "b" / "z.png").read_bytes())


@pytest.fixture(scope="session")
def torch_sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Side]:
    """A tree of images, and what torch's samplers, ImageFolder and transforms make of it."""
    folder = tmp_path_factory.mktemp("torch_sources")
    tiny_tree(folder / "images")
    done = subprocess.run(
        [sys.executable, str(HERE / "sources_torch_worker.py"), str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    with np.load(folder / "torch.npz") as stored:
        arrays = dict(stored)
    return folder / "images", Side(json.loads((folder / "torch.json").read_text(encoding="utf-8")), arrays)


@pytest.fixture(scope="session")
def torchvision_side(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """What torchvision draws and does, and what timm mixes: the arrays of augment_torch_worker.py by name."""
    folder = tmp_path_factory.mktemp("torchvision_side")
    command = [sys.executable, str(HERE / "augment_torch_worker.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with np.load(folder / "augment.npz") as stored:
        return dict(stored)
