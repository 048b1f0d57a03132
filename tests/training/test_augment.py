"""What random transforms do on MindSpore's side is what torchvision does, to the bit, for the same draws."""

from __future__ import annotations

import augment_cases
import numpy as np
import pytest
from msmigrate.training.data import pil_transforms
from PIL import Image

CASES = list(augment_cases.cases())
NAMES = sorted({key.split()[0] for key, *_ in CASES})


@pytest.mark.parametrize("name", NAMES)
def test_every_transform_equals_torchvision_s_to_the_bit(torchvision_side, name):
    changed = compared = 0
    for key, part, found, image in CASES:
        if key.split()[0] != name:
            continue
        theirs = torchvision_side[f"applied/{key}"]
        result = pil_transforms.apply(part, found, image)
        assert isinstance(result, (type(image), Image.Image))
        ours = np.asarray(result)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), key
        assert np.array_equal(ours, theirs), key
        compared += 1
        before = np.asarray(image)
        changed += before.shape != ours.shape or not np.array_equal(before, ours)
    assert compared
    assert changed > compared // 4 or name == "Identity"  # else it would be no test


def test_the_image_itself_is_left_alone():
    for key, part, found, image in augment_cases.cases():
        before = np.asarray(image).copy()
        pil_transforms.apply(part, found, image)
        assert np.array_equal(before, np.asarray(image)), key


def test_another_interpolation_is_another_image(torchvision_side):
    """The comparison can fail: nearest and bilinear differ wherever an image was turned."""
    key, part, found, image = next(case for case in CASES if case[0].startswith("Rotate 16 16.000 bilinear"))
    nearest = part.model_copy(update={"args": {**part.args, "interpolation": "nearest"}})
    assert not np.array_equal(
        np.asarray(pil_transforms.apply(nearest, found, image)), torchvision_side[f"applied/{key}"]
    )
