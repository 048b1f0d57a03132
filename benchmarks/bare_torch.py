"""What torch's share of parity-step costs without recording: bare_torch.py RECIPE FOLDER STEPS.

Import, model, data, and in each of the three precisions an evaluation pass, a training pass and STEPS training steps.
The starting weights and the batches are left in FOLDER for bare_mindspore.py.
"""

import sys
from pathlib import Path

import torch
from msmigrate.migrate.checkpoint.convert import convert
from msmigrate.parity.record.batches import write_inputs
from msmigrate.parity.record.torch_precision import precisions
from msmigrate.parity.record.torch_runner import TorchSide
from msmigrate.parity.record.torch_worker import data_batches, exercise, fed
from msmigrate.parity.run_folder import CHECKPOINT, WEIGHTS
from msmigrate.training.models import torch_models
from msmigrate.training.recipe import reader as recipes


def main(recipe_file: Path, folder: Path, steps: int) -> None:
    recipe = recipes.load(recipe_file)
    inputs = fed(recipe, data_batches(recipe, steps))
    torch.manual_seed(recipe.seed)
    model = torch_models.build(recipe.model.name, **recipe.model.args)
    exercise(model, torch.from_numpy(inputs.images[-1]))
    write_inputs(folder, inputs)
    torch.save(model.state_dict(), folder / WEIGHTS)
    convert(folder / WEIGHTS, folder / CHECKPOINT)
    for _, dtype, variant, _ in precisions(model):
        side = TorchSide(recipe, model, dtype, variant)
        pairs = zip(inputs.images, inputs.labels, strict=True)
        batches = [(torch.from_numpy(x).to(dtype), torch.from_numpy(y)) for x, y in pairs]
        with torch.no_grad():
            side.model.eval()(batches[0][0])
            side.model.train()(batches[0][0])
        for x, y in batches:
            side.train_step(x, y, image_gradient=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
