"""Run cases of the mapping table in MindSpore, PyNative and compiled: `mindspore_rows.py FOLDER [WRONG] [quick]`.

Errors in MindSpore arrive late: every result is read as an array before its case ends, so that an error falls into
the case that caused it. By hand, set ONEDNN_MAX_CPU_ISA=AVX2 first, as conftest.py does.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from mapping_cases import MODES, Results, is_called, phases, quick, runnable

try:
    from mindspore.graph.api import _pynative_executor
except ModuleNotFoundError:  # before 2.9
    from mindspore.common.api import _pynative_executor
from mindspore import runtime
from mindspore_calls import WRONG
from mindspore_distribution_rows import run_distribution
from mindspore_function_rows import run_function
from mindspore_module_rows import run_fresh, run_module
from mindspore_signatures import signature
from mindspore_training_rows import run_clipping, run_initializer, run_optimizer, run_schedule, run_transform
from msmigrate.errors import BadInput
from msmigrate.mappings import table
from msmigrate.mappings.rows import Case, Row, resolve

warnings.simplefilter("ignore")
RUNNERS = {
    "function": run_function,
    "optimizer": run_optimizer,
    "schedule": run_schedule,
    "distribution": run_distribution,
    "script": run_clipping,
}


def run(
    results: Results, name: str, row: Row, case: Case, *, modes: tuple[str, ...] = MODES, fresh: bool = True
) -> None:
    """Run one case in these modes, as far as its kind has them; fresh: also see what new layers draw.

    MindSpore forgets the gradients that it has compiled: once it has seen several shapes of the same operations, it
    would take the gradient of a softmax over one axis for that over another.
    """
    _pynative_executor.clear_res()
    if row.kind in ("initializer", "transform"):
        function = run_initializer if row.kind == "initializer" else run_transform
        results.run(name, lambda: function(row, case))
        return
    if fresh and row.kind in ("layer", "module") and "*args" not in case.args:
        results.run(f"{name}/fresh", lambda: run_fresh(row, case))
    for mode in modes:
        if row.kind in ("layer", "module", "loss"):
            for phase in phases(row, mode):
                train = phase == "train"
                results.run(f"{name}/{phase}/{mode}", lambda m=mode, t=train: run_module(name, row, case, m, t))
        else:
            runner = RUNNERS[row.kind]
            results.run(f"{name}/train/{mode}", lambda m=mode, r=runner: r(name, row, case, m))


def exists(name: str) -> bool:
    """Whether there is what a script's row names."""
    try:
        resolve(name)
    except BadInput:
        return False
    return True


def main(folder: Path, wrong: dict[str, dict[str, Any]], every: bool) -> None:
    """Run all cases, or the quick ones in their modes; where arguments are to be wrong, those named with them."""
    runtime.launch_blocking()  # else threads spin that wait for one another
    for name, args in wrong.items():
        WRONG[name.partition("[")[0]] = {key: table.plain(value) for key, value in args.items()}
    results = Results()
    for name, row, case in runnable():
        modes = MODES if every else quick(tuple(wrong)).get(name, ())
        if modes and (not wrong or name in wrong):
            run(results, name, row, case, modes=modes)
    there = [row for row in table.rows() if row.mindspore]
    results.notes["signatures"] = {row.torch: signature(row) for row in there if is_called(row)}
    results.notes["missing"] = [row.mindspore for row in there if not (is_called(row) or exists(row.mindspore))]
    results.save(folder)


if __name__ == "__main__":
    given = [text for text in sys.argv[2:] if text != "quick"]
    main(Path(sys.argv[1]), json.loads(given[0]) if given else {}, "quick" not in sys.argv[2:])
    sys.stdout.flush()
    os._exit(0)  # MindSpore prints noise at interpreter exit
