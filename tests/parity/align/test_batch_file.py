"""A batch of the user's own is read, or refused by file and name; nothing in it is ever run."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msmigrate.errors import BadInput
from msmigrate.training.data.array_files import read_batches
from safetensors.numpy import save_file

X = np.ones((4, 3, 8, 8), np.float32)
Y = np.arange(4)


def write(path: Path, **arrays: np.ndarray) -> Path:
    save_file(arrays, path) if path.suffix == ".safetensors" else np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_one_batch_serves_every_step(tmp_path: Path, suffix: str) -> None:
    inputs, labels = read_batches(write(tmp_path / f"b{suffix}", images=X, labels=Y), 3)
    assert len(inputs) == len(labels) == 3
    assert np.array_equal(inputs[2][0], X) and np.array_equal(labels[0], Y)


def test_batches_of_several_inputs_come_in_turn(tmp_path: Path) -> None:
    arrays = {"input1": X, "input1.1": Y, "labels1": Y, "input2": 2 * X, "input2.1": Y + 1, "labels2": Y + 1}
    inputs, labels = read_batches(write(tmp_path / "b.npz", **arrays), 3)
    assert [float(first[0, 0, 0, 0]) for first, _ in inputs] == [1.0, 2.0, 1.0]
    assert [int(second[0]) for _, second in inputs] == [0, 1, 0] and [int(y[0]) for y in labels] == [0, 1, 0]


def test_small_whole_numbers_become_int64(tmp_path: Path) -> None:
    inputs, _ = read_batches(write(tmp_path / "b.npz", input=np.ones((4, 2), np.uint8), labels=Y), 1)
    assert inputs[0][0].dtype == np.int64


BAD: dict[str, tuple[dict[str, np.ndarray], str]] = {
    "no labels": ({"images": X}, "lacks one of them"),
    "labels of another step": ({"images1": X, "labels2": Y}, "step 1 has only one of them"),
    "an unknown name": ({"images": X, "labels": Y, "mask": Y}, "has 'mask'; expected images"),
    "numbered and not": ({"images": X, "labels": Y, "images1": X, "labels1": Y}, "number all or none"),
    "a gap": ({"input": X, "input.2": X, "labels": Y}, r"numbered \[0, 2\]"),
    "said twice": ({"input": X, "images": X, "labels": Y}, "means the same as"),
    "float64": ({"images": X.astype(np.float64), "labels": Y}, "images is float64; save it as float32"),
    "text": ({"images": np.array(["a"]), "labels": Y}, "images is <U1"),
    "empty": ({"images": X[:0], "labels": Y}, "images is empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_batch_is_one_line(tmp_path: Path, case: str) -> None:
    arrays, why = BAD[case]
    with pytest.raises(BadInput, match=why) as refused:
        read_batches(write(tmp_path / "b.npz", **arrays), 1)
    assert "\n" not in str(refused.value) and "b.npz" in str(refused.value)


class Trap:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return (Path.touch, (self.file,))


def test_a_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    np.savez(tmp_path / "b.npz", images=np.array([Trap(trap)], dtype=object), labels=Y)
    (tmp_path / "c.npz").write_bytes(pickle.dumps(Trap(trap)))
    for name in ("b.npz", "c.npz", "nowhere.npz", "odd.txt", "nowhere.safetensors"):
        with pytest.raises(BadInput):
            read_batches(tmp_path / name, 1)
    assert not trap.exists()


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(suffix=st.sampled_from([".npz", ".safetensors"]), place=st.floats(0, 1), junk=st.binary(min_size=1, max_size=6))
def test_a_damaged_file_is_read_or_one_line(tmp_path: Path, suffix: str, place: float, junk: bytes) -> None:
    path = write(tmp_path / f"b{suffix}", images=X, labels=Y)
    content = bytearray(path.read_bytes())
    at = int(place * (len(content) - 1))
    content[at : at + len(junk)] = junk
    path.write_bytes(content)
    try:
        read_batches(path, 1)
    except BadInput as error:
        assert "\n" not in str(error)
