"""A target that computes in a shorter format is held to that format's noise, and its faults are still found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msmigrate.parity.result import Report
from msmigrate.parity.tensor_verdict import Verdict

full = pytest.mark.full


@pytest.fixture(scope="module")
def measured() -> dict[str, dict[str, list[float]]]:
    """What precision_torch_worker.py measured of each format."""
    script = Path(__file__).parent / "precision_torch_worker.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, list[float]]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("name", "bits"), [("hf32", 11), ("tf32", 10), ("fp16", 10), ("bf16", 7)])
def test_a_format_rounds_to_its_mantissa(measured: dict[str, dict[str, list[float]]], name: str, bits: int) -> None:
    largest, repeated = measured[name]["rounding"]
    assert 0.9 * 2 ** -(bits + 1) < largest <= 2 ** -(bits + 1)  # half a unit, over many values
    assert repeated == 0.0  # what is rounded already stays


@pytest.mark.parametrize("name", ["tf32", "hf32"])
def test_ties_go_to_even_and_what_is_not_finite_stays(measured: dict[str, dict[str, list[float]]], name: str) -> None:
    assert measured[name]["ties"] == [1.0, 1.0] and measured[name]["special"] == [1.0] * 4


@pytest.mark.parametrize("what", ["convolution", "transposed", "linear", "attention", "einsum", "norm alone"])
def test_products_are_computed_in_the_format_forward_and_backward(
    measured: dict[str, dict[str, list[float]]], what: str
) -> None:
    for name, unit in (("hf32", 2**-12), ("bf16", 2**-8)):
        for error in measured[name][what]:
            if what == "norm alone":
                assert error < 1e-6
            else:
                assert 0.1 * unit < error < 30 * unit, (name, what, error)
    assert max(measured["fp32"][what]) < 1e-5


def test_what_lies_outside_the_block_is_not_rounded(measured: dict[str, dict[str, list[float]]]) -> None:
    assert measured["hf32"]["after"] == [0.0] and measured["hf32"]["float64"] == [0.0]


@pytest.mark.parametrize("where", ["", " in place"])
@pytest.mark.parametrize(("name", "forward", "backward"), [("sigmoid", 2.9e-7, 2.6e-7), ("silu", 2.1e-7, 2.1e-7)])
def test_kernels_that_mindspore_rounds_more_are_as_far_off_as_its_own(
    measured: dict[str, dict[str, list[float]]], name: str, forward: float, backward: float, where: str
) -> None:
    plain, plain_back, rounded, rounded_back, in_float64, after = measured["kernels"][f"{name}{where}"]
    assert max(plain, plain_back, after) < 1e-7
    assert 0.7 * forward < rounded < 1.6 * forward
    assert 0.7 * backward < rounded_back < 2.0 * backward
    assert in_float64 == 0.0


def test_the_reference_stays_float64_where_the_model_takes_values_down(
    measured: dict[str, dict[str, list[float]]],
) -> None:
    *as_reference, out, gradient = measured["exact"][""]
    assert max(as_reference) < 1e-14 and min(out, gradient) > 1e-9, (as_reference, out, gradient)


def test_other_kernels_stay_as_they_are(measured: dict[str, dict[str, list[float]]]) -> None:
    assert measured["kernels"]["relu"] == measured["kernels"]["relu in place"] == [0.0] * 6


@pytest.mark.parametrize(
    "case",
    [
        "none in hf32 as hf32",
        *(pytest.param(f"none in {n} as {n}", marks=full) for n in ("tf32", "fp16", "bf16")),
    ],
)
def test_a_target_with_shorter_products_is_at_parity(modes: Callable[[str], Report], case: str) -> None:
    report = modes(case)
    assert report.parity, report.first_divergence
    ratios = [f.ratio for f in report.findings if f.stage in ("forward", "gradients") and f.ratio is not None]
    assert 0.5 < max(ratios) < 2.0  # the noise is the format's own, and no more
    assert not [f for f in report.findings if f.stage == "forward" and f.verdict is Verdict.NONE]


def test_the_same_target_judged_by_float32_fails(modes: Callable[[str], Report]) -> None:
    first = modes("none in hf32 as fp32").first_divergence
    assert first is not None and first.place == "forward (eval) conv1" and first.ratio is not None and first.ratio > 50


@pytest.mark.parametrize(
    ("case", "place"),
    [
        ("eps in hf32 as hf32", "forward (eval) bn1"),
        pytest.param("pad in hf32 as hf32", "forward (eval) conv2", marks=full),
        pytest.param("pad in bf16 as bf16", "forward (eval) conv2", marks=full),
    ],
)
def test_a_fault_is_found_in_a_shorter_format_too(modes: Callable[[str], Report], case: str, place: str) -> None:
    first = modes(case).first_divergence
    assert first is not None and first.place == place and first.ratio is not None and first.ratio > 50


@pytest.mark.parametrize("rows", ["1000 x 64", "20000 x 64"])
def test_a_biass_gradient_is_added_one_row_after_the_other(
    measured: dict[str, dict[str, list[float]]], rows: str
) -> None:
    plain, rounded, unlike = measured["sums"][rows]
    assert unlike == 0.0 and plain < rounded / 2
    plain, alike, unlike = measured["sums"][f"{rows} alike"]  # they round the same way in every addition
    assert unlike == 0.0 and plain < alike / 10 and alike > 3 * rounded


def test_so_is_that_of_a_single_number(measured: dict[str, dict[str, list[float]]]) -> None:
    assert measured["sums"]["500 x 1"][-1] == measured["sums"]["500 x 1 alike"][-1] == 0.0


def test_the_gradients_of_biases_of_images_are_added_one_image_after_the_other(
    measured: dict[str, dict[str, list[float]]],
) -> None:
    assert len(measured["images"]) == 8
    for what, (plain, rounded, unlike) in measured["images"].items():
        assert unlike == 0.0 and rounded > 5e-7, (what, plain, rounded)


def test_biases_have_gradients_in_a_step_of_shorter_numbers_too(measured: dict[str, dict[str, list[float]]]) -> None:
    assert max(measured["shorter"][""]) < 0.02, measured["shorter"]


def test_a_strided_filter_of_one_pixel_leaves_the_memory_alone(measured: dict[str, dict[str, list[float]]]) -> None:
    """torch 2.14.1's own kernel ends the process in one of these passes: `free(): invalid next size`."""
    assert max(measured["strided"][""]) < 1e-6


def test_other_sums_stay_as_they_are(measured: dict[str, dict[str, list[float]]]) -> None:
    assert measured["sums"]["others"] == [0.0] * 5


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_norms_gradients_are_as_far_off_as_sums_of_that_length(
    measured: dict[str, dict[str, list[float]]], mode: str
) -> None:
    weight, weight_rounded, bias, bias_rounded, of_input, float64 = measured["norm"][mode]
    assert 1.3 * weight < weight_rounded < 2e-6
    assert 1.3 * bias < bias_rounded < 2e-6
    assert float64 == 0.0
    # in training the mean that it is taken with is the forward pass's, which float32 added
    assert of_input == 0.0 if mode == "eval" else of_input < 1e-6
