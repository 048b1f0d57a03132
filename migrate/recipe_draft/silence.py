"""What a draft may omit: calls, as data, each kind with the reason; what reaches nothing that trains; parts of models.

The lists are about callees, never about a script. A call that is in none of them is listed in the draft.
"""

from __future__ import annotations

import ast
import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from ..source.infer.abstract_values import (
    DictValue,
    LibraryName,
    ParsedArguments,
    ScriptClass,
    ScriptFunction,
    ScriptModule,
    ScriptObject,
)
from .flow import FUNCTIONS, GIVEN, Flow, Statement

PRINTS = "it prints, logs or draws"
SEEDS = (
    *("random.seed", "numpy.random.seed", "torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed"),
    "torch.cuda.manual_seed_all",
)
# by a qualified name's pattern -> why
CALLS: dict[str, tuple[str, ...]] = {
    PRINTS: (
        *("print", "pprint.*", "logging.*", "warnings.*", "wandb.*", "mlflow.*", "neptune.*", "comet_ml.*", "rich.*"),
        *("torch.utils.tensorboard.*", "tensorboardX.*", "tensorboard.*", "matplotlib.*", "seaborn.*", "visdom.*"),
        *("tqdm*", "torchsummary.*", "torchinfo.*", "torchvision.utils.save_image", "torchvision.utils.make_grid"),
    ),
    "it measures time": ("time.*", "datetime.*", "timeit.*"),
    "it names, makes or removes a place for files": ("os.*", "pathlib.*", "shutil.*", "glob.*", "sys.*", "tempfile.*"),
    "it names an option": ("torchvision.transforms.InterpolationMode", "torchvision.transforms.*.InterpolationMode"),
    "it writes a file": (
        *("torch.save", "json.dump", "json.dumps", "pickle.dump", "yaml.dump", "csv.*", "numpy.save*", "joblib.dump"),
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

LISTS = ("os.listdir", "os.walk", "os.scandir", "glob.*")
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


def looked_through(name: str) -> bool:
    """Whether a loop over a function's result is a loop over its argument."""
    return matches(name, LOOKING_THROUGH)


def reach(flow: Flow, ends: Iterable[Statement]) -> set[int]:
    """The statements (their ids) whose values reach these.

    The call of a function that one of them stands in is among them, but not what that function returns, if nothing that
    is among them reads it: a training function's mean loss reaches only prints.
    """
    waiting: list[tuple[Statement, ast.Call | None]] = [(end, None) for end in ends]
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
        sources = [*statement.around, *_sources(flow, statement, call)]
        waiting += [(source, None) for source in sources]
        if statement.function is not None and isinstance(statement.node, ast.stmt):
            waiting += [(caller, made) for caller, made, _ in flow.calls.get(id(statement.function), [])]
    return read | {statement for statement, _ in called}


def _sources(flow: Flow, statement: Statement, without: ast.Call | None) -> Iterator[Statement]:
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
            yield from flow.options if function is None and flow.hands_options(node) else ()
        value = flow.value(node) if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in called else None
        yield from flow.inside_of.get(id(value.node), []) if isinstance(value, ScriptFunction) else ()
        yield from (definition.statement for definition in flow.written(node) if definition.way != GIVEN)


def _is_special(function: ast.AST | None) -> bool:
    return getattr(function, "name", "").startswith("__")


def _changes(flow: Flow, statement: Statement) -> bool:
    """Whether it may change an object: by an attribute, an element, `+=`, or a call that is the statement."""
    targets = getattr(statement.node, "targets", [getattr(statement.node, "target", None)])
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
    read = {id(a) for call in nodes if getattr(call.func, "id", "") in (*LEAVING_FUNCTIONS, "print") for a in call.args}
    looked_up = [call for call in nodes if getattr(call.func, "id", "") == "getattr" and id(call) not in read]
    for call in (call for call in looked_up if len(call.args) > 1 and not isinstance(call.args[1], ast.Constant)):
        if not isinstance(flow.value(call.args[0]), (ParsedArguments, LibraryName, ScriptModule, DictValue)):
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
            value = flow.value(given)
            of = value.of if isinstance(value, ScriptObject) else value
            found |= (
                {id(one.node) for one in of.lineage() if isinstance(one, ScriptClass)}
                if isinstance(of, ScriptClass)
                else set()
            )
    return found


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
