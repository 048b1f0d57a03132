"""What graph mode does not compile is told with the user's line and what to write; what is compiled again, with why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from msmigrate.mappings.row_reader import read_yaml
from msmigrate.workers import parent

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "training" / "step" / "graph_errors.yaml"


QUICK = (
    "Net",
    "Try",
    "KeptForTheNextCall",
    "InAnotherFile",
    "AsNumpy",
    "BranchesOfUnlikeDtype",
    "Counter",
    "Evaluated",
    "Printed",
)


@pytest.fixture(scope="module", params=[QUICK, pytest.param((), marks=pytest.mark.full)], ids=["some", "all"])
def compiled(request: pytest.FixtureRequest) -> dict[str, Any]:
    found = parent.call("MindSpore", (sys.executable, str(HERE / "compile_mindspore_worker.py"), *request.param))
    assert isinstance(found, dict)
    return found


def marked(name: str) -> str:
    """The line `# here` of a class of uncompilable_nets.py, or of what it calls, as FILE:LINE."""
    nets, helper = "uncompilable_nets.py", "uncompilable_helper.py"
    calls = {
        "KeptForTheNextCall": (nets, "class Scaled("),
        "InAnotherFile": (helper, "def guarded"),
        "OfAnotherCell": (nets, "class Try("),
    }
    file, start = calls.get(name, (nets, f"class {name}("))
    lines = (HERE / file).read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(start))
    return f"{file}:{next(i for i, line in enumerate(lines[first:], first + 1) if line.endswith('# here'))}"


def test_what_does_not_compile_is_told_with_its_line_and_what_to_write(compiled: dict[str, Any]) -> None:
    refused = {name: write for name, write in compiled["gives"].items() if name in compiled["nets"]}
    assert len(refused) > 5
    for name, write in refused.items():
        said = compiled["nets"][name]
        assert f"{marked(name)}: graph mode does not compile `" in said, (name, said)
        assert "\n" not in said and "MindSpore says: " in said and len(said) < 800, (name, said)
        assert write in said if write else "Write instead" not in said, (name, said)


def test_what_has_no_known_remedy_shows_what_mindspore_says(compiled: dict[str, Any]) -> None:
    said = compiled["nets"]["Evaluated"].partition("graph mode does not compile ")[2]
    words = "`return eval(\"self.fc(x)\")  # here`. MindSpore says: name 'x' is not defined"
    assert said == f"{words}; --mode pynative runs it as it is"


def test_what_compiles_is_not_refused_and_does_not_run(compiled: dict[str, Any]) -> None:
    fine = set(compiled["nets"]) - set(compiled["gives"])
    assert len(fine) > 1 and not {name: compiled["nets"][name] for name in fine if compiled["nets"][name]}


@pytest.mark.parametrize(
    ("what", "why", "write"),
    [
        ("shape", "x has shape [3, 4], before [5, 4]", "drop_last"),
        ("dtype", "x is Float16, before Float32", "one dtype"),
        ("value", "by is the Python value 3.0, before 2.0", "a mindspore.Tensor"),
        ("tuple", "parts holds tensors", "mindspore.mutable"),
        ("anew", "it is another function each time", "mindspore.jit once"),
        ("cell", "by is the Python value 3.0, before 2.0", "a mindspore.Tensor"),
    ],
)
def test_why_a_function_is_compiled_again(compiled: dict[str, Any], what: str, why: str, write: str) -> None:
    (said,) = compiled["again"][what]
    assert f"is compiled again: {why}. Write instead: " in said and write in said, said


@pytest.mark.parametrize("what", ["nothing", "tensor", "mutable"])
def test_what_changes_only_values_is_compiled_once(compiled: dict[str, Any], what: str) -> None:
    assert compiled["again"][what] == []


def test_what_was_forgotten_is_compiled_again(compiled: dict[str, Any]) -> None:
    assert compiled["after"] == [15.0, 30.0] * 4


def test_every_row_of_the_table_says_when_and_what() -> None:
    rows = read_yaml(TABLE)
    assert all(set(row) <= {"says", "again", "kept", "write", "by_target"} and "write" in row for row in rows)
    assert all(len({"says", "again", "kept"} & set(row)) == 1 for row in rows)
