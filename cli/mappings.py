"""The commands mappings and explain: the table of counterparts, and the pages of its faults."""

from __future__ import annotations

import click

from ..printable import echo, json_line
from .options import mappings_option, mindspore_version_option


@click.command("mappings")
@click.argument("name", required=False)
@click.option("--kind", metavar="KIND", help="Only the rows of one kind, such as layer, loss or optimizer.")
@mappings_option
@mindspore_version_option
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON, with every argument and pitfall.")
def mappings(name: str | None, kind: str | None, as_json: bool) -> None:
    """Print what corresponds in torch and MindSpore: the table, or the row of NAME with its pitfalls.

    NAME is a name of torch's as you write it: torch.nn.Conv2d, nn.Conv2d, Conv2d, F.relu, Tensor.view; or one of
    MindSpore's, whose rows are then all printed: nn.Dense, ops.cat, mint.nn.Linear, nn.cosine_decay_lr.

    Exit code: 0 printed, 2 there is no such row, or wrong usage.
    """
    from ..mappings import aliases, table
    from ..reports import mapping_table

    if name is not None and kind is not None:
        raise click.UsageError("NAME or --kind, not both.")
    rows = table.rows(kind) if name is None else aliases.lookup(name)
    if as_json:
        echo(json_line(mapping_table.as_json(rows)))
    else:
        mapping_table.show(rows, whole=name is not None)


@click.command("explain")
@click.argument("fault", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def explain(fault: str | None, as_json: bool) -> None:
    """Explain a fault that parity-step named: both sides, where it shows, the fix, the smallest example.

    Without FAULT, list every fault that is known.

    Exit code: 0 printed, 2 there is no such fault, or wrong usage.
    """
    from ..mappings import table
    from ..reports import mapping_table
    from ..reports.terminal import Console

    chosen = list(table.faults().values()) if fault is None else [mapping_table.find(fault)]
    if as_json:
        echo(json_line(mapping_table.fault_json(chosen)))
    elif fault is None:
        mapping_table.show_all(Console())
    else:
        mapping_table.show_fault(chosen[0], Console())
