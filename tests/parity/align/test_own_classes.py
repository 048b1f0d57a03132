"""A class of the user's with the name of a layer is that layer only where it has nothing in it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from msmigrate.parity.align.match_layers import align
from msmigrate.parity.align.model_structure import Structure
from msmigrate.parity.align.user_model import OWN, layer_class, of_one_name
from structures import Layer, structure

# a language model whose decoder has the shape of its embedding
WORDS = (Layer("encoder", "Embedding", "x", "a", 8), Layer("decoder", "Linear", "a", "y", 31, (2, 31)))


def _named(side: Structure, kind: str) -> Structure:
    return replace(side, modules=tuple(replace(m, kind=m.kind if m.path else kind) for m in side.modules))


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU", "MultiheadAttention", "Transformer"])
def test_a_models_class_with_the_name_of_a_layer(name: str) -> None:
    """`class RNN(nn.Module)` with an embedding and a decoder was taken for torch's RNN, and their weights exchanged."""
    made = type(name, (torch.nn.Module,), {"__module__": __name__})
    kind = layer_class(made.mro(), parts=True)
    sides = [_named(structure(one, WORDS), kind) for one in ("torch", "mindspore")]
    found = align(sides[0], sides[1], [])
    assert not found.ask and not found.unlike
    assert {key: value.mindspore for key, value in found.parameters.items()} == {
        "encoder.weight": "encoder.embedding_table",
        "decoder.weight": "decoder.weight",
        "decoder.bias": "decoder.bias",
    }


def test_which_classes_are_marked() -> None:
    own = type("LSTM", (torch.nn.Module,), {"__module__": __name__})
    derived = type("LSTM", (torch.nn.LSTM,), {"__module__": __name__})
    other = type("Words", (torch.nn.Module,), {"__module__": __name__})
    assert layer_class(own.mro(), parts=True) == "LSTM" + OWN
    assert layer_class(own.mro(), parts=False) == "LSTM"  # a layer by hand
    assert layer_class(derived.mro(), parts=True) == layer_class(torch.nn.LSTM.mro(), parts=True) == "LSTM"
    assert layer_class(other.mro(), parts=True) == "Words"


def test_a_class_that_one_side_alone_has_stands_for_the_layer() -> None:
    sides = structure("torch", WORDS), structure("mindspore", WORDS)
    one, other = of_one_name(_named(sides[0], "RNN"), _named(sides[1], "RNN" + OWN))
    assert (one.modules[0].kind, other.modules[0].kind) == ("RNN", "RNN")
    both = of_one_name(*(_named(side, "RNN" + OWN) for side in sides))
    assert [side.modules[0].kind for side in both] == ["RNN" + OWN, "RNN" + OWN]
