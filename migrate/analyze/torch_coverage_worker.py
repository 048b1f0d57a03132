"""Worker: analyse many torch models, one after the other.

    python -m msmigrate.migrate.analyze.torch_coverage_worker names torchvision 'timm:resnet*'
    python -m msmigrate.migrate.analyze.torch_coverage_worker run torchvision:resnet18 torchvision:resnet50 …

`names` answers with the names of the models that the patterns stand for. `run` sends one event for each model as soon
as it is done: `model`, `seconds`, and what torch_operators reports of it, or `failed`.
"""

from __future__ import annotations

import fnmatch
import gc
import sys
import time
from typing import Any

from ...errors import BadInput
from ...workers.messages import Event
from ...workers.worker import answer, send
from ..model_spec import parse, place_of, serve
from ..torch_models import load_timm
from .torch_operators_worker import report


def names(*patterns: str) -> dict[str, Any]:
    """Return the models that patterns stand for; raises BadInput for a pattern without any."""
    found: dict[str, None] = {}
    for pattern in patterns:
        place, _, name = pattern.partition(":")
        if place not in ("torchvision", "timm"):
            parse(pattern)
            found[pattern] = None
            continue
        known = _known(place)
        matching = [f"{place}:{one}" for one in known if fnmatch.fnmatchcase(one, name or "*")]
        if not matching and not any(letter in name for letter in "*?["):
            matching = [pattern]  # one name, perhaps with arguments: building it says what is wrong
        if not matching:
            raise BadInput(f"{place} has no model {name}")
        found.update(dict.fromkeys(matching))
    return {"models": list(found)}


def _known(place: str) -> list[str]:
    if place == "timm":
        return list(load_timm().list_models())
    import torchvision

    return list(torchvision.models.list_models())


def run(models: list[str]) -> None:
    """Send the analysis of each model as soon as it is done."""
    for model in models:
        start = time.monotonic()
        try:
            found = report(model)
        except BadInput as error:
            found = {"failed": str(error)}
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}{place_of(error)}"}
        send(Event("analysed", {**found, "model": model, "seconds": round(time.monotonic() - start, 2)}))
        gc.collect()


if __name__ == "__main__":
    task = sys.argv.pop(1)
    if task == "names":
        serve(names)
    else:
        answer(lambda: run(sys.argv[1:]))
