"""A structure comes back as it was told; a damaged or hostile one is refused in one line, and so is an alignment."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msmigrate.errors import Ambiguous, BadInput, MsmigrateError
from msmigrate.parity.align.alignment import ALIGNMENT, read_alignment, write_map
from msmigrate.parity.align.match_layers import align_pair
from msmigrate.parity.align.model_structure import file, read
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.training.recipe import reader as recipes
from msmigrate.workflows.parity_step import assert_parity
from structures import Layer, structure
from test_alignment import CHAIN, FOREIGN, FORK, renamed

HERE = Path(__file__).parent
RECIPE = recipes.load(HERE.parent / "tiny.yaml")


def options(folder: Path, map_file: Path | None = None) -> ParityJob:
    return ParityJob(RECIPE, folder, pair=Pair("a.py:f", "b.py:f", map_file))


def told(folder: Path) -> Path:
    structure("torch", CHAIN).write(folder)
    structure("mindspore", renamed(CHAIN)).write(folder)
    return folder


def test_a_structure_comes_back(tmp_path: Path) -> None:
    told(tmp_path)
    assert read(file(tmp_path, "torch")) == structure("torch", CHAIN)


def test_an_alignment_comes_back(tmp_path: Path) -> None:
    told(tmp_path)
    align_pair(options(tmp_path))
    found = read_alignment(options(tmp_path))
    assert found.mindspore_path("fc") == "end_point" and found.torch_path("end_point") == "fc"
    assert found.parameters["fc.weight"].shape == (5, 8) and found.classes == 8
    assert found.scope.image_gradient and found.torch_call("act", 3) == ("relu", 3)
    write_map(tmp_path, tmp_path / "map.yaml")
    text = (tmp_path / "map.yaml").read_text()
    assert "- {torch: 'layer1\\.0\\.conv', mindspore: 'stage1.0.c'}" in text and text.count("\n- ") == len(FOREIGN)


def refused(folder: Path) -> Path:
    """Two nets whose branches run in another order than they stand in, and of which each has a layer of its own."""
    ours = [*FORK, Layer("extra", "Linear", "y", "z", 3, (2, 3))]
    theirs = [FORK[1], FORK[0], FORK[2], Layer("more", "Linear", "y", "z", 3, (2, 4))]
    names = {"left": "first", "right": "second"}
    structure("torch", ours).write(folder)
    structure("mindspore", renamed(theirs, names), ["first", "second", "fc", "more"]).write(folder)
    return folder


def test_a_map_of_a_refused_alignment_has_what_is_open_as_comments(tmp_path: Path) -> None:
    with pytest.raises(Ambiguous):
        align_pair(options(refused(tmp_path)))
    assert not (tmp_path / ALIGNMENT).exists()
    write_map(tmp_path, tmp_path / "map.yaml")
    text = (tmp_path / "map.yaml").read_text()
    assert "\n- {torch: 'fc', mindspore: 'fc'}" in text
    proposed = ["- {torch: 'left', mindspore: 'second'}", "- {torch: 'right', mindspore: 'first'}"]
    others = ["- {torch: 'left', mindspore: 'first'}", "- {torch: 'right', mindspore: 'second'}"]
    asked = text[text.index("# Open: left (Conv2d") :].splitlines()
    assert asked[1:5] == [f"# {line}" for line in proposed + others]
    (tmp_path / "map.yaml").write_text(text.replace(f"# {others[0]}", others[0]).replace(f"# {others[1]}", others[1]))
    align_pair(options(tmp_path, tmp_path / "map.yaml"))
    assert read_alignment(options(tmp_path)).mindspore_path("left") == "first"


def test_parity_step_writes_the_map_of_what_it_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compare(_: Path, job: ParityJob) -> None:
        job.folder.mkdir()
        align_pair(replace(job, folder=refused(job.folder)))

    monkeypatch.setattr("msmigrate.workflows.parity_step.compare_steps", compare)
    written = tmp_path / "map.yaml"
    with pytest.raises(Ambiguous, match=r"look alike.*map\.yaml has what was found, and what is open"):
        assert_parity("a.py:f", "b.py:f", HERE.parent / "tiny.yaml", write_map=written)
    assert "# Open: " in written.read_text()


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
        align_pair(options(tmp_path))
    except MsmigrateError as error:
        assert "\n" not in str(error)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.lists(st.integers(0, 50), min_size=1, max_size=4), leaf=st.sampled_from(LEAVES))
def test_a_damaged_alignment_is_read_or_one_line(tmp_path: Path, path: list[int], leaf: Any) -> None:
    told(tmp_path)
    align_pair(options(tmp_path))
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
        align_pair(options(tmp_path))
    (tmp_path / ALIGNMENT).write_text(text)
    with pytest.raises(BadInput, match="is no alignment"):
        read_alignment(options(tmp_path))


def test_images_of_which_torch_takes_no_gradient() -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "written_rows_torch.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
