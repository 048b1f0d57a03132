"""Worker: run the new model, and its class with other arguments, on torch's weights and inputs.

    python -m msmigrate.migrate.source.observe.mindspore_variations_worker FILE.py FOLDER FIRST SECONDS

FILE.py has the functions variation_0, variation_1 and so on. For each N that torch could run, FOLDER holds N.ckpt,
N.json with the structure of its inputs, and N.npz of torch_variations_worker.py; it holds N.left where N is not to be
tried. N.begun is made when N begins, and N.out.npz gets the outputs under the same keys; N.left is made for those that
would begin after SECONDS.
Prints one line of JSON: number -> null or the error that it raises, from FIRST to the first error, since an error
within value_and_grad was seen to make later nets fail.
"""

from __future__ import annotations

import importlib.util
import json
import random
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ....workers.worker import prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402

from ....mappings.state_names import is_constant  # noqa: E402
from ...model_spec import place_of, serve  # noqa: E402

LONGEST = 450  # letters of an error
ASSIGN = "ops.assign(weight, values) keeps it (msmigrate explain set-data-not-trained)"
GROWN = 1.05  # as in torch_variations_worker.py


def report(file: str, folder: str, first: str, seconds: str) -> dict[str, Any]:
    """Run every variation from the first on, until one fails."""
    ends = time.monotonic() + float(seconds)
    if mindspore.get_context("device_target") == "CPU":
        mindspore.runtime.launch_blocking()  # its threads for that spin while they wait
    errors: dict[str, str | None] = {}
    source = importlib.util.spec_from_file_location("variations_written", file)
    assert source is not None and source.loader is not None
    module = importlib.util.module_from_spec(source)
    sys.modules[module.__name__] = module
    source.loader.exec_module(module)
    number = int(first)
    while make := getattr(module, f"variation_{number}", None):
        if number and time.monotonic() > ends:
            (Path(folder) / f"{number}.left").touch()
        if (Path(folder) / f"{number}.left").exists():
            number += 1
            continue
        (Path(folder) / f"{number}.begun").touch()
        try:
            tried(make, Path(folder), number)
            errors[str(number)] = None
        except Exception as error:
            words = textwrap.shorten(str(error).split("- C++ Call Stack")[0], LONGEST, placeholder=" …")
            errors[str(number)] = f"{type(error).__name__}: {words}{place_of(error)}"
            break
        number += 1
    return {"errors": errors}


def tried(make: Any, folder: Path, number: int) -> None:
    """Make a net; where torch's ran, load the weights, run the net, and write its outputs to the folder."""
    mindspore.set_seed(0)
    net: nn.Cell = make()
    structure = folder / f"{number}.json"
    if not structure.exists():
        return  # torch could not run it
    weights = folder / f"{number}.ckpt"  # a loss of one's own mostly has none
    fill(net, mindspore.load_checkpoint(str(weights)) if weights.exists() else {})
    arrays = np.load(folder / f"{number}.npz")
    shape = json.loads(structure.read_text())
    np.savez(folder / f"{number}.out.npz", **ran(net, lambda: built(shape, arrays)))


def fill(net: nn.Cell, weights: dict[str, Any]) -> None:
    """Put the weights into the net's parameters by their paths; raises ValueError where one is left over."""
    paths: dict[int, list[str]] = {}
    constants = set()
    for path, cell in net.cells_and_names():
        for name, parameter in cell._params.items():
            paths.setdefault(id(parameter), []).append(f"{path}.{name}" if path else name)
            if is_constant(cell, name):
                constants.add(id(parameter))
    waiting = dict(weights)
    for path, parameter in net.parameters_and_names():
        names = [name for name in (path, parameter.name, *paths.get(id(parameter), ())) if name in weights]
        if not names and id(parameter) in constants:
            continue
        if not names:
            raise ValueError(f"{path} has no weight in torch")
        parameter.set_data(Tensor(weights[names[0]].asnumpy(), parameter.dtype))
        for name in names:
            waiting.pop(name, None)
    if waiting:
        raise ValueError(f"torch's {next(iter(waiting))} is not a parameter of the net")


def built(shape: Any, arrays: Any) -> Any:
    """The inputs with this structure, from the arrays."""
    ((kind, content),) = shape.items()
    if kind == "tensor":
        return Tensor(arrays[f"input/{content}"])
    if kind == "array":
        return arrays[f"input/{content}"][()]  # one number of NumPy's is one again
    if kind == "dict":
        return {key: built(item, arrays) for key, item in content.items()}
    if kind == "value":
        return content
    items = [built(item, arrays) for item in content]
    return items if kind == "list" else tuple(items)


def ran(net: nn.Cell, inputs: Callable[[], Any]) -> dict[str, Any]:
    """The outputs and the gradient's norm, under the keys of torch_variations_worker.py.

    inputs: makes them anew for each run, which may write into them: before training, in it, and by name.
    """
    before, _, words = inputs()
    np.random.seed(0)
    random.seed(0)
    net.set_train(False)
    found = outputs(net(*before, **words), "eval")
    net.set_train(True)
    _, trained, words = inputs()
    weights = [parameter for parameter in net.get_parameters() if parameter.requires_grad]
    memory = [memory_of(weight) for weight in weights]
    by_input = not weights and bool(trained) and bool(tensors(trained[0])) and isinstance(trained[0], Tensor)

    def loss(*first: Any) -> Any:
        made = tensors(net(*first, *trained[len(first) :], **words))
        terms = [(o * Tensor(np.cos(1.7 * np.arange(o.size)).reshape(o.shape), o.dtype)).sum() for o in made]
        return ops.stack(terms).sum() if terms else Tensor(0.0), made

    if weights or by_input:
        by = (0, None) if by_input else (None, weights)
        (_, made), found_by = mindspore.value_and_grad(loss, *by, has_aux=True)(*(trained[:1] if by_input else ()))
        gradients = (found_by,) if by_input else found_by
        squares = [float((g.asnumpy().astype(np.float64) ** 2).sum()) for g in gradients]
        found["gradient"] = np.array(sum(squares) ** 0.5)
    else:
        made = tensors(net(*trained, **words))
    found |= outputs(made, "train")
    for weight, place in zip(weights, memory, strict=True):
        if memory_of(weight) != place:
            raise ValueError(
                f"{weight.name} has other memory after a run, and an optimizer would not train it: {ASSIGN}"
            )
    for parameter in weights:
        parameter.set_data(Tensor(parameter.asnumpy() * np.float32(GROWN), parameter.dtype))
    net.set_train(False)
    before, _, words = inputs()
    return found | outputs(net(*before, **words), "after")


def memory_of(parameter: Any) -> int:
    """Where a parameter has its values; 0 where this MindSpore does not say."""
    return parameter.data_ptr() if hasattr(parameter, "data_ptr") else 0


def tensors(value: Any) -> list[Tensor]:
    """The tensors of floating-point numbers in an output, in order."""
    if isinstance(value, Tensor):
        return [value] if "Float" in str(value.dtype) else []
    values = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for item in values for tensor in tensors(item)]


def outputs(value: Any, mode: str) -> dict[str, Any]:
    """The same, by mode and number."""
    return {f"{mode}/{n}": tensor.asnumpy() for n, tensor in enumerate(tensors(value))}


if __name__ == "__main__":
    serve(report)
