"""What stands together in a state dict tells the class, and the mapping table agrees within each family."""

from __future__ import annotations

import pytest
from msmigrate.errors import Unsupported
from msmigrate.mappings import table
from msmigrate.mappings.rows import Row
from msmigrate.migrate.checkpoint import plan as oc
from msmigrate.migrate.checkpoint.plan import Family, Shape

LAYERS = [*table.rows("layer"), *table.rows("module")]
ROWS: dict[str, Row] = {name: row for row in LAYERS for name in (row.torch, *row.aliases)}


@pytest.mark.parametrize(
    ("leaves", "expected"),
    [
        ({"weight": (8, 3, 3, 3)}, (oc.CONVOLUTIONS[4],)),
        ({"weight": (8, 3, 3, 3), "bias": (8,)}, (oc.CONVOLUTIONS[4],)),
        ({"weight": (8, 3, 3, 3), "bias": (6,)}, (oc.CONVOLUTIONS[4],)),  # transposed, two groups
        ({"weight": (8, 3, 3, 3), "bias": (7,)}, ()),
        ({"weight": (8, 0, 3, 3), "bias": (7,)}, ()),
        ({"weight": (8, 3, 3), "bias": (8,)}, (oc.CONVOLUTIONS[3],)),
        ({"weight": (8, 3, 3, 3, 3)}, (oc.CONVOLUTIONS[5],)),
        ({"weight": (8, 3), "bias": (8,)}, (oc.LINEAR,)),
        ({"weight": (3, 8), "bias": (8,)}, ()),  # a transposed linear layer, as GPT-2 has them
        ({"weight": (8, 3)}, (oc.LINEAR, oc.EMBEDDING, oc.EMBEDDING_BAG)),
        ({"weight": (8,), "bias": (8,)}, (oc.AFFINE_NORM,)),
        ({"weight": (8, 4), "bias": (8, 4)}, (oc.AFFINE_NORM,)),
        ({"weight": (8,)}, (oc.PRELU, oc.RMS_NORM, oc.AFFINE_NORM)),
        ({"weight": ()}, ()),
        ({"weight": (), "bias": ()}, ()),
        ({"weight": (8,), "bias": (4,)}, ()),
        ({"weight": (2, 3, 4, 5, 6, 7)}, ()),
        ({"weight": (8,), "scale": (8,)}, ()),
        (
            dict.fromkeys(["weight", "bias", "running_mean", "running_var", "num_batches_tracked"], (8,)),
            (oc.BATCH_NORM,),
        ),
        ({"running_mean": (8,), "running_var": (8,), "num_batches_tracked": ()}, (oc.BATCH_NORM,)),
        ({"running_mean": (8,), "running_var": (4,)}, ()),
        ({"running_mean": (8, 1), "running_var": (8, 1)}, ()),
        ({"running_mean": (8,)}, ()),
        ({"num_batches_tracked": ()}, ()),
        ({"running_mean": (8,), "running_var": (8,), "extra": (8,)}, ()),
        ({"class_token": (1, 1, 8), "positions": (1, 9, 8)}, None),
        ({"bias": (8,)}, None),
        ({"weight_ih_l0": (8, 2), "weight_hh_l0": (8, 2)}, (oc.RECURRENT,)),
        ({"weight_hr_l1_reverse": (8, 2)}, (oc.RECURRENT,)),
        ({"weight_ih": (8, 2), "weight_hh": (8, 2), "bias_ih": (8,), "bias_hh": (8,)}, (oc.RECURRENT_CELL,)),
        ({"weight_ih": (8, 2), "weight_hh": (8, 2), "weight_ch": (8, 2)}, None),
        ({"in_proj_weight": (24, 8), "in_proj_bias": (24,)}, (oc.ATTENTION,)),
    ],
)
def test_families(leaves: dict[str, Shape], expected: tuple[Family, ...] | None) -> None:
    assert oc.families(leaves) == expected


def test_grouping_keeps_the_order_and_splits_at_the_last_dot() -> None:
    found = oc.modules({"a.b.weight": (2, 2), "token": (1,), "a.b.bias": (2,), "a.c": (1,)})
    assert [(module.path, list(module.leaves)) for module in found] == [
        ("a.b", ["weight", "bias"]),
        ("", ["token"]),
        ("a", ["c"]),
    ]


def test_beside_a_volumetric_convolution_a_batch_norm_may_be_either() -> None:
    """MindSpore's BatchNorm3d keeps its tensors one level deeper than BatchNorm2d does."""
    statistics: dict[str, Shape] = {"bn.running_mean": (4,), "bn.running_var": (4,)}
    assert oc.modules(statistics)[0].families == (oc.BATCH_NORM,)
    with_volume = oc.modules({"conv.weight": (4, 3, 3, 3, 3), **statistics})
    assert with_volume[1].families == (oc.BATCH_NORM, oc.BATCH_NORM_3D)


def attention(path: str) -> dict[str, Shape]:
    return {f"{path}.in_proj_weight": (24, 8), f"{path}.out_proj.weight": (8, 8)}


TRANSFORMER: dict[str, Shape] = {
    **attention("e.self_attn"),
    "e.linear1.weight": (9, 8),
    "e.linear2.weight": (8, 9),
    "e.norm1.weight": (8,),
    "e.norm2.weight": (8,),
}


def test_the_output_of_an_attention_is_linear_and_no_embedding() -> None:
    assert oc.modules(attention("a"))[1].families == (oc.LINEAR,)
    assert oc.modules({"in_proj_weight": (24, 8), "out_proj.weight": (8, 8)})[1].families == (oc.LINEAR,)
    assert oc.modules({"a.out_proj.weight": (8, 8)})[0].families == (oc.LINEAR, oc.EMBEDDING, oc.EMBEDDING_BAG)


def test_the_linear_layers_of_a_transformer_layer_may_be_its_own() -> None:
    """torch's nn.TransformerEncoderLayer and classes that people write have the same names; MindSpore's has others."""
    found = {module.path: module.families for module in oc.modules(TRANSFORMER)}
    assert found["e.linear1"] == found["e.linear2"] == (oc.LINEAR, oc.ENCODER_LAYER)
    decoder = {module.path: module.families for module in oc.modules({**TRANSFORMER, **attention("e.multihead_attn")})}
    assert decoder["e.linear1"] == (oc.LINEAR, oc.DECODER_LAYER)
    for missing in ("e.norm2.weight", "e.self_attn.in_proj_weight"):
        less = {name: shape for name, shape in TRANSFORMER.items() if name != missing}
        alone = {module.path: module.families for module in oc.modules(less)}
        assert alone["e.linear1"] == (oc.LINEAR, oc.EMBEDDING, oc.EMBEDDING_BAG)


@pytest.mark.parametrize(
    "shapes",
    [
        {"conv.weight_g": (1,), "conv.weight_v": (1,)},
        {"conv.parametrizations.weight.original0": (1,)},
        {"parametrizations.weight.original": (1,)},
        {"fc.weight_orig": (2, 2), "fc.weight_u": (2,)},
    ],
)
def test_computed_weights_are_unsupported(shapes: dict[str, Shape]) -> None:
    with pytest.raises(Unsupported, match="computed from several tensors"):
        oc.check_plain(oc.modules(shapes)[0])


@pytest.mark.parametrize("family", oc.FAMILIES, ids=lambda family: family.label)
def test_the_table_gives_the_classes_of_a_family_the_same_names(family: Family) -> None:
    """As far as their tensors are the same: an InstanceNorm is in the families of those with and without statistics."""
    found: dict[str | None, set[tuple[str | None, str | None]]] = {}
    for row in {ROWS[name].torch: ROWS[name] for name in family.classes if name in ROWS}.values():
        for state in row.state:
            found.setdefault(state.torch, set()).add((state.mindspore, state.verb))
    assert {torch: ways for torch, ways in found.items() if len(ways) > 1} == {}


def test_every_layer_with_tensors_of_its_own_belongs_to_a_family() -> None:
    known = {name for family in oc.FAMILIES for name in family.classes}
    rows = [row for row in ROWS.values() if row.torch.startswith("torch.nn.")]
    own = {row.torch for row in rows if any("." not in (state.torch or ".") for state in row.state)}
    assert own - known == set()
