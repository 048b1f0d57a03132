"""Where a fault is, in few words: many parameter names as one phrase."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...training.step.parameter_groups import is_norm
from ..trace import Trace


def owners(trace: Trace, names: Collection[str]) -> dict[str, str]:
    """Parameter name -> the torch class of the module that owns it, as far as the trace's outputs tell ("")."""
    kinds = {e.name: e.module for e in trace.entries.values() if e.stage == "forward" and e.module}
    return {name: kinds.get(name.rpartition(".")[0], "") or "" for name in names}


def place(names: Collection[str], everything: Collection[str], kinds: Mapping[str, str]) -> str:
    """A phrase for `names` among `everything`; kinds: parameter name -> class of its module.

    One name stands for itself, all of one module for the module. Of several the first is named, how many more there
    are, and what they have in common: "bn1.weight and 33 more: every norm's weight and bias".
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
