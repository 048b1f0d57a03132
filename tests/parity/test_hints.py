"""Hints name the known pitfalls of what is in charge where two steps part, and of nothing else."""

from __future__ import annotations

import pytest
from msmigrate.mappings import table
from msmigrate.parity.build_result import MOST, SHOWS, hints
from msmigrate.parity.options import STAGES
from msmigrate.parity.result import Finding
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.training.recipe import reader as recipes

RECIPE = recipes.load(recipes.DEFAULT)


def first(stage: str, part: str = "train", module: str | None = None) -> Finding:
    return Finding(stage, part, "x", 0, Verdict.FAIL, "why", module)


def test_every_stage_has_words_and_every_word_a_stage() -> None:
    assert tuple(SHOWS) == STAGES
    used = {word for fault in table.faults().values() for word in fault.shows_in}
    assert any(used & set(words) for words in SHOWS.values())


@pytest.mark.parametrize(
    "finding, expected",
    [
        (first("forward", module="BatchNorm2d"), "bn-"),
        (first("update", "step1 buffers"), "bn-momentum-complement"),
        (first("forward", module="MaxPool2d"), "maxpool-same-stem"),
        (first("loss", "given logits"), "label-smoothing-k-1"),
        (first("data", "step1"), "resize-"),
    ],
)
def test_the_layer_loss_or_transform_in_charge_is_asked(finding: Finding, expected: str) -> None:
    found = hints(finding, RECIPE)
    assert 0 < len(found) <= MOST
    assert any(f"[{expected}" in line for line in found)
    assert all("\n" not in line for line in found)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("finding", [None, first("forward"), first("forward", module="Unheard"), first("init")])
def test_where_nothing_is_known_nothing_is_said(finding: Finding | None) -> None:
    assert hints(finding, RECIPE) == []


def test_where_only_the_compiled_step_diverges_they_are_of_compiled_steps() -> None:
    for stage, expected in (("loss", "graph-container-left-out"), ("update", "graph-pad-gradient")):
        found = [hint.rpartition("[")[2].rstrip("]") for hint in hints(first(stage, "graph step1"), RECIPE)]
        assert expected in found and all(table.faults()[each].mode == "graph" for each in found)
