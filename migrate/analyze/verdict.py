"""An analysed model: its operators, what it costs, and one line that says whether it moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .operators import BY_HAND, COMPOSED, NO_ROW, Operator


@dataclass(frozen=True)
class Analysis:
    """What `msmigrate analyze` found in a model.

    costs: parameters, parameter_bytes, flops and activation_bytes, None where that could not be told.
    """

    name: str
    kind: str  # torch or ONNX
    mode: str
    target: str
    operators: tuple[Operator, ...]
    costs: Mapping[str, int | None]
    inputs: str
    family: str = ""
    device: str = "meta"
    never_ran: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[Operator]:
        """The operators without a counterpart."""
        return [operator for operator in self.operators if operator.missing]

    @property
    def pitfalls(self) -> dict[str, list[str]]:
        """The faults that its rows warn of -> the operators whose rows do."""
        found: dict[str, list[str]] = {}
        for operator in self.operators:
            for fault in operator.pitfalls:
                found.setdefault(fault, []).append(operator.torch)
        return found

    @property
    def verdict(self) -> str:
        """One line: whether the model moves, and how its operators do."""
        if not self.operators:
            return f"{self.name}: nothing ran that the mapping table could speak of"
        lacking = self.missing
        total = _count(len(self.operators), "operator")
        if not lacking:
            return f"{self.name} moves: {total}, {self._ways()}{self._basis()}"
        names = ", ".join(_reason(operator) for operator in lacking[:3])
        more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
        return f"{self.name} does not move yet: {len(lacking)} of {total} missing: {names}{more}"

    def _ways(self) -> str:
        composed = [operator for operator in self.operators if operator.way == COMPOSED]
        by_hand = [operator for operator in self.operators if operator.way == BY_HAND]
        direct = len(self.operators) - len(composed) - len(by_hand)
        if direct == len(self.operators):
            return "all direct"
        parts = [f"{direct} direct"] if direct else []
        parts += [f"{len(composed)} composed ({_names(composed)})"] if composed else []
        parts += [f"{len(by_hand)} with a change by hand ({_names(by_hand)})"] if by_hand else []
        return ", ".join(parts)

    def _basis(self) -> str:
        if self.target != "CPU":
            return f" (from documentation: nothing ran on {self.target})"
        unmeasured = [operator for operator in self.operators if not operator.measured]
        return f" ({_names(unmeasured)}: documented, not run)" if unmeasured else ""


def torch_analysis(name: str, report: Mapping[str, Any], operators: list[Operator], mode: str, target: str) -> Analysis:
    """Put together what the worker reported of a torch model and how its operators were judged."""
    return Analysis(
        name=name,
        kind="torch",
        mode=mode,
        target=target,
        operators=tuple(operators),
        costs=report["costs"],
        inputs=report["inputs"],
        family=report["family"],
        device=report["device"],
        never_ran=tuple(report["never_ran"]),
        notes=tuple(report["notes"]),
        versions=report["versions"],
    )


def _reason(operator: Operator) -> str:
    if operator.way == NO_ROW:
        return f"{operator.torch} (no row)"
    value, told, _ = (operator.why or "").partition(" has no counterpart in ")
    return f"{operator.torch} ({f'with {value}' if told else 'no counterpart'})"


def _names(operators: list[Operator]) -> str:
    names = ", ".join(operator.torch for operator in operators[:3])
    return f"{names} and {len(operators) - 3} more" if len(operators) > 3 else names


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
