"""Worker: write checkpoints as torch.save writes them under the root that msmigrate writes, `archive`.

    python make_references_torch.py FOLDER [LARGE]

NAME/archive.pth for each; with a number as LARGE only large/archive.pth, of a tensor of so many bytes.
"""

from __future__ import annotations

import sys
import warnings
from collections import OrderedDict
from pathlib import Path

import torch
from make_checkpoints_torch import random_bits

warnings.filterwarnings("ignore", "ComplexHalf support is experimental")
FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2")
PLAIN = "float64 float32 float16 bfloat16 bool int64 int32 int16 int8 uint64 uint32 uint16 uint8 complex64 complex128"


def main(folder: Path, large: int | None) -> None:
    def save(name: str, **tensors: torch.Tensor) -> None:
        (folder / name).mkdir()
        torch.save(OrderedDict(tensors), folder / name / "archive.pth")

    if large is not None:
        rest = {"after": torch.ones(7), "none": torch.zeros(0, 3), "small": torch.ones(3, dtype=torch.uint16)}
        save("large", first=torch.ones(5), large=torch.zeros(large, dtype=torch.uint8), **rest)
        return
    torch.manual_seed(0)
    dtypes = {name: getattr(torch, name) for name in PLAIN.split()}
    raw = {name: getattr(torch, name, None) for name in FLOAT8}  # not all of them in the oldest torch
    save(
        "dtypes",
        **{f"own.{name}": random_bits((3, 5), dtype) for name, dtype in dtypes.items()},
        **{f"own.{name}": random_bits((3, 5), torch.uint8).view(dtype) for name, dtype in raw.items() if dtype},
        **{"own.complex32": torch.zeros(4, dtype=torch.complex32)},
    )
    save(
        "shapes",
        number=torch.tensor(2.5),
        none=torch.zeros(0, 3),
        nothing=torch.zeros(3, 0, 2, 5),
        deep=torch.randn(2, 1, 2, 3, 2),
        long=torch.randn(70_000),
        large=torch.randn(1200, 1300),
    )
    table = torch.randn(6, 4)
    save("tied", head=table, own=torch.randn(3), embed=table.detach())
    save("one", own=torch.randn(3))
    save("many", **{f"own.{number}.ö": torch.tensor([number]) for number in range(2001)})


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
