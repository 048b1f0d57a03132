"""Print which primitives of MindSpore may draw random numbers, and which of them parity knows, as JSON."""

from __future__ import annotations

import inspect
import json
import os
import re
from pathlib import Path

from msmigrate.workers.worker import prepare_mindspore

prepare_mindspore()

from mindspore import ops  # noqa: E402
from mindspore.ops.primitive import Primitive  # noqa: E402
from msmigrate.parity.record.mindspore_randomness import ANSWERS, OTHERS  # noqa: E402


def below(kind: type) -> set[type]:
    found = set(kind.__subclasses__())
    return found.union(*map(below, found))


def takes_a_seed(kind: type) -> bool:
    methods = [getattr(kind, name) for name in ("__init__", "__call__") if name in vars(kind)]
    return any("seed" in name.lower() for method in methods for name in inspect.signature(method).parameters)


def marked() -> set[str]:
    """Classes whose source says that they have hidden side effects."""
    found = set()
    for file in Path(ops.__file__).parent.rglob("*.py"):
        for kind in re.finditer(r"^class (\w+)\(.*?(?=^class |\Z)", file.read_text(encoding="utf-8"), re.S | re.M):
            if "side_effect_hidden" in kind.group(0):
                found.add(kind.group(1))
    return found


drawing = {kind.__name__ for kind in below(Primitive) if takes_a_seed(kind)} | marked()
print(
    json.dumps({"drawing": sorted(drawing), "known": sorted(kind.__name__ for kind in (*ANSWERS, *OTHERS))}), flush=True
)
os._exit(0)
