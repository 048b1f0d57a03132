"""Runs lines of the fault pages among names that are made anew for each line, for both frameworks' workers.

A worker is called with the path of a JSON file, {fault: {"given": {name: source}, "lines": {label: source},
"show": {label: source}}}, and prints {fault: {label: {"value": …} or {"error": …}}} as its last line.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from PIL import Image


def numbers(*shape: int) -> np.ndarray:
    """Float32 numbers between -1 and 1 that depend on the shape's size only: a weight has torch's bytes."""
    return np.sin(np.arange(np.prod(shape, dtype=int)) * 1.7 + 1).astype(np.float32).reshape(shape)


def picture(height: int = 301, width: int = 280) -> Image.Image:
    """An RGB image of noise, so that every pixel matters."""
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8))


def picture_file() -> str:
    """The path of a PNG of `picture`."""
    file = Path(tempfile.mkdtemp()) / "picture.png"
    picture().save(file)
    return str(file)


def picture_folder() -> str:
    """A folder of two pictures of cats and one of a dog."""
    folder = Path(tempfile.mkdtemp())
    for name in ("cat/0.png", "cat/1.png", "dog/0.png"):
        (folder / name).parent.mkdir(exist_ok=True)
        picture(8, 8).save(folder / name)
    return str(folder)


def through(steps: list[Callable[[Any], Any]], value: Any) -> Any:
    """What a list of transforms makes of a value."""
    for step in steps:
        value = step(value)
    return value


def wide(erase: Callable[[Any], Any], ones: Any) -> float:
    """The share of patches that are wider than high, of what erases one from an image of ones."""
    holes = [np.asarray(erase(ones))[0] == 0 for _ in range(1000)]
    return float(np.mean([hole.any(0).sum() > hole.any(1).sum() for hole in holes]))


COMMON = {
    "np": np,
    "Image": Image,
    "numbers": numbers,
    "picture": picture,
    "picture_file": picture_file,
    "picture_folder": picture_folder,
    "through": through,
    "wide": wide,
}


class Names(dict):
    """The names of one line: the worker's, and those given as source, each made when a line first needs it."""

    def __init__(self, base: Mapping[str, Any], given: Mapping[str, str]) -> None:
        super().__init__(base)
        self.given = given
        self.made: set[str] = set()

    def make(self, source: str) -> None:
        """Make what the source names."""
        for node in ast.walk(ast.parse(source)):
            name = node.id if isinstance(node, ast.Name) else ""
            if name in self.given and name not in self.made:
                self.made.add(name)
                self.make(self.given[name])
                self[name] = eval(compiled(self.given[name], "eval"), self)


def compiled(source: str, mode: str) -> Any:
    """The code of a source, which inspect finds again: MindSpore compiles a function from its text."""
    name = f"<example {len(linecache.cache)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return compile(source, name, mode)


def run(source: str, names: Names) -> Any:
    """Run one line; returns the value of its last expression, assignment or definition."""
    names.make(source)
    body = ast.parse(source).body
    last = body[-1]
    if isinstance(last, ast.Expr):
        before = ast.unparse(ast.Module(body[:-1], []))
        exec(compiled(before, "exec"), names)
        return eval(compiled(ast.unparse(last.value), "eval"), names)
    if isinstance(last, ast.FunctionDef):  # a method, whose name is no name of its file
        file, methods = ModuleType("example_file"), {}
        vars(file).update(names, __name__=file.__name__)
        sys.modules[file.__name__] = file
        exec(compiled(source + "\n", "exec"), vars(file), methods)
        return methods[last.name]
    exec(compiled(source + "\n", "exec"), names)
    target = last.targets[0] if isinstance(last, ast.Assign) else None
    return eval(ast.unparse(target), names) if target is not None else None


def value(
    source: str,
    show: str | None,
    given: Mapping[str, str],
    base: Mapping[str, Any],
    usual_show: Callable[[Any], str],
    plain: Callable[[Any], Any],
) -> dict[str, Any]:
    """What a line yields, as {"value": plain data}, or how it stops, as {"error": text}."""
    np.random.seed(0)

    def again(**others: Any) -> Any:
        return run(
            source, Names({**base, **others}, {name: made for name, made in given.items() if name not in others})
        )

    names = Names({**base, "again": again}, given)
    try:
        names["result"] = run(source, names)
        shown = show or usual_show(names["result"])
        names.make(shown)
        return {"value": plain(eval(compiled(shown, "eval"), names))}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error)[:300]}"}


def main(file: str, base: Mapping[str, Any], usual_show: Callable[[Any], str], plain: Callable[[Any], Any]) -> None:
    """Run all lines of a file, and print what they yield."""
    asked = json.loads(Path(file).read_text(encoding="utf-8"))
    found: dict[str, dict[str, Any]] = {}
    warnings.simplefilter("ignore")
    for fault, example in asked.items():
        with contextlib.redirect_stdout(io.StringIO()):
            found[fault] = {
                label: value(
                    source, example["show"].get(label), example["given"], {**COMMON, **base}, usual_show, plain
                )
                for label, source in example["lines"].items()
            }
    print(json.dumps(found))
