"""Statistics of a folder of images are exact, and those that training would see."""

from __future__ import annotations

import math
import os
import struct
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msmigrate.errors import BadInput
from msmigrate.training.data import image_folder
from msmigrate.training.data.image_folder import corrupt_images, measure
from PIL import Image


def write(folder: Path, images: dict[str, np.ndarray | Image.Image]) -> Path:
    """PNG files of the pixels under the names."""
    for name, pixels in images.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)).save(folder / name)
    return folder


def noise(seed: int, width: int = 9, height: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("side", [0, 48])
def test_they_are_those_of_torchvision_s_pixels(torch_sources, side):
    folder, torch = torch_sources
    theirs = torch.facts[f"statistics {side}"]
    loose = folder / "loose.png"  # which torchvision's ImageFolder passes over, and statistics of a folder do not
    content = loose.read_bytes()
    loose.unlink()
    try:
        ours = measure(folder, resize=side or None)
    finally:
        loose.write_bytes(content)
    assert ours.images == 8
    assert ours.pixels == theirs["pixels"]
    assert np.allclose(ours.mean, theirs["mean"], rtol=0, atol=1e-12)
    assert np.allclose(ours.std, theirs["std"], rtol=0, atol=1e-12)
    assert ours.folders == {"Big": 3, "b": 5}
    assert (ours.width, ours.height) == ((40, 70), (50, 68))
    assert ours.corrupt == []


def test_they_are_exact_where_floats_are_not(tmp_path):
    """A pixel in half a million that differs by one: the variance is all in digits that float32 sums lose."""
    pixels = np.full((700, 700, 3), 200, np.uint8)
    pixels[5, 5] = (201, 199, 200)
    found = measure(write(tmp_path, {"a/1.png": pixels, "a/2.png": pixels}))
    number = 2 * 700 * 700
    share = Fraction(2, number)
    variance = share - share**2
    assert found.std == (math.sqrt(variance / 255**2), math.sqrt(variance / 255**2), 0)
    assert found.mean == (float((200 + share) / 255), float((200 - share) / 255), 200 / 255)


@given(
    st.lists(st.tuples(st.integers(0, 255), st.integers(1, 10**12)), min_size=1, max_size=8, unique_by=lambda p: p[0])
)
def test_moments_agree_with_fractions(counted):
    counts = [0] * 256
    for value, count in counted:
        counts[value] = count
    number = sum(counts)
    mean = Fraction(sum(value * count for value, count in counted), number)
    variance = sum(count * (value - mean) ** 2 for value, count in counted) / number
    found = image_folder._moments(counts)
    assert found[0] == float(mean / 255)
    assert found[1] == pytest.approx(math.sqrt(variance) / 255, rel=1e-14, abs=1e-300)


@pytest.mark.filterwarnings("ignore:Palette images with Transparency:UserWarning")  # PIL's, of the last one
def test_images_are_converted_as_training_does(tmp_path):
    grey = Image.fromarray(noise(0)[..., 0])
    found = measure(write(tmp_path / "grey", {"a/1.png": grey}))
    assert found.mean[0] == found.mean[1] == found.mean[2] == pytest.approx(noise(0)[..., 0].mean() / 255)
    clear = Image.new("RGBA", (4, 4), (255, 51, 0, 7))
    found = measure(write(tmp_path / "clear", {"a/1.png": clear, "a/2.png": clear.convert("P")}))
    assert found.mean == (1, 0.2, 0)
    assert found.std == (0, 0, 0)
    assert found.pixels == 32


def test_every_image_is_counted_where_it_lies(tmp_path, monkeypatch):
    monkeypatch.setattr(image_folder, "AT_ONCE", 3)  # more than one round
    (tmp_path / "empty").mkdir()
    names = ["loose.png", "a/1.png", "a/2.png", "a/deep/3.png", *(f"b/{i}.png" for i in range(5))]
    write(tmp_path, {name: noise(place, width=3 + place) for place, name in enumerate(names)})
    (tmp_path / "b" / "notes.txt").write_text("not an image")
    told = []
    found = measure(tmp_path, on_progress=lambda done, total: told.append((done, total)))
    assert found.folders == {"a": 3, "b": 5, "empty": 0, ".": 1}
    assert (found.images, found.width, found.height) == (9, (3, 11), (7, 7))
    assert told == [(done, 9) for done in range(1, 10)]
    everything = np.concatenate([noise(place, width=3 + place).reshape(-1, 3) for place in range(9)]) / 255
    assert np.allclose(found.mean, everything.mean(0), atol=1e-14)
    assert np.allclose(found.std, everything.std(0), atol=1e-14)
    each = [noise(place, width=3 + place).reshape(-1, 3).std(0) / 255 for place in range(9)]
    assert np.allclose(found.std_of_images, np.mean(each, 0), atol=1e-14)


def test_corrupt_images_are_fatal_left_out_or_listed(tmp_path):
    write(tmp_path, {"a/1.png": noise(1), "a/3.png": noise(3), "b/4.png": noise(4)})
    (tmp_path / "a" / "2.jpg").write_bytes(b"no")
    (tmp_path / "b" / "5.png").write_bytes((tmp_path / "a" / "1.png").read_bytes()[:60])
    (tmp_path / "b" / "6.png").symlink_to(tmp_path / "nowhere")
    with pytest.raises(
        BadInput, match=r"a/2\.jpg is not an image: .*; repair or remove it, or pass it over with --on-"
    ):
        measure(tmp_path)
    found = measure(tmp_path, on_corrupt="skip")
    sound = np.concatenate([noise(seed).reshape(-1, 3) for seed in (1, 3, 4)]) / 255
    assert np.allclose(found.mean, sound.mean(0), atol=1e-14)
    assert (found.images, found.folders) == (3, {"a": 2, "b": 1})
    assert [image.file for image in found.corrupt] == ["a/2.jpg", "b/5.png", "b/6.png"]
    assert [image.reason.split(":")[0] for image in found.corrupt] == [
        "is not an image",
        "cannot be decoded",
        "cannot be read",
    ]
    assert corrupt_images(tmp_path) == (6, found.corrupt)


def test_folders_without_images(tmp_path):
    with pytest.raises(BadInput, match="there is no folder"):
        measure(tmp_path / "none")
    with pytest.raises(BadInput, match="there are no images below"):
        measure(tmp_path)
    (tmp_path / "1.png").write_bytes(b"no")
    with pytest.raises(BadInput, match=r"1\.png cannot be read as a folder: Not a directory"):
        measure(tmp_path / "1.png")
    with pytest.raises(BadInput, match=r"none of the 1 images below .* can be decoded; the first: is not an image"):
        measure(tmp_path, on_corrupt="skip")


def test_a_folder_that_cannot_be_read_is_not_passed_over(tmp_path, monkeypatch):
    write(tmp_path, {"a/1.png": noise(1), "b/2.png": noise(1)})
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("b"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(BadInput, match="b cannot be read as a folder: Permission denied"):
        measure(tmp_path)


def grown(form: str, path: Path) -> None:
    """A small image whose header says that it has 12,000 × 12,000 pixels."""
    Image.new("RGB", (60, 60)).save(path, form)
    content = bytearray(path.read_bytes())
    side = 12_000
    if form == "PNG":
        content[16:24] = struct.pack(">II", side, side)
        content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    elif form == "BMP":
        content[18:26] = struct.pack("<ii", side, side)
    elif form == "GIF":
        content[6:10] = struct.pack("<HH", side, side)
        at = content.index(b",", 13)
        content[at + 5 : at + 9] = struct.pack("<HH", side, side)
    elif form == "PPM":
        content = content.replace(b"60 60", b"%d %d" % (side, side))
    elif form == "JPEG":
        at = content.index(b"\xff\xc0")
        content[at + 5 : at + 9] = struct.pack(">HH", side, side)
    path.write_bytes(content)


@pytest.mark.parametrize("form", ["PNG", "BMP", "GIF", "PPM", "JPEG"])
def test_an_image_of_more_pixels_than_are_decoded_is_corrupt(tmp_path, form):
    """A training step, an evaluation, a prediction and these statistics open images by one function."""
    grown(form, tmp_path / "large.png")
    [found] = corrupt_images(tmp_path)[1]
    assert "more than 64 megapixels, which are not decoded" in found.reason


def test_what_pillow_hands_to_another_program_is_no_image(tmp_path):
    Image.new("RGB", (6, 6)).save(tmp_path / "page.eps")
    (tmp_path / "page.eps").rename(tmp_path / "page.png")
    [found] = corrupt_images(tmp_path)[1]
    assert "is not an image" in found.reason
