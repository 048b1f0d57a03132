"""Random state dicts arrive bit for bit, and no damage to a file ever gives anything but a clear error."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msmigrate.errors import MsmigrateError
from msmigrate.migrate.checkpoint import convert
from msmigrate.migrate.checkpoint.formats import ckpt, restricted_pickle
from tiny_checkpoints import SIZES, SMALL, STORAGES, Tensor, save, state_dict, write

# A few times the default number of examples would not fit the time of the suite; the seeds change from run to run.
few = settings(max_examples=60, deadline=None)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """A view of a random storage: any dtype and shape, contiguous or permuted, at an offset or not."""
    dtype = draw(st.sampled_from(sorted(STORAGES)))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    if shape == (0,):
        shape = (0, 1)
    order = draw(st.permutations(range(len(shape))))
    strides, step = [0] * len(shape), 1
    for axis in order:
        strides[axis], step = step, step * max(shape[axis], 1)
    offset, tail = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    size = (offset + step + tail) * SIZES[dtype[-2:]]
    return Tensor(draw(st.binary(min_size=size, max_size=size)), shape, dtype, tuple(strides), offset)


def row_major(tensor: Tensor) -> bytes:
    """The bytes of a view, element by element: slow and plainly right."""
    assert tensor.strides is not None
    size = SIZES[tensor.dtype[-2:]]
    places = [tensor.offset]
    for length, stride in zip(tensor.shape, tensor.strides, strict=True):
        places = [place + index * stride for place in places for index in range(length)]
    return b"".join(tensor.content[place * size : (place + 1) * size] for place in places)


@few
@given(st.dictionaries(st.from_regex(r"own\.[a-z_0-9ö]{1,12}", fullmatch=True), tensors(), min_size=1, max_size=6))
def test_round_trip(state: dict[str, Tensor]) -> None:
    names = {"own.weight", "own.num_batches_tracked", "own.running_mean", "own.running_var", "own.in_proj_weight"}
    state = {name: tensor for name, tensor in state.items() if name not in names} or {"own.x": SMALL["fc.weight"]}
    with tempfile.TemporaryDirectory() as folder:
        source, destination = save(Path(folder) / "x.pth", state), Path(folder) / "x.ckpt"
        convert.convert(source, destination)
        whole = destination.read_bytes()
        with destination.open("rb") as file:
            found = ckpt.entries(file.fileno(), "x")
    assert [value.tag for value in found] == list(state)
    for value, tensor in zip(found, state.values(), strict=True):
        assert value.dims == tensor.shape
        expected = row_major(tensor) if tensor.strides is not None else tensor.content
        assert b"".join(whole[at : at + length] for at, length in value.pieces) == expected


with tempfile.TemporaryDirectory() as _folder:
    SOUND = save(Path(_folder) / "x.pth", SMALL).read_bytes()
BODY, STORED = state_dict(SMALL)
PICKLE = b"\x80\x02" + BODY + b"."


def attempt(content: bytes) -> None:
    """Convert, and hold the outcome to one of two: a whole file, or a clear error and nothing."""
    with tempfile.TemporaryDirectory() as folder:
        source, destination = Path(folder) / "x.pth", Path(folder) / "x.ckpt"
        source.write_bytes(content)
        try:
            convert.convert(source, destination)
        except MsmigrateError as error:
            assert str(error)
            assert [path.name for path in Path(folder).iterdir()] == ["x.pth"]
        else:
            with destination.open("rb") as file:
                assert ckpt.entries(file.fileno(), "x")


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bytes(flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(SOUND)
    for place, bits in flips:
        damaged[place] ^= bits
    attempt(bytes(damaged))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(BODY) - 1), st.integers(1, 255)), min_size=1, max_size=3))
def test_a_damaged_pickle_in_a_sound_zip(flips: list[tuple[int, int]]) -> None:
    """The checksum would notice an accident; this is what an attacker can do."""
    damaged = bytearray(BODY)
    for place, bits in flips:
        damaged[place] ^= bits
    with tempfile.TemporaryDirectory() as folder:
        attempt(write(Path(folder) / "x.pth", bytes(damaged), STORED).read_bytes())


@few
@given(st.integers(0, len(SOUND)), st.binary(max_size=30))
def test_cut_and_continued(length: int, tail: bytes) -> None:
    attempt(SOUND[:length] + tail)


@few
@given(st.binary(max_size=200))
@example(b"PK\x05\x06" + bytes(18))
def test_any_bytes(content: bytes) -> None:
    attempt(content)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(PICKLE) - 1), st.integers(1, 255)), min_size=1, max_size=3))
def test_a_damaged_pickle_is_a_clear_error(flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(PICKLE)
    for place, bits in flips:
        damaged[place] ^= bits
    try:
        restricted_pickle.load(bytes(damaged))
    except MsmigrateError as error:
        assert str(error)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(sorted(restricted_pickle.OPERATIONS)), max_size=60), st.binary(max_size=20))
def test_random_opcodes(codes: list[int], tail: bytes) -> None:
    try:
        restricted_pickle.load(b"\x80\x02" + bytes(codes) + tail + b".")
    except MsmigrateError as error:
        assert str(error)
