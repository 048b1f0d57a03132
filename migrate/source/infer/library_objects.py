"""Families of the objects that a library gives (tensor, module, optimizer, loader), and how a script names them."""

from __future__ import annotations

import builtins
import re
import types
from functools import cache

from ....mappings.aliases import index, restated, row_of
from ....mappings.rows import Row
from .abstract_values import ScriptClass

# the libraries whose calls are listed, whether the table has a row or not
LIBRARIES = (
    *("torch", "torchvision", "timm", "apex", "functorch", "torchaudio", "torchtext", "torchdata", "torchmetrics"),
    *("accelerate", "deepspeed", "fairscale", "lightning", "pytorch_lightning", "ignite", "torch_xla", "torch_ema"),
)
FRAMEWORK = ("torch", "torchvision", "timm", "apex", "functorch", "torchaudio", "torchtext")  # one makes it a script

TENSOR, MODULE, OPTIMIZER, SCHEDULE = "tensor", "module", "optimizer", "schedule"
LOADER, DATASET = "loader", "dataset"

# what a call gives, by the beginning of its name; the kind of its row comes first, the longest beginning next
FAMILIES = {
    "torch.nn.": MODULE,
    "torch.nn.functional.": TENSOR,
    "torch.nn.init.": TENSOR,
    "torch.nn.utils.": "",
    "torch.nn.utils.parametrizations.": MODULE,
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm": MODULE,
    "torch.nn.Parameter": TENSOR,
    "torch.optim.": OPTIMIZER,
    "torch.optim.lr_scheduler.": SCHEDULE,
    "torch.optim.swa_utils.": "",
    "torch.optim.swa_utils.AveragedModel": MODULE,
    "torch.optim.swa_utils.SWALR": SCHEDULE,
    "torch.utils.data.DataLoader": LOADER,
    "torch.utils.data.": DATASET,
    "torch.utils.data.distributed.": "",
    "torch.hub.load": MODULE,
    "torch.compile": MODULE,
    "torchvision.models.": MODULE,
    "torchvision.datasets.": DATASET,
    "torchvision.ops.": TENSOR,
    "timm.create_model": MODULE,
    "timm.models.": MODULE,
    "timm.layers.": MODULE,
    "timm.loss.": MODULE,
    "timm.optim.": OPTIMIZER,
    "timm.scheduler.": SCHEDULE,
    "timm.data.create_loader": LOADER,
    "timm.data.create_dataset": DATASET,
    "apex.parallel.DistributedDataParallel": MODULE,
    "apex.parallel.convert_syncbn_model": MODULE,
    "apex.optimizers.": OPTIMIZER,
}
KINDS = {
    "layer": MODULE,
    "module": MODULE,
    "loss": MODULE,
    "optimizer": OPTIMIZER,
    "schedule": SCHEDULE,
    "function": TENSOR,
}
# the classes whose methods an object of a family has
OWNERS = {
    TENSOR: ("torch.Tensor",),
    MODULE: ("torch.nn.Module",),
    OPTIMIZER: ("torch.optim.Optimizer",),
    SCHEDULE: ("torch.optim.lr_scheduler.LRScheduler", "torch.optim.lr_scheduler._LRScheduler"),
    LOADER: ("torch.utils.data.DataLoader",),
    DATASET: ("torch.utils.data.Dataset",),
}
# what a class that annotates a parameter, or is derived from, makes of an object
BASES = {owner: family for family, owners in OWNERS.items() for owner in owners}
BASES["torch.optim.swa_utils.AveragedModel"] = MODULE
LIGHTNING = ("pytorch_lightning", "lightning", "lightning.pytorch")
BASES |= {f"{library}.LightningModule": MODULE for library in LIGHTNING}
# methods of torch.nn.Module that a class of the script inherits
MODULE_METHODS = (
    *("apply", "bfloat16", "buffers", "children", "compile", "cpu", "cuda", "double", "eval", "float", "half"),
    *("load_state_dict", "modules", "named_buffers", "named_children", "named_modules", "named_parameters"),
    *("parameters", "register_buffer", "register_parameter", "register_forward_hook", "register_full_backward_hook"),
    *("requires_grad_", "share_memory", "state_dict", "to", "train", "type", "zero_grad"),
)
# names of torch that are also a method's, and mean a dtype where nobody calls them
DTYPES = ("bfloat16", "bool", "double", "float", "half", "int", "long", "short")
# tensor methods whose result is no tensor
PLAIN_RESULTS = ("item", "tolist", "size", "dim", "numel", "numpy", "backward", "stride", "data_ptr", "is_contiguous")
# names that people give: the last resort, where nothing else tells
HABITS = (
    (re.compile(r"(\w*_)?(model|net|network|criterion|backbone|loss_fn|model_without_ddp|teacher)"), MODULE),
    (re.compile(r"(\w*_)?(optimizer|optim|opt)"), OPTIMIZER),
    (re.compile(r"(\w*_)?(scheduler|lr_schedule)"), SCHEDULE),
    (re.compile(r"(\w*_)?(data_?loader|loader)\w*"), LOADER),
    (re.compile(r"(images?|inputs?|targets?|labels?|logits|outputs?|loss|preds?)"), TENSOR),
)


def is_library(name: str) -> bool:
    """Whether a qualified name belongs to one of the libraries whose calls are listed."""
    return name.partition(".")[0] in LIBRARIES


def family_of(name: str) -> str:
    """What calling this name gives: one of the families, or ""."""
    row = row_of(name)
    if row is not None and row.kind in KINDS and not name.startswith("torch.optim.swa_utils."):
        return KINDS[row.kind]
    for one in restated(name):
        beginnings = [start for start in FAMILIES if one == start or (start.endswith(".") and one.startswith(start))]
        if beginnings:
            return FAMILIES[max(beginnings, key=len)]
    # torch.zeros, torch.cat: functions of torch itself
    return TENSOR if re.fullmatch(r"torch\.(Tensor|[a-z]\w*)", name) and row is None and name not in NO_TENSOR else ""


NO_TENSOR = ("torch.device", "torch.save", "torch.load", "torch.manual_seed", "torch.dtype", "torch.Generator")


def method_row(family: str, name: str, method: str) -> tuple[str, Row | None]:
    """The qualified name of a method of an object of a family that `name` made, and its row."""
    candidates = [f"{name}.{method}"] if is_class(name) else []
    candidates += [f"{owner}.{method}" for owner in OWNERS.get(family, ())]
    for candidate in candidates:
        row = row_of(candidate)
        if row is not None:
            return candidate, row
    own = ""
    if family in ("", MODULE) and name and method not in MODULE_METHODS:
        own = name if is_class(name) else f"{name}()"
    owner = own or OWNERS.get(family, (name if is_class(name) else f"{name}()",))[0]
    return f"{owner}.{method}", None


def is_class(name: str) -> bool:
    """Whether a qualified name is that of a class, as people write them."""
    return name.rpartition(".")[2][:1].isupper()


@cache
def telling_method(method: str) -> str | None:
    """The family of an object about which only a method's name is known, where no other kind of object has one.

    Such names as `mean`, `split` or `copy`, which lists, texts, files or arrays have too, tell nothing.
    """
    if method in COMMON or method.startswith("_"):
        return None
    for family, owners in OWNERS.items():
        if any(f"{owner}.{method}" in index() for owner in owners):
            return family
    return None


# methods of NumPy's arrays, of files, of loggers, and words that every library uses
_WORDS = """
    all any argmax argmin argpartition argsort astype byteswap choose clip compress conj conjugate cumprod cumsum
    diagonal dot dump dumps fill flatten item itemset max mean min nonzero partition prod ptp put ravel repeat reshape
    resize round searchsorted setfield setflags sort squeeze std sum swapaxes take tobytes tofile tolist tostring trace
    transpose var view size shape ndim dtype T real imag data flat strides read write close open flush seek tell
    readline readlines save load log info debug warning error exception step add_scalar update reset run start stop
    wait get set state eval train apply type share register name to
"""
COMMON = frozenset(
    {name for kind in vars(builtins).values() if isinstance(kind, type) for name in dir(kind)}
    | {name for kind in (types.ModuleType, types.FunctionType) for name in dir(kind)}
    | set(_WORDS.split())
)


def habit(name: str) -> str:
    """What a variable of this name usually is: one of the families, or ""."""
    lower = name.lower()
    return next((family for pattern, family in HABITS if pattern.fullmatch(lower)), "")


def family_of_class(of: ScriptClass) -> str:
    """The family of a class of the script, by the library's class that it derives from."""
    base = of.library_base()
    return (BASES.get(base) or family_of(base)) if base else ""
