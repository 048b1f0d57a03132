"""A torch model with its step, as the recorder drives it."""

from __future__ import annotations

import argparse
import copy
import pickle
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ...errors import BadCheckpoint
from ...mappings import table
from ...migrate.checkpoint.formats.registry import check_before_torch
from ...migrate.checkpoint.optimizer_state import short
from ...migrate.checkpoint.training_state import AVERAGE, OPTIMIZER, SCALER
from ...training.models.model_names import flat
from ...training.recipe.schema import DynamicLossScale, Recipe
from ...training.step.torch_step import TrainStep
from ..align.alignment import IDENTITY, Alignment
from ..align.torch_user_model import PairStep, chunks, forward, make_step
from ..align.user_model import (
    Paired,
    StepOutput,
    hides_its_optimizer,
    one_number,
    own_step,
    plain_values,
    put_back,
    shows_its_optimizer,
)
from ..job import ParityJob
from . import resume
from .batches import Images
from .kinks import BY_INPUT
from .randomness import Draws
from .recorder import REDUCED, Arrays, LeafOutput, Seen, Side, StepArrays, StepStart
from .torch_device import CPU
from .torch_kinks import KinkSides, taking
from .torch_precision import in_layout, model_in_layout
from .torch_randomness import fixed

RULE = ("growth_factor", "backoff_factor", "growth_interval")
OWN = ("params", "param_names", "initial_lr")  # keys of a group that its own optimizer and schedule have set


class Continued:
    """What a torch training checkpoint remembers, to be given to one step after another.

    path: the checkpoint, whose tensors are read as torch reads them; nothing in it is executed. folder: where
    `resume.prepare` left the converted file. Raises BadCheckpoint for a file that torch does not read this way.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.given = resume.read(folder)
        check_before_torch(str(path))
        try:
            with torch.serialization.safe_globals([argparse.Namespace]):  # which scripts save with the weights
                document = torch.load(path, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, OSError, ValueError, KeyError, TypeError, EOFError) as error:
            raise BadCheckpoint(
                f"{path}: torch.load(weights_only=True) does not read it: {' '.join(str(error).split())[:300]}"
            ) from error
        optimizer = _first(document, OPTIMIZER)
        self.state: Mapping[int, Any] = optimizer["state"]
        self.groups: list[dict[str, Any]] = optimizer["param_groups"]
        self.names: list[list[str]] = [group["params"] for group in resume.told(self.given)["param_groups"]]
        self.scaler = _first(document, SCALER)
        self.average = _average(document)

    def into(self, step: TrainStep) -> None:
        """Give the step everything: position, optimizer, loss scale, moving average. Raises BadCheckpoint.

        As with torch's load_state_dict, the options of the parameter groups, including the learning rate, are those of
        the file: where the recipe has others, its next step differs, and the comparison shows it.
        """
        at = resume.position(self.given, step.recipe)
        step.steps = at.steps
        if step.schedule is not None:
            with warnings.catch_warnings():  # the schedule moves without updates in between
                warnings.simplefilter("ignore", UserWarning)
                for _ in range(at.epoch):
                    step.schedule.step()
        self._optimizer(step)
        if step.scaler is not None and step.scaler.rule is not None and self.scaler:
            rule = {name: self.scaler[name] for name in RULE if name in self.scaler}
            step.scaler.scale = float(self.scaler["scale"])
            step.scaler.growth_tracker = int(self.scaler.get("_growth_tracker", 0))
            step.scaler.rule = DynamicLossScale(**{**step.scaler.rule.model_dump(), **rule})
        if step.average is not None and self.average:
            for name, tensor in step.average.tensors.items():
                if name in self.average:
                    tensor.copy_(self.average[name])

    def _optimizer(self, step: TrainStep) -> None:
        """The optimizer's state and options, through torch's own load_state_dict, in the order of the step's groups."""
        own = step.optimizer.state_dict()
        name_of = {id(parameter): name for name, parameter in step.parameters.items()}
        order = [name_of[id(p)] for group in step.optimizer.param_groups for p in group["params"]]
        index: dict[str, int] = {}
        options: dict[str, dict[str, Any]] = {}
        for group, names in zip(self.groups, self.names, strict=True):
            index.update(zip(names, group["params"], strict=True))
            options.update(dict.fromkeys(names, group))
        lacking = [name for name in order if name not in index]
        if lacking:
            raise BadCheckpoint(f"{self.path}: its optimizer does not have {lacking[0]}, which the recipe trains")
        for group in own["param_groups"]:
            names = [order[i] for i in group["params"]]
            for key in [key for key in group if key not in OWN and key in options[names[0]]]:
                value = options[names[0]][key]
                other = next((name for name in names if options[name].get(key) != value), None)
                if other is not None:
                    raise BadCheckpoint(
                        f"{self.path}: {names[0]} was trained with {key} {value}, {other} with "
                        f"{options[other].get(key)}, and the recipe has both in one group: say so under "
                        "optimizer.no_weight_decay or optimizer.groups"
                    )
                group[key] = value
        held = {i: self.state[index[name]] for i, name in enumerate(order) if index[name] in self.state}
        own["state"] = copy.deepcopy(held)  # load_state_dict takes tensors of the same dtype as they are
        step.optimizer.load_state_dict(own)


def continued_from(options: ParityJob) -> Continued | None:
    """The training checkpoint that a run goes on from, or None where it begins anew. Raises BadCheckpoint."""
    return Continued(options.continue_from, options.folder) if options.continue_from is not None else None


def _first(document: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The first of the keys that holds a state, as convert-ckpt looks for it; from a list of one, its element."""
    for key in keys:
        value = document.get(key)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, dict):
            return value
    return {}


def _average(document: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The moving average by the bare model's names."""
    held: Any = next((document[key] for key in AVERAGE if document.get(key) is not None), {})
    for inner in ("module", "state_dict", "shadow", "model"):
        if isinstance(held.get(inner), dict):
            held = held[inner]
    return {short(name): value for name, value in held.items() if isinstance(value, torch.Tensor)}


class TorchSide(Side):
    """A torch model in one precision, at the starting weights, with the step that the recipe describes.

    model: float32, never changed. variant: 0 is the step as it stands; an odd variant runs it in
    channels_last layout, with other kernels and another order of additions; from 2 on, every weight and pixel is
    moved by at most half a unit in its last place as well. What differs between variants is rounding alone. paired: for
    a pair of the user's own, the parts they brought besides the model, and the alignment. continued: the
    training checkpoint that the step goes on from. device: where it runs; what is recorded of it is on the CPU.
    """

    def __init__(
        self,
        recipe: Recipe,
        model: nn.Module,
        dtype: torch.dtype,
        variant: int = 0,
        paired: Paired | None = None,
        continued: Continued | None = None,
        device: torch.device = CPU,
    ) -> None:
        self.recipe = recipe
        self.dtype = dtype
        self.device = device
        self.variant = variant
        self.paired = paired
        self.continued = continued
        self.alignment = paired.alignment if paired is not None else IDENTITY
        self.sides: list[KinkSides] = []  # for each coming step, the sides that its ReLUs have to take
        self.taken: list[bool] = []  # for each step, whether it updated the weights or was skipped
        self.draws: list[Draws] = []  # what each pass drew
        # the modules whose names both frameworks' draws go by; None: all
        self.shared = None if self.alignment.identity else {match.torch for match in self.alignment.modules}
        self.channels_last = variant % 2 == 1
        self._start = model
        if variant > 1:
            self._start = copy.deepcopy(model)
            with torch.no_grad():
                for parameter in self._start.parameters():
                    parameter.copy_(torch.from_numpy(jiggled(parameter.numpy(), variant)))
        self.restart()

    def restart(self) -> None:
        """Back to the starting weights with a new optimizer and schedule, or those of the checkpoint to go on from."""
        vars(self).pop("train_step", None)  # in float64 weights, gradients and state are most of what the run holds
        vars(self).pop("model", None)
        # two calls: a class's own `to` may take nothing but a device
        model = torch.nn.Module.to(copy.deepcopy(self._start).to(self.device), self.dtype)
        self.model = model_in_layout(model, channels_last=self.channels_last)
        self._counts = plain_values(self.model.modules(), vars(nn.Module())) if self.paired is not None else ()
        self.train_step = make_step(self.recipe, self.model, self.paired.given if self.paired is not None else None)
        if self.continued is not None:
            self.continued.into(self.train_step)

    def begin(self, start: StepStart | None) -> None:
        """Hold what MindSpore's side held before this step, as far as it has counterparts here."""
        if start is None:
            return
        held = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        pairs = [(held, start.values), (self.train_step.ema(), start.ema)]
        if self.alignment.scope.optimizer_state:
            state = self.train_step.optimizer_state()
            pairs += [(state.get(key, {}), arrays) for key, arrays in start.state.items()]
        with torch.no_grad():
            for tensors, arrays in pairs:
                for name, array in arrays.items():
                    if name in tensors and tensors[name].shape == array.shape:
                        tensors[name].copy_(torch.from_numpy(array))

    def parameters(self) -> Arrays:
        """Trainable parameters as they are now."""
        trained = ((name, p) for name, p in self.model.named_parameters() if self._trains(name, p))
        return self._crossing({name: _numpy(p) for name, p in trained})

    def buffers(self) -> Arrays:
        """Buffers that have a counterpart in MindSpore; the mapping table drops the others (num_batches_tracked)."""
        dropped = dropped_state(self.model)
        frozen = {name: p for name, p in self.model.named_parameters() if not self._trains(name, p)}
        held = {**frozen, **dict(self.model.named_buffers())}
        return self._crossing({name: _numpy(b) for name, b in held.items() if name not in dropped})

    def start_buffers(self) -> Arrays:
        """The same at the start; what is float64 in the model itself is so here, also where a run has it in float32."""
        own, dropped = dict(self._start.named_buffers()), dropped_state(self.model)
        wide = {name: _numpy(b) for name, b in own.items() if b.dtype == torch.float64 and name not in dropped}
        return {**self.buffers(), **self._crossing(wide)}

    def _trains(self, name: str, parameter: nn.Parameter) -> bool:
        """Whether a parameter trains here; not if no output depends on it and MindSpore's net freezes it."""
        return parameter.requires_grad and name not in self.alignment.left_alone

    def evaluate(self, images: Images, seen: Seen) -> list[np.ndarray]:
        """A forward pass in evaluation mode; the floating tensors that the model returns, as far as NumPy has them."""
        self.model.eval()
        with torch.no_grad(), self._fixed(Draws(0)), self._leaves(seen):
            returned = flat(self.model(*self.inputs(images)), torch.Tensor)
        put_back(self._counts)
        found = [x for x in returned if x.is_floating_point() and x.layout is torch.strided]
        return [_numpy(x) for x in found if x.dtype != torch.bfloat16]

    def forward(self, images: Images, labels: np.ndarray, seen: Seen) -> None:
        """A forward pass in training mode, micro-batch by micro-batch as the step takes it; the running statistics
        move. A step of the user's own, whose inside is unknown, runs as a whole."""
        if own_step(self.paired) is not None:
            self.step(images, labels, seen)
            return
        self.model.train()
        with torch.no_grad(), self._fixed(self.next_draws()), self._leaves(seen):
            for part in chunks(self.inputs(images), self.recipe.accumulate):
                forward(self.recipe, self.model, part)

    def step(self, images: Images, labels: np.ndarray, seen: Seen | None) -> StepArrays:
        """One training step, an epoch of its own; every leaf module's output is passed to `seen`."""
        inputs, y = self.inputs(images), self._labels(labels)
        x: Any = inputs if len(inputs) > 1 else inputs[0]
        with ExitStack() as watching:
            watching.enter_context(self._fixed(self.next_draws()))
            if seen is not None:
                watching.enter_context(self._leaves(seen))
            if self.sides:
                watching.enter_context(taking(self.sides.pop(0), self.model))
            taken = watching.enter_context(given_to(self.train_step)) if self.alignment.scope.own_step else {}
            result = self.train_step(x, y, image_gradient=self.alignment.scope.image_gradient)
        updated = bool(taken) or not shows_its_optimizer(self.paired)
        given = taken or result.grads if updated else {}
        grads = self._crossing({name: _numpy(grad) for name, grad in given.items()})
        self.train_step.end_epoch()
        self.taken.append(result.finite is not False)
        image_grad = None if result.image_grad is None else _numpy(result.image_grad)
        if image_grad is None and self.alignment.scope.image_gradient and own_step(self.paired) is None:
            image_grad = _numpy(torch.zeros_like(inputs[0]))  # after a detach(); MindSpore has zeros there
        logits = None if result.logits is None else _numpy(result.logits)
        return StepArrays(_numpy(result.loss), logits, grads, image_grad, result.finite, updated)

    def loss_scaling(self) -> Arrays:
        """The loss scale and the count of good steps in force; empty without a loss scale."""
        found, scaler = self._own_output(), self.train_step.scaler
        if own_step(self.paired) is not None:
            scale = None if found is None else found.scale
            return {} if scale is None else {"scale": np.array([one_number(scale, "torch", "scale")])}
        if scaler is None:
            return {}
        scale = _numpy(torch.tensor([scaler.scale], dtype=self.dtype))
        if self.alignment.scope.own_step:  # a user's step does not say how many were good
            return {"scale": scale.astype(np.float64)}
        return {"scale": scale, "good steps": np.array([scaler.growth_tracker], np.int64)}

    def _own_output(self) -> StepOutput | None:
        """What the user's own step returned last."""
        return self.train_step.found if isinstance(self.train_step, PairStep) else None

    def ema(self) -> Arrays:
        """The moving average of parameters and buffers that cross; empty without one."""
        dropped = dropped_state(self.model)
        found = self._own_output()
        held = (
            self.train_step.ema() if own_step(self.paired) is None else (found.ema or {}) if found is not None else {}
        )
        return self._crossing({name: _numpy(t.detach()) for name, t in held.items() if name not in dropped})

    def average(self, values: Arrays, update: int) -> None:
        """Take one update of the moving average alone, with these parameters."""
        average = self.train_step.average
        assert average is not None
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if name in values:
                    parameter.copy_(torch.from_numpy(values[name]))
        average.update(self.model, update)

    def optimizer_state(self) -> Mapping[str, Arrays]:
        """State key -> name -> tensor, for the keys that the mapping table lets cross."""
        if not self.alignment.scope.optimizer_state:
            return {}
        crossing = {state.torch for state in table.row(self.recipe.optimizer.name).state if state.mindspore}
        state = self.train_step.optimizer_state()
        return {key: {n: _numpy(t) for n, t in state[key].items()} for key in state if key in crossing}

    def updates_alone(self) -> bool:
        """False where the user's own step moves the rate, which its scheduler's mark in the optimizer shows, or where
        its optimizer is unknown."""
        if hides_its_optimizer(self.paired):
            return False
        own = own_step(self.paired) is not None and self.train_step.schedule is None
        return not (own and any("initial_lr" in group for group in self.train_step.optimizer.param_groups))

    def apply(self, grads: Arrays) -> None:
        """Clip and apply these unscaled gradients."""
        self.train_step.optimizer.zero_grad(set_to_none=True)  # clear those of the step before
        with fixed(self.model, self.next_draws(), self.shared):  # there are optimizers that add noise
            self.train_step.apply({name: self._moved(grad) for name, grad in grads.items()})
        self.train_step.end_epoch()

    def clipped(self, grads: Arrays) -> Arrays:
        """The gradients that the optimizer would be given for these unscaled ones; empty where the step is skipped."""
        given = {name: self._moved(grad) for name, grad in grads.items()}
        return {n: _numpy(grad) for n, grad in given_to_optimizer(self.train_step, given).items()}

    def accumulated(self, parts: Sequence[Arrays]) -> Arrays:
        """The unscaled gradients of a step whose micro-batches' losses have these gradients."""
        return {n: _numpy(grad) for n, grad in accumulated(self.train_step, parts).items()}

    @contextmanager
    def reducing(self) -> Iterator[list[bool]]:
        """Within this block gradients become larger as they are computed, where DistributedDataParallel takes means."""
        reduced: list[bool] = []

        def larger(grad: torch.Tensor) -> torch.Tensor:
            reduced.append(True)
            return grad * REDUCED

        with ExitStack() as undo:
            for parameter in self.train_step.parameters.values():
                undo.callback(parameter.register_hook(larger).remove)
            yield reduced

    def loss(self, logits: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss of given logits, and its gradient by them."""
        x = self._moved(logits).requires_grad_()
        with fixed(self.model, self.next_draws(), self.shared):
            value = self.train_step.loss_function(x, self._labels(labels))
        (gradient,) = torch.autograd.grad(value.sum(), x)
        return _numpy(value), _numpy(gradient)

    def _fixed(self, draws: Draws) -> AbstractContextManager[Draws]:
        """Draw these, and keep what was drawn."""
        self.draws.append(draws)
        return fixed(self.model, draws, self.shared)

    def inputs(self, images: Images) -> tuple[torch.Tensor, ...]:
        """The model's arguments: floating ones in this side's dtype and layout, whole numbers as they are; copies, for
        a model may write into what it is given."""
        return tuple(self._input(array) for array in (images if isinstance(images, tuple) else (images,)))

    def batch(self, images: Images, labels: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """A batch as this framework holds it."""
        return [_numpy(x) for x in self.inputs(images)], labels

    def _input(self, array: np.ndarray) -> torch.Tensor:
        if array.dtype.kind != "f":
            return torch.from_numpy(array).to(self.device, copy=True)
        array = jiggled(array, self.variant) if self.variant > 1 else array
        return in_layout(self._moved(array), channels_last=self.channels_last)

    def _moved(self, array: np.ndarray) -> torch.Tensor:
        """A floating array where this side runs, in its precision."""
        return torch.from_numpy(array).to(self.device, self.dtype, copy=True)

    def _leaves(self, seen: Seen) -> AbstractContextManager[None]:
        return leaf_outputs(self.model, seen, self.alignment)

    def _crossing(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The arrays that have a counterpart, or should have one: a constant of the user's model may have none."""
        if self.alignment.identity:
            return arrays
        return {name: array for name, array in arrays.items() if name in self.alignment.torch_names}

    def _labels(self, labels: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(labels).to(self.device, copy=True) if labels.dtype.kind != "f" else self._moved(labels)


@contextmanager
def given_to(step: TrainStep) -> Iterator[dict[str, torch.Tensor]]:
    """Within this block, the gradients that the step's optimizer was last given, by name."""
    found: dict[str, torch.Tensor] = {}

    def look(*_: Any) -> None:
        found.clear()
        found.update({n: p.grad.detach().clone() for n, p in step.parameters.items() if p.grad is not None})

    handle = step.optimizer.register_step_pre_hook(look)
    try:
        yield found
    finally:
        handle.remove()


def jiggled(array: np.ndarray, seed: int) -> np.ndarray:
    """float32 values each moved by up to 2**-24 of themselves: half a unit in the last place, which may or may not
    round to a neighbour."""
    draws = np.random.default_rng(seed).uniform(-1.0, 1.0, array.shape)
    return np.asarray(array * (1.0 + draws * 2.0**-24), np.float32)


@contextmanager
def leaf_outputs(model: nn.Module, seen: Seen, alignment: Alignment = IDENTITY) -> Iterator[None]:
    """Pass to `seen` the output of every leaf module that has a counterpart, at once: a later in-place module would
    overwrite the values."""
    calls: dict[str, int] = {}

    def hook_for(name: str) -> object:
        def hook(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: object) -> None:
            call = calls.get(name, 0)
            calls[name] = call + 1
            if isinstance(output, torch.Tensor) and alignment.compared(name, call):
                kind = type(module).__name__
                source = _numpy(inputs[0]) if kind in BY_INPUT else None
                seen(LeafOutput(name, call, kind, output.detach().cpu().numpy(), source))
            elif not name and alignment.compared(name, call):  # a model without layers, which gives several tensors
                for index, each in enumerate(flat(output, torch.Tensor)):
                    seen(LeafOutput(f"outputs.{index}", call, None, _numpy(each)))

        return hook

    # the model itself when it is a single layer, otherwise every childless module; in a pair, what counts as a layer
    layers = {path for path, _, _, _ in alignment.calls}
    handles = [
        module.register_forward_hook(hook_for(name))
        for name, module in model.named_modules()
        if (not any(True for _ in module.children()) if alignment.identity else name in layers)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def dropped_state(model: nn.Module) -> set[str]:
    """State_dict names that have no counterpart in MindSpore according to the mapping table."""
    rows = {row.torch.rsplit(".", 1)[-1]: row for row in table.rows("layer")}
    dropped = set()
    for path, module in model.named_modules():
        row = rows.get(type(module).__name__)
        for state in row.state if row else ():
            if state.mindspore is None and state.torch is not None:
                dropped.add(f"{path}.{state.torch}" if path else state.torch)
    # MindSpore has no sparse buffers, and NumPy no sparse arrays: a wrong one shows in the outputs
    return dropped | {name for name, buffer in model.named_buffers() if buffer.layout is not torch.strided}


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().cpu().contiguous().numpy()
    return array


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Within this block an object has an attribute of its own in place of its class's."""
    own = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


def given_to_optimizer(step: TrainStep, grads: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The gradients that the optimizer finds on its own parameters when the step applies these unscaled ones; empty if
    it is not called."""
    found: dict[str, torch.Tensor] = {}
    held = {id(p) for group in step.optimizer.param_groups for p in group["params"]}

    def update() -> None:
        own = {name: p for name, p in step.parameters.items() if id(p) in held}
        found.update({name: p.grad.clone() for name, p in own.items() if p.grad is not None})

    with _replaced(step.optimizer, "step", update):
        step.apply(dict(grads))
    return found


def accumulated(step: TrainStep, parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, torch.Tensor]:
    """The unscaled gradients of a step whose micro-batches have these gradients, each name -> gradient.

    The loss of a micro-batch is the sum over all weights of weight times given gradient, which the step divides,
    scales and differentiates as it does any other.
    """
    waiting = iter(parts)
    own = next(iter(step.parameters.values()))

    def loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        grads = next(waiting)
        given = {name: p for name, p in step.parameters.items() if name in grads}
        products = [(p * torch.from_numpy(grads[name]).to(own)).sum() for name, p in given.items()]
        return torch.stack(products).sum()

    images, labels = own.new_zeros(len(parts), 1), own.new_zeros(len(parts), dtype=torch.int64)
    with _replaced(step.model, "forward", lambda x: x), _replaced(step, "loss_function", loss):
        result = step.gradients(images, labels)
    step.apply(result.grads)
    return result.grads


class _Given(torch.autograd.Function):
    """A number whose gradients with respect to some tensors are given."""

    @staticmethod
    def forward(ctx: Any, gradients: Sequence[torch.Tensor], *tensors: torch.Tensor) -> torch.Tensor:
        ctx.gradients = gradients
        return tensors[0].new_zeros(())

    @staticmethod
    def backward(ctx: Any, _: torch.Tensor) -> Any:
        return (None, *ctx.gradients)


def gradients_by(
    inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], upstream: Sequence[torch.Tensor]
) -> Sequence[torch.Tensor | None]:
    """Like `torch.autograd.grad`, which imports SymPy if given `upstream`, and that takes a second."""
    if not all(each.requires_grad for each in outputs):
        raise RuntimeError("an output to which a gradient comes back does not require one")
    found: Sequence[torch.Tensor | None] = torch.autograd.grad(
        _Given.apply(upstream, *outputs), inputs, allow_unused=True
    )
    return found
