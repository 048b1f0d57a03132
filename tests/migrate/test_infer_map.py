"""A map of names is guessed by order and shapes, and what fits nothing is told."""

from __future__ import annotations

from msmigrate.migrate.checkpoint.user_map import infer

BATCH_NORM = {
    "bn.weight": (8,),
    "bn.bias": (8,),
    "bn.running_mean": (8,),
    "bn.running_var": (8,),
    "bn.num_batches_tracked": (),
}
SHAPES = {"conv.weight": (8, 3, 3, 3), **BATCH_NORM, "one.weight": (4, 8, 3), "fc.weight": (2, 4), "fc.bias": (2,)}
NET = {
    "stem.weight": ((8, 3, 3, 3), "float32"),
    "norm.gamma": ((8,), "float32"),
    "norm.beta": ((8,), "float32"),
    "norm.moving_mean": ((8,), "float32"),
    "norm.moving_variance": ((8,), "float32"),
    "line.weight": ((4, 8, 1, 3), "float32"),
    "fc.weight": ((2, 4), "float32"),
    "fc.bias": ((2,), "float32"),
}


def test_modules_go_together_in_order_by_their_tensors() -> None:
    found = infer(SHAPES, None, NET)
    assert sorted(found.pairs) == [
        ("bn", "norm", "by order and shapes"),
        ("conv", "stem", "by order and shapes"),
        ("fc", "fc", "same name"),
        ("one", "line", "by order and shapes"),
    ]
    assert (found.ours, found.theirs) == ([], [])


def test_what_fits_nothing_is_told() -> None:
    net = {**NET, "stem.weight": ((9, 3, 3, 3), "float32"), "extra.weight": ((7, 7), "float32")}
    found = infer(SHAPES, None, net)
    assert found.ours == ["conv"]
    assert found.theirs == ["stem", "extra"]


def test_an_embedding_is_told_from_a_linear_layer_by_the_net() -> None:
    found = infer({"words.weight": (6, 4)}, None, {"table.embedding_table": ((6, 4), "float32")})
    assert found.pairs == [("words", "table", "by order and shapes")]


def test_classes_that_are_known_decide() -> None:
    owners = {"words": ("torch.nn.Linear",)}
    found = infer({"words.weight": (6, 4)}, owners, {"table.embedding_table": ((6, 4), "float32")})
    assert found.pairs == []
