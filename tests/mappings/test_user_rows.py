"""Rows of a user's own: the form of their files, how they stand among the built-in ones, and what no row may name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msmigrate import errors
from msmigrate.mappings import table, user_rows
from msmigrate.mappings.rows import Call, build, resolve
from msmigrate.mappings.state_names import LAYER_STATES, layer_states
from msmigrate.training.recipe.digest import code_digest

SCALE = """
- kind: layer
- torch: mynet.Scale
  mindspore: mynet_ms.Scale
  exact: true
  aliases: [mynet.OldScale]
  arguments:
    channels: {to: channels}
  state: [{torch: weight, to: gamma}]
"""
LEAKY = """
- torch: torch.nn.LeakyReLU
  kind: layer
  mindspore: mynet_ms.LeakyReLU
  exact: true
  arguments:
    negative_slope: {to: slope, default: 0.01}
    inplace: {default: false, why: MindSpore computes no layer in place.}
"""


def own(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch, name: str = "own.yaml") -> Path:
    """Put a file of this text in force."""
    path = folder / name
    path.write_text(text)
    before = os.environ.get(user_rows.VARIABLE)
    monkeypatch.setenv(user_rows.VARIABLE, f"{before}{os.pathsep}{path}" if before else str(path))
    return path


def run(*words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `msmigrate mappings` in a process of its own."""
    line = [sys.executable, "-m", "msmigrate", "mappings", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder)


def test_a_row_of_ones_own_is_found_and_translated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = own(tmp_path, SCALE, monkeypatch)
    row = table.row("mynet.OldScale")
    assert row is table.row("Scale")
    assert row in table.rows("layer")
    assert (row.origin, row.replaces) == (str(path), None)
    assert set(row.status.values()) == {"documented, not run"}
    assert table.translate("mynet.Scale", {"channels": 3}) == Call("mynet_ms.Scale", {"channels": 3})
    monkeypatch.delenv(user_rows.VARIABLE)
    with pytest.raises(errors.UnknownRow):
        table.row("mynet.Scale")


def test_a_row_of_ones_own_replaces_a_built_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [row.torch for row in table.rows("layer")]
    own(tmp_path, LEAKY, monkeypatch)
    row = table.row("LeakyReLU")
    assert (row.mindspore, row.replaces) == ("mynet_ms.LeakyReLU", "mindspore.nn.LeakyReLU")
    assert [row.torch for row in table.rows("layer")] == places


def test_it_takes_over_further_names_and_another_row_loses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"operator.add", "torch.Tensor.add"} <= set(table.row("torch.add").aliases)
    text = "- {torch: torch.add, kind: function, mindspore: mynet_ms.add, exact: true, arguments: {}}\n"
    own(tmp_path, text, monkeypatch)
    assert table.row("operator.add").mindspore == "mynet_ms.add"
    own(tmp_path, text.replace("torch.add", "operator.mul"), monkeypatch, "two.yaml")
    assert table.row("operator.mul").mindspore == "mynet_ms.add"
    assert table.row("torch.mul").mindspore != "mynet_ms.add"
    assert "operator.mul" not in table.row("torch.mul").aliases


def test_a_short_name_means_the_built_in_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own(tmp_path, SCALE.replace("Scale", "Conv2d"), monkeypatch)
    assert table.row("Conv2d").torch == "torch.nn.Conv2d"
    assert table.row("mynet.Conv2d").origin


def test_several_files_and_a_row_that_is_in_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own(tmp_path, SCALE, monkeypatch)
    own(tmp_path, LEAKY, monkeypatch, "other.yaml")
    assert table.row("mynet.Scale").origin != table.row("LeakyReLU").origin
    own(tmp_path, LEAKY, monkeypatch, "third.yaml")
    with pytest.raises(errors.BadInput, match=r"third.yaml: torch.nn.LeakyReLU: .* of .*other.yaml too"):
        table.rows()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("- kind: layer\n", ""), r"own.yaml: mynet.Scale: the key 'kind' is missing"),
        (("- kind: layer", "- kind: lair"), "own.yaml: entry 1: there is no kind of row 'lair'; there are layer,"),
        (("- kind: layer", "- kindly: layer"), "own.yaml: entry 1: expected a row with the key 'torch'"),
        (("  exact: true\n", ""), "own.yaml: 'mynet.Scale': the key 'exact' is missing"),
        (("exact: true", "exact: true\n  exakt: true"), "own.yaml: 'mynet.Scale': unknown key 'exakt'"),
        (("{to: channels}", "{too: channels}"), "own.yaml: 'mynet.Scale': channels: unknown key 'too'"),
        (("{to: channels}", "{to: channels, values: [1]}"), "own.yaml: mynet.Scale: a value does not have the form"),
        (("{to: channels}", "{to: channels, verb: bend}"), "channels: there is no verb 'bend'"),
        (("to: gamma", "to: gamma, verb: bend"), "state: there is no state verb 'bend'"),
        (("exact: true", "exact: true\n  pitfalls: [no-such]"), "pitfalls: there is no fault 'no-such'"),
        (("mynet_ms.Scale", "mynet_ms"), "'mynet_ms' is no qualified name"),
        (("mynet_ms.Scale", "os.system"), "os.system belongs to Python's own library"),
        (("mynet_ms.Scale", "builtins.eval"), "builtins.eval belongs to Python's own library"),
        (("{to: channels}", "{to: channels, default: {name: os.sep}}"), "os.sep belongs to Python's own library"),
        (
            ("{to: channels}", "{to: c, default: {call: subprocess.run, kwargs: {}}}"),
            "subprocess.run belongs to Python's own",
        ),
        (
            ("{to: channels}", "{to: channels, default: {name: numpy.load}}"),
            "numpy.load: a constant has to be of mindspore or",
        ),
        (("mynet.OldScale", "torch.nn.Conv2d"), "torch.nn.Conv2d has a built-in row; to replace that, write a row"),
        (("mynet.OldScale", "two words"), "'two words' is no name of a torch class"),
        (("arguments:", "arguments: !!python/object/apply:os.system [true]\n  x:"), r"own.yaml:\d+: not YAML .* tags"),
        (("- torch", "torch"), r"own.yaml:\d+: not YAML"),
    ],
)
def test_a_damaged_file_names_file_row_and_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], text: str
) -> None:
    assert change[0] in SCALE
    own(tmp_path, SCALE.replace(*change), monkeypatch)
    with pytest.raises(errors.BadInput, match=text) as raised:
        table.rows()
    assert str(tmp_path) in str(raised.value)


def test_the_command_says_where_a_row_comes_from(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(SCALE)
    (tmp_path / "two.yaml").write_text(LEAKY)
    files = ("--mappings", "one.yaml", "--mappings", "two.yaml")
    done = run("LeakyReLU", *files, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"from {tmp_path / 'two.yaml'}, in place of msmigrate's own → mindspore.nn.LeakyReLU" in done.stdout
    found = json.loads(run("mynet.Scale", *files, "--json", folder=tmp_path).stdout)
    assert found[0]["origin"] == str(tmp_path / "one.yaml")


@pytest.mark.parametrize(
    ("text", "said"), [(SCALE.replace("exact: true", "exact: yes please"), "'exact' cannot be"), (None, "no such file")]
)
def test_a_bad_file_is_one_line_and_exit_code_2(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "bad.yaml").write_text(text)
    done = run("--mappings", "bad.yaml", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "bad.yaml" in done.stderr
    assert said in done.stderr


def test_relative_names_hold_for_workers_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(user_rows.VARIABLE, "a.yaml")
    user_rows.use([Path("b.yaml"), Path("a.yaml")])
    assert user_rows.paths() == (tmp_path / "a.yaml", tmp_path / "b.yaml")
    with pytest.raises(errors.BadInput, match="cannot contain"):
        user_rows.use([Path(f"a{os.pathsep}b.yaml")])


def test_a_conversion_knows_the_users_layers_and_without_them_reads_no_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert layer_states() is LAYER_STATES
    own(tmp_path, SCALE, monkeypatch)
    assert layer_states()["mynet.OldScale"]["weight"].mindspore == "gamma"
    assert {name: states for name, states in layer_states().items() if name in LAYER_STATES} == LAYER_STATES
    program = (
        "import sys; from msmigrate.mappings.state_names import layer_states; layer_states(); "
        "print([name for name in ('yaml', 'importlib.metadata', 'msmigrate.mappings.table') if name in sys.modules])"
    )
    monkeypatch.delenv(user_rows.VARIABLE)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_proof_is_of_the_users_rows_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = code_digest()
    own(tmp_path, SCALE, monkeypatch)
    one = code_digest()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.delenv(user_rows.VARIABLE)
    own(tmp_path / "elsewhere", SCALE, monkeypatch, "other_name.yaml")
    assert code_digest() == one != plain
    own(tmp_path, LEAKY, monkeypatch, "leaky.yaml")
    assert code_digest() not in (one, plain)


@pytest.mark.parametrize("target", ["yaml.os.system", "msmigrate.errors.MsmigrateError.__init__.__globals__"])
def test_a_name_does_not_lead_out_of_its_package(target: str) -> None:
    with pytest.raises(errors.BadInput):
        resolve(target)


def test_a_target_that_is_of_the_standard_library_under_another_name_is_not_called() -> None:
    # Fraction is imported into the module of that package
    with pytest.raises(errors.BadInput, match=r"hypothesis\..*Fraction is fractions.Fraction, which no row may name"):
        build(Call("hypothesis.strategies._internal.core.Fraction", {"numerator": 1}))
