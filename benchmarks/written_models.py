"""Write a model of every one of timm's files as MindSpore source, and tell what could not be written.

    python benchmarks/written_models.py                  # some 90 architectures, 10 minutes
    python benchmarks/written_models.py vit_tiny_patch16_224 'res*'

These are other people's modules, which convert-model was not made on. Of each file a model that is
small by its name; nothing is proven here (benchmarks/converted_models.py does that). Each is written in a process of
its own. Prints markdown: how many were written whole, and of the others the places. Needs timm.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import time
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import timm
import torch
from msmigrate.errors import MsmigrateError
from msmigrate.migrate.source import convert_model
from msmigrate.migrate.source.observe import torch_observe_worker

SECONDS = 600  # for one model
# what names say of size, smallest first; any other word stands in the middle
SIZES = (*("test", "atto", "femto", "pico", "nano", "xxs", "xs", "tiny", "t", "xxt", "mini", "small", "s"), "", "base")
LARGER = ("large", "l", "xl", "xlarge", "huge", "h", "giant", "g", "xxl", "xxlarge")


def main() -> None:
    patterns = sys.argv[1:]
    if {"-h", "--help"} & set(patterns):
        print(__doc__)
        return
    names = [n for n in timm.list_models() if any(fnmatch(n, p) for p in patterns)] if patterns else one_of_each()
    found = {}
    for number, name in enumerate(names, 1):
        print(f"{number}/{len(names)} {name}", file=sys.stderr, flush=True)
        found[name] = in_a_process(name)
    print(table(found))


def one_of_each() -> list[str]:
    """The smallest model of every file of timm's, in order."""
    files: dict[str, list[str]] = defaultdict(list)
    for name in timm.list_models():
        files[timm.models.model_entrypoint(name).__module__].append(name)
    return sorted(min(names, key=_size) for names in files.values())


def _size(name: str) -> tuple[int, int, str]:
    words = re.findall(r"[a-z]+|\d+", name)
    middle = SIZES.index("")
    ranks = [SIZES.index(word) if word in SIZES else middle for word in words]
    large = sum(word in LARGER for word in words)
    return (min(ranks) + len(SIZES) * large, sum(int(w) for w in words if w.isdecimal() and int(w) < 224), name)


def in_a_process(name: str) -> dict[str, Any]:
    """What came of one model; a process forked after the imports spares each of them ten seconds."""
    with tempfile.NamedTemporaryFile("r") as answer:
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            Path(answer.name).write_text(json.dumps(written(name)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        text = Path(answer.name).read_text()
    return json.loads(text) if text else {"failed": f"ended with status {status}"}


def written(name: str) -> dict[str, Any]:
    """Lines of the source, CPU seconds, and the places that could not be written."""
    torch.set_num_threads(1)
    began = time.process_time()
    try:
        found = convert_model.written(
            f"timm:{name}", json.loads(json.dumps(torch_observe_worker.report(f"timm:{name}")))
        )
    except MsmigrateError as error:
        return {"failed": str(error)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}
    places = [f"{Path(p.file).name}:{p.line}: {p.text}" for p in found.problems]
    return {"lines": found.text.count("\n"), "seconds": time.process_time() - began, "places": places}


def table(found: dict[str, dict[str, Any]]) -> str:
    """Markdown: how many were written whole, and what stands in the way of the others."""
    whole = {name: one for name, one in found.items() if one.get("places") == []}
    seconds = sorted(one["seconds"] for one in found.values() if "seconds" in one)
    lines = [f"{len(whole)} of {len(found)} models of timm {timm.__version__} were written whole."]
    if seconds:
        lines.append(f"CPU seconds: median {seconds[len(seconds) // 2]:.1f}, largest {seconds[-1]:.1f}.")
    lines += ["", "| model | not written |", "|---|---|"] if len(whole) < len(found) else []
    for name, one in found.items():
        said = one.get("places", [one.get("failed")])
        lines += [f"| {name} | {'; '.join(said)} |"] if said else []
    return "\n".join(lines)


if __name__ == "__main__":
    main()
