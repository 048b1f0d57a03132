"""The model as a tree of its modules, each with its verdict, ready for the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...parity.findings import Finding, ModuleVerdict, Report
from ...parity.judge import Verdict

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
