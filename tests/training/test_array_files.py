"""What the header of an array says is checked before that much is allocated."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from msmigrate.errors import BadInput
from msmigrate.training.data import array_files
from msmigrate.training.data.array_files import read_batches, read_npy

X = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
Y = np.array([0, 1])

ASKING = """
import json, pathlib, sys
import numpy as np
from msmigrate.errors import BadInput
from msmigrate.training.data.array_files import read_batches
found = {}
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak is measured anew
    before = int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096
    try:
        read_batches(path, 1)
        said = "it was read"
    except BadInput as error:
        said = str(error)
    peak = int(pathlib.Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) << 10
    found[path.name] = peak - before, said
print(json.dumps(found))
"""


def header(shape: object, descr: str = "<f4") -> bytes:
    """The beginning of a .npy that says this shape."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def zipped(path: Path, images: bytes, size: int = 0) -> None:
    """An .npz of these images, with as many zero bytes behind them, compressed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("images.npy", "w", force_zip64=True) as member:
            member.write(images)
            for start in range(0, size, 1 << 20):
                member.write(bytes(min(1 << 20, size - start)))
        labels = io.BytesIO()
        np.save(labels, Y)
        archive.writestr("labels.npy", labels.getvalue())


def test_a_small_file_does_not_take_what_it_says(tmp_path: Path) -> None:
    many = 400 << 20
    zipped(tmp_path / "compressed.npz", header((2, many // 8)), many)
    zipped(tmp_path / "compressed bytes.npz", header((2, many // 8), "|u1"), many // 4)  # int64 in the end
    zipped(tmp_path / "shape.npz", header((1 << 33,)), 100)
    zipped(tmp_path / "empty shape.npz", header((0, 1 << 62)))
    zipped(tmp_path / "two factors.npz", header((1 << 40, 1 << 40)), 100)
    zipped(tmp_path / "negative.npz", header((-1, -4)), 16)
    zipped(tmp_path / "deep.npz", header(()).replace(b"()", b"(" * 3000)[:3100])
    zipped(tmp_path / "objects.npz", header((1 << 20,), "|O"), 8 << 20)
    zipped(tmp_path / "text.npz", header((1,), "|S2000000000"), 100)
    with zipfile.ZipFile(tmp_path / "members.npz", "w") as archive:
        for number in range(array_files.MOST_ARRAYS + 1):
            archive.writestr(str(number), b"")
    tokens = {"dtype": "U8", "shape": [2, many // 8], "data_offsets": [0, many // 4]}
    text = json.dumps({"images": tokens}).encode()
    (tmp_path / "cut.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
    command = [sys.executable, "-c", ASKING, str(tmp_path)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert len(found) == 11
    assert {name: taken for name, taken in found.items() if taken[0] > 64 << 20 or taken[1] == "it was read"} == {}
    assert all("\n" not in said and str(tmp_path) in said for _, said in found.values())
    assert "may hold" in found["compressed.npz"][1] and "numpy.savez" in found["compressed.npz"][1]
    assert "may hold" in found["compressed bytes.npz"][1]
    assert "Python objects" in found["objects.npz"][1]


def test_what_people_bring_is_read(tmp_path: Path) -> None:
    """Tokens compress well, and a batch of zeros better than anything; both are far below what is free."""
    tokens = np.zeros((64, 4096), np.int64)
    np.savez_compressed(tmp_path / "b.npz", input=tokens, labels=np.zeros(64, np.int64))
    [[found]], _ = read_batches(tmp_path / "b.npz", 1)
    assert found.shape == tokens.shape and found.flags.writeable
    columns = np.asfortranarray(X)
    np.savez(tmp_path / "c.npz", images=columns, labels=Y)
    [[found]], _ = read_batches(tmp_path / "c.npz", 1)
    assert np.array_equal(found, X)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_flipped_bit_is_noticed(tmp_path: Path, save: object) -> None:
    """Each member of a zip has a checksum."""
    path = tmp_path / "b.npz"
    save(path, images=X, labels=Y)  # type: ignore[operator]
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("images.npy")
    start = entry.header_offset + 30 + len("images.npy") + 20
    for at in range(start + entry.compress_size - 24, start + entry.compress_size - 2, 5):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(BadInput):
            read_batches(path, 1)


@pytest.mark.parametrize("shape", [(3,), (5,), (1 << 40,), (2, 2, 1 << 62)])
def test_a_recorded_array_is_as_large_as_its_file(shape: tuple[int, ...]) -> None:
    content = header(shape) + bytes(16)
    with pytest.raises(ValueError, match=r"its header says .* bytes of float32, and it holds 16"):
        read_npy(io.BytesIO(content), len(content))
    assert read_npy(io.BytesIO(header((4,)) + bytes(16)), len(header((4,))) + 16).tolist() == [0, 0, 0, 0]
