"""Which files of a user's own rows are in force: those that MSMIGRATE_MAPPINGS names, as worker processes see too.

Nothing is read here, and nothing heavy imported: every command asks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..errors import BadInput

VARIABLE = "MSMIGRATE_MAPPINGS"  # several files are separated as in PATH


def paths() -> tuple[Path, ...]:
    """Return the files in force, in the order in which they were named; each once."""
    named = os.environ.get(VARIABLE)
    return tuple(dict.fromkeys(Path(name) for name in named.split(os.pathsep) if name)) if named else ()


def use(files: Iterable[Path]) -> None:
    """Put files in force, after those that are, under names that hold in any working directory; raises BadInput."""
    whole = dict.fromkeys(str(path.absolute()) for path in (*paths(), *files))
    for name in whole:
        if os.pathsep in name:
            raise BadInput(f"{name}: the name of a file of rows cannot contain '{os.pathsep}'; rename it")
    if whole:
        os.environ[VARIABLE] = os.pathsep.join(whole)
