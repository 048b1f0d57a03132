"""Weights that torch computes are folded to what it computes; what does not fit together is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from msmigrate.errors import Unsupported
from msmigrate.migrate.checkpoint import convert
from msmigrate.migrate.checkpoint.formats import ckpt
from tiny_checkpoints import floats, save

HERE = Path(__file__).parent
CASES = (
    *("weight norm", "older weight norm", "of everything", "along the second", "half"),
    *("spectral norm", "older spectral norm", "transposed", "pruned"),
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the checkpoints, with weights.npz."""
    folder = tmp_path_factory.mktemp("folded")
    done = subprocess.run(
        [sys.executable, str(HERE / "make_folded_torch.py"), str(folder)], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def tensors(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as file:
        return {
            value.tag: np.frombuffer(
                os.pread(file.fileno(), value.pieces[0][1], value.pieces[0][0]), value.tensor_type.lower()
            ).reshape(value.dims)
            for value in ckpt.entries(file.fileno(), str(path))
        }


@pytest.mark.parametrize("case", CASES)
def test_a_computed_weight_becomes_what_torch_computes(files: Path, tmp_path: Path, case: str) -> None:
    result = convert.convert(files / f"{case}.pth", tmp_path / "x.ckpt")
    found = tensors(tmp_path / "x.ckpt")
    assert set(found) == {"net.0.weight", "net.0.bias"}
    with np.load(files / "weights.npz") as weights:
        wanted = weights[case]
    half = case == "half"
    assert found["net.0.weight"].dtype == (np.float16 if half else np.float32)
    np.testing.assert_allclose(found["net.0.weight"], wanted, rtol=2e-3 if half else 2e-6, atol=1e-7)
    called = "spectral norm" if case == "transposed" else "pruning" if case == "pruned" else "norm"
    assert any("is folded into 1 weight; MindSpore has no " in note and called in note for note in result.plan.notes)
    dropped = [entry for entry in result.plan.entries if entry.action == "drop"]
    assert len(dropped) >= 2 and all("folded into net.0.weight" in (entry.why or "") for entry in dropped)


@pytest.mark.parametrize("case", ["weight norm", "older weight norm", "spectral norm"])
def test_the_parts_of_a_weight_stay_for_a_net_that_computes_it(files: Path, tmp_path: Path, case: str) -> None:
    convert.convert(files / f"{case}.pth", tmp_path / "x.ckpt", parts=True)
    ends = ("orig", "u", "v") if case == "spectral norm" else ("g", "v")
    assert set(tensors(tmp_path / "x.ckpt")) == {"net.0.bias", *(f"net.0.weight_{end}" for end in ends)}


def test_two_originals_of_somebody_s_own_are_not_folded(files: Path, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n"
        "class Own(torch.nn.Module):\n"
        "    def forward(self, a, b):\n        return a * b\n"
        "    def right_inverse(self, w):\n        return torch.ones(len(w), 1), w\n"
        "def build():\n"
        "    fc = torch.nn.Linear(3, 4)\n"
        "    torch.nn.utils.parametrize.register_parametrization(fc, 'weight', Own())\n"
        "    return fc\n"
    )
    held = {"bias": floats(4), **{f"parametrizations.weight.original{n}": floats(4, 3 if n else 1) for n in (0, 1)}}
    save(tmp_path / "own.pth", held)
    with pytest.raises(Unsupported, match="computed from several tensors"):
        convert.convert(tmp_path / "own.pth", tmp_path / "x.ckpt", model=f"{tmp_path / 'net.py'}:build")


def test_tensors_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "x.pth", {"fc.weight_g": floats(3, 1), "fc.weight_v": floats(4, 5), "fc.bias": floats(4)})
    with pytest.raises(Unsupported, match="computed from several tensors"):
        convert.convert(tmp_path / "x.pth", tmp_path / "x.ckpt")
    vectors = {
        "fc.weight_orig": floats(2, 2, start=1.0),
        "fc.weight_u": floats(2, start=-1.0),
        "fc.weight_v": floats(2, start=-9.0),
    }
    save(tmp_path / "y.pth", vectors)
    with pytest.raises(Unsupported, match=r"y\.pth: fc\.weight: its spectral norm's vectors are not those"):
        convert.convert(tmp_path / "y.pth", tmp_path / "x.ckpt")
    assert not (tmp_path / "x.ckpt").exists()
