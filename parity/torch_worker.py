"""Record the torch traces of a recipe: float32, float32 once more in another memory layout, and float64.

python -m msmigrate.parity.torch_worker RECIPE FOLDER [--steps N] [--init-seeds N] [--sample N]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
import torchvision
from torch import nn

from ..errors import BadCheckpoint
from ..train import torch_data, torch_models
from ..train.groups import is_norm
from ..train.recipe import Recipe
from .initial import add_initial_values
from .kinks import KinkSides
from .record import (
    Inputs,
    add_output,
    announce,
    progress,
    record_evaluation,
    record_probes,
    record_start,
    record_steps,
)
from .start import (
    MINDSPORE,
    TORCH32,
    TORCH32_OTHER,
    TORCH64,
    WEIGHTS,
    classes,
    matched,
    step_samples,
    targets,
    write_inputs,
)
from .torch_side import TorchSide
from .trace import Trace, TraceWriter
from .worker import Options, run, wait_for

# the norm that ends a residual branch, by the block's class
LAST_NORM = {"BasicBlock": "bn2", "Bottleneck": "bn3"}

PRECISIONS = ((TORCH32, torch.float32, 0), (TORCH64, torch.float64, 0), (TORCH32_OTHER, torch.float32, 1))


def main(options: Options) -> None:
    """Record what needs no other trace; then, once MindSpore's trace is there, the steps themselves."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, threads // 2))  # MindSpore is at work too, and threads that wait for a core spin
    model, inputs = record_start_of(options)
    progress("torch: waiting for MindSpore's steps")
    wait_for(options.folder / MINDSPORE / "trace.json")
    torch.set_num_threads(threads)
    record_matched(options, model, inputs)


def record_start_of(options: Options) -> tuple[nn.Module, Inputs]:
    """Leave start.pth and the inputs in the folder, and a trace for each precision of what one side can do alone."""
    recipe, folder = options.recipe, options.folder
    progress("torch: model and data")
    images, labels = zip(*data_batches(recipe, options.steps), strict=True)
    inputs = Inputs(list(images), [targets(recipe, y) for y in labels], classes(recipe))
    torch.manual_seed(recipe.seed)
    model = torch_models.build(recipe.model.name, **recipe.model.args)
    if recipe.model.checkpoint:
        load_checkpoint(model, recipe.model.checkpoint)
    else:
        exercise(model, torch.from_numpy(images[-1]))
    write_inputs(folder, inputs)
    torch.save(model.state_dict(), folder / WEIGHTS)
    announce("start")
    for name, dtype, variant in PRECISIONS:
        writer = TraceWriter(folder / name, about(recipe, dtype), options.sample)
        side = TorchSide(recipe, model, dtype, variant)
        if name == TORCH32:
            record_start(side, writer)
            if not recipe.model.checkpoint:
                progress("torch: initial distributions")
                add_initial_values(writer, options.init_seeds, lambda seed: initial_values(recipe, seed))
        record_alone(options, side, inputs, writer)
        writer.close()
    return model, inputs


def record_matched(options: Options, model: nn.Module, inputs: Inputs) -> None:
    """Record the training steps in each precision, with MindSpore's choices where rounding decides."""
    taken = Trace(options.folder / MINDSPORE)
    for name, dtype, variant in PRECISIONS:
        sides = [KinkSides.of(taken, step) for step in range(1, options.steps + 1)]
        side = TorchSide(options.recipe, model, dtype, variant)
        side.sides = list(sides)
        writer = TraceWriter(options.folder / matched(name), about(options.recipe, dtype), options.sample)
        record_steps(side, inputs, writer, name)
        counts = {"matched": [s.matched for s in sides], "differing": [s.differing for s in sides]}
        writer.about = {**writer.about, "kinks": counts}
        writer.close()


def record_alone(options: Options, side: TorchSide, inputs: Inputs, writer: TraceWriter) -> None:
    """Both forward passes; data, and loss and optimizer on given values, where a memory layout makes no difference."""
    label = f"torch {writer.about['dtype']}"
    progress(f"{label}: evaluation and training forward passes")
    record_evaluation(side, inputs, writer)
    side.forward(inputs.images[0], lambda leaf: add_output(writer, "train", leaf))
    if side.variant:
        return
    with exact_transforms(side.dtype):
        for i, (x, y) in enumerate(data_batches(options.recipe, options.steps), 1):
            writer.add("data", f"step{i}", "images", x)
            writer.add("data", f"step{i}", "labels", y)
    progress(f"{label}: loss and optimizer on given values")
    record_probes(side, inputs, writer)


def data_batches(recipe: Recipe, steps: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Images and class labels of each step, through torchvision."""
    return [torch_data.batch(samples, recipe.data.transforms) for samples in step_samples(recipe, steps)]


def about(recipe: Recipe, dtype: torch.dtype) -> dict[str, object]:
    """The head of a trace: who recorded it, on what, from which recipe."""
    return {
        "framework": "torch",
        "versions": {"torch": torch.__version__, "torchvision": torchvision.__version__, "numpy": np.__version__},
        "dtype": str(dtype).removeprefix("torch."),
        "device": "cpu",
        "seed": recipe.seed,
        "recipe": recipe.digest,
    }


def exercise(model: nn.Module, images: torch.Tensor) -> None:
    """Give a fresh model the state of one that has trained a little, in place.

    Norm scales of one, shifts of zero and untouched running statistics hide swapped, undecayed and unread tensors, so
    scales and shifts are moved at random, and running statistics become those of `images` (N, C, H, W); these should
    not be the first step's, or the statistics' momentum would move them nowhere. A fresh ResNet also multiplies
    rounding with its depth, which training soon ends: the residual branches get a quarter of their scale (measured on
    ResNet50: rounding in the logits falls from 1e-5 to 7e-7 of their size, and the verdict sharpens with it).
    """
    with torch.no_grad():
        norms = [m for m in model.modules() if is_norm(type(m).__name__)]
        for norm in norms:
            norm.weight += torch.rand_like(norm.weight) - 0.5
            norm.bias += 0.1 * torch.randn_like(norm.bias)
        for block in model.modules():
            if type(block).__name__ in LAST_NORM:
                getattr(block, LAST_NORM[type(block).__name__]).weight *= 0.25
        momenta = [getattr(norm, "momentum", None) for norm in norms]
        for norm in norms:
            norm.momentum = 1.0
        model.train()
        model(images)
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum


def initial_values(recipe: Recipe, seed: int) -> dict[str, np.ndarray]:
    """Trainable parameters of a new model drawn from `seed`, by state_dict name."""
    torch.manual_seed(seed)
    model = torch_models.build(recipe.model.name, **recipe.model.args)
    return {name: p.detach().numpy() for name, p in model.named_parameters()}


def load_checkpoint(model: nn.Module, path: Path) -> None:
    """Load a state dict, also under state_dict/model and with DDP's prefix; no code in the file is executed."""
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
        for key in ("state_dict", "model"):
            found = found.get(key, found)
        model.load_state_dict({name.removeprefix("module."): tensor for name, tensor in found.items()})
    except Exception as error:
        raise BadCheckpoint(f"{path}: does not load into the model: {' '.join(str(error).split())[:400]}") from error


@contextmanager
def exact_transforms(dtype: torch.dtype) -> Iterator[None]:
    """Within this block torchvision's ToTensor divides in `dtype`, so that float64 images are exact to float64."""
    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(previous)


if __name__ == "__main__":
    run(main)
