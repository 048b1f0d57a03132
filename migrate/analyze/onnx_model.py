"""Analyse an ONNX file: its operators by name and domain, held against the mapping table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...errors import BadInput
from ...input_files import unreadable
from ...mappings.onnx_table import onnx_operators
from ..model_spec import ask_worker
from .operators import BY_HAND, NO_ROW, Operator, operators
from .verdict import Analysis

PATIENCE = 120.0  # seconds


def analyze_onnx(path: str, *, mode: str, target: str) -> Analysis:
    """Read the file and judge its operators; raises BadInput for what is no model of ONNX, or not all of one."""
    if (why := unreadable(path)) is not None:
        raise BadInput(why)
    report = ask_worker("analyze.onnx_operators", [path], path, PATIENCE)
    return Analysis(
        name=path,
        kind="ONNX",
        mode=mode,
        target=target,
        operators=tuple(_judged(report["nodes"], mode, target)),
        costs=report["costs"],
        inputs=report["inputs"],
        device="not run",
        notes=("the operators were read, with no arguments: the calls to write are for you to make",),
        versions=report["versions"],
    )


def _judged(nodes: list[Mapping[str, Any]], mode: str, target: str) -> list[Operator]:
    """One operator for each row; ONNX's own names where there is no row."""
    found: dict[str, Operator] = {}
    for node in nodes:
        entry = onnx_operators().get(node["op"]) if not node["domain"] else None
        if entry is not None and entry.folds:
            continue
        name = entry.row(node["axes"]) if entry is not None else None
        one = _operator(node, name, mode, target)
        if entry is not None:
            one = _with_changes(one, [_refused(node, attribute, entry.remedy) for attribute in _unlike(node, entry)])
        before = found.get(one.torch)
        found[one.torch] = one if before is None else _together(before, one)
    return list(found.values())


def _operator(node: Mapping[str, Any], name: str | None, mode: str, target: str) -> Operator:
    ours = f"{node['domain']}::{node['op']}" if node["domain"] else f"onnx::{node['op']}"
    use = {
        "name": name or ours,
        "kind": "module",
        "args": [],
        "kwargs": {},
        "eval": node["calls"],
        "train": 0,
        "paths": node["places"],
        "lines": (),
        "owners": (),
    }
    (judged,) = operators([use], mode, target)
    if judged.way == NO_ROW:
        return replace(judged, torch=name or ours, kind="ONNX", why=f"the mapping table has no row of it ({ours})")
    return replace(judged, call=None)


def _unlike(node: Mapping[str, Any], entry: Any) -> list[str]:
    return [name for name, values in entry.refuse.items() if node["attributes"].get(name) in values]


def _refused(node: Mapping[str, Any], attribute: str, remedy: str | None) -> str:
    return f"{node['op']} with {attribute}={node['attributes'][attribute]}: {remedy}"


def _with_changes(operator: Operator, changes: list[str]) -> Operator:
    if not changes or operator.missing:
        return operator
    return replace(operator, way=BY_HAND, changes=(*operator.changes, *changes))


def _together(one: Operator, other: Operator) -> Operator:
    """Two groups of nodes of the same row: counts and places added, the worse way of the two."""
    return replace(
        one,
        way=other.way if other.missing or other.way == BY_HAND else one.way,
        calls=one.calls + other.calls,
        places=tuple(dict.fromkeys((*one.places, *other.places))),
        changes=tuple(dict.fromkeys((*one.changes, *other.changes))),
    )
