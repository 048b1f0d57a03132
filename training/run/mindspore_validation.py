"""Validation while training: a net of its own, in float32 and evaluation mode, that borrows the weights to measure.

The training net stays in training mode and as it is compiled, so that validating changes nothing in training, and what
is measured is what `msmigrate eval` will measure of the checkpoint.
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
from ..step.mindspore_compile import Graphs
from .mindspore_distributed import Team

# how MindSpore's CPU and device backends, oneDNN and the C++ library say that memory has run out
MEMORY = re.compile(
    r"allocate memory failed|memory not enough|out of memory|memory is not enough|malloc device memory failed"
    r"|device memory .*insufficient|could not create a memory object|std::bad_alloc|cannot allocate memory",
    re.IGNORECASE,
)
# and what MindSpore says when images do not fit a net
SHAPES = re.compile(r"shape|C_in|channel|dimension|rank of", re.IGNORECASE)


def refuse_misfit(error: Exception, images: Tensor, given: str) -> None:
    """Raise BadRecipe where an error of MindSpore's says that the net cannot take these images."""
    error = error.__cause__ if isinstance(error.__cause__, Exception) else error  # in MindSpore's own words
    if SHAPES.search(str(error)) and not MEMORY.search(str(error)):
        size = " × ".join(map(str, images.shape[1:]))
        first = next((line.strip() for line in str(error).splitlines() if SHAPES.search(line)), "")
        raise BadRecipe(f"the net cannot be run on the images of {size} that {given}: {first[:300]}") from error


class Validator:
    """Measures weights on all images of a validation loader.

    mode: "graph" compiles the forward pass. team: whose processes measure rank 0's weights, each on its share of the
    images. seconds: that the last measurement took.
    """

    def __init__(self, recipe: Recipe, loader: Loader, mode: str, team: Team) -> None:
        self.loader, self.team = loader, team
        self.net = mindspore_models.of_recipe(recipe.model).set_train(False)
        self.seconds = 0.0
        self._parameters = {each.name: each.parameter for each in canonical_parameters(self.net)}
        self._forward = mindspore.jit(self._logits) if mode == "graph" else self._logits

    def rehearse(self) -> None:
        """Compile, and run one batch, so that what cannot be validated fails before training begins.

        Raises what the loader raises, and BadRecipe where the net cannot be run on the images.
        """
        batches: Any = self.loader.epoch(0)
        batch = next(batches)
        batches.close()
        try:
            with Graphs().watching():
                self._forward(self._full(batch.images)).asnumpy()
        except (RuntimeError, TypeError, ValueError, DoesNotCompile) as error:
            refuse_misfit(error, batch.images, "data.validation and data.eval_transforms give")
            raise

    def measure(self, weights: Mapping[str, Tensor]) -> Metrics:
        """The metrics of weights and buffers by state_dict name; they are copied and left as they are."""
        began = time.perf_counter()
        for name, parameter in self._parameters.items():
            parameter.copy_(weights[name])  # a graph that is compiled never sees what set_data puts in place
        self.team.share(self.net)
        tally = Tally()
        for batch, logits in self._outputs():
            tally.add(logits.asnumpy()[: batch.count], batch.classes[: batch.count])
        tally.sums = self.team.total(tally.sums)
        self.seconds = time.perf_counter() - began
        return tally.metrics()

    def _outputs(self) -> Iterator[tuple[Batch, Tensor]]:
        """Each batch with its logits, which are being computed while the next batch is fetched."""
        before: tuple[Batch, Tensor] | None = None
        for batch in self.loader.epoch(0):
            if before is not None:
                yield before
            before = batch, self._forward(self._full(batch.images))
        if before is not None:
            yield before

    def _full(self, images: Tensor) -> Tensor:
        """The images, filled up with the last one to a whole batch: for another size MindSpore compiles again."""
        missing = self.loader.batch - images.shape[0]
        if missing <= 0:
            return images
        array = images.asnumpy()
        return Tensor(np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]))

    def _logits(self, images: Tensor) -> Tensor:
        return self.net(images)
