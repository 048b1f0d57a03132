"""How long mindcv's hand-written source of a model is: its lines and classes, to hold generated source against.

Counted is what the model needs: the function that makes it, without the ones for its sisters, every class and function
that this names, those of mindcv's layers too, and the imports of their files; but not what loads trained weights.
Nothing is imported.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

# torchvision's name -> mindcv's, as (pattern, replacement); the first that fits
CALLED = (
    (r"(densenet\d+|resnet\d+|googlenet|inception_v3|squeezenet1_[01]|vgg\d\d|regnet_[xy]_\w+)", r"\1"),
    (r"(efficientnet_(?:b\d|v2_[sml])|convnext_\w+|shufflenet_v2_x\d_\d|resnext50_32x4d|resnext101_64x4d)", r"\1"),
    (r"mnasnet0_5", "mnasnet_050"),
    (r"mnasnet0_75", "mnasnet_075"),
    (r"mnasnet1_0", "mnasnet_100"),
    (r"mnasnet1_3", "mnasnet_130"),
    (r"mobilenet_v2", "mobilenet_v2_100"),
    (r"mobilenet_v3_(\w+)", r"mobilenet_v3_\1_100"),
    (r"swin_t", "swin_tiny"),
    (r"swin_v2_t", "swinv2_tiny_window8"),
    (r"swin_v2_s", "swinv2_small_window8"),
    (r"swin_v2_b", "swinv2_base_window8"),
    (r"(vit_[bl]_\d\d)", r"\1_224"),
)
LAYERS = "layers"  # the folder of what several models are built of
CONFIGURED = ("_cfg", "default_cfgs")  # where trained weights lie


@cache
def size(torchvision: str) -> tuple[int, int] | None:
    """Lines and classes of mindcv's source of a model of torchvision; None where mindcv has none."""
    found = next((re.sub(p, to, torchvision) for p, to in CALLED if re.fullmatch(p, torchvision)), None)
    spec = find_spec("mindcv")
    if found is None or spec is None or not spec.submodule_search_locations:
        return None
    for file in sorted((Path(spec.submodule_search_locations[0]) / "models").glob("*.py")):
        if found in _definitions(file):
            return _count(file, found)
    return None


@cache  # a table asks for many models
def _definitions(file: Path) -> dict[str, ast.stmt]:
    found: dict[str, ast.stmt] = {}
    for node in _body(file):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
    return found


def _count(file: Path, name: str) -> tuple[int, int]:
    waiting, seen = [(file, name)], {}
    while waiting:
        where, what = waiting.pop()
        if (where, what) in seen or what.endswith(CONFIGURED):
            continue
        own = _definitions(where)
        if what not in own:
            imported = _imported(where, what)
            waiting += [] if imported is None else [(imported, what)]
            continue
        node = own[what]
        seen[where, what] = node
        waiting += [(where, inner.id) for inner in ast.walk(node) if isinstance(inner, ast.Name)]
    lines = {(where, line) for (where, _), node in seen.items() for line in range(_first(node), _last(node) + 1)}
    heads = {where: sum(isinstance(node, (ast.Import, ast.ImportFrom)) for node in _body(where)) for where, _ in seen}
    classes = sum(isinstance(node, ast.ClassDef) for node in seen.values())
    return len(lines) + 3 * len(seen) + sum(heads.values()), classes  # two blank lines and one between classes


def _imported(file: Path, name: str) -> Path | None:
    """The file of mindcv from which a file imports a name."""
    for node in _body(file):
        if isinstance(node, ast.ImportFrom) and node.level and any(alias.name == name for alias in node.names):
            folder = file.parents[node.level - 1]
            path = folder.joinpath(*(node.module or "").split(".")).with_suffix(".py")
            return path if path.exists() and path.parent.name == LAYERS else None
    return None


@cache
def _body(file: Path) -> list[ast.stmt]:
    return ast.parse(file.read_text(encoding="utf-8")).body


def _first(node: ast.stmt) -> int:
    return min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", []))])


def _last(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno
