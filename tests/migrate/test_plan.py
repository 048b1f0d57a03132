"""The plan accounts for every tensor on both sides, and refuses rather than guesses."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmigrate.errors import Ambiguous, BadCheckpoint, Unsupported
from msmigrate.migrate.checkpoint import tensor_names
from msmigrate.migrate.checkpoint.convert import plan_tensors
from msmigrate.migrate.checkpoint.formats.reader import ByteRange, Checkpoint, Tensor
from msmigrate.migrate.checkpoint.formats.registry import form
from msmigrate.migrate.checkpoint.plan import Entry, Model, Net, Owners, Plan
from msmigrate.migrate.checkpoint.user_map import Names, Rule


def tensor(*shape: int, dtype: str = "float32", at: int = 0) -> Tensor:
    count = 1
    strides: tuple[int, ...] = ()
    for size in reversed(shape):
        strides, count = (count, *strides), count * size
    return Tensor(dtype, shape, strides, (ByteRange(at, count * 4),))


def make(
    shapes: dict[str, tuple[int, ...] | Tensor],
    *,
    owners: Owners | None = None,
    net: Net | None = None,
    refused: dict[str, str] | None = None,
    names: Names | None = None,
) -> Plan:
    places = enumerate(shapes.items())
    tensors = {name: it if isinstance(it, Tensor) else tensor(*it, at=100 * i) for i, (name, it) in places}
    checkpoint = Checkpoint("torch", "torch zip", tensors, refused or {})
    return plan_tensors(
        "x.pth",
        checkpoint,
        form(Path("x.ckpt"), "torch", None).holder,
        model=None if owners is None else Model("model", owners),
        net=net,
        into="net" if net else None,
        names=names,
        constant=lambda value: tensor(dtype="int64"),
        read=lambda tensor: 7,
    )


def entry(plan: Plan, name: str) -> Entry:
    return next(entry for entry in plan.entries if entry.name == name)


BATCH_NORM = {
    "bn.weight": (4,),
    "bn.bias": (4,),
    "bn.running_mean": (4,),
    "bn.running_var": (4,),
    "bn.num_batches_tracked": (),
}


def test_each_action() -> None:
    plan = make({"conv.weight": (4, 3, 3, 3), **BATCH_NORM, "one.weight": (4, 3, 5), "one.bias": (4,), "token": (1, 4)})
    assert {e.name: (e.action, e.target) for e in plan.entries} == {
        "conv.weight": ("keep", "conv.weight"),
        "bn.weight": ("rename", "bn.gamma"),
        "bn.bias": ("rename", "bn.beta"),
        "bn.running_mean": ("rename", "bn.moving_mean"),
        "bn.running_var": ("rename", "bn.moving_variance"),
        "bn.num_batches_tracked": ("drop", None),
        "one.weight": ("transform", "one.weight"),
        "one.bias": ("keep", "one.bias"),
        "token": ("keep", "token"),
    }
    assert entry(plan, "one.weight").target_shape == (4, 3, 1, 5)
    assert entry(plan, "bn.num_batches_tracked").why
    assert plan.totals == {"keep": 3, "rename": 4, "transform": 1, "restore": 0, "drop": 1, "refuse": 0}
    assert sum(plan.totals.values()) == 9
    plan.check()


def test_names_go_by_owner_not_by_suffix() -> None:
    """`weight` and `bias` of four classes, and a parameter that only ends like a statistic."""
    plan = make({"a.weight": (4, 4), "a.bias": (4,), "b.weight": (4,), "b.bias": (4,), "c.my_running_mean": (4,)})
    targets = [e.target for e in plan.entries]
    assert targets == ["a.weight", "a.bias", "b.gamma", "b.beta", "c.my_running_mean"]


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        ({"e.weight": (9, 4)}, "e.weight: it may belong to Linear or Embedding or EmbeddingBag"),
        ({"p.weight": (4,)}, "p.weight: it may belong to PReLU or RMSNorm or LayerNorm"),
        ({"q.weight": (3, 4), "q.bias": (4,)}, "no torch layer holds just weight 3×4, bias 4"),
    ],
)
def test_what_is_ambiguous_names_the_flags(shapes: dict[str, tuple[int, ...] | Tensor], says: str) -> None:
    plan = make(shapes)
    assert plan.totals["refuse"] == len(shapes)
    with pytest.raises(Ambiguous) as error:
        plan.check()
    for part in (says, "--model torchvision:NAME", "--model FILE.py:FUNCTION", "--into"):
        assert part in str(error.value)


LINEAR, EMBEDDING, MODULE = "torch.nn.Linear", "torch.nn.Embedding", "torch.nn.Module"


def test_a_model_settles_the_class() -> None:
    owners = {"e": (EMBEDDING, MODULE), "h": ("own.Head", LINEAR, MODULE), "t": ("own.Token", MODULE)}
    plan = make({"e.weight": (9, 4), "h.weight": (9, 4), "h.scale": (9,), "t.weight": (9, 4)}, owners=owners)
    assert [e.target for e in plan.entries] == ["e.embedding_table", "h.weight", "h.scale", "t.weight"]
    assert [e.owner for e in plan.entries] == ["Embedding", "own.Head", "own.Head", "own.Token"]
    plan.check()


def test_parameters_in_containers_are_ones_own() -> None:
    owners = {"": ("own.Net", "torch.nn.ModuleDict", MODULE), "list": ("torch.nn.ParameterList", MODULE)}
    plan = make({"weight": (4,), "list.0": (4,)}, owners=owners)
    assert [e.target for e in plan.entries] == ["weight", "list.0"]


def test_a_torch_layer_without_a_row_is_unsupported() -> None:
    plan = make({"e.weight": (8, 2)}, owners={"e": ("torch.nn.NewLayer", MODULE)})
    with pytest.raises(Unsupported, match=r"no row for torch\.nn\.NewLayer"):
        plan.check()


Shapes = dict[str, tuple[int, ...] | Tensor]


def back(plan: Plan, owners: Owners | None = None, names: Names | None = None) -> dict[str, str | None]:
    """The names of a written file, and torch's names of them, by structure or by --model."""
    shapes = {entry.target: entry.target_shape for entry in plan.written}
    if owners is None:
        ways = tensor_names.by_structure(shapes)
    else:
        wanted = {entry.name: entry.tensor.shape for entry in plan.entries}
        ways = tensor_names.by_model("model", owners, wanted, shapes, names)
    return {name: way.name if isinstance(way, tensor_names.Way) else None for name, way in ways.items()}


LSTM = ("torch.nn.LSTM", "torch.nn.RNNBase", MODULE)
LSTM_TENSORS: Shapes = {
    f"r.{kind}_l{layer}": (16, 4) if kind.startswith("weight") else (16,)
    for layer in ("0", "0_reverse", "11")
    for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
}


@pytest.mark.parametrize("owners", [None, {"r": LSTM}], ids=["structure", "model"])
def test_recurrent_nets_keep_their_names(owners: Owners | None) -> None:
    plan = make(LSTM_TENSORS, owners=owners)
    plan.check()
    assert plan.totals["keep"] == len(LSTM_TENSORS)
    assert entry(plan, "r.bias_hh_l11").owner == ("LSTM, GRU or RNN" if owners is None else "LSTM")
    assert back(plan, owners) == {name: name for name in LSTM_TENSORS}


@pytest.mark.parametrize("owners", [None, {"r": LSTM}], ids=["structure", "model"])
def test_a_projection_is_refused_and_not_left_out(owners: Owners | None) -> None:
    with pytest.raises(Unsupported, match=r"r\.weight_hr_l0_reverse: MindSpore's nn\.LSTM has no projection"):
        make({**LSTM_TENSORS, "r.weight_hr_l0_reverse": (2, 4)}, owners=owners).check()


def test_what_a_recurrent_net_does_not_have_is_unsupported_by_structure() -> None:
    with pytest.raises(Unsupported, match="LSTM, GRU or RNN has no tensor of that name"):
        make({**LSTM_TENSORS, "r.scale": (4,)}).check()


ATTENTION: Owners = {
    "a": ("torch.nn.MultiheadAttention", MODULE),
    "a.out_proj": ("torch.nn.modules.linear.NonDynamicallyQuantizableLinear", LINEAR, MODULE),
}


@pytest.mark.parametrize("owners", [None, ATTENTION], ids=["structure", "model"])
def test_attention_keeps_its_names_whatever_it_has(owners: Owners | None) -> None:
    some: Shapes = {"a.in_proj_weight": (24, 8), "a.out_proj.weight": (8, 8)}
    apart: Shapes = {f"a.{name}_proj_weight": (8, 8 if name == "q" else 5) for name in "qkv"}
    others: Shapes = {"a.in_proj_bias": (24,), "a.bias_k": (1, 1, 8), "a.bias_v": (1, 1, 8), "a.out_proj.bias": (8,)}
    for shapes in (some, {**some, **others}, {**apart, "a.out_proj.weight": (8, 8), **others}):
        plan = make(shapes, owners=owners)
        plan.check()
        assert [e.target for e in plan.entries] == list(shapes)
        assert back(plan, owners) == {name: name for name in shapes}


def test_transposed_convolutions_cross_as_others_do() -> None:
    """Their weights are (in, out/groups, …) on both sides."""
    shapes: Shapes = {
        "one.weight": (4, 3, 5),
        "one.bias": (6,),
        "two.weight": (4, 3, 2, 2),
        "three.weight": (4, 3, 2, 2, 2),
    }
    owners = {name: (f"torch.nn.ConvTranspose{i}d", MODULE) for i, name in enumerate(("one", "two", "three"), 1)}
    for plan in (make(shapes), make(shapes, owners=owners)):
        plan.check()
        assert {e.name: (e.action, e.target_shape) for e in plan.entries} == {
            "one.weight": ("transform", (4, 3, 1, 5)),
            "one.bias": ("keep", (6,)),
            "two.weight": ("keep", (4, 3, 2, 2)),
            "three.weight": ("keep", (4, 3, 2, 2, 2)),
        }


def test_instance_norms_and_cells_by_model() -> None:
    shapes: Shapes = {"n.weight": (4,), "n.bias": (4,), "c.weight_ih": (12, 2), "c.weight_hh": (12, 4)}
    owners = {"n": ("torch.nn.InstanceNorm2d", MODULE), "c": ("torch.nn.GRUCell", MODULE)}
    for plan in (make(shapes), make(shapes, owners=owners)):
        plan.check()
        assert [e.target for e in plan.entries] == ["n.gamma", "n.beta", "c.weight_ih", "c.weight_hh"]


TRANSFORMER = (
    *("self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight", "self_attn.out_proj.bias"),
    *("linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias"),
    *("norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"),
)
SIZES: Shapes = {"in_proj_weight": (24, 8), "in_proj_bias": (24,), "weight": (8, 8), "bias": (8,)}


def in_mindspore(name: str) -> str:
    part, _, leaf = name.rpartition(".")
    if part.startswith("norm"):
        return f"{part}.{'gamma' if leaf == 'weight' else 'beta'}"
    return name.replace("linear", "dense")


IN_MINDSPORE = {name: in_mindspore(name) for name in TRANSFORMER}


def transformer(outer: str) -> Shapes:
    sizes = {name: SIZES[name.rpartition(".")[2]] for name in TRANSFORMER}
    return {outer + name: (8,) if name.startswith("norm") else size for name, size in sizes.items()}


def transformer_owners(outer: str, layer: str) -> Owners:
    parts = {"self_attn": "MultiheadAttention", "norm1": "LayerNorm", "norm2": "LayerNorm"}
    parts |= {"self_attn.out_proj": "Linear", "linear1": "Linear", "linear2": "Linear"}
    classes = {f"{outer}.{part}".strip("."): (f"torch.nn.{name}", MODULE) for part, name in parts.items()}
    return {**classes, outer: ("own.Layer", layer, MODULE)}


@pytest.mark.parametrize("outer", ["", "layers.0"])
def test_a_model_that_has_torchs_transformer_layer(outer: str) -> None:
    """MindSpore's calls its linear layers dense1 and dense2."""
    before = f"{outer}." if outer else ""
    shapes, owners = transformer(before), transformer_owners(outer, "torch.nn.TransformerEncoderLayer")
    plan = make(shapes, owners=owners)
    plan.check()
    assert {e.name: e.target for e in plan.entries} == {before + k: before + v for k, v in IN_MINDSPORE.items()}
    assert back(plan, owners) == {before + v: before + k for k, v in IN_MINDSPORE.items()}
    assert back(plan)[f"{before}dense1.weight"] is None
    assert back(plan)[f"{before}norm2.gamma"] == f"{before}norm2.weight"


def test_a_transformer_layer_of_ones_own_keeps_linear1() -> None:
    shapes, owners = transformer("e."), transformer_owners("e", "torch.nn.ModuleDict")
    plan = make(shapes, owners=owners)
    plan.check()
    assert entry(plan, "e.linear1.weight").target == "e.linear1.weight"
    assert back(plan, owners)["e.linear1.weight"] == "e.linear1.weight"


def test_a_transformer_layer_without_a_model_is_ambiguous() -> None:
    with pytest.raises(Ambiguous, match=r"e\.linear1\.weight.*: it may belong to Linear or TransformerEncoderLayer"):
        make(transformer("e.")).check()


@pytest.mark.parametrize("model", [True, False])
@pytest.mark.parametrize("name", ["dense", "linear"])
def test_a_net_tells_how_the_parts_of_a_transformer_layer_are_called(name: str, model: bool) -> None:
    """Also where the torch model's is torch's own, and the net's is not MindSpore's."""
    shapes = transformer("e.")
    targets = {k: v.replace("dense", name) for k, v in IN_MINDSPORE.items()}
    net = {f"e.{target}": (shapes[f"e.{ours}"], "float32") for ours, target in targets.items()}
    owners = transformer_owners("e", "torch.nn.TransformerEncoderLayer") if model else None
    plan = make(shapes, net=net, owners=owners)
    plan.check()
    assert {e.name: e.target for e in plan.entries} == {f"e.{k}": f"e.{v}" for k, v in targets.items()}


def test_a_map_moves_a_transformer_layer_and_wins_inside_of_it() -> None:
    def rules() -> Names:
        pairs = (r"e\.linear1", "there.first"), ("e", "there")
        return Names([Rule(ours, theirs, line, Path("map")) for line, (ours, theirs) in enumerate(pairs)])

    shapes, owners = transformer("e."), transformer_owners("e", "torch.nn.TransformerEncoderLayer")
    plan = make(shapes, owners=owners, names=rules())
    plan.check()
    targets = {f"e.{k}": f"there.{v}".replace("dense1", "first") for k, v in IN_MINDSPORE.items()}
    assert {e.name: e.target for e in plan.entries} == targets
    assert back(plan, owners, rules()) == {target: name for name, target in targets.items()}
    some = {name: shape for name, shape in shapes.items() if "linear2" not in name}
    assert entry(make(shapes, names=rules()), "e.linear1.weight").target == "there.first.weight"
    assert entry(make(some, names=rules()), "e.norm1.weight").target == "there.norm1.gamma"
    assert entry(make(shapes, names=rules()), "e.linear2.weight").error is Ambiguous


def test_only_a_net_makes_a_bilinear_layer_of_what_looks_like_a_convolution() -> None:
    shapes: Shapes = {"b.weight": (5, 3, 4), "b.bias": (5,)}
    assert entry(make(shapes), "b.weight").target_shape == (5, 3, 1, 4)
    for shape in ((5, 3, 4), (5, 3, 1, 4)):
        plan = make(shapes, net={"b.weight": (shape, "float32"), "b.bias": ((5,), "float32")})
        plan.check()
        assert entry(plan, "b.weight").target_shape == shape
    plan = make(shapes, owners={"b": ("torch.nn.Bilinear", MODULE)})
    assert entry(plan, "b.weight").target_shape == (5, 3, 4)


def test_an_rms_norm_keeps_its_name() -> None:
    shapes: Shapes = {"n.weight": (4,)}
    assert entry(make(shapes, owners={"n": ("torch.nn.RMSNorm", MODULE)}), "n.weight").target == "n.weight"
    for name in ("n.weight", "n.gamma", "n.w"):
        assert entry(make(shapes, net={name: ((4,), "float32")}), "n.weight").target == name


def test_a_net_settles_the_class_too() -> None:
    net = {"e.embedding_table": ((9, 4), "float32"), "h.weight": ((9, 4), "float32")}
    plan = make({"e.weight": (9, 4), "h.weight": (9, 4)}, net=net)
    assert [e.target for e in plan.entries] == ["e.embedding_table", "h.weight"]
    assert plan.parameters == 2
    plan.check()


def test_a_net_that_could_be_filled_either_way_settles_nothing() -> None:
    net = {"e.embedding_table": ((9, 4), "float32"), "e.weight": ((9, 4), "float32")}
    with pytest.raises(Ambiguous):
        make({"e.weight": (9, 4)}, net=net).check()


@pytest.mark.parametrize(
    ("net", "says"),
    [
        ({"fc.weight": ((4, 3), "float32")}, r"fc\.bias: the net has no parameter fc\.bias"),
        ({"fc.weight": ((3, 4), "float32"), "fc.bias": ((4,), "float32")}, "the net's fc.weight is 3×4, this is 4×3"),
        ({"fc.weight": ((4, 3), "float16"), "fc.bias": ((4,), "float32")}, "fc.weight is float16, this is float32"),
        (
            {"fc.weight": ((4, 3), "float32"), "fc.bias": ((4,), "float32"), "g.x": ((1,), "float32")},
            r"does not fill net: nothing for g\.x",
        ),
        ({"net.fc.weight": ((4, 3), "float32"), "net.fc.bias": ((4,), "float32")}, "no parameter fc.weight"),
    ],
)
def test_both_sides_must_match(net: Net, says: str) -> None:
    plan = make({"fc.weight": (4, 3), "fc.bias": (4,)}, net=net)
    with pytest.raises(BadCheckpoint, match=says):
        plan.check()


def test_a_tied_tensor_that_the_net_has_once_is_dropped() -> None:
    shared = tensor(9, 4)
    plan = make({"e.weight": shared, "h.weight": shared}, net={"e.embedding_table": ((9, 4), "float32")})
    plan.check()
    assert entry(plan, "h.weight").action == "drop"
    assert entry(plan, "h.weight").why == "tied: the same bytes as e.embedding_table"


def test_two_names_may_not_become_one() -> None:
    owners = {"bn": ("torch.nn.BatchNorm2d", MODULE)}
    plan = make({"bn.weight": (4,), "bn.gamma": (4,)}, owners=owners)
    with pytest.raises(BadCheckpoint, match=r"bn\.weight and bn\.gamma would both be called bn\.gamma"):
        plan.check()


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float8_e4m3fn"])
def test_dtypes_that_mindspore_cannot_hold(dtype: str) -> None:
    with pytest.raises(Unsupported, match=f"cannot hold {dtype}"):
        make({"t": tensor(2, dtype=dtype)}).check()


def test_the_one_empty_shape_that_mindspore_misreads() -> None:
    with pytest.raises(Unsupported, match=r"\(0,\)"):
        make({"t": (0,)}).check()
    make({"t": (0, 3)}).check()


def test_refused_tensors_that_are_dropped_anyway_do_not_matter() -> None:
    shapes = {name: shape for name, shape in BATCH_NORM.items() if name != "bn.num_batches_tracked"}
    plan = make(dict(shapes), refused={"bn.num_batches_tracked": "it is sparse"})
    plan.check()
    assert plan.totals == {"keep": 0, "rename": 4, "transform": 0, "restore": 0, "drop": 1, "refuse": 0}
    with pytest.raises(Unsupported, match="token: it is sparse"):
        make({}, refused={"token": "it is sparse"}).check()


def test_only_counters_are_nothing_to_convert() -> None:
    owners = {"bn": ("torch.nn.BatchNorm2d", MODULE)}
    with pytest.raises(BadCheckpoint, match="no tensor to convert"):
        make({"bn.num_batches_tracked": ()}, owners=owners).check()


def test_modules_of_unknown_classes_go_by_their_tensors() -> None:
    """A file of a whole model tells torch's own classes; a norm of somebody's own shows by what stands together."""
    owners = {"conv": ("torch.nn.Conv2d",)}
    plan = make({"conv.weight": (4, 3, 3, 3), "norm.weight": (4,), "norm.bias": (4,)}, owners=owners)
    assert [entry.target for entry in plan.entries] == ["conv.weight", "norm.gamma", "norm.beta"]
