"""What MindSpore's dataset code says of a failure: a long text, of which one line matters."""

from __future__ import annotations

import re

from ...errors import BadRecipe


def reason(error: Exception) -> str:
    """The line that says what happened, out of MindSpore's report of headings, rules and source lines.

    A failure in Python code ends its call stack with the exception; one in C++ has a line that begins with [ERROR].
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception|BadRecipe): ", line)]
    told = [line.removeprefix("[ERROR] ") for line in lines if line.startswith("[ERROR]")]
    return (raised[-1] if raised else (told or lines)[0]).removeprefix(f"{BadRecipe.__module__}.BadRecipe: ")
