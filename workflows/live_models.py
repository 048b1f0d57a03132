"""Models that are at hand in the caller's process: by what name a worker, which is another process, can build them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ..errors import BadInput


def model_name(given: Any, argument: str) -> str:
    """The name by which a worker builds a model: FILE.py:FUNCTION.

    given: the name itself; or the function or class that builds the model, which has to be at the top of a file, for
        the worker imports that file.
    argument: the name of the argument, for the error.

    Raises BadInput for a model that is built already, which no other process can have, and for what stands in no file.
    """
    if isinstance(given, (str, Path)):
        return str(given)
    if not callable(given) or not hasattr(given, "__qualname__"):
        kind = type(given).__name__
        raise BadInput(
            f"{argument} is a {kind} that is built already: each framework runs in a process of its own, which has to "
            f"build it. Give the function that returns it, or its name: {argument}='FILE.py:FUNCTION'"
        )
    name = given.__qualname__
    if "." in name or "<" in name:
        raise BadInput(
            f"{argument}: {name} is defined inside something else, where no other process can call it: move it to the "
            "top of a file"
        )
    module = sys.modules.get(given.__module__)
    file = getattr(module, "__file__", None)
    if file is None or getattr(module, name, None) is not given:
        where = "a notebook or an interactive session" if given.__module__ == "__main__" else given.__module__
        raise BadInput(
            f"{argument}: {name} is defined in {where}, which no other process can import: write it into a file, and "
            "give that function or FILE.py:FUNCTION"
        )
    if given.__module__ != "__main__" and "." in given.__module__:
        return f"{given.__module__}:{name}"  # its file may import its neighbours relatively
    return f"{Path(file).absolute()}:{name}"


def with_model(values: dict[str, Any]) -> dict[str, Any]:
    """The options of a function, a model that is given as what builds it under its name. Raises BadInput."""
    return values if values.get("model") is None else {**values, "model": model_name(values["model"], "model")}
