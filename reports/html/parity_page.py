"""The page of a parity report: findings packed, the model as a tree, how the elements of a tensor are off.

The page forbids everything but its own style and script, whose digests its Content-Security-Policy names.

A ResNet50 has some three thousand findings, whose names, parts and reasons repeat; as columns of indices into lists of
strings they take a sixth of what a list of objects would.

The distance of an element from float64 is counted by its power of ten, in units of the tensor's root mean square, so
that rounding (some 1e-7) and faults (far above) can be seen side by side in one picture.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ...atomic_files import write_whole
from ...errors import BadTrace, MsmigrateError
from ...input_files import read_text
from ...mappings import table
from ...parity.graph_mode import GRAPH, MARK
from ...parity.options import STAGES
from ...parity.result import Finding, ModuleVerdict, Report, StageSummary
from ...parity.run_folder import MINDSPORE, MINDSPORE_REPLAY, TORCH32, TORCH64, matched, replayed
from ...parity.tensor_verdict import RATIO, Verdict
from ...parity.trace import Key, Trace, sample_positions
from ...printable import packed, shown, times
from ...training.recipe import reader
from ...training.recipe import reader as recipes
from ..parity_terminal import also_at, explains, known, where
from . import HERE, pages, policy_of

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
    """The recipe's text, if the file is still where the report found it and is still the same recipe.

    copy: the one in a recorded folder, which is read in place of any file that the folder only names.
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
        """Whether it starts unfolded, as the path to every fault, what a fault is made of, and the first level do."""
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
    """Each leaf's output in the forward passes, the worst of its calls; no own faults, because errors travel on."""
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
    """Every string once, in the order of appearance."""

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


# exact, the float32 run whose noise is shown, MindSpore; where an entry is in several, the last counts
FAMILIES = (
    (TORCH64, TORCH32, MINDSPORE),
    (matched(TORCH64), matched(TORCH32), MINDSPORE),
    (replayed(TORCH64), replayed(TORCH32), MINDSPORE_REPLAY),
    (TORCH64, TORCH32, GRAPH),
    (matched(TORCH64), matched(TORCH32), GRAPH),
)
PER_DECADE = 4  # bins
LOWEST, HIGHEST = -12, 6  # powers of ten; what lies outside goes into the outermost bin
WORST_OF_STAGE = 12  # tensors of each stage, beside those that failed
MOST_FAILED = 400  # a page of a thousand failed tensors tells no more than one of the first hundreds
ELEMENTS = 5  # worst elements that are listed
SAME = 0.01  # how far the error here may be from the finding's; beyond, the trace is not the one it was judged on


class Histograms:
    """The traces of a run's folder, opened; missing or damaged ones give no histograms."""

    def __init__(self, folder: Path) -> None:
        self._traces: dict[str, Trace] = {}
        for name in {name for family in FAMILIES for name in family}:
            try:
                self._traces[name] = Trace(folder / name)
            except BadTrace:
                continue
        self._where: dict[tuple[str, str, str], tuple[tuple[str, str, str], Key]] = {}
        for family in FAMILIES:
            if family[2] not in self._traces:
                continue
            mark = MARK if family[2] == GRAPH else ""
            for name in family[:2]:
                entries = self._traces[name].entries.values() if name in self._traces else ()
                self._where |= {(e.stage, mark + e.part, e.label): (family, e.key) for e in entries}

    def of(self, findings: Sequence[Finding]) -> dict[int, dict[str, Any]]:
        """Histograms by the index of the finding: of the failed, and of the worst of each stage."""
        histograms = {}
        for index in _chosen(findings):
            try:
                histogram = self._histogram(findings[index])
            except BadTrace:
                continue
            if histogram is not None:
                histograms[index] = histogram
        return histograms

    def _histogram(self, finding: Finding) -> dict[str, Any] | None:
        where = self._where.get((finding.stage, finding.part, finding.name))
        if where is None or finding.error is None or finding.part == "distribution":
            return None
        family, key = where
        exact, plain, subject = (self._array(name, key) for name in family)
        noise = None if exact is None or plain is None else plain - exact
        exact = plain if exact is None else exact  # the starting values, of which float64 has no better ones
        if exact is None or subject is None or exact.shape != subject.shape:
            return None
        if noise is not None and noise.shape != exact.shape:
            return None
        error = subject - exact
        size = float(np.linalg.norm(exact))
        distance = float(np.linalg.norm(error)) / (size or 1.0)
        if not math.isclose(distance, finding.error, rel_tol=SAME):
            return None
        unit = size / math.sqrt(exact.size) if size else 1.0
        entry = self._traces[family[2]].entries[key]
        return {
            "elements": int(exact.size),
            "of": math.prod(entry.shape),
            "error": _bins(error / unit),
            **({} if noise is None else {"noise": _bins(noise / unit)}),
            **_likeness(exact, subject),
            "worst": list(_worst(exact, subject, np.abs(error), entry.shape, entry.sampled)),
        }

    def _array(self, name: str, key: Key) -> np.ndarray | None:
        trace = self._traces.get(name)
        if trace is None or key not in trace.entries:
            return None
        array = trace.array(key).astype(np.float64)
        return array if array.size and np.isfinite(array).all() else None


def _chosen(findings: Sequence[Finding]) -> list[int]:
    failed = [i for i, f in enumerate(findings) if f.verdict is Verdict.FAIL][:MOST_FAILED]
    chosen = dict.fromkeys(failed)
    ranked = sorted(range(len(findings)), key=lambda i: findings[i].ratio or 0.0, reverse=True)
    for stage in {f.stage for f in findings}:
        worst = [i for i in ranked if findings[i].stage == stage and (findings[i].error or 0.0) > 0.0]
        chosen |= dict.fromkeys(worst[:WORST_OF_STAGE])
    return sorted(chosen)


def _bins(distances: np.ndarray) -> dict[str, Any]:
    """Counts of |distance| by quarters of a decade from 10**LOWEST; first: the first bin that is not empty."""
    sizes = np.abs(distances)
    nonzero = sizes[sizes > 0.0]
    at = np.floor((np.log10(nonzero) - LOWEST) * PER_DECADE).astype(np.int64)
    last = (HIGHEST - LOWEST) * PER_DECADE - 1
    counts = np.bincount(np.clip(at, 0, last), minlength=last + 1)
    filled = np.flatnonzero(counts)
    zeros = int(sizes.size - nonzero.size)
    if not filled.size:
        return {"zeros": zeros, "first": 0, "counts": []}
    return {"zeros": zeros, "first": int(filled[0]), "counts": counts[filled[0] : filled[-1] + 1].tolist()}


def _likeness(exact: np.ndarray, subject: np.ndarray) -> dict[str, Any]:
    """Cosine of the two, and the factor that brings float64 nearest to MindSpore: what one constant would explain."""
    square, other = float(np.dot(exact, exact)), float(np.dot(subject, subject))
    if square == 0.0 or other == 0.0:
        return {}
    product = float(np.dot(exact, subject))
    # six digits: a factor of 1.0001 is a fault that has been planted and found
    return {
        "factor": float(f"{product / square:.6g}"),
        "cosine": float(f"{product / math.sqrt(square * other):.6g}"),
    }


def _worst(
    exact: np.ndarray, subject: np.ndarray, error: np.ndarray, shape: tuple[int, ...], sampled: bool
) -> Iterator[list[Any]]:
    """The elements that are farthest off: index in the whole tensor, float64's value, MindSpore's."""
    positions = sample_positions(math.prod(shape), error.size) if sampled else np.arange(error.size)
    count = min(ELEMENTS, error.size)
    for at in sorted(np.argpartition(error, -count)[-count:], key=lambda i: -error[i]):
        if error[at] > 0.0:
            index = [int(i) for i in np.unravel_index(positions[at], shape)] if shape else []
            yield [index, packed(float(exact[at])), packed(float(subject[at]))]
