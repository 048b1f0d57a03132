"""The input of every explainer: the run's findings, traces, inputs and model; and places, in words and in code."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadInput, UnknownRow, Unsupported
from ...mappings import table
from ...training.recipe.schema import Recipe
from ...training.step.parameter_groups import is_norm
from ..align.user_model import Paired
from ..compare_traces import Traces
from ..job import ParityJob, recipe_of
from ..record.batches import Inputs, read_inputs
from ..replay.module_calls import Made
from ..result import CellChange, Finding, ModuleVerdict
from ..tensor_verdict import EPS32, Verdict
from ..trace import Key, RecordedStage, Trace, sample_positions
from .hypotheses import Prediction

if TYPE_CHECKING:
    from torch import nn

STORED = 0.25  # rounding of a stored float32 weight, root mean square, in EPS32 of the value (noise.py)


@dataclass(frozen=True)
class Context:
    """One run that did not end in parity.

    findings: those that are not PASS, in the report's order; modules: the verdict of every module that ran alone;
    model: the torch model, float32, at the starting weights, never to be changed: an explainer tries its hypotheses on
    a copy. paired: for the user's own models, the parts they brought besides the model, and the alignment.
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
        """The recipe of the compared step; for a pair, with its number of classes."""
        if self.paired is None:
            return self.options.step_recipe
        return recipe_of(self.options, self.paired.alignment.classes)

    @property
    def mindspore(self) -> Trace:
        """MindSpore's own trace."""
        return self.traces.mindspore

    @cached_property
    def inputs(self) -> Inputs:
        """The batches that every side was fed; for a pair, with the shape of the model's output."""
        found = read_inputs(self.folder, self.recipe)
        return found if self.paired is None else found.of_pair(self.paired.alignment)

    def failed(self, stage: str, part: str | None = None) -> list[Finding]:
        """The failed tensors of a stage (and part), first divergence first."""
        wanted = (f for f in self.findings if f.stage == stage and part in (None, f.part))
        return sorted((f for f in wanted if f.verdict is Verdict.FAIL), key=lambda f: f.order)

    def family(self, key: Key) -> Sequence[Trace]:
        """The torch traces that a tensor is judged by: those with MindSpore's choices at kinks where they have it."""
        matched = self.traces.matched
        return matched if any(key in trace.entries for trace in matched) else self.traces.alone

    def family_of(self, stage: RecordedStage, part: str) -> Sequence[Trace]:
        """The same for what of a stage is in one part."""
        matched = self.traces.matched
        return matched if any(matched[0].select(stage, part)) else self.traces.alone

    def comparable(self, key: Key) -> bool:
        """Whether MindSpore's tensor and torch's float64 one are both there, of one shape and finite."""
        of_mindspore, of_torch = self.mindspore.entries.get(key), self.family(key)[0].entries.get(key)
        return (
            of_mindspore is not None
            and of_torch is not None
            and of_mindspore.shape == of_torch.shape
            and not (of_mindspore.nonfinite or of_torch.nonfinite or 0 in of_torch.shape)
        )

    def mindspore_values(self, key: Key) -> np.ndarray:
        """MindSpore's recorded elements, flat."""
        return self.mindspore.array(key)

    def torch_values(self, key: Key) -> np.ndarray:
        """torch's recorded elements in float64, flat."""
        return self.family(key)[0].array(key)

    def unchanged(self, key: Key) -> Prediction:
        """torch as it is: no hypothesis."""
        runs = [trace for trace in self.family(key)[1:] if key in trace.entries]
        exact = self.torch_values(key)
        return Prediction(exact, runs[0].array(key) if runs else exact)

    def storing(self, name: str) -> float:
        """How far storing a starting tensor in float32 moves its change, as an L2 distance."""
        start = self.mindspore.entries.get(("init", "values", name, 0))
        return STORED * EPS32 * start.norm if start is not None and start.norm > 0.0 else 0.0

    def kinds(self, names: Collection[str]) -> dict[str, str]:
        """Parameter name -> the torch class of the module that owns it, "" where torch's outputs do not show it."""
        entries = self.traces.alone[1].entries.values()
        kinds = {e.name: e.module for e in entries if e.stage == "forward" and e.module}
        return {name: kinds.get(name.rpartition(".")[0], "") or "" for name in names}

    def place(self, names: Collection[str], everything: Collection[str]) -> str:
        """A phrase for `names` among `everything`."""
        return place(names, everything, self.kinds(everything))


def key_of(finding: Finding) -> Key:
    """The trace key of a finding, whose name is an entry's label."""
    name, mark, call = finding.name.rpartition("#")
    if mark and call.isdigit() and int(call):
        return (finding.stage, finding.part, name, int(call))
    return (finding.stage, finding.part, finding.name, 0)


def recorded(array: np.ndarray, count: int) -> np.ndarray:
    """The `count` elements of a whole tensor that a trace records, flat."""
    flat = array.reshape(-1)
    return flat if flat.size == count else flat[sample_positions(flat.size, count)]


def place(names: Collection[str], everything: Collection[str], kinds: Mapping[str, str]) -> str:
    """A phrase for `names` among `everything`; kinds: parameter name -> class of its module.

    One name stands for itself, all names of one module for the module. For several, the phrase has the first, the
    number of others, and what they have in common: "bn1.weight and 33 more: every norm's weight and bias".
    """
    chosen = set(names)
    ordered = list(dict.fromkeys([*(name for name in everything if name in chosen), *names]))
    if len(ordered) == 1:
        return ordered[0]
    if chosen >= set(everything):
        return "every parameter"
    stem = _stem(chosen)
    if stem and not any(name.startswith(f"{stem}.") for name in everything if name not in chosen):
        return stem
    first = f"{ordered[0]} and {ordered[1]}" if len(ordered) == 2 else f"{ordered[0]} and {len(ordered) - 1} more"
    common = next((words for words, members in _families(everything, kinds).items() if members == chosen), "")
    return f"{first}: {common}" if common else first


def _families(everything: Collection[str], kinds: Mapping[str, str]) -> dict[str, set[str]]:
    norms = {name for name in everything if is_norm(kinds.get(name, ""))}
    biases = {name for name in everything if name.rsplit(".", 1)[-1] == "bias"}
    whole = set(everything)
    return {
        "every norm's weight and bias": norms,
        "every bias": biases,
        "every norm's weight": norms - biases,
        "every norm's bias": norms & biases,
        "every norm's weight and bias, and every bias": norms | biases,
        "every weight but the norms'": whole - norms - biases,
        "every weight": whole - biases,
        "every parameter but the norms'": whole - norms,
        "every bias but the norms'": biases - norms,
        "every bias, and every weight but the norms'": whole - (norms - biases),
    }


def _stem(names: Collection[str]) -> str:
    """The longest run of dotted parts that all names begin with."""
    parts = [name.split(".")[:-1] for name in names]
    stem: list[str] = []
    for column in zip(*parts, strict=False):
        if len(set(column)) > 1:
            break
        stem.append(column[0])
    return ".".join(stem)


def counterpart(cell: str, kind: str, arguments: Mapping[str, Any], changed: Collection[str]) -> CellChange | None:
    """The correct MindSpore code: the Cell's class with the arguments that matter (all, where all are at fault).

    cell: attribute path, empty for the net itself; arguments: the torch module's own; changed: those at fault. None
    where the table has no row of that class, or no counterpart of these arguments.
    """
    try:
        call = table.translate(f"torch.nn.{kind}", arguments)
        row = table.row(f"torch.nn.{kind}")
    except (UnknownRow, BadInput, Unsupported):
        return None
    wanted = [name for argument in row.arguments if argument.torch in changed for name in argument.to]
    # an argument of the same name that is written for another reason, such as output_padding=0
    wanted += [one.mindspore for one in row.written if one.mindspore in changed and one.mindspore not in wanted]
    written = {name: repr(call.kwargs[name]) for name in wanted if name in call.kwargs}
    whole = set(changed) == set(arguments)
    return CellChange((cell,), call.target, written, whole) if written or whole else None


def written(change: CellChange) -> str:
    """One Cell's change as text: net.bn1: nn.BatchNorm2d(…, momentum=0.9)  # now momentum=0.1."""
    arguments, now = (
        ", ".join(f"{name}={value}" for name, value in given.items()) for given in (change.arguments, change.now)
    )
    (cell,), rest = change.cells, "" if change.whole else "…, "
    if not change.target:
        return f"{in_code(cell)}: {arguments}"
    call = f"{in_code(cell)}: {change.target.replace('mindspore.', '', 1)}({rest}{arguments})"
    return f"{call}  # now {now}" if now else call


def own_line(made: Made, change: CellChange) -> str:
    """The line of the user's file that makes the Cell, corrected, with its place; the unchanged line where that calls
    something else, such as a helper; empty where no line is known."""
    if not made.line:
        return ""
    try:
        (statement,) = ast.parse(made.line).body
        name = made.target.rpartition(".")[2]
        (call,) = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and _called(node) == name]
        if change.whole:
            arguments = ", ".join(f"{name}={value}" for name, value in change.arguments.items())
            new: ast.expr = ast.parse(f"{change.target.replace('mindspore.', '', 1)}({arguments})", mode="eval").body
        else:
            new = _with(call, made.positional, change.arguments)
        mended = ast.unparse(_Exchange(call, new).visit(statement))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # cut off, several lines, a helper, or forged
        return f"{made.place} makes it: {made.line}"
    return f"{made.place}: {mended}"


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _with(call: ast.Call, positional: Sequence[str], arguments: Mapping[str, str]) -> ast.expr:
    """The call with these arguments. Raises ValueError where it takes a mapping that may hold them."""
    if any(keyword.arg is None for keyword in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        raise ValueError("its arguments are not written here")
    given, named = list(call.args), {keyword.arg or "": keyword.value for keyword in call.keywords}
    for name, value in arguments.items():
        new = ast.parse(value, mode="eval").body
        if name in positional[: len(given)]:
            given[positional.index(name)] = new
        else:
            named[name] = new
    return ast.Call(call.func, given, [ast.keyword(name, value) for name, value in named.items()])


class _Exchange(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def in_code(cell: str) -> str:
    """A Cell's path as people write it: layer1.0.bn2 is net.layer1[0].bn2."""
    return "net" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in cell.split(".") if part)


def cell_of(verdict: ModuleVerdict) -> str:
    """The Cell's attribute path, empty for the net itself."""
    path = verdict.mindspore.split(" ")[0] if verdict.mindspore else verdict.name
    return "" if path.startswith("(") else path
