"""What is the same but for rounding passes, what is not fails, and a missing output or one of another shape fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from msmigrate.deploy.export import FILE, NET, compare
from msmigrate.deploy.job import EXPORTED, INPUTS, TORCH32, TORCH32_OTHER, TORCH64, in_batches, load, save
from msmigrate.parity.tensor_verdict import Verdict

EPS = 1e-6  # how far a float32 run is made to be off


def leave(folder: Path, file: list[np.ndarray] | None = None, off: float = 0.0) -> np.ndarray:
    """What the workers leave, the net's and torch's outputs off by rounding, the file's `off` more than the net's."""
    random = np.random.default_rng(0)
    exact = random.standard_normal((4, 50))

    def rounded() -> np.ndarray:
        return (exact * (1 + EPS * random.standard_normal(exact.shape))).astype(np.float32)

    net = rounded()
    save(folder / INPUTS, [exact])
    save(folder / "net.npz", [net])
    save(folder / TORCH64, [exact])
    save(folder / TORCH32, [rounded()])
    save(folder / TORCH32_OTHER, [rounded()])
    for run in range(2):
        save(folder / f"moved{run}.npz", [rounded()])
    save(folder / EXPORTED.format(2), [net * np.float32(1 + off)] if file is None else file)
    return net


@pytest.mark.parametrize("torch", [True, False])
def test_rounding_passes_and_more_fails(tmp_path: Path, torch: bool) -> None:
    leave(tmp_path)
    found = compare(tmp_path, [2], torch=torch)
    assert [(one.subject, one.batch) for one in found] == ([(NET, 0), (FILE, 2), (FILE, 2)] if torch else [(FILE, 2)])
    assert all(one.passed for one in found)
    leave(tmp_path, off=1e-4)
    failed = [one for one in compare(tmp_path, [2], torch=torch) if not one.passed]
    assert {one.subject for one in failed} == {FILE}
    assert all(one.measure.verdict is Verdict.FAIL and "rounding explains" in one.measure.why for one in failed)


@pytest.mark.parametrize("torch", [True, False])
@pytest.mark.parametrize("case", ["none", "another shape", "one too many", "not finite"])
def test_nothing_passes_by_absence(tmp_path: Path, torch: bool, case: str) -> None:
    net = leave(tmp_path)
    files = {"none": [], "another shape": [net.T], "one too many": [net, net], "not finite": [net * np.nan]}
    leave(tmp_path, files[case])
    assert not all(one.passed for one in compare(tmp_path, [2], torch=torch))


@pytest.mark.parametrize("torch", [True, False])
@pytest.mark.parametrize("alike", ["inputs differ", "one example"])
def test_what_is_the_same_for_every_example_is_no_proof(tmp_path: Path, torch: bool, alike: str) -> None:
    """A new transformer's head is all zeros, and so is what any file of it gives."""
    leave(tmp_path)
    same = np.zeros((4, 50), np.float32)
    for path in tmp_path.iterdir():
        if path.name != INPUTS:
            save(path, [same])
    if alike == "one example":
        save(tmp_path / INPUTS, [np.ones((4, 3))])
    found = compare(tmp_path, [2], torch=torch)
    assert {one.measure.verdict for one in found} == {Verdict.NONE}
    assert all("nothing to compare" in one.measure.why for one in found)
    save(tmp_path / EXPORTED.format(2), [same + 1])
    assert Verdict.FAIL in {one.measure.verdict for one in compare(tmp_path, [2], torch=torch)}


def test_batches_are_joined(tmp_path: Path) -> None:
    x = np.arange(12.0).reshape(6, 2)
    seen = []

    def run(arrays: list[np.ndarray]) -> list[np.ndarray]:
        seen.append(len(arrays[0]))
        return [arrays[0] + 1, np.asarray(3.0)]

    save(tmp_path / "out.npz", in_batches(run, [x], 4))
    first, second = load(tmp_path / "out.npz")
    assert seen == [4, 2] and second == 3.0
    np.testing.assert_array_equal(first, x + 1)


def test_torchs_reference_stays_exact_where_a_model_makes_float32(tmp_path: Path) -> None:
    """Such as the states that recurrent layers begin with: in float64 torch stopped on them, or rounded."""
    model = Path(__file__).with_name("begun_states_torch.py")
    subprocess.run([sys.executable, str(model), str(tmp_path)], check=True)
    save(tmp_path / INPUTS, [np.random.default_rng(0).standard_normal((4, 5, 3)).astype(np.float32)])
    worker = [sys.executable, "-m", "msmigrate.deploy.torch_reference_worker", str(tmp_path), f"{model}:Begun", "2"]
    done = subprocess.run(worker, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    (exact,), (rounded,) = load(tmp_path / TORCH64), load(tmp_path / TORCH32)
    assert exact.dtype == np.float64 and rounded.dtype == np.float32
    assert 0 < np.abs(exact - rounded).max() < 1e-6 and (exact != exact.astype(np.float32)).any()
