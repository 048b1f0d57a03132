"""Run cases of the mapping table in PyTorch, float32 and float64: `python torch_rows.py FOLDER [NAMES]`.

NAMES: a JSON list; every case without it.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from mapping_cases import Results, is_called, runnable
from msmigrate.mappings import table
from msmigrate.mappings.rows import Case, Row
from torch_calls import find
from torch_distribution_rows import run_distribution
from torch_function_rows import run_function
from torch_module_rows import run_fresh, run_module
from torch_signatures import signature
from torch_training_rows import run_clipping, run_initializer, run_optimizer, run_schedule, run_transform

torch.set_num_threads(1)
warnings.simplefilter("ignore")
DTYPES = {"float32": torch.float32, "float64": torch.float64}


RUNNERS = {
    "function": run_function,
    "optimizer": run_optimizer,
    "schedule": run_schedule,
    "distribution": run_distribution,
    "script": run_clipping,
}


def run(results: Results, name: str, row: Row, case: Case, *, fresh: bool = True) -> None:
    """Run one case in every precision and mode that its kind has; fresh: also see what new layers draw."""
    if row.kind in ("initializer", "transform"):
        function = run_initializer if row.kind == "initializer" else run_transform
        results.run(name, lambda: function(name, row, case))
        return
    if fresh and row.kind in ("layer", "module") and "*args" not in case.args:
        results.run(f"{name}/fresh", lambda: run_fresh(row, case))
    for label, dtype in DTYPES.items():
        if row.kind in ("layer", "module", "loss"):
            for mode in ("train", "eval"):
                key = f"{name}/{mode}/{label}"
                results.run(key, lambda mode=mode, dtype=dtype: run_module(name, row, case, dtype, mode == "train"))
        else:
            runner = RUNNERS[row.kind]
            key = f"{name}/train/{label}"
            results.run(key, lambda dtype=dtype, runner=runner: runner(name, row, case, dtype))


def exists(name: str) -> bool:
    """Whether there is what a script's row names; apex cannot be installed everywhere."""
    try:
        find(name)
    except AttributeError:
        return name.startswith("apex.")
    return True


def main(folder: Path, names: list[str] | None) -> None:
    """Run these cases, or all."""
    results = Results()
    for name, row, case in runnable():
        if names is None or name in names:
            run(results, name, row, case)
    results.arrays = {key: np.asarray(value) for key, value in results.arrays.items()}
    results.notes["signatures"] = {row.torch: signature(row) for row in table.rows() if is_called(row)}
    results.notes["missing"] = [name for row in table.rows() for name in row.aliases if not callable(find(name))]
    results.notes["missing"] += [row.torch for row in table.rows() if not (is_called(row) or exists(row.torch))]
    results.save(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]) if len(sys.argv) > 2 else None)
    sys.stdout.flush()
    os._exit(0)
