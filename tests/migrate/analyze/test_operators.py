"""Uses are judged by their rows: direct, composed, by hand, missing, or without a row; and the verdict adds them up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from msmigrate.mappings import aliases
from msmigrate.mappings.rows import MISSING, NOT_RUN, Row
from msmigrate.migrate.analyze.model_analysis import Analysis
from msmigrate.migrate.analyze.operators import Operator, TensorValue, operators, patterns, source, status_of
from recorded_uses import TENSOR, called, ran


def judged(*uses: dict[str, Any], mode: str = "pynative", target: str = "CPU") -> dict[str, Operator]:
    return {operator.torch: operator for operator in operators(uses, mode, target)}


def analysis(found: dict[str, Operator], **settings: Any) -> Analysis:
    costs: dict[str, int | None] = {"parameters": 1, "flops": None}
    content: dict[str, Any] = {"mode": "pynative", "target": "CPU", "costs": costs, "inputs": "1×3", **settings}
    return Analysis(name="net", kind="torch", operators=tuple(found.values()), **content)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Row]]:
    """The rows by name, for tests to change."""
    rows = dict(aliases.rows_by_name())
    monkeypatch.setattr(aliases, "rows_by_name", lambda: rows)
    monkeypatch.setattr("msmigrate.migrate.analyze.operators.rows_by_name", lambda: rows)
    aliases._find.cache_clear()
    yield rows
    aliases._find.cache_clear()


def test_uses_of_one_row_are_one_operator() -> None:
    found = judged(
        called("torch.Tensor.add", TENSOR, TENSOR, path="a", times=2),
        called("torch.Tensor.__iadd__", TENSOR, 1, path="b"),
        ran("torch.nn.ReLU", path="c"),
    )
    assert list(found) == ["torch.add", "torch.nn.ReLU"]
    add = found["torch.add"]
    assert (add.calls, add.train_calls, add.places, add.way) == (3, 3, ("a", "b"), "direct")
    assert add.status == "equal" and add.measured and add.mindspore == "mindspore.ops.add"
    assert add.call == "mindspore.ops.add(input, other)"


def test_the_call_to_write_has_the_model_s_own_arguments() -> None:
    conv = {"in_channels": 3, "out_channels": 8, "kernel_size": {"tuple": [3, 3]}, "bias": False}
    found = judged(ran("torch.nn.Conv2d", **conv))["torch.nn.Conv2d"]
    assert found.call is not None and found.call.startswith("mindspore.nn.Conv2d(in_channels=3, out_channels=8, ")
    assert "has_bias=False" in found.call
    assert "bias → has_bias" in found.differs


def test_a_refused_value_with_a_remedy_is_done_by_hand() -> None:
    found = judged(called("torch.add", TENSOR, TENSOR, alpha=2))["torch.add"]
    assert found.way == "by hand" and "Multiply the second tensor first" in found.changes[0]


def test_arguments_that_the_row_does_not_list_are_to_be_looked_at() -> None:
    found = judged(called("torch.add", TENSOR, TENSOR, unheard_of=2))["torch.add"]
    assert found.way == "direct" and found.changes[0].startswith("look at its arguments: ")


def test_without_a_row_and_without_a_counterpart_are_different(known: dict[str, Row]) -> None:
    gone = replace(known["torch.add"], torch="torch.gone", mindspore=None, aliases=(), why="write it yourself")
    known["torch.gone"] = replace(gone, status=dict.fromkeys(gone.status, MISSING))
    found = judged(called("torch.gone", TENSOR), called("torch.unheard_of", TENSOR))
    gone_operator, unknown = found["torch.gone"], found["torch.unheard_of"]
    assert (gone_operator.way, gone_operator.why) == (MISSING, "write it yourself")
    assert (unknown.way, unknown.mindspore) == ("no row", None)
    verdict = analysis(found).verdict
    assert "2 of 2 operators missing: torch.gone (no counterpart), torch.unheard_of (no row)" in verdict
    assert analysis(found).missing == [gone_operator, unknown]


def test_what_a_module_of_torch_calls_inside_is_called_by_the_module() -> None:
    use = called("torch.unheard_of", TENSOR)
    found = judged({**use, "owners": ["torch.nn.UnheardOf"]})
    assert found["torch.nn.UnheardOf"].kind == "module"


def test_composed_rows_say_so(known: dict[str, Row]) -> None:
    target = "msmigrate.nn.functional.add"
    known["torch.add"] = replace(known["torch.add"], mindspore=target, aliases=())
    found = judged(called("torch.add", TENSOR, TENSOR), ran("torch.nn.ReLU"))
    assert found["torch.add"].way == "composed"
    assert analysis(found).verdict == "net moves: 2 operators, 1 direct, 1 composed (torch.add)"


def test_statuses_are_of_the_mode_and_the_target(known: dict[str, Row]) -> None:
    row = replace(known["torch.add"], status={"pynative": "equal", "graph": MISSING, "ascend": NOT_RUN})
    assert status_of(row, "pynative", "CPU") == "equal"
    assert status_of(row, "graph", "CPU") == MISSING
    assert status_of(row, "graph", "Ascend") == NOT_RUN == status_of(row, "pynative", "GPU")
    known["torch.add"] = row
    assert judged(called("torch.add", TENSOR, TENSOR), mode="graph")["torch.add"].missing
    found = judged(called("torch.add", TENSOR, TENSOR), target="Ascend")
    assert not found["torch.add"].measured
    told = analysis(found, target="Ascend").verdict
    assert told == "net moves: 1 operator, all direct (from documentation: nothing ran on Ascend)"


def test_what_nobody_ran_is_said_in_the_verdict(known: dict[str, Row]) -> None:
    known["torch.add"] = replace(known["torch.add"], status={**known["torch.add"].status, "pynative": NOT_RUN})
    told = analysis(judged(called("torch.add", TENSOR, TENSOR))).verdict
    assert told == "net moves: 1 operator, all direct (torch.add: documented, not run)"


def test_pitfalls_name_the_operators_they_are_of() -> None:
    found = analysis(judged(ran("torch.nn.BatchNorm2d", num_features=4), ran("torch.nn.ReLU")))
    assert found.pitfalls["bn-momentum-complement"] == ["torch.nn.BatchNorm2d"]


def test_nothing_at_all_does_not_move() -> None:
    assert "moves" not in analysis({}).verdict


def test_values_cross_the_worker_s_json() -> None:
    swapped = judged(called("torch.Tensor.__rmul__", TENSOR, 2))["torch.mul"]
    assert swapped.call == "mindspore.ops.mul(input=2, other)"
    joined = judged(called("torch.cat", [TENSOR, TENSOR], 1))["torch.cat"]
    assert joined.call is not None and "axis=1" in joined.call
    from msmigrate.mappings.rows import Call

    assert source(Call("a.b", {"c": Call("d", {"e": 1}), "f": "g"})) == "a.b(c=d(e=1), f='g')"
    assert source(Call("a.b", {"c": "a tensor", "d": ["a tensor"]})) == "a.b(c='a tensor', d=['a tensor'])"
    assert (
        source(Call("a.b", {"c": [TensorValue("float32", 2)], "d": slice(None)})) == "a.b(c, d=slice(None, None, None))"
    )


def test_tensors_one_by_one_are_a_list_of_them(known: dict[str, Row]) -> None:
    assert known["torch.cat"].arguments[0].torch == "tensors"
    found = judged(called("torch.cat", TENSOR, TENSOR, dim=1))["torch.cat"]
    assert found.call is not None and "axis=1" in found.call and not found.changes


def test_paths_are_told_in_short() -> None:
    paths = ["layer1.0.conv", "layer1.1.conv", "layer2.0.conv", "fc", ""]
    assert patterns(paths) == ["layer*.*.conv (3)", "fc", "(the top)"]
    assert patterns(["a", "b", "c"], 2) == ["a", "b", "and 1 more"]
