"""What a draft may omit: calls, as data, each kind with the reason, and the line that says so of a statement.

The lists are about callees, never about a script. A call that is in none of them is listed in the draft; so is one that
writes a file which data are read from, while checkpoints, logs and figures are not.
"""

from __future__ import annotations

import ast
import fnmatch
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..library_names import DATASET, MODULE, TABLES, is_library, is_plain_decorator, says_training, trains
from ..read_script.abstract_values import (
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
from ..read_script.interpreter import CERTAINTIES, OPTION
from ..read_script.statements import RAISES
from ..read_script.syntax import ALTERS, DROPS, KEEPS, PASSES, REGISTERS, decorates
from .data_flow import FUNCTIONS, GIVEN, NAMED, Flow, Statement
from .recipe_entries import shown
from .trained_model import makes_model


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


RUNS = "the model runs here in training mode: its statistics move, and it draws"
STAYS = "backward passes follow in this mode"
NO_LOSS = "the draft asks for the loss of this step"
LOADS = "the loader of a recipe"
MADE, USED = "which is accounted for where it is made", "a value, which is accounted for where it is used"
UNUSED = "what it computes reaches only prints, logs and files"
NOT_MADE = "of which nothing that was read makes an object"
LITERAL = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp, ast.USub, ast.Load)
PRINTS = "it prints, logs or draws"
SWITCHES = "it chooses how a device computes, and how quickly"
PLACES = "it names, makes or removes a place for files"
# variables that decide where and how loudly a process runs, and what changes nothing that is computed
ENVIRONMENT, HARMLESS = tuple(TABLES["environment"]), tuple(TABLES["harmless"])
SEEDS = (
    *("random.seed", "numpy.random.seed", "torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed"),
    *("torch.cuda.manual_seed_all", "*.seed_everything", "*.set_seed", "*.set_random_seed"),  # the last: of libraries
)
# by a qualified name's pattern -> why
CALLS: dict[str, tuple[str, ...]] = {
    PRINTS: (
        *("print", "pprint.*", "logging.*", "warnings.*", "wandb.*", "mlflow.*", "neptune.*", "comet_ml.*", "rich.*"),
        *("torch.utils.tensorboard.*", "tensorboardX.*", "tensorboard.*", "matplotlib.*", "seaborn.*", "visdom.*"),
        *("tqdm*", "torchsummary.*", "torchinfo.*", "torchvision.utils.save_image", "torchvision.utils.make_grid"),
    ),
    "it measures time": (*("time.*", "datetime.*", "timeit.*", "torch.cuda.nvtx.*"), *("nvtx.*", "torch.*profiler.*")),
    PLACES: ("os.*", "pathlib.*", "shutil.*", "glob.*", "sys.*", "tempfile.*"),
    "it names an option": ("torchvision.transforms.InterpolationMode", "torchvision.transforms.*.InterpolationMode"),
    "it writes a file": (
        *("torch.save", "json.dump", "json.dumps", "pickle.dump", "yaml.dump", "numpy.save*", "joblib.dump"),
        *("csv.writer*", "csv.DictWriter*"),
        *("yaml.safe_dump", "yaml.dump_all", "yaml.safe_dump_all", "pickle.dumps", "toml.dump", "tomli_w.dump"),
    ),
    "it opens a file, and what is read from it is accounted for": ("open", "io.*", "gzip.open", "codecs.open"),
    "it sets a seed, which the recipe has": SEEDS,
    SWITCHES: (
        *("torch.use_deterministic_algorithms", "torch.set_deterministic*", "torch._dynamo.*", "torch._inductor.*"),
    ),
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
        *("torch.multiprocessing.set_*", "torch.cuda.Event", "torch.xpu.is_available", "torch.distributed.elastic.*"),
    ),
    "it reads the command line or the environment": (
        *("argparse.*", "configargparse.*", "os.environ*", "os.getenv", "exit", "quit", "*.HfArgumentParser"),
    ),
    "it says the default of a setting, which stands where it is used": ("dataclasses.field", "attr.ib", "attrs.field"),
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
    *("enumerate", "tqdm*", "iter", "list", "*.tqdm", "*.trange", "track", "*.track", "alive_it", "reversed"),
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
# classes of files
OPENING = ("gzip.GzipFile", "bz2.BZ2File", "lzma.LZMAFile", "zipfile.ZipFile", "tarfile.TarFile", "io.FileIO")
FETCHING = ("urllib.request.urlopen", "requests.get", "requests.post", "httpx.get")  # what these give is data
# calls that read files, and calls that write them, by kind of file: a reader may read what a writer of its kind wrote
READERS: dict[str, tuple[str, ...]] = {
    "tensors": ("torch.load", "torch.jit.load", "safetensors.torch.load_file"),
    "arrays": ("numpy.load*", "numpy.genfromtxt", "numpy.fromfile", "numpy.memmap", "h5py.File"),
    "tables": ("pandas.read_*", "polars.read_*", "polars.scan_*"),
    "images": ("PIL.Image.open", "cv2.imread", "*.imread", "torchvision.io.read_*"),
    "text": ("open", "*.open", *OPENING, "joblib.load", "dill.load", "*.read_text", "*.read_bytes", *FETCHING),
    "sounds": ("torchaudio.load", "librosa.load", "soundfile.read", "scipy.io.wavfile.read"),
    "folders": (*LISTS, "*.glob", "*.rglob", "*.iterdir", "datasets.load_*", "torchvision.datasets.*"),
}
WRITERS: dict[str, tuple[str, ...]] = {
    "tensors": ("torch.save", "safetensors.torch.save_file"),
    "arrays": ("numpy.save*", "h5py.File", "*.tofile"),
    "text": ("open", "*.open", *OPENING, "joblib.dump", "dill.dump", "*.write_text", "*.write_bytes"),
    "tables": ("*.to_csv", "*.to_parquet", "*.to_feather", "*.to_hdf", "*.to_excel", "*.to_json", "*.to_pickle"),
    "images": ("*.imwrite", "*.imsave", "*.save", "torchvision.utils.save_image"),
    "sounds": ("torchaudio.save", "soundfile.write", "scipy.io.wavfile.write"),
    "folders": (
        *("shutil.copy*", "shutil.move", "shutil.unpack_archive", "os.rename", "os.replace", "os.symlink", "os.link"),
        *("urllib.request.urlretrieve", "*.save_to_disk", "*.extractall", "*.extract", "*.download"),
    ),
}
# classes whose methods a library calls: classes derived from them train, or change objects that do
DRIVEN = (
    *("*lightning*.LightningModule", "*lightning*.LightningDataModule", "*Trainer", "*TrainerCallback", "*.Callback"),
    *("*.Trainer*", "*.Learner", "*Runner", "*.Hook", "*lightning*.callbacks.*", "keras.callbacks.*", "*.Engine"),
    *("*.LightningCLI", "torch.optim.lr_scheduler.*"),
)
EXITS = ("exit", "quit", "sys.exit", "os._exit", "os.abort", "os.execv", "os.execvp")  # calls that end a run
PLAIN_FUNCTIONS = ("int", "float", "str", "bool", "min", "max", "round", "abs", "dict", "list", "tuple", "range")
# calls that are never omitted: those of torch that change their arguments, or global settings, and methods
STATES = ("random.setstate", "numpy.random.set_state", "torch.seed", "torch.random.seed", "torch.random.set_rng_state")
CHANGING = (
    *STATES,
    "torch.nn.init.",
    "torch.nn.utils.",
    "torch.set_",
    "torch.use_",
    "torch.autograd.",
    "apex.",
    "torch.fx.",
)
SHARE_A_BATCH = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.data_parallel")
RUNNING = (".LightningCLI",)  # calls that train
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


def clears_at_times(flow: Flow, call: ast.Call) -> bool:
    """Whether a part of a statement that may not run, or not once, clears gradients: `i % 4 or net.zero_grad()`."""
    sides: list[ast.expr] = []
    for one in flow.of[id(call)].nodes if getattr(call.func, "attr", "") == "zero_grad" else ():
        sides += one.values[1:] if isinstance(one, ast.BoolOp) else []
        sides += [one.body] if isinstance(one, (ast.IfExp, ast.Lambda)) else []
        sides += [one.orelse] if isinstance(one, ast.IfExp) else []
        sides += [one.elt] if isinstance(one, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) else []
    return any(part is call for side in sides for part in ast.walk(side))


def trains_unread(flow: Flow, call: ast.Call) -> bool:
    """Whether a call has a library train by itself, or is of a function that was not read, whose name says that it
    trains, or hands one on."""
    if trains(call) or _begins_optimizer(flow, call):
        return True
    handed = [one for one in call.args if isinstance(one, ast.Name)]
    for func in (call.func, *handed):
        value, of = flow.value(func), flow.value(func.value) if isinstance(func, ast.Attribute) else None
        unread = not is_library(value.name) if isinstance(value, LibraryName) else type(value) in (Value, type(None))
        plain = isinstance(func, ast.Name) or isinstance(of, (LibraryName, ScriptModule))
        made = func is not call.func and not isinstance(value, LibraryName)  # it may be anything
        if unread and plain and not made and says_training(getattr(func, "attr", getattr(func, "id", ""))):
            return True
    return False


def _begins_optimizer(flow: Flow, call: ast.Call) -> bool:
    """Whether a call is the `super().__init__(…)` of an optimizer or a schedule of the script's own."""
    owner = flow.of[id(call)].owner if getattr(call.func, "attr", "") == "__init__" else None
    made = flow.class_of(owner) if owner is not None else None
    return made is not None and (made.library_base() or "").startswith("torch.optim.")


def sets_names(call: ast.Call) -> bool:
    """Whether a call gives a file, or an object, names that reading cannot tell: `globals().update(read("a.yaml"))`."""
    match call.func:
        case ast.Attribute(ast.Call(ast.Name("globals" | "locals" | "vars")), "update"):
            return bool(call.args) or any(one.arg is None for one in call.keywords)
    return False


def plain_holder(flow: Flow, node: ast.expr) -> bool:
    """Whether this is self, a list or a dict, which only holds values that are followed by themselves."""
    found, plain = flow.value(node), (ListValue, DictValue, ParsedArguments, ScriptClass)
    own = getattr(node, "id", "") in ("self", "cls") or isinstance(found, plain)
    return own or (isinstance(found, ScriptObject) and not found.of.family())


def is_part(of: ScriptClass) -> bool:
    """Whether a class is a model's, a loss's or a data set's, which is not read line by line."""
    return of.family() in (MODULE, DATASET)


def changes_library(flow: Flow, statement: Statement) -> bool:
    """Whether a statement sets something of a library or of a file that was not read, or a variable of the environment,
    or is a call of one: what else runs may read it."""
    node, call = statement.node, statement.alone
    targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else [getattr(node, "target", None)]
    for target in (part for one in targets for part in getattr(one, "elts", [one])):
        of = flow.value(target.value) if isinstance(target, (ast.Attribute, ast.Subscript)) else None
        if isinstance(of, LibraryName) and not isinstance(node, (ast.For, ast.AsyncFor)):
            name = f"{of.name}.{target.attr}" if isinstance(target, ast.Attribute) else of.name
            if of.name == "os.environ":
                return not _of_environment([target.slice] if isinstance(target, ast.Subscript) else [])
            if name.startswith(("sys.argv", "sys.modules")) or not (reason(name) or matches(name, HARMLESS)):
                return True
    called = flow.value(call.func) if isinstance(call, ast.Call) else None
    if any(name_of(flow, one) == "threading.Timer" for one in statement.calls):
        return True
    if not isinstance(call, ast.Call) or not isinstance(called, LibraryName) or "." not in called.name:
        return False
    if called.name in ("os.putenv", "os.environ.setdefault", "os.environ.pop", "os.environ.update"):
        words = [ast.Constant(one.arg) for one in call.keywords]
        return not _of_environment([*call.args[: not words], *words])
    if called.name.startswith(("sys.argv.", "signal.alarm", "signal.setitimer")):
        return True
    prints = method_reason(called.name.rpartition(".")[2]) == PRINTS
    return not (prints or is_library(called.name) or reason(called.name) or matches(called.name, (*HARMLESS, *SEEDS)))


def reads_environment(name: str, call: ast.Call) -> bool:
    """Whether a call reads a variable of the environment, other than where and how loudly a process runs."""
    return name in ("os.getenv", "os.environ.get", "os.environ.pop") and not _of_environment(call.args[:1])


def counts_rounds(flow: Flow, name: str, call: ast.Call) -> bool:
    """Whether a call makes a progress bar of a range elsewhere than in a loop's head, which does not show how many
    rounds it has then: `bar = trange(epochs)`, `with tqdm(range(10)) as bar`."""
    inner = call.args[0] if call.args and name.endswith("tqdm") else None
    ranges = name.endswith("trange") or (isinstance(inner, ast.Call) and getattr(inner.func, "id", "") == "range")
    return ranges and not isinstance(flow.of[id(call)].node, (ast.For, ast.AsyncFor))


def _of_environment(names: list[ast.expr]) -> bool:
    """Whether all of these are variables that decide where and how loudly a process runs."""
    return bool(names) and all(isinstance(n, ast.Constant) and matches(str(n.value), ENVIRONMENT) for n in names)


def leaves(flow: Flow, statement: Statement) -> bool:
    """Whether a statement leaves a loop, a function, or the script."""
    call = statement.alone
    exits = isinstance(call, ast.Call) and name_of(flow, call) in EXITS
    return exits or isinstance(statement.node, (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Assert))


def raises_exit(node: ast.stmt) -> bool:
    """Whether a statement ends the run as `sys.exit()` does."""
    raised = node.exc if isinstance(node, ast.Raise) else None
    return getattr(getattr(raised, "func", raised), "id", "") == "SystemExit"


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


def said_of(flow: Flow, statement: Statement, why: str) -> str:
    """The reason for a bar over a loader and for a switch of a device; any other statement's is `why`."""
    value, targets = getattr(statement.node, "value", None), getattr(statement.node, "targets", [])
    if isinstance(value, ast.Call) and looked_through(name_of(flow, value)):
        return "a loop over it is a loop over its argument"
    return SWITCHES if any(ast.unparse(one).startswith("torch.backends.") for one in targets) else why


NORMALISES_APART = "a BatchNorm in it normalises each device's part of the batch by itself"
WITHOUT_BATCHNORM = re.compile(r"(?i)(vit|deit|swin|beit|mixer|convnext|bert|gpt)")  # models of torchvision and timm


def normalised_by_device(flow: Flow) -> dict[int, str]:
    """Statement (its id) -> words, for those that share a batch among devices, where the model may have a BatchNorm: no
    such layer in the files that were read, where the model is of one of their classes, means that there is none."""
    made = [seen for seen in flow.interpreter.seen if seen.arguments is not None]
    layers = any(re.search(r"\.(Lazy)?BatchNorm\dd$", seen.name) for seen in made)
    zoo = [seen for seen in made if makes_model(seen)]
    layers = layers or any(
        WITHOUT_BATCHNORM.search(" ".join(seen.source.text(seen.node).split())) is None for seen in zoo
    )
    found: dict[int, str] = {}
    for statement in flow.statements:
        for call in (call for call in statement.calls if name_of(flow, call) in SHARE_A_BATCH):
            of = [flow.value(given) for given in (*call.args, *(k.value for k in call.keywords if k.arg == "module"))]
            known = of and (isinstance(of[0], ScriptObject) or (isinstance(of[0], LibraryObject) and of[0].seen))
            found |= {id(statement): NORMALISES_APART} if layers or not known else {}
    return found


# decorators

SWITCHES_GRADIENTS = ("torch.no_grad", "torch.inference_mode", "torch.set_grad_enabled", "torch.enable_grad")
GIVES_ANOTHER = "what the decorator does with this function is not followed"
HANDING_ON = (PASSES, KEEPS, DROPS)
GIVEN_AWAY = "it is called by what it is given to"
SETTING = "what runs the training may take this: that is not followed"
SETS_FOR = "what runs the training may take from this function, or call it: that is not followed"
ALTERNATIVES = ("command", "callback", "main", "automain", "group", "route", "get", "post")  # these run on demand


def decorators(flow: Flow, statement: Statement) -> Iterator[tuple[ast.expr, str, str]]:
    """The decorators of a definition that may do more than hand on what the function does: what each is of, its name,
    and what it does."""
    for mark in statement.node.decorator_list if isinstance(statement.node, FUNCTIONS) else ():
        func, made = (mark.func if isinstance(mark, ast.Call) else mark), flow.value(mark)
        of, owner = flow.value(func), flow.value(getattr(func, "value", func))
        name = of.name if isinstance(of, LibraryName) else ast.unparse(func)
        if isinstance(func, ast.Attribute) and isinstance(owner, LibraryObject) and owner.name:
            name = f"{owner.name}.{func.attr}"
        plain = reason(name) is not None and not matches(name, SWITCHES_GRADIENTS)
        plain = plain or (is_plain_decorator(name) and not is_library(name))
        plain = plain or id(getattr(owner, "node", None)) in flow.interpreter.commands  # a group of the script's own
        registers = isinstance(func, ast.Attribute) and not isinstance(owner, LibraryName)
        does = _does(made) or (REGISTERS if registers else ALTERS)
        if does not in (PASSES, DROPS) and not plain:
            yield getattr(func, "value", func), name, does


def _does(made: Value | None) -> str:
    """What a decorator of the script's own does, an object of its class too; "" for any other."""
    if isinstance(made, ScriptObject) and (made.of.library_base() or "").endswith("ContextDecorator"):
        return PASSES
    called = made.of.find("__call__") if isinstance(made, ScriptObject) else made
    bound = called is not made or getattr(made, "receiver", None) is not None
    return decorates(called.node, bound) if isinstance(called, ScriptFunction) else ""


@lru_cache(maxsize=2)
def _decorating(flow: Flow) -> frozenset[int]:
    """The script's own functions (their ids) that decorate others and hand on what these do."""
    nodes = (one.node for one in flow.statements if isinstance(one.node, FUNCTIONS))
    made = (flow.value(mark) for node in nodes for mark in node.decorator_list)
    return frozenset(id(one.node) for one in made if isinstance(one, ScriptFunction) and _does(one) in HANDING_ON)


def does_nothing(node: ast.stmt) -> bool:
    """Whether a statement only deletes names, says of which type one is, is a text, or raises."""
    plain = isinstance(node, ast.Delete) and all(isinstance(one, ast.Name) for one in node.targets)
    plain |= isinstance(node, ast.AnnAssign) and node.value is None
    plain |= isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return plain or isinstance(node, (ast.Pass, ast.Global, ast.Nonlocal, ast.Raise))


def given_on(node: ast.stmt) -> list[ast.expr] | None:
    """What a generator gives by this statement, part by part; None where it is none of its."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, (ast.Yield, ast.YieldFrom)):
        return None
    value = node.value.value
    return value.elts if isinstance(value, ast.Tuple) else [value] if value is not None else []


def hands_on(flow: Flow, call: ast.Call) -> bool:
    """Whether a call is that of the decorated function, in a decorator that only hands on what it does."""
    found = flow.reads.get(id(call.func), ()) if isinstance(call.func, ast.Name) else ()
    by = {id(one.statement.node) for one in found if one.way == GIVEN and id(one.statement.node) in _decorating(flow)}
    return bool(by) and len(by) == len(found) and id(flow.of[id(call)].function) not in by


def by_decorators(flow: Flow, train: list[Statement], steps: set[int], kinds: Callable[..., Any]) -> dict[int, str]:
    """Definition (its id) -> why it is listed, of functions that a model or an optimizer is given, of those that train
    where a decorator may do more than hand on what they do, and of those that nothing calls and the same object is
    given: `@ex.config` sets what `@ex.main` runs with; steps: the functions that hold a step."""
    found, launchers = {}, dict[int, set[str]]()  # an object -> the names of its methods that decorate what trains
    every = [(one, list(decorators(flow, one))) for one in flow.statements]
    for statement, marks in every:
        for by, name, does in marks:
            if does == REGISTERS and statement in train and (of := flow.value(by)) is not None:
                launchers.setdefault(id(of), set()).add(name)
    for statement, marks in every:
        for by, name, does in marks:
            method, used = name.rpartition(".")[2], launchers.get(id(flow.value(by)), set())
            other = bool(used) and name not in used and method not in ALTERNATIVES
            if other and does == REGISTERS and id(statement.node) not in flow.calls and statement not in train:
                found[id(statement)] = SETS_FOR
                found |= dict.fromkeys(map(id, flow.inside_of.get(id(statement.node), ())), SETTING)
            switches = matches(name, SWITCHES_GRADIENTS) and id(statement.node) not in steps
            if not isinstance(flow.value(by), LibraryName) and {"model", "optimizer"} & kinds(by):
                found[id(statement)] = GIVEN_AWAY
            elif does in (ALTERS, REGISTERS) and statement in train and not switches:
                found[id(statement)] = GIVES_ANOTHER
        func = getattr(statement.alone, "func", None)
        if isinstance(func, ast.Attribute) and "config" in func.attr and id(flow.value(func.value)) in launchers:
            found[id(statement)] = SETTING
    packages = {name.partition(".")[0] for _, marks in every for _, name, does in marks if does == ALTERS}
    for statement in flow.statements:  # Section("training").params(rate=Param(float, default=0.5))
        for call in (one for one in statement.calls if "default" in [k.arg for k in one.keywords]):
            of = flow.value(call.func)
            if isinstance(of, LibraryName) and of.name.partition(".")[0] in packages and statement.alone is not None:
                found[id(statement)] = SETTING
    return found


def trains_behind(
    flow: Flow, func: ast.expr, effects: set[int], trainers: set[int], changes: Callable[[ast.Call], bool]
) -> bool:
    """Whether a callee that reading does not follow runs something that trains: partial(step), compile(step), what a
    wrapper makes of such a model, a lambda; effects, trainers: the functions and the classes (their ids) that train;
    changes: whether a call does."""
    value, own = flow.value(func), isinstance(func, ast.Attribute) and getattr(func.value, "id", "") == "self"
    inline = isinstance(value, ScriptFunction) and isinstance(value.node, ast.Lambda)
    followed = isinstance(value, (LibraryName, ScriptClass, ScriptFunction, ScriptObject)) and not inline
    waiting, seen = [] if followed or not (own or isinstance(func, (ast.Name, ast.Subscript))) else [func], set[int]()
    while waiting and len(seen) < MOST_HELD:
        seen.add(id(one := waiting.pop()))
        found = flow.value(one)
        of = found.of.lineage() if isinstance(found, ScriptObject) else ()
        if isinstance(found, ScriptFunction) and id(found.node) in effects and one is not func:
            return True
        if isinstance(one, ast.Lambda) and any(isinstance(p, ast.Call) and changes(p) for p in ast.walk(one.body)):
            return True
        if trainers & {id(base.node) for base in of if isinstance(base, ScriptClass)}:
            return True
        runs = found.of.find("__call__") or found.of.find("forward") if isinstance(found, ScriptObject) else found
        inside = flow.inside_of.get(id(runs.node), ()) if isinstance(runs, ScriptFunction) else ()
        waiting += [call.func for each in inside for call in each.calls if id(call.func) not in seen]
        for definition in flow.written(one):
            given = flow.arguments_of(definition) if definition.way == GIVEN else [definition.value]
            waiting += [each for each in given if each is not None and id(each) not in seen and not definition.path]
        waiting += [each for each in _held(one) if id(each) not in seen]
    return False


MOST_HELD = 100  # expressions that are looked at behind a callee


def _held(node: ast.expr) -> Iterator[ast.expr]:
    """What may be called by a call of an expression: what a call is given, a lambda calls, or a list has."""
    if isinstance(node, ast.Call):
        yield from (*node.args, *(k.value for k in node.keywords))
    elif isinstance(node, ast.Lambda):
        yield from (part.func for part in ast.walk(node.body) if isinstance(part, ast.Call))
    elif isinstance(node, (ast.List, ast.Tuple, ast.Dict)):
        yield from node.values if isinstance(node, ast.Dict) else node.elts
    elif isinstance(node, (ast.Subscript, ast.IfExp)):
        yield from [node.value] if isinstance(node, ast.Subscript) else [node.body, node.orelse]


# files of data

PARTS = "which of these are the input and the label?"


def unpacks(statement: Statement) -> str:
    """A question where it unpacks what a name holds into more than two names."""
    if not isinstance(getattr(statement.node, "value", None), ast.Name):
        return ""
    targets = [one for one in getattr(statement.node, "targets", []) if isinstance(one, (ast.Tuple, ast.List))]
    names = {part.id for one in targets for part in ast.walk(one) if isinstance(part, ast.Name)}
    return PARTS if len({name for name in names if name.strip("_")}) > 2 else ""


# what does not run


def why_not(statement: Statement, flow: Flow) -> str:
    """Why a statement does not run with the defaults."""
    rank, conditions = flow.interpreter.reached.get(id(statement.node), (0, ()))
    if CERTAINTIES[rank] != OPTION:
        return "nothing that was read calls this"
    raised = RAISES in conditions
    return f"it runs only where {RAISES}" if raised else "it runs only with other arguments than the defaults, or never"
