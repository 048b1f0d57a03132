"""Whatever stands in a trace or a recipe, the answer is a verdict or one line; never a traceback."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msmigrate.errors import MsmigrateError
from msmigrate.parity.build_result import report
from msmigrate.parity.graph_mode import GRAPH
from msmigrate.parity.job import ParityJob
from msmigrate.parity.trace import Trace, TraceWriter
from msmigrate.training.recipe import reader as recipes
from traces import Run

HERE = Path(__file__).parent
RECIPE = HERE / "tiny.yaml"
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
THOROUGH = settings(QUICK, max_examples=1000)

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
values = st.recursive(
    scalars | st.sampled_from([-1, 2**63, 10**30, "NaN", "../../x", "\ud800", ""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound run, compiled step included."""
    folder = tmp_path_factory.mktemp("sound")
    who = ["a", False, "net.py, line 3"]
    drawn = {"step": 1, "taken": [[who, "normal", [4, 2], None]], "outside": {}, "states": {"random": "0"}}
    traces = Run(about={name: {"draws": [drawn]} for name in HEADS}).traces(folder)
    writer = TraceWriter(folder / GRAPH, traces.mindspore.about, None)
    for key, entry in traces.mindspore.entries.items():
        if entry.stage in ("loss", "gradients"):
            writer.add(entry.stage, entry.part, entry.name, traces.mindspore.array(key).reshape(entry.shape))
    writer.close()
    assert judged(folder) == ""
    return folder


HEADS = ("mindspore-fp32", "torch-fp64-matched")


def judged(folder: Path) -> str:
    """The one line with which the run is refused; nothing where it is judged."""
    try:
        report(RECIPE, ParityJob(recipes.load(RECIPE), folder))
    except MsmigrateError as error:
        return one_line(error)
    return ""


def one_line(error: MsmigrateError) -> str:
    text = str(error)
    assert text and "\n" not in text and len(text) < 1500, text
    return text


def changed(run: Path, work: Path, change: Callable[[Path], None]) -> None:
    """Judge a copy of the run after a change."""
    folder = work / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(run, folder)
    change(folder)
    judged(folder)


def damage(data: st.DataObject, content: bytes) -> bytes:
    """Flip bits, cut the end off, put something in."""
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        kind = data.draw(st.sampled_from(["flip", "cut", "insert"]))
        if kind == "flip" and content:
            content = content[:at] + bytes([content[at] ^ (1 << data.draw(st.integers(0, 7)))]) + content[at + 1 :]
        elif kind == "cut":
            content = content[:at]
        else:
            content = content[:at] + data.draw(st.binary(max_size=20)) + content[at:]
    return content


def damage_a_file(run: Path, work: Path, data: st.DataObject, suffix: str) -> None:
    names = sorted(str(p.relative_to(run)) for p in run.rglob(f"*{suffix}"))
    name = data.draw(st.sampled_from(names))

    def change(folder: Path) -> None:
        path = folder / name
        path.write_bytes(damage(data, path.read_bytes()))
        if suffix == ".safetensors":  # as one would who wants it read
            index = path.parent / "trace.json"
            document = json.loads(index.read_text())
            document["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
            index.write_text(json.dumps(document))

    changed(run, work, change)


def replace_a_value(data: st.DataObject, document: Any) -> Any:
    """Another value, or none, somewhere in a parsed document."""
    document = copy.deepcopy(document)
    place, key = [document], 0
    for _ in range(data.draw(st.integers(0, 5))):
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner:
            break
        place, key = inner, data.draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
    if place[key] is not document and data.draw(st.booleans()):
        del place[key]
        return document
    if place[key] is document:
        return data.draw(values)
    place[key] = data.draw(values)
    return document


def replace_in_a_trace(run: Path, work: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(p.parent.name for p in run.glob("*/trace.json"))))

    def change(folder: Path) -> None:
        index = folder / name / "trace.json"
        document = json.loads(index.read_text())
        for _ in range(data.draw(st.integers(1, 4))):
            document = replace_a_value(data, document)
        index.write_text(json.dumps(document))

    changed(run, work, change)


def load_a_recipe(work: Path, content: bytes) -> None:
    path = work / "recipe.yaml"
    path.write_bytes(content)
    try:
        recipes.load(path)
    except MsmigrateError as error:
        one_line(error)


FILES = sorted(path.name for path in HERE.glob("tiny*.yaml"))


def damaged_recipe(work: Path, data: st.DataObject) -> None:
    content = (HERE / data.draw(st.sampled_from(FILES))).read_bytes()
    load_a_recipe(work, damage(data, content))


def recipe_with_another_value(work: Path, data: st.DataObject) -> None:
    document = yaml.safe_load((HERE / data.draw(st.sampled_from(FILES))).read_text())
    load_a_recipe(work, yaml.safe_dump(replace_a_value(data, document)).encode(errors="surrogatepass"))


@QUICK
@given(data=st.data())
def test_a_damaged_index_is_one_line(run: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    damage_a_file(run, tmp_path_factory.getbasetemp(), data, ".json")


@QUICK
@given(data=st.data())
def test_damaged_tensors_are_one_line(run: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    damage_a_file(run, tmp_path_factory.getbasetemp(), data, ".safetensors")


@QUICK
@given(data=st.data())
def test_another_type_is_one_line(run: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    replace_in_a_trace(run, tmp_path_factory.getbasetemp(), data)


@QUICK
@given(data=st.data())
def test_a_damaged_recipe_is_one_line(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    damaged_recipe(tmp_path_factory.getbasetemp(), data)


@QUICK
@given(data=st.data())
def test_another_type_in_a_recipe_is_one_line(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    recipe_with_another_value(tmp_path_factory.getbasetemp(), data)


@pytest.mark.full
@THOROUGH
@given(data=st.data())
def test_a_thousand_traces(run: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    work = tmp_path_factory.getbasetemp()
    what = data.draw(st.sampled_from([".json", ".safetensors", "value"]))
    if what == "value":
        replace_in_a_trace(run, work, data)
    else:
        damage_a_file(run, work, data, what)


@pytest.mark.full
@THOROUGH
@given(data=st.data())
def test_a_thousand_recipes(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    choice = data.draw(st.sampled_from([damaged_recipe, recipe_with_another_value]))
    choice(tmp_path_factory.getbasetemp(), data)


def test_the_sound_run_opens(run: Path) -> None:
    assert all(Trace(index.parent).entries for index in run.glob("*/trace.json"))
