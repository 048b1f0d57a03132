"""Published code: mindcv's models against torchvision's, given to the command as a user would.

What differs in them was looked up in mindcv 0.3.0 afterwards, and stands in docs/published_models.md.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

STEP = Path(__file__).parents[3] / "benchmarks" / "zoo" / "step.yaml"

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        importlib.util.find_spec("mindcv") is None, reason="mindcv is not installed: pip install --no-deps mindcv"
    ),
]


def run(theirs: str, ours: str, folder: Path) -> tuple[int, str, dict[str, Any]]:
    """Exit code, what was printed, and the report ({} where there is none)."""
    out = folder / "report.json"
    command = [sys.executable, "-m", "msmigrate", "parity-step", str(STEP), "--steps", "2", "--json", str(out)]
    command += ["--torch", f"torchvision:{ours}", "--mindspore", f"mindcv:{theirs}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    return done.returncode, " ".join(said.split()), json.loads(out.read_text()) if out.exists() else {}


def at_fault(report: dict[str, Any]) -> dict[str, str]:
    """The modules whose own computation differs: torch's name -> MindSpore's name."""
    modules = (m for m in report["modules"] if m["verdict"] == "fail" and m["own"])
    return {m["name"]: m["mindspore"].partition(" ")[0] for m in modules}


def causes(report: dict[str, Any]) -> str:
    return "\n".join(cause["text"] for cause in report["causes"])


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("mobilenet_v2_100(num_classes=10)", "mobilenet_v2(num_classes=10)"),
        ("regnet_y_400mf(num_classes=10)", "regnet_y_400mf(num_classes=10)"),
    ],
)
def test_a_model_that_was_carried_over_rightly_passes(theirs: str, ours: str, tmp_path: Path) -> None:
    code, said, report = run(theirs, ours, tmp_path)
    assert code == 0, said[-2000:]
    assert not at_fault(report)


def test_resnet18_pads_its_pool_otherwise_and_draws_its_head_otherwise(tmp_path: Path) -> None:
    code, _, report = run("resnet18(num_classes=10)", "resnet18(num_classes=10)", tmp_path)
    assert code == 1
    assert at_fault(report) == {"maxpool": "max_pool"}
    assert "pad_mode='same'" in causes(report)
    initial = {f["name"] for f in report["findings"] if f["stage"] == "init" and f["verdict"] == "fail"}
    assert initial == {"fc.weight", "fc.bias"}


def test_squeezenet_pads_its_stem_and_drops_what_a_pool_does_not_fill(tmp_path: Path) -> None:
    code, _, report = run("squeezenet1_1(num_classes=10)", "squeezenet1_1(num_classes=10)", tmp_path)
    assert code == 1
    assert "features.0" in at_fault(report)
    assert "padding=(1, 1)" in causes(report) and "ceil_mode=False" in causes(report)


def test_mobilenet_v3_normalises_and_pads_otherwise(tmp_path: Path) -> None:
    code, _, report = run("mobilenet_v3_small_100(num_classes=10)", "mobilenet_v3_small(num_classes=10)", tmp_path)
    assert code == 1
    kinds = {m["name"]: m["kind"] for m in report["modules"]}
    faulty = at_fault(report)
    norms = {name for name, kind in kinds.items() if kind == "BatchNorm2d"}
    assert norms <= faulty.keys()
    strided = {f"features.{i}.block.{j}.0" for i, j in ((1, 0), (2, 1), (4, 1), (9, 1))}
    assert faulty.keys() - norms == strided
    for words in ("eps=1e-05", "momentum=0.1", "pad_mode='same'"):
        assert words in causes(report)


@pytest.mark.parametrize(
    ("theirs", "ours", "lacks"),
    [
        ("shufflenet_v2_x0_5(num_classes=10)", "shufflenet_v2_x0_5(num_classes=10)", "fc.bias"),
        (
            "googlenet(num_classes=10)",
            "googlenet(num_classes=10, aux_logits=False, init_weights=False)",
            "conv1.bn.weight",
        ),
    ],
)
def test_a_model_that_lacks_tensors_is_a_mismatch_by_their_names(
    theirs: str, ours: str, lacks: str, tmp_path: Path
) -> None:
    code, said, report = run(theirs, ours, tmp_path)
    assert code == 1 and "No parity" in said
    assert lacks in {f["name"] for f in report["findings"] if f["verdict"] == "fail" and f["unlike"]}
