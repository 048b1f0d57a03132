"""record and compare, with both frameworks: the halves agree, and the second round is as sharp as one machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmigrate.parity.options import ParityOptions
from msmigrate.workflows.compare import run_compare
from msmigrate.workflows.record import run_record

PAIRS = Path(__file__).parent.parent / "parity" / "align"
RECIPE = PAIRS / "pair.yaml"


@pytest.mark.full
@pytest.mark.parametrize("own", [False, True], ids=["recipe", "pair"])
def test_the_halves_agree(tmp_path: Path, own: bool, capsys: pytest.CaptureFixture[str]) -> None:
    pair = {side: f"{PAIRS / f'pair_nets_{side}.py'}:Residual" for side in ("torch", "mindspore")} if own else {}
    asked = ParityOptions(steps=1, init_seeds=1, **pair)
    torch, mindspore, sharp = (tmp_path / name for name in ("A", "B", "C"))
    assert run_record("torch", RECIPE, torch, None, asked) == 0
    assert run_record("mindspore", RECIPE, mindspore, torch, asked) == 0
    capsys.readouterr()
    assert run_compare(torch, mindspore, None, ParityOptions(json_file=tmp_path / "report.json")) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Parity: " in said and "record torch again with MindSpore's trace" in said
    assert run_record("torch", RECIPE, sharp, mindspore, asked) == 0
    capsys.readouterr()
    assert run_compare(mindspore, sharp, None, ParityOptions()) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Parity: " in said and "record torch again" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["A", "B", "C", "report.json"]
