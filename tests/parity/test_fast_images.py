"""Images that C++ resized are held to bounds: those that its resizing explains pass, one pixel aside fails."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from msmigrate.errors import BadTrace
from msmigrate.parity import compare_traces, run_folder
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.training.data.sample import decode
from msmigrate.training.data.sources import crops
from PIL import Image

LEVEL = 1 / 255


def images(box: tuple[int, int, int, int], filtering: Image.Resampling) -> np.ndarray:
    """A cut of each of eight crops of the photographs, at a quarter of its size."""
    found = [decode(sample).crop(box).resize((64, 64), filtering) for sample in crops(8, seed=3)]
    return np.stack([np.asarray(image, dtype=np.float32) / 255 for image in found])


BOX = (0, 0, 250, 250)
EXACT = images(BOX, Image.Resampling.BILINEAR)


def test_another_average_of_the_same_pixels_passes():
    verdict, why, error = compare_traces.image_verdict(EXACT, images(BOX, Image.Resampling.BOX), LEVEL)
    assert (verdict, why) == (Verdict.PASS, "")
    assert 0.001 < error < 0.2


@pytest.mark.parametrize(
    "other",
    [
        images((4, 0, 254, 250), Image.Resampling.BOX),  # a pixel of the small image aside
        images(BOX, Image.Resampling.NEAREST),  # no antialiasing
        EXACT[:, :, ::-1],  # flipped
        EXACT[..., ::-1],  # BGR
        np.float32(0.97) * EXACT + np.float32(0.03),  # brighter
    ],
    ids=["aside", "nearest", "flipped", "bgr", "brighter"],
)
def test_what_resizing_does_not_explain_fails(other):
    verdict, why, _ = compare_traces.image_verdict(EXACT, np.ascontiguousarray(other), LEVEL)
    assert verdict is Verdict.FAIL
    assert "grey levels from torchvision's" in why
    assert "C++ resizing explains 64 (5, 0.5)" in why


def test_only_images_of_a_trace_that_says_so_are_held_to_the_bounds():
    entry = SimpleNamespace(stage="data", name="images")
    said = SimpleNamespace(about={run_folder.KEY: 0.02}, folder=Path("trace"))
    assert compare_traces.declared(said, entry) == 0.02
    assert compare_traces.declared(said, SimpleNamespace(stage="data", name="labels")) is None
    assert compare_traces.declared(said, SimpleNamespace(stage="forward", name="images")) is None
    assert compare_traces.declared(SimpleNamespace(about={}, folder=Path("trace")), entry) is None
    for nonsense in (0.0, -1.0, float("inf"), float("nan"), "0.02", True):
        with pytest.raises(BadTrace, match="no size of a grey level"):
            compare_traces.declared(SimpleNamespace(about={run_folder.KEY: nonsense}, folder=Path("trace")), entry)
