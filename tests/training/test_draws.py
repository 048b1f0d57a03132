"""Draws depend on their key alone, and are distributed as torchvision's own."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from draw_cases import DISTRIBUTIONS, IMAGE, SPACES, TIMES, box, numbers_of
from msmigrate.errors import BadRecipe, Unsupported
from msmigrate.training.data import pil_transforms, random_draws
from msmigrate.training.data.pil_transforms import RandAugment, RandomErasing
from msmigrate.training.data.random_draws import apply_random
from msmigrate.training.recipe import part_arguments
from msmigrate.training.recipe.part_arguments import DRAWABLE
from msmigrate.training.recipe.schema import Part
from PIL import Image
from scipy import stats

ONCE_IN_A_MILLION = 1e-6
GOLDEN = {
    "image": [0.22779905966022362, 0.7498353906704943, 0.732660506865254],
    "batch": [0.9053468591773316, 0.9663930704827703, 0.2520677269352207],
    "crop": {"top": 1, "left": 35, "height": 37, "width": 43},
}
NAMES = list(random_draws.augmentation_space(31, IMAGE))


def row(part: Part, key: random_draws.Key) -> list[float]:
    """What is drawn for one image, as torchvision's worker writes its own down."""
    found = random_draws.draw(part, random_draws.generator(key), IMAGE)
    if part.name == "RandomResizedCrop":
        return box(*(found[name] for name in ("top", "left", "height", "width")))
    if part.name == "RandomCrop":
        return [found["top"], found["left"]]
    if part.name == "ColorJitter":
        return [*found["order"], *(-9.0 if factor is None else factor for factor in found["factors"])]
    if part.name == "RandAugment":
        return [value for op, amount in found["ops"] for value in (NAMES.index(op), amount)]
    plain = np.full((3, IMAGE[1], IMAGE[0]), 9.0, np.float32)
    return numbers_of(pil_transforms.apply(part, found, plain))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_draws_are_distributed_as_torchvision_s(torchvision_side, name):
    transform, args = DISTRIBUTIONS[name]
    part = Part(name=transform, args=args)
    ours = np.array([row(part, (17, epoch, index)) for epoch in (0, 1) for index in range(TIMES // 2)], dtype=float)
    theirs = torchvision_side[f"drawn/{name}"]
    assert ours.shape == theirs.shape
    for column in range(ours.shape[1]):
        assert stats.ks_2samp(ours[:, column], theirs[:, column]).pvalue > ONCE_IN_A_MILLION, column
    # and pairs of columns together, by their rank correlations: height goes with width, a magnitude with its operation
    for first in range(ours.shape[1]):
        for second in range(first):
            both = [
                stats.spearmanr(rows[:, first], rows[:, second]).statistic
                for rows in (ours, theirs)
                if np.ptp(rows[:, first]) and np.ptp(rows[:, second])
            ]
            assert not both or abs(both[0] - both[1]) < 5 * np.sqrt(2 / TIMES), (first, second)


def test_the_comparison_of_distributions_can_fail(torchvision_side):
    other = Part(name="RandomResizedCrop", args={"size": 32, "scale": [0.08, 0.6]})
    ours = np.array([row(other, (17, 0, index)) for index in range(TIMES)], dtype=float)
    theirs = torchvision_side["drawn/crop"]
    assert min(stats.ks_2samp(ours[:, c], theirs[:, c]).pvalue for c in range(6)) < ONCE_IN_A_MILLION


@pytest.mark.parametrize(("bins", "size"), SPACES)
def test_magnitudes_are_torchvision_s(torchvision_side, bins, size):
    space = random_draws.augmentation_space(bins, size)
    assert list(space) == torchvision_side[f"space/{bins}/{size}/names"].tolist()
    for name, (magnitudes, signed) in space.items():
        theirs = torchvision_side[f"space/{bins}/{size}/{name}"]
        ours = np.array([0.0]) if magnitudes is None else magnitudes.astype(np.float64)
        assert ours.shape == theirs[:-1].shape
        assert np.allclose(ours, theirs[:-1], rtol=1.2e-7, atol=0), name  # a unit in the last place, for other CPUs
        assert signed == bool(theirs[-1])


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("name", ["RandomHorizontalFlip", "RandomVerticalFlip"])
def test_flips_have_their_probability(name, share):
    part = Part(name=name, args={"p": share})
    flips = sum(random_draws.draw(part, random_draws.generator((3, 0, index)), IMAGE)["flip"] for index in range(3000))
    assert stats.binomtest(flips, 3000, share).pvalue > ONCE_IN_A_MILLION


def test_a_key_alone_decides():
    def numbers(key: random_draws.Key) -> list[float]:
        return random_draws.generator(key).random(8).tolist()

    again = "from msmigrate.training.data import random_draws as draws\n"
    again += f"print(draws.generator((42, 3, {2**40})).random(8).tolist())"
    printed = subprocess.run([sys.executable, "-c", again], capture_output=True, text=True).stdout
    assert printed.strip() == str(numbers((42, 3, 2**40)))
    keys = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 2), (2**31 - 1, 10**6, 2**40)]
    everything = [number for key in keys for number in numbers(key)]
    assert len(set(everything)) == len(everything)


def test_batches_and_images_draw_from_apart():
    streams = [random_draws.generator((7, 1, i)) for i in range(3)]
    streams += [random_draws.batch_generator(7, 1, step, rank) for step in range(3) for rank in range(2)]
    everything = [number for stream in streams for number in stream.random(64).tolist()]
    assert len(set(everything)) == len(everything)


def test_neighbouring_keys_are_not_alike():
    """Image indices follow one another, and so do epochs: what is drawn must not."""
    first = np.array([random_draws.generator((0, 0, index)).random() for index in range(4000)])
    assert stats.kstest(first, "uniform").pvalue > ONCE_IN_A_MILLION
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 5 / np.sqrt(4000)
    next_epoch = np.array([random_draws.generator((0, 1, index)).random() for index in range(4000)])
    assert abs(np.corrcoef(first, next_epoch)[0, 1]) < 5 / np.sqrt(4000)


def test_the_draws_of_today_are_those_of_tomorrow():
    """A run may be resumed with a later version: what is drawn from a key is a promise."""
    assert random_draws.generator((42, 3, 7)).random(3).tolist() == GOLDEN["image"]
    assert random_draws.batch_generator(42, 3, 7, 1).random(3).tolist() == GOLDEN["batch"]
    crop = random_draws.draw(
        Part(name="RandomResizedCrop", args={"size": 8}), random_draws.generator((42, 3, 7)), IMAGE
    )
    assert crop == GOLDEN["crop"]


def test_what_cannot_be_drawn_says_what_can():
    with pytest.raises(Unsupported, match=r"AutoAugment cannot be drawn .* RandAugment, RandomCrop"):
        random_draws.draw(Part(name="AutoAugment"), random_draws.generator((0, 0, 0)), IMAGE)
    for name in ("AugMix", "AutoAugment", "RandomRotation", "TrivialAugmentWide", "torchvision.transforms.RandomCrop"):
        assert part_arguments.is_random(Part(name=name))
    assert not part_arguments.is_random(Part(name="CenterCrop"))


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("RandomResizedCrop", {"size": 0}, "size must be a whole number above 0"),
        ("RandomResizedCrop", {"size": [8, 8, 8]}, "size must be"),
        ("RandomResizedCrop", {"size": 8, "scale": [0.5, 0.2]}, "scale must be a list of two shares in rising order"),
        ("RandomResizedCrop", {"size": 8, "ratio": [0.0, 1.0]}, "ratio must be a list of two ratios above 0"),
        ("RandomHorizontalFlip", {"p": 1.5}, "p must be a probability from 0 to 1, not 1.5"),
        ("RandomHorizontalFlip", {"p": True}, "p must be a probability"),
        ("RandomCrop", {"size": 8, "padding": [1, 2, 3]}, "padding must be null, or 1, 2 or 4 whole numbers"),
        ("RandomCrop", {"size": 8, "padding": -1}, "padding must be"),
        ("RandomCrop", {"size": 8, "fill": "red"}, "fill must be a number"),
        ("RandomErasing", {"value": "noise"}, "value must be a number, one for each channel, or 'random'"),
        ("RandomErasing", {"scale": [0.1, 1.1]}, "scale must be a list of two shares from 0 to 1"),
        ("RandAugment", {"magnitude": 31}, "magnitude 31 must be below num_magnitude_bins 31"),
        ("RandAugment", {"num_ops": 1.5}, "num_ops must be a whole number"),
        ("RandAugment", {"num_magnitude_bins": 1}, "num_magnitude_bins must be a whole number from 2 up"),
        ("ColorJitter", {"brightness": -1}, "brightness as a single number must not be negative"),
        ("ColorJitter", {"hue": 0.6}, "hue must lie between -0.5 and 0.5"),
        ("ColorJitter", {"contrast": [2.0, 1.0]}, "contrast must lie between 0.0 and inf"),
    ],
)
def test_arguments_that_nothing_can_be_drawn_from(name, args, message):
    with pytest.raises(BadRecipe, match=message) as refused:
        part_arguments.check(Part(name=name, args=args))
    assert "\n" not in str(refused.value)


def test_every_transform_that_is_drawn_passes_with_its_defaults():
    assert set(DRAWABLE) == set(random_draws._DRAWS) == set(pil_transforms._APPLY)
    for name in DRAWABLE:
        part_arguments.check(Part(name=name, args={"size": 8} if name in ("RandomCrop", "RandomResizedCrop") else {}))


def test_values_that_do_not_fit_the_channels():
    generator = random_draws.generator((0, 0, 0))
    grey, arrays = Image.new("L", (20, 20)), np.zeros((1, 20, 20), np.float32)
    with pytest.raises(BadRecipe, match="value has 3 numbers and the image 1 channels"):
        apply_random(
            Part(name="RandomErasing", args={"p": 1.0, "value": [1, 2, 3]}), pil_transforms.apply, arrays, generator
        )
    with pytest.raises(BadRecipe, match="fill has 3 numbers and the image 1 channels"):
        part = Part(name="RandomCrop", args={"size": 20, "padding": 2, "fill": [1, 2, 3]})
        apply_random(part, pil_transforms.apply, grey, generator)


def test_the_classes_for_pipelines_by_hand_draw_anew_every_time():
    images = np.ones((3, 40, 40), np.float32)
    assert len({RandomErasing(p=1.0)(images).tobytes() for _ in range(20)}) > 15
    photograph = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8))
    assert len({RandAugment()(photograph).tobytes() for _ in range(20)}) > 10
    with pytest.raises(BadRecipe, match="RandAugment's magnitude must be a whole number"):
        RandAugment(magnitude=-1)
