"""CIFAR's binary files, written here from random pixels, and read as MindSpore's own reader does."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from msmigrate.errors import BadInput, BadRecipe
from msmigrate.training.data.sample import decode
from msmigrate.training.data.sources import open_source, samples

PIXELS = 3072
MINDSPORE_ROWS = 10_000  # what a file has in truth; MindSpore refuses any other number
FILES = {
    "cifar10": {"train": [f"data_batch_{part}.bin" for part in range(1, 6)], "test": ["test_batch.bin"]},
    "cifar100": {"train": ["train.bin"], "test": ["test.bin"]},
}
TEN = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def write_cifar(
    folder: Path, kind: str, rows: int = 7, usages: Iterable[str] = ("train", "test")
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Write the files; train or test -> images (N, 32, 32, 3) and labels (N,), put together by hand."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(5)
    wanted = {}
    for usage in usages:
        names = FILES[kind][usage]
        images, labels = [], []
        for place, name in enumerate(names):
            planes = generator.integers(0, 256, (rows + place, 3, 32, 32), dtype=np.uint8)
            fine = generator.integers(0, 10 if kind == "cifar10" else 100, rows + place, dtype=np.uint8)
            coarse = [] if kind == "cifar10" else [(fine // 5)[:, None]]
            table = np.concatenate([*coarse, fine[:, None], planes.reshape(-1, PIXELS)], axis=1)
            (folder / name).write_bytes(table.tobytes())
            images += [np.stack([plane[0], plane[1], plane[2]], axis=-1) for plane in planes]
            labels += fine.tolist()
        wanted[usage] = (np.stack(images), np.array(labels))
    return wanted


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("usage", ["train", "test"])
def test_images_and_labels_are_those_of_the_files(tmp_path, kind, usage):
    images, labels = write_cifar(tmp_path, kind)[usage]
    source = open_source(f"{kind}:{tmp_path}", 100, training=usage == "train")
    assert (
        len(source) == len(images) == {"train": 45, "test": 7}[usage] - 38 * (kind == "cifar100" and usage == "train")
    )
    assert (source.labels.dtype, source.labels.tolist()) == (np.int32, labels.tolist())
    for index in range(len(source)):
        assert np.array_equal(np.asarray(decode(source[index])), images[index])
        assert source[index].label == labels[index]
    assert source[-1] == source[len(source) - 1]
    with pytest.raises(IndexError):
        source[len(source)]
    assert pickle.loads(pickle.dumps(source))[3] == source[3]


def test_mindspore_reads_the_same(tmp_path):
    wanted = {kind: write_cifar(tmp_path / kind, kind, MINDSPORE_ROWS, usages=["test"]) for kind in FILES}
    worker = Path(__file__).with_name("cifar_mindspore_worker.py")
    done = subprocess.run([sys.executable, str(worker), str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    theirs = np.load(tmp_path / "mindspore.npz")
    for kind in FILES:
        images, labels = wanted[kind]["test"]
        assert np.array_equal(theirs[f"{kind}/images"], images)
        assert theirs[f"{kind}/labels"].ravel().tolist() == labels.tolist()
        assert np.array_equal(theirs[f"{kind}/decoded"], images[::20])
        assert np.array_equal(theirs[f"{kind}/decoded to PIL"], images[::20])


def test_names_say_where_an_image_is(tmp_path):
    write_cifar(tmp_path, "cifar10", rows=3)
    source = open_source(f"cifar10:{tmp_path}", 10, training=True)
    assert [source[index].name for index in (0, 2, 3, 24)] == [
        "data_batch_1.bin row 0",
        "data_batch_1.bin row 2",
        "data_batch_2.bin row 0",
        "data_batch_5.bin row 6",
    ]


def test_class_names_are_read_where_there_are_any(tmp_path):
    write_cifar(tmp_path, "cifar10")
    assert open_source(f"cifar10:{tmp_path}", 10, training=True).classes == tuple("0123456789")
    (tmp_path / "batches.meta.txt").write_text("\n".join(TEN) + "\n\n", encoding="utf-8")
    assert open_source(f"cifar10:{tmp_path}", 10, training=True).classes == tuple(TEN)
    (tmp_path / "batches.meta.txt").write_text("airplane\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"batches\.meta\.txt has 1 names, and CIFAR-10 has 10 classes"):
        open_source(f"cifar10:{tmp_path}", 10, training=True)
    (tmp_path / "batches.meta.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match=r"batches\.meta\.txt cannot be read: it is not text in UTF-8"):
        open_source(f"cifar10:{tmp_path}", 10, training=True)


def test_parity_trains_on_the_training_files(tmp_path):
    images, labels = write_cifar(tmp_path, "cifar10")["train"]
    flat = [sample for step in samples(f"cifar10:{tmp_path}", 9, 5, seed=1, num_classes=10) for sample in step]
    assert len({sample.name for sample in flat}) == 45
    assert sorted(sample.label for sample in flat) == sorted(labels.tolist())
    assert {decode(sample).tobytes() for sample in flat} == {image.tobytes() for image in images}


def test_other_files_are_refused(tmp_path):
    with pytest.raises(BadInput, match="there is no folder"):
        open_source(f"cifar10:{tmp_path / 'none'}", 10, training=True)
    with pytest.raises(BadInput, match=r"has no data_batch_1\.bin, which CIFAR-10's binary version has"):
        open_source(f"cifar10:{tmp_path}", 10, training=True)
    write_cifar(tmp_path / "cifar-10-batches-bin", "cifar10")
    with pytest.raises(BadInput, match=r"has no data_batch_1\.bin, but .*/cifar-10-batches-bin has: give that folder"):
        open_source(f"cifar10:{tmp_path}", 10, training=True)
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "data_batch_1").write_bytes(b"\x80\x02}")
    with pytest.raises(BadInput, match="Python version: pickles are never read, get the binary one"):
        open_source(f"cifar10:{tmp_path / 'python'}", 10, training=True)
    folder = tmp_path / "cifar-10-batches-bin"
    (folder / "data_batch_4.bin").unlink()
    with pytest.raises(BadInput, match=r"has no data_batch_4\.bin"):
        open_source(f"cifar10:{folder}", 10, training=True)
    assert len(open_source(f"cifar10:{folder}", 10, training=False)) == 7
    with pytest.raises(
        BadRecipe, match=r"CIFAR-10 in .*: 10 classes, and the model has only 9: give it num_classes: 10"
    ):
        open_source(f"cifar10:{folder}", 9, training=False)


def test_damaged_files_are_refused_by_row(tmp_path):
    write_cifar(tmp_path, "cifar10")
    file = tmp_path / "test_batch.bin"
    whole = file.read_bytes()
    for content in (whole[:-1], whole + b"\0", b""):
        file.write_bytes(content)
        message = f"test_batch.bin has {len(content)} bytes, which is not a whole number of rows of 3073 bytes"
        with pytest.raises(BadInput, match=message):
            open_source(f"cifar10:{tmp_path}", 10, training=False)
    file.write_bytes(whole[: 4 * 3073] + bytes([10]) + whole[4 * 3073 + 1 :])
    with pytest.raises(BadInput, match=r"test_batch\.bin: row 4 has the label 10, and CIFAR-10 has labels from 0 to 9"):
        open_source(f"cifar10:{tmp_path}", 10, training=False)
    file.write_bytes(whole)
    source = open_source(f"cifar10:{tmp_path}", 10, training=False)
    file.write_bytes(whole[: 3 * 3073])
    assert source[2].label == whole[2 * 3073]
    with pytest.raises(BadInput, match=r"test_batch\.bin has become shorter: row 6 is no longer complete"):
        source[6]
    file.unlink()
    with pytest.raises(BadInput, match=r"test_batch\.bin cannot be read: No such file or directory"):
        source[0]


def test_cifar_100_s_files_are_not_taken_for_cifar_10_s(tmp_path):
    write_cifar(tmp_path, "cifar100")
    (tmp_path / "test.bin").rename(tmp_path / "test_batch.bin")
    with pytest.raises(BadInput, match="not a whole number of rows of 3073 bytes: it is cut short or not CIFAR-10's"):
        open_source(f"cifar10:{tmp_path}", 10, training=False)
