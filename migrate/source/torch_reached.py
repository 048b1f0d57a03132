"""Worker: build and run a torch model, and report which of its source ran, and what every expression there was.

    python -m msmigrate.migrate.source.torch_reached torchvision:resnet50
    python -m msmigrate.migrate.source.torch_reached model.py:build 1x3x64x64

The model is built and run twice: once to see which functions there are, and once with functions that report (see
instrument.py). Prints one line of JSON, which facts.py reads. Inputs are those of `analyze`.
"""

from __future__ import annotations

import ast
import gc
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch

from ...errors import BadInput
from ..analyze.torch_models import inputs_for, quietly, split
from ..model_spec import parse, place_of, serve
from .instrument import Place, definition, install, instrumented
from .torch_builder import builder
from .torch_described import Describer

PACKAGE = str(Path(__file__).parents[2]) + os.sep
NOT_THEIRS = (
    PACKAGE,
    str(Path(torch.__file__).parent) + os.sep,
    sysconfig.get_path("stdlib") + os.sep,
    "<",
)


def report(text: str, *told: str) -> dict[str, Any]:
    """Build the model, run it in both modes, twice, and say what ran; raises BadInput."""
    quietly()
    spec = parse(text)
    make = builder(spec)

    def run() -> tuple[Any, Any]:
        torch.manual_seed(0)
        model, returned = split(make())
        inputs = inputs_for(spec, model, told, returned)
        for train in (False, True):
            model.train(train)
            with torch.no_grad():
                model(*(inputs.train if train else inputs.eval), **inputs.kwargs)
        return model, inputs

    try:
        make()  # what is imported meanwhile is not the model's
        with _noticing() as codes:
            run()
    except BadInput:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}{place_of(error)}"
        raise BadInput(f"it does not run: {said}") from None
    trees: dict[str, ast.Module] = {}
    places: list[Place] = []
    functions = []
    facts = Describer()
    left: dict[str, str] = {}  # functions that stay as they were -> why
    for code in codes:
        first = len(places)
        function = _instrument(code, trees, places, facts, left)
        if function is not None:
            functions.append(
                {
                    "file": code.co_filename,
                    "module": function.__module__,
                    "name": function.__qualname__,
                    "line": code.co_firstlineno,
                    "places": [first, len(places)],
                }
            )
    model, inputs = run()
    return {
        "functions": functions,
        "left": left,
        "places": places,
        **facts.as_json(),
        "root": facts.made(model),
        "classes": facts.classes(model),
        "inputs": inputs.said,
        "versions": {"torch": torch.__version__.partition("+")[0]},
    }


@contextmanager
def _noticing() -> Iterator[list[CodeType]]:
    """The code of every function of theirs that is called meanwhile, in the order of its first call."""
    codes: dict[CodeType, None] = {}

    def notice(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and not frame.f_code.co_filename.startswith(NOT_THEIRS):
            codes.setdefault(frame.f_code)

    found: list[CodeType] = []
    sys.setprofile(notice)
    try:
        yield found
    finally:
        sys.setprofile(None)
        found += codes


def _instrument(
    code: CodeType, trees: dict[str, ast.Module], places: list[Place], facts: Describer, left: dict[str, str]
) -> FunctionType | None:
    """Make the functions of this code report; returns one of them, None where that cannot be."""
    functions = [found for found in gc.get_referrers(code) if isinstance(found, FunctionType)]
    if not functions:
        return None  # a comprehension, or a class body
    try:
        if code.co_filename not in trees:
            trees[code.co_filename] = ast.parse(Path(code.co_filename).read_bytes())
        node = definition(trees[code.co_filename], code.co_name, code.co_firstlineno)
        if node is None:
            return None
        told = instrumented(node, functions[0], places)
    except (OSError, SyntaxError, ValueError) as error:
        left[f"{functions[0].__module__}.{functions[0].__qualname__}"] = str(error)
        return None
    for function in functions:
        install(function, told, facts.reached, facts.value, facts.call)
    return functions[0]


if __name__ == "__main__":
    serve(report)
