"""Two halves are judged where they belong together, and refused in one line where they do not."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msmigrate.errors import BadInput, BadTrace, MsmigrateError, WorkerFailed
from msmigrate.parity import run_folder
from msmigrate.parity.job import ParityJob
from msmigrate.parity.result import Report
from msmigrate.parity.run_folder import INPUTS
from msmigrate.training.recipe import reader as recipes
from msmigrate.workflows.compare import COARSE, compare_folders
from msmigrate.workflows.record import record_side
from traces import Run, without

HERE = Path(__file__).parent
RECIPE = HERE / "tiny.yaml"


def halves(root: Path, run: Run | None = None, alone: bool = True) -> tuple[Path, Path]:
    """A made-up run, with torch's traces in one folder and MindSpore's in another."""
    whole, torch, mindspore = root / "whole", root / "A", root / "B"
    (run or Run()).write(whole)
    for folder, begins, side in ((torch, "torch-", "torch"), (mindspore, "mindspore-", "mindspore")):
        folder.mkdir()
        for trace in whole.glob(f"{begins}*"):
            trace.rename(folder / trace.name)
        (folder / INPUTS).write_bytes(b"the same batches")
        job = ParityJob(recipes.load(RECIPE), folder, alone=alone and side == "torch")
        run_folder.write(RECIPE, job, side)
    return torch, mindspore


def test_two_halves_are_judged_in_either_order(tmp_path: Path) -> None:
    torch, mindspore = halves(tmp_path)
    for one, other in ((torch, mindspore), (mindspore, torch)):
        found = compare_folders(one, other)
        assert found.parity and found.notes[0] == COARSE and found.recipe == str(RECIPE)
    assert sorted(p.name for p in torch.iterdir()) == sorted({p.name for p in torch.iterdir()})


def test_a_half_with_the_others_choices_is_not_coarse(tmp_path: Path) -> None:
    assert COARSE not in compare_folders(*halves(tmp_path, alone=False)).notes


def test_a_mismatch_is_one(tmp_path: Path) -> None:
    found = compare_folders(*halves(tmp_path, Run(mindspore=without("gradients", "bn.weight"))))
    first = found.first_divergence
    assert not found.parity and first is not None and first.name == "bn.weight"


def test_a_run_that_was_kept_is_judged_again(tmp_path: Path) -> None:
    folder = Run().write(tmp_path / "kept")
    run_folder.write(RECIPE, ParityJob(recipes.load(RECIPE), folder, steps=2), "both")
    found: Report = compare_folders(folder)
    assert found.parity and found.made_with is not None and found.made_with.steps == 2


def spoil(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = folder / run_folder.RUN
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


APART: dict[str, tuple[Callable[[Path, Path], Any], str]] = {
    "other batches": (
        lambda a, b: spoil(b, lambda d: d["shared"].update({INPUTS: "0"})),
        r"do not share their inputs\.safetensors: record MindSpore's side with --with",
    ),
    "other steps": (lambda a, b: spoil(b, lambda d: d.update(steps=7)), "A has 3 steps, .*B 7"),
    "another recipe": (
        lambda a, b: shutil.copyfile(HERE / "tiny_clipped.yaml", b / run_folder.RECIPE),
        "are of different recipes",
    ),
    "two of torch": (lambda a, b: spoil(b, lambda d: d.update(side="torch")), "A is a trace of torch, .*B of torch"),
    "no run.json": (lambda a, b: (b / run_folder.RUN).unlink(), "B: no run.json; this is no recorded run"),
    "another format": (lambda a, b: spoil(b, lambda d: d.update(format=9)), "another format; record it again"),
    "no trace": (
        lambda a, b: shutil.rmtree(b / "mindspore-fp32"),
        "B: mindspore-fp32 was recorded, and is not there any more",
    ),
    "no alignment": (
        lambda a, b: [spoil(x, lambda d: d.update(pair={"torch": "a:f", "mindspore": "b:f"})) for x in (a, b)],
        "the pair's alignment.json is not there",
    ),
    "no recipe": (lambda a, b: (b / run_folder.RECIPE).unlink(), "recipe.yaml"),
}


@pytest.mark.parametrize("case", APART)
def test_halves_that_do_not_belong_together_are_refused(tmp_path: Path, case: str) -> None:
    change, why = APART[case]
    torch, mindspore = halves(tmp_path)
    change(torch, mindspore)
    with pytest.raises(BadInput, match=why) as refused:
        compare_folders(torch, mindspore)
    assert "\n" not in str(refused.value)


def test_one_half_alone_is_refused(tmp_path: Path) -> None:
    for half in halves(tmp_path):
        with pytest.raises(BadInput, match="half alone: name the other framework's too"):
            compare_folders(half)
    with pytest.raises(BadTrace, match=r"no run\.json"):
        compare_folders(tmp_path / "nowhere")


@pytest.mark.parametrize("value", [None, [], {}, "x", -1, True, 1.5, {"a": 1}, [[]]])
@pytest.mark.parametrize(
    "key", ["side", "recipe", "steps", "batch", "pair", "alone", "shared", "traces", "precision", "format"]
)
def test_a_hostile_run_file_is_judged_or_one_line(tmp_path: Path, key: str, value: Any) -> None:
    torch, mindspore = halves(tmp_path)
    spoil(torch, lambda document: document.update({key: value}))
    try:
        compare_folders(torch, mindspore)
    except MsmigrateError as error:
        assert "\n" not in str(error)


def fake(way: str) -> list[str]:
    return [sys.executable, str(HERE / "fake_worker.py"), way]


def test_a_recording_that_fails_leaves_nothing(tmp_path: Path) -> None:
    options = ParityJob(recipes.load(RECIPE), tmp_path / "out")
    with pytest.raises(WorkerFailed, match="the torch side stopped"):
        record_side("torch", RECIPE, options, torch_worker=fake("fails"))
    assert list(tmp_path.iterdir()) == []


def test_what_record_refuses_before_anything_runs(tmp_path: Path) -> None:
    torch, mindspore = halves(tmp_path)
    options = ParityJob(recipes.load(RECIPE), tmp_path / "out")
    refused: list[tuple[str, Path, Path | None, str]] = [
        ("mindspore", tmp_path / "out", None, "give torch's trace with --with"),
        ("mindspore", tmp_path / "out", mindspore, "is a trace of mindspore: --with takes the other framework's"),
        ("torch", tmp_path / "out", torch, "is a trace of torch"),
        ("torch", torch, None, "is not empty"),
        ("torch", tmp_path / "out", tmp_path, r"no run\.json"),
    ]
    for framework, out, other, why in refused:
        with pytest.raises(BadInput, match=why):
            record_side(framework, RECIPE, replace(options, folder=out), other)
    assert not (tmp_path / "out").exists()
