"""Recurrent layers under other names: each runs alone, packed sequences too, and a mistake has its place and cause."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.result import Report
from msmigrate.parity.run import parity_step
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import ALONE, WIRING
from msmigrate.training.recipe import reader as recipes

HERE = Path(__file__).parent
RECIPE = HERE.parents[2] / "examples" / "own_step" / "recipe.yaml"


def report(net: str, arguments: str, fault: str, folder: Path) -> Report:
    draws = np.random.default_rng(0)
    batch = {"input": draws.standard_normal((4, 7, 6)).astype(np.float32), "input.1": np.array([3, 5, 6, 2])}
    np.savez(folder / "batch.npz", **batch, labels=draws.integers(0, 4, 4))
    faulty = ", ".join(filter(None, (arguments, fault and f"fault={fault!r}")))
    models = (
        f"{HERE}/recurrent_{side}.py:{net}({given})" for side, given in (("torch", arguments), ("mindspore", faulty))
    )
    pair = Pair(*models, batch=folder / "batch.npz")
    return parity_step(RECIPE, ParityJob(recipes.load(RECIPE), folder / "run", pair=pair, steps=1, init_seeds=1))


RIGHT = [
    ("Packed", "'LSTM'"),
    ("Packed", "'GRU', 1, False, False"),
    ("Packed", "'RNN', 1"),
    ("Given", "'LSTM'"),
    ("Given", "'GRU', 1"),
    ("Given", "'RNN', 1, False, nonlinearity='relu'"),
    ("Cells", "'LSTM'"),
    ("Cells", "'GRU'"),
    ("Cells", "'RNN', nonlinearity='relu'"),
]


@pytest.mark.parametrize(("net", "arguments"), [pytest.param(*case, marks=pytest.mark.full) for case in RIGHT])
def test_a_recurrent_layer_is_aligned_and_runs_alone(net: str, arguments: str, tmp_path: Path) -> None:
    found = report(net, arguments, "", tmp_path)
    assert found.parity, [(f.place, f.why) for f in found.findings if f.verdict is Verdict.FAIL]
    reader = "step" if net == "Cells" else "reader"
    alone = [f for f in found.findings if f.part == ALONE and f.name.startswith(f"{reader} ")]
    assert all(f.verdict is Verdict.PASS for f in alone)
    names = {f.name.partition(" ")[2] for f in alone}
    suffix = "" if net == "Cells" else "_l0"
    weights = {f"{name}{suffix}.grad" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    assert {"output", *weights} <= names and ("output.1" in names or net == "Cells")
    assert net == "Packed" or "input.grad" in names or net == "Cells"


@pytest.mark.parametrize("arguments", ["'LSTM', 3", pytest.param("'GRU', 3, False, False", marks=pytest.mark.full)])
def test_dropout_between_layers_drops_the_same_of_packed_sequences_as_of_padded_ones(
    arguments: str, tmp_path: Path
) -> None:
    found = report("Packed", f"{arguments}, dropout=0.4", "", tmp_path)
    assert found.parity, [(f.place, f.why) for f in found.findings if f.verdict is Verdict.FAIL]
    assert "reader: took the same random draws in both frameworks" in " ".join(found.notes)


@pytest.mark.full
@pytest.mark.parametrize("arguments", ["'LSTM'", "'GRU', False"])
def test_a_layer_of_several_layers_is_compared_with_loops_of_cells(arguments: str, tmp_path: Path) -> None:
    found = report("Whole", arguments, "", tmp_path)
    assert found.parity, [(f.place, f.why) for f in found.findings if f.verdict is Verdict.FAIL]
    weights = {f.name for f in found.findings if f.stage == "gradients" and f.verdict is Verdict.PASS}
    ends = ("_l0", "_l1", "_l0_reverse", "_l1_reverse")[: 2 + 2 * ("False" not in arguments)]
    assert {f"reader.weight_hh{end}" for end in ends} <= weights


FAULTS = [  # what is wrong, the module at fault, what its cause says
    ("Packed", "", "no lengths", "", "the model itself differs"),
    ("Packed", "'LSTM', 1, False", "gates", "reader", "blocks in the order input, cell, forget, output"),
    ("Packed", "'GRU', 1", "bias", "reader", "taken 2 times"),
    ("Packed", "", "directions", "", "in the other order"),
    ("Whole", "", "directions", "", "the two directions of LSTM reader in the other order"),
    ("Given", "", "forgets", "", "input.1: MindSpore has none"),
]


@pytest.mark.parametrize(
    ("net", "arguments", "fault", "place", "said"),
    [pytest.param(*case, marks=pytest.mark.full) for case in FAULTS],
)
def test_a_mistake_with_a_recurrent_layer_is_placed(
    net: str, arguments: str, fault: str, place: str, said: str, tmp_path: Path
) -> None:
    found = report(net, arguments, fault, tmp_path)
    assert not found.parity
    assert [module.name for module in found.modules if module.own and module.verdict is Verdict.FAIL] == [place]
    assert any(said in cause.text for cause in found.causes), [cause.text for cause in found.causes]
    reached = [f.name for f in found.findings if f.part == WIRING and f.verdict is Verdict.FAIL]
    assert ("reader input.1" in reached) == (fault == "no lengths")
