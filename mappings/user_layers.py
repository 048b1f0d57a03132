"""How the tensors of every layer are called in MindSpore: the generated names, and those of the user's own layers.

Apart from user_rows.py, so that a conversion without rows of one's own reads no YAML.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from .crossing import Crossing
from .layer_states import LAYER_STATES
from .user_files import paths

Names = dict[str, dict[str, Crossing]]  # torch class -> its tensors -> where they go


def layer_states() -> Names:
    """Return the names of all layers that have a row; raises BadInput for a file of rows that cannot be read."""
    files = paths()
    return _with(files) if files else LAYER_STATES


@cache
def _with(files: tuple[Path, ...]) -> Names:
    from . import table  # the whole of it, for a row that replaces another takes over its further names

    return {
        name: {
            state.torch: Crossing(state.mindspore, state.verb, None if state.mindspore else state.why, state.refused)
            for state in row.state
            if state.torch is not None
        }
        for kind in ("layer", "module")
        for row in table.rows(kind)
        for name in (row.torch, *row.aliases)
    }
