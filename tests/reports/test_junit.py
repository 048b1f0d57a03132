"""JUnit XML: of the shape that both common schemas take, and green exactly when the report says parity."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import made_up_reports
import pytest
from msmigrate.errors import BadDestination
from msmigrate.parity.result import Report
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.reports.parity_ci import junit, write_junit

# What windyroad's JUnit.xsd (Apache Ant) and xunit-plugin's junit-10.xsd (Jenkins) both allow: attributes that have to
# be there, others that may, and the children, in their order.
SHAPE: dict[str, tuple[set[str], set[str], str]] = {
    "testsuites": (set(), set(), "(testsuite )*"),
    "testsuite": (
        {"package", "id", "name", "timestamp", "hostname", "tests", "failures", "errors", "time"},
        {"skipped"},
        "properties (testcase )*system-out system-err ",
    ),
    "properties": (set(), set(), "(property )*"),
    "property": ({"name", "value"}, set(), ""),
    "testcase": ({"name", "classname", "time"}, set(), "(skipped |error |failure )?"),
    "failure": ({"type"}, {"message"}, ""),
    "error": ({"type"}, {"message"}, ""),
    "skipped": (set(), {"message"}, ""),
    "system-out": (set(), set(), ""),
    "system-err": (set(), set(), ""),
}
TOKENS = {("testsuite", "name"), ("testsuite", "package"), ("testcase", "name"), ("testcase", "classname")}
PATTERNS = {
    "timestamp": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d",
    "time": r"\d+(\.\d+)?",
    **dict.fromkeys(("tests", "failures", "errors", "skipped", "id"), r"\d+"),
}


def misshapen(element: ElementTree.Element) -> list[str]:
    """Where a document leaves the shape."""
    required, optional, children = SHAPE[element.tag]
    found = []
    if not required <= set(element.attrib) <= required | optional:
        found.append(f"{element.tag} has the attributes {sorted(element.attrib)}")
    if not re.fullmatch(children, "".join(child.tag + " " for child in element)):
        found.append(f"{element.tag} holds {[child.tag for child in element][:9]}")
    for name, value in element.attrib.items():
        if name in PATTERNS and not re.fullmatch(PATTERNS[name], value):
            found.append(f"{element.tag}/@{name} is {value!r}")
        if (element.tag, name) in TOKENS and (" ".join(value.split()) != value or not value):
            found.append(f"{element.tag}/@{name} is no token: {value!r}")
    if element.tag == "testsuite":
        for name, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
            if int(element.attrib[name]) != len(list(element.iter(tag))):
                found.append(f"{element.attrib['name']}: {name} is not the number of {tag}s")
    return found + [complaint for child in element for complaint in misshapen(child)]


def unjudged() -> Report:
    """Nothing failed, but one stage has no verdict, and another compared nothing."""
    clean = made_up_reports.report(False)
    findings = [f for f in clean.findings if f.stage != "data"]
    blurred = [replace(f, verdict=Verdict.NONE, why="blurred") if f.stage == "loss" else f for f in findings]
    return replace(clean, findings=blurred)


REPORTS = {
    "faulty": made_up_reports.report(),
    "clean": made_up_reports.report(False),
    "hostile": made_up_reports.hostile(),
    "unjudged": unjudged(),
    "empty": replace(made_up_reports.report(False), findings=[], modules=[]),
    "narrowed": made_up_reports.narrowed("data", "init"),
}


@pytest.mark.parametrize("name", REPORTS)
def test_it_has_the_shape_that_both_schemas_take(name: str) -> None:
    assert misshapen(ElementTree.fromstring(junit(REPORTS[name]).encode("utf-8", "strict"))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('errors="0"', ""),
        ("<system-err />", ""),
        ('time="0"', 'time="soon"'),
        ('failures="0"', 'failures="1"'),
        ('name="images"', 'name=" images"'),
        ("<properties>", "<properties><testcase/>"),
    ],
)
def test_the_check_of_the_shape_sees_what_leaves_it(old: str, new: str) -> None:
    text = junit(REPORTS["clean"])
    assert old in text
    assert misshapen(ElementTree.fromstring(text.replace(old, new, 1)))


@pytest.mark.parametrize("name", REPORTS)
def test_it_is_green_exactly_when_the_report_says_parity(name: str) -> None:
    root = ElementTree.fromstring(junit(REPORTS[name]))
    assert (root.find(".//failure") is None) is REPORTS[name].parity
    assert REPORTS[name].parity is (name in ("clean", "narrowed"))


def test_a_narrowed_one_says_what_it_judged() -> None:
    root = ElementTree.fromstring(junit(REPORTS["narrowed"]))
    assert [suite.attrib["name"] for suite in root] == ["parity data", "parity init"]
    told = [each.attrib["value"] for each in root.findall(".//property[@name='narrowed']")]
    assert told == ["data and init; forward, loss, gradients and update were not judged"] * 2
    assert ElementTree.fromstring(junit(REPORTS["clean"])).find(".//property[@name='narrowed']") is None


def test_a_failed_tensor_says_why_and_an_undecided_one_is_skipped() -> None:
    root = ElementTree.fromstring(junit(REPORTS["faulty"]))
    case = root.find(".//testcase[@name='maxpool']")
    assert case is not None and case.attrib["classname"] == "msmigrate.forward.eval"
    failure = case.find("failure")
    assert failure is not None and failure.attrib["message"].startswith("off by")
    assert failure.text is not None and "ratio: " in failure.text and "layer: MaxPool2d" in failure.text
    skipped = root.findall(".//skipped")
    assert len(skipped) == 1 and skipped[0].attrib["message"].startswith("no verdict: torch float32 itself")


def test_causes_stand_in_the_output_of_their_stage() -> None:
    root = ElementTree.fromstring(junit(REPORTS["faulty"]))
    said = {suite.attrib["name"]: suite.findtext("system-out") or "" for suite in root}
    assert "cause: layer2.1.bn2: eps is 1e-3 where torch has 1e-5 [bn-momentum-complement]" in said["parity forward"]
    assert "fix: nn.BatchNorm2d(128, eps=1e-5, momentum=0.9)" in said["parity forward"]
    assert "first divergence: forward (eval) maxpool" in said["parity forward"]
    assert "label smoothing" in said["parity loss"] and said["parity data"] == ""


def test_it_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_junit(REPORTS["hostile"], tmp_path / "junit.xml")
    assert ElementTree.parse(tmp_path / "junit.xml").getroot().tag == "testsuites"
    with pytest.raises(BadDestination, match="cannot write"):
        write_junit(REPORTS["clean"], tmp_path / "missing" / "junit.xml")
    with pytest.raises(BadDestination, match="cannot write"):
        write_junit(REPORTS["clean"], tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["junit.xml"]
