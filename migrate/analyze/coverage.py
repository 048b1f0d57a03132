"""Analyse many models: which of them move, and which operators stand in the way of the others."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ...errors import WorkerFailed
from ...workers.messages import Event
from ...workers.parent import Workers
from ..model_spec import ask_worker, parse
from .model_analysis import Analysis, torch_analysis
from .operators import operators

WORKER = "msmigrate.migrate.analyze.torch_operators_worker"


class Progress(Protocol):
    """Told of every model."""

    def start(self, total: int) -> None:
        """So many models there are."""

    def done(self, model: str) -> None:
        """One of them has been analysed."""


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
        """Whether everything it uses has a counterpart."""
        return self.analysis is not None and bool(self.analysis.operators) and not self.analysis.missing


@dataclass(frozen=True)
class Coverage:
    """All the models that were asked for, in their order."""

    models: tuple[Covered, ...]
    mode: str
    target: str

    def families(self) -> dict[str, list[Covered]]:
        """The models by where they come from and what they do: torchvision classification, timm."""
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
    """Analyse the models that patterns stand for: torchvision, timm:resnet*, names; raises BadInput."""
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
    """The names that patterns stand for; only torchvision and timm themselves know what they have."""
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
    """Run workers until every model has its answer: one that ends with a model is not asked for that one again."""
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
