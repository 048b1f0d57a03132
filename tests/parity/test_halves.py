"""Two halves are judged where they belong together, and refused in one line where they do not."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.errors import BadInput, BadTrace, MsmigrateError, WorkerFailed
from msmigrate.parity import run_folder
from msmigrate.parity.build_result import early_failure
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.result import Report
from msmigrate.parity.run_folder import INPUTS, MINDSPORE, MOVED
from msmigrate.parity.tensor_verdict import Unjudged, Verdict
from msmigrate.training.recipe import reader as recipes
from msmigrate.workflows.compare import COARSE, COARSE_BOTH, OWN, compare_folders
from msmigrate.workflows.record import record_side
from traces import NOISE, Change, Run, Tensor, only, without

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
    "one that says it is torch's": (
        lambda a, b: spoil(b, lambda d: d.update(side="torch")),
        "B is no half of torch's that was recorded by itself",
    ),
    "no run.json": (lambda a, b: (b / run_folder.RUN).unlink(), "B: no run.json; this is no recorded run"),
    "another format": (lambda a, b: spoil(b, lambda d: d.update(format=9)), "another format; record it again"),
    "no trace": (
        lambda a, b: shutil.rmtree(b / "mindspore-fp32"),
        "B: mindspore-fp32 was recorded, but is no longer there",
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
        ("torch", torch, None, "is not empty"),
        ("torch", tmp_path / "out", tmp_path, r"no run\.json"),
    ]
    for framework, out, other, why in refused:
        with pytest.raises(BadInput, match=why):
            record_side(framework, RECIPE, replace(options, folder=out), other)
    spoil(torch, lambda d: d.update(pair={"torch": "a:f", "mindspore": "b:f"}))
    with pytest.raises(BadInput, match="A is a trace of a:f: record the same one again"):
        record_side("torch", RECIPE, options, torch)
    assert not (tmp_path / "out").exists()


# Two halves of one framework


def again(root: Path, half: Path, side: str, run: Run | None = None) -> Path:
    """A second recording of one side, from the start of `half`."""
    whole, other = root / "whole again", root / f"{half.name}2"
    (run or Run()).write(whole)
    other.mkdir()
    for trace in whole.glob("torch-*" if side == "torch" else "mindspore-*"):
        trace.rename(other / trace.name)
    shutil.rmtree(whole)
    shutil.copyfile(half / INPUTS, other / INPUTS)
    run_folder.write(RECIPE, ParityJob(recipes.load(RECIPE), other, alone=side == "torch"), side)
    return other


HALF_AWAY = [
    ("forward", "bn", "forward (train) bn"),
    ("gradients", "conv.weight", "gradients (parameters) conv.weight"),
    ("update", "conv.weight", "update (given gradients) conv.weight"),
]


def test_a_second_half_of_torch_s_is_judged_by_the_first(tmp_path: Path) -> None:
    torch, _ = halves(tmp_path, Run(about={}))
    found = compare_folders(torch, again(tmp_path, torch, "torch"))
    assert found.parity
    # a long path is cut in its middle
    assert [side[-10:] for side in found.sides] == [f"({torch})"[-10:], f"({torch}2)"[-10:]]
    assert found.notes[0] == COARSE_BOTH and found.made_with is None and not found.hints


@pytest.mark.parametrize(("stage", "name", "place"), HALF_AWAY)
def test_a_torch_that_computes_otherwise_is_found_where_it_does(
    stage: str, name: str, place: str, tmp_path: Path
) -> None:
    torch, _ = halves(tmp_path)
    found = compare_folders(torch, again(tmp_path, torch, "torch", Run(torch32=only(stage, name, lambda x: x * 1.001))))
    assert not found.parity and found.first_divergence is not None
    assert found.first_divergence.place == place


@pytest.mark.parametrize(("stage", "name", "place"), HALF_AWAY)
def test_two_halves_of_mindspore_are_judged_by_torch_s_noise(stage: str, name: str, place: str, tmp_path: Path) -> None:
    """The reference is MindSpore's own first half: what it does otherwise than torch is no difference here."""
    off = only("forward", "conv", lambda x: x * 1.5)
    torch, mindspore = halves(tmp_path, Run(mindspore=off))
    clean = again(tmp_path, mindspore, "mindspore", Run(mindspore=off))
    found = compare_folders(mindspore, clean, torch)
    assert found.parity and any(str(torch) in note for note in found.notes)
    shutil.rmtree(clean)

    def both(tensor: Any, array: Any) -> Any:
        return only(stage, name, lambda x: x * 1.001)(*off(tensor, array))  # type: ignore[misc]

    faulty = again(tmp_path, mindspore, "mindspore", Run(mindspore=both))
    first = compare_folders(mindspore, faulty, torch).first_divergence
    assert first is not None and first.place == place


def rounded(seed: int) -> Change:
    """Another rounding of everything that is rounded."""

    def apply(tensor: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray]:
        if tensor.exact or tensor.part == "distribution":
            return tensor, array
        draws = np.random.default_rng([seed, array.size])
        return tensor, (array * (1 + NOISE * draws.standard_normal(array.shape))).astype(array.dtype)

    return apply


def with_noise(half: Path, left_out: Change = lambda tensor, array: (tensor, array)) -> Path:
    """The half with the two runs of its own whose numbers were moved."""
    for seed, name in enumerate(MOVED):
        whole = half.parent / name
        Run(mindspore=lambda t, a, seed=seed: left_out(*rounded(seed)(t, a))).write(whole)  # type: ignore[misc]
        (whole / MINDSPORE).rename(half / name)
        shutil.rmtree(whole)
    return half


def test_two_halves_of_mindspore_are_judged_by_the_first_s_own_noise(tmp_path: Path) -> None:
    half = with_noise(halves(tmp_path)[1])
    found = compare_folders(half, again(tmp_path, half, "mindspore", Run(mindspore=rounded(7))))
    assert found.parity and not found.hints and found.made_with is None
    assert OWN.format(half) in found.notes and COARSE_BOTH in found.notes
    assert max(f.ratio for f in found.findings if f.ratio is not None) > 0.1


@pytest.mark.parametrize(("stage", "name", "place"), HALF_AWAY)
def test_what_differs_by_more_than_that_noise_is_found(stage: str, name: str, place: str, tmp_path: Path) -> None:
    half = with_noise(halves(tmp_path)[1])
    off = Run(mindspore=only(stage, name, lambda x: x * 1.0001))
    first = compare_folders(half, again(tmp_path, half, "mindspore", off)).first_divergence
    assert first is not None and first.place == place


def test_a_half_without_noise_is_told_the_line_that_records_it(tmp_path: Path) -> None:
    one = halves(tmp_path)[1]
    other = again(tmp_path, one, "mindspore")
    said = rf"msmigrate record {RECIPE} --framework mindspore --with TORCH_TRACE --noise -o NEW_TRACE"
    with pytest.raises(BadInput, match=said) as refused:
        compare_folders(one, other)
    assert "first, which" not in str(refused.value)
    with pytest.raises(BadInput, match=rf"or name {other} first, which has its own"):
        compare_folders(one, with_noise(other))


def test_a_tensor_that_the_moved_runs_lack_is_no_noise_of_zero(tmp_path: Path) -> None:
    half = with_noise(halves(tmp_path)[1], without("gradients", "bn.weight"))
    with pytest.raises(BadTrace, match=r"mindspore-moved: has no gradients \(parameters\) bn.weight: record it again"):
        compare_folders(half, again(tmp_path, half, "mindspore"))


SIDES = Tensor("sides", "step1", "relu")


@pytest.mark.parametrize(
    ("turned", "factor", "verdict"),
    [(0, 1.01, Verdict.FAIL), (1, 1.01, Verdict.NONE), (1, 2.0, Verdict.FAIL), (1, 1.0, Verdict.PASS)],
)
def test_a_gradient_behind_a_relu_that_fell_to_the_other_side_has_no_verdict(
    turned: int, factor: float, verdict: Verdict, tmp_path: Path
) -> None:
    bits = np.packbits(np.arange(8192) % 3 == 0)
    other = bits.copy()
    other[5] ^= np.uint8(0b1000 * turned)
    half = with_noise(halves(tmp_path, Run(extra=[(SIDES, bits)]))[1])
    change = only("gradients", "conv.weight", lambda x: x * factor)
    found = compare_folders(half, again(tmp_path, half, "mindspore", Run(mindspore=change, extra=[(SIDES, other)])))
    (gradient,) = [f for f in found.findings if (f.stage, f.name) == ("gradients", "conv.weight")]
    assert gradient.verdict is verdict and found.parity is (verdict is Verdict.PASS)
    if verdict is Verdict.NONE:
        assert gradient.unjudged is Unjudged.KINKS and "at 1 elements" not in gradient.why


def test_a_gradient_behind_a_max_pool_that_was_given_other_numbers_has_no_verdict(tmp_path: Path) -> None:
    given = np.random.default_rng(0).standard_normal(2048).astype(np.float32)
    pool = Tensor("sides", "step1", "maxpool")
    half = with_noise(halves(tmp_path, Run(extra=[(pool, given)]))[1])
    change = only("gradients", "conv.weight", lambda x: x * 1.01)
    for other, verdict in ((given, Verdict.FAIL), (np.nextafter(given, np.float32(9)), Verdict.NONE)):
        second = again(tmp_path, half, "mindspore", Run(mindspore=change, extra=[(pool, other)]))
        found = compare_folders(half, second)
        (gradient,) = [f for f in found.findings if (f.stage, f.name) == ("gradients", "conv.weight")]
        assert gradient.verdict is verdict
        shutil.rmtree(second)


def test_noise_is_recorded_of_mindspore_and_a_recipe_s_own_model(tmp_path: Path) -> None:
    torch, _ = halves(tmp_path)
    job = ParityJob(recipes.load(RECIPE), tmp_path / "out", noise=True)
    with pytest.raises(BadInput, match=r"--noise is for MindSpore's half .*: torch's has float64"):
        record_side("torch", RECIPE, job)
    with pytest.raises(BadInput, match=r"your own models are not compared"):
        record_side("mindspore", RECIPE, replace(job, pair=Pair("a:f", "b:f")), torch)


def test_a_tensor_that_one_of_two_lacks_is_a_finding(tmp_path: Path) -> None:
    torch, mindspore = halves(tmp_path)
    less = again(tmp_path, mindspore, "mindspore", Run(mindspore=without("gradients", "bn.weight")))
    for one, other, said in ((mindspore, less, "has no such tensor"), (less, mindspore, "recorded none")):
        first = compare_folders(one, other, torch).first_divergence
        assert first is not None and first.name == "bn.weight" and said in first.why and "MindSpore" in first.why


def test_what_two_halves_of_one_framework_need(tmp_path: Path) -> None:
    torch, mindspore = halves(tmp_path)
    second, other = again(tmp_path, torch, "torch"), again(tmp_path, mindspore, "mindspore")
    with pytest.raises(BadInput, match=r"name torch's half, --with TRACE"):
        compare_folders(mindspore, other)
    with pytest.raises(BadInput, match="leave out --with"):
        compare_folders(torch, second, torch)
    with pytest.raises(BadInput, match=r"no half of torch's that was recorded by itself"):
        compare_folders(mindspore, other, mindspore)
    with pytest.raises(BadInput, match=r"--with is for two halves of MindSpore"):
        compare_folders(torch, mindspore, torch)
    run = json.loads((second / "run.json").read_text())
    (second / "run.json").write_text(json.dumps({**run, "alone": False}))
    with pytest.raises(BadInput, match="took MindSpore's choices"):
        compare_folders(torch, second)
    (second / INPUTS).write_bytes(b"other batches")
    run_folder.write(RECIPE, ParityJob(recipes.load(RECIPE), second, alone=True), "torch")
    with pytest.raises(BadTrace, match="do not share their inputs"):
        compare_folders(torch, second)


def test_torch_is_recorded_again_from_a_half_s_own_start(tmp_path: Path) -> None:
    """What of the first half the second worker finds in its folder."""
    torch, mindspore = halves(tmp_path)
    (torch / "start.pth").write_bytes(b"weights")
    job = ParityJob(recipes.load(RECIPE), tmp_path / "out")
    with pytest.raises(WorkerFailed, match=r"inputs\.safetensors start\.pth True"):
        record_side("torch", RECIPE, job, torch, torch_worker=TELLS)
    (torch / "start.pth").unlink()
    with pytest.raises(BadTrace, match=r"has no start\.pth"):
        record_side("torch", RECIPE, job, torch, torch_worker=TELLS)
    assert not (tmp_path / "out").exists()
    (mindspore / "start.pth").write_bytes(b"weights")
    with pytest.raises(WorkerFailed, match=r"inputs\.safetensors start\.pth False"):
        record_side("torch", RECIPE, job, mindspore, torch_worker=TELLS)


TELLS = (
    sys.executable,
    "-c",
    "import json, sys; from pathlib import Path; job = json.loads(Path(sys.argv[1]).read_text()); "
    "there = sorted(p.name for p in Path(job['folder']).iterdir() if p.suffix in ('.pth', '.safetensors')); "
    "sys.exit(f\"{' '.join(there)} {job['alone']}\")",
)


# What is known before the steps


EARLY = [  # what is off in MindSpore's trace, and what is told of it before the end
    (("forward", "bn", lambda x: x * 1.5), "forward (train) bn"),
    (("init", "conv.weight", lambda x: x * 1.5), "init (values) conv.weight"),
    (("gradients", "conv.weight", lambda x: x * 1.5), None),
    (None, None),
]


@pytest.mark.parametrize(("off", "place"), EARLY)
def test_what_needs_no_step_is_judged_before_the_steps(off: Any, place: str | None, tmp_path: Path) -> None:
    folder = (Run() if off is None else Run(mindspore=only(*off))).write(tmp_path / "kept")
    for later in [*folder.glob("torch-*-matched"), *folder.glob("*-replay*")]:
        shutil.rmtree(later)
    found = early_failure(ParityJob(recipes.load(RECIPE), folder, steps=2))
    assert (found and found.place) == place
