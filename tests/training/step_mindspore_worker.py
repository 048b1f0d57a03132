"""The MindSpore half of the tests of the step: `python step_mindspore_worker.py FOLDER quick|all`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from msmigrate.errors import BadRecipe
from msmigrate.workers.worker import leave, prepare_mindspore
from step_cases import CASES, RATE_STEPS, RATES, VARIANTS, Case, Found, batches, sampled, weight
from step_refused import REFUSED
from worker import dump

prepare_mindspore()

from mindspore import Parameter, Tensor, nn  # noqa: E402
from mindspore.experimental import optim  # noqa: E402
from msmigrate.training.models import mindspore_models  # noqa: E402
from msmigrate.training.models.mindspore_models import canonical_parameters  # noqa: E402
from msmigrate.training.recipe.schema import Part  # noqa: E402
from msmigrate.training.step import mindspore_step_state  # noqa: E402
from msmigrate.training.step.mindspore_step import Outcome, StepResult, TrainStep, build_schedule  # noqa: E402


def smooth(net: nn.Cell) -> nn.Cell:
    """The net without kinks, as the PyTorch worker's."""
    for _, parent in list(net.cells_and_names()):
        for name, child in list(parent.name_cells().items()):
            if isinstance(child, nn.ReLU):
                setattr(parent, name, nn.SiLU())
            elif isinstance(child, nn.MaxPool2d):
                padding = 1 if child.pad_mode.lower() == "pad" else 0  # it keeps no attribute of its padding
                setattr(parent, name, nn.AvgPool2d(child.kernel_size, child.stride, child.pad_mode, padding))
    return net


def start(case: Case) -> nn.Cell:
    """The net at the starting weights, in training mode."""
    net = smooth(mindspore_models.build(case.model))
    for held in canonical_parameters(net):
        held.parameter.set_data(Tensor(weight(held.name, held.parameter.shape)))
        if held.name.startswith(case.still):
            held.parameter.requires_grad = False
    return net.set_train()


def record(found: Found, place: str, step: TrainStep, result: StepResult | Outcome) -> None:
    """Everything that one step computed and left behind."""
    named = {"loss": result.loss}
    if isinstance(result, StepResult):
        assert result.logits is not None
        named["logits"] = result.logits
        if result.image_grad is not None:
            named["image_grad"] = result.image_grad
        named |= {f"grads/{name}": grad for name, grad in result.grads.items()}
    named |= {f"ema/{name}": average for name, average in step.ema().items()}
    named |= {f"weights/{held.name}": held.parameter for held in canonical_parameters(step.net)}
    for key, values in mindspore_step_state.optimizer_state(step).items():
        named |= {f"state/{key}/{name}": value for name, value in values.items()}
    found.arrays |= {f"{place}/{name}": sampled(value.asnumpy()) for name, value in named.items()}
    if result.finite is not None and step.scaler is not None:
        tracker = step.scaler.growth_tracker.asnumpy()
        scaler = {"finite": bool(result.finite), "scale": step.loss_scale, "growth_tracker": float(tracker)}
        found.arrays |= {f"{place}/scaler/{name}": np.float64(value) for name, value in scaler.items()}
    moved = mindspore_step_state.momenta(step)
    for kind, numbers in (("rates", step.learning_rates()), ("decays", step.weight_decays()), ("momenta", moved)):
        found.arrays |= {f"{place}/{kind}/{name}": np.float64(number) for name, number in numbers.items()}


def run(found: Found, name: str, case: Case, variant: str) -> None:
    """Take the case's steps in one mode."""
    mode, images, lean = VARIANTS[variant]
    began = time.process_time()
    # as a run takes it, which looks at every gradient before the weights move
    step = TrainStep(case.recipe, start(case), mode, image_gradient=images, look="gradients" if lean else None)
    for index, batch in enumerate(batches(case)):
        labels = batch.labels.astype(np.float32 if batch.labels.dtype.kind == "f" else np.int32)
        result = (step.train if lean else step)(Tensor(batch.images), Tensor(labels))
        record(found, f"{name}/{variant}/{index}", step, result)
        step.end_epoch()  # every step is an epoch of its own, so that what moves once an epoch moves
    found.facts["seconds"][f"{name}/{variant}"] = round(time.process_time() - began, 2)


def rates(part: Part) -> list[list[float]]:
    """The learning rates of two groups before every step."""
    groups = [
        {"params": [Parameter(np.zeros(1, np.float32), name=f"weight{index}")], "lr": rate}
        for index, rate in enumerate((0.1, 0.013))
    ]
    optimizer = optim.SGD(groups, lr=1.0)
    schedule = build_schedule(part, optimizer)
    found = []
    for _ in range(RATE_STEPS):
        found.append([float(rate.asnumpy()) for rate in optimizer.lrs])
        schedule.step()
    return found


def main(folder: Path, quick: bool) -> None:
    """Run every case, in quick mode only in some variants, and write what was found."""
    found = Found(facts={"seconds": {}, "refused": {}, "shapes": {}})
    for model in {case.model for case in CASES.values()}:
        held = canonical_parameters(mindspore_models.build(model))
        found.facts["shapes"][model] = {each.name: each.parameter.shape for each in held}
    for name, case in CASES.items():
        for variant in case.quick if quick else case.variants:
            run(found, name, case, variant)
    found.facts["rates"] = {name: rates(part) for name, part in RATES.items()}
    for name, case in REFUSED.items():
        try:
            TrainStep(case.recipe, start(case))
        except BadRecipe as error:
            found.facts["refused"][name] = str(error)
    dump(folder / "mindspore", found.facts, found.arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]), quick=sys.argv[2] == "quick")
    leave()
