"""What a user's function may return: model, loss, optimizer, step.

    def build(): return Net()
    def build(): return {"model": Net(), "loss": loss, "optimizer": optimizer, "step": step}
    def build(): return Net(), inputs

loss        (outputs, labels) -> scalar, in place of the recipe's loss
optimizer   (list of parameters) -> optimizer, in place of the recipe's and its schedule; over groups, in any order, or
            over some of the parameters, too
step        (model, optimizer, images, labels) -> {"loss": scalar, "logits": tensor, "grads": {own parameter name:
            gradient}}: the whole training step, which updates the weights itself. The optimizer is the one that came
            along, else the recipe's. On the torch side "grads" may be left out where the step leaves them in `.grad`.
            step(model, images, labels) has to find its optimizer itself, and at the model that it is given.

Only `model` has to be there; inputs that come along are for `analyze` and `convert-model`. What one side does not bring
is the recipe's. With a `step` the gradient of the images is not compared, with an `optimizer` neither its state nor its
rates are: what it does to the weights is.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import BadInput, MsmigrateError, WorkerFailed
from ...training.recipe.schema import Recipe
from ..job import Pair
from .alignment import Alignment
from .model_structure import flat

PARTS = ("model", "loss", "optimizer", "step")


@dataclass(frozen=True)
class Given:
    """A model and the parts of its step that came along, None for those that the recipe describes; plain: whether the
    model returns one tensor, as far as it is known."""

    model: Any
    loss: Callable[..., Any] | None = None
    optimizer: Callable[..., Any] | None = None
    step: Callable[..., Any] | None = None
    plain: bool = True

    @property
    def parts(self) -> list[str]:
        """The names of the parts besides the model."""
        return [name for name in PARTS[1:] if getattr(self, name) is not None]


def with_loss(made: Given, pair: Pair | None, loss: Callable[..., Any]) -> Given:
    """The same with `loss`, which takes all outputs, where the pair asks for one and brings none."""
    wanted = pair is not None and pair.outputs and made.loss is None and made.step is None
    return replace(made, loss=loss) if wanted else made


def given(returned: Any, kind: type, where: str) -> Given:
    """Read what the function `where` returned; kind: the class of a model. Raises BadInput for anything else."""
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
        if returned.get(part) is not None and not callable(returned[part]):
            raise BadInput(f"{where}: {part!r} is {type(returned[part]).__name__}: expected a function")
    if isinstance(returned.get("optimizer"), kind):  # MindSpore's optimizers are Cells, and can be called
        made = type(returned["optimizer"]).__name__
        raise BadInput(f"{where}: 'optimizer' is {made}: expected a function that makes one of a list of parameters")
    if returned.get("step") is not None and not takes_optimizer(returned["step"]) and returned.get("optimizer"):
        raise BadInput(
            f"{where} returns an optimizer that its step does not take: step(model, optimizer, images, labels)"
        )
    return Given(**returned)


def run_users(what: str, function: Callable[[], Any]) -> Any:
    """Run code of the user's; what it raises becomes one line with the place in their file. Raises WorkerFailed."""
    try:
        return function()
    except MsmigrateError as error:
        raise type(error)(f"{what}: {error}") from error
    except Exception as error:
        # the last frame outside of the libraries is where the user has to look
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if "site-packages" not in f.filename and Path(f.filename).name != "given.py"]
        frame = (own or frames)[-1]
        said = " ".join(f"{type(error).__name__}: {error}".split())[:400]
        raise WorkerFailed(f"{what} failed: {said} ({Path(frame.filename).name}, line {frame.lineno})") from error


def first(output: Any, kind: type) -> Any:
    """The logits: the first tensor of what the model returned."""
    found = flat(output, kind)
    if not found:
        raise BadInput(f"the model returns {type(output).__name__} without a tensor")
    return found[0]


def single(output: Any, kind: type, side: str) -> Any:
    """The output where it is one tensor: what the recipe's loss takes. Raises BadInput for anything else."""
    if not isinstance(output, kind):
        what = f"the {side} model returns {type(output).__name__} of {len(flat(output, kind))} tensors in training mode"
        raise BadInput(f"{what}: bring a 'loss' that takes it")
    return output


def takes_optimizer(step: Any) -> bool:
    """Whether the user's step is step(model, optimizer, images, labels) rather than step(model, images, labels)."""
    count = len(inspect.signature(step).parameters)
    if count not in (3, 4):
        raise BadInput(f"the step takes {count} arguments: expected (model, images, labels) or (model, optimizer, …)")
    return count == 4


def checked(found: Any, kind: type, side: str) -> dict[str, Any]:
    """What the user's step returned, with loss and logits. Raises BadInput."""
    if not isinstance(found, dict) or not all(isinstance(found.get(key), kind) for key in ("loss", "logits")):
        raise BadInput(f"the {side} step has to return a dict with the tensors 'loss' and 'logits' (and 'grads')")
    return found


def without_optimizer(recipe: Recipe) -> Recipe:
    """The recipe for a step whose optimizer comes from elsewhere: its groups may name what is not there."""
    optimizer = recipe.optimizer.model_copy(update={"groups": [], "no_weight_decay": []})
    return recipe.model_copy(update={"optimizer": optimizer, "schedule": None})


@dataclass(frozen=True)
class Paired:
    """One side's model with its parts, and the alignment of both."""

    given: Given
    alignment: Alignment
