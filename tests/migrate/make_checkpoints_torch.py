"""Worker: write checkpoints with torch into a folder, and what their tensors hold into expected.json.

    python make_checkpoints_torch.py FOLDER

expected.json: file name -> tensor name -> [shape, dtype, sha256 of the row-major bytes].
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import OrderedDict
from pathlib import Path

import nets_torch
import torch
from torch import nn


def digest(tensor: torch.Tensor) -> list[object]:
    flat = tensor.detach().contiguous().reshape(-1)
    content = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return [list(tensor.shape), str(tensor.dtype).removeprefix("torch."), hashlib.sha256(content).hexdigest()]


def random_bits(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Any bit pattern, NaN payloads and denormals included."""
    if dtype == torch.bool:
        return torch.rand(shape) > 0.5
    size = torch.empty((), dtype=dtype).element_size()
    return torch.randint(0, 256, (*shape, size), dtype=torch.uint8).view(dtype).reshape(shape)


def small_net() -> nn.Module:
    return nn.Sequential(
        OrderedDict(
            conv=nn.Conv2d(3, 4, 3, bias=False),
            bn=nn.BatchNorm2d(4),
            block=nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU(), nn.BatchNorm2d(4)),
            head=nn.Linear(4, 5),
        )
    )


def main(folder: Path) -> None:
    torch.manual_seed(0)
    files: dict[str, dict[str, torch.Tensor]] = {}

    def save(name: str, state: dict[str, torch.Tensor], whole: object = None) -> None:
        torch.save(state if whole is None else whole, folder / name)
        files[name] = state

    dtypes = (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool),
        *(torch.int64, torch.int32, torch.int16, torch.int8),
        *(torch.uint64, torch.uint32, torch.uint16, torch.uint8),
    )
    save("dtypes.pth", {f"own.{str(dtype)[6:]}": random_bits((3, 5), dtype) for dtype in dtypes})
    base = torch.randn(6, 7, 8)
    save(
        "views.pth",
        {
            "own.whole": base,
            "own.slice": base[2:4],
            "own.columns": base[:, 1:5:2],
            "own.turned": base.permute(2, 0, 1),
            "own.row": base[3, 2],
            "own.number": base[1, 2, 3],
            "own.scalar": torch.tensor(2.5),
            "own.expanded": torch.randn(5, 1).expand(5, 9),
            "own.none": torch.zeros(0, 3),
            "own.big_turned": torch.randn(700, 3000).t(),
            "own.half_turned": torch.randn(6, 7).bfloat16().t(),
            "own.parameter": nn.Parameter(torch.randn(3)),
        },
    )
    net = small_net()
    state = net.state_dict()
    save("net.pth", state)
    save("ddp.pth", state, {f"module.{name}": value for name, value in state.items()})
    save(
        "channels_last.pth",
        {k: v.to(memory_format=torch.channels_last) if v.dim() == 4 else v for k, v in state.items()},
    )
    save("wrapped.pth", state, {"epoch": 3, "state_dict": state, "best": torch.tensor(1.0), "optimizer": {"state": {}}})
    save("wrapped_model.pth", state, {"model": state, "lr": 0.1})
    save("embed.pth", nn.ModuleDict({"embed": nn.Embedding(6, 4), "norm": nn.LayerNorm(4)}).state_dict())
    text = nets_torch.text()
    save("text.pth", text.state_dict())
    text["head"].weight = text["embed"].weight
    save("tied_text.pth", text.state_dict())
    save("protocol4.pth", state)
    torch.save(state, folder / "protocol4.pth", pickle_protocol=4)
    torch.serialization.set_crc32_options(False)
    save("without_checksums.pth", state)
    torch.serialization.set_crc32_options(True)
    torch.save(net, folder / "whole.pth")
    torch.save(state, folder / "legacy.pth", _use_new_zipfile_serialization=False)
    torch.save({"a": torch.eye(3).to_sparse()}, folder / "sparse.pth")
    torch.save({"own.a": torch.zeros(2, dtype=torch.complex64)}, folder / "complex.pth")
    torch.save({"own.a": torch.zeros(2, dtype=torch.float8_e4m3fn)}, folder / "float8.pth")
    torch.save(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)).state_dict(), folder / "weight_norm.pth")
    expected = {name: {key: digest(value) for key, value in state.items()} for name, state in files.items()}
    (folder / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
