"""Print, as JSON, what is wrong with the MindSpore calls in the examples of the faults: {fault: [complaint, …]}.

Every dotted name has to be there, and every keyword has to be one of its call, except in what is shown as going wrong.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import mindspore
import yaml
from mindspore import dataset, nn, ops
from mindspore.common.initializer import HeNormal, HeUniform, Normal, TruncatedNormal, initializer
from mindspore.dataset import vision

KNOWN = {
    "mindspore": mindspore,
    "nn": nn,
    "ops": ops,
    "dataset": dataset,
    "vision": vision,
    "Normal": Normal,
    "HeUniform": HeUniform,
    "HeNormal": HeNormal,
    "TruncatedNormal": TruncatedNormal,
    "initializer": initializer,
    "Inter": vision.Inter,
}


def complaints(source: str, crashes: bool) -> list[str]:
    """What is wrong with one snippet; one that crashes on purpose may have foreign keywords."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and resolve(node) is None and root(node) in KNOWN:
            found.append(f"there is no {ast.unparse(node)}")
        if isinstance(node, ast.Call) and root(node.func) in KNOWN and not crashes:
            target = resolve(node.func)
            try:
                known = inspect.signature(target).parameters if target is not None else {}
            except (TypeError, ValueError):
                continue
            if any(p.kind is p.VAR_KEYWORD for p in known.values()):
                continue
            found += [f"{ast.unparse(node.func)} has no {k.arg}" for k in node.keywords if k.arg not in known]
    return found


def root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def resolve(node: ast.AST) -> Any:
    if isinstance(node, ast.Name):
        return KNOWN.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(resolve(node.value), node.attr, None)
    return None


def main(folder: Path) -> None:
    examples = yaml.safe_load((folder / "fault_examples.yaml").read_text(encoding="utf-8"))
    faults = [
        fault
        for file in sorted(folder.glob("faults*.yaml"))
        for fault in yaml.safe_load(file.read_text(encoding="utf-8"))
        if "id" in fault
    ]
    crashing = {fault["id"] for fault in faults if "crash" in fault["shows_in"]}
    found = {
        name: [*complaints(wrong, name in crashing), *complaints(right, False)]
        for name, (_, wrong, right) in examples.items()
    }
    print(json.dumps({name: said for name, said in found.items() if said}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
