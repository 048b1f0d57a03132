"""What a library's Trainer is given, where it makes the steps of a script: Lightning's, transformers'."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

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
from ..source.infer.expressions import PARSES
from ..source.infer.interpreter import CERTAINTIES, OPTION, PERHAPS
from .entries import (
    ASK,
    LONGEST_WORD,
    Comment,
    Entry,
    Place,
    behind_names,
    by_sureness,
    distinct,
    either,
    place,
    setting,
    sources,
    surely,
    unwrapped,
)
from .flow import Flow, Statement
from .reach import named
from .silence import name_of

MEASURED = "ReduceLROnPlateau"  # the schedule that depends on step()'s argument
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
class Given:
    """What makes the steps of a script in place of its own loop, and what it is given; taken: the arguments that the
    draft has."""

    flow: Flow
    trainer: LibraryUse
    taken: set[str]

    @property
    def said(self) -> set[Place]:
        """The lines that the draft has besides those of its values."""
        return set()

    def given(self, name: str) -> Any:
        """The value of an argument: None where there is none, ??? where it could not be read."""
        node = next((one.node for one in self.trainer.arguments or [] if one.name == name), None)
        return ASK if id(node) in self.flow.interpreter.varied else setting(self.trainer, name)

    def takes(self, name: str) -> list[str]:
        """The lines that an argument comes from, which is no longer left over."""
        self.taken.add(name)
        return [place(self.trainer), *sources(self.trainer.get(name))]

    def number(self, name: str) -> int:
        """An argument that is a whole number above 0; 0 for anything else."""
        value = self.given(name)
        whole = int(value) if isinstance(value, float) and value.is_integer() else value
        return whole if type(whole) is int and whole > 0 else 0

    def quiet(self, arguments: dict[str, Value]) -> list[str]:
        """The names of those arguments that change nothing of a step; "0" for one without a name."""
        return []

    def epochs(self) -> Entry:
        """The key `epochs`."""
        raise NotImplementedError

    def clips(self) -> Entry | None:
        """The section `clip`."""
        return None

    def accumulates(self) -> Entry | None:
        """The key `accumulate`."""
        return None

    def precision(self) -> list[Entry]:
        """The sections `amp` and `dynamic_loss_scale`."""
        return []

    def batch(self) -> list[Entry]:
        """The key `batch` where no loader of the script says it."""
        return []

    def loaders(self, way: str) -> list[LibraryUse] | None:
        """The loaders for training (`train`) or validation (`val`); None where reading cannot tell."""
        return None

    def moves(self, schedule: LibraryUse) -> tuple[Entry, list[tuple[Place, str]]] | None:
        """The key `per` of a schedule, and what a recipe lacks of its settings; None where it is not plain."""
        return None

    def starts(self) -> list[str]:
        """Words for the lines that the backward pass starts from."""
        return []

    def updates(self) -> list[str]:
        """Words for what makes the optimizer where the script makes none."""
        return []

    def differs(self) -> bool:
        """Whether it trains several objects that are made with different arguments."""
        return False

    def leave(self, section: Entry) -> None:
        """Note as left over what it is given and the draft does not have."""
        quiet = self.quiet({one.name: one.value for one in self.trainer.arguments or [] if one.name})
        for argument in self.trainer.arguments or []:
            rest, at = Entry("rest"), self.flow.of.get(id(argument.node))
            source = at.source if at is not None else self.trainer.source
            rest.leave(replace(self.trainer, source=source, arguments=[argument]), *self.taken, *quiet)
            section.left += [(at, text + self._behind(argument)) for at, text in rest.left]

    def _behind(self, argument: CallArgument) -> str:
        """The values of the names in an argument."""
        node, text = argument.node, repr(known(argument.value))
        listed = isinstance(argument.value, ListValue) and is_known(argument.value) and len(text) <= LONGEST_WORD
        if listed and isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in self.flow.interpreter.varied:
            return f" [{ast.unparse(node)} is {text}]"
        words = behind_names(ast.walk(node), self.flow.interpreter, lambda _: False)
        return f" [{words}]" * bool(words)


@dataclass(frozen=True)
class Fit(Given):
    """The only fit of Lightning's Trainer in a script."""

    call: LibraryUse
    module: ScriptObject | None
    modules: tuple[ScriptObject, ...]  # of all its runs

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
        module = modules[0] if len(modules) == len(found) else None
        return cls(flow, trainer.seen, set(), found[0], module, tuple(modules))

    @property
    def by_hand(self) -> bool:
        """Whether the module makes its updates itself."""
        switch = self.module.attributes.get("automatic_optimization") if self.module is not None else None
        return known(switch) is False or self._has("automatic_optimization")

    def differs(self) -> bool:
        """Whether its runs have modules that are made with different arguments."""
        given = [
            [(one.name, known(one.value, ast.unparse(one.node))) for one in made.arguments] for made in self.modules
        ]
        return any(one != given[0] for one in given)

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
            settings |= one.pairs
            one = settings.get("scheduler")
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

    def accumulates(self) -> Entry | None:
        """The key `accumulate` where the Trainer is given a number of batches for each step."""
        count = self.number("accumulate_grad_batches")
        if count < 2 or self.by_hand:
            return None
        at = self.trainer.source.shown, self.trainer.node.lineno
        words = f"at the end of an epoch Lightning also updates where fewer than {count} micro-batches are left"
        return Entry("accumulate", count, self.takes("accumulate_grad_batches"), left=[(at, words)])

    def precision(self) -> list[Entry]:
        """The sections `amp` and `dynamic_loss_scale` where the Trainer is given a mixed precision."""
        kind = PRECISIONS.get(str(self.given("precision")))
        if kind is None or self.given("plugins") is not None:
            return []
        return _mixed(kind, self.takes("precision"), "with 16-mixed Lightning")

    def quiet(self, arguments: dict[str, Value]) -> list[str]:
        """The names of those arguments that change nothing of a step."""
        quiet = [k for k, v in arguments.items() if k in QUIET and (not QUIET[k] or _is_one(known(v, ASK), QUIET[k]))]
        called = [getattr(one, "name", "") for one in _held(arguments.get("callbacks"))]
        return [*quiet, "callbacks"] if all(map(QUIET_CALLBACKS.fullmatch, called)) else quiet


def _mixed(kind: str, comments: list[str], who: str) -> list[Entry]:
    scaler = Entry("dynamic_loss_scale", {}, [f"{who} scales the loss by torch's GradScaler, with its defaults"])
    return [Entry("amp", {"level": "O1", "dtype": kind}, comments), *([scaler] if kind == "float16" else [])]


OF_TRANSFORMERS = re.compile(r"transformers\.(\w+\.)*(Seq2Seq)?TrainingArguments")
QUIET_SETTINGS = re.compile(
    r"0|output_dir|overwrite_output_dir|do_(train|eval|predict)|(logging|save|eval|evaluation|hub|push_to_hub|report)_\w+|"
    r"run_name|disable_tqdm|per_device_eval_batch_size|metric_for_best_model|greater_is_better|push_to_hub|"
    r"dataloader_(num_workers|pin_memory|persistent_workers|prefetch_factor)|predict_with_generate|generation_\w+"
)


@dataclass(frozen=True)
class Settings(Given):
    """The only TrainingArguments of transformers in a script."""

    fields: set[Place] = field(default_factory=set)  # the lines of the script's own class of arguments

    @property
    def said(self) -> set[Place]:
        """The lines that the draft has besides those of its values."""
        return self.fields

    @classmethod
    def of(cls, flow: Flow) -> Settings | None:
        """The arguments of a script, where one call surely makes those that its Trainers are given."""
        every = ((s, c, made) for s in flow.statements for c in s.calls if (made := _arguments_of(flow, c)) is not None)
        calls = [one for one in every if _certainty(flow, one[1]) != OPTION]
        ids, handed = {id(call) for _, call, _ in calls}, handed_to_trainers(flow, "args", 1)
        calls = [one for one in calls if all(_nearest(flow, given, ids) == {id(one[1])} for given in handed)]
        by_hand = (
            s.owner is None or not _is_trainer(flow.class_of(s.owner))
            for s in named(flow)
            for c in s.calls
            if getattr(c.func, "attr", "") == "backward"
        )
        if len(calls) != 1 or any(by_hand):
            return None
        (statement, call, (name, arguments)) = calls[0]
        certainty = _certainty(flow, call)
        of_file = (
            certainty == PERHAPS
            and _method(call) in PARSES
            and any(FROM_FILE.fullmatch(_method(other)) for s in named(flow) for other in s.calls)
        )  # what the file says is listed
        if certainty == PERHAPS and not of_file:
            return None
        use = LibraryUse(name, statement.source, call, arguments, certainty, None, (), 0)
        inside = {id(part) for part in ast.walk(call)}
        fields = {
            flow.of[id(one.node)].place for one in arguments if id(one.node) in flow.of and id(one.node) not in inside
        }
        return cls(flow, use, set(), fields)

    def quiet(self, arguments: dict[str, Value]) -> list[str]:
        """The names of those arguments that change nothing of a step; "0" is the folder."""
        off = [k for k, v in arguments.items() if k in ("fp16", "bf16", "tf32") and known(v, ASK) is False]
        return [*off, *filter(QUIET_SETTINGS.fullmatch, ["0", *arguments])]

    def epochs(self) -> Entry:
        """The key `epochs` where their number is given, and no number of steps in its place."""
        steps = self.given("max_steps")
        if (count := self.number("num_train_epochs")) and steps in (None, -1):
            self.taken.add("max_steps")
            return Entry("epochs", count, self.takes("num_train_epochs"))
        words = "transformers trains 3 epochs where no number is given"
        return Entry(
            "epochs", ASK, [place(self.trainer), *([words] if steps is self.given("num_train_epochs") is None else [])]
        )

    def clips(self) -> Entry | None:
        """The section `clip`, where the norm can be read and is not 0."""
        given = self.given("max_grad_norm")
        size = 1.0 if given is None else given
        if not isinstance(size, (int, float)) or size <= 0:
            return None
        comments = ["transformers clips by a norm of 1.0 where none is given"] if given is None else []
        return Entry("clip", {"max_norm": float(size)}, [*self.takes("max_grad_norm"), *comments])

    def batch(self) -> list[Entry]:
        """The key `batch` where a step takes one batch."""
        size = self.number("per_device_train_batch_size")
        if not size or self.given("gradient_accumulation_steps") not in (None, 1):
            return [Entry("batch", ASK, [place(self.trainer)])]
        self.taken.add("gradient_accumulation_steps")
        return [Entry("batch", size, [*self.takes("per_device_train_batch_size"), "of each device"])]

    def precision(self) -> list[Entry]:
        """The sections `amp` and `dynamic_loss_scale` where half precision is switched on."""
        kinds = [(name, kind) for name, kind in (("fp16", "float16"), ("bf16", "bfloat16")) if self.given(name) is True]
        return _mixed(kinds[0][1], self.takes(kinds[0][0]), "with fp16 transformers") if len(kinds) == 1 else []

    def updates(self) -> list[str]:
        """Words for what makes the optimizer where the script makes none."""
        return [f"{place(self.trainer)}: transformers makes the optimizer and its schedule by these arguments"]


OF_MODELS = re.compile(r"(transformers|trl|sentence_transformers|setfit)\.(\w+\.)*\w*Trainer")
FROM_FILE = re.compile(r"parse_(json|yaml|dict)(_file)?")  # in place of the command line


def _is_trainer(of: Value | None) -> bool:
    """Whether a class is transformers' Trainer or its like, or derives from one."""
    lineage = of.lineage() if isinstance(of, ScriptClass) else [of]
    return any(isinstance(one, LibraryName) and OF_MODELS.fullmatch(one.name) for one in lineage)


def handed_to_trainers(flow: Flow, name: str, position: int) -> list[ast.expr]:
    """What the Trainers of transformers and its like are given for an argument; a class of the script's own may have
    other places."""
    found: list[ast.expr] = []
    for call in (call for statement in named(flow) for call in statement.calls if _is_trainer(flow.value(call.func))):
        by_name = [keyword.value for keyword in call.keywords if keyword.arg == name]
        own = isinstance(flow.value(call.func), ScriptClass)
        found += by_name or ([] if own else call.args[position : position + 1])
    return found


def _nearest(flow: Flow, node: ast.expr, calls: set[int]) -> set[int]:
    """Those of these calls that are in the nearest expression behind one that has any."""
    inside = ({id(part) for part in ast.walk(one)} & calls for one in flow.behind(node))
    return next(filter(None, inside), set())


def _certainty(flow: Flow, call: ast.Call) -> str:
    """How surely a call runs, also as a branch of an expression: `A() if wide else B()`."""
    ranks = [flow.interpreter.reached.get(id(flow.of[id(call)].node), (0, ()))[0]]
    for choice in (node for node in flow.of[id(call)].nodes if isinstance(node, ast.IfExp)):
        branch = next((b for b in (choice.body, choice.orelse) if any(one is call for one in ast.walk(b))), None)
        taken = choice.body if known(flow.value(choice.test)) else choice.orelse
        surely = OPTION if branch is not taken else CERTAINTIES[0]
        ranks += [CERTAINTIES.index(surely if is_known(flow.value(choice.test)) else PERHAPS)] if branch else []
    return CERTAINTIES[max(ranks)]


def _method(call: ast.Call) -> str:
    return getattr(call.func, "attr", "")


def _arguments_of(flow: Flow, call: ast.Call) -> tuple[str, list[CallArgument]] | None:
    """The name of the class, and the arguments, where a call makes transformers' TrainingArguments, itself or by a
    parser of the command line; also those of a class of the script's own that derives from it."""
    value = flow.value(call)
    if OF_TRANSFORMERS.fullmatch(name_of(flow, call)):
        return name_of(flow, call), _given_in(flow, call)
    made = [value] if isinstance(flow.value(call.func), ScriptClass) else []
    if _method(call) in PARSES and isinstance(value, ListValue):
        made = list(value.items)
    for one in made:
        if isinstance(one, LibraryObject) and OF_TRANSFORMERS.fullmatch(one.name):
            return one.name, []
        if isinstance(one, ScriptObject) and OF_TRANSFORMERS.fullmatch(one.of.library_base() or ""):
            given = [] if _method(call) in PARSES else _given_in(flow, call)  # a parser's are none of theirs
            return one.of.node.name, [*given, *_fields_of(one)]
    return None


def _given_in(flow: Flow, call: ast.Call) -> list[CallArgument]:
    """The arguments of a call."""
    found = [CallArgument("*" if isinstance(a, ast.Starred) else None, a, _value(flow, a)) for a in call.args]
    for keyword in call.keywords:
        value = _value(flow, keyword.value)
        pairs = value.pairs.items() if keyword.arg is None and isinstance(value, DictValue) else ()
        found += [CallArgument(str(k), keyword.value, v, f"[{k!r}]") for k, v in pairs]
        found += [CallArgument(keyword.arg or "**", keyword.value, value)] if not pairs else []
    return found


def _fields_of(made: ScriptObject) -> Iterator[CallArgument]:
    """The fields of an object's class that it has by their defaults."""
    given = {argument.name for argument in made.arguments}
    for name, statement in made.of.fields().items():
        value, node = made.attributes.get(name) or made.of.find(name), statement.value
        if isinstance(node, ast.Call):  # field(default=0.1, metadata=…)
            node = next((keyword.value for keyword in node.keywords if keyword.arg == "default"), node)
        if node is not None and name not in given:
            yield CallArgument(name, node, value or Value())


def found(flow: Flow) -> Given | None:
    """What makes the steps of a script in place of its own loop."""
    return Fit.of(flow) or Settings.of(flow)


def _value(flow: Flow, node: ast.expr) -> Value:
    return flow.value(node) or Value()


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
