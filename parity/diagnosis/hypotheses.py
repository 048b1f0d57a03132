"""The hypotheses that diagnosis tries on a module: data of the mapping tables, one verb and its values each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

from ...errors import BadInput, UnknownRow, Unsupported
from ...mappings import table
from ...mappings.row_reader import Fields, read_yaml
from ..result import ModuleVerdict

C = TypeVar("C")
ANY = "any class"  # stands among `of` for a hypothesis on what a class's own forward does


@dataclass(frozen=True)
class Hypothesis(Generic[C]):
    """One thing that MindSpore's side may do otherwise.

    fault: the id of the known fault, None for a mistake that is only plausible. text: what it is, in words. change:
    what torch does under it: a mutation of a module, another loss, pipeline or update rule. fix: what to do, where the
    fault's row does not say it. place: where, in that part of the step.
    """

    fault: str | None
    text: str
    change: C
    fix: str = ""
    place: str = ""


@dataclass(frozen=True)
class HypothesisRow:
    """What a table says of one way in which a module may be computed otherwise.

    verb: a name among the mutations of mutations/; of: the torch classes it is tried
    on; values: what the verb takes; fault: the id of the known fault, None for a mistake that is only plausible.
    """

    verb: str
    of: tuple[str, ...]
    values: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None


def module_hypotheses(verbs: Collection[str], without: Collection[str] = ()) -> list[HypothesisRow]:
    """Every hypothesis whose verb is among `verbs`, those of known faults first; `without` leaves fault ids out."""
    return [h for h in everything() if h.verb in verbs and h.fault not in without]


@cache
def everything() -> tuple[HypothesisRow, ...]:
    """All hypotheses of the tables. Raises BadInput for an entry without a verb."""
    known = [h for fault in table.faults().values() for h in _of_fault(fault.id, fault.hypothesis)]
    plausible = [_read(entry, None, ()) for entry in read_yaml(table.HERE / "hypotheses.yaml")]
    return (*known, *plausible)


def _of_fault(fault: str, content: Mapping[str, Any]) -> Iterator[HypothesisRow]:
    if not content:
        return
    classes = tuple(row.short for row in table.rows("layer") if fault in row.pitfalls)
    for entry in content.get("any", [content]):
        yield _read(entry, fault, classes)


def _read(entry: Any, fault: str | None, classes: tuple[str, ...]) -> HypothesisRow:
    fields = Fields(entry, f"hypothesis of {fault or entry!r}")
    verb = fields.take("verb", str)
    of = fields.take("of", list, default=list(classes))
    if not all(isinstance(name, str) for name in of):
        raise BadInput(f"{fields.where}: `of` names torch classes")
    return HypothesisRow(verb, tuple(of), fields.content, fault)


def fix(cell: str, kind: str, arguments: Mapping[str, Any], changed: Collection[str]) -> str:
    """The MindSpore code that is right: the Cell's place and its class with the arguments that matter
    (all, where all are at fault).

    cell: attribute path, empty for the net itself; arguments: the torch module's own; changed: those at fault. Empty
    where the table has no row of that class, or no counterpart of these arguments.
    """
    try:
        call = table.translate(f"torch.nn.{kind}", arguments)
        row = table.row(f"torch.nn.{kind}")
    except (UnknownRow, BadInput, Unsupported):
        return ""
    wanted = [name for argument in row.arguments if argument.torch in changed for name in argument.to]
    written = ", ".join(f"{name}={call.kwargs[name]!r}" for name in wanted if name in call.kwargs)
    short = call.target.replace("mindspore.", "", 1)
    if set(changed) == set(arguments):
        return f"{place(cell)}: {short}({written})"
    return f"{place(cell)}: {short}(…, {written})" if written else ""


def place(cell: str) -> str:
    """A Cell's path as people write it: layer1.0.bn2 is net.layer1[0].bn2."""
    return "net" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in cell.split(".") if part)


def cell_of(verdict: ModuleVerdict) -> str:
    """The Cell's attribute path, empty for the net itself."""
    path = verdict.mindspore.split(" ")[0] if verdict.mindspore else verdict.name
    return "" if path.startswith("(") else path
