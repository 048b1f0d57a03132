"""What went wrong in a training process, as the class of errors.py that tells it and one line."""

from __future__ import annotations

import re
from pathlib import Path

from ...errors import MsmigrateError

# How MindSpore's CPU and device backends, oneDNN and the C++ library say that memory has run out.
MEMORY = re.compile(
    r"allocate memory failed|memory not enough|out of memory|memory is not enough|malloc device memory failed"
    r"|device memory .*insufficient|could not create a memory object|std::bad_alloc|cannot allocate memory",
    re.IGNORECASE,
)
LESS_MEMORY = "lower data.batch, split it with accumulate, or take smaller images or a smaller model"


def explain(error: BaseException, batch: int | None, output: Path) -> tuple[str, str]:
    """The name of the class, and the line.

    batch: images of a step, where that is known. output: where this process's own stderr goes.
    """
    if isinstance(error, MsmigrateError):
        return type(error).__name__, " ".join(str(error).split())
    if isinstance(error, MemoryError) or MEMORY.search(str(error)):
        images = f" of {batch} images" if batch else ""
        return "WorkerFailed", f"out of memory: a step{images} does not fit; {LESS_MEMORY}"
    if isinstance(error, OSError):
        place = f" {error.filename}" if error.filename else ""
        return "BadDestination", f"cannot write or read{place}: {error.strerror or error}"
    lines = [line.strip() for line in str(error).splitlines()]
    said = next((line for line in lines if re.search(r"\w", line)), "no reason given")
    return "WorkerFailed", f"training failed: {type(error).__name__}: {said[:400]}; the whole report is in {output}"
