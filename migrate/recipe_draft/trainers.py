"""What a library's Trainer is given, where it makes the steps of a script: Lightning's; see training_sections.py for
transformers'."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from ..source.infer.interpreter import CERTAINTIES, DEFAULT, OPTION, PERHAPS
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
    shown,
    sources,
    surely,
    unwrapped,
)
from .flow import Flow, Statement
from .reach import named
from .silence import name_of, trains

MEASURED = "ReduceLROnPlateau"  # the schedule that depends on step()'s argument
OF_LIGHTNING = re.compile(r"(lightning|pytorch_lightning)\.(\w+\.)*Trainer\.fit")
# arguments of the Trainer that change nothing of a step -> with which values; with any where none are named
QUIET: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("accelerator", "logger", "profiler", "benchmark", "deterministic", "detect_anomaly"), ()),
    **dict.fromkeys(("enable_checkpointing", "enable_progress_bar", "enable_model_summary", "inference_mode"), ()),
    **dict.fromkeys(("default_root_dir", "log_every_n_steps", "num_sanity_val_steps"), ()),
    "devices": (1, "1"),
    "gpus": (0, 1),
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
SHARING = ("devices", "gpus", "num_nodes", "num_processes")  # they decide how many processes share a step
CLI = "LightningCLI"
CLI_READS = "what its command line and its files give is not known, and counts before what the script gives"
QUIET_OF_CLI = ("save_config_callback", "save_config_kwargs", "run", "description", "env_prefix", "env_parse")
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
        given = [one for one in self.trainer.arguments or [] if one.name]
        options = {one.name for one in given if one.name in SHARING and not isinstance(one.node, ast.Constant)}
        quiet = [name for name in self.quiet({one.name or "": one.value for one in given}) if name not in options]
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
    def of(cls, flow: Flow) -> Fit | Several | None:
        """The fit of a script, or its several ones, where their Trainers are known; else what LightningCLI is given."""
        fits = [s for s in flow.interpreter.seen if s.arguments is not None and OF_LIGHTNING.fullmatch(s.name)]
        found, groups = surely(by_sureness(fits)), list[list[LibraryUse]]()
        for one in distinct(found):
            group = next((group for group in groups if _is_same_fit(one, group[0])), None)
            groups += [] if group else [[]]
            (group or groups[-1]).extend(seen for seen in found if seen.node is one.node)
        each = [fit for group in groups if (fit := cls._alone(flow, group)) is not None]
        if len(each) == len(groups) > 1:
            return Several(flow, each[0].trainer, set(), tuple(each))
        return each[0] if len(each) == len(groups) == 1 else None if groups else cls._of_command_line(flow)

    @classmethod
    def _alone(cls, flow: Flow, found: list[LibraryUse]) -> Fit | None:
        """The runs of one fit, where its Trainer is known."""
        on = found[0].node.func if isinstance(found[0].node, ast.Call) else None
        if not isinstance(on, ast.Attribute):
            return None
        trainer = flow.value(on.value)
        modules = [one for seen in found if isinstance(one := unwrapped(seen.get("model", 0)), ScriptObject)]
        behind = {id(part): part for one in flow.behind(on.value) for part in ast.walk(one)}.values()
        makers = [one for one in behind if isinstance(one, ast.Call) and _makes_trainer(flow, one)]
        several = len(makers) > 1 or len({id(one.of.node) for one in modules}) > 1
        made = trainer.seen if isinstance(trainer, LibraryObject) else None
        if (
            isinstance(trainer, ScriptObject)
            and trainer.of.find("__init__") is None
            and trainer.source
            and trainer.node
        ):
            name, given = trainer.of.library_base() or "", trainer.arguments  # all of it goes to Lightning's own
            made = LibraryUse(name, trainer.source, trainer.node, given, trainer.certainty, None, (), 0)
        if made is None or several:
            return None
        module = modules[0] if len(modules) == len(found) else None
        return cls(flow, made, set(), found[0], module, tuple(modules))

    @classmethod
    def _of_command_line(cls, flow: Flow) -> Fit | None:
        """What the one LightningCLI of a script is given: its classes, made with their defaults, and the Trainer's."""
        calls = [(s, c) for s in named(flow) for c in s.calls if _is_cli(flow.value(c.func))]
        if len(calls) != 1 or certainty_of(flow, calls[0][1]) in (PERHAPS, OPTION):
            return None
        (statement, call), given = calls[0], dict[str, CallArgument]()
        for at, one in enumerate(given_in(flow, call)):
            given[one.name or ("model", "datamodule", "*")[min(at, 2)]] = one
        made = [one for one in flow.interpreter.made if one.node is call]
        handed = [
            CallArgument(name, call, one)
            for name, key in (("model", "model_class"), ("datamodule", "datamodule_class"))
            for one in made
            if (argument := given.get(key) or given.get(name)) is not None and argument.value is one.of
        ]
        defaults = given.get("trainer_defaults")
        own = _pairs(flow, replace(defaults, name="**")) if defaults else []
        known_ = ("model", "datamodule", "model_class", "datamodule_class", "trainer_defaults", *QUIET_OF_CLI)
        rest = [replace(one, name=key) for key, one in given.items() if key not in known_]
        use = LibraryUse(name_of(flow, call) or CLI, statement.source, call, [*own, *rest], DEFAULT, None, (), 0)
        module = next((one.value for one in handed if one.name == "model"), None)
        modules = (module,) if isinstance(module, ScriptObject) else ()
        return OfCommandLine(flow, use, set(), replace(use, arguments=handed), next(iter(modules), None), modules)

    @property
    def by_hand(self) -> bool:
        """Whether the module makes its updates itself."""
        switch = self.module.attributes.get("automatic_optimization") if self.module is not None else None
        return known(switch) is False or self._has("automatic_optimization")

    def differs(self) -> bool:
        """Whether its runs have modules that are made with different arguments."""
        return _made_differently(self.modules)

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
        behind = (id(part) for given in self.flow.behind(statement.node.value) for part in ast.walk(given))  # type: ignore[attr-defined]
        if not isinstance(one, LibraryObject) or one.family != names.SCHEDULE or id(schedule.node) not in behind:
            return None  # another one may stand on the other side of a condition
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
        return mixed(kind, self.takes("precision"), "with 16-mixed Lightning")

    def quiet(self, arguments: dict[str, Value]) -> list[str]:
        """The names of those arguments that change nothing of a step."""
        quiet = [k for k, v in arguments.items() if k in QUIET and (not QUIET[k] or _is_one(known(v, ASK), QUIET[k]))]
        called = [getattr(one, "name", "") for one in _held(arguments.get("callbacks"))]
        return [*quiet, "callbacks"] if all(map(QUIET_CALLBACKS.fullmatch, called)) else quiet


@dataclass(frozen=True)
class OfCommandLine(Fit):
    """What Lightning's LightningCLI is given: defaults, of which the command line and files may give others."""

    def leave(self, section: Entry) -> None:
        """Note as left over what it is given and the draft does not have, and that it is not all."""
        super().leave(section)
        section.left.append(((self.trainer.source.shown, self.trainer.node.lineno), f"{CLI}: {CLI_READS}"))


@dataclass(frozen=True)
class Several(Given):
    """Several fits of Lightning's Trainers: what they agree on."""

    fits: tuple[Fit, ...]

    def _agreed(self, ask: Callable[[Given], Any]) -> Any:
        """What every fit says, where all say the same, and their lines; else nothing."""
        found = [ask(replace(fit, taken=set())) for fit in self.fits]
        values = [[one.value for one in (each if isinstance(each, list) else [each]) if one] for each in found]
        if not values[0] or any(one != values[0] or ASK in one for one in values):
            return None
        said = [ask(fit) for fit in self.fits]
        self.taken.update(*(fit.taken for fit in self.fits))
        for entry, *others in zip(*(each if isinstance(each, list) else [each] for each in said), strict=True):
            entry.comments = list(dict.fromkeys(line for one in (entry, *others) for line in one.comments))
        return said[0]

    def differs(self) -> bool:
        """Whether its runs have modules that are made with different arguments."""
        return _made_differently([one for fit in self.fits for one in fit.modules])

    def epochs(self) -> Entry:
        """The key `epochs` where all have the same number."""
        found = self._agreed(lambda fit: fit.epochs())
        counts = [(place(fit.trainer), fit.given("max_epochs")) for fit in self.fits]
        numbers = ", then ".join(str(count) for _, count in counts)
        words = [f"{len(self.fits)} fits, of which a recipe has one; max_epochs is {numbers}"]
        for fit in () if found else self.fits:
            fit.epochs()  # asked for
        return found or Entry("epochs", ASK, [*dict.fromkeys(at for at, _ in counts), *words])

    def clips(self) -> Entry | None:
        """The section `clip` where all clip by the same norm."""
        return self._agreed(lambda fit: fit.clips())

    def accumulates(self) -> Entry | None:
        """The key `accumulate` where all add up the same number of batches."""
        return self._agreed(lambda fit: fit.accumulates())

    def precision(self) -> list[Entry]:
        """The sections `amp` and `dynamic_loss_scale` where all have the same mixed precision."""
        return self._agreed(lambda fit: fit.precision()) or []

    def loaders(self, way: str) -> list[LibraryUse] | None:
        """The loaders of all fits."""
        found = [fit.loaders(way) for fit in self.fits]
        every = [one for each in found for one in each or []]
        return None if None in found else list({id(one.node): one for one in every}.values())

    def moves(self, schedule: LibraryUse) -> tuple[Entry, list[tuple[Place, str]]] | None:
        """The key `per` of a schedule, by the first fit that has it."""
        return next((found for fit in self.fits if (found := fit.moves(schedule)) is not None), None)

    def starts(self) -> list[str]:
        """Words for the lines that the backward pass starts from."""
        return list(dict.fromkeys(line for fit in self.fits for line in fit.starts()))

    def leave(self, section: Entry) -> None:
        """Note as left over what they are given and the draft does not have."""
        for fit in self.fits:
            fit.leave(section)
        section.left[:] = dict.fromkeys(section.left)


def _made_differently(objects: Sequence[ScriptObject]) -> bool:
    given = [[(one.name, known(one.value, ast.unparse(one.node))) for one in made.arguments] for made in objects]
    return any(one != given[0] for one in given)


def _makes_trainer(flow: Flow, call: ast.Call) -> bool:
    """Whether a call that runs with the defaults makes a Trainer of Lightning's."""
    made = flow.value(call)
    name = (
        (made.of.library_base() or "") if isinstance(made, ScriptObject) and made.node is call else name_of(flow, call)
    )
    return OF_LIGHTNING.fullmatch(f"{name}.fit") is not None and certainty_of(flow, call) != OPTION


def _is_cli(of: Value | None) -> bool:
    """Whether a class is Lightning's LightningCLI, or derives from it."""
    name = of.library_base() if isinstance(of, ScriptClass) else of.name if isinstance(of, LibraryName) else ""
    return (name or "").endswith(f".{CLI}")


def mixed(kind: str, comments: list[str], who: str) -> list[Entry]:
    """The sections `amp` and `dynamic_loss_scale` of a kind of half precision; who: in words, of its scaler."""
    scaler = Entry("dynamic_loss_scale", {}, [f"{who} scales the loss by torch's GradScaler, with its defaults"])
    return [Entry("amp", {"level": "O1", "dtype": kind}, comments), *([scaler] if kind == "float16" else [])]


def certainty_of(flow: Flow, call: ast.Call) -> str:
    """How surely a call runs, also as a branch of an expression: `A() if wide else B()`."""
    ranks = [flow.interpreter.reached.get(id(flow.of[id(call)].node), (0, ()))[0]]
    for choice in (node for node in flow.of[id(call)].nodes if isinstance(node, ast.IfExp)):
        branch = next((b for b in (choice.body, choice.orelse) if any(one is call for one in ast.walk(b))), None)
        taken = choice.body if known(flow.value(choice.test)) else choice.orelse
        surely = OPTION if branch is not taken else CERTAINTIES[0]
        ranks += [CERTAINTIES.index(surely if is_known(flow.value(choice.test)) else PERHAPS)] if branch else []
    return CERTAINTIES[max(ranks)]


def _pairs(flow: Flow, given: CallArgument) -> list[CallArgument]:
    """The arguments in a dict that is given: {"max_epochs": 5}, or dict(max_epochs=5)."""
    if isinstance(given.node, ast.Dict) and None not in given.node.keys:
        parts = zip(given.node.keys, given.node.values, strict=True)
        keys = [(known(_value(flow, key)), value) for key, value in parts if key is not None]
        if all(isinstance(key, str) for key, _ in keys):
            return [CallArgument(str(key), value, _value(flow, value)) for key, value in keys]
    pairs = given.value.pairs.items() if isinstance(given.value, DictValue) else ()
    return [CallArgument(str(k), given.node, v, f"[{k!r}]") for k, v in pairs] or [given]


def given_in(flow: Flow, call: ast.Call) -> list[CallArgument]:
    """The arguments of a call."""
    found = [CallArgument("*" if isinstance(a, ast.Starred) else None, a, _value(flow, a)) for a in call.args]
    for keyword in call.keywords:
        value = _value(flow, keyword.value)
        pairs = value.pairs.items() if keyword.arg is None and isinstance(value, DictValue) else ()
        found += [CallArgument(str(k), keyword.value, v, f"[{k!r}]") for k, v in pairs]
        found += [CallArgument(keyword.arg or "**", keyword.value, value)] if not pairs else []
    return found


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


def not_found(flow: Flow, what: str) -> str:
    """Words where nothing of a kind was found: a call that trains by itself, or `what`."""
    found = ((s, c) for s in named(flow) for c in s.calls if trains(c) and flow.function_of(c) is None)
    words = (str(Comment(s.place, f"{shown(ast.unparse(c.func))}(…) trains, and was not read")) for s, c in found)
    return next(words, what)


def words_of(statement: Statement, why: str) -> str:
    """The place, text and a reason, not as a Comment: the line is listed too, and does not count as drafted."""
    return str(Comment(statement.place, f"{shown(statement.text)}: {why}"))


# what the Trainers of transformers and its like are given

OF_TRANSFORMERS = re.compile(r"transformers\.(\w+\.)*(Seq2Seq)?TrainingArguments")
OF_MODELS = re.compile(r"(transformers|trl|sentence_transformers|setfit)\.(\w+\.)*\w*Trainer")


def is_trainer(of: Value | None) -> bool:
    """Whether a class is transformers' Trainer or its like, or derives from one."""
    lineage = of.lineage() if isinstance(of, ScriptClass) else [of]
    return any(isinstance(one, LibraryName) and OF_MODELS.fullmatch(one.name) for one in lineage)


def handed_to_trainers(flow: Flow, name: str, position: int) -> list[ast.expr]:
    """What the Trainers of transformers and its like are given for an argument; a class of the script's own may have
    other places."""
    found: list[ast.expr] = []
    for call in (call for statement in named(flow) for call in statement.calls if is_trainer(flow.value(call.func))):
        by_name = [keyword.value for keyword in call.keywords if keyword.arg == name]
        own = isinstance(flow.value(call.func), ScriptClass)
        found += by_name or ([] if own else call.args[position : position + 1])
    return found


def nearest(flow: Flow, node: ast.expr, calls: set[int]) -> set[int]:
    """Those of these calls that are in the nearest expression behind one that has any."""
    inside = ({id(part) for part in ast.walk(one)} & calls for one in flow.behind(node))
    return next(filter(None, inside), set())


def method_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", "")


def arguments_of(flow: Flow, call: ast.Call) -> tuple[str, list[CallArgument]] | None:
    """The name of the class, and the arguments, where a call makes transformers' TrainingArguments, itself or by a
    parser of the command line; also those of a class of the script's own that derives from it."""
    value = flow.value(call)
    if OF_TRANSFORMERS.fullmatch(name_of(flow, call)):
        return name_of(flow, call), given_in(flow, call)
    made = [value] if isinstance(flow.value(call.func), ScriptClass) else []
    if method_of(call) in PARSES and isinstance(value, ListValue):
        made = list(value.items)
    for one in made:
        if isinstance(one, LibraryObject) and OF_TRANSFORMERS.fullmatch(one.name):
            return one.name, []
        if isinstance(one, ScriptObject) and OF_TRANSFORMERS.fullmatch(one.of.library_base() or ""):
            given = [] if method_of(call) in PARSES else given_in(flow, call)  # a parser's are none of theirs
            return one.of.node.name, [*given, *one.defaults()]
    return None


def of_trainer(flow: Flow, name: str) -> ast.expr | None:
    """What the only call that makes a Trainer, or an object of a class named so, is given under a name; a Trainer of
    transformers has the model first."""
    calls = [c for s in named(flow) for c in s.calls if any(k.arg in ("args", "model") for k in c.keywords)]
    made = [c for c in calls if re.search(r"Trainer$", ast.unparse(c.func))]
    given = {k.arg: k.value for k in made[0].keywords} if len(made) == 1 else {}
    first = made[0].args[0] if len(made) == 1 and made[0].args and name == "model" else None
    return given.get(name, first)


def maker_of(flow: Flow, node: ast.expr) -> Statement | None:
    """The statement with the nearest call that makes a value."""
    calls = (one for one in flow.behind(node) if isinstance(one, ast.Call))
    found = (flow.of.get(id(one)) for one in calls)
    return next((one for one in found if one is not None and one.alone is None), None)
