"""Record the module calls of torch's step, then every module alone in each precision, and the wiring.

Every module's output is replaced by torch's recorded one, and every container's input too. So what reaches a module is
the doing of the container around it alone, and so is what leaves the container: a forgotten residual or a wrong order
shows at its own place, however wrong the modules inside are.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from ...workers.worker import progress
from ..options import WHOLE, Narrowing
from ..record.randomness import Draws
from ..record.torch_device import CPU
from ..record.torch_kinks import KinkSides, taking
from ..record.torch_precision import Precision, in_layout, model_in_layout
from ..record.torch_randomness import fixed
from ..record.torch_runner import dropped_state
from ..run_folder import MINDSPORE_REPLAY, replayed
from ..trace import ALONE, WIRING, Part, Trace, TraceWriter
from .module_calls import (
    FAILED,
    FOLDER,
    Call,
    Computed,
    Module,
    Outcome,
    Packed,
    Recording,
    Stored,
    Unsupported,
    Value,
    Writer,
    label,
    one_line,
    rebuilt,
    tensor_name,
)


class Alone:
    """A copy of the model in one precision and layout, any module of which can be run alone."""

    def __init__(
        self,
        recording: Recording,
        model: nn.Module,
        dtype: torch.dtype,
        device: torch.device = CPU,
        *,
        channels_last: bool = False,
    ) -> None:
        self.recording = recording
        self.dtype = dtype
        self.device = device
        self.channels_last = channels_last
        self.model = model_in_layout(copy.deepcopy(model).to(device, dtype), channels_last=channels_last).train()
        self.modules = dict(self.model.named_modules())
        self._start = {name: buffer.clone() for name, buffer in self.model.named_buffers()}

    def run(self, call: Call, sides: KinkSides | None = None) -> list[Computed]:
        """(stage, tensor name, array) of everything that one call gives: outputs, gradients, changes of buffers.

        A gradient that does not reach a parameter or an input is zero, as MindSpore has it.
        """
        module = self.modules[call.path]
        self.restore()
        given = {stored.file: self.tensor(stored) for stored in call.inputs}
        passed = {file: leaf.clone() for file, leaf in given.items()}  # a module may overwrite its inputs
        with taking(sides, module) if sides is not None else nullcontext():
            output = module(
                *rebuilt(call.args, lambda stored: passed[stored.file], packed),
                **rebuilt(call.kwargs, lambda stored: passed[stored.file], packed),
            )
        outputs = tensors(output)
        found: list[Computed] = [
            ("forward", tensor_name("output", i), as_array(each)) for i, each in enumerate(outputs)
        ]
        found += self._gradients(call, module, given, outputs)
        for name in self.recording.modules[call.path].buffers:
            start = self._start[f"{call.path}.{name}" if call.path else name]
            now = module.get_buffer(name)
            found.append(("update", name, (now.cpu().double() - start.cpu().double()).numpy()))
        return found

    def _gradients(
        self, call: Call, module: nn.Module, given: dict[str, torch.Tensor], outputs: list[torch.Tensor]
    ) -> list[Computed]:
        pairs = [(out, g) for out, g in zip(outputs, call.gradients, strict=False) if g is not None]
        if not pairs:
            return []
        by = {f"{name}.grad": parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
        for i, stored in enumerate(call.inputs):
            if stored.needs_grad:
                by[f"{tensor_name('input', i)}.grad"] = given[stored.file]
        if not by:
            return []
        upstream = [self.tensor(g).detach().view_as(out) for out, g in pairs]
        grads = torch.autograd.grad([out for out, _ in pairs], list(by.values()), upstream, allow_unused=True)
        return [
            ("gradients", name, as_array(torch.zeros_like(tensor) if grad is None else grad))
            for (name, tensor), grad in zip(by.items(), grads, strict=True)
        ]

    def tensor(self, stored: Stored) -> torch.Tensor:
        """A recorded tensor in this precision and layout."""
        tensor = torch.from_numpy(self.recording.array(stored)).to(self.device)
        if stored.is_float:
            tensor = tensor.to(self.dtype)
        return in_layout(tensor, channels_last=self.channels_last).requires_grad_(stored.needs_grad)

    def restore(self) -> None:
        """Put the buffers back to where they started."""
        with torch.no_grad():
            for name, buffer in self.model.named_buffers():
                buffer.copy_(self._start[name])


def packed(padded: torch.Tensor, lengths: torch.Tensor) -> PackedSequence:
    """The packed sequence of these (N, T, …), of N lengths."""
    return pack_padded_sequence(padded, lengths.cpu(), batch_first=True, enforce_sorted=False)


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in a nest, in order; a packed sequence is (N, T, …) and its lengths, as a recording has it."""
    if isinstance(value, PackedSequence):
        return list(pad_packed_sequence(value, batch_first=True))
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [found for each in value for found in tensors(each)]
    return [value] if isinstance(value, torch.Tensor) else []


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """The tensor for a trace: whole numbers as int64, whatever the framework counts in."""
    array: np.ndarray = tensor.detach().cpu().contiguous().numpy()
    return array.astype(np.int64) if array.dtype.kind in "iub" else array


def record(
    folder: Path,
    model: nn.Module,
    loss: Callable[[nn.Module], torch.Tensor],
    about: dict[str, Any],
    crossing: Container[str] | None = None,
    *,
    backward: bool = True,
) -> None:
    """Run one float32 training step's forward and backward pass, and write FOLDER/replay.json and its tensors.

    model: at the starting weights, and left there, but for its running statistics and gradients: give a copy. loss:
    runs the model and returns the scalar to differentiate. Tensors go to disk as they appear, each once.
    crossing: the state names that have a counterpart in MindSpore, None where the mapping table says it. backward:
    without it no gradient is recorded, and none is computed when the modules run alone.
    """
    model.train()
    recorder = _Recorder(Writer(folder))
    handles = [handle for name, module in model.named_modules() for handle in recorder.watch(name, module)]
    try:
        scalar = loss(model)
        if backward:
            scalar.backward()
    finally:
        for handle in handles:
            handle.remove()
    recorder.writer.close(_tree(model, crossing), recorder.calls(), about)


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
    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._begun: list[_Open] = []
        self._stack: list[_Open] = []
        self._numbers: dict[str, int] = {}
        self._known: dict[int, tuple[weakref.ref[Any], int, Stored]] = {}

    def watch(self, path: str, module: nn.Module) -> list[Any]:
        """Hook one module."""

        def before(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            number = self._numbers.get(path, 0)
            self._numbers[path] = number + 1
            caller = label(self._stack[-1].path, self._stack[-1].number) if self._stack else None
            kept = tuple(self._keep(each) for each in args)  # at once: an in-place module overwrites its input
            opened = _Open(path, number, caller, kept, {key: self._keep(each) for key, each in kwargs.items()})
            self._begun.append(opened)
            self._stack.append(opened)

        def after(_: nn.Module, __: tuple[Any, ...], output: Any) -> None:
            call = self._stack.pop()
            seen: list[tuple[torch.Tensor, PackedSequence | None]] = []
            call.output = self._keep(output, seen)
            call.gradients = [None] * len(seen)
            for i, (tensor, whole) in enumerate(seen):
                if tensor.requires_grad:
                    tensor.register_hook(self._gradient_of(call, i, whole))

        return [
            module.register_forward_pre_hook(before, with_kwargs=True),
            module.register_forward_hook(after),
        ]

    def calls(self) -> list[Call]:
        """Everything recorded, in the order in which the calls began."""
        return [Call(**{**vars(call), "gradients": tuple(call.gradients)}) for call in self._begun]

    def _gradient_of(self, call: _Open, position: int, whole: PackedSequence | None) -> Callable[[torch.Tensor], None]:
        def hook(gradient: torch.Tensor) -> None:
            if whole is not None:
                gradient = tensors(PackedSequence(gradient, *whole[1:]))[0]
            call.gradients[position] = self._store(gradient)

        return hook

    def _keep(self, value: Any, seen: list[tuple[torch.Tensor, PackedSequence | None]] | None = None) -> Value:
        """Store the tensors of a nest; `seen` collects those that were stored, in order; of a packed sequence the one
        that has its gradient, with the sequence."""
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
        return Unsupported(type(value).__name__)

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


def _tree(model: nn.Module, crossing: Container[str] | None) -> list[Module]:
    names = {id(module): name for name, module in model.named_modules()}  # a shared module has its first name
    modules = []
    for name, module in model.named_modules():
        dropped = dropped_state(module)
        children = dict.fromkeys(names[id(child)] for child in module.children())
        parameters = tuple(key for key, parameter in module.named_parameters() if parameter.requires_grad)
        buffers = [key for key, b in module.named_buffers() if b.is_floating_point() and key not in dropped]
        if crossing is not None:
            buffers = [key for key in buffers if (f"{name}.{key}" if name else key) in crossing]
        modules.append(Module(name, type(module).__name__, tuple(children), parameters, tuple(buffers)))
    return modules


About = Callable[[torch.dtype, torch.device], dict[str, object]]


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
    backward: bool = True,
) -> None:
    """Record in FOLDER/replay what the modules do in the first of `parts` micro-batches of a step, in float32.

    model: at the starting weights; copied. images: what the model takes, each (N, ...); labels: what the loss takes.
    crossing: the state names that have a counterpart in MindSpore, where the user's own net says so. backward: whether
    gradients come back, too.
    """
    model = copy.deepcopy(model)
    arrays = [images] if isinstance(images, np.ndarray) else images

    def first(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).chunk(parts)[0].clone()

    def run(model: nn.Module) -> torch.Tensor:
        given = [first(array) for array in arrays]
        return loss(model(*(x.requires_grad_(x.is_floating_point()) for x in given)), first(labels)).sum()

    with fixed(model, Draws(1)):
        record(folder / FOLDER, model, run, about(torch.float32, CPU), crossing, backward=backward)


def replay(
    folder: Path,
    model: nn.Module,
    precisions: Iterable[Precision],
    about: About,
    sample: int | None = None,
    narrowing: Narrowing = WHOLE,
) -> None:
    """Record the torch-*-replay traces in `folder`, which has the recording and MindSpore's replay.

    model: float32 at the starting weights; copied. Calls that MindSpore left out are left out, kinks take the sides
    that MindSpore took, and what draws takes the numbers that MindSpore's took. Raises BadTrace for a damaged recording
    or trace.
    """
    recording, mindspore = Recording.open(folder / FOLDER), Trace(folder / MINDSPORE_REPLAY)
    theirs = Outcome.of(mindspore)
    for name, dtype, variant, device in precisions:
        progress(f"{name}: every module alone")
        runner = Alone(recording, model, dtype, device, channels_last=variant % 2 == 1)
        writer = TraceWriter(folder / replayed(name), about(dtype, device), sample)
        failed: dict[str, str] = {}
        for call in recording.calls.values():
            if call.label in theirs.left_out:
                continue
            try:
                with fixed(runner.model, Draws(1), theirs.cells):
                    found = runner.run(call, KinkSides.of(mindspore, Part.of_call(call.path, call.number)))
            except Exception as error:  # the other modules are worth their verdicts
                failed[call.label] = one_line(error)
                continue
            for stage, tensor, array in found:
                writer.add(stage, ALONE, f"{call.label} {tensor}", array, module=recording.modules[call.path].kind)
        if "forward" in narrowing.stages:
            with fixed(runner.model, Draws(1), theirs.cells):
                record_wiring(runner, theirs, writer)
        writer.about = {**writer.about, FAILED: failed}
        writer.close()


def record_wiring(runner: Alone, theirs: Outcome, writer: TraceWriter) -> None:
    """Record what reaches every module and leaves every container; the modules that MindSpore's pass ran as they are
    run as they are here too."""
    recording = runner.recording
    numbers: dict[str, int] = {}

    def seen(call: Call, what: str, values: Any) -> None:
        if not theirs.asked(call.label, call.caller if what == "input" else None):
            return
        for i, tensor in enumerate(tensors(values)):
            kind = recording.modules[call.path].kind
            writer.add("forward", WIRING, f"{call.label} {tensor_name(what, i)}", as_array(tensor), module=kind)

    def fresh(stored: Stored) -> torch.Tensor:
        # from disk each time, for a module may overwrite it; and laid out so that any `view` of it works
        return runner.tensor(stored).detach().contiguous()

    def forced(path: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            numbers[path] = numbers.get(path, -1) + 1
            call = recording.calls.get(label(path, numbers[path]))
            if call is None:
                return original(*args, **kwargs)
            seen(call, "input", (args, kwargs))
            given = rebuilt(call.output, fresh, packed)
            if recording.modules[path].children:
                found = original(*rebuilt(call.args, fresh, packed), **rebuilt(call.kwargs, fresh, packed))
                seen(call, "output", found)
                if isinstance(given, dict) and isinstance(found, dict):
                    return type(found)(**given)  # one whose items are attributes too, as transformers' ModelOutput
            return given

        return forward

    runner.restore()
    patched = {path: module for path, module in runner.modules.items() if path not in theirs.unwired}
    try:
        for path, module in patched.items():
            module.forward = forced(path, module.forward)
        with torch.no_grad():
            for root in recording.roots:
                runner.modules[root.path](*rebuilt(root.args, fresh, packed), **rebuilt(root.kwargs, fresh, packed))
    finally:
        for module in patched.values():
            module.__dict__.pop("forward", None)
