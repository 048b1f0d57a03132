"""The worker's end of inference_process.follow: events as JSON lines on stdout, and errors as one of them."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from typing import Any

from ..errors import MsmigrateError
from .inference import Told

LONGEST = 500  # characters of an error


def serve(work: Callable[[Told], None], name: str) -> int:
    """Do the work, whose events go to stdout and all else that is printed to stderr; returns the exit code.

    name: of the framework, for the error. What `work` raises is told, msmigrate's own errors as what they are.
    """
    out = os.dup(1)
    os.dup2(2, 1)  # whatever a framework prints goes to stderr, so that only events stand on stdout

    def told(event: dict[str, Any]) -> None:
        os.write(out, (json.dumps(event) + "\n").encode())

    try:
        work(told)
    except MsmigrateError as error:
        told({"error": str(error), "kind": type(error).__name__})
        return 2
    except Exception as error:
        traceback.print_exc()
        told({"error": " ".join(f"the {name} process failed: {type(error).__name__}: {error}".split())[:LONGEST]})
        return 2
    return 0
