"""What a library's Trainer is given, where it makes the steps of a script: what a recipe takes of it; and transformers'
Trainer. Lightning's is in lightning.py."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ..read_script.abstract_values import (
    CallArgument,
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
from ..read_script.command_line import PARSES
from ..read_script.interpreter import CERTAINTIES, OPTION, PERHAPS
from .data_flow import FUNCTIONS, Flow, Statement
from .passed_over import name_of, trains_unread
from .recipe_entries import (
    ASK,
    LONGEST_WORD,
    Comment,
    Entry,
    Place,
    behind_names,
    place,
    setting,
    shown,
    sources,
    unread,
)
from .relevance import PLAIN_BASES, named

MEASURED = "ReduceLROnPlateau"  # the schedule that depends on step()'s argument
TRAINERS = re.compile(r"(transformers|trl|lightning|pytorch_lightning)\.(\w+\.)*\w*Trainer")
SHARING = ("devices", "gpus", "num_nodes", "num_processes")  # they decide how many processes share a step


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

    def optimizer(self) -> Entry | None:
        """The section `optimizer` where the script makes none and the library does."""
        return None

    def schedule(self) -> Entry | None:
        """The section `schedule` where the script makes none and the library does."""
        return None

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

    def losses(self) -> list[tuple[Statement, ast.expr]]:
        """What the backward pass starts from, in the methods of the script that return it, with its statements."""
        return []

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


def given_in(flow: Flow, call: ast.Call) -> list[CallArgument]:
    """The arguments of a call."""
    found = [CallArgument("*" if isinstance(a, ast.Starred) else None, a, value_in(flow, a)) for a in call.args]
    for keyword in call.keywords:
        value = value_in(flow, keyword.value)
        pairs = value.pairs.items() if keyword.arg is None and isinstance(value, DictValue) else ()
        found += [CallArgument(str(k), keyword.value, v, f"[{k!r}]") for k, v in pairs]
        found += [CallArgument(keyword.arg or "**", keyword.value, value)] if not pairs else []
    return found


def value_in(flow: Flow, node: ast.expr) -> Value:
    return flow.value(node) or Value()


def not_found(flow: Flow, what: str) -> str:
    """Words where nothing of a kind was found: a call that trains by itself, or `what`."""
    each = ((s, c) for s in named(flow) for c in s.calls if flow.function_of(c) is None)
    found = ((s, c) for s, c in each if trains_unread(flow, c))
    words = (str(Comment(s.place, f"{shown(ast.unparse(c.func))}(…) trains, and was not read")) for s, c in found)
    return next(words, what)


def words_of(statement: Statement, why: str) -> str:
    """The place, text and a reason, not as a Comment: the line is listed too, and does not count as drafted."""
    return str(Comment(statement.place, f"{shown(statement.text)}: {why}"))


def used_by_draft(flow: Flow, places: set[tuple[str, int]]) -> set[str]:
    """The classes, and the functions with their files, of the statements at these lines; and of those that make a
    library's Trainer, where all are in functions that nothing calls: another file does."""
    made = []
    for statement, called in ((s, flow.value(call.func)) for s in flow.statements for call in s.calls):
        name = called.library_base() if isinstance(called, ScriptClass) else getattr(called, "name", "")
        made += [statement] if isinstance(name, str) and TRAINERS.fullmatch(name) else []
    called_ = any(not isinstance(one.function, FUNCTIONS) or id(one.function) in flow.calls for one in made)
    used = [one for one in flow.statements if one.stands_at(places)] + ([] if called_ else made)
    functions = {f"{s.source.shown}:{s.function.name}" for s in used if isinstance(s.function, FUNCTIONS)}
    return functions | {one.owner.name for one in used if one.owner is not None}


# transformers' Trainer and its like: the TrainingArguments, the model and the optimizer that it is given

OF_TRANSFORMERS = re.compile(r"transformers\.(\w+\.)*(Seq2Seq)?TrainingArguments")
OF_MODELS = re.compile(r"(transformers|trl|sentence_transformers|setfit)\.(\w+\.)*\w*Trainer")
# arguments that change nothing of a step; those that choose which weights are kept
QUIET_SETTINGS = re.compile(
    r"0|output_dir|overwrite_output_dir|do_(train|eval|predict)|(logging|save|eval|evaluation|hub|push_to_hub|report)_\w+|"
    r"run_name|disable_tqdm|per_device_eval_batch_size|metric_for_best_model|greater_is_better|push_to_hub|"
    r"dataloader_(num_workers|pin_memory|persistent_workers|prefetch_factor)|predict_with_generate|generation_\w+"
)
CHOOSING = re.compile(r"metric_for_best_model|greater_is_better|(eval|evaluation|save)_(strategy|steps|delay)")
DROPS, BEST, SIZE = "dataloader_drop_last", "load_best_model_at_end", "per_device_train_batch_size"
LAST = 99  # the place of an argument that scripts give by its name
# by their names in transformers: those of a plain step, and the methods and arguments that decide on another one
DEFAULTS: dict[str, Any] = {
    "num_train_epochs": 3,
    "per_device_train_batch_size": 8,
    "learning_rate": 5e-05,
    "weight_decay": 0.0,
    "optim": "adamw_torch",
    "lr_scheduler_type": "linear",
}
OPTIMIZERS = {"adamw_torch": "AdamW", "adamw_torch_fused": "AdamW", "sgd": "SGD"}
SCHEDULES: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, "total_iters": ASK}),
    "cosine": ("CosineAnnealingLR", {"T_max": ASK}),
}
RATES = ("learning_rate", "weight_decay", "adam_beta1", "adam_beta2", "adam_epsilon", "optim", "optim_args")
MOVING = ("lr_scheduler_type", "lr_scheduler_kwargs", "warmup_steps", "warmup_ratio")
OVERRIDES = (
    ("create_optimizer", "create_optimizer_and_scheduler", "get_optimizer_cls_and_kwargs"),
    ("create_scheduler", "create_optimizer_and_scheduler"),
)
ENGINES = ("deepspeed", "fsdp", "optim_args", "optim_target_modules")  # with these the optimizer is another one
FROM_FILE = re.compile(r"parse_(json|yaml|dict)(_file)?")  # in place of the command line


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
        calls = [one for one in every if certainty_of(flow, one[1]) != OPTION]
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
        certainty = certainty_of(flow, call)
        of_file = (
            certainty == PERHAPS
            and _method_of(call) in PARSES
            and any(FROM_FILE.fullmatch(_method_of(other)) for s in named(flow) for other in s.calls)
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
        quiet = [*off, *filter(QUIET_SETTINGS.fullmatch, ["0", *arguments])]
        quiet += [one for at, several in enumerate((RATES, MOVING)) if self._is_handed(at) for one in several]
        return [one for one in quiet if not (self.given(BEST) and CHOOSING.fullmatch(one))]

    def leave(self, section: Entry) -> None:
        """Note as left over what the draft does not have, and what chooses the weights that are kept."""
        super().leave(section)
        chooses = [of_trainer(self.flow, "compute_metrics")] if self.given(BEST) else []
        for function in (
            value for node in chooses if node and isinstance(value := self.flow.value(node), ScriptFunction)
        ):
            name, at = getattr(function.node, "name", "lambda"), (function.scope.source.shown, function.node.lineno)
            section.left.append((at, f"{name}, given as compute_metrics: {BEST} keeps weights by what it returns"))

    def moves(self, schedule: LibraryUse) -> tuple[Entry, list[tuple[Place, str]]] | None:
        """The key `per` of a schedule that the Trainer is given; None where it is given none."""
        given = of_trainer(self.flow, "optimizers")
        behind = (id(part) for one in (self.flow.behind(given) if given else ()) for part in ast.walk(one))
        words = "transformers moves the schedule that it is given after every update"
        return (Entry("per", "step", [words]), []) if id(schedule.node) in behind else None

    @cached_property
    def _changed(self) -> set[str]:
        """The arguments that the script sets after it has made them; "*" for those that reading cannot tell."""
        made, found = self.flow.value(self.trainer.node), set[str]()
        for statement in named(self.flow) if made is not None else ():
            node = statement.node
            targets = [*getattr(node, "targets", []), getattr(node, "target", None)]
            of = [one for one in targets if isinstance(one, ast.Attribute) and self.flow.value(one.value) is made]
            found |= {one.attr for one in of}
            for call in statement.calls:
                on = call.func.value if isinstance(call.func, ast.Attribute) else None
                sets = on is not None and self.flow.value(on) is made and _method_of(call).startswith("set_")
                given = call.args[:1] if name_of(self.flow, call).rpartition(".")[2] in ("setattr", "replace") else []
                if any(self.flow.value(one) is made for one in given):
                    found |= {known(value_in(self.flow, one), "*") for one in call.args[1:2]}
                    found |= {keyword.arg or "*" for keyword in call.keywords}
                found |= {"*"} if sets else set()
        return found

    def given(self, name: str) -> Any:
        """The value of an argument: None where there is none, ??? where it could not be read or is set later."""
        return ASK if self._changed & {name, "*"} else super().given(name)

    @property
    def plain(self) -> bool:
        """Whether what is not given is as the library has it: no command line gives it, nor an argument that was not
        read."""
        unread_ = any(one.name in ("*", "**") for one in self.trainer.arguments or [])
        return not unread_ and not (isinstance(self.trainer.node, ast.Call) and _method_of(self.trainer.node) in PARSES)

    def _chosen(self, name: str) -> tuple[Any, list[str]]:
        """An argument with its lines, or the library's default with words that say so; ??? where neither is known."""
        if (given := self.given(name)) is not None:
            return given, [*self.takes(name), *([unread(name)] if given == ASK else [])]
        words = f"{DEFAULTS[name]} is transformers' {name} where none is given"
        return DEFAULTS[name] if self.plain else ASK, [place(self.trainer), words]

    def _handed(self, at: int) -> list[ast.expr | None]:
        """What the Trainers may be given as their optimizer (0) or schedule (1); None for what could not be read."""
        found: list[ast.expr | None] = []
        for node in handed_to_trainers(self.flow, "optimizers", LAST):
            several = [one.value for one in self.flow.reads.get(id(node), ())] if isinstance(node, ast.Name) else [node]
            pairs = [one.elts for one in several if isinstance(one, ast.Tuple) and len(one.elts) == 2]
            found += [pair[at] for pair in pairs] if len(pairs) == len(several) > 0 else [None]
        return found

    def _is_handed(self, at: int) -> bool:
        """Whether the script makes the optimizer (0) or the schedule (1) that each Trainer is given."""
        given, every = handed_to_trainers(self.flow, "optimizers", LAST), list(_trainer_calls(self.flow))
        made = (one is not None and maker_of(self.flow, one) is not None for one in self._handed(at))
        return len(given) == len(every) > 0 and all(made)

    def _makes(self, at: int) -> bool:
        """Whether the library makes the optimizer (0) or the schedule (1) by these arguments."""
        calls = list(_trainer_calls(self.flow))
        own = [of for call in calls if isinstance(of := self.flow.value(call.func), ScriptClass)]
        overridden = any(of.find(method) is not None for of in own for method in OVERRIDES[at])
        unread_ = any(one.arg in (None, "optimizer_cls_and_kwargs") for call in calls for one in call.keywords)
        given = any(one is None or known(value_in(self.flow, one), ASK) is not None for one in self._handed(at))
        return bool(calls) and not (overridden or unread_ or given)

    def optimizer(self) -> Entry | None:
        """The section `optimizer` that the library makes of these arguments."""
        if not self._makes(0) or not self.plain or any(map(self.given, ENGINES)):
            return None
        name = OPTIMIZERS.get(str(self._chosen("optim")[0]))
        if name is None:
            self.taken.discard("optim")
            return None
        args = [Entry("lr", *self._chosen("learning_rate"))]
        if name == "AdamW":
            betas = [self.given(one) for one in ("adam_beta1", "adam_beta2")]
            if betas != [None, None]:
                of_both = dict.fromkeys([*self.takes("adam_beta1"), *self.takes("adam_beta2")])
                both = [usual if one is None else one for one, usual in zip(betas, (0.9, 0.999), strict=True)]
                args.append(Entry("betas", ASK if ASK in both else both, list(of_both)))
            if (small := self.given("adam_epsilon")) is not None:
                args.append(Entry("eps", small, self.takes("adam_epsilon")))
        decay, lines = self._chosen("weight_decay")
        args.append(Entry("weight_decay", decay, lines))
        words = ["transformers makes it; older versions make an AdamW of their own where none is named"]
        words = words if name == "AdamW" and self.given("optim") is None else ["transformers makes it"]
        below = [Entry("name", name), Entry("args", below=args)]
        if decay != 0:
            without = "transformers gives none to biases and LayerNorms, later also to all with norm in their name:"
            below.append(Entry("no_weight_decay", ASK, [without, "[norm, bias] where the model has no other norms"]))
        return Entry("optimizer", comments=[*self._chosen("optim")[1][:1], *words], below=below)

    def schedule(self) -> Entry | None:
        """The section `schedule` that the library makes of these arguments; asked for where the rate first rises."""
        if not self._makes(1):
            return None
        kind, lines = self._chosen("lr_scheduler_type")
        if kind == "constant":
            return None
        warm = [self.given(one) for one in ("warmup_steps", "warmup_ratio")]
        warm = warm if self.plain or warm != [None, None] else [ASK]  # which the command line may say
        if kind not in SCHEDULES or any(warm) or self.given("lr_scheduler_kwargs") is not None:
            self.taken.discard("lr_scheduler_type")
            rises = ["in a warm-up its rate rises to the full one, then follows the schedule"] if any(warm) else []
            return Entry("schedule", ASK, [*lines, *rises])
        self.taken.update(("warmup_steps", "warmup_ratio"))
        name, args = SCHEDULES[kind]
        steps = self.number("max_steps")
        lines += ["??? is the number of updates of the whole run"] if not steps else self.takes("max_steps")[1:]
        self.taken.discard("max_steps")
        below = [Entry(key, steps or ASK if value == ASK else value) for key, value in args.items()]
        return Entry(
            "schedule", comments=lines, below=[Entry("name", name), Entry("per", "step"), Entry("args", below=below)]
        )

    def epochs(self) -> Entry:
        """The key `epochs` where their number is known, and no number of steps is given in its place."""
        steps, given = self.given("max_steps"), self.given("num_train_epochs")
        count = self.number("num_train_epochs") if given is not None else self._chosen("num_train_epochs")[0]
        words = ["transformers trains 3 epochs where no number is given"] if steps is given is None else []
        if count in (0, ASK) or steps not in (None, -1):
            self.taken.discard("num_train_epochs")
            return Entry("epochs", ASK, [place(self.trainer), *words])
        self.taken.add("max_steps")
        return Entry("epochs", count, [*self.takes("num_train_epochs"), *words])

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
        size, name = self.number(SIZE), "of each device"
        if self.given(SIZE) is None and self.plain and self.given("per_gpu_train_batch_size") is None:
            size, name = self._chosen(SIZE)[0], f"of each device; {self._chosen(SIZE)[1][-1]}"
        dropped = self.given(DROPS)
        words = ["transformers keeps the last batch of an epoch, smaller or not, where nothing else is given"]
        last = [Entry("drop_last", dropped or False, [*self.takes(DROPS), *(words if dropped is None else [])])]
        last = [] if dropped is True else last
        if not size or self.given("gradient_accumulation_steps") not in (None, 1):
            return [Entry("batch", ASK, [place(self.trainer)]), *last]
        self.taken.add("gradient_accumulation_steps")
        return [Entry("batch", size, [*self.takes(SIZE), name]), *last]

    def precision(self) -> list[Entry]:
        """The sections `amp` and `dynamic_loss_scale` where half precision is switched on."""
        kinds = [(name, kind) for name, kind in (("fp16", "float16"), ("bf16", "bfloat16")) if self.given(name) is True]
        return mixed(kinds[0][1], self.takes(kinds[0][0]), "with fp16 transformers") if len(kinds) == 1 else []

    def losses(self) -> list[tuple[Statement, ast.expr]]:
        """What `compute_loss` of the script's Trainers returns, with its statements."""
        made = (self.flow.value(call.func) for call in _trainer_calls(self.flow))
        own = [one.find("compute_loss") for one in made if isinstance(one, ScriptClass)]
        ends = (self.flow.returns.get(id(one.node), []) for one in own if isinstance(one, ScriptFunction))
        return [end for several in ends for end in several]

    def starts(self) -> list[str]:
        """Words for the lines that the backward pass starts from."""
        why = "transformers differentiates this, and its loss was not read"
        found = [words_of(end, why) for end, _ in self.losses()]
        for call in _trainer_calls(self.flow):
            of = self.flow.value(call.func)
            own = of.find("compute_loss") if isinstance(of, ScriptClass) else None
            given = any(one.arg in (None, "compute_loss_func") for one in call.keywords)
            name = of.library_base() if isinstance(of, ScriptClass) else getattr(of, "name", "")
            if own is None and not given and str(name).startswith("transformers."):
                found += [words_of(self.flow.of[id(call)], "it differentiates the loss that the model returns")]
        return list(dict.fromkeys(found))

    def updates(self) -> list[str]:
        """Words for what makes the optimizer where the script makes none."""
        given = of_trainer(self.flow, "optimizers")
        pairs = [one for one in (self.flow.behind(given) if given else ()) if isinstance(one, ast.Tuple) and one.elts]
        makers = [made for one in pairs if (made := maker_of(self.flow, one.elts[0])) is not None]
        said = [words_of(one, "the Trainer is given what this makes") for one in makers]
        return said or [f"{place(self.trainer)}: transformers makes the optimizer and its schedule by these arguments"]


def _is_trainer(of: Value | None) -> bool:
    """Whether a class is transformers' Trainer or its like, or derives from one."""
    lineage = of.lineage() if isinstance(of, ScriptClass) else [of]
    return any(isinstance(one, LibraryName) and OF_MODELS.fullmatch(one.name) for one in lineage)


def _trainer_calls(flow: Flow) -> Iterator[ast.Call]:
    """The calls that make a Trainer of transformers or its like, or an object of a class that derives from one."""
    return (call for s in named(flow) for call in s.calls if _is_trainer(flow.value(call.func)))


def handed_to_trainers(flow: Flow, name: str, position: int) -> list[ast.expr]:
    """What the Trainers of transformers and its like are given for an argument; a class of the script's own may have
    other places."""
    found: list[ast.expr] = []
    for call in _trainer_calls(flow):
        by_name = [keyword.value for keyword in call.keywords if keyword.arg == name]
        own = isinstance(flow.value(call.func), ScriptClass)
        found += by_name or ([] if own else call.args[position : position + 1])
    return found


def _nearest(flow: Flow, node: ast.expr, calls: set[int]) -> set[int]:
    """Those of these calls that are in the _nearest expression behind one that has any."""
    inside = ({id(part) for part in ast.walk(one)} & calls for one in flow.behind(node))
    return next(filter(None, inside), set())


def _method_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", "")


def _arguments_of(flow: Flow, call: ast.Call) -> tuple[str, list[CallArgument]] | None:
    """The name of the class, and the arguments, where a call makes transformers' TrainingArguments, itself or by a
    parser of the command line; also those of a class of the script's own that derives from it."""
    value = flow.value(call)
    if OF_TRANSFORMERS.fullmatch(name_of(flow, call)):
        return name_of(flow, call), given_in(flow, call)
    made = [value] if isinstance(flow.value(call.func), ScriptClass) else []
    if _method_of(call) in PARSES and isinstance(value, ListValue):
        made = list(value.items)
    for one in made:
        if isinstance(one, LibraryObject) and OF_TRANSFORMERS.fullmatch(one.name):
            return one.name, []
        if isinstance(one, ScriptObject) and OF_TRANSFORMERS.fullmatch(one.of.library_base() or ""):
            given = [] if _method_of(call) in PARSES else given_in(flow, call)  # a parser's are not the class's
            return one.of.node.name, [*given, *one.defaults()]
    return None


def of_trainer(flow: Flow, name: str) -> ast.expr | None:
    """What the only call that makes a Trainer, or an object of a class named so, is given under a name; a Trainer of
    transformers has the model first."""
    calls = [c for s in named(flow) for c in s.calls if any(k.arg in ("args", "model") for k in c.keywords)]
    made = [c for c in calls if re.search(r"Trainer$", ast.unparse(c.func))]
    made = list({id(one): one for one in (*made, *_trainer_calls(flow))}.values())
    given = {k.arg: k.value for k in made[0].keywords} if len(made) == 1 else {}
    first = made[0].args[0] if len(made) == 1 and made[0].args and name == "model" else None
    return given.get(name, first)


def maker_of(flow: Flow, node: ast.expr) -> Statement | None:
    """The statement with the _nearest call that makes a value."""
    calls = (one for one in flow.behind(node) if isinstance(one, ast.Call))
    found = (flow.of.get(id(one)) for one in calls)
    return next((one for one in found if one is not None and one.alone is None), None)


OF_COMMAND_LINE = ("set_defaults", "link_arguments", "add_optimizer_args", "add_lr_scheduler_args", "add_argument")


def read_by_libraries(flow: Flow, said: set[tuple[str, int]]) -> dict[int, str]:
    """Statement (its id) -> words, for the options in a data class that derives from a library's class: the library may
    read them, also where the script does not. said: the lines that a draft has."""
    found: dict[int, str] = {}
    for call in (call for s in flow.statements if s.owner is not None for call in s.calls):
        if getattr(call.func, "attr", "") in OF_COMMAND_LINE:
            within = flow.of[id(call)].owner
            made = flow.class_of(within) if within is not None else None
            if made is not None and (made.library_base() or "").endswith(".LightningCLI"):
                found[id(flow.of[id(call)])] = "Lightning's command line has it"
    for statement in (s for s in flow.statements if s.owner is not None and s.function is None):
        node, owner = statement.node, statement.owner
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if value is None or owner is None or statement.stands_at(said):
            continue
        if not any("dataclass" in ast.unparse(one) for one in owner.decorator_list):
            continue
        defaults = [k.value for k in value.keywords if k.arg == "default"] if isinstance(value, ast.Call) else [value]
        of = flow.class_of(owner)
        base = (of.library_base() if of is not None else None) or "object"
        if base.startswith(PLAIN_BASES) or any(isinstance(one, ast.Constant) and one.value is None for one in defaults):
            continue
        found[id(statement)] = f"{base} reads it"
    return found


def set_for_methods(flow: Flow, made: ScriptClass, live: set[int]) -> bool:
    """Whether making an object sets what other methods of its class may read; live: the statements that count."""
    bodies = [one.node.body for one in made.lineage() if isinstance(one, ScriptClass)]
    methods = {part.name for body in bodies for part in body if isinstance(part, FUNCTIONS)}
    start = getattr(made.find("__init__"), "node", None)
    return len(methods) > 1 and any(id(one) in live for one in flow.inside_of.get(id(start), ()))
