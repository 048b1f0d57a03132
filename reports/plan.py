"""Say what a checkpoint conversion will do, or did: as text for people and as JSON for programs."""

from __future__ import annotations

import sys
import time
from typing import Any

from ..migrate.convert import Result
from ..migrate.formats.record import PARTS
from ..migrate.plan import DROP, KEEP, REFUSE, RESTORE, Entry, Plan, few


def plan_text(plan: Plan) -> str:
    """The whole plan: a line for every tensor, then the totals of both sides."""
    rows = [_row(entry) for entry in plan.entries]
    rows += [("unfilled", "", "", "", f"→ {name}") for name in plan.unfilled]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row[:4], widths, strict=True)) + f"  {row[4]}"
        for row in rows
    ]
    return "\n".join([*(line.rstrip() for line in lines), "", _totals(plan), *_remarks(plan)])


def result_text(result: Result) -> str:
    """A few lines: how much went where, what was dropped and why, what casts lost, what else the source holds."""
    plan = result.plan
    head = (
        f"{plan.source} → {result.destination}: {_count(len(plan.written), 'tensor')}, {bytes_text(result.size)}, "
        f"{result.seconds:.2f} s"
    )
    return "\n".join([head, _totals(plan), *_lost(result), *_remarks(plan)])


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain values; `tensors` lists every entry in the order of the checkpoint.

    note: what the new file notes for the way back (names, shapes, aliases, counters), or null. beside: the keys of the
    training state in a torch file.
    """
    back = plan.framework == "torch"
    return {
        "source": plan.source,
        "wrapper": plan.checkpoint.wrapper,
        "prefix": plan.checkpoint.prefix,
        "not_converted": plan.checkpoint.others,
        "classes_from": plan.classes_from,
        "from": plan.checkpoint.framework,
        "to": plan.framework,
        "format": plan.checkpoint.format,
        "totals": {**plan.totals, "read": _read(plan), "written": len(plan.written), "bytes": plan.nbytes},
        "into": None
        if plan.into is None
        else {"net": plan.into, "parameters": plan.parameters, "unfilled": plan.unfilled},
        "notes": plan.notes,
        "note": {part: plan.record.get(part, {}) for part in PARTS} if plan.record and not back else None,
        "beside": list(plan.record) if plan.record and back else [],
        "tensors": [_entry_json(entry) for entry in plan.entries],
    }


def result_json(result: Result) -> dict[str, Any]:
    """The plan, and where it went: `destination`, `bytes_written`, `seconds`, and `losses`, what casts lost.

    losses: `overflowed` to infinity, `vanished` to zero, became `subnormal`; each is new name -> how many numbers.
    """
    return {
        **plan_json(result.plan),
        "destination": result.destination,
        "bytes_written": result.size,
        "seconds": round(result.seconds, 3),
        "losses": {kind: dict(getattr(result.losses, kind)) for kind in LOSSES},
    }


def bytes_text(count: int) -> str:
    """A number of bytes in the units of disks: `102.5 MB`."""
    amount = float(count)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{count} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.2f} GB"


def _row(entry: Entry) -> tuple[str, str, str, str, str]:
    """Action, torch name, class, dtype and shape, and where it goes or why it does not."""
    tensor = entry.tensor
    about = f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]" if tensor else ""
    if entry.written:
        where = "" if entry.action == KEEP else f"→ {entry.target}"
        if tensor and entry.target_shape != tensor.shape:
            where += f" [{', '.join(map(str, entry.target_shape or ()))}]"
        if entry.dtype is not None:
            where = f"{where or '→'} {entry.dtype}"
        if entry.action == RESTORE:
            where += f" ({entry.why})"
    else:
        where = entry.why or ""
    return entry.action, entry.name, entry.owner, about, where


NAMES = {"torch": "torch", "mindspore": "MindSpore"}


def _read(plan: Plan) -> int:
    """How many tensors the source holds."""
    return sum(entry.action != RESTORE for entry in plan.entries)


def _totals(plan: Plan) -> str:
    """Both sides in one line: what became of the tensors that were read, and how the other side is filled."""
    parts = ", ".join(f"{action} {count}" for action, count in plan.totals.items() if count)
    there, here = NAMES[plan.checkpoint.framework], NAMES[plan.framework]
    line = f"{there} {_read(plan)}: {parts}; {here} {len(plan.written)}"
    if plan.parameters is not None:
        filled = plan.parameters - len(plan.unfilled)
        line += f", filling {filled} of {plan.parameters} parameters of {plan.into}"
    return line


def _remarks(plan: Plan) -> list[str]:
    """What was dropped (a line for each reason), restored and cast, the prefix, notes, and what else there is."""
    reasons: dict[str, list[str]] = {}
    casts: dict[str, int] = {}
    for entry in plan.entries:
        if entry.action == DROP:
            noted = any(entry.name in (plan.record or {}).get(part, {}) for part in ("aliases", "counters"))
            why = (entry.why or "") + (", noted for the way back" if noted else "")
            reasons.setdefault(why, []).append(entry.name)
        if entry.dtype is not None and entry.tensor is not None:
            cast = f"{entry.tensor.dtype} to {entry.dtype}"
            casts[cast] = casts.get(cast, 0) + 1
    lines = [f"dropped {_names(names)}: {why}" for why, names in reasons.items()]
    restored = [entry.target or "" for entry in plan.entries if entry.action == RESTORE]
    if restored:
        lines.append(f"restored {_names(restored)}: noted by an earlier conversion")
    lines += [f"cast from {cast}: {_count(count, 'tensor')}" for cast, count in casts.items()]
    if plan.record and plan.framework == "torch":
        lines.append(f"beside the weights, which are under 'model': {', '.join(plan.record)}")
    if plan.checkpoint.wrapper is not None:
        lines.append(f"the state dict was found under '{plan.checkpoint.wrapper}'")
    if plan.checkpoint.prefix:
        lines.append(f"taken off every name: '{plan.checkpoint.prefix}'")
    lines += [f"note: {note}" for note in plan.notes]
    if plan.checkpoint.others:
        found = ", ".join(f"{name} ({what})" for name, what in list(plan.checkpoint.others.items())[:12])
        more = len(plan.checkpoint.others) - 12
        lines.append(f"not converted: {found}" + (f" and {more} more" if more > 0 else ""))
    if any(entry.action == REFUSE for entry in plan.entries):
        lines.append("refused tensors stand in the way of the whole conversion")
    return lines


LOSSES = {"overflowed": "overflowed to infinity", "vanished": "vanished to zero", "subnormal": "became subnormal"}


def _lost(result: Result) -> list[str]:
    """What casts lost, a line for each kind: how many numbers, in which tensors."""
    lines = []
    for kind, words in LOSSES.items():
        counts: dict[str, int] = getattr(result.losses, kind)
        if counts:
            where = few([f"{name} ({count:,})" for name, count in counts.items()], 4, ", ")
            lines.append(f"lost in the cast: {_count(sum(counts.values()), 'number')} {words}: {where}")
    return lines


def _names(names: list[str]) -> str:
    """`fc.bias`, or `53 × num_batches_tracked` when all end alike."""
    ends = {name.rpartition(".")[2] for name in names}
    if len(names) == 1:
        return names[0]
    if len(ends) == 1:
        return f"{len(names)} × {ends.pop()}"
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _entry_json(entry: Entry) -> dict[str, Any]:
    tensor = entry.tensor
    return {
        "action": entry.action,
        "name": entry.name,
        "target": entry.target,
        "class": entry.owner,
        "dtype": tensor.dtype if tensor else None,
        "target_dtype": entry.piece.dtype if entry.written else None,
        "shape": list(tensor.shape) if tensor else None,
        "target_shape": None if entry.target_shape is None else list(entry.target_shape),
        "bytes": tensor.nbytes if tensor else None,
        "why": entry.why,
    }


class LateProgress:
    """A progress bar on stderr that shows itself only on a terminal and only once the work has taken a second.

    Called with (bytes written so far, bytes in all); a context manager, so that the bar is gone at the end.
    """

    def __init__(self) -> None:
        self.shown_from = time.monotonic() + 1 if sys.stderr.isatty() else float("inf")
        self.bar: Any = None

    def __enter__(self) -> LateProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() < self.shown_from:
            return
        if self.bar is None:
            from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

            from .terminal import Console

            columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
            self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task("", total=total)
            self.bar.start()
        self.bar.update(self.task, completed=done, total=total)
