"""The way back to torch: what was converted there and back is complete and bit for bit, and nothing is guessed."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msmigrate.errors import Ambiguous, BadCheckpoint, BadDestination, BadInput, MsmigrateError
from msmigrate.migrate.checkpoint import convert, model_checks, tensor_names
from msmigrate.migrate.checkpoint.convert import plan_tensors
from msmigrate.migrate.checkpoint.formats import ckpt as mindspore_ckpt
from msmigrate.migrate.checkpoint.formats import reader
from msmigrate.migrate.checkpoint.formats.registry import form, open_source
from msmigrate.migrate.checkpoint.plan import Model
from msmigrate.migrate.checkpoint.tensor_names import Way
from msmigrate.training import checkpoints
from test_convert_properties import few, row_major, tensors
from tiny_checkpoints import BATCH_NORM, SMALL, Tensor, floats, save

HERE = Path(__file__).parent
TWINS = f"{HERE / 'twins_torch.py'}:"
NETS = f"{HERE / 'nets_torch.py'}:"


def work(script: str, folder: Path, answer: str) -> Any:
    """Run a worker on a folder and return what it wrote there."""
    done = subprocess.run(
        [sys.executable, str(HERE / script), str(folder)], capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return json.loads((folder / answer).read_text())


def ckpt(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> Path:
    """A MindSpore checkpoint of zeros, as MindSpore writes it."""
    parts = []
    for name, shape in shapes.items():
        count = 4
        for size in shape:
            count *= size
        parts.append(mindspore_ckpt.header(name, shape, "Float32", count) + bytes(count))
    path.write_bytes(b"".join(parts))
    return path


def held(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Read a checkpoint with msmigrate's own readers: name -> dtype, shape, bytes."""
    whole = path.read_bytes()
    with open_source(str(path)) as source:
        return {
            name: (*tensor[:2], b"".join(whole[at : at + length] for at, length, _ in tensor.spans))
            for name, tensor in source.checkpoint().tensors.items()
        }


def there_and_back(source: Path, folder: Path, **options: Any) -> Path:
    """Convert to MindSpore, with options, and back without any."""
    convert.convert(source, folder / "there.ckpt", force=True, **options)
    convert.convert(folder / "there.ckpt", folder / source.name)
    return folder / source.name


LAYERS = {
    "line.weight": floats(4, 3, 5, start=1),  # of a Conv1d
    "line.bias": floats(4, start=2),
    **BATCH_NORM,
    "embed.rows": Tensor(floats(6, 4, start=3).content, (6, 4), storage="table"),
    "head.rows": Tensor(floats(6, 4, start=3).content, (6, 4), storage="table"),
    "number": Tensor(b"\x01\x80", (), "bfloat16"),
    "nothing": Tensor(b"", (3, 0), "int16"),
}
SAVED_BY_TORCH = {
    **dict.fromkeys(("dtypes.pth", "views.pth", "net.pth", "ddp.pth", "channels_last.pth", "wrapped.pth")),
    "text.pth": f"{NETS}text",
    "tied_text.pth": f"{NETS}text",
}


@pytest.fixture(scope="module")
def came_back(
    torch_files: tuple[Path, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, Any]]:
    """By file name, what torch finds after the way there and back, and what there was: [shape, dtype, digest]."""
    folder = tmp_path_factory.mktemp("back")
    for name, model in SAVED_BY_TORCH.items():
        there_and_back(torch_files[0] / name, folder, model=model)
    there_and_back(save(tmp_path_factory.mktemp("made") / "layers.pth", LAYERS), folder)
    layers = {
        name: [list(tensor.shape), tensor.dtype, hashlib.sha256(tensor.content).hexdigest()]
        for name, tensor in LAYERS.items()
    }
    return work("read_checkpoints_torch.py", folder, "found.json"), {**torch_files[1], "layers.pth": layers}


@pytest.mark.parametrize("name", [*SAVED_BY_TORCH, "layers.pth"])
def test_torch_finds_everything_as_it_was(came_back: tuple[dict[str, Any], dict[str, Any]], name: str) -> None:
    found, before = came_back
    assert found[name]["tensors"] == before[name]
    assert found[name]["type"] == "OrderedDict"


def test_tied_weights_are_tied_again(came_back: tuple[dict[str, Any], dict[str, Any]]) -> None:
    found, _ = came_back
    assert found["tied_text.pth"]["tied"] == [["embed.weight", "head.weight"]]
    assert found["layers.pth"]["tied"] == [["embed.rows", "head.rows"]]
    assert found["text.pth"]["tied"] == []


def test_without_the_note_what_mindspore_cannot_hold_is_missing(tmp_path: Path) -> None:
    """The counters and the tied name come from the note alone, so that a test of them can fail."""
    convert.convert(save(tmp_path / "x.pth", LAYERS), tmp_path / "x.ckpt")
    whole = (tmp_path / "x.ckpt").read_bytes()
    (tmp_path / "y.ckpt").write_bytes(whole[: whole.index(b'{"format":1') - 5])
    with pytest.raises(Ambiguous, match=r"line\.weight: it may belong to Conv1d"):
        convert.convert(tmp_path / "y.ckpt", tmp_path / "y.pth")


@pytest.fixture(scope="module")
def mindspore_twin(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A checkpoint that mindspore.save_checkpoint wrote, and what it holds: name -> [shape, dtype, digest]."""
    folder = tmp_path_factory.mktemp("mindspore")
    saved = work("twins_mindspore.py", folder, "saved.json")
    return folder / "twin.ckpt", saved


TORCH_NAMES = {
    "bn.gamma": "bn.weight",
    "bn.beta": "bn.bias",
    "bn.moving_mean": "bn.running_mean",
    "bn.moving_variance": "bn.running_var",
    "embed.embedding_table": "embed.weight",
    "norm.gamma": "norm.weight",
    "norm.beta": "norm.bias",
}


def test_what_mindspore_saved_loads_into_the_torch_twin(
    mindspore_twin: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    source, saved = mindspore_twin
    convert.convert(source, tmp_path / "structure.pth")
    convert.convert(source, tmp_path / "model.pth", model=f"{TWINS}twin")
    loaded = work("twins_torch.py", tmp_path, "loaded.json")
    expected = {TORCH_NAMES.get(name, name): value for name, value in saved.items()}
    for name in ("structure.pth", "model.pth"):
        counter = loaded[name].pop("bn.num_batches_tracked")  # torch sets it to 0 where a checkpoint has none
        assert counter[:2] == [[], "int64"]
        assert loaded[name] == expected, name


LINEAR, MODULE = "torch.nn.Linear", "torch.nn.Module"


def test_a_model_of_other_tensors_does_not_fit() -> None:
    owners = {"a": (LINEAR, MODULE), "b": (LINEAR, MODULE)}
    found = tensor_names.by_model(
        "m", owners, {"a.weight": (4, 3), "b.weight": (4, 4)}, {"a.weight": (4, 5), "c": (1,)}
    )
    assert {name: str(error) for name, error in found.items()} == {
        "a.weight": "it is 4×5, a.weight of m is 4×3",
        "c": "m has no tensor of that name",
    }


def test_a_model_that_is_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model("m", {"a": (LINEAR, MODULE)}, {"a.weight": (4, 3), "a.bias": (4,), "a.num_batches_tracked": ()})
    monkeypatch.setattr(model_checks, "torch_model", lambda *_: model)
    with pytest.raises(BadCheckpoint, match=r"does not fill m: nothing for a\.bias$"):
        convert.convert(ckpt(tmp_path / "x.ckpt", {"a.weight": (4, 3)}), tmp_path / "x.pth", model="m")
    assert not (tmp_path / "x.pth").exists()


FLAT = {"conv.weight": (4, 3, 1, 5), "conv.bias": (4,), "wide.weight": (4, 3, 1, 5), "wide.bias": (4,), "act.w": (4,)}


def test_what_is_ambiguous_is_refused_and_a_model_settles_it(tmp_path: Path) -> None:
    source = ckpt(tmp_path / "x.ckpt", FLAT)
    with pytest.raises(Ambiguous) as error:
        convert.convert(source, tmp_path / "x.pth")
    for part in ("conv.weight, wide.weight: it may belong to Conv1d, or to Conv2d with a kernel of 1×5", "--model"):
        assert part in str(error.value)
    assert "act.w: it may belong to PReLU, or be a parameter of one's own" in str(error.value)
    assert "--into" not in str(error.value)
    assert not (tmp_path / "x.pth").exists()
    convert.convert(source, tmp_path / "x.pth", model=f"{TWINS}flat")
    assert {name: shape for name, (_, shape, _) in held(tmp_path / "x.pth").items()} == {
        "conv.weight": (4, 3, 5),
        "conv.bias": (4,),
        "wide.weight": (4, 3, 1, 5),
        "wide.bias": (4,),
        "act.weight": (4,),
    }


TALL = {"tall.weight": (4, 3, 3, 3)}


@pytest.mark.parametrize(
    ("shapes", "name", "way"),
    [
        ({"a.b.gamma": (3,), "a.b.beta": (3,)}, "a.b.gamma", Way("a.b.weight", (3,), "LayerNorm or GroupNorm")),
        ({"gamma": (3,)}, "gamma", Way("weight", (3,), "LayerNorm or GroupNorm")),
        ({"b.moving_mean": (3,), "b.moving_variance": (3,)}, "b.moving_mean", Way("b.running_mean", (3,), "BatchNorm")),
        ({"b.moving_mean": (3,)}, "b.moving_mean", Way("b.moving_mean", (3,))),
        ({"b.gamma": (3,), "b.scale": (3,)}, "b.gamma", Way("b.gamma", (3,))),
        ({"e.embedding_table": (5, 2)}, "e.embedding_table", Way("e.weight", (5, 2), "Embedding")),
        ({"e.embedding_table": (5, 2), "e.bias": (2,)}, "e.embedding_table", Way("e.embedding_table", (5, 2))),
        ({"d.weight": (5, 2), "d.bias": (5,)}, "d.weight", Way("d.weight", (5, 2))),
        ({**TALL, "point.weight": (4, 3, 1, 1)}, "point.weight", Way("point.weight", (4, 3, 1, 1))),
        ({"w": (2, 2)}, "w", Way("w", (2, 2))),
    ],
)
def test_what_stands_together_tells_the_way(shapes: dict[str, tuple[int, ...]], name: str, way: Way) -> None:
    assert tensor_names.by_structure(shapes)[name] == way


@pytest.mark.parametrize(
    ("shapes", "name"),
    [
        ({"c.weight": (4, 3, 1, 5)}, "c.weight"),
        ({**TALL, "c.weight": (4, 3, 1, 5)}, "c.weight"),
        ({"c.weight": (4, 3, 1, 1)}, "c.weight"),
        ({"p.w": (1,)}, "p.w"),
    ],
)
def test_what_may_be_two_things_tells_no_way(shapes: dict[str, tuple[int, ...]], name: str) -> None:
    assert isinstance(tensor_names.by_structure(shapes)[name], Ambiguous)


VOLUMETRIC = {"c.weight": (2, 1, 3, 3, 3)}


def test_a_batch_norm_inside_a_volumetric_one_loses_the_name_that_mindspore_adds() -> None:
    names = ("gamma", "beta", "moving_mean", "moving_variance")
    shapes = {**VOLUMETRIC, **{f"norm.bn2d.{name}": (2,) for name in names}}
    found = tensor_names.by_structure(shapes)
    assert [found[f"norm.bn2d.{name}"] for name in names] == [
        Way(f"norm.{name}", (2,), "BatchNorm3d") for name in ("weight", "bias", "running_mean", "running_var")
    ]


def test_a_note_that_does_not_fit_its_tensor_is_passed_over() -> None:
    shapes = {"a": (4, 3)}
    assert tensor_names.by_record({"names": {"b": "a"}, "shapes": {"b": [3, 4]}}, shapes) == {
        "a": Way("b", (3, 4), "noted")
    }
    for names, sizes in (({"b": "absent"}, {}), ({"b": "a"}, {"b": [5]}), ({"b\n": "a"}, {}), ({"": "a"}, {})):
        assert tensor_names.by_record({"names": names, "shapes": sizes}, shapes) == {}


HALF = {"float32": "float16"}


@pytest.mark.parametrize("suffix", ["pth", "ckpt"])
def test_within_one_framework_names_are_kept(tmp_path: Path, suffix: str) -> None:
    source = save(tmp_path / "x.pth", SMALL)
    if suffix == "ckpt":
        source = Path(convert.convert(source, tmp_path / "x.ckpt").destination)
    framework = {"pth": "torch", "ckpt": "mindspore"}[suffix]
    result = convert.convert(source, tmp_path / f"y.{suffix}", to=framework, dtype="float16")
    before, after = held(source), held(tmp_path / f"y.{suffix}")
    assert {name: (HALF.get(dtype, dtype), shape) for name, (dtype, shape, _) in before.items()} == {
        name: (dtype, shape) for name, (dtype, shape, _) in after.items()
    }
    assert after["fc.bias"][2] == struct.pack("<4e", 0, 1, 2, 3)
    assert result.plan.totals["keep"] == len(before)


def test_a_cast_in_between_does_not_lose_the_note(tmp_path: Path) -> None:
    convert.convert(save(tmp_path / "x.pth", LAYERS), tmp_path / "x.ckpt")
    convert.convert(tmp_path / "x.ckpt", tmp_path / "y.ckpt", dtype="float16")
    convert.convert(tmp_path / "y.ckpt", tmp_path / "y.pth")
    assert {name: shape for name, (_, shape, _) in held(tmp_path / "y.pth").items()} == {
        name: tensor.shape for name, tensor in LAYERS.items()
    }


@pytest.mark.parametrize("suffix", [".pth", ".pt", ".bin", ".PTH"])
def test_every_suffix_of_torch_is_torchs_zip(tmp_path: Path, suffix: str) -> None:
    source = ckpt(tmp_path / "x.ckpt", {"d.weight": (2, 3)})
    convert.convert(source, tmp_path / f"x{suffix}")
    with open_source(str(tmp_path / f"x{suffix}")) as opened:
        assert opened.checkpoint()[:2] == ("torch", "torch zip")


@pytest.mark.parametrize(
    ("name", "to", "says"),
    [
        ("y.pth", "mindspore", "a .pth is torch's; for --to mindspore give a name in .ckpt"),
        ("y.bin", "mindspore", "a .bin is torch's"),
        ("y.ckpt", "torch", "a .ckpt is MindSpore's; for --to torch give a name in .pth"),
        ("y.onnx", None, "y.onnx ends in none of .ckpt, .pth, .pt, .bin"),
    ],
)
def test_a_name_that_says_the_other_framework_is_refused(tmp_path: Path, name: str, to: str | None, says: str) -> None:
    source = save(tmp_path / "x.pth", SMALL)
    with pytest.raises(BadDestination, match=re.escape(says)):
        convert.convert(source, tmp_path / name, to=to)
    assert [path.name for path in tmp_path.iterdir()] == ["x.pth"]


def test_a_mindspore_net_has_no_say_on_the_way_to_torch(tmp_path: Path) -> None:
    with open_source(str(ckpt(tmp_path / "x.ckpt", {"d.weight": (2, 3)}))) as opened:
        checkpoint = opened.checkpoint()
    holder, nothing = form("x.pth", "mindspore", None).holder, checkpoint.tensors["d.weight"]
    net = {"d.weight": ((2, 3), "float32")}
    with pytest.raises(BadInput, match="--into names a MindSpore net"):
        plan_tensors("x.ckpt", checkpoint, holder, net=net, into="a:b", constant=lambda _: nothing, read=lambda _: 0)


def test_a_checkpoint_is_none_of_text_whatever_its_first_length(tmp_path: Path) -> None:
    """A line break and a bracket may begin a page, or a list of files, and a tensor of sixty bytes, or of 123."""
    for count in range(1, 140):
        source = ckpt(tmp_path / "x.ckpt", {"a" * count: (1,)})
        with open_source(str(source)) as opened:
            assert list(opened.checkpoint().tensors) == ["a" * count]
    for text in ("\n<\n<html>", '\n{\n  "weight_map": 3}'):
        (tmp_path / "x.ckpt").write_text(text)
        with pytest.raises(BadCheckpoint, match=r"HTML|weight_map"), open_source(str(tmp_path / "x.ckpt")) as opened:
            opened.checkpoint()


TRAINED = {
    "msmigrate.run": (7,),
    "conv.weight": (4, 3, 3, 3),
    "optimizer.moments.conv.weight": (4, 3, 3, 3),
    "optimizer.step": (0,),
    "ema.conv.weight": (4, 3, 3, 3),
}


def test_of_a_training_checkpoint_the_net_is_converted(tmp_path: Path) -> None:
    source = ckpt(tmp_path / "x.ckpt", {name: shape for name, shape in TRAINED.items() if shape != (0,)})
    with open_source(str(source)) as opened:
        checkpoint = opened.checkpoint()
    assert list(checkpoint.tensors) == ["conv.weight"]
    assert checkpoint.others == {
        "msmigrate.*": "1 tensor of the training run",
        "optimizer.*": "1 tensor of the optimizer's state",
        "ema.*": "1 tensor of the moving average",
    }
    assert checkpoint.training is not None
    assert checkpoint.training["ema.conv.weight"].shape == (4, 3, 3, 3)
    convert.convert(source, tmp_path / "x.pth")
    assert list(held(tmp_path / "x.pth")) == ["conv.weight"]


def test_a_net_of_somebody_elses_may_use_the_same_words(tmp_path: Path) -> None:
    source = ckpt(tmp_path / "x.ckpt", {"optimizer.weight": (2, 3), "ema.rate": (1,)})
    convert.convert(source, tmp_path / "x.pth")
    assert list(held(tmp_path / "x.pth")) == ["optimizer.weight", "ema.rate"]


def test_a_training_run_writes_the_names_that_the_reader_knows() -> None:
    assert tuple(reader.BESIDE) == checkpoints.BESIDE
    assert checkpoints.RUN.startswith(reader.OURS)


NAMES = st.from_regex(r"[a-z]{1,6}(\.[0-9a-zö]{1,6}){0,2}", fullmatch=True)


@st.composite
def layers(draw: st.DrawFn) -> dict[str, Tensor]:
    """A module of a known class, or tensors of one's own, some of them tied."""
    path = draw(NAMES)
    width, size = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    kind = draw(st.sampled_from(["norm", "batch norm", "Conv1d", "Conv2d", "Linear", "own", "tied"]))
    made = {
        "norm": {"weight": floats(width), "bias": floats(width)},
        "batch norm": {name.removeprefix("bn."): tensor for name, tensor in BATCH_NORM.items()},
        "Conv1d": {"weight": floats(width, 2, size)},
        "Conv2d": {"weight": floats(width, 2, draw(st.integers(1, 3)), size)},
        "Linear": {"weight": floats(width, size), "bias": floats(width)},
        "own": {"own": draw(tensors())},
        "tied": dict.fromkeys(("own", "again"), floats(width, size)._replace(storage=f"{path} tied")),
    }
    return {f"{path}.{leaf}": tensor for leaf, tensor in made[kind].items()}


@few
@given(st.lists(layers(), min_size=1, max_size=6))
def test_any_state_dict_comes_back(parts: list[dict[str, Tensor]]) -> None:
    state = {name: tensor for part in parts for name, tensor in part.items()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "back").mkdir()
        source = save(folder / "x.pth", state)
        try:
            convert.convert(source, folder / "x.ckpt")
        except MsmigrateError:  # two parts under one path may be what no class holds
            assume(False)
        convert.convert(folder / "x.ckpt", folder / "back" / "x.pth")
        found = held(folder / "back" / "x.pth")
    assert {name: value[:2] for name, value in found.items()} == {
        name: (tensor.dtype, tensor.shape) for name, tensor in state.items()
    }
    for key, tensor in state.items():
        assert found[key][2] == (tensor.content if tensor.strides is None else row_major(tensor)), key
