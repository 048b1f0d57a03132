"""The plan accounts for every tensor on both sides, and refuses rather than guesses."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmigrate.errors import Ambiguous, BadCheckpoint, Unsupported
from msmigrate.migrate.against_net import Net
from msmigrate.migrate.destination import form
from msmigrate.migrate.formats.contents import ByteRange, Checkpoint, Tensor
from msmigrate.migrate.plan import Entry, Plan
from msmigrate.migrate.settle import Model, settle
from msmigrate.migrate.to_mindspore import Owners


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
) -> Plan:
    places = enumerate(shapes.items())
    tensors = {name: it if isinstance(it, Tensor) else tensor(*it, at=100 * i) for i, (name, it) in places}
    checkpoint = Checkpoint("torch", "torch zip", tensors, refused or {})
    return settle(
        "x.pth",
        checkpoint,
        form(Path("x.ckpt"), "torch", None).holder,
        model=None if owners is None else Model("model", owners),
        net=net,
        into="net" if net else None,
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
        ({"e.weight": (9, 4)}, "e.weight: it may belong to Linear or Embedding"),
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
    plan = make({"r.weight_ih_l0": (8, 2)}, owners={"r": ("torch.nn.LSTM", "torch.nn.RNNBase", MODULE)})
    with pytest.raises(Unsupported, match=r"no row for torch\.nn\.LSTM"):
        plan.check()
    with pytest.raises(Unsupported, match="no row for LSTM"):
        make({"r.weight_ih_l0": (8, 2)}).check()


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
