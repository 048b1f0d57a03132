"""Two models are aligned by the user's map, names, order and shapes; what these cannot decide is asked."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msmigrate.errors import Ambiguous, BadInput
from msmigrate.migrate.checkpoint.user_map import read_rules, write_rules
from msmigrate.parity.align.alignment import (
    CERTAIN,
    IDENTITY,
    LIKELY,
    MAP,
    NAME,
    ORDER,
    Alignment,
    Lack,
    check,
    pair_notes,
)
from msmigrate.parity.align.layers import torch_class
from msmigrate.parity.align.match_layers import align
from msmigrate.parity.align.mismatched_tensors import compared
from msmigrate.parity.align.model_structure import Held, Module, Structure
from msmigrate.parity.result import Finding
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import ALONE
from structures import SHAPE, Layer, structure

CHAIN = (
    Layer("conv1", "Conv2d", "x", "a"),
    Layer("bn1", "BatchNorm2d", "a", "b"),
    Layer("relu", "ReLU", "b", "c"),
    Layer("layer1.0.conv", "Conv2d", "c", "d"),
    Layer("layer1.0.bn", "BatchNorm2d", "d", "e"),
    Layer("relu", "ReLU", "e", "f"),
    Layer("layer1.1.conv", "Conv2d", "f", "g"),
    Layer("layer1.1.bn", "BatchNorm2d", "g", "h"),
    Layer("fc", "Linear", "h", "y", 5, (2, 5)),
)
FOREIGN = {
    "conv1": "stem",
    "bn1": "norm",
    "relu": "act",
    "layer1.0.conv": "stage1.0.c",
    "layer1.0.bn": "stage1.0.n",
    "layer1.1.conv": "stage1.1.c",
    "layer1.1.bn": "stage1.1.n",
    "layer1": "stage1",
    "layer1.0": "stage1.0",
    "layer1.1": "stage1.1",
    "fc": "end_point",
}


def renamed(layers: Sequence[Layer], names: dict[str, str] | None = None) -> list[Layer]:
    return [replace(layer, path=(names or FOREIGN).get(layer.path, layer.path)) for layer in layers]


def aligned(ours: Sequence[Layer], theirs: Sequence[Layer], rules: str = "", folder: Path | None = None) -> Alignment:
    pairs = []
    if folder is not None:
        (folder / "map.yaml").write_text(rules)
        pairs = read_rules(folder / "map.yaml")
    return align(structure("torch", ours), structure("mindspore", theirs), pairs)


def modules(found: Alignment) -> dict[str, str]:
    return {match.torch: match.mindspore for match in found.modules}


def test_equal_names_are_certain() -> None:
    found = aligned(CHAIN, CHAIN)
    check(found)
    assert all(match.torch == match.mindspore for match in found.modules)
    assert {m.how for m in found.modules if m.torch in {layer.path for layer in CHAIN}} == {NAME}
    assert found.parameters["bn1.weight"].mindspore == "bn1.gamma"
    assert found.parameters["layer1.0.bn.running_var"].mindspore == "layer1.0.bn.moving_variance"
    assert len(found.calls) == len(CHAIN) and not found.left


def test_foreign_names_go_by_order() -> None:
    found = aligned(CHAIN, renamed(CHAIN))
    check(found)
    assert modules(found) == {"": "", **FOREIGN}
    assert {match.how for match in found.modules if match.torch in ("conv1", "fc")} == {ORDER}
    assert found.parameters["layer1.1.bn.bias"].mindspore == "stage1.1.n.beta"
    assert found.parameters["layer1.1.bn.bias"].owner == "BatchNorm2d"
    assert list(found.parameters)[:2] == ["conv1.weight", "bn1.weight"]  # torch's order
    assert found.torch_call("act", 1) == ("relu", 1)


def test_the_order_of_definition_does_not_count() -> None:
    theirs = renamed(CHAIN)
    paths = sorted({layer.path for layer in theirs}, reverse=True)
    found = align(structure("torch", CHAIN), structure("mindspore", theirs, paths), [])
    check(found)
    assert modules(found) == {"": "", **FOREIGN}


def test_a_layer_that_one_side_writes_as_a_function_is_left() -> None:
    found = aligned(CHAIN, [layer for layer in renamed(CHAIN) if layer.kind != "ReLU"])
    check(found)
    assert [(left.framework, left.name, left.why) for left in found.left] == [("torch", "relu", "ReLU")]
    assert not found.compared("relu", 0) and found.compared("bn1", 0)
    assert any("relu (ReLU)" in note for note in pair_notes(found))


def test_a_pool_whose_branch_runs_later_there() -> None:
    def net(early: bool) -> list[Layer]:
        pool, deep = Layer("pool", "AvgPool2d", "a", "b"), Layer("deep", "Conv2d", "a", "c", 16)
        first, then = (pool, deep) if early else (deep, pool)
        side, act = Layer("side", "Conv2d", "b", "d", 24), Layer("act", "SiLU", "d", "e")
        return [Layer("stem", "Conv2d", "x", "a"), first, then, side, act, Layer("fc", "Linear", "e", "f", 10)]

    foreign = {"stem": "begin", "pool": "average", "deep": "low", "side": "high", "act": "swish", "fc": "out"}
    found = aligned(net(True), renamed(net(False), foreign))
    check(found)
    assert modules(found) == {"": "", **foreign} and not found.left
    elsewhere = [Layer("other", "AvgPool2d", "d", "z"), *(layer for layer in net(False) if layer.path != "pool")]
    found = aligned(net(True), renamed(elsewhere[1:4] + elsewhere[:1] + elsewhere[4:], {**foreign, "other": "z"}))
    assert "pool" not in modules(found)  # a pool, but of another branch


def test_one_shared_layer_is_several_there() -> None:
    theirs = [replace(each, path=f"act{i}") if each.kind == "ReLU" else each for i, each in enumerate(renamed(CHAIN))]
    found = aligned(CHAIN, theirs)
    check(found)
    assert found.torch_call("act2", 0) == ("relu", 0) and found.torch_call("act5", 0) == ("relu", 1)
    assert found.torch_call("act5", 1) == ("relu", 3)  # of the second micro-batch


def test_a_list_whose_numbers_are_shifted_goes_by_order() -> None:
    ours = [Layer(f"features.{i}", kind, str(i), str(i + 1)) for i, kind in enumerate(("Conv2d", "ReLU", "Conv2d"))]
    theirs = [
        Layer("features.0", "Conv2d", "0", "1"),
        Layer("features.1", "Conv2d", "2", "3"),  # of the shape of features.0, and its number is features.2 in torch
    ]
    found = aligned(ours, theirs)
    check(found)
    assert modules(found)["features.2"] == "features.1" and "features.1" not in modules(found)


FORK = (
    Layer("left", "Conv2d", "x", "l"),
    Layer("right", "Conv2d", "x", "r"),
    Layer("fc", "Linear", "lr", "y", 5, (2, 5)),
)


def test_branches_that_run_and_stand_in_one_order_are_likely() -> None:
    found = aligned(FORK, renamed(FORK, {"left": "first", "right": "second"}))
    check(found)
    assert modules(found)["left"] == "first"
    assert {m.torch: m.sure for m in found.modules}["left"] == LIKELY


def test_branches_in_another_order_are_asked() -> None:
    theirs = renamed((FORK[1], FORK[0], FORK[2]), {"left": "first", "right": "second"})
    found = align(structure("torch", FORK), structure("mindspore", theirs, ["first", "second", "fc"]), [])
    with pytest.raises(Ambiguous) as asked:
        check(found)
    message = str(asked.value)
    assert "\n" not in message and "look alike" in message and "--map" in message
    assert "left (Conv2d: weight [8, 8, 3, 3])" in message and "{torch: 'left', mindspore: 'second'}" in message


def test_the_map_settles_what_is_asked(tmp_path: Path) -> None:
    theirs = renamed((FORK[1], FORK[0], FORK[2]), {"left": "first", "right": "second"})
    rules = "- {torch: left, mindspore: first}\n- {torch: right, mindspore: second}\n"
    found = aligned(FORK, theirs, rules, tmp_path)
    check(found)
    assert modules(found)["left"] == "first" and modules(found)["right"] == "second"
    assert {m.how for m in found.modules if m.torch in ("left", "right")} == {MAP}
    assert [call for call in found.calls if call[0] == "left"] == [("left", 0, "first", 0)]


def test_what_comes_next_tells_branches_apart() -> None:
    ours = [
        Layer("a1", "Conv2d", "x", "p"),
        Layer("b1", "Conv2d", "x", "q"),
        Layer("b2", "Conv2d", "q", "s", 4),
        Layer("fc", "Linear", "ps", "y", 5, (2, 5)),
    ]
    theirs = renamed([ours[1], ours[2], ours[0], ours[3]], {"a1": "one", "b1": "two", "b2": "three"})
    found = aligned(ours, theirs)
    check(found)
    assert modules(found) == {"": "", "a1": "one", "b1": "two", "b2": "three", "fc": "fc"}


def test_inputs_from_the_wrong_layer_are_asked() -> None:
    """Two equal branches of two layers each; the other side runs layer by layer instead of branch by branch."""
    ours = [
        Layer("a1", "Conv2d", "x", "p"),
        Layer("b1", "Conv2d", "z", "q"),
        Layer("a2", "Conv2d", "p", "r"),
        Layer("b2", "Conv2d", "q", "s"),
    ]
    theirs = renamed([ours[0], ours[2], ours[1], ours[3]], {"a1": "k", "a2": "l", "b1": "m", "b2": "n"})
    with pytest.raises(Ambiguous, match="look alike"):
        check(aligned(ours, theirs))


def lacks(found: Alignment) -> list[tuple[str, str, str]]:
    """What is not alike, the name it is recorded as, and MindSpore's path of it."""
    check(found)
    return [(each.lack.value, each.name, each.mindspore) for each in found.unlike]


def changed(layers: Sequence[Layer], path: str, **fields: object) -> list[Layer]:
    return [replace(layer, **fields) if layer.path == path else layer for layer in layers]  # type: ignore[arg-type]


@pytest.mark.parametrize("names", [None, FOREIGN])
def test_a_tensor_that_one_side_lacks_or_freezes_is_told_and_all_else_is_aligned(names: dict[str, str] | None) -> None:
    theirs = renamed(CHAIN, names or {"": ""})
    fc, bn, conv = ((names or {}).get(path, path) for path in ("fc", "bn1", "conv1"))
    cases: list[tuple[Sequence[Layer], Sequence[Layer], list[tuple[str, str, str]]]] = [
        (CHAIN, changed(theirs, fc, lacks=("bias",)), [("missing", "fc.bias", "")]),
        (changed(CHAIN, "fc", lacks=("bias",)), theirs, [("extra", "fc.bias", f"{fc}.bias")]),
        (CHAIN, changed(theirs, fc, frozen=("bias",)), [("frozen", "fc.bias", f"{fc}.bias")]),
        (changed(CHAIN, "fc", frozen=("bias",)), theirs, [("trains", "fc.bias", f"{fc}.bias")]),
        (CHAIN, changed(theirs, conv, frozen=("weight",)), [("frozen", "conv1.weight", f"{conv}.weight")]),
        (changed(CHAIN, "conv1", frozen=("weight",)), theirs, [("trains", "conv1.weight", f"{conv}.weight")]),
        (
            CHAIN,
            changed(theirs, bn, frozen=("weight", "bias")),
            [("frozen", "bn1.weight", f"{bn}.gamma"), ("frozen", "bn1.bias", f"{bn}.beta")],
        ),
        (
            changed(CHAIN, "bn1", lacks=("weight", "bias")),
            theirs,
            [("extra", "bn1.weight", f"{bn}.gamma"), ("extra", "bn1.bias", f"{bn}.beta")],
        ),
        (
            CHAIN,
            changed(theirs, bn, lacks=("running_mean", "running_var")),
            [("missing", "bn1.running_mean", ""), ("missing", "bn1.running_var", "")],
        ),
    ]
    for ours, its, expected in cases:
        found = aligned(ours, its)
        assert lacks(found) == expected
        assert {layer.path for layer in CHAIN} <= modules(found).keys()
        assert len(found.calls) == len(CHAIN)


def test_blocks_with_layers_that_never_run_are_aligned_by_name() -> None:
    """Their weights have other names in MindSpore, as those of the layers that run."""
    blocks = [(f"blocks.{n}.{name}", "LayerNorm", f"{n}{name}") for n in range(3) for name in ("norm1", "norm2")]
    layers = [Layer(path, kind, "x", out) for path, kind, out in blocks]
    ours, theirs = (
        replace(whole, calls=tuple(call for call in whole.calls if not call.path.endswith("norm1")))
        for whole in (structure(framework, layers) for framework in ("torch", "mindspore"))
    )
    found = align(ours, theirs, [])
    how = {match.torch: (match.mindspore, match.how, match.sure) for match in found.modules}
    assert {path: how[path] for path, _, _ in blocks} == {path: (path, NAME, CERTAIN) for path, _, _ in blocks}
    assert found.parameters["blocks.1.norm1.weight"].mindspore == "blocks.1.norm1.gamma"


def test_gradients_by_what_both_leave_alone_are_not_compared() -> None:
    """Torch's replay of a module records zeros for them, and MindSpore nothing; all else that is missing stays."""
    unused = replace(IDENTITY, left_alone=("blocks.0.norm1.weight",))
    missing = [
        Finding("gradients", ALONE, name, n, Verdict.FAIL, "MindSpore has no such tensor")
        for n, name in enumerate(
            ["blocks.0 norm1.weight.grad", "(model) blocks.0.norm1.weight.grad", "blocks.0 norm2.weight.grad"]
        )
    ]
    computed = replace(missing[0], error=0.5)
    assert compared([*missing, computed], unused) == [missing[2], computed]
    assert compared(missing, IDENTITY) == missing


def test_a_tensor_that_both_sides_freeze_is_no_difference() -> None:
    ours, theirs = (
        changed(each, path, frozen=("weight",)) for each, path in ((CHAIN, "conv1"), (renamed(CHAIN), "stem"))
    )
    found = aligned(ours, theirs)
    assert lacks(found) == [] and found.parameters["conv1.weight"].mindspore == "stem.weight"


def test_what_torch_computes_nothing_with_and_mindspore_freezes_is_no_difference() -> None:
    """But for what torch does compute with, and what only torch computes nothing with."""
    ours = structure("torch", CHAIN)
    unreached = {"weight": False, "bias": False}
    modules = [
        replace(m, tensors={n: replace(t, reached=unreached.get(n, True)) for n, t in m.tensors.items()})
        if m.path == "fc"
        else m
        for m in ours.modules
    ]
    for frozen in (("weight", "bias"), ("bias",), ()):
        theirs = structure("mindspore", changed(CHAIN, "fc", frozen=frozen))
        found = align(replace(ours, modules=tuple(modules)), theirs, [])
        assert lacks(found) == [] and found.left_alone == tuple(f"fc.{name}" for name in frozen)
        both = align(replace(ours, modules=tuple(modules)), theirs, [], freezes=True)
        assert lacks(both) == [] and both.left_alone == ("fc.weight", "fc.bias")


def test_what_is_missing_is_told_with_its_place_and_what_to_write() -> None:
    torch, mindspore = (
        structure("torch", CHAIN),
        structure("mindspore", changed(renamed(CHAIN), "end_point", lacks=("bias",))),
    )
    made = [replace(each, made="net.py, line 7") if each.path == "end_point" else each for each in mindspore.modules]
    (told,) = align(torch, replace(mindspore, modules=tuple(made)), []).unlike
    assert told.text == "MindSpore's end_point has no bias; torch's fc has one of shape [5] (net.py, line 7)"
    assert told.fix == "net.end_point: nn.Dense(…, has_bias=True)"


def test_a_wrong_shape_names_both_sides() -> None:
    theirs = renamed(CHAIN)
    theirs[-1] = replace(theirs[-1], width=6, shape=(2, 6))
    found = aligned(CHAIN, theirs)
    assert lacks(found) == [("shape", "fc.weight", "end_point.weight"), ("shape", "fc.bias", "end_point.bias")]
    assert modules(found)["fc"] == "end_point" and ("fc", 0, "end_point", 0) in found.calls
    assert found.unlike[0].text == "MindSpore's end_point.weight has shape [6, 8]; torch's fc.weight has [5, 8]"


@pytest.mark.parametrize("names", [None, FOREIGN])
def test_a_missing_layer_is_told_and_what_follows_keeps_its_partner(names: dict[str, str] | None) -> None:
    theirs = [layer for layer in renamed(CHAIN, names or {"": ""}) if not layer.path.endswith(("1.conv", "1.c"))]
    found = aligned(CHAIN, theirs)
    assert lacks(found) == [("missing", "layer1.1.conv.weight", "")]
    (told,) = found.unlike
    assert told.module == "layer1.1.conv"
    assert told.text == "MindSpore's net has no counterpart of torch's layer1.1.conv (Conv2d)"
    assert modules(found)["layer1.1.bn"] == (names or {}).get("layer1.1.bn", "layer1.1.bn")


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize("lacking", ["torch", "mindspore"])
def test_a_missing_block_is_missing_whole(foreign: bool, lacking: str) -> None:
    """Not the end of one block and the beginning of the next, though all their layers look alike."""

    def net(count: int, name: str) -> list[Layer]:
        kinds = ("Conv2d", "BatchNorm2d", "Conv2d", "BatchNorm2d")
        return [
            Layer("stem", "Conv2d", "x", "0", 8),
            *(
                Layer(f"{name}.{i}.l{j}", kind, f"{i}.{j}" if j else f"{i}", f"{i}.{j + 1}" if j < 3 else f"{i + 1}")
                for i in range(count)
                for j, kind in enumerate(kinds)
            ),
            Layer("fc", "Linear", f"{count}", "y", 5, (2, 5)),
        ]

    its = "stages" if foreign else "layers"
    found = aligned(net(3 if lacking == "mindspore" else 2, "layers"), net(2 if lacking == "mindspore" else 3, its))
    check(found)
    side, name = ("missing", "layers") if lacking == "mindspore" else ("extra", its)
    ((what, block),) = {(each.lack.value, each.module) for each in found.unlike}
    assert what == side and block in ([f"{name}.1", f"{name}.2"] if foreign else [f"{name}.2"])
    assert modules(found)["layers.0"] == f"{its}.0" and modules(found)["fc"] == "fc"


def test_tensors_that_nothing_tells_apart_are_asked() -> None:
    ours, theirs = structure("torch", CHAIN), structure("mindspore", CHAIN)

    def with_own(found: Structure, **own: tuple[int, ...]) -> Structure:
        root = replace(found.modules[0], tensors={name: _held(shape) for name, shape in own.items()})
        return replace(found, modules=(root, *found.modules[1:]))

    found = align(with_own(ours, a=(1, 8), b=(1, 8)), with_own(theirs, p=(1, 8), q=(1, 8)), [])
    with pytest.raises(
        Ambiguous, match=r"torch's a \[1, 8\], b \[1, 8\] and MindSpore's p \[1, 8\], q \[1, 8\] have equal"
    ):
        check(found)
    found = align(with_own(ours, a=(1, 8), b=(1, 8)), with_own(theirs, b=(1, 8)), [])
    assert lacks(found) == [("missing", "a", "")]  # b is called b
    found = align(with_own(ours, a=(1, 8)), with_own(theirs, p=(1, 4)), [])
    assert lacks(found) == [("shape", "a", "p")]


def test_a_plain_tensor_in_a_parameters_place_is_told() -> None:
    ours, theirs = structure("torch", CHAIN), structure("mindspore", CHAIN)
    ours = replace(ours, modules=(replace(ours.modules[0], tensors={"pos": _held((1, 8))}), *ours.modules[1:]))
    root = replace(theirs.modules[0], attributes={"place": replace(_held((8,)), trains=False, made="net.py, line 3")})
    found = align(ours, replace(theirs, modules=(root, *theirs.modules[1:])), [])
    assert lacks(found) == [("constant", "pos", "place")]
    assert found.unlike[0].text.startswith("MindSpore's place is a Tensor and no Parameter")
    assert (
        found.unlike[0].text.endswith("(net.py, line 3)") and found.unlike[0].fix == "net.place: mindspore.Parameter(…)"
    )


def test_models_that_have_nothing_in_common_are_refused() -> None:
    other = [Layer("embed", "Embedding", "x", "a", 3, (2, 3)), Layer("head", "Linear", "a", "y", 7, (2, 7))]
    with pytest.raises(BadInput, match="have nothing in common that could be compared") as refused:
        check(aligned(CHAIN[:-1], other))
    assert "\n" not in str(refused.value) and str(refused.value).endswith("with --map")


def test_a_wrong_activation_keeps_its_place() -> None:
    theirs = [replace(layer, kind="GELU") if layer.kind == "ReLU" else layer for layer in renamed(CHAIN)]
    found = aligned(CHAIN, theirs)
    check(found)
    assert modules(found)["relu"] == "act"


def test_axes_of_one_may_differ() -> None:
    ours, theirs = structure("torch", CHAIN), structure("mindspore", renamed(CHAIN))
    root = replace(ours.modules[0], tensors={"pos": _held((1, 4, 8))})
    their_root = replace(theirs.modules[0], tensors={"position": _held((4, 8))})
    ours = replace(ours, modules=(root, *ours.modules[1:]))
    theirs = replace(theirs, modules=(their_root, *theirs.modules[1:]))
    found = align(ours, theirs, [])
    check(found)
    assert found.parameters["pos"].mindspore == "position" and found.parameters["pos"].shape == (1, 4, 8)


def _held(shape: tuple[int, ...]) -> Held:
    return Held(shape, True)


def test_a_written_map_reads_back_to_the_same_alignment(tmp_path: Path) -> None:
    found = aligned(CHAIN, renamed(CHAIN))
    path = tmp_path / "map.yaml"
    write_rules(path, [(m.torch, m.mindspore, f"{m.how}, {m.sure}") for m in found.modules if m.torch])
    again = align(structure("torch", CHAIN), structure("mindspore", renamed(CHAIN)), read_rules(path))
    assert modules(again) == modules(found) and again.parameters.keys() == found.parameters.keys()
    assert {m.how for m in again.modules if m.torch} == {MAP} and {m.sure for m in again.modules} == {CERTAIN}


KINDS = st.sampled_from(["Conv2d", "BatchNorm2d", "ReLU", "Linear", "Dropout"])


@settings(max_examples=60, deadline=None)
@given(
    kinds=st.lists(st.tuples(KINDS, st.sampled_from([4, 8]), st.booleans()), min_size=1, max_size=14),
    seed=st.integers(),
)
def test_a_chain_under_any_names_is_found_whole(kinds: list[tuple[str, int, bool]], seed: int) -> None:
    """Layers one after the other, under drawn names and in a drawn order of definition, some without a Cell."""
    names = random.Random(seed)
    ours = [Layer(f"block{i // 3}.l{i}", kind, str(i), str(i + 1), width) for i, (kind, width, _) in enumerate(kinds)]
    foreign = {layer.path: f"n{i // 3}.m{names.randrange(10**9)}" for i, layer in enumerate(ours)}
    kept = [layer for layer, (_, _, function) in zip(ours, kinds, strict=True) if not (function and layer.kind in FREE)]
    theirs = renamed(kept, foreign)
    if not theirs:
        return
    paths = [layer.path for layer in theirs]
    names.shuffle(paths)
    found = align(structure("torch", ours), structure("mindspore", theirs, paths), [])
    check(found)
    pairs = modules(found)
    for layer in kept:
        if layer.kind not in FREE:
            assert pairs[layer.path] == foreign[layer.path]


FREE = ("ReLU", "Dropout")


ATTENTION = (
    Layer("norm", "LayerNorm", "x", "a"),
    Layer("attn.qkv", "Linear", "a", "b", 24),
    Layer("attn.proj", "Linear", "b", "c", 12),
    Layer("act", "ReLU", "c", "d"),
    Layer("head", "Linear", "d", "y", 5, (2, 5)),
)


@pytest.mark.parametrize("side", ["torch", "mindspore"])
def test_a_module_that_hands_its_parts_weights_to_functions_is_one_layer(side: str) -> None:
    """torchvision's Swin never calls its attention's qkv and proj: F.linear gets their weights."""
    both = {framework: structure(framework, ATTENTION) for framework in ("torch", "mindspore")}
    calls = tuple(call for call in both[side].calls if not call.path.startswith("attn."))
    both[side] = replace(both[side], calls=calls)
    found = align(both["torch"], both["mindspore"], [])
    assert [call[0] for call in found.calls] == ["norm", "attn", "act", "head"]
    assert modules(found)["attn"] == "attn" and not found.ask and not found.unlike
    assert {"attn.qkv.weight", "attn.proj.bias"} <= found.parameters.keys()


def test_a_module_with_other_tensors_inside_is_not_closed() -> None:
    torch = structure("torch", ATTENTION)
    torch = replace(torch, calls=tuple(call for call in torch.calls if not call.path.startswith("attn.")))
    other = replace(ATTENTION[2], width=10)
    found = align(torch, structure("mindspore", [*ATTENTION[:2], other, *ATTENTION[3:]]), [])
    assert found.unlike or found.ask


def test_a_list_with_one_layer_of_that_name_is_not_closed() -> None:
    ours = (*CHAIN[:-1], Layer("head.0", "Dropout", "h", "i"), Layer("head.1", "Linear", "i", "y", 5, (2, 5)))
    theirs = (*CHAIN[:-1], Layer("drop", "Dropout", "h", "i"), Layer("head", "Linear", "i", "y", 5, (2, 5)))
    found = modules(aligned(ours, theirs))
    assert (found["head.0"], found["head.1"]) == ("drop", "head")


@pytest.mark.parametrize("one_there", [False, True])
def test_one_layer_is_the_module_that_holds_its_tensors_in_several(one_there: bool) -> None:
    """MultiheadAttention, twice, against a module with a packed projection, and the reverse."""
    one = [
        Layer("stem", "Linear", "x", "a"),
        *(Layer(f"b.{i}.mix", "MultiheadAttention", f"a{i}", f"b{i}") for i in range(2)),
        Layer("head", "Linear", "c", "y", 5, (2, 5)),
    ]
    several = [
        Layer("first", "Linear", "x", "a"),
        *(
            layer
            for i in range(2)
            for layer in (
                Layer(f"e.{i}.at.three", "Linear", f"a{i}", f"b{i}", 24),
                Layer(f"e.{i}.at.out", "Linear", f"c{i}", f"d{i}", 8),
            )
        ),
        Layer("last", "Linear", "c", "y", 5, (2, 5)),
    ]
    found = aligned(several, one) if one_there else aligned(one, several)
    check(found)
    pairs = [("b.0.mix", "e.0.at"), ("b.1.mix", "e.1.at")]
    assert {(b, a) if one_there else (a, b) for a, b in pairs} <= modules(found).items()
    names = {name: tensor.mindspore for name, tensor in found.parameters.items()}
    assert not found.unlike and len(names) == 4 + 2 * 4
    if not one_there:
        assert names["b.1.mix.in_proj_weight"] == "e.1.at.three.weight"
        assert names["b.1.mix.out_bias"] == "e.1.at.out.bias"


def test_norms_that_stand_behind_the_branches_there_stay_in_their_blocks() -> None:
    """What the last norm of a block gives goes where torch's first norm of the next block does."""

    def net(*block: tuple[str, str, str, str]) -> list[Layer]:
        """Blocks of (name, class, what goes in, what comes out), where + is behind an addition."""
        layers, x = [Layer("stem", "Linear", "i", "x", 12)], "x"
        for i in range(2):
            layers += [Layer(f"b.{i}.{n}", kind, x if a == "x" else f"{i}{a}", f"{i}{b}") for n, kind, a, b in block]
            x = layers[-1].output + ("+" if block[-1][1] == "Conv2d" else "")
        return [*layers, Layer("out", "Linear", x, "y", 5, (2, 5))]

    mix, grow, norm = "Linear", "Conv2d", "LayerNorm"
    ours = net(("n1", norm, "x", "a"), ("mix", mix, "a", "b"), ("n2", norm, "b+", "c"), ("grow", grow, "c", "d"))
    theirs = net(("mix", mix, "x", "b"), ("n1", norm, "b+", "c"), ("grow", grow, "c", "d"), ("n2", norm, "d+", "e"))
    foreign = {f"b.{i}.{name}": f"own.{i}.{name}_" for i in range(2) for name in ("n1", "n2", "mix", "grow")}
    found = aligned(ours, renamed(theirs, {**foreign, "stem": "begin", "out": "end"}))
    check(found)
    partners = modules(found)
    assert all(partners[f"b.{i}.{name}"].startswith(f"own.{i}.") for i in range(2) for name in ("n1", "n2", "mix"))


@pytest.mark.parametrize("loop_there", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_recurrent_layer_has_the_tensors_of_the_cell_that_the_other_net_calls_in_a_loop(
    kind: str, loop_there: bool
) -> None:
    """Their calls are no counterparts: one makes all steps, the other one of them."""
    layer = [Layer("embed", "Embedding", "i", "a"), Layer("read", kind, "a", "b"), Layer("out", "Linear", "c", "y", 5)]
    steps = [Layer("one.step", f"{kind}Cell", f"s{i}", f"h{i}") for i in range(3)]
    loop = [replace(layer[0], path="words"), *steps, replace(layer[2], path="end")]
    found = aligned(layer, loop) if loop_there else aligned(loop, layer)
    check(found)
    path, suffix, other = ("read", "_l0", "one.step.bias_ih") if loop_there else ("one.step", "", "read.bias_ih_l0")
    assert found.parameters[f"{path}.bias_ih{suffix}"].mindspore == other
    assert found.chains == {path: ()} and not found.unlike and len(found.calls) == 2


@pytest.mark.parametrize("loop_there", [False, True])
def test_a_recurrent_layer_of_both_directions_has_the_tensors_of_two_cells(loop_there: bool) -> None:
    ends = [Layer("embed", "Embedding", "i", "a"), Layer("out", "Linear", "c", "y", 5)]
    layer = [ends[0], Layer("read", "GRU", "a", "b", both=True), ends[1]]
    steps = [Layer(f"{way}.step", "GRUCell", f"s{i}", f"{way}{i}") for way in ("go", "come") for i in range(3)]
    loop = [replace(ends[0], path="words"), *steps, replace(ends[1], path="end")]
    found = aligned(layer, loop) if loop_there else aligned(loop, layer)
    check(found)
    assert not found.unlike and not found.chains and len(found.calls) == 2
    for way, end in (("go", ""), ("come", "_reverse")):
        pair = f"read.bias_ih_l0{end}", f"{way}.step.bias_ih"
        name, target = pair if loop_there else pair[::-1]
        assert found.parameters[name].mindspore == target
    both = structure("mindspore", loop, ["words", "come.step", "go.step", "end"])
    with pytest.raises(Ambiguous):  # which of them goes forward is not said where they are defined in another order
        check(align(structure("torch", layer), both, []))


def bottlenecks(own_relu: bool) -> list[Layer]:
    """Three blocks, of which the first is plain; the others' second convolution stands in a list with its own ReLU."""
    found, at = [], 0

    def layer(path: str, kind: str, channels: int) -> None:
        nonlocal at
        shape = (channels, channels, 3, 3) if kind == "Conv2d" else ()
        found.append(Layer(path, kind, str(at), str(at + 1), channels, *([shape] if shape else [])))
        at += 1

    for n, width in ((1, 4), (2, 8), (3, 16)):
        inside = own_relu and n > 1
        names = (
            [f"layer{n}.e2.{i}" for i in range(3)] if inside else [f"layer{n}.{x}" for x in ("conv2", "bn2", "relu")]
        )
        for path, kind in (
            *((f"layer{n}.conv1", "Conv2d"), (f"layer{n}.bn1", "BatchNorm2d"), (f"layer{n}.relu", "ReLU")),
            *zip(names, ("Conv2d", "BatchNorm2d", "ReLU"), strict=True),
            *((f"layer{n}.conv3", "Conv2d"), (f"layer{n}.bn3", "BatchNorm2d"), (f"layer{n}.relu", "ReLU")),
        ):
            layer(path, kind, width)
    return found


def test_a_block_s_own_relu_is_a_call_of_the_other_s_shared_one() -> None:
    """It once went to the shared ReLU of the next block, whose outputs have other shapes."""
    found = aligned(bottlenecks(False), bottlenecks(True))
    check(found)
    for n in (2, 3):
        assert found.torch_call(f"layer{n}.e2.2", 0) == (f"layer{n}.relu", 1)
        assert [found.torch_call(f"layer{n}.relu", k) for k in (0, 1)] == [(f"layer{n}.relu", 0), (f"layer{n}.relu", 2)]
        assert modules(found)[f"layer{n}.conv2"] == f"layer{n}.e2.0"


def block(path: str, inputs: str, output: str) -> list[Layer]:
    return [
        Layer(f"{path}conv", "Conv2d", inputs, f"{output}1"),
        Layer(f"{path}bn", "BatchNorm2d", f"{output}1", f"{output}2"),
    ]


def told_as(framework: str, layers: Sequence[Layer], outputs: dict[str, str]) -> Structure:
    """The structure with what some containers give: the output of this layer and not a tensor of their own."""
    found = structure(framework, layers)
    given = {call.path: call.output for call in found.calls}
    ends = [
        replace(call, output=given[outputs[call.path]] if call.path in outputs else 1000 + i, shape=(2, 8, 6, 6))
        if call.output is None
        else call
        for i, call in enumerate(found.calls)
    ]
    return replace(found, calls=tuple(ends))


def test_what_adds_a_residual_goes_with_what_adds_one() -> None:
    """Torch's list holds a block, which adds; MindSpore's block holds a list, and adds what that gave."""
    ours = told_as("torch", [*block("a.0.", "x", "y"), *block("b.0.", "z", "u")], {})
    theirs = told_as(
        "mindspore",
        [*block("one.list.", "x", "y"), *block("two.list.", "z", "u")],
        {"one.list": "one.list.bn", "two.list": "two.list.bn"},
    )
    found = modules(align(ours, theirs, []))
    assert "one.list" not in found.values() and "two.list" not in found.values()
    assert {found.get("a"), found.get("a.0")} >= {"one"} and {found.get("b"), found.get("b.0")} >= {"two"}


def test_an_identity_behind_the_addition_is_no_layer_that_a_block_ends_with() -> None:
    """timm's blocks end with an activation that may be none; mindcv's list in a block was taken for such a block."""
    ours = told_as(
        "torch",
        [*block("a.0.", "x", "y"), Layer("a.0.act", "Identity", "+a.0", "+a.0"), *block("b.0.", "z", "u")],
        {"a.0": "a.0.act"},
    )
    theirs = told_as(
        "mindspore", [*block("one.list.", "x", "y"), *block("two.list.", "z", "u")], {"one.list": "one.list.bn"}
    )
    found = modules(align(ours, theirs, []))
    assert "one.list" not in found.values() and {found.get("a"), found.get("a.0")} >= {"one"}


def test_a_stage_that_makes_an_image_of_tokens_is_no_list_of_blocks() -> None:
    """timm's list of blocks gives tokens, mindcv's stage around its blocks an image: "expected [2, 197, 128]"."""
    ours, theirs = (
        told_as(side, block(f"{path}.", "x", "y"), {}) for side, path in (("torch", "a"), ("mindspore", "b"))
    )

    def around(found: Structure, path: str, kind: str, shape: tuple[int, ...] | None) -> Structure:
        calls = tuple(replace(call, shape=shape) if call.path == path else call for call in found.calls)
        modules = tuple(replace(module, kind=kind) if module.path == path else module for module in found.modules)
        return replace(found, calls=calls, modules=modules)

    one = around(ours, "a", "Sequential", (2, 37, 8))
    for shape in ((2, 8, 6, 6), None):  # or an image and a token
        assert "a" not in modules(align(one, around(theirs, "b", "Stage", shape), []))
    assert modules(align(one, around(theirs, "b", "Stage", (2, 37, 8)), []))["a"] == "b"
    assert modules(align(one, around(theirs, "b", "SequentialCell", (2, 8, 6, 6)), []))["a"] == "b"  # and is at fault


def test_a_layer_of_another_shape_is_found_by_the_one_layer_beside_it() -> None:
    """In front of it one net has a layer more; behind it both have the same."""
    ours = [
        Layer("conv", "Conv2d", "x", "a"),
        Layer("relu", "ReLU", "a", "b"),
        Layer("squeeze", "Linear", "b", "c", 4, (2, 4)),
        Layer("expand", "Linear", "c", "d", 5, (2, 5)),
    ]
    theirs = renamed([*ours[:1], replace(ours[2], width=6), ours[3]], {"squeeze": "down", "expand": "up"})
    found = aligned(ours, theirs)
    assert modules(found)["squeeze"] == "down" and modules(found)["expand"] == "up"
    assert {each.name: each.lack.value for each in found.unlike} == {"squeeze.weight": "shape", "squeeze.bias": "shape"}


def test_tensors_of_one_shape_go_by_the_module_around_them() -> None:
    """A scale is a layer of its own in one net, and a parameter of the block in the other."""
    ours = structure("torch", [*block("a.", "x", "y"), *block("b.", "z", "u")])
    scale = {"scale": Held((8,), True)}
    more = [
        module
        for path in ("a", "b")
        for module in (Module(f"{path}.ls1", "Scale", scale), Module(f"{path}.ls2", "Scale", scale))
    ]
    theirs = structure("mindspore", [*block("one.", "x", "y"), *block("two.", "z", "u")])
    held = {"ls_2": Held((8,), True), "ls_1": Held((8,), True)}
    cells = tuple(replace(m, tensors=held) if m.path in ("one", "two") else m for m in theirs.modules)
    found = align(replace(ours, modules=(*ours.modules, *more)), replace(theirs, modules=cells), [])
    check(found)
    assert {n: t.mindspore for n, t in found.parameters.items() if "scale" in n} == {
        "a.ls1.scale": "one.ls_1",
        "a.ls2.scale": "one.ls_2",
        "b.ls1.scale": "two.ls_1",
        "b.ls2.scale": "two.ls_2",
    }


WIDE = (2, 16, 6, 6)


def preactivated(*, stem: bool, late: bool, last: bool) -> list[Layer]:
    """Three blocks of norm, ReLU and convolution, twice. stem: a norm and a ReLU in front of them too; late: the branch
    of the first one runs behind the rest, and ends with a norm; last: a norm behind all."""
    found = [Layer("stem.0", "Conv2d", "i", "s")]
    if stem:
        found += [Layer("stem.1", "BatchNorm2d", "s", "t"), Layer("stem.2", "ReLU", "t", "u")]
    x = found[-1].output
    for n, (width, shape) in enumerate(((8, SHAPE), (16, WIDE), (16, WIDE))):
        at = f"body.{n}."
        begin = [
            Layer(f"{at}n1", "BatchNorm2d", x, f"{n}a", width, shape),
            Layer(f"{at}r1", "ReLU", f"{n}a", f"{n}b", 8, shape),
        ]
        main = [
            Layer(f"{at}c1", "Conv2d", f"{n}b", f"{n}c"),
            Layer(f"{at}n2", "BatchNorm2d", f"{n}c", f"{n}d"),
            Layer(f"{at}r2", "ReLU", f"{n}d", f"{n}e"),
            Layer(f"{at}c2", "Conv2d", f"{n}e", f"{n}f", 16, WIDE),
        ]
        side = [Layer(f"{at}down.0", "Conv2d", f"{n}b", f"{n}g", 16, WIDE)] * (n == 0)
        if late and n == 0:
            side.append(Layer(f"{at}down.1", "BatchNorm2d", f"{n}g", f"{n}h", 16, WIDE))
        found += [*begin, *main, *side] if late else [*begin, *side, *main]
        x = f"{n}+"
    found += [Layer("last", "BatchNorm2d", x, "y", 16, WIDE), Layer("active", "ReLU", "y", "z", 8, WIDE)] * last
    return [*found, Layer("head", "Linear", "pooled", "logits", 5, (2, 5))]


def with_their_relu(found: Structure) -> Structure:
    """The net whose norms call the ReLU that was behind them, as timm's do."""
    calls = list(found.calls)
    inside: dict[str, str] = {}
    for norm, act in itertools.pairwise(found.calls):
        if torch_class(found.by_path[norm.path].kind) == "BatchNorm2d" and found.by_path[act.path].kind == "ReLU":
            inside[act.path] = f"{norm.path}.act"
            calls[calls.index(norm)] = replace(norm, left=act.left, output=act.output)
            calls[calls.index(act)] = replace(act, path=inside[act.path], entered=act.entered - 1, left=act.left - 1)
    modules = [replace(module, path=inside.get(module.path, module.path)) for module in found.modules]
    return replace(found, modules=tuple(modules), calls=tuple(sorted(calls, key=lambda call: call.entered)))


@pytest.mark.parametrize("inside", [("torch",), ("mindspore",), ("torch", "mindspore"), ()])
@pytest.mark.parametrize("more", ["torch", "mindspore", ""])
def test_a_norm_more_is_one_more_and_those_behind_it_keep_their_blocks(more: str, inside: tuple[str, ...]) -> None:
    """Which of two norms has a counterpart is shown by the ReLU and the convolution behind it, though one net's norms
    call that ReLU themselves; a branch's norm and one behind all blocks are not the same, though alone of their
    shape."""
    ours = preactivated(stem=more == "torch", late=more == "torch", last=more == "mindspore")
    theirs = preactivated(stem=more == "mindspore", late=more == "mindspore", last=more == "torch")
    foreign = {layer.path: layer.path.replace("body", "stages").replace(".n", ".norm_") for layer in theirs}
    torch, mindspore = structure("torch", ours), structure("mindspore", renamed(theirs, foreign))
    torch = with_their_relu(torch) if "torch" in inside else torch
    mindspore = with_their_relu(mindspore) if "mindspore" in inside else mindspore
    found = align(torch, mindspore, [])
    check(found)
    kept = [f"body.{n}.{name}" for n in range(3) for name in ("n1", "n2", "c1", "c2")]
    assert {path: modules(found).get(path) for path in kept} == {path: foreign[path] for path in kept}
    missing, extra = ({m.module for m in found.unlike if m.lack is lack} for lack in (Lack.MISSING, Lack.EXTRA))
    ends, last = {"stem.1", "stages.0.down.1" if more == "mindspore" else "body.0.down.1"}, {"last"}
    assert (missing, extra) == {"torch": (ends, last), "mindspore": (last, ends), "": (set(), set())}[more]
