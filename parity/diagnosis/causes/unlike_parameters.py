"""Causes that stand in the two nets themselves: what one of them lacks, freezes, or holds in another shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...align.alignment import Alignment, Lack, Unlike
from ...align.model_structure import parent
from ...result import Cause, ModuleVerdict

SHOWN = 4  # names, in one sentence
STAGES = {Lack.FROZEN: "gradients", Lack.TRAINS: "gradients"}
FAULTS = {
    Lack.MISSING: "parameter-missing",
    Lack.CONSTANT: "tensor-not-parameter",
    Lack.SHARED: "shared-weights",
    Lack.EXTRA: "parameter-extra",
    Lack.UNSHARED: "shared-weights",
    Lack.FROZEN: "parameter-frozen",
    Lack.TRAINS: "requires-grad-frontend",
    Lack.SHAPE: "parameter-shape",
}


def explain(alignment: Alignment) -> list[Cause]:
    """One cause for each sort of difference between the nets: the tensors of one module together, and what several
    modules of a class share once."""
    modules: dict[tuple[Lack, str], list[Unlike]] = {}
    for each in alignment.unlike:
        modules.setdefault((each.lack, each.module or parent(each.name)), []).append(each)
    sorts: dict[tuple[object, ...], list[list[Unlike]]] = {}
    for (lack, path), tensors in modules.items():
        own = tuple(each.name[len(path) :] for each in tensors)
        sorts.setdefault((lack, bool(tensors[0].module), tensors[0].owner, own), []).append(tensors)
    return [_cause(alike) for alike in sorts.values()]


def without_consequences(
    causes: Iterable[Cause], modules: Iterable[ModuleVerdict], left: Sequence[Unlike]
) -> list[Cause]:
    """The causes without those that nothing explains where the nets are not alike: they follow from it, unless a module
    that has no part in it failed alone.

    left: what torch's model could not be given of MindSpore's net; it explains why the modules around it fail.
    """
    alone = {module.name for module in modules if module.own and not explains(left, module.name)}
    return [cause for cause in causes if cause.fault or cause.ratio is not None or cause.place in alone]


def explains(unlike: Iterable[Unlike], path: str) -> bool:
    """Whether something inside the module of this torch path is not alike."""
    return any(not path or each.within == path or each.within.startswith(f"{path}.") for each in unlike)


def _cause(alike: Sequence[Sequence[Unlike]]) -> Cause:
    tensors, first = alike[0], alike[0][0]
    where = [each[0].module or (parent(each[0].name) if len(each) > 1 else each[0].name) for each in alike]
    place, text = where[0] or "the model itself", first.text
    if first.module:
        text += f", with {_few([each.name for each in tensors])}"
    elif len(tensors) > 1:
        text += f"; so it is with {_few([each.name for each in tensors[1:]])}"
    if len(where) > 1:
        place += f" and {len(where) - 1} more"
        text += f"; and in {_few(where[1:])}"
    count = sum(map(len, alike))
    evidence = f"read from the two nets, before a step: {count} tensor{'s' if count > 1 else ''}"
    return Cause(STAGES.get(first.lack, "init"), place, _fault(first), text, first.fix, evidence)


def _fault(each: Unlike) -> str:
    own = each.name.rpartition(".")[2]
    if each.lack is Lack.MISSING and own == "bias" and ("Conv" in each.owner or each.owner == "Linear"):
        return "conv-bias-default"
    if each.lack is Lack.EXTRA and "InstanceNorm" in each.owner:
        return "in-affine-default"
    return FAULTS[each.lack]


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
