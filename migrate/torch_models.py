"""Build the named torch model, and the inputs that it runs on.

torchvision:NAME    of torchvision, on inputs of the size for its published weights
timm:NAME           of timm, on inputs of the size in its timm configuration
FILE.py:FUNCTION    the function's result: a model, or a model and its inputs
"""

from __future__ import annotations

import copy
import difflib
import functools
import re
import sys
import sysconfig
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn.modules.batchnorm import _NormBase
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils import checkpoint as checkpointing

from ..errors import BadInput
from ..input_files import LARGEST_PYTHON, read_bytes
from ..printable import few
from .library_names import INSTALLED, TABLES
from .model_spec import Spec, Stop, called, function, sizes_of

IMAGE = (1, 3, 224, 224)
FRAMES = 16  # of a clip
SIDE = 320  # pixels of each side of an image for detection
PROPOSALS = 50  # of regions in detection
# the families of torchvision whose models read values, and so cannot run without
DETECTION = "detection"
FAMILIES = ("detection", "optical_flow", "quantization", "segmentation", "video")
# where a model is built and where it runs: without values at all; or built with values that its Python code reads,
# such as the rates of its layers, but without its weights
WAYS = (("meta", "meta"), ("cpu", "meta"))
PYTHONS = sysconfig.get_path("stdlib")


class Inputs(NamedTuple):
    """A model's arguments in each mode, and a description of them."""

    eval: tuple[Any, ...]
    train: tuple[Any, ...]
    said: str
    chosen: bool  # by msmigrate, not given by the user
    kwargs: Mapping[str, Any] = {}


def build(spec: Spec, notes: list[str] | None = None, device: str | None = None) -> Any:
    """Build the model, or call the user's function; raises BadInput for an unknown name.

    notes: gets a sentence where the user's file did not run to its end. device: as in builder_of.
    """
    if spec.place == "torchvision":
        import torchvision

        _known(spec.name, torchvision.models.list_models(), "torchvision")
        none = {"weights": None}
        if "weights_backbone" in _parameters(torchvision.models.get_model_builder(spec.name)):
            none["weights_backbone"] = None
        return torchvision.models.get_model(spec.name, *spec.args, **{**none, **spec.kwargs})
    if spec.place == "timm":
        timm = load_timm()
        _known(spec.name, timm.list_models(), "timm")
        return timm.create_model(spec.name, *spec.args, **{"pretrained": False, **spec.kwargs})
    return called(spec, builder_of(spec, notes, device))


@contextmanager
def empty_weights() -> Iterator[None]:
    """Put the weights and buffers of all modules that are built inside the block on the meta device, without memory."""
    module = torch.nn.Module
    register_parameter, register_buffer = module.register_parameter, module.register_buffer

    def parameter(self: torch.nn.Module, name: str, param: torch.nn.Parameter | None) -> None:
        register_parameter(self, name, param)
        held = self._parameters[name]
        if type(held) is torch.nn.Parameter and not held.is_meta:  # a shared one stays shared
            self._parameters[name] = torch.nn.Parameter(held.data.to("meta"), requires_grad=held.requires_grad)

    def buffer(self: torch.nn.Module, name: str, tensor: torch.Tensor | None, persistent: bool = True) -> None:
        register_buffer(self, name, tensor, persistent)
        if tensor is not None:
            self._buffers[name] = tensor.to("meta")

    module.register_parameter, module.register_buffer = parameter, buffer
    try:
        yield
    finally:
        module.register_parameter, module.register_buffer = register_parameter, register_buffer


def twice(value: Any) -> Any:
    """Two images for one: a list of images twice as long, a batch twice as large.

    The second is the first one mirrored and a little darker: a norm over two that are the same divides their rounding.
    """
    if isinstance(value, list):
        return [*value, *pytree.tree_map_only(torch.Tensor, _another, value)]
    return pytree.tree_map_only(torch.Tensor, _with_another, value)


def _another(tensor: torch.Tensor) -> torch.Tensor:
    return 0.9 * tensor.flip(-1) if tensor.is_floating_point() and tensor.ndim else tensor


@torch.no_grad()
def _with_another(tensor: torch.Tensor) -> torch.Tensor:
    return torch.cat((tensor, _another(tensor))).requires_grad_(tensor.requires_grad)


def load_timm() -> Any:
    """Import timm; raises BadInput where it is not installed."""
    try:
        import timm
    except ModuleNotFoundError as error:
        if error.name != "timm":
            raise
        raise BadInput("timm is not installed; pip install timm") from None
    return timm


def split(made: Any) -> tuple[torch.nn.Module, Any]:
    """Take apart what a function returned: the model, and the inputs or None; raises BadInput for anything else."""
    model, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, torch.nn.Module):
        got = f"a tuple of {len(made)}" if isinstance(made, tuple) else type(made).__name__
        raise BadInput(f"it returns {got}, not a torch.nn.Module, nor (model, inputs)")
    return model, inputs


def let_copy(model: torch.nn.Module) -> torch.nn.Module:
    """Make a model copyable at any time, also where it keeps what it has computed, as weight_norm does, or functions
    that refer to its modules; returns the model.

    torch cannot copy a tensor that was computed with a gradient, and leaves out a parameter's hooks; Python does not
    copy functions: these would still use the old modules.
    """
    copy._deepcopy_dispatch[types.FunctionType] = _copied  # type: ignore[attr-defined]
    copy._deepcopy_dispatch[torch.Tensor] = _values  # type: ignore[attr-defined]
    copy._deepcopy_dispatch[torch.nn.Parameter] = _with_hooks  # type: ignore[attr-defined]
    return model


def _values(tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    """A copy of a tensor, and of one that was computed its values."""
    copied: torch.Tensor = tensor.__deepcopy__(memo) if tensor.is_leaf else tensor.detach().clone()
    return copied


def _with_hooks(parameter: torch.nn.Parameter, memo: dict[int, Any]) -> torch.nn.Parameter:
    """A copy of a parameter with the functions that are called with its gradient."""
    copied: torch.nn.Parameter = parameter.__deepcopy__(memo)
    for hook in (parameter._backward_hooks or {}).values() if not copied._backward_hooks else ():
        copied.register_hook(copy.deepcopy(hook, memo))
    return copied


def _copied(function: types.FunctionType, memo: dict[int, Any]) -> types.FunctionType:
    """A copy of a function whose closure has the copies of its modules; any other function itself."""
    cells = function.__closure__ or ()
    held = [*map(_held, cells)]
    if not any(isinstance(one, torch.nn.Module) for one in held):
        return function
    moved = [
        types.CellType(copy.deepcopy(one, memo)) if isinstance(one, torch.nn.Module) else cell
        for one, cell in zip(held, cells, strict=True)
    ]
    code, name = function.__code__, function.__name__
    found = types.FunctionType(code, function.__globals__, name, function.__defaults__, tuple(moved))
    found.__kwdefaults__ = function.__kwdefaults__
    return found


def _held(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is empty
        return None


def family(spec: Spec) -> str:
    """The model's family, as the coverage table groups them."""
    if spec.place != "torchvision":
        return spec.place
    import torchvision

    module = torchvision.models.get_model_builder(spec.name).__module__
    return next((name for name in FAMILIES if f".{name}." in module), "classification")


def looks_at_values(spec: Spec) -> bool:
    """Whether a model is known not to run without values."""
    try:
        return spec.place == "torchvision" and family(spec) == DETECTION
    except ValueError:
        return False  # torchvision has no such name


def inputs_for(spec: Spec, model: torch.nn.Module, told: tuple[str, ...], returned: Any) -> Inputs:
    """Choose the model's inputs: the given shapes, else those that its function returned, else those of its family."""
    if told:
        tensors = tuple(_told(text) for text in told)
        return Inputs(tensors, tensors, " and ".join(told), chosen=False)
    if returned is not None:
        if isinstance(returned, Mapping):
            return Inputs((), (), "the inputs that it returns", chosen=False, kwargs=dict(returned))
        given = tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)
        return Inputs(given, given, "the inputs that it returns", chosen=False)
    if spec.place == "torchvision":
        return _torchvision(spec.name, family(spec), model)
    shape = (1, *_timm_size(model)) if spec.place == "timm" else IMAGE
    return _images(shape)


def _images(*shapes: tuple[int, ...]) -> Inputs:
    tensors = tuple(torch.rand(shape) for shape in shapes)
    return Inputs(tensors, tensors, " and ".join("×".join(map(str, shape)) for shape in shapes), chosen=True)


def _timm_size(model: torch.nn.Module) -> tuple[int, ...]:
    settings = getattr(model, "pretrained_cfg", None) or getattr(model, "default_cfg", None) or {}
    return tuple(settings.get("input_size") or IMAGE[1:])


def _torchvision(name: str, kind: str, model: Any) -> Inputs:
    if kind == DETECTION:
        if model.transform.fixed_size is None:  # else it enlarges every image to 800 pixels, which takes longer
            model.transform.min_size, model.transform.max_size = (SIDE,), SIDE
        if hasattr(model, "rpn"):  # else the head runs on a thousand proposals
            model.rpn._pre_nms_top_n = model.rpn._post_nms_top_n = {"training": PROPOSALS, "testing": PROPOSALS}
        return _detection(name)
    if kind == "optical_flow":
        return _images((1, 3, 368, 496), (1, 3, 368, 496))
    size = getattr(model, "image_size", None)  # of a model for one size of images, such as a ViT
    height, width = (size, size) if isinstance(size, int) else _crop(name)
    if kind == "video":
        return _images((1, 3, FRAMES, height, width))
    return _images((1, 3, height, width))


def _crop(name: str) -> tuple[int, int]:
    """The height and width of images after the transforms of a model's published weights."""
    import torchvision

    try:
        transforms = torchvision.models.get_model_weights(name).DEFAULT.transforms()
    except (AttributeError, ValueError):
        return IMAGE[2], IMAGE[3]
    size = getattr(transforms, "crop_size", None) or getattr(transforms, "resize_size", None) or IMAGE[2:]
    size = [size] if isinstance(size, int) else list(size)
    return int(size[0]), int(size[-1])


def _detection(name: str) -> Inputs:
    """One image, and its target: a box, its class, its mask and its keypoints."""
    target: dict[str, torch.Tensor] = {
        "boxes": torch.tensor([[40.0, 40.0, 200.0, 240.0]], device="cpu"),
        "labels": torch.tensor([1], device="cpu"),
    }
    if "mask" in name:
        target["masks"] = torch.ones((1, SIDE, SIDE), dtype=torch.uint8, device="cpu")
    if "keypoint" in name:
        target["keypoints"] = torch.tensor([[[100.0, 120.0, 1.0]] * 17], device="cpu")
    image = torch.rand((3, SIDE, SIDE), device="cpu")
    return Inputs(([image],), ([image], [target]), f"a list of one 3×{SIDE}×{SIDE}", chosen=True)


def _told(text: str) -> torch.Tensor:
    """Make the tensor of `1x3x224x224` or `1x16:int64`; raises BadInput."""
    sizes, dtype = sizes_of(text), text.partition(":")[2]
    kind = getattr(torch, dtype or "float32", None)
    if not isinstance(kind, torch.dtype):
        raise BadInput(f"--input {text}: torch has no dtype {dtype}; write it as in 1x16:int64")
    try:
        if kind.is_floating_point:
            return torch.rand(sizes, dtype=kind)
        return torch.ones(sizes, dtype=kind)
    except (RuntimeError, TypeError) as error:
        raise BadInput(f"--input {text}: {' '.join(str(error).split())[:200]}") from None


def _known(name: str, names: list[str], place: str) -> None:
    if name not in names and name.partition(".")[0] not in names:
        near = difflib.get_close_matches(name, names, n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else f"; {place}.list_models() names them"
        raise BadInput(f"{place} has no model {name}{hint}")


def _parameters(builder: Callable[..., Any]) -> set[str]:
    import inspect

    return set(inspect.signature(builder).parameters)


def in_mode(model: torch.nn.Module, *, training: bool) -> torch.nn.Module:
    """The model, in training or in evaluation mode; a `train` of its own may return nothing."""
    _ = model.train() if training else model.eval()
    return model


def quietly() -> None:
    """Suppress the model's warnings: they are for users who train it."""
    warnings.simplefilter("ignore")


def builder(spec: Spec, notes: list[str] | None = None) -> Callable[..., Any]:
    """A function that makes the model anew; a user's file is imported once. Raises BadInput.

    notes: gets remarks on that import. The function takes an optional wrapper for the user's function.
    """
    if spec.place in ("torchvision", "timm"):
        return lambda through=None: build(spec)
    found = builder_of(spec, notes)
    return lambda through=None: called(spec, found if through is None else through(found))


def builder_of(spec: Spec, notes: list[str] | None = None, device: str | None = None) -> Callable[..., Any]:
    """The user's function, from a file whose import ends where it would train.

    device: where torch is to run. On the CPU, the default, what a file of the user's puts on a GPU by its own code
    stays there from here on, in this process.
    """
    backward = torch.Tensor.backward

    def refused(self: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        raise Stop("it begins to train there")

    torch.Tensor.backward = refused
    stays = device in (None, "cpu") and not OnTheCpu.entered
    mode = OnTheCpu() if stays else nullcontext()
    mode.__enter__()
    try:
        return function(spec, [] if notes is None else notes)
    finally:
        torch.Tensor.backward = backward
        loaded = [module for name, module in [*sys.modules.items()] if name.partition(".")[0] != "msmigrate"]
        files = (vars(module).get("__file__") for module in loaded if isinstance(module, types.ModuleType))
        if stays and any(map(_names_gpu, files)):
            OnTheCpu.entered = True
        else:
            mode.__exit__(None, None, None)


class OnTheCpu(TorchFunctionMode):
    """Everything is compared on the CPU: `x.cuda()` is x, and for `device="cuda"` and `x.to("cuda:1")` it is "cpu"."""

    entered = False  # in this process, until it ends

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if function is torch.Tensor.cuda:
            return args[0]
        words = {key: _on_cpu(value) if key == "device" else value for key, value in (kwargs or {}).items()}
        return function(*(map(_on_cpu, args) if function is torch.Tensor.to else args), **words)


def _on_cpu(device: Any) -> Any:
    """The CPU for a GPU; anything else as it is."""
    named = isinstance(device, (str, torch.device)) and str(device).partition(":")[0] == "cuda"
    return torch.device("cpu") if named else device


def _names_gpu(file: str | None) -> bool:
    """Whether a file that is not of an installed package has `.cuda(` or the name of such a device in it."""
    if not isinstance(file, str) or not file.endswith(".py") or {*Path(file).parts} & INSTALLED:
        return False
    with suppress(OSError):  # it was imported, and may be gone since
        text = read_bytes(file, LARGEST_PYTHON)
        return not file.startswith(PYTHONS) and re.search(rb"\.cuda\(|[\"']cuda\b", text) is not None
    return False


# What a user's file gets of torch while its model is looked at, set before it is imported


def has_torch_function(relevant: Any) -> bool:
    """Whether any of these is a tensor of a class of its own: copies of torch's functions ask that, and torch says yes
    for every tensor while a model is looked at."""
    return any(type(one) not in (torch.Tensor, torch.nn.Parameter) for one in relevant if torch.is_tensor(one))


CHECKPOINTED = set[str]()  # the names of what was, in this process


@functools.wraps(checkpointing.checkpoint)
def _checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The call without checkpointing, which would run it again in the backward pass."""
    CHECKPOINTED.add(getattr(function, "__qualname__", type(function).__name__))
    return function(*args, **{key: value for key, value in kwargs.items() if key not in TABLES["checkpoint_arguments"]})


def checkpointed(model: torch.nn.Module) -> list[str]:
    """A note, where something was checkpointed that torch computes in another way than without."""
    norms = any(isinstance(one, _NormBase) and one.track_running_stats for one in model.modules())
    text = (
        f"checkpointing ({few(sorted(CHECKPOINTED), 2)}) is left out: torch's backward pass would run this again, and "
        "move the running statistics of the norms in it twice a step"
    )
    return [text] * bool(CHECKPOINTED and norms)


has_torch_function.__module__ = torch.overrides.__name__
torch.overrides.has_torch_function = has_torch_function
checkpointing.checkpoint = _checkpoint
