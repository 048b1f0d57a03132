"""How far torch's float32 gradients stand from its float64 ones, before and after their ReLUs and max-pools agree.

    python benchmarks/kinks.py [RECIPE]

Torch alone: one training step in float64, one in float32, and the float64 step once more with the choices that the
float32 step made where rounding decides (parity/record/torch_kinks.py). Prints markdown.
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from msmigrate.parity.record.batches import Inputs
from msmigrate.parity.record.recorder import StepArrays, record_steps
from msmigrate.parity.record.torch_kinks import KinkSides
from msmigrate.parity.record.torch_runner import TorchSide
from msmigrate.parity.record.torch_worker import data_batches, exercise, fed
from msmigrate.parity.trace import Part, Trace, TraceWriter
from msmigrate.training.models import torch_models
from msmigrate.training.recipe import reader as recipes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", nargs="?", type=Path, default=recipes.DEFAULT)
    recipe = recipes.load(parser.parse_args().recipe)
    both = fed(recipe, data_batches(recipe, 2))
    inputs = replace(both, images=both.images[:1], labels=both.labels[:1])
    torch.manual_seed(recipe.seed)
    model = torch_models.build(recipe.model.name, **recipe.model.args)
    exercise(model, torch.from_numpy(both.images[1]))

    with tempfile.TemporaryDirectory() as folder:
        writer = TraceWriter(Path(folder), {})
        with redirect_stdout(None):  # its progress is meant for parity-step
            record_steps(TorchSide(recipe, model, torch.float32), inputs, writer, "torch float32", sides=True)
        writer.close()
        sides = KinkSides.of(Trace(Path(folder)), Part.of_step(1))
    float32 = step(TorchSide(recipe, model, torch.float32), inputs)
    float64 = step(TorchSide(recipe, model, torch.float64), inputs)
    side = TorchSide(recipe, model, torch.float64)
    side.sides = [sides]
    matched = step(side, inputs)

    print("| torch float32 gradients against float64 | median | 95th percentile | largest |\n|---|---|---|---|")
    for name, reference in (("as they are", float64), (f"{sides.matched} choices matched", matched)):
        errors = [
            float(np.linalg.norm(grad - reference.grads[key]) / np.linalg.norm(reference.grads[key]))
            for key, grad in float32.grads.items()
        ]
        print(f"| {name} | {np.median(errors):.1e} | {np.percentile(errors, 95):.1e} | {max(errors):.1e} |")


def step(side: TorchSide, inputs: Inputs) -> StepArrays:
    """One training step of a side at its starting weights."""
    return side.step(inputs.images[0], inputs.labels[0], None)


if __name__ == "__main__":
    main()
