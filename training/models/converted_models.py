"""A recipe's model that msmigrate has no MindSpore source of its own for: `model: torchvision:NAME`, timm's, or one of
the user's own, FILE.py:NAME.

Its source is the file that `msmigrate convert-model` writes. A recipe may name that file with `source`, besides the
torch name; a machine that trains then needs no torch. Without it the conversion runs when the model is first needed, in
a process that has torch, and the file is kept in the user's cache for the other processes and the next run.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...atomic_files import atomic_file
from ...errors import BadDestination, BadRecipe, Unsupported
from ...input_files import LARGEST_PYTHON, python_tree, read_bytes
from ...migrate import model_spec
from ..recipe.digest import code_digest
from .model_names import is_file

MADE_OF = ("torch", "torchvision", "timm", "mindspore", "black")  # distributions that the written source depends on


def torch_spec(name: str, args: Mapping[str, Any]) -> str:
    """The model as the command line names it: `torchvision:resnet18(num_classes=10)`."""
    inner = ", ".join(f"{key}={value!r}" for key, value in args.items())
    return f"{name}({inner})" if inner else name


def mindspore_spec(name: str, args: Mapping[str, Any], source: Path | None = None) -> str:
    """`FILE.py:FUNCTION` of the model in MindSpore, converted now where no source is given and none is in the cache.

    Raises BadRecipe for a source that cannot be read; Unsupported where torch is not here, or where the model cannot be
    written whole; BadInput, WorkerFailed and BadDestination.
    """
    file = source or _cached(torch_spec(name, args))
    own = maker(file, name)
    # a converted model has its arguments inside; a counterpart of the user's own gets them if it takes any
    return torch_spec(f"{file}:{own.name}", args if is_file(name) and takes_arguments(own) else {})


def maker(file: Path, name: str) -> ast.FunctionDef | ast.ClassDef:
    """The definition that makes the model in a MindSpore file: the function or class of its name, or the last function.

    Raises BadRecipe for a file that cannot be read or has neither.
    """
    try:
        body = python_tree(read_bytes(file, LARGEST_PYTHON)).body
    except FileNotFoundError:
        how = _how(name).partition(" -o ")[0]
        raise BadRecipe(f"model.source: there is no file {file}; {how} -o {file} writes it") from None
    except OSError as error:
        raise BadRecipe(f"model.source: {file} cannot be read: {error.strerror or error}") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadRecipe(f"model.source: {file} is no Python: {error}") from None
    own = name.rpartition(":")[2]
    named = [node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == own]
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    if not named and not functions:
        raise BadRecipe(
            f"model.source: {file} has no function that makes a model, nor anything called {own}; write it with "
            f"{_how(name)}"
        )
    return (named or functions)[-1]


def takes_arguments(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether a function, or the constructor of a class, takes any argument but `self`."""
    own = isinstance(node, ast.ClassDef)
    if isinstance(node, ast.ClassDef):
        makes = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        if not makes:
            return False  # a Cell's own constructor
        node = makes[0]
    given = node.args
    return bool(given.vararg or given.kwarg or given.kwonlyargs or len(given.posonlyargs + given.args) > own)


def needs_torch(spec: str) -> Unsupported:
    """The error where a model would have to be converted and torch is not installed."""
    name = spec.partition("(")[0]
    return Unsupported(
        f"{spec} is converted from torch, and torch is not installed here: where it is, run {_how(spec)}, and write "
        f"source: {_file(name)} under model in the recipe"
    )


def _how(spec: str) -> str:
    quoted = f"'{spec}'" if "(" in spec else spec
    return f"msmigrate convert-model {quoted} -o {_file(spec.partition('(')[0])}"


def _file(name: str) -> str:
    return f"{re.sub(r'[^A-Za-z0-9_]', '_', name.rpartition(':')[2])}.py"


def _cached(spec: str) -> Path:
    """The file of this model's source in the cache, written now where it is not there."""
    name = Path(_file(spec.partition("(")[0])).stem
    path = cache_folder() / f"{name}_{_key(spec)}.py"
    if path.exists():
        return path
    place = model_spec.parse(spec).place
    if any(find_spec(module) is None for module in ("torch", place)):
        raise needs_torch(spec)
    write(spec, path)
    return path


def write(spec: str, path: Path) -> None:
    """Convert a model into a file. Raises Unsupported where it cannot be written whole."""
    from ...migrate.source.convert_model import write_source

    written = write_source(spec)
    if written.problems:
        first, count = written.problems[0], len(written.problems)
        place = f"{Path(first.file).name}:{first.line}: " if first.file else ""
        raise Unsupported(
            f"{spec} cannot be written whole in MindSpore: {count} place{'s' * (count > 1)}, first "
            f"{place}{first.text}; msmigrate convert-model writes the rest"
        )
    with atomic_file(path, force=True) as descriptor, os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(written.text.encode("utf-8"))


def cache_folder() -> Path:
    """The user's own folder for sources that were converted on the fly; the files in it are imported.

    Raises BadDestination where it cannot be made, or where others can write to it.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(base) if base else Path.home() / ".cache") / "msmigrate" / "converted"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        about = folder.stat()
    except (OSError, RuntimeError) as error:
        said = getattr(error, "strerror", None) or error
        raise BadDestination(
            f"no folder for converted models can be made: {said}; set XDG_CACHE_HOME to a writable folder"
        ) from None
    if about.st_uid != os.geteuid() or about.st_mode & 0o022:
        raise BadDestination(
            f"{folder} is imported from, and others can write to it: chmod 700 it, or set XDG_CACHE_HOME to a folder "
            "of your own"
        )
    return folder


def _key(spec: str) -> str:
    """Sixteen hex digits over all that the source depends on: the model, msmigrate's code, installed distributions."""
    versions = []
    for name in MADE_OF:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"no {name}")
    return hashlib.sha256("\n".join([spec, code_digest(), *versions]).encode()).hexdigest()[:16]
