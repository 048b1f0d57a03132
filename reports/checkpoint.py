"""A checkpoint's contents; a conversion's plan and result."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..migrate.checkpoint.convert import Result
from ..migrate.checkpoint.formats.reader import PARTS, Checkpoint
from ..migrate.checkpoint.formats.reader import shown as shown_name
from ..migrate.checkpoint.inspect_file import StoredSource
from ..migrate.checkpoint.plan import DROP, KEEP, REFUSE, RESTORE, Entry, Plan, few
from ..printable import bytes_text, count_text, printable_lines

if TYPE_CHECKING:
    from ..migrate.checkpoint.inspect_file import Facts, Sum

FIRST = 20  # tensors that are listed unless --all
WIDE = 10_000  # characters; outside of a terminal nothing is cut to a width


def inspect_json(facts: Facts) -> dict[str, Any]:
    """The facts as plain values.

    path, format ("torch zip"), size (bytes of all files), files (their number)
    framework       "torch" or "mindspore": whose names these are; null where it is not clear which state dict is meant
    wrapper         the key that the state dict was found under, or null; prefix: what was taken off every name
    total           tensors, elements, bytes; what is tied counts once in elements and bytes
    dtypes          dtype -> tensors, elements, bytes, each tied tensor once
    groups          of the top-level modules: name ("" for what is in none), tensors, elements, bytes, and classes:
                    class of a module, as file or structure tells -> number of modules
    tied            lists of names whose tensors are the same bytes
    refused         name -> why the tensor cannot be read
    others          what else the file holds -> a short description
    note            what an earlier conversion noted for the way back (names, shapes, aliases, counters), or null
    ambiguous       null, or why it is not clear which state dict is meant; then nested has key -> tensors, elements,
                    bytes
    compared        bytes that were compared with the file's checksums, 0 where it has none; null without --crc
    source          the source file that the checkpoint names as its model's, null where it names none: path, its
                    SHA-256 at training (then) and now, each null where it is not known, and trust: for --trust-source
    tensors         all of them, in the order of the file: name, dtype, shape, elements, bytes, class
    """
    checkpoint = facts.checkpoint
    record = checkpoint.record if checkpoint else None
    return {
        "path": facts.path,
        "format": facts.format,
        "size": facts.size,
        "files": facts.files,
        "framework": checkpoint.framework if checkpoint else None,
        "wrapper": checkpoint.wrapper if checkpoint else None,
        "prefix": checkpoint.prefix if checkpoint else "",
        "total": _sum(facts.total),
        "dtypes": {dtype: _sum(found) for dtype, found in facts.dtypes.items()},
        "groups": [{"name": group.name, **_sum(group.sum), "classes": dict(group.classes)} for group in facts.groups],
        "tied": [list(names) for names in facts.tied],
        "refused": dict(checkpoint.refused) if checkpoint else {},
        "others": dict(checkpoint.others) if checkpoint else {},
        "note": None if record is None else {part: record.get(part, {}) for part in PARTS},
        "ambiguous": facts.ambiguous,
        "nested": {key: _sum(found) for key, found in facts.nested.items()},
        "compared": facts.compared,
        "source": _source(facts.source),
        "tensors": [
            {
                "name": name,
                "dtype": tensor.dtype,
                "shape": list(tensor.shape),
                "elements": tensor.nbytes // tensor.item_size,
                "bytes": tensor.nbytes,
                "class": facts.classes[name],
            }
            for name, tensor in (checkpoint.tensors.items() if checkpoint else ())
        ],
    }


def _source(source: StoredSource | None) -> dict[str, str | None] | None:
    if source is None:
        return None
    trust = None if source.trusting is None else source.trusting[1]
    return {"path": source.path, "then": source.then, "now": source.now, "trust": trust}


def _sum(total: Sum) -> dict[str, int]:
    return {"tensors": total.tensors, "elements": total.elements, "bytes": total.nbytes}


def inspection_text(facts: Facts, *, whole: bool, width: int = 0) -> str:
    """The page; `whole` lists all modules and tensors instead of the first ones. width: the terminal's, 0 for none."""
    most = None if whole else FIRST
    lines = _head(facts)
    if facts.checkpoint is None:
        rows = [(key, *_numbers(found)) for key, found in facts.nested.items()]
        return printable_lines("\n".join([*lines, *_table(("key", "tensors", "elements", "bytes"), rows, most, width)]))
    groups = [
        (group.name or "(in none)", *_numbers(group.sum), ", ".join(_times(*item) for item in group.classes.items()))
        for group in facts.groups
    ]
    lines += _table(("module", "tensors", "elements", "bytes", "classes"), groups, most, width)
    tensors = [
        (name, tensor.dtype, _shape(tensor.shape), f"{tensor.nbytes:,}", facts.classes[name])
        for name, tensor in facts.checkpoint.tensors.items()
    ]
    lines += _table(("tensor", "dtype", "shape", "bytes", "class"), tensors, most, width)
    return printable_lines("\n".join(lines))


def _head(facts: Facts) -> list[str]:
    """The lines above the tables."""
    checkpoint = facts.checkpoint
    parts = [facts.format, f"{NAMES[checkpoint.framework]}'s names" if checkpoint else "", bytes_text(facts.size)]
    lines = [f"{facts.path}: {', '.join(part for part in parts if part)}"]
    if facts.compared is not None:
        right = f"the checksums of {bytes_text(facts.compared)} are right"
        lines.append(right if facts.compared else "it has no checksums")
    if checkpoint is None:
        return [*lines, facts.ambiguous or ""]
    total = facts.total
    dtypes = ", ".join(f"{dtype} {bytes_text(found.nbytes)}" for dtype, found in facts.dtypes.items())
    lines.append(f"{total.tensors:,} tensors, {total.elements:,} elements, {bytes_text(total.nbytes)}: {dtypes}")
    if checkpoint.wrapper is not None:
        lines.append(f"the state dict was found under '{checkpoint.wrapper}'")
    if checkpoint.prefix:
        lines.append(f"taken off every name: '{checkpoint.prefix}'")
    if checkpoint.others:
        lines.append(
            "also in the file: " + few([f"{name} ({what})" for name, what in checkpoint.others.items()], 12, ", ")
        )
    if facts.tied:
        lines.append("tied: " + few([" = ".join(names) for names in facts.tied], 8, ", "))
    lines += [f"refused: {name}: {why}" for name, why in checkpoint.refused.items()]
    return lines + _note(checkpoint) + _named(facts.source)


def _named(source: StoredSource | None) -> list[str]:
    """The file that the net would be imported from, and what to add to a command so that it is imported."""
    if source is None:
        return []
    lines = [f"its model's source: {shown_name(source.path)}, {source.words}"]
    if source.then is not None and source.then != source.now:
        lines.append(f"  at training it was sha256:{source.then}")
    return lines if source.trusting is None else [*lines, f"  to have it imported, add: {shlex.join(source.trusting)}"]


def _note(checkpoint: Checkpoint) -> list[str]:
    """What an earlier conversion noted, in one line."""
    record = checkpoint.record or {}
    words = {"names": "name", "shapes": "shape", "aliases": "tied name", "counters": "counter"}
    parts = [count_text(len(record[part]), word) for part, word in words.items() if record.get(part)]
    return [f"noted by an earlier conversion, for the way back: {', '.join(parts)}"] if parts else []


def _numbers(total: Sum) -> tuple[str, str, str]:
    return f"{total.tensors:,}", f"{total.elements:,}", f"{total.nbytes:,}"


def _times(label: str, count: int) -> str:
    return label if count == 1 else f"{count} × {label}"


def _shape(shape: Iterable[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


NUMBERS = ("tensors", "elements", "bytes")  # columns that are aligned to the right


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], most: int | None, width: int) -> list[str]:
    """An empty line and a table of the first rows; nothing where there are none."""
    from rich.table import Table
    from rich.text import Text

    from .terminal import Console

    if not rows:
        return []
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in head:
        table.add_column(name, justify="right" if name in NUMBERS else "left", overflow="fold")
    for row in rows[:most]:
        table.add_row(*map(Text, row))
    console = Console(width=width or WIDE)
    with console.capture() as captured:
        console.print(table)
    more = [f"… and {len(rows) - most:,} more (--all)"] if most is not None and len(rows) > most else []
    return ["", *(line.rstrip() for line in captured.get().splitlines()), *more]


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
        f"{plan.source} → {result.destination}: {count_text(len(plan.written), 'tensor')}, {bytes_text(result.size)}, "
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
    """What was dropped (a line for each reason), restored and cast, the prefix, notes, and what was not converted."""
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
    lines += [f"cast from {cast}: {count_text(count, 'tensor')}" for cast, count in casts.items()]
    if plan.record and plan.framework == "torch":
        lines.append(f"next to the weights, which are under 'model': {', '.join(plan.record)}")
    if plan.checkpoint.wrapper is not None:
        lines.append(f"the state dict was found under '{plan.checkpoint.wrapper}'")
    if plan.checkpoint.prefix:
        lines.append(f"taken off every name: '{plan.checkpoint.prefix}'")
    lines += [f"note: {note}" for note in plan.notes]
    if plan.checkpoint.others:
        others = [f"{name} ({what})" for name, what in plan.checkpoint.others.items()]
        lines.append("not converted: " + few(others, 12, ", "))
    if any(entry.action == REFUSE for entry in plan.entries):
        lines.append("nothing is converted while a tensor is refused")
    return lines


LOSSES = {"overflowed": "overflowed to infinity", "vanished": "vanished to zero", "subnormal": "became subnormal"}


def _lost(result: Result) -> list[str]:
    """What casts lost, a line for each kind: how many numbers, in which tensors."""
    lines = []
    for kind, words in LOSSES.items():
        counts: dict[str, int] = getattr(result.losses, kind)
        if counts:
            where = few([f"{name} ({count:,})" for name, count in counts.items()], 4, ", ")
            lines.append(f"lost in the cast: {count_text(sum(counts.values()), 'number')} {words}: {where}")
    return lines


def _names(names: list[str]) -> str:
    """`fc.bias`, or `53 × num_batches_tracked` when all end alike."""
    ends = {name.rpartition(".")[2] for name in names}
    if len(names) == 1:
        return names[0]
    if len(ends) == 1:
        return f"{len(names)} × {ends.pop()}"
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


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
