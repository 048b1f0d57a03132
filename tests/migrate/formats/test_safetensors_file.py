"""Safetensors files arrive bit for bit in both frameworks' loaders, and nothing in a header is believed."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import safetensors
from hypothesis import given, settings
from hypothesis import strategies as st
from msmigrate.errors import BadCheckpoint, MsmigrateError, Unsupported
from msmigrate.migrate.checkpoint import convert
from msmigrate.migrate.checkpoint.formats import reader, safetensors_file
from msmigrate.migrate.checkpoint.formats.reader import ByteRange, Checkpoint, Piece, Tensor, product, row_major
from msmigrate.migrate.checkpoint.formats.registry import open_source
from msmigrate.migrate.checkpoint.formats.safetensors_file import DTYPES

HERE = Path(__file__).parent
SIZES = reader.ITEM_SIZES
Content = Mapping[str, tuple[str, tuple[int, ...], bytes]]  # name -> dtype, shape, bytes


def work(script: str, folder: Path, *rest: str) -> None:
    """Run a worker script; a failure shows the end of what it printed."""
    command = [sys.executable, str(HERE / script), str(folder), *rest]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def digest(shape: tuple[int, ...], dtype: str, content: bytes) -> list[object]:
    return [list(shape), dtype, hashlib.sha256(content).hexdigest()]


@contextmanager
def pieces_of(content: Content) -> Iterator[tuple[BinaryIO, list[Piece]]]:
    """A file of these tensors' bytes, and what is to be written from it."""
    with tempfile.TemporaryFile() as file:
        pieces = []
        for name, (dtype, shape, data) in content.items():
            span = ByteRange(file.tell(), len(data))
            pieces.append(Piece(name, dtype, shape, Tensor(dtype, shape, row_major(shape), (span,))))
            file.write(data)
        file.flush()
        yield file, pieces


def write(path: Path, content: Content, framework: str = "torch", record: dict[str, Any] | None = None) -> Path:
    with pieces_of(content) as (file, pieces), path.open("w+b") as output:
        size = safetensors_file.write([file.fileno()], output.fileno(), pieces, framework=framework, record=record)
        safetensors_file.verify(output.fileno(), str(path), pieces)
    assert path.stat().st_size == size == safetensors_file.size(pieces, framework, record)
    return path


def raw(path: Path, header: object, data: bytes = b"", *, length: int | None = None) -> Path:
    """A file with this header, whatever it says."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def read(path: Path) -> Checkpoint:
    with open_source(str(path)) as source:
        return source.checkpoint()


def bytes_of(path: Path) -> dict[str, bytes]:
    whole = path.read_bytes()
    return {
        name: b"".join(whole[at : at + length] for at, length, _ in tensor.spans)
        for name, tensor in read(path).tensors.items()
    }


def described(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


# Smaller elements stand before larger ones, and odd counts would turn all that follows out of step.
MINDSPORES = ("uint8", "int64", "bool", "float64", "bfloat16", "int8", "float32", "uint16", "uint64", "float16")
MIXED: Content = {
    **{f"own.{dtype}": (dtype, (3,), bytes([1, 0, 1] * SIZES[dtype])) for dtype in MINDSPORES},
    "own.int16": ("int16", (1, 5), bytes(range(10))),
    "own.int32": ("int32", (), b"\1\2\3\4"),
    "own.uint32": ("uint32", (1,), b"\1\2\3\4"),
    "own.none": ("float32", (0, 3), b""),
    "own.no_vector": ("int8", (0,), b""),
    "own.ö": ("uint8", (1,), b"\7"),
}
TORCHS: Content = {
    **MIXED,
    **{f"own.{dtype}": (dtype, (5,), bytes(range(5 * SIZES[dtype]))) for dtype in DTYPES.values() if "float8" in dtype},
    "own.complex64": ("complex64", (2,), bytes(range(16))),
}


@pytest.fixture(scope="module")
def by_torch(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder of files that the safetensors library wrote for torch, and what their tensors hold."""
    folder = tmp_path_factory.mktemp("by_torch")
    work("make_safetensors_torch.py", folder)
    return folder, json.loads((folder / "expected.json").read_text())


@pytest.mark.parametrize("name", ["dtypes", "net", "ddp", "tied"])
def test_what_the_library_writes_for_torch_is_read(by_torch: tuple[Path, dict[str, Any]], name: str) -> None:
    folder, expected = by_torch
    path = folder / f"{name}.safetensors"
    found = read(path)
    contents = bytes_of(path)
    assert {
        key: digest(tensor.shape, tensor.dtype, contents[key]) for key, tensor in found.tensors.items()
    } == expected[name]
    assert (found.framework, found.refused, found.others) == ("torch", {}, {})
    assert found.prefix == ("module." if name == "ddp" else "")
    if name == "tied":
        assert found.tensors["head.weight"] == found.tensors["embed.weight"]


@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_shards_that_torch_wrote_are_read_as_one_checkpoint(by_torch: tuple[Path, dict[str, Any]], kind: str) -> None:
    with open_source(str(by_torch[0] / f"shards.{kind}")) as source:
        found = source.checkpoint()
        contents = {
            name: b"".join(os.pread(source.descriptors[span.file], span.length, span.offset) for span in tensor.spans)
            for name, tensor in found.tensors.items()
        }
    assert len(source.files) == 2
    assert {
        name: digest(tensor.shape, tensor.dtype, contents[name]) for name, tensor in found.tensors.items()
    } == by_torch[1]["net"]


def test_torch_loads_what_is_written(by_torch: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    write(tmp_path / "mixed.safetensors", TORCHS)
    convert.convert(by_torch[0] / "tied.safetensors", tmp_path / "tied.safetensors", to="torch")
    convert.convert(by_torch[0] / "net.safetensors", tmp_path / "out", to="torch", max_shard_size=300)
    work("make_safetensors_torch.py", tmp_path, "read")
    found = json.loads((tmp_path / "found_torch.json").read_text())
    assert found["mixed.safetensors"] == {
        name: digest(shape, dtype, data) for name, (dtype, shape, data) in TORCHS.items()
    }
    shards = [held for name, held in found.items() if name.startswith("out/model-0000")]
    assert len(shards) > 2
    assert {name: value for held in shards for name, value in held.items()} == by_torch[1]["net"]
    kept = {name: value for name, value in by_torch[1]["tied"].items() if name in found["tied.safetensors"]}
    assert found["tied.safetensors"] == kept
    assert len(by_torch[1]["tied"]) == len(kept) + 1  # the tied one, which load_model has found


def test_mindspore_and_msmigrate_load_what_the_other_writes(
    by_torch: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    write(tmp_path / "mixed.safetensors", MIXED, "mindspore", {"names": {"a": "b"}})
    write(tmp_path / "format.safetensors", {"format": MIXED["own.int32"], "x": MIXED["own.ö"]}, "mindspore", {})
    converted = convert.convert(by_torch[0] / "net.safetensors", tmp_path / "net.safetensors")
    work("read_safetensors_mindspore.py", tmp_path)
    found = json.loads((tmp_path / "found_mindspore.json").read_text())
    assert found["mixed.safetensors"] == {
        name: digest(shape, dtype, data) for name, (dtype, shape, data) in MIXED.items()
    }
    assert set(found["format.safetensors"]) == {"format", "x"}
    assert found["net.safetensors"] == {
        str(entry.target): by_torch[1]["net"][entry.name] for entry in converted.plan.entries if entry.written
    }
    saved = tmp_path / "saved_by_mindspore.safetensors"
    contents = bytes_of(saved)
    assert read(saved).framework == "mindspore"
    assert found[saved.name] == {
        name: digest(tensor.shape, tensor.dtype, contents[name]) for name, tensor in read(saved).tensors.items()
    }


def test_every_tensor_begins_at_a_multiple_of_its_elements_size(tmp_path: Path) -> None:
    found = read(write(tmp_path / "x", TORCHS)).tensors
    assert all(tensor.spans[0].offset % tensor.item_size == 0 for tensor in found.values())
    assert min(tensor.spans[0].offset for tensor in found.values()) % 64 == 0
    names = [name for name in TORCHS if SIZES[TORCHS[name][0]] == 2]
    assert [name for name in found if name in names] == names  # otherwise in the order they were given in


def test_there_and_back_again(by_torch: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """Names and shapes come back, and what MindSpore has no place for: counters, tied weights."""
    for name, model in (("net", None), ("tied", f"{HERE.parent / 'nets_torch.py'}:text")):
        there, back = tmp_path / f"{name}.safetensors", tmp_path / f"{name}.back.safetensors"
        assert convert.convert(by_torch[0] / f"{name}.safetensors", there, model=model).plan.framework == "mindspore"
        assert convert.convert(there, back).plan.framework == "torch"
        contents, first = bytes_of(back), bytes_of(by_torch[0] / f"{name}.safetensors")
        assert contents == first
        assert {key: tensor.shape for key, tensor in read(back).tensors.items()} == {
            key: tensor.shape for key, tensor in read(by_torch[0] / f"{name}.safetensors").tensors.items()
        }
    assert any(name.endswith("num_batches_tracked") for name in read(tmp_path / "net.back.safetensors").tensors)


@st.composite
def contents(draw: st.DrawFn) -> Content:
    names = draw(st.lists(st.from_regex(r"own\.[a-z_0-9ö\"\\]{1,12}", fullmatch=True), min_size=1, unique=True))
    found = {}
    for name in names:
        dtype = draw(st.sampled_from(sorted(DTYPES.values())))
        shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
        size = product(shape) * SIZES[dtype]
        found[name] = (dtype, shape, draw(st.binary(min_size=size, max_size=size)))
    return found


@settings(max_examples=60, deadline=None)
@given(contents(), st.sampled_from(["torch", "mindspore"]))
def test_what_is_written_is_read_here_and_by_the_library(content: Content, framework: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "x", content, framework)
        assert bytes_of(path) == {name: data for name, (_, _, data) in content.items()}
        assert {name: (tensor.dtype, tensor.shape) for name, tensor in read(path).tensors.items()} == {
            name: (dtype, shape) for name, (dtype, shape, _) in content.items()
        }
        by_library = dict(safetensors.deserialize(path.read_bytes()))
    assert {
        name: (DTYPES[found["dtype"]], tuple(found["shape"]), bytes(found["data"]))
        for name, found in by_library.items()
    } == content


SOUND = {"a": described("F32", [2], 0, 8), "b": described("U8", [2], 8, 10)}


def changed(name: str, **parts: Any) -> dict[str, Any]:
    return {**SOUND, name: {**SOUND[name], **parts}}


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (changed("b", data_offsets=[9, 10], shape=[1]), "a hole in the data before b: bytes 8 to 9"),
        (changed("b", data_offsets=[8, 11], shape=[3]), r"describes 11 bytes of data and it holds 10.*cut short"),
        (changed("b", data_offsets=[8, 9], shape=[1]), r"describes 9 bytes of data and it holds 10.*to no tensor"),
        (changed("a", data_offsets=[1, 9]), "hole in the data before a"),
        ({**SOUND, "c": described("U8", [1], 9, 10)}, "c overlaps b, by 1 bytes"),
        ({**SOUND, "c": described("U8", [2], 8, 10)}, "c overlaps b, by 2 bytes"),
        ({**SOUND, "c": described("U8", [0], 4, 4)}, "c overlaps a, by 4 bytes"),
        (changed("a", shape=[3]), r"a: its shape \(3,\) in float32 needs 12 bytes, its data_offsets give it 8"),
        (changed("a", shape=[]), r"a: its shape \(\) in float32 needs 4 bytes, its data_offsets give it 8"),
        (changed("a", shape=[1 << 40, 1 << 40]), "needs absurdly many bytes"),
        (changed("a", shape=[1 << 60]), "shape is negative or absurdly large"),
        (changed("a", shape=[-2]), "shape is negative"),
        (changed("a", shape=[1] * 65), "absurdly large"),
        (changed("a", shape=[2.0]), "not a list of integers"),
        (changed("a", shape=[True, 2]), "not a list of integers"),
        (changed("a", shape={}), "not a list of integers"),
        (changed("a", data_offsets=[0, 8.0]), "not two integers"),
        (changed("a", data_offsets=[False, 8]), "not two integers"),
        (changed("a", data_offsets=[0, 8, 8]), "not two integers"),
        (changed("a", data_offsets=None), "not two integers"),
        (changed("a", data_offsets=[-8, 0]), "negative"),
        (changed("a", data_offsets=[8, 0]), "reversed"),
        (changed("a", data_offsets=[0, 10**30]), "absurdly large"),
        (changed("a", dtype=4), "dtype is no string"),
        ({**SOUND, "c": 3}, "c: its description is no JSON object"),
        ({**SOUND, "c": {}}, "c: its data_offsets"),
        ({**SOUND, "": described("U8", [0], 0, 0)}, "no name of a tensor"),
        ({**SOUND, "a\nb": described("U8", [0], 0, 0)}, "no name of a tensor"),
        ({**SOUND, "x" * 1001: described("U8", [0], 0, 0)}, "no name of a tensor"),
        ({**SOUND, "__metadata__": {"a": 1}}, "not a table of strings"),
        ({**SOUND, "__metadata__": []}, "not a table of strings"),
        ({**SOUND, "__metadata__": {"msmigrate": "{"}}, "note of an earlier conversion in it is damaged"),
        (
            {**SOUND, "__metadata__": {"msmigrate": '{"format": 1}' + " " * (17 << 20)}},
            "note of an earlier conversion in it is damaged",
        ),
        ({**SOUND, "__metadata__": {"tied\n": "a"}}, "no name of a tensor"),
        ({}, "describes 0 bytes of data and it holds 10"),
        (b'{"a": 1, "a": 2}', "its header is no valid JSON: the key 'a' twice"),
        (b'{"a": {"dtype": "F32", "dtype": "F32"}}', "its header is no valid JSON: the key 'dtype' twice"),
        (b'{"a": [1', "no valid JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "no valid JSON"),
        (b'{"\xff": 1}', "no valid JSON"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "no valid JSON"),
        (b'{"a": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, "no valid JSON"),
        (json.dumps(SOUND).encode() + b"\0\0", "no valid JSON"),
    ],
)
def test_a_header_that_cannot_be_believed_is_refused(tmp_path: Path, header: object, says: str) -> None:
    path = raw(tmp_path / "x.safetensors", header, bytes(10))
    with pytest.raises(BadCheckpoint, match=says) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_sound_header_is_believed(tmp_path: Path) -> None:
    """So that the refusals above are for what they say."""
    for header in (
        SOUND,
        dict(reversed(SOUND.items())),
        json.dumps(SOUND).encode() + b"  \n",
        {**SOUND, "c": {**described("F64", [7, 0], 8, 8), "a key of a later version": 1}},
    ):
        found = read(raw(tmp_path / "x", header, bytes(10)))
        assert found.tensors["b"].nbytes == 2
    assert found.tensors["c"].shape == (7, 0)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (struct.pack("<Q", 4) + b"{}  ", "holds no tensors"),
        (struct.pack("<Q", 100) + b"{}", "ends in its header, after 10 of at least 108 bytes; fetch it again"),
        (struct.pack("<Q", 1 << 63) + b'{"a', "impossible length"),
        (struct.pack("<Q", 1) + b"{}", "no valid JSON"),
        (struct.pack("<Q", 2) + b"[]", "no safetensors file"),
        (struct.pack("<Q", 3) + b" {}", "no safetensors file"),
        (b"{}", "no weight_map"),
    ],
)
def test_what_only_looks_like_one_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(BadCheckpoint, match=says):
        read(tmp_path / "x.safetensors")


@pytest.mark.parametrize("length", [0x0280, 0x013C, 0x088B1F, 0x7B, 0x7B20, 0x0A0A0A, 0x0A1E0A])
def test_a_length_that_looks_like_another_format_is_no_matter(tmp_path: Path, length: int) -> None:
    """0x0280 is how a pickle begins, 0x3C an angle bracket, 0x088B1F gzip, 0x7B a brace, 0x0A?0A a MindSpore file."""
    path = raw(tmp_path / "x.ckpt", json.dumps(SOUND).encode().ljust(length), bytes(10))
    assert path.read_bytes()[:8] == struct.pack("<Q", length)
    assert len(read(path).tensors) == 2


def test_more_tensors_than_make_sense_are_refused_before_they_fill_the_memory(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match="more than 2,000,000 values"):
        read(raw(tmp_path / "x", b'{"a":[' + b"[]," * 1_000_000 + b"1]}"))


def test_no_more_than_the_header_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = raw(tmp_path / "x", {"a": described("U8", [1 << 30], 0, 1 << 30)})
    os.truncate(path, path.stat().st_size + (1 << 30))
    real, taken = os.pread, []

    def counting(fd: int, length: int, offset: int) -> bytes:
        taken.append(real(fd, length, offset))
        return taken[-1]

    monkeypatch.setattr(os, "pread", counting)
    assert read(path).tensors["a"].nbytes == 1 << 30
    assert sum(map(len, taken)) < 2000


def test_an_unknown_dtype_is_refused_and_the_others_are_read(tmp_path: Path) -> None:
    header = {**SOUND, "c": described("F4", [8], 10, 14), "d": described("F6_E2M3", [4], 14, 17)}
    found = read(raw(tmp_path / "x", header, bytes(17)))
    assert list(found.tensors) == ["a", "b"]
    assert found.refused == {
        "c": "msmigrate does not read its dtype F4",
        "d": "msmigrate does not read its dtype F6_E2M3",
    }
    with pytest.raises(Unsupported, match="F4"):
        convert.convert(tmp_path / "x", tmp_path / "y.safetensors")


def test_a_tensor_that_mindspore_has_packed_is_refused(tmp_path: Path) -> None:
    found = read(raw(tmp_path / "x", {**SOUND, "__metadata__": {"format": "ms", "b": "Int4"}}, bytes(10)))
    assert list(found.tensors) == ["a"]
    assert "4 bits" in found.refused["b"]


def test_what_stands_beside_the_net_in_a_training_run_is_told_apart(tmp_path: Path) -> None:
    names = ("fc.weight", "msmigrate.run", "optimizer.moments.fc.weight", "ema.fc.weight")
    content: Content = dict.fromkeys(names, ("uint8", (1,), b"x"))
    found = read(write(tmp_path / "x", content, "mindspore"))
    assert list(found.tensors) == ["fc.weight"]
    assert list(found.training or {}) == list(names[1:])
    assert found.others["optimizer.*"] == "1 tensor of the optimizer's state"
    assert len(read(write(tmp_path / "x", content, "torch")).tensors) == 4
    with pytest.raises(BadCheckpoint, match="no tensors of a net, only 1 tensor of the training run"):
        read(write(tmp_path / "x", {"msmigrate.run": content["fc.weight"]}, "mindspore"))


@pytest.mark.parametrize(
    ("metadata", "names", "framework"),
    [
        ({}, ["a.weight"], "torch"),
        ({"format": "np"}, ["a.weight", "b.gamma"], "mindspore"),
        (None, ["a.weight", "b.embedding_table"], "mindspore"),
        ({"format": "pt"}, ["b.gamma"], "torch"),  # timm's ConvNeXt has parameters of that name
        ({"format": "ms"}, ["a.weight"], "mindspore"),
    ],
)
def test_whose_names_they_are_says_the_metadata_else_the_names(
    tmp_path: Path, metadata: object, names: list[str], framework: str
) -> None:
    header = {name: described("U8", [1], at, at + 1) for at, name in enumerate(names)}
    if metadata is not None:
        header["__metadata__"] = metadata  # type: ignore[assignment]
    assert read(raw(tmp_path / "x", header, bytes(len(names)))).framework == framework


def test_wrappers_prefixes_are_taken_off_torchs_names_only(tmp_path: Path) -> None:
    one = described("U8", [1], 0, 1)
    header = {"module._orig_mod.a": one, "n_averaged": described("I64", [], 1, 9)}
    found = read(
        raw(tmp_path / "x", {**header, "__metadata__": {"module._orig_mod.b": "module._orig_mod.a"}}, bytes(9))
    )
    assert (list(found.tensors), found.prefix, found.others) == (
        ["a", "b"],
        "module._orig_mod.",
        {"n_averaged": "a tensor"},
    )
    found = read(raw(tmp_path / "x", {"module.a": one, "__metadata__": {"format": "ms"}}, bytes(1)))
    assert list(found.tensors) == ["module.a"]
    for name in ("module.", ".weight", "a..weight", "."):  # modules and tensors have names
        with pytest.raises(BadCheckpoint, match="is no name of a tensor"):
            read(raw(tmp_path / "x", {name: one}, bytes(1)))


def test_only_what_could_be_tied_is_taken_for_tied(tmp_path: Path) -> None:
    metadata = {"format": "b", "b": "a", "c": "a", "d": "absent", "author": "x"}
    found = read(raw(tmp_path / "x", {**SOUND, "__metadata__": metadata}, bytes(10)))
    assert list(found.tensors) == ["a", "b", "c"]
    assert found.tensors["c"] == found.tensors["a"] != found.tensors["b"]


def test_the_record_comes_back(tmp_path: Path) -> None:
    record = {"names": {"a": "b"}, "counters": {"n": 7}}
    found = read(write(tmp_path / "x", MIXED, "mindspore", record)).record
    assert found is not None
    assert (found["names"], found["counters"], found["shapes"]) == ({"a": "b"}, {"n": 7}, {})
    assert read(write(tmp_path / "y", MIXED, "mindspore")).record is None


def test_tied_tensors_are_stored_once_for_torch_and_all_of_them_for_mindspore(tmp_path: Path) -> None:
    with pieces_of({"a": ("float32", (500,), bytes(2000))}) as (file, (piece,)):
        both = [piece, piece._replace(name="b"), piece._replace(name="c", shape=(5, 100))]
        for framework, size in (("torch", 2), ("mindspore", 3)):
            path = tmp_path / framework
            with path.open("w+b") as output:
                safetensors_file.write([file.fileno()], output.fileno(), both, framework=framework)
                safetensors_file.verify(output.fileno(), "x", both)
            assert path.stat().st_size // 2000 == size
            assert list(read(path).tensors)[: size + 1] == (
                ["a", "c", "b"] if framework == "torch" else ["a", "b", "c"]
            )


def test_two_tensors_without_elements_are_not_tied(tmp_path: Path) -> None:
    with pieces_of({"a": ("float32", (0, 3), b"")}) as (_, (piece,)):
        assert safetensors_file.tied([piece, piece._replace(name="b")]) == {}


def test_a_file_that_differs_from_the_plan_is_noticed(tmp_path: Path) -> None:
    with pieces_of(MIXED) as (file, pieces), (tmp_path / "x").open("w+b") as output:
        safetensors_file.write([file.fileno()], output.fileno(), pieces, framework="torch")
        tied = pieces[1]._replace(name="own.tied")
        for other in (
            pieces[1:],
            [pieces[0]._replace(name="z"), *pieces[1:]],
            [pieces[0]._replace(shape=(1, 3)), *pieces[1:]],
            [pieces[0]._replace(dtype="int8"), *pieces[1:]],
            [*pieces, tied],
        ):
            with pytest.raises(BadCheckpoint, match="not what was planned"):
                safetensors_file.verify(output.fileno(), "x", other)


def test_what_the_format_has_no_place_for_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pieces_of({"__metadata__": ("uint8", (1,), b"x")}) as (_, pieces), pytest.raises(Unsupported, match="own"):
        safetensors_file.header(pieces, "torch")
    monkeypatch.setattr(safetensors_file, "MAX_HEADER", 100)
    with pieces_of(MIXED) as (_, pieces), pytest.raises(Unsupported, match="safetensors allows 100"):
        safetensors_file.header(pieces, "torch")


def test_there_is_no_key_in_such_a_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x", MIXED)
    with open_source(str(path)) as source, pytest.raises(BadCheckpoint, match="no state dict under --key model"):
        source.checkpoint("model")


FILE = struct.pack("<Q", len(json.dumps(SOUND))) + json.dumps(SOUND).encode() + bytes(10)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(FILE) - 1), st.integers(1, 255)), min_size=1, max_size=4))
def test_damage_is_one_kind_of_error(flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(FILE)
    for place, bits in flips:
        damaged[place] ^= bits
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "x").write_bytes(damaged)
        try:
            found = read(Path(folder) / "x")
        except MsmigrateError as error:
            assert "\n" not in str(error)
        else:
            spans = sorted(span for tensor in found.tensors.values() for span in tensor.spans)
            assert all(span.offset + span.length <= len(FILE) for span in spans)


def test_the_header_module_knows_the_same_dtypes_as_the_library() -> None:
    """A dtype that the library gains, and this does not know, is for somebody to look at."""
    with pytest.raises(safetensors.SafetensorError) as caught:
        safetensors.deserialize(raw_bytes({"a": described("X", [1], 0, 1)}, b"x"))
    known = set(str(caught.value).partition("expected one of ")[2].replace("`", "").partition(" at ")[0].split(", "))
    assert known == set(safetensors_file.DTYPES) | {"F4", "F6_E2M3", "F6_E3M2"}


def raw_bytes(header: object, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data
