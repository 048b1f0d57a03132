"""The modules that ran alone, as specimens: what both frameworks recorded of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property

from torch import nn

from ..noise import UsualNoise
from ..record.randomness import Draws
from ..record.torch_kinks import KinkSides, taking
from ..record.torch_randomness import fixed
from ..replay.module_calls import FOLDER, WIRING, Call, Outcome, Recording, relative
from ..run_folder import MINDSPORE_REPLAY, TORCH32, TORCH32_OTHER, TORCH64, replayed
from ..trace import ALONE, Key, Trace
from .context import Context
from .torch_alone import Given
from .torch_specimen import Specimen, Subject, noise_of
from .torch_wired import Wired, inner_calls, within


class Replayed:
    """The replay of a run: the recording and the traces, opened once. Raises BadTrace."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.recording = Recording.open(context.folder / FOLDER)
        self.mindspore = Trace(context.folder / MINDSPORE_REPLAY)
        self.shared = Outcome.of(self.mindspore).cells
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

    def specimens(self, path: str) -> list[Specimen]:
        """One for each call of a module that MindSpore ran alone, those that failed first."""
        failed = {f.name.rpartition(" ")[0] for f in self.context.findings if f.part == ALONE}
        calls = [call for call in self.recording.calls.values() if call.path == path]
        calls.sort(key=lambda call: call.label not in failed)
        found = [self.specimen(call) for call in calls if (ALONE, call.label) in self.entries]
        return [specimen for specimen in found if specimen.subjects]

    def specimen(self, call: Call) -> Specimen:
        """One call, with every tensor that MindSpore recorded of it."""
        subjects = self._subjects(ALONE, call.label, "")
        module = self.modules[call.path]

        @contextmanager
        def around(copy: nn.Module) -> Iterator[None]:
            sides = KinkSides.of_part(self.mindspore, f"{ALONE} {call.path}#{call.number}")
            with ExitStack() as stack:
                stack.enter_context(taking(sides, copy))
                stack.enter_context(fixed(Named(call.path, copy), Draws(1), self.shared))
                yield

        paired = self.context.paired
        names = [] if paired is None else [relative(name, call.path) for name in paired.alignment.lacks]
        unlike = frozenset(f"{name}.grad" for name in names if name)
        return Specimen(call.path, module, Given(self.recording, call), subjects, around, unlike=unlike)

    def wired(self, path: str) -> list[Wired]:
        """One for each call of a container whose wiring both frameworks recorded, those that failed first."""
        failed = {f.name.rpartition(" ")[0] for f in self.context.findings if f.part == WIRING}
        calls = [call for call in self.recording.calls.values() if call.path == path]
        found = []
        for call in calls:
            inner = inner_calls(self.recording.calls.values(), call)
            subjects = self._subjects(WIRING, call.label, "", "output")
            for each in inner:
                subjects |= self._subjects(WIRING, each.label, f"{within(each.path, path, each.number)} ", "input")
            if inner and subjects:
                hit = bool(failed & {call.label, *(each.label for each in inner)})
                specimen = self.specimen(call)
                found.append((not hit, Wired(path, specimen.module, specimen.given, subjects, specimen.around)))
        return [wired for _, wired in sorted(found, key=lambda pair: pair[0])]

    def _subjects(self, part: str, label: str, prefix: str, kind: str = "") -> dict[str, Subject]:
        """MindSpore's tensors of one call, by name."""
        found = {}
        for tensor, key in self.entries.get((part, label), {}).items():
            entry = self.mindspore.entries.get(key)
            if entry is not None and entry.dtype.startswith("float") and tensor.startswith(kind):
                elements = self.mindspore.array(key)
                found[prefix + tensor] = Subject(key[0], elements, entry.shape, entry.sampled, self._noise(key))
        return found

    def _noise(self, key: Key) -> float:
        exact = self.torch[0].entries.get(key)
        if exact is None:
            return 0.0
        runs = [trace.array(key) for trace in self.torch[1:] if key in trace.entries]
        reference = self.torch[0].array(key)
        return noise_of(reference, [run for run in runs if run.shape == reference.shape], self.usual.floor(exact))


class Named(nn.Module):
    """Gives the modules of a copy the dotted names that they have in the whole model, by which draws are shared."""

    def __init__(self, path: str, module: nn.Module) -> None:
        super().__init__()
        self.__dict__["_there"] = (path, module)

    def named_modules(self, *args: object, **kwargs: object) -> Iterator[tuple[str, nn.Module]]:
        path, module = self.__dict__["_there"]
        for name, inner in module.named_modules():
            yield ".".join(part for part in (path, name) if part), inner
