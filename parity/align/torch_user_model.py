"""The user's torch model: built, described, stepped.

The loss of all outputs is the mean over all floating tensors of half the mean square of their distance from fixed
numbers between 0 and 1, so that no gradient is zero and none equals another. mindspore_user_model.py is the same in
MindSpore.
"""

from __future__ import annotations

import copy
import copyreg
import importlib
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from torch import nn
from torch.utils import deterministic

from ...errors import BadInput, BadTrace, Unsupported, WorkerFailed
from ...migrate import torch_models as torch_zoo
from ...migrate.model_spec import Spec, parse
from ...migrate.source.observe.torch_simplified_transformers import for_training
from ...migrate.torch_models import in_mode
from ...training.models import torch_models
from ...training.models.model_names import flat, of_batch
from ...training.recipe.schema import Recipe
from ...training.step import torch_step
from ...training.step.torch_step import StepResult, TrainStep, as_number, build_loss, joined
from ...workers.worker import ready
from ..job import ParityJob, as_arrays, recipe_of
from ..record.batches import Images, given_batches, write_inputs
from ..record.batches import Inputs as StepInputs
from ..run_folder import START
from .model_structure import Held, Module, Structure, Values, Watch, file, join, on_few
from .user_model import (
    Given,
    StepOutput,
    arguments,
    checked,
    completed,
    first,
    given,
    held_by,
    is_object,
    layer_class,
    one_number,
    plain_values,
    run_users,
    single,
    without_optimizer,
)

# lets a model be copied that holds a Python module, such as a file of settings
copyreg.pickle(types.ModuleType, lambda module: (importlib.import_module, (module.__name__,)))
PERIOD = 101  # elements after which the numbers repeat


def output_loss(outputs: Any, labels: torch.Tensor) -> torch.Tensor:
    """The loss of what the model returned. Raises BadInput where no floating tensor is in it."""
    found = [x for x in flat(outputs, torch.Tensor) if x.is_floating_point()]
    if not found:
        raise BadInput(f"the torch model returns {type(outputs).__name__} without a floating tensor")
    return torch.stack([_distance(x) for x in found]).mean()


def _distance(x: torch.Tensor) -> torch.Tensor:
    fixed = (torch.arange(x.numel(), device=x.device) % PERIOD).to(x.dtype) / PERIOD
    return ((x.reshape(-1) - fixed) ** 2).mean() / 2


ZOOS = ("torchvision", "timm")
ANY = 100_000  # the number of classes for the first batch, of which only the images are used


def build(options: ParityJob, *, tuned: bool = True) -> Given:
    """The recipe's model, or what the user's function returns, with a loss of all outputs where the pair asks for one.

    tuned: freeze what the recipe's model.freeze and its like say. Raises BadInput, BadRecipe and WorkerFailed.
    """
    return completed(_build(options), options, output_loss, torch_models.fine_tune if tuned else None)


def _build(options: ParityJob) -> Given:
    if options.pair is None:
        model = options.recipe.model
        return Given(torch_models.build(model.name, **model.args))
    where = f"--torch {options.pair.torch}"
    spec = parse(options.pair.torch)
    if spec.place == "msmigrate":
        return Given(torch_models.build(spec.name, *spec.args, **spec.kwargs))
    notes: list[str] = []

    def made() -> Given:
        return given(
            run_users(where, lambda: _from_spec(spec, notes, options.torch_device)),
            nn.Module,
            where,
            (torch.optim.Optimizer,),
        )

    with marked_memory():
        taken = made()
    taken = replace(taken, notes=tuple(notes), undefined=clear_memory(taken.model, lambda: made().model))
    for_training(torch_zoo.let_copy(taken.model))
    taken = replace(taken, start=plain_values(taken.model.modules(), vars(nn.Module())))
    return replace(taken, copies=_copies(taken.model, taken.step)) if is_object(taken.step) else taken


@contextmanager
def marked_memory() -> Iterator[None]:
    """Within this block torch fills new memory with NaN (integers: the largest), as its deterministic mode does.

    https://docs.pytorch.org/docs/stable/deterministic.html
    """
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    fills, deterministic.fill_uninitialized_memory = deterministic.fill_uninitialized_memory, True
    # not torch.use_deterministic_algorithms, which imports torch's compiler
    torch._C._set_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch._C._set_deterministic_algorithms(before[0], warn_only=before[1])
        deterministic.fill_uninitialized_memory = fills


def clear_memory(model: nn.Module, again: Callable[[], nn.Module]) -> tuple[str, ...]:
    """Put zeros where a model made within marked_memory() was left uninitialized; returns the names of these tensors.

    again: makes the model once more, outside of that block: what is NaN there too was meant to be.
    """
    found = {name: places for name, tensor in _all_tensors(model) if (places := _marked(tensor)).any()}
    if not found:
        return ()
    plain = dict(_all_tensors(again()))
    left = {name: places for name, places in found.items() if not _marked(plain[name])[places].all()}
    with torch.no_grad():
        for name, tensor in _all_tensors(model):
            if name in left:
                tensor.masked_fill_(left[name], 0)
    return tuple(left)


def _all_tensors(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.layout is torch.strided and tensor.dtype is not torch.bool:
            yield name, tensor


def _marked(tensor: torch.Tensor) -> torch.Tensor:
    return torch.isnan(tensor) if tensor.is_floating_point() else tensor == torch.iinfo(tensor.dtype).max


def _copies(model: nn.Module, step: Any) -> tuple[Any, ...]:
    """The copies of the model's weights that a step holds, itself or in its attributes: a dict by the model's names, a
    list in its order, or another model of the same state, as timm's and torch's averages hold one."""
    state = model.state_dict()
    held = held_by(step)
    modules = list({id(m): m for one in held if isinstance(one, nn.Module) for m in one.modules()}.values())
    parts = {id(part) for module in modules for part in (module._parameters, module._buffers)}
    own = {id(module) for module in model.modules()}
    tensors = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    found: list[Any] = []
    for one in (*modules, *(each for each in held if isinstance(each, (dict, list)) and id(each) not in parts)):
        values = one.state_dict() if isinstance(one, nn.Module) else one
        named = _named(model, values) if isinstance(values, list) else values
        if id(one) in own or not named or not all(isinstance(tensor, torch.Tensor) for tensor in named.values()):
            continue
        equal = all(key in state and torch.equal(tensor, state[key]) for key, tensor in named.items())
        if equal and any(bool(tensor.any()) for tensor in named.values()) and not tensors & {*map(id, named.values())}:
            found.append(one)
    return tuple(found)


def _named(model: nn.Module, values: list[Any]) -> dict[str, Any]:
    """The elements of a list in the order of the model's parameters, or of all its state, by the names of these."""
    several = [[n for n, p in model.named_parameters() if p.requires_grad], [n for n, _ in model.named_parameters()]]
    names = next((names for names in (*several, list(model.state_dict())) if len(names) == len(values)), [])
    return dict(zip(names, values, strict=True)) if names else {}


def _from_spec(spec: Spec, notes: list[str], device: str | None) -> Any:
    if spec.place not in ZOOS:
        return torch_zoo.build(spec, notes, device)
    with warnings.catch_warnings():  # GoogLeNet and Inception announce a new default
        warnings.simplefilter("ignore")
        return torch_zoo.build(spec)


def tensors(images: Images, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    """The model's arguments: floating ones in `dtype`, whole numbers as they are; copies, which it may write into."""
    arrays = images if isinstance(images, tuple) else (images,)
    found = [torch.from_numpy(array).clone() for array in arrays]
    return tuple(x.to(dtype) if x.is_floating_point() else x for x in found)


def describe(taken: Given, images: Images, batch: int) -> Structure:
    """Run a copy once in training mode on two examples, and say what the model consists of and how it runs.

    In training mode, because a model may have more outputs then, and layers that lead to them.
    """
    arrays = images if isinstance(images, tuple) else (images,)
    tokens = len(arrays) > 1 or arrays[0].dtype.kind != "f"

    def run(part: tuple[np.ndarray, ...]) -> Structure:
        try:
            return _described(taken, arrays, part, batch, tokens)
        except WorkerFailed as error:
            if tokens or not isinstance(error.__cause__, RuntimeError):
                raise
            # torch takes no gradient of images that are written into the rows of a tensor, or over themselves
            return _described(taken, arrays, part, batch, True)

    return on_few(run, arrays, batch)


def _described(
    taken: Given, arrays: tuple[np.ndarray, ...], part: tuple[np.ndarray, ...], batch: int, tokens: bool
) -> Structure:
    """The structure, by the examples `part`; unless they are tokens, the inputs get a gradient."""
    model, watch = copy.deepcopy(taken.model), Watch()
    inputs = tensors(part)
    for path, module in model.named_modules():
        module.register_forward_pre_hook(_entering(watch, path), with_kwargs=True)
        module.register_forward_hook(_leaving(watch, path))
    with torch.enable_grad():
        given = inputs if tokens else (inputs[0].requires_grad_(),)
        outputs = run_users("the torch model", lambda: in_mode(model, training=True)(*given))
    reached = _leaves_of(flat(outputs, torch.Tensor))
    shapes = tuple(of_batch(tuple(x.shape), len(arrays[0]), len(inputs[0]), batch) for x in flat(outputs, torch.Tensor))
    values = Values.of(_numpy(next(iter(flat(outputs, torch.Tensor)), torch.zeros(0))))
    modules, parts = _modules(model, reached), tuple(taken.parts)
    return Structure("torch", modules, watch.in_order(), shapes, parts, tokens, _aliases(model), values)


def _aliases(model: nn.Module) -> dict[str, str]:
    """Further names of the tensors that several modules have -> the first."""
    first: dict[int, str] = {}
    named = (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))
    return {name: first[id(tensor)] for name, tensor in named if first.setdefault(id(tensor), name) != name}


def _leaves_of(outputs: Iterable[torch.Tensor]) -> set[int]:
    """The ids of the tensors for which a backward pass from these outputs leaves a gradient."""
    given = list(outputs)
    waiting: list[Any] = [output.grad_fn for output in given]
    seen: set[Any] = {None}
    found = {id(output) for output in given}  # a parameter may be an output as it is, for a loss to compute with
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            found.add(id(getattr(node, "variable", None)))
            waiting += [before for before, _ in node.next_functions]
    return found


def _modules(model: nn.Module, reached: Set[int]) -> tuple[Module, ...]:
    """reached: the ids of the parameters that the outputs were computed with."""
    found = []
    seen: dict[int, str] = {}  # a weight that several modules share is the first one's, as in named_parameters()
    for path, module in model.named_modules():
        held = dict(module.named_parameters(recurse=False, remove_duplicate=False))
        shared = {name: seen[id(p)] for name, p in held.items() if id(p) in seen}
        new = {name: p for name, p in held.items() if name not in shared}
        seen |= {id(p): join(path, name) for name, p in new.items()}
        own = {name: replace(_held(p, p.requires_grad), reached=id(p) in reached) for name, p in new.items()}
        buffers = {name: _held(b, False) for name, b in module.named_buffers(recurse=False)}
        kind = layer_class(type(module).mro(), parts=any(True for _ in module.children()))
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


OF_SHAPES = (RuntimeError, ValueError, IndexError, AssertionError)  # what a net raises for images of a wrong shape


def begin(options: ParityJob, draw: Callable[[Recipe], StepInputs]) -> tuple[Given, StepInputs]:
    """Make the model and the batches, and leave the model's structure and the inputs in the folder.

    draw: the recipe's batches, for a recipe that knows how many classes there are, which is unknown until the model has
    run once.
    """
    recipe = options.step_recipe
    torch.manual_seed(recipe.seed)
    taken = build(options)
    given = given_batches(options)
    if given is None:
        first = draw(recipe_of(options, ANY))
        given = first.images, first.labels
    images, labels = given
    try:
        structure = describe(taken, images[0], len(labels[0]))
    except WorkerFailed as error:
        if as_arrays(options) or not isinstance(error.__cause__, OF_SHAPES):
            raise
        shape = "x".join(map(str, np.shape(images[0])))
        raise WorkerFailed(
            f"{error}; its images were the recipe's, {shape}: give your own with --batch-file, or name a recipe of "
            "other images, such as `msmigrate parity-step synthetic --torch …` of 32x32"
        ) from error
    output = structure.outputs[0] if structure.outputs else ()
    classes = output[1] if len(output) > 1 else 1
    inputs = StepInputs(images, labels, classes) if as_arrays(options) else draw(recipe_of(options, classes))
    _fits_the_loss(taken, options.step_recipe, structure, inputs.labels[0])
    structure.write(options.folder)
    write_inputs(options.folder, inputs)
    ready(file(options.folder, "torch"))
    return taken, inputs


def _fits_the_loss(taken: Given, recipe: Recipe, structure: Structure, labels: np.ndarray) -> None:
    """Raises BadInput where the recipe's loss does not take the shape of the model's output, such as feature maps."""
    if (
        taken.loss is not None
        or taken.step is not None
        or recipe.loss.own
        or recipe.mixup
        or len(structure.outputs) != 1
    ):
        return
    logits, target = torch.zeros(structure.outputs[0]), torch.from_numpy(np.array(labels))
    try:
        build_loss(recipe, logits)(logits, target.long() if target.dtype == torch.int32 else target)
    except OF_SHAPES as error:
        shapes = ["x".join(map(str, tuple(each.shape))) for each in (logits, target)]
        raise BadInput(
            f"the recipe's {recipe.loss.name} does not take what the torch model gives, {shapes[0]}, with labels of "
            f"{shapes[1]} ({' '.join(str(error).split())[:200]}): return a 'loss' with the model on both sides, such "
            'as {"model": net, "loss": lambda outputs, labels: (outputs ** 2).mean()}, or name a loss in the recipe'
        ) from error


def write_start(model: nn.Module, options: ParityJob) -> None:
    """Leave the starting weights for MindSpore, under torch's names; they go in through the alignment."""
    # a weight that two modules share under both names: the net may have two
    held = {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers())}
    dense = {name: tensor for name, tensor in held.items() if tensor.layout is torch.strided}  # MindSpore has no other
    arrays = {name: _numpy(tensor).copy() for name, tensor in dense.items()}
    partial = options.folder / f"{START}.partial"
    save_file(arrays, partial)
    partial.replace(options.folder / START)


def load_start(model: nn.Module, folder: Path) -> None:
    """Give a model the starting weights that `write_start` left. Raises BadTrace where they do not load."""
    try:
        start = {name: torch.from_numpy(array) for name, array in load_file(folder / START).items()}
        with torch.no_grad():  # load_state_dict would want the counters too, and of some models a version
            for name, parameter in model.named_parameters():
                if name in start:
                    parameter.copy_(start[name])
            for name, buffer in model.named_buffers():
                if name in start:  # which a forward pass may have made for the size of its input
                    buffer.data = start[name].to(buffer)
    except (OSError, RuntimeError, SafetensorError) as error:
        raise BadTrace(f"{folder}: its starting weights do not load: {' '.join(str(error).split())[:300]}") from error


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().cpu().contiguous().numpy()
    return array


Inputs: TypeAlias = "torch.Tensor | tuple[torch.Tensor, ...]"


class PairStep(TrainStep):
    """The recipe's step, with the user's loss, optimizer or whole step in place of its own.

    found: what the user's step returned last; None before it ran, and without one.
    """

    def __init__(self, recipe: Recipe, model: nn.Module, taken: Given) -> None:
        self.taken = taken
        self.found: StepOutput | None = None
        super().__init__(without_optimizer(recipe) if taken.optimizer else recipe, model)
        if taken.loss is not None:
            self.loss_function = taken.loss
            if isinstance(taken.loss, nn.Module):  # class weights in it are of the model's precision
                self.loss_function = copy.deepcopy(taken.loss).to(next(model.parameters()))
        original = {**dict(taken.model.named_parameters()), **dict(taken.model.named_buffers())}
        own = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        # each precision steps a copy of the model, and so with copies of what holds the model's tensors
        here: dict[int, Any] = {id(tensor): own[name] for name, tensor in original.items()}
        modules = dict(model.named_modules())
        here |= {id(module): modules[name] for name, module in taken.model.named_modules()}
        self.step = copy.deepcopy(taken.step, here) if taken.step is not None and is_object(taken.step) else taken.step
        for held in (here[id(one)] for one in taken.copies):  # each precision has its own, of the starting weights
            state = model.state_dict()
            if isinstance(held, nn.Module):
                held.to(next(model.parameters())).load_state_dict({key: state[key] for key in held.state_dict()})
            elif isinstance(held, dict):
                held.update({key: state[key].clone() for key in held})
            else:
                held[:] = [state[key].clone() for key in _named(model, held)]
        if taken.optimizer is not None:
            self.optimizer = self._made(taken.optimizer, here)
            self._take_over(dict(taken.model.named_parameters()))

    def _made(self, optimizer: Any, here: dict[int, Any]) -> torch.optim.Optimizer:
        """The optimizer of this step's parameters: from the user's function, or a copy of the user's own."""
        if isinstance(optimizer, torch.optim.Optimizer):
            return copy.deepcopy(optimizer, here)
        made = run_users("the torch optimizer", lambda: optimizer(list(self.parameters.values())))
        if not isinstance(made, torch.optim.Optimizer):
            raise BadInput(f"the torch optimizer is {type(made).__name__}: expected torch.optim's")
        return made

    def _take_over(self, original: dict[str, nn.Parameter]) -> None:
        """Let the optimizer hold this step's parameters where the user's function put those of their own model into
        its groups, by their names: each precision steps a copy.

        Raises BadInput for parameters of any other model.
        """
        own = dict(self.model.named_parameters())
        copies = {id(parameter): own[name] for name, parameter in original.items()}
        copies |= {id(parameter): parameter for parameter in own.values()}
        for group in self.optimizer.param_groups:
            if not all(id(parameter) in copies for parameter in group["params"]):
                raise BadInput(
                    "the torch optimizer holds a parameter that is none of the compared model's: make its groups of "
                    "the parameters that its function is given"
                )
            group["params"] = [copies[id(parameter)] for parameter in group["params"]]

    def __call__(self, images: Inputs, labels: torch.Tensor, image_gradient: bool = False) -> StepResult:
        """Run one step; images: what the model takes, a tuple where that is several tensors."""
        if self.step is None:
            return super().__call__(images, labels, image_gradient)
        step, model = self.step, self.model
        model.train()
        given = (model, self.optimizer)[: arguments(step) - 2]
        seen: list[torch.Tensor] = []
        watch = model.register_forward_hook(lambda _, __, output: seen.append(first(output, torch.Tensor).detach()))
        try:
            returned = run_users("the torch step", lambda: step(*given, images, labels))
        finally:
            watch.remove()
        self.found = checked(returned, torch.Tensor, "torch")
        logits = self.found.logits if self.found.logits is not None or not seen else joined(seen)
        grads = self.found.grads or {n: p.grad for n, p in self.parameters.items() if p.grad is not None}
        unknown = next((name for name in grads if name not in self.parameters), None)
        if unknown is not None:
            raise BadInput(
                f"the torch step returns a gradient of {unknown!r}, the name of no parameter that trains: return "
                "'grads' by the model's parameter names"
            )
        finite = None if self.found.finite is None else bool(one_number(self.found.finite, "torch", "finite"))
        self.steps += 1
        self._advance("step")
        return StepResult(
            self.found.loss.detach().reshape(()),
            None if logits is None else logits.detach(),
            {name: grad.detach() for name, grad in grads.items()},
            None,
            finite,
        )

    def gradients(self, images: Inputs, labels: torch.Tensor, image_gradient: bool = False) -> StepResult:
        """The first half of the step, for inputs of any kind."""
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        inputs = images if isinstance(images, tuple) else (images,)
        if image_gradient:
            inputs = tuple(x.detach().clone().requires_grad_(x.is_floating_point()) for x in inputs)
        parts, scale = self.recipe.accumulate, self.loss_scale
        total = next(self.model.parameters()).new_zeros(())
        outputs = []
        for x, y in zip(chunks(inputs, parts), labels.chunk(parts), strict=True):
            output = forward(self.recipe, self.model, x)
            if self.taken.loss is None and not self.recipe.loss.own:
                single(output, torch.Tensor, "torch")
            loss = run_users("the torch loss", partial(self.loss_function, output, y))
            loss = as_number(loss).reshape(())
            (loss / parts * scale).backward()
            total += loss.detach() / parts
            outputs.append(first(output, torch.Tensor))
        grads = self.unscaled()
        image_grad = inputs[0].grad / scale if image_gradient and inputs[0].grad is not None else None
        return StepResult(total, joined(outputs).detach(), grads, image_grad)


def replay_loss(recipe: Recipe, taken: Given | None) -> Callable[[Any, torch.Tensor], torch.Tensor]:
    """The loss whose gradients flow back into the modules that then run alone: the user's, else the recipe's.

    The loss of a step that the user wrote is unknown; any will do, because both sides are given the same gradients.
    """
    if taken is not None and taken.loss is not None:
        own = taken.loss
        return lambda output, labels: as_number(own(output, labels))
    whole = recipe.loss.own and (taken is None or taken.step is None)

    def loss(output: Any, labels: torch.Tensor) -> torch.Tensor:
        logits = first(output, torch.Tensor)
        return build_loss(recipe, logits)(output if whole else logits, labels)

    return loss


def make_step(recipe: Recipe, model: nn.Module, taken: Given | None) -> TrainStep:
    """The recipe's step, or a pair's."""
    return TrainStep(recipe, model) if taken is None else PairStep(recipe, model, taken)


def chunks(inputs: tuple[torch.Tensor, ...], parts: int) -> Iterator[tuple[torch.Tensor, ...]]:
    """The inputs of each micro-batch."""
    return zip(*(x.chunk(parts) for x in inputs), strict=True)


def forward(recipe: Recipe, model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> Any:
    """The model's output in the precision that the recipe says. Raises Unsupported for O2 and O3 with tokens."""
    amp = recipe.amp
    if len(inputs) == 1 and inputs[0].is_floating_point() and amp is not None:
        return torch_step.forward(amp, model, inputs[0])
    if amp is None or amp.level == "O0" or next(model.parameters()).dtype != torch.float32:
        return run_users("the torch model", lambda: model(*inputs))
    raise Unsupported("mixed precision is recorded for models with one floating input: leave amp out of the recipe")
