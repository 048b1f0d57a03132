"""The torch model of a pair: made by the user's function, described, and started."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import nn

from ...migrate.analyze import torch_models as torch_zoo
from ...migrate.model_spec import Spec, parse
from ...migrate.simplified.torch_install import for_training
from ...train.models import torch_models
from ...train.recipe import Recipe
from ..record import Images, Inputs, announce
from ..start import START, write_inputs
from ..worker import Options
from .batch_file import read_batches
from .contents import Watch, few, flat
from .given import Given, given, run_users
from .kinds import layer_class
from .settle import batch_file, recipe_of
from .structure import Held, Module, Structure, join
from .torch_output_loss import output_loss

ZOOS = ("torchvision", "timm")
ANY = 100_000  # classes of the first batch, whose images alone are used


def build(options: Options) -> Given:
    """The recipe's model, or what the user's function returns, with a loss of all outputs where the pair asks for one.

    Raises BadInput and WorkerFailed.
    """
    taken = _build(options)
    if options.pair is not None and options.pair.outputs and taken.loss is None and taken.step is None:
        return replace(taken, loss=output_loss)
    return taken


def _build(options: Options) -> Given:
    if options.pair is None:
        model = options.recipe.model
        return Given(torch_models.build(model.name, **model.args))
    where = f"--torch {options.pair.torch}"
    spec = parse(options.pair.torch)
    if spec.place == "msmigrate":
        return Given(torch_models.build(spec.name, *spec.args, **spec.kwargs))
    taken = given(run_users(where, lambda: _of_theirs(spec)), nn.Module, where)
    for_training(taken.model)
    return taken


def _of_theirs(spec: Spec) -> Any:
    if spec.place not in ZOOS:
        return torch_zoo.build(spec)
    with warnings.catch_warnings():  # GoogLeNet and Inception announce a new default
        warnings.simplefilter("ignore")
        return torch_zoo.build(spec)


def tensors(images: Images, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    """The model's arguments: floating ones in `dtype`, whole numbers as they are."""
    arrays = images if isinstance(images, tuple) else (images,)
    found = [torch.from_numpy(array) for array in arrays]
    return tuple(x.to(dtype) if x.is_floating_point() else x for x in found)


def describe(taken: Given, images: Images, batch: int) -> Structure:
    """Run a copy once in training mode on two examples, and say what the model consists of and how it runs.

    In training mode, for then a model may have more outputs, and layers that lead to them.
    """
    model, watch = copy.deepcopy(taken.model), Watch()
    arrays = images if isinstance(images, tuple) else (images,)
    inputs = tensors(few(arrays, batch))
    for path, module in model.named_modules():
        module.register_forward_pre_hook(_entering(watch, path), with_kwargs=True)
        module.register_forward_hook(_leaving(watch, path))
    with torch.no_grad():
        outputs = run_users("the torch model", lambda: model.train()(*inputs))
    shapes = tuple((batch, *x.shape[1:]) for x in flat(outputs, torch.Tensor))
    tokens = len(arrays) > 1 or arrays[0].dtype.kind != "f"
    return Structure("torch", _modules(model), watch.in_order(), shapes, tuple(taken.parts), tokens)


def _modules(model: nn.Module) -> tuple[Module, ...]:
    found = []
    seen: dict[int, str] = {}  # a weight that several modules share is the first one's, as in named_parameters()
    for path, module in model.named_modules():
        held = dict(module.named_parameters(recurse=False, remove_duplicate=False))
        shared = {name: seen[id(p)] for name, p in held.items() if id(p) in seen}
        new = {name: p for name, p in held.items() if name not in shared}
        seen |= {id(p): join(path, name) for name, p in new.items()}
        own = {name: _held(p, p.requires_grad) for name, p in new.items()}
        buffers = {name: _held(b, False) for name, b in module.named_buffers(recurse=False)}
        kind = layer_class(type(module).mro())
        found.append(Module(path, kind, {**own, **buffers}, tuple(buffers), shared=shared))
    return tuple(found)


def _held(tensor: torch.Tensor, trains: bool) -> Held:
    return Held(tuple(tensor.shape), trains, str(tensor.dtype).removeprefix("torch."))


def _entering(watch: Watch, path: str) -> Any:
    def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        watch.enter(path, [_numpy(x) for x in flat((args, kwargs), torch.Tensor)])

    return hook


def _leaving(watch: Watch, path: str) -> Any:
    def hook(_: nn.Module, __: tuple[Any, ...], output: Any) -> None:
        watch.leave(path, _numpy(output) if isinstance(output, torch.Tensor) else None)

    return hook


def begin(options: Options, draw: Callable[[Recipe], Inputs]) -> tuple[Given, Inputs]:
    """Make the model and the batches, and leave the model's structure and the inputs in the folder.

    draw: the recipe's batches, for a recipe that knows how many classes there are; until the model has run once,
    nobody does.
    """
    recipe = options.step_recipe
    torch.manual_seed(recipe.seed)
    taken = build(options)
    path = batch_file(options)
    if path is not None:
        each, labels = read_batches(path, options.steps)
        images: list[Images] = [x if len(x) > 1 else x[0] for x in each]
    else:
        first = draw(recipe_of(options, ANY))
        images, labels = first.images, first.labels
    structure = describe(taken, images[0], len(labels[0]))
    output = structure.outputs[0] if structure.outputs else ()
    classes = output[1] if len(output) > 1 else 1
    inputs = Inputs(images, labels, classes) if path is not None else draw(recipe_of(options, classes))
    structure.write(options.folder)
    write_inputs(options.folder, inputs)
    announce("structure")
    return taken, inputs


def write_start(model: nn.Module, options: Options) -> None:
    """Leave the starting weights for MindSpore, under torch's names; they go in through the alignment."""
    # a weight that two modules share under both names: the net may have two
    held = {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers())}
    arrays = {name: _numpy(tensor).copy() for name, tensor in held.items()}
    partial = options.folder / f"{START}.partial"
    save_file(arrays, partial)
    partial.replace(options.folder / START)


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().contiguous().numpy()
    return array
