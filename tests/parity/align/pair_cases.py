"""The pairs that the tests run, and what each is fed; no framework is needed to know."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.training.recipe import reader as recipes

HERE = Path(__file__).parent
RECIPE = HERE / "pair.yaml"
QUICK = (
    *("Residual", "Tokens", "stepped", "grouped", "misgrouped", "handed", "Biasless", "composed_wrong"),
    *("Shared", "ChannelsFirst", "Unset", "Bare", "Spare", "decayed", "frozen_too_much"),
)
REPLAYED = (
    "Shared",
    "ChannelsFirst",
    "Residual",
    "Tokens",
    "Swapped",
    "Biasless",
    "Composed",
    "composed_wrong",
    "Fused",
    "fused_wrong",
)
SLOW = ("TwoInputs", "parts", "Branches", "Swapped", "Composed", "Fused", "fused_wrong")
# what is wrong with a net's norms, for how many steps, on the recipe's images or one batch of a file, alone or not
STATISTICS = {
    f"{wrong} {steps} {fed} {how}": (wrong, steps, fed, how)
    for wrong in ("norms", "momentum_of_norms", "eps_of_norms", "variance_of_norms")
    for steps in (1, 2, 3)
    for fed in ("images", "file")
    for how in ("whole", "alone")
}
# MindSpore's function, which draws by other formulas or has one thing wrong -> torch's
DRAWING = {
    "vae": "vae",
    "vae_uniform": "vae",
    **dict.fromkeys(("vae_std", "vae_no_noise", "vae_one_each", "vae_divergence"), "vae"),
    **dict.fromkeys(("diffusion", "diffusion_fewer_steps", "diffusion_loss_uniform"), "diffusion"),
    **dict.fromkeys(("Masks", "masks_chance"), "Masks"),
    **dict.fromkeys(("Masked", "masked_other_tokens"), "Masked"),
    **dict.fromkeys(("Sampling", "sampling_temperature"), "Sampling"),
    **dict.fromkeys(("Generator", "generator_one_noise"), "Generator"),
    "Unfixed": "Unfixed",
}
QUICK_DRAWING = ("vae", "vae_uniform")
SLOW_DRAWING = tuple(name for name in DRAWING if name not in QUICK_DRAWING)
PORTED = {
    "Biasless": "Tokens",
    "composed_wrong": "Composed",
    "fused_wrong": "Fused",
    "decayed": "Spare",
    "frozen_too_much": "Spare",
}  # a net that is not one of the twins -> torch's
MAP = "- {torch: left, mindspore: first}\n- {torch: right, mindspore: second}\n"


def options(root: Path, name: str) -> ParityJob:
    """What a worker is told of a case; make_inputs has left its files in `root`."""
    if name in STATISTICS:
        wrong, steps, fed, how = STATISTICS[name]
        models = (f"{HERE / 'pair_nets_torch.py'}:norms", f"{HERE / 'pair_nets_mindspore.py'}:{wrong}")
        pair = Pair(*models, batch=root / "norms.npz" if fed == "file" else None)
        return ParityJob(
            recipes.load(RECIPE), root / name, steps=steps, init_seeds=1, pair=pair, no_replay=how != "alone"
        )
    if name in DRAWING:
        files = (f"{HERE / 'drawing_torch.py'}:{DRAWING[name]}", f"{HERE / 'drawing_mindspore.py'}:{name}")
        pair = Pair(*files, None, None, root / "drawing.npz")
        steps, mode = (
            (1, "pynative") if name in QUICK_DRAWING else (2, "graph" if name == DRAWING[name] else "pynative")
        )
        return ParityJob(recipes.load(RECIPE), root / name, steps=steps, pair=pair, mode=mode)
    batch = root / f"{name}.npz"
    pair = Pair(
        f"{HERE / 'pair_nets_torch.py'}:{PORTED.get(name, name)}",
        f"{HERE / 'pair_nets_mindspore.py'}:{name}",
        root / "map.yaml" if name == "Branches" else None,
        None,
        batch if batch.exists() else None,
        outputs=name == "Bare",
    )
    return ParityJob(recipes.load(RECIPE), root / name, steps=2, pair=pair, no_replay=name not in REPLAYED)


def make_inputs(root: Path) -> None:
    """Leave the batches of those that take no images, and the map of the one that needs it."""
    draw = np.random.default_rng(0)
    tokens = {"input": draw.integers(0, 31, (4, 6)), "labels": draw.integers(0, 4, 4)}
    for name in ("Tokens", "Swapped", "Biasless"):
        np.savez(root / f"{name}.npz", **tokens)
    steps = {f"input{i}": draw.normal(size=(4, 4, 9)).astype(np.float32) for i in (1, 2)}
    steps |= {f"input{i}.1": draw.integers(0, 2, (4, 9)) for i in (1, 2)}
    np.savez(root / "TwoInputs.npz", **steps, **{f"labels{i}": draw.integers(0, 3, 4) for i in (1, 2)})
    images = draw.normal(size=(4, 3, 12, 12)).astype(np.float32)
    np.savez(root / "norms.npz", images=images, labels=draw.integers(0, 5, 4))
    small = {f"input{i}": draw.normal(size=(4, 1, 6, 6)).astype(np.float32) for i in (1, 2)}
    np.savez(root / "drawing.npz", **small, **{f"labels{i}": draw.integers(0, 5, 4) for i in (1, 2)})
    (root / "map.yaml").write_text(MAP)
