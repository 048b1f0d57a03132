"""What a draft may omit: calls, as data, each kind with the reason, and the line that says so of a statement; of those
that write files, which make data.

The lists are about callees, never about a script. A call that is in none of them is listed in the draft; so is one that
writes a file which data are read from, while checkpoints, logs and figures are not.
"""

from __future__ import annotations

import ast
import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..source.infer.abstract_values import Constant, LibraryName, LibraryObject, ScriptClass, ScriptObject
from .entries import makes_model, shown
from .flow import GIVEN, IS, LOOPS, NAMED, Flow, Statement


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
SWITCHES = "it chooses how a device computes, and how quickly"
PLACES = "it names, makes or removes a place for files"
# variables of the environment that decide where and how loudly a process runs, and not what it computes
ENVIRONMENT = (
    *("PYTHONHASHSEED", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "TOKENIZERS_PARALLELISM", "TF_CPP_MIN_LOG_LEVEL"),
    *("WANDB_*", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "KMP_DUPLICATE_LIB_OK", "MASTER_ADDR", "MASTER_PORT"),
)
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
        *("torch.save", "json.dump", "json.dumps", "pickle.dump", "yaml.dump", "csv.*", "numpy.save*", "joblib.dump"),
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
        *("torch.multiprocessing.set_*", "torch.cuda.Event", "torch.xpu.is_available"),
    ),
    "it reads the command line or the environment": (
        *("argparse.*", "os.environ*", "os.getenv", "exit", "quit", "*.HfArgumentParser"),
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
    "*.LightningCLI",
)
EXITS = ("exit", "quit", "sys.exit", "os._exit")  # calls that end a run
# methods and functions of libraries that train by themselves, and the arguments that say how long
TRAINERS = re.compile(r"_?(re|pre)?train(?!er)\w*|fit\w*|fine_?tune\w*|learn|run\w*|start\w*")
LONG = re.compile(r"(max_|num_|n_|nb_|train_|total_)*(epochs?|iters?|iterations|steps|timesteps)")
PLAIN_FUNCTIONS = ("int", "float", "str", "bool", "min", "max", "round", "abs", "dict", "list", "tuple", "range")
# calls that are never omitted: those of torch that change their arguments, or global settings, and methods
CHANGING = ("torch.nn.init.", "torch.nn.utils.", "torch.set_", "torch.use_", "torch.autograd.", "apex.", "torch.fx.")
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


def trains(call: ast.Call) -> bool:
    """Whether a call has a library train by itself: `model.train(data="d.yaml", epochs=3)`, where torch's takes only a
    mode; `model.fit(x, y, epochs=3)`."""
    names = [keyword.arg for keyword in call.keywords]
    method = getattr(call.func, "attr", "")
    if method == "train":
        texts = any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in call.args)
        return texts or len(call.args) > 1 or any(name != "mode" for name in names)
    named = method or getattr(call.func, "id", "")
    return bool(TRAINERS.fullmatch(named)) and any(name and LONG.fullmatch(name) for name in names)


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


# files of data

# calls that read files, and calls that write them, by kind of file: a reader may read what a writer of its kind wrote
READERS: dict[str, tuple[str, ...]] = {
    "tensors": ("torch.load", "torch.jit.load", "safetensors.torch.load_file"),
    "arrays": ("numpy.load*", "numpy.genfromtxt", "numpy.fromfile", "numpy.memmap", "h5py.File"),
    "tables": ("pandas.read_*", "polars.read_*", "polars.scan_*"),
    "images": ("PIL.Image.open", "cv2.imread", "*.imread", "torchvision.io.read_*"),
    "text": ("open", "*.open", "joblib.load", "dill.load", "*.read_text", "*.read_bytes"),
    "sounds": ("torchaudio.load", "librosa.load", "soundfile.read", "scipy.io.wavfile.read"),
    "folders": (*LISTS, "datasets.load_*", "torchvision.datasets.*"),
}
WRITERS: dict[str, tuple[str, ...]] = {
    "tensors": ("torch.save", "safetensors.torch.save_file"),
    "arrays": ("numpy.save*", "h5py.File", "*.tofile"),
    "text": ("open", "*.open", "joblib.dump", "dill.dump", "*.write_text", "*.write_bytes"),
    "tables": ("*.to_csv", "*.to_parquet", "*.to_feather", "*.to_hdf", "*.to_excel", "*.to_json", "*.to_pickle"),
    "images": ("*.imwrite", "*.imsave", "*.save", "torchvision.utils.save_image"),
    "sounds": ("torchaudio.save", "soundfile.write", "scipy.io.wavfile.write"),
    "folders": (
        *("shutil.copy*", "shutil.move", "shutil.unpack_archive", "os.rename", "os.replace", "os.symlink", "os.link"),
        *("urllib.request.urlretrieve", "*.save_to_disk", "*.extractall", "*.extract", "*.download"),
    ),
}
# those whose second argument is the file; for all others it is the first, or the object of the method
SECOND = (
    *("torch.save", "*.save_file", "*.dump", "*.OmegaConf.save", "torchvision.utils.save_image", "shutil.*", "os.*"),
    *("urllib.request.urlretrieve", "*.download"),
)
OF_A_PATH = ("*.read_text", "*.read_bytes", "*.write_text", "*.write_bytes")
PROGRAMS = ("subprocess.*", "os.system", "os.popen")
# programs that make no data, by their first word
HARMLESS = (
    *("mkdir", "rm", "rmdir", "clear", "cls", "nvidia-smi", "git", "echo", "tensorboard", "ls", "pip", "title", "date"),
    *("hostname", "uname", "which"),
)
Path = tuple[str, ...]  # the parts of a path: strings, and for unknown parts HOLE followed by the source
HOLE = "\0"
MOST_PATHS = 6  # paths that are followed for one expression


def kind_of(name: str, kinds: dict[str, tuple[str, ...]]) -> str | None:
    """The kind of files that a reader or writer of this name uses, or None."""
    return next((kind for kind, patterns in kinds.items() if matches(name, patterns)), None)


class DataFiles:
    """Values that pass from one statement to another without a variable, through a file that a script writes and reads.

    name_of: gives the qualified name of a call's callee, or "".
    """

    def __init__(self, flow: Flow, name_of: Callable[[Flow, ast.Call], str]) -> None:
        self.flow = flow
        self._name_of = name_of
        self._known: dict[int, list[Path]] = {}
        self._using: dict[int, list[Statement]] = {}  # a definition -> the statements that read it
        for statement in flow.statements:
            for node in statement.nodes:
                for definition in flow.reads.get(id(node), ()):
                    self._using.setdefault(id(definition), []).append(statement)
        alone = {id(statement.alone) for statement in flow.statements}  # any unknown call among these may write
        calls = [(call, self._writes(call, id(call) in alone)) for some in flow.statements for call in some.calls]
        self.writers = [
            (call, kind) for call, kind in calls if kind is not None and (kind != "text" or self._opens(call, "wax+"))
        ]

    def that_make_data(self, live: set[int], kinds: Callable[[ast.AST], Iterable[str]]) -> dict[int, str]:
        """The statements that write a file which the live statements read, or run a program -> that, in words.

        kinds: gives the kinds of a value. Trained values are not data, unless they are loaded again in a loop; where
        the path is unknown, only values that are known to be data count.
        """
        found: dict[int, str] = {}
        for writer, reader, same in self._read_again([s for s in self.flow.statements if id(s) in live]):
            of = {kind for one in self._content(writer) for kind in kinds(one)}
            behind = [one for written in self._content(writer) for one in self.flow.behind(written)] if not same else []
            trained = any({"model", "loss"} & set(kinds(one)) for one in behind)
            data = same or (not trained and ("data" in of or any(map(self._reads, behind))))
            again = same and self._in_a_loop(self.flow.of[id(reader)])  # weights that later steps go on from
            if (of & {"model", "optimizer", "rate"} and not again) or not data:
                continue
            file, line = self.flow.of[id(reader)].place
            for statement in self._statements(writer):
                found[id(statement)] = f"{'it writes' if same else 'it may write'} what {file}:{line} reads"
        for statement in self.flow.statements:
            if any(self._runs_a_program(call) for call in statement.calls):
                found[id(statement)] = "a program, which may make the data"
        return found

    def _in_a_loop(self, statement: Statement, seen: frozenset[int] = frozenset()) -> bool:
        """Whether a statement is in a loop, or in a function that is called in one."""
        if any(isinstance(head.node, LOOPS) for head in statement.around):
            return True
        function = id(statement.function)
        callers = self.flow.calls.get(function, []) if function not in seen else []
        return any(self._in_a_loop(caller, seen | {function}) for caller, _, _ in callers)

    def read_for(self, node: ast.expr) -> bool:
        """Whether a value comes from a file that is read."""
        return any(self._reads(one) for one in self.flow.behind(node))

    def _read_again(self, live: Iterable[Statement]) -> Iterator[tuple[ast.Call, ast.Call, bool]]:
        """Calls that write a file, each with a call of a live statement that may read it, and whether the paths are the
        same."""
        exact: dict[Path, list[tuple[ast.Call, str | None]]] = {}
        of_kind: dict[str, list[ast.Call]] = {}
        for call in (call for statement in live for call in statement.calls):
            kind = kind_of(self._name(call), READERS)
            if (kind is None and not self._unknown(call)) or (kind == "text" and not self._opens(call, "r+")):
                continue
            of_kind.setdefault(kind or "", []).append(call)
            for path in self._paths_of(call):
                exact.setdefault(path, []).append((call, kind))
        for writer, wrote in self.writers:
            paths = self._paths_of(writer)
            same = (call for one in paths for call, kind in exact.get(one, ()) if _says(one, bool(wrote and kind)))
            found = next((call for call in same if call is not writer), None)
            for folder in of_kind.get("folders", ()) if wrote and found is None else ():
                if any(_inside(one, other) for one in paths for other in self._paths_of(folder)):
                    found = folder
            if found is not None:
                yield writer, found, True
                continue
            kinds = {"tables": ("tables", "text"), "text": ("text", "tables")}.get(wrote, (wrote,))
            for reader in (call for kind in kinds if kind not in ("", "folders") for call in of_kind.get(kind, ())):
                pairs = ((one, other) for one in paths for other in self._paths_of(reader))
                if reader is not writer and self._may(writer, reader) and any(_fit(*both) for both in pairs):
                    yield writer, reader, False
                    break

    def _may(self, writer: ast.Call, reader: ast.Call) -> bool:
        """Whether a call may read what another writes in the same run: it does not only run before it."""
        wrote, read = (self._calling(self.flow.of[id(one)]) for one in (writer, reader))
        both = [(a, b) for a in wrote for b in read if a.function is b.function and a.source is b.source]
        again = (isinstance(head.node, LOOPS) for a, b in both for head in a.around if head in b.around)
        return not both or any(again) or any(a.place <= b.place for a, b in both)

    def _calling(self, statement: Statement, depth: int = 0) -> list[Statement]:
        """A statement, and those that call its function, and theirs."""
        found = self.flow.calls.get(id(statement.function), []) if depth < 6 else []
        callers = {id(one): one for one, _, _ in found}.values()
        return [statement, *(more for one in callers for more in self._calling(one, depth + 1))]

    def _writes(self, call: ast.Call, alone: bool) -> str | None:
        """The kind of file that a call writes, "" where it is unknown, None for a call that writes none."""
        name = self._name(call)
        return kind_of(name, WRITERS) or ("" if alone and self._unknown(call) and not kind_of(name, READERS) else None)

    def _unknown(self, call: ast.Call) -> bool:
        """Whether a call is of a function that is neither the script's nor in the lists."""
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        known_ = self.flow.function_of(call) is not None or reason(self._name(call)) or method_reason(method)
        return not known_ and method not in (*CONTAINERS, "add_argument") and self._name(call) not in PLAIN_FUNCTIONS

    def _statements(self, writer: ast.Call) -> list[Statement]:
        """The statement of a call that writes, and those that use the file that it opens."""
        at = self.flow.of[id(writer)]
        opened = [d for d in at.defines if d.value is writer] if self._name(writer).endswith("open") else []
        using = dict.fromkeys(s for d in opened for s in self._using.get(id(d), []) if s is not at)
        return [at, *(s for s in using if not (s.alone and s.text.endswith((".close()", ".flush()"))))]

    def _content(self, writer: ast.Call) -> Iterator[ast.expr]:
        """The written values, and all other arguments of the calls that write."""
        for call in (call for statement in self._statements(writer) for call in statement.calls):
            yield from (one for one in (*call.args, *(k.value for k in call.keywords)) if one is not writer)
            yield from [call.func.value] if isinstance(call.func, ast.Attribute) and call is writer else []

    def _reads(self, node: ast.expr) -> bool:
        """Whether a file is read in an expression."""
        return any(isinstance(part, ast.Call) and kind_of(self._name(part), READERS) for part in ast.walk(node))

    def _runs_a_program(self, call: ast.Call) -> bool:
        """Whether a call runs a program that may make data."""
        if not matches(self._name(call), PROGRAMS) or not call.args:
            return False
        command = call.args[0]
        first = command.elts[0] if isinstance(command, (ast.List, ast.Tuple)) and command.elts else command
        words = self.paths(first)[0][0].split()
        return not words or words[0] not in HARMLESS

    def _name(self, call: ast.Call) -> str:
        name = self._name_of(self.flow, call)
        return name or (f".{call.func.attr}" if isinstance(call.func, ast.Attribute) else "")

    def _opens(self, call: ast.Call, letters: str) -> bool:
        """Whether a call opens a file in a mode with one of these letters; an unknown mode counts as such."""
        if not self._name(call).endswith("open"):
            return True
        modes = [k.value for k in call.keywords if k.arg == "mode"]
        modes += call.args[:1] if self._name(call) == ".open" else call.args[1:2]  # Path(…).open("w")
        value = self.flow.value(modes[0]) if modes else Constant("r")
        return not isinstance(value, Constant) or any(letter in str(value.value) for letter in letters)

    def _paths_of(self, call: ast.Call) -> list[Path]:
        """The possible paths in a call's arguments."""
        if id(call) in self._known:
            return self._known[id(call)]
        name = self._name(call)
        given = [*call.args, *(k.value for k in call.keywords)]
        if kind_of(name, WRITERS) or name.endswith("open"):
            at = 1 if matches(name, SECOND) else 0
            given = call.args[at : at + 1] or [k.value for k in call.keywords]
        if isinstance(call.func, ast.Attribute) and (matches(name, OF_A_PATH) or name == ".open"):
            given = [call.func.value]
        found = [path for one in given for path in self.paths(one)][:MOST_PATHS]
        self._known[id(call)] = [path for path in map(_plain, found) if path and not IN_MEMORY.search(path[0])]
        return self._known[id(call)]

    def paths(self, node: ast.expr, depth: int = 0) -> list[Path]:
        """The possible paths of an expression, each as its parts."""
        value = self.flow.value(node)
        if isinstance(value, Constant) and type(value.value) in (str, int):
            return [(str(value.value),)]
        parts: list[ast.expr] | None = None
        if isinstance(node, ast.JoinedStr):
            parts = [one.value if isinstance(one, ast.FormattedValue) else one for one in node.values]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
            parts = [node.left, *([ast.Constant("/")] if isinstance(node.op, ast.Div) else []), node.right]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return self._filled(node.left, r"%[-\w.]*", depth)
        elif isinstance(node, ast.Call) and node.args:
            name = self._name(node).rpartition(".")[2]
            if name == "format" and isinstance(node.func, ast.Attribute):
                return self._filled(node.func.value, r"\{[^}]*\}", depth)
            if name in ("join", "joinpath"):
                own = [node.func.value] if name == "joinpath" and isinstance(node.func, ast.Attribute) else []
                parts = [part for one in (*own, *node.args) for part in (one, ast.Constant("/"))][:-1]
            elif name in ("open", "Path", "PurePath", "str", "fspath", "abspath", "realpath", "normpath", "glob"):
                parts = node.args[:1]
        elif isinstance(node, (ast.Name, ast.Attribute)) and depth < 8:
            return self._named(node, depth)
        if isinstance(node, ast.Constant):
            return [(str(node.value),)]
        if parts is None:
            return [(HOLE + ast.unparse(node),)]
        found: list[Path] = [()]
        for part in parts:
            found = [_joined(one, more) for one in found for more in self.paths(part, depth + 1)][:MOST_PATHS]
        return found

    def _filled(self, pattern: ast.expr, hole: str, depth: int) -> list[Path]:
        """The paths of a format string with its values filled in."""
        texts = [path[0] for path in self.paths(pattern, depth + 1) if len(path) == 1 and not path[0].startswith(HOLE)]
        return [
            tuple(p for part in re.split(f"({hole})", text) for p in [HOLE if re.fullmatch(hole, part) else part] if p)
            for text in texts
        ]

    def _named(self, node: ast.Name | ast.Attribute, depth: int) -> list[Path]:
        """The paths of a name or an attribute with a single definition, or of a parameter's arguments."""
        if isinstance(node, ast.Name):
            definitions = list(self.flow.reads.get(id(node), ()))
        else:
            definitions = self.flow.attributes.get(node.attr, [])
        given = [one for d in definitions if d.way == GIVEN for one in self.flow.arguments_of(d)]
        values = [d.value for d in definitions if d.way == IS and d.value is not None and not d.path]
        several = given if given and not values else values if len(values) == len(definitions) == 1 else []
        found = [path for one in several for path in self.paths(one, depth + 1)]
        text = ast.unparse(node).removeprefix("self.")
        return found or [(HOLE + (text if isinstance(node, ast.Name) else f".{text.partition('.')[2] or text}"),)]


def _joined(path: Path, more: Path) -> Path:
    """Two parts of a path joined; adjacent strings become one."""
    if path and more and not path[-1].startswith(HOLE) and not more[0].startswith(HOLE):
        return (*path[:-1], path[-1] + more[0], *more[1:])
    return (*path, *more)


def _plain(path: Path) -> Path:
    """A path in a normal form: without ./ in front, a slash at its end, and everything from a * on."""
    starred = next((at for at, one in enumerate(path) if "*" in one and not one.startswith(HOLE)), None)
    path = path if starred is None else (*path[:starred], path[starred].partition("*")[0])
    texts = [one if one.startswith(HOLE) else re.sub("/+", "/", one.replace("\\", "/")) for one in path]
    if texts and not texts[0].startswith(HOLE):
        texts[0] = re.sub(r"^(\./)+", "", texts[0])
    if texts and not texts[-1].startswith(HOLE):
        texts[-1] = texts[-1].rstrip("/")
    return tuple(one for one in texts if one)


def _says(path: Path, known_: bool) -> bool:
    """Whether a path is specific enough to be recognized; known_: whether both calls are known to take a path."""
    text = r"^\0.*\.|[A-Za-z]{2}" if known_ else r"^[^\0\s]*[\w\]]([/\\]\w|\.[A-Za-z]\w{1,6}$)"
    return any(re.search(text, part) for part in path)


def _inside(one: Path, folder: Path) -> bool:
    """Whether a path is in a folder."""
    texts = len(folder) == 1 and not folder[0].startswith(HOLE)
    beginning = one[0].startswith(f"{folder[0]}/") if texts else one[: len(folder)] == folder
    return beginning and _says(folder, True)


def _fit(one: Path, other: Path) -> bool:
    """Whether two paths may be the same: each may begin and end as the other does."""

    def hole(part: str) -> bool:
        return part.startswith(HOLE)

    def option(part: str) -> bool:
        return hole(part) and "(" not in part and not part[1:].isidentifier()

    first, last = (one[0], other[0]), (one[-1], other[-1])
    if not any(map(hole, (*one, *other))) or (all(map(option, first)) and first[0] != first[1]):
        return False  # both are known, or one begins with options.out and the other with options.data
    begins = any(map(hole, first)) or first[0].startswith(first[1]) or first[1].startswith(first[0])
    return begins and (any(map(hole, last)) or last[0].endswith(last[1]) or last[1].endswith(last[0]))


IN_MEMORY = re.compile(r"^\0(io\.)?(BytesIO|StringIO)\(")  # no file, though it is read and written like one


PARTS = "which of these are the input and the label?"


def unpacks(statement: Statement) -> str:
    """A question where it unpacks what a name holds into more than two names."""
    if not isinstance(getattr(statement.node, "value", None), ast.Name):
        return ""
    targets = [one for one in getattr(statement.node, "targets", []) if isinstance(one, (ast.Tuple, ast.List))]
    names = {part.id for one in targets for part in ast.walk(one) if isinstance(part, ast.Name)}
    return PARTS if len({name for name in names if name.strip("_")}) > 2 else ""
