"""The coverage of many models: a line for each family, what is lacking, and the same in markdown and JSON."""

from __future__ import annotations

import pytest
from msmigrate.migrate.analyze.model_analysis import Analysis, Coverage, Covered
from msmigrate.migrate.analyze.operators import Operator
from msmigrate.reports import model_analysis
from msmigrate.reports import progress as progress_module

RELU = Operator(torch="torch.nn.ReLU", way="direct", mindspore="mindspore.nn.ReLU", status="equal")
ROLL = Operator(torch="torch.roll", way="composed", mindspore="msmigrate.nn.functional.roll", status="equal")
SINC = Operator(torch="torch.sinc", way="no row")


def covered(name: str, family: str, *operators: Operator, failed: str | None = None) -> Covered:
    analysis = Analysis(name, "torch", "pynative", "CPU", operators, {}, "1×3")
    return Covered(name, family, 1.5, None if failed else analysis, failed)


FOUND = Coverage(
    (
        covered("plain", "torchvision classification", RELU),
        covered("shifted", "torchvision classification", RELU, ROLL),
        covered("odd", "timm", RELU, SINC),
        covered("broken", "timm", failed="it does not run"),
    ),
    "pynative",
    "CPU",
)


def test_families_are_counted() -> None:
    assert model_analysis.rows(FOUND) == [
        ("timm", "2", "0", "0", "2 to 2", "1.5"),
        ("torchvision classification", "2", "2", "1", "1 to 2", "1.5"),
        ("all", "4", "2", "1", "1 to 2", "1.5"),
    ]
    assert FOUND.lacking() == [("torch.sinc", "no row", 1)] and FOUND.used() == 3


def test_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    model_analysis.show_coverage(FOUND, whole=True)
    text = capsys.readouterr().out
    assert "lacks sinc" in text and "3 different operators" in text
    assert "broken was not analysed: it does not run" in text


def test_markdown_and_json_say_the_same() -> None:
    page = model_analysis.markdown(FOUND)
    assert page.splitlines()[2] == "| timm | 2 | 0 | 0 | 2 to 2 | 1.5 |"
    assert page.splitlines()[-1] == "Missing (in how many models): `torch.sinc` (1). Not analysed: broken."
    told = model_analysis.coverage_json(FOUND)
    assert told["families"][2]["move"] == "2" and told["models"][3]["failed"] == "it does not run"


def test_no_bar_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_module.Progress() as progress:
        progress.start(2)
        progress.done("plain")
    assert capsys.readouterr() == ("", "")
