"""The engine of drawn cases sees a wrong row, names the smallest case, and outlives a worker that dies or hangs."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from case_client import Server, Stopped
from msmigrate.mappings import table
from msmigrate.mappings.rows import Case
from test_varied_rows import agree
from varied_judge import Engine

# As built in, but for the slope: MindSpore's is written, whatever torch's is.
WRONG_ROW = """
- torch: torch.nn.LeakyReLU
  kind: layer
  mindspore: mindspore.nn.LeakyReLU
  exact: true
  arguments:
    negative_slope: {default: 0.01, why: forgotten}
    inplace: {default: false, why: MindSpore computes no layer in place.}
  written:
    alpha: {value: 0.01}
"""
WRONG_ARGUMENTS = {"torch.nn.Softmax": {"axis": 1}, "torch.transpose": {"dim0": 0}}


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Both workers, MindSpore's with a wrong row and wrong arguments."""
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "wrong.yaml").write_text(WRONG_ROW)
    mindspore = Server(
        "mindspore", folder, [json.dumps(WRONG_ARGUMENTS)], {"MSMIGRATE_MAPPINGS": str(folder / "wrong.yaml")}
    )
    started = Engine(Server("torch", folder), mindspore)
    yield started
    started.close()


@pytest.mark.parametrize(
    ("name", "smallest"),
    [
        ("torch.nn.LeakyReLU", "'negative_slope': 0.1}"),  # the smallest in which it is seen
        ("torch.nn.Softmax", "'dim': 2}, inputs=([1, 1, 2],)"),
        pytest.param("torch.transpose", "Case(", marks=pytest.mark.full),
    ],
)
def test_a_wrong_row_is_seen(wrong: Engine, name: str, smallest: str) -> None:
    with pytest.raises(AssertionError, match=rf"{name}, declared 'equal' in pynative: ") as raised:
        agree(wrong, table.row(name), "pynative", 20)
    assert smallest in str(raised.value)
    assert "allowed" in str(raised.value) or "shape" in str(raised.value)


def test_a_right_row_is_not(wrong: Engine) -> None:
    agree(wrong, table.row("torch.nn.ReLU"), "pynative", 2)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        pytest.param(signal.SIGKILL, "worker died", marks=pytest.mark.full),
        pytest.param(signal.SIGSTOP, "said nothing for 2 s", marks=pytest.mark.full),
    ],
)
def test_a_worker_that_dies_or_hangs_is_told_and_started_again(tmp_path: Path, sent: int, said: str) -> None:
    row, case = table.row("torch.nn.ReLU"), Case(inputs=([2, 3],))
    server = Server("torch", tmp_path, patience=2)
    try:
        server._start()
        assert server.process is not None
        server.process.send_signal(sent)
        with pytest.raises(Stopped, match=said):
            server.ask("x", row, case, ("pynative",))
            server.answer()
        server.patience = 60
        server.ask("x", row, case, ("pynative",))
        assert not server.answer().errors
        assert server.starts == 2
    finally:
        server.close()


def test_a_case_that_torch_refuses_blames_the_rows_variation(wrong: Engine) -> None:
    bad = Case(args={"negative_slope": "steep"}, inputs=([2],))
    assert "mend the row's `vary`" in wrong.complaints(table.row("torch.nn.LeakyReLU"), bad, "pynative")[0]


def test_a_mindspore_worker_that_raised_is_not_asked_again(wrong: Engine) -> None:
    starts = wrong.mindspore.starts
    row = table.row("torch.nn.Linear")
    shapes = Case(args={"in_features": 3, "out_features": 2}, inputs=([2, 3],))
    assert wrong.complaints(row, shapes, "pynative") == []
    refused = Case(args={"in_features": 3, "out_features": 2, "dtype": "torch.float64"}, inputs=([2, 3],))
    assert wrong.complaints(row, refused, "pynative")
    assert wrong.complaints(row, shapes, "pynative") == []
    assert wrong.mindspore.starts == starts + 1
