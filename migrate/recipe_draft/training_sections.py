"""The sections of a recipe about its updates: optimizer, schedule, clip, train, seed."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import Any

from ...mappings import table
from ...mappings.aliases import row_of
from ...mappings.rows import Row
from ..analyze.rewritten_call import SCHEDULES
from ..source import library_names as names
from ..source.infer.abstract_values import (
    CallArgument,
    Constant,
    DictValue,
    LibraryName,
    LibraryObject,
    LibraryUse,
    ListValue,
    ScriptClass,
    ScriptFunction,
    ScriptObject,
    Value,
    is_known,
    known,
)
from ..source.infer.expressions import BATCHES, EPOCHS
from ..source.infer.interpreter import CERTAINTIES, OPTION, UNCALLED, Interpreter
from .entries import (
    ASK,
    CLIP,
    LONGEST_WORD,
    SEED,
    TENSORBOARD,
    Comment,
    Entry,
    Place,
    all_handed_over,
    behind_names,
    by_sureness,
    calls,
    distinct,
    either,
    number,
    options,
    part,
    place,
    several_train,
    short_name,
    sources,
    surely,
    trained,
    unwrapped,
)
from .flow import Flow, Statement
from .unread import (
    setting,
    unread,
    unread_optimizer,
)

MEASURED = "ReduceLROnPlateau"  # the schedule that depends on step()'s argument
OPT_NAMES = {"sgd": "SGD", "momentum": "SGD", "nesterov": "SGD"}  # timm's names that are not a class's


def optimizer(interpreter: Interpreter, flow: Flow) -> Entry:
    """The section `optimizer`; every recipe has one."""
    found = calls(interpreter, "optimizer")
    several = distinct(surely(found))
    if len(several) != 1:
        comments = [f"{place(seen)}: one of {len(several)} optimizers; a recipe has one" for seen in several]
        comments = comments or [
            unread_optimizer(flow),
            *(f"with other arguments: {place(seen)}" for seen in options(found)),
        ]
        return Entry("optimizer", ASK, comments)
    chosen = several[0]
    row = row_of(chosen.name)
    if row is None or row.kind != "optimizer":
        return _made_by_name(chosen)
    section = part_section("optimizer", chosen, row)
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
    _ask_for_rate(interpreter, section)
    section.comments += [f"with other arguments: {place(seen)}" for seen in options(found)]
    return section


def _ask_for_rate(interpreter: Interpreter, section: Entry) -> None:
    """Ask for a rate that the optimizer is not given where the script sets it by hand: torch's default is not its."""
    by_hand = _rates_by_hand(interpreter)
    args = next((entry for entry in section.below or [] if entry.key == "args"), None)
    if by_hand and section.below is not None and not any(one.key == "lr" for one in (args.below or [] if args else [])):
        if args is None:
            section.below.append(args := Entry("args", below=[]))
        rate = Entry("lr", ASK, [f"the optimizer is given none, and it is set by hand: {one}" for one in by_hand])
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


def schedule(interpreter: Interpreter, fit: Fit | None) -> Entry | None:
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
        return Entry("schedule", ASK, comments, out=True) if comments else None
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


def _moves(interpreter: Interpreter, fit: Fit | None, section: Entry, schedule: LibraryUse) -> Entry:
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
    by_epoch = chosen.loops[-1:] == (EPOCHS,)
    if not by_epoch and BATCHES not in chosen.loops:
        return Entry("per", ASK, [place(chosen), "whether that is after every step or every epoch could not be read"])
    return Entry("per", "epoch" if by_epoch else "step", [place(chosen)])


def clip(interpreter: Interpreter, fit: Fit | None) -> Entry | None:
    """The section `clip`."""
    found = calls(interpreter, CLIP)
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
            if judged and clipped is not None and not _whole_model(interpreter, clipped.node):
                text = " ".join(seen.source.text(clipped.node).split())
                text += (
                    " is one of several objects that train, and what it clips"
                    if several
                    else " is what it clips, not the model"
                )
                entry.left.append(((seen.source.shown, clipped.node.lineno), text))
            return entry
        return Entry("clip", ASK, [place(seen), "its max_norm could not be read"], out=True)
    for seen in options(found):
        return Entry("clip", ASK, [f"{place(seen)}, only where {seen.condition}"], out=True)
    return fit.clips() if fit is not None else None


def seed_of(interpreter: Interpreter) -> Entry | None:
    """The key `seed`."""
    for seen in surely(calls(interpreter, SEED)):
        value = seen.get("seed", 0)
        seed = number(value)
        if isinstance(seed, int) and 0 <= seed < 2**31:
            return Entry("seed", seed, [place(seen), *sources(value)])
    return None


def train(interpreter: Interpreter, fit: Fit | None) -> Entry:
    """The section `train`, with what the other sections leave of Lightning's Trainer: the last one drafted."""
    below = []
    bounds = sorted(interpreter.epochs, key=lambda found: CERTAINTIES.index(found[2]))
    for value, origin, _ in bounds[:1]:
        count = number(value)
        where = Comment((origin.file, origin.line), f"for … in {origin.text}")
        one_step = any(seen.loops[-1:] == (EPOCHS,) for seen in _steps(interpreter, names.OPTIMIZER))
        comments = ["each round makes one step, which is an epoch only if a batch has all the data"] * one_step
        drafted = isinstance(count, int) and count > 0 and not one_step
        below.append(Entry("epochs", count if drafted else ASK, [where, *sources(value), *comments]))
    if not below and fit is not None:
        below.append(fit.epochs())
    if not below:
        below.append(Entry("epochs", ASK, ["no loop over epochs was found"]))
    for seen in surely(calls(interpreter, TENSORBOARD))[:1]:
        below.append(Entry("tensorboard", True, [place(seen)]))
    section = Entry("train", below=below)
    if fit is not None:
        fit.leave(section)
    return section


# Lightning's Trainer

OF_LIGHTNING = re.compile(r"(lightning|pytorch_lightning)\.(\w+\.)*Trainer\.fit")
# arguments of the Trainer that change nothing of a step -> with which values; with any where none are named
QUIET: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("accelerator", "logger", "profiler", "benchmark", "deterministic", "detect_anomaly"), ()),
    **dict.fromkeys(("enable_checkpointing", "enable_progress_bar", "enable_model_summary", "inference_mode"), ()),
    **dict.fromkeys(("default_root_dir", "log_every_n_steps", "num_sanity_val_steps"), ()),
    "devices": ("auto", 1, "1", -1, "-1"),
    "gpus": (0, 1, -1, "-1"),
    "num_nodes": (1,),
    "strategy": ("auto", "ddp"),
    "precision": (32, "32", "32-true"),
    "max_steps": (-1,),
    "check_val_every_n_epoch": (1,),
    "accumulate_grad_batches": (1,),
    "gradient_clip_val": (0, 0.0),
    "gradient_clip_algorithm": ("norm",),
    **dict.fromkeys(("fast_dev_run", "overfit_batches", "reload_dataloaders_every_n_epochs"), (0, 0.0, False)),
    "sync_batchnorm": (False,),
    **dict.fromkeys(("limit_train_batches", "limit_val_batches", "limit_test_batches", "val_check_interval"), (1.0,)),
}
QUIET_CALLBACKS = re.compile(
    r".*\.(ModelCheckpoint|LearningRateMonitor|DeviceStatsMonitor|\w*(ProgressBar|ModelSummary))"
)
LOADERS = (LibraryObject, ListValue, DictValue, Constant)  # what is given in place of Lightning's data, or None
PRECISIONS = {"16-mixed": "float16", "16": "float16", "bf16-mixed": "bfloat16", "bf16": "bfloat16"}


@dataclass(frozen=True)
class Fit:
    """The only fit of Lightning's Trainer in a script; taken: the arguments of the Trainer that the draft has."""

    flow: Flow
    call: LibraryUse
    trainer: LibraryUse
    module: ScriptObject | None
    taken: set[str]

    @classmethod
    def of(cls, flow: Flow) -> Fit | None:
        """The fit of a script, where it has one and its Trainer is known."""
        values = flow.interpreter.values
        fits = [s for s in flow.interpreter.seen if s.arguments is not None and OF_LIGHTNING.fullmatch(s.name)]
        found = surely(by_sureness(fits))
        alone = found and all(_is_same_fit(one, found[0]) for one in distinct(found))
        on = found[0].node.func if alone and isinstance(found[0].node, ast.Call) else None
        trainer = values.get(id(on.value), (0, None))[1] if isinstance(on, ast.Attribute) else None
        modules = [one for seen in found if isinstance(one := unwrapped(seen.get("model", 0)), ScriptObject)]
        made = [s for s in flow.interpreter.seen if OF_LIGHTNING.fullmatch(f"{s.name}.fit") and s.certainty != OPTION]
        behind = (
            [part for one in flow.behind(on.value) for part in ast.walk(one)] if isinstance(on, ast.Attribute) else []
        )
        makers = {id(one.node) for one in made} & {id(part) for part in behind if isinstance(part, ast.Call)}
        several = len(makers) > 1 or len({id(one.of.node) for one in modules}) > 1
        if not isinstance(trainer, LibraryObject) or trainer.seen is None or several:
            return None
        return cls(flow, found[0], trainer.seen, modules[0] if len(modules) == len(found) else None, set())

    def given(self, name: str) -> Any:
        """The value of an argument of the Trainer: None where there is none, ??? where it could not be read."""
        node = next((one.node for one in self.trainer.arguments or [] if one.name == name), None)
        return ASK if id(node) in self.flow.interpreter.varied else setting(self.trainer, name)

    def takes(self, name: str) -> list[str]:
        """The lines that an argument of the Trainer comes from, which is no longer left over."""
        self.taken.add(name)
        return [place(self.trainer), *sources(self.trainer.get(name))]

    @property
    def by_hand(self) -> bool:
        """Whether the module makes its updates itself."""
        switch = self.module.attributes.get("automatic_optimization") if self.module is not None else None
        return known(switch) is False or self._has("automatic_optimization")

    def _has(self, method: str) -> bool:
        return self.module is not None and self.module.of.find(method) is not None

    def _returned(self, of: ScriptObject | None, method: str) -> list[tuple[Statement, Value | None]]:
        """What a method returns, and where, in the statements that may run."""
        function = of.of.find(method) if of is not None else None
        if not isinstance(function, ScriptFunction):
            return []
        reached = self.flow.interpreter.reached
        returns = self.flow.returns.get(id(function.node), [])
        live = [one for one in returns if CERTAINTIES[reached.get(id(one[0].node), (0, ()))[0]] != OPTION]
        return [(statement, self.flow.value(node)) for statement, node in live]

    def loaders(self, way: str) -> list[LibraryUse] | None:
        """The loaders for training (`train`) or validation (`val`), of the call or of what it is given; None where
        reading cannot tell."""
        first, at = self.call.get("train_dataloaders", 1) or self.call.get("train_dataloader"), 1 + (way == "val")
        given = self.call.get(f"{way}_dataloaders", at) or self.call.get(f"{way}_dataloader")
        data = self.call.get("datamodule", 3) or (None if isinstance(first, LOADERS) else first)
        holders = [one for one in (data, self.module) if isinstance(one, ScriptObject)]
        values: list[Value | None] = [given]
        if given is None or given in holders[:1] or known(given, ASK) is None:
            lineage = [base for one in holders for base in one.of.lineage()]
            if (data is not None and data not in holders) or not all(map(_is_class, lineage)) or not lineage:
                return None
            holder = next((one for one in holders if one.of.find(f"{way}_dataloader") is not None), None)
            values = [value for _, value in self._returned(holder, f"{way}_dataloader")]
        held = [one for value in values for one in _held(value)]
        made = [one.seen for one in held if isinstance(one, LibraryObject) and one.family == names.LOADER and one.seen]
        return made if len(made) == len(held) else None

    def moves(self, schedule: LibraryUse) -> tuple[Entry, list[tuple[Place, str]]] | None:
        """The key `per` of a schedule that configure_optimizers returns, and what a recipe lacks of its settings; None
        where it is not plainly returned."""
        returned = self._returned(self.module, "configure_optimizers")
        if len(returned) != 1 or self.by_hand or self._has("lr_scheduler_step"):
            return None
        (statement, value), settings = returned[0], dict[str, Value]()
        found = value.items[1] if isinstance(value, ListValue) and len(value.items) == 2 else None
        if isinstance(value, DictValue):
            found, settings = value.pairs.get("lr_scheduler"), {k: v for k, v in value.pairs.items() if k == "monitor"}
        several = found.items if isinstance(found, ListValue) else [found]
        one = several[0] if len(several) == 1 else None
        if isinstance(one, DictValue):
            one, settings = one.pairs.get("scheduler"), settings | one.pairs
        if not isinstance(one, LibraryObject) or one.seen is None or one.seen.node is not schedule.node:
            return None
        per, at = known(settings.get("interval"), ASK if "interval" in settings else None), statement.place
        comments: list[str] = [_line(statement)]
        comments += ["Lightning's interval is an epoch where none is said"] if per is None else []
        plain: dict[str, tuple[Any, ...]] = {"frequency": (1,), "reduce_on_plateau": (False,)}
        plain |= {"monitor": ()} if MEASURED in schedule.name else {}
        lacks = {k: v for k in plain if k in settings and (v := known(settings[k], ASK)) not in plain[k]}
        words = [(at, f"{k}={v!r} of the schedule that configure_optimizers returns") for k, v in lacks.items()]
        return Entry("per", per if per in ("step", "epoch") else "epoch" if per is None else ASK, comments), words

    def starts(self) -> list[str]:
        """Words for the lines that the backward pass starts from, where the Trainer makes it."""
        found = [] if self.by_hand else self._returned(self.module, "training_step")
        return [f"{_line(one)}: Lightning differentiates this, and its loss was not read" for one, _ in found]

    def clips(self) -> Entry | None:
        """The section `clip` where the Trainer is given a norm, and no other rule."""
        size, rule = self.given("gradient_clip_val"), self.given("gradient_clip_algorithm")
        plain = isinstance(size, (int, float)) and size > 0 and rule in (None, "norm")
        if not plain or self.by_hand or self._has("configure_gradient_clipping"):
            return None
        comments = [*self.takes("gradient_clip_val"), *self.takes("gradient_clip_algorithm")[1:]]
        comments += ["Lightning clips by the norm where no algorithm is named"] if rule is None else []
        return Entry("clip", {"max_norm": float(size)}, comments)

    def epochs(self) -> Entry:
        """The key `epochs` where the Trainer is given their number; asked for where it is not."""
        count = self.given("max_epochs")
        if type(count) is int and count > 0:
            return Entry("epochs", count, self.takes("max_epochs"))
        self.taken.add("max_epochs")  # it is asked for
        words = "Lightning's Trainer ends after 1000 epochs where neither max_epochs nor max_steps is given"
        return Entry(
            "epochs", ASK, [place(self.trainer), *([words] if count is self.given("max_steps") is None else [])]
        )

    def leave(self, section: Entry) -> None:
        """Note as left over what the Trainer is given and the draft does not have."""
        arguments = {one.name: one.value for one in self.trainer.arguments or [] if one.name}
        quiet = [k for k, v in arguments.items() if k in QUIET and (not QUIET[k] or _is_one(known(v, ASK), QUIET[k]))]
        named = [getattr(one, "name", "") for one in _held(arguments.get("callbacks"))]
        quiet += ["callbacks"] if all(map(QUIET_CALLBACKS.fullmatch, named)) else []
        for argument in self.trainer.arguments or []:
            rest = Entry("rest")
            rest.leave(replace(self.trainer, arguments=[argument]), *self.taken, *quiet)
            section.left += [(at, text + self._behind(argument)) for at, text in rest.left]

    def _behind(self, argument: CallArgument) -> str:
        """The values of the names in an argument."""
        node, text = argument.node, repr(known(argument.value))
        listed = isinstance(argument.value, ListValue) and is_known(argument.value) and len(text) <= LONGEST_WORD
        if listed and isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in self.flow.interpreter.varied:
            return f" [{ast.unparse(node)} is {text}]"
        words = behind_names(ast.walk(node), self.flow.interpreter, lambda _: False)
        return f" [{words}]" * bool(words)


def _is_same_fit(one: LibraryUse, other: LibraryUse) -> bool:
    """Whether of two fits only one runs, and it starts from a checkpoint or not."""
    texts = [
        [f"{a.name}={ast.unparse(a.node)}" for a in s.arguments or [] if a.name != "ckpt_path"] for s in (one, other)
    ]
    on = [ast.unparse(s.node.func) for s in (one, other) if isinstance(s.node, ast.Call)]
    return one.node is other.node or (either(one, other) and texts[0] == texts[1] and on[0] == on[-1])


def _line(statement: Statement) -> Comment:
    return Comment(statement.place, " ".join(statement.text.split()))


def _is_class(value: Value) -> bool:
    return isinstance(value, (ScriptClass, LibraryName))


def _is_one(value: Any, of: tuple[Any, ...]) -> bool:
    return any(value == one and type(value) is type(one) for one in of)  # 1.0 is all batches, and 1 is one of them


def _held(value: Value | None) -> list[Value | None]:
    """The values in a list or table, also in one of these; an unknown one for a list that was not read to its end."""
    if isinstance(value, ListValue):
        return [one for item in value.items for one in _held(item)] + ([] if value.closed else [None])
    return [one for item in value.pairs.values() for one in _held(item)] if isinstance(value, DictValue) else [value]


def accumulated(fit: Fit | None) -> Entry | None:
    """The key `accumulate` where Lightning's Trainer is given a number of batches for each step."""
    count = fit.given("accumulate_grad_batches") if fit is not None else None
    if fit is None or type(count) is not int or count < 2 or fit.by_hand:
        return None
    at = fit.trainer.source.shown, fit.trainer.node.lineno
    words = f"at the end of an epoch Lightning also updates where fewer than {count} micro-batches are left"
    return Entry("accumulate", count, fit.takes("accumulate_grad_batches"), left=[(at, words)])


def precision(fit: Fit | None) -> list[Entry]:
    """The sections `amp` and `dynamic_loss_scale` where Lightning's Trainer is given a mixed precision."""
    kind = PRECISIONS.get(str(fit.given("precision"))) if fit is not None else None
    if fit is None or kind is None or fit.given("plugins") is not None:
        return []
    entries = [Entry("amp", {"level": "O1", "dtype": kind}, fit.takes("precision"))]
    scaler = "with 16-mixed Lightning scales the loss by torch's GradScaler, with its defaults"
    return [*entries, Entry("dynamic_loss_scale", {}, [scaler])] if kind == "float16" else entries
