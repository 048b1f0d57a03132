"""A model saved whole gives the names of its state dict, and the classes of its modules, without any of its code."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmigrate.errors import BadCheckpoint, Unsupported
from msmigrate.migrate.checkpoint import convert
from msmigrate.migrate.checkpoint.formats.pth_weights import public_name
from msmigrate.migrate.checkpoint.formats.reader import Checkpoint
from msmigrate.migrate.checkpoint.formats.registry import open_source
from tiny_checkpoints import BATCH_NORM, Tensor, floats, group, integer, mapping, named, rebuilt, text, write
from tiny_legacy import blocks, legacy_tensor, module, write_legacy

CONTENT = floats(6).content
VECTOR = rebuilt(floats(6), "0")
LINEAR = module("torch.nn.modules.linear.Linear", {"weight": rebuilt(Tensor(CONTENT, (2, 3)), "0"), "bias": b"N"})


def read(folder: Path, body: bytes, key: str | None = None) -> Checkpoint:
    with open_source(str(write(folder / "x.pth", body, {"0": CONTENT}))) as source:
        return source.checkpoint(key)


def strings(*items: str) -> bytes:
    return b"](" + b"".join(map(text, items)) + b"e"


def test_names_come_in_the_order_of_a_state_dict(tmp_path: Path) -> None:
    inner = module("torch.nn.modules.container.Sequential", modules={"0": LINEAR, "1": LINEAR})
    body = module(
        "mypkg.Net", {"own": VECTOR}, {"table": VECTOR}, {"a": inner, "none": b"N", "b": LINEAR}, training=b"\x88"
    )
    found = read(tmp_path, body)
    assert list(found.tensors) == ["own", "table", "a.0.weight", "a.1.weight", "b.weight"]
    assert found.format == "whole model, torch zip"
    assert (found.wrapper, found.others, found.training) == (None, {}, None)


def test_classes_go_by_their_public_names_and_foreign_ones_are_left_out(tmp_path: Path) -> None:
    inner = module("torch.nn.modules.container.Sequential", modules={"0": LINEAR, "1": module("mypkg.LayerNorm2d")})
    found = read(tmp_path, module("mypkg.Net", modules={"a": inner}, parameters={"w": VECTOR}))
    assert found.owners == {"a": ("torch.nn.Sequential",), "a.0": ("torch.nn.Linear",)}


@pytest.mark.parametrize(
    ("full", "public"),
    [
        ("torch.nn.modules.conv.Conv2d", "torch.nn.Conv2d"),
        ("torch.nn.modules.linear.NonDynamicallyQuantizableLinear", "torch.nn.Linear"),
        ("torch.nn.modules.linear._LinearWithBias", "torch.nn.Linear"),
        ("torch.nn.modules.conv._ConvNd", None),
        ("torch.nn.parallel.data_parallel.DataParallel", None),
        ("torchvision.models.resnet.ResNet", None),
        ("mytorch.nn.modules.conv.Conv2d", None),
        ("Net", None),
    ],
)
def test_public_names(full: str, public: str | None) -> None:
    assert public_name(full) == public


@pytest.mark.parametrize(
    "names", [b"\x8f(" + text("b") + b"\x90", named("__builtin__", "set") + group(strings("b")) + b"R"]
)
def test_buffers_that_are_not_persistent_are_not_there(tmp_path: Path, names: bytes) -> None:
    """Protocol 4 writes the set of their names as one, protocol 2 as a call; files before torch 1.5 have none."""
    buffers = {"a": VECTOR, "b": VECTOR, "c": b"N"}
    assert list(read(tmp_path, module("mypkg.Net", {}, buffers, _non_persistent_buffers_set=names)).tensors) == ["a"]
    assert list(read(tmp_path, module("mypkg.Net", {}, buffers)).tensors) == ["a", "b"]


def test_a_shared_module_gives_all_its_names(tmp_path: Path) -> None:
    shared = LINEAR + b"q\x07"
    found = read(
        tmp_path,
        module("mypkg.Net", modules={"a": shared, "b": b"h\x07", "c": module("mypkg.C", modules={"d": b"h\x07"})}),
    )
    assert list(found.tensors) == ["a.weight", "b.weight", "c.d.weight"]
    assert len(set(found.tensors.values())) == 1
    assert set(found.owners or {}) == {"a", "b", "c.d"}


@pytest.mark.parametrize(
    ("wrap", "prefix"),
    [
        ([("torch.nn.parallel.data_parallel.DataParallel", "module")], "module."),
        ([("torch.nn.parallel.distributed.DistributedDataParallel", "module")], "module."),
        ([("torch._dynamo.eval_frame.OptimizedModule", "_orig_mod")], "_orig_mod."),
        (
            [
                ("torch._dynamo.eval_frame.OptimizedModule", "_orig_mod"),
                ("torch.nn.parallel.distributed.DistributedDataParallel", "module"),
            ],
            "module._orig_mod.",
        ),
    ],
)
def test_wrappers_come_off_names_and_classes(tmp_path: Path, wrap: list[tuple[str, str]], prefix: str) -> None:
    body = module("torch.nn.modules.container.Sequential", modules={"0": LINEAR})
    for cls, name in wrap:
        body = module(cls, modules={name: body})
    found = read(tmp_path, body)
    assert (list(found.tensors), found.prefix) == (["0.weight"], prefix)
    assert found.owners == {"": ("torch.nn.Sequential",), "0": ("torch.nn.Linear",)}


def test_the_counter_of_averaged_weights_is_left_out(tmp_path: Path) -> None:
    body = module("torch.optim.swa_utils.AveragedModel", {}, {"n_averaged": VECTOR}, {"module": LINEAR})
    found = read(tmp_path, body)
    assert (list(found.tensors), found.others, found.owners) == (
        ["weight"],
        {"n_averaged": "a tensor"},
        {"": ("torch.nn.Linear",)},
    )


def test_newer_compiled_and_traced_models_are_calls_of_their_own(tmp_path: Path) -> None:
    net = module("torch.nn.modules.container.Sequential", modules={"0": LINEAR})
    compiled = named("torch._dynamo.eval_frame", "OptimizedModule") + group(net, b"N") + b"R"
    assert list(read(tmp_path, compiled).tensors) == ["0.weight"]
    state = mapping([("_parameters", b"}"), ("_buffers", b"}"), ("_modules", mapping([("0", LINEAR)]))])
    traced = named("torch.fx.graph_module", "reduce_graph_module") + group(state, text("import os")) + b"R"
    assert list(read(tmp_path, traced).tensors) == ["0.weight"]


def test_a_class_with_slots_keeps_its_dict_first(tmp_path: Path) -> None:
    state = mapping([("_parameters", mapping([("w", VECTOR)])), ("_buffers", b"}"), ("_modules", b"}")])
    body = named("mypkg", "Net") + b")\x81" + group(state, mapping([("slot", integer(1))])) + b"b"
    assert list(read(tmp_path, body).tensors) == ["w"]


def test_parametrizations_keep_their_names(tmp_path: Path) -> None:
    listed = module("torch.nn.utils.parametrize.ParametrizationList", {"original0": VECTOR, "original1": VECTOR})
    held = module("torch.nn.modules.container.ModuleDict", modules={"weight": listed})
    body = module(
        "mypkg.Net", modules={"fc": module("torch.nn.modules.linear.Linear", modules={"parametrizations": held})}
    )
    found = read(tmp_path, body)
    assert list(found.tensors) == [f"fc.parametrizations.weight.original{n}" for n in (0, 1)]
    with pytest.raises(Unsupported, match="computed from several tensors"):
        convert.convert(tmp_path / "x.pth", tmp_path / "x.ckpt")


def test_a_model_under_a_key_is_found_as_a_state_dict_is(tmp_path: Path) -> None:
    half = module("mypkg.Net", {"w": rebuilt(Tensor(CONTENT, (12,), "float16"), "0")})
    items = [("epoch", integer(3)), ("model", LINEAR), ("ema", half), ("optimizer", b"N")]
    found = read(tmp_path, mapping(items))
    assert (list(found.tensors), found.wrapper, found.format) == (["weight"], "model", "whole model, torch zip")
    assert found.others == {
        "epoch": "3",
        "ema": "a whole model of mypkg.Net; --key ema converts it",
        "optimizer": "a NoneType",
    }
    assert list(found.training or {}) == ["epoch", "ema", "optimizer"]
    found = read(tmp_path, mapping(items), "ema")
    assert (list(found.tensors), found.tensors["w"].dtype, found.owners) == (["w"], "float16", None)
    items[1] = ("model", b"N")
    assert read(tmp_path, mapping(items)).wrapper == "ema"


def test_a_tensor_beside_a_model_does_not_hide_it(tmp_path: Path) -> None:
    assert read(tmp_path, mapping([("mean", VECTOR), ("backbone", LINEAR)])).wrapper == "backbone"


def test_what_is_among_the_parameters_and_no_tensor(tmp_path: Path) -> None:
    lazy = named("torch.nn.parameter", "UninitializedParameter") + group(b"\x88") + b"R"
    found = read(tmp_path, module("mypkg.Net", {"a": VECTOR, "b": lazy}))
    assert (list(found.tensors), found.others) == (
        ["a"],
        {"b": "an object of torch.nn.parameter.UninitializedParameter"},
    )


def test_a_file_of_before_torch_1_6(tmp_path: Path) -> None:
    """There the class comes with its source code, once."""
    linear = module("torch.nn.modules.linear.Linear", {"weight": legacy_tensor(floats(2, 3), "0")})
    reference = group(
        text("module"), named("torch.nn.modules.linear", "Linear"), text("linear.py"), text("class Linear")
    )
    body = linear.replace(named("torch.nn.modules.linear", "Linear"), reference + b"Q", 1)
    with open_source(str(write_legacy(tmp_path / "x.pth", body, blocks([floats(2, 3)])))) as source:
        found = source.checkpoint()
    assert (list(found.tensors), found.format) == (["weight"], "whole model, torch before 1.6")
    assert found.owners == {"": ("torch.nn.Linear",)}


@pytest.mark.parametrize(
    ("child", "says"),
    [
        (named("mypkg", "Net") + b")\x81", "its module a is an object of mypkg.Net, which does not keep its tensors"),
        (named("mypkg", "Net") + b")\x81}b", "its module a is an object of mypkg.Net"),
        (integer(3), "its module a is a int, which"),
        (
            module("torch.ao.nn.quantized.modules.linear.Linear"),
            "quantized torch.ao.nn.quantized.modules.linear.Linear",
        ),
    ],
)
def test_a_module_of_another_kind_is_unsupported_rather_than_left_out(tmp_path: Path, child: bytes, says: str) -> None:
    with pytest.raises(Unsupported, match=says):
        read(tmp_path, module("mypkg.Net", {"w": VECTOR}, {}, {"a": child}))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (module("mypkg.Net"), "holds no tensors"),
        (module("mypkg.Net", {"a.b": VECTOR}, {}, {"a": module("mypkg.A", {"b": VECTOR})}), r"two .* named a\.b"),
        (module("mypkg.Net", {"": VECTOR}), "'' is no name of a tensor"),
        (module("mypkg.Net", {"a\nb": VECTOR}), "is no name of a tensor"),
        (module("mypkg.Net", {"a" * 1000: VECTOR}), "is no name of a tensor or module"),
        (
            named("mypkg", "Bar") + b")\x81",
            r"holds an object of mypkg\.Bar, neither a state dict nor a torch\.nn\.Module",
        ),
        (named("mypkg", "Bar") + b")\x81" + mapping([("_parameters", b"}")]) + b"b", r"object of mypkg\.Bar, neither"),
        (named("mypkg", "Bar"), r"holds mypkg\.Bar, not a state dict"),
        (VECTOR, "holds a tensor, not a state dict"),
    ],
)
def test_files_without_a_model(tmp_path: Path, body: bytes, says: str) -> None:
    with pytest.raises(BadCheckpoint, match=says):
        read(tmp_path, body)


def test_a_key_in_a_whole_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match="one whole model, with no keys in it; leave out --key model"):
        read(tmp_path, LINEAR, "model")


def test_the_classes_in_the_file_settle_what_structure_cannot(tmp_path: Path) -> None:
    """A lone matrix may be a Linear's or an Embedding's, a lone vector any norm's."""
    tensors = {name.removeprefix("bn."): rebuilt(tensor, name) for name, tensor in BATCH_NORM.items()}
    storages = {name: tensor.content for name, tensor in BATCH_NORM.items()} | {"0": CONTENT}
    norm = module("torch.nn.modules.batchnorm.BatchNorm3d", tensors)
    embed = module("torch.nn.modules.sparse.Embedding", {"weight": rebuilt(Tensor(CONTENT, (3, 2)), "0")})
    path = write(tmp_path / "x.pth", module("mypkg.Net", modules={"bn": norm, "embed": embed, "fc": LINEAR}), storages)
    result = convert.convert(path, tmp_path / "x.ckpt")
    targets = {entry.name: entry.target for entry in result.plan.entries if entry.target}
    assert targets["embed.weight"] == "embed.embedding_table"
    assert targets["bn.weight"] == "bn.bn2d.gamma"
    assert targets["fc.weight"] == "fc.weight"
    assert result.plan.classes_from == "the classes in the file"
