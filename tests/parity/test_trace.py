"""A trace comes back as it was written, samples alike everywhere, and is refused in one line when it is damaged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msmigrate.errors import BadTrace
from msmigrate.migrate.checkpoint.formats.reader import MAX_TENSORS
from msmigrate.parity.trace import FORMAT, Trace, TraceWriter, file_name, sample_positions, sha256

KEY = ("gradients", "parameters", "conv1.weight", 0)


def write(folder: Path, *arrays: tuple[str, str, str, np.ndarray], sample: int | None = 100) -> Trace:
    writer = TraceWriter(folder, {"framework": "none", "recipe": "0"}, sample)
    for stage, part, name, array in arrays:
        writer.add(stage, part, name, array)
    writer.close()
    return Trace(folder)


def sound(folder: Path) -> Path:
    write(folder, ("gradients", "parameters", "conv1.weight", np.arange(6, dtype=np.float32).reshape(2, 3)))
    return folder


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 3, 4, 5), (0, 3)])
def test_what_is_written_is_read(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    array = (np.random.default_rng(0).random(shape) * 100).astype(dtype)
    trace = write(tmp_path, ("forward", "train", "a.b", array), sample=None)
    (entry,) = trace.entries.values()
    assert (entry.shape, entry.dtype, entry.sampled, entry.nonfinite, entry.label) == (shape, dtype, False, 0, "a.b")
    np.testing.assert_array_equal(trace.array(entry.key), array.reshape(-1))
    assert entry.norm == pytest.approx(np.linalg.norm(array.astype(np.float64)), rel=1e-5)


def test_elements_are_copied_and_layout_does_not_count(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    writer = TraceWriter(tmp_path, {}, None)
    writer.add("forward", "train", "before", array)
    writer.add("forward", "train", "turned", array.T)
    array[:] = -1.0
    writer.close()
    trace = Trace(tmp_path)
    np.testing.assert_array_equal(trace.array(("forward", "train", "before", 0)), np.arange(6))
    np.testing.assert_array_equal(trace.array(("forward", "train", "turned", 0)), [0, 3, 1, 4, 2, 5])


@given(st.integers(1, 5000), st.integers(1, 5000), st.text(max_size=20))
def test_samples_are_stratified_and_repeatable(size: int, count: int, name: str) -> None:
    size = max(size, count)
    positions = sample_positions(size, count)
    np.testing.assert_array_equal(positions, sample_positions(size, count))
    assert positions.dtype == np.int64 and len(positions) == count
    assert positions[0] >= 0 and positions[-1] < size
    assert (np.diff(positions) > 0).all()  # ascending and unique
    strata = [size * i // count for i in range(count + 1)]
    assert all(low <= at < high for low, at, high in zip(strata, positions, strata[1:], strict=False))


def test_samples_have_no_period() -> None:
    places = np.concatenate([sample_positions(size, 100) % 10 for size in range(1000, 1010)])
    assert np.bincount(places, minlength=10).min() > 50  # 100 expected at each place of a stratum


def test_positions_cannot_be_changed_for_the_next_tensor() -> None:
    with pytest.raises(ValueError, match="read-only"):
        sample_positions(1000, 100)[0] = 1


def test_a_sample_still_tells_of_the_whole(tmp_path: Path) -> None:
    array = np.random.default_rng(0).standard_normal(10_000).astype(np.float32)
    outside = np.setdiff1d(np.arange(array.size), sample_positions(array.size, 100))
    array[outside[:3]] = [np.nan, np.inf, -np.inf]
    writer = TraceWriter(tmp_path, {}, 100)
    writer.add("init", "values", "w", array, digest=True)
    writer.add("init", "values", "whole", array, whole=True)
    writer.close()
    trace = Trace(tmp_path)
    entry = trace.entries["init", "values", "w", 0]
    assert entry.sampled and entry.nonfinite == 3 and entry.shape == (10_000,)
    assert entry.digest == hashlib.sha256(array.tobytes()).hexdigest()
    np.testing.assert_array_equal(trace.array(entry.key), array[sample_positions(10_000, 100)])
    assert not trace.entries["init", "values", "whole", 0].sampled
    assert len(trace.array(("init", "values", "whole", 0))) == 10_000


def test_large_finite_values_do_not_count_as_infinite(tmp_path: Path) -> None:
    trace = write(tmp_path, ("forward", "eval", "x", np.full(4, 3e38, np.float32)))  # their squares overflow
    assert next(trace.select("forward")).nonfinite == 0


def test_calls_of_one_module_are_kept_apart(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, {})
    for call in range(3):
        writer.add("forward", "train", "relu", np.full(2, call, np.float32), call)
    writer.flush("forward", "train")
    writer.close()
    trace = Trace(tmp_path)
    assert [e.label for e in trace.select("forward", "train")] == ["relu", "relu#1", "relu#2"]
    assert [trace.array(e.key)[0] for e in trace.select("forward")] == [0, 1, 2]


def test_a_tensor_recorded_twice_is_refused(tmp_path: Path) -> None:
    one = np.ones(2, np.float32)
    with pytest.raises(BadTrace, match=r"conv1\.weight/0 is recorded twice"):
        write(tmp_path, (*KEY[:3], one), (*KEY[:3], one))


def test_a_recording_that_did_not_finish_is_no_trace(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, {})
    writer.add("forward", "train", "x", np.ones(2, np.float32))
    writer.flush("forward", "train")
    with pytest.raises(BadTrace, match="did not finish"):
        Trace(tmp_path)


@pytest.mark.parametrize("part", ["../../etc", "a/b", "..", "c:\\x", "step3 learning rate", "a\nb"])
def test_no_part_leaves_the_folder(tmp_path: Path, part: str) -> None:
    folder = tmp_path / "trace"
    trace = write(folder, ("update", part, "x", np.ones(2, np.float32)))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["trace"]
    assert file_name("update", part) in [p.name for p in folder.iterdir()]
    np.testing.assert_array_equal(trace.array(("update", part, "x", 0)), [1, 1])


def test_a_stage_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    damage(sound(tmp_path / "t"), lambda d: d["entries"][0].update(stage="../t/gradients"))
    assert_refused(tmp_path / "t")


def damage(folder: Path, change: Callable[[Any], Any]) -> None:
    """Change the parsed trace.json; a result that is not None takes its place."""
    path = folder / "trace.json"
    document = json.loads(path.read_text())
    result = change(document)
    path.write_text(json.dumps(document if result is None else result))


def assert_refused(folder: Path) -> None:
    """Opening the trace or reading its tensors is one line of BadTrace, whatever is wrong."""
    with pytest.raises(BadTrace) as refused:
        trace = Trace(folder)
        for key in trace.entries:
            trace.array(key)
    assert len(str(refused.value)) < 500 and "\n" not in str(refused.value)


ENTRY: dict[str, Callable[[dict], Any]] = {
    "unknown field": lambda e: e.update(colour="red"),
    "missing field": lambda e: e.pop("dtype"),
    "shape is text": lambda e: e.update(shape="2x3"),
    "shape is a number": lambda e: e.update(shape=6),
    "shape has text": lambda e: e.update(shape=["2", 3]),
    "shape is negative": lambda e: e.update(shape=[-2, -3]),
    "shape is huge": lambda e: e.update(shape=[10**30]),
    "shape is long": lambda e: e.update(shape=[1] * 100_000),
    "shape is long and huge": lambda e: e.update(shape=[10**4000] * 3000),  # whose product takes minutes
    "shape is another": lambda e: e.update(shape=[7]),
    "norm is huge": lambda e: e.update(norm=10**400),
    "order is huge": lambda e: e.update(order=10**400),
    "stage is a list": lambda e: e.update(stage=["gradients"]),
    "stage is a number": lambda e: e.update(stage=4),
    "stage is unknown": lambda e: e.update(stage="weather"),
    "call is text": lambda e: e.update(call="0"),
    "nonfinite is text": lambda e: e.update(nonfinite="none"),
    "nonfinite is null": lambda e: e.update(nonfinite=None),
    "dtype is a number": lambda e: e.update(dtype=32),
    "dtype is another": lambda e: e.update(dtype="float64"),
    "name is null": lambda e: e.update(name=None),
    "name is another": lambda e: e.update(name="conv2.weight"),
    "part is another": lambda e: e.update(part="buffers"),
    "part is a map": lambda e: e.update(part={}),
    "digest is a number": lambda e: e.update(digest=12),
    "order is text": lambda e: e.update(order="first"),
}


@pytest.mark.parametrize("case", ENTRY)
def test_a_hostile_entry_is_refused(tmp_path: Path, case: str) -> None:
    damage(sound(tmp_path), lambda d: ENTRY[case](d["entries"][0]) and None)
    assert_refused(tmp_path)


DOCUMENT: dict[str, Callable[[dict], Any]] = {
    "a list": lambda d: [d],
    "a number": lambda d: 1,
    "no entries": lambda d: {"format": FORMAT, "recipe": "0"},
    "entries are a map": lambda d: {**d, "entries": {"a": 1}},
    "entries are numbers": lambda d: {**d, "entries": [1, 2]},
    "entries are null": lambda d: {**d, "entries": None},
    "another format": lambda d: {**d, "format": FORMAT + 1},
    "an older format": lambda d: {**d, "format": FORMAT - 1},
    "no digests": lambda d: {k: v for k, v in d.items() if k != "files"},
    "digests are a list": lambda d: {**d, "files": ["0"]},
    "another digest": lambda d: {**d, "files": dict.fromkeys(d["files"], "0")},
    "a file without a digest": lambda d: {**d, "files": {}},
    "no format": lambda d: {k: v for k, v in d.items() if k != "format"},
}


@pytest.mark.parametrize("case", DOCUMENT)
def test_a_hostile_document_is_refused(tmp_path: Path, case: str) -> None:
    damage(sound(tmp_path), DOCUMENT[case])
    assert_refused(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"format": 1, "entries": [', "\ud800", "null"])
def test_what_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    (sound(tmp_path) / "trace.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert_refused(tmp_path)


def test_damaged_tensor_files_are_refused(tmp_path: Path) -> None:
    file = sound(tmp_path) / file_name(*KEY[:2])
    whole = file.read_bytes()
    for content in (b"", whole[:4], whole[:40], whole[:-3], b"\xff" * len(whole)):
        file.write_bytes(content)
        assert_refused(tmp_path)
    file.unlink()
    assert_refused(tmp_path)
    file.mkdir()
    assert_refused(tmp_path)


def test_a_tensor_file_is_looked_at_before_safetensors_reads_it(tmp_path: Path) -> None:
    """Its digest stands in the same folder, so it may be that of anything."""
    file = sound(tmp_path) / file_name(*KEY[:2])
    name = '"a#0":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    header = ("{" + ",".join([name, *[name.replace("a#", f"{at}#") for at in range(MAX_TENSORS)]]) + "}").encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header)
    damage(tmp_path, lambda d: d["files"].update({file.name: sha256(file)}))
    with pytest.raises(BadTrace, match="a checkpoint has at most"):
        Trace(tmp_path).array(KEY)


def test_one_changed_byte_is_refused_by_the_name_of_its_file(tmp_path: Path) -> None:
    file = sound(tmp_path) / file_name(*KEY[:2])
    content = bytearray(file.read_bytes())
    content[-1] ^= 1  # a number that is still one
    file.write_bytes(content)
    with pytest.raises(BadTrace, match=rf"{file.name}: .*SHA-256 differs"):
        Trace(tmp_path).array(KEY)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "odd" / "trace.json").mkdir(parents=True)
    for name in ("file", "nowhere", "odd"):
        assert_refused(tmp_path / name)
