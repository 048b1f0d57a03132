"""Worker: write checkpoints with torch into a folder, and what their tensors hold into expected.json.

    python make_checkpoints_torch.py FOLDER

expected.json: file name -> tensor name -> [shape, dtype, sha256 of the row-major bytes]. owners.json: of the models
saved whole, file name -> path of a module -> its class, where that is one of torch.nn's. classes.json: all classes of
torch.nn's modules, by the name that a pickle gives them -> their public name.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import nets_torch
import torch
import torchvision
from msmigrate.migrate.checkpoint.torch_model_worker import public_name
from torch import nn
from torch.optim.swa_utils import AveragedModel


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


class Net(nn.Module):
    """Everything that a module may have: shared modules, buffers that are not saved, names without tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 4))
        self.register_parameter("nothing", None)
        self.register_buffer("table", torch.arange(6).reshape(2, 3))
        self.register_buffer("scratch", torch.zeros(5), persistent=False)
        self.stem = small_net()
        self.block = nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU(), nn.BatchNorm2d(4))
        self.again = self.block
        self.embed, self.norm = nn.Embedding(6, 4), nn.GroupNorm(2, 4)
        self.listed = nn.ParameterList([nn.Parameter(torch.randn(2)) for _ in range(2)])
        self.activation = torch.nn.functional.relu


class Config:
    """What a script keeps beside the weights."""

    def __init__(self) -> None:
        self.rate, self.layers = 0.1, [1, 2]


State = dict[str, torch.Tensor]
Save = Callable[..., None]


def whole_models(folder: Path, save: Save) -> None:
    """Models saved whole, alone and in training checkpoints; what torch's own state dict says of them is expected."""
    owners: dict[str, dict[str, str]] = {}

    def save_whole(name: str, model: nn.Module, content: object = None, **options: object) -> None:
        save(name, model.state_dict(), model if content is None else content, **options)
        named = {path: public_name(type(module)) for path, module in model.named_modules(remove_duplicate=False)}
        owners[name] = {path: cls for path, cls in named.items() if cls.startswith("torch.nn.") and cls.count(".") == 2}

    net, half = Net(), Net().half()
    for name, options in {"": {}, "_protocol4": {"pickle_protocol": 4}, "_legacy": LEGACY}.items():
        save_whole(f"whole{name}.pth", net, **options)
        save_whole(f"whole_half{name}.pth", half, **options)
        save_whole(f"whole_parallel{name}.pth", net, nn.DataParallel(net), **options)
        save_whole(f"whole_averaged{name}.pth", net, AveragedModel(net), **options)
    small = torchvision.models.shufflenet_v2_x0_5()
    save_whole("whole_torchvision.pth", small)
    save_whole("whole_torchvision_legacy.pth", small, **LEGACY)
    save_whole("whole_wrapped.pth", half, {"epoch": 3, "best": None, "model": half, "ema": net, "args": Config()})
    save_whole("whole_average_alone.pth", half, {"epoch": 3, "model": None, "ema": half}, **LEGACY)
    net.register_forward_hook(net.extra_repr)  # a method of an object, which is pickled as a call of getattr
    save_whole("whole_hooked.pth", net)
    (folder / "owners.json").write_text(json.dumps(owners))


def classes() -> dict[str, str]:
    """The classes of torch.nn's modules: the name in a pickle -> the public name."""
    modules = [importlib.import_module(f"torch.nn.modules.{m.name}") for m in pkgutil.iter_modules(nn.modules.__path__)]
    found = [cls for module in modules for cls in vars(module).values() if isinstance(cls, type)]
    return {
        f"{cls.__module__}.{cls.__qualname__}": public_name(cls)
        for cls in found
        if issubclass(cls, nn.Module) and cls.__module__.startswith("torch.nn.modules.")
    }


LEGACY = {"_use_new_zipfile_serialization": False}


def main(folder: Path) -> None:
    torch.manual_seed(0)
    files: dict[str, State] = {}

    def save(name: str, state: State, whole: object = None, **options: object) -> None:
        torch.save(state if whole is None else whole, folder / name, **options)
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
    embed = nn.ModuleDict({"embed": nn.Embedding(6, 4), "norm": nn.LayerNorm(4)}).state_dict()
    save("embed.pth", embed)
    text = nets_torch.text()
    save("text.pth", text.state_dict())
    text["head"].weight = text["embed"].weight
    save("tied_text.pth", text.state_dict())
    save("protocol4.pth", state)
    torch.save(state, folder / "protocol4.pth", pickle_protocol=4)
    torch.serialization.set_crc32_options(False)
    save("without_checksums.pth", state)
    torch.serialization.set_crc32_options(True)
    for name in ("dtypes", "views", "net", "ddp", "channels_last"):
        saved = torch.load(folder / f"{name}.pth")
        save(f"{name}_legacy.pth", files[f"{name}.pth"], saved, **LEGACY)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    beside = {"optimizer": optimizer.state_dict(), "epoch": 3, "config": Config(), "rng_state": torch.get_rng_state()}
    for name in ("model_state_dict", "net", "params"):
        save(f"in_{name}.pth", state, {name: state, "ema": embed, **beside}, **(LEGACY if name == "net" else {}))
    save("nested.pth", state, {"checkpoint": {"network": state, **beside}, "config": Config()})
    whole_models(folder, save)
    (folder / "classes.json").write_text(json.dumps(classes()))
    torch.save({"a": torch.eye(3).to_sparse()}, folder / "sparse.pth")
    torch.save({"own.a": torch.zeros(2, dtype=torch.complex64)}, folder / "complex.pth")
    torch.save({"own.a": torch.zeros(2, dtype=torch.float8_e4m3fn)}, folder / "float8.pth")
    torch.save(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)).state_dict(), folder / "weight_norm.pth")
    expected = {name: {key: digest(value) for key, value in state.items()} for name, state in files.items()}
    (folder / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
