"""One training step of a MindSpore net that the user brought, with what parts of it they brought too."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mindspore import Tensor, nn, ops
from mindspore import dtype as mstype

from ...errors import BadInput, Unsupported
from ...train.models.mindspore_names import Canonical
from ...train.recipe import Recipe
from ...train.step.mindspore_step import StepResult, TrainStep
from .alignment import IDENTITY, IN_TORCH_ALONE, Alignment, Lack
from .given import Given, checked, run_users, single, takes_optimizer, without_optimizer
from .mindspore_pair import paths_and_parameters

TORCH_TRAINS = (*IN_TORCH_ALONE, Lack.FROZEN)


class PairStep(TrainStep):
    """The recipe's step, with the user's loss, optimizer or whole step in place of its own."""

    def __init__(
        self,
        recipe: Recipe,
        net: nn.Cell,
        taken: Given,
        held: list[Canonical],
        alignment: Alignment = IDENTITY,
        **options: Any,
    ) -> None:
        self.taken = taken
        self._torch_alone = {each.name: each.owner for each in alignment.unlike if each.lack in TORCH_TRAINS}
        self._plain, self._own_loss, self._many = taken.plain, taken.loss is not None, False
        self._paths = paths_and_parameters(net)
        # as net.trainable_params() has them, which is what people give an optimizer, and their own step counts on
        place = {id(parameter): i for i, (_, parameter) in reversed([*enumerate(self._paths)])}
        held = sorted(held, key=lambda each: place[id(each.parameter)])
        super().__init__(without_optimizer(recipe) if taken.optimizer else recipe, net, held=held, **options)
        if taken.loss is not None:
            self.loss_function = taken.loss

    def _make_optimizer(self, trainable: list[Canonical], others: Mapping[str, str] = MappingProxyType({})) -> Any:
        """The user's optimizer, else the recipe's."""
        made = self.taken.optimizer
        if made is None:
            return super()._make_optimizer(trainable, self._torch_alone)
        given = [each.parameter for each in trainable]
        optimizer = run_users("the MindSpore optimizer", lambda: made(given))
        if not callable(optimizer):
            raise BadInput(f"the MindSpore optimizer is {type(optimizer).__name__}: expected one of mindspore's")
        known = {id(parameter) for _, parameter in self._paths}
        for parameter in getattr(optimizer, "parameters", ()):
            if id(parameter) not in known:
                raise BadInput(
                    f"the MindSpore optimizer holds {parameter.name}, which is no parameter of the compared net: make "
                    "its groups of the parameters that its function is given"
                )
        return optimizer

    def __call__(self, images: Any, labels: Tensor) -> StepResult:
        """Run one step; images: what the net takes, a tuple where that is several tensors."""
        if self.taken.step is None:
            if not self._plain and not self._own_loss:
                single((), Tensor, "MindSpore")
            self._many = isinstance(images, tuple)
            if self._many and self.recipe.accumulate > 1:
                raise Unsupported("accumulate is recorded for models with one input: leave it out of the recipe")
            return run_users("the MindSpore training step", lambda: super(PairStep, self).__call__(images, labels))
        step, net = self.taken.step, self.net
        given = (net, self.optimizer) if takes_optimizer(step) else (net,)
        found = checked(run_users("the MindSpore step", lambda: step(*given, images, labels)), Tensor, "MindSpore")
        known = {id(weight): name for name, weight in zip(self.names, self.weights, strict=True)}
        names = {path: known[id(parameter)] for path, parameter in self._paths if id(parameter) in known}
        grads = found.get("grads")
        if not isinstance(grads, dict) or not grads or not grads.keys() <= names.keys():
            unknown = [str(name) for name in grads if name not in names] if isinstance(grads, dict) else []
            what = f"'grads' with {unknown[0]!r}, which no parameter that trains is called" if unknown else "no 'grads'"
            raise BadInput(f"the MindSpore step returns {what}: return {{parameter path: gradient}}")
        self.steps += 1
        self._advance()
        return StepResult(found["loss"], found["logits"], {names[n]: g for n, g in grads.items()}, None)

    def _forward(self, images: Any, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # plain attributes and no raise: this is compiled too
        if self._many:
            output = self.net(*images)
        elif self.image_gradient:
            output = self.net(ops.cast(images, self._images))
        else:
            output = self.net(images)
        logits = ops.cast(output if self._plain else _first(output), mstype.float32)
        loss = self.loss_function(output if self._own_loss else logits, labels)
        scaled = loss / self._parts if self._parts > 1 else loss
        if self.scaler is not None:
            scaled = scaled * self.scaler.scale
        return scaled, loss, logits


def _first(output: Any) -> Any:
    """The first tensor of a nest of tuples, lists and dicts."""
    while not isinstance(output, Tensor):
        if isinstance(output, dict):
            output = list(output.values())
        output = output[0]
    return output
