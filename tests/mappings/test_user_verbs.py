"""Verbs that other distributions bring by entry points: found by name, loaded when needed, and blamed by name."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msmigrate import errors
from msmigrate.mappings import table, user_rows
from msmigrate.mappings.verb_registry import SHAPES, ShapeVerb, Verbs
from msmigrate.mappings.verbs import VERBS, Verb
from msmigrate.training.recipe.digest import code_digest

MODULE = """
import ast

class Half:
    description = "half of it"
    def forward(self, value, args):
        if value % 2:
            raise ValueError("MindSpore's takes even numbers")
        return value // 2
    def inverse(self, value):
        return value * 2
    def symbolic(self, expression, types):
        return [ast.BinOp(expression, ast.FloorDiv(), ast.Constant(2))]

class Fold:
    def forward(self, shape):
        return (shape[0] * shape[1], *shape[2:])
    def inverse(self, shape):
        return (shape[0] // 2, 2, *shape[1:])

class Grow:
    def forward(self, shape):
        return (*shape, 2)
    inverse = forward

class Broken:
    def forward(self, *args):
        raise RuntimeError("of its own")
    inverse = forward

half, fold, grow, broken, empty = Half(), Fold(), Grow(), Broken(), object()
"""
NAMES = ("half", "fold", "grow", "broken", "empty", "absent")
ROW = """
- torch: mynet.Halved
  kind: layer
  mindspore: mynet_ms.Halved
  exact: true
  arguments:
    size: {to: size, verb: half}
  state: [{torch: weight, to: weight, verb: fold}]
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A distribution with verbs, where Python looks for them, and a row that uses two, in force."""
    install(tmp_path, "own-verbs", "own_verbs", NAMES)
    monkeypatch.syspath_prepend(tmp_path)
    for verbs in (VERBS, SHAPES):
        monkeypatch.setattr(verbs, "_brought", {})
    (tmp_path / "own.yaml").write_text(ROW)
    monkeypatch.setenv(user_rows.VARIABLE, str(tmp_path / "own.yaml"))
    yield tmp_path
    sys.modules.pop("own_verbs", None)


def install(folder: Path, distribution: str, module: str, names: tuple[str, ...]) -> None:
    """Write what pip leaves of a distribution: the module, its metadata and entry points."""
    (folder / f"{module}.py").write_text(MODULE)
    info = folder / f"{module}-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n")
    lines = "".join(f"{name} = {module}:{name}\n" for name in names)
    (info / "entry_points.txt").write_text(f"[msmigrate.verbs]\n{lines}")


def test_verbs_of_another_distribution(installed: Path) -> None:
    row = table.row("mynet.Halved")
    assert row.arguments[0].verb == "half"
    assert "own_verbs" not in sys.modules  # reading a row loads nothing
    assert table.translate("mynet.Halved", {"size": 6}).kwargs == {"size": 3}
    assert table.inverse("mynet.Halved", {"size": 3}) == {"size": 6}
    assert "own_verbs" in sys.modules
    assert VERBS["half"].description == "half of it"
    nodes = VERBS["half"].symbolic(ast.Name("n"), None)
    assert [ast.unparse(node) for node in nodes] == ["n // 2"]
    assert VERBS["broken"].symbolic is None
    assert SHAPES["fold"].description == "fold, of own-verbs 1.5"
    assert SHAPES["fold"].forward((3, 2, 5)) == (6, 5)
    assert SHAPES["fold"].inverse((6, 5)) == (3, 2, 5)
    with pytest.raises(errors.Unsupported, match=r"size=3 has no counterpart .* MindSpore's takes even numbers"):
        table.translate("mynet.Halved", {"size": 3})
    assert not {"half", "fold"} & {*VERBS, *SHAPES}  # what is built in stays apart


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "broken",
            r"'broken' \(entry point own_verbs:broken of own-verbs 1.5\): forward failed: RuntimeError: of",
        ),
        ("empty", r"\(entry point own_verbs:empty of own-verbs 1.5\): expected an object with the methods forward and"),
        ("absent", r"\(entry point own_verbs:absent of own-verbs 1.5\) cannot be loaded: AttributeError: "),
        ("nobodys", "there is no verb 'nobodys': no installed distribution has it"),
    ],
)
def test_a_verb_that_fails_is_told_with_its_distribution(installed: Path, name: str, text: str) -> None:
    with pytest.raises(errors.BadInput, match=text):
        VERBS[name].forward(1, {})


def test_a_shape_verb_keeps_the_number_of_elements(installed: Path) -> None:
    with pytest.raises(errors.Unsupported, match=r"grow, .*: the shape \(3,\) became \(3, 2\), which has"):
        SHAPES["grow"].forward((3,))


def test_two_distributions_with_one_name_are_refused(installed: Path) -> None:
    install(installed, "more-verbs", "more_verbs", ("half",))
    with pytest.raises(errors.BadInput, match=r"'half' is brought by more_verbs:half \(more-verbs 1.5\) and own_verbs"):
        table.rows()


def test_a_proof_is_of_the_distributions_version_too(installed: Path) -> None:
    before = code_digest()
    metadata = installed / "own_verbs-1.5.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("1.5", "1.6"))
    other = installed / "same.yaml"
    other.write_text(ROW)  # the same content: only the verbs' version differs
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(user_rows.VARIABLE, str(other))
        assert code_digest() != before


def test_built_in_verbs_ask_nobody(installed: Path) -> None:
    install(installed, "more-verbs", "more_verbs", ("negate",))
    assert VERBS.knows("negate")
    assert VERBS["negate"].forward(2, {}) == -2
    assert isinstance(VERBS, Verbs)
    assert (type(VERBS["negate"]), type(SHAPES["shared"])) == (Verb, ShapeVerb)
