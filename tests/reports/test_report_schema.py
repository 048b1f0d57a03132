"""docs/report.schema.json: fresh, every field described, and what reports really look like."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import made_up_reports
import pytest
from msmigrate.parity.result import Report
from msmigrate.reports.parity_json import main, schema, write_json

COMMITTED = Path(__file__).parents[2] / "docs" / "report.schema.json"
EXAMPLES = sorted((COMMITTED.parent / "examples").glob("*.json"))
FAULTY = made_up_reports.report()
FEW = replace(FAULTY, findings=FAULTY.findings[::40])  # validating thousands takes seconds
REPORTS = {
    "faulty": FEW,
    "clean": replace(FEW, findings=made_up_reports.report(False).findings[::40]),
    "hostile": made_up_reports.hostile(),
    "empty": Report("r.yaml", "0", {}, []),
    "narrowed": made_up_reports.narrowed("loss"),
    "narrowed and clean": made_up_reports.narrowed("data", "init"),
    "narrowed to modules": replace(made_up_reports.narrowed(modules=["fc"]), causes=[]),
}


def check(document: Any) -> None:
    """Hold a document to the schema. Raises jsonschema.ValidationError."""
    jsonschema.validate(document, json.loads(COMMITTED.read_text(encoding="utf-8")))


def test_the_committed_schema_is_fresh(tmp_path: Path) -> None:
    main(tmp_path / "schema.json")
    assert COMMITTED.read_bytes() == (tmp_path / "schema.json").read_bytes(), "run `make docs`"


def test_the_schema_is_a_schema_and_describes_every_field() -> None:
    found = schema()
    jsonschema.Draft202012Validator.check_schema(found)
    undescribed = [name for name, shape in _fields(found) if not shape.get("description")]
    assert undescribed == [] and len(list(_fields(found))) > 50


def _fields(shape: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from shape["properties"].items()
    for name, part in shape.get("$defs", {}).items():
        yield from ((f"{name}.{field}", of) for field, of in _fields(part))


@pytest.mark.parametrize("name", REPORTS)
def test_reports_are_what_the_schema_says(name: str) -> None:
    document = json.loads(json.dumps(REPORTS[name].as_json(), allow_nan=False))
    check(document)
    assert set(document) <= set(schema()["properties"])


def test_a_narrowed_report_never_says_parity() -> None:
    document = made_up_reports.narrowed("data", "init").as_json()
    assert document["parity"] is None
    assert document["narrowed"] == {"stages": ("data", "init"), "modules": (), "parity": True}
    document = made_up_reports.narrowed("forward").as_json()
    assert document["parity"] is False and document["narrowed"]["parity"] is False
    assert REPORTS["clean"].as_json()["narrowed"] is None


def test_a_written_file_is_what_the_schema_says(tmp_path: Path) -> None:
    write_json(FAULTY, tmp_path / "report.json")
    check(json.loads((tmp_path / "report.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_the_examples_are_what_the_schema_says(file: Path) -> None:
    check(json.loads(file.read_text(encoding="utf-8")))


BREAK: list[Callable[[dict[str, Any]], Any]] = [
    lambda d: d.pop("parity"),
    lambda d: d.update(extra=1),
    lambda d: d["findings"][0].update(verdict="perhaps"),
    lambda d: d["findings"][0].update(shape=["a"]),
    lambda d: d["causes"][0].pop("fix"),
    lambda d: d["modules"][0].update(own="yes"),
    lambda d: d["stages"].clear(),
    lambda d: d.update(versions={"torch": 2}),
    lambda d: d.pop("steps"),
]


@pytest.mark.parametrize("number", range(len(BREAK)))
def test_what_is_no_report_is_refused(number: int) -> None:
    document = copy.deepcopy(json.loads(json.dumps(REPORTS["faulty"].as_json())))
    BREAK[number](document)
    with pytest.raises(jsonschema.ValidationError):
        check(document)
