"""Run the torch model that was exported, in float64 and twice in float32, on the inputs of the export.

    python -m msmigrate.deploy.torch_reference_worker FOLDER SPEC BATCH

SPEC is torchvision:NAME(…), timm:NAME(…), msmigrate:NAME(…) for a recipe's model, or FILE.py:FUNCTION. FOLDER holds
torch.pth, its weights, and the inputs.
"""

from __future__ import annotations

import copy
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn

from ..errors import BadInput
from ..migrate import torch_models as zoo
from ..migrate.model_spec import parse
from ..parity.record.torch_precision import StaysExact, in_layout, model_in_layout, rounding_as_mindspore
from ..parity.record.torch_worker import load_checkpoint
from ..training.models import torch_models
from ..training.models.model_names import flat
from ..workers.worker import answer, progress
from .job import INPUTS, TORCH32, TORCH32_OTHER, TORCH64, in_batches, load, save


def build(text: str) -> nn.Module:
    """The torch model, without weights. Raises BadInput."""
    spec = parse(text)
    if spec.place == "msmigrate":
        return torch_models.build(spec.name, *spec.args, **spec.kwargs)
    with warnings.catch_warnings():  # GoogLeNet and Inception announce a new default
        warnings.simplefilter("ignore")
        return zoo.split(zoo.build(spec))[0]


def reference(folder: Path, spec: str, batch: int) -> None:
    """Leave the outputs of each run in the folder."""
    progress("running the torch model")
    model = build(spec)
    load_checkpoint(model, folder / "torch.pth")
    model.eval()
    inputs = load(folder / INPUTS)
    save(folder / TORCH32, _outputs(model, inputs, batch, torch.float32))
    other = copy.deepcopy(model)
    with rounding_as_mindspore():
        try:
            outputs = _outputs(model_in_layout(other, channels_last=True), inputs, batch, torch.float32, other=True)
        except RuntimeError:  # a model that calls x.view takes contiguous tensors only
            outputs = _outputs(copy.deepcopy(model), inputs, batch, torch.float32)
    save(folder / TORCH32_OTHER, outputs)
    with StaysExact():
        save(folder / TORCH64, _outputs(model.double(), inputs, batch, torch.float64))


def _outputs(
    model: nn.Module, inputs: list[np.ndarray], batch: int, dtype: torch.dtype, *, other: bool = False
) -> list[np.ndarray]:
    def run(arrays: list[np.ndarray]) -> list[np.ndarray]:
        tensors = [torch.from_numpy(array) for array in arrays]
        given = [x.to(dtype) if x.is_floating_point() else x for x in tensors]
        with torch.no_grad():
            outputs = model(*(in_layout(x, channels_last=True) if other else x for x in given))
        return [x.detach().contiguous().numpy() for x in flat(outputs, torch.Tensor)]  # a parameter may be one

    try:
        return in_batches(run, inputs, batch)
    except (TypeError, ValueError) as error:
        raise BadInput(f"the torch model does not run on these inputs: {' '.join(str(error).split())[:300]}") from None


if __name__ == "__main__":
    answer(lambda: reference(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
