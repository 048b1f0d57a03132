"""A torch model as MindSpore source: ask what ran of it, assemble the file, and format it."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import WorkerFailed
from .. import model_spec
from .assembling import Source, assemble
from .context import Problem
from .facts import Facts
from .formatting import formatted

STARTED = ("weights.pth", "batch.npz")  # what torch_start.py leaves in its folder
SPARE = "build"  # what makes the model where its own name is taken by one of its classes


class Written(NamedTuple):
    """The text of a file of MindSpore source, and what there is to say of it.

    maker: the function in it that returns the model. classes: how many it defines. problems: what could not be written,
    each of which raises NotImplementedError in the file. inputs: the words for what the model was run on. left: the
    functions of which nothing could be learnt, and why.
    """

    text: str
    maker: str
    classes: int
    problems: list[Problem]
    inputs: str
    left: Mapping[str, str]

    @property
    def lines(self) -> int:
        """How many lines the file has."""
        return self.text.count("\n")


class Start(NamedTuple):
    """What a proof of the conversion starts from.

    weights: the state dict of the model as it is built under a seed. batch: inputs and labels of every step as
    parity-step takes them, None for a model that takes something else than tensors by position. plain: whether it
    returns logits, one tensor (N, K), in training mode.
    """

    weights: Path
    batch: Path | None
    plain: bool


def start(model: str, shapes: Sequence[str], folder: Path, *, seed: int, batch: int, steps: int) -> Start:
    """Leave weights, and a batch of so many examples for each step, in a folder. Raises BadInput, WorkerFailed."""
    words = (str(folder), str(seed), str(batch), str(steps), *shapes)
    told = model_spec.ask("source.torch_start", model, "convert-model", *words)
    weights, inputs = (folder / name for name in STARTED)
    outputs = told["outputs"]
    plain = told["alone"] and len(outputs) == 1 and len(outputs[0]) == 2
    return Start(weights, None if outputs is None else inputs, plain)


def write_source(model: str, shapes: Sequence[str] = ()) -> Written:
    """Write a torch model as MindSpore source; model and shapes as `analyze` takes them.

    Raises BadInput for what names no model or does not run, WorkerFailed where the model's own code fails.
    """
    return written(model, model_spec.ask("source.torch_reached", model, "convert-model", *shapes))


def written(model: str, report: Mapping[str, Any]) -> Written:
    """The source from the worker's report on a model. Raises WorkerFailed where it is no Python."""
    spec = model_spec.parse(model)
    facts = Facts(report)
    of = Path(spec.place).name if spec.place.endswith(".py") else spec.place
    says = f"{spec.name} of {of} in MindSpore, moved by `msmigrate convert-model` as it runs on {report['inputs']}."
    maker = spec.name if not keyword.iskeyword(spec.name) else SPARE
    source = assemble(facts, maker, says)
    if _defined(source, model).count(maker) > 1:
        maker = SPARE
        source = assemble(Facts(report), maker, says)
    text = formatted(source.text, model)
    classes = sum(isinstance(node, ast.ClassDef) for node in ast.parse(text).body)
    return Written(text, maker, classes, _once(source.problems), report["inputs"], report.get("left", {}))


def _defined(source: Source, model: str) -> list[str]:
    """The names that the file defines at its top."""
    try:
        body = ast.parse(source.text).body
    except SyntaxError as error:
        raise WorkerFailed(f"what was written of {model} is no Python: {error}") from None
    return [node.name for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]


def _once(problems: Sequence[Problem]) -> list[Problem]:
    """Each problem once, in the order of its place: a function may be translated for several classes."""
    return sorted(dict.fromkeys(problems), key=lambda problem: problem[:2])
