"""What a draft may omit: calls, as data, each kind with the reason; what reaches nothing that trains; parts of models;
and the line that says so of a statement.

The lists are about callees, never about a script. A call that is in none of them is listed in the draft.
"""

from __future__ import annotations

import ast
import builtins
import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from ..source.infer.abstract_values import (
    Constant,
    DictValue,
    LibraryName,
    LibraryObject,
    ListValue,
    ParsedArguments,
    ScriptClass,
    ScriptFunction,
    ScriptModule,
    ScriptObject,
    Value,
)
from .entries import shown
from .flow import ADDS, EACH, FUNCTIONS, GIVEN, IS, MOST_BEHIND, NAMED, Definition, Flow, Statement


@dataclass(frozen=True)
class Line:
    """The account of one statement: a verdict, and the reason in words."""

    statement: Statement
    kinds: frozenset[str]
    verdict: str
    why: str
    loop: str = ""  # the loops around it, the innermost first, which determine how often it runs
    values: str = ""  # the values of its names

    @property
    def text(self) -> str:
        """Its source, why it is listed where that is not obvious, the loops around it, and the values of its names."""
        more = (f" [{shown(one)}]" for one in (self.why, self.loop, self.values) if one)
        return shown(self.statement.text) + "".join(more)


LITERAL = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp, ast.USub, ast.Load)
PRINTS = "it prints, logs or draws"
PLACES = "it names, makes or removes a place for files"
# variables of the environment that decide where and how loudly a process runs, and not what it computes
ENVIRONMENT = (
    *("PYTHONHASHSEED", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "TOKENIZERS_PARALLELISM", "TF_CPP_MIN_LOG_LEVEL"),
    *("WANDB_*", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "KMP_DUPLICATE_LIB_OK", "MASTER_ADDR", "MASTER_PORT"),
)
SEEDS = (
    *("random.seed", "numpy.random.seed", "torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed"),
    *(
        "torch.cuda.manual_seed_all",
        "*.seed_everything",
        "*.set_seed",
        "*.set_random_seed",
    ),  # the last three: of Lightning, transformers and their like
)
# by a qualified name's pattern -> why
CALLS: dict[str, tuple[str, ...]] = {
    PRINTS: (
        *("print", "pprint.*", "logging.*", "warnings.*", "wandb.*", "mlflow.*", "neptune.*", "comet_ml.*", "rich.*"),
        *("torch.utils.tensorboard.*", "tensorboardX.*", "tensorboard.*", "matplotlib.*", "seaborn.*", "visdom.*"),
        *("tqdm*", "torchsummary.*", "torchinfo.*", "torchvision.utils.save_image", "torchvision.utils.make_grid"),
    ),
    "it measures time": ("time.*", "datetime.*", "timeit.*"),
    PLACES: ("os.*", "pathlib.*", "shutil.*", "glob.*", "sys.*", "tempfile.*"),
    "it names an option": ("torchvision.transforms.InterpolationMode", "torchvision.transforms.*.InterpolationMode"),
    "it writes a file": (
        *("torch.save", "json.dump", "json.dumps", "pickle.dump", "yaml.dump", "csv.*", "numpy.save*", "joblib.dump"),
        *("yaml.safe_dump", "yaml.dump_all", "yaml.safe_dump_all", "pickle.dumps", "toml.dump", "tomli_w.dump"),
    ),
    "it opens a file, and what is read from it is accounted for": ("open", "io.*", "gzip.open", "codecs.open"),
    "it sets a seed, which the recipe has": SEEDS,
    "it chooses or cleans a device": (
        *("torch.device", "torch.accelerator.*", "torch.backends.*", "gc.*", "torch.set_num_threads"),
        *("torch.cuda.is_available", "torch.cuda.device_count", "torch.cuda.set_device", "torch.cuda.empty_cache"),
        *("torch.cuda.synchronize", "torch.cuda.current_device", "torch.cuda.get_device_*", "torch.cuda.memory_*"),
        *("torch.cuda.max_memory_*", "torch.cuda.reset_*", "torch.cuda.device", "torch.mps.empty_cache"),
        *(
            "torch.distributed.init_process_group",
            "torch.distributed.destroy_process_group",
            "torch.distributed.barrier",
        ),
        *("torch.distributed.get_rank", "torch.distributed.get_world_size", "torch.distributed.is_*"),
        *("torch.multiprocessing.set_*", "torch.cuda.Event", "torch.xpu.is_available"),
    ),
    "it reads the command line or the environment": ("argparse.*", "os.environ*", "os.getenv", "exit", "quit"),
    "it switches gradients off where no update is computed": (
        *("torch.no_grad", "torch.inference_mode", "torch.set_grad_enabled", "torch.enable_grad"),
    ),
    "it spreads one model over devices, which is an option of the run": (
        *("torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.DistributedDataParallel"),
        *("apex.parallel.DistributedDataParallel", "torch.compile", "torch.jit.script"),
        "torch.utils.data.distributed.DistributedSampler",
    ),
}
# methods of a model, an optimizer or a loader that change nothing that is trained
METHODS: dict[str, tuple[str, ...]] = {
    "it chooses a device": ("to", "cuda", "cpu", "share_memory"),
    "it switches between training and evaluation": ("train", "eval"),
    "it clears gradients, as every step does": ("zero_grad",),
    "it reads": (
        *("state_dict", "parameters", "named_parameters", "modules", "named_modules", "children", "named_children"),
        *("buffers", "named_buffers", "get_last_lr", "get_lr", "keys", "values", "items", "copy"),
    ),
    "it writes a file": ("save_pretrained", "save"),
    PLACES: ("mkdir",),
    "it keeps an object's arguments, whose values stand where they are used": ("save_hyperparameters",),
    "it reshuffles, as every epoch does": ("set_epoch",),
    PRINTS: (
        *(
            "add_scalar",
            "add_scalars",
            "add_image",
            "add_images",
            "add_histogram",
            "add_graph",
            "add_text",
            "add_figure",
        ),
        *("set_postfix", "set_postfix_str", "set_description", "set_description_str", "info", "debug", "warning"),
        *("error", "watch", "print", "write", "close", "flush", "savefig"),
    ),
}
# calls that make a plain number, string or array from a tensor: values computed from that train nothing by themselves
LEAVING_METHODS = (
    *("item", "tolist", "numpy", "size", "dim", "numel", "stride", "data_ptr", "is_contiguous", "nelement"),
    *("get_device", "element_size"),
)
LEAVING_ATTRIBUTES = ("shape", "ndim", "dtype", "device", "is_cuda", "__name__", "__class__")
LEAVING_FUNCTIONS = (
    *("len", "float", "int", "str", "repr", "bool", "isinstance", "type", "id", "hasattr", "callable", "format", "dir"),
)
# a loop over the result of these is a loop over their argument
LOOKING_THROUGH = (
    "enumerate",
    "tqdm*",
    "iter",
    "list",
    "*.tqdm",
    "*.trange",
    "track",
    "*.track",
    "alive_it",
    "reversed",
)
# methods of lists and dicts, which affect only these
CONTAINERS = (
    *("append", "extend", "add", "update", "insert", "setdefault", "pop", "clear", "remove", "sort", "get", "items"),
    *("keys", "values", "popleft", "appendleft", "format", "join", "split", "strip", "index", "count", "copy"),
    *("replace", "startswith", "endswith", "lower", "upper", "lstrip", "rstrip"),
)
# those of them, and other methods of lists, that change their object
CHANGERS = (
    *("append", "extend", "add", "update", "insert", "setdefault", "pop", "clear", "remove", "sort", "reverse"),
    *("popleft", "appendleft", "fill", "put"),
)

LISTS = ("os.listdir*", "os.walk*", "os.scandir*", "glob.*")
# classes whose methods a library calls: classes derived from them train, or change objects that do
DRIVEN = (
    *("*lightning*.LightningModule", "*lightning*.LightningDataModule", "*Trainer", "*TrainerCallback", "*.Callback"),
    *("*.Trainer*", "*.Learner", "*Runner", "*.Hook", "*lightning*.callbacks.*", "keras.callbacks.*", "*.Engine"),
)

EXITS = ("exit", "quit", "sys.exit", "os._exit")  # calls that end a run
PLAIN_FUNCTIONS = ("int", "float", "str", "bool", "min", "max", "round", "abs", "dict", "list", "tuple", "range")
# calls that are never omitted: those of torch that change their arguments, or global settings, and methods
CHANGING = ("torch.nn.init.", "torch.nn.utils.", "torch.set_", "torch.use_", "torch.autograd.", "apex.", "torch.fx.")
STEPS = ("backward", "step", "unscale_", "scale_loss", "add_param_group", "manual_backward", "register_hook")


@lru_cache(maxsize=4096)
def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a qualified name is among these."""
    return any(fnmatch.fnmatchcase(name, one) for one in patterns)


def reason(name: str) -> str | None:
    """Why a call of this qualified name may be omitted, or None; calls that list files may choose the data."""
    if matches(name, LISTS):
        return None
    found = (why for why, patterns in CALLS.items() if matches(name, patterns))
    return next(found, None)


def method_reason(method: str) -> str | None:
    """Why a method of this name may be omitted, or None."""
    return next((why for why, methods in METHODS.items() if method in methods), None)


def driven(of: ScriptClass | None) -> bool:
    """Whether a class derives from one whose methods a library calls."""
    bases = [one.name for one in of.lineage() if isinstance(one, LibraryName)] if of is not None else []
    return any(matches(base, DRIVEN) for base in bases)


def made_by_name(node: ast.AST) -> re.Match[str] | None:
    """A match, with the class's name as group 1, if this is a string such as "module:Class", by which a library such as
    gym makes an object; else None."""
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return re.fullmatch(r"[\w.%]*:(\w+)", text)


def name_of(flow: Flow, call: ast.Call) -> str:
    """The qualified name of a call's callee, as far as it is known; "" for the script's own and for objects."""
    found = flow.value(call.func)
    if isinstance(found, LibraryName):
        return found.name
    if isinstance(call.func, ast.Name):
        own = any(
            d.way != NAMED or d.statement.node.__class__.__name__ != "ImportFrom"
            for d in flow.reads.get(id(call.func), ())
        )
        return "" if own else call.func.id
    if isinstance(call.func, ast.Attribute):
        receiver = flow.value(call.func.value)
        if isinstance(receiver, LibraryObject) and receiver.name and not receiver.family:
            return f"{receiver.name}.{call.func.attr}"
        if isinstance(receiver, LibraryName):
            return f"{receiver.name}.{call.func.attr}"
    return ""


def looked_through(name: str) -> bool:
    """Whether a loop over a function's result is a loop over its argument."""
    return matches(name, LOOKING_THROUGH)


def reach(flow: Flow, ends: Iterable[Statement]) -> set[int]:
    """The statements (their ids) whose values reach these.

    The call of a function that one of them stands in is among them, but not what that function returns, if nothing that
    is among them reads it: a training function's mean loss reaches only prints.
    """
    waiting: list[tuple[Statement, ast.Call | None]] = [(end, None) for end in ends]
    kin = Kinship(flow)
    read: set[int] = set()  # with all that they read
    called: set[tuple[int, int]] = set()  # without the result of this call
    while waiting:
        statement, call = waiting.pop()
        if id(statement) in read or (call is not None and (id(statement), id(call)) in called):
            continue
        if call is None:
            read.add(id(statement))
        else:
            called.add((id(statement), id(call)))
        sources = [*statement.around, *_sources(flow, statement, call, kin)]
        waiting += [(source, None) for source in sources]
        if statement.function is not None and isinstance(statement.node, ast.stmt):
            waiting += [(caller, made) for caller, made, _ in flow.calls.get(id(statement.function), [])]
    return read | {statement for statement, _ in called}


def _sources(flow: Flow, statement: Statement, without: ast.Call | None, kin: Kinship) -> Iterator[Statement]:
    """The statements that wrote what one reads, but not the result of one call; those of functions passed on, and those
    that change something in a function that is called for this."""
    called = {id(call.func) for call in statement.calls}
    for node in statement.nodes:
        if isinstance(node, ast.Call):
            function = flow.function_of(node)
            inside = flow.inside_of.get(id(function), []) if function is not None else []
            yield from (s for s, _ in flow.returns.get(id(function), []) if node is not without)
            if isinstance(function, ast.ClassDef):  # whoever gets the object may call what the script does not
                yield from (s for s in inside if not flow.calls.get(id(s.function)) or _is_special(s.function))
            elif node is statement.alone and without is None:
                yield from (one for one in inside if _changes(flow, one))
            yield from flow.options if function is None and _hands_options(flow, node) else ()
        value = flow.value(node) if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in called else None
        yield from flow.inside_of.get(id(value.node), []) if isinstance(value, ScriptFunction) else ()
        for definition in flow.written(node):
            if definition.way != GIVEN and _may_be_of(flow, node, definition, id(node) in called, kin):
                yield definition.statement


def _kin(flow: Flow) -> dict[int, int]:
    """Each class (its id) with one that stands for all that it shares objects with, by the classes that derive from
    both; empty where attributes may be copied from object to object."""
    copies = any(getattr(s.node, "name", "") in ("__getattr__", "__getattribute__") for s in flow.statements)
    copies = copies or any(
        getattr(node, "attr", getattr(node, "id", "")) in ("__dict__", "vars") for node in _nodes(flow)
    )
    if copies or any(_looks_up(flow)):
        return {}
    found = {id(node): id(node) for node in flow.classes()}
    for of in filter(None, map(flow.class_of, flow.classes())):
        for base in (one for one in of.lineage() if isinstance(one, ScriptClass)):
            mine, other = found.get(id(of.node)), found.get(id(base.node))
            found = {node: mine if stands == other and mine else stands for node, stands in found.items()}
    return found


class Kinship:
    """Which of the script's classes an object may be of.

    An object of a class is made by a call that was read, and reaches an expression by names, attributes, parameters and
    results that were read; those that code elsewhere is given may be anything.
    """

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._kin = _kin(flow)
        self._outside = {self._kin.get(one, one) for one in called_from_elsewhere(flow)}
        called = {id(call.func) for one in flow.statements for call in one.calls}
        named = (n for n in _nodes(flow) if isinstance(n, (ast.Name, ast.Attribute)) and id(n) not in called)
        self._handed = {id(of.node) for node in named if isinstance(of := flow.value(node), ScriptFunction)}
        self._found: dict[int, set[int] | None] = {}

    def may_hold(self, node: ast.expr, owner: ast.ClassDef) -> bool:
        """Whether an expression may have an object of this class, or of one that shares objects with it."""
        mine = self._kin.get(id(owner))
        if mine is None or mine in self._outside:
            return True
        if id(node) not in self._found:
            self._found[id(node)] = self._behind(node)
        found = self._found[id(node)]
        return found is None or mine in found

    def _behind(self, node: ast.expr) -> set[int] | None:
        """What stands for the classes of which an expression may have an object; None where that may be any."""
        found: set[int] = set()
        for count, one in enumerate(self.flow.behind(node)):
            if count >= MOST_BEHIND - 1:
                return None
            for part in ast.walk(one):
                value = self.flow.value(part) if isinstance(part, ast.expr) else None
                of = value.of if isinstance(value, ScriptObject) else value
                if isinstance(of, ScriptClass):
                    found |= {self._kin.get(id(of.node), 0)}
                own = self.flow.of.get(id(part))
                if _is_self(part) and own is not None and own.owner is not None:
                    found |= {self._kin.get(id(own.owner), 0)}
                elif self._is_open(part, value):
                    return None
        return found

    def _is_open(self, part: ast.AST, value: Value | None) -> bool:
        """Whether a part of an expression may be something that its definitions do not show."""
        unknown = value is None or type(value) is Value
        if isinstance(part, ast.Call):
            made_by = self.flow.value(part.func)
            owner = self.flow.value(part.func.value) if isinstance(part.func, ast.Attribute) else None
            known = isinstance(owner, (LibraryName, LibraryObject, ListValue, DictValue, Constant))
            known = known or hasattr(builtins, getattr(part.func, "id", ""))
            return unknown and (made_by is None or type(made_by) is Value) and not known
        written = list(self.flow.written(part))
        if isinstance(part, ast.Name):
            bare = not written and unknown and not hasattr(builtins, part.id)
            return bare or any(map(self._given_elsewhere, written))
        owner = self.flow.value(part.value) if isinstance(part, ast.Attribute) else None
        read = isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load)
        return (
            read
            and unknown
            and not written
            and not isinstance(owner, (LibraryName, LibraryObject, ListValue, DictValue))
        )

    def _given_elsewhere(self, definition: Definition) -> bool:
        """Whether a parameter may have an argument that was not read."""
        function = id(definition.statement.node)
        return definition.way == GIVEN and (function not in self.flow.calls or function in self._handed)


def _nodes(flow: Flow) -> Iterator[ast.AST]:
    yield from (node for one in flow.statements for node in one.nodes)


def _looks_up(flow: Flow) -> Iterator[ast.Call]:
    """The calls that look up an attribute, which may be a method, by a name that reading cannot tell."""
    calls = [node for one in flow.statements for node in one.calls]
    read = {id(a) for call in calls if getattr(call.func, "id", "") in (*LEAVING_FUNCTIONS, "print") for a in call.args}
    for call in calls:
        named = getattr(call.func, "id", "") == "getattr" and len(call.args) > 1 and id(call) not in read
        owner = flow.value(call.args[0]) if named and not isinstance(call.args[1], ast.Constant) else DictValue({})
        if not isinstance(owner, (ParsedArguments, LibraryName, ScriptModule, DictValue)):
            yield call


def _may_be_of(flow: Flow, node: ast.AST, definition: Definition, called: bool, kin: Kinship) -> bool:
    """Whether a definition of an attribute may be that of the object that it is read from; called: whether what is read
    is called. A number is not called; and an attribute of `self` is none of another class's objects."""
    if not isinstance(node, ast.Attribute):
        changed = definition.way == ADDS and isinstance(definition.statement.node, ast.Expr)
        return not changed or not all(_counts(one) for one in flow.written(node) if one.way != ADDS)
    if called and (isinstance(definition.statement.node, ast.AugAssign) or isinstance(definition.value, ast.Constant)):
        return False
    owner, own = definition.statement.owner, flow.of.get(id(node))
    written = [one for one in definition.statement.nodes if isinstance(one, ast.Attribute) and one.attr == node.attr]
    if owner is None or own is None or not written or not all(_is_self(one.value) for one in written):
        return True
    return kin.may_hold(node.value, owner)


def _counts(definition: Definition) -> bool:
    """Whether a definition gives a number or a string, which no call changes: of a loop over a range, say."""
    value = definition.value
    if definition.way == EACH and isinstance(value, ast.Call):
        name = getattr(value.func, "id", "")
        return (name == "range" and not definition.path) or (name == "enumerate" and definition.path == (0,))
    return definition.way == IS and not definition.path and isinstance(value, ast.Constant)


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_special(function: ast.AST | None) -> bool:
    return getattr(function, "name", "").startswith("__")


def _changes(flow: Flow, statement: Statement) -> bool:
    """Whether it may change an object: by an attribute, an element, `+=`, or a call that is the statement."""
    targets = getattr(statement.node, "targets", [getattr(statement.node, "target", None)])
    if len(targets) == 1 and isinstance(targets[0], ast.Subscript):
        table, key = flow.value(targets[0].value), targets[0].slice
        named = isinstance(key, ast.Constant) and matches(str(key.value), ENVIRONMENT)
        if named and isinstance(table, LibraryName) and table.name == "os.environ":
            return False
    written = any(isinstance(one, (ast.Attribute, ast.Subscript)) for one in targets)
    called = isinstance(statement.alone, ast.Call) and not flow.passed(statement.alone.func)
    return written or called or isinstance(statement.node, ast.AugAssign)


def only_in_parts(flow: Flow, part: Callable[[Statement], bool]) -> set[int]:
    """The functions (their ids) that nothing but methods of models and data sets names, or functions of this kind.

    part: whether a statement stands in such a class.
    """
    users: dict[str, list[Statement]] = {}
    for statement in flow.statements:
        for name in names_in([statement]):
            users.setdefault(name, []).append(statement)
    imports = [name for one in flow.statements if isinstance(one.node, ast.ImportFrom) for name in one.node.names]
    for alias in imports:
        users[alias.name] = users.get(alias.name, []) + users.get(alias.asname or "", [])
    functions = (one for one in flow.statements if isinstance(one.node, FUNCTIONS) and one.owner is None)
    named = {id(one.node): name for one in functions if (name := getattr(one.node, "name", "")) in users}
    found: set[int] = set()
    while True:
        more = {
            function
            for function, name in named.items()
            if function not in found and all(part(one) or id(one.function) in found | {function} for one in users[name])
        }
        if not more:
            return found
        found |= more


def names_in(statements: Iterable[Statement]) -> set[str]:
    """The names and attributes in statements, and what is imported under one of them."""
    statements = list(statements)
    nodes = [node for one in statements for node in one.nodes]
    found = {node.id for node in nodes if isinstance(node, ast.Name)}
    found |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    looked_up = (
        n.args[1] for n in nodes if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "getattr" and n.args[1:]
    )
    found |= {node.value for node in looked_up if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    imports = (name for one in statements if isinstance(one.node, ast.ImportFrom) for name in one.node.names)
    return found | {name.name for name in imports if name.asname in found}


KNOWN = (
    "print",
    "len",
    "str",
    "repr",
    "isinstance",
    "type",
    "id",
    "hasattr",
    "getattr",
    "setattr",
    "super",
    "callable",
)
PLAIN_MARKS = ("abc.", "functools.", "torch.", "contextlib.", "typing.")  # decorators that call no methods
PLAIN_BASES = (
    "object",
    "abc.",
    "enum.",
    "typing.",
    "collections.",
    "torch.",
)  # these read no options, and call no hooks


def called_from_elsewhere(flow: Flow) -> set[int]:
    """The classes (their ids) whose methods code that was not read may call: those that derive from a library's class,
    those that nothing that was read makes an object of, and those of which something is given to such code. All of
    them where the script looks up a method by a name that reading cannot tell."""
    nodes = [node for one in flow.statements for node in one.calls]
    made = {id(one.node) for made in flow.interpreter.made for one in made.of.lineage() if isinstance(one, ScriptClass)}
    if any(_looks_up(flow)):
        return {id(node) for node in flow.classes()}
    found = set()
    for node in flow.classes():
        of = flow.class_of(node)
        base = (of.library_base() if of is not None else None) or "object"
        marks = [flow.value(one) for part in node.body for one in getattr(part, "decorator_list", ())]
        kept = any(isinstance(one, ScriptFunction) for one in marks)  # a decorator may hand its method on
        kept = kept or any(isinstance(one, LibraryName) and not one.name.startswith(PLAIN_MARKS) for one in marks)
        found |= {id(node)} if kept or id(node) not in made or not base.startswith(PLAIN_BASES) else set()
    for call in nodes:
        called = flow.value(call.func)
        name = called.name if isinstance(called, LibraryName) else getattr(call.func, "id", "")
        own = isinstance(called, (ScriptFunction, ScriptClass)) or (name and (name in KNOWN or reason(name)))
        for given in () if own or name.startswith("torch.") else (*call.args, *(k.value for k in call.keywords)):
            for value in _values_in(flow.value(given)):
                its = value.of if isinstance(value, ScriptObject) else value
                lineage = its.lineage() if isinstance(its, ScriptClass) else ()
                found |= {id(one.node) for one in lineage if isinstance(one, ScriptClass)}
    return found


def _values_in(value: Value | None, depth: int = 0) -> Iterator[Value]:
    """A value, and those in its lists and tables."""
    if value is not None:
        yield value
    inside = (
        value.items if isinstance(value, ListValue) else value.pairs.values() if isinstance(value, DictValue) else ()
    )
    for one in islice(inside, 100) if depth < 3 else ():
        yield from _values_in(one, depth + 1)


def overridden(flow: Flow) -> set[int]:
    """The methods (their ids) of base classes that every object that was seen has otherwise, and no `super()` calls.

    A class that a statement names may have objects that were not seen, and its methods may be called by its name.
    """
    heads = [one for one in flow.statements if not isinstance(one.node, ast.ClassDef)]
    nodes = [node for one in heads for node in one.nodes if isinstance(node, (ast.Name, ast.Attribute))]
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    above = {node.attr for node in attributes if isinstance(node.value, ast.Call) and _is_super(node.value)}
    named = {id(of.node) for node in nodes if isinstance(of := flow.value(node), ScriptClass)}
    classes = {id(made.of.node): made.of for made in flow.interpreter.made}.values()
    used: set[int] = set()
    bases: dict[int, str] = {}
    for of in classes:
        for base in (one for one in of.lineage() if isinstance(one, ScriptClass)):
            for name, found in base.scope.names.items():
                if isinstance(found, ScriptFunction) and not isinstance(found.node, ast.Lambda):
                    bases[id(found.node)] = name
                    used |= {id(found.node)} if of.find(name) is found or id(base.node) in named else set()
    return {function for function, name in bases.items() if function not in used and name not in above}


def _is_super(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "super"


def _hands_options(flow: Flow, call: ast.Call) -> bool:
    """Whether a call gets all arguments of the command line at once, so that it may read any of them."""
    given = [*call.args, *(k.value for k in call.keywords)]
    for inner in list(given):
        if isinstance(inner, ast.Call) and getattr(inner.func, "id", "") == "vars":
            given += inner.args
    return any(isinstance(flow.value(one), ParsedArguments) for one in given)
