"""A checkpoint in several files is read as one, and written so; the index is held to the files, and they to it."""

from __future__ import annotations

import json
import os
import resource
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msmigrate.errors import Ambiguous, BadCheckpoint, BadDestination
from msmigrate.migrate.checkpoint import convert
from msmigrate.migrate.checkpoint.formats import safetensors_file, sharded
from msmigrate.migrate.checkpoint.formats.reader import ByteRange, Checkpoint, Piece, Tensor
from msmigrate.migrate.checkpoint.formats.registry import open_source
from msmigrate.migrate.checkpoint.formats.sharded import INDEX, plan_shards, write_folder
from safetensors.numpy import load_file
from tiny_checkpoints import BATCH_NORM, SMALL, floats, save


def safetensors(path: Path, tensors: Mapping[str, bytes], metadata: Mapping[str, str] | None = None) -> Path:
    """A file of tensors of single bytes."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    at = 0
    for name, content in tensors.items():
        header[name] = {"dtype": "U8", "shape": [len(content)], "data_offsets": [at, at + len(content)]}
        at += len(content)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensors.values()))
    return path


def index(folder: Path, places: Mapping[str, str], name: str = "model.safetensors") -> Path:
    path = folder / f"{name}{INDEX}"
    path.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    return path


def read(path: Path) -> Checkpoint:
    with open_source(str(path)) as source:
        return source.checkpoint()


def bytes_of(path: Path) -> dict[str, bytes]:
    with open_source(str(path)) as source:
        return {
            name: b"".join(os.pread(source.descriptors[file], length, at) for at, length, file in tensor.spans)
            for name, tensor in source.checkpoint().tensors.items()
        }


def two(folder: Path) -> Path:
    safetensors(folder / "b", {"x": b"xx", "y": b"y"})
    safetensors(folder / "a", {"z": b"zzz"})
    return index(folder, {"x": "b", "y": "b", "z": "a"})


def test_all_files_together_are_the_checkpoint(tmp_path: Path) -> None:
    path = two(tmp_path)
    for source in (tmp_path, path):
        assert bytes_of(source) == {"x": b"xx", "y": b"y", "z": b"zzz"}
    found = read(path)
    assert list(found.tensors) == ["z", "x", "y"]  # in the order of the files
    assert (found.framework, found.format) == ("torch", "safetensors in 2 files")
    path.rename(tmp_path / "anything")  # what it is says its content
    assert bytes_of(tmp_path / "anything")["z"] == b"zzz"


@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_shards_of_either_format_hold_what_one_file_does(tmp_path: Path, kind: str) -> None:
    halves = [dict(list(SMALL.items())[:3]), dict(list(SMALL.items())[3:])]
    names = [f"part-{number}.{kind}" for number in (1, 2)]
    (tmp_path / "saved").mkdir()
    for name, half in zip(names, halves, strict=True):
        convert.convert(save(tmp_path / "saved" / name, half), tmp_path / name, to="torch")
    index(tmp_path, {tensor: name for name, half in zip(names, halves, strict=True) for tensor in half})
    assert bytes_of(tmp_path) == {name: tensor.content for name, tensor in SMALL.items()}
    convert.convert(tmp_path, tmp_path / "x.ckpt")
    save(tmp_path / "whole.pth", SMALL)
    convert.convert(tmp_path / "whole.pth", tmp_path / "y.ckpt")
    assert bytes_of(tmp_path / "x.ckpt") == bytes_of(tmp_path / "y.ckpt")


def test_mindspore_files_may_be_shards_too(tmp_path: Path) -> None:
    for name, tensors in (("1.ckpt", BATCH_NORM), ("2.ckpt", {"own.a": floats(4, 3)})):
        convert.convert(save(tmp_path / "x.pth", tensors), tmp_path / name)
    index(tmp_path, {**{f"bn.{end}": "1.ckpt" for end in ("gamma", "beta", "moving_mean", "moving_variance")}})
    assert read(tmp_path).framework == "mindspore"
    found = read(index(tmp_path, {**dict.fromkeys(read(tmp_path).tensors, "1.ckpt"), "own.a": "2.ckpt"}))
    assert (found.framework, found.format, len(found.tensors)) == ("mindspore", "MindSpore ckpt in 2 files", 5)
    assert found.record is not None
    assert found.record["counters"] == {"bn.num_batches_tracked": 7}


def test_the_training_state_may_be_in_any_shard(tmp_path: Path) -> None:
    for name, tensors in (
        ("1.ckpt", {"own.a": floats(4, 3)}),
        ("2.ckpt", {"own.b": floats(1), "optimizer.c": floats(1)}),
    ):
        convert.convert(save(tmp_path / "x.pth", tensors), tmp_path / name)
    safetensors(tmp_path / "3", {"msmigrate.run": b"x"}, {"format": "ms"})
    found = read(index(tmp_path, {"own.a": "1.ckpt", "own.b": "2.ckpt", "optimizer.c": "2.ckpt", "msmigrate.run": "3"}))
    assert list(found.tensors) == ["own.a", "own.b"]
    assert list(found.training or {}) == ["optimizer.c", "msmigrate.run"]


def test_wrappers_prefixes_are_taken_off_when_all_files_have_them(tmp_path: Path) -> None:
    safetensors(tmp_path / "a", {"module.x": b"x"})
    save(tmp_path / "b", {"module.y": floats(1), "n_averaged": floats(1)})
    places = {"module.x": "a", "module.y": "b"}
    assert list(read(index(tmp_path, places)).tensors) == ["x", "y"]
    assert read(index(tmp_path, {**places, "n_averaged": "b"})).others == {"n_averaged": "a tensor"}
    safetensors(tmp_path / "c", {"head": b"h"})
    found = read(index(tmp_path, {**places, "head": "c"}))
    assert (list(found.tensors), found.prefix) == (["module.x", "module.y", "head"], "")


def test_whose_names_they_are_one_file_may_say_for_all(tmp_path: Path) -> None:
    safetensors(tmp_path / "a", {"x.gamma": b"x"})
    safetensors(tmp_path / "b", {"y.weight": b"y"})
    path = index(tmp_path, {"x.gamma": "a", "y.weight": "b"})
    assert read(path).framework == "mindspore"
    safetensors(tmp_path / "b", {"y.weight": b"y"}, {"format": "pt"})
    assert read(path).framework == "torch"
    safetensors(tmp_path / "a", {"x.gamma": b"x"}, {"format": "ms"})
    with pytest.raises(BadCheckpoint, match=r"some of its files say that they are torch's, and some"):
        read(path)


def test_a_tied_tensor_may_be_named_or_not(tmp_path: Path) -> None:
    safetensors(tmp_path / "a", {"x": b"xx"}, {"tied": "x"})
    safetensors(tmp_path / "b", {"y": b"y"})
    for more in ({}, {"tied": "a"}):
        found = read(index(tmp_path, {"x": "a", "y": "b", **more}))
        assert found.tensors["tied"] == found.tensors["x"]
    safetensors(tmp_path / "b", {"y": b"y"}, {"tied": "y"})
    with pytest.raises(BadCheckpoint, match="tied to two different tensors"):
        read(tmp_path)
    twice = {"x": floats(2)._replace(storage="0"), "x2": floats(2)._replace(storage="0"), "other": floats(2)}
    save(tmp_path / "a", twice)
    safetensors(tmp_path / "b", {"y": b"y"})
    found = read(index(tmp_path, {"x": "a", "y": "b", "other": "a"}))
    assert found.tensors["x2"] == found.tensors["x"] != found.tensors["other"]


def test_index_and_files_that_disagree_are_refused(tmp_path: Path) -> None:
    two(tmp_path)
    for places, says in (
        ({"x": "b", "y": "b", "z": "a", "w": "a"}, "a lacks w, which the index says is in it; fetch it again"),
        ({"x": "b", "z": "a"}, "b holds y, which the index does not list"),
        ({"x": "b", "y": "a", "z": "a"}, "a lacks y"),
        ({"x": "b", "y": "b", "z": "c"}, "cannot read .*c: No such file"),
        ({"x": "b", "y": "b", "z": f"model.safetensors{INDEX}"}, "is JSON, not a checkpoint"),
    ):
        with pytest.raises(BadCheckpoint, match=says):
            read(index(tmp_path, places))


def test_a_tensor_that_two_files_hold_is_refused(tmp_path: Path) -> None:
    """Even where the other file's is tied to one that belongs there: which of the two is meant?"""
    safetensors(tmp_path / "a", {"x": b"x"})
    save(tmp_path / "b", {"x": floats(1)._replace(storage="0"), "y": floats(1)._replace(storage="0")})
    with pytest.raises(BadCheckpoint, match="b holds x, which the index does not list"):
        read(index(tmp_path, {"x": "a", "y": "b"}))


@pytest.mark.parametrize(
    "name", ["../a", "/etc/passwd", "sub/a", "..", ".", "", "a\0b", "a\\b", "a\n", "x" * 256, 3, None]
)
def test_an_index_names_files_beside_it_only(tmp_path: Path, name: Any) -> None:
    (tmp_path / "folder").mkdir()
    two(tmp_path)
    with pytest.raises(BadCheckpoint, match=r"z should be in .*, which is not the name of a file next to it") as caught:
        read(index(tmp_path / "folder", {"z": name}))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{}", "has no weight_map"),
        (b' {"weight_map": {}}', "has no weight_map"),
        (b'{"weight_map": ["a"]}', "has no weight_map"),
        (b'{"weight_map": {"x": "a"}', "no valid JSON"),
        (b'{"weight_map": {"x": "a", "x": "b"}}', "the key 'x' twice"),
        (b'{"weight_map": {"x\\n": "a"}}', "no name of a tensor"),
        (b'{"a":' * 100_000, "no valid JSON"),
        (b'{"weight_map": "\xff"}', "no valid JSON"),
        (b'{"weight_map": {' + b",".join(b'"%d":"%d"' % (n, n) for n in range(10_001)) + b"}}", "names 10,001 files"),
    ],
)
def test_an_index_that_is_none_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / f"x{INDEX}").write_bytes(content)
    with pytest.raises(BadCheckpoint, match=says) as caught:
        read(tmp_path)
    assert str(caught.value).startswith(str(tmp_path / f"x{INDEX}"))


def test_an_index_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharded, "MAX_INDEX", 10)
    with pytest.raises(BadCheckpoint, match="more than 10 bytes"):
        read(two(tmp_path))


def test_a_folder_without_an_index_may_hold_one_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match="no checkpoint and no index; it holds nothing"):
        read(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BadCheckpoint, match=r"no checkpoint and no index; it holds config\.json"):
        read(tmp_path)
    for name in ("x.safetensors", "x.bin"):
        path = safetensors(tmp_path / name, {"x": b"x"})
        assert bytes_of(tmp_path) == {"x": b"x"}
        path.rename(tmp_path / "weights")  # which nobody would know by its name
    (tmp_path / "weights").rename(tmp_path / "x.ckpt")
    assert bytes_of(tmp_path) == {"x": b"x"}
    save(tmp_path / "y.pth", SMALL)
    with pytest.raises(BadCheckpoint, match=r"several checkpoints .* it holds config\.json, x\.ckpt, y\.pth"):
        read(tmp_path)
    two(tmp_path)
    assert len(read(tmp_path).tensors) == 3
    index(tmp_path, {}, "pytorch_model.bin")
    with pytest.raises(Ambiguous, match=r"model\.safetensors\.index\.json and pytorch_model\.bin\.index\.json"):
        read(tmp_path)


def test_too_many_files_for_this_process_are_explained(tmp_path: Path) -> None:
    names = [f"{number:03}" for number in range(100)]
    for name in names:
        safetensors(tmp_path / name, {name: b"x"})
    index(tmp_path, dict(zip(names, names, strict=True)))
    before = len([*Path("/proc/self/fd").iterdir()])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + 50, hard))
    try:
        with pytest.raises(
            BadCheckpoint, match="its 100 files cannot all be open at once; allow it with `ulimit -n 200`"
        ):
            read(tmp_path)
        assert len([*Path("/proc/self/fd").iterdir()]) == before  # none was left open
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(read(tmp_path).tensors) == 100


def piece(name: str, size: int) -> Piece:
    """What nobody will look at the content of; no two are tied."""
    return Piece(name, "uint8", (size,), Tensor("uint8", (size,), (1,), (ByteRange(hash(name), size),)))


def test_tensors_are_divided_in_order() -> None:
    def names(sizes: list[int], most: int) -> list[str]:
        shards = plan_shards([piece(chr(97 + at), size) for at, size in enumerate(sizes)], most)
        return ["".join(piece.name for piece in shard) for shard in shards]

    assert names([], 5) == []
    assert names([5], 5) == ["a"]
    assert names([2, 3, 1], 5) == ["ab", "c"]
    assert names([2, 4, 1], 5) == ["a", "bc"]
    assert names([2, 9, 3], 5) == ["ac", "b"]
    assert names([9, 9], 5) == ["a", "b"]
    assert names([0, 5, 0], 5) == ["abc"]
    tied = [piece("a", 3), piece("b", 3), piece("c", 3)]
    shards = plan_shards(tied, 5, {"c": "a"})
    assert [[piece.name for piece in shard] for shard in shards] == [["a", "c"], ["b"]]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9)), st.integers(1, 12))
def test_every_tensor_is_in_one_shard_that_is_no_larger_than_allowed(sizes: list[int], most: int) -> None:
    content = [piece(str(at), size) for at, size in enumerate(sizes)]
    shards = plan_shards(content, most)
    assert sorted(piece for shard in shards for piece in shard) == sorted(content)
    for shard in shards:
        assert shard
        assert len(shard) == 1 or sum(piece.nbytes for piece in shard) <= most
        assert [int(piece.name) for piece in shard] == sorted(int(piece.name) for piece in shard)


def test_a_folder_of_shards_is_written_and_read_back(tmp_path: Path) -> None:
    source = save(tmp_path / "x.pth", SMALL)
    seen: list[tuple[int, int]] = []
    result = convert.convert(
        source, f"{tmp_path}/out/", max_shard_size=100, progress=lambda done, size: seen.append((done, size))
    )
    folder = tmp_path / "out"
    names = sorted(path.name for path in folder.iterdir())
    count = len(names) - 1
    assert count == 3
    assert names == [
        *(f"model-{n:05}-of-{count:05}.safetensors" for n in range(1, count + 1)),
        "model.safetensors.index.json",
    ]
    assert result.size == sum(path.stat().st_size for path in folder.iterdir())
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert {size for _, size in seen} == {seen[-1][0]} == {result.size - (folder / names[-1]).stat().st_size}
    said = json.loads((folder / names[-1]).read_text())
    whole = convert.convert(source, tmp_path / "whole.ckpt").plan
    assert said["metadata"] == {"total_size": whole.nbytes, "format": "ms"}
    arrays = {name: load_file(folder / name) for name in names[:-1]}
    assert {name: file for file, held in arrays.items() for name in held} == said["weight_map"]
    assert bytes_of(folder) == bytes_of(tmp_path / "whole.ckpt")
    found = read(folder)
    assert found.framework == "mindspore"
    assert found.record is not None
    assert found.record["counters"] == {"bn.num_batches_tracked": 7}
    convert.convert(folder, tmp_path / "back.safetensors")
    assert bytes_of(tmp_path / "back.safetensors") == {name: tensor.content for name, tensor in SMALL.items()}


def test_a_folder_of_one_file_needs_no_index(tmp_path: Path) -> None:
    convert.convert(save(tmp_path / "x.pth", SMALL), tmp_path / "out", to="torch")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["model.safetensors"]
    assert bytes_of(tmp_path / "out") == {name: tensor.content for name, tensor in SMALL.items()}


def test_tied_weights_are_in_one_shard_and_one_entry_of_the_index(tmp_path: Path) -> None:
    shared = floats(30)._replace(storage="0")
    source = save(tmp_path / "x.pth", {"own.a": shared, "own.b": floats(20), "own.tied": shared})
    convert.convert(source, tmp_path / "out", to="torch", max_shard_size=150)
    said = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    assert set(said["weight_map"]) == {"own.a", "own.b"}
    assert said["metadata"]["total_size"] == 200
    found = read(tmp_path / "out").tensors
    assert found["own.tied"] == found["own.a"]


def listing(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interruption_in_the_last_shard_leaves_no_shard(tmp_path: Path, old: bool, kind: Any) -> None:
    source = save(tmp_path / "x.pth", SMALL)
    if old:
        convert.convert(source, tmp_path / "out")
    before = listing(tmp_path)

    def interrupt(done: int, total: int) -> None:
        if done == total:
            raise kind

    with pytest.raises(BadDestination if isinstance(kind, OSError) else kind):
        convert.convert(source, tmp_path / "out", max_shard_size=100, force=True, progress=interrupt)
    assert listing(tmp_path) == before


def test_a_shard_that_differs_from_the_plan_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = save(tmp_path / "x.pth", SMALL)
    real = safetensors_file.write

    def wrong(sources: Any, output: int, content: list[Piece], **rest: Any) -> int:
        return real(sources, output, content[1:] if len(content) > 1 else content, **rest)

    monkeypatch.setattr(safetensors_file, "write", wrong)
    with pytest.raises(BadCheckpoint, match=r"out/model-0000\d-of-00003\.safetensors: what was written is not"):
        convert.convert(source, tmp_path / "out", max_shard_size=100)
    assert [path.name for path in tmp_path.iterdir()] == ["x.pth"]


def test_destinations_of_shards(tmp_path: Path) -> None:
    source = save(tmp_path / "x.pth", SMALL)
    for name, more, says in (
        (
            "x.safetensors",
            {"max_shard_size": 100},
            r"is one file and would hold \d+ bytes, .* allows 100; give the name",
        ),
        ("x.ckpt", {"max_shard_size": 100}, "is one file"),
        ("out", {"max_shard_size": 0}, "at least one byte"),
        ("out.7b", {}, "a folder's name ends in a slash"),
    ):
        with pytest.raises(BadDestination, match=says):
            convert.convert(source, tmp_path / name, **more)
    convert.convert(source, tmp_path / "y.safetensors", max_shard_size=10_000)
    convert.convert(source, f"{tmp_path}/out.7b/")
    with pytest.raises(BadDestination, match="exists; pass --force"):
        convert.convert(source, tmp_path / "out.7b")
    convert.convert(source, tmp_path / "out.7b", force=True)
    with pytest.raises(BadDestination, match="is the source itself, or the source is in it"):
        convert.convert(tmp_path / "out.7b", tmp_path / "out.7b", force=True)
    with pytest.raises(BadDestination, match="which is read"):
        convert.convert(tmp_path / "out.7b", tmp_path / "out.7b" / "model.safetensors", force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.7b", "x.pth", "y.safetensors"]


def test_more_shards_than_could_be_read_again_are_not_written(tmp_path: Path) -> None:
    content = [piece(str(number), 1) for number in range(10_001)]
    with pytest.raises(BadDestination, match="files of 1 bytes would be 10,001, more than 10,000"):
        write_folder(tmp_path / "out", [], content, most=1, framework="torch")
    assert list(tmp_path.iterdir()) == []
