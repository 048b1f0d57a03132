"""Worker of written_rows.py: see what runs of each model, and what torch computes with the flag: FOLDER NAME…"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from msmigrate.errors import MsmigrateError
from msmigrate.migrate.model_spec import parse
from msmigrate.migrate.source.observe.torch_observe_worker import report
from msmigrate.migrate.torch_models import builder
from msmigrate.workers.worker import defer_compiler
from torch.utils import _pytree as pytree


def computed(spec: str) -> dict[str, np.ndarray]:
    """The outputs in both modes of the model that is made with the flag."""
    model, given = builder(parse(spec))()
    model = type(model)(True)
    for parameter in model.parameters():
        parameter.data.fill_(0.1)
    found = {}
    for mode in ("eval", "train"):
        model.train(mode == "train")
        outputs = pytree.tree_leaves(model(*(value.clone() for value in given)))
        found |= {f"{mode}/{n}": torch.as_tensor(value).detach().numpy() for n, value in enumerate(outputs)}
    return found


def main(folder: Path, names: list[str]) -> None:
    """Every model; one that torch does not run leaves nothing."""
    warnings.simplefilter("ignore")
    defer_compiler()
    for name in names:
        spec = f"{folder / name}.py:build"
        try:
            np.savez(folder / f"{name}_torch.npz", **computed(spec))
        except Exception as error:
            print(f"torch does not run {name}: {' '.join(str(error).split())[:200]}", file=sys.stderr)
            continue
        try:
            said = report(spec)
        except MsmigrateError as error:
            said = {"failed": str(error)}
        (folder / f"{name}.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
