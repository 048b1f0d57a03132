"""A run that is narrowed to stages or modules does, counts and lists only what these need."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msmigrate.errors import BadInput, BadTrace
from msmigrate.parity import run_folder
from msmigrate.parity.align.alignment import IDENTITY
from msmigrate.parity.build_result import report
from msmigrate.parity.compare_traces import compare
from msmigrate.parity.job import ParityJob
from msmigrate.parity.options import OF_MODULES, STAGES, WHOLE, Narrowing, ParityOptions
from msmigrate.parity.record.batches import Inputs
from msmigrate.parity.record.randomness import GIVEN_STEPS as STEPS
from msmigrate.parity.record.recorder import (
    OVERFLOWS,
    StepArrays,
    record_evaluation,
    record_parts,
    record_probes,
    record_steps,
)
from msmigrate.parity.result import Report
from msmigrate.parity.run_folder import INPUTS
from msmigrate.parity.trace import RATES, Trace, TraceWriter
from msmigrate.training.recipe import reader as recipes
from msmigrate.training.recipe import schema
from msmigrate.workflows import parity_step
from msmigrate.workflows.compare import compare_folders
from msmigrate.workflows.record import record_side
from traces import STEP, Run, Tensor, without

RECIPE = Path(__file__).parent / "tiny.yaml"


# What is chosen


def test_nothing_said_is_the_whole_step() -> None:
    assert Narrowing.to() == Narrowing.to(STAGES) == Narrowing.to(reversed(STAGES)) == WHOLE and WHOLE.whole
    assert WHOLE.left_out() == "" and WHOLE.said() == "the whole step"
    assert Narrowing.to("loss") == Narrowing.to(["loss"]) and not Narrowing.to("loss").whole
    assert Narrowing.to(modules=["*"]).stages == OF_MODULES and not Narrowing.to(modules=["*"]).whole


@pytest.mark.parametrize(
    ("stages", "modules", "why"),
    [
        (["forwards"], (), "there is no stage 'forwards'; did you mean 'forward'?"),
        (["x"], (), "there is no stage 'x'; the stages are data, init, forward"),
        (
            ["loss"],
            ["fc"],
            "the stage loss has no tensors of modules, so --modules fc leaves nothing of it to judge",
        ),
        (["init", "data"], ["fc"], "the stage data has no tensors of modules"),
    ],
)
def test_what_is_no_narrowing_is_one_line(stages: Sequence[str], modules: Sequence[str], why: str) -> None:
    for make in (lambda: Narrowing.to(stages, modules), lambda: ParityOptions(stages=stages, modules=modules)):
        with pytest.raises(BadInput) as refused:
            make()
        assert why in str(refused.value) and "\n" not in str(refused.value)


CHOSEN: list[tuple[Sequence[str], Mapping[str, bool]]] = [
    (["layer1"], {"layer1": True, "layer1.0.conv1": True, "layer10": False, "": False, "a.layer1": False}),
    (["layer1.*"], {"layer1": False, "layer1.0": True, "layer1.0.conv1": True}),
    (["*.bn?"], {"layer1.0.bn1": True, "bn1": False, "layer1.0.bn10": False}),
    (["(model)"], {"": True, "fc": False}),
    (["*"], {"": True, "fc": True}),
    (["fc", "conv1"], {"fc": True, "conv1": True, "layer1.0.conv1": False}),
]


@pytest.mark.parametrize(("globs", "chosen"), CHOSEN, ids=str)
def test_a_chosen_module_brings_along_what_is_in_it(globs: Sequence[str], chosen: Mapping[str, bool]) -> None:
    narrowing = Narrowing.to(modules=globs)
    for path, expected in chosen.items():
        assert narrowing.module(path) is expected, path
        assert narrowing.judges("forward", f"{path}#3") is expected
        assert narrowing.judges("update", f"{path}.weight".lstrip(".")) is expected
        assert not narrowing.judges("loss", path)


def test_a_glob_that_matches_no_module_names_what_there_is() -> None:
    names = ["", "conv1", "bn1", "layer1", "layer1.0", "layer1.0.conv1", "layer1.0.bn1", "fc"]
    Narrowing.to(modules=["layer1*", "(model)", "f?"]).check(names, "resnet")
    for glob, said in (
        ("zzz*", "--modules 'zzz*' matches no module of resnet; it has (model), conv1, bn1, layer1, layer1.0"),
        ("layer1.0.conv2", "matches no module of resnet; the nearest: layer1.0.conv1"),
        ("fc.weight", "the nearest: fc"),
        ("LAYER1.0", "matches no module"),
    ):
        with pytest.raises(BadInput) as refused:
            Narrowing.to(modules=["conv1", glob]).check(names, "resnet")
        assert said in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("model", ["resnet50", "resnet_tiny", "lenet5"])
def test_a_glob_for_a_model_of_a_recipe_is_refused_before_anything_starts(model: str) -> None:
    recipe = recipes.load(RECIPE)
    recipe = recipe.model_copy(update={"model": schema.Model(name=model)})
    ParityJob(recipe, Path("x"), modules=["conv1"])
    with pytest.raises(BadInput, match=f"--modules 'conf1' matches no module of {model}; the nearest: .*conv1"):
        ParityJob(recipe, Path("x"), modules=["conf1"])


def test_a_glob_for_a_model_alone_is_refused_before_it_is_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask(worker: str, *_: str) -> dict[str, Any]:
        asked.append(worker)
        return {"classes": {"": [], "features.0": []}}

    monkeypatch.setattr(parity_step.model_spec, "ask", ask)
    with pytest.raises(BadInput, match=r"matches no module of torchvision:vgg11; the nearest: features\.0"):
        parity_step.with_mindspore(ParityOptions(torch="torchvision:vgg11", modules=["feature.0"]), tmp_path / "new")
    assert asked == ["checkpoint.torch_model_worker"] and not (tmp_path / "new").exists()


def test_a_worker_is_told_the_same(tmp_path: Path) -> None:
    for stages, modules in (((), ()), (("forward", "update"), ()), ((), ("layer1*", "fc")), (("init",), ("fc",))):
        options = ParityJob(recipes.load(RECIPE), Path("x"), stages=stages, modules=modules)
        options.write(tmp_path / "job.json")
        assert ParityJob.read(tmp_path / "job.json").narrowing == options.narrowing == Narrowing.to(stages, modules)


def test_the_assertion_hands_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ParityJob] = []
    monkeypatch.setattr(
        parity_step, "compare_steps", lambda path, options, **_: seen.append(options) or SimpleNamespace(parity=True)
    )
    files = {
        side: f"{Path(__file__).parent / 'align' / f'pair_nets_{side}.py'}:Small" for side in ("torch", "mindspore")
    }
    parity_step.assert_parity(**files, stages=["forward"], modules=["a*"])
    assert seen[0].narrowing == Narrowing.to(["forward"], ["a*"])
    with pytest.raises(BadInput, match="there is no stage 'forwad'; did you mean 'forward'"):
        parity_step.assert_parity(**files, stages=["forwad"])


# What is done


class Counting:
    """A side with one weight and one buffer, that counts what it is asked to do."""

    recipe: Any = SimpleNamespace(accumulate=2, clip=SimpleNamespace(max_norm=1.0))
    alignment = IDENTITY

    def __init__(self, skips: int = 0) -> None:
        self.done: Counter[str] = Counter()
        self.skips = skips  # steps that overflow at first

    def __getattr__(self, name: str) -> Callable[..., Any]:
        one = np.ones(2, np.float32)
        gives: dict[str, Any] = {
            "parameters": {"fc.weight": one},
            "buffers": {"bn.running_mean": one},
            "loss_scaling": {"scale": one[:1]},
            "ema": {"fc.weight": one},
            "optimizer_state": {"momentum_buffer": {"fc.weight": one}},
            "hyperparameters": {RATES: {"fc.weight": one}},
            "evaluate": [one],
            "loss": (one[:1], one),
            "clipped": {"fc.weight": one},
            "accumulated": {"fc.weight": one},
            "alike": True,
            "updates_alone": True,
        }

        def call(*_: Any, **__: Any) -> Any:
            self.done[name] += 1
            if name == "step":
                return StepArrays(one[:1], one, {"fc.weight": one}, one, self.done["step"] > self.skips)
            return gives.get(name)

        return call


def recorded(folder: Path, *stages: str, skips: int = 0) -> tuple[Counter[str], Trace]:
    """What a side does, and what it leaves, of three steps and of all that is done on given values."""
    side: Any = Counting(skips)
    writer = TraceWriter(folder, {}, narrowing=Narrowing.to(stages))
    batch = np.ones((4, 2), np.float32)
    inputs = Inputs([batch] * 3, [np.zeros(4, np.int64)] * 3, 2)
    record_evaluation(side, inputs, writer)
    record_steps(side, inputs, writer, "made up")
    record_probes(side, inputs, writer)
    record_parts(side, writer)
    writer.close()
    return side.done, Trace(folder)


APPLIED = STEPS + len(OVERFLOWS)
DONE: dict[tuple[str, ...], dict[str, int]] = {
    # how often it evaluates, takes steps, applies given gradients, and computes the loss of given logits
    (): {"evaluate": 1, "step": 3, "apply": APPLIED, "loss": 1, "accumulated": STEPS, "clipped": 5, "average": STEPS},
    ("forward",): {"evaluate": 1, "step": 1},
    ("loss",): {"step": 1, "loss": 1},
    ("gradients",): {"step": 1, "accumulated": STEPS},
    ("forward", "gradients"): {"evaluate": 1, "step": 1, "accumulated": STEPS},
    ("update",): {"step": 3, "apply": APPLIED, "clipped": 5, "average": STEPS},
}


@pytest.mark.parametrize("stages", DONE, ids=str)
def test_only_the_work_that_the_stages_need_is_done(tmp_path: Path, stages: tuple[str, ...]) -> None:
    done, trace = recorded(tmp_path / "trace", *stages)
    work = {name: done[name] for name in DONE[()] if done[name]}
    assert work == DONE[stages]
    behind = {"gradients"} if "update" in stages else set()  # what an update comes from, for its causes
    assert {entry.stage for entry in trace.entries.values()} <= {*(stages or STAGES), *behind}
    assert ("optimizer_state" in done) is (not stages or "update" in stages)


def test_steps_are_taken_until_one_has_gradients(tmp_path: Path) -> None:
    assert recorded(tmp_path / "a", "gradients", skips=1)[0]["step"] == 2
    assert recorded(tmp_path / "b", "gradients", skips=9)[0]["step"] == 3
    assert recorded(tmp_path / "c", "loss", skips=9)[0]["step"] == 1
    assert len(list(recorded(tmp_path / "d", "gradients", skips=1)[1].select("gradients", "parameters"))) == 1


# What is judged


def judged(folder: Path, stages: Sequence[str] = (), modules: Sequence[str] = (), steps: int = 3) -> Report:
    """The report on a folder's traces, of a model whose modules nobody knows beforehand."""
    recipe = recipes.load(RECIPE).model_copy(update={"model": schema.Model(name="torchvision:resnet18")})
    return report(RECIPE, ParityJob(recipe, folder, steps=steps, stages=stages, modules=modules))


@pytest.mark.parametrize(
    ("stages", "modules"),
    [(("forward", "gradients"), ()), (("data",), ()), (("update",), ()), ((), ("bn",)), (("forward",), ("conv",))],
    ids=str,
)
def test_a_tensor_gets_the_verdict_that_it_gets_in_the_whole(
    tmp_path: Path, stages: Sequence[str], modules: Sequence[str]
) -> None:
    narrowing = Narrowing.to(stages, modules)
    traces = Run().traces(tmp_path)
    whole, part = compare(traces), compare(traces, narrowing)
    kept = [replace(f, order=i) for i, f in enumerate(f for f in whole if narrowing.judges(f.stage, f.name))]
    assert part == kept and 0 < len(part) < len(whole)


def test_a_fault_elsewhere_is_not_judged_and_one_here_is(tmp_path: Path) -> None:
    folder = Run(mindspore=without("gradients", "bn.weight")).write(tmp_path)
    for stages, modules, parity in (
        (("forward",), (), True),
        (("gradients",), (), False),
        ((), ["bn"], False),
        ((), ["conv"], True),
        (("gradients",), ["conv"], True),
    ):
        found = judged(folder, stages, modules)
        assert found.parity is parity, (stages, modules)
        assert not [f for f in found.findings if not Narrowing.to(stages, modules).judges(f.stage, f.name)]


def test_what_only_mindspore_has_counts_where_it_is_judged(tmp_path: Path) -> None:
    more = [(Tensor("gradients", "parameters", "conv.extra"), np.ones((2, 2), np.float32))]
    traces = Run(extra=more).traces(tmp_path)
    assert [f.name for f in compare(traces, Narrowing.to(["gradients"], ["conv"]))] == ["conv.weight", "conv.extra"]
    assert "conv.extra" not in [f.name for f in compare(traces, Narrowing.to(["gradients"], ["bn"]))]


def test_a_stage_in_which_the_modules_have_nothing_by_nature_is_not_judged(tmp_path: Path) -> None:
    found = judged(Run().write(tmp_path), modules=["relu"])
    assert found.narrowing.stages == ("forward",) and found.parity and len(found.findings) == 2
    nothing = judged(tmp_path, ["init"], ["relu"])
    assert not nothing.parity and nothing.findings == [] and nothing.stages[0].stage == "init"


def test_the_steps_that_were_taken_are_counted(tmp_path: Path) -> None:
    folder = Run().write(tmp_path)
    for stages, steps in (((), 7), (("update",), 7), (("gradients",), 2)):  # two, the made-up traces say
        found = judged(folder, stages, steps=7)
        assert found.made_with is not None and found.made_with.steps == steps


# Halves


def halves(root: Path, ours: Sequence[str], theirs: Sequence[str]) -> tuple[Path, Path]:
    """A made-up run, whose halves were recorded for these stages."""
    Run().write(root / "whole")
    found = []
    for name, side, stages in (("A", "torch", ours), ("B", "mindspore", theirs)):
        folder = root / name
        folder.mkdir()
        for trace in (root / "whole").glob(f"{side}-*"):
            trace.rename(folder / trace.name)
        (folder / INPUTS).write_bytes(b"the same batches")
        options = ParityJob(recipes.load(RECIPE), folder, stages=stages)
        run_folder.write(RECIPE, replace(options, alone=side == "torch"), side)
        found.append(folder)
    return found[0], found[1]


def test_compare_says_what_the_halves_were_recorded_for(tmp_path: Path) -> None:
    found = compare_folders(*halves(tmp_path, ["forward"], ["forward"]))
    assert found.parity and found.narrowing == Narrowing.to(["forward"])
    assert {f.stage for f in found.findings} == {"forward"} and found.as_json()["parity"] is None


def test_halves_that_were_recorded_for_other_stages_are_refused(tmp_path: Path) -> None:
    torch, mindspore = halves(tmp_path, ["forward"], [])
    with pytest.raises(
        BadTrace, match=r"A was recorded for forward and .*B for the whole step: record both with the same"
    ):
        compare_folders(torch, mindspore)
    for framework, other in (("mindspore", torch), ("torch", mindspore)):
        options = ParityJob(recipes.load(RECIPE), tmp_path / "out", stages=["loss"])
        with pytest.raises(BadTrace, match=r"out was recorded for loss and .* record both with the same --stages"):
            record_side(framework, RECIPE, options, other)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", [None, 1, "x", ["x"], [1], {"a": 1}, [["forward"]], ["forward", None]], ids=str)
@pytest.mark.parametrize("key", ["stages", "modules"])
def test_a_hostile_run_file_is_one_line(tmp_path: Path, key: str, value: Any) -> None:
    folder = halves(tmp_path, [], [])[0]
    document = json.loads((folder / run_folder.RUN).read_text())
    (folder / run_folder.RUN).write_text(json.dumps({**document, key: value}))
    try:
        run_folder.read(folder)
    except BadTrace as error:
        assert "\n" not in str(error)
    else:
        assert (key, value) == ("modules", ["x"])


def test_a_run_file_from_before_is_of_the_whole_step(tmp_path: Path) -> None:
    folder = halves(tmp_path, [], [])[0]
    document = json.loads((folder / run_folder.RUN).read_text())
    kept = {name: value for name, value in document.items() if name not in ("stages", "modules")}
    (folder / run_folder.RUN).write_text(json.dumps(kept))
    assert run_folder.read(folder).narrowing == WHOLE and len(STEP) > 6
