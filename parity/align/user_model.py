"""What a user's function may return: model, loss, optimizer, step. docs/your_own_pair.md says it with an example each.

    def build(): return Net()
    def build(): return {"model": Net(), "loss": loss, "optimizer": optimizer, "step": step}
    def build(): return Net(), inputs

loss        (outputs, labels) -> scalar, in place of the recipe's loss
optimizer   (list of parameters) -> optimizer, or an optimizer of the model's own parameters, in place of the recipe's
            and its schedule; over groups, in any order, or over some of the parameters, too
step        (model, optimizer, images, labels) -> the loss, or a dict with StepOutput's keys: the whole training
            step, which updates the weights itself. The optimizer is the one that came along, else the recipe's.
            step(model, images, labels) finds its optimizer itself, and works at the model that it is given. An object
            that is called with (images, labels) and holds model and optimizer is a step, too: a trainer, or a Cell such
            as nn.TrainOneStepCell.

Only `model` has to be there; inputs that come along are for `analyze` and `convert-model`. What one side does not bring
is the recipe's. With a `step` on either side, gradients are those that the optimizer is given; the parts of the recipe
that such a step does itself (accumulate, clip, the loss scale, the moving average) are not compared separately, and
what only one side returns is reported as not judged. The gradient of the images is not compared then. With an
`optimizer`, what it does to the weights is compared, but neither its state nor its rates.
"""

from __future__ import annotations

import inspect
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ...errors import BadInput, MsmigrateError, WorkerFailed
from ...migrate.library_names import INSTALLED
from ...printable import few
from ...training.models.model_names import flat
from ...training.recipe.schema import Model, Recipe
from ..job import ParityJob
from .alignment import Alignment
from .layers import whole
from .model_structure import Structure

PARTS = ("model", "loss", "optimizer", "step")


PlainValues = tuple[tuple[Any, dict[str, Any]], ...]


@dataclass(frozen=True)
class Given:
    """A model and the parts of its step that came along, None for those that the recipe describes; plain: whether the
    model returns one tensor, as far as it is known. copies: what the step holds of the model's weights as they were
    when it was made, a moving average's start, which have to follow when both sides get the same starting weights.
    notes: on the import of its file. undefined: tensors that torch leaves uninitialized. start: `plain_values` of the
    model before it ran."""

    model: Any
    loss: Callable[..., Any] | None = None
    optimizer: Any = None
    step: Callable[..., Any] | None = None
    plain: bool = True
    copies: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()
    start: PlainValues = ()

    @property
    def parts(self) -> list[str]:
        """The names of the parts besides the model."""
        return [name for name in PARTS[1:] if getattr(self, name) is not None]


def completed(
    made: Given, options: ParityJob, loss: Callable[..., Any], fine_tune: Callable[[Any, Model], Any] | None
) -> Given:
    """The same with `loss`, which takes all outputs, where the pair asks for one and brings none, and with what the
    recipe's model.freeze and its like say done by `fine_tune`, where they are about this model."""
    pair = options.pair
    wanted = pair is not None and pair.outputs and made.loss is None and made.step is None
    if fine_tune is not None and options.fine_tunes:
        fine_tune(made.model, options.recipe.model)
    return replace(made, loss=loss) if wanted else made


@dataclass(frozen=True)
class StepOutput:
    """What a user's step returns, by key; only the loss has to be there, and may come alone.

    loss: scalar. logits: the first tensor that the model gave, where that cannot be seen. grads: own parameter name ->
    gradient as the optimizer gets it, where that cannot be seen (a compiled step): what an optimizer is really given
    counts more. scale: the loss scale after the step. finite: whether the gradients were, and the weights updated. ema:
    own name -> moving average of that parameter or buffer.
    """

    loss: Any
    logits: Any = None
    grads: Mapping[str, Any] | None = None
    scale: Any = None
    finite: Any = None
    ema: Mapping[str, Any] | None = None


def given(returned: Any, kind: type, where: str, optimizers: tuple[type, ...] = ()) -> Given:
    """Read what the function `where` returned; kind: the class of a model; optimizers: those of optimizers.

    Raises BadInput for anything else.
    """
    if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[0], kind):
        returned = returned[0]
    if isinstance(returned, kind):
        return Given(returned)
    model = f"a {kind.__module__.partition('.')[0]} {kind.__name__}"
    if not isinstance(returned, dict):
        raise BadInput(f"{where} returns {type(returned).__name__}: expected {model}, or a dict with one as 'model'")
    unknown = [key for key in returned if key not in PARTS]
    if unknown:
        raise BadInput(f"{where} returns a dict with {unknown[0]!r}; it may have {', '.join(PARTS)}")
    if not isinstance(returned.get("model"), kind):
        raise BadInput(f"{where}: 'model' is {type(returned.get('model')).__name__}: expected {model}")
    for part in PARTS[1:]:
        made = returned.get(part)
        if part == "optimizer" and isinstance(made, optimizers):
            continue
        if made is not None and (not callable(made) or (part == "optimizer" and isinstance(made, kind))):
            wanted = "a function of the parameters, or an optimizer" if part == "optimizer" else "a function"
            raise BadInput(f"{where}: {part!r} is {type(made).__name__}: expected {wanted}")
    step, optimizer = returned.get("step"), returned.get("optimizer")
    if step is None:
        return Given(**returned)
    if takes_optimizer(step) or optimizer is None:
        return Given(**{**returned, "optimizer": optimizer or optimizer_inside(step, optimizers)})
    raise BadInput(
        f"{where} returns an optimizer that its step does not take: step(model, optimizer, images, labels), or leave "
        "'optimizer' out"
    )


def is_object(step: Any) -> bool:
    """Whether a step is an object that holds its model and optimizer, or a method of one, as a trainer's `train_step`,
    and not a function that is given them."""
    return not inspect.isroutine(step) or (inspect.ismethod(step) and not inspect.isclass(step.__self__))


LIBRARIES = {"torch", "mindspore", "numpy", *sys.stdlib_module_names}


def is_users(one: Any) -> bool:
    """Whether an object is of a class of the user's own."""
    return hasattr(one, "__dict__") and type(one).__module__.partition(".")[0] not in LIBRARIES


def plain_values(objects: Iterable[Any], bare: Container[str]) -> PlainValues:
    """Numbers, strings and None among the attributes of objects of the user's own classes, such as a count of how often
    a module has run; bare: the attributes that every object of the kind has."""
    kinds = (bool, int, float, str, type(None))
    found = ((one, {n: v for n, v in vars(one).items() if type(v) in kinds and n not in bare}) for one in objects)
    return tuple((one, values) for one, values in found if values and is_users(one))


def put_back(start: PlainValues) -> None:
    """Restore these values where running the objects has changed them."""
    for one, values in start:
        for name, value in values.items():
            now = vars(one).get(name)
            if type(now) is not type(value) or now != value:
                setattr(one, name, value)


def held_by(step: Any) -> list[Any]:
    """A step that is an object, or whose method it is, and everything that it holds, the nearest first: its attributes,
    the elements of lists, tuples and dicts, and what objects of the user's own classes hold in turn. Empty for a
    function and for None."""
    found: list[Any] = []
    step = step.__self__ if inspect.ismethod(step) else step
    waiting = [step] if step is not None and is_object(step) else []
    seen: set[int] = set()
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        found.append(one)
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, (list, tuple)):
            waiting += one
        elif one is step or is_users(one):
            waiting += getattr(one, "__dict__", {}).values()
    return found


def optimizer_inside(step: Any, optimizers: tuple[type, ...]) -> Any:
    """The optimizer that a step holds, itself or in an object of the user's, or None."""
    return next((value for value in held_by(step) if isinstance(value, optimizers)), None)


ELSEWHERE = ("site-packages", "dist-packages", sysconfig.get_paths()["stdlib"], __file__)
RULE = re.compile(r"^-{20,}$", re.MULTILINE)  # below which MindSpore says where in its C++ it was


def run_users(what: str, function: Callable[[], Any]) -> Any:
    """Run code of the user's; what it raises becomes one line with the place in their file. Raises WorkerFailed."""
    try:
        return function()
    except MsmigrateError as error:
        raise type(error)(f"{what}: {error}") from error
    except Exception as error:
        # the last frame outside of the libraries is where the user has to look
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if not any(part in f.filename for part in ELSEWHERE)]
        frame = (own or frames)[-1]
        said = " ".join(RULE.split(f"{type(error).__name__}: {error}")[0].split())[:400]
        raise WorkerFailed(f"{what} failed: {said} ({Path(frame.filename).name}, line {frame.lineno})") from error


def first(output: Any, kind: type) -> Any:
    """The logits: the first floating tensor of what the model returned, or the first one where none is. A policy may
    return the action that it took before the probabilities."""
    found = flat(output, kind)
    if not found:
        raise BadInput(f"the model returns {type(output).__name__} without a tensor")
    return next((each for each in found if "float" in str(each.dtype).lower()), found[0])


NO_TENSOR = (
    "the {side} model returns {what} in training mode: bring a 'loss' that takes it, or name it in the recipe, "
    "`loss: {{name: FILE.py:NAME, source: FILE}}`"
)


def single(output: Any, kind: type, side: str) -> Any:
    """The output where it is one tensor: what the recipe's loss takes. Raises BadInput for anything else."""
    if not isinstance(output, kind):
        what = f"{type(output).__name__} of {len(flat(output, kind))} tensors"
        raise BadInput(NO_TENSOR.format(side=side, what=what))
    return output


def takes_optimizer(step: Any) -> bool:
    """Whether the user's step is step(model, optimizer, images, labels) rather than step(model, images, labels) or, of
    an object, step(images, labels). Raises BadInput for others."""
    count = arguments(step)
    if count not in ((2, 3, 4) if is_object(step) else (3, 4)):
        raise BadInput(f"the step takes {count} arguments: expected (model, images, labels) or (model, optimizer, …)")
    return count == 4


def arguments(step: Any) -> int:
    """How many arguments a step takes; a Cell, those of its construct."""
    called = getattr(step, "construct", step) if is_object(step) else step
    plain = inspect.signature(called).parameters.values()
    several = any(one.kind is one.VAR_POSITIONAL for one in plain)  # construct(self, *args): images and labels
    return 2 if several and is_object(step) else len(plain)


KEYS = tuple(field.name for field in fields(StepOutput))


def checked(found: Any, kind: type, side: str) -> StepOutput:
    """What the user's step returned; kind: the class of tensors. Raises BadInput for anything else."""
    if isinstance(found, kind):
        found = {"loss": found}
    if not isinstance(found, dict):
        several = isinstance(found, (tuple, list)) and found and isinstance(found[0], kind)
        which = "; where its first is the loss, return that alone or as {'loss': …}" if several else ""
        raise BadInput(
            f"the {side} step returns {type(found).__name__}: expected the loss, or a dict with {few(KEYS, 9)}{which}"
        )
    unknown = next((key for key in found if key not in KEYS), None)
    if unknown is not None:
        raise BadInput(f"the {side} step returns {unknown!r}; it may return {few(KEYS, 9)}")
    for key in ("loss", "logits"):
        if not isinstance(found.get(key), kind) and (key == "loss" or found.get(key) is not None):
            got = type(found[key]).__name__ if key in found else "not there"
            raise BadInput(f"the {side} step's {key!r} is {got}: expected a tensor")
    for key in ("grads", "ema"):
        values = found.get(key)
        if values is not None and not (
            isinstance(values, dict) and all(isinstance(value, kind) for value in values.values())
        ):
            raise BadInput(f"the {side} step's {key!r} is no dict of tensors by the model's own names")
    return StepOutput(**found)


def one_number(value: Any, side: str, key: str) -> float:
    """A number that a step returns, as itself or in a tensor of one element. Raises BadInput."""
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError):
        raise BadInput(f"the {side} step's {key!r} is {type(value).__name__}: expected one number") from None


def without_optimizer(recipe: Recipe) -> Recipe:
    """The recipe for a step whose optimizer comes from elsewhere: its groups may name what is not there."""
    optimizer = recipe.optimizer.model_copy(update={"groups": [], "no_weight_decay": []})
    return recipe.model_copy(update={"optimizer": optimizer, "schedule": None})


@dataclass(frozen=True)
class Paired:
    """One side's model with its parts, and the alignment of both."""

    given: Given
    alignment: Alignment


def own_step(paired: Paired | None) -> Any:
    """The user's own step of a side; None where the recipe describes it."""
    return None if paired is None else paired.given.step


def hides_its_optimizer(paired: Paired | None) -> bool:
    """Whether the user's own step computes with an optimizer that is not known: none came along with it, none is found
    in it, and the recipe's is not given to it either."""
    step = own_step(paired)
    return paired is not None and step is not None and paired.given.optimizer is None and not takes_optimizer(step)


def shows_its_optimizer(paired: Paired | None) -> bool:
    """Whether the user's step is an object whose optimizer is known, so that a call without an update is seen."""
    step = own_step(paired)
    return paired is not None and step is not None and is_object(step) and paired.given.optimizer is not None


OWN = " of one's own"  # behind the name of a layer that is also that of a class of the user's, made of other modules


def layer_class(own_and_ancestors: Iterable[type], *, parts: bool) -> str:
    """The name of the first of these classes that is a layer, or else of the first: a zoo's own LayerNorm over channels
    is one. A class of the user's that has modules in it (parts) and the name of a layer, such as `RNN`, is marked."""
    classes = [*own_and_ancestors]
    name = next((cls.__name__ for cls in classes if whole(cls.__name__)), classes[0].__name__)
    return name + OWN * (parts and whole(name) and not any(c.__name__ == name and _of_package(c) for c in classes))


def _of_package(cls: type) -> bool:
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    return bool({*Path(file).parts} & INSTALLED) or cls.__module__.startswith("msmigrate.")


def of_one_name(torch: Structure, mindspore: Structure) -> tuple[Structure, Structure]:
    """Both structures, with a mark at the classes of one's own that both have; what one side alone has under the name
    of a layer stands for that layer."""
    marked = [{module.kind for module in side.modules if module.kind.endswith(OWN)} for side in (torch, mindspore)]
    plain = {kind: kind.removesuffix(OWN) for kind in marked[0] ^ marked[1]}
    if not plain:
        return torch, mindspore
    one, other = (
        replace(side, modules=tuple(replace(each, kind=plain.get(each.kind, each.kind)) for each in side.modules))
        for side in (torch, mindspore)
    )
    return one, other
