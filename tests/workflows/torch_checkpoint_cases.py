"""convert, plan and inspect as a library, where torch is: the cases of test_convert_ckpt.py, which has no torch.

python torch_checkpoint_cases.py FOLDER prints JSON: case -> what went wrong, empty where nothing did.
"""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msmigrate
import torch
from msmigrate.errors import Ambiguous, BadCheckpoint, BadDestination, BadInput
from torch import nn

SOURCE = """from collections import OrderedDict
from torch import nn

def build():
    return nn.Sequential(OrderedDict(conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4), fc=nn.Linear(4, 2)))
"""


def net() -> nn.Module:
    return nn.Sequential(OrderedDict(conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4), fc=nn.Linear(4, 2)))


def saved(folder: Path) -> Path:
    """The folder's file of weights."""
    torch.save(net().state_dict(), folder / "net.pth")
    return folder / "net.pth"


def refused(kind: type[Exception], said: str, call: Callable[..., Any], *args: Any, **words: Any) -> None:
    """Make sure that a call raises this kind of error, with these words."""
    try:
        found = call(*args, **words)
    except kind as error:
        assert re.search(said, str(error)), error
    else:
        raise AssertionError(f"nothing was raised: {found!r}")


def file(folder: Path) -> None:
    weights = saved(folder)
    result = msmigrate.convert(weights, folder / "net.ckpt")
    assert result and result.path == folder / "net.ckpt" and result.path.stat().st_size > 0
    assert "conv.weight" in repr(result.plan) and "8 tensors" in repr(result)
    told = json.loads(result.to_json(folder / "result.json"))
    assert told == json.loads((folder / "result.json").read_text()) and told["totals"]["written"] == 8
    assert result._repr_html_().startswith("<pre>")
    refused(BadDestination, "force", msmigrate.convert, weights, folder / "net.ckpt")
    assert msmigrate.convert(weights, folder / "net.ckpt", force=True)


def module(folder: Path) -> None:
    model = net()
    torch.save(model.state_dict(), folder / "net.pth")
    msmigrate.convert(folder / "net.pth", folder / "file.ckpt")
    for name, given in (("module", model), ("state_dict", model.state_dict())):
        msmigrate.convert(given, folder / f"{name}.ckpt")
        assert (folder / f"{name}.ckpt").read_bytes() == (folder / "file.ckpt").read_bytes()


def plan(folder: Path) -> None:
    found = msmigrate.plan(saved(folder))
    assert found and found.as_dict()["totals"]["written"] == 8
    odd = msmigrate.plan({"thing.weight": torch.zeros(3)})
    assert not odd and "refuse" in repr(odd)
    refused(Ambiguous, "thing", msmigrate.convert, {"thing.weight": torch.zeros(3)}, folder / "odd.ckpt")
    assert [each.name for each in folder.iterdir()] == ["net.pth"]


def inspection(folder: Path) -> None:
    found = msmigrate.inspect(saved(folder), crc=True)
    assert found and "norm" in repr(found) and len(found.as_dict()["tensors"]) == 9
    refused(BadCheckpoint, "", msmigrate.inspect, __file__)


def no_checkpoint(folder: Path) -> None:
    for source in (3, ["a"], {"a": 1.0}, {1: torch.zeros(1)}):
        refused(BadInput, "no checkpoint|no torch tensor", msmigrate.convert, source, folder / "x.ckpt")


def function(folder: Path) -> None:
    (folder / "their_net.py").write_text(SOURCE)
    sys.path.insert(0, str(folder))
    import their_net  # type: ignore[import-not-found]

    assert msmigrate.plan(saved(folder), model=their_net.build).as_dict()["classes_from"] != "structure"


def no_function(folder: Path) -> None:
    weights = saved(folder)
    refused(BadInput, "built already", msmigrate.plan, weights, model=net())
    refused(BadInput, "inside something else", msmigrate.plan, weights, model=lambda: net())
    refused(BadInput, "can import", msmigrate.plan, weights, model=type("Local", (), {}))


CASES = (file, module, plan, inspection, no_checkpoint, function, no_function)


def main(root: Path) -> None:
    said = {}
    for case in CASES:
        (root / case.__name__).mkdir()
        try:
            case(root / case.__name__)
            said[case.__name__] = ""
        except Exception:
            said[case.__name__] = traceback.format_exc()
    print(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
