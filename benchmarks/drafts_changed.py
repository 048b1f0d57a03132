"""Change one thing of a training script at a time, and see whether its draft changes: what is unseen may be lost.

    python benchmarks/drafts_changed.py SCRIPT [--root FOLDER] [--most N] [--seed N] [--kinds constant deletion planted]

constant: a number or a truth value of a statement that the draft has. deletion: such a statement. planted: a line that
changes the model, the optimizer, the loss or gradients, behind a statement that runs and names them. Of each kind N are
drawn. Prints each change that left the draft as it was, up to line numbers, for a person to read, since some train
nothing. FOLDER holds the script's project; it is copied, and never run.
"""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from msmigrate.errors import MsmigrateError
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.migrate.read_script.abstract_values import Constant, LibraryName, ScriptModule
from msmigrate.migrate.recipe_draft.data_flow import INNER, Statement
from msmigrate.migrate.recipe_draft.draft import Draft, draft_recipe
from msmigrate.migrate.recipe_draft.passed_over import Line
from msmigrate.migrate.recipe_draft.roles import GRADIENTS, LOSS, MODEL, OPTIMIZER
from msmigrate.migrate.recipe_draft.statement_verdicts import ASKED, DRAFTED, Account

KINDS = ("constant", "deletion", "planted")
READ = (".py", ".yaml", ".yml", ".json", ".toml", ".cfg")
# arguments that change how quickly a script runs, and not what it computes
QUICKLY = ("non_blocking", "pin_memory", "num_workers", "persistent_workers", "prefetch_factor", "flush", "timeout")
NOT_RUN = ("it runs only", "inside ")  # how the reasons of statements begin that do not run, or are another's part
PLANTED = {
    MODEL: ("next({}.parameters()).data.mul_(2)", "[p.requires_grad_(False) for p in {}.parameters()]", "{}.half()"),
    OPTIMIZER: ("{}.param_groups[0]['lr'] = 0.5", "print({}.state.clear())"),
    LOSS: ("{0} = {0} * 2", "{0} = {0}.clamp(max=1)"),
    GRADIENTS: ("{0} = {0} * 2",),
}


@dataclass(frozen=True)
class Change:
    """One change of a file: the characters from `start` to `end` become `new`."""

    kind: str
    line: Line
    start: int
    end: int
    new: str
    words: str

    @property
    def file(self) -> Path:
        return Path(self.line.statement.source.path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", type=Path)
    parser.add_argument("--root", type=Path, help="the folder of its project (default: its own)")
    parser.add_argument("--most", type=int, default=60, help="changes of a kind (default: 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    arguments = parser.parse_args()
    root = arguments.root or arguments.script.parent
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / root.resolve().name
        shutil.copytree(root, copy, ignore=_unread)
        script = copy / arguments.script.relative_to(root)
        before = _draft(script)
        changes = list(_changes(Draft(analyze_script(script).interpreter).account))
        for kind in arguments.kinds:
            of = [change for change in changes if change.kind == kind]
            Random(arguments.seed).shuffle(of)
            tried = [change for change in of[: arguments.most] if _parses(change)]
            unseen = [change for change in tried if _changed(change, script) == before]
            print(f"{kind}: {len(unseen)} of {len(tried)} left the draft as it was")
            for change in unseen:
                place = ":".join(map(str, change.line.statement.place))
                print(f"    {place} [{change.line.verdict}: {change.line.why}] {change.words}")


def _unread(folder: str, names: list[str]) -> list[str]:
    files = (name for name in names if (Path(folder) / name).is_file() and not name.endswith(READ))
    return [*files, *(name for name in names if name == ".git")]


def _changes(account: Account) -> Iterator[Change]:
    for line in account.lines:
        statement = line.statement
        simple = isinstance(statement.node, (ast.Expr, ast.Assign, ast.AugAssign))
        if line.verdict in (DRAFTED, ASKED):
            quickly = {id(node) for word in _quickly(statement) for node in ast.walk(word)}
            for node in (node for node in statement.nodes if id(node) not in quickly):
                if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
                    yield _change("constant", line, node, repr(_other(node.value)))
            if simple and not re.search(r"\.(to|cuda)\(|device", statement.text):
                yield _change("deletion", line, statement.node, "pass" + "\n" * statement.text.count("\n"))
        if simple and not line.why.startswith(NOT_RUN):
            for name, kind in _named(account, statement):
                for text in PLANTED.get(kind, ()):
                    new = text.format(name)
                    whole = f"{statement.text}\n{' ' * statement.node.col_offset}{new}"
                    yield _change("planted", line, statement.node, whole, f"+ {new}")


def _quickly(statement: Statement) -> list[ast.keyword]:
    return [node for node in statement.nodes if isinstance(node, ast.keyword) and node.arg in QUICKLY]


def _other(value: float) -> float:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value * 1.5 + 0.25 * (value == 0)


def _named(account: Account, statement: Statement) -> Iterable[tuple[str, str]]:
    """The names of a statement that are of one kind alone: model, optimizer, loss or gradients."""
    found = {}
    for node in (node for node in statement.nodes if isinstance(node, ast.Name)):
        kinds = account.kinds(node)
        plain = isinstance(account.flow.value(node), (LibraryName, ScriptModule, Constant))
        plain |= any(one.way == INNER for one in account.flow.reads.get(id(node), ()))  # not there in the next line
        if len(kinds) == 1 and not plain and node.id != "self":
            found[node.id] = next(iter(kinds))
    return found.items()


def _change(kind: str, line: Line, node: ast.stmt | ast.expr, new: str, words: str = "") -> Change:
    lines = Path(line.statement.source.path).read_text(encoding="utf-8").splitlines(keepends=True)

    def at(number: int, column: int) -> int:
        return sum(map(len, lines[: number - 1])) + len(lines[number - 1].encode()[:column].decode())

    start, end = at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0)
    old = " ".join("".join(lines)[start:end].split())
    return Change(kind, line, start, end, new, words or f"{old} -> {new.strip()} in {line.statement.text!r}")


def _text(change: Change) -> str:
    before = change.file.read_text(encoding="utf-8")
    return before[: change.start] + change.new + before[change.end :]


def _parses(change: Change) -> bool:
    try:
        ast.parse(_text(change))
    except SyntaxError:
        return False
    return True


def _changed(change: Change, script: Path) -> str:
    """The draft of the script with this change."""
    before = change.file.read_text(encoding="utf-8")
    change.file.write_text(_text(change), encoding="utf-8")
    try:
        return _draft(script)
    finally:
        change.file.write_text(before, encoding="utf-8")


def _draft(script: Path) -> str:
    """The draft without the numbers of lines, which a planted one moves."""
    try:
        text = draft_recipe(analyze_script(script))
    except MsmigrateError as error:
        return str(error)
    return re.sub(r"(\.py:|line )\d+", r"\1N", text)


if __name__ == "__main__":
    main()
