"""The options of a comparison: each is declared here, for the command line, the API and the workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ..errors import BadInput
from ..option_fields import Option, check
from .narrowing import STAGES, Narrowing

MODES = ("pynative", "graph")
FORMATS = ("fp32", "hf32", "tf32", "fp16", "bf16")
INIT_SEEDS, THOROUGH_SEEDS = 3, 10
SAMPLE = 65_536


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
    thorough: Annotated[bool, Option("Compare every element of every tensor, and 10 initial models.")] = False
    timeout: Annotated[
        float | None, Option("End a framework that says nothing for so long.", least=1, metavar="SECONDS")
    ] = None
    no_diagnosis: Annotated[bool, Option("Do not look for the causes of what fails.")] = False
    continue_from: Annotated[
        Path | None, Option("A torch training checkpoint to go on from.", metavar="CKPT", reads="checkpoint")
    ] = None

    def __post_init__(self) -> None:
        _ = self.narrowing  # which knows names that are nearly a stage's
        check(self)

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
    """What parity-step is asked for.

    torch, mindspore: a pair of the user's models by name. outputs: the loss is one of everything that they return, and
    not the recipe's.

    Raises BadInput besides for half a pair, and for options that only a pair has.
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
    write_map: Annotated[Path | None, Option("Write the alignment that was found, for editing.", metavar="FILE")] = None
    html: Annotated[Path | None, Option("Write one page to look at, without a network.", metavar="FILE")] = None
    json_file: Annotated[Path | None, Option("Write all findings as JSON.", flag="json", metavar="FILE")] = None
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
        return [file for file in wanted if file is not None]
