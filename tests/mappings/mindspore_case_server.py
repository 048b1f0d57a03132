"""Runs single cases in MindSpore, as case_server.py tells: `python mindspore_case_server.py [WRONG]`.

WRONG: MindSpore arguments to set wrongly, by torch name, as JSON.
"""

from __future__ import annotations

import json
import sys

from case_server import serve
from mapping_cases import Results
from mindspore_calls import WRONG
from mindspore_rows import run
from msmigrate.mappings import table
from msmigrate.mappings.rows import Case, Row


def run_case(results: Results, name: str, row: Row, case: Case, modes: tuple[str, ...], fresh: bool) -> None:
    """Run the case in these modes."""
    run(results, name, row, case, modes=modes, fresh=fresh)


if __name__ == "__main__":
    wrong = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    WRONG.update({name: {key: table.plain(value) for key, value in args.items()} for name, args in wrong.items()})
    serve(run_case)
