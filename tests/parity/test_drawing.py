"""Every way to draw random numbers takes the same ones in both frameworks, or says that it could not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import side_by_side
from msmigrate.parity.compared_draws import Compared

HERE = Path(__file__).parent
SIDES = ("torch", "mindspore")
# MindSpore's generator of seeds, a push to a server, a gradient, and kernels that a CPU has not
DRAW_NOTHING = {"Generator", "Push", "RandomGammaGrad", "GenerateEodMaskV2", "InsertGemV2InBackward"}
DRAW_NOTHING |= {"SpeedFusionAttention", "SpeedFusionAttentionGrad"}


class Drawn:
    """What both workers left: arrays and heads by side and `name#way`."""

    def __init__(self, folder: Path) -> None:
        side_by_side.run(folder, *([HERE / f"drawing_{side}_worker.py", folder] for side in SIDES))
        self.arrays = {side: dict(np.load(folder / f"{side}.npz")) for side in SIDES}
        self.heads = {side: json.loads((folder / f"{side}.json").read_text()) for side in SIDES}

    def ways(self, name: str) -> list[tuple[str, str]]:
        return [(side, way) for side in SIDES for way in self.heads[side] if way.partition("#")[0] == name]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    return Drawn(tmp_path_factory.mktemp("drawn"))


def test_every_way_to_draw_the_same_gives_the_same_in_both_frameworks(drawn: Drawn) -> None:
    names = {way.partition("#")[0] for way in drawn.heads["torch"]}
    assert names == {way.partition("#")[0] for way in drawn.heads["mindspore"]} and len(names) > 30
    for name in names - {"unfixed"}:
        (expected, *others) = [drawn.arrays[side][way] for side, way in drawn.ways(name)]
        for other, (side, way) in zip(others, drawn.ways(name)[1:], strict=True):
            np.testing.assert_allclose(other, expected, rtol=1e-5, atol=1e-6, err_msg=f"{side}: {way}")


def test_the_numbers_have_the_distribution_that_is_asked_for(drawn: Drawn) -> None:
    arrays = drawn.arrays["torch"]
    assert arrays["uniform#0"].min() > 0 and arrays["uniform#0"].max() < 1
    assert set(np.unique(arrays["trials#0"])) == {0.0, 1.0}
    assert arrays["integers#0"].min() >= 3 and arrays["integers#0"].max() < 17
    assert sorted(arrays["permutation#0"]) == list(range(9))
    assert all(len(set(row)) == 3 for row in arrays["choices#0"])
    assert arrays["twice#0"].all()


def test_double_precision_takes_the_same_numbers(drawn: Drawn) -> None:
    double = [way for way in drawn.arrays["torch"] if way.endswith("#double")]
    assert len(double) > 4
    for way in double:
        single = drawn.arrays["torch"][way.replace("#double", "#0")]
        np.testing.assert_allclose(drawn.arrays["torch"][way], single, rtol=1e-6, atol=1e-6, err_msg=way)


def test_both_count_the_same_draws(drawn: Drawn) -> None:
    heads = drawn.heads
    for way in heads["torch"].keys() & heads["mindspore"].keys():
        found = Compared.of([heads["torch"][way]], heads["mindspore"][way], "x")
        assert not found.otherwise, way
        assert bool(found.unfixed) == way.startswith("unfixed"), way
    assert heads["torch"]["nothing#0"] == heads["mindspore"]["nothing#0"] == {}


def test_what_could_not_be_fixed_says_which_function_draws_and_where(drawn: Drawn) -> None:
    def functions(side: str, way: int) -> Any:
        return drawn.heads[side][f"unfixed#{way}"]["draws"][0]["outside"]

    ((gamma, (who,)),) = functions("torch", 0).items()
    assert gamma.startswith("torch.distributions.Gamma") and who[2].startswith("drawing_torch_worker.py, line ")
    assert "torch.distributions.Dirichlet or Beta" in functions("torch", 1)
    assert "mindspore.ops.RandomGamma" in functions("mindspore", 0)
    assert "mindspore.ops.TruncatedNormal" in functions("mindspore", 1)


def test_every_primitive_of_mindspore_that_draws_is_answered_or_told(tmp_path: Path) -> None:
    """Those that take a seed, or are marked as having hidden side effects."""
    told = subprocess.run(
        [sys.executable, str(HERE / "drawing_primitives_mindspore_worker.py")],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found = json.loads(told.stdout.splitlines()[-1])
    assert {"StandardNormal", "Dropout", "RandInt", "TruncatedNormal"} <= set(found["drawing"])
    assert set(found["drawing"]) - set(found["known"]) <= DRAW_NOTHING
