"""Mixup and CutMix are timm's to the bit when they are given the same draws."""

from __future__ import annotations

import numpy as np
import pytest
from mixing_cases import MIXES, SEEDS, inputs, mixups
from msmigrate.training.data import random_draws
from msmigrate.training.data.random_draws import Mix, draw_mix, mix_images, soft_targets
from msmigrate.training.recipe.schema import Mixup

CASES = list(mixups())


@pytest.mark.parametrize("name", MIXES["kinds"])
def test_images_and_targets_are_timm_s_to_the_bit(torchvision_side, name):
    cut = mixed = plain = 0
    for case, mixup, seed in CASES:
        if case != name:
            continue
        images, labels = inputs(name)
        mix = draw_mix(mixup, random_draws.batch_generator(seed, 2, 7, 1), images.shape)
        ours = mix_images(images, mix), soft_targets(labels, mix, MIXES["classes"], mixup.label_smoothing)
        for side in ("mixed", "torch"):  # timm's, and torch's side of ours
            for what, array in zip(("images", "targets"), ours, strict=True):
                theirs = torchvision_side[f"{side}/{name}/{seed}/{what}"]
                assert array.dtype == theirs.dtype == np.float32
                assert np.array_equal(array, theirs), (side, what, seed, mix)
        assert np.array_equal(images, inputs(name)[0])  # left as they were
        assert np.allclose(ours[1].sum(1), 1, atol=1e-6)
        cut, mixed, plain = cut + (mix.box is not None), mixed + mix.use, plain + (not mix.use)
    expected = {
        "both": 0 < cut < mixed == SEEDS,
        "mixup": (cut, mixed) == (0, SEEDS),
        "cutmix": (cut, mixed) == (SEEDS, SEEDS),
        "sometimes": 0 < cut < mixed < SEEDS,
        "never": plain == SEEDS,
        "extreme": cut > 0,
    }
    assert expected[name], (cut, mixed, plain)


def test_soft_target_cross_entropy_is_torch_s_own(torchvision_side):
    """timm's SoftTargetCrossEntropy and torch's CrossEntropyLoss of probabilities, which recipes name, are one."""
    for name, _, seed in CASES:
        ours, theirs = torchvision_side[f"loss/{name}/{seed}"]
        assert abs(ours - theirs) <= 5 * np.finfo(np.float32).eps * abs(theirs)


def test_swapped_shares_are_not_timm_s(torchvision_side):
    """The comparison can fail."""
    images, labels = inputs("mixup")
    mix = draw_mix(Mixup(**MIXES["kinds"]["mixup"]), random_draws.batch_generator(0, 2, 7, 1), images.shape)
    swapped = Mix(True, 1.0 - mix.lam)
    assert not np.array_equal(mix_images(images, swapped), torchvision_side["mixed/mixup/0/images"])
    assert not np.array_equal(soft_targets(labels, swapped, 7, 0.0), torchvision_side["mixed/mixup/0/targets"])


def test_the_middle_of_an_odd_batch_stays_itself():
    images, labels = inputs("odd", 5)
    mixed = mix_images(images, Mix(True, 0.3))
    assert np.allclose(mixed[2], images[2], atol=1e-6)
    assert np.allclose(mixed[0], 0.3 * images[0] + 0.7 * images[4], atol=1e-6)
    targets = soft_targets(labels, Mix(True, 0.3), 7, 0.1)
    assert targets[2].argmax() == labels[2] and np.allclose(targets.sum(1), 1, atol=1e-6)


def test_the_share_of_cutmix_is_the_area_that_is_left():
    for seed in range(200):
        mix = draw_mix(Mixup(mixup_alpha=0.0), random_draws.batch_generator(seed, 0, 0), (4, 3, 13, 18))
        if mix.box is None:
            continue
        pasted = mix_images(np.zeros((2, 3, 13, 18), np.float32) + np.array([0, 1])[:, None, None, None], mix)[0]
        assert mix.lam == pytest.approx(1 - pasted.mean(), abs=1e-6)
