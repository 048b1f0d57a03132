"""Files from before torch 1.6 are read by byte ranges, and every length in them is held against the file."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from msmigrate.errors import BadCheckpoint, MsmigrateError, Unsupported
from msmigrate.migrate.checkpoint.formats import restricted_pickle
from msmigrate.migrate.checkpoint.formats.pth_tensors import Global, Storage
from msmigrate.migrate.checkpoint.formats.reader import ByteRange, Checkpoint
from msmigrate.migrate.checkpoint.formats.registry import open_source
from tiny_checkpoints import SMALL, Tensor, floats, group, integer, mapping, named, save, text
from tiny_legacy import (
    TYPE_SIZES,
    blocks,
    legacy_state_dict,
    legacy_storage,
    legacy_tensor,
    pickled,
    rebuilt,
    save_legacy,
    write_legacy,
)

BODY, BLOCKS = legacy_state_dict(SMALL), blocks(SMALL.values())


def read(path: Path) -> Checkpoint:
    with open_source(str(path)) as source:
        return source.checkpoint()


def contents(path: Path) -> dict[str, bytes]:
    """The bytes of every tensor: name -> what its spans hold."""
    whole = path.read_bytes()
    return {
        name: b"".join(whole[span.offset : span.offset + span.length] for span in tensor.spans)
        for name, tensor in read(path).tensors.items()
    }


def test_it_holds_what_the_zip_holds(tmp_path: Path) -> None:
    legacy, zipped = save_legacy(tmp_path / "x.pth", SMALL), save(tmp_path / "y.pth", SMALL)
    assert contents(legacy) == contents(zipped) == {name: tensor.content for name, tensor in SMALL.items()}
    assert read(legacy).format == "torch before 1.6"
    assert [tensor[:3] for tensor in read(legacy).tensors.values()] == [
        tensor[:3] for tensor in read(zipped).tensors.values()
    ]


def test_the_keys_say_in_which_order_the_storages_stand(tmp_path: Path) -> None:
    path = write_legacy(tmp_path / "x.pth", BODY, reversed(BLOCKS))
    assert contents(path) == {name: tensor.content for name, tensor in SMALL.items()}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_any_protocol_may_have_written_it(tmp_path: Path, protocol: int) -> None:
    """From protocol 4 on a frame may come before the magic number."""
    path = save_legacy(tmp_path / "x.pth", SMALL)
    start = b"\x80\x02\x8a\n"
    frame = b"\x95" + struct.pack("<Q", 13) if protocol >= 4 else b""
    path.write_bytes(path.read_bytes().replace(start, bytes([0x80, protocol]) + frame + b"\x8a\n", 1))
    assert len(read(path).tensors) == len(SMALL)


def test_python_2_wrote_its_text_in_another_way(tmp_path: Path) -> None:
    def old(body: bytes) -> bytes:
        for word in ("storage", "cpu", "0", "w"):
            body = body.replace(text(word), b"U" + bytes([len(word)]) + word.encode())
        return body

    body = mapping([("w", legacy_tensor(floats(2), "0"))])
    assert b"X" not in old(body)
    path = write_legacy(tmp_path / "x.pth", old(body), blocks([floats(2)]), keys=old(b"]" + text("0") + b"a"))
    assert contents(path) == {"w": floats(2).content}


def test_a_view_of_a_part_of_a_storage(tmp_path: Path) -> None:
    """Very old files say of a storage that it is a part of another one."""
    storage = legacy_storage("float32", "0", 6, group(text("1"), integer(2), integer(3)))
    body = mapping([("w", rebuilt(Tensor(b"", (2,), offset=1), storage)), ("all", legacy_tensor(floats(6), "0"))])
    path = write_legacy(tmp_path / "x.pth", body, [("0", 6, floats(6).content)])
    assert contents(path) == {"w": floats(6).content[12:20], "all": floats(6).content}


@pytest.mark.parametrize(
    ("offset", "size", "says"),
    [
        (4, 3, "outside its storage"),
        (-1, 3, "outside its storage"),
        (1, -1, "outside its storage"),
        (1 << 62, 1, "outside"),
        (2, 2, "reaches past its storage of 8 bytes"),
    ],
)
def test_views_stay_inside(tmp_path: Path, offset: int, size: int, says: str) -> None:
    storage = legacy_storage("float32", "0", 6, group(text("1"), integer(offset), integer(size)))
    body = mapping([("w", rebuilt(Tensor(b"", (3,)), storage))])
    with pytest.raises(BadCheckpoint, match=f"w: .*{says}"):
        read(write_legacy(tmp_path / "x.pth", body, [("0", 6, floats(6).content)]))


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    whole = save_legacy(tmp_path / "x.pth", SMALL).read_bytes()
    path = tmp_path / "cut.pth"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(MsmigrateError):
            read(path)


@pytest.mark.parametrize("extra", [b"\0", b"\0" * 8, pickled(b"N")])
def test_bytes_after_the_last_storage_are_refused(tmp_path: Path, extra: bytes) -> None:
    path = save_legacy(tmp_path / "x.pth", SMALL)
    path.write_bytes(path.read_bytes() + extra)
    with pytest.raises(BadCheckpoint, match=f"holds {len(extra)} bytes after its last storage"):
        read(path)


def test_the_system_must_be_a_usual_one(tmp_path: Path) -> None:
    def system(**items: bytes) -> bytes:
        return mapping({"little_endian": b"\x88", "type_sizes": TYPE_SIZES, **items}.items())

    big = system(little_endian=b"\x89")
    with pytest.raises(Unsupported, match="big-endian machine"):
        read(write_legacy(tmp_path / "x.pth", BODY, BLOCKS, system=big))
    odd = mapping([("short", integer(2)), ("int", integer(8))])
    for system_info in (system(little_endian=b"N"), system(type_sizes=odd), system(type_sizes=text("no")), b"}"):
        with pytest.raises(BadCheckpoint, match="numbers are of unknown sizes"):
            read(write_legacy(tmp_path / "x.pth", BODY, BLOCKS, system=system_info))
    assert read(write_legacy(tmp_path / "x.pth", BODY, BLOCKS, system=mapping([("little_endian", b"\x88")]))).tensors


def test_what_only_begins_as_such_a_file(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match="but is not one"):
        read(write_legacy(tmp_path / "x.pth", BODY, BLOCKS, version=integer(1002)))
    with pytest.raises(BadCheckpoint, match="but is not one"):
        read(write_legacy(tmp_path / "x.pth", BODY, BLOCKS, system=b"N"))
    with pytest.raises(BadCheckpoint, match="bare pickle"):
        read(write_legacy(tmp_path / "x.pth", BODY, BLOCKS, magic=integer(7)))


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (b"]", "not those that its tensors refer to"),
        (b"]" + text("0") + b"a" + text("1") + b"a", "not those"),
        (b"]" + text("0") + b"a" + text("0") + b"a", "not those"),
        (b"]" + integer(0) + b"a", "not those"),
        (b"]]a", "not those"),
        (text("0"), "not those"),
        (b"(" + text("0") + b"t", "not those"),
    ],
)
def test_the_keys_are_those_of_the_storages(tmp_path: Path, keys: bytes, says: str) -> None:
    body = mapping([("w", legacy_tensor(floats(2), "0"))])
    with pytest.raises(BadCheckpoint, match=says):
        read(write_legacy(tmp_path / "x.pth", body, blocks([floats(2)]), keys=keys))


@pytest.mark.parametrize("claimed", [0, 1, 3, -1, 1 << 62, -(1 << 63)])
def test_a_storage_that_says_another_size_is_refused(tmp_path: Path, claimed: int) -> None:
    body = mapping([("w", legacy_tensor(floats(2), "0"))])
    with pytest.raises(BadCheckpoint, match="its storage 0 is not as large as its tensors say"):
        read(write_legacy(tmp_path / "x.pth", body, [("0", claimed, floats(2).content)]))


@pytest.mark.parametrize(
    ("numel", "says"),
    [(3, "truncated"), (1, "not as large"), (-1, "not as large"), (1 << 62, "truncated"), (1 << 2000, "truncated")],
)
def test_a_tensor_that_says_another_size_is_refused(tmp_path: Path, numel: int, says: str) -> None:
    body = mapping([("w", rebuilt(floats(2), legacy_storage("float32", "0", numel)))])
    with pytest.raises(BadCheckpoint, match=says):
        read(write_legacy(tmp_path / "x.pth", body, blocks([floats(2)])))


def test_two_tensors_that_see_one_storage_differently_are_refused(tmp_path: Path) -> None:
    body = mapping([("w", legacy_tensor(floats(2), "0")), ("v", rebuilt(floats(3), legacy_storage("float32", "0", 3)))])
    with pytest.raises(BadCheckpoint, match="v: its storage 0 should hold 12 bytes and holds 8"):
        read(write_legacy(tmp_path / "x.pth", body, blocks([floats(2)])))


def test_a_storage_of_unknown_elements_is_unsupported(tmp_path: Path) -> None:
    body = mapping([("w", legacy_tensor(floats(2), "0"))]).replace(b"FloatStorage", b"QUInt4x2Storage")
    with pytest.raises(Unsupported, match=r"torch\.QUInt4x2Storage, whose elements have no known size"):
        read(write_legacy(tmp_path / "x.pth", body, blocks([floats(2)])))


def test_a_pickle_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restricted_pickle, "MAX_PICKLE", 100)
    with pytest.raises(BadCheckpoint, match="unless it is larger than 100 bytes"):
        read(save_legacy(tmp_path / "x.pth", SMALL))


def test_a_file_from_before_the_legacy_format_is_a_tar_archive(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    path.write_bytes(b"\0" * 257 + b"ustar\0" + bytes(300))
    with pytest.raises(BadCheckpoint, match="is a tar archive"):
        read(path)


def test_references_of_the_two_formats_are_not_mixed() -> None:
    kind = named("torch", "FloatStorage")
    short = group(text("storage"), kind, text("7"), text("cpu"), integer(3))
    long = group(text("storage"), kind, text("7"), text("cpu"), integer(3), group(text("8"), integer(1), integer(2)))
    source = group(text("module"), named("mypkg", "Net"), text("net.py"), text("class Net: …"))
    found = restricted_pickle.read(pickled(long + b"Q") + b"more", legacy=True)
    assert found.value == Storage("torch.FloatStorage", "7", 3, (1, 2))
    assert (found.end, list(found.storages)) == (len(pickled(long + b"Q")), ["7"])
    assert restricted_pickle.read(pickled(source + b"Q"), legacy=True).value == Global("mypkg.Net")
    assert restricted_pickle.load(pickled(short + b"Q")) == Storage("torch.FloatStorage", "7", 3)
    for legacy, reference in ((True, short), (False, long), (False, source), (True, group(text("module"), kind))):
        with pytest.raises(BadCheckpoint, match="damaged"):
            restricted_pickle.read(pickled(reference + b"Q"), legacy=legacy)


def test_byte_ranges_are_where_the_bytes_stand(tmp_path: Path) -> None:
    path = save_legacy(tmp_path / "x.pth", {"a": floats(2), "b": Tensor(b"\1\0\1", (3,), "bool")})
    size = path.stat().st_size
    spans = [tensor.spans for tensor in read(path).tensors.values()]
    assert spans == [(ByteRange(size - 3 - 8 - 8, 8),), (ByteRange(size - 3, 3),)]
