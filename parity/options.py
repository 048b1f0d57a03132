"""The options of a comparison, each declared here for the command line, the API and the workers; and what a run judges:
the whole step, some of its stages, or the tensors of some modules."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, get_args

from ..errors import BadInput
from ..option_fields import STDOUT, Option, check
from ..training.options import DEVICE, TARGETS

MODES = ("pynative", "graph")
FORMATS = ("fp32", "hf32", "tf32", "fp16", "bf16")
INIT_SEEDS, THOROUGH_SEEDS = 3, 10
SAMPLE = 65_536


Stage = Literal["data", "init", "forward", "loss", "gradients", "update"]
STAGES: tuple[Stage, ...] = get_args(Stage)
OF_MODULES: tuple[Stage, ...] = ("init", "forward", "gradients", "update")  # their tensors belong to modules
BEHIND_UPDATES: tuple[Stage, ...] = ("init", "gradients")
MODEL = "(model)"  # what the whole model, whose dotted name is empty, is called
MOST = 6  # names that a message lists


@dataclass(frozen=True)
class Narrowing:
    """stages: those that are judged, in their order. modules: globs over the dotted names of torch's modules; a module
    that is chosen brings along what is in it, and without globs all modules are."""

    stages: tuple[Stage, ...] = STAGES
    modules: tuple[str, ...] = ()

    @classmethod
    def to(cls, stages: Iterable[str] = (), modules: Iterable[str] = ()) -> Narrowing:
        """The narrowing to these stages and globs, either of which may be left out.

        Raises BadInput for an unknown stage, and for globs together with a stage that has no tensors of modules.
        """
        stages, modules = ((each,) if isinstance(each, str) else tuple(each) for each in (stages, modules))
        for stage in stages:
            if stage not in STAGES:
                near = difflib.get_close_matches(str(stage), STAGES, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"the stages are {', '.join(STAGES)}"
                raise BadInput(f"there is no stage {stage!r}; {hint}")
            if modules and stage not in OF_MODULES:
                raise BadInput(
                    f"the stage {stage} has no tensors of modules, so --modules {modules[0]} leaves nothing of it to "
                    f"judge: leave one of the two out, or name stages among {', '.join(OF_MODULES)}"
                )
        known = OF_MODULES if modules else STAGES
        return cls(tuple(stage for stage in known if not stages or stage in stages), modules)

    @property
    def whole(self) -> bool:
        """Whether everything is judged."""
        return self.stages == STAGES and not self.modules

    @property
    def takes_steps(self) -> bool:
        """Whether a judged stage needs whole steps in torch; the outputs alone do not."""
        return any(stage in self.stages for stage in ("loss", "gradients", "update"))

    def said(self) -> str:
        """What is judged, in words: `forward and gradients of layer1*`, or `the whole step`."""
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
        """Whether the tensors of a stage are recorded: where it is judged, where an update is measured from it, and
        where it is no stage. All modules are recorded: the noise of one tensor is estimated from all of its part, and
        causes from the whole step."""
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


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """Which steps are recorded, and how they are compared.

    Raises BadInput for a value that is out of range, and for stages and modules that leave nothing to judge.
    """

    steps: Annotated[int, Option("Training steps to run.", least=1, most=100)] = 3
    init_seeds: Annotated[
        int | None, Option("Models drawn for the initial distributions.  [default: 3]", least=1, most=1000)
    ] = None
    batch: Annotated[
        int | None, Option("Images of a step.  [default: the recipe's, at most 8 a micro-batch]", least=1)
    ] = None
    mode: Annotated[str, Option("graph: judge the compiled step too, end to end.", choices=MODES)] = MODES[0]
    precision: Annotated[
        str, Option("The format in which the target computes convolutions and matrix products.", choices=FORMATS)
    ] = FORMATS[0]
    stages: Annotated[Sequence[str], Option("Judge only these stages; may be repeated.", choices=STAGES)] = ()
    modules: Annotated[
        Sequence[str],
        Option("Judge only modules whose dotted name matches, and those in them; may be repeated.", metavar="GLOB"),
    ] = ()
    no_replay: Annotated[bool, Option("Do not run every module alone.")] = False
    thorough: Annotated[
        bool,
        Option(
            "Compare every element of every tensor, and 10 initial models, run every module alone on the whole batch, "
            "and containers too."
        ),
    ] = False
    timeout: Annotated[
        float | None, Option("End a framework that reports nothing for this long.", least=1, metavar="SECONDS")
    ] = None
    no_diagnosis: Annotated[bool, Option("Do not look for the causes of what fails.")] = False
    device: Annotated[
        str | None,
        Option(
            "Where torch's side runs: cpu, cuda[:N] or npu[:N].  [default: the recipe's, else cpu]", metavar="DEVICE"
        ),
    ] = None
    target: Annotated[
        str | None,
        Option("Where MindSpore's side runs.  [default: the recipe's, else CPU]", choices=TARGETS, any_case=True),
    ] = None
    device_id: Annotated[
        int | None, Option("Which of the target's devices.  [default: the recipe's, else 0]", least=0)
    ] = None
    noise: Annotated[
        bool,
        Option("MindSpore's half: measure its noise by two more steps, every number moved in its last places."),
    ] = False
    continue_from: Annotated[
        Path | None, Option("A torch training checkpoint to go on from.", metavar="CKPT", reads="checkpoint")
    ] = None

    def __post_init__(self) -> None:
        _ = self.narrowing  # its message suggests the stage that was meant
        check(self)
        if self.device is not None and re.fullmatch(DEVICE, self.device) is None:
            raise BadInput(f"--device {self.device}: expected cpu, cuda, cuda:1, npu or npu:1, as torch names devices")

    @property
    def narrowing(self) -> Narrowing:
        """What is judged."""
        return Narrowing.to(self.stages, self.modules)

    @property
    def seeds(self) -> int:
        """How many models are drawn for the initial distributions."""
        return self.init_seeds or (THOROUGH_SEEDS if self.thorough else INIT_SEEDS)

    @property
    def sample(self) -> int | None:
        """How many elements of a tensor are compared at most; None: all."""
        return None if self.thorough else SAMPLE

    @property
    def replays(self) -> bool:
        """Whether modules run alone: what they give there is outputs, gradients and changes of buffers."""
        of_modules = ("forward", "gradients", "update")
        return not self.no_replay and any(stage in self.narrowing.stages for stage in of_modules)


@dataclass(frozen=True, kw_only=True)
class ParityOptions(StepOptions):
    """The options of parity-step.

    torch, mindspore: a pair of the user's models by name. outputs: the loss is one of everything that they return, and
    not the recipe's.

    Also raises BadInput for half a pair, and for options that only a pair has.
    """

    torch: Annotated[
        str | None, Option("Your torch model in place of the recipe's.", metavar="SPEC", reads="torch model")
    ] = None
    mindspore: Annotated[
        str | None,
        Option("Your MindSpore model in place of msmigrate's; needs --torch.", metavar="SPEC", reads="MindSpore model"),
    ] = None
    ckpt: Annotated[
        Path | None, Option("Torch weights that such a pair starts from.", metavar="FILE", reads="torch weights")
    ] = None
    batch_file: Annotated[
        Path | None,
        Option("The pair's inputs: .npz or .safetensors, images and labels.", metavar="FILE", reads="batches"),
    ] = None
    map_file: Annotated[
        Path | None,
        Option("Names that alignment does not find by itself (YAML).", flag="map", metavar="FILE", reads="name map"),
    ] = None
    outputs: bool = False
    write_map: Annotated[
        Path | None, Option("Write the alignment, for editing; a refused one too.", metavar="FILE")
    ] = None
    html: Annotated[Path | None, Option("Write one page to look at, without a network.", metavar="FILE")] = None
    json_file: Annotated[Path | None, Option("All findings", flag="json", stdout=True)] = None
    junit: Annotated[Path | None, Option("Write JUnit XML, for a CI server.", metavar="FILE")] = None
    markdown: Annotated[Path | None, Option("Write a summary for a pull request.", metavar="FILE")] = None
    keep: Annotated[Path | None, Option("Keep the traces in this (new) folder.", metavar="DIR")] = None
    worst: Annotated[int, Option("How many tensors to list.", least=1)] = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.torch is not None:
            return
        if self.mindspore is not None:
            raise BadInput("--mindspore goes with --torch: name both models, or --torch alone to convert it.")
        of_pairs = {"ckpt": self.ckpt, "batch-file": self.batch_file, "map": self.map_file, "write-map": self.write_map}
        given = [flag for flag, value in of_pairs.items() if value is not None]
        if given:
            raise BadInput(f"--{given[0]} is for a pair of your own: name it with --torch and --mindspore.")

    @property
    def files(self) -> list[Path]:
        """The files that are to be written."""
        wanted = (self.html, self.json_file, self.junit, self.markdown, self.write_map)
        return [file for file in wanted if file not in (None, STDOUT)]
