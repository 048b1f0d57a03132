"""A worker that runs one case for each line it reads: JSON in, arrays into a file, JSON out.

In: `name`, `row` (torch name), `case`, `modes`, `fresh` (also see what new layers draw), `out` (a file). Out: `errors`,
key -> traceback. Imports no framework.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from mapping_cases import Results
from msmigrate.mappings import table
from msmigrate.mappings.rows import Case, Row
from varied_cases import from_json

Run = Callable[[Results, str, Row, Case, tuple[str, ...], bool], None]


def serve(run: Run) -> None:
    """Answer lines until there are none; what frameworks print goes to the log, so that answers stand alone."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print("{}", file=answers, flush=True)  # ready
    for line in sys.stdin:
        asked = json.loads(line)
        results = Results()
        row, case, modes = table.row(asked["row"]), from_json(asked["case"]), tuple(asked["modes"])
        run(results, asked["name"], row, case, modes, asked["fresh"])
        with Path(asked["out"]).open("wb") as file:
            np.savez(file, **{key: np.asarray(value) for key, value in results.arrays.items()})
        print(json.dumps({"errors": results.errors}), file=answers, flush=True)
    sys.stdout.flush()
    os._exit(0)  # MindSpore prints noise at interpreter exit
