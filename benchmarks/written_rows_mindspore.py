"""Worker of written_rows.py: what MindSpore computes with the flag: FOLDER MODE NAME…; a second run goes on behind the
model in which the first one ended."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msmigrate.workers.worker import prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor  # noqa: E402


def leaves(value: Any) -> list[np.ndarray]:
    """The tensors and numbers in tuples, lists and dictionaries, in order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)]


def computed(folder: Path, name: str) -> dict[str, np.ndarray]:
    """The outputs in both modes, by the keys of written_rows_torch.py."""
    loader = importlib.util.spec_from_file_location(name, folder / f"{name}_written.py")
    assert loader is not None and loader.loader is not None
    module = importlib.util.module_from_spec(loader)
    sys.modules[name] = module
    loader.loader.exec_module(module)
    net = module.Net(True)
    for parameter in net.get_parameters():
        if parameter.requires_grad:
            parameter.set_data(Tensor(np.full(parameter.shape, 0.1, np.float32), parameter.dtype))
    arrays = np.load(folder / f"{name[name.index('_') :]}.npz")
    found = {}
    for mode in ("eval", "train"):
        net.set_train(mode == "train")
        outputs = leaves(net(*(Tensor(arrays[key]) for key in arrays)))
        found |= {f"{mode}/{n}": value for n, value in enumerate(outputs)}
    return found


def main(folder: Path, mode: str, names: list[str]) -> None:
    """Every model that was written and has not run yet."""
    mindspore.set_context(mode=mindspore.GRAPH_MODE if mode == "graph" else mindspore.PYNATIVE_MODE)
    for name in names:
        begun = folder / f"{name}_begun.{mode}"
        if begun.exists() or not (folder / f"{name}_written.py").exists():
            continue
        begun.touch()
        try:
            np.savez(folder / f"{name}_found.npz", **computed(folder, name))
        except Exception as error:
            (folder / f"{name}_raised.txt").write_text(f"{type(error).__name__}: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
