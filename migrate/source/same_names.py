"""Names that one file cannot have twice: what several files of a model call the same, and what methods hide."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping

from .finishing import defines


def renamed(definitions: Mapping[str, ast.stmt], first: tuple[str, ...], taken: Collection[str]) -> dict[str, str]:
    """New names for definitions, after the file that each is from: `DecoderBlock`, `decoder_scale`, `DECODER_WIDTH`.

    definitions: by module and name, or by file and name (`layers.py:WIDTH`). Of several with one name that whose key
    starts with one of `first` keeps it, or else the first. A function does not keep the name of a method that calls it:
    compiled, MindSpore takes the method for the function, and it calls itself. taken: names that are not free.
    """
    names = {key: found[0] for key, node in definitions.items() if (found := defines(node))}
    order = sorted(names, key=lambda key: not key.startswith(first))
    used, new = {*taken}, {}
    hidden = _hidden(definitions.values())
    for key in order:
        name = names[key]
        if name in used or (name in hidden and isinstance(definitions[key], ast.FunctionDef)):
            new[key] = name = _free(_after(key, name), {*used, *names.values()})
        used.add(name)
    return new


def _hidden(nodes: Collection[ast.stmt]) -> set[str]:
    """The names that a method of the same name calls."""
    methods = [inner for node in nodes if isinstance(node, ast.ClassDef) for inner in node.body]
    return {
        call.func.id
        for method in methods
        if isinstance(method, ast.FunctionDef)
        for call in ast.walk(method)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == method.name
    }


def _after(key: str, name: str) -> str:
    """A name with that of its file in front, in its own way of writing."""
    place = key.rpartition(":")[0] or key.rpartition(f".{name}")[0]
    words = [word for word in re.split(r"\W+", place.removesuffix(".py")) if word and word != "__init__"] or ["other"]
    word = words[-1].strip("_")
    if name.isupper():
        return f"{word.upper()}_{name}"
    if name[:1].isupper():
        return "".join(part[:1].upper() + part[1:] for part in word.split("_")) + name
    return f"{'_' if name.startswith('_') else ''}{word}_{name.lstrip('_')}"


def _free(name: str, used: Collection[str]) -> str:
    return next(one for one in (name, *(f"{name}_{n}" for n in range(2, len(used) + 3))) if one not in used)
