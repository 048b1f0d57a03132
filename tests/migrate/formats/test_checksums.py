"""A single bit that differs from what a file's checksum says is bad input, and leaves no new file."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from msmigrate.errors import BadCheckpoint
from msmigrate.migrate.checkpoint import convert, inspect_file
from msmigrate.migrate.checkpoint.formats import byte_copy
from msmigrate.migrate.checkpoint.formats.byte_copy import checksums_compared, compare_checksums
from msmigrate.migrate.checkpoint.formats.ckpt import CRC_MARK
from msmigrate.migrate.checkpoint.formats.registry import check_before_torch, open_source
from tiny_checkpoints import SMALL, Tensor, floats, integer, mapping, rebuilt, save, write
from tiny_legacy import save_legacy

LARGE = {"fc.weight": Tensor(bytes(range(256)) * 12_000, (3000, 256), "float32"), "fc.bias": floats(3000)}
MODEL = mapping([("own.a", rebuilt(floats(4), "0"))])


def flipped(path: Path, at: int, bit: int = 1) -> Path:
    content = bytearray(path.read_bytes())
    content[at] ^= bit
    path.write_bytes(content)
    return path


def where(path: Path, name: str) -> int:
    """Where the bytes of a tensor begin."""
    with open_source(str(path)) as source:
        return source.checkpoint().tensors[name].spans[0].offset


@pytest.mark.parametrize("destination", ["x.ckpt", "x.safetensors", "x/"])
@pytest.mark.parametrize("name", list(SMALL))
def test_every_storage_is_compared(tmp_path: Path, name: str, destination: str) -> None:
    """Also that of a counter, which is not copied but read."""
    path = save(tmp_path / "x.pth", SMALL)
    flipped(path, where(path, name) + 3)
    with pytest.raises(
        BadCheckpoint, match=rf"x\.pth is damaged: the checksum of archive/data/\d is not .* of {name}\."
    ):
        convert.convert(path, f"{tmp_path}/{destination}")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.pth"]


def test_the_bytes_that_are_copied_in_large_pieces_are_compared_too(tmp_path: Path) -> None:
    path = save(tmp_path / "x.pth", LARGE)
    assert convert.convert(path, tmp_path / "x.ckpt").size > 3_000_000
    flipped(path, where(path, "fc.weight") + 2_999_999, 128)
    with pytest.raises(BadCheckpoint, match=r"those of fc\.weight"):
        convert.convert(path, tmp_path / "y.ckpt")
    assert not (tmp_path / "y.ckpt").exists()


def test_a_bit_that_no_tensor_sees_counts(tmp_path: Path) -> None:
    """A tensor may be a view of a part; the checksum is that of the whole storage."""
    view = Tensor(floats(8).content, (2,), "float32", offset=1)
    path = save(tmp_path / "x.pth", {"own.a": view})
    flipped(path, where(path, "own.a") + 20)
    with pytest.raises(BadCheckpoint, match="the checksum of archive/data/0"):
        convert.convert(path, tmp_path / "x.ckpt")


def test_what_is_not_read_is_not_compared(tmp_path: Path) -> None:
    body = mapping([("model", MODEL), ("ema", mapping([("own.a", rebuilt(floats(4), "1"))]))])
    path = write(tmp_path / "x.pth", body, {"0": floats(4).content, "1": floats(4).content})
    content = path.read_bytes()
    flipped(path, content.rindex(floats(4).content) + 1)
    assert convert.convert(path, tmp_path / "x.ckpt", key="model").plan.totals["keep"] == 1
    with pytest.raises(BadCheckpoint, match="of archive/data/1"):
        convert.convert(path, tmp_path / "y.ckpt", key="ema")


def test_a_training_state_is_compared_where_it_is_converted(tmp_path: Path) -> None:
    state = mapping([("momentum_buffer", rebuilt(floats(4), "1"))])
    options = {"lr": 1, "momentum": 1, "dampening": 0, "weight_decay": 0, "nesterov": 0}
    group = mapping([("params", b"](K\x00e"), *((name, integer(value)) for name, value in options.items())])
    optimizer = mapping([("state", b"}K\x00" + state + b"s"), ("param_groups", b"]" + group + b"a")])
    path = write(
        tmp_path / "x.pth",
        mapping([("model", MODEL), ("optimizer", optimizer)]),
        {"0": floats(4).content, "1": floats(4, start=7).content},
    )
    flipped(path, path.read_bytes().index(floats(4, start=7).content) + 1)
    convert.convert(path, tmp_path / "x.ckpt")
    with pytest.raises(BadCheckpoint, match="of archive/data/1"):
        convert.convert(path, tmp_path / "y.ckpt", training=True)


def test_several_files_are_compared_each(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    names = {"fc.weight": "a.bin", "fc.bias": "b.bin"}
    for name, file in names.items():
        save(folder / file, {name: SMALL[name]})
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": names}))
    convert.convert(folder, tmp_path / "x.ckpt")
    flipped(folder / "b.bin", where(folder / "b.bin", "fc.bias"))
    with pytest.raises(BadCheckpoint, match=r"of archive/data/0 is not .* of fc\.bias\."):
        convert.convert(folder, tmp_path / "y.ckpt")


def test_a_file_without_checksums_is_taken(tmp_path: Path) -> None:
    """As torch writes one after set_crc32_options(False): all of them are 0."""
    path = save(tmp_path / "x.pth", SMALL)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            content = content.replace(entry.CRC.to_bytes(4, "little"), bytes(4))
    path.write_bytes(content)
    flipped(path, where(path, "fc.weight"))
    assert convert.convert(path, tmp_path / "x.ckpt").size
    assert inspect_file.inspect_file(path, crc=True).compared == 0
    legacy = save_legacy(tmp_path / "y.pth", SMALL)
    assert convert.convert(legacy, tmp_path / "y.ckpt").size


def test_a_checkpoint_of_mindspore_is_compared_with_its_own_checksum(tmp_path: Path) -> None:
    convert.convert(save(tmp_path / "x.pth", SMALL), tmp_path / "x.ckpt")
    content = (tmp_path / "x.ckpt").read_bytes()
    (tmp_path / "y.ckpt").write_bytes(content + CRC_MARK + zlib.crc32(content).to_bytes(10, "big"))
    convert.convert(tmp_path / "y.ckpt", tmp_path / "y.pth")
    flipped(tmp_path / "y.ckpt", where(tmp_path / "y.ckpt", "fc.weight"))
    with pytest.raises(BadCheckpoint, match=r"y\.ckpt is damaged: the checksum of all of it"):
        convert.convert(tmp_path / "y.ckpt", tmp_path / "z.pth")
    assert convert.convert(tmp_path / "y.ckpt", tmp_path / "z.pth", crc=False).size


def test_the_commands(tmp_path: Path) -> None:
    path = save(tmp_path / "x.pth", SMALL)
    flipped(path, where(path, "fc.weight"))

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "msmigrate", *map(str, arguments)]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    for done in (run("convert-ckpt", path, tmp_path / "x.ckpt"), run("inspect", path, "--crc")):
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert f"msmigrate convert-ckpt {path} OUT --no-crc" in done.stderr
    assert not (tmp_path / "x.ckpt").exists()
    assert run("inspect", path).returncode == 0
    assert run("convert-ckpt", path, tmp_path / "x.ckpt", "--no-crc").returncode == 0
    save(path, SMALL)
    assert "the checksums of 336 bytes are right" in run("inspect", path, "--crc").stdout


def test_torch_gets_no_damaged_or_hostile_file(tmp_path: Path) -> None:
    path = save(tmp_path / "x.pth", SMALL)
    check_before_torch(str(path))
    flipped(path, where(path, "fc.weight"))
    with pytest.raises(BadCheckpoint, match="the checksum of archive/data/"):
        check_before_torch(str(path))
    write(path, mapping([("model", MODEL), ("evil", b"cos\nsystem\n")]), {"0": floats(4).content})
    with pytest.raises(BadCheckpoint, match=r"names os\.system"):
        check_before_torch(str(path))


def shortened(path: Path) -> int:
    path.write_bytes(path.read_bytes()[:1000])
    return 0


def broken(_: Path) -> int:
    raise ZeroDivisionError


@pytest.mark.parametrize(("fails", "says"), [(shortened, BadCheckpoint), (broken, ZeroDivisionError)])
def test_a_comparison_that_fails_is_no_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[[Path], int], says: type[Exception]
) -> None:
    path = save(tmp_path / "x.pth", LARGE)
    with open_source(str(path)) as source:
        source.checkpoint()
        monkeypatch.setattr(byte_copy.zlib, "crc32", lambda *_: fails(path))
        with pytest.raises(says):
            compare_checksums(source, dict)


def test_it_stops_when_the_copy_fails(tmp_path: Path) -> None:
    path = save(tmp_path / "x.pth", LARGE)
    with open_source(str(path)) as source:
        source.checkpoint()
        with pytest.raises(KeyError), checksums_compared(source, dict):
            raise KeyError
