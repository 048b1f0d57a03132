"""Models that draw inside are proven like any other; what is wrong with what they draw, or make of it, fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msmigrate.parity.result import Outcome, Report
from msmigrate.parity.tensor_verdict import Unjudged, Verdict
from pair_cases import DRAWING, SLOW_DRAWING

CLEAN = [name for name in SLOW_DRAWING if DRAWING[name] == name and name != "Unfixed"]
SAID = {  # what is drawn otherwise
    "vae_no_noise": "torch draws normal [4, 6] in (model)",
    "vae_one_each": "MindSpore normal [4, 1]",
    "diffusion_loss_uniform": "torch draws normal [36, 5] outside of the model",
    "generator_one_noise": "MindSpore normal [1, 12]",
}
WRONG = [name for name in SLOW_DRAWING if DRAWING[name] != name]


def test_a_variational_autoencoder_is_proven_without_a_tensor_that_has_no_verdict(
    drawing: Callable[[str], Report],
) -> None:
    report = drawing("vae")
    assert report.parity, report.first_divergence
    assert {f.verdict for f in report.findings} == {Verdict.PASS} and len(report.findings) > 100
    assert any("took the same random numbers" in note for note in report.notes)
    assert {"eval", "train", "alone", "wiring"} <= {f.part for f in report.findings if f.stage == "forward"}


def test_noise_of_another_distribution_is_named_where_it_is_drawn(drawing: Callable[[str], Report]) -> None:
    report = drawing("vae_uniform")
    first = report.first_divergence
    assert report.outcome is Outcome.MISMATCH and first is not None
    assert first.place == "forward (eval) (model) draws"
    assert first.why.startswith("torch draws normal [4, 6] in (model) (drawing_torch.py, line ")
    assert "MindSpore uniform [4, 6] (drawing_mindspore.py, line " in first.why


@pytest.mark.full
@pytest.mark.parametrize("name", CLEAN)
def test_what_draws_by_other_formulas_is_proven_compiled_too(name: str, slow_drawing: Callable[[str], Report]) -> None:
    report = slow_drawing(name)
    assert report.parity, report.first_divergence
    assert {f.verdict for f in report.findings} == {Verdict.PASS}
    assert sum(f.part.startswith("graph ") for f in report.findings) > 20


@pytest.mark.full
@pytest.mark.parametrize("name", WRONG)
def test_a_fault_beside_the_draws_fails(name: str, slow_drawing: Callable[[str], Report]) -> None:
    report = slow_drawing(name)
    assert report.outcome is Outcome.MISMATCH
    said = [f.why for f in report.findings if f.name.endswith(" draws")]
    assert bool(said) == (name in SAID) and (not said or any(SAID[name] in why for why in said))


@pytest.mark.full
def test_what_cannot_be_fixed_is_unproven_and_says_what_to_do(slow_drawing: Callable[[str], Report]) -> None:
    report = slow_drawing("Unfixed")
    assert report.outcome is Outcome.UNPROVEN
    said = [f.why for f in report.findings if f.name == "(model) draws"]
    assert any("torch.distributions.Gamma" in why and "drawing_torch.py, line " in why for why in said)
    assert any("mindspore.ops.RandomGamma" in why and "--batch-file" in why for why in said)
    assert all(f.unjudged is Unjudged.DRAWS for f in report.unproven)
