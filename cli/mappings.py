"""The commands mappings and explain: the table of counterparts, and the pages of its faults."""

from __future__ import annotations

from pathlib import Path

import click

from .inputs import completed
from .options import command, json_option, mappings_option, mindspore_version_option


def _rows() -> list[str]:
    from ..mappings import table

    return [name for row in table.rows() for name in (row.torch, row.torch.removeprefix("torch."), row.short)]


def _faults() -> list[str]:
    from ..mappings import table

    return list(table.faults())


@command("mappings")
@click.argument("name", required=False, shell_complete=lambda ctx, param, word: completed(_rows, word))
@click.option("--kind", metavar="KIND", help="Only the rows of one kind, such as layer, loss or optimizer.")
@mappings_option
@mindspore_version_option
@json_option("The rows with every argument and pitfall")
def mappings(name: str | None, kind: str | None, json_file: Path | None) -> None:
    """Print what corresponds in torch and MindSpore: the table, or the row of NAME with its pitfalls.

    NAME is a name of torch's as you write it: torch.nn.Conv2d, nn.Conv2d, Conv2d, F.relu, Tensor.view; or one of
    MindSpore's, whose rows are then all printed: nn.Dense, ops.cat, mint.nn.Linear, nn.cosine_decay_lr.

    Exit code: 0 printed, 2 there is no such row, or wrong usage.
    """

    from ..mappings import aliases, table
    from ..reports import mapping_table
    from ..workflows.results import only_json

    if name is not None and kind is not None:
        raise click.UsageError("NAME or --kind, not both.")
    rows = table.rows(kind) if name is None else aliases.lookup(name)
    if not only_json(lambda: mapping_table.as_json(rows), json_file):
        mapping_table.show(rows, whole=name is not None)


@command("explain")
@click.argument("fault", required=False, shell_complete=lambda ctx, param, word: completed(_faults, word))
@json_option("The faults")
def explain(fault: str | None, json_file: Path | None) -> None:
    """Explain a fault that parity-step named: both sides, where it shows, the fix, the smallest example.

    Without FAULT, list every fault that is known.

    Exit code: 0 printed, 2 there is no such fault, or wrong usage.
    """
    from ..mappings import table
    from ..reports import mapping_table
    from ..reports.terminal import Console
    from ..workflows.results import only_json

    chosen = list(table.faults().values()) if fault is None else [mapping_table.find(fault)]
    if only_json(lambda: mapping_table.fault_json(chosen), json_file):
        return
    if fault is None:
        mapping_table.show_all(Console())
    else:
        mapping_table.show_fault(chosen[0], Console())
