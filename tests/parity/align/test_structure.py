"""A structure comes back as it was told; a damaged or hostile one is refused in one line, and so is an alignment."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msmigrate.errors import BadInput, MsmigrateError
from msmigrate.parity.align.alignment import ALIGNMENT, read_alignment, write_map
from msmigrate.parity.align.match_layers import settle
from msmigrate.parity.align.model_structure import file, read
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.training.recipe import reader as recipes
from structures import structure
from test_alignment import CHAIN, FOREIGN, renamed

RECIPE = recipes.load(Path(__file__).parent.parent / "tiny.yaml")


def options(folder: Path) -> ParityJob:
    return ParityJob(RECIPE, folder, pair=Pair("a.py:f", "b.py:f"))


def told(folder: Path) -> Path:
    structure("torch", CHAIN).write(folder)
    structure("mindspore", renamed(CHAIN)).write(folder)
    return folder


def test_a_structure_comes_back(tmp_path: Path) -> None:
    told(tmp_path)
    assert read(file(tmp_path, "torch")) == structure("torch", CHAIN)


def test_an_alignment_comes_back(tmp_path: Path) -> None:
    told(tmp_path)
    settle(options(tmp_path))
    found = read_alignment(options(tmp_path))
    assert found.mindspore_path("fc") == "end_point" and found.torch_path("end_point") == "fc"
    assert found.parameters["fc.weight"].shape == (5, 8) and found.classes == 8
    assert found.scope.image_gradient and found.torch_call("act", 3) == ("relu", 3)
    write_map(tmp_path, tmp_path / "map.yaml")
    text = (tmp_path / "map.yaml").read_text()
    assert "- {torch: 'layer1\\.0\\.conv', mindspore: 'stage1.0.c'}" in text and text.count("\n- ") == len(FOREIGN)


LEAVES: list[Any] = [None, True, -1, 1.5, "", "a.b", [], {}, [[1]], {"a": 1}, 10**30, float("nan")]


def damaged(document: Any, path: list[int], leaf: Any) -> Any:
    """The document with one value, found by going down along `path`, replaced."""
    document = copy.deepcopy(document)
    at = document
    for depth, step in enumerate(path):
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = keys[step % len(keys)]
        below = at[key]
        if depth == len(path) - 1 or not isinstance(below, (dict, list)) or not below:
            at[key] = leaf
            return document
        at = below
    return document


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    side=st.sampled_from(["torch", "mindspore"]),
    path=st.lists(st.integers(0, 50), min_size=1, max_size=5),
    leaf=st.sampled_from(LEAVES),
)
def test_a_damaged_structure_is_aligned_or_one_line(tmp_path: Path, side: str, path: list[int], leaf: Any) -> None:
    target = file(told(tmp_path), side)
    target.write_text(json.dumps(damaged(json.loads(target.read_text()), path, leaf)))
    try:
        settle(options(tmp_path))
    except MsmigrateError as error:
        assert "\n" not in str(error)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.lists(st.integers(0, 50), min_size=1, max_size=4), leaf=st.sampled_from(LEAVES))
def test_a_damaged_alignment_is_read_or_one_line(tmp_path: Path, path: list[int], leaf: Any) -> None:
    told(tmp_path)
    settle(options(tmp_path))
    target = tmp_path / ALIGNMENT
    target.write_text(json.dumps(damaged(json.loads(target.read_text()), path, leaf)))
    for use in (lambda: read_alignment(options(tmp_path)), lambda: write_map(tmp_path, tmp_path / "map")):
        try:
            use()
        except BadInput as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": 2}', "[" * 100_000])
def test_what_is_no_structure_is_refused(tmp_path: Path, text: str) -> None:
    told(tmp_path)
    file(tmp_path, "torch").write_text(text)
    with pytest.raises(BadInput, match=r"structure-torch\.json: is no structure"):
        settle(options(tmp_path))
    (tmp_path / ALIGNMENT).write_text(text)
    with pytest.raises(BadInput, match="is no alignment"):
        read_alignment(options(tmp_path))
