"""Making the MindSpore object that the mapping table translated a torch call into."""

from __future__ import annotations

from typing import Any

from ...errors import BadRecipe
from ...mappings import rows as names
from ...mappings.rows import Call


def resolve(qualified_name: str) -> Any:
    """The object behind a name such as 'mindspore.dataset.vision.Inter.BILINEAR'; raises BadInput if there is none."""
    return names.resolve(qualified_name)


def construct(call: Call, *positional: Any) -> Any:
    """Make the call, with `positional` before its own arguments; raises BadRecipe where MindSpore refuses a value."""
    try:
        return names.build(call, *positional)
    except (TypeError, ValueError) as error:
        raise BadRecipe(f"{call.target}: {' '.join(str(error).split())}") from error
