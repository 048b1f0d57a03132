"""Every source of images: lazy, the same each time, and refused in words that help."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from msmigrate.errors import BadInput, BadRecipe, MsmigrateError
from msmigrate.training.data.sample import decode
from msmigrate.training.data.sources import COUNT, crops, open_source, samples
from msmigrate.training.recipe import check
from recipe_files import refusal

SOURCES = [*check.SOURCES, "synthetic:7", "synthetic:30x24"]


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_is_what_it_says(name):
    source = open_source(name, 10, training=True)
    assert source.labels.dtype == np.int32
    assert source.labels.shape == (len(source),)
    assert len(source.classes) == 10
    assert 0 <= source.labels.min() <= source.labels.max() < 10
    for index in (0, len(source) // 2, len(source) - 1):
        sample = source[index]
        assert sample.label == source.labels[index]
        assert sample.mode == source.mode == decode(sample).mode
        assert source[index] == sample == open_source(name, 10, training=True)[index]
    with pytest.raises(IndexError):
        source[len(source)]


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_is_read_from_threads_and_by_other_processes(name):
    source = open_source(name, 10, training=True)
    indices = [index % len(source) for index in range(40)]
    one_by_one = [source[index] for index in indices]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(open_source(name, 10, training=True).__getitem__, indices)) == one_by_one
    assert pickle.loads(pickle.dumps(source))[3] == source[3]


@pytest.mark.parametrize("name", SOURCES)
def test_parity_gets_its_samples_from_every_source(name):
    steps = samples(name, 3, 2, seed=4, num_classes=10)
    assert [len(step) for step in steps] == [3, 3]
    assert steps == samples(name, 3, 2, seed=4, num_classes=10)
    assert len({sample.name for step in steps for sample in step}) == 6
    if name != "photographs":
        source = open_source(name, 10, training=True)
        theirs = {sample.name: sample for sample in map(source.__getitem__, range(len(source)))}
        assert all(theirs[sample.name] == sample for step in steps for sample in step)


def test_photographs_are_the_first_crops_of_their_seed():
    source = open_source("photographs", 1000, training=True)
    assert len(source) == COUNT
    assert [source[index] for index in (2, 0, 1)] == [crops(3, seed=0)[index] for index in (2, 0, 1)]


def test_digits_come_in_two_parts_that_do_not_meet():
    everything, train, test = (open_source(name, 10, training=True) for name in check.SOURCES[1:4])
    assert (len(everything), len(train), len(test)) == (1797, 1437, 360)
    assert [train[0].name, train[1436].name, test[0].name, test[359].name] == [
        "digit 0",
        "digit 1436",
        "digit 1437",
        "digit 1796",
    ]
    assert test[5] == everything[1437 + 5]
    assert np.array_equal(np.concatenate([train.labels, test.labels]), everything.labels)


def test_synthetic_images_have_the_size_asked_for_and_can_be_learnt():
    train, test = (open_source("synthetic:200x20", 10, training=training) for training in (True, False))
    assert len(open_source("synthetic", 10, training=True)) == 1024
    pixels = [np.stack([np.asarray(decode(source[i]), float).ravel() for i in range(200)]) for source in (train, test)]
    assert pixels[0].shape == (200, 20 * 20 * 3)
    assert not (pixels[0] == pixels[1]).all(axis=1).any()  # other images, of the same classes
    centres = np.stack([pixels[0][train.labels == label].mean(0) for label in range(10)])
    nearest = ((pixels[1][:, None] - centres) ** 2).sum(-1).argmin(1)
    assert (nearest == test.labels).mean() > 0.95
    assert 20 < (pixels[0] - centres[train.labels]).std() < 60  # and they are not all alike


def test_a_folder_is_torchvision_s_image_folder(torch_sources):
    folder, torch = torch_sources
    source = open_source(f"folder:{folder}", 2, training=True)
    assert list(source.classes) == torch.facts["classes"] == ["Big", "b"]
    ours = [[source[index].name, source[index].label] for index in range(len(source))]
    assert ours == torch.facts["files"]
    assert ours != sorted(ours)  # the order is not that of the paths, which would be easy


def test_a_folder_is_read_when_an_image_is_asked_for(tmp_path):
    (tmp_path / "cats").mkdir()
    (tmp_path / "cats" / "1.png").write_bytes(b"not looked at yet")
    (tmp_path / "cats" / "2.png").symlink_to(tmp_path / "nowhere.png")
    source = open_source(f"folder:{tmp_path}", 10, training=True)
    assert source[0].data == b"not looked at yet"
    with pytest.raises(BadInput, match=r"cats/1\.png is not an image: its 17 bytes have no known format"):
        decode(source[0])
    with pytest.raises(BadInput, match=r"cats/2\.png cannot be read: No such file or directory"):
        source[1]


def test_an_empty_class_is_refused_in_training_and_keeps_its_number_in_validation(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    with pytest.raises(BadInput, match=r"a has no images in it .*, nor have 2 other classes: remove it, or add"):
        open_source(f"folder:{tmp_path}", 10, training=False)
    (tmp_path / "c" / "1.png").write_bytes(b"")
    source = open_source(f"folder:{tmp_path}", 10, training=False)
    assert (source.classes, source.labels.tolist(), source[0].name) == (("a", "b", "c"), [2], "c/1.png")
    with pytest.raises(BadInput, match=r"a has no images in it .*, nor has 1 other class: remove"):
        open_source(f"folder:{tmp_path}", 10, training=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Digits", "there is no source 'Digits'; did you mean 'digits'?"),
        ("digits:tset", "did you mean 'digits:test'?"),
        ("cifar:/Data", "did you mean 'cifar10:/Data'?"),
        ("imagefolder:/X", "did you mean 'folder:/X'?"),
        ("data/flowers", "did you mean 'folder:data/flowers'?"),
        ("folder:", "'folder:' has no path: folder:PATH, with the path of a folder"),
        ("cifar10:", "'cifar10:' has no path: cifar10:PATH"),
        ("folder:a\0b", "has no path"),
        ("films", "known: photographs, digits, digits:train, digits:test, synthetic[:COUNT[xSIDE]], folder:PATH"),
        ("synthetic:", "COUNT is a whole number from 1 to 10000000, not ''"),
        ("synthetic:0", "COUNT is a whole number from 1 to 10000000, not '0'"),
        ("synthetic:²", "not '²'"),
        ("synthetic:9x", "such as synthetic:1024x64: SIDE is a whole number from 1 to 4096, not ''"),
        ("synthetic:9x9x9", "SIDE is a whole number from 1 to 4096, not '9x9'"),
        ("synthetic:99999999999999999999", "COUNT is a whole number"),
    ],
)  # fmt: skip
def test_a_name_that_is_none_gets_the_closest(name, message, tmp_path):
    with pytest.raises(BadRecipe) as refused:
        open_source(name, 10, training=True)
    assert message in str(refused.value)
    with pytest.raises(BadRecipe):
        samples(name, 1, 1, seed=0)
    for key in ("source", "validation"):
        page = f"model: {{name: lenet5}}\noptimizer: {{name: SGD}}\ndata:\n  batch: 4\n  {key}: {json.dumps(name)}\n"
        said = refusal(tmp_path, page)
        assert said.startswith(f":5: data.{key}: "), said
        assert ("a text must not hold '\\x00'" if "\0" in name else message) in said


@pytest.mark.parametrize("name", ["digits", "digits:test"])
def test_a_model_with_too_few_classes_is_told_how_many(name):
    with pytest.raises(BadRecipe, match="10 classes, and the model has only 9: give it num_classes: 10"):
        open_source(name, 9, training=False)


@pytest.mark.parametrize("kind", ["folder", "cifar10", "cifar100"])
def test_a_place_that_the_system_refuses(kind):
    with pytest.raises(BadInput, match="File name too long"):
        open_source(f"{kind}:{'x' * 300}", 100, training=True)


def test_where_scikit_learn_is_missing(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    for name in ("digits", "photographs"):
        with pytest.raises(MsmigrateError, match="is needed and missing: pip install scikit-learn"):
            open_source(name, 10, training=True)


def test_nothing_heavy_is_imported_for_a_source():
    program = (
        "import sys; from msmigrate.training.data.sources import open_source;"
        "[open_source(name, 10, training=True)[0] for name in ('digits', 'photographs', 'synthetic')];"
        "print([name for name in ('torch', 'mindspore', 'sklearn', 'torchvision') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
