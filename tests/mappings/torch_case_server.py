"""Runs single cases in PyTorch, float32 and float64, as case_server.py tells."""

from __future__ import annotations

from case_server import serve
from mapping_cases import Results
from msmigrate.mappings.rows import Case, Row
from torch_rows import run


def run_case(results: Results, name: str, row: Row, case: Case, modes: tuple[str, ...], fresh: bool) -> None:
    """Run the case; torch has one mode."""
    run(results, name, row, case, fresh=fresh)


if __name__ == "__main__":
    serve(run_case)
