"""Worker: let the safetensors library write files for torch, or load what msmigrate has written.

    python make_safetensors_torch.py FOLDER        writes files, and what they hold into expected.json
    python make_safetensors_torch.py FOLDER read   loads every file below FOLDER, into found_torch.json

Both JSON files: path -> tensor name -> [shape, dtype, sha256 of the bytes].
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import nets_torch
import torch
from make_checkpoints_torch import digest, random_bits, small_net
from safetensors.torch import load_file, load_model, save_file, save_model

DTYPES = (
    *(torch.uint8, torch.float64, torch.bfloat16, torch.bool, torch.float32, torch.float16, torch.complex64),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16),
    *(torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz, torch.float8_e8m0fnu),
)


def make(folder: Path) -> None:
    torch.manual_seed(0)
    files = {"dtypes": {f"own.{str(dtype)[6:]}": random_bits((3, 5), dtype) for dtype in DTYPES}}
    files["dtypes"] |= {"own.number": torch.tensor(2.5), "own.none": torch.zeros(0, 3), "own.ö": torch.ones(1)}
    files["net"] = small_net().state_dict()
    for name, tensors in files.items():
        save_file(tensors, folder / f"{name}.safetensors", metadata={"format": "pt"})
    save_file({f"module.{name}": value for name, value in files["net"].items()}, folder / "ddp.safetensors")
    files["ddp"] = files["net"]
    net = nets_torch.text()
    net["head"].weight = net["embed"].weight
    save_model(net, str(folder / "tied.safetensors"))
    files["tied"] = net.state_dict()

    state = files["net"]
    halves = [dict(list(state.items())[:5]), dict(list(state.items())[5:])]
    for suffix, save in ((".safetensors", save_file), (".bin", torch.save)):
        shards = folder / f"shards{suffix}"
        shards.mkdir()
        names = [f"part-{number}-of-2{suffix}" for number in (1, 2)]
        for name, half in zip(names, halves, strict=True):
            save(half, shards / name)
        places = {tensor: name for name, half in zip(names, halves, strict=True) for tensor in half}
        total = sum(value.nbytes for value in state.values())
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))}
        (shards / f"model{suffix}.index.json").write_text(json.dumps(index))
    expected = {name: {key: digest(value) for key, value in state.items()} for name, state in files.items()}
    (folder / "expected.json").write_text(json.dumps(expected))


def read(folder: Path) -> None:
    found = {
        str(path.relative_to(folder)): {name: digest(value) for name, value in load_file(path).items()}
        for path in sorted(folder.rglob("*.safetensors"))
    }
    (folder / "found_torch.json").write_text(json.dumps(found))
    if (folder / "tied.safetensors").exists():
        net = nets_torch.text()
        net["head"].weight = net["embed"].weight
        load_model(net, folder / "tied.safetensors")  # strict: nothing is missing, nothing left over


if __name__ == "__main__":
    read(Path(sys.argv[1])) if sys.argv[2:] == ["read"] else make(Path(sys.argv[1]))
