"""The sections of a recipe about its updates: optimizer, schedule, clip, train, seed; and what makes an optimizer or a
model that was not read."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from ...mappings import table
from ...mappings.aliases import row_of
from ...mappings.rows import Row
from .. import library_names as names
from ..analyze.rewritten_call import SCHEDULES
from ..read_script.abstract_values import (
    CallArgument,
    DictValue,
    LibraryObject,
    LibraryUse,
    ListValue,
    ParsedArguments,
    ScriptFunction,
    ScriptObject,
    Value,
    is_known,
    known,
)
from ..read_script.expressions import BATCHES, EPOCHS
from ..read_script.interpreter import CERTAINTIES, OPTION, UNCALLED, Interpreter
from .data_flow import ADDS, GIVEN, IS, Definition, Flow, Statement
from .data_section import around_steps
from .passed_over import SEEDS, matches, method_reason, name_of, reason
from .recipe_entries import (
    ASK,
    CLIP,
    SEED,
    TENSORBOARD,
    Comment,
    Entry,
    argument_text,
    by_sureness,
    calls,
    distinct,
    number,
    only_where,
    options,
    part,
    place,
    setting,
    short_name,
    sources,
    surely,
    unread,
)
from .relevance import named, of_one_class
from .roles import MODEL, PARTS, Roles
from .trained_model import all_handed_over, misses_some, several_train, trained, unwrapped
from .trainers import MEASURED, Given, handed_to_trainers, maker_of, not_found, of_trainer, words_of

OPT_NAMES = {"sgd": "SGD", "momentum": "SGD", "nesterov": "SGD"}  # timm's names that are not a class's


def optimizer(interpreter: Interpreter, flow: Flow, fit: Given | None) -> Entry:
    """The section `optimizer`; every recipe has one."""
    found = calls(interpreter, "optimizer")
    several = distinct(surely(found))
    made = fit.optimizer() if fit is not None and not found else None
    if made is not None:
        return made
    if len(several) != 1:
        comments = [f"{place(seen)}: one of {len(several)} optimizers; a recipe has one" for seen in several]
        comments = comments or [
            *((fit.updates() if fit is not None and not surely(found) else []) or [unread_optimizer(flow)]),
            *(f"with other arguments: {place(seen)}" for seen in options(found)),
        ]
        return Entry("optimizer", ASK, comments)
    chosen = several[0]
    row = row_of(chosen.name)
    if row is None or row.kind != "optimizer":
        return _made_by_name(chosen)
    section = part_section("optimizer", chosen, row)
    _ask_where_runs_differ(section, [seen for seen in surely(found) if seen.node is chosen.node], row, fit)
    section.roots[id(chosen.node)] = "optimizer"
    section.leave(chosen, *map(str, range(len(row.arguments))), *(argument.torch for argument in row.arguments))
    groups = chosen.arguments[0] if chosen.arguments and chosen.arguments[0].name in (None, "params") else None
    node = all_handed_over(interpreter, groups.node) if groups is not None else None
    one = _only_group(interpreter, groups)
    whole = any(_whole_model(interpreter, given) for given in (node, one) if given is not None)
    if trained(interpreter) is not None and not whole:
        text = chosen.source.text(groups.node) if groups is not None else "its parameters"
        at = (chosen.source.shown, (groups.node if groups is not None else chosen.node).lineno)
        section.left.append((at, f"{' '.join(text.split())} is all that {chosen.name} trains, not the whole model"))
    if groups is not None and node is groups.node and not re.search(r"parameters\(\)$", chosen.source.text(node)):
        if one is None:
            section.comments.append(f"it gets {chosen.source.text(groups.node)}, and not model.parameters():")
            section.comments.append("no_weight_decay and groups are for parameters with other options")
        _decays(section, groups.value)
    _ask_for_rate(interpreter, section, chosen)
    section.comments += [f"with other arguments: {place(seen)}" for seen in options(found)]
    return section


def _ask_where_runs_differ(section: Entry, runs: list[LibraryUse], row: Row, fit: Given | None) -> None:
    """Ask for the arguments that one call gives several values: in its runs, or in the objects that it is made for."""
    args = next((entry for entry in section.below or [] if entry.key == "args"), Entry("args", below=[]))
    several = [{entry.key: entry.value for entry in part(seen, row).args} for seen in runs]
    nodes = {one.name: one.node for seen in runs for one in seen.arguments or []}
    for entry in args.below or []:
        of_objects = fit is not None and fit.differs() and _reads_self(nodes.get(entry.key))
        if of_objects or len({repr(values.get(entry.key)) for values in several}) > 1:
            entry.value, entry.comments = ASK, [*entry.comments, "one call makes several, with different values"]


def _reads_self(node: ast.expr | None) -> bool:
    return node is None or any(isinstance(one, ast.Name) and one.id == "self" for one in ast.walk(node))


def _ask_for_rate(interpreter: Interpreter, section: Entry, seen: LibraryUse) -> None:
    """Ask for a rate that the optimizer is not given where the script sets it by hand, or hands over arguments that
    were not read: torch's default is not its."""
    by_hand = [f"the optimizer is given none, and it is set by hand: {one}" for one in _rates_by_hand(interpreter)]
    unread_ = next((a for a in seen.arguments or [] if a.name in ("*", "**")), None)
    by_hand = by_hand or ([f"{argument_text(seen, unread_)} was not read"] if unread_ is not None else [])
    args = next((entry for entry in section.below or [] if entry.key == "args"), None)
    if by_hand and section.below is not None and not any(one.key == "lr" for one in (args.below or [] if args else [])):
        if args is None:
            section.below.append(args := Entry("args", below=[]))
        rate = Entry("lr", ASK, by_hand)
        args.below = [rate, *(args.below or [])]


def _rates_by_hand(interpreter: Interpreter) -> list[str]:
    """The places where a rate is set by hand, each once; without those of other arguments, or that nothing calls."""
    rates = [origin for origin, certainty in interpreter.rates if certainty not in (OPTION, UNCALLED)]
    return list(dict.fromkeys(f"{one.file} line {one.line}: {one.text} = …" for one in rates))


def _only_group(interpreter: Interpreter, groups: CallArgument | None) -> ast.expr | None:
    """The parameters of a list of one group: [{"params": model.parameters(), "lr": 0.1}]."""
    listed = groups.node if groups is not None else None
    if not isinstance(listed, ast.List) or len(listed.elts) != 1 or not isinstance(listed.elts[0], ast.Dict):
        return None
    pairs = zip(listed.elts[0].keys, listed.elts[0].values, strict=True)
    found = next((value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "params"), None)
    return all_handed_over(interpreter, found) if found is not None else None


def _whole_model(interpreter: Interpreter, node: ast.expr) -> bool:
    """Whether an optimizer gets all parameters of the model that it trains."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "parameters":
        return False
    found = unwrapped(interpreter.values.get(id(node.func.value), (0, None))[1])
    return found is not None and found is trained(interpreter)


def _decays(section: Entry, groups: Value) -> None:
    """Take from the groups their common rate, and their weight decay; note where some groups have none."""
    listed = [group for group in groups.items if isinstance(group, DictValue)] if isinstance(groups, ListValue) else []
    args = next((entry for entry in section.below or [] if entry.key == "args"), Entry("args", below=[]))
    if not listed or args.below is None or section.below is None:
        return
    section.below += [args] if args not in section.below else []
    rates = [group.pairs.get("lr") for group in listed]
    if any(rate is not None for rate in rates):
        default = next((entry.value for entry in args.below if entry.key == "lr"), None)
        sizes = [default if rate is None else number(rate) for rate in rates]
        same = isinstance(sizes[0], (int, float)) and len(set(sizes)) == 1
        given = next(rate for rate in rates if rate is not None)
        comments = sources(given) if same else ["its groups have rates of their own, for the key groups"]
        args.below = [entry for entry in args.below if entry.key != "lr"]
        args.below.insert(0, Entry("lr", sizes[0] if same else ASK, comments))
    common = next((entry.value for entry in args.below if entry.key == "weight_decay"), 0.0)
    values = [group.pairs.get("weight_decay") for group in listed]
    sizes = [common if value is None else number(value) for value in values]
    decays = {float(size) for size in sizes if isinstance(size, (int, float)) and size}
    if None in sizes or len(decays) != 1:
        return  # a recipe has its key groups for these
    (decay,) = decays
    drafted = next((value for value, size in zip(values, sizes, strict=True) if size and value is not None), None)
    if drafted is not None:
        args.below = [entry for entry in args.below if entry.key != "weight_decay"]
        args.below.append(Entry("weight_decay", decay, sources(drafted)))
    if 0 in sizes:
        comments = ["the weight decay of some of the groups is 0; where these are norms and biases, uncomment this:"]
        section.below.append(Entry("no_weight_decay", ["norm", "bias"], comments, out=True))


def _made_by_name(seen: LibraryUse) -> Entry:
    """The section for a factory of timm, which takes the optimizer's name, and decays no norms and biases."""
    drafted = known(seen.get("opt", 1))
    rows = {row.short.lower(): row for row in table.rows("optimizer")}
    row = rows.get(OPT_NAMES.get(str(drafted), str(drafted)).lower())
    if row is None:
        return Entry("optimizer", ASK, [place(seen), "which optimizer it makes could not be read"])
    section = Entry(
        "optimizer",
        comments=[place(seen), *sources(seen.get("opt", 1))],
        below=[Entry("name", short_name(row))],
        roots={id(seen.node): "optimizer"},
    )
    section.leave(seen, "0", "1", "2", "3", "4", "model_or_params", "model", "opt", "lr", "weight_decay", "momentum")
    args = []
    for name, at in (("lr", 2), ("weight_decay", 3), ("momentum", 4)):
        value = setting(seen, name, at)
        if value is not None and any(argument.torch == name for argument in row.arguments):
            args.append(Entry(name, value, [unread(name)] if value == ASK else sources(seen.get(name, at))))
    if drafted in ("sgd", "nesterov"):
        args.append(Entry("nesterov", True, ["timm's sgd is Nesterov's"]))
    assert section.below is not None
    section.below.append(Entry("args", below=args) if args else Entry("args", {}))
    section.below.append(Entry("no_weight_decay", ["norm", "bias"], ["timm leaves these out by default"]))
    return section


def part_section(key: str, seen: LibraryUse, row: Row) -> Entry:
    """A section that names a row and its arguments."""
    name, args, comments, incomplete = part(seen, row)
    section = Entry(key, comments=[place(seen), *comments], below=[Entry("name", name)], out=incomplete)
    assert section.below is not None
    if any(not entry.out for entry in args):
        section.below.append(Entry("args", below=args))
    for entry in (entry for entry in args if entry.out):  # what the table refuses, and the step would be without
        at = (seen.source.shown, seen.node.lineno)
        section.left.append((at, f"{entry.key}={entry.value} of {seen.name}, which MindSpore does not have"))
    return section


def schedule(interpreter: Interpreter, fit: Given | None) -> Entry | None:
    """The section `schedule`: the outermost one, and when it moves."""
    found = calls(interpreter, "schedule")
    live = [seen for seen in surely(found) if _is_schedule(seen)]
    inside = {id(inner.seen) for seen in live for argument in seen.arguments or [] for inner in _things(argument.value)}
    outer = [seen for seen in live if id(seen) not in inside]
    if len(distinct(outer)) > 1 and len({id(s.node) for s in surely(calls(interpreter, "optimizer"))}) != 1:
        return Entry("schedule", ASK, [f"{place(seen)}: one of several" for seen in distinct(outer)])
    if not outer:
        comments = [f"{place(seen)}: write it as one of torch's schedules" for seen in surely(found)]
        comments += [f"with other arguments: {place(seen)}" for seen in options(found)]
        comments += [f"{by_hand}: set by hand; which schedule is it?" for by_hand in _rates_by_hand(interpreter)]
        made = fit.schedule() if fit is not None and not comments else None
        return Entry("schedule", ASK, comments, out=True) if comments else made
    chosen = outer[-1]
    row = row_of(chosen.name)
    assert row is not None
    holds_others = any(argument.verb == SCHEDULES for argument in row.arguments)
    section = _sequence(chosen, row) if holds_others else part_section("schedule", chosen, row)
    section.comments += [f"with other arguments: {place(seen)}" for seen in options(found)]
    assert section.below is not None
    section.below.insert(1, _moves(interpreter, fit, section, chosen))
    section.roots[id(chosen.node)] = "schedule"
    return section


def _is_schedule(seen: LibraryUse) -> bool:
    row = row_of(seen.name)
    return row is not None and row.kind == "schedule"


def _things(value: Value) -> list[LibraryObject]:
    items = getattr(value, "items", [value])
    return [item for item in items if isinstance(item, LibraryObject)] if isinstance(items, list) else []


def _sequence(seen: LibraryUse, row: Row) -> Entry:
    """Schedules one after another."""
    section = Entry("schedule", comments=[place(seen)], below=[Entry("name", short_name(row))])
    members = []
    for thing in _things(seen.get("schedulers", 1) or Value()):
        inner = row_of(thing.name)
        if inner is None or inner.kind != "schedule" or thing.seen is None:
            section.comments.append(f"{thing.name} has no row: write it here")
            section.out = True
            continue
        member = part(thing.seen, inner)
        comments = [place(thing.seen), *(text for entry in member.args for text in entry.comments), *member.comments]
        value = {"name": member.name, "args": {entry.key: entry.value for entry in member.args if not entry.out}}
        members.append(Entry("-", value, list(dict.fromkeys(comments))))
        section.out = section.out or member.incomplete
    milestones = seen.get("milestones", 2)
    below = [Entry("schedulers", below=members)]
    if is_known(milestones):
        below.append(Entry("milestones", known(milestones), sources(milestones)))
    else:
        section.out = True
        section.comments.append("its milestones could not be read: write them here")
    assert section.below is not None
    section.below.append(Entry("args", below=below))
    return section


def _steps(interpreter: Interpreter, family: str) -> list[LibraryUse]:
    """The calls of step() on objects of this family."""
    return [s for s in interpreter.seen if s.name.endswith(".step") and getattr(s.receiver, "family", "") == family]


def _moves(interpreter: Interpreter, fit: Given | None, section: Entry, schedule: LibraryUse) -> Entry:
    """Whether the schedule moves after every step or after every epoch."""
    chosen = next(iter(surely(by_sureness(_steps(interpreter, names.SCHEDULE)))), None)
    returned = fit.moves(schedule) if fit is not None and chosen is None else None
    if returned is not None:
        section.left += returned[1]
        return returned[0]
    if chosen is None:
        return Entry("per", ASK, ["where the script calls its step() was not found: step or epoch"])
    if chosen.arguments and not getattr(chosen.receiver, "name", "").endswith(MEASURED):
        text = "step() gets a number here, and sets the rate for that number: per step or epoch, and from which?"
        return Entry("per", ASK, [place(chosen), text])
    moved, several = getattr(chosen.receiver, "seen", None), distinct(surely(calls(interpreter, "schedule")))
    if (moved is None and len(several) > 1) or (moved is not None and moved.node is not schedule.node):
        return Entry("per", ASK, [place(chosen), "whether that is this schedule could not be read"])
    by_epoch = chosen.loops[-1:] == (EPOCHS,)
    if not by_epoch and BATCHES not in chosen.loops:
        return Entry("per", ASK, [place(chosen), "whether that is after every step or every epoch could not be read"])
    return Entry("per", "epoch" if by_epoch else "step", [place(chosen)])


def clip(interpreter: Interpreter, flow: Flow, fit: Given | None) -> Entry | None:
    """The section `clip`."""
    found = calls(interpreter, CLIP)
    steps = any(getattr(call.func, "attr", "") == "step" for one in named(flow) for call in one.calls)
    if fit is None and surely(found) and not steps:
        return Entry("clip", ASK, [place(surely(found)[0]), "no step was found: is it clipped before it?"], out=True)
    scalers = [
        seen for seen in interpreter.seen if seen.name.endswith("NativeScaler.__call__") and seen.get("clip_grad", 2)
    ]
    for seen in [*surely(found), *surely(scalers)]:
        value = seen.get("max_norm", 1) if seen in found else seen.get("clip_grad", 2)
        norm = seen.get("norm_type", 2) if seen in found else None
        size = number(value)
        if norm is not None and known(norm) != 2:
            return Entry("clip", ASK, [place(seen), "a recipe clips by the L2 norm only"], out=True)
        if size is not None and size > 0:
            entry = Entry("clip", {"max_norm": float(size)}, [place(seen), *sources(value)])
            arguments = seen.arguments or [] if seen in found else []
            clipped = next((a for a in arguments if a.name in (None, "parameters")), None)
            several = several_train(interpreter)  # then there is no single model
            judged = several or trained(interpreter) is not None
            whole = clipped is None or (judged and _whole_model(interpreter, clipped.node))
            if clipped is not None and not whole and (judged or misses_some(flow, clipped.node)):
                text = " ".join(seen.source.text(clipped.node).split())
                one = " is one of several objects that train, and what it clips"
                text += one if several else " is what it clips, not the model"
                entry.left.append(((seen.source.shown, clipped.node.lineno), text))
            return entry
        return Entry("clip", ASK, [place(seen), "its max_norm could not be read"], out=True)
    for seen in options(found):
        return Entry("clip", ASK, [only_where(seen)], out=True)
    return fit.clips() if fit is not None else None


def seed_of(interpreter: Interpreter) -> Entry | None:
    """The key `seed`."""
    for seen in surely(calls(interpreter, SEED)):
        value = seen.get("seed", 0)
        seed = number(value)
        if isinstance(seed, int) and 0 <= seed < 2**31:
            return Entry("seed", seed, [place(seen), *sources(value)])
    return None


def train(interpreter: Interpreter, flow: Flow, fit: Given | None) -> Entry:
    """The section `train`, with what the other sections leave of Lightning's Trainer: the last one drafted."""
    below = []
    bounds = sorted(interpreter.epochs, key=lambda found: CERTAINTIES.index(found[2]))
    loops = [loop.place for loop in around_steps(flow)]  # those of another training are not this one's
    bounds = [found for found in bounds if not loops or (found[1].file, found[1].line) in loops]
    for value, origin, sure in bounds[:1]:
        every = dict.fromkeys(number(one) for one, *its in bounds if its == [origin, sure])
        count = number(value) if len(every) == 1 else ASK
        where = Comment((origin.file, origin.line), f"for … in {origin.text}")
        one_step = any(seen.loops[-1:] == (EPOCHS,) for seen in _steps(interpreter, names.OPTIMIZER))
        one_step = one_step or loops == [(origin.file, origin.line)]  # also where a model's forward steps
        comments = ["each round makes one step, which is an epoch only if a batch has all the data"] * one_step
        comments += [f"it runs several times, with {' or '.join(map(str, every))}"] * (len(every) > 1)
        others = {at: number(one) for one, at, as_sure in bounds if as_sure == sure and at != origin and loops}
        differ = [at for at, other in others.items() if other != count]  # a training before, or behind
        comments += [str(Comment((at.file, at.line), f"for … in {at.text}: another training")) for at in differ]
        drafted = isinstance(count, int) and count > 0 and not (one_step or differ)
        below.append(Entry("epochs", count if drafted else ASK, [where, *sources(value), *comments]))
    if not below and fit is not None:
        below.append(fit.epochs())
    if not below:
        around = [f"{file} line {line}: a step runs in this loop" for file, line in loops]
        below.append(Entry("epochs", ASK, around or [not_found(flow, "no loop over epochs was found")]))
    for seen in surely(calls(interpreter, TENSORBOARD))[:1]:
        below.append(Entry("tensorboard", True, [place(seen)]))
    section = Entry("train", below=below)
    if fit is not None:
        fit.leave(section)
    return section


# what was not read


def _makers(flow: Flow) -> Iterator[tuple[Statement, ast.Call]]:
    """The calls that get parameters, and make an optimizer of torch, or something whose `step()` is called."""
    calls = [call for s in named(flow) for call in s.calls]
    steps = (call.func.value for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "step")
    stepped = [one for start in steps for one in flow.behind(start) if isinstance(one, ast.Call)]
    made = [call for call in calls if getattr(flow.value(call), "family", "") == names.OPTIMIZER]
    for one in {id(call): call for call in (*stepped, *(c for c in made if _is_read(flow.value(c))))}.values():
        statement = flow.of.get(id(one))
        if statement is not None and statement.alone is None and list(_given(flow, one)):
            yield statement, one


def _stepped(flow: Flow) -> Iterator[str]:
    """The source of the objects whose `step()` is called, without those named as schedules and scalers."""
    for call in (call for s in named(flow) for call in s.calls if getattr(call.func, "attr", "") == "step"):
        words = ast.unparse(call.func.value)  # type: ignore[attr-defined]
        if not re.search("sched|scale", words, re.IGNORECASE):
            yield words


def _given(flow: Flow, call: ast.Call) -> Iterator[ast.expr]:
    """The models whose parameters a call gets."""
    own = getattr(flow.value(call), "family", "") == names.OPTIMIZER and made_by(flow, call)
    named_ = [k.value for k in call.keywords if k.arg == "params"]
    behind = [one for given in (*call.args[:1], *named_) for one in flow.behind(given)] if own else []
    for inner in (inner for given in (*call.args, *call.keywords, *behind) for inner in ast.walk(given)):
        if isinstance(inner, ast.Attribute) and "parameters" in inner.attr:
            yield inner.value


def unread_optimizer(flow: Flow) -> str:
    """Words where no optimizer of torch was found: the line that makes another one."""
    others = (statement for statement, call in _makers(flow) if not _is_read(flow.value(call)))
    found = (words_of(statement, "what this makes was not read") for statement in others)
    return next(found, "") or not_found(flow, "no optimizer was found")


def unread_model(flow: Flow) -> str:
    """Words for a trained model that could not be read: the line that makes the model of the optimizer, or what a
    library's Trainer is given."""
    makers = {id(call): call for _, call in _makers(flow)}
    alone = len(makers) == 1 and len(set(_stepped(flow))) <= 1  # with several optimizers there is no single model
    owners = [owner for call in makers.values() for owner in _given(flow, call) if alone]
    handed = handed_to_trainers(flow, "model", 0) if all(not list(flow.behind(one))[1:] for one in owners) else []
    words = [("what this makes was not read", one) for one in owners]
    words += [("the Trainer is given what this makes", one) for one in handed]
    moves = [call for s in flow.statements for call in s.calls if _only_moves(flow, call)]
    by = {id(one) for call in moves for one in (*call.args, *(k.value for k in call.keywords))}
    made, moved = list[str](), list[str]()

    def follows(one: ast.expr) -> bool:
        return id(one) not in by and not isinstance(flow.value(one), ScriptObject)

    for why, one in ((why, one) for why, owner in words for one in flow.behind(owner, follows)):
        statement, value = flow.of.get(id(one)), flow.value(one)
        read = isinstance(value, (ScriptObject, ParsedArguments)) or getattr(value, "family", "") == names.MODULE
        if isinstance(one, ast.Call) and not read and statement is not None and statement.alone is None:
            (moved if any(one is call for call in moves) else made).append(words_of(statement, why))
    if made or moved:
        return (made or moved)[0]
    given = of_trainer(flow, "model")
    made_by = maker_of(flow, given) if given is not None else None
    if made_by is not None:
        return words_of(made_by, "the Trainer is given what this makes")
    return not_found(flow, "which model is trained was not found")


def _only_moves(flow: Flow, call: ast.Call) -> bool:
    """Whether a call only chooses a device, or does something else that changes no model."""
    return bool(reason(name_of(flow, call)) or method_reason(getattr(call.func, "attr", "")))


def _is_read(made: Value | None) -> bool:
    """Whether the class of an object is known."""
    return isinstance(made, ScriptObject) or (isinstance(made, LibraryObject) and made.seen is not None)


def made_by(flow: Flow, call: ast.Call) -> bool:
    """Whether this call made its result itself."""
    made = flow.value(call)
    return isinstance(made, LibraryObject) and made.seen is not None and made.seen.node is call


def _makes_optimizer(flow: Flow, statement: Statement) -> bool:
    calls = (call for call in statement.calls if getattr(flow.value(call), "family", "") == names.OPTIMIZER)
    return any(made_by(flow, call) for call in calls)


def makers_in_models(flow: Flow, driven: set[int]) -> set[int]:
    """The methods, other than __init__, in which a model that no library calls makes an optimizer."""
    made = [s for s in flow.statements if s.owner is not None and _makes_optimizer(flow, s)]
    made = [s for s in made if getattr(s.function, "name", "__init__") != "__init__" and id(s.owner) not in driven]
    owners = {id(s): flow.class_of(s.owner) for s in made if s.owner is not None}
    return {id(s.function) for s in made if (of := owners[id(s)]) is not None and of.family() == names.MODULE}


def trains(flow: Flow, statement: Statement, makers: set[int]) -> bool:
    """Whether a statement makes a class one that trains: it steps, or makes an optimizer in none of these methods."""
    if statement.owner is None:
        return False
    methods = {getattr(call.func, "attr", "") for call in statement.calls}
    makes = id(statement.function) not in makers and _makes_optimizer(flow, statement)
    return makes or bool(methods & {"backward", "step", "manual_backward"})


# what the calls of a function hand over


def read_arguments(flow: Flow, live: set[int]) -> set[int]:
    """The arguments (their ids) of calls whose functions hand them to one of these statements."""
    reading = (node for s in flow.statements if id(s) in live for node in s.nodes)
    given = {d for node in reading for d in flow.reads.get(id(node), ()) if d.way == GIVEN}
    return {id(argument) for one in given for argument in flow.arguments_of(one)}


def further_values(flow: Flow, elsewhere: Callable[[Statement], bool]) -> set[int]:
    """The definitions (their ids) that give what certain statements of other functions read a further value, after the
    first one; elsewhere: whether a statement is one of these."""
    found: set[int] = set()
    for reader in filter(elsewhere, flow.statements):
        for node in (one for one in reader.nodes if isinstance(one, (ast.Name, ast.Attribute))):
            ways = [one for one in flow.written(node) if one.way in (IS, ADDS) and one.value is not None]
            ways = [one for one in ways if one.statement.function is not reader.function or not reader.function]
            ways = [one for one in ways if of_one_class(flow, one, reader, node)]
            ways.sort(key=lambda one: one.statement.place)
            further = [one for at, one in enumerate(ways) if not _begins(one.statement, ways[:at])]
            found |= {id(one) for one in further[len(further) == len(ways) :]}
    for reader in flow.statements:  # what is handed over runs later
        for read in (inner for one in reader.nodes for inner in _run_later(flow, reader, one)):
            later = flow.written(read) if id(read) in flow.interpreter.varied else ()
            found |= {id(one) for one in later if one.way in (IS, ADDS) and one.statement.place > reader.place}
    return found


def _run_later(flow: Flow, reader: Statement, node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a lambda, or of a function that is handed over."""
    of = flow.value(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
    if isinstance(node, ast.Lambda):
        yield from ast.walk(node.body)
    elif isinstance(of, ScriptFunction) and all(node is not call.func for call in reader.calls):
        yield from (inner for one in flow.inside_of.get(id(of.node), ()) for inner in one.nodes)


def _begins(statement: Statement, before: list[Definition]) -> bool:
    """Whether a statement gives an object, a class or a file what it begins with."""
    if statement.function is not None or statement.owner is not None:
        return getattr(statement.function, "name", "") == "__init__" or not statement.function
    named = all(isinstance(one, ast.Name) for one in getattr(statement.node, "targets", ()))
    return named and all(one.statement.source is not statement.source for one in before)


def set_elsewhere(statement: Statement, flow: Flow) -> bool:
    """Whether another statement of its function gives one of its names another value."""
    names = {one.id for one in getattr(statement.node, "targets", ()) if isinstance(one, ast.Name)}
    inside = [one for one in flow.inside_of.get(id(statement.function), []) if one.function is statement.function]
    others = (one.node for one in inside if one is not statement)
    return any(getattr(one, "id", "") in names for other in others for one in getattr(other, "targets", ()))


def measures(flow: Flow, node: ast.expr) -> bool:
    """Whether an expression is a time, a size, or the number in a tensor."""
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    number = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("item", "size", "numel")
    return number or any(name_of(flow, call).startswith("time.") for call in calls)


def computes(node: ast.expr, known_: Callable[[ast.expr], bool], omitted: Callable[[ast.Call], bool]) -> bool:
    """Whether an argument is computed in its call, of more than names, values that are known, and calls of such that
    may be omitted: step(net, rate / 3)."""
    text = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) else node  # FOLDER / "a.npy"
    text = text if text is node or isinstance(getattr(text, "value", ""), str) else node
    if isinstance(text, (ast.Constant, ast.JoinedStr)) or isinstance(node, (ast.Name, ast.Starred)) or known_(node):
        return False
    parts = [node.value] if isinstance(node, ast.Attribute) else None
    if isinstance(node, (ast.Tuple, ast.List, ast.Dict)):
        parts = node.values if isinstance(node, ast.Dict) else node.elts
    if isinstance(node, ast.Call) and omitted(node):
        parts = [node.func, *node.args, *(k.value for k in node.keywords)]
    return parts is None or any(computes(one, known_, omitted) for one in parts)


def scales(node: ast.expr) -> bool:
    """Whether a value is computed by another operator than `+`, by devices, say; or is some of a model's parameters."""
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return any(getattr(one, "attr", "") in (*PARTS, "parameters", "named_parameters") for one in ast.walk(node))
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    return (bool(sides) and not isinstance(getattr(node, "op", None), ast.Add)) or any(map(scales, sides))


def takes_all(interpreter: Interpreter, roles: Roles, value: ast.expr) -> bool:
    """Whether this is all that `x.parameters()` gives, and x is no part of a model: no attribute or element, or
    the model."""
    whole = all_handed_over(interpreter, value)
    func = whole.func if isinstance(whole, ast.Call) else None
    of = func.value if isinstance(func, ast.Attribute) else None
    return whole is not value and not (isinstance(of, (ast.Attribute, ast.Subscript)) and roles.exact(of) != MODEL)


def seeds_otherwise(flow: Flow, call: ast.Call, seed: int | None) -> bool:
    """Whether a call sets a seed that is, or may be, another number than the recipe's, so that other numbers are
    drawn."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    other = bool(given) and (seed is None or known(flow.value(given[0])) != seed)
    return other and matches(name_of(flow, call), SEEDS)
