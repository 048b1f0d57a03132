"""What is written is what torch.save writes, byte for byte, and zip tools find every checksum right."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from msmigrate.errors import BadCheckpoint
from msmigrate.migrate.checkpoint import convert
from msmigrate.migrate.checkpoint.formats import pth_writer, restricted_pickle
from msmigrate.migrate.checkpoint.formats.pth_writer import pickled
from msmigrate.migrate.checkpoint.formats.reader import ByteRange, Piece, Tensor, row_major
from msmigrate.migrate.checkpoint.formats.registry import open_source
from tiny_checkpoints import SMALL, floats, save

WORKER = Path(__file__).parent.parent / "make_references_torch.py"
ID = "archive/.data/serialization_id"


def references(folder: Path, *arguments: object) -> Path:
    done = subprocess.run([sys.executable, str(WORKER), folder, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def saved_by_torch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return references(tmp_path_factory.mktemp("references"))


def masked(path: Path) -> tuple[bytes, bytes]:
    """The file without the forty digits, which torch takes from hashes of its own, and without their checksum."""
    with zipfile.ZipFile(path) as archive:
        digits, checksum = archive.read(ID), archive.getinfo(ID).CRC
    assert len(digits) == 40
    before, behind = path.read_bytes().split(digits)
    return before, behind.replace(struct.pack("<I", checksum), bytes(4))


def same_as_torch(reference: Path, written: Path) -> None:
    convert.convert(reference, written)
    assert written.stat().st_size == reference.stat().st_size
    assert masked(written) == masked(reference)


@pytest.mark.parametrize("name", ["dtypes", "shapes", "tied", "one", "many"])
def test_torch_writes_the_same_bytes(saved_by_torch: Path, tmp_path: Path, name: str) -> None:
    same_as_torch(saved_by_torch / name / "archive.pth", tmp_path / "x.pth")


@pytest.mark.full
def test_torch_writes_the_same_bytes_beyond_4_gib(tmp_path: Path) -> None:
    reference = references(tmp_path, (1 << 32) + 100) / "large" / "archive.pth"
    convert.convert(reference, tmp_path / "x.pth")
    differ = subprocess.run(["cmp", "-l", reference, tmp_path / "x.pth"], capture_output=True, text=True, check=False)
    assert 0 < len(differ.stdout.splitlines()) <= 48  # the forty digits and their checksum, twice


def written(tmp_path: Path, content: Sequence[Piece], source: bytes = b"", name: str = "x.pth") -> Path:
    """Write pieces of a source of these bytes; returns the file, verified."""
    (tmp_path / "source").write_bytes(source)
    with (tmp_path / "source").open("rb") as file, (tmp_path / name).open("w+b") as output:
        size = pth_writer.write([file.fileno()], output.fileno(), content)
        pth_writer.verify(output.fileno(), name, content)
    assert size == (tmp_path / name).stat().st_size
    return tmp_path / name


def piece(name: str, dtype: str, *shape: int, at: int = 0, length: int = 0) -> Piece:
    return Piece(name, dtype, shape, Tensor(dtype, shape, row_major(shape), (ByteRange(at, length),)))


def test_zip_tools_find_the_checksums_right_and_notice_a_flipped_bit(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    convert.convert(save(tmp_path / "y.pth", SMALL), path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        place = archive.getinfo("archive/data/0")
        assert archive.read("archive/data/0") == SMALL["conv.weight"].content
    if shutil.which("unzip"):
        subprocess.run(["unzip", "-tq", path], check=True, capture_output=True)
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(SMALL["conv.weight"].content, place.header_offset) + 5] ^= 1
    path.write_bytes(damaged)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() == "archive/data/0"


def test_every_content_is_aligned(tmp_path: Path) -> None:
    convert.convert(save(tmp_path / "y.pth", SMALL), tmp_path / "x.pth")
    with open_source(str(tmp_path / "x.pth")) as source:
        spans = [tensor.spans[0] for tensor in source.checkpoint().tensors.values()]
    assert [span.offset % 64 for span in spans] == [0] * len(SMALL)


@pytest.mark.parametrize("limit", [1, 13, 1000])
def test_what_needs_64_bits_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """With the limit lowered, sizes and offsets beyond it stand in the extra fields, where zipfile reads them."""
    monkeypatch.setattr(pth_writer, "WIDE", limit)
    monkeypatch.setattr(pth_writer, "MANY", 3)
    convert.convert(save(tmp_path / "y.pth", SMALL), tmp_path / "x.pth")
    with zipfile.ZipFile(tmp_path / "x.pth") as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == len(SMALL) + 6
        wide = [entry for entry in archive.infolist() if entry.extra]
        assert {entry.filename for entry in wide} == {
            entry.filename for entry in archive.infolist() if entry.file_size >= limit or entry.header_offset >= limit
        }
        assert archive.read("archive/data/0") == SMALL["conv.weight"].content
    # A 64-bit number in the directory's end record has all ones in the 32 bits where it would stand.
    assert (tmp_path / "x.pth").read_bytes()[-6:-2] == b"\xff" * 4


@pytest.mark.full
def test_more_members_than_16_bits_count(tmp_path: Path) -> None:
    path = written(tmp_path, [piece(f"own.{n}", "uint8", 1, at=n, length=1) for n in range(66_000)], bytes(66_000))
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 66_006
        assert archive.testzip() is None


def test_the_same_tensors_give_the_same_file_and_others_another_id(tmp_path: Path) -> None:
    content = [piece("own.a", "uint8", 2, at=0, length=2), piece("own.b", "uint8", 1, at=2, length=1)]
    files = [written(tmp_path, content, source, name) for source, name in ((b"abc", "1"), (b"abc", "2"), (b"abd", "3"))]
    assert files[0].read_bytes() == files[1].read_bytes()
    ids = [zipfile.ZipFile(path).read(ID) for path in files]
    assert ids[0] != ids[2]


def test_memory_does_not_grow_with_the_tensor(tmp_path: Path) -> None:
    count = 32 << 20
    content = [piece("own.a", "uint8", count, length=count)]
    with (tmp_path / "source").open("w+b") as file, (tmp_path / "x.pth").open("w+b") as output:
        file.truncate(count)
        tracemalloc.start()
        pth_writer.write([file.fileno()], output.fileno(), content)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 8 << 20


def test_a_source_that_ends_early_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match="became shorter"):
        written(tmp_path, [piece("own.a", "uint8", 9, length=9)], b"only")


@pytest.mark.parametrize(
    "planned",
    [
        [piece("own.b", "uint8", 4, length=4)],
        [piece("own.a", "int8", 4, length=4)],
        [piece("own.a", "uint8", 2, 2, length=4)],
        [],
        [piece("own.a", "uint8", 4, length=4), piece("own.b", "uint8", 4, length=4)],
    ],
)
def test_a_file_that_differs_from_the_plan_is_refused(tmp_path: Path, planned: list[Piece]) -> None:
    path = written(tmp_path, [piece("own.a", "uint8", 4, length=4)], b"four")
    with path.open("rb") as file, pytest.raises(BadCheckpoint, match=r"x\.pth: what was written is not"):
        pth_writer.verify(file.fileno(), "x.pth", planned)


def test_names_that_all_begin_as_a_wrapper_puts_it_are_written_as_they_are(tmp_path: Path) -> None:
    content = [
        piece("module.a", "uint8", 4, length=4),
        piece("n_averaged", "uint8", 1, length=1),
        piece("module.b", "uint8", 3, at=1, length=3),
    ]
    path = written(tmp_path, content, b"four")
    with zipfile.ZipFile(path) as archive:
        assert list(restricted_pickle.load(archive.read("archive/data.pkl"))) == ["module.a", "n_averaged", "module.b"]


def test_numbers_of_every_length_are_read_back(tmp_path: Path) -> None:
    shapes = [(255,), (256,), (65_535,), (65_536,), ((1 << 31) - 1,), (1 << 31,), (1 << 40, 3), (1, 2, 3, 4)]
    content = [piece(f"own.{number}", "float32", *shape) for number, shape in enumerate(shapes)]
    found = restricted_pickle.load(pickled(content))
    assert [call.args[2] for call in found.values()] == shapes
    assert [call.args[3] for call in found.values()] == [row_major(shape) for shape in shapes]
    assert [call.args[0].numel for call in found.values()] == [
        *(255, 256, 65_535, 65_536, (1 << 31) - 1, 1 << 31, 3 << 40, 24)
    ]


def test_equal_tensors_in_two_dtypes_are_stored_twice(tmp_path: Path) -> None:
    held = piece("own.a", "float32", 3, length=12)
    path = written(tmp_path, [held, held._replace(name="own.b", dtype="float16")], struct.pack("<3f", 1, 2, 3))
    with zipfile.ZipFile(path) as archive:
        assert archive.read("archive/data/0") == struct.pack("<3f", 1, 2, 3)
        assert archive.read("archive/data/1") == struct.pack("<3e", 1, 2, 3)


def test_a_training_state_stands_beside_the_weights(tmp_path: Path) -> None:
    weight = piece("own.a", "uint8", 4, length=4)
    group = {"lr": 0.5, "betas": (0.9, 0.99), "fused": None, "nesterov": True, "params": [0], "flags": []}
    slots = {"average": weight._replace(name="average"), "sum": piece("sum", "uint8", 2, at=4, length=2)}
    optimizer = {"state": {0: slots}, "param_groups": [group]}
    beside = {"optimizer": optimizer, "step": -70_000, "large": -(1 << 40), "empty": {}}
    (tmp_path / "source").write_bytes(b"abcdef")
    with (tmp_path / "source").open("rb") as file, (tmp_path / "x.pth").open("w+b") as output:
        pth_writer.write([file.fileno()], output.fileno(), [weight], record=beside)
        pth_writer.verify(output.fileno(), "x.pth", [weight])
    with zipfile.ZipFile(tmp_path / "x.pth") as archive:
        assert archive.testzip() is None
        assert [archive.read(f"archive/data/{key}") for key in (0, 1)] == [b"abcd", b"ef"]
        found = restricted_pickle.load(archive.read("archive/data.pkl"))
    assert list(found) == ["model", "optimizer", "step", "large", "empty"]
    assert found["optimizer"]["param_groups"] == [group]
    assert (found["step"], found["large"], found["empty"]) == (-70_000, -(1 << 40), {})
    held = found["optimizer"]["state"][0]
    assert found["model"]["own.a"].args[0].key == held["average"].args[0].key == "0"
    assert held["sum"].args[0].key == "1"


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    source = save(tmp_path / "y.pth", {"own.a": floats(300_000), "own.b": floats(300_000)})
    with pytest.raises(BadCheckpoint, match="became shorter"):
        convert.convert(source, tmp_path / "x.pth", progress=lambda done, total: os.truncate(source, 1000))
    assert [path.name for path in tmp_path.iterdir()] == ["y.pth"]
