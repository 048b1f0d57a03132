"""The model as a tree: who is at fault is marked, and the way there is open."""

from __future__ import annotations

from collections.abc import Iterator

import made_up_reports
from msmigrate.parity.result import ModuleVerdict
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.reports.html.parity_page import Node, of_report, tree


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from walk(child)


def module(name: str, verdict: Verdict = Verdict.PASS, own: bool = False, order: int = 0) -> ModuleVerdict:
    return ModuleVerdict(name, "Conv2d", name, verdict, own, name.count(".") + 1, order, 1.0)


def test_every_module_is_there_once_and_faults_are_counted() -> None:
    report = made_up_reports.report()
    root, alone = of_report(report)
    assert root is not None and alone
    nodes = {node.name: node for node in walk(root)}
    assert set(nodes) == {m.name for m in report.modules} and len(list(walk(root))) == len(report.modules)
    assert root.faults == 4 and {name for name, node in nodes.items() if node.mark == "own"} == set(
        made_up_reports.FAULTS
    )
    assert nodes["layer2"].mark == "fail" and nodes["layer1"].mark == "pass"
    assert [child.label for child in root.children[:5]] == ["conv1", "bn1", "relu", "maxpool", "layer1"]


def test_the_way_to_every_fault_is_open_and_no_other() -> None:
    root, _ = of_report(made_up_reports.report())
    assert root is not None
    opened = {node.name for node in walk(root) if node.open and node.children}
    wanted = {"", "layer2", "layer2.1", "layer3", "layer3.2", "layer4", "layer4.0", "layer4.0.downsample"}
    assert opened == wanted


def test_containers_that_were_not_judged_take_the_worst_inside() -> None:
    root = tree([module("a.b.c"), module("a.d", Verdict.FAIL, own=True, order=1)])
    assert root is not None and root.mark == "fail" and root.faults == 1
    (a,) = root.children
    assert a.module is None and a.mark == "fail" and [child.label for child in a.children] == ["b", "d"]


def test_without_replay_the_forward_pass_is_shown() -> None:
    from dataclasses import replace

    report = replace(made_up_reports.report(), modules=[])
    root, alone = of_report(report)
    assert root is not None and not alone and root.faults == 0
    marks = {node.name: node.mark for node in walk(root)}
    assert marks["conv1"] == "pass" and marks["maxpool"] == marks["fc"] == "fail" and "layer3.2.bn1" in marks


def test_no_modules_are_no_tree_and_deep_names_do_not_grow_one() -> None:
    assert tree([]) is None
    root = tree([module(".".join("x" * 5000)), module("..", order=1)])
    assert root is not None and len(list(walk(root))) < 60
