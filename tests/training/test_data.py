"""The same encoded images become the same arrays in both frameworks, and damaged ones are refused by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from msmigrate.errors import BadInput, BadRecipe
from msmigrate.training.data.sample import decode, encode
from msmigrate.training.data.sources import crops, samples
from PIL import Image

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))
# PyTorch divides by 255 in float32, MindSpore in float64: one unit in the last place, and again in Normalize.
ROUNDING = 1e-6


@pytest.mark.parametrize("case", CASES["data"])
def test_images_agree(models_and_data, case):
    theirs, ours = models_and_data.torch.under(f"data/{case}/"), models_and_data.mindspore.under(f"data/{case}/")
    shape = {"photographs": (8, 3, 224, 224), "digits": (8, 1, 32, 32), "folder": (8, 3, 64, 57)}[case]
    assert ours["images"].shape == theirs["images"].shape == shape
    assert ours["images"].dtype == theirs["images"].dtype == np.float32
    assert np.abs(ours["images"] - theirs["images"]).max() < ROUNDING
    assert len(np.unique(theirs["images"].reshape(8, -1), axis=0)) >= 6  # they are not eight times one image
    assert (ours["labels"].dtype, theirs["labels"].dtype) == (np.int32, np.int64)
    assert ours["labels"].tolist() == theirs["labels"].tolist()


@pytest.mark.parametrize("case", CASES["random"])
def test_random_images_agree_when_they_are_drawn_from_the_same_keys(models_and_data, case):
    theirs, ours = models_and_data.torch.under(f"data/{case}/"), models_and_data.mindspore.under(f"data/{case}/")
    shape = {"augmented photographs": (8, 3, 64, 64), "augmented digits": (8, 1, 28, 28)}[case]
    assert ours["images"].shape == theirs["images"].shape == shape
    assert ours["images"].dtype == theirs["images"].dtype == np.float32
    assert np.abs(ours["images"] - theirs["images"]).max() < ROUNDING
    for side in (ours, theirs):  # other keys give other images, the same ones the same again
        assert (side["other images"] != side["images"]).reshape(8, -1).any(1).sum() >= 7
    assert np.abs(ours["other images"] - theirs["other images"]).max() < ROUNDING


@pytest.mark.parametrize(
    ("case", "error", "message"),
    [
        ("truncated", "BadInput", "flower.jpg 308x263 at 25,2 cannot be decoded: image file is truncated"),
        ("not an image", "BadInput", "is not an image: its 17 bytes have no known format"),
        ("empty", "BadInput", "is not an image: its 0 bytes have no known format"),
        ("several sizes", "BadRecipe", ""),
        ("no array", "BadRecipe", "add ToTensor"),
        ("normalize before tensor", "BadRecipe", "transforms failed on"),
        ("not drawn", "Unsupported", "random transforms that can be given the same draws: ColorJitter, RandAugment"),
        ("erasing a picture", "BadRecipe", "RandomErasing works on the output of ToTensor: put it after ToTensor"),
        ("flipping an array", "BadRecipe", "RandomHorizontalFlip works on images"),
        ("too small to crop", "BadRecipe", "a crop 900 high and 900 wide does not fit an image 256 high"),
        ("random", "Unsupported", "RandomResizedCrop draws random numbers"),
    ],
)
@pytest.mark.parametrize("framework", ["torch", "mindspore"])
def test_bad_batches_are_refused(models_and_data, framework, case, error, message):
    kind, text = getattr(models_and_data, framework).facts["errors"][case]
    assert kind == error
    assert message in text
    assert "\n" not in text


def test_photographs_are_the_same_for_the_same_seed_only():
    first = samples("photographs", 4, 3, seed=1)
    assert first == samples("photographs", 4, 3, seed=1)
    assert [len(step) for step in first] == [4, 4, 4]
    flat = [sample for step in first for sample in step]
    assert len({sample.data for sample in flat}) == 12
    assert [sample.label for sample in flat] == list(range(12))
    assert not {sample.data for sample in flat} & {sample.data for sample in samples("photographs", 12, 1, seed=2)[0]}
    assert min(min(decode(sample).size) for sample in flat) >= 256


def test_crops_greater_than_the_photographs_are_refused():
    with pytest.raises(BadInput, match=r"crops of 500 pixels do not fit china\.jpg, which is 427 pixels high"):
        crops(1, 500, seed=0)


def test_labels_stay_below_the_number_of_classes():
    assert [sample.label for sample in samples("photographs", 5, 1, seed=0, num_classes=3)[0]] == [0, 1, 2, 0, 1]


def test_digits_are_scikit_learn_s_own():
    everything = [sample for step in samples("digits", 599, 3, seed=0) for sample in step]
    assert len({sample.name for sample in everything}) == 1797
    assert np.bincount([sample.label for sample in everything]).tolist() == [
        178,
        182,
        177,
        183,
        181,
        182,
        181,
        179,
        174,
        180,
    ]
    first = next(sample for sample in everything if sample.name == "digit 0")
    assert first.label == 0
    assert np.round(np.asarray(decode(first))[0] / 255 * 16).tolist() == [0, 0, 5, 13, 9, 1, 0, 0]


def test_nothing_heavy_is_imported_for_samples():
    program = (
        "import sys; from msmigrate.training.data.sources import samples; samples('digits', 2, 1, 0);"
        "samples('photographs', 2, 1, 0);"
        "print([name for name in ('torch', 'mindspore', 'sklearn', 'torchvision') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "[]"


def tiny(folder: Path, *names: str) -> Path:
    """A folder with a 2 x 2 image under each of the names."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(encode(Image.new("RGB", (2, 2)), "PNG"))
    return folder


def test_a_folder_labels_by_sorted_class_and_repeats_only_when_it_must(tmp_path):
    folder = tiny(tmp_path, "b/1.png", "a/2.png", "a/deep/3.png", "C/4.png")
    steps = samples(f"folder:{folder}", 2, 3, seed=5)
    assert steps == samples(f"folder:{folder}", 2, 3, seed=5)
    flat = [sample for step in steps for sample in step]
    assert {sample.name: sample.label for sample in flat[:4]} == {
        "C/4.png": 0,
        "a/2.png": 1,
        "a/deep/3.png": 1,
        "b/1.png": 2,
    }


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (["loose.png"], BadInput, "has no folders in it"),
        (["a/1.png", "b/none.txt"], BadInput, "b has no images in it"),
        (
            [f"{letter}/1.png" for letter in "abcd"],
            BadRecipe,
            ": 4 classes, and the model has only 3: give it",
        ),
    ],
)
def test_folders_that_cannot_be_used(tmp_path, names, error, message):
    with pytest.raises(error, match=message):
        samples(f"folder:{tiny(tmp_path, *names)}", 1, 1, seed=0, num_classes=3)


def test_sources_that_do_not_exist(tmp_path):
    with pytest.raises(BadInput, match="there is no folder"):
        samples(f"folder:{tmp_path / 'nowhere'}", 1, 1, seed=0)
    for source in ("films", ""):
        with pytest.raises(BadRecipe, match="known: photographs, digits, digits:train"):
            samples(source, 1, 1, seed=0)
    with pytest.raises(BadRecipe, match="the digits: 10 classes, and the model has only 5: give it num_classes: 10"):
        samples("digits", 1, 1, seed=0, num_classes=5)
