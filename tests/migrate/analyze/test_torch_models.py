"""What a torch model calls is recorded as it runs, once for every operator, with its arguments and its places."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmigrate.errors import BadInput
from msmigrate.migrate.analyze.model_analysis import Analysis, Covered, analyze, cover
from msmigrate.migrate.analyze.operators import Operator

NETS = f"{Path(__file__).parent / 'analysed_nets_torch.py'}:"
RESNET18 = {
    "torch.nn.Conv2d": 20,
    "torch.nn.BatchNorm2d": 20,
    "torch.nn.ReLU": 17,
    "torch.nn.MaxPool2d": 1,
    "torch.add": 8,
    "torch.nn.AdaptiveAvgPool2d": 1,
    "torch.flatten": 1,
    "torch.nn.Linear": 1,
    "torch.nn.Sequential": 7,
}


def by_name(analysis: Analysis) -> dict[str, Operator]:
    return {operator.torch: operator for operator in analysis.operators}


@pytest.fixture(scope="module")
def covered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Covered]:
    """Every net of the file, and files that are no such, analysed in one worker."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "importing.py").write_text("import collections\nimport no_such_module_at_all\n")
    (folder / "broken.py").write_text("def build(:\n")
    (folder / "binary.py").write_bytes(bytes(100))
    names = ("net", "counting", "narrow", "wide", "refused", "fails", "dies", "no_model", "absent")
    files = ("importing", "broken", "binary")
    specs = [*(NETS + name for name in names), *(f"{folder / name}.py:{name}" for name in files)]
    found = cover([*specs, "torchvision:resnet18"], mode="pynative", target="CPU")
    assert [entry.model for entry in found.models] == [*names, *files, "resnet18"]
    return {entry.model: entry for entry in found.models}


def analysis_of(entry: Covered) -> Analysis:
    assert entry.analysis is not None, entry.failed
    return entry.analysis


def test_resnet18_moves(covered: dict[str, Covered]) -> None:
    found = analysis_of(covered["resnet18"])
    assert found.verdict == "resnet18 moves: 9 operators, all direct"
    assert {operator.torch: operator.calls for operator in found.operators} == RESNET18
    assert by_name(found)["torch.add"].places[0] == "layer1.0"
    assert by_name(found)["torch.add"].lines[0].startswith("resnet.py:")
    assert found.never_ran == () and found.notes == ()


def test_the_costs_are_those_that_torchvision_publishes(covered: dict[str, Covered]) -> None:
    costs = analysis_of(covered["resnet18"]).costs
    assert costs["parameters"] == 11_689_512 and costs["parameter_bytes"] == 4 * 11_689_512
    assert costs["flops"] == pytest.approx(2 * 1.814e9, rel=1e-3)  # torchvision counts a multiply-add as one
    assert 20e6 < (costs["activation_bytes"] or 0) < 30e6


def test_a_module_with_a_row_is_one_operator(covered: dict[str, Covered]) -> None:
    found = by_name(analysis_of(covered["net"]))
    assert found["torch.nn.MultiheadAttention"].places == ("attend",)
    assert (
        "torch.nn.functional.softmax" not in found and "torch.nn.functional.multi_head_attention_forward" not in found
    )


def test_operators_of_python_are_the_functions_they_are(covered: dict[str, Covered]) -> None:
    found = by_name(analysis_of(covered["net"]))
    assert (found["torch.add"].calls, found["torch.mul"].calls) == (2, 1)
    assert any("first argument" in change for change in found["torch.add"].changes)
    assert not found["torch.mul"].changes


def test_a_class_is_its_base_unless_it_computes_otherwise(covered: dict[str, Covered]) -> None:
    found = by_name(analysis_of(covered["net"]))
    assert found["torch.nn.Linear"].places == ("head.0",)
    assert found["torch.matmul"].places == ("head.1",) == found["torch.nn.functional.relu"].places


def test_both_modes_run(covered: dict[str, Covered]) -> None:
    dropout = by_name(analysis_of(covered["net"]))["torch.nn.functional.dropout"]
    assert (dropout.calls, dropout.train_calls) == (0, 1)


def test_what_never_ran_is_told(covered: dict[str, Covered]) -> None:
    assert analysis_of(covered["net"]).never_ran == ("spare",)


def test_arguments_are_those_that_the_module_has_now(covered: dict[str, Covered]) -> None:
    found = by_name(analysis_of(covered["net"]))
    call = found["torch.nn.Conv2d"].call
    assert call is not None and "has_bias=False" in call and "pad_mode='valid'" in call
    assert found["torch.nn.BatchNorm2d"].calls == 2


def test_what_looks_at_values_runs_with_values(covered: dict[str, Covered]) -> None:
    found = analysis_of(covered["narrow"])
    assert found.device == "cpu" and found.inputs == "the inputs that it returns"
    assert "torch.nn.Linear" in by_name(found)
    assert analysis_of(covered["net"]).device == "meta"


def test_one_whose_constructor_looks_at_values_has_no_weights_either(covered: dict[str, Covered]) -> None:
    found = analysis_of(covered["counting"])
    assert found.device == "meta"
    assert found.costs["parameters"] == 16 + 4 + 4 + 4  # the tied weight counts once
    dropout = by_name(found)["torch.nn.Dropout"].call
    assert dropout is not None and "p=0.4" in dropout


def test_writing_into_the_input_is_a_change_and_no_reason_to_refuse(covered: dict[str, Covered]) -> None:
    relu = by_name(analysis_of(covered["counting"]))["torch.nn.functional.relu"]
    assert relu.way == "direct" and any("first argument" in change for change in relu.changes)


def test_values_without_a_counterpart(covered: dict[str, Covered]) -> None:
    found = by_name(analysis_of(covered["refused"]))
    conv, norm = found["torch.nn.Conv2d"], found["torch.nn.BatchNorm2d"]
    assert conv.way == "composed" and conv.call is not None and conv.call.startswith("msmigrate.nn.PaddedConv2d(")
    assert norm.missing and norm.why is not None and "momentum=None" in norm.why
    assert "torch.nn.BatchNorm2d (with momentum=None)" in analysis_of(covered["refused"]).verdict
    assert not covered["refused"].moves


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fails", ("ZeroDivisionError: the user's own mistake", "(analysed_nets_torch.py, line ")),
        ("dies", ("the worker stopped (exit code 7)",)),
        ("no_model", ("it returns int, not a torch.nn.Module",)),
        ("absent", ("has no function absent",)),
        ("importing", ("ModuleNotFoundError: No module named 'no_such_module_at_all' (importing.py, line 2)",)),
        ("broken", ("SyntaxError: invalid syntax (broken.py, line 1)",)),
        ("binary", ("source code string cannot contain null bytes",)),  # a ValueError before Python 3.11.4
        ("wide", ("it does not run on 1×3×224×224", "(analysed_nets_torch.py, line ", "--input 1x3x224x224")),
    ],
)
def test_one_that_fails_says_why(covered: dict[str, Covered], name: str, words: tuple[str, ...]) -> None:
    failed = covered[name].failed
    assert failed is not None and all(word in failed for word in words), failed
    assert not covered[name].moves


def test_an_unknown_model_is_refused_with_the_closest_names() -> None:
    with pytest.raises(BadInput, match=r"torchvision has no model resnett50; did you mean resnet50, "):
        analyze("torchvision:resnett50", mode="pynative", target="CPU")


def test_told_inputs_are_those_that_it_runs_on() -> None:
    found = analyze(f"{NETS}wide", mode="pynative", target="CPU", inputs=["2x4"])
    assert found.inputs == "2x4" and "torch.mean" in by_name(found)


def test_told_inputs_are_checked() -> None:
    with pytest.raises(BadInput, match="--input 2xfour: expected sizes"):
        analyze(f"{NETS}wide", mode="pynative", target="CPU", inputs=["2xfour"])


@pytest.mark.full
def test_every_model_of_torchvision_can_be_analysed() -> None:
    found = cover(["torchvision"], mode="pynative", target="CPU")
    assert [entry.failed for entry in found.models if entry.failed] == []
    assert all(entry.seconds < 120 for entry in found.models)
    assert len(found.families()) >= 5
