"""The PyTorch half of the tests of the step: `python step_torch_worker.py FOLDER quick|all`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from msmigrate.errors import BadRecipe
from msmigrate.training.recipe.schema import Part
from msmigrate.training.step.torch_step import StepResult, TrainStep, build_schedule
from step_cases import CASES, RATE_STEPS, RATES, Case, Found, batches, sampled
from step_refused import REFUSED
from step_torch_models import start
from worker import dump

torch.set_num_threads(1)


def record(found: Found, place: str, step: TrainStep, result: StepResult) -> None:
    """Everything that one step computed and left behind."""
    named = {"loss": result.loss, "logits": result.logits}
    if result.image_grad is not None:
        named["image_grad"] = result.image_grad
    named |= {f"grads/{name}": grad for name, grad in result.grads.items()}
    named |= {f"ema/{name}": value for name, value in step.ema().items() if "num_batches" not in name}
    named |= {f"weights/{name}": value for name, value in step.model.state_dict().items() if "num_batches" not in name}
    for key, values in step.optimizer_state().items():
        named |= {f"state/{key}/{name}": value for name, value in values.items()}
    found.arrays |= {f"{place}/{name}": sampled(value.detach().numpy()) for name, value in named.items()}
    if result.finite is not None and step.scaler is not None:
        tracker = step.scaler.growth_tracker
        scaler = {"finite": result.finite, "scale": step.loss_scale, "growth_tracker": tracker}
        found.arrays |= {f"{place}/scaler/{name}": np.float64(value) for name, value in scaler.items()}
    moved = step.momenta()
    for kind, numbers in (("rates", step.learning_rates()), ("decays", step.weight_decays()), ("momenta", moved)):
        found.arrays |= {f"{place}/{kind}/{name}": np.float64(number) for name, number in numbers.items()}


def run(found: Found, name: str, case: Case, dtype: torch.dtype, decisions: list[bool] | None = None) -> list[bool]:
    """Take the case's steps in one precision; which of them were not skipped."""
    step = TrainStep(case.recipe, start(case, dtype))
    step.decisions = list(decisions or ())
    taken = []
    for index, batch in enumerate(batches(case)):
        labels = torch.from_numpy(batch.labels)
        labels = labels.to(dtype) if labels.is_floating_point() else labels
        result = step(torch.from_numpy(batch.images).to(dtype), labels, image_gradient=True)
        record(found, f"{name}/{str(dtype)[-2:]}/{index}", step, result)
        step.end_epoch()
        taken.append(result.finite is not False)
    return taken


def rates(part: Part) -> list[list[float]]:
    """The learning rates of two groups before every step."""
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": rate} for rate in (0.1, 0.013)]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    schedule = build_schedule(part, optimizer)
    found = []
    for _ in range(RATE_STEPS):
        found.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        schedule.step()
    return found


def main(folder: Path, quick: bool) -> None:
    """Run every case and write what was found."""
    found = Found()
    for name, case in CASES.items():
        if case.quick or not quick:
            decisions = run(found, name, case, torch.float32)
            run(found, name, case, torch.float64, decisions)  # in which half precision's overflows do not happen
    found.facts["rates"] = {name: rates(part) for name, part in RATES.items()}
    found.facts["refused"] = {}
    for name, case in REFUSED.items():
        try:
            TrainStep(case.recipe, start(case, torch.float32))
        except BadRecipe as error:
            found.facts["refused"][name] = str(error)
    dump(folder / "torch", found.facts, found.arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]), quick=sys.argv[2] == "quick")
