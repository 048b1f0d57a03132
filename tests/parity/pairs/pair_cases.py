"""The pairs that the tests run, and what each is fed; no framework is needed to know."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msmigrate.parity.pair import Pair
from msmigrate.parity.worker import Options
from msmigrate.train import recipe as recipes

HERE = Path(__file__).parent
RECIPE = HERE / "pair.yaml"
QUICK = ("Residual", "Tokens", "stepped")
SLOW = ("TwoInputs", "parts", "Branches", "Swapped")
MAP = "- {torch: left, mindspore: first}\n- {torch: right, mindspore: second}\n"


def options(root: Path, name: str) -> Options:
    """What a worker is told of a case; make_inputs has left its files in `root`."""
    batch = root / f"{name}.npz"
    pair = Pair(
        f"{HERE / 'pair_nets_torch.py'}:{name}",
        f"{HERE / 'pair_nets_mindspore.py'}:{name}",
        root / "map.yaml" if name == "Branches" else None,
        None,
        batch if batch.exists() else None,
    )
    replay = name in ("Residual", "Tokens", "Swapped")
    return Options(recipes.load(RECIPE), root / name, steps=2, pair=pair, replay=replay)


def make_inputs(root: Path) -> None:
    """Leave the batches of those that take no images, and the map of the one that needs it."""
    draw = np.random.default_rng(0)
    tokens = {"input": draw.integers(0, 31, (4, 6)), "labels": draw.integers(0, 4, 4)}
    for name in ("Tokens", "Swapped"):
        np.savez(root / f"{name}.npz", **tokens)
    steps = {f"input{i}": draw.normal(size=(4, 4, 9)).astype(np.float32) for i in (1, 2)}
    steps |= {f"input{i}.1": draw.integers(0, 2, (4, 9)) for i in (1, 2)}
    np.savez(root / "TwoInputs.npz", **steps, **{f"labels{i}": draw.integers(0, 3, 4) for i in (1, 2)})
    (root / "map.yaml").write_text(MAP)
