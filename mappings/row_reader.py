"""From one YAML entry to one `Row` or `Fault`, key by key.

An unknown key, a missing key or a value of the wrong type raises `BadInput` naming the file, the row and the key.
"""

from __future__ import annotations

import ast
import hashlib
import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import yaml

from ..errors import BadInput
from ..printable import quoted, shortened
from .rows import (
    MISSING,
    NOT_RUN,
    OLDEST,
    STATUSES,
    Argument,
    Call,
    Case,
    Fault,
    Name,
    Own,
    Row,
    State,
    Variation,
    Written,
)
from .verb_registry import SHAPES
from .verbs import VERBS

DTYPES = ("float32", "float16", "float64", "int32", "int64", "bool")
MODES = ("pynative", "graph", "ascend")
STAGES = ("data", "load", "init", "forward", "loss", "grad", "update", "buffers", "state", "schedule", "crash")
LONGEST = 100  # characters of an expression
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.USub)
COMPARISONS = (ast.Lt, ast.LtE, ast.Eq, ast.NotEq, ast.GtE, ast.Gt)


def read_rows(paths: Sequence[Path], kind: str) -> tuple[Row, ...]:
    """Read all rows of one kind from its files; raises BadInput naming file, row and key."""
    rows: list[Row] = []
    seen: dict[str, str] = {}
    for path in paths:
        for entry in read_yaml(path):
            row = read_row(entry, kind, path.name)
            for name in (row.torch, *row.aliases):
                if name in seen:
                    raise BadInput(f"{path.name}: {name} is in the rows {seen[name]} and {row.torch}")
                seen[name] = row.torch
            rows.append(row)
    return tuple(rows)


def read_faults(path: Path) -> dict[str, tuple[Fault, ...]]:
    """Read the faults, in their groups; raises BadInput naming file, fault and key."""
    content = _loaded(path)
    if not isinstance(content, dict):
        raise BadInput(f"{path}: expected groups of faults, got {type(content).__name__}")
    return {
        str(name): tuple(_fault(entry, path.name) for entry in listed(group, path)) for name, group in content.items()
    }


def read_examples(path: Path) -> dict[str, tuple[str, str, str]]:
    """Read the examples of the faults; raises BadInput for anything but three texts under a fault's id."""
    content = _loaded(path)
    if not isinstance(content, dict):
        raise BadInput(f"{path}: expected a mapping from faults to examples, got {type(content).__name__}")
    for name, texts in content.items():
        if not isinstance(texts, list) or [type(text) for text in texts] != [str] * 3:
            raise BadInput(f"{path.name}: {name}: expected three texts, got {texts!r}")
    return {str(name): (texts[0], texts[1], texts[2]) for name, texts in content.items()}


def read_row(entry: Any, kind: str, file: str) -> Row:
    """Read one row from its YAML entry; raises BadInput naming file, row and key."""
    torch = entry.get("torch") if isinstance(entry, dict) else None
    fields = Fields(entry, f"{file}: {quoted(torch or entry)}")
    row = Row(
        kind=kind,
        torch=fields.take("torch", str),
        mindspore=fields.take("mindspore", str, type(None)),
        exact=fields.take("exact", bool),
        why=fields.take("why", str, default=None),
        aliases=fields.texts("aliases"),
        instead_of={name: _own(name, own, fields.where) for name, own in fields.words("instead_of").items()},
        arguments=tuple(
            _argument(name, content, fields.where) for name, content in fields.take("arguments", dict).items()
        ),
        written=tuple(_written(name, content, fields.where) for name, content in fields.words("written").items()),
        in_order=fields.take("in_order", bool, default=True),
        unwritten=fields.words("unwritten", str),
        defaults=fields.words("defaults", str),
        state=tuple(_state(content, fields.where) for content in fields.take("state", list, default=())),
        status=fields.take("status", dict),
        pitfalls=fields.texts("pitfalls"),
        docs=fields.take("docs", dict),
        cases=tuple(_case(content, fields.where) for content in fields.take("cases", list, default=())),
        vary=tuple(_variation(content, fields.where) for content in fields.take("vary", list, default=())),
        since=fields.take("since", str, default=OLDEST),
        rewrite=fields.take("rewrite", str, default=None),
        left_out=fields.take("left_out", bool, default=False),
        group_options={name: tuple(values) for name, values in fields.words("group_options", list).items()},
        recipe=fields.take("recipe", dict, default={}),
        otherwise=_otherwise(entry, fields.take("otherwise", dict, type(None), default=None), kind, file),
        called_with=fields.words("called_with", int),
        over_one_value=fields.take("over_one_value", bool, default=False),
        unless=fields.words("unless", bool, float),
        as_value=fields.take("as_value", bool, default=False),
    )
    fields.done()
    if row.recipe and not {"key"} <= set(row.recipe) <= {"key", "value"}:
        raise BadInput(f"{fields.where}: recipe has a recipe's `key` and, where it is fixed, the `value`")
    if row.left_out and not row.rewrite:
        raise BadInput(f"{fields.where}: a row whose call is left out needs `rewrite`, which says what takes its place")
    if (not row.exact or row.mindspore is None) and not row.why:
        raise BadInput(f"{fields.where}: a row that is not exact needs `why`")
    if tuple(row.status) != MODES or any(status not in STATUSES for status in row.status.values()):
        raise BadInput(f"{fields.where}: status gives {', '.join(MODES)}, each one of: {'; '.join(STATUSES)}")
    if row.mindspore is None and not set(row.status.values()) <= {MISSING, NOT_RUN}:
        raise BadInput(f"{fields.where}: without a counterpart its status is '{MISSING}' or '{NOT_RUN}'")
    if set(row.docs) != {"torch", "mindspore"}:
        raise BadInput(f"{fields.where}: docs has the pages of torch and mindspore")
    return row


def _otherwise(entry: Mapping[str, Any], other: Mapping[str, Any] | None, kind: str, file: str) -> Row | None:
    """The row of the class that replaces a row's own for some values: the row with `other`'s entries in place of its
    own, argument by argument."""
    if other is None:
        return None
    left = {key: value for key, value in entry.items() if key not in ("otherwise", "cases", "vary", "instead_of")}
    parts = {key: {**entry.get(key, {}), **other.get(key, {})} for key in ("arguments", "defaults")}
    return read_row({**left, **other, **parts}, kind, file)


def _argument(name: str, content: Any, where: str) -> Argument:
    fields = Fields(content, f"{where}: {name}")
    if not isinstance(name, str):
        raise BadInput(f"{where}: arguments: {quoted(name)} is no name")
    required = "default" not in fields.content
    to = (fields.take("to", str),) if isinstance(fields.content.get("to"), str) else fields.texts("to")
    verb = fields.take("verb", str, default=None)
    if verb is not None and not VERBS.knows(verb):
        raise BadInput(f"{fields.where}: there is no verb {quoted(verb)}; there are {', '.join(sorted(VERBS))}")
    argument = Argument(
        torch=name,
        to=to,
        required=required,
        default=None if required else constant(fields.take("default")),
        verb=verb,
        values=tuple((pair[0], constant(pair[1])) for pair in fields.take("values", list, default=())),
        only=tuple(
            tuple(value) if isinstance(value, list) else value for value in fields.take("only", list, default=())
        ),
        refuse=tuple(fields.take("refuse", list, default=())),
        checked=fields.take("checked", bool, default=False),
        why=fields.take("why", str, default=None),
        remedy=fields.take("remedy", str, default=None),
        device=fields.take("device", bool, default=False),
        rest=fields.take("rest", bool, default=False),
    )
    fields.done()
    if argument.device and not argument.remedy:
        raise BadInput(f"{fields.where}: an argument that may be a device needs `remedy`")
    if not argument.to and not argument.why:
        raise BadInput(f"{fields.where}: an argument that goes nowhere needs `why`")
    return argument


def _own(name: str, content: Any, where: str) -> Own:
    fields = Fields(content, f"{where}: {name}")
    own = Own(
        does=fields.take("does", str, default=""),
        deprecated=fields.take("deprecated", str, default=None),
        gone=fields.take("gone", bool, default=False),
    )
    fields.done()
    return own


def _written(name: str, content: Any, where: str) -> Written:
    fields = Fields(content, f"{where}: {name}")
    written = Written(name, constant(fields.take("value")), fields.take("why", str, default=None))
    fields.done()
    return written


def _state(content: Any, where: str) -> State:
    fields = Fields(content, f"{where}: state")
    verb = fields.take("verb", str, default=None)
    if verb is not None and not SHAPES.knows(verb):
        raise BadInput(f"{fields.where}: there is no state verb {quoted(verb)}; there are {', '.join(sorted(SHAPES))}")
    state = State(
        torch=fields.take("torch", str, type(None)),
        mindspore=fields.take("to", str, type(None)),
        verb=verb,
        buffer=fields.take("buffer", bool, default=False),
        fill=fields.take("fill", float, default=None),
        drawn_otherwise=fields.take("drawn_otherwise", bool, default=False),
        start=fields.take("start", float, type(None), default=None),
        refused=fields.take("refused", bool, default=False),
        when=fields.take("when", str, default=None),
        from_start=fields.take("from_start", bool, default=False),
        in_groups=fields.take("in_groups", bool, default=False),
        why=fields.take("why", str, default=None),
    )
    fields.done()
    if (state.mindspore is None or state.torch is None) and not state.why:
        raise BadInput(f"{fields.where}: a tensor that only one side has needs `why`")
    if state.drawn_otherwise and not state.why:
        raise BadInput(f"{fields.where}: a tensor that is drawn otherwise needs `why`")
    if state.start is not None and not state.drawn_otherwise:
        raise BadInput(f"{fields.where}: a tensor with a start of torch's own is `drawn_otherwise`")
    if state.refused and state.mindspore is not None:
        raise BadInput(f"{fields.where}: a tensor that is refused has no name in MindSpore")
    return state


def _case(content: Any, where: str) -> Case:
    fields = Fields(content, f"{where}: case")
    case = Case(
        args=fields.take("args", dict, default={}),
        inputs=tuple(fields.take("inputs", list, default=())),
        pack=fields.take("pack", bool, default=False),
        paired=fields.take("paired", bool, default=False),
        weights=fields.take("weights", float, default=1.0),
        apart=fields.take("apart", float, type(None), default=None),
        groups=tuple(fields.take("groups", list, default=())),
        steps=fields.take("steps", int, default=6),
        shape=tuple(fields.take("shape", list, default=())),
        raises=fields.take("raises", str, default=None),
        train=fields.take("train", bool, default=True),
        made=fields.take("made", dict, default={}),
    )
    fields.done()
    return case


def _variation(content: Any, where: str) -> Variation:
    fields = Fields(content, f"{where}: vary")
    variation = Variation(
        sizes=fields.take("sizes", dict, default={}),
        inputs=tuple(fields.take("inputs", list, default=())),
        args=fields.take("args", dict, default={}),
        where=tuple(fields.take("where", list, default=())),
        dtypes=tuple(fields.take("dtypes", list, default=("float32",))),
        pack=fields.take("pack", bool, default=False),
        paired=fields.take("paired", bool, default=False),
        weights=fields.take("weights", float, default=1.0),
        apart=fields.take("apart", float, type(None), default=None),
    )
    fields.done()
    wrong = [name for name, ends in variation.sizes.items() if not _is_range(ends)]
    if wrong:
        raise BadInput(f"{fields.where}: size {quoted(wrong[0])}: expected the smallest and the largest, [1, 9]")
    unlisted = [name for name, values in variation.args.items() if not isinstance(values, list) or not values]
    if unlisted:
        raise BadInput(f"{fields.where}: {quoted(unlisted[0])}: expected a list of the values to draw from")
    unknown = set(variation.dtypes) - set(DTYPES)
    if unknown:
        raise BadInput(f"{fields.where}: dtypes are some of {', '.join(DTYPES)}")
    shapes = [spec.get("shape") if isinstance(spec, dict) else spec for spec in variation.inputs]
    for shape in shapes:
        if not isinstance(shape, list):
            raise BadInput(f"{fields.where}: inputs: expected shapes, or mappings with one, got {quoted(shape)}")
        _check_sizes([size for size in shape if type(size) is not int], variation.sizes, f"{fields.where}: inputs")
    _check_sizes(variation.where, {**variation.sizes, **variation.args}, f"{fields.where}: where")
    return variation


def _check_sizes(texts: Sequence[Any], known: Mapping[str, Any], where: str) -> None:
    """Raise BadInput for a text that is no expression over the known names."""
    for text in texts:
        try:
            unknown = expression_names(str(text)) - set(known)
        except ValueError as error:
            raise BadInput(f"{where}: {error}") from None
        if unknown:
            there = shortened(", ".join(map(str, known)))
            raise BadInput(f"{where}: there is no size {quoted(min(unknown))} in {quoted(text)}; there are {there}")


def _is_range(ends: Any) -> bool:
    """Whether it is the smallest and the largest value of a size."""
    return isinstance(ends, list) and [type(end) for end in ends] == [int, int] and 0 <= ends[0] <= ends[1]


def _fault(entry: Any, file: str) -> Fault:
    fields = Fields(entry, f"{file}: {entry.get('id', entry) if isinstance(entry, dict) else entry!r}")
    fault = Fault(
        id=fields.take("id", str),
        torch=fields.take("torch", str),
        mindspore=fields.take("mindspore", str),
        shows_in=tuple(fields.take("shows_in", list)),
        symptom=fields.take("symptom", str),
        fix=fields.take("fix", str),
        measured=fields.take("measured", str),
        hypothesis=fields.take("hypothesis", dict, default={}),
        needs=fields.take("needs", str, type(None), default=None),
        at=fields.take("at", str, type(None), default=None),
        mode=fields.take("mode", str, type(None), default=None),
    )
    fields.done()
    unknown = set(fault.shows_in) - set(STAGES)
    if unknown or not fault.shows_in:
        raise BadInput(f"{fields.where}: shows_in names stages among {', '.join(STAGES)}")
    if fault.mode not in (None, "graph"):
        raise BadInput(f"{fields.where}: mode is graph, or left out")
    return fault


# YAML, and keys read one by one


def read_yaml(path: Path) -> list[Any]:
    """Return the list that a table of msmigrate's own holds; raises BadInput when it is not YAML or not a list."""
    return listed(_loaded(path), path)


def _loaded(path: Path) -> Any:
    """The content of a table. To read all of them as YAML takes half a second, so the result is cached where Python
    keeps bytecode, is trusted as bytecode is, and is used while the table's bytes are the same."""
    try:
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        kept = Path(cache_from_source(str(path))).with_suffix(".table")
        with suppress(OSError, EOFError, ValueError, TypeError):
            digest_then, table = marshal.loads(kept.read_bytes())
            if digest_then == digest:
                return table
        table = yaml.load(content, Loader=yaml.CSafeLoader)
    except (OSError, yaml.YAMLError) as error:
        raise BadInput(f"{path}: {' '.join(str(error).split())}") from None
    if not sys.dont_write_bytecode:
        draft = kept.with_name(f"{kept.name}.{os.getpid()}")
        with suppress(OSError, ValueError):  # nothing can be written there, or a value is no plain one
            kept.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(marshal.dumps((digest, table)))
            draft.replace(kept)
    return table


def listed(content: Any, path: Path) -> list[Any]:
    """The rows of a file's content; raises BadInput when it is not a list."""
    if not isinstance(content, list):
        raise BadInput(f"{path}: expected a list of rows, got {type(content).__name__}")
    # A document that opens with `shared:` anchors keeps them in a leading entry of its own.
    return [entry for entry in content if not (isinstance(entry, dict) and set(entry) == {"shared"})]


class Fields:
    """A mapping from YAML, read key by key; what is left over at the end is an error."""

    def __init__(self, content: Any, where: str) -> None:
        self.where = shortened(where, 600)
        if not isinstance(content, dict):
            raise BadInput(f"{self.where}: expected keys and values, got {quoted(content)}")
        self.content = dict(content)

    def take(self, key: str, *kinds: type, default: Any = ...) -> Any:
        """Remove and return one value of one of the given types; without a default the key must be there."""
        if key not in self.content:
            if default is ...:
                raise BadInput(f"{self.where}: the key '{key}' is missing")
            return default
        value = self.content.pop(key)
        if kinds and not isinstance(value, kinds):
            raise BadInput(f"{self.where}: '{key}' cannot be {quoted(value)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Remove and return a list of texts; none where the key is not there."""
        found = self.take(key, list, default=[])
        if not all(isinstance(text, str) for text in found):
            raise BadInput(f"{self.where}: '{key}' is a list of texts, not {quoted(found)}")
        return tuple(found)

    def words(self, key: str, *kinds: type) -> dict[str, Any]:
        """Remove and return a mapping from texts to values of the given types; nothing where the key is not there."""
        found: dict[str, Any] = self.take(key, dict, default={})
        for name, value in found.items():
            if not isinstance(name, str) or not isinstance(value, kinds or object):
                what = f"{quoted(name)}: {quoted(value)}"
                raise BadInput(f"{self.where}: '{key}' maps names to {_named(kinds)}, not {what}")
        return found

    def done(self) -> None:
        """Raise BadInput when keys are left that were not taken."""
        if self.content:
            raise BadInput(f"{self.where}: unknown key {quoted(next(iter(self.content)))}")


def _named(kinds: tuple[type, ...]) -> str:
    return " or ".join("texts" if kind is str else "lists" for kind in kinds) or "values"


def constant(value: Any) -> Any:
    """Turn a YAML constant into a value: `{name: a.b}` becomes a Name, `{call: a.b, kwargs: …}` a Call."""
    if isinstance(value, dict) and set(value) == {"name"}:
        return Name(value["name"])
    if isinstance(value, dict) and set(value) == {"call", "kwargs"}:
        return Call(value["call"], {key: constant(item) for key, item in value["kwargs"].items()})
    return value


# Expressions over named whole numbers


def expression_names(text: str) -> set[str]:
    """Return the names in an expression such as "2*n+1" or "h >= k"; raises ValueError for anything else."""
    if len(text) > LONGEST:
        raise ValueError(f"{text[:20]!r}… is too long for an expression")
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval").body))
    except SyntaxError:
        raise ValueError(f"{quoted(text)} is no expression over whole numbers and names") from None
    for node in nodes:
        if isinstance(node, ast.expr) and not _is_arithmetic(node):
            why = "is no whole number, name, sum, difference, product or comparison"
            raise ValueError(f"{quoted(ast.unparse(node))} {why}")
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def _is_arithmetic(node: ast.expr) -> bool:
    """Whether a node, whatever its children are, may be part of such an expression."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return isinstance(node.op, ARITHMETIC)
    if isinstance(node, ast.Compare):
        return all(isinstance(test, COMPARISONS) for test in node.ops)
    return isinstance(node, ast.Name) or (isinstance(node, ast.Constant) and type(node.value) is int)
