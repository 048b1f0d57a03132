"""The same sources in Graph mode; slow to compile, and so in the full suite."""

from __future__ import annotations

import pytest
from written import Written, copied, write

NAMES = (
    *("sequential", "lists", "config", "keywords", "shapes", "in_place", "assigned", "mathematics", "contexts"),
    *(
        "merged",
        "buffers",
        "running",
        "subclasses",
        "unet",
        "vit",
        "resnet",
        "llama",
        "gpt",
        "twins",
        "pyramid",
        "named_levels",
        "either",
        "views",
        "gaps",
        "by_hand",
        "continued",
        "habits",
        "weight_normed",
        "spectral_normed",
        "places",
        "products",
        "replaced",
        "taking",
        "changing",
        "other_names",
        "given_parts",
        *(
            "in_place_limited",
            "in_place_past_gradient",
            "stepped",
            "inserted",
            "listed",
            "mapped",
            "showing",
            "packed_to_a_length",
            "masked_by_two",
        ),
    ),
)

BY_WORD = {"keywords", "gpt"}  # inputs, so that the worker has no gradients


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    """Every model by name, as Graph mode computes it in evaluation, and its gradients."""
    folder = tmp_path_factory.mktemp("graph")
    (folder / "out").mkdir()
    return write(copied(folder / "models", NAMES), folder / "out", "graph")


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_graph_mode_computes_the_same(compiled: dict[str, Written], name: str) -> None:
    compiled[name].agrees("eval", *(() if name in BY_WORD else ("gradient",)))
