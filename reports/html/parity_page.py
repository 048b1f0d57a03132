"""The page of a parity report: findings packed, the model as a tree.

The page forbids itself everything else: its Content-Security-Policy names the digests of its own style and script.

A ResNet50 has some three thousand findings, whose names, parts and reasons repeat; as columns of indices into lists of
texts they take a sixth of what a list of objects would.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ... import __version__
from ...atomic_files import write_whole
from ...errors import MsmigrateError
from ...input_files import read_text
from ...mappings import table
from ...parity.options import STAGES
from ...parity.result import Finding, ModuleVerdict, Report, StageSummary
from ...parity.verdict import RATIO, Verdict
from ...printable import shown, times
from ...training.recipe import reader
from ...training.recipe import reader as recipes
from ..formatting import packed
from ..parity_terminal import also_at, explains, known, where
from .error_histograms import Histograms
from .page import HERE, pages, policy_of

SCRIPTS = ("data.js", "detail.js", "plot.js", "table.js", "explore.js", "tree.js")
MARKS = {Verdict.PASS: "pass", Verdict.FAIL: "fail", Verdict.NONE: "none"}


def write_html(
    report: Report, folder: Path | None, path: Path, recipe: Path | None = None, made: Sequence[tuple[str, str]] = ()
) -> None:
    """Write the page of a report; the file appears complete or not at all.

    folder: the run's traces, which give histograms. recipe: the copy of the recipe in a recorded folder. made: when,
    where and by which command. Raises BadDestination.
    """
    write_whole(page(report, folder, recipe, made), path)


def page(
    report: Report, folder: Path | None = None, recipe: Path | None = None, made: Sequence[tuple[str, str]] = ()
) -> str:
    """The page as text."""
    environment = pages()
    environment.filters |= {"number": shown, "times": times, "clip": clipped, "mark": MARKS.__getitem__}
    style = (HERE / "style.css").read_text(encoding="utf-8")
    script = '"use strict";(() => {\n' + "".join((HERE / s).read_text(encoding="utf-8") for s in SCRIPTS) + "})();\n"
    histograms = Histograms(folder) if folder is not None else None
    root, alone = of_report(report)
    return environment.get_template("page.html.j2").render(
        report=report,
        stages=report.stages,
        verdict=overall(report),
        where=where(report),
        left_out=report.narrowing.left_out(),
        empty=empty,
        ratio=RATIO,
        counts=_counts(report),
        explains=explains,
        known=known,
        mistakes=report.mistakes,
        also_at=also_at,
        found=sum(explains(cause) for cause, _ in report.mistakes),
        root=root,
        alone=alone,
        environment=[*_environment(report), *made],
        faults={fault: table.faults()[fault] for cause, _ in report.mistakes if (fault := known(cause))},
        recipe_text=_recipe_text(report, recipe),
        data=_data(report, histograms),
        style=style,
        script=script,
        policy=policy_of(style, script),
        version=__version__,
    )


def overall(report: Report) -> str:
    """What the page says at its top: pass, fail, or none where nothing failed but something has no verdict."""
    if report.parity:
        return "pass"
    return "fail" if report.first_divergence is not None else "none"


def empty(stage: StageSummary) -> bool:
    """Whether nothing was compared in a stage."""
    return stage.passed + stage.failed + stage.undecided == 0


def _counts(report: Report) -> dict[str, int]:
    counts = {mark: sum(f.verdict is verdict for f in report.findings) for verdict, mark in MARKS.items()}
    return {**counts, "all": len(report.findings)}


def _data(report: Report, histograms: Histograms | None) -> dict[str, Any]:
    first = report.first_divergence
    return {
        "ratio": RATIO,
        "findings": pack(report.findings, report.narrowing.stages),
        "first": report.findings.index(first) if first is not None else None,
        "histograms": histograms.of(report.findings) if histograms is not None else {},
    }


def _environment(report: Report) -> list[tuple[str, str]]:
    """What the verdict holds for, line by line."""
    rows = [(name, str(version)) for name, version in sorted(report.versions.items())]
    rows += [(f"{side} device", device) for side, device in report.computed_on.items()]
    rows += [("msmigrate", __version__), ("recipe digest", report.recipe_digest)]
    made = report.made_with
    if made is not None:
        rows += [
            ("msmigrate code digest", made.code_digest),
            ("starting checkpoint digest", made.checkpoint_digest or "no checkpoint: weights of the recipe's seed"),
            ("compared", f"{made.steps} training steps of {made.batch} images"),
        ]
    if report.seconds is not None:
        rows.append(("duration", f"{report.seconds:.0f} s"))
    return rows


def _recipe_text(report: Report, copy: Path | None) -> str | None:
    """The recipe's file, if it still stands where the report found it and is still the same recipe.

    copy: the one in a recorded folder, in whose place nothing is read that the folder only names.
    """
    path = copy or Path(report.recipe)
    try:
        text = read_text(path, reader.LARGEST)
        recipe = recipes.load(path)
        if copy is not None and recipe.model.source is not None:
            return None
        return text if recipe.digest == report.recipe_digest else None
    except (OSError, ValueError, MsmigrateError):
        return None


DEEPEST = 40  # levels; names with more dots than any model's keep the rest in one label
WORST_FIRST = (Verdict.FAIL, Verdict.NONE, Verdict.PASS)


@dataclass
class Node:
    """A module in the tree. label: the last part of its name; module: None where only modules inside it were judged;
    faults: own faults in it and below."""

    name: str
    label: str
    module: ModuleVerdict | None = None
    children: list[Node] = field(default_factory=list)
    faults: int = 0

    @property
    def verdict(self) -> Verdict | None:
        """Its own, or where it has none the worst below it."""
        if self.module is not None:
            return self.module.verdict
        below = {child.verdict for child in self.children}
        return next((verdict for verdict in WORST_FIRST if verdict in below), None)

    @property
    def own(self) -> bool:
        """Whether the fault is in this module itself."""
        return self.module is not None and self.module.own and self.module.verdict is Verdict.FAIL

    @property
    def mark(self) -> str:
        """How the page colours it: own, fail (of something inside), none or pass."""
        if self.own:
            return "own"
        return {Verdict.FAIL: "fail", Verdict.NONE: "none", Verdict.PASS: "pass", None: "none"}[self.verdict]

    @property
    def open(self) -> bool:
        """Whether it starts unfolded: the way down to every fault is, what a fault is made of, and the first level."""
        return self.name == "" or self.faults > 0


def tree(modules: Sequence[ModuleVerdict]) -> Node | None:
    """The modules by their dotted names under one root, children in order of execution; None where there are none."""
    if not modules:
        return None
    root = Node("", "model")
    nodes: dict[tuple[str, ...], Node] = {(): root}
    for module in sorted(modules, key=lambda m: (m.order, m.depth)):
        _node(nodes, _parts(module.name)).module = module
    for node in reversed(list(nodes.values())):  # children come after their parents
        node.faults = int(node.own) + sum(child.faults for child in node.children)
    return root


def of_report(report: Report) -> tuple[Node | None, bool]:
    """The tree, and whether its modules ran alone: without replay, what the forward pass shows takes its place."""
    if report.modules:
        return tree(report.modules), True
    return tree(_reached(f for f in report.findings if f.stage == "forward" and f.module)), False


def _node(nodes: dict[tuple[str, ...], Node], parts: tuple[str, ...]) -> Node:
    for depth in range(1, len(parts) + 1):
        path = parts[:depth]
        if path not in nodes:
            nodes[path] = Node(".".join(path), path[-1])
            nodes[path[:-1]].children.append(nodes[path])
    return nodes[parts]


def _parts(name: str) -> tuple[str, ...]:
    return tuple(name.split(".", DEEPEST - 1)) if name else ()


def _reached(findings: Iterable[Finding]) -> list[ModuleVerdict]:
    """What each leaf put out in the forward passes: the worst of its calls; no own faults, for errors travel on."""
    worst: dict[str, Finding] = {}
    for finding in findings:
        name = finding.name.partition("#")[0]
        there = worst.get(name)
        if there is None or _worse(finding, there):
            worst[name] = finding
    return [
        ModuleVerdict(name, f.module or "", "", f.verdict, False, name.count(".") + 1, f.order, f.ratio, f.why)
        for name, f in worst.items()
    ]


def _worse(one: Finding, other: Finding) -> bool:
    rank = WORST_FIRST.index(one.verdict) - WORST_FIRST.index(other.verdict)
    return rank < 0 or (rank == 0 and (one.ratio or 0.0) > (other.ratio or 0.0))


LETTERS = {Verdict.PASS: "p", Verdict.FAIL: "f", Verdict.NONE: "n"}
LONGEST = 400  # characters of a name or a reason; longer ones are cut


class Texts:
    """Every text once, in the order of appearance."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}

    def add(self, text: str) -> int:
        """The text's place in the list."""
        return self.index.setdefault(clipped(text), len(self.index))

    def all(self) -> list[str]:
        """The list."""
        return list(self.index)


def clipped(text: str, most: int = LONGEST) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def pack(findings: Sequence[Finding], stages: Sequence[str] = STAGES) -> dict[str, Any]:
    """Columns, one value a finding, all of one of `stages`.

    stage, part, name, module, shape and why are indices into the lists of texts; verdict is one letter each; error,
    noise, allowed and ratio are numbers, None or 'inf'.
    """
    parts, names, modules, shapes, reasons = (Texts() for _ in range(5))
    return {
        "stages": list(stages),
        "stage": [stages.index(f.stage) for f in findings],
        "part": [parts.add(f.part) for f in findings],
        "name": [names.add(f.name) for f in findings],
        "module": [modules.add(f.module or "") for f in findings],
        "shape": [shapes.add("×".join(map(str, f.shape)) or "scalar") for f in findings],
        "why": [reasons.add(f.why) for f in findings],
        "verdict": "".join(LETTERS[f.verdict] for f in findings),
        "error": [packed(f.error) for f in findings],
        "noise": [packed(f.noise) for f in findings],
        "allowed": [packed(f.allowed) for f in findings],
        "ratio": [packed(f.ratio) for f in findings],
        "parts": parts.all(),
        "names": names.all(),
        "modules": modules.all(),
        "shapes": shapes.all(),
        "whys": reasons.all(),
    }
