"""A planted fault in a module is named, with its place, stage, fix and evidence; what nothing explains is described."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msmigrate.parity.tensor_verdict import RATIO

HERE = Path(__file__).parent
Causes = dict[str, Any]

# case: stage, fault, and words of the text
KNOWN = {
    "bn eps 1e-3": ("forward", None, "eps=0.001"),
    "bn eps 1.01e-5": ("forward", None, "eps=1.01e-05"),
    "bn eps 3.3e-4": ("forward", None, "eps=0.00033"),
    "bn momentum 0.9": ("update", "bn-momentum-complement", "momentum=0.9"),
    "bn momentum 0.37": ("update", None, "momentum=0.37"),
    "bn eval": ("forward", "bn-set-train-missing", "evaluation mode"),
    "conv same": ("forward", "conv-same-stride2-shift", "pad_mode='same'"),
    "conv flipped": ("forward", None, "its kernel flipped"),
    "conv dilated": ("forward", None, "padding=(1, 1), dilation=(1, 1); torch has padding=(2, 2), dilation=(2, 2)"),
    "pool made otherwise": ("forward", None, "ceil_mode=True, count_include_pad=False"),
    "conv stride": ("forward", None, "stride=(2, 2)"),
    "conv twice the bias": ("forward", None, "bias taken 2 times"),
    "pool same": ("forward", "maxpool-same-stem", "pad_mode='same'"),
    "pool zeros": ("forward", "maxpool-zero-pad", "zeros for padding"),
    "pool ceil": ("forward", None, "cannot be told apart"),
    "avgpool": ("forward", "avgpool-same-excludes-pad", "count_include_pad=False"),
    "ln eps": ("forward", "ln-eps", "eps=1e-07"),
    "ln eps 1e-3": ("forward", None, "eps=0.001"),
    "ln axes": ("forward", None, "over the second dimension"),
    "gn groups": ("forward", None, "num_groups=2"),
    "gelu tanh": ("forward", "gelu-approximate", "approximate='tanh'"),
    "quick gelu": ("forward", "fastgelu", "1.702"),
    "relu6": ("forward", None, "as with ReLU"),
    "silu": ("forward", None, "as with Hardswish"),
    "leaky 0.2": ("forward", "leaky-slope", "negative_slope=0.2"),
    "leaky 0.123": ("forward", None, "negative_slope=0.123"),
    "elu": ("forward", None, "alpha=1.0"),
    "softmax": ("forward", "softmax-implicit-dim", "dim=-1"),
    "linear transposed": ("forward", "dense-transposed", "transposed"),
    "linear without bias": ("forward", None, "no bias"),
    "embedding": ("gradients", "embedding-padding-idx-grad", "padding_idx=None"),
    "lstm gates": ("forward", "lstm-gate-order", "input, cell, forget, output"),
    "attention packed": ("forward", "mha-packed-order", "head by head"),
    "attention unscaled": ("forward", None, "sqrt(d)"),
    "attention axis": ("forward", None, "a softmax over the queries"),
    "attention heads": ("forward", None, "heads cut by a reshape alone"),
    "attention count": ("forward", None, "num_heads=2; torch has num_heads=4"),
    "attention causal": ("forward", None, "as with a causal mask"),
    "attention next": ("forward", None, "diagonal=2 in triu"),
    "upsample": ("forward", "resize-align-corners", "align_corners=True"),
    "shuffle": ("forward", "depth-to-space", "DepthToSpace"),
    "flatten": ("forward", None, "NHWC"),
    "lrn": ("forward", "lrn-alpha", "not divided by size"),
    "mish": ("forward", "mish-overflow", "not finite above an input of some"),
    "logsigmoid": ("forward", "logsigmoid-underflow", "not finite below an input of some"),
    "relu6 at 6": ("gradients", "relu6-grad-at-6", "1 exactly at 6"),
}
CONTAINERS = {
    "block: children exchanged": ("forward", None, "bn1 and relu exchanged"),
    "block: bn missing": ("forward", None, "BatchNorm2d bn1 left out"),
    "block: residual missing": ("forward", None, "the first operand of add in `out = out + identity` alone"),
    "block: no last activation": ("forward", None, "ReLU relu, time 2 left out"),
    "block: activation before addition": ("forward", None, "the activation before the addition"),
    "block: wrong residual": ("forward", None, "the result of Conv2d conv1 for operand 2"),
    "coded: residual of the input": ("forward", None, "the input of Linear code for operand 1 of add in `return x"),
    "attention: key and query": ("forward", None, "rotated by 2"),
    "attention: packed": ("forward", "mha-packed-order", "in the other order"),
    "attention: unscaled": ("forward", None, "mul in `scores"),
    "attention: softmax": ("forward", None, "in softmax in `out"),
    "attention: not transposed": ("forward", "transpose-permute", "transpose in"),
    "apart: reshaped": ("forward", None, "dimensions 1 and 2 in the other order, and the same in 2 more like it"),
    "apart: inner": ("forward", None, "dimensions 2 and 3 in the other order, and the same in 2 more like it"),
    "attention: heads": ("forward", None, "as with heads=3"),
    "attention: heads and what follows": ("forward", None, "as with heads=3"),
    "reader: states, True": ("forward", None, "the two states of LSTM rnn exchanged at each step"),
    "reader: states, False": ("forward", None, "the two states of LSTM rnn exchanged at each step"),
    "leaf: gelu": ("forward", "gelu-approximate", "for gelu in `y"),
    "leaf: std": ("forward", "std-var-ddof", "std in"),
    "head: mean": ("forward", None, "a mean for getitem"),
    "head: last step": ("forward", None, "the last along dimension 1 for mean"),
    "head: mean of steps": ("forward", None, "a mean for select"),
    "head: first layer's state": ("forward", None, "element 0 for getitem"),
    "gradient not stopped": ("gradients", "detach", "a gradient that passes"),
    "gradient stopped": ("gradients", "detach", "a stop_gradient before Linear b"),
    "flatten": ("forward", None, "with the channels last"),
    "residual missing, alone": ("forward", None, "the first operand of add"),
    "sequential exchanged": ("forward", None, "1 and 2 exchanged"),
    "layers: post-norm": (
        "forward",
        None,
        "each of LayerNorm a and LayerNorm b after the addition that follows it (post-norm)",
    ),
    "layers: post-norm, exchanged": (
        "forward",
        None,
        "each of LayerNorm b and LayerNorm a after the addition that follows it (post-norm)",
    ),
    "layers: pre-norm": ("forward", None, "before the branch that it follows (pre-norm)"),
    "text: directions": ("forward", None, "the two directions of LSTM rnn in the other order"),
    "text: mask": ("forward", None, "the mask of masked_fill in `"),
    "pools: zeros": ("forward", "maxpool-zero-pad", "zeros for padding, by a Pad before max_pool2d"),
    "pools: maximum": ("forward", None, "adaptive_max_pool2d for adaptive_avg_pool2d"),
    "inlined: gelu": ("forward", "gelu-approximate", "approximate='tanh') in GELU mlp.1"),
    "inlined: axis": ("forward", "softmax-implicit-dim", "dim=0 in softmax in `return x * torch.softmax"),
    "inlined: crop": ("forward", None, "the two sides of pad in `x = F.pad"),
    "inlined: number": ("forward", None, "0.55 for 0.4 in mul in `"),
    "masked: next": ("forward", None, "off by one (each row is that of the next) for and"),
    "masked: strict": ("forward", None, "off by one (each row is that of the one before) for and"),
    "masked: no causal": ("forward", None, "the second mask alone for and in `"),
    "masked: before": ("forward", None, "the element before of dimension 1 for getitem"),
    "masked: of all": ("forward", "lstm-seq-length", "the last element of dimension 1 for getitem"),
    "pools: parts": ("forward", None, "parts 1 and 2 of cat"),
}
UNKNOWN = {
    "bn unknown": "1.02",
    "unknown function": "cosine",
    "one channel": "only channel 3 of 8",
    "lrn, held out": "differ",
    "shuffle, held out": "the same values in another order",
}


def run(script: str) -> Causes:
    done = subprocess.run(
        [sys.executable, str(HERE / script)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    found: Causes = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def modules() -> Causes:
    return run("torch_module_cases.py")


@pytest.fixture(scope="module")
def containers() -> Causes:
    return run("torch_container_cases.py")


def check(causes: list[dict[str, Any]], stage: str, fault: str | None, words: str) -> None:
    assert len(causes) == 1, causes
    (cause,) = causes
    assert (cause["stage"], cause["fault"]) == (stage, fault), cause
    assert words in cause["text"] and cause["fix"] and cause["evidence"], cause
    assert cause["ratio"] is not None and cause["ratio"] <= RATIO
    assert cause["before"] is None or cause["before"] > RATIO


@pytest.mark.parametrize("case", KNOWN)
def test_a_layer_is_explained(case: str, modules: Causes) -> None:
    check(modules[case], *KNOWN[case])
    assert modules[case][0]["place"] == "layer1.0.module"


@pytest.mark.parametrize("case", CONTAINERS)
def test_a_forward_of_its_own_is_explained(case: str, containers: Causes) -> None:
    check(containers[case], *CONTAINERS[case])


def test_a_difference_at_the_edge_of_noise_is_explained(modules: Causes) -> None:
    (cause,) = modules["ln eps at the edge"]
    assert cause["fault"] == "ln-eps" and cause["ratio"] < cause["before"] / 2 < RATIO / 2


def test_a_shorter_format_is_told_by_the_size_of_its_rounding(modules: Causes) -> None:
    (cause,) = modules["conv half"]
    assert (cause["fault"], cause["ratio"]) == ("ascend-fp16-ops", None)
    assert "its products in float16" in cause["text"] and "to a factor of" in cause["evidence"]


def test_a_bias_alone_says_nothing_of_a_format(modules: Causes) -> None:
    (cause,) = modules["conv bias slope"]
    assert cause["fault"] is None and "bias.grad" in cause["text"]
    (cause,) = modules["conv scaled"]  # as far off as bfloat16's rounding, and no rounding
    assert cause["fault"] is None


def test_a_wrong_mode_is_named_by_what_the_other_modules_do(modules: Causes) -> None:
    assert modules["modes"] == {
        "one": ["new-child-not-training"],
        "all": ["bn-set-train-missing"] * 2,
        "trains": ["bn-frozen-flipped-back", "ln-eps"],
    }


def test_what_agrees_has_no_cause(modules: Causes, containers: Causes) -> None:
    assert modules["clean"] == [] and containers["block: clean"] == []


def test_two_faults_in_one_module_are_both_named(modules: Causes) -> None:
    causes = modules["bn eps and momentum"]
    assert [(c["stage"], c["fault"]) for c in causes] == [("forward", None), ("update", "bn-momentum-complement")]
    assert "eps=0.001" in causes[0]["text"] and causes[0]["fix"].endswith("eps=1e-05)  # now eps=0.001")


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_nothing_explains_is_placed_and_described(case: str, modules: Causes) -> None:
    (cause,) = modules[case]
    assert (cause["fault"], cause["ratio"], cause["place"]) == (None, None, "layer1.0.module")
    assert cause["text"].startswith("nothing known reproduces it") and UNKNOWN[case] in cause["text"], cause
    assert cause["before"] > RATIO


def test_gradients_alone_explain_no_forward_that_is_wrong(containers: Causes) -> None:
    """A gradient of zeros fits a detach too, and the output has another shape all the same."""
    (cause,) = containers["another shape"]
    assert (cause["fault"], cause["change"]) == (None, None)
    assert cause["text"].startswith("nothing known reproduces it") and "shape [8, 8, 8]" in cause["text"]


@pytest.mark.parametrize("case", ["gelu tanh", "embedding"])
def test_what_its_row_does_not_know_may_be_a_plausible_mistake(case: str, modules: Causes) -> None:
    stage, _, words = KNOWN[case]
    check(modules[f"{case}, held out"], stage, None, words)


def test_a_container_that_nothing_explains_is_placed(containers: Causes) -> None:
    (cause,) = containers["unknown"]
    assert cause["fault"] is None and cause["ratio"] is None and "relu#1 input" in cause["text"]


def test_a_fix_is_mindspore_code(modules: Causes) -> None:
    fixes = {case: modules[case][0]["fix"] for case in ("bn momentum 0.9", "conv same", "ln eps", "relu6")}
    assert fixes == {
        "bn momentum 0.9": "net.layer1[0].module: nn.BatchNorm2d(…, momentum=0.9)  # now momentum=0.1",
        "conv same": "net.layer1[0].module: nn.Conv2d(…, stride=(2, 2), pad_mode='pad', padding=(1, 1, 1, 1))",
        "ln eps": "net.layer1[0].module: nn.LayerNorm(…, epsilon=1e-05)  # now epsilon=1e-07",
        "relu6": "net.layer1[0].module: nn.ReLU6()",
    }


def test_a_fix_shows_the_users_own_line(modules: Causes) -> None:
    fix = modules["conv dilated"][0]["fix"]
    arguments = "8, 8, 3, padding=(2, 2, 2, 2), pad_mode='pad', dilation=(2, 2)"
    assert fix.splitlines()[1] == f"net.py, line 4: self.c = nn.Conv2d({arguments})"


def test_what_a_cell_was_made_with_explains_only_what_it_reproduces(modules: Causes) -> None:
    """A Cell whose arguments were set otherwise after it was made: they are a hypothesis like any other."""
    assert modules["clean"] == [] and "eps=0.001" in modules["bn eps 1e-3"][0]["text"]


def test_every_hypothesis_has_its_verb(modules: Causes) -> None:
    from_elsewhere = {"update"}  # the optimizer's: their own test knows them
    assert set(modules["unknown verbs"]) <= from_elsewhere


@pytest.mark.parametrize("case", ["strided later"])
def test_a_stride_that_the_net_makes_up_for_later_is_taken_out_there(case: str, said: Callable[[str], Any]) -> None:
    where = "between net.block.e2[1] and net.block.conv3: net.block.e2[2] (MaxPool2d)"
    text = f"stride 1; MindSpore's net makes up for it {where}"
    assert said(case) == [["block.conv2", text, f"stride=2, and take out what resizes {where}"]]


@pytest.mark.parametrize("case", ["strided, averaged later"])
def test_nothing_is_taken_out_where_torch_s_own_net_resizes(case: str, said: Callable[[str], Any]) -> None:
    assert said(case) == [["block", "nothing known reproduces it", "compare"], ["block.conv2", "stride 1", "stride=2"]]


CHANGES: dict[str, tuple[str, dict[str, str], bool]] = {
    "bn eps 1e-3": ("mindspore.nn.BatchNorm2d", {"eps": "1e-05"}, False),
    "conv stride": ("mindspore.nn.Conv2d", {"stride": "(1, 1)"}, False),
    "gelu tanh": ("mindspore.nn.GELU", {"approximate": "False"}, True),
    "relu6": ("mindspore.nn.ReLU6", {}, True),
    "lrn": ("msmigrate.nn.LocalResponseNorm", {"size": "3", "alpha": "0.01"}, False),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_fix_that_is_arguments_is_there_for_programs_too(case: str, modules: Causes) -> None:
    target, arguments, whole = CHANGES[case]
    (cause,) = modules[case]
    assert cause["change"]["target"] == target and cause["change"]["whole"] is whole
    assert cause["change"]["arguments"].keys() == arguments.keys()
    assert all(f"{name}={value}" in cause["fix"] for name, value in cause["change"]["arguments"].items())


@pytest.mark.parametrize("case", ["relu6 at 6", "mish", "linear transposed", "bn unknown"])
def test_a_fix_that_is_none_has_nothing_for_programs(case: str, modules: Causes) -> None:
    (cause,) = modules[case]
    assert cause["change"] is None and cause["fix"]
    assert not cause["fix"].endswith("()"), "the layer as it is called already is no fix"
