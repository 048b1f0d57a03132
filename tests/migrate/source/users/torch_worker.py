"""Worker: report, run and save small torch models, many in one process.

    python torch_worker.py FOLDER SPEC…

For each `FILE.py:NAME`, FOLDER/NAME.json gets what torch_observe_worker reports, NAME.pth and NAME.state.npz the
weights, and NAME.npz the inputs, the outputs in evaluation and training mode, and the gradients of their weighted
sum. A failure is NAME.json's `failed`.
"""

from __future__ import annotations

import functools
import gc
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch

if not {"transformers", "timm", "torchvision"} & {*sys.modules}:  # imported before this process was forked
    gc.freeze()  # torch's objects, among which models' functions are sought: a fifth of the time

from flat_values import flat, weights_for
from msmigrate.errors import MsmigrateError
from msmigrate.migrate.model_spec import parse
from msmigrate.migrate.source.observe import torch_observe_worker
from msmigrate.migrate.source.observe.torch_simplified_transformers import tie_weights
from msmigrate.migrate.torch_models import OnTheCpu, builder
from msmigrate.workers.worker import defer_compiler


def ran(spec: str, folder: Path, name: str) -> None:
    """Run a model in both modes, as it is when it is made anew."""
    torch.manual_seed(0)
    model, inputs = builder(parse(spec))()
    tie_weights(model)
    state = {key: value.detach().numpy().copy() for key, value in model.state_dict().items()}
    torch.save(model.state_dict(), folder / f"{name}.pth")
    np.savez(folder / f"{name}.state.npz", **state)
    keys = list(inputs) if isinstance(inputs, dict) else [""] * len(inputs)
    values = list(inputs.values()) if isinstance(inputs, dict) else list(inputs)
    found: dict[str, Any] = {f"input/{n}/{key}": v.numpy() for n, (key, v) in enumerate(zip(keys, values, strict=True))}
    for name_of, tensor in model.named_parameters():
        found[f"fresh/{name_of}"] = tensor.detach().numpy().copy()
    for mode in ("eval", "train"):
        model.train(mode == "train")
        made = [value.clone() for value in values]
        outputs = flat(model(**dict(zip(keys, made, strict=True))) if keys[0] else model(*made), torch.Tensor)
        found |= {f"{mode}/{n}": output.detach().numpy() for n, output in enumerate(outputs)}
    terms = [(o * torch.from_numpy(weights_for(o.shape))).sum() for o in outputs if o.requires_grad]
    if terms:
        torch.stack(terms).sum().backward()
    for key, tensor in model.named_parameters():
        if tensor.grad is not None:
            found[f"gradient/{key}"] = tensor.grad.numpy()
    np.savez(folder / f"{name}.npz", **found)


def main(folder: Path, specs: list[str]) -> None:
    """Every model, one after the other."""
    defer_compiler()  # as in the product's workers
    torch_observe_worker.parsed = functools.cache(torch_observe_worker.parsed)  # a file has many models
    for spec in specs:
        if OnTheCpu.entered:  # by the model before, for all of a process, and each call takes longer in it
            torch.overrides._pop_mode()
            OnTheCpu.entered = False
        name = spec.rpartition(":")[2]
        try:
            told = torch_observe_worker.report(spec)
            ran(spec, folder, name)
        except MsmigrateError as error:
            told = {"failed": str(error)}
        except Exception:  # a test says so of its model
            told = {"failed": traceback.format_exc()}
        (folder / f"{name}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
