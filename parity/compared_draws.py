"""What each framework drew in the compared passes, and where they drew differently or a draw could not be fixed.

Equal draws are no finding: they make everything else comparable. Where one framework draws more numbers than the other,
or of another kind, they are a finding at the module that draws, whatever came of them. Where a draw could not be fixed
nothing that depends on it can be judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

from ..errors import BadTrace
from ..input_files import typed
from .options import Stage
from .record.randomness import NORMAL, OUTSIDE, ROOT, UNIFORM, Draw, Draws, Place
from .replay.module_calls import parse_label
from .result import Cause, Finding
from .tensor_verdict import Unjudged, Verdict
from .trace import MOMENTA, RATES, WIRING, Part

KEY = "draws"  # in the head of a trace
LABEL = " draws"  # the suffix, after the module's name, of the names of findings about draws
FAULT = "draws-otherwise"
NAMED = 4  # draws that a sentence spells out
DEPENDENT = ("forward", "loss", "gradients", "update")  # the stages in which a pass's draws show
TO_DO = (
    "draw them before the model and give them to it (--batch-file), or compute them from uniform or normal numbers, "
    "which are fixed"
)


@dataclass(frozen=True)
class _Pass:
    """The draws of a pass, as the head of a trace records them."""

    step: int
    taken: list[Draw]
    outside: dict[str, list[Place]]
    states: dict[str, str]


def about(passes: Iterable[Draws]) -> dict[str, Any]:
    """What a trace's head says of the draws of its passes: {KEY: …}; empty where nothing was random."""
    said = [
        asdict(_Pass(draws.step, draws.taken, draws.outside, draws.states))
        for draws in passes
        if draws.taken or draws.outside or draws.states
    ]
    return {KEY: said} if said else {}


@dataclass(frozen=True)
class Unfixed:
    """A draw that could not be made the same in both frameworks: by which function, in which module, and in which steps
    (0: the forward pass in evaluation mode)."""

    function: str
    who: Place
    steps: tuple[int, ...]

    @property
    def step(self) -> int:
        """The first training step in which it is drawn; 0 where it is in evaluation mode alone."""
        return next(filter(None, self.steps), 0)

    @property
    def name(self) -> str:
        """The module that draws."""
        return self.who.name

    @property
    def why(self) -> str:
        """What cannot be fixed, and what to do about it."""
        return f"{self.function} draws numbers {_at(self.who)} that are not the same in both frameworks: {TO_DO}"

    def reaches(self, finding: Finding) -> bool:
        """Whether a tensor may depend on it."""
        if finding.stage not in DEPENDENT or finding.part.given or finding.part in (RATES, MOMENTA):
            return False
        if finding.part.alone:
            path = parse_label(finding.name.rpartition(" ")[0])[0]
            inside = self.name == path or self.name.startswith(f"{path}.") or not path
            around = finding.part == WIRING and (self.name == ROOT or path.startswith(f"{self.name}."))
            return (inside or around) and self.name != OUTSIDE
        if finding.stage == "forward":
            return (0 in self.steps if finding.part == "eval" else self.step > 0) and self.name != OUTSIDE
        return self.step > 0


@dataclass(frozen=True)
class Otherwise:
    """A module that draws otherwise in the two frameworks, in one step."""

    name: str
    step: int
    why: str


@dataclass(frozen=True)
class Compared:
    """What both frameworks drew in the passes that both took. Raises BadTrace for a head not written by msmigrate."""

    torch: Mapping[int, Draws]
    mindspore: Mapping[int, Draws]

    @classmethod
    def of(
        cls,
        torch: Sequence[Mapping[str, Any]],
        mindspore: Mapping[str, Any],
        where: str,
        others: Sequence[Mapping[str, Any]] = (),
    ) -> Compared:
        """From the heads of torch's traces, of which the later ones count, and of MindSpore's; where: for errors.

        others: of torch's further runs, on a device, whose operators may draw what the CPU's do not.
        """
        ours: dict[int, Draws] = {}
        for head in torch:
            ours |= _read(head, where)
        for step, draws in [each for head in others for each in _read(head, where).items()]:
            for function, places in draws.outside.items():
                for who in places:
                    ours.setdefault(step, Draws(step)).not_fixed(function, who)
        return cls(ours, _read(mindspore, where))

    @property
    def unfixed(self) -> list[Unfixed]:
        """The draws that were not fixed, each function of a module once."""
        found: dict[tuple[str, str], Unfixed] = {}
        for passes in (self.torch, self.mindspore):
            for step in sorted(passes):
                for function, places in passes[step].outside.items():
                    for who in places:
                        steps = found[who.name, function].steps if (who.name, function) in found else ()
                        found[who.name, function] = Unfixed(function, who, (*steps, step))
        return list(found.values())

    @property
    def otherwise(self) -> list[Otherwise]:
        """The modules that draw otherwise in the two frameworks, each in evaluation mode and in the first training step
        in which it does; but for those whose draws were not fixed."""
        unfixed = {each.name for each in self.unfixed}
        found: dict[tuple[str, bool], Otherwise] = {}
        for step in sorted(self.torch.keys() | self.mindspore.keys()):
            ours, theirs = (side.get(step, Draws(step)) for side in (self.torch, self.mindspore))
            for name in dict.fromkeys(draw.name for draw in (*ours.taken, *theirs.taken)):
                why = "" if name in unfixed else _unlike(ours, theirs, name)
                if why:
                    found.setdefault((name, step > 0), Otherwise(name, step, why))
            for library, state in ours.states.items():
                if theirs.states.get(library) != state:
                    why = f"torch takes other numbers from {library} than MindSpore"
                    found.setdefault((library, step > 0), Otherwise(OUTSIDE, step, why))
        return list(found.values())

    @property
    def notes(self) -> list[str]:
        """What a reader has to know: how much is the same in both."""
        names = [draws.taken for draws in self.torch.values()]
        apart = {each.name for each in self.otherwise}
        shared = dict.fromkeys(draw.name for taken in names for draw in taken if draw.name not in apart)
        if not shared:
            return []
        what = "1 place" if len(shared) == 1 else f"{len(shared)} places"
        return [f"at {what} (such as {next(iter(shared))}) both frameworks took the same random numbers"]

    def judged(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings with those of the draws among them, in order; what fails and may depend on draws that could not
        be fixed has no verdict."""
        unfixed = self.unfixed
        found = [_without_verdict(finding, unfixed) for finding in findings]
        for each in unfixed:
            stage, part = _place(each.name, each.step)
            one = Finding(stage, part, _label(each.name), 0, Verdict.NONE, each.why, unjudged=Unjudged.DRAWS)
            found.insert(_where(found, one, each.name), one)
        for other in self.otherwise:
            stage, part = _place(other.name, other.step)
            one = Finding(stage, part, _label(other.name), 0, Verdict.FAIL, other.why)
            found.insert(_where(found, one, other.name), one)
        return [replace(finding, order=i) for i, finding in enumerate(found)]


def causes(findings: Iterable[Finding], cells: Mapping[str, str]) -> list[Cause]:
    """A cause for every module that draws otherwise; cells: torch's module -> its Cell in code, where that is known."""
    failed = (f for f in findings if f.verdict is Verdict.FAIL and f.name.endswith(LABEL))
    found: dict[str, Cause] = {}
    for finding in sorted(failed, key=lambda finding: (finding.part == "eval", finding.order)):
        name = finding.name.removesuffix(LABEL)
        cell = "net" if name == ROOT else "loss and step" if name == OUTSIDE else cells.get(name, f"net.{name}")
        fix = f"{cell}: draw as many numbers of the same kind as torch"
        evidence = "the draws of both frameworks, counted in the same pass"
        path = "" if name == ROOT else name
        found.setdefault(name, Cause(finding.stage, path, FAULT, finding.why, fix, evidence))
    return list(found.values())


def _without_verdict(finding: Finding, unfixed: Sequence[Unfixed]) -> Finding:
    """The finding, without a verdict if draws that were not fixed may explain its failure, or its noise."""
    judged = finding.verdict is Verdict.PASS or finding.unjudged not in (None, Unjudged.NOISE)
    by = next((each for each in unfixed if not judged and each.reaches(finding)), None)
    if by is None:
        return finding
    why = f"{finding.why}; it may depend on what {by.function} draws {_at(by.who)}"
    return replace(finding, verdict=Verdict.NONE, why=why, unjudged=Unjudged.DRAWS)


def _at(who: Place) -> str:
    """Where a module draws, as people read it."""
    place = "outside of the model" if who.name == OUTSIDE else f"in {who.name}"
    return f"{place} ({who.line})" if who.line else place


def _label(name: str) -> str:
    return f"{name}{LABEL}"


def _place(name: str, step: int) -> tuple[Stage, Part]:
    """Stage and part of the finding about what a module draws in a step."""
    if step > 1:
        return "update", Part.of_step(step, "loss")
    if name == OUTSIDE and step:
        return "loss", Part.of_step(1)
    return "forward", Part("train" if step else "eval")


def _where(findings: Sequence[Finding], one: Finding, name: str) -> int:
    """Where a finding about draws belongs: behind the module's own output, or before the first failure in it."""
    at = [i for i, f in enumerate(findings) if (f.stage, f.part) == (one.stage, one.part)]
    own = [i for i in at if findings[i].name.partition("#")[0] == name]
    if own and name != ROOT:  # what the model returns comes after all that it draws
        return own[0] + 1
    whole = name in (ROOT, OUTSIDE) or one.stage != "forward"
    failed = [i for i in at if findings[i].verdict is not Verdict.PASS]
    inside = [i for i in failed if whole or findings[i].name.startswith(f"{name}.")] or failed
    return inside[0] if inside else (at[-1] + 1 if at else len(findings))


def _unlike(ours: Draws, theirs: Draws, name: str) -> str:
    """How a module's draws differ in two passes, or nothing; a mask may have more or fewer axes of length one."""
    both = [[draw for draw in side.taken if draw.name == name] for side in (ours, theirs)]
    kinds = [[[_size(draw) for draw in taken if draw.kind == kind] for kind in (UNIFORM, NORMAL)] for taken in both]
    if kinds[0] == kinds[1]:
        return ""
    alike = [(a.kind, _size(a)) == (b.kind, _size(b)) for a, b in zip(*both, strict=False)]
    at = alike.index(False) if False in alike else len(alike)  # the first that the other does not draw
    listed = [", ".join(_listed(taken)) or "nothing" for taken in both]
    lines = [f" ({taken[at].who.line})" if at < len(taken) and taken[at].who.line else "" for taken in both]
    place = "outside of the model" if name == OUTSIDE else f"in {name}"
    return f"torch draws {listed[0]} {place}{lines[0]}, MindSpore {listed[1]}{lines[1]}"


def _size(draw: Draw) -> int:
    size = 1
    for n in draw.shape:
        size *= n
    return size


def _listed(draws: Sequence[Draw]) -> list[str]:
    """`normal [4, 20]`, `3 times uniform [4]`, …"""
    runs = [(key, len(list(run))) for key, run in groupby(f"{draw.kind} {list(draw.shape)}" for draw in draws)]
    found = [f"{count} times {what}" if count > 1 else what for what, count in runs]
    return found if len(found) <= NAMED else [*found[:NAMED], f"… ({len(draws)} draws)"]


def _read(head: Mapping[str, Any], where: str) -> dict[int, Draws]:
    try:
        return {each.step: Draws(**vars(each)) for each in typed(list[_Pass], head.get(KEY, []))}
    except ValueError as error:
        raise BadTrace(f"{where}: what it says of {KEY} is damaged") from error
