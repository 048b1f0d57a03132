"""Checkpoints come back to the bit, damage is refused in one line, and MindSpore's own loader reads them."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msmigrate.errors import BadCheckpoint, BadDestination
from msmigrate.migrate.checkpoint.formats import ckpt
from msmigrate.training import checkpoints

RUN = {"step": 7, "epoch": 1, "classes": ["zero", "één"], "best_top1": None}


def tensors() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(5)
    return {
        "conv.weight": generator.standard_normal((4, 3, 2, 2)).astype(np.float32),
        "optimizer.momentum.conv.weight": np.asfortranarray(generator.standard_normal((4, 3)).astype(np.float16)),
        "optimizer.step": np.array(3, dtype=np.int32),
        "ema.conv.weight": generator.standard_normal((4, 3, 2, 2)),
        "ema.bn.num_batches_tracked": np.array(9, dtype=np.int64),
        "msmigrate.flags": np.array([True, False]),
        "none": np.zeros((0, 3), dtype=np.float32),
    }


def stored(folder: Path, step: int = 7) -> Path:
    path = checkpoints.path_of(folder, step)
    checkpoints.write(path, tensors(), {**RUN, "step": step})
    return path


def refusal(path: Path) -> str:
    with pytest.raises(BadCheckpoint) as caught:
        checkpoints.read(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_comes_back_to_the_bit(tmp_path: Path) -> None:
    path = stored(tmp_path)
    assert path.name == "step-00000007.ckpt"
    found = checkpoints.read(path)
    assert found.run == {"format": 1, **RUN}
    assert list(found.tensors) == list(tensors())
    for name, array in tensors().items():
        back = found.tensors[name]
        assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes()), name
        assert back.flags.aligned
        assert back.flags.writeable
    assert list(found.weights) == ["conv.weight", "none"]
    assert list(found.ema) == ["conv.weight", "bn.num_batches_tracked"]


def test_large_tensors_are_cut_as_mindspore_cuts_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = checkpoints.read(stored(tmp_path / "."))
    monkeypatch.setattr(ckpt, "CHUNK", 24)
    cut = checkpoints.read(stored(tmp_path, 8))
    for name, array in whole.tensors.items():
        np.testing.assert_array_equal(cut.tensors[name], array)


def test_mindspore_reads_it_and_it_reads_mindspores(tmp_path: Path) -> None:
    held = {name: array for name, array in tensors().items() if array.size}
    checkpoints.write(tmp_path / "ours.ckpt", held, RUN)
    np.savez(tmp_path / "held.npz", **held)
    worker = Path(__file__).with_name("checkpoints_mindspore_worker.py")
    done = subprocess.run(
        [sys.executable, str(worker), str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("theirs.ckpt", "theirs_with_crc.ckpt"):
        theirs = checkpoints.read(tmp_path / name)
        assert theirs.run is None
        for key, array in held.items():
            np.testing.assert_array_equal(theirs.tensors[key], array)
            assert theirs.tensors[key].dtype == array.dtype


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_damage_goes_unnoticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    path = stored(folder)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans(), label="cut"):
        content = content[: data.draw(st.integers(0, len(content) - 1), label="length")]
    else:
        at = data.draw(st.integers(0, 8 * len(content) - 1), label="bit")
        content[at // 8] ^= 1 << at % 8
    path.write_bytes(content)
    refusal(path)


def test_a_cut_between_two_tensors_is_noticed(tmp_path: Path) -> None:
    path = stored(tmp_path)
    content = path.read_bytes()
    with path.open("rb") as file:
        values = ckpt.entries(file.fileno(), "x")
    for value in values:
        at, length = value.pieces[-1]
        path.write_bytes(content[: at + length])
        assert "its end, with the checksum, is missing" in refusal(path)


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ckpt"
    assert "No such file" in refusal(path)
    for content in (b"", b"PK\x03\x04 a zip", b"\x0a" * 100, os.urandom(4096)):
        path.write_bytes(content)
        refusal(path)
    path.unlink()
    path.mkdir()
    assert "directory" in refusal(path)


def test_hostile_shapes_and_types_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ckpt"
    for dims, kind, length in (
        ((1 << 40, 0), "Float32", 0),
        ((1 << 62, 1 << 62, 0), "Float32", 0),
        ((1,) * 80, "Float32", 4),
        ((4,), "BFloat16", 8),
        ((4,), "Object", 32),
    ):
        path.write_bytes(ckpt.header("t", dims, kind, length) + bytes(length))
        if dims == (1 << 40, 0):  # empty, and NumPy can hold it
            assert checkpoints.read(path).tensors["t"].size == 0
        else:
            refusal(path)


@pytest.mark.parametrize(
    ("about", "says"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "not what a training run writes"),
        ('{"format": true}', "not what a training run writes"),
        ('{"format": 2}', "format 2"),
    ],
)
def test_a_run_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, about: str, says: str) -> None:
    monkeypatch.setattr(checkpoints.json, "dumps", lambda *_, **__: about)
    assert says in refusal(stored(tmp_path))


def test_newest_passes_over_what_is_damaged(tmp_path: Path) -> None:
    warnings: list[str] = []
    assert checkpoints.newest(tmp_path / "missing", warnings.append) is None
    for step in (5, 10, 15, 100_000_000):
        stored(tmp_path, step)
    (tmp_path / "step-99.ckpt").write_bytes(b"of somebody else")
    (tmp_path / "step-00000099.ckpt.tmp").write_bytes(b"of somebody else")

    def newest() -> Path:
        found = checkpoints.newest(tmp_path, warnings.append)
        assert found is not None
        assert found[1].run is not None
        assert found[0] == checkpoints.path_of(tmp_path, found[1].run["step"])
        return found[0]

    last = checkpoints.path_of(tmp_path, 100_000_000)
    assert newest() == last
    assert warnings == []
    last.write_bytes(last.read_bytes()[:-1])
    assert newest() == checkpoints.path_of(tmp_path, 15)
    assert len(warnings) == 1
    assert str(last) in warnings[0]
    assert checkpoints.set_aside(tmp_path, 15) == [last.with_name(last.name + ".damaged")]
    warnings.clear()
    assert newest() == checkpoints.path_of(tmp_path, 15)
    assert warnings == []


def test_best_is_the_last_resort_and_without_any_there_is_an_error(tmp_path: Path) -> None:
    warnings: list[str] = []
    last = stored(tmp_path)
    best = tmp_path / checkpoints.BEST
    best.write_bytes(last.read_bytes())
    last.write_bytes(b"")
    found = checkpoints.newest(tmp_path, warnings.append)
    assert found is not None
    assert found[0] == best
    best.write_bytes(b"")
    with pytest.raises(BadCheckpoint, match=r"all 2 checkpoints are damaged \(.*step-00000007.ckpt .*no tensor\)"):
        checkpoints.newest(tmp_path, warnings.append)
    best.unlink()
    with pytest.raises(BadCheckpoint, match="since the only checkpoint is damaged"):
        checkpoints.newest(tmp_path, warnings.append)


def test_a_checkpoint_of_mindspore_is_none_of_a_run(tmp_path: Path) -> None:
    content = np.ones(3, dtype=np.float32).tobytes()
    checkpoints.path_of(tmp_path, 1).write_bytes(ckpt.header("t", (3,), "Float32", 12) + content)
    with pytest.raises(BadCheckpoint):
        checkpoints.newest(tmp_path, lambda text: None)


def test_retain_keeps_the_newest_and_the_best(tmp_path: Path) -> None:
    steps = [checkpoints.path_of(tmp_path, step) for step in (9, 10, 11, 100, 99_999_999, 100_000_000)]
    for path in (*steps, tmp_path / checkpoints.BEST, tmp_path / "step-00000001.txt"):
        path.touch()
    assert checkpoints.retain(tmp_path, 2) == steps[:-2]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["best.ckpt", "step-00000001.txt", "step-100000000.ckpt", "step-99999999.ckpt"]
    )
    assert checkpoints.retain(tmp_path, 2) == []


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(tmp_path)
    before = path.read_bytes()

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadDestination, match="No space left on device; the old file is unchanged"):
        stored(tmp_path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_is_full_while_writing(tmp_path: Path) -> None:
    """The kernel's own refusal: a process that may write no file larger than 64 KiB."""
    script = (
        "import resource, signal, sys, pathlib, numpy\n"
        "from msmigrate.training import checkpoints\n"
        "from msmigrate.errors import BadDestination\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "try:\n"
        "    checkpoints.write(pathlib.Path(sys.argv[1]), {'a': numpy.ones(100_000)}, {})\n"
        "except BadDestination as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "x.ckpt")], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"cannot write {tmp_path / 'x.ckpt'}: File too large; nothing was left behind\n"
    assert list(tmp_path.iterdir()) == []


def test_no_permission_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadDestination, match=r"cannot write .*No such file or directory"):
        checkpoints.write(tmp_path / "missing" / "x.ckpt", tensors(), RUN)


@pytest.mark.parametrize("array", [np.zeros(0, np.float32), np.zeros(2, np.complex64), np.array(["text"])])
def test_what_a_ckpt_cannot_hold_is_a_mistake_of_ours(tmp_path: Path, array: np.ndarray) -> None:
    with pytest.raises(ValueError, match="does not fit a MindSpore checkpoint"):
        checkpoints.write(tmp_path / "x.ckpt", {"a": array}, RUN)
    assert list(tmp_path.iterdir()) == []
