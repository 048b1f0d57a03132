"""Analyse one model or ONNX file: operators, costs, the one-line verdict; or many models, and the operators they lack.

The mapping table is for torch; mappings/onnx_operators.yaml is for ONNX. Its entries name the row (`torch`), or the row
by the number of the input's axes (`by_axes`), or why the operator needs nothing in source (`folds`); `refuse` lists
values of attributes that torch does not have.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from ...errors import BadInput, WorkerFailed
from ...input_files import unreadable
from ...mappings import row_reader
from ...mappings.row_reader import Fields, read_yaml
from .. import model_spec
from ..model_spec import ask_worker, parse
from .operators import BY_HAND, COMPOSED, NO_ROW, Operator, check_target, count, operators, several

WORKER = "msmigrate.migrate.analyze.torch_operators_worker"
ONNX = Path(row_reader.__file__).with_name("onnx_operators.yaml")


def analyze(target_name: str, *, mode: str, target: str, inputs: Sequence[str] = ()) -> Analysis:
    """Analyse `torchvision:NAME`, `timm:NAME`, `FILE_OR_MODULE:FUNCTION` or a file of ONNX.

    Raises BadInput where it names neither a model nor an ONNX file, and for a mode or target that MindSpore does not
    have; WorkerFailed when the model's own code fails.
    """
    check_target(mode, target)
    if target_name.endswith(".onnx") or (":" not in target_name and Path(target_name).exists()):
        if inputs:
            raise BadInput("--input is for torch models: an ONNX file defines its own inputs")
        return analyze_onnx(target_name, mode=mode, target=target)
    if ":" not in target_name:
        raise BadInput(
            f"{target_name!r} names no model and no file: write torchvision:NAME, timm:NAME, FILE.py:FUNCTION, "
            "MODULE:FUNCTION, model.onnx, or train.py"
        )
    for shape in inputs:
        model_spec.sizes_of(shape)  # before torch is started
    report = model_spec.ask("analyze.torch_operators_worker", target_name, "the analysis of", *inputs)
    spec = model_spec.parse(target_name)
    name = spec.name if spec.place in ("torchvision", "timm") else target_name
    return torch_analysis(name, report, operators(report["uses"], mode, target), mode, target)


PATIENCE = 120.0  # seconds


def analyze_onnx(path: str, *, mode: str, target: str) -> Analysis:
    """Read the file and judge its operators; raises BadInput for a file that is not a complete ONNX model."""
    if (why := unreadable(path)) is not None:
        raise BadInput(why)
    report = ask_worker("analyze.onnx_worker", [path], path, PATIENCE)
    return Analysis(
        name=path,
        kind="ONNX",
        mode=mode,
        target=target,
        operators=tuple(_judged(report["nodes"], mode, target)),
        costs=report["costs"],
        inputs=report["inputs"],
        device="not run",
        notes=("the operators were read without arguments: you have to write their calls yourself",),
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
    """Two groups of nodes of the same row as one: counts and places added, the worse way of the two."""
    return replace(
        one,
        way=other.way if other.missing or other.way == BY_HAND else one.way,
        calls=one.calls + other.calls,
        places=tuple(dict.fromkeys((*one.places, *other.places))),
        changes=tuple(dict.fromkeys((*one.changes, *other.changes))),
    )


@dataclass(frozen=True)
class Analysis:
    """What `msmigrate analyze` found in a model.

    costs: parameters, parameter_bytes, flops and activation_bytes, None where unknown.
    """

    name: str
    kind: str  # torch or ONNX
    mode: str
    target: str
    operators: tuple[Operator, ...]
    costs: Mapping[str, int | None]
    inputs: str
    family: str = ""
    device: str = "meta"
    never_ran: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[Operator]:
        """The operators without a counterpart."""
        return [operator for operator in self.operators if operator.missing]

    @property
    def pitfalls(self) -> dict[str, list[str]]:
        """The faults that rows warn of -> the operators of these rows."""
        found: dict[str, list[str]] = {}
        for operator in self.operators:
            for fault in operator.pitfalls:
                found.setdefault(fault, []).append(operator.torch)
        return found

    @property
    def verdict(self) -> str:
        """One line: whether the model can be converted, and how its operators are."""
        if not self.operators:
            return f"{self.name}: nothing ran that could be in the mapping table"
        lacking = self.missing
        total = count(len(self.operators), "operator")
        if not lacking:
            return f"{self.name} moves: {total}, {self._ways()}{self._basis()}"
        names = several([_reason(operator) for operator in lacking])
        return f"{self.name} does not move yet: {len(lacking)} of {total} missing: {names}"

    def _ways(self) -> str:
        composed = [operator for operator in self.operators if operator.way == COMPOSED]
        by_hand = [operator for operator in self.operators if operator.way == BY_HAND]
        direct = len(self.operators) - len(composed) - len(by_hand)
        if direct == len(self.operators):
            return "all direct"
        parts = [f"{direct} direct"] if direct else []
        parts += (
            [f"{len(composed)} composed ({several([operator.torch for operator in composed])})"] if composed else []
        )
        parts += (
            [f"{len(by_hand)} with a change by hand ({several([operator.torch for operator in by_hand])})"]
            if by_hand
            else []
        )
        return ", ".join(parts)

    def _basis(self) -> str:
        if self.target != "CPU":
            return f" (from documentation: nothing ran on {self.target})"
        unmeasured = [operator for operator in self.operators if not operator.measured]
        return f" ({several([operator.torch for operator in unmeasured])}: documented, not run)" if unmeasured else ""


def torch_analysis(name: str, report: Mapping[str, Any], operators: list[Operator], mode: str, target: str) -> Analysis:
    """The analysis of a torch model, from the worker's report and its judged operators."""
    return Analysis(
        name=name,
        kind="torch",
        mode=mode,
        target=target,
        operators=tuple(operators),
        costs=report["costs"],
        inputs=report["inputs"],
        family=report["family"],
        device=report["device"],
        never_ran=tuple(report["never_ran"]),
        notes=tuple(report["notes"]),
        versions=report["versions"],
    )


def _reason(operator: Operator) -> str:
    if operator.way == NO_ROW:
        return f"{operator.torch} (no row)"
    return f"{operator.torch} ({f'with {operator.refused}' if operator.refused else 'no counterpart'})"


# ONNX's operators


@dataclass(frozen=True)
class OnnxOperator:
    """One operator of ONNX's own domain, and its rows in the mapping table."""

    onnx: str
    torch: str | None = None
    by_axes: Mapping[int, str] = field(default_factory=dict)
    folds: str | None = None
    refuse: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    remedy: str | None = None

    def row(self, axes: int | None) -> str | None:
        """The name of its row for an input with this number of axes; None where it folds away."""
        if not self.by_axes:
            return self.torch
        return self.by_axes.get(axes or 4, next(iter(self.by_axes.values())))


@cache
def onnx_operators() -> dict[str, OnnxOperator]:
    """Read the table; raises BadInput naming the entry and the key."""
    found = {}
    for entry in read_yaml(ONNX):
        operator = _onnx_operator(entry)
        if operator.onnx in found:
            raise BadInput(f"{ONNX.name}: {operator.onnx} is there twice")
        found[operator.onnx] = operator
    return found


def _onnx_operator(entry: Any) -> OnnxOperator:
    fields = Fields(entry, f"{ONNX.name}: {entry.get('onnx') if isinstance(entry, dict) else entry!r}")
    operator = OnnxOperator(
        onnx=fields.take("onnx", str),
        torch=fields.take("torch", str, default=None),
        by_axes=fields.take("by_axes", dict, default={}),
        folds=fields.take("folds", str, default=None),
        refuse={name: tuple(values) for name, values in fields.take("refuse", dict, default={}).items()},
        remedy=fields.take("remedy", str, default=None),
    )
    fields.done()
    if sum((bool(operator.torch), bool(operator.by_axes), bool(operator.folds))) != 1:
        raise BadInput(f"{fields.where}: give exactly one of torch, by_axes and folds")
    if bool(operator.refuse) != bool(operator.remedy):
        raise BadInput(f"{fields.where}: refuse and remedy go together")
    return operator


# many models: which of them can be converted, and which operators the others lack


class Progress(Protocol):
    """Is called for every model."""

    def start(self, total: int) -> None:
        """Called first, with the number of models."""

    def done(self, model: str) -> None:
        """Called after each model, with its name."""


@dataclass(frozen=True)
class Covered:
    """One model: its analysis, or why there is none."""

    model: str
    family: str
    seconds: float
    analysis: Analysis | None = None
    failed: str | None = None

    @property
    def moves(self) -> bool:
        """Whether everything that the model uses has a counterpart."""
        return self.analysis is not None and bool(self.analysis.operators) and not self.analysis.missing


@dataclass(frozen=True)
class Coverage:
    """All requested models, in their order."""

    models: tuple[Covered, ...]
    mode: str
    target: str

    def families(self) -> dict[str, list[Covered]]:
        """The models by source and task: torchvision classification, timm."""
        found: dict[str, list[Covered]] = {}
        for entry in self.models:
            found.setdefault(entry.family, []).append(entry)
        return dict(sorted(found.items()))

    def lacking(self) -> list[tuple[str, str, int]]:
        """The operators without a counterpart, with how each is missing and how many models use it, most first."""
        counts: Counter[tuple[str, str]] = Counter()
        for entry in self.models:
            if entry.analysis is not None:
                counts.update({(operator.torch, operator.way) for operator in entry.analysis.missing})
        return [
            (name, way, number) for (name, way), number in sorted(counts.items(), key=lambda item: (-item[1], item))
        ]

    def used(self) -> int:
        """How many different operators the models use."""
        analysed = (entry.analysis for entry in self.models if entry.analysis is not None)
        return len({operator.torch for analysis in analysed for operator in analysis.operators})


def cover(patterns: Sequence[str], *, mode: str, target: str, progress: Progress | None = None) -> Coverage:
    """Analyse the models that match the patterns: torchvision, timm:resnet*, names; raises BadInput."""
    models = _models(patterns)
    if progress is not None:
        progress.start(len(models))
    found = []
    for answer in _answers(models):
        if progress is not None:
            progress.done(answer["model"])
        found.append(_covered(answer, mode, target))
    return Coverage(tuple(found), mode, target)


def _models(patterns: Sequence[str]) -> list[str]:
    """The names that match the patterns; a worker asks torchvision and timm for their lists."""
    if all(":" in pattern and not set("*?[") & set(pattern.partition("(")[0]) for pattern in patterns):
        for pattern in patterns:
            parse(pattern)
        return list(dict.fromkeys(patterns))
    answer = ask_worker(
        "analyze.torch_operators_worker", ["--names", *patterns], f"the coverage of {' '.join(patterns)}"
    )
    return list(answer["models"])


def _covered(answer: dict[str, Any], mode: str, target: str) -> Covered:
    place, _, name = answer["model"].partition(":")
    family = answer.get("family", "")
    family = f"{place} {family}".strip() if place == "torchvision" else place
    if "failed" in answer:
        return Covered(name, family, answer["seconds"], failed=answer["failed"])
    judged = operators(answer["uses"], mode, target)
    return Covered(name, family, answer["seconds"], torch_analysis(name, answer, judged, mode, target))


def _answers(models: list[str]) -> Iterator[dict[str, Any]]:
    """Run workers until every model has its answer; a model at which a worker stops is not tried again."""
    from ...workers.messages import Event  # not above: code that only reads an analysis does not need it
    from ...workers.parent import Workers

    waiting = list(models)
    while waiting:
        with Workers() as workers:
            workers.start("torch", [sys.executable, "-m", WORKER, "--each", *waiting])
            try:
                for _, message in workers.messages():
                    if isinstance(message, Event):
                        waiting.remove(message.facts["model"])
                        yield message.facts
            except WorkerFailed:
                if not waiting:
                    return
            code = workers.workers[0].process.wait()
        if waiting:
            yield {"model": waiting.pop(0), "seconds": 0.0, "failed": f"the worker stopped (exit code {code})"}
