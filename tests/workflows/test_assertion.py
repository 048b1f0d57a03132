"""assert_parity in somebody's test suite: silent where the pair agrees, the report's first screen where it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msmigrate
import numpy as np
import pytest
from msmigrate import assert_parity
from msmigrate.errors import BadDestination, BadInput
from msmigrate.parity.job import ParityJob
from msmigrate.parity.result import Report
from msmigrate.workflows import parity_step

PAIRS = Path(__file__).parent.parent / "parity" / "align"
TORCH, MINDSPORE = PAIRS / "pair_nets_torch.py", PAIRS / "pair_nets_mindspore.py"
QUICK = {"recipe": PAIRS / "pair.yaml", "steps": 1, "no_replay": True, "no_diagnosis": True, "init_seeds": 1}


def test_importing_msmigrate_brings_nothing_along() -> None:
    code = "import sys, msmigrate; print(*(m for m in sys.modules if m.startswith('msmigrate.') or m == 'numpy'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
    assert msmigrate.assert_parity is assert_parity
    with pytest.raises(AttributeError, match="no attribute 'assert_everything'"):
        msmigrate.assert_everything  # noqa: B018


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(BadInput, match="assert_parity has no option 'step'; it has steps, "):
        assert_parity("a.py:f", "b.py:f", step=1)
    with pytest.raises(BadInput, match="does not name a model"):
        assert_parity("a.py", "b.py:f", **QUICK)


def test_every_option_of_parity_step_is_honoured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[ParityJob] = []

    def pretended(path: Path, job: ParityJob) -> Report:
        jobs.append(job)
        return Report("r", "d", {}, [])

    monkeypatch.setattr(parity_step, "compare_steps", pretended)
    pair = f"{TORCH}:Small", f"{MINDSPORE}:Small"
    given = {**QUICK, "precision": "hf32", "timeout": 9.0, "thorough": True, "stages": ["forward"], "batch": 4}
    files = {"json_file": tmp_path / "a.json", "junit": str(tmp_path / "b.xml")}
    with pytest.raises(AssertionError, match="no parity of "):  # nothing was judged
        assert_parity(*pair, **given, **files, keep=tmp_path / "kept")
    (job,) = jobs
    assert (job.steps, job.precision, job.timeout, job.sample, job.seeds) == (1, "hf32", 9.0, None, 1)
    assert job.no_replay and job.no_diagnosis and job.narrowing.stages == ("forward",) and job.batch == 4
    assert job.folder == tmp_path / "kept"
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "b.xml"}
    with pytest.raises(BadInput, match="--continue-from continues with the recipe's own models"):
        assert_parity(*pair, **QUICK, continue_from="last.pth")
    with pytest.raises(BadDestination):
        assert_parity(*pair, **QUICK, html=tmp_path / "none" / "page.html")
    assert len(jobs) == 1


@pytest.mark.full
def test_twins_pass_and_a_difference_is_the_report(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    batch = tmp_path / "batch.npz"
    np.savez(batch, images=draw.normal(size=(4, 3, 16, 16)).astype(np.float32), labels=draw.integers(0, 5, 4))
    assert_parity(f"{TORCH}:Small", f"{MINDSPORE}:Small", batch_file=batch, **QUICK)
    with pytest.raises(AssertionError) as failed:
        assert_parity(f"{TORCH}:Small", f"{MINDSPORE}:loose", batch_file=batch, **QUICK)
    message = str(failed.value)
    assert message.startswith("no parity of ") and "First divergence: forward (eval) norm" in message
    assert "forward     fail" in message and max(map(len, message.splitlines()[1:])) <= 110


@pytest.mark.full
def test_what_fails_in_the_users_code_says_where() -> None:
    with pytest.raises(BadInput, match=r"--torch .*: there is no file nowhere\.py"):
        assert_parity("nowhere.py:f", f"{MINDSPORE}:Small", **QUICK)
    with pytest.raises(BadInput, match=r"pair_nets_torch\.py:\d+: Small has no argument depth"):
        assert_parity(f"{TORCH}:Small(depth=3)", f"{MINDSPORE}:Small", **QUICK)
    with pytest.raises(BadInput, match=r"the two models have nothing in common that could be compared: .*--map"):
        assert_parity(f"{TORCH}:Small", f"{MINDSPORE}:Residual", **QUICK)
