"""A row holds from some MindSpore on: before that it has no counterpart, and says from when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from click.testing import CliRunner
from msmigrate.cli.group import cli
from msmigrate.errors import Unsupported
from msmigrate.mappings import aliases, table
from msmigrate.mappings.rows import MISSING, OLDEST, Row
from packaging.version import Version

LATER = [row for row in table.rows() if row.since != OLDEST]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Iterator[Row]:
    """A built-in row that holds from 2.9 on."""
    real = table.built_in
    row = replace(table.row("torch.nn.Conv2d"), since="2.9")

    def built_in(kind: str) -> tuple[Row, ...]:
        return tuple(row if each.torch == row.torch else each for each in real(kind))

    monkeypatch.setattr(table, "built_in", built_in)
    kept = (table._with_own, table._row, aliases._find, aliases._index, aliases._rows_by_name)
    for cache in kept:
        cache.cache_clear()
    yield row
    for cache in kept:
        cache.cache_clear()


def test_a_row_that_came_later_is_missing_before(later: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(table.VERSION, "2.8.0")
    row = table.row("torch.nn.Conv2d")
    assert (row.mindspore, row.exact, set(row.status.values())) == (None, False, {MISSING})
    assert row.why == "MindSpore computes it so from 2.9 on, and this is 2.8.0"
    assert aliases.find("torch.nn.Conv2d").row == row
    with pytest.raises(Unsupported, match=r"Conv2d has no MindSpore counterpart: .*from 2\.9 on"):
        table.translate("torch.nn.Conv2d", {"in_channels": 3, "out_channels": 8, "kernel_size": 1})
    assert table.row("torch.nn.ReLU").mindspore == "mindspore.nn.ReLU"
    monkeypatch.setenv(table.VERSION, "2.9.0")
    assert table.row("torch.nn.Conv2d") == later
    assert aliases.find("torch.nn.Conv2d").row == later


def test_the_command_says_from_when(later: Row) -> None:
    told = CliRunner().invoke(cli, ["mappings", "Conv2d", "--mindspore-version", "2.7.2"]).output
    assert "from 2.9 on, and this is 2.7.2" in " ".join(told.split())
    assert "mindspore.nn.Conv2d" in CliRunner().invoke(cli, ["mappings", "Conv2d"]).output  # nothing stays in force


@pytest.mark.parametrize(("version", "said"), [("2.6", "older"), ("newest", "is no version"), ("", "")])
def test_a_version_that_is_none_is_wrong_usage(version: str, said: str) -> None:
    done = CliRunner().invoke(cli, ["mappings", "Conv2d", "--mindspore-version", version])
    assert said in done.output and done.exit_code == (2 if said else 0)


def test_without_a_name_the_installed_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(table.VERSION, raising=False)
    monkeypatch.setattr(table, "_installed", lambda: "2.8.0")
    assert table.mindspore_version() == "2.8.0"
    monkeypatch.setenv(table.VERSION, "2.9.0")
    assert table.mindspore_version() == "2.9.0"


def test_every_row_s_version_is_one() -> None:
    assert all(Version(row.since) > Version(OLDEST) for row in LATER)
