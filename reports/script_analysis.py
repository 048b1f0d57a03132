"""Say what becomes of a training script in MindSpore: for a terminal, as JSON, as a page, as a draft of its recipe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..errors import MsmigrateError
from ..mappings import table
from ..mappings.rows import MISSING, NOT_RUN, SAME_DISTRIBUTION
from ..migrate.analyze.operators import BY_HAND, COMPOSED, DIRECT, NO_ROW
from ..migrate.analyze.script_analysis import NEVER, Api, ScriptAnalysis, Use
from ..migrate.recipe_draft.draft import draft_recipe
from ..printable import printable
from ..temporary import temporary_folder
from ..training.recipe import reader
from .html import still_page
from .terminal import Console

COLOURS = {DIRECT: "green", COMPOSED: "green", BY_HAND: "yellow", MISSING: "red", NO_ROW: "red"}
MARKS = {DIRECT: "pass", COMPOSED: "pass", BY_HAND: "none", MISSING: "fail", NO_ROW: "fail"}
LEGEND = {
    DIRECT: "MindSpore has it, under the name shown.",
    COMPOSED: "MindSpore lacks it or gets it wrong: msmigrate brings it, and the rewritten call names that.",
    BY_HAND: "It has to be written differently, or one of its arguments has: what to do is shown.",
    MISSING: "MindSpore has nothing for it; the row says what to do instead.",
    NO_ROW: "The mapping table has no row for it: nobody has looked for a counterpart yet.",
}
BRIEF = {NOT_RUN: "not run", SAME_DISTRIBUTION: "distribution"}
SURENESS = {
    "default": "",
    "perhaps": "under a condition that reading cannot decide",
    "option": "only with other arguments than the defaults",
    "uncalled": "in a function that nothing here calls",
    NEVER: 'below `if __name__ == "__main__"` of a file that is only imported, so not run',
}
BY_TORCH = (
    "trains with torch in code of its own, which was not read: a model moves as FILE.py:FUNCTION (msmigrate "
    "convert-model), the loop around it does not; --write-recipe drafts what the script says of a step"
)


def show(analysis: ScriptAnalysis, console: Console, *, whole: bool = False) -> None:
    """Print the verdict, every API, what is missing, the rewritten calls, and the pitfalls; whole: their fixes too."""
    with console.capture() as captured:
        _show(analysis, console, whole)
    console.file.write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")


def _show(analysis: ScriptAnalysis, console: Console, whole: bool) -> None:
    left = any(api.way == BY_HAND for api in analysis.apis)
    console.print(_text(analysis.verdict, f"bold {'red' if analysis.missing else 'yellow' if left else 'green'}"))
    console.print(_text(_conditions(analysis), "dim"))
    known = [api for api in analysis.apis if api.way != NO_ROW]
    if known:
        console.print()
        console.print(_overview(known))
    _list(console, "Missing", ((api.torch, _lacks(api)) for api in analysis.missing if api.way != NO_ROW))
    if analysis.no_row:
        console.print(Text(f"\n{NO_ROW.capitalize()}", "bold"))
        names = ", ".join(f"{api.torch} ({_lines(api.uses, 2)})" for api in analysis.no_row)
        console.print(Padding(_text(names), (0, 0, 0, 2)))
    _calls(console, analysis)
    _list(console, "Pitfalls", ((fault, _pitfall(fault, uses, whole)) for fault, uses in analysis.pitfalls.items()))
    _list(console, "Notes", (("", [note]) for note in notes(analysis)))


def _text(text: str, style: str = "") -> Text:
    """Text of a script, which may hold anything, with what cannot be printed on a line escaped."""
    return Text(printable(text), style)


def _conditions(analysis: ScriptAnalysis) -> str:
    mode = {"pynative": "PyNative", "graph": "graph"}[analysis.mode]
    others = f" with {', '.join(analysis.files[1:])}" if analysis.files[1:] else ""
    return f"read{others}, not run; for MindSpore on {analysis.target}, {mode} mode"


def short(name: str) -> str:
    """The last two parts of a name: nn.Conv2d, Optimizer.step; only the last of msmigrate's own and of long names."""
    two = ".".join(name.split(".")[-2:])
    return name.rpartition(".")[2] if name.startswith("msmigrate.") or len(two) > 31 else two


def _overview(apis: Iterable[Api]) -> Table:
    shown = Table("API", "MindSpore", "", "line", box=None, pad_edge=False, header_style="dim")
    for column in shown.columns[:3]:
        column.no_wrap = True
    shown.columns[3].overflow = "fold"
    file = ""
    for api in apis:
        if api.uses[0].file != file:
            file = api.uses[0].file
            shown.add_row(_text(file, "dim"))
        status = _status(api)
        way = Text.assemble((api.way, COLOURS[api.way]), f", {status}" if status else "")
        lines = _lines(api.uses, 3, file)
        shown.add_row(_text(short(api.torch)), _text(_target(api)), way, _text(lines))
    return shown


def _target(api: Api) -> str:
    return next((short(use.mindspore) for use in api.uses if use.mindspore), "–")


def _status(api: Api) -> str:
    """What the rows' tests found, in short; empty where the counterpart is a description, which no test can run."""
    status = api.uses[0].status
    untested = api.way in (NO_ROW, MISSING) or (api.way == BY_HAND and status == NOT_RUN)
    return "" if untested else BRIEF.get(status, status)


def _lines(uses: Iterable[Use], most: int, file: str = "") -> str:
    """The lines of uses, each with its file where that differs from the one before; file: the one before the first."""
    lines: list[str] = []
    for place in dict.fromkeys((use.file, use.line) for use in uses):
        lines.append(str(place[1]) if place[0] == file else f"{place[0]}:{place[1]}")
        file = place[0]
    return ", ".join(lines[:most]) + (f" and {len(lines) - most} more" if len(lines) > most else "")


def _lacks(api: Api) -> list[str]:
    """Why an API has no counterpart, what to do instead, and where it is used."""
    texts = []
    for use in api.uses:
        if use.way == MISSING:
            texts += [use.refused or use.why or "no counterpart"]
            texts += [use.rewrite] if use.rewrite else []
    bare = [" ".join(text.split()) for text in texts]
    only = f", {SURENESS['option']}" if all(use.certainty in ("option", NEVER) for use in api.uses) else ""
    return [*dict.fromkeys(bare), f"at {_lines(api.uses, 6)}{only}"]


def calls(analysis: ScriptAnalysis) -> list[tuple[str, list[Use]]]:
    """The calls to rewrite, by file; those with the same text in one file once, with all their lines."""
    by_file: dict[str, dict[tuple[str, str | None, str | None], list[Use]]] = {}
    for use in analysis.uses:
        if use.rewritten or use.rewrite or use.notes:
            by_file.setdefault(use.file, {}).setdefault((use.source, use.rewritten, use.rewrite), []).append(use)
    return [(file, [use for group in groups.values() for use in group[:1]]) for file, groups in by_file.items()]


def same_lines(analysis: ScriptAnalysis, use: Use) -> list[int]:
    """The lines of the same call in the same file."""
    return list(
        dict.fromkeys(
            u.line
            for u in analysis.uses
            if (u.file, u.source, u.torch, u.rewrite) == (use.file, use.source, use.torch, use.rewrite)
        )
    )


def _calls(console: Console, analysis: ScriptAnalysis) -> None:
    shown: dict[str, str] = {}  # words -> where they were shown
    for file, uses in calls(analysis):
        console.print(Text(f"\nCalls of {file}", "bold"))
        grid = Table.grid(padding=(0, 1))
        grid.add_column(justify="right", style="dim")
        grid.add_column(width=2)
        grid.add_column(overflow="fold")
        for use in uses:
            lines = same_lines(analysis, use)
            number = str(lines[0]) if len(lines) == 1 else f"{lines[0]}…"
            grid.add_row(number, "", _text(use.source, "dim"))
            if use.rewritten:
                grid.add_row("", Text("→", COLOURS[use.way]), _text(use.rewritten))
            if use.rewrite and use.rewrite in shown:
                grid.add_row("", Text("→", COLOURS[use.way]), _text(f"as {shown[use.rewrite]}", "dim"))
            elif use.rewrite:
                shown[use.rewrite] = use.place
                grid.add_row("", Text("→", COLOURS[use.way]), Text("\n").join(map(_text, use.rewrite.split("\n"))))
            for note in use.notes:
                grid.add_row("", Text("!", "yellow"), _text(note, "yellow"))
            if len(lines) > 1:
                grid.add_row("", "", _text(f"also {', '.join(map(str, lines[1:]))}", "dim"))
        console.print(Padding(grid, (0, 0, 0, 2)))


def _pitfall(fault: str, uses: list[Use], whole: bool) -> list[str]:
    known = table.faults()[fault]
    lines = [f"{' '.join(known.symptom.split())} ({_lines(uses, 3)})"]
    return [*lines, f"fix: {' '.join(known.fix.split())}"] if whole else lines


def _hint(analysis: ScriptAnalysis, module: str, file: str) -> str:
    if other := analysis.in_other_case(module, file):
        return f", but there is {other}: names of files count upper and lower case here"
    place = analysis.defining_file(module)
    return f", but {place} defines it: its package does not hand it on" if place else ""


def notes(analysis: ScriptAnalysis) -> list[str]:
    """What else a reader has to know."""
    lines = list(analysis.unreadable)
    if analysis.not_there:
        named = [(*one, _hint(analysis, *one[:2])) for one in analysis.not_there]
        names = ", ".join(f"{module} ({file}:{line}){hint}" for module, file, line, hint in named)
        lines.append(
            f"imported but not read, because the script's folder has no such file, or the file no such name: {names}"
        )
    lines += [f"{name} {BY_TORCH}" for name in analysis.by_torch]
    for sureness, words in SURENESS.items():
        uses = [use for use in analysis.uses if use.certainty == sureness]
        if words and uses:
            lines.append(f"{words}: {_lines(uses, 12)}")
    if analysis.target == "Ascend":
        lines.append("Ascend: every status is read from MindSpore's documentation; nothing of it ran")
    if analysis.target == "GPU":
        lines.append(
            "GPU: the rows say nothing about it; all that is known is that MindSpore documents the counterpart"
        )
    return lines


def _list(console: Console, title: str, entries: Iterable[tuple[str, list[str]]]) -> None:
    first = True
    for name, lines in entries:
        if first:
            console.print(Text(f"\n{title}", "bold"))
            first = False
        text = Text(name, "bold")
        for index, line in enumerate(lines):
            text.append("\n" if index else ": " if name else "", style="not bold")
            text.append(_text(line, "not bold"))
        console.print(Padding(text, (0, 0, 0, 2)))


def as_json(analysis: ScriptAnalysis) -> dict[str, Any]:
    """The analysis as plain values, the pitfalls with what they say."""
    return {
        "script": analysis.name,
        "mode": analysis.mode,
        "target": analysis.target,
        "verdict": analysis.verdict,
        "moves": not analysis.missing,
        "files": list(analysis.files),
        "missing": [api.torch for api in analysis.missing if api.way != NO_ROW],
        "no_row": [api.torch for api in analysis.no_row],
        "uses": [_plain(use) for use in analysis.uses],
        "pitfalls": {
            fault: {
                "symptom": table.faults()[fault].symptom,
                "fix": table.faults()[fault].fix,
                "places": list(dict.fromkeys(use.place for use in uses)),
            }
            for fault, uses in analysis.pitfalls.items()
        },
        "not_read": [{"module": m, "file": file, "line": line} for m, file, line in analysis.not_there],
        "notes": notes(analysis),
    }


def _plain(use: Use) -> dict[str, Any]:
    content = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(use).items()}
    del content["refused"]  # `notes` have it
    return content


def html(analysis: ScriptAnalysis) -> str:
    """The analysis as one self-contained page, with the draft of its recipe."""
    apis = [
        {
            "api": api,
            "mark": MARKS[api.way],
            "target": next((use.mindspore for use in api.uses if use.mindspore), None),
            "docs": next((use.docs for use in api.uses if use.docs), {}),
            "status": _status(api),
            "lines": _lines(api.uses, 6),
            "lacks": _lacks(api) if api.way == MISSING else [],
        }
        for api in analysis.apis
    ]
    return still_page(
        "script.html.j2",
        analysis=analysis,
        conditions=_conditions(analysis),
        apis=apis,
        files=[(file, [(use, same_lines(analysis, use)) for use in uses]) for file, uses in calls(analysis)],
        counts={way: sum(api.way == way for api in analysis.apis) for way in LEGEND},
        marks=MARKS,
        legend=LEGEND,
        sureness=SURENESS,
        pitfalls=[(fault, table.faults()[fault], _lines(uses, 6)) for fault, uses in analysis.pitfalls.items()],
        notes=notes(analysis),
        recipe=recipe_text(analysis),
    )


def recipe_text(analysis: ScriptAnalysis) -> str:
    """A draft of the script's recipe that the recipe's reader accepts; what it refuses is commented out, with why."""
    with temporary_folder("script") as folder:
        path = folder / "recipe.yaml"

        def check(text: str) -> tuple[int, str] | None:
            path.write_text(text, encoding="utf-8")
            try:
                refused = reader.check(path, draft=True)
            except MsmigrateError as error:
                return 1, str(error)
            return None if refused is None else (refused.line, refused.reason)

        return draft_recipe(analysis, check)
