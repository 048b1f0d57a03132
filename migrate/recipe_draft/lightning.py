"""What Lightning's Trainer is given: of the fits of a script, and of its LightningCLI."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import library_names as names
from ..read_script.abstract_values import (
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
    known,
)
from ..read_script.interpreter import CERTAINTIES, DEFAULT, OPTION, PERHAPS
from .data_flow import Flow, Statement
from .passed_over import name_of
from .recipe_entries import ASK, Comment, Entry, Place, by_sureness, distinct, place, surely
from .relevance import named
from .trained_model import either, unwrapped
from .trainers import MEASURED, Given, certainty_of, given_in, mixed, value_in

OF_LIGHTNING = re.compile(r"(lightning|pytorch_lightning)\.(\w+\.)*Trainer\.fit")
# arguments of the Trainer that change nothing of a step -> with which values; with any where none are named
QUIET: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("accelerator", "logger", "profiler", "benchmark", "deterministic", "detect_anomaly"), ()),
    **dict.fromkeys(("enable_checkpointing", "enable_progress_bar", "enable_model_summary", "inference_mode"), ()),
    **dict.fromkeys(("default_root_dir", "log_every_n_steps", "num_sanity_val_steps"), ()),
    **dict.fromkeys(("checkpoint_callback", "progress_bar_refresh_rate", "weights_summary"), ()),
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
CLI = "LightningCLI"
CLI_READS = "what its command line and its files give is not known, and counts before what the script gives"
QUIET_OF_CLI = ("save_config_callback", "save_config_kwargs", "run", "description", "env_prefix", "env_parse")
LOADERS = (LibraryObject, ListValue, DictValue, Constant)  # what is given in place of Lightning's data, or None
PRECISIONS = {"16-mixed": "float16", "16": "float16", "bf16-mixed": "bfloat16", "bf16": "bfloat16"}


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
        given = _given_to_lightning(flow, trainer) if isinstance(trainer, ScriptObject) else None
        if isinstance(trainer, ScriptObject) and given is not None and trainer.source and trainer.node:
            name = trainer.of.library_base() or ""
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

    def losses(self) -> list[tuple[Statement, ast.expr]]:
        """What training_step returns, with its statements, where the Trainer differentiates it."""
        found = [] if self.by_hand else self._returned(self.module, "training_step")
        return [(one, one.node.value) for one, _ in found if isinstance(one.node, ast.Return) and one.node.value]

    def starts(self) -> list[str]:
        """Words for the lines that the backward pass starts from, where the Trainer makes it."""
        found = dict.fromkeys(_line(one) for one, _ in self.losses())
        return [f"{one}: Lightning differentiates this, and its loss was not read" for one in found]

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

    def losses(self) -> list[tuple[Statement, ast.expr]]:
        """What training_step of their modules returns, with its statements."""
        return [one for fit in self.fits for one in fit.losses()]

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


def _given_to_lightning(flow: Flow, trainer: ScriptObject) -> list[CallArgument] | None:
    """The arguments that Lightning's own Trainer gets by one of the script's, all of them or those of the one
    `super().__init__(…)`; None where a condition decides."""
    own = trainer.of.find("__init__")
    if own is None:
        return trainer.arguments
    inside = [
        (s, call)
        for s in flow.statements
        for call in s.calls
        if isinstance(own, ScriptFunction) and s.function is own.node
    ]
    handed = [(s, call) for s, call in inside if re.fullmatch(r"super\(.*\)\.__init__", ast.unparse(call.func))]
    plain = len(handed) == 1 and not handed[0][0].around
    return given_in(flow, handed[0][1]) if plain else None


def _makes_trainer(flow: Flow, call: ast.Call) -> bool:
    """Whether a call that runs with the defaults makes a Trainer of Lightning's."""
    made = flow.value(call)
    name = (
        (made.of.library_base() or "") if isinstance(made, ScriptObject) and made.node is call else name_of(flow, call)
    )
    name = name.removesuffix(".from_argparse_args")
    return OF_LIGHTNING.fullmatch(f"{name}.fit") is not None and certainty_of(flow, call) != OPTION


def _is_cli(of: Value | None) -> bool:
    """Whether a class is Lightning's LightningCLI, or derives from it."""
    name = of.library_base() if isinstance(of, ScriptClass) else of.name if isinstance(of, LibraryName) else ""
    return (name or "").endswith(f".{CLI}")


def _pairs(flow: Flow, given: CallArgument) -> list[CallArgument]:
    """The arguments in a dict that is given: {"max_epochs": 5}, or dict(max_epochs=5)."""
    if isinstance(given.node, ast.Dict) and None not in given.node.keys:
        parts = zip(given.node.keys, given.node.values, strict=True)
        keys = [(known(value_in(flow, key)), value) for key, value in parts if key is not None]
        if all(isinstance(key, str) for key, _ in keys):
            return [CallArgument(str(key), value, value_in(flow, value)) for key, value in keys]
    pairs = given.value.pairs.items() if isinstance(given.value, DictValue) else ()
    return [CallArgument(str(k), given.node, v, f"[{k!r}]") for k, v in pairs] or [given]


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
