"""Record the module calls of torch's step, then every module alone in each precision, and the wiring.

In a container's wiring every module in it hands on torch's recorded output, and backward a made-up gradient of its
inputs. So what reaches a module is the doing of the container around it alone, in both directions, and so is what
leaves the container: a forgotten residual, a wrong order or a detached branch shows at its own place, however wrong the
modules inside are.
"""

from __future__ import annotations

import copy
import weakref
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from ...training.models.outputs import flat
from ...workers.worker import progress
from ..options import Stage
from ..record.randomness import Draws, given_upstream
from ..record.torch_device import CPU
from ..record.torch_kinks import KinkSides, taking
from ..record.torch_precision import Precision, in_layout, model_in_layout
from ..record.torch_randomness import fixed
from ..record.torch_runner import dropped_state, gradients_by
from ..run_folder import MINDSPORE_REPLAY, replayed
from ..trace import ALONE, WIRING, Part, Trace, TraceWriter
from .module_calls import (
    BOTH_WAYS,
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
    parse_label,
    rebuilt,
    tensor_name,
)

Keep = Callable[[Stage, str, str, np.ndarray], None]  # of a stage, the label of a call, a tensor's name and value


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
        moved = torch.nn.Module.to(copy.deepcopy(model).to(device), dtype)  # a class's own `to` may take a device alone
        self.model = model_in_layout(moved, channels_last=channels_last).train()
        self.modules = dict(self.model.named_modules())
        buffers = self.model.named_buffers(remove_duplicate=False)
        self._start = {name: buffer.clone() for name, buffer in buffers}

    def run(self, call: Call, sides: KinkSides | None = None) -> list[Computed]:
        """(stage, tensor name, array) of everything that one call gives: outputs, gradients, changes of buffers.

        A gradient that does not reach a parameter or an input is zero, as MindSpore has it.
        """
        module = self.modules[call.path]
        self.restore(call.path)
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
        found += [("update", name, self._change(call.path, name)) for name in self.recording.modules[call.path].buffers]
        return found

    def _change(self, path: str, buffer: str) -> np.ndarray:
        """What has changed in a module's buffer since the start."""
        start = self._start[f"{path}.{buffer}" if path else buffer]
        change: np.ndarray = (self.modules[path].get_buffer(buffer).cpu().double() - start.cpu().double()).numpy()
        return change

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
        grads = gradients_by(list(by.values()), [out for out, _ in pairs], upstream)
        return [
            ("gradients", name, as_array(torch.zeros_like(tensor) if grad is None else grad))
            for (name, tensor), grad in zip(by.items(), grads, strict=True)
        ]

    def wired(self, call: Call, inner: Sequence[Call], sides: KinkSides, keep: Keep, *, backward: bool) -> None:
        """Tell `keep` what one call of a container computes itself, while the calls `inner` hand on torch's outputs:
        what reaches them and leaves it, and the gradients of both; of the parameters that it uses itself; its own
        buffers' changes. At once, for what comes next may overwrite it.

        backward: whether gradients are computed, which begin as made-up ones.
        """
        module, about = self.modules[call.path], self.recording.modules[call.path]
        waiting: dict[str, deque[Call]] = {}
        for each in inner:
            waiting.setdefault(each.path, deque()).append(each)
        anchor = torch.zeros((), dtype=self.dtype, device=self.device, requires_grad=backward)  # all hangs on it
        came_back: dict[tuple[str, str], torch.Tensor] = {}

        def forced(path: str, original: Callable[..., Any]) -> Callable[..., Any]:
            def forward(*args: Any, **kwargs: Any) -> Any:
                if not waiting[path]:
                    return original(*args, **kwargs)
                one, reached = waiting[path].popleft(), tensors((args, kwargs))
                named = [(tensor_name("input", i), each) for i, each in enumerate(reached)]
                for name, each in named:
                    keep("forward", one.label, name, as_array(each))
                if not one.is_plain:
                    return rebuilt(one.output, self.fresh, packed)
                real = [(name, each) for name, each in named if each.is_floating_point()]
                outputs = [self.fresh(stored) for stored in flat(one.output, Stored)]

                def returned(gradients: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
                    for i, gradient in enumerate(gradients):
                        came_back[one.label, tensor_name("output", i)] = gradient
                    return [self.upstream(f"{one.label} {name}", each) for name, each in real]

                handed = iter(_Seam.apply(returned, outputs, anchor, *(each for _, each in real)))
                return rebuilt(one.output, lambda _: next(handed))

            return forward

        self.restore(call.path)
        given = {
            stored.file: self.fresh(stored).requires_grad_(stored.needs_grad and backward) for stored in call.inputs
        }
        passed = {file: leaf.clone() for file, leaf in given.items()}
        patched = {path: self.modules[path] for path in waiting}
        try:
            for path, each in patched.items():
                each.forward = forced(path, each.forward)
            with taking(sides, module), torch.set_grad_enabled(backward):
                output = module(
                    *rebuilt(call.args, lambda stored: passed[stored.file], packed),
                    **rebuilt(call.kwargs, lambda stored: passed[stored.file], packed),
                )
        finally:
            for each in patched.values():
                each.__dict__.pop("forward", None)
        outputs = tensors(output)
        for i, each in enumerate(outputs):
            keep("forward", call.label, tensor_name("output", i), as_array(each))
        for name in self.recording.own_buffers(call.path):
            keep("update", call.label, name, self._change(call.path, name))
        if not backward:
            return
        by = {f"{name}.grad": module.get_parameter(name) for name in about.used if name is not None}
        for i, stored in enumerate(call.inputs):
            if stored.needs_grad:
                by[f"{tensor_name('input', i)}.grad"] = given[stored.file]
        pairs = [
            (each, self.upstream(f"{call.label} {tensor_name('output', i)}", each))
            for i, (each, gradient) in enumerate(zip(outputs, call.gradients, strict=False))
            if gradient is not None and each.requires_grad
        ]
        to = [anchor, *by.values()]
        outs, upstream = [each for each, _ in pairs], [each for _, each in pairs]
        reached = gradients_by(to, outs, upstream) if pairs else [None] * len(to)
        for (name, tensor), grad in zip(by.items(), reached[1:], strict=True):
            keep("gradients", call.label, name, as_array(torch.zeros_like(tensor) if grad is None else grad))
        for one in inner:
            for i, (stored, gradient) in enumerate(zip(flat(one.output, Stored), one.gradients, strict=False)):
                name = tensor_name("output", i)
                if one.is_plain and gradient is not None:
                    back = came_back.get((one.label, name))
                    array = np.zeros(stored.shape, np.float32) if back is None else as_array(back)
                    keep("gradients", one.label, f"{name}.grad", array)

    def upstream(self, name: str, like: torch.Tensor) -> torch.Tensor:
        """The made-up gradient that comes back to a tensor."""
        return torch.from_numpy(given_upstream(name, tuple(like.shape)).copy()).to(like)

    def fresh(self, stored: Stored) -> torch.Tensor:
        """A recorded tensor by itself, for a module may overwrite it; laid out so that any `view` of it works."""
        return self.tensor(stored).detach().contiguous()

    def tensor(self, stored: Stored) -> torch.Tensor:
        """A recorded tensor in this precision and layout."""
        tensor = torch.from_numpy(self.recording.array(stored)).to(self.device)
        if stored.is_float:
            tensor = tensor.to(self.dtype)
        return in_layout(tensor, channels_last=self.channels_last).requires_grad_(stored.needs_grad)

    def restore(self, path: str) -> None:
        """Put the buffers inside a module back to where they started."""
        with torch.no_grad():
            for name, buffer in self.modules[path].named_buffers():
                buffer.copy_(self._start[f"{path}.{name}" if path else name])


class _Seam(torch.autograd.Function):
    """Hands on other outputs than its inputs give, and backward other gradients, telling those that came."""

    @staticmethod
    def forward(
        ctx: Any, returned: Callable[..., list[torch.Tensor]], outputs: list[torch.Tensor], *inputs: Any
    ) -> Any:
        ctx.returned = returned
        ctx.mark_non_differentiable(*(each for each in outputs if not each.is_floating_point()))
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return (None, None, None, *ctx.returned(gradients))


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
) -> set[str]:
    """Run one float32 training step's forward and backward pass, and write FOLDER/replay.json and its tensors.

    model: at the starting weights, and left there, but for its running statistics: give a copy without gradients. loss:
    runs the model and returns the scalar to differentiate. Tensors go to disk as they appear, each once.
    crossing: the state names that have a counterpart in MindSpore, None where the mapping table says it. backward:
    without it no gradient is recorded, and none is computed when the modules run alone. Returns the tensors' files.
    """
    model.train()
    recorder = _Recorder(Writer(folder))
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
    return recorder.writer.there


SAME = 1e-4  # share of a tensor's size up to which rounding alone may part two passes of torch in one precision


def _strays(runner: Alone, call: Call) -> str:
    """Why a container's wiring says nothing, or nothing: it fails where the outputs of modules are handed on, or does
    otherwise, as where it reads what a module wrote over its input."""
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
        if recorded.shape != array.shape or not np.linalg.norm(recorded - array) <= SAME * np.linalg.norm(recorded):
            others.append(f"{name} {tensor} is another one")

    try:
        with fixed(runner.model, Draws(1)) as draws:
            backward = any(gradient is not None for gradient in call.gradients)
            runner.wired(call, inner, KinkSides({}), held, backward=backward)
    except Exception as error:
        return one_line(error)
    if draws.taken:  # a further call of it would draw other numbers
        return ""
    return next(iter(others), f"{' '.join(next(iter(expected)))} is missing" if expected else "")


class _Uses(TorchFunctionMode):
    """Tells a recorder of every parameter that a function is called with."""

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") != "__get__":  # its shape or dtype is no value
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
    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._begun: list[_Open] = []
        self._stack: list[_Open] = []
        self._numbers: dict[str, int] = {}
        self._known: dict[int, tuple[weakref.ref[Any], int, Stored]] = {}
        self.used: dict[str, dict[int, nn.Parameter]] = {}  # by module: the parameters that its own code computes with

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

    def uses(self, parameter: nn.Parameter) -> None:
        """Know of a parameter that is computed with now."""
        if self._stack and parameter.requires_grad:
            self.used.setdefault(self._stack[-1].path, {})[id(parameter)] = parameter

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
    most: int | None = None,
    backward: bool = True,
    image_gradient: bool = True,
) -> set[str]:
    """Record in FOLDER/replay what the modules do in the first of `parts` micro-batches of a step, in float32; most: of
    how many of its examples, None for all.

    model: at the starting weights; copied. images: what the model takes, each (N, ...); labels: what the loss takes.
    crossing: the state names that have a counterpart in MindSpore, where the user's own net says so. backward: whether
    gradients come back, image_gradient: whether to the inputs, too. Returns the files that it wrote.
    """
    model = copy.deepcopy(model)
    arrays = [images] if isinstance(images, np.ndarray) else images

    def first(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).chunk(parts)[0][:most].clone()

    def run(model: nn.Module) -> torch.Tensor:
        given = [x.requires_grad_(image_gradient and x.is_floating_point()) for x in map(first, arrays)]
        return loss(model(*given), first(labels)).sum()

    with fixed(model, Draws(1)):
        return record(folder / FOLDER, model, run, about(torch.float32, CPU), crossing, backward=backward)


def replay(
    folder: Path,
    model: nn.Module,
    precisions: Callable[[], Iterable[Precision]],
    about: About,
    sample: int | None = None,
    needed: Callable[[], Collection[str]] | None = None,
    by: str = MINDSPORE_REPLAY,
    verified: Collection[str] = (),
) -> None:
    """Record the torch-*-replay traces in `folder`, which has the recording and MindSpore's replay, or in its place
    torch's own choices (`by`).

    model: float32 at the starting weights; copied. precisions: hands them out, as often as it is called. needed: once
    all else is recorded, waits for the containers that ran alone in MindSpore too, and gives their labels; None: those
    that did are in its replay by now. verified: files of the recording that this process wrote itself. Calls that
    MindSpore left out are left out, kinks take the sides that MindSpore took, and what draws takes the numbers that
    MindSpore's took. Raises BadTrace for a damaged recording or trace.
    """
    recording = Recording.open(folder / FOLDER)
    recording.verified.update(verified)
    writers: dict[str, TraceWriter] = {}

    def run(calls: Iterable[Call], *, wires: bool) -> None:
        mindspore = Trace(folder / by)
        theirs = Outcome.of(mindspore)
        for name, dtype, variant, device in precisions():
            progress(f"{name}: every module alone")
            runner = Alone(recording, model, dtype, device, channels_last=variant % 2 == 1)
            head = {**about(dtype, device), FAILED: {}}
            writer = writers.setdefault(name, TraceWriter(folder / replayed(name), head, sample))
            with fixed(runner.model, Draws(1), theirs.cells) as draws:
                for call in calls:
                    draws.restart()
                    _run_alone(runner, call, mindspore, theirs, writer)
                for call in recording.calls.values() if wires else ():
                    draws.restart()
                    _wire(runner, call, mindspore, theirs, writer)
            writer.close()

    calls = list(recording.calls.values())
    if needed is None:
        run(calls, wires=True)
        return
    run([call for call in calls if call.label not in recording.made_by], wires=True)
    labels = needed()
    if labels:
        run([call for call in calls if call.label in labels], wires=False)


def _run_alone(runner: Alone, call: Call, mindspore: Trace, theirs: Outcome, writer: TraceWriter) -> None:
    """Record one call by itself, where MindSpore's side has it too, or what torch raised."""
    if call.label in theirs.left_out or call.label in theirs.by_parts:
        return
    try:
        found = runner.run(call, KinkSides.of(mindspore, Part.of_call(call.path, call.number)))
    except Exception as error:  # the other modules are worth their verdicts
        writer.about[FAILED][call.label] = one_line(error)
        return
    kind = runner.recording.modules[call.path].kind
    for stage, tensor, array in found:
        writer.add(stage, ALONE, f"{call.label} {tensor}", array, module=kind)


def _wire(runner: Alone, call: Call, mindspore: Trace, theirs: Outcome, writer: TraceWriter) -> None:
    """Record what a container itself computes, where MindSpore's side has it too."""
    ways = theirs.wired.get(call.label)
    if ways is None:
        return

    def keep(stage: Stage, name: str, tensor: str, array: np.ndarray) -> None:
        if theirs.asked(name, call.label):
            kind = runner.recording.modules[parse_label(name)[0]].kind
            writer.add(stage, WIRING, f"{name} {tensor}", array, module=kind)

    sides = KinkSides.of(mindspore, Part.of_wiring(call.path, call.number))
    inner = runner.recording.handed_on(call, theirs.unwired)
    try:
        runner.wired(call, inner, sides, keep, backward=ways == BOTH_WAYS)
    except Exception as error:  # of another version, which calls its modules otherwise; what lacks is a finding
        writer.about[FAILED].setdefault(call.label, one_line(error))
