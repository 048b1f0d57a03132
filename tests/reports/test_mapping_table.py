"""The printed table, the command, and the page that is generated from it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msmigrate.mappings import rows as rows_module
from msmigrate.mappings import table
from msmigrate.reports import mapping_table

ROOT = Path(__file__).parents[2]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "msmigrate", "mappings", *arguments]
    return subprocess.run(run, capture_output=True, text=True, check=False)


def test_the_page_is_fresh() -> None:
    page = (ROOT / "docs" / "mappings.md").read_text(encoding="utf-8")
    assert page == mapping_table.markdown(), "stale: run `python -m msmigrate.reports.mapping_table docs/mappings.md`"


def test_links_inside_the_page_lead_somewhere() -> None:
    page = mapping_table.markdown()
    headings = {mapping_table._anchor(line.lstrip("# ")) for line in page.splitlines() if line.startswith("#")}
    targets = {part.partition(")")[0] for part in page.split("](#")[1:]}
    assert targets <= headings


def test_the_whole_table_is_printed() -> None:
    done = command()
    assert done.returncode == 0, done.stderr
    assert all(row.torch in done.stdout for row in table.rows())


def test_one_row_with_arguments_state_status_and_pitfalls() -> None:
    text = command("BatchNorm2d").stdout
    for part in ("momentum=0.1", "1 - value", "running_var", "moving_variance", "documented, not run"):
        assert part in text
    fault = table.faults()["bn-momentum-complement"]
    assert fault.symptom in text
    assert fault.fix in text


@pytest.mark.parametrize("row", table.rows(), ids=lambda row: row.torch)
def test_every_row_can_be_printed(row: rows_module.Row, capsys: pytest.CaptureFixture[str]) -> None:
    mapping_table.show([row], whole=True)
    text = capsys.readouterr().out
    assert row.torch in text
    assert all(argument.torch in text for argument in row.arguments)


def test_json_holds_arguments_and_faults() -> None:
    rows = json.loads(command("--kind", "optimizer", "--json").stdout)
    assert [row["torch"].rpartition(".")[2] for row in rows][:4] == ["SGD", "Adam", "AdamW", "RMSprop"]
    assert rows[0]["state"][0]["mindspore"] == "accum"
    assert rows[0]["pitfalls"][0]["fix"]


def test_an_unknown_name_is_one_line_and_exit_2() -> None:
    done = command("Conv2")
    assert done.returncode == 2
    assert done.stdout == ""
    said = "msmigrate mappings: the mapping table has no row 'Conv2'; did you mean torch.nn.Conv2d"
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_name_and_kind_exclude_each_other() -> None:
    assert command("Conv2d", "--kind", "layer").returncode == 2
