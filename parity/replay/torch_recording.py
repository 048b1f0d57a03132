"""Record the module calls of torch's step: each module's inputs, its outputs, and the gradients that came back.

Modules that run alone, in either framework, run on what is recorded here.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from ...training.models.model_names import fields_of, flat
from ..options import Stage
from ..record.randomness import Draws
from ..record.torch_device import CPU
from ..record.torch_kinks import KinkSides
from ..record.torch_randomness import fixed
from ..record.torch_runner import dropped_state
from ..run_folder import TORCH32
from ..trace import Kept
from .module_calls import (
    FOLDER,
    Call,
    Module,
    Packed,
    Recording,
    Stored,
    Unsupported,
    Value,
    Writer,
    gradient_name,
    label,
    one_line,
    tensor_name,
)
from .torch_replay import About, Ahead, Alone, Given, as_array, tensors


def record(
    folder: Path,
    model: nn.Module,
    loss: Callable[[nn.Module], torch.Tensor],
    about: dict[str, Any],
    crossing: Container[str] | None = None,
    *,
    backward: bool = True,
    leaves: _Leaves | None = None,
) -> set[str]:
    """Run one float32 training step's forward and backward pass, and write FOLDER/replay.json and its tensors.

    model: at the starting weights, and left there except for its running statistics; pass a copy without gradients.
    loss: runs the model and returns the scalar to differentiate. Tensors go to disk as they appear, each once.
    crossing: the state names that have a counterpart in MindSpore; None: by the mapping table. backward:
    without it no gradient is recorded, and none is computed when the modules run alone. leaves: keep what single
    modules compute. Returns the tensors' files.
    """
    model.train()
    recorder = _Recorder(Writer(folder), leaves)
    handles = [handle for name, module in model.named_modules() for handle in recorder.watch(name, module)]
    try:
        with _Uses(recorder):
            scalar = loss(model)
        if backward:
            scalar.backward()
    finally:
        for handle in handles:
            handle.remove()
    model.zero_grad(set_to_none=True)
    calls = recorder.calls()
    modules = _tree(model, crossing, recorder.used)
    written = Recording(folder, {m.path: m for m in modules}, {c.label: c for c in calls}, {}, recorder.writer.there)
    checked = Alone(written, model, torch.float32)
    recorder.writer.close(modules, [replace(call, strays=_strays(checked, call)) for call in calls], about)
    if leaves is not None:
        leaves.close(written)
    return recorder.writer.there


LARGEST_LEAF = 64  # nodes of autograd in a single module that are looked at
SAME = 1e-4  # share of a tensor's size by which two torch passes in one precision may differ by rounding alone


def _strays(runner: Alone, call: Call) -> str:
    """Why a container's wiring cannot be judged, or nothing: with the modules' outputs handed on it fails, or computes
    something else, for instance if it reads what a module wrote over its input."""
    inner = runner.recording.handed_on(call, ())
    if not inner:
        return ""
    if any(each.path == call.path for each in inner):
        return "it calls itself"
    given = {each.label: flat((each.args, each.kwargs), Stored) for each in inner}
    expected = {(name, tensor_name("input", i)): one for name, each in given.items() for i, one in enumerate(each)}
    expected |= {(call.label, tensor_name("output", i)): one for i, one in enumerate(flat(call.output, Stored))}
    others: list[str] = []

    def held(stage: Stage, name: str, tensor: str, array: np.ndarray) -> None:
        stored = expected.pop((name, tensor), None) if stage == "forward" else None
        if stored is None or array.dtype.kind != "f":
            return
        recorded = runner.recording.array(stored)
        if np.array_equal(recorded, array):  # as nearly always, and sooner known than a distance
            return
        if recorded.shape != array.shape or not np.linalg.norm(recorded - array) <= SAME * np.linalg.norm(recorded):
            others.append(f"{name} {tensor} differs")

    try:
        with fixed(runner.model, Draws(1)) as draws:
            backward = any(gradient is not None for gradient in call.gradients)
            runner.wired(call, inner, KinkSides({}), held, backward=backward)
    except Exception as error:
        return one_line(error)
    if draws.taken:  # calling it again would draw other numbers
        return ""
    return next(iter(others), f"{' '.join(next(iter(expected)))} is missing" if expected else "")


class _Uses(TorchFunctionMode):
    """Tells a recorder of every parameter that a function is called with."""

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") != "__get__":  # reading its shape or dtype does not use its value
            for each in tree_leaves((args, kwargs or {})):
                if isinstance(each, nn.Parameter):
                    self.recorder.uses(each)
        return func(*args, **(kwargs or {}))


@dataclass
class _Open:
    """A call that has begun."""

    path: str
    number: int
    caller: str | None
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    output: Value = None
    gradients: list[Stored | None] = field(default_factory=list)


class _Recorder:
    def __init__(self, writer: Writer, leaves: _Leaves | None) -> None:
        self.writer = writer
        self.leaves = leaves
        self._begun: list[_Open] = []
        self._stack: list[_Open] = []
        self._numbers: dict[str, int] = {}
        self._known: dict[int, tuple[weakref.ref[Any], int, Stored]] = {}
        self.used: dict[str, dict[int, nn.Parameter]] = {}  # by module: the parameters that its own code computes with

    def watch(self, path: str, module: nn.Module) -> list[Any]:
        """Hook one module."""
        mode = module.training

        def before(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            number = self._numbers.get(path, 0)
            self._numbers[path] = number + 1
            caller = label(self._stack[-1].path, self._stack[-1].number) if self._stack else None
            kept = tuple(self._keep(each) for each in args)  # at once: an in-place module overwrites its input
            opened = _Open(path, number, caller, kept, {key: self._keep(each) for key, each in kwargs.items()})
            self._begun.append(opened)
            self._stack.append(opened)
            if self.leaves is not None and module.training == mode:
                self.leaves.begin(module, opened, (args, kwargs))

        def after(_: nn.Module, __: tuple[Any, ...], output: Any) -> None:
            call = self._stack.pop()
            seen: list[tuple[torch.Tensor, PackedSequence | None]] = []
            if self.leaves is not None:
                self.leaves.end(module, call, output)
            call.output = self._keep(output, seen)
            call.gradients = [None] * len(seen)
            for i, (tensor, whole) in enumerate(seen):
                if tensor.requires_grad:
                    tensor.register_hook(self._gradient_of(call, i, whole))

        return [
            module.register_forward_pre_hook(before, with_kwargs=True),
            module.register_forward_hook(after),
        ]

    def uses(self, parameter: nn.Parameter) -> None:
        """Note that a parameter is being computed with."""
        if self._stack and parameter.requires_grad:
            self.used.setdefault(self._stack[-1].path, {})[id(parameter)] = parameter

    def calls(self) -> list[Call]:
        """Everything recorded, in the order in which the calls began."""
        return [Call(**{**vars(call), "gradients": tuple(call.gradients)}) for call in self._begun]

    def _gradient_of(
        self, call: _Open, position: int, whole: PackedSequence | None
    ) -> Callable[[torch.Tensor | None], None]:
        def hook(gradient: torch.Tensor | None) -> None:
            if gradient is None:  # of a state of an LSTM that nothing goes on with
                return
            if self.leaves is not None:
                self.leaves.came_back(call, gradient)
            if whole is not None:
                gradient = tensors(PackedSequence(gradient, *whole[1:]))[0]
            call.gradients[position] = self._store(gradient)

        return hook

    def _keep(self, value: Any, seen: list[tuple[torch.Tensor, PackedSequence | None]] | None = None) -> Value:
        """Store the tensors of a nest; `seen` collects those that were stored, in order; for a packed sequence the
        tensor that has its gradient, with the sequence."""
        if isinstance(value, PackedSequence):
            padded, lengths = tensors(value)
            if seen is not None:
                seen += [(value.data, value), (lengths, None)]
            return Packed(self._store(padded), self._store(lengths))
        if isinstance(value, torch.Tensor):
            try:
                stored = self._store(value)
            except (TypeError, ValueError, RuntimeError):  # a dtype or a device that NumPy cannot have
                return Unsupported(f"{value.dtype} tensor")
            if seen is not None:
                seen.append((value, None))
            return stored
        if isinstance(value, (list, tuple)):
            nested = [self._keep(each, seen) for each in value]
            return nested if isinstance(value, list) else tuple(nested)
        if isinstance(value, dict) and all(type(key) is str for key in value):
            return {key: self._keep(each, seen) for key, each in value.items()}
        if value is None or type(value) in (bool, int, float, str):
            return value
        named = {} if seen is None else fields_of(value)  # what a module returns, and not what it takes
        return {key: self._keep(each, seen) for key, each in named.items()} or Unsupported(type(value).__name__)

    def _store(self, tensor: torch.Tensor) -> Stored:
        """The stored tensor; one that is seen again unchanged is not read again."""
        found, version = self._known.get(id(tensor)), tensor._version
        if found is not None and found[1] == version and found[0]() is tensor:
            return found[2]
        needs_grad = tensor.requires_grad and tensor.is_floating_point()
        array: np.ndarray = tensor.detach().cpu().contiguous().numpy()
        stored = self.writer.store(array, needs_grad)
        self._known[id(tensor)] = (weakref.ref(tensor), version, stored)
        return stored


@dataclass
class _Leaf:
    """A call of a single module: what it is given, and what was kept of what it computes."""

    path: str
    given: torch.Tensor | None  # until its output is there
    source: Any  # the node of autograd that the given tensor's gradient goes to
    parameters: dict[str, torch.Tensor]  # that have a gradient, by its name
    wanted: list[str]  # the names of all its gradients, in the order of `Alone.run`
    buffers: dict[str, torch.Tensor]  # as they were before
    draws: int
    came: torch.Tensor | None = None  # the gradient that came back, as it was recorded
    exact: bool = False  # whether that is what its gradients were computed from
    output: Kept | None = None
    gradients: dict[str, Kept] = field(default_factory=dict)
    changes: dict[str, Kept] = field(default_factory=dict)


class _Leaves:
    """Keeps what single modules compute in the recorded pass where they compute the same alone, so that they need not
    run again in float32.

    That is known where a module takes one tensor, and all that autograd differentiates for it ends at that tensor and
    at the module's own parameters, at each once: the gradients that arrive there are the module's.
    """

    def __init__(self, ahead: Ahead, start: nn.Module, draws: Draws) -> None:
        self.ahead = ahead
        self.start = start
        self.draws = draws
        self._calls: dict[str, _Leaf] = {}

    def begin(self, module: nn.Module, call: _Open, arguments: Any) -> None:
        """See what a call is given."""
        given = tensors(arguments)
        buffers = {name: each.clone() for name, each in module.named_buffers() if each.is_floating_point()}
        again = call.number > 0 and buffers  # it has changed them since the start
        single = len(given) == 1 and not any(module.children()) and _is_contiguous(given[0])
        hooked = any(one._backward_hooks for one in module.parameters())  # which change what arrives there
        if not single or again or hooked or torch.is_autocast_enabled("cpu") or not self._takes(module, call):
            return
        own = {gradient_name(name): one for name, one in module.named_parameters() if one.requires_grad}
        wanted = [*own, *(["input.grad"] if given[0].requires_grad else [])]
        leaf = _Leaf(call.path, given[0], given[0].grad_fn, own, wanted, buffers, self._drawn())
        self._calls[label(call.path, call.number)] = leaf

    def _takes(self, module: nn.Module, call: _Open) -> bool:
        return self.ahead.takes(call.path, type(module).__name__)

    def _drawn(self) -> int:
        return len(self.draws.taken) + len(self.draws.outside)

    def end(self, module: nn.Module, call: _Open, output: Any) -> None:
        """Keep what came out, and what the gradients will be."""
        leaf = self._calls.get(label(call.path, call.number))
        if leaf is None:
            return
        node = output.grad_fn if isinstance(output, torch.Tensor) else None
        ends = self._ends(leaf, node) if node is not None and leaf.draws == self._drawn() else []
        if node is None or not ends or sorted(name for *_, name in ends) != sorted(leaf.wanted):
            del self._calls[label(call.path, call.number)]
            return
        leaf.given, leaf.output = None, self._kept(output)
        for name, before in leaf.buffers.items():
            change = (module.get_buffer(name).double() - before.double()).numpy()
            leaf.changes[name] = Kept.of(change, self.ahead.sample)

        def arrives(place: int, name: str) -> Callable[..., None]:
            def hook(gradients: tuple[torch.Tensor | None, ...], _: Any) -> None:
                if (found := gradients[place]) is not None and (kept := self._kept(found)) is not None:
                    leaf.gradients[name] = kept

            return hook

        for end, place, name in ends:
            end.register_hook(arrives(place, name))
        number = output.output_nr

        def came(_: Any, back: tuple[torch.Tensor | None, ...]) -> None:
            leaf.exact = leaf.came is not None and leaf.came is back[number] and _is_contiguous(leaf.came)
            leaf.came = None

        node.register_hook(came)

    def _kept(self, tensor: torch.Tensor) -> Kept | None:
        """What a trace records of a tensor; None for a dtype or a layout that NumPy does not have."""
        try:
            return Kept.of(as_array(tensor), self.ahead.sample)
        except (TypeError, ValueError, RuntimeError):
            return None

    def came_back(self, call: _Open, gradient: torch.Tensor) -> None:
        """See the gradient that is recorded of what came out; a hook of the model's own may change it."""
        if leaf := self._calls.get(label(call.path, call.number)):
            leaf.came = gradient

    @staticmethod
    def _ends(leaf: _Leaf, last: Any) -> list[tuple[Any, int, str]]:
        """Where a call's gradients leave it: the node of autograd, which of its gradients, and the gradient's name; ""
        for what is neither of the tensor nor of a parameter."""
        found, seen, waiting = [], {last}, [last]
        while waiting and len(seen) < LARGEST_LEAF:
            node = waiting.pop()
            for place, (inner, _) in enumerate(node.next_functions):
                variable = getattr(inner, "variable", None)  # of a tensor at which the graph ends
                if inner is None or inner in seen:
                    continue
                if inner is leaf.source:
                    found.append((node, place, "input.grad"))
                elif variable is not None:
                    own = (name for name, one in leaf.parameters.items() if one is variable)
                    found.append((node, place, "input.grad" if variable is leaf.given else next(own, "")))
                else:
                    seen.add(inner)
                    waiting.append(inner)
        return found if not waiting else []

    def close(self, recording: Recording) -> None:
        """Hand on the results of calls that are whole, and whose weights nothing has changed meanwhile."""
        found = self.ahead.found.setdefault(TORCH32, {})
        for name, leaf in self._calls.items():
            module, call = self.start.get_submodule(leaf.path), recording.calls[name]
            start = {gradient_name(name): one for name, one in module.named_parameters()}
            same = all(torch.equal(start[key], one) for key, one in leaf.parameters.items())
            backward = any(gradient is not None for gradient in call.gradients)
            whole = not backward or (leaf.exact and leaf.gradients.keys() == {*leaf.wanted})
            if leaf.output is None or not same or not whole:
                continue
            results: Given = [("forward", "output", leaf.output)]
            results += [("gradients", key, leaf.gradients[key]) for key in leaf.wanted if backward]
            results += [("update", key, leaf.changes[key]) for key in recording.modules[leaf.path].buffers]
            found[name] = results


def _is_contiguous(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and tensor.is_contiguous()


def _tree(
    model: nn.Module,
    crossing: Container[str] | None,
    used: Mapping[str, Mapping[int, nn.Parameter]],
) -> list[Module]:
    names = {id(module): name for name, module in model.named_modules()}  # a shared module has its first name
    modules = []
    for name, module in model.named_modules():
        dropped = dropped_state(module)
        children = dict.fromkeys(names[id(child)] for child in module.children())
        parameters = tuple(key for key, parameter in module.named_parameters() if parameter.requires_grad)
        buffers = [key for key, b in module.named_buffers() if b.is_floating_point() and key not in dropped]
        if crossing is not None:
            buffers = [key for key in buffers if (f"{name}.{key}" if name else key) in crossing]
        own = {id(parameter): key for key, parameter in module.named_parameters()}
        uses = tuple(own.get(key) for key in used.get(name, ())) if children else ()
        modules.append(Module(name, type(module).__name__, tuple(children), parameters, tuple(buffers), uses))
    return modules


def record_step(
    folder: Path,
    model: nn.Module,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    images: np.ndarray | Sequence[np.ndarray],
    labels: np.ndarray,
    about: About,
    parts: int = 1,
    crossing: Container[str] | None = None,
    *,
    most: int | None = None,
    backward: bool = True,
    image_gradient: bool = True,
    ahead: Ahead | None = None,
) -> set[str]:
    """Record in FOLDER/replay what the modules do in the first of `parts` micro-batches of a step, in float32; most:
    the number of examples to use, None for all.

    model: at the starting weights; copied. images: the model's inputs, each (N, ...); labels: the loss's. crossing: the
    state names that have a counterpart in MindSpore, where the user's own net says so. backward: whether gradients are
    recorded, image_gradient: whether those of the inputs, too. ahead: gets what single modules compute, as far as it is
    known to be what they compute alone. Returns the files that it wrote.
    """
    start, model = model, copy.deepcopy(model)
    arrays = [images] if isinstance(images, np.ndarray) else images

    def first(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).chunk(parts)[0][:most].clone()

    def run(model: nn.Module) -> torch.Tensor:
        given = [x.requires_grad_(image_gradient and x.is_floating_point()) for x in map(first, arrays)]
        if image_gradient and len(given) > 1:  # a model may write into one of them, and torch refuses that of a leaf
            given = [x.clone() if x.requires_grad else x for x in given]
        return loss(model(*given), first(labels)).sum()

    with fixed(model, Draws(1)) as draws:
        leaves = _Leaves(ahead, start, draws) if ahead is not None else None
        of = about(torch.float32, CPU)
        return record(folder / FOLDER, model, run, of, crossing, backward=backward, leaves=leaves)
