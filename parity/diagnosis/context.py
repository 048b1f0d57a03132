"""What the explainers are given: what failed, the traces, and the torch model to try hypotheses on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ...training.recipe.schema import Recipe
from ..align.user_model import Paired
from ..compare import Traces
from ..job import ParityJob, recipe_of
from ..record.batches import Inputs, read_inputs
from ..result import Finding, ModuleVerdict
from ..trace import Trace
from ..verdict import Verdict

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Context:
    """One run that did not end in parity.

    findings: those that are not PASS, in the report's order; modules: the verdict of every module that ran alone;
    model: the torch model, float32, at the starting weights, never to be changed: an explainer tries its hypotheses on
    a copy. paired: of the user's own models, what they brought besides the model, and the alignment.
    """

    options: ParityJob
    findings: list[Finding]
    modules: list[ModuleVerdict]
    model: nn.Module
    paired: Paired | None = None

    @property
    def folder(self) -> Path:
        """Where the run's traces and inputs lie."""
        return self.options.folder

    @cached_property
    def traces(self) -> Traces:
        """The traces of the run: torch's families and MindSpore's. Raises BadTrace."""
        return Traces.load(self.folder)

    @property
    def recipe(self) -> Recipe:
        """The recipe of the compared step; of a pair, with its number of classes."""
        if self.paired is None:
            return self.options.step_recipe
        return recipe_of(self.options, self.paired.alignment.classes)

    @property
    def mindspore(self) -> Trace:
        """MindSpore's own trace."""
        return self.traces.mindspore

    @cached_property
    def inputs(self) -> Inputs:
        """The batches that every side was fed."""
        return read_inputs(self.folder, self.recipe)

    def failed(self, stage: str, part: str | None = None) -> list[Finding]:
        """The failed tensors of a stage (and part), first divergence first."""
        wanted = (f for f in self.findings if f.stage == stage and part in (None, f.part))
        return sorted((f for f in wanted if f.verdict is Verdict.FAIL), key=lambda f: f.order)
