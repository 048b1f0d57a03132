"""Validation while training: a net of its own, in float32 and evaluation mode, that borrows the weights to measure.

For a net without classes, the recipe's own loss is measured. The training net stays in training mode and compiled as it
is, so that validation changes nothing in training, and the result is what `msmigrate eval` will measure for the
checkpoint.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor

from ...errors import BadRecipe, DoesNotCompile
from ..data.mindspore_dataloader import Batch, Loader
from ..metrics import Metrics, Tally
from ..models import mindspore_models
from ..models.mindspore_models import canonical_parameters
from ..recipe.schema import Recipe
from ..step.mindspore_amp import first_tensor
from ..step.mindspore_compile import Graphs
from ..step.mindspore_step import Images, build_loss, inputs_of
from .mindspore_distributed import Team

# messages of MindSpore's CPU and device backends, oneDNN and the C++ library when memory has run out
MEMORY = re.compile(
    r"allocate memory failed|memory not enough|out of memory|memory is not enough|malloc device memory failed"
    r"|device memory .*insufficient|could not create a memory object|std::bad_alloc|cannot allocate memory",
    re.IGNORECASE,
)
# and MindSpore's messages when images do not fit a net
SHAPES = re.compile(r"shape|C_in|channel|dimension|rank of", re.IGNORECASE)


def refuse_misfit(error: Exception, images: Images, given: str) -> None:
    """Raise BadRecipe where an error of MindSpore's says that the net cannot take these images."""
    arrays = inputs_of(images)
    error = error.__cause__ if isinstance(error.__cause__, Exception) else error  # in MindSpore's own words
    if SHAPES.search(str(error)) and not MEMORY.search(str(error)):
        size = " and ".join(" × ".join(map(str, each.shape[1:])) or "one number" for each in arrays)
        what = "images" if len(arrays) == 1 and arrays[0].ndim == 4 else "inputs"
        first = next((line.strip() for line in str(error).splitlines() if SHAPES.search(line)), "")
        raise BadRecipe(f"the net cannot be run on the {what} of {size} that {given}: {first[:300]}") from error


class Validator:
    """Measures weights on all images of a validation loader.

    mode: "graph" compiles the forward pass. team: its processes measure rank 0's weights, each on its share of the
    images. seconds: duration of the last measurement.
    """

    def __init__(self, recipe: Recipe, loader: Loader, mode: str, team: Team) -> None:
        self.loader, self.team = loader, team
        self.net = mindspore_models.of_recipe(recipe.model).set_train(False)
        self.seconds = 0.0
        self._parameters = {each.name: each.parameter for each in canonical_parameters(self.net)}
        self._by_class = bool(loader.source.classes)
        self._loss_function = build_loss(recipe)
        measured = self._logits if self._by_class else self._loss
        self._measured = mindspore.jit(measured) if mode == "graph" else measured

    def rehearse(self) -> None:
        """Compile, and run one batch, so that validation that cannot work fails before training begins.

        Raises what the loader raises, and BadRecipe where the net cannot be run on the images.
        """
        batches: Any = self.loader.epoch(0)
        batch = next(batches)
        batches.close()
        try:
            with Graphs().watching():
                found = self._of(batch).asnumpy()
        except (RuntimeError, TypeError, ValueError, DoesNotCompile) as error:
            refuse_misfit(error, batch.images, "data.validation and data.eval_transforms give")
            raise
        if self._by_class and found.ndim != 2:
            raise BadRecipe(
                f"the net returns {list(found.shape)} for a batch, but for labels that are classes (N, classes) is "
                "needed: remove model.classes, and its loss is measured"
            )

    def measure(self, weights: Mapping[str, Tensor]) -> Metrics:
        """The metrics of weights and buffers by state_dict name; they are copied and left as they are."""
        began = time.perf_counter()
        for name, parameter in self._parameters.items():
            parameter.copy_(weights[name])  # a compiled graph never sees a value that set_data puts in place
        self.team.share(self.net)
        tally = Tally()
        for batch, found in self._outputs():
            if self._by_class:
                tally.add(found.asnumpy()[: batch.count], batch.classes[: batch.count])
            else:
                tally.add_loss(float(found.asnumpy()), batch.count)
        tally.sums = self.team.total(tally.sums)
        self.seconds = time.perf_counter() - began
        return tally.metrics()

    def _outputs(self) -> Iterator[tuple[Batch, Tensor]]:
        """Each batch with its logits or loss, which are being computed while the next batch is fetched."""
        before: tuple[Batch, Tensor] | None = None
        for batch in self.loader.epoch(0):
            if not batch.count:
                continue
            if before is not None:
                yield before
            before = batch, self._of(batch)
        if before is not None:
            yield before

    def _of(self, batch: Batch) -> Tensor:
        """The logits of a batch, or the loss of those of its examples that count.

        For logits, a smaller batch is filled up with its last image, because MindSpore compiles again for another size.
        """
        if self._by_class:
            return self._measured(*(_full(each, self.loader.batch) for each in inputs_of(batch.images)))
        counted = slice(batch.count)
        return self._measured(batch.labels[counted], *(each[counted] for each in inputs_of(batch.images)))

    def _logits(self, *inputs: Tensor) -> Tensor:
        return first_tensor(self.net(*inputs))

    def _loss(self, labels: Tensor, *inputs: Tensor) -> Tensor:
        return self._loss_function(self.net(*inputs), labels)


def _full(images: Tensor, batch: int) -> Tensor:
    """The images, filled up with the last one to a whole batch."""
    missing = batch - images.shape[0]
    if missing <= 0:
        return images
    array = images.asnumpy()
    return Tensor(np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]))
