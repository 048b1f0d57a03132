"""A failing module under test: alone, as a container, or inside the net.

Alone, it runs on what torch's module was given (ModuleSubject). Of a container, only its own forward runs, with torch's
outputs from every module in it (ContainerSubject): a hypothesis on it costs next to nothing, and whatever is wrong
inside does not show. Inside the net (NetPass) the pass goes along MindSpore's outputs, so that every layer is judged on
the input that it has there, and one fault does not hide the next.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
import torch
from torch import nn

from ...errors import MsmigrateError, WorkerFailed
from ..noise import UsualNoise
from ..record.randomness import Draws
from ..record.torch_kinks import KinkSides, taking
from ..record.torch_randomness import fixed
from ..record.torch_runner import TorchSide
from ..replay import module_calls
from ..replay.module_calls import FOLDER, Call, Recording, Stored, label, rebuilt, relative, tensor_name
from ..run_folder import MINDSPORE_REPLAY, TORCH32, TORCH32_OTHER, TORCH64, replayed
from ..trace import ALONE, WIRING, Key, Part, Trace, sample_positions
from ..verdict import EPS32, FLOOR_ULPS, Verdict, judge
from .context import Context
from .evidence import Outcome
from .mutations.torch_layers import Mutation

SCREENED = 10.0  # a quick look without a float32 run lets ratios up to this many times RATIO through
Tensors = dict[str, np.ndarray]  # "output", "input.grad", "weight.grad", "running_mean", …
Around = Callable[[nn.Module], AbstractContextManager[object]]
# what a computation that does not fit raises in torch
FAILURES = (RuntimeError, ValueError, TypeError, IndexError, AttributeError, KeyError, AssertionError)
MODES = ("eval", "train")


@dataclass(frozen=True)
class RecordedTensor:
    """One tensor that MindSpore recorded of the module: its elements (flat; a sample where `sampled`), its shape, and
    torch's own noise on it, as a share of its size."""

    stage: str
    elements: np.ndarray
    shape: tuple[int, ...]
    sampled: bool
    noise: float

    def taken_from(self, array: np.ndarray) -> np.ndarray:
        """The elements of a whole tensor that were recorded, flat."""
        elements = array.reshape(-1)
        if not self.sampled:
            return elements
        return elements[sample_positions(elements.size, self.elements.size)]


@dataclass
class ModuleSubject:
    """One call of a failing module.

    module: torch's, float32, never changed. given: the recorded call; None where the subject has its inputs elsewhere.
    expected: MindSpore's tensors by name. around: the context that a run needs: shared random draws, sides of kinks.
    unlike: the tensors that MindSpore has otherwise or not at all, as is known: they fail nothing by their absence.
    """

    path: str
    module: nn.Module
    given: RecordedCall | None
    expected: Mapping[str, RecordedTensor]
    around: Around
    unlike: frozenset[str] = field(default=frozenset(), kw_only=True)
    how = "alone, on the same input and upstream gradients"

    def computed(self, mutations: Sequence[Mutation], dtype: torch.dtype, gradients: bool = True) -> Tensors:
        """What the module computes with these mutations one upon another. Raises CannotRun."""
        module = copied(self.module, dtype)
        for mutation in mutations:
            mutation.apply(module)
        assert self.given is not None
        return alone(module, self.given, dtype, gradients, self.around)

    def quick(self, mutations: Sequence[Mutation], gradients: bool = True) -> Outcome:
        """The outcome by a float64 run alone, against torch's recorded noise. Raises CannotRun."""
        return self._outcome(self.computed(mutations, torch.float64, gradients), None, gradients)

    def outcome(self, mutations: Sequence[Mutation]) -> Outcome:
        """The outcome, its noise measured by a float32 run under the same hypothesis. Raises CannotRun."""
        exact = self.computed(mutations, torch.float64)
        return self._outcome(exact, self.computed(mutations, torch.float32), True)

    def look(self, mutations: Sequence[Mutation]) -> Outcome | None:
        """`outcome`, or None where the module does not run so, or is plainly nowhere near."""
        try:
            return self.outcome(mutations)
        except CannotRun:
            return None

    def _outcome(self, exact: Tensors, single: Tensors | None, gradients: bool) -> Outcome:
        ratios: dict[str, float] = {}
        failing = set()
        names = [n for n in self.expected if gradients or self.expected[n].stage != "gradients"]
        for name in names:
            ratio, fails = self._compare(
                self.expected[name], exact.get(name), None if single is None else single.get(name)
            )
            ratios[name] = ratio
            if fails:
                failing.add(name)
        for name in set(exact) - set(self.expected) - self.unlike:
            if gradients and np.any(exact[name]):  # MindSpore has no such tensor
                ratios[name] = inf
                failing.add(name)
        return Outcome(ratios, frozenset(failing))

    def _compare(
        self, recorded: RecordedTensor, exact: np.ndarray | None, single: np.ndarray | None
    ) -> tuple[float, bool]:
        if exact is None or exact.shape != recorded.shape or not exact.size:
            gone = exact is None and not np.any(recorded.elements)
            return (0.0, False) if gone else (inf, True)
        reference = recorded.taken_from(exact).astype(np.float64)
        noisy = reference if single is None else recorded.taken_from(single)
        measure = judge(reference, [noisy], recorded.elements, relative_floor=recorded.noise)
        return (measure.ratio if np.isfinite(measure.ratio) else inf), measure.verdict is Verdict.FAIL


def noise_of(exact: np.ndarray, runs: Sequence[np.ndarray], floor: float = 0.0) -> float:
    """torch's own noise on one tensor as a share of its size: the largest of its float32 runs, at least `floor`."""
    size = float(np.linalg.norm(exact.astype(np.float64)))
    if not size:
        return max(floor, FLOOR_ULPS * EPS32)
    away = max((float(np.linalg.norm(run.astype(np.float64) - exact)) for run in runs), default=0.0)
    return max(away / size, floor, FLOOR_ULPS * EPS32)


class CannotRun(MsmigrateError):
    """A hypothesis under which the module does not run at all."""


@dataclass
class RecordedCall:
    """One recorded call with its tensors, read once."""

    recording: Recording
    call: Call

    def __post_init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    def array(self, stored: Stored) -> np.ndarray:
        """One tensor of the call."""
        if stored.file not in self._arrays:
            self._arrays[stored.file] = self.recording.array(stored)
        return self._arrays[stored.file]


def alone(
    module: nn.Module,
    given: RecordedCall,
    dtype: torch.dtype,
    gradients: bool = True,
    around: Around = lambda module: nullcontext(),
) -> Tensors:
    """Run a module, which is changed by it (its buffers move), in the mode it is in, on a recorded call.

    Returns outputs, input gradients, parameter gradients (zeros where none arrives) and the changes of float buffers
    (float64). around: a context for the run. Raises CannotRun.
    """
    module.to(dtype)
    before = {name: b.detach().clone() for name, b in module.named_buffers() if b.is_floating_point()}
    leaves: dict[str, torch.Tensor] = {}

    def tensor(stored: Stored) -> torch.Tensor:
        if stored.file not in leaves:
            leaf = torch.from_numpy(given.array(stored).copy())
            leaves[stored.file] = leaf.to(dtype).requires_grad_(stored.needs_grad) if stored.is_float else leaf
        # an in-place module may not write into a leaf: it gets a copy that the gradient passes through
        return leaves[stored.file].clone()

    try:
        with around(module), torch.set_grad_enabled(gradients):
            args, kwargs = rebuilt(given.call.args, tensor), rebuilt(given.call.kwargs, tensor)
            outputs = list(tensors(module(*args, **kwargs)))
            found = {tensor_name("output", i): _array(o) for i, o in enumerate(outputs) if o.is_floating_point()}
            if gradients:
                wanted = {
                    f"{tensor_name('input', i)}.grad": leaves[stored.file]
                    for i, stored in enumerate(given.call.inputs)
                    if stored.file in leaves and leaves[stored.file].requires_grad
                }
                wanted |= {f"{name}.grad": p for name, p in module.named_parameters() if p.requires_grad}
                found |= _gradients(wanted, outputs, given)
    except FAILURES as error:
        raise CannotRun(" ".join(str(error).split())[:300]) from error
    for name, buffer in module.named_buffers():
        if name in before and buffer.shape == before[name].shape:
            found[name] = np.subtract(_array(buffer), _array(before[name]), dtype=np.float64)
    return found


def _gradients(wanted: Mapping[str, torch.Tensor], outputs: list[torch.Tensor], given: RecordedCall) -> Tensors:
    total: torch.Tensor | None = None
    for output, stored in zip(outputs, given.call.gradients, strict=False):
        if stored is None or not output.requires_grad:
            continue
        upstream = torch.from_numpy(given.array(stored)).to(output.dtype)
        if upstream.shape == output.shape:
            part = (output * upstream).sum()
            total = part if total is None else total + part
    if total is None or not wanted:
        return {}
    grads = torch.autograd.grad(total, list(wanted.values()), allow_unused=True)
    return {
        name: _array(torch.zeros_like(leaf) if grad is None else grad)
        for (name, leaf), grad in zip(wanted.items(), grads, strict=True)
    }


def copied(module: nn.Module, dtype: torch.dtype = torch.float64) -> nn.Module:
    """A copy to try a hypothesis on."""
    return copy.deepcopy(module).to(dtype)


def tensors(values: object) -> Iterator[torch.Tensor]:
    """The tensors in a nest of tuples, lists and mappings, in their order."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, Mapping):
        for item in values.values():
            yield from tensors(item)
    elif isinstance(values, (list, tuple)):
        for item in values:
            yield from tensors(item)


def _array(tensor: torch.Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().contiguous().numpy()
    return array


@dataclass
class LayerInNet(ModuleSubject):
    """A layer on the input that it has inside the net, in the net's mode; its only subject is its output."""

    how = "on the input that it has inside the net"
    inputs: tuple[Any, ...] = ()

    def computed(self, mutations: Sequence[Mutation], dtype: torch.dtype, gradients: bool = True) -> Tensors:
        """Its output with these mutations one upon another. Raises CannotRun."""
        module = copied(self.module, dtype)
        for mutation in mutations:
            mutation.apply(module)
        try:
            with torch.no_grad(), self.around(module):
                output = module(*(_as(x, dtype) for x in self.inputs))
        except FAILURES as error:
            raise CannotRun(" ".join(str(error).split())[:300]) from error
        return {"output": next(tensors(output)).contiguous().numpy()}


class NetPass:
    """One forward pass of the net, in evaluation or training mode, along MindSpore's outputs."""

    def __init__(self, context: Context, mode: str, known: Mapping[str, Sequence[Mutation]]) -> None:
        self.context = context
        self.mode = mode
        self.found: list[LayerInNet] = []
        self._calls: dict[str, int] = {}
        self._lost = False  # an output of which a sample is all there is cannot be put in place of torch's
        self._usual = UsualNoise(context.traces.alone, context.traces.alone[1])
        side = TorchSide(context.recipe, context.model, torch.float64, 0, context.paired)
        self._shared = side.shared
        modules = dict(side.model.named_modules())
        for path, mutations in known.items():
            for mutation in mutations:
                mutation.apply(modules[path])
        names = {entry.name for entry in context.mindspore.select("forward", mode)}
        handles = [h for name in names & set(modules) for h in self._watch(name, modules[name])]
        try:
            run = side.evaluate if mode == "eval" else side.forward
            run(context.inputs.images[0], lambda leaf: None)
        except (*FAILURES, WorkerFailed):
            self._lost = True  # with the stride of MindSpore's layer, say, sizes do not fit: the track ends there
        finally:
            for handle in handles:
                handle.remove()

    def _watch(self, name: str, module: nn.Module) -> list[Any]:
        given: list[tuple[Any, ...]] = []

        def before(_: nn.Module, inputs: tuple[Any, ...]) -> None:
            given.append(tuple(x.detach().clone() if isinstance(x, torch.Tensor) else x for x in inputs))

        def after(_: nn.Module, __: tuple[Any, ...], output: Any) -> Any:
            call = self._calls.get(name, 0)
            self._calls[name] = call + 1
            inputs = given.pop()
            if self._lost or not isinstance(output, torch.Tensor):
                return None
            return self._judged(name, ("forward", self.mode, name, call), inputs, output)

        return [module.register_forward_pre_hook(before), module.register_forward_hook(after)]

    def _judged(self, name: str, key: Key, inputs: tuple[Any, ...], output: torch.Tensor) -> torch.Tensor | None:
        of_mindspore, of_torch = self.context.mindspore.entries.get(key), self.context.traces.alone[0].entries.get(key)
        if (
            of_mindspore is None
            or of_torch is None
            or not of_mindspore.dtype.startswith("float")
            or of_mindspore.nonfinite
        ):
            return None
        elements = self.context.mindspore.array(key)
        runs = [trace.array(key) for trace in self.context.traces.alone[1:] if key in trace.entries]
        noise = noise_of(self.context.traces.alone[0].array(key), runs, self._usual.floor(of_torch))
        recorded = RecordedTensor("forward", elements, of_mindspore.shape, of_mindspore.sampled, noise)
        exact = recorded.taken_from(output.detach().contiguous().numpy())
        alike = tuple(output.shape) == of_mindspore.shape
        if alike and judge(exact, [exact], elements, relative_floor=noise).verdict is not Verdict.FAIL:
            return None
        self.found.append(self._in_net(name, inputs, recorded))
        if of_mindspore.sampled or not alike:
            self._lost = True
            return None
        return torch.from_numpy(elements.astype(np.float64).reshape(of_mindspore.shape))

    def _in_net(self, name: str, inputs: tuple[Any, ...], recorded: RecordedTensor) -> LayerInNet:
        training = self.mode == "train"
        net = self.context.model.train(training)  # the net says which of its layers train
        module = copied(dict(net.named_modules())[name], torch.float32)
        draws = 1 if training else 0
        return LayerInNet(
            name,
            module,
            None,
            {"output": recorded},
            lambda copy: fixed(NamedCopy(name, copy), Draws(draws), self._shared),
            inputs,
        )


def _as(value: Any, dtype: torch.dtype) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(dtype, copy=True) if value.is_floating_point() else value.clone()


class ReplayTraces:
    """The replay of a run: the recording and the traces, opened once. Raises BadTrace."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.recording = Recording.open(context.folder / FOLDER)
        self.mindspore = Trace(context.folder / MINDSPORE_REPLAY)
        self.shared = module_calls.Outcome.of(self.mindspore).cells
        self.torch = [Trace(context.folder / replayed(name)) for name in (TORCH64, TORCH32, TORCH32_OTHER)]
        self.modules = dict(context.model.train().named_modules())  # by the net itself: it may keep layers frozen
        self.usual = UsualNoise(self.torch, context.traces.alone[1])

    @cached_property
    def entries(self) -> Mapping[tuple[str, str], Mapping[str, Key]]:
        """(part, label of a call) -> tensor -> key, for everything that any side recorded."""
        found: dict[tuple[str, str], dict[str, Key]] = {}
        for trace in (self.mindspore, *self.torch):
            for key, entry in trace.entries.items():
                label, _, tensor = entry.name.rpartition(" ")
                found.setdefault((entry.part, label), {})[tensor] = key
        return found

    def subjects(self, path: str) -> list[ModuleSubject]:
        """One for each call of a module that MindSpore ran alone, those that failed first."""
        failed = {f.name.rpartition(" ")[0] for f in self.context.findings if f.part == ALONE}
        calls = [call for call in self.recording.calls.values() if call.path == path]
        calls.sort(key=lambda call: call.label not in failed)
        found = [self.subject(call) for call in calls if (ALONE, call.label) in self.entries]
        return [subject for subject in found if subject.expected]

    def subject(self, call: Call) -> ModuleSubject:
        """One call, with every tensor that MindSpore recorded of it."""
        expected = self._subjects(ALONE, call.label, "")
        module = self.modules[call.path]

        @contextmanager
        def around(copy: nn.Module) -> Iterator[None]:
            sides = KinkSides.of(self.mindspore, Part.of_call(call.path, call.number))
            with ExitStack() as stack:
                stack.enter_context(taking(sides, copy))
                stack.enter_context(fixed(NamedCopy(call.path, copy), Draws(1), self.shared))
                yield

        paired = self.context.paired
        names = [] if paired is None else [relative(name, call.path) for name in paired.alignment.lacks]
        unlike = frozenset(f"{name}.grad" for name in names if name)
        return ModuleSubject(call.path, module, RecordedCall(self.recording, call), expected, around, unlike=unlike)

    def container(self, path: str) -> list[ContainerSubject]:
        """One for each call of a container whose wiring both frameworks recorded, those that failed first."""
        failed = {f.name.rpartition(" ")[0] for f in self.context.findings if f.part == WIRING}
        calls = [call for call in self.recording.calls.values() if call.path == path]
        found = []
        for call in calls:
            inner = inner_calls(self.recording.calls.values(), call)
            expected = self._subjects(WIRING, call.label, "", "output")
            for each in inner:
                expected |= self._subjects(WIRING, each.label, f"{within(each.path, path, each.number)} ", "input")
            if inner and expected:
                hit = bool(failed & {call.label, *(each.label for each in inner)})
                subject = self.subject(call)
                found.append((not hit, ContainerSubject(path, subject.module, subject.given, expected, subject.around)))
        return [container for _, container in sorted(found, key=lambda pair: pair[0])]

    def _subjects(self, part: str, label: str, prefix: str, kind: str = "") -> dict[str, RecordedTensor]:
        """MindSpore's tensors of one call, by name."""
        found = {}
        for tensor, key in self.entries.get((part, label), {}).items():
            entry = self.mindspore.entries.get(key)
            if entry is not None and entry.dtype.startswith("float") and tensor.startswith(kind):
                elements = self.mindspore.array(key)
                found[prefix + tensor] = RecordedTensor(key[0], elements, entry.shape, entry.sampled, self._noise(key))
        return found

    def _noise(self, key: Key) -> float:
        exact = self.torch[0].entries.get(key)
        if exact is None:
            return 0.0
        runs = [trace.array(key) for trace in self.torch[1:] if key in trace.entries]
        reference = self.torch[0].array(key)
        return noise_of(reference, [run for run in runs if run.shape == reference.shape], self.usual.floor(exact))


class NamedCopy(nn.Module):
    """Gives the modules of a copy the dotted names that they have in the whole model, by which draws are shared."""

    def __init__(self, path: str, module: nn.Module) -> None:
        super().__init__()
        self.__dict__["_there"] = (path, module)

    def named_modules(self, *args: object, **kwargs: object) -> Iterator[tuple[str, nn.Module]]:
        path, module = self.__dict__["_there"]
        for name, inner in module.named_modules():
            yield ".".join(part for part in (path, name) if part), inner


@dataclass
class ContainerSubject(ModuleSubject):
    """A container's own forward under test.

    Its tensors are named `PATH input` for what reaches a module, with the module's dotted name inside the container
    (and #N for a further call), and `output`.
    """

    how = "with torch's own outputs from every module in it"

    def computed(self, mutations: Any, dtype: torch.dtype, gradients: bool = True) -> Tensors:
        """What reaches the modules inside and leaves the container with these mutations one upon another. Raises
        CannotRun."""
        given = self.given
        assert given is not None
        module = copied(self.module, dtype)
        found: Tensors = {}
        call, calls = given.call, inner_calls(given.recording.calls.values(), given.call)
        numbers = {path: min(c.number for c in calls if c.path == path) for path in {c.path for c in calls}}

        def fresh(stored: Stored) -> torch.Tensor:
            tensor = torch.from_numpy(given.array(stored).copy())
            return tensor.to(dtype) if stored.is_float else tensor

        def forced(path: str) -> Callable[..., Any]:
            def forward(*args: Any, **kwargs: Any) -> Any:
                number, numbers[path] = numbers[path], numbers[path] + 1
                recorded = given.recording.calls.get(label(path, number))
                if recorded is None:
                    raise CannotRun(f"{path} is called once too often")
                found.update(_named(within(path, call.path, number), "input", (args, kwargs)))
                return rebuilt(recorded.output, fresh)

            return forward

        for path in numbers:
            module.get_submodule(relative(path, call.path) or "").__dict__["forward"] = forced(path)
        for mutation in mutations:
            mutation.apply(module)
        try:
            with torch.no_grad(), self.around(module):
                output = module(*rebuilt(call.args, fresh), **rebuilt(call.kwargs, fresh))
        except FAILURES as error:
            raise CannotRun(" ".join(str(error).split())[:300]) from error
        return found | {name.strip(): array for name, array in _named("", "output", output).items()}


def inner_calls(calls: Any, outer: Call) -> list[Call]:
    """The calls of modules that a call makes itself."""
    return [
        call
        for call in calls
        if call.caller == outer.label and call.path.startswith(f"{outer.path}." if outer.path else "")
    ]


def within(path: str, outer: str, number: int) -> str:
    """`conv1#2`: a module's name inside a container, and which of its calls."""
    inner = relative(path, outer) or ""
    return f"{inner}#{number}" if number else inner


def _named(who: str, what: str, values: Any) -> Tensors:
    return {
        f"{who} {tensor_name(what, i)}": _as_array(t) for i, t in enumerate(tensors(values)) if t.is_floating_point()
    }


def _as_array(tensor: torch.Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().contiguous().clone().numpy()
    return array


def children(module: nn.Module) -> bool:
    """Whether a module has modules in it."""
    return next(module.children(), None) is not None
