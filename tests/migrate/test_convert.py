"""The bytes arrive, MindSpore reads them, and a failure leaves the folder as it was."""

from __future__ import annotations

import mmap
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msmigrate import atomic_files
from msmigrate.errors import Ambiguous, BadCheckpoint, BadDestination, MsmigrateError, Unsupported
from msmigrate.migrate.checkpoint import convert
from msmigrate.migrate.checkpoint.formats import byte_copy, ckpt
from tiny_checkpoints import SMALL, Tensor, floats, save

RENAMED = {
    "bn.weight": "bn.gamma",
    "bn.bias": "bn.beta",
    "bn.running_mean": "bn.moving_mean",
    "bn.running_var": "bn.moving_variance",
}


def contents(path: Path) -> dict[str, bytes]:
    """Read a MindSpore checkpoint with msmigrate's own reader: name -> bytes."""
    whole = path.read_bytes()
    with path.open("rb") as file:
        values = ckpt.entries(file.fileno(), str(path))
    return {value.tag: b"".join(whole[at : at + length] for at, length in value.pieces) for value in values}


def test_torch_to_mindspore_bit_for_bit(
    torch_files: tuple[Path, dict[str, Any]], read_by_mindspore: Callable[[Path], dict[str, Any]], tmp_path: Path
) -> None:
    """Every dtype, view and wrapper that torch writes, read back by mindspore.load_checkpoint."""
    folder, expected = torch_files
    wanted: dict[str, dict[str, Any]] = {}
    for name, tensors in expected.items():
        if name in ("text.pth", "tied_text.pth", "embed.pth"):
            continue
        result = convert.convert(folder / name, tmp_path / name.replace(".pth", ".ckpt"))
        assert {entry.name for entry in result.plan.entries} == set(tensors)
        wanted[name.replace(".pth", ".ckpt")] = {
            str(entry.target): tensors[entry.name] for entry in result.plan.entries if entry.written
        }
    found = read_by_mindspore(tmp_path)
    assert set(found) == set(wanted) >= {"dtypes.ckpt", "views.ckpt", "ddp.ckpt", "whole.ckpt", "net_legacy.ckpt"}
    for name, tensors in wanted.items():
        assert found[name] == tensors, name
    assert list(found["net.ckpt"]) == list(wanted["net.ckpt"])


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("sparse.pth", Unsupported, "sparse"),
        ("complex.pth", Unsupported, "complex64"),
        ("float8.pth", Unsupported, "float8_e4m3fn"),
        ("embed.pth", Ambiguous, "Linear or Embedding or EmbeddingBag"),
    ],
)
def test_what_torch_writes_and_cannot_be_converted(
    torch_files: tuple[Path, dict[str, Any]], tmp_path: Path, name: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        convert.convert(torch_files[0] / name, tmp_path / "x.ckpt")
    assert list(tmp_path.iterdir()) == []


def test_contents_and_names(tmp_path: Path) -> None:
    result = convert.convert(save(tmp_path / "x.pth", SMALL), tmp_path / "x.ckpt")
    assert contents(tmp_path / "x.ckpt") == {
        RENAMED.get(name, name): tensor.content for name, tensor in SMALL.items() if "num_batches" not in name
    }
    assert result.size == (tmp_path / "x.ckpt").stat().st_size
    assert result.plan.totals == {"keep": 3, "rename": 4, "transform": 0, "restore": 0, "drop": 1, "refuse": 0}


def test_chunks_are_joined_by_mindspore(
    read_by_mindspore: Callable[[Path], dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned = Tensor(floats(50, 40).content, (40, 50), strides=(1, 40))
    source = save(tmp_path / "x.pth", {"a": floats(30, 50), "t": turned, "b": floats(2)})
    convert.convert(source, tmp_path / "whole.ckpt")
    monkeypatch.setattr(ckpt, "CHUNK", 1000)
    monkeypatch.setattr(byte_copy, "STRETCH", 700)
    convert.convert(source, tmp_path / "cut.ckpt")
    assert (tmp_path / "cut.ckpt").read_bytes().count(b"Float32") == 6 + 8 + 1
    assert contents(tmp_path / "cut.ckpt") == contents(tmp_path / "whole.ckpt")
    found = read_by_mindspore(tmp_path)
    assert found["cut.ckpt"] == found["whole.ckpt"]


@pytest.mark.full
def test_a_tensor_larger_than_a_chunk(read_by_mindspore: Callable[[Path], dict[str, Any]], tmp_path: Path) -> None:
    count = (600 << 20) // 4
    path = save(tmp_path / "x.pth", {"big": Tensor(bytes(count * 4 - 4) + struct.pack("<f", 7), (count,))})
    convert.convert(path, tmp_path / "x.ckpt")
    path.unlink()
    assert read_by_mindspore(tmp_path)["x.ckpt"]["big"][:2] == [[count], "float32"]


LARGE = {"a": floats(300_000), "b": floats(300_000, start=5), "c": floats(3)}


@pytest.mark.parametrize("missing", ["posix_fallocate", "posix_fadvise", "O_TMPFILE"])
def test_works_without_what_other_systems_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.delattr(os, missing)
    for _ in range(2):
        convert.convert(save(tmp_path / "x.pth", LARGE), tmp_path / "x.ckpt", force=True)
    assert contents(tmp_path / "x.ckpt") == {name: tensor.content for name, tensor in LARGE.items()}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.ckpt", "x.pth"]


def test_works_on_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    monkeypatch.setattr(os, "link", refuse)
    source, rival = save(tmp_path / "x.pth", LARGE), tmp_path / "y.ckpt"
    convert.convert(source, tmp_path / "x.ckpt")
    with pytest.raises(BadDestination, match="appeared while"):
        convert.convert(source, rival, progress=lambda done, total: rival.write_bytes(b"rival") and None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.ckpt", "x.pth", "y.ckpt"]


def test_falls_back_when_the_source_cannot_be_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> mmap.mmap:
        raise OSError(19, "No such device")

    monkeypatch.setattr(byte_copy.mmap, "mmap", refuse)
    convert.convert(save(tmp_path / "x.pth", LARGE), tmp_path / "x.ckpt")
    assert contents(tmp_path / "x.ckpt")["b"] == LARGE["b"].content


def listing(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(params=["nameless", "named"])
def temporary(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the nameless file that Linux offers, and with a temporary name."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)


@pytest.mark.usefixtures("temporary")
@pytest.mark.parametrize("old", [None, b"the old file"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError, OSError(28, "No space left on device")])
def test_an_interruption_leaves_the_folder_as_it_was(tmp_path: Path, old: bytes | None, kind: Any) -> None:
    source = save(tmp_path / "x.pth", LARGE)
    if old is not None:
        (tmp_path / "x.ckpt").write_bytes(old)
    before = listing(tmp_path)

    def interrupt(done: int, total: int) -> None:
        assert 0 < done <= total
        raise kind

    wanted = BadDestination if isinstance(kind, OSError) else kind
    with pytest.raises(wanted):
        convert.convert(source, tmp_path / "x.ckpt", force=True, progress=interrupt)
    assert listing(tmp_path) == before


@pytest.mark.usefixtures("temporary")
def test_a_source_cut_short_while_it_is_read(tmp_path: Path) -> None:
    source = save(tmp_path / "x.pth", LARGE)
    with pytest.raises(BadCheckpoint, match="became shorter"):
        convert.convert(source, tmp_path / "x.ckpt", progress=lambda done, total: os.truncate(source, 1000))
    assert [path.name for path in tmp_path.iterdir()] == ["x.pth"]


@pytest.mark.parametrize("left", [5 << 20, (3 << 20) + 1000, 0])
def test_a_source_cut_short_while_it_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
    """Not even then is the process killed, or a single byte made up."""
    source = save(tmp_path / "x.pth", {"a": floats(2_000_000)})
    real = mmap.mmap

    def cut(fd: int, length: int, *rest: Any, offset: int) -> mmap.mmap:
        window = real(fd, length, *rest, offset=offset)
        if offset + length > left:
            os.truncate(source, left)
        return window

    monkeypatch.setattr(byte_copy.mmap, "mmap", cut)
    with pytest.raises(BadCheckpoint, match="became shorter"):
        convert.convert(source, tmp_path / "x.ckpt")
    assert [path.name for path in tmp_path.iterdir()] == ["x.pth"]


def test_a_source_on_a_failing_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = save(tmp_path / "x.pth", LARGE)
    real, write = os.pread, os.pwrite

    def fail(fd: int, length: int, offset: int) -> bytes:
        if length > 100_000:
            raise OSError(5, "Input/output error")
        return real(fd, length, offset)

    def fail_at_once(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    def fail_in_kernel(fd: int, data: bytes | memoryview, offset: int) -> int:
        if len(data) > 100_000:
            raise OSError(14, "Bad address")  # what writing from a mapped page says that cannot be read
        return write(fd, data, offset)

    monkeypatch.setattr(os, "pread", fail)
    monkeypatch.setattr(os, "pwrite", fail_in_kernel)
    with pytest.raises(BadCheckpoint, match="cannot read the source: Input/output error"):
        convert.convert(source, tmp_path / "x.ckpt")
    monkeypatch.setattr(os, "pread", fail_at_once)
    with pytest.raises(BadCheckpoint, match=r"cannot read .*: Input/output error"):
        convert.convert(source, tmp_path / "x.ckpt")
    assert [path.name for path in tmp_path.iterdir()] == ["x.pth"]


@pytest.mark.usefixtures("temporary")
def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    source, rival = save(tmp_path / "x.pth", LARGE), tmp_path / "x.ckpt"
    with pytest.raises(BadDestination, match="appeared while"):
        convert.convert(source, rival, progress=lambda done, total: rival.write_bytes(b"rival") and None)
    assert rival.read_bytes() == b"rival"
    assert len(list(tmp_path.iterdir())) == 2


def test_even_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    save(tmp_path / "x.pth", LARGE)
    script = (
        "import os, signal; from msmigrate.migrate.checkpoint.convert import convert; "
        "convert('x.pth', 'x.ckpt', progress=lambda done, total: os.kill(os.getpid(), signal.SIGKILL))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["x.pth"]


def test_a_full_disk_is_known_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs(tmp_path)
    nearly_full = os.statvfs_result((*real[:4], 0, *real[5:]))
    monkeypatch.setattr(os, "statvfs", lambda path: nearly_full)
    with pytest.raises(BadDestination, match="the disk has 0 left"):
        convert.convert(save(tmp_path / "x.pth", SMALL), tmp_path / "x.ckpt")


def test_symbolic_links_are_followed_and_modes_are_ordinary(tmp_path: Path) -> None:
    source = save(tmp_path / "x.pth", SMALL)
    (tmp_path / "real").mkdir()
    (tmp_path / "x.ckpt").symlink_to(tmp_path / "real" / "y.ckpt")
    previous = os.umask(0o027)
    try:
        convert.convert(source, tmp_path / "x.ckpt")
    finally:
        os.umask(previous)
    assert (tmp_path / "x.ckpt").is_symlink()
    assert (tmp_path / "real" / "y.ckpt").stat().st_mode & 0o777 == 0o640


def test_destinations_that_cannot_be(tmp_path: Path) -> None:
    source = save(tmp_path / "x.pth", SMALL)
    (tmp_path / "there.ckpt").write_bytes(b"old")
    (tmp_path / "folder.ckpt").mkdir()
    os.mkfifo(tmp_path / "pipe.ckpt")
    (tmp_path / "link.ckpt").symlink_to(source)
    os.link(source, tmp_path / "same.ckpt")
    for name, force, says in (
        ("there.ckpt", False, "pass --force"),
        ("folder.ckpt", True, "is a directory"),
        ("pipe.ckpt", True, "not a regular file"),
        ("link.ckpt", True, "is the source itself"),
        ("same.ckpt", True, "is the source itself"),
        ("absent/x.ckpt", True, "does not exist; create it"),
        ("x.pth", True, "is the source itself"),
    ):
        with pytest.raises(BadDestination, match=says):
            convert.convert(source, tmp_path / name, force=force)
    assert (tmp_path / "there.ckpt").read_bytes() == b"old"


def test_a_written_file_that_differs_from_the_plan_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = ckpt.header
    monkeypatch.setattr(ckpt, "header", lambda tag, *rest: header(f"z{tag}", *rest))
    with pytest.raises(MsmigrateError, match="not what was planned"):
        convert.convert(save(tmp_path / "x.pth", SMALL), tmp_path / "x.ckpt")
    assert not (tmp_path / "x.ckpt").exists()


def test_an_unwritable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_files.os, "access", lambda *_: False)  # tests may run as root, whom no mode stops
    with pytest.raises(BadDestination, match="no permission"):
        convert.convert(save(tmp_path / "x.pth", SMALL), tmp_path / "x.ckpt")


def test_bytes_that_are_shared_without_end_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand different views of one megabyte would fill a disk; what is the same is written once."""
    monkeypatch.setattr(convert, "ALWAYS", 0)
    whole = floats(10_000).content
    names = {
        f"layers.{number}.conv.weight": Tensor(whole, (180, 5, 5, 2), offset=number, storage="0")
        for number in range(40)
    }
    few = dict(list(names.items())[:15])
    assert convert.convert(save(tmp_path / "few.pth", few), tmp_path / "few.ckpt").size > 500_000
    path = save(tmp_path / "x.pth", names)
    with pytest.raises(BadCheckpoint, match=r"its tensors, which share them, 1,440,000: more than 16 times as many"):
        convert.convert(path, tmp_path / "x.ckpt")
    assert not (tmp_path / "x.ckpt").exists()
