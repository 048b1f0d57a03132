"""The loader's batches, against torch's samplers and against the code that parity proves; frameworks run in workers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from msmigrate.training.data.random_draws import batch_generator, draw_mix, epoch_order, mix_images, soft_targets

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from loader_cases import CLASSES, COUNT, DAMAGED, EPOCH, MIXUP, SEED, SHARDS, make_tree  # noqa: E402

sys.path.remove(str(HERE))
ROUNDING = 1e-6  # as in test_data: PyTorch divides by 255 in float32, MindSpore in float64


class Found(NamedTuple):
    """What both workers found out; `ours` and `theirs` are arrays by name."""

    facts: dict[str, Any]
    shards: dict[str, list[list[int]]]
    ours: dict[str, np.ndarray]
    theirs: dict[str, np.ndarray]

    def steps(self, name: str, what: str) -> list[np.ndarray]:
        """One array of every batch of an epoch that was kept."""
        return [self.ours[f"{name}/{step}/{what}"] for step in range(len(self.facts[name]))]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    folder = tmp_path_factory.mktemp("loader")
    make_tree(folder / "images")
    sides = []
    for framework in ("torch", "mindspore"):
        done = subprocess.run(
            [sys.executable, str(HERE / f"loader_{framework}_worker.py"), str(folder)],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        with np.load(folder / f"{framework}.npz") as stored:
            sides.append((json.loads((folder / f"{framework}.json").read_text(encoding="utf-8")), dict(stored)))
    (torch, theirs), (facts, ours) = sides
    return Found(facts, torch["shards"], ours, theirs)


@pytest.mark.parametrize("case", range(len(SHARDS)), ids=lambda case: "-".join(map(str, SHARDS[case])))
def test_batches_hold_what_torch_s_distributed_sampler_gives_each_process(found, case):
    training, _, _, world, batch = SHARDS[case]
    counted = []
    for rank in range(world):
        theirs, ours = found.shards[f"{case}/{rank}"], found.facts["shards"][f"{case}/{rank}"]
        assert ours["indices"] == theirs
        assert ours["steps"] == len(theirs)
        assert ours["images"] == sum(map(len, theirs))
        assert [len(indices) for indices in theirs[:-1]] == [batch] * (len(theirs) - 1)
        counted += [
            index for indices, count in zip(ours["indices"], ours["counts"], strict=True) for index in indices[:count]
        ]
        if training:
            assert ours["counts"] == [len(indices) for indices in theirs]
    if not training:
        assert sorted(counted) == list(range(COUNT))  # each image counts once, whatever fills up the last batches


def test_images_are_those_that_parity_compares(found):
    assert np.array_equal(found.ours["whole/1/images"], found.ours["parity/images"])
    assert np.array_equal(found.ours["whole/1/labels"], found.ours["parity/labels"])
    assert np.abs(found.ours["whole/1/images"] - found.theirs["images"]).max() < ROUNDING
    assert found.ours["whole/1/labels"].tolist() == found.theirs["labels"].tolist()
    assert found.ours["whole/1/labels"].dtype == np.int32
    assert found.ours["whole/1/images"].dtype == np.float32
    assert found.ours["whole/1/images"].shape == (4, 3, 24, 24)


def by_index(found: Found, name: str) -> dict[int, np.ndarray]:
    """The image of every index in an epoch."""
    indices, images = (np.concatenate(found.steps(name, what)) for what in ("indices", "images"))
    return dict(zip(indices.tolist(), images, strict=True))


def test_an_epoch_and_a_seed_decide_order_and_augmentation(found):
    whole = by_index(found, "whole")
    for name in ("next", "other seed"):
        other = by_index(found, name)
        assert [*other] != [*whole]
        common = whole.keys() & other.keys()
        assert common
        assert not any(np.array_equal(whole[index], other[index]) for index in common)


@pytest.mark.parametrize(
    ("whole", "middle", "start"),
    [("whole", "middle", 3), ("mixed", "mixed middle", 2), ("skipped", "skipped middle", 3)],
)
def test_an_epoch_begun_in_its_middle_gives_the_same_batches_to_the_bit(found, whole, middle, start):
    assert len(found.facts[whole]) == 5
    assert len(found.facts[middle]) == 5 - start
    for what in ("images", "labels", "indices", "classes"):
        expected = found.steps(whole, what)[start:]
        for theirs, ours in zip(expected, found.steps(middle, what), strict=True):
            assert np.array_equal(theirs, ours)


def test_more_workers_than_cores_are_as_many_as_cores_and_told(found):
    assert len(found.facts["workers"]) == 1
    assert found.facts["workers"][0].startswith("data.workers is 999 and this machine has ")
    assert np.array_equal(found.ours["many/0/images"], found.ours["whole/4/images"])


def test_an_epoch_begun_at_its_end_is_empty(found):
    assert found.facts["end"] == []


def test_mixing_is_drawn_for_epoch_step_and_process(found):
    used = set()
    for step, (plain, classes) in enumerate(
        zip(found.steps("whole", "images"), found.steps("whole", "classes"), strict=True)
    ):
        mix = draw_mix(MIXUP, batch_generator(SEED, EPOCH, step), plain.shape)
        assert np.array_equal(found.ours[f"mixed/{step}/images"], mix_images(plain, mix))
        labels = found.ours[f"mixed/{step}/labels"]
        assert labels.dtype == np.float32
        assert np.array_equal(labels, soft_targets(classes, mix, CLASSES, MIXUP.label_smoothing))
        used.add((mix.use, mix.box is None))
    assert len(used) == 2  # mixup and CutMix both came up
    classes, labels = found.ours["mixed rank/0/classes"], found.ours["mixed rank/0/labels"]
    mix = draw_mix(MIXUP, batch_generator(SEED, EPOCH, 0, rank=1), found.ours["mixed rank/0/images"].shape)
    assert np.array_equal(labels, soft_targets(classes, mix, CLASSES, MIXUP.label_smoothing))


def test_evaluation_is_not_mixed(found):
    assert all(labels.dtype == np.int32 for labels in found.steps("mixed evaluation", "labels"))


@pytest.mark.parametrize("name", ["one hot", "one hot evaluation"])
def test_a_loss_of_values_gets_rows_of_zeros_and_a_one(found, name):
    for labels, classes in zip(found.steps(name, "labels"), found.steps(name, "classes"), strict=True):
        assert labels.dtype == np.float32
        assert np.array_equal(labels, np.eye(3, dtype=np.float32)[classes])


def test_fast_images_are_nearly_the_same_and_of_the_same_draws(found):
    assert found.facts["level"] == pytest.approx(1 / 255 / 0.224)
    distances = []
    for exact, fast in zip(found.steps("whole", "images"), found.steps("fast", "images"), strict=True):
        distances.append(np.abs(exact - fast) / found.facts["level"])
    assert 0 < np.mean(distances) < 3
    assert np.max(distances) < 40
    assert np.concatenate(found.steps("fast", "indices")).tolist() == [*by_index(found, "whole")]


def test_leaving_early_leaves_nothing_running(found):
    before, after = found.facts["threads"]
    assert after <= before + 1  # MindSpore keeps a thread of its own after its first pipeline
    assert found.facts["closed"] < 5


def test_waiting_is_counted_and_settings_of_others_stay(found):
    assert 0 < found.facts["waited"] < 60
    before, after = found.facts["ready"]
    assert before == after


@pytest.mark.parametrize(
    ("case", "kind", "message"),
    [
        ("several sizes", "BadRecipe", "the transforms leave images of several sizes, 3 x "),
        ("no array", "BadRecipe", "the transforms give uint8 (20, 20, 3) and models take float32 (C, H, W)"),
        ("normalize before tensor", "BadRecipe", "the recipe's transforms failed on class"),
        ("random evaluation", "Unsupported", "RandomResizedCrop draws random numbers, and these images have to be"),
        ("batch", "BadRecipe", "images has only 23 images: set data.batch to at most 23, or add images"),
        ("batch of a shard", "BadRecipe", "has only 11 images for each of 2 processes: set data.batch to at most 11"),
        ("nearest", "Unsupported", "data.fast_transforms: Resize with interpolation 'nearest' would take other pixels"),
        ("rest", "BadRecipe", "the last batch of an epoch has 5 images, which do not divide into accumulate 3"),
        ("damaged", "BadInput", ""),
        ("all damaged", "BadInput", "none of the 23 images of"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(found, case, kind, message):
    raised, text = found.facts["refused"][case]
    assert raised == kind
    assert message in text
    assert "\n" not in text
    if case == "damaged":
        assert any(name in text for name in found.facts["damaged"])


def test_skipped_images_are_replaced_by_the_next_sound_one_of_the_order(found):
    order = epoch_order(COUNT, seed=SEED, epoch=EPOCH, shuffle=True, drop_last=True).tolist()
    expected = [
        next(index for index in order[place:] + order[:place] if index not in DAMAGED) for place in range(5 * 4)
    ]
    given = np.concatenate(found.steps("skipped", "indices")).tolist()
    assert given == expected != order[:20]


def test_skipped_images_are_not_counted_in_evaluation(found):
    indices, counts = found.steps("skipped evaluation", "indices"), found.facts["skipped evaluation"]
    assert [len(some) for some in indices] == [9, 9, 5]
    counted = [index for some, count in zip(indices, counts, strict=True) for index in some[:count].tolist()]
    assert counted == [index for index in range(COUNT) if index not in DAMAGED]


def test_every_skipped_image_is_told_once(found):
    for told in found.facts["told"].values():
        assert len(told) == len(DAMAGED)
        for name in found.facts["damaged"]:
            assert sum(text.startswith("skipped an image: ") and name in text for text in told) == 1
