"""What README.md and README_CN.md have in common, and a stamp that says which English text the Chinese one translates.

    python tests/readmes.py        # writes the stamp anew, once README_CN.md says what README.md says

The two agree block by block: the same headings, code, tables, lists and paragraphs in the same order, and in each block
the same pieces of code, links and numbers. Numbers are digits: where one language writes a word, so does the other.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README_CN.md"
SWITCH = {"README.md": "English | [简体中文](README_CN.md)", "README_CN.md": "[English](README.md) | 简体中文"}
STAMP = Path(__file__).with_name("readme_cn_of.txt")  # README.md as it was when README_CN.md was translated
COMMENT = re.compile(r"\s+# .*")
SPAN = re.compile(r"`([^`]+)`")
TARGET = re.compile(r"\]\(([^)]*)\)")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Block:
    """One block of Markdown. kind: `#` to `######`, code, shell (indented), table, item or text. line: its number."""

    kind: str
    lines: tuple[str, ...]
    line: int


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a document in their order."""
    kept: list[str] = []
    start, fenced = 1, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if fenced:
            kept.append(line)
            if line.startswith("```"):
                yield Block("code", tuple(kept), start)
                kept, fenced = [], False
            continue
        begins = line.startswith(("```", "- ", "#"))
        if kept and (begins or not line.strip()):
            yield Block(_kind(kept), tuple(kept), start)
            kept = []
        if line.strip():
            start = start if kept else number
            kept.append(line)
            fenced = line.startswith("```")


def _kind(lines: list[str]) -> str:
    if lines[0].startswith("#"):
        return lines[0].partition(" ")[0]
    return "item" if lines[0].startswith("- ") else "table" if lines[0].startswith("|") else (
        "shell" if lines[0].startswith("    ") else "text"
    )  # fmt: skip


def facts(text: str) -> Counter[str]:
    """What a translation leaves alone: pieces of code, targets of links, numbers."""
    bare = TARGET.sub("]", SPAN.sub("", text))
    found = [*(f"`{span}`" for span in SPAN.findall(text)), *TARGET.findall(text), *NUMBER.findall(bare)]
    return Counter(found)


def differences(english: str, chinese: str) -> list[str]:
    """Where the two do not agree, the first of each kind of trouble that makes the rest of the list useless."""
    for one, other in zip_longest(blocks(english), blocks(chinese)):
        if one is None or other is None or one.kind != other.kind:
            return [*_all(english, chinese), f"{_place(one)}, but {_place(other)}"]
    return _all(english, chinese)


def _place(block: Block | None) -> str:
    return "the end" if block is None else f"line {block.line} is {block.kind}: {block.lines[0][:60]}"


def _all(english: str, chinese: str) -> list[str]:
    found = []
    for one, other in zip(blocks(english), blocks(chinese), strict=False):
        if one.kind != other.kind:
            break
        place = f"line {one.line} and line {other.line}"
        if one.kind == "code" and one.lines != other.lines:
            found.append(f"{place}: the code is not the same")
        elif one.kind == "shell" and _commands(one) != _commands(other):
            found.append(f"{place}: the commands are not the same")
        elif one.kind == "table":
            found += [f"{place}: {said}" for said in _table(one, other)]
        elif one.kind not in ("code", "shell"):
            found += [f"{place}: {said}" for said in _unlike(" ".join(one.lines), " ".join(other.lines))]
    return found


def _commands(block: Block) -> list[str]:
    return [COMMENT.sub("", line) for line in block.lines]


def _unlike(one: str, other: str) -> list[str]:
    if other in SWITCH.values() or one in SWITCH.values():
        return []
    left, right = facts(one), facts(other)
    return [f"only English: {dict(left - right)}, only Chinese: {dict(right - left)}"] if left != right else []


def _table(one: Block, other: Block) -> list[str]:
    rows, others = ([_cells(line) for line in block.lines] for block in (one, other))
    if [len(row) for row in rows] != [len(row) for row in others]:
        return [f"a table of {len(rows)} rows, and one of {len(others)}, or of other columns"]
    cells = ((a, b) for row, twin in zip(rows, others, strict=True) for a, b in zip(row, twin, strict=True))
    return [said for a, b in cells for said in _unlike(a, b)] + [
        f"a cell is empty on one side: {a or b}"
        for row, twin in zip(rows, others, strict=True)
        for a, b in zip(row, twin, strict=True)
        if bool(a) != bool(b)
    ]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def stamp(english: str) -> str:
    """A line for each section of the English text, with the digest of what it says."""
    sections: dict[str, list[str]] = {}
    name = ""
    for block in blocks(english):
        if block.kind in ("#", "##", "###"):
            name = block.lines[0].lstrip("# ")
        sections.setdefault(name, []).extend(block.lines)
    said = {name: " ".join(" ".join(lines).split()) for name, lines in sections.items()}  # how lines break is no matter
    return "".join(f"{hashlib.sha256(text.encode()).hexdigest()[:12]} {name}\n" for name, text in said.items())


def main() -> None:
    STAMP.write_text(stamp(ENGLISH.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
