"""A model to MindSpore source, from start to end: ask the worker, build the file, format it."""

from __future__ import annotations

import ast
import keyword
import re
import tokenize
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import black

from ...errors import WorkerFailed
from .. import model_spec
from ..source_files import AT_END, short
from .emit.file_builder import Emitted, build_file
from .observe.observations import PROOF_FILES, Made, Observations
from .rewrite.context import Problem
from .variations import Variation

SPARE = "build"  # the name of the function that makes the model, where the model's own name is taken by a class


class ConvertedModel(NamedTuple):
    """The text of a file of MindSpore source, and the report on it.

    maker: the function in it that returns the model. classes: how many it defines. problems: what could not be written,
    each of which raises NotImplementedError in the file. inputs: a description of the inputs that the model was run on.
    left: the functions that could not be observed, and why. notes: further remarks, in sentences. not_run: code that
    the model did not run, which raises there too. variations: the ways of making the model that both frameworks may be
    tried on. left_out: what the file lacks, or takes to be as in the run, without an error there.
    """

    text: str
    maker: str
    classes: int
    problems: list[Problem]
    inputs: str
    left: Mapping[str, str]
    notes: Sequence[str] = ()
    not_run: Sequence[Problem] = ()
    variations: Sequence[Variation] = ()
    left_out: Sequence[Problem] = ()

    @property
    def lines(self) -> int:
        """How many lines the file has."""
        return self.text.count("\n")


class ProofInputs(NamedTuple):
    """The inputs of a proof of the conversion.

    weights: the state dict of the model as it is built under a seed. batch: inputs and labels of every step as
    parity-step takes them, None for a model that takes something else than tensors and plain values. plain: whether it
    returns logits, one tensor (N, K), in training mode. inputs: how many tensors it takes. call: how it is called with
    them, `x0, (x1, x2), mask=x3`; None where they are its arguments by position. saved: how many tensors its state dict
    has. trains: whether one of its parameters does, in a loss of one's own none.
    """

    weights: Path
    batch: Path | None
    plain: bool
    inputs: int = 0
    call: str | None = None
    saved: int = 1
    trains: bool = True


def start(model: str, shapes: Sequence[str], folder: Path, *, seed: int, batch: int, steps: int) -> ProofInputs:
    """Write the weights, and a batch of `batch` examples for each step, to a folder. Raises BadInput, WorkerFailed."""
    words = (str(folder), str(seed), str(batch), str(steps), *shapes)
    report = model_spec.ask("source.observe.torch_proof_worker", model, "convert-model", *words)
    weights, inputs = (folder / name for name in PROOF_FILES)
    outputs = report["outputs"]
    plain = report["alone"] and len(outputs) == 1 and len(outputs[0]) == 2
    # a row for each example, and not for each of its tokens
    plain = plain and outputs[0][:1] == report["inputs"][0][:1]
    count, call = len(report["inputs"] or ()), report["call"]
    held = report["saved"], report["trains"]
    return ProofInputs(weights, None if outputs is None else inputs, plain and call is None, count, call, *held)


FLAT_TORCH = """
import torch
from msmigrate.migrate.model_spec import parse
from msmigrate.migrate.source.observe.torch_simplified_transformers import for_training
from msmigrate.migrate.torch_models import builder, split


class WithInputs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = split(builder(parse({of!r}))())[0]
        for_training(self.model)

    def forward(self, {names}):
        return self.model({call})


def build():
    return WithInputs()
"""
FLAT_MINDSPORE = """
import importlib.util
import sys

from mindspore import nn

spec = importlib.util.spec_from_file_location({stem!r}, {of!r})
module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # where dataclasses look for their file
spec.loader.exec_module(module)


class WithInputs(nn.Cell):
    def __init__(self):
        super().__init__()
        self.model = module.{maker}()

    def construct(self, {names}):
        return self.model({call})


def build():
    return WithInputs()
"""


def flat_pair(model: str, written: Path, maker: str, begin: ProofInputs, folder: Path) -> tuple[str, str]:
    """Write both models to a folder, each in a wrapper that takes its tensors by position, as parity-step gives
    them."""
    folder.mkdir()
    names = ", ".join(f"x{place}" for place in range(begin.inputs))
    given = {"names": names, "call": begin.call, "maker": maker, "stem": written.stem}
    for name, text, of in (("flat_torch", FLAT_TORCH, model), ("flat_mindspore", FLAT_MINDSPORE, str(written))):
        (folder / f"{name}.py").write_text(text.format(of=of, **given), encoding="utf-8")
    return f"{folder / 'flat_torch.py'}:build", f"{folder / 'flat_mindspore.py'}:build"


def write_source(model: str, shapes: Sequence[str] = ()) -> ConvertedModel:
    """Write a torch model as MindSpore source; model and shapes as `analyze` takes them.

    Raises BadInput where `model` names no model or does not run, WorkerFailed where the model's own code fails.
    """
    for shape in shapes:
        model_spec.sizes_of(shape)  # before torch is started
    return written(model, model_spec.ask("source.observe.torch_observe_worker", model, "convert-model", *shapes))


def written(model: str, report: Mapping[str, Any]) -> ConvertedModel:
    """The source from the worker's report on a model. Raises WorkerFailed where it is not valid Python."""
    spec = model_spec.parse(model)
    facts = Observations(report)
    of = Path(spec.place).name if spec.place.endswith(".py") else spec.place
    says = f"{spec.name} of {of} in MindSpore, moved by `msmigrate convert-model` as it runs on {report['inputs']}."
    itself = isinstance(facts.root, Made) and short(facts.root.function) == spec.name  # the class, not what makes one
    maker = SPARE if itself or keyword.iskeyword(spec.name) else spec.name
    source = build_file(facts, maker, says)
    if _defined(source, model).count(maker) > 1:
        maker = SPARE
        source = build_file(Observations(report), maker, says)
    text = formatted(source.text, model)
    classes = sum(isinstance(node, ast.ClassDef) for node in ast.parse(text).body)
    problems, not_run, left_out = map(_once, (source.problems, source.not_run, source.left_out))
    left, notes = report.get("left", {}), report.get("notes", ())
    found = ConvertedModel(text, maker, classes, problems, report["inputs"], left, notes, not_run)
    return found._replace(variations=source.variations, left_out=left_out)


def _defined(source: Emitted, model: str) -> list[str]:
    """The names that the file defines at its top."""
    try:
        body = ast.parse(source.text).body
    except SyntaxError as error:
        raise WorkerFailed(f"the source written for {model} is not valid Python: {error}") from None
    return [node.name for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]


def _once(problems: Sequence[Problem]) -> list[Problem]:
    """Each problem once, in the order of its place: a function may be translated for several classes."""
    return sorted(dict.fromkeys(problems), key=lambda problem: problem[:2])


LINE = 120


def formatted(text: str, model: str) -> str:
    """The text formatted by black, with `return a, b` for `return (a, b)`. Raises WorkerFailed for invalid Python."""
    try:
        return with_ends(
            black.format_str(with_short_numbers(without_brackets(text)), mode=black.Mode(line_length=LINE))
        )
    except (SyntaxError, black.parsing.InvalidInput, black.parsing.ASTSafetyError) as error:
        reason = " ".join(str(error).split())[:300]
        raise WorkerFailed(f"the source written for {model} is not valid Python: {reason}") from None


def with_short_numbers(text: str) -> str:
    """The text with numbers as people write them, 1e-6 and 1e9, for 1e-06 and 1000000000.0."""
    lines = text.split("\n")
    for token in [*tokenize.generate_tokens(iter(text.splitlines(keepends=True)).__next__)][::-1]:
        if token.type == tokenize.NUMBER and not token.string.startswith("0x"):
            number = re.sub(r"e\+?(-?)0*(?=[1-9])", r"e\1", token.string)
            number = re.sub(r"^([1-9])(\d{0,2}?)(0{6,})\.0$", _in_powers, number)
            (row, first), (_, end) = token.start, token.end
            lines[row - 1] = lines[row - 1][:first] + number + lines[row - 1][end:]
    return "\n".join(lines)


def _in_powers(number: re.Match[str]) -> str:
    """`1e9` for 1000000000.0, and `3.12e14` for 312000000000000.0."""
    first, more, zeros = number.groups()
    return f"{first}{'.' * bool(more)}{more}e{len(more) + len(zeros)}"


def with_ends(text: str) -> str:
    """The text with comments behind the first lines of the statements that they are for, where there is room."""
    if AT_END not in text:
        return text
    tokens = tokenize.generate_tokens(iter(text.splitlines(keepends=True)).__next__)
    ends = {token.start[0] for token in tokens if token.type in (tokenize.NEWLINE, tokenize.NL)}
    lines, kept = text.split("\n"), []
    waiting: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.endswith(AT_END):
            waiting.append(line.removesuffix(AT_END))
            continue
        if waiting and line.lstrip()[:1] not in ("", "#", "@"):
            longer = "  ".join([line, *(note.strip() for note in waiting)])
            if number in ends and len(longer) <= LINE and len(waiting) == 1:
                kept.append(longer)
            else:
                kept += [*waiting, line]
            waiting = []
        else:
            kept.append(line)
    return "\n".join(kept)


def without_brackets(text: str) -> str:
    """The same without the brackets around tuples that are returned, or unpacked into several names, and without a
    second pair around what a call gets alone: `max((f(x) for x in y))`, `tuple((a, b))`.

    Raises SyntaxError for invalid Python.
    """
    lines = [line.encode() for line in text.split("\n")]  # ast counts bytes
    gone: set[tuple[int, int]] = set()
    for node in ast.walk(ast.parse(text)):
        found = _tuple(node)
        inner = _alone(node) if isinstance(node, ast.Call) else None
        if found is not None and found.end_lineno == found.lineno:
            begin, end = found.col_offset, found.end_col_offset or 0
            if _in_brackets(lines[found.lineno - 1][begin:end]):
                gone |= {(found.lineno, begin), (found.lineno, end - 1)}
        if isinstance(node, ast.Call) and inner is not None and inner.end_lineno == inner.lineno == node.lineno:
            begin, end, line = inner.col_offset, inner.end_col_offset or 0, lines[node.lineno - 1]
            if line[begin - 1 : begin + 1] == b"((" and line[end - 1 : end + 1] == b"))":
                first = node.col_offset if isinstance(inner, ast.Tuple) else begin - 1
                gone |= {(node.lineno, place) for place in (*range(first, begin), end)}
    for number, place in sorted(gone, reverse=True):
        lines[number - 1] = lines[number - 1][:place] + lines[number - 1][place + 1 :]
    return "\n".join(line.decode() for line in lines)


def _alone(node: ast.Call) -> ast.GeneratorExp | ast.Tuple | None:
    """The generator that a call gets alone, or the tuple that it makes a tuple of."""
    only = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if isinstance(only, ast.Tuple) and isinstance(node.func, ast.Name) and node.func.id == "tuple":
        return only
    return only if isinstance(only, ast.GeneratorExp) else None


def _in_brackets(text: bytes) -> bool:
    """Whether the first and the last bracket are a pair: in `(a), (b)` they are not."""
    try:
        inside = ast.parse(text[1:-1].strip(), mode="eval").body
    except SyntaxError:
        return False
    return text[:1] == b"(" and text[-1:] == b")" and isinstance(inside, ast.Tuple)


def _tuple(node: ast.AST) -> ast.Tuple | None:
    """The tuple that a statement returns, or unpacks into names."""
    opens = isinstance(node, ast.Assign) and any(isinstance(target, ast.Tuple) for target in node.targets)
    if not opens and not isinstance(node, ast.Return):
        return None
    assert isinstance(node, (ast.Assign, ast.Return))
    return node.value if isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1 else None
