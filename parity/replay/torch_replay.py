"""Every torch module alone in each precision, on its recorded inputs, and the wiring.

In a container's wiring every module in it hands on torch's recorded output, and backward a made-up gradient of its
inputs. So the container alone determines what reaches a module, in both directions, and what leaves the container: a
forgotten residual, a wrong order or a detached branch shows at its own place, however wrong the modules inside are.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from ...migrate.torch_models import in_mode
from ...training.models.model_names import fields_of, flat
from ...workers.worker import progress
from ..align.user_model import plain_values, put_back
from ..options import Stage
from ..record.kinks import KINKED, POOLED
from ..record.randomness import Draws, given_upstream
from ..record.torch_device import CPU
from ..record.torch_kinks import KinkSides, taking
from ..record.torch_precision import Precision, in_layout, model_in_layout
from ..record.torch_randomness import fixed
from ..record.torch_runner import gradients_by
from ..run_folder import MINDSPORE_REPLAY, replayed
from ..trace import ALONE, WIRING, Kept, Part, Trace, TraceWriter
from .module_calls import (
    BOTH_WAYS,
    FAILED,
    FOLDER,
    Call,
    Computed,
    Outcome,
    Recording,
    Stored,
    gradient_name,
    one_line,
    parse_label,
    rebuilt,
    tensor_name,
)

Keep = Callable[[Stage, str, str, np.ndarray], None]  # called with stage, label of a call, a tensor's name and value
Given = list[tuple[Stage, str, Kept]]  # the results of a call: stage, tensor name, what is recorded of the tensor
About = Callable[[torch.dtype, torch.device], dict[str, object]]  # returns the head of a trace


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
        self.model = in_mode(model_in_layout(moved, channels_last=channels_last), training=True)
        self.modules = dict(self.model.named_modules())
        buffers = self.model.named_buffers(remove_duplicate=False)
        self._start = {name: buffer.clone() for name, buffer in buffers}
        self._counts = plain_values(self.model.modules(), vars(nn.Module()))

    def run(self, call: Call, sides: KinkSides | None = None) -> list[Computed]:
        """(stage, tensor name, array) of all results of one call: outputs, gradients, changes of buffers.

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
        by = {gradient_name(name): one for name, one in module.named_parameters() if one.requires_grad}
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
        """Pass to `keep` what one call of a container computes itself, while the calls `inner` hand on torch's outputs:
        the inputs of these calls, its own outputs, the gradients of both and of the parameters that it uses itself, and
        the changes of its own buffers. Each at once, because later code may overwrite it.

        backward: whether gradients are computed, from made-up upstream ones.
        """
        module, about = self.modules[call.path], self.recording.modules[call.path]
        waiting: dict[str, deque[Call]] = {}
        for each in inner:
            waiting.setdefault(each.path, deque()).append(each)
        # every seam depends on it
        anchor = torch.zeros((), dtype=self.dtype, device=self.device, requires_grad=backward)
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
        by = {gradient_name(name): module.get_parameter(name) for name in about.used if name is not None}
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
        """A recorded tensor in this precision, of its own, because a module may overwrite it; contiguous as it was
        recorded, so that any `view` of it works."""
        tensor = torch.from_numpy(self.recording.array(stored)).to(self.device)
        return tensor.to(self.dtype) if stored.is_float else tensor

    def tensor(self, stored: Stored) -> torch.Tensor:
        """A recorded tensor in this precision and layout."""
        return in_layout(self.fresh(stored), channels_last=self.channels_last).requires_grad_(stored.needs_grad)

    def restore(self, path: str) -> None:
        """Put the buffers inside a module, and what modules count as they run, back to where they started."""
        put_back(self._counts)
        with torch.no_grad():
            for name, buffer in self.modules[path].named_buffers():
                buffer.copy_(self._start[f"{path}.{name}" if path else name])


class _Seam(torch.autograd.Function):
    """Returns `outputs` whatever its inputs, and backward what `returned` makes of the gradients that came."""

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
    """The packed sequence of padded values (N, T, …) and N lengths."""
    return pack_padded_sequence(padded, lengths.cpu(), batch_first=True, enforce_sorted=False)


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in a nest, in order; a packed sequence counts as (N, T, …) and its lengths, as in a recording."""
    if isinstance(value, PackedSequence):
        return list(pad_packed_sequence(value, batch_first=True))
    value = fields_of(value) or value
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [found for each in value for found in tensors(each)]
    return [value] if isinstance(value, torch.Tensor) else []


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """The tensor for a trace, laid out as it is; integers of any width as int64."""
    array: np.ndarray = tensor.detach().cpu().numpy()
    return array.astype(np.int64) if array.dtype.kind in "iub" else array


class Ahead:
    """Results of single modules from before MindSpore's side was ready; most do not depend on it.

    sample: as in `replay`. wanted: which modules are judged, by dotted name.
    """

    def __init__(self, sample: int | None, wanted: Callable[[str], bool]) -> None:
        self.sample = sample
        self.wanted = wanted
        self.found: dict[str, dict[str, Given]] = {}  # precision -> label of a call -> its results

    def takes(self, path: str, kind: str) -> bool:
        """Whether the results of a module of this class are to be kept: a kink's depend on MindSpore's choices."""
        return self.wanted(path) and kind not in (*KINKED, *POOLED)

    def run(
        self, recording: Recording, model: nn.Module, precisions: Callable[[], Generator[Precision, None, None]]
    ) -> Generator[None, None, None]:
        """Run one module after another in one precision after another, one call each time that the generator is
        advanced; calls that raise or draw are not kept. recording, model, precisions: as in `replay`."""
        single = [call for call in recording.calls.values() if call.label not in recording.made_by]
        calls = [call for call in single if self.takes(call.path, recording.modules[call.path].kind)]
        with closing(precisions()) as runs:
            for name, dtype, variant, device in runs:
                runner = Alone(recording, model, dtype, device, channels_last=variant % 2 == 1)
                known = self.found.setdefault(name, {})
                for call in [call for call in calls if call.label not in known]:
                    with suppress(Exception), fixed(runner.modules[call.path], Draws(1)) as draws:
                        given = [(stage, tensor, Kept.of(a, self.sample)) for stage, tensor, a in runner.run(call)]
                        if not (draws.taken or draws.outside):
                            known[call.label] = given
                    yield


def replay(
    folder: Path,
    model: nn.Module,
    precisions: Callable[[], Iterable[Precision]],
    about: About,
    sample: int | None = None,
    needed: Callable[[], Collection[str]] | None = None,
    by: str = MINDSPORE_REPLAY,
    verified: Collection[str] = (),
    ahead: Ahead | None = None,
) -> None:
    """Record the torch-*-replay traces in `folder`, which has the recording and MindSpore's replay, or in its place
    torch's own choices (`by`).

    model: float32 at the starting weights; copied. precisions: returns them anew at every call. needed: once all else
    is recorded, waits for the containers that ran alone in MindSpore too, and returns their labels; None: those that
    did are in its replay already. verified: files of the recording that this process wrote itself. Calls that MindSpore
    left out are left out, kinks take the sides that MindSpore took, and draws take the numbers that MindSpore's took.
    Raises BadTrace for a damaged recording or trace.
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
            known = ahead.found.pop(name, {}) if ahead is not None else {}
            with fixed(runner.model, Draws(1), theirs.cells) as draws:
                for call in calls:
                    draws.restart()
                    _run_alone(runner, call, mindspore, theirs, writer, known.pop(call.label, None))
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


def _run_alone(
    runner: Alone,
    call: Call,
    mindspore: Trace,
    theirs: Outcome,
    writer: TraceWriter,
    known: Given | None = None,
) -> None:
    """Record one call by itself, where MindSpore's side has it too, or what torch raised; known: its results from
    before MindSpore's choices at kinks were known, which hold where MindSpore chose nothing."""
    if call.label in theirs.left_out or call.label in theirs.by_parts:
        return
    sides = KinkSides.of(mindspore, Part.of_call(call.path, call.number))
    kind = runner.recording.modules[call.path].kind
    if known is not None and not sides.choices:
        for stage, tensor, kept in known:
            writer.add_kept(stage, ALONE, f"{call.label} {tensor}", kept, module=kind)
        return
    try:
        found = runner.run(call, sides)
    except Exception as error:  # the other modules still get their verdicts
        writer.about[FAILED][call.label] = one_line(error)
        return
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
    except Exception as error:  # a model of another version calls its modules otherwise; missing tensors are findings
        writer.about[FAILED].setdefault(call.label, one_line(error))
