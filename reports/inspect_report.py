"""Say what a checkpoint holds: as a page for people and as JSON for programs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from ..migrate.formats.contents import Checkpoint
from ..migrate.formats.contents import shown as shown_name
from ..migrate.formats.record import PARTS
from ..migrate.inspect_file import Facts, Sum
from ..migrate.plan import few
from ..migrate.stored_source import StoredSource
from ..printable import echo
from .plan import NAMES, bytes_text

FIRST = 20  # tensors that are listed unless all are asked for
WIDE = 10_000  # letters; elsewhere than in a terminal nothing is cut to its width


def inspect_json(facts: Facts) -> dict[str, Any]:
    """The facts as plain values.

    path, format ("torch zip"), size (bytes of all files), files (their number)
    framework       "torch" or "mindspore": whose names these are; null where it is not clear which state dict is meant
    wrapper         the key that the state dict was found under, or null; prefix: what was taken off every name
    total           tensors, elements, bytes; what is tied counts once in elements and bytes
    dtypes          dtype -> tensors, elements, bytes, each tied tensor once
    groups          of the top-level modules: name ("" for what stands in none), tensors, elements, bytes, and classes:
                    class of a module, as file or structure tells -> number of modules
    tied            lists of names whose tensors are the same bytes
    refused         name -> why the tensor cannot be read
    others          what else the file holds -> a short description
    note            what an earlier conversion noted for the way back (names, shapes, aliases, counters), or null
    ambiguous       null, or why it is not clear which state dict is meant; then nested has key -> tensors, elements,
                    bytes
    compared        bytes that were compared with the file's checksums, 0 where it has none; null without --crc
    source          the file of source that the checkpoint names as its model's, null where it names none: path, its
                    SHA-256 at training (then) and now, each null where it is not known, and trust: for --trust-source
    tensors         all of them, in the order of the file: name, dtype, shape, elements, bytes, class
    """
    held = facts.checkpoint
    record = held.record if held else None
    return {
        "path": facts.path,
        "format": facts.format,
        "size": facts.size,
        "files": facts.files,
        "framework": held.framework if held else None,
        "wrapper": held.wrapper if held else None,
        "prefix": held.prefix if held else "",
        "total": _sum(facts.total),
        "dtypes": {dtype: _sum(found) for dtype, found in facts.dtypes.items()},
        "groups": [{"name": group.name, **_sum(group.sum), "classes": dict(group.classes)} for group in facts.groups],
        "tied": [list(names) for names in facts.tied],
        "refused": dict(held.refused) if held else {},
        "others": dict(held.others) if held else {},
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
            for name, tensor in (held.tensors.items() if held else ())
        ],
    }


def _source(found: StoredSource | None) -> dict[str, str | None] | None:
    if found is None:
        return None
    trust = None if found.trusting is None else found.trusting[1]
    return {"path": found.path, "then": found.then, "now": found.now, "trust": trust}


def _sum(found: Sum) -> dict[str, int]:
    return {"tensors": found.tensors, "elements": found.elements, "bytes": found.nbytes}


def show_inspection(facts: Facts, *, whole: bool) -> None:
    """Print the page; `whole` lists all modules and tensors instead of the first ones."""
    for line in _head(facts):
        echo(line)
    most = None if whole else FIRST
    if facts.checkpoint is None:
        rows = [(key, *_numbers(found)) for key, found in facts.nested.items()]
        _table(("key", "tensors", "elements", "bytes"), rows, most)
        return
    groups = [
        (group.name or "(in none)", *_numbers(group.sum), ", ".join(_times(*item) for item in group.classes.items()))
        for group in facts.groups
    ]
    _table(("module", "tensors", "elements", "bytes", "classes"), groups, most)
    tensors = [
        (name, held.dtype, _shape(held.shape), f"{held.nbytes:,}", facts.classes[name])
        for name, held in facts.checkpoint.tensors.items()
    ]
    _table(("tensor", "dtype", "shape", "bytes", "class"), tensors, most)


def _head(facts: Facts) -> list[str]:
    """What stands above the tables."""
    held = facts.checkpoint
    parts = [facts.format, f"{NAMES[held.framework]}'s names" if held else "", bytes_text(facts.size)]
    lines = [f"{facts.path}: {', '.join(part for part in parts if part)}"]
    if facts.compared is not None:
        right = f"the checksums of {bytes_text(facts.compared)} are right"
        lines.append(right if facts.compared else "it has no checksums")
    if held is None:
        return [*lines, facts.ambiguous or ""]
    total = facts.total
    dtypes = ", ".join(f"{dtype} {bytes_text(found.nbytes)}" for dtype, found in facts.dtypes.items())
    lines.append(f"{total.tensors:,} tensors, {total.elements:,} elements, {bytes_text(total.nbytes)}: {dtypes}")
    if held.wrapper is not None:
        lines.append(f"the state dict was found under '{held.wrapper}'")
    if held.prefix:
        lines.append(f"taken off every name: '{held.prefix}'")
    if held.others:
        lines.append("also in the file: " + few([f"{name} ({what})" for name, what in held.others.items()], 12, ", "))
    if facts.tied:
        lines.append("tied: " + few([" = ".join(names) for names in facts.tied], 8, ", "))
    lines += [f"refused: {name}: {why}" for name, why in held.refused.items()]
    return lines + _note(held) + _named(facts.source)


def _named(found: StoredSource | None) -> list[str]:
    """The file that the net would be imported from, and what to add to a command so that it is."""
    if found is None:
        return []
    lines = [f"its model's source: {shown_name(found.path)}, {found.words}"]
    if found.then is not None and found.then != found.now:
        lines.append(f"  at training it was sha256:{found.then}")
    return lines if found.trusting is None else [*lines, f"  to have it imported, add: {shlex.join(found.trusting)}"]


def _note(held: Checkpoint) -> list[str]:
    """What an earlier conversion noted, in one line."""
    record = held.record or {}
    words = {"names": "name", "shapes": "shape", "aliases": "tied name", "counters": "counter"}
    parts = [_count(len(record[part]), word) for part, word in words.items() if record.get(part)]
    return [f"noted by an earlier conversion, for the way back: {', '.join(parts)}"] if parts else []


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _numbers(found: Sum) -> tuple[str, str, str]:
    return f"{found.tensors:,}", f"{found.elements:,}", f"{found.nbytes:,}"


def _times(label: str, count: int) -> str:
    return label if count == 1 else f"{count} × {label}"


def _shape(shape: Iterable[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


NUMBERS = ("tensors", "elements", "bytes")  # columns that stand to the right


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], most: int | None) -> None:
    """Print a table of the first rows after an empty line; nothing where there are none."""
    from rich.table import Table
    from rich.text import Text

    from .terminal import Console

    if not rows:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in head:
        table.add_column(name, justify="right" if name in NUMBERS else "left", overflow="fold")
    for row in rows[:most]:
        table.add_row(*map(Text, row))
    console = Console(width=None if sys.stdout.isatty() else WIDE)
    with console.capture() as captured:
        console.print(table)
    print()
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))
    if most is not None and len(rows) > most:
        echo(f"… and {len(rows) - most:,} more (--all)")
