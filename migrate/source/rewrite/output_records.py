"""Named tuples and dataclasses of tensors, as plain tuples and dictionaries.

Through an object of a class of one's own a compiled MindSpore function passes no gradient: with a named tuple or a
dataclass between the net and the loss, `mindspore.jit` of `value_and_grad` gives zeros for every weight, and tells it
in a warning of the compiler's alone (`python benchmarks/graph_outputs_mindspore.py`). Tuples and dictionaries pass it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from ..observe.kinds import Kind, ObjectKind, SequenceKind
from .context import Context, Unwritable, handles

Record = Mapping[str, Any]  # `fields` in order, `defaults` of some; `named`: a dataclass, and so a dictionary


def record_of_call(records: Mapping[str, Record], names: Sequence[str]) -> Record | None:
    """The record that a call makes, by the names of what was called; None for anything else, or several."""
    found = [records.get(name) for name in names]
    return found[0] if found and found[0] is not None and all(one == found[0] for one in found) else None


def record_of_value(records: Mapping[str, Record], kinds: Sequence[Kind]) -> Record | None:
    """The record that an expression was, by its kinds: objects of a class, or named tuples by the name alone."""
    short = {name.rpartition(".")[2]: name for name in records}
    names = [
        kind.cls if isinstance(kind, ObjectKind) else short.get(kind.type, "") if isinstance(kind, SequenceKind) else ""
        for kind in kinds
    ]
    return record_of_call(records, names)


def as_plain_value(record: Record, call: ast.Call) -> ast.expr | None:
    """The tuple or dictionary for a call of the class; None where it cannot be told which field is which."""
    fields, defaults = record["fields"], record["defaults"]
    if any(isinstance(argument, ast.Starred) for argument in call.args) or len(call.args) > len(fields):
        return None
    given = dict(zip(fields, call.args, strict=False))
    for word in call.keywords:
        if word.arg not in fields or word.arg in given:
            return None
        given[word.arg] = word.value
    given = {**{name: ast.Constant(value) for name, value in defaults.items()}, **given}
    if set(given) != set(fields):
        return None
    if record["named"]:
        kept = present(record)
        return ast.Dict([ast.Constant(name) for name in kept], [given[name] for name in kept])
    return ast.Tuple([given[name] for name in fields], ast.Load())


def present(record: Record) -> list[str]:
    """The fields that are more than None now and then; a class that is a dictionary has no others."""
    return [name for name in record["fields"] if name in record.get("present", record["fields"])]


def item(record: Record, node: ast.Subscript) -> ast.Subscript | None:
    """`value[0]` as `value["name"]`, of a class that is a dictionary and gives its values by number too."""
    place = node.slice.value if isinstance(node.slice, ast.Constant) else None
    names = present(record)
    if "present" not in record or not isinstance(place, int) or not -len(names) <= place < len(names):
        return None
    return ast.Subscript(node.value, ast.Constant(names[place]), node.ctx)


def field(record: Record, node: ast.Attribute) -> ast.expr | None:
    """`value.name` as `value["name"]` or `value[0]`; None for what is no field."""
    if node.attr not in record["fields"]:
        return None
    if node.attr not in present(record) and isinstance(node.ctx, ast.Load):
        return ast.Constant(None)
    key = node.attr if record["named"] else record["fields"].index(node.attr)
    return ast.Subscript(node.value, ast.Constant(key), node.ctx)


@handles(syntax=[ast.Call])
def record_call(node: ast.Call, context: Context) -> ast.expr | None:
    """A call of a record's class, as a tuple or a dictionary."""
    callees = context.callees(node)
    record = record_of_call(context.facts.records, callees)
    if record is None:
        return None
    plain = as_plain_value(record, node)
    if plain is None:
        raise Unwritable(f"which field of {callees[0]} is which cannot be told of {ast.unparse(node)}")
    return context.generic_visit(plain)


@handles(syntax=[ast.Subscript])
def record_item(node: ast.Subscript, context: Context) -> ast.expr | None:
    """`output[0]` of a record that is a dictionary."""
    record = record_of_value(context.facts.records, context.kinds(node.value))
    found = record and item(record, node)
    return context.generic_visit(found) if found else None


@handles(syntax=[ast.Attribute])
def record_field(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`output.logits`."""
    record = record_of_value(context.facts.records, context.kinds(node.value))
    found = None if record is None else field(record, node)
    return None if found is None else context.generic_visit(found)
