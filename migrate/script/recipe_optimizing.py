"""The sections of a recipe that say how the weights move: optimizer, schedule, clip, accumulate."""

from __future__ import annotations

import ast
import re

from ...mappings import table
from ...mappings.rows import Row
from . import constants, names, recipe_keys
from .loops import EPOCHS
from .reading import Reader
from .recipe_keys import calls, options, surely
from .recipe_values import Entry, number, part, place, short_name, sources
from .rewriting import SCHEDULES
from .values import Items, Pairs, Seen, Thing, Value, is_known, known

OPT_NAMES = {"sgd": "SGD", "momentum": "SGD", "nesterov": "SGD"}  # timm's names that are no class's


def optimizer(reader: Reader) -> Entry:
    """The section `optimizer`; every recipe has one."""
    found = calls(reader, "optimizer")
    chosen = next(iter(surely(found)), None)
    if chosen is None:
        said = ["no optimizer was found: an example", *(place(seen) for seen in options(found))]
        return Entry("optimizer", {"name": "SGD", "args": {"lr": 0.1}}, said)
    row = names.row_of(chosen.name)
    if row is None or row.kind != "optimizer":
        return _made_by_name(chosen)
    section = part_section("optimizer", chosen, row)
    groups = chosen.arguments[0] if chosen.arguments and chosen.arguments[0].name in (None, "params") else None
    if groups is not None and not re.search(r"parameters\(\)$", chosen.source.text(groups.node)):
        section.comments.append(f"it is given {chosen.source.text(groups.node)}, and not model.parameters():")
        section.comments.append("no_weight_decay and groups say what of them is treated otherwise")
        _decays(section, groups.value)
    section.comments += [f"with other arguments: {place(seen)}" for seen in options(found)]
    return section


def _decays(section: Entry, groups: Value) -> None:
    """What the groups' own weight decays say: the one that is not zero, and that some are left out of it."""
    listed = [group for group in groups.items if isinstance(group, Pairs)] if isinstance(groups, Items) else []
    args = next((entry for entry in section.below or [] if entry.key == "args"), None)
    if not listed or args is None or args.below is None or section.below is None:
        return
    common = next((entry.value for entry in args.below if entry.key == "weight_decay"), 0.0)
    values = [group.pairs.get("weight_decay") for group in listed]
    sizes = [common if value is None else number(value) for value in values]
    decays = {float(size) for size in sizes if isinstance(size, (int, float)) and size}
    if None in sizes or len(decays) != 1:
        return  # which a recipe says by groups of its own
    (decay,) = decays
    told = next((value for value, size in zip(values, sizes, strict=True) if size and value is not None), None)
    if told is not None:
        args.below = [entry for entry in args.below if entry.key != "weight_decay"]
        args.below.append(Entry("weight_decay", decay, sources(told)))
    if 0 in sizes:
        said = ["the weight decay of some of the groups is 0; where these are norms and biases, take this in:"]
        section.below.append(Entry("no_weight_decay", ["norm", "bias"], said, out=True))


def _made_by_name(seen: Seen) -> Entry:
    """timm's factories take the optimizer's name; they leave norms and biases out of the weight decay."""
    told = known(seen.get("opt", 1))
    rows = {row.short.lower(): row for row in table.rows("optimizer")}
    row = rows.get(OPT_NAMES.get(str(told), str(told)).lower())
    if row is None:
        said = [place(seen), "which optimizer it makes cannot be told: an example"]
        return Entry("optimizer", {"name": "SGD", "args": {"lr": 0.1}}, said)
    section = Entry(
        "optimizer", comments=[place(seen), *sources(seen.get("opt", 1))], below=[Entry("name", short_name(row))]
    )
    args = []
    for name, at in (("lr", 2), ("weight_decay", 3), ("momentum", 4)):
        value = seen.get(name, at)
        if number(value) is not None and any(argument.torch == name for argument in row.arguments):
            args.append(Entry(name, number(value), sources(value)))
    if told in ("sgd", "nesterov"):
        args.append(Entry("nesterov", True, ["timm's sgd is Nesterov's"]))
    assert section.below is not None
    section.below.append(Entry("args", below=args) if args else Entry("args", {}))
    section.below.append(Entry("no_weight_decay", ["norm", "bias"], ["timm leaves these out by default"]))
    return section


def part_section(key: str, seen: Seen, row: Row) -> Entry:
    """A section that names a row and its arguments."""
    name, args, untold = part(seen, row)
    section = Entry(key, comments=[place(seen), *untold], below=[Entry("name", name)])
    assert section.below is not None
    if any(not entry.out for entry in args):
        section.below.append(Entry("args", below=args))
    section.out = any(": write it here" in text for text in untold)
    return section


def schedule(reader: Reader) -> Entry | None:
    """The section `schedule`: the outermost one, and when it moves."""
    found = calls(reader, "schedule")
    live = [seen for seen in surely(found) if _is_schedule(seen)]
    inside = {id(inner.seen) for seen in live for argument in seen.arguments or [] for inner in _things(argument.value)}
    outer = [seen for seen in live if id(seen) not in inside]
    if not outer:
        said = [f"{place(seen)}: write it as one of torch's schedules" for seen in surely(found)]
        said += [f"with other arguments: {place(seen)}" for seen in options(found)]
        said += [f"{o.file} line {o.line}: {o.text} = …: set by hand; which schedule is it?" for o, _ in reader.rates]
        return Entry("schedule", {"name": "CosineAnnealingLR", "args": {"T_max": 90}}, said, out=True) if said else None
    chosen = outer[-1]
    row = names.row_of(chosen.name)
    assert row is not None
    holds_others = any(argument.verb == SCHEDULES for argument in row.arguments)
    section = _sequence(chosen, row) if holds_others else part_section("schedule", chosen, row)
    section.comments += [f"with other arguments: {place(seen)}" for seen in options(found)]
    assert section.below is not None
    section.below.insert(1, _moves(reader))
    return section


def _is_schedule(seen: Seen) -> bool:
    row = names.row_of(seen.name)
    return row is not None and row.kind == "schedule"


def _things(value: Value) -> list[Thing]:
    items = getattr(value, "items", [value])
    return [item for item in items if isinstance(item, Thing)] if isinstance(items, list) else []


def _sequence(seen: Seen, row: Row) -> Entry:
    """Schedules one after another."""
    section = Entry("schedule", comments=[place(seen)], below=[Entry("name", short_name(row))])
    members = []
    for thing in _things(seen.get("schedulers", 1) or Value()):
        inner = names.row_of(thing.name)
        if inner is None or inner.kind != "schedule" or thing.seen is None:
            section.comments.append(f"{thing.name} has no row: write it here")
            section.out = True
            continue
        name, args, untold = part(thing.seen, inner)
        comments = [place(thing.seen), *(text for entry in args for text in entry.comments), *untold]
        value = {"name": name, "args": {entry.key: entry.value for entry in args if not entry.out}}
        members.append(Entry("-", value, list(dict.fromkeys(comments))))
        section.out = section.out or any(": write it here" in text for text in untold)
    milestones = seen.get("milestones", 2)
    below = [Entry("schedulers", below=members)]
    if is_known(milestones):
        below.append(Entry("milestones", known(milestones), sources(milestones)))
    else:
        section.out = True
        section.comments.append("its milestones cannot be told: write them here")
    assert section.below is not None
    section.below.append(Entry("args", below=below))
    return section


def _moves(reader: Reader) -> Entry:
    """Whether the schedule moves after every step or after every epoch."""
    steps = [s for s in reader.seen if s.name.endswith(".step") and getattr(s.receiver, "family", "") == names.SCHEDULE]
    chosen = next(iter(surely(recipe_keys.by_sureness(steps))), None)
    if chosen is None:
        return Entry("per", "step", ["where the script calls its step() was not found"])
    by_epoch = chosen.loops[-1:] == (EPOCHS,)
    return Entry("per", "epoch" if by_epoch else "step", [place(chosen)])


def clip(reader: Reader) -> Entry | None:
    """The section `clip`."""
    found = calls(reader, recipe_keys.CLIP)
    scalers = [seen for seen in reader.seen if seen.name.endswith("NativeScaler.__call__") and seen.get("clip_grad", 2)]
    for seen in [*surely(found), *surely(scalers)]:
        value = seen.get("max_norm", 1) if seen in found else seen.get("clip_grad", 2)
        norm = seen.get("norm_type", 2) if seen in found else None
        size = number(value)
        if norm is not None and known(norm) != 2:
            return Entry("clip", {"max_norm": 1.0}, [place(seen), "a recipe clips by the L2 norm only"], out=True)
        if size is not None and size > 0:
            return Entry("clip", {"max_norm": float(size)}, [place(seen), *sources(value)])
        return Entry("clip", {"max_norm": 1.0}, [place(seen), "its max_norm cannot be told"], out=True)
    for seen in options(found):
        return Entry("clip", {"max_norm": 1.0}, [f"{place(seen)}, only where {seen.condition}"], out=True)
    return None


def accumulate(reader: Reader) -> tuple[int, list[str]]:
    """How many micro-batches make a step: N where the optimizer's step stands under `… % N == 0`."""
    for seen in reader.seen:
        if not seen.name.endswith(".step") or getattr(seen.receiver, "family", "") != names.OPTIMIZER:
            continue
        for test, scope in seen.tests:
            for node in ast.walk(test):
                modulo = node.left if isinstance(node, ast.Compare) else None
                if isinstance(modulo, ast.BinOp) and isinstance(modulo.op, ast.Mod):
                    value = reader.value(modulo.right, scope)
                    count = known(value)
                    if type(count) is int and 1 < count <= 4096 and constants.truth(value):
                        return count, [f"{place(seen)}, where {seen.source.text(test)}", *sources(value)]
    return 1, []
