"""What MindSpore's share of parity-step costs without recording: bare_mindspore.py RECIPE FOLDER.

Import, model, the starting weights that bare_torch.py left in FOLDER, an evaluation pass and the training steps.
"""

import sys
from pathlib import Path

from msmigrate.workers.worker import leave, prepare_mindspore

prepare_mindspore()

from mindspore import Tensor  # noqa: E402
from msmigrate.parity.record.batches import read_inputs  # noqa: E402
from msmigrate.parity.record.mindspore_worker import load_start  # noqa: E402
from msmigrate.parity.run_folder import CHECKPOINT  # noqa: E402
from msmigrate.training.models import mindspore_models  # noqa: E402
from msmigrate.training.recipe import reader as recipes  # noqa: E402
from msmigrate.training.step.mindspore_step import TrainStep  # noqa: E402


def main(recipe_file: Path, folder: Path) -> None:
    recipe = recipes.load(recipe_file)
    inputs = read_inputs(folder, recipe)
    net = mindspore_models.build(recipe.model.name, **recipe.model.args)
    load_start(net, str(folder / CHECKPOINT))
    net.set_train(False)
    net(Tensor(inputs.images[0])).asnumpy()
    net.set_train(True)
    step = TrainStep(recipe, net, image_gradient=True)
    for images, labels in zip(inputs.images, inputs.labels, strict=True):
        step(Tensor(images), Tensor(labels.astype("int32"))).loss.asnumpy()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
    leave(0)
