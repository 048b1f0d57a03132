"""What a recipe's net will need: sizes, optimizer groups, learning rates and compiled graphs, without training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import mindspore
import numpy as np
from mindspore import Tensor, nn

from ..errors import BadInput, BadRecipe, DoesNotCompile
from ..temporary import temporary_folder
from .data import mindspore_pipeline
from .data.mindspore_dataloader import target
from .data.sources import open_arrays, open_source
from .models import mindspore_models
from .models.mindspore_models import canonical_parameters
from .recipe import reader as recipes
from .recipe.check import SYNTHETIC
from .recipe.schema import Amp, Recipe
from .run.mindspore_distributed import Team
from .run.mindspore_setup import make_net, make_step
from .run.train_job import Job
from .step.mindspore_amp import first_tensor
from .step.mindspore_compile import Graphs
from .step.mindspore_step import TrainStep
from .step.mindspore_step_state import state as state_of
from .step.parameter_groups import parameter_groups

POINTS = 64  # of the learning rate's curve
STAND_IN = "synthetic:1x256"  # an image, where the recipe's own are not on this machine
STAND_INS = (STAND_IN, "synthetic:1x320")  # of sizes that no recipe means: where both become one, all images do
ONE_SIZE = (SYNTHETIC, "digits", "cifar10", "cifar100")  # sources whose images have one size


def net_facts(recipe_file: Path, seed: int | None, steps: int, steps_per_epoch: int) -> dict[str, Any]:
    """Sizes of the recipe's net, its optimizer groups, and its learning rates over `steps` steps.

    fresh: tensors that model.checkpoint does not give, by torch's names; frozen: parameters that do not train. inputs:
    shape and dtype of each input of an example. Where the recipe's images are not here, a made-up one stands in; image,
    inputs and activation_bytes are None where the net does not take that. Raises BadRecipe where it does not take the
    recipe's own, what making the net and the step raises, and what preparing one image does; BadCheckpoint for a
    checkpoint that does not fit.
    """
    recipe = recipes.load(recipe_file)
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.set_seed(recipe.seed if seed is None else seed)
    net = mindspore_models.of_recipe(recipe.model)
    frozen, fresh = mindspore_models.fine_tune(net, recipe.model), []
    if recipe.model.checkpoint is not None:
        with temporary_folder("plan") as folder:  # whether it fits is known when it is in the net
            fresh = mindspore_models.load_start(net, recipe, folder)
    # in float32: which precisions a target has, and this may be another machine, is not the question here
    step = TrainStep(recipe.model_copy(update={"amp": None}), net)
    parameters = canonical_parameters(net)
    trained = [one.parameter for one in parameters if one.parameter.requires_grad]
    state = state_of(step)
    inputs, source = _one_example(recipe, recipe.seed if seed is None else seed)
    of_arrays, activations = recipe.data.of_arrays, None
    try:
        activations = activation_bytes(net, *inputs)
    except (RuntimeError, ValueError, TypeError) as error:
        if source == recipe.data.source:
            shape = " and ".join("x".join(map(str, each.shape[1:])) or "numbers" for each in inputs)
            said = next((line for line in str(error).splitlines() if line.strip(" -")), type(error).__name__)
            what = f"the rows of {source}" if of_arrays else f"what data.transforms make of {source}, images"
            raise BadRecipe(f"{recipe.model.name} does not take {what} of {shape}: {said}") from error
    return {
        "image": list(inputs[0].shape[1:]) if activations is not None and not of_arrays else None,
        "inputs": [[list(each.shape[1:]), str(each.dtype)] for each in inputs] if activations is not None else None,
        "image_of": source,
        "parameters": sum(parameter.size for parameter in trained),
        "weights_bytes": sum(one.parameter.nbytes for one in parameters),
        "gradient_bytes": sum(parameter.nbytes for parameter in trained),
        "optimizer_bytes": sum(array.nbytes for name, array in state.items() if name.startswith("optimizer.")),
        "ema_bytes": sum(array.nbytes for name, array in state.items() if name.startswith("ema.")),
        "activation_bytes": activations,
        "fresh": fresh,
        "frozen": frozen,
        "frozen_parameters": sum(one.parameter.size for one in parameters if one.name in frozen),
        "groups": _groups(recipe, net),
        "rates": _rates(step, recipe, steps, steps_per_epoch),
    }


class Wanted(NamedTuple):
    """What of a run its graphs depend on besides the recipe. target: that was named; amp: instead of the recipe's;
    last: images of an epoch's last batch, 0 where it is whole or left out."""

    target: str | None = None
    amp: dict[str, Any] | None = None
    last: int = 0


def graph_facts(
    recipe_file: Path, seed: int | None, wanted: Wanted, inputs: list[tuple[list[int], str]] | None
) -> dict[str, Any]:
    """Compile the step that training runs, made as there, on made-up examples; nothing runs, and no weight moves.

    inputs: shape and dtype of each input of an example, None where none is known. problem: why it does not compile;
    why_not: why that is not known; batches: the sizes it was compiled for. Where the target is not this machine's, it
    is compiled for this one's, and in float32: which precisions a target has is not known here. Raises what making net
    and step raises.
    """
    recipe = recipes.load(recipe_file)
    amp = recipe.amp if wanted.amp is None else Amp.model_validate(wanted.amp)
    here = str(mindspore.get_context("device_target"))
    there = wanted.target in (None, here)
    recipe = recipe.model_copy(update={"amp": amp if there else None})
    found: dict[str, Any] = {"target": here, "float32": not there and amp is not None, "batches": [], "problem": None}
    classes, graphs = recipe.model.num_classes, Graphs()
    if inputs is None:
        return {**found, "why_not": "no image is here that the net takes"}
    if not _of_one_size(recipe, classes):
        return {**found, "why_not": "data.transforms do not bring every image to one size"}
    alone = Team(Job(recipe=recipe_file, folder=recipe_file.parent))
    net, _ = make_net(recipe, recipe.seed if seed is None else seed, alone)
    step = make_step(recipe, net, "graph", alone)
    example = _target(recipe)
    for size in (recipe.data.batch, *([wanted.last] if wanted.last else [])):
        images = tuple(Tensor(np.zeros((size, *shape), dtype)) for shape, dtype in inputs)
        labels = Tensor(np.zeros((size, *example.shape), example.dtype))
        try:
            for call in step.compiled(images if len(images) > 1 else images[0], labels):
                with graphs.watching(only=True):
                    call()
        except DoesNotCompile as error:
            if error.by_target and not there:
                return {**found, "why_not": f"{error} (this machine has no {wanted.target})"}
            found["problem"] = str(error)
            break
        found["batches"].append(size)
    return {**found, **graphs.record()}


def activation_bytes(net: nn.Cell, *inputs: np.ndarray) -> int:
    """Bytes of the outputs of all childless Cells for one example (1, …): what a backward pass wants kept.

    Runs the net in evaluation mode: a norm in training wants more than one value a channel.
    """
    sizes: list[int] = []
    net.set_train(False)
    with _outputs(net, sizes):
        first_tensor(net(*map(Tensor, inputs))).asnumpy()
    return sum(sizes) + sum(each.nbytes for each in inputs)


@contextmanager
def _outputs(net: nn.Cell, sizes: list[int]) -> Iterator[None]:
    def hook(cell: nn.Cell, inputs: tuple[Tensor, ...], output: object) -> None:
        if isinstance(output, Tensor):
            sizes.append(int(output.nbytes))

    handles = [cell.register_forward_hook(hook) for _, cell in net.cells_and_names() if not cell.cells()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _one_example(recipe: Recipe, seed: int) -> tuple[tuple[np.ndarray, ...], str]:
    """A training example as the net gets it, each input (1, …), and of which source it is."""
    classes = recipe.model.num_classes
    name = recipe.data.source
    if recipe.data.of_arrays:
        return open_arrays(name, recipe.model).rows(np.arange(1))[0], name
    try:
        sample = open_source(name, classes, training=True)[0]
    except BadInput:
        name = STAND_IN
        sample = open_source(name, classes, training=True)[0]
    images, _ = mindspore_pipeline.batch([sample], recipe.data.transforms, keys=[(seed, 0, 0)])
    return (images,), name


def _target(recipe: Recipe) -> np.ndarray:
    """What a loss gets for one example, as zeros."""
    if recipe.data.of_arrays:
        row: np.ndarray = target(open_arrays(recipe.data.source, recipe.model).labels[:1]).asnumpy()[0]
        return np.zeros_like(row)
    return np.zeros(recipe.model.num_classes, np.float32) if recipe.one_hot else np.zeros((), np.int32)


def _of_one_size(recipe: Recipe, classes: int) -> bool:
    """Whether every image reaches the net in one size; raises what preparing one does."""
    if recipe.data.of_arrays or recipe.data.source.partition(":")[0] in ONE_SIZE:
        return True
    samples = [open_source(source, classes, training=True)[0] for source in STAND_INS]
    arrays = [mindspore_pipeline.batch([one], recipe.data.transforms, keys=[(recipe.seed, 0, 0)])[0] for one in samples]
    return arrays[0].shape == arrays[1].shape


def _groups(recipe: Recipe, net: nn.Cell) -> list[dict[str, Any]]:
    """Each optimizer group with its first names, how many tensors and numbers it holds, and its arguments."""
    trained = {one.name: one for one in canonical_parameters(net) if one.parameter.requires_grad}
    groups = parameter_groups({name: one.owner for name, one in trained.items()}, recipe.optimizer)
    return [
        {
            "names": list(group.names),
            "parameters": sum(trained[name].parameter.size for name in group.names),
            "args": {**recipe.optimizer.args, **group.args},
        }
        for group in groups
    ]


def _rates(step: TrainStep, recipe: Recipe, steps: int, steps_per_epoch: int) -> list[list[float]]:
    """[step, learning rate of each group] at up to POINTS steps, the first, the last and the highest among them."""
    schedule = step.schedule
    if schedule is None or recipe.schedule is None:
        rates = [float(group["lr"]) for group in step.optimizer.param_groups]
        return [[0, *rates], [max(steps - 1, 0), *rates]]
    every = 1 if recipe.schedule.per == "step" else max(steps_per_epoch, 1)
    curve = [[0, *schedule.rates]]
    for moved in range(1, -(-steps // every)):
        schedule.advance()
        curve.append([moved * every, *schedule.rates])
    highest = max(range(len(curve)), key=lambda i: curve[i][1])
    wanted = {*np.linspace(0, len(curve) - 1, POINTS).round().astype(int).tolist(), highest}
    return [curve[i] for i in sorted(wanted)]
