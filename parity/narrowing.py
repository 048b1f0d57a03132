"""What a run judges: the whole step, or where less is wanted some of its stages, or the tensors of some modules."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..errors import BadInput

STAGES = ("data", "init", "forward", "loss", "gradients", "update")
OF_MODULES = ("init", "forward", "gradients", "update")  # whose tensors are some module's
BEHIND_UPDATES = ("init", "gradients")
MODEL = "(model)"  # what the whole model, whose dotted name is empty, is called
MOST = 6  # names that a message lists


@dataclass(frozen=True)
class Narrowing:
    """stages: those that are judged, in their order. modules: globs over the dotted names of torch's modules; a module
    that is chosen brings along what is in it, and without globs all modules are."""

    stages: tuple[str, ...] = STAGES
    modules: tuple[str, ...] = ()

    @classmethod
    def to(cls, stages: Iterable[str] = (), modules: Iterable[str] = ()) -> Narrowing:
        """The narrowing to these stages and globs, either of which may be left out.

        Raises BadInput for a stage that is none, and for one that has no tensors of modules together with globs.
        """
        stages, modules = ((each,) if isinstance(each, str) else tuple(each) for each in (stages, modules))
        for stage in stages:
            if stage not in STAGES:
                near = difflib.get_close_matches(str(stage), STAGES, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"the stages are {', '.join(STAGES)}"
                raise BadInput(f"there is no stage {stage!r}; {hint}")
            if modules and stage not in OF_MODULES:
                raise BadInput(
                    f"the stage {stage} has no tensors of modules, so that --modules {modules[0]} leaves nothing of "
                    f"it to judge: leave one of the two out, or name stages among {', '.join(OF_MODULES)}"
                )
        known = OF_MODULES if modules else STAGES
        return cls(tuple(stage for stage in known if not stages or stage in stages), modules)

    @property
    def whole(self) -> bool:
        """Whether everything is judged."""
        return self.stages == STAGES and not self.modules

    @property
    def takes_steps(self) -> bool:
        """Whether a stage is judged that whole steps are taken for in torch, which has the outputs without them."""
        return any(stage in self.stages for stage in ("loss", "gradients", "update"))

    def said(self) -> str:
        """What is judged, in words: forward and gradients of layer1*; the whole step."""
        of = f" of {joined(self.modules)}" if self.modules else ""
        return "the whole step" if self.whole else f"{joined(self.stages)}{of}"

    def left_out(self) -> str:
        """What is not judged, as a sentence without its full stop; empty for the whole step."""
        missing = [*(["other modules"] if self.modules else []), *(s for s in STAGES if s not in self.stages)]
        return f"{joined(missing)} {'was' if len(missing) == 1 else 'were'} not judged" if missing else ""

    def module(self, path: str) -> bool:
        """Whether a module is chosen, by its dotted name or that of a module around it."""
        if not self.modules:
            return True
        parts = path.split(".")
        names = [".".join(parts[: i + 1]) for i in range(len(parts))] if path else [MODEL]
        return any(fnmatchcase(name, glob) for name in names for glob in self.modules)

    def judges(self, stage: str, name: str) -> bool:
        """Whether a tensor is judged; name: of an entry or a finding that says its module or parameter."""
        owner = name.partition("#")[0] if stage == "forward" else name.rpartition(".")[0]
        return stage in self.stages and self.module(owner)

    def records(self, stage: str) -> bool:
        """Whether the tensors of a stage are recorded: those that are judged, what an update is measured from, and what
        is no stage. They are recorded of all modules, for the noise of one tensor is known from all of its part, and
        causes from all of the step."""
        return stage in self.stages or stage not in STAGES or ("update" in self.stages and stage in BEHIND_UPDATES)

    def check(self, names: Iterable[str], model: str) -> None:
        """Raise BadInput for a glob that matches none of the dotted names of a model's modules, "" being the model."""
        known = [name or MODEL for name in names]
        for glob in self.modules:
            if not any(fnmatchcase(name, glob) for name in known):
                plain = glob.translate(str.maketrans("", "", "*?[]"))
                around = [name for name in known if plain.startswith(f"{name}.")]
                near = difflib.get_close_matches(plain, known, n=3, cutoff=0.5) or around[-1:]
                more = f" and {len(known) - MOST} more" if len(known) > MOST else ""
                said = f"the nearest: {', '.join(near)}" if near else f"it has {', '.join(known[:MOST])}{more}"
                raise BadInput(f"--modules {glob!r} matches no module of {model}; {said}")


def joined(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


WHOLE = Narrowing()
