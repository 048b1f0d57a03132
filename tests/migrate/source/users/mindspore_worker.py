"""Worker: run written models in MindSpore on torch's weights and inputs, many in one process.

    python mindspore_worker.py FOLDER MODE NAME…

For each NAME, FOLDER holds NAME.py with a function `build`, NAME.npz of torch_worker.py and NAME.names.json, torch's
tensor names -> MindSpore's. FOLDER/NAME.MODE.npz gets the outputs in evaluation and training mode and, in PyNative mode
(MODE pynative), the gradients; or FOLDER/NAME.MODE.failed the error. MODE updates is PyNative mode, and an error where
what an optimizer does to a weight is lost.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

import mindspore
import numpy as np
from flat_values import flat, weights_for
from mindspore import Tensor, nn, ops
from msmigrate.mappings.state_names import is_constant

STOPPED = 3  # the exit code where a net failed while it ran, and those after it did not run


def built(folder: Path, name: str) -> nn.Cell:
    """The net of the written file."""
    loader = importlib.util.spec_from_file_location(f"written_{name}", folder / f"{name}.py")
    assert loader is not None and loader.loader is not None
    module = importlib.util.module_from_spec(loader)
    sys.modules[module.__name__] = module
    loader.loader.exec_module(module)
    net: nn.Cell = module.build()
    return net


def fill(net: nn.Cell, weights: dict[str, Any]) -> None:
    """Put values into the net's parameters, by their paths; every one has to be filled."""
    cells = dict(net.cells_and_names())
    owned = ((name, *name.rpartition(".")[::2], parameter) for name, parameter in net.parameters_and_names())
    parameters = {name: parameter for name, place, last, parameter in owned if not is_constant(cells[place], last)}
    for name, array in weights.items():
        parameter = parameters.pop(name)
        assert parameter.size == array.size, f"{name} is {parameter.shape}, not {array.shape}"
        parameter.set_data(Tensor(array.reshape(parameter.shape), parameter.dtype))
    assert not parameters, f"nothing for {list(parameters)}"


def ran(folder: Path, name: str, mode: str, net: nn.Cell) -> dict[str, Any]:
    """Outputs and gradients, by the keys of torch_worker.py."""
    theirs = dict(np.load(folder / f"{name}.npz"))
    names = json.loads((folder / f"{name}.names.json").read_text())
    found = {f"fresh/{path}": parameter.asnumpy().copy() for path, parameter in net.parameters_and_names()}
    state = dict(np.load(folder / f"{name}.state.npz"))
    fill(net, {names[key]: value for key, value in state.items() if key in names})
    keys = [key.split("/")[2] for key in theirs if key.startswith("input/")]

    def run() -> list[Any]:
        values = [Tensor(value) for key, value in theirs.items() if key.startswith("input/")]
        made = net(**dict(zip(keys, values, strict=True))) if keys[0] else net(*values)
        return flat(made, Tensor)

    net.set_train(False)
    found |= {f"eval/{n}": output.asnumpy() for n, output in enumerate(run())}
    net.set_train(True)
    trained = [parameter for parameter in net.get_parameters() if parameter.requires_grad]
    if mode == "graph":
        fixed = [Tensor(value) for key, value in theirs.items() if key.startswith("input/")]
        whole = not keys[0] and trained and any(key.startswith("train/") for key in theirs)
        return found | (compiled_gradients(net, fixed, trained) if whole else {})

    def loss() -> Any:
        outputs = run()
        terms = [(o * Tensor(weights_for(o.shape))).sum() for o in outputs if "Float" in str(o.dtype)]
        return ops.stack(terms).sum() if terms else Tensor(0.0), outputs

    if not trained:
        return found | {f"train/{n}": output.asnumpy() for n, output in enumerate(run())}
    step = mindspore.value_and_grad(loss, None, trained, has_aux=True)
    if mode == "updates":
        updated(step, trained)
        return found
    (_, outputs), gradients = step()
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    found |= {f"train/{n}": output.asnumpy() for n, output in enumerate(outputs)}
    return found | named(net, trained, gradients)


def updated(step: Any, trained: list[Any]) -> None:
    """Take three steps; every weight with a gradient has to move in each."""
    optimizer = nn.Momentum(trained, 0.01, 0.9)
    for number in range(3):
        _, gradients = step()
        before = [parameter.asnumpy().copy() for parameter in trained]
        optimizer(gradients)
        for parameter, value, gradient in zip(trained, before, gradients, strict=True):
            moved = (parameter.asnumpy() != value).any()
            assert moved or not gradient.asnumpy().any(), f"update {number} of {parameter.name} is lost"


def named(net: nn.Cell, trained: list[Any], gradients: Any) -> dict[str, Any]:
    """Gradients by the paths of their parameters."""
    paths = {id(parameter): path for path, parameter in net.parameters_and_names()}
    return {f"gradient/{paths[id(p)]}": g.asnumpy() for p, g in zip(trained, gradients, strict=True)}


class Weighted(nn.Cell):
    """The loss of torch_worker.py, of outputs at fixed places of all tensors that a net gives."""

    def __init__(self, net: nn.Cell, weights: dict[int, Tensor]) -> None:
        super().__init__(auto_prefix=False)
        self.net, self.places, self.weights = net, list(weights), list(weights.values())

    def construct(self, *values: Tensor) -> Tensor:
        """The values are the net's."""
        outputs = tensors(self.net(*values))
        total = Tensor(0.0)
        for n, place in enumerate(self.places):
            total = total + (outputs[place] * self.weights[n]).sum()
        return total


def tensors(value: Any) -> list[Tensor]:
    """The tensors in tuples, lists and dictionaries, in order; this is compiled."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    found: list[Tensor] = []
    if isinstance(value, (tuple, list)):
        for item in value:
            found += tensors(item)
    return found


def compiled_gradients(net: nn.Cell, values: list[Tensor], trained: list[Any]) -> dict[str, Any]:
    """The gradients of the compiled step."""
    before = {parameter: parameter.asnumpy().copy() for parameter in net.get_parameters()}
    outputs = flat(net(*values), Tensor)
    for parameter, value in before.items():  # running statistics that moved
        parameter.set_data(Tensor(value, parameter.dtype))
    weights = {n: Tensor(weights_for(o.shape)) for n, o in enumerate(outputs) if "Float" in str(o.dtype)}
    if not weights:
        return {}
    _, gradients = mindspore.value_and_grad(Weighted(net, weights), None, trained)(*values)
    return named(net, trained, gradients)


def main(folder: Path, mode: str, names: list[str]) -> None:
    """Every net, one after the other."""
    mindspore.set_context(mode=mindspore.GRAPH_MODE if mode == "graph" else mindspore.PYNATIVE_MODE)
    for name in names:
        net = None
        try:
            mindspore.set_seed(0)
            net = built(folder, name)
            np.savez(folder / f"{name}.{mode}.npz", **ran(folder, name, mode, net))
        except Exception:  # a test says so of its model
            (folder / f"{name}.{mode}.failed").write_text(traceback.format_exc())
            if net is not None:  # an error within value_and_grad was seen to make nets fail that come after it
                sys.exit(STOPPED)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
