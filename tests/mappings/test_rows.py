"""Every row of the mapping table: what both frameworks did, every argument of both, and values without counterpart."""

from __future__ import annotations

import itertools

import pytest
from mapping_cases import MODES, Results, bind, is_called, quick, runnable
from mapping_judge import judge
from msmigrate import errors
from msmigrate.mappings import table
from msmigrate.mappings.rows import MISSING, NOT_APPLICABLE, NOT_RUN, SAME_DISTRIBUTION, Argument, Case, Row

CASES = list(runnable())
QUICK = [item for item in CASES if item[0] in quick()]
CALLED = [row for row in table.rows() if is_called(row)]
REFUSED = [(row, case) for row in table.rows() for case in row.cases if case.raises]


@pytest.mark.parametrize(("name", "row", "case"), QUICK, ids=[name for name, _, _ in QUICK])
def test_row(name: str, row: Row, case: Case, found: dict[str, Results]) -> None:
    agrees(name, row, case, quick()[name], found)


@pytest.mark.full
@pytest.mark.parametrize(("name", "row", "case"), CASES, ids=[name for name, _, _ in CASES])
def test_every_case(name: str, row: Row, case: Case, found_all: dict[str, Results]) -> None:
    agrees(name, row, case, MODES, found_all)


def agrees(name: str, row: Row, case: Case, modes: tuple[str, ...], found: dict[str, Results]) -> None:
    """What MindSpore did in these modes is what the row declares."""
    broken = [text for key, text in found["torch"].errors.items() if key.partition("/")[0] == name]
    assert not broken, broken[0]
    for mode in modes:
        declared = row.status[mode]
        if declared == NOT_APPLICABLE:
            continue
        status, wrong = judge(name, row, case, mode, found)
        assert not wrong, "\n".join(wrong)
        # A row that is random in one case may be equal in another, as Dropout(p=0) is.
        assert declared in (status, SAME_DISTRIBUTION), f"{mode}: declared '{declared}', found '{status}'"


@pytest.mark.parametrize(("row", "case"), REFUSED, ids=[f"{row.torch}({case.raises})" for row, case in REFUSED])
def test_value_without_counterpart(row: Row, case: Case) -> None:
    of_tensors = row.kind == "function"  # the objects stand for them
    with pytest.raises(errors.Unsupported, match=rf"{row.torch}: {case.raises}="):
        table.translate(row.torch, bind(row, case, [object() for _ in case.inputs]) if of_tensors else case.args)


def test_every_row_ran_or_says_that_it_did_not() -> None:
    ran = {row.torch for _, row, _ in CASES}
    for row in table.rows():
        statuses = {row.status[mode] for mode in ("pynative", "graph")}
        assert (row.torch in ran) == (not statuses <= {NOT_RUN, MISSING}), row.torch
        assert row.status["ascend"] in (NOT_RUN, MISSING), row.torch
        if row.torch in ran and row.status["pynative"] == SAME_DISTRIBUTION:
            assert any(not case.train or case.shape or case.steps > 6 for case in row.cases), row.torch


@pytest.mark.parametrize("row", CALLED, ids=lambda row: row.torch)
def test_every_argument_of_torch_is_in_its_row(row: Row, found: dict[str, Results]) -> None:
    known = {argument.torch: argument for argument in row.arguments if not argument.torch.startswith("*")}
    signature = found["torch"].notes["signatures"][row.torch]
    assert [name for name in signature["defaults"] if name not in known] == []
    for overload in signature["orders"]:
        assert [name for name in known if name in overload] == overload, "the order of torch"
    for name, default in signature["defaults"].items():
        argument = known[name]
        if name in ("params", "optimizer", "tensor", "module", "parameters"):
            continue  # the caller's part
        assert ("required" if argument.required else argument.default) == default, name


@pytest.mark.parametrize("row", [row for row in CALLED if row.mindspore], ids=lambda row: row.torch)
def test_every_argument_of_mindspore_is_written(row: Row, found: dict[str, Results]) -> None:
    signature = found["mindspore"].notes["signatures"][row.torch]
    written = {name for argument in row.arguments for name in argument.to} | {item.mindspore for item in row.written}
    assert written | set(row.unwritten) == set(signature)
    assert not written & set(row.unwritten)
    defaults = {name: default for name, default in signature.items() if default is not None}
    assert dict(row.defaults) == defaults


@pytest.mark.parametrize("row", [row for row in CALLED if row.mindspore], ids=lambda row: row.torch)
def test_arguments_in_another_order_are_given_by_name(row: Row, found: dict[str, Results]) -> None:
    """What has to be given is written without names, as far as both have it in one order."""
    names = list(found["mindspore"].notes["signatures"][row.torch])

    def plain(argument: Argument) -> bool:
        return argument.required and len(argument.to) == 1 and argument.to[0] not in row.defaults

    leading = [argument.to[0] for argument in itertools.takewhile(plain, row.arguments)]
    assert row.in_order == (leading == names[: len(leading)])


def test_aliases_exist_in_torch(found: dict[str, Results]) -> None:
    assert found["torch"].notes["missing"] == []


def test_what_scripts_are_told_to_write_exists_in_mindspore(found: dict[str, Results]) -> None:
    assert found["mindspore"].notes["missing"] == []
