"""convert, plan and inspect as a library: the same as the commands, and results that say themselves."""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from pathlib import Path

import msmigrate
import pytest
import torch
from msmigrate.errors import Ambiguous, BadCheckpoint, BadDestination, BadInput
from torch import nn


def net() -> nn.Module:
    return nn.Sequential(OrderedDict(conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4), fc=nn.Linear(4, 2)))


@pytest.fixture()
def weights(tmp_path: Path) -> Path:
    torch.save(net().state_dict(), tmp_path / "net.pth")
    return tmp_path / "net.pth"


def test_a_file_is_converted_and_the_result_says_what_became_of_it(weights: Path, tmp_path: Path) -> None:
    result = msmigrate.convert(weights, tmp_path / "net.ckpt")
    assert result and result.path == tmp_path / "net.ckpt" and result.path.stat().st_size > 0
    assert "conv.weight" in repr(result.plan) and "8 tensors" in repr(result)
    told = json.loads(result.to_json(tmp_path / "result.json"))
    assert told == json.loads((tmp_path / "result.json").read_text()) and told["totals"]["written"] == 8
    assert result._repr_html_().startswith("<pre>")
    with pytest.raises(BadDestination, match="force"):
        msmigrate.convert(weights, tmp_path / "net.ckpt")
    assert msmigrate.convert(weights, tmp_path / "net.ckpt", force=True)


@pytest.mark.parametrize("of", [lambda model: model, lambda model: model.state_dict()])
def test_a_module_or_state_dict_at_hand_is_converted(of: object, weights: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = net()
    torch.save(model.state_dict(), weights)
    msmigrate.convert(weights, tmp_path / "file.ckpt")
    msmigrate.convert(of(model), tmp_path / "live.ckpt")  # type: ignore[operator]
    assert (tmp_path / "live.ckpt").read_bytes() == (tmp_path / "file.ckpt").read_bytes()


def test_a_plan_writes_nothing_and_is_false_where_a_tensor_is_refused(weights: Path, tmp_path: Path) -> None:
    plan = msmigrate.plan(weights)
    assert plan and plan.as_dict()["totals"]["written"] == 8
    odd = msmigrate.plan({"thing.weight": torch.zeros(3)})
    assert not odd and "refuse" in repr(odd)
    with pytest.raises(Ambiguous):
        msmigrate.convert({"thing.weight": torch.zeros(3)}, tmp_path / "odd.ckpt")
    assert [file.name for file in tmp_path.iterdir()] == ["net.pth"]


def test_an_inspection_lists_what_the_file_holds(weights: Path) -> None:
    found = msmigrate.inspect(weights, crc=True)
    assert found and "norm" in repr(found) and len(found.as_dict()["tensors"]) == 9
    with pytest.raises(BadCheckpoint):
        msmigrate.inspect(__file__)


@pytest.mark.parametrize("source", [3, ["a"], {"a": 1.0}, {1: torch.zeros(1)}])
def test_what_is_no_checkpoint_is_refused(source: object, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no checkpoint|no torch tensor"):
        msmigrate.convert(source, tmp_path / "x.ckpt")


def test_a_model_may_be_the_function_that_builds_it(weights: Path, tmp_path: Path) -> None:
    (tmp_path / "their_net.py").write_text(
        "from collections import OrderedDict\nfrom torch import nn\n\ndef build():\n    return nn.Sequential("
        "OrderedDict(conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4), fc=nn.Linear(4, 2)))\n"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        import their_net  # type: ignore[import-not-found]

        plan = msmigrate.plan(weights, model=their_net.build)
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("their_net", None)
    assert plan.as_dict()["classes_from"] != "structure"


@pytest.mark.parametrize(
    ("model", "said"),
    [(net(), "built already"), (lambda: net(), "inside something else"), (type("Local", (), {}), "can import")],
)
def test_a_model_that_no_other_process_can_build_is_refused(model: object, said: str, weights: Path) -> None:
    with pytest.raises(BadInput, match=said):
        msmigrate.plan(weights, model=model)
