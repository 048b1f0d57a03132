"""Why the starting weights, or the distributions they are drawn from, differ."""

from __future__ import annotations

import numpy as np

from ..result import Cause
from . import distribution_causes, start_causes
from .context import Context
from .evidence import failed


def explain(context: Context) -> list[Cause]:
    """The causes of what failed in stage init."""
    if not failed(context.findings, "init"):
        return []
    start: dict[str, np.ndarray] = {name: t.detach().numpy() for name, t in context.model.state_dict().items()}
    causes = start_causes.explain(context.traces, context.findings, start)
    return causes + distribution_causes.explain(context.traces, context.findings)
