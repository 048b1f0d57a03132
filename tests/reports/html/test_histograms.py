"""Histograms of error and noise: right counts, right elements, and none where the traces do not fit the findings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msmigrate.parity.graph_mode import GRAPH, MARK
from msmigrate.parity.run_folder import MINDSPORE, MINDSPORE_REPLAY, TORCH32, TORCH64, matched, replayed
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import Trace, sample_positions
from msmigrate.reports.html.parity_page import LOWEST, MOST_FAILED, PER_DECADE, WORST_OF_STAGE, Histograms
from traced import judged, record

ALONE = (TORCH64, TORCH32, MINDSPORE)
OUTPUT = ("forward", "train", "conv")
GRADIENT = ("gradients", "parameters", "conv.weight")


def test_error_and_noise_are_counted_by_their_powers_of_ten(tmp_path: Path) -> None:
    record(tmp_path, ALONE, {OUTPUT: 1.0, GRADIENT: 1e4}, sample=10_000)
    findings = [judged(tmp_path, ALONE, place) for place in (OUTPUT, GRADIENT)]
    assert [f.verdict for f in findings] == [Verdict.PASS, Verdict.FAIL]
    found = Histograms(tmp_path).of(findings)
    assert set(found) == {0, 1}
    for histogram in found.values():
        assert histogram["elements"] == histogram["of"] == 320
        for kind in ("error", "noise"):
            assert sum(histogram[kind]["counts"]) + histogram[kind]["zeros"] == 320
    # the bin with the most elements: around 1e-7 of the root mean square, and 1e-3 where it fails
    assert [_peak(found[i]["error"]) for i in (0, 1)] == pytest.approx([-7.0, -3.0], abs=0.5)
    assert [_peak(found[i]["noise"]) for i in (0, 1)] == pytest.approx([-7.0, -7.0], abs=0.5)


def _peak(bins: dict[str, list[int]]) -> float:
    return LOWEST + (bins["first"] + int(np.argmax(bins["counts"]))) / PER_DECADE


@pytest.mark.parametrize("sample", [10_000, 50])
def test_the_farthest_elements_are_named_by_their_index_in_the_whole_tensor(tmp_path: Path, sample: int) -> None:
    record(tmp_path, ALONE, {OUTPUT: 1e5}, sample)
    histogram = Histograms(tmp_path).of([judged(tmp_path, ALONE, OUTPUT)])[0]
    exact, subject = (Trace(tmp_path / name).array((*OUTPUT, 0)) for name in (TORCH64, MINDSPORE))
    at = int(np.argmax(np.abs(subject - exact)))
    flat = int(sample_positions(320, sample)[at]) if sample < 320 else at
    index, expected, got = histogram["worst"][0]
    assert index == [flat // 40, flat % 40]
    assert (expected, got) == (pytest.approx(exact[at], rel=1e-3), pytest.approx(subject[at], rel=1e-3))
    assert histogram["elements"] == min(sample, 320) and histogram["of"] == 320


def test_one_constant_factor_is_told(tmp_path: Path) -> None:
    record(tmp_path, ALONE, {OUTPUT: 1.0}, 1000)
    about = Trace(tmp_path / MINDSPORE)
    array = about.array((*OUTPUT, 0))
    from msmigrate.parity.trace import TraceWriter

    writer = TraceWriter(tmp_path / MINDSPORE, dict(about.about))
    writer.add(*OUTPUT, (np.float32(0.5) * array).reshape(8, 40))
    writer.close()
    histogram = Histograms(tmp_path).of([judged(tmp_path, ALONE, OUTPUT)])[0]
    assert histogram["factor"] == pytest.approx(0.5, rel=1e-5) and histogram["cosine"] == pytest.approx(1.0, rel=1e-6)


def test_each_family_of_traces_is_found(tmp_path: Path) -> None:
    step = (matched(TORCH64), matched(TORCH32), MINDSPORE)
    alone = (replayed(TORCH64), replayed(TORCH32), MINDSPORE_REPLAY)
    graph = (matched(TORCH64), matched(TORCH32), GRAPH)
    inside = ("forward", "alone", "conv output")
    record(tmp_path, step, {GRADIENT: 1e3}, 1000)
    record(tmp_path, alone, {inside: 1e4}, 1000)
    record(tmp_path, graph, {GRADIENT: 1e5}, 1000)
    findings = [
        judged(tmp_path, step, GRADIENT),
        judged(tmp_path, alone, inside),
        judged(tmp_path, graph, GRADIENT, MARK),
    ]
    found = Histograms(tmp_path).of(findings)
    assert [round(_peak(found[i]["error"])) for i in range(3)] == [-4, -3, -2]


def test_what_is_not_the_judged_tensor_gives_none(tmp_path: Path) -> None:
    record(tmp_path, ALONE, {OUTPUT: 1e3}, 1000)
    finding = judged(tmp_path, ALONE, OUTPUT)
    assert finding.error is not None
    others = [
        replace(finding, error=finding.error * 1.1),
        replace(finding, error=None),
        replace(finding, name="elsewhere"),
        finding,
    ]
    assert set(Histograms(tmp_path).of(others)) == {3}


def test_missing_and_damaged_traces_give_none(tmp_path: Path) -> None:
    record(tmp_path, ALONE, {OUTPUT: 1e3}, 1000)
    finding = judged(tmp_path, ALONE, OUTPUT)
    assert Histograms(tmp_path / "nowhere").of([finding]) == {}
    file = next((tmp_path / MINDSPORE).glob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:-9])
    assert Histograms(tmp_path).of([finding]) == {}
    (tmp_path / MINDSPORE / "trace.json").write_text("[]")
    assert Histograms(tmp_path).of([finding]) == {}


def test_failed_tensors_come_first_and_the_worst_of_each_stage(tmp_path: Path) -> None:
    tensors = {("forward", "train", f"conv{i}"): 1.0 + i / 100 for i in range(WORST_OF_STAGE + 20)}
    record(tmp_path, ALONE, tensors, 1000)
    findings = [judged(tmp_path, ALONE, place) for place in tensors]
    assert not [f for f in findings if f.verdict is Verdict.FAIL]
    worst = sorted(range(len(findings)), key=lambda i: findings[i].ratio or 0.0)[-WORST_OF_STAGE:]
    assert set(Histograms(tmp_path).of(findings)) == set(worst)
    failed = [replace(f, verdict=Verdict.FAIL) for f in findings]
    assert set(Histograms(tmp_path).of(failed)) == set(range(len(failed)))
    assert len(Histograms(tmp_path).of([failed[0]] * (MOST_FAILED + 99))) <= MOST_FAILED + WORST_OF_STAGE
