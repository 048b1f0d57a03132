"""The cases of test_randomness, test_modes and test_precision, which one torch and one MindSpore process record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msmigrate.parity.job import ParityJob
from msmigrate.training.recipe import reader as recipes

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """wrong: what is wrong with the MindSpore net. recipe: of tiny_RECIPE.yaml; half has LeNet. computed: how
    MindSpore's side computes its products. full: recorded by the slow tests alone."""

    name: str
    wrong: str = "none"
    mode: str = "pynative"
    precision: str = "fp32"
    recipe: str = "random"
    computed: str = "fp32"
    full: bool = False


CASES = {
    case.name: case
    for case in (
        *(Case(f"random {wrong}", wrong) for wrong in ("none", "elements for channels")),
        Case("random path unscaled", "path unscaled", full=True),
        Case("random rate is what is kept", "rate is what is kept", full=True),
        Case("random functional rate", "functional rate", full=True),
        Case("compiled", "none", "graph"),
        Case("compiled half", "none", "graph", recipe="half", full=True),
        Case("compiled eps", "eps in graph", "graph"),
        Case("compiled evaluation", "eps in evaluation", "graph"),
        Case("compiled momentum", "momentum lost in graph", "graph", full=True),
        Case("compiled drift", "weights drift in graph", "graph", full=True),
        Case("compiled primitive draws", "draws by a primitive", "graph", full=True),
        *(
            Case(f"{wrong} in {computed} as {judged}", wrong, "pynative", judged, "plain", computed, full)
            for wrong, computed, judged, full in (
                ("none", "hf32", "hf32", False),
                ("none", "tf32", "tf32", True),
                ("none", "fp16", "fp16", True),
                ("none", "bf16", "bf16", True),
                ("none", "hf32", "fp32", False),
                ("eps", "hf32", "hf32", False),
                ("pad", "hf32", "hf32", True),
                ("pad", "bf16", "bf16", True),
            )
        ),
    )
}


def recipe_of(name: str) -> Path:
    return HERE / f"tiny_{CASES[name].recipe}.yaml"


def options_of(root: Path, name: str) -> ParityJob:
    case, recipe = CASES[name], recipes.load(recipe_of(name))
    return ParityJob(
        recipe, root / name, steps=2, init_seeds=1, no_replay=True, mode=case.mode, precision=case.precision
    )
