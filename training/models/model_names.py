"""What is known of models without a framework: those that a recipe may name, and the arguments each of them takes;
functions of the user's that a recipe names; and of what any model gives, the tensors in it and their shapes."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...errors import BadRecipe
from ...migrate import model_spec
from ...migrate.library_names import parts_of_distribution

_BASIC = ("num_classes", "zero_init_residual")
_BOTTLENECK = (*_BASIC, "groups", "width_per_group")

# model name -> the names of its keyword arguments
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "lenet5": ("channels", "num_classes"),
    "resnet18": _BASIC,
    "resnet34": _BASIC,
    "resnet50": _BOTTLENECK,
    "resnet101": _BOTTLENECK,
    "resnet152": _BOTTLENECK,
    "resnet_tiny": (*_BASIC, "block", "layers", "width"),
}
NAMES = tuple(ARGUMENTS)
BLOCKS: dict[str, tuple[str, tuple[int, ...]]] = {  # of a ResNet: their kind, and how many each of its layers has
    "resnet18": ("basic", (2, 2, 2, 2)),
    "resnet34": ("basic", (3, 4, 6, 3)),
    "resnet50": ("bottleneck", (3, 4, 6, 3)),
    "resnet101": ("bottleneck", (3, 4, 23, 3)),
    "resnet152": ("bottleneck", (3, 8, 36, 3)),
    "resnet_tiny": ("bottleneck", (1, 1, 1, 1)),
}
STEM = 64  # input channels of the first of these layers

ZOOS = ("torchvision", "timm")  # their models are named torchvision:NAME or timm:NAME, and converted
SMALL = ("lenet5", "resnet_tiny")  # 10 classes by default; the others have ImageNet's 1000

# argument name -> what a value must be, in words and as a test
_POSITIVE = ("a positive whole number", lambda value: type(value) is int and value > 0)
_VALUES: dict[str, tuple[str, Any]] = {
    "channels": _POSITIVE,
    "num_classes": _POSITIVE,
    "groups": _POSITIVE,
    "width_per_group": _POSITIVE,
    "width": _POSITIVE,
    "zero_init_residual": ("true or false", lambda value: type(value) is bool),
    "block": ("'basic' or 'bottleneck'", lambda value: value in ("basic", "bottleneck")),
    "layers": (
        "four positive whole numbers",
        lambda value: isinstance(value, (list, tuple)) and len(value) == 4 and all(_POSITIVE[1](n) for n in value),
    ),
}


def is_zoo(name: str) -> bool:
    """Whether a model is torchvision's or timm's, by its prefix; whether it exists is not known here."""
    zoo, colon, model = name.partition(":")
    return zoo in ZOOS and bool(colon) and model.isidentifier()


def is_file(name: str) -> bool:
    """Whether a model is a function or a class in a file of the user's, such as `net.py:Net`."""
    place, colon, own = name.rpartition(":")
    return bool(colon) and place.endswith(".py") and own.isidentifier()


OWN_FUNCTIONS = ("lr_lambda",)  # arguments of schedules that are functions of the user's own, FILE.py:NAME


def functions_in(args: Mapping[str, Any]) -> list[str]:
    """The functions of the user's own among the arguments of a schedule, and of those inside of it."""
    found: list[str] = []
    with_functions(args, found.append)
    return found


def with_functions(args: Mapping[str, Any], made: Callable[[str], Any]) -> dict[str, Any]:
    """The arguments of a schedule, and of those inside of it, with what is made of each function of the user's own."""

    def changed(key: str, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [changed(key, one) for one in value]
        if isinstance(value, Mapping):
            return with_functions(value, made)
        return made(value) if key in OWN_FUNCTIONS and isinstance(value, str) else value

    return {key: changed(key, value) for key, value in args.items()}


def is_ours(name: str) -> bool:
    """Whether a model is one of msmigrate's own, which needs no source in MindSpore."""
    return not is_zoo(name) and not is_file(name)


def check(name: str, arguments: Mapping[str, Any]) -> None:
    """Raise BadRecipe, with the closest known names, unless `name` is a model and all `arguments` are arguments of it
    with valid values."""
    if not is_ours(name):
        odd = next((argument for argument in arguments if not argument.isidentifier()), None)
        if odd is not None:
            raise BadRecipe(f"model {name}: {odd!r} is not the name of an argument")
        words, fits = _POSITIVE
        if not fits(arguments.get("num_classes", 1)):
            raise BadRecipe(f"model {name}: num_classes must be {words}, not {arguments['num_classes']!r}")
        return
    if name not in ARGUMENTS:
        ours = _closest(name, NAMES)
        zoos = "; a recipe also takes torchvision:NAME, timm:NAME and FILE.py:NAME, with arguments by keyword"
        ours += zoos * (":" in name)
        if name.endswith(")") and not is_ours(name.partition("(")[0]):
            raise BadRecipe(f"model {name!r}: give its arguments by name, either under `args` or in the name")
        raise BadRecipe(f"no model is called {name!r}; {ours}")
    for argument, value in arguments.items():
        if argument not in ARGUMENTS[name]:
            raise BadRecipe(f"model {name} takes no argument {argument!r}; {_closest(argument, ARGUMENTS[name])}")
        words, fits = _VALUES[argument]
        if not fits(value):
            raise BadRecipe(f"model {name}: {argument} must be {words}, not {value!r}")


def check_spec(text: str, framework: str) -> None:
    """Make sure, by reading alone, that a model on the command line exists: the user's, or one of these.

    framework: "torch" or "mindspore", whose model it names. Raises BadInput.
    """
    spec = model_spec.check(text, framework)
    if spec.place == model_spec.OWN:
        check(spec.name, spec.kwargs)


def module_names(name: str, arguments: Mapping[str, Any]) -> list[str] | None:
    """The dotted names of the model's modules, the same in both frameworks; None where only the built model knows."""
    if name == "lenet5":
        return ["", "conv1", "conv2", "relu", "pool", "fc1", "fc2", "fc3"]
    if name not in BLOCKS:
        return None
    kind, layers = BLOCKS[name]
    kind, layers = arguments.get("block", kind), arguments.get("layers", layers)
    parts = ["conv1", "bn1", "conv2", "bn2", *(["conv3", "bn3"] if kind == "bottleneck" else []), "relu"]
    outputs = (arguments.get("width", 8) if name == "resnet_tiny" else STEM) * (4 if kind == "bottleneck" else 1)
    found = ["", "conv1", "bn1", "relu", "maxpool"]
    for layer, count in enumerate(layers, 1):
        found.append(f"layer{layer}")
        for number in range(count):
            block = f"layer{layer}.{number}"
            found += [block, *(f"{block}.{part}" for part in parts)]
            if number == 0 and (layer > 1 or outputs != STEM):  # a shortcut that changes size or channels
                found += [f"{block}.downsample{end}" for end in ("", ".0", ".1")]
    return [*found, "avgpool", "fc"]


def num_classes(name: str, arguments: Mapping[str, Any]) -> int:
    """How many classes the model has with these `arguments`: its own default where they do not say."""
    return arguments.get("num_classes", 10 if name in SMALL else 1000)


def _closest(name: str, known: Iterable[str]) -> str:
    """The known names that look like `name`, or all of them, as the end of an error message."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=3)
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"


# What any model gives


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by their names, and the two tensors of a distribution; of anything else none, nor of a
    dataclass that is a dictionary itself."""
    if isinstance(value, (dict, type)) or not dataclasses.is_dataclass(value):
        return parts_of_distribution(value)
    return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}


def flat(value: Any, kind: type | tuple[type, ...]) -> list[Any]:
    """The tensors (objects of `kind`) in a nest of tuples, lists, dicts and dataclasses, in order."""
    if isinstance(value, kind):
        return [value]
    value = fields_of(value) or value
    if isinstance(value, dict):
        return [found for item in value.values() for found in flat(item, kind)]
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in flat(item, kind)]
    return []


def of_batch(shape: tuple[int, ...], given: int, ran: int, batch: int) -> tuple[int, ...]:
    """The shape that an output has for a batch; a first axis may be of (N x L) rows.

    given, ran: the length of the first input, and of the part of it that gave this shape; as long where it ran whole.
    """
    examples = ran if ran < given else batch
    rows = shape[0] * batch // examples if shape and shape[0] % examples == 0 else batch
    return (rows, *shape[1:])
