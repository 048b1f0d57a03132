"""The page as a file: self-contained, escaped, small, and written whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import made_up_reports
import pytest
from msmigrate.errors import BadDestination
from msmigrate.parity.result import Finding, Report
from msmigrate.parity.run_folder import MINDSPORE, TORCH32, TORCH64
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import Device
from msmigrate.printable import packed, printable, shown, times
from msmigrate.reports.html import HERE
from msmigrate.reports.html.parity_page import page, write_html
from traced import judged, record

RECIPE = Path(__file__).parents[3] / "recipes" / "resnet50.yaml"
VOID = {"meta", "br", "input", "link", "img", "hr"}


class Parsed(HTMLParser):
    """The page as a browser reads it: tags with their attributes, nesting, what scripts and styles hold, the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.raw:
            self.raw[self.open[-1]].append(data)
        else:
            self.words += data


@pytest.fixture(scope="module")
def faulty() -> str:
    return page(made_up_reports.report())


def test_the_first_screen_says_what_where_and_how(faulty: str) -> None:
    parsed = Parsed(faulty)
    assert parsed.open == []
    words = " ".join(parsed.words.split())
    first = words[: words.index("Six stages")]
    for said in (
        "No parity",
        "4 causes found, 1 left unexplained",
        "First divergence: forward (eval) maxpool",
        "eps is 1e-3 where torch has 1e-5",
        "nn.BatchNorm2d(128, eps=1e-5, momentum=0.9)",
        "1,650 × noise",
        "0.93 × noise",
        "known fault bn-momentum-complement",
    ):
        assert said in first, said


@pytest.mark.parametrize("make", [made_up_reports.report, made_up_reports.hostile])
def test_nothing_is_loaded_from_anywhere(make: Any) -> None:
    text = page(make())
    for tag, attributes in Parsed(text).tags:
        assert tag not in ("img", "iframe", "object", "embed", "base", "form")
        assert tag != "link" and not [name for name in attributes if name.startswith("on") or name == "style"]
        assert "src" not in attributes and (attributes.get("href") or "#").startswith("#")
    assert "url(" not in "".join(Parsed(text).raw["style"]) and "@import" not in text


def test_the_policy_allows_this_style_and_this_script_alone(faulty: str) -> None:
    parsed = Parsed(faulty)
    policy = next(a["content"] for tag, a in parsed.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and policy.startswith("default-src 'none'")
    (style,), scripts = parsed.raw["style"], parsed.raw["script"]
    for text in (style, scripts[1]):
        assert "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert len(scripts) == 2 and "unsafe" not in policy


def test_hostile_names_stay_text_that_can_be_seen() -> None:
    text = page(made_up_reports.hostile())
    parsed = Parsed(text)
    assert parsed.open == [] and len(parsed.raw["script"]) == 2
    data = json.loads(parsed.raw["script"][0])
    assert data["findings"]["names"] == [printable(made_up_reports.HOSTILE)]
    assert "{{7*7}}" in parsed.words and "49" not in parsed.words.split("How to read")[0]
    assert all(line.isprintable() for line in re.split(r"[\n\t]", text))


def test_the_data_holds_every_finding(faulty: str) -> None:
    report = made_up_reports.report()
    data = json.loads(Parsed(faulty).raw["script"][0])["findings"]
    letters = {Verdict.PASS: "p", Verdict.FAIL: "f", Verdict.NONE: "n"}
    assert data["verdict"] == "".join(letters[f.verdict] for f in report.findings)
    for i in (0, 500, len(report.findings) - 1):
        finding = report.findings[i]
        assert data["names"][data["name"][i]] == finding.name and data["parts"][data["part"][i]] == finding.part
        assert data["stages"][data["stage"][i]] == finding.stage and data["whys"][data["why"][i]] == finding.why
        assert data["ratio"][i] == (None if finding.ratio is None else pytest.approx(finding.ratio, rel=1e-3))


def test_a_large_report_stays_small(tmp_path: Path) -> None:
    report = made_up_reports.report()
    write_html(replace(report, findings=report.findings * 3), None, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 1_000_000


def test_histograms_come_from_the_traces(tmp_path: Path) -> None:
    place, names = ("forward", "train", "conv"), (TORCH64, TORCH32, MINDSPORE)
    record(tmp_path, names, {place: 1e4}, 1000)
    report = Report(
        "r.yaml", "0", {}, [judged(tmp_path, names, place)], devices=[Device("cuda:0", "H100"), Device("cpu")]
    )
    data = json.loads(Parsed(page(report, tmp_path)).raw["script"][0])
    assert set(data["histograms"]) == {"0"} and "cuda:0 (H100)" in page(report, tmp_path)
    assert json.loads(Parsed(page(report)).raw["script"][0])["histograms"] == {}


def test_parity_and_no_verdict_are_said() -> None:
    clean = made_up_reports.report(False)
    words = " ".join(Parsed(page(clean)).words.split())
    assert "✓ Parity" in words and "agree within torch's own rounding, in all six stages" in words
    undecided = [replace(f, verdict=Verdict.NONE) if f.stage == "loss" else f for f in clean.findings]
    words = " ".join(Parsed(page(replace(clean, findings=undecided))).words.split())
    assert "? Unproven" in words and "loss (4 tensors without the verdict that they should have)" in words
    words = " ".join(Parsed(page(Report("r", "0", {}, []))).words.split())
    assert "? Unproven" in words and words.count("nothing was compared") == 6


def test_only_the_stages_that_were_asked_for_count() -> None:
    words = " ".join(Parsed(page(made_up_reports.narrowed("data", "init"))).words.split())
    assert "✓ Parity in data and init" in words and "all six stages" not in words
    assert "A part of the training step was compared: forward, loss, gradients and update were not judged." in words
    words = " ".join(Parsed(page(made_up_reports.narrowed("forward", modules=["layer1*"]))).words.split())
    assert "No parity in forward of layer1*" in words and "other modules, data, init, loss" in words


def test_the_recipe_is_shown_only_while_it_is_the_one(tmp_path: Path) -> None:
    from msmigrate.training.recipe import reader

    file = tmp_path / "recipe.yaml"
    file.write_text(RECIPE.read_text())
    report = replace(made_up_reports.report(False), recipe=str(file), recipe_digest=reader.load(file).digest)
    assert "described once for both frameworks" in page(report)
    file.write_text(RECIPE.read_text().replace("batch: 8", "batch: 4"))
    assert "described once for both frameworks" not in page(report)
    file.unlink()
    assert "described once for both frameworks" not in page(report)


def test_it_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_html(made_up_reports.hostile(), None, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").rstrip().endswith("</html>")
    for bad in (tmp_path, tmp_path / "missing" / "page.html"):
        with pytest.raises(BadDestination, match="cannot write"):
            write_html(made_up_reports.hostile(), None, bad)
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_only_the_faulty_module_says_why_not_every_container_around_it(faulty: str) -> None:
    abouts = re.findall(r'<div class="about">(.*?)</div>', faulty, re.DOTALL)
    told = [re.sub(r"<[^>]+>|\s+", " ", about).split("in MindSpore: ")[-1].split()[0] for about in abouts]
    assert told == ["maxpool", "layer2.1.bn2", "layer3.2", "layer4.0.downsample.1", "layer4.2.relu"]


def test_a_hypothesis_that_holds_explains_without_a_known_fault() -> None:
    cause = replace(made_up_reports.CAUSES[0], fault=None)
    for ratio, kind, said in ((0.9, "cause", "under this fault"), (4.5, "cause unexplained", "the nearest hypothesis")):
        text = page(replace(made_up_reports.report(), causes=[replace(cause, ratio=ratio)]))
        assert f'<article class="{kind}">' in text and said in text


def test_odd_findings_do_not_stop_it() -> None:
    odd = [
        Finding("forward", "", "", 0, Verdict.FAIL),
        Finding("loss", "p", "n", 1, Verdict.NONE, error=-0.0, ratio=1e300),
    ]
    assert Parsed(page(Report("", "", {}, odd))).open == []


def test_everything_the_page_is_made_of_is_packaged() -> None:
    import house_rules

    patterns = house_rules.settings(RECIPE.parents[1])["tool"]["setuptools"]["package-data"]["msmigrate.reports.html"]
    files = [file for file in HERE.iterdir() if file.suffix not in (".py", "") and file.is_file()]
    assert len(files) > 5 and not [file for file in files if not any(file.match(pattern) for pattern in patterns)]
    assert not [file for file in files if len(re.findall("\n", file.read_text(encoding="utf-8"))) > 300]


@pytest.mark.parametrize(
    ("value", "short", "long"),
    [
        (None, "", ""),
        (float("nan"), "", ""),
        (float("inf"), "∞", "∞"),
        (0.0, "0", "0"),
        (0.93, "0.93", "0.93"),
        (12.84, "12.8", "12.8"),
        (1650.4, "1.7e+03", "1,650"),
        (7.1e5, "7.1e+05", "710,000"),
        (2.53e7, "2.5e+07", "2.5e+07"),
        (1.2e-7, "1.2e-07", "1.2e-07"),
    ],
)
def test_numbers_are_short(value: float | None, short: str, long: str) -> None:
    assert (shown(value), times(value)) == (short, long)


def test_packed_numbers_are_strict_json() -> None:
    values = [packed(x) for x in (None, float("nan"), float("inf"), -float("inf"), 1.23456e-7, 3.0, 1e300)]
    assert values == [None, None, "inf", "-inf", 1.235e-7, 3, 1e300]
    assert json.loads(json.dumps(values, allow_nan=False)) == values
