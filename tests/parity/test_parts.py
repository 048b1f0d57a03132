"""Accumulation, clipping and the loss scale are compared on given values, each on its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msmigrate.parity.record.recorder import NORMS, OVERFLOWS
from msmigrate.parity.result import Report
from msmigrate.parity.tensor_verdict import Verdict


def failed(report: Report) -> set[str]:
    return {f.part for f in report.findings if f.verdict is Verdict.FAIL and f.part.startswith("given")}


@pytest.mark.parametrize("case", ["none-clipped", pytest.param("none-half", marks=pytest.mark.full)])
def test_each_part_is_compared_where_the_recipe_has_it(verdict: Callable[[str], Report], case: str) -> None:
    found = [f for f in verdict(case).findings if f.part.startswith("given")]
    names = {f.part: {g.name for g in found if g.part == f.part} for f in found}
    assert len(names["given micro-batches"]) == len(names["given overflows"]) == 10  # LeNet's parameters
    assert {f"gradients' norms at {norm:g}" for norm in NORMS} < names["given norms"]
    assert len(names["given norms"]) == 10 + len(NORMS) and min(NORMS) < 1 < max(NORMS)
    assert len(names["given overflows scale"]) == 2 * len(OVERFLOWS) >= 10
    assert not failed(verdict(case))


def test_what_a_recipe_lacks_is_not_recorded(verdict: Callable[[str], Report]) -> None:
    parts = {f.part for f in verdict("none-42").findings if f.part.startswith("given")}
    assert parts == {"given logits", "given gradients", "given gradients momentum_buffer"}


@pytest.mark.parametrize(
    ("case", "parts"),
    [
        ("gradient_clipped_by_tensor", {"given norms"}),
        pytest.param("clipping_off@1.001", {"given norms"}, marks=pytest.mark.full),
        pytest.param("sums_not_cleared", {"given micro-batches"}, marks=pytest.mark.full),
        pytest.param("scale_grows_late", {"given overflows scale"}, marks=pytest.mark.full),
    ],
)
def test_a_fault_shows_in_its_own_part(verdict: Callable[[str], Report], case: str, parts: set[str]) -> None:
    assert parts <= failed(verdict(case)), failed(verdict(case))
    assert failed(verdict(case)) <= parts | {"given gradients", "given gradients momentum_buffer", "given overflows"}
