"""Whatever a name holds, a terminal shows it: it is no command to the terminal, and no markup."""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Callable
from pathlib import Path

import house_rules
import made_up_reports
import pytest
from msmigrate.printable import echo, json_line, printable, printable_lines
from msmigrate.reports import parity_terminal
from msmigrate.reports.html.parity_page import page
from msmigrate.reports.parity_ci import junit, markdown
from msmigrate.reports.terminal import Console, TextColumn
from rich.padding import Padding
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

CHECKOUT = Path(__file__).parent.parent.parent
# what clears a screen, names a window, turns a line around, ends one, rings, is half of a character or not seen at all
NAMES = (
    *("\x1b[2Jx", "\x1b]0;x\x07", "\x9b2J", "\u202ex", "a\u2028b", "a\x85b"),
    *("\x07", "\0", "\ud800", "\u200bx", "\u2066"),
)


def seen(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def shown(what: Callable[[Console], None], **options: object) -> str:
    file = io.StringIO()
    what(Console(file=file, width=100, **options))
    return file.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_what_a_terminal_would_obey_is_escaped_wherever_it_stands(name: str) -> None:
    table = Table("name", title=name, caption=name)
    table.add_column(name)
    table.add_row(name, Text(name, "red"))
    for what in (name, Text(name), Padding(name, 1), table):
        text = shown(lambda console, what=what: console.print(what))
        assert seen(text), text
    assert seen(printable(name)) and printable(name).isprintable()
    assert json.loads(json_line({name: [name]})) == {name: [name]} and json_line(name).isprintable()


def test_a_name_is_no_markup_and_no_picture() -> None:
    table = Table("[red]a[/red]", title="[red]b[/red]")
    table.add_row("[/]", ":smile:")
    text = shown(lambda console: console.print("[bold]c[/bold]", table))
    assert all(word in text for word in ("[red]a[/red]", "[red]b[/red]", "[bold]c[/bold]", "[/]", ":smile:"))
    with Progress(TextColumn("{task.description}"), console=Console(file=io.StringIO())) as progress:
        progress.add_task("[/]\x1b[2J", total=1)


def test_colours_and_the_movement_of_progress_bars_stay() -> None:
    text = shown(lambda console: console.print(Text("a\x1b[2Jb", "bold red")), force_terminal=True)
    assert "\x1b[1;31m" in text and "a\\x1b[2Jb" in text


def test_lines_and_tabs_stay(capsys: pytest.CaptureFixture[str]) -> None:
    echo("a\n\tb\x1b\u3000c\n")
    assert capsys.readouterr().out == "a\n\tb\\x1b\u3000c\n\n"
    assert printable_lines("ä") == "ä" and printable("a\nb") == r"a\nb"


def test_every_form_of_a_report_shows_what_stands_in_it() -> None:
    report = made_up_reports.hostile()
    forms = {
        "terminal": shown(lambda console: parity_terminal.show(report, console)),
        "junit": junit(report),
        "markdown": markdown(report),
        "html": page(report).replace("\t", " "),
    }
    for form, text in forms.items():
        assert seen(text), (form, [line for line in text.split("\n") if not line.isprintable()][:3])
        assert r"\u202e" in text and r"\x1b[2J" in text.replace("&#91;", "[").replace("&#92;", "\\"), form


# That nothing is printed otherwise --------------------------------------------------------------------------------

PRINTS = {  # and to whom
    "printable.py": "the one place",
    "reports/checkpoint.py": "what the console has made",
    "reports/mapping_table.py": "what the console has made",
    "deploy/serving/rest_app.py": "the server's own log",
    "migrate/checkpoint/pattern_worker.py": "the process that asked",
    "training/run/mindspore_worker.py": "the rank's own log",
    "cli/docs_pages.py": "a page of the checkout",
}


def test_all_that_is_printed_goes_through_the_one_place() -> None:
    found = set()
    for file in house_rules.package_files(CHECKOUT):
        here = file.relative_to(CHECKOUT).as_posix()
        names = {name for _, name in house_rules.imports(file, CHECKOUT)}
        called = {ast.unparse(node.func) for node in ast.walk(house_rules.parse(file)) if isinstance(node, ast.Call)}
        assert here == "reports/terminal.py" or not names & {"rich.console.Console", "rich.progress.TextColumn"}, here
        if called & {"print", "click.echo", "click.secho"}:
            found.add(here)
    assert found - PRINTS.keys() == set(), "print with printable.echo"
