"""One operator compared with its row: direct, composed, by hand, missing; the places of its uses, abbreviated.

A tensor is only its dtype and its number of axes; a value that JSON cannot hold is a mapping with one key for its kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...errors import BadInput, Unsupported
from ...mappings import table
from ...mappings.aliases import find, rows_by_name, shown
from ...mappings.rows import EQUAL, MISSING, NOT_RUN, SAME_DISTRIBUTION, Argument, Call, Row
from ...mappings.verbs import VERBS

MODES = ("pynative", "graph")
TARGETS = ("CPU", "Ascend", "GPU")
DIRECT, COMPOSED, BY_HAND = "direct", "composed", "by hand"  # MindSpore's own; msmigrate's; with a listed change
NO_ROW = "no row"  # nobody has looked for a counterpart yet; `missing` means that there is none
IN_PLACE = "torch writes the result into its first argument; in MindSpore use the returned value"
OURS = "msmigrate.nn."


def check_target(mode: str, target: str) -> None:
    """Raise BadInput for a mode or a target that MindSpore does not have."""
    if mode not in MODES or target not in TARGETS:
        known = f"mode is one of {', '.join(MODES)}, target one of {', '.join(TARGETS)}"
        raise BadInput(f"{known}: got {mode} and {target}")


@dataclass(frozen=True)
class Operator:
    """One operator of a model, and its conversion.

    way: DIRECT, COMPOSED, BY_HAND, MISSING or NO_ROW. status: the row's, for the given mode and target. calls: in one
    pass in eval mode; train_calls: in one in train mode.
    """

    torch: str
    way: str
    mindspore: str | None = None
    status: str = NO_ROW
    kind: str = "function"
    calls: int = 0
    train_calls: int = 0
    places: tuple[str, ...] = ()  # module paths
    lines: tuple[str, ...] = ()  # of source, as file:line
    call: str | None = None  # the first use, as written in MindSpore
    differs: tuple[str, ...] = ()  # how its arguments cross, where that is not by the same name
    changes: tuple[str, ...] = ()  # what has to be changed by hand
    why: str | None = None  # why it is missing, or not exact
    refused: str | None = None  # the argument and its value that make it missing: momentum=None
    exact: bool = True
    pitfalls: tuple[str, ...] = ()  # ids of faults
    docs: Mapping[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> bool:
        """Whether it has no counterpart in the table."""
        return self.way in (MISSING, NO_ROW)

    @property
    def measured(self) -> bool:
        """Whether its row was run in this mode on this target, and agreed."""
        return self.status in (EQUAL, SAME_DISTRIBUTION)


def operators(uses: Iterable[Mapping[str, Any]], mode: str, target: str) -> list[Operator]:
    """Judge recorded uses, one operator for each row or unknown name, in the order in which they were first called."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for use in uses:
        groups.setdefault(_name(use), []).append(use)
    return [_judge(name, group, mode, target) for name, group in groups.items()]


def status_of(row: Row, mode: str, target: str) -> str:
    """The row's status for a mode on a target; for GPU a row only knows that MindSpore documents it."""
    if row.mindspore is None:
        return MISSING
    if target == "Ascend":
        return row.status["ascend"]
    return row.status[mode] if target == "CPU" else NOT_RUN


def _name(use: Mapping[str, Any]) -> str:
    row = find(use["name"]).row
    if row is not None:
        return row.torch
    owners = use.get("owners", [])
    if len(owners) == 1 and owners[0].startswith("torch.nn."):
        return str(owners[0])  # a function that a torch module calls inside
    return shown(use["name"])


def _judge(name: str, uses: list[Mapping[str, Any]], mode: str, target: str) -> Operator:
    found: dict[str, Any] = {
        "torch": name,
        "calls": sum(use["eval"] for use in uses),
        "train_calls": sum(use["train"] for use in uses),
        "places": _merged(use["paths"] for use in uses),
        "lines": _merged(use.get("lines", ()) for use in uses),
    }
    row = rows_by_name().get(name)
    if row is None:
        kind = "module" if name.startswith("torch.nn.") and name.split(".")[2][:1].isupper() else "function"
        return Operator(way=NO_ROW, kind=kind, why="the mapping table has no row of it", **found)
    status = status_of(row, mode, target)
    found |= {"mindspore": row.mindspore, "status": status, "kind": row.kind, "exact": row.exact}
    found |= {"pitfalls": row.pitfalls, "docs": row.docs, "why": row.why, "lines": found["lines"]}
    if status == MISSING:
        return Operator(way=MISSING, changes=(row.rewrite,) if row.rewrite else (), **found)
    crossed = _crossed(row, uses)
    changes = _with_places(crossed.changes)
    if row.rewrite:
        changes.append(row.rewrite)
    if any(find(use["name"]).in_place for use in uses):
        changes.append(IN_PLACE)
    composed = row.composed or any(call.target.startswith("msmigrate.") for call in crossed.calls)
    way = MISSING if crossed.hopeless else BY_HAND if crossed.remedied else COMPOSED if composed else DIRECT
    if crossed.hopeless:
        found |= {"why": "; ".join(_with_places(crossed.hopeless)), "refused": crossed.refused}
    return Operator(
        way=way,
        call=source(crossed.calls[0]) if crossed.calls else None,
        differs=tuple(differences(row)),
        changes=tuple(dict.fromkeys(changes)),
        **found,
    )


@dataclass
class _Crossed:
    """The conversions of the distinct uses of one operator."""

    calls: list[Call] = field(default_factory=list)
    changes: dict[str, list[str]] = field(default_factory=dict)  # changes to make by hand -> where
    hopeless: dict[str, list[str]] = field(default_factory=dict)  # uses that have no replacement -> where
    remedied: bool = False  # whether one of the changes is for a value that has no counterpart
    refused: str | None = None  # the first value that has no replacement


def _crossed(row: Row, uses: Iterable[Mapping[str, Any]]) -> _Crossed:
    """Translate every distinct use."""
    crossed = _Crossed()
    for use in uses:
        positional, named = _arguments(row, use)
        try:
            crossed.calls.append(_translated(row, positional, named, crossed.changes))
        except Unsupported as error:
            remedied = has_remedy(row, error)
            texts = crossed.changes if remedied else crossed.hopeless
            texts.setdefault(without_row(row, error), []).extend(use["paths"])
            crossed.remedied = crossed.remedied or remedied
            if not remedied and crossed.refused is None and error.argument is not None:
                crossed.refused = f"{error.argument}={error.value!r}"
        except BadInput as error:
            if use["kind"] == "function":
                crossed.changes.setdefault(f"look at its arguments: {error}", []).extend(use["paths"])
        except (TypeError, ValueError, AttributeError, KeyError, IndexError):
            continue  # a verb got a tensor where the row's own cases have a number: nothing is known of that
    return crossed


def has_remedy(row: Row, error: Unsupported) -> bool:
    """Whether the row says what to do instead where a value has no counterpart."""
    return error.row == row.torch and error.remedy is not None


def without_row(row: Row, error: Unsupported) -> str:
    """The error's message for a reader who knows which row it is about."""
    return error.detail if error.row == row.torch else str(error)


def _arguments(row: Row, use: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    positional = [decode(value) for value in use["args"]]
    if find(use["name"]).swapped:
        positional[:2] = reversed(positional[:2])
    first = row.arguments[0] if row.arguments else None
    listed = first is not None and first.torch == "tensors" and not first.rest
    if listed and positional and all(isinstance(value, TensorValue) for value in positional):
        positional = [positional]  # torch.meshgrid(a, b) is torch.meshgrid([a, b])
    return positional, {key: decode(value) for key, value in use["kwargs"].items()}


def _translated(row: Row, positional: list[Any], named: dict[str, Any], changes: dict[str, list[str]]) -> Call:
    """Translate one use; torch's writing into the input is noted as a change to make, and not refused."""
    try:
        return table.translate(row.torch, named, tuple(positional))
    except Unsupported:
        names = [argument.torch for argument in row.arguments]
        if "inplace" not in names:
            raise
        place = names.index("inplace")
        if place < len(positional):
            positional[place] = False
        else:
            named["inplace"] = False
        call = table.translate(row.torch, named, tuple(positional))
        changes.setdefault(IN_PLACE, [])
        return call


def _with_places(texts: Mapping[str, list[str]]) -> list[str]:
    return [f"{text} (in {', '.join(patterns(places, 2))})" if places else text for text, places in texts.items()]


def _merged(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for items in lists for item in items))


def differences(row: Row) -> list[str]:
    """How a row's arguments cross, in words, without those that cross by their own name."""
    texts = [_difference(argument) for argument in row.arguments]
    return [text for text in texts if text] + [f"{item.mindspore}={item.value!r} is written" for item in row.written]


def _difference(argument: Argument) -> str | None:
    theirs = ", ".join(argument.to)
    says = f" ({VERBS[argument.verb].description})" if argument.verb else ""
    if not argument.to or (theirs == argument.torch and not says and not argument.values):
        return None
    values = f" ({', '.join(f'{ours!r} → {other!r}' for ours, other in argument.values)})" if argument.values else ""
    return f"{argument.torch} → {theirs}{says}{values}"


def source(call: Call) -> str:
    """Write a MindSpore call as source; a tensor is the name of its argument."""
    words = [_argument(name, value) for name, value in call.kwargs.items()]
    return f"{call.target}({', '.join(words)})"


def _argument(name: str, value: Any) -> str:
    if isinstance(value, Call):
        return f"{name}={source(value)}"
    return name if _holds_tensor(value) else f"{name}={value!r}"


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, TensorValue):
        return True
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    inner = value.kwargs if isinstance(value, Call) else value
    items = inner.values() if isinstance(inner, Mapping) else inner if isinstance(inner, (list, tuple)) else ()
    return any(_holds_tensor(item) for item in items)


def several(names: Sequence[str]) -> str:
    """The first three of many names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def count(number: int, what: str) -> str:
    """`1 operator`, `2 operators`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def patterns(places: Iterable[str], most: int = 4) -> list[str]:
    """Return layer1.0.conv1 and layer1.1.conv1 as `layer*.*.conv* (2)`, at most `most`, and how many more."""
    groups: dict[str, list[str]] = {}
    for place in places:
        groups.setdefault(re.sub(r"\d+", "*", place), []).append(place)
    lines = [group[0] or "(the top)" if len(group) == 1 else f"{p} ({len(group)})" for p, group in groups.items()]
    return lines if len(lines) <= most else [*lines[:most], f"and {len(lines) - most} more"]


class TensorValue(NamedTuple):
    """A tensor among the arguments of a call."""

    dtype: str
    rank: int

    def __repr__(self) -> str:
        return "a tensor"


class Thing(NamedTuple):
    """A value of which only the source text is known."""

    text: str

    def __repr__(self) -> str:
        return self.text


def decode(value: Any) -> Any:
    """Return the value that the worker had encoded."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return TensorValue(*content)
    if kind == "tuple":
        return tuple(decode(item) for item in content)
    if kind == "slice":
        return slice(*(decode(item) for item in content))
    if kind == "float":
        return float(content)
    if kind == "dtype":
        return content  # a dtype is its name in the table, too
    return ... if kind == "ellipsis" else Thing(content)
