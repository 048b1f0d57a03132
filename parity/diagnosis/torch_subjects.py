"""A failing module under test: alone, as a container, or inside the net.

Alone, it runs on the recorded inputs of torch's module (ModuleSubject). For a container, only its own forward runs,
with torch's outputs from every module in it (ContainerSubject): a hypothesis on it costs next to nothing, and faults
inside those modules do not show. Inside the net (NetPass) every layer gets MindSpore's outputs as its input, so that it
is judged on the input that it has there, and one fault does not hide the next.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
import torch
from torch import nn

from ...errors import MsmigrateError, WorkerFailed
from ...migrate.torch_models import in_mode
from ..align.alignment import Cut
from ..noise import UsualNoise
from ..record.randomness import Draws
from ..record.torch_kinks import KinkSides, taking
from ..record.torch_randomness import fixed
from ..record.torch_runner import TorchSide
from ..replay import module_calls
from ..replay.module_calls import (
    FOLDER,
    Call,
    Made,
    Recording,
    Stored,
    gradient_name,
    label,
    rebuilt,
    relative,
    tensor_name,
)
from ..replay.torch_replay import packed, tensors
from ..run_folder import MINDSPORE_REPLAY, replayed, torch_runs
from ..tensor_verdict import EPS32, FLOOR_ULPS, Verdict, judge
from ..trace import ALONE, WIRING, Key, Part, Trace
from .context import Context, recorded
from .hypotheses import Outcome, finite_alike
from .mutations.torch_layers import Mutation

Tensors = dict[str, np.ndarray]  # "output", "input.grad", "weight.grad", "running_mean", …
Around = Callable[[nn.Module], AbstractContextManager[object]]
# what torch raises for a computation whose shapes or values do not fit
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
        return recorded(array, self.elements.size)

    def compare(self, exact: np.ndarray | None, single: np.ndarray | None) -> tuple[float, bool]:
        """The ratio against torch's float64 and float32 tensor, and whether it fails; None: torch has no such one."""
        if exact is None or exact.shape != self.shape or not exact.size:
            gone = exact is None and not np.any(self.elements)
            return (0.0, False) if gone else (inf, True)
        reference = self.taken_from(exact).astype(np.float64)
        noisy = reference if single is None else self.taken_from(single)
        kept = finite_alike(reference, self.elements)
        if kept is None:
            return inf, True
        if not kept.any():
            return 0.0, False
        measure = judge(reference[kept], [noisy[kept]], self.elements[kept], relative_floor=self.noise)
        return (measure.ratio if np.isfinite(measure.ratio) else inf), measure.verdict is Verdict.FAIL


@dataclass
class ModuleSubject:
    """One call of a failing module.

    module: torch's, float32, never changed. given: the recorded call; None where the subject has its inputs elsewhere.
    expected: MindSpore's tensors by name. around: the context that a run needs: shared random draws, sides of kinks.
    unlike: the tensors that are known to differ or to be missing in MindSpore; their absence is no failure. made: how
    MindSpore's Cell was made, where that is known. cuts: the tensors of the module that MindSpore has in parts.
    """

    path: str
    module: nn.Module
    given: RecordedCall | None
    expected: Mapping[str, RecordedTensor]
    around: Around
    unlike: frozenset[str] = field(default=frozenset(), kw_only=True)
    made: Made | None = field(default=None, kw_only=True)
    cuts: Sequence[Cut] = field(default=(), kw_only=True)
    how = "alone, on the same input and upstream gradients"

    def computed(self, mutations: Sequence[Mutation], dtype: torch.dtype, gradients: bool = True) -> Tensors:
        """What the module computes with these mutations, applied in turn. Raises CannotRun."""
        assert self.given is not None
        return alone(mutated(copied(self.module, dtype), mutations), self.given, dtype, gradients, self.around)

    def quick(self, changes: Sequence[Mutation], gradients: bool = True) -> Outcome | None:
        """The outcome of a float64 run only, against torch's recorded noise; None where the module does not run."""
        try:
            return self._outcome(self.computed(changes, torch.float64, gradients), None, gradients)
        except CannotRun:
            return None

    def outcome(self, changes: Sequence[Mutation]) -> Outcome | None:
        """The outcome, its noise measured by a float32 run under the same hypothesis; None where it does not run."""
        try:
            exact = self.computed(changes, torch.float64)
            return self._outcome(exact, self.computed(changes, torch.float32), True)
        except CannotRun:
            return None

    def _outcome(self, exact: Tensors, single: Tensors | None, gradients: bool) -> Outcome:
        compared = {
            name: expected.compare(exact.get(name), None if single is None else single.get(name))
            for name, expected in self.expected.items()
            if gradients or expected.stage != "gradients"
        }
        if gradients:
            more = set(exact) - set(self.expected) - self.unlike  # tensors that MindSpore lacks
            if not any(expected.stage == "gradients" for expected in self.expected.values()):
                more = {name for name in more if not name.endswith(".grad")}  # no gradient fitted its outputs' shapes
            compared |= {name: (inf, True) for name in more if np.any(exact[name])}
        failing = frozenset(name for name, (_, fails) in compared.items() if fails)
        return Outcome({name: ratio for name, (ratio, _) in compared.items()}, failing)


def noise_of(exact: np.ndarray, runs: Sequence[np.ndarray], floor: float = 0.0) -> float:
    """torch's own noise on one tensor as a share of its size: the largest of its float32 runs, at least `floor`."""
    size = float(np.linalg.norm(exact.astype(np.float64)))
    if not size:
        return max(floor, FLOOR_ULPS * EPS32)
    away = max((float(np.linalg.norm(run.astype(np.float64) - exact)) for run in runs), default=0.0)
    return max(away / size, floor, FLOOR_ULPS * EPS32)


class CannotRun(MsmigrateError):
    """Under this hypothesis the module does not run at all."""


@contextmanager
def running() -> Iterator[None]:
    """Within this block the errors in FAILURES become CannotRun."""
    try:
        yield
    except FAILURES as error:
        raise CannotRun(" ".join(str(error).split())[:300]) from error


@dataclass
class RecordedCall:
    """One recorded call with its tensors, read once."""

    recording: Recording
    call: Call
    _arrays: dict[str, np.ndarray] = field(default_factory=dict, init=False)

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
    """Run a module on a recorded call, in the mode it is in; this changes the module (its buffers move).

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

    with running(), around(module), torch.set_grad_enabled(gradients):
        args, kwargs = (rebuilt(each, tensor, packed) for each in (given.call.args, given.call.kwargs))
        outputs = tensors(module(*args, **kwargs))
        found = _named("output", outputs)
        if gradients:
            wanted = {
                f"{tensor_name('input', i)}.grad": leaves[stored.file]
                for i, stored in enumerate(given.call.inputs)
                if stored.file in leaves and leaves[stored.file].requires_grad
            }
            wanted |= {gradient_name(name): p for name, p in module.named_parameters() if p.requires_grad}
            found |= _gradients(wanted, outputs, given)
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


def mutated(module: nn.Module, mutations: Sequence[Mutation]) -> nn.Module:
    """The module, changed in place by these mutations in turn."""
    for mutation in mutations:
        mutation.apply(module)
    return module


def _named(what: str, values: Any) -> Tensors:
    """Copies of the float tensors in a nest, named `what` and their number."""
    found = enumerate(tensors(values))
    return {tensor_name(what, i): _array(tensor).copy() for i, tensor in found if tensor.is_floating_point()}


def _array(tensor: torch.Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().contiguous().numpy()
    return array


@dataclass
class LayerInNet(ModuleSubject):
    """A layer on the input that it has inside the net, in the net's mode; its only subject is its output.

    then: the layer that takes its output, whose own output is the subject where MindSpore's net computes this one as a
    function, whose result is not recorded. before: such a layer, as a subject, where this one takes its output.
    """

    how = "on the input that it has inside the net"
    inputs: tuple[Any, ...] = ()
    then: nn.Module | None = None
    before: LayerInNet | None = None

    def computed(self, mutations: Sequence[Mutation], dtype: torch.dtype, gradients: bool = True) -> Tensors:
        """Its output with these mutations, applied in turn. Raises CannotRun."""
        module = mutated(copied(self.module, dtype), mutations)
        with running(), torch.no_grad(), self.around(module):
            output = module(*(_as(x, dtype) for x in self.inputs))
            output = output if self.then is None else copied(self.then, dtype)(output)
        return {"output": _array(tensors(output)[0])}


def shapes_with(context: Context, path: str, mutations: Sequence[Mutation]) -> dict[tuple[str, int], tuple[int, ...]]:
    """Name and call of each module -> the shape of its output in evaluation mode, with one module mutated, as far as
    torch's own net still runs."""
    side = TorchSide(context.recipe, context.model, torch.float64, 0, context.paired)
    modules = dict(side.model.named_modules())
    mutated(modules[path], mutations)
    found: dict[tuple[str, int], tuple[int, ...]] = {}

    def seen(name: str, output: Any) -> None:
        if isinstance(output, torch.Tensor):
            found[name, sum(known == name for known, _ in found)] = tuple(output.shape)

    handles = [
        module.register_forward_hook(lambda _, __, output, name=name: seen(name, output))
        for name, module in modules.items()
    ]
    try:
        side.evaluate(context.inputs.images[0], lambda leaf: None)
    except (*FAILURES, WorkerFailed):
        pass  # sizes do not fit any more: the shapes end there
    finally:
        for handle in handles:
            handle.remove()
    return found


class NetPass:
    """One forward pass of the net, in evaluation or training mode, with MindSpore's outputs in place of torch's."""

    def __init__(self, context: Context, mode: str, known: Mapping[str, Sequence[Mutation]]) -> None:
        self.context = context
        self.mode = mode
        self.found: list[LayerInNet] = []
        self._calls: dict[str, int] = {}
        self._lost = False  # an output that was only sampled cannot be put in place of torch's
        self._torch = context.family_of("forward", mode)
        self._usual = UsualNoise(self._torch, context.traces.alone[1])
        self._last: tuple[str, tuple[Any, ...], Any] = ("", (), None)  # the last uncompared one: name, inputs, output
        side = TorchSide(context.recipe, context.model, torch.float64, 0, context.paired)
        self._shared = side.shared
        modules = dict(side.model.named_modules())
        for path, mutations in known.items():
            mutated(modules[path], mutations)
        names = {entry.name for entry in context.mindspore.select("forward", mode)}
        self._uncompared = uncompared(context) - names
        names |= self._uncompared
        handles = [h for name in names & set(modules) for h in self._watch(name, modules[name])]
        try:
            images, labels = context.inputs.images[0], context.inputs.labels[0]
            if mode == "eval":
                side.evaluate(images, lambda leaf: None)
            else:
                side.forward(images, labels, lambda leaf: None)
        except (*FAILURES, WorkerFailed):
            self._lost = True  # sizes do not fit, as with the stride of MindSpore's layer: the pass ends there
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
            if name in self._uncompared:
                self._last = name, inputs, output.detach().clone()
                return None
            return self._judged(name, ("forward", self.mode, name, call), inputs, output)

        return [module.register_forward_pre_hook(before), module.register_forward_hook(after)]

    def _judged(self, name: str, key: Key, inputs: tuple[Any, ...], output: torch.Tensor) -> torch.Tensor | None:
        of_mindspore, of_torch = self.context.mindspore.entries.get(key), self._torch[0].entries.get(key)
        if of_mindspore is None or of_torch is None:
            return None
        if not of_mindspore.dtype.startswith("float") or of_mindspore.nonfinite:
            return None
        elements = self.context.mindspore.array(key)
        runs = [trace.array(key) for trace in self._torch[1:] if key in trace.entries]
        noise = noise_of(self._torch[0].array(key), runs, self._usual.floor(of_torch))
        expected = RecordedTensor("forward", elements, of_mindspore.shape, of_mindspore.sampled, noise)
        exact = expected.taken_from(output.detach().contiguous().numpy())
        alike = tuple(output.shape) == of_mindspore.shape
        if alike and judge(exact, [exact], elements, relative_floor=noise).verdict is not Verdict.FAIL:
            return None
        subject = self._in_net(name, inputs, expected)
        last, given, made = self._last
        if isinstance(made, torch.Tensor) and len(inputs) == 1 and torch.equal(made, inputs[0]):
            subject.before = self._in_net(last, given, expected)
            subject.before.then = subject.module
        self.found.append(subject)
        if of_mindspore.sampled or not alike:
            self._lost = True
            return None
        return torch.from_numpy(elements.astype(np.float64).reshape(of_mindspore.shape))

    def _in_net(self, name: str, inputs: tuple[Any, ...], expected: RecordedTensor) -> LayerInNet:
        net = in_mode(self.context.model, training=(training := self.mode == "train"))  # it decides which layers train
        module = copied(dict(net.named_modules())[name], torch.float32)

        def around(copy: nn.Module) -> AbstractContextManager[object]:
            return fixed(NamedCopy(name, copy), Draws(1 if training else 0), self._shared)

        return LayerInNet(name, module, None, {"output": expected}, around, inputs)


def uncompared(context: Context) -> set[str]:
    """The torch modules that MindSpore's net computes as functions, or as a function after a Cell."""
    if context.paired is None:
        return set()
    alignment = context.paired.alignment
    left = {each.name for each in alignment.left if each.framework == "torch"}
    return left | {path for path, cells in alignment.chains.items() if not cells}


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
        outcome = module_calls.Outcome.of(self.mindspore)
        self.shared, self.made, self.unwired = outcome.cells, outcome.made, outcome.unwired
        self.torch = [Trace(context.folder / name) for name in torch_runs(context.folder, replayed)]
        self.modules = dict(in_mode(context.model, training=True).named_modules())  # its own train() may freeze layers
        self.usual = UsualNoise(self.torch, context.traces.alone[1])

    @cached_property
    def entries(self) -> Mapping[tuple[str, str], Mapping[str, Key]]:
        """(part, label of a call) -> tensor name -> key, for everything that any side recorded."""
        found: dict[tuple[str, str], dict[str, Key]] = {}
        for trace in (self.mindspore, *self.torch):
            for key, entry in trace.entries.items():
                label, _, tensor = entry.name.rpartition(" ")
                found.setdefault((entry.part, label), {})[tensor] = key
        return found

    def alone(self, path: str) -> ModuleSubject | None:
        """The first failed call of a module that MindSpore ran alone, or the first call if none failed."""
        failed, calls = self._failed(ALONE), [call for call in self.recording.calls.values() if call.path == path]
        calls.sort(key=lambda call: call.label not in failed)
        found = (self.subject(call) for call in calls if (ALONE, call.label) in self.entries)
        return next((subject for subject in found if subject.expected), None)

    def container(self, path: str) -> ContainerSubject | None:
        """The first failed call of a container whose wiring both frameworks recorded, or the first if none failed."""
        failed, every = self._failed(WIRING), list(self.recording.calls.values())
        calls = [(call, forced_calls(every, call, self.unwired)) for call in every if call.path == path]
        calls.sort(key=lambda pair: not failed & {call.label for call in (pair[0], *pair[1])})
        for call, inner in calls:
            expected = self._expected(WIRING, call.label, "", "output")
            for each in inner:
                expected |= self._expected(WIRING, each.label, f"{within(each.path, path, each.number)} ", "input")
            if inner and expected:
                subject = self.subject(call)
                given = (path, subject.module, subject.given, expected, subject.around, inner)
                return ContainerSubject(*given, made=subject.made, cuts=subject.cuts)
        return None

    def _failed(self, part: str) -> set[str]:
        return {f.name.rpartition(" ")[0] for f in self.context.findings if f.part == part}

    def subject(self, call: Call) -> ModuleSubject:
        """One call, with every tensor that MindSpore recorded of it."""
        expected = self._expected(ALONE, call.label, "")
        module = self.modules[call.path]

        @contextmanager
        def around(copy: nn.Module) -> Iterator[None]:
            sides = KinkSides.of(self.mindspore, Part.of_call(call.path, call.number))
            with taking(sides, copy), fixed(NamedCopy(call.path, copy), Draws(1), self.shared):
                yield

        paired = self.context.paired
        names = [] if paired is None else [relative(name, call.path) for name in paired.alignment.lacks]
        unlike = frozenset(gradient_name(name) for name in names if name)
        cuts = () if paired is None else [c for c in paired.alignment.cuts if relative(c.torch[0], call.path)]
        given = RecordedCall(self.recording, call)
        subject = ModuleSubject(call.path, module, given, expected, around, unlike=unlike, cuts=cuts)
        return replace(subject, made=self.made.get(call.path))

    def _expected(self, part: str, label: str, prefix: str, kind: str = "") -> dict[str, RecordedTensor]:
        """MindSpore's tensors of one call, by name."""
        found = {}
        for tensor, key in self.entries.get((part, label), {}).items():
            entry = self.mindspore.entries.get(key)
            of_kind = not kind or (tensor.startswith(kind) and key[0] == "forward")
            if entry is not None and entry.dtype.startswith("float") and of_kind:
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

    Its tensors are named `PATH input` for a module's input, with the module's dotted name inside the container (and #N
    for a further call), and `output`. inner: the calls of modules that hand on torch's recorded outputs.
    """

    how = "with torch's own outputs from every module in it"
    inner: Sequence[Call] | None = None  # None: all calls that it makes itself

    def computed(self, mutations: Any, dtype: torch.dtype, gradients: bool = True) -> Tensors:
        """The inputs of the modules inside, and the container's output, with these mutations applied in turn. Raises
        CannotRun."""
        given = self.given
        assert given is not None
        module = copied(self.module, dtype)
        found: Tensors = {}
        call, calls = given.call, self.inner
        if calls is None:
            calls = inner_calls(given.recording.calls.values(), call)
        numbers = {path: min(c.number for c in calls if c.path == path) for path in {c.path for c in calls}}

        def fresh(stored: Stored) -> torch.Tensor:
            tensor = torch.from_numpy(given.array(stored).copy())
            return tensor.to(dtype) if stored.is_float else tensor

        def forced(path: str) -> Callable[..., Any]:
            def forward(*args: Any, **kwargs: Any) -> Any:
                number, numbers[path] = numbers[path], numbers[path] + 1
                recorded = given.recording.calls.get(label(path, number))
                if recorded is None:
                    raise CannotRun(f"{path} is called more often than torch calls it")
                who = within(path, call.path, number)
                found.update({f"{who} {name}": array for name, array in _named("input", (args, kwargs)).items()})
                return rebuilt(recorded.output, fresh, packed)

            return forward

        for path in numbers:
            module.get_submodule(relative(path, call.path) or "").__dict__["forward"] = forced(path)
        mutated(module, mutations)
        with running(), torch.no_grad(), self.around(module):
            output = module(*rebuilt(call.args, fresh, packed), **rebuilt(call.kwargs, fresh, packed))
        return found | _named("output", output)

    @property
    def unforced(self) -> list[str]:
        """The modules inside that run as they are, since MindSpore's net has no Cells for them; names relative to the
        container."""
        assert self.given is not None
        recording, own = self.given.recording, self.given.call
        calls = inner_calls(recording.calls.values(), own) if self.inner is None else self.inner
        forced = {call.path for call in calls}
        inside = (call.path for call in recording.calls.values() if own.label in [*recording.around(call.caller)])
        open_ = (path for path in inside if not any(relative(path, each) is not None for each in forced))
        return [name for name in dict.fromkeys(relative(path, own.path) for path in open_) if name]


def inner_calls(calls: Any, outer: Call) -> list[Call]:
    """The calls of modules that a call makes itself."""
    return [
        call
        for call in calls
        if call.caller == outer.label and call.path.startswith(f"{outer.path}." if outer.path else "")
    ]


def forced_calls(calls: Sequence[Call], outer: Call, unwired: Container[str]) -> list[Call]:
    """The calls inside an outer one whose outputs were torch's in MindSpore's net too; in place of a module without a
    Cell of its own, which ran as it is there, the calls inside it."""
    return [
        found
        for call in inner_calls(calls, outer)
        for found in ([call] if call.path not in unwired else forced_calls(calls, call, unwired))
    ]


def within(path: str, outer: str, number: int) -> str:
    """`conv1#2`: a module's name inside a container, and which of its calls."""
    inner = relative(path, outer) or ""
    return f"{inner}#{number}" if number else inner


def children(module: nn.Module) -> bool:
    """Whether a module has modules in it."""
    return next(module.children(), None) is not None
