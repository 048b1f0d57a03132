"""Which optimizer a state dict is of: told by the rows of the table, asked for where several fit, never guessed."""

from __future__ import annotations

from typing import Any

import pytest
from msmigrate.errors import Ambiguous, BadCheckpoint, BadInput, MsmigrateError, Unsupported
from msmigrate.mappings import table
from msmigrate.mappings.rows import Row
from msmigrate.migrate.checkpoint.optimizer_state import LATER, optimizer_row

ROWS = table.rows("optimizer")


def group(name: str, **more: Any) -> dict[str, Any]:
    """The group that today's torch keeps of the defaults."""
    row = table.row(name)
    own = {key: values[0] if values else 0.5 for key, values in row.group_options.items()}
    options = {argument.torch: argument.default for argument in row.arguments if argument.torch != "params"}
    return {**options, **own, "params": [0], **more}


def old(name: str) -> dict[str, Any]:
    """The group that torch kept before its optimizers got their later options."""
    return {key: value for key, value in group(name).items() if key not in LATER}


def parts(row: Row) -> set[str]:
    return {item.torch for item in row.state if item.torch is not None and item.when is None and not item.in_groups}


@pytest.mark.parametrize("row", [row for row in ROWS if row.mindspore], ids=lambda row: row.torch)
def test_every_row_s_own_state_is_told(row: Row) -> None:
    assert optimizer_row([group(row.torch), group(row.torch, initial_lr=0.1)], parts(row)) is row
    assert optimizer_row([group(row.torch)], parts(row), [row.torch]) is row


@pytest.mark.parametrize("row", [row for row in ROWS if row.mindspore is None], ids=lambda row: row.torch)
def test_a_state_without_counterpart_is_refused_with_the_reason(row: Row) -> None:
    with pytest.raises(Unsupported, match=rf"it is {row.torch}'s state, which has no counterpart: \w+"):
        optimizer_row([group(row.torch)], {"step"})


MOMENTS = {"step", "exp_avg", "exp_avg_sq"}


def test_what_old_files_do_not_tell_is_asked_for() -> None:
    with pytest.raises(Ambiguous, match=r"it may be the state of torch\.optim\.Adam or torch\.optim\.AdamW: name the"):
        optimizer_row([old("Adam")], MOMENTS)
    for name in ("torch.optim.AdamW", "optim.AdamW", "AdamW", "adamw", "torch.optim.Adam"):
        assert optimizer_row([old("Adam")], MOMENTS, [name]).short.lower() == name.rpartition(".")[2].lower()
    assert optimizer_row([old("RAdam")], MOMENTS).short == "RAdam"
    with pytest.raises(Ambiguous, match=r"state of torch\.optim\.Adamax or torch\.optim\.RAdam: "):
        optimizer_row([group("Adamax")], set())  # before the first step


@pytest.mark.parametrize(
    ("groups", "held", "named", "error", "says"),
    [
        ([group("Adam")], MOMENTS, "SGD", BadCheckpoint, "groups have no dampening, momentum, nesterov"),
        ([group("Adam")], MOMENTS, "SGD", BadCheckpoint, "it looks like torch.optim.Adam"),
        ([group("Adam")], MOMENTS, "AdamW", BadCheckpoint, "decoupled_weight_decay=False, torch.optim.AdamW's True"),
        ([group("AdamW")], MOMENTS, "Adam", BadCheckpoint, "Use torch.optim.AdamW.; it looks like torch.optim.AdamW"),
        ([group("SGD")], {"exp_avg"}, "SGD", BadCheckpoint, "it holds exp_avg, which torch.optim.SGD does not"),
        ([group("SGD")], set(), "Adamw2", BadInput, "no optimizer Adamw2; did you mean torch.optim.AdamW?"),
        ([group("SGD")], set(), "nothing.like.it", BadInput, "msmigrate mappings lists them"),
        ([group("Adam")], MOMENTS, "SparseAdam", Unsupported, "has no counterpart"),
        (
            [group("SGD", mine=True)],
            set(),
            None,
            Ambiguous,
            "mine in its parameter groups is no option of torch.optim.SGD: if it is",
        ),
        ([group("Lamb", caution=True)], set(), None, Unsupported, "caution=True has no counterpart: not written"),
        ([{"params": [0], "lr": 0.1}], {"z"}, None, Unsupported, "no optimizer with the state z and the options lr:"),
        ([], set(), None, Unsupported, "no optimizer with no state yet and the options none"),
    ],
)
def test_what_is_refused(
    groups: list[dict[str, Any]], held: set[str], named: str | None, error: type[MsmigrateError], says: str
) -> None:
    with pytest.raises(error) as caught:
        optimizer_row(groups, held, None if named is None else [named])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_option_of_the_script_s_own_is_let_pass_when_the_class_is_named() -> None:
    assert optimizer_row([group("SGD", mine=True)], set(), ["torch.optim.SGD"]).short == "SGD"


def test_the_first_name_that_has_a_row_counts() -> None:
    assert optimizer_row([group("SGD")], set(), ["torch.optim.sgd.SGD", "torch.optim.SGD"]).short == "SGD"
