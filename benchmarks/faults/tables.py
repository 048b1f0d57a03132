"""The tables of the fault benchmark, in markdown: every fault in every net, the shares, false alarms and misses."""

from __future__ import annotations

from typing import Any

from fixes import application
from plan import FOREIGN, NETS
from scoring import describe, entries


def show(runs: list[Any]) -> int:
    """Print the tables; 1 when something was not detected, crashed, or was red without a fault."""
    single = [run for run in runs if len(run.planted) == 1]
    show_faults(single)
    strange = [run for run in single if not run.planted[0].causes]
    single = [run for run in single if run.planted[0].causes]
    print("| | runs | detected | right place | right cause |\n|---|---|---|---|---|")
    for title, group in (
        ("one fault, the cause first", single),
        ("one that stands in no table (no cause to name)", strange),
        ("two at once, each", [run for run in runs if len(run.planted) == 2]),
        ("three at once, each", [run for run in runs if len(run.planted) == 3]),
    ):
        scores = [one for run in group for one in run.scores]
        if scores:
            shares = (
                sum(getattr(one, what) for one in scores) / len(scores) for what in ("detected", "placed", "named")
            )
            print(f"| {title} | {len(group)} | {' | '.join(f'{share:.1%}' for share in shares)} |")
    scores = [one for run in single for one in run.scores]
    invented, tested = sum(len(one.invented) for one in scores), sum(one.causes for one in scores)
    print(f"\n{invented} of {tested} tested causes were another fault's, or in another place.")
    for run in single:
        for said in run.scores[0].invented if run.scores else ():
            print(f"- {run.base.name} {run.planted[0].id}: {said}")
    green = [run for run in runs if not run.planted]
    for title, group in (
        ("untouched pairs", [run for run in green if not run.equal]),
        ("believed faults that are equal", [run for run in green if run.equal]),
    ):
        alarms = [run for run in group if run.trouble]
        print(f"\n{len(alarms)} false alarms in {len(group)} runs: {title}." if group else "", end="")
        for run in alarms:
            print(f"\n- {run.base.name} {run.equal}: {run.trouble}", end="")
    mended = show_fixes([run for run in runs if run.planted])
    print("\n\n### Misses\n")
    reasons = {entry["id"]: entry.get("misses", "") for entry in entries()}
    for run in (run for run in runs if run.planted):
        if run.trouble:
            print(f"- {run.base.name} {', '.join(f.id for f in run.planted)}: {run.trouble}")
        for fault, one in zip(run.planted, run.scores, strict=False):
            lacks = [what for what in ("detected", "placed", "named") if not getattr(one, what)]
            if lacks:
                why = f" ({reasons[fault.id]})" if reasons.get(fault.id) else ""
                print(f"- {run.base.name} {fault.id}: not {lacks[0]}: {one.missed}{why}")
    missed = any(run.trouble for run in runs) or any(not one.detected for run in runs for one in run.scores)
    return 1 if missed or not mended else 0


def show_fixes(runs: list[Any]) -> bool:
    """Print what became of the printed fixes, where they were applied; whether each mended what it names."""
    again = [run for run in runs if run.again is not None]
    if not again:
        return True
    mended = [run for run in again if run.again.report.get("parity")]
    print(
        f"\n\n### Printed fixes applied and judged again\n\n{len(again)} of {len(runs)} runs; {len(mended)} agree then."
    )
    for run in again:
        if run not in mended:
            said = run.again.trouble or describe(run.again.report)
            print(f"- {run.base.name} {', '.join(f.id for f in run.planted)}: {_fixes(run)}: {said}")
    print("\nNothing to apply:\n\n| fault | runs | fix | why |\n|---|---|---|---|")
    left: dict[tuple[str, str, str], int] = {}
    for run in runs:
        if run.again is None and run.report.get("causes"):
            first = run.report["causes"][0]
            row = (first["fault"] or ", ".join(fault.id for fault in run.planted), first["fix"], application(first).why)
            left[row] = left.get(row, 0) + 1
    for (fault, fix, why), count in left.items():
        print(f"| {fault} | {count} | {fix} | {why} |")
    return len(mended) == len(again)


def _fixes(run: Any) -> str:
    return "; ".join(cause["fix"] for cause in run.to_apply)


def show_faults(runs: list[Any]) -> None:
    """One line a fault, one column a net: c the cause is right, p the place, d only detected, – missed, × crashed."""
    nets = [net for net in (*NETS, *FOREIGN) if any(run.base.net == net for run in runs)]
    print("| fault | " + " | ".join(nets) + " |\n|---|" + "---|" * len(nets))
    for fault in dict.fromkeys(run.planted[0].id for run in runs):
        cells = []
        for net in nets:
            here = [run for run in runs if run.planted[0].id == fault and run.base.net == net]
            cells.append(" ".join(_mark(run) for run in here))
        print(f"| {fault} | " + " | ".join(cells) + " |")
    print("\nc: the right cause comes first; p: the right place; d: detected; –: missed; ×: does not run\n")


def _mark(run: Any) -> str:
    if not run.scores:
        return "×"
    one = run.scores[0]
    return "c" if one.named and one.placed else "p" if one.placed else "d" if one.detected else "–"
