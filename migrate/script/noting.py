"""What a reader keeps on its way: every use of a library, how surely it runs, and in which loops."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ...printable import shortened
from . import names
from .values import Argument, Name, Scope, Seen, Value

# how surely a call runs
DEFAULT = "default"  # with the arguments' defaults
PERHAPS = "perhaps"  # under a condition that cannot be told
UNCALLED = "uncalled"  # in a function that nothing that was read calls
OPTION = "option"  # only with other arguments than the defaults
SURENESS = (DEFAULT, PERHAPS, UNCALLED, OPTION)
LONGEST = 300  # letters of a condition
BUDGET = 100_000  # steps of reading; a script of a thousand lines takes some ten thousand


class Notes:
    """The uses of libraries that were seen, and where the reader is."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.certainty = DEFAULT
        self.conditions: list[str] = []
        self.tests: list[tuple[ast.expr, Scope]] = []
        self.loops: list[str] = []
        self.spent = 0  # of the budget

    def note(
        self, name: str, node: ast.expr, scope: Scope, arguments: list[Argument] | None, receiver: Any = None
    ) -> Seen:
        """Keep one use of a library."""
        self.spent += 6 + scope.source.length(node) // 32  # its text is written, and rewritten
        seen = Seen(
            name=name,
            source=scope.source,
            node=node,
            arguments=arguments,
            certainty=self.certainty,
            condition=" and ".join(self.conditions) or None,
            loops=tuple(self.loops),
            order=len(self.seen),
            receiver=receiver,
            tests=tuple(self.tests),
        )
        self.seen.append(seen)
        return seen

    def note_named(self, value: Value, node: ast.expr, scope: Scope) -> None:
        """Keep a name of a library that is handed on and not called, where the table has a row for it."""
        name = value.name if isinstance(value, Name) else ""
        if names.is_library(name) and not name.endswith(names.DTYPES) and names.row_of(name) is not None:
            self.note(name, node, scope, None)

    def under(self, taken: bool | None, test: ast.expr, of: bool, scope: Scope, run: Callable[[], Any]) -> Any:
        """Run a branch of a condition: taken for sure, surely not, or perhaps (None)."""
        before = self.certainty
        if taken is not True:
            text = shortened(scope.source.text(test), LONGEST)
            self.conditions.append(text if of else f"not ({text})")
            worse = OPTION if taken is False else PERHAPS
            self.certainty = max(before, worse, key=SURENESS.index)
        self.tests.append((test, scope))
        try:
            return run()
        finally:
            self.tests.pop()
            self.certainty = before
            if taken is not True:
                self.conditions.pop()
