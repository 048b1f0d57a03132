"""`msmigrate explain`: a page for every fault, and help for one that nobody knows."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from msmigrate import errors
from msmigrate.cli import group
from msmigrate.mappings import table
from msmigrate.reports import mapping_table
from rich.console import Console


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(group.cli, ["explain", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", table.faults())
def test_every_fault_has_its_page(name):
    fault, console = table.faults()[name], Console(width=400)
    with console.capture() as captured:
        mapping_table.show_fault(fault, console)
    text = captured.get()
    for part in (fault.id, fault.torch, fault.mindspore, fault.symptom, fault.fix, *table.examples()[name]):
        assert part in text, part


def test_the_page_names_where_people_meet_the_fault():
    text = printed("bn-momentum-complement")
    assert "torch.nn.BatchNorm2d" in text and "momentum = 1 - torch" in text


def test_all_faults_are_listed():
    text = printed()
    assert all(name in text for name in table.faults())


def test_json_has_the_example():
    (fault,) = json.loads(printed("ln-eps", "--json"))
    assert fault["id"] == "ln-eps" and fault["example"]["right"].endswith("epsilon=1e-5)")
    assert len(json.loads(printed("--json"))) == len(table.faults())


def test_an_unknown_fault_gets_the_closest_names():
    with pytest.raises(errors.BadInput, match=r"no fault is called 'bn-momentum'; did you mean bn-momentum-complement"):
        mapping_table.find("bn-momentum")
    with pytest.raises(errors.BadInput, match=r"lists them all"):
        mapping_table.find("§§§§")
