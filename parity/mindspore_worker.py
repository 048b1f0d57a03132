"""Record the MindSpore trace of a recipe.

    python -m msmigrate.parity.mindspore_worker RECIPE FOLDER [--steps N] [--init-seeds N] [--sample N]

FOLDER holds start.ckpt and inputs.safetensors, or gets them while this worker starts up.
"""

from __future__ import annotations

from ..train import mindspore_environment

mindspore_environment.prepare()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import nn  # noqa: E402

from ..train import mindspore_data, mindspore_models  # noqa: E402
from ..train.mindspore_names import canonical_parameters  # noqa: E402
from ..train.recipe import Recipe  # noqa: E402
from .initial import add_initial_values  # noqa: E402
from .mindspore_side import MindSporeSide  # noqa: E402
from .record import progress, record_evaluation, record_probes, record_start, record_steps  # noqa: E402
from .start import CHECKPOINT, INPUTS, MINDSPORE, read_inputs, step_samples  # noqa: E402
from .trace import TraceWriter  # noqa: E402
from .worker import Options, run, wait_for  # noqa: E402


def main(options: Options) -> None:
    """Record what needs no starting weights first, then wait for them."""
    recipe, folder = options.recipe, options.folder
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    writer = TraceWriter(folder / MINDSPORE, about(recipe), options.sample)
    progress("MindSpore: data")
    for i, samples in enumerate(step_samples(recipe, options.steps), 1):
        x, y = mindspore_data.batch(samples, recipe.data.transforms)
        writer.add("data", f"step{i}", "images", x)
        writer.add("data", f"step{i}", "labels", y)
    if not recipe.model.checkpoint:
        progress("MindSpore: initial distributions")
        add_initial_values(writer, options.init_seeds, lambda seed: initial_values(recipe, seed))
    net = mindspore_models.build(recipe.model.name, **recipe.model.args)
    progress("MindSpore: waiting for the starting weights")
    load_start(net, str(wait_for(folder / CHECKPOINT)))
    wait_for(folder / INPUTS)
    inputs = read_inputs(folder, recipe)
    side = MindSporeSide(recipe, net)
    record_start(side, writer)
    progress("MindSpore: evaluation forward pass")
    record_evaluation(side, inputs, writer)
    record_steps(side, inputs, writer, "MindSpore", sides=True)
    progress("MindSpore: loss and optimizer on given values")
    record_probes(side, inputs, writer)
    writer.close()


def about(recipe: Recipe) -> dict[str, object]:
    """The head of the trace: who recorded it, on what, from which recipe."""
    return {
        "framework": "mindspore",
        "versions": {"mindspore": mindspore.__version__, "numpy": np.__version__},
        "dtype": "float32",
        "device": str(mindspore.get_context("device_target")).lower(),
        "seed": recipe.seed,
        "recipe": recipe.digest,
    }


def initial_values(recipe: Recipe, seed: int) -> dict[str, np.ndarray]:
    """Trainable parameters of a new net drawn from `seed`, by torch state_dict name."""
    mindspore.set_seed(seed)
    net = mindspore_models.build(recipe.model.name, **recipe.model.args)
    return {c.name: c.parameter.asnumpy() for c in canonical_parameters(net) if c.parameter.requires_grad}


def load_start(net: nn.Cell, checkpoint: str) -> None:
    """Load the converted starting weights, as a user would; the init stage then compares what the net really holds.

    load_param_into_net's own report is not used: it strips prefixes, loads, and still lists the value as not loaded.
    """
    mindspore.load_param_into_net(net, mindspore.load_checkpoint(checkpoint), strict_load=True)


if __name__ == "__main__":
    run(main)
