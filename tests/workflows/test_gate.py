"""Training starts only behind a proof of just this recipe, code and checkpoint; a report may be anyone's file."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msmigrate.errors import BadCheckpoint, BadInput, Unsupported
from msmigrate.parity.options import STAGES, Narrowing
from msmigrate.parity.result import Finding, MadeWith, Report
from msmigrate.parity.tensor_verdict import Unjudged, Verdict
from msmigrate.parity.trace import Part
from msmigrate.reports.parity_json import write_json
from msmigrate.training.recipe import reader as recipes
from msmigrate.training.recipe.schema import Amp, Recipe
from msmigrate.workflows import parity_gate
from msmigrate.workflows.parity_gate import Holds, accept, how_to_prove, prove, still_holds
from rich.console import Console

RECIPE = Path(__file__).parent.parent.parent / "recipes" / "digits.yaml"
HOLDS = Holds("r" * 16, "c" * 16, None)
PLAIN = recipes.load(RECIPE)
HALF = PLAIN.model_copy(update={"amp": Amp(level="O2")})


def report(holds: Holds = HOLDS, failing: str | None = None) -> Report:
    """A report of one tensor a stage, one of which may have failed."""
    findings = [
        Finding(stage, "train", "w", 0, Verdict.FAIL if stage == failing else Verdict.PASS, "off") for stage in STAGES
    ]
    made_with = MadeWith(holds.code, holds.checkpoint, 3, 8)
    return Report("recipe.yaml", holds.recipe, {"torch": "2"}, findings, made_with=made_with)


def written(folder: Path, found: Report | None = None, **changes: Any) -> Path:
    """The report as --json writes it, with some of its keys changed; ... takes one out."""
    file = folder / "report.json"
    write_json(found or report(), file)
    document = json.loads(file.read_text())
    document = {key: value for key, value in {**document, **changes}.items() if value is not ...}
    file.write_text(json.dumps(document))
    return file


def refusal(file: Path, holds: Holds = HOLDS) -> str:
    with pytest.raises(BadInput) as caught:
        accept(file, Path("recipe.yaml"), PLAIN, holds)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
    assert str(file) in str(caught.value)
    return str(caught.value)


def test_a_passing_report_opens_the_gate(tmp_path: Path) -> None:
    file = written(tmp_path)
    entry = accept(file, Path("recipe.yaml"), PLAIN, HOLDS)
    assert entry["parity"] == "passed" and entry["report"] == str(file)
    assert (entry["recipe"], entry["code"], entry["checkpoint"]) == (HOLDS.recipe, HOLDS.code, None)


OTHERS = {
    "recipe": (Holds("x" * 16, HOLDS.code, None), "is of another recipe (rrrrrrrrrrrrrrrr, here xxxxxxxxxxxxxxxx)"),
    "code": (Holds(HOLDS.recipe, "x" * 16, None), "is of another msmigrate's code"),
    "checkpoint": (Holds(HOLDS.recipe, HOLDS.code, "x" * 64), "starting checkpoint (none, here xxxxxxxxxxxxxxxx)"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_report_of_something_else_says_of_what_and_how_to_make_one(tmp_path: Path, other: str) -> None:
    holds, said = OTHERS[other]
    message = refusal(written(tmp_path), holds)
    assert said in message
    assert "msmigrate parity-step recipe.yaml --json report.json" in message


NARROWINGS = {
    "stages": (
        Narrowing.to(["gradients", "forward"]),
        "narrowed to forward and gradients: data, init, loss and update",
    ),
    "one less": (
        Narrowing.to(STAGES[1:]),
        "narrowed to init, forward, loss, gradients and update: data was not judged",
    ),
    "modules": (
        Narrowing.to(modules=["layer1*", "fc"]),
        "gradients and update of layer1* and fc: other modules, data and",
    ),
}


@pytest.mark.parametrize("failing", [None, "gradients"])
@pytest.mark.parametrize("case", NARROWINGS)
def test_a_narrowed_report_keeps_the_gate_shut_and_says_how_to_make_a_whole_one(
    tmp_path: Path, case: str, failing: str | None
) -> None:
    narrowing, said = NARROWINGS[case]
    whole = report(failing=failing)
    findings = [finding for finding in whole.findings if finding.stage in narrowing.stages]
    message = refusal(written(tmp_path, replace(whole, findings=findings, narrowing=narrowing)))
    assert said in message and "msmigrate parity-step recipe.yaml --json report.json" in message


@pytest.mark.parametrize(
    "narrowed",
    [{}, [], True, "forward", {"stages": ["forward"], "modules": []}, {"stages": [1], "modules": [[]]}],
    ids=str,
)
def test_what_a_report_says_it_judged_has_to_be_what_it_judged(tmp_path: Path, narrowed: object) -> None:
    assert "is no report of parity-step" in refusal(written(tmp_path, narrowed=narrowed))
    assert "is no report of parity-step" in refusal(written(tmp_path, parity=None))


@pytest.mark.parametrize("stage", STAGES)
def test_a_report_that_did_not_pass_keeps_the_gate_shut(tmp_path: Path, stage: str) -> None:
    assert f"did not pass, first in {stage}" in refusal(written(tmp_path, report(failing=stage)))


HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "no json": b"PK\x03\x04",
    "no utf-8": b'{"parity": "\xff"}',
    "a list": b"[]",
    "a number": b"1",
    "deep": b"[" * 100_000,
    "another json": b'{"parity": true}',
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_no_report_is_one_line(tmp_path: Path, case: str) -> None:
    file = tmp_path / "report.json"
    file.write_bytes(HOSTILE[case])
    refusal(file)


CHANGES: list[dict[str, Any]] = [
    {"parity": "true"},
    {"parity": 1},
    {"parity": ...},
    {"recipe_digest": None},
    {"recipe_digest": ["r" * 16]},
    {"code_digest": 7},
    {"checkpoint_digest": ...},
    {"checkpoint_digest": False},
    {"versions": []},
    {"stages": {}},
    {"stages": []},
    {"stages": [1, 2, 3, 4, 5, 6]},
    {"stages": [{"stage": "data", "verdict": "pass"}] * 6},
    {"stages": [{"stage": stage, "verdict": ["pass"]} for stage in STAGES]},
]


def test_two_recordings_of_one_framework_prove_no_port(tmp_path: Path) -> None:
    assert "proves no port" in refusal(written(tmp_path, sides=["torch 2.6.0 (A)", "torch 2.14.1 (A2)"]))


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_a_report_with_other_types_is_one_line(tmp_path: Path, changes: dict[str, Any]) -> None:
    refusal(written(tmp_path, **changes))


def test_a_report_that_calls_a_failed_stage_parity_contradicts_itself(tmp_path: Path) -> None:
    assert "contradicts itself" in refusal(written(tmp_path, report(failing="loss"), parity=True))


def test_a_report_of_an_older_msmigrate_says_so(tmp_path: Path) -> None:
    assert "older msmigrate" in refusal(written(tmp_path, code_digest=...))
    assert "older msmigrate" in refusal(written(tmp_path, narrowed=...))


def test_a_report_that_is_no_file_or_huge_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "there is no file" in refusal(tmp_path / "none.json")
    assert "Is a directory" in refusal(tmp_path)
    assert "a device" in refusal(Path("/dev/zero"))
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(1 << 40)
    assert "larger than 64 MiB" in refusal(tmp_path / "huge.json")


def test_what_a_run_needs_a_proof_for(tmp_path: Path) -> None:
    recipe = recipes.load(RECIPE)
    holds = Holds.now(recipe)
    assert holds.recipe == recipe.digest and holds.checkpoint is None
    checkpoint = tmp_path / "weights.pth"
    with_weights = recipe.model_copy(update={"model": recipe.model.model_copy(update={"checkpoint": checkpoint})})
    with pytest.raises(BadCheckpoint, match=r"weights\.pth cannot be read"):
        Holds.now(with_weights)
    checkpoint.write_bytes(b"one")
    one = Holds.now(with_weights)
    checkpoint.write_bytes(b"two")
    assert one.differs(Holds.now(with_weights).entry("passed")) == "checkpoint"


def test_a_proof_in_a_run_s_log_counts_while_nothing_has_changed() -> None:
    assert still_holds(HOLDS.entry("passed"), HOLDS)
    assert not still_holds(None, HOLDS)
    assert not still_holds({}, HOLDS)
    assert not still_holds({"parity": "passed"}, HOLDS)
    assert not still_holds(HOLDS.entry("skipped"), HOLDS)
    for holds, _ in OTHERS.values():
        assert not still_holds(HOLDS.entry("passed"), holds)


@pytest.mark.parametrize("missing", ["torch", "torchvision"])
def test_without_torch_both_ways_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(parity_gate, "find_spec", lambda name: None if name == missing else object())
    recipe = Recipe.model_validate({"model": {"name": "lenet5"}, "optimizer": {"name": "SGD", "args": {"lr": 0.1}}})
    with pytest.raises(Unsupported) as caught:
        prove(Path("r.yaml"), recipe, HOLDS, tmp_path / "parity.json", Console(stderr=True))
    assert "\n" not in str(caught.value)
    for way in ("parity-step r.yaml --json", "--parity-report", "--skip-parity"):
        assert way in str(caught.value)


@pytest.mark.parametrize("passes", [True, False])
def test_proving_prints_the_verdict_and_stores_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], passes: bool
) -> None:
    recipe = recipes.load(RECIPE)
    holds = Holds.now(recipe)
    found = report(holds, None if passes else "gradients")
    monkeypatch.setattr(parity_gate, "with_progress", lambda file, options, worker: found)
    file = tmp_path / "parity.json"
    entry = prove(RECIPE, recipe, holds, file, Console(width=100), [sys.executable])
    assert (entry is not None) is passes
    assert ("First divergence: gradients (train) w" in capsys.readouterr().out) is not passes
    if entry is not None:
        assert accept(file, RECIPE, recipe, holds)["code"] == entry["code"]
    else:
        assert "first in gradients" in refusal(file, holds)


def test_a_precision_of_the_command_line_is_what_is_proven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def record(file: Path, options: Any, worker: Any) -> Report:
        seen.append(recipes.load(file))
        return report(Holds.now(options.recipe))

    monkeypatch.setattr(parity_gate, "with_progress", record)
    holds = Holds.now(HALF)
    assert holds.recipe != Holds.now(PLAIN).recipe
    entry = prove(RECIPE, HALF, holds, tmp_path / "parity.json", Console(quiet=True), ["worker"])
    assert entry is not None and seen[0].digest == HALF.digest and seen[0] == HALF
    assert json.loads((tmp_path / "parity.json").read_text())["recipe"] == str(RECIPE)
    with pytest.raises(BadInput, match=r"parity\.json, with amp: .level: O2, dtype: float16. in the recipe"):
        accept(tmp_path / "parity.json", RECIPE, HALF, HOLDS)


def test_the_step_is_proven_in_the_mode_that_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled, where training compiles it; in mixed precision in PyNative mode, for the two modes round otherwise."""
    seen = []

    def record(file: Path, options: Any, worker: Any) -> Report:
        seen.append(options.mode)
        return report(Holds.now(options.recipe))

    monkeypatch.setattr(parity_gate, "with_progress", record)
    console, file = Console(quiet=True), tmp_path / "parity.json"
    for recipe, mode in ((PLAIN, "graph"), (PLAIN, "pynative"), (HALF, "graph")):
        proven = parity_gate.mode_of_proof(recipe, mode)
        entry = prove(RECIPE, recipe, Holds.now(recipe), file, console, ["worker"], mode=proven)
        assert entry is not None and entry["mode"] == proven
    assert seen == ["graph", "pynative", "pynative"]
    assert how_to_prove(RECIPE, PLAIN, mode="graph").endswith("digits.yaml --json report.json --mode graph")
    assert "--mode" not in how_to_prove(RECIPE, HALF, mode="graph") + how_to_prove(RECIPE, PLAIN)


COMPILED = Finding("forward", Part("graph step1"), "w", 9, Verdict.PASS, "")


def test_a_report_says_whether_it_is_of_the_compiled_step(tmp_path: Path) -> None:
    compiled = replace(report(), findings=[*report().findings, COMPILED])
    assert accept(written(tmp_path), Path("recipe.yaml"), PLAIN, HOLDS)["mode"] == "pynative"
    assert accept(written(tmp_path, compiled), Path("recipe.yaml"), PLAIN, HOLDS)["mode"] == "graph"
    for findings in (None, 3, [[]], [{"part": 3}], {"part": "graph "}):
        file = written(tmp_path, compiled, findings=findings)
        assert accept(file, Path("recipe.yaml"), PLAIN, HOLDS)["mode"] == "pynative"


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.NONE])
def test_where_the_compiled_step_alone_is_not_proven_the_other_mode_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verdict: Verdict
) -> None:
    alone = replace(COMPILED, verdict=verdict, why="off", unjudged=Unjudged.DRAWS)
    both = Finding("forward", Part("step1"), "w", 8, Verdict.FAIL, "off")
    for further, named in (((), True), ((both,), False)):
        found = replace(report(), findings=[*report().findings, *further, alone])
        monkeypatch.setattr(parity_gate, "with_progress", lambda *_, found=found: found)
        assert prove(RECIPE, PLAIN, HOLDS, tmp_path / "p.json", Console(quiet=True), ["worker"], mode="graph") is None
        assert ("--mode pynative trains" in capsys.readouterr().err) is named
