"""From the name that torch gives a call to the row of the mapping table that describes it.

torch has several names for one operator: `x + y`, `x.add(y)`, `torch.add(x, y)`. A row lists its aliases; here are
torch's own conventions, for the names that no row lists: a method does what the function of its name does, and a name
that ends in an underscore writes the result in its first argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from ..errors import UnknownRow
from . import table
from .rows import Row
from .table import InForce

# the kinds that a model may use; the others (optimizers, transforms, scripts) are for the training script
KINDS = ("module", "layer", "loss", "function", "distribution")

OPERATORS = {  # what Python calls when a model computes with +, <, [] and the like -> its name in torch, in operator
    "abs": ("abs", "abs"),
    "add": ("add", "add"),
    "and": ("bitwise_and", "and_"),
    "div": ("div", "truediv"),
    "eq": ("eq", "eq"),
    "floordiv": ("floor_divide", "floordiv"),
    "ge": ("ge", "ge"),
    "getitem": ("getitem", "getitem"),
    "gt": ("gt", "gt"),
    "invert": ("bitwise_not", "invert"),
    "iter": ("unbind", "iter"),
    "le": ("le", "le"),
    "lshift": ("bitwise_left_shift", "lshift"),
    "lt": ("lt", "lt"),
    "matmul": ("matmul", "matmul"),
    "mod": ("remainder", "mod"),
    "mul": ("mul", "mul"),
    "ne": ("ne", "ne"),
    "neg": ("neg", "neg"),
    "or": ("bitwise_or", "or_"),
    "pow": ("pow", "pow"),
    "rshift": ("bitwise_right_shift", "rshift"),
    "setitem": ("setitem", "setitem"),
    "sub": ("sub", "sub"),
    "truediv": ("div", "truediv"),
    "xor": ("bitwise_xor", "xor"),
}
BOTH_WAYS = {"add", "and", "div", "floordiv", "matmul", "mod", "mul", "or", "pow", "sub", "truediv", "xor"}
NUMBERS = {"bool", "complex", "float", "index", "int"}  # what Python makes of a tensor of one value, as item() does

# A function of the same name does something else, or takes its arguments in another order.
UNLIKE = {
    *("torch.Tensor.unfold", "torch.Tensor.where", "torch.embedding", "torch.Tensor.set_", "torch.Tensor.data"),
    *("torch.Tensor.normal_", "torch.Tensor.uniform_", "torch.Tensor.bernoulli_", "torch.Tensor.random_"),
    *("torch.Tensor.exponential_", "torch.Tensor.log_normal_", "torch.Tensor.geometric_", "torch.Tensor.cauchy_"),
}

# Names that tell something about a tensor and compute nothing. One counts as an operator only if it has a row, because
# MindSpore may write it differently.
FACTS = {
    *("size", "dim", "ndimension", "numel", "nelement", "stride", "element_size", "data_ptr", "storage_offset"),
    *("get_device", "is_contiguous", "is_floating_point", "is_complex", "is_signed", "is_same_size", "is_tensor"),
    *("requires_grad_", "retain_grad", "register_hook", "untyped_storage", "is_conj", "is_neg", "is_inference"),
    *("is_nonzero", "is_storage", "is_shared", "is_pinned", "dense_dim", "sparse_dim", "names", "has_names"),
    *("__len__", "__repr__", "__str__", "__format__", "__hash__", "__dir__", "__contains__", "__reduce_ex__"),
    *(
        "_assert",
        "is_grad_enabled",
        "result_type",
        "can_cast",
        "promote_types",
        "is_distributed",
        "device",
        "_set_grad_enabled",
    ),
}
COMPUTED = {"T", "mT", "H", "mH", "real", "imag"}  # the attributes of a tensor that are computed


# where torch keeps its built-in functions -> how one calls them
BUILT_IN = {
    "builtins._VariableFunctionsClass.": "torch.",
    "torch._VariableFunctionsClass.": "torch.",
    "torch._C._nn.": "torch.nn.functional.",
    "torch._C._fft.fft_": "torch.fft.",
    "torch._C._linalg.linalg_": "torch.linalg.",
    "torch._C._special.special_": "torch.special.",
    "torch._tensor.": "torch.",
    "torch.functional.": "torch.",
}


class Found(NamedTuple):
    """The row of a called name, if there is one, and how the call differs from it."""

    row: Row | None
    swapped: bool = False  # the row's first two arguments are the call's second and first, as in 1 - x
    in_place: bool = False  # torch writes the result into its first argument


def rows_by_name() -> dict[str, Row]:
    """Every name and alias of the rows that a model may use."""
    return _rows_by_name(table.in_force())


@cache
def _rows_by_name(in_force: InForce) -> dict[str, Row]:
    return {name: row for kind in KINDS for row in table.rows(kind) for name in (row.torch, *row.aliases)}


def find(name: str) -> Found:
    """Return the row of a torch name as calls are recorded, such as `torch.Tensor.__radd__`."""
    return _find(name, table.in_force())


@cache
def _find(name: str, in_force: InForce) -> Found:
    known = rows_by_name()
    last = name.rpartition(".")[2]
    part = last.strip("_")
    swapped = last.startswith("__r") and part[1:] in BOTH_WAYS
    in_place = (last.startswith("__i") and part[1:] in BOTH_WAYS) or (last.endswith("_") and not last.startswith("__"))
    row = next((known[candidate] for candidate in _candidates(name, swapped, in_place) if candidate in known), None)
    own = row is not None and (row.short == part or row.short.startswith("__r"))  # torch.rsub swaps its operands itself
    return Found(row, swapped and not own, in_place or last == "__setitem__")


def public(name: str) -> str:
    """The name under which one calls one of torch's built-in functions."""
    for built_in, offered in BUILT_IN.items():
        if name.startswith(built_in):
            return offered + name.removeprefix(built_in)
    return name


def is_fact(name: str) -> bool:
    """Whether the name tells something about a tensor (its shape, its dtype) and computes nothing."""
    if name.endswith((".__get__", ".__set__", ".__delete__")):
        return name.split(".")[-2] not in COMPUTED
    return name.rpartition(".")[2] in FACTS


def shown(name: str) -> str:
    """The name as one writes it: torch.add for torch.Tensor.__radd__; unchanged where torch has only one name."""
    name = public(name.removesuffix(".__get__"))
    last = name.rpartition(".")[2]
    if not last.startswith("__"):
        return name if name in UNLIKE else name.rstrip("_")
    part = last.strip("_")
    plain = part[1:] if part[:1] in ("r", "i") and part[1:] in BOTH_WAYS else part
    return f"torch.{OPERATORS[plain][0]}" if plain in OPERATORS and "item" not in plain else name


F = "torch.nn.functional."


def _candidates(name: str, swapped: bool, in_place: bool) -> Iterator[str]:
    name = public(name.removesuffix(".__get__"))
    yield name
    if name in UNLIKE:
        return
    place, _, last = name.rpartition(".")
    if place.startswith(("torchvision", "torch.ops.torchvision")):
        yield f"torchvision.ops.{last}"
        return
    if not place.startswith("torch") or place.startswith(("torch.__version__", "torch.version.")):  # texts
        return
    if place.startswith("torch.distributions."):  # `expand` of a distribution is not that of a tensor
        return
    if last.startswith("__"):
        part = last.strip("_")
        plain = part[1:] if swapped or in_place else part
        if plain in NUMBERS:
            yield "torch.Tensor.item"
        if plain not in OPERATORS:
            return
        last, operator = OPERATORS[plain]
        yield f"operator.{'i' if in_place else ''}{operator}"
        yield f"operator.{operator}"
        yield f"torch.Tensor.__{plain}__"
    plain = last.rstrip("_")
    for ending in dict.fromkeys((last, plain)):
        for prefix in ("torch.Tensor.", "torch.", F, "torch.special.", "torch.linalg.", "torch.fft."):
            if prefix + ending not in UNLIKE:
                yield prefix + ending


# the name of a thing in the library's own file -> the short name under which the library offers it
RESTATED = (
    (re.compile(r"torch\.nn\.modules\.(?:\w+\.)?(\w+)"), r"torch.nn.\1"),
    (re.compile(r"torch\.nn\.parallel\.(?:distributed|data_parallel)\.(\w+)"), r"torch.nn.parallel.\1"),
    (re.compile(r"torch\.nn\.utils\.\w+\.(\w+)"), r"torch.nn.utils.\1"),
    (re.compile(r"torch\.optim\.(?!lr_scheduler|swa_utils)\w+\.(\w+)"), r"torch.optim.\1"),
    (re.compile(r"torch\.distributions\.\w+\.([A-Z]\w+)"), r"torch.distributions.\1"),
    (re.compile(r"torch\.utils\.data\.\w+\.(\w+)"), r"torch.utils.data.\1"),
    (re.compile(r"torch\.autograd\.(?:variable|grad_mode)\.(\w+)"), r"torch.\1"),
    (
        re.compile(r"torchvision\.transforms\.(?:transforms|v2|autoaugment|v2\._\w+)\.(\w+)"),
        r"torchvision.transforms.\1",
    ),
    (re.compile(r"torchvision\.transforms\.v2\.functional\.(\w+)"), r"torchvision.transforms.functional.\1"),
    (re.compile(r"torchvision\.(models|datasets)\.\w+\.(\w+)"), r"torchvision.\1.\2"),
    (re.compile(r"torch\.(?:cuda\.)?amp\.(?:\w+\.)?GradScaler"), r"torch.amp.GradScaler"),
    (re.compile(r"torch\.(?:cuda\.amp|cuda\.amp\.\w+|amp\.\w+)\.autocast"), r"torch.amp.autocast"),
    (re.compile(r"torch\.amp\.autocast"), r"torch.autocast"),
    (re.compile(r"timm\.(data|loss|optim|scheduler|utils|layers)\.\w+\.(\w+)"), r"timm.\1.\2"),
    (re.compile(r"timm\.models\.layers\.(\w+)"), r"timm.layers.\1"),
    (re.compile(r"timm\.models\.create_model"), r"timm.create_model"),
    (re.compile(r"apex\.parallel\.\w+\.(\w+)"), r"apex.parallel.\1"),
    (re.compile(r"torchvision\.models\.(?!get_|list_)[a-z]\w*"), r"torchvision.models.get_model"),  # resnet50(…)
)


def index() -> dict[str, Row]:
    """Every torch name that the table knows, the user's own rows included, with its row."""
    return _index(table.in_force())


@cache
def _index(in_force: InForce) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in table.rows():
        for name in (row.torch, *row.aliases):
            found.setdefault(name, row)
    return found


def row_of(name: str) -> Row | None:
    """The row of a qualified name, also where a library offers the thing in two places."""
    known = index()
    found = next((known[one] for one in restated(name) if one in known), None)
    if found is None and re.fullmatch(r"torch\.(Tensor\.\w+|nn\.functional\.\w+|[a-z]\w*)", name):
        return find(name).row  # a method does what the function of its name does
    return found


@cache
def restated(name: str) -> tuple[str, ...]:
    """The name, and the library's other names for the same thing."""
    found = [name]
    for _ in range(4):
        name = next((pattern.sub(to, name) for pattern, to in RESTATED if pattern.fullmatch(name)), name)
        found.append(name)
    return tuple(dict.fromkeys(found))


# what scripts import a module as, where that is not its own name
IMPORTED_AS = {
    "F": "torch.nn.functional",
    "T": "torchvision.transforms",
    "TF": "torchvision.transforms.functional",
    "dist": "torch.distributed",
    "ms": "mindspore",
}
# the packages of names as a script writes them: nn.Linear, optim.SGD, data.DataLoader, transforms.Resize
WITHIN = ("torch", "torch.nn", "torch.optim", "torch.utils", "torchvision", "torchvision.transforms", "timm", "apex")
WITHIN_MINDSPORE = ("mindspore", "mindspore.nn", "mindspore.dataset", "mindspore.common", "msmigrate")
# a module of MindSpore's that offers the same as another one -> the other
OFFERED_BY = {
    **dict.fromkeys(("context", "common", "train", "train.serialization", "train.callback", "amp"), "mindspore"),
    **dict.fromkeys(("ops.composite", "ops.functional", "ops.operations"), "mindspore.ops"),
    **dict.fromkeys(("nn.wrap", "nn.wrap.cell_wrapper", "nn.wrap.loss_scale"), "mindspore.nn"),
}


def lookup(name: str) -> list[Row]:
    """The rows for a name as people write it: one for a name of torch's, such as torch.nn.Conv2d, nn.Conv2d, Conv2d,
    F.relu, Tensor.view or optim.SGD; all that have it for a name of MindSpore's, such as nn.Dense, ops.cat,
    mint.nn.Linear or nn.cosine_decay_lr.

    Raises UnknownRow, with similar names.
    """
    head, dot, rest = name.partition(".")
    written = IMPORTED_AS.get(head, head) + dot + rest
    if dot:
        for place in ("", *(f"{package}." for package in WITHIN)):
            found = row_of(place + written)
            if found is not None:
                return [found]
        of_mindspore = _by_mindspore(written)
        if of_mindspore:
            return of_mindspore
        # as deep as a method's class or a library's file may be: GradScaler.scale, drop.DropPath
        ending = list({row.torch: row for known, row in index().items() if known.endswith(f".{written}")}.values())
        if len(ending) == 1:
            return ending
    try:
        return [table.row(name)]
    except UnknownRow:
        of_mindspore = [] if dot else _of(lambda own: own.startswith("mindspore.") and own.rpartition(".")[2] == name)
        if not of_mindspore:
            raise
        return of_mindspore


def _of(named: Callable[[str], bool]) -> list[Row]:
    """The rows whose counterpart has a name that fits; else those that replace a name of MindSpore's that fits."""
    found = [row for row in table.rows() if named(row.mindspore or "")]
    return found or [row for row in table.rows() if any(named(own) for own in row.instead_of)]


def _by_mindspore(name: str) -> list[Row]:
    """The rows that have this counterpart, or replace it; else the row of torch's function or class of that name."""
    within, _, last = name.removeprefix("mindspore.").rpartition(".")
    again = f"{OFFERED_BY[within]}.{last}" if within in OFFERED_BY else name
    for whole in dict.fromkeys((name, *(f"{package}.{name}" for package in WITHIN_MINDSPORE), again)):
        found = _of(whole.__eq__)
        if found:
            return found
    module, _, inside = name.removeprefix("mindspore.").partition(".")
    if module in ("mint", "ops"):
        same = row_of(f"torch.{inside}")
    else:
        same = row_of(f"torch.{module}.{inside}") if module in ("nn", "Tensor") else None
    return [] if same is None else [same]
