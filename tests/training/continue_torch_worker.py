"""Torch's half: train as people write it, keep a checkpoint, go on: `python continue_torch_worker.py FOLDER`.

Nothing of msmigrate's step is used. The float64 run goes on from the float32 run's checkpoint, so that both have the
same start. What MindSpore kept is taken over by `python continue_torch_worker.py FOLDER back`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from continue_cases import AFTER, BEFORE, CASES, REFUSED, SCALER, chosen
from step_cases import Case, batches, sampled
from step_torch_models import start
from timm.utils import ModelEmaV2


class Run:
    """A hand-written training loop's parts."""

    def __init__(self, case: Case, dtype: torch.dtype) -> None:
        keys = case.keys
        self.case, self.dtype = case, dtype
        self.model = start(case, dtype)
        named = dict(self.model.named_parameters())
        options = keys["optimizer"]
        if options.get("no_weight_decay"):
            biases = [p for n, p in named.items() if n.endswith("bias")]
            rest = [p for n, p in named.items() if not n.endswith("bias")]
            groups: list[Any] = [{"params": biases, "weight_decay": 0.0}, {"params": rest}]
        else:
            groups = list(named.values())
        self.optimizer = getattr(torch.optim, options["name"])(groups, **options["args"])
        self.scheduler = None
        if "schedule" in keys:
            schedule = keys["schedule"]
            self.scheduler = getattr(torch.optim.lr_scheduler, schedule["name"])(self.optimizer, **schedule["args"])
        self.scaler = torch.amp.GradScaler("cpu", **SCALER) if "dynamic_loss_scale" in keys else None
        self.average = ModelEmaV2(self.model, decay=0.9) if "ema" in keys else None
        self.steps = 0

    def step(self, images: np.ndarray, labels: np.ndarray) -> None:
        """One step, an epoch of its own."""
        self.model.train()
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            self.model(torch.from_numpy(images).to(self.dtype)), torch.from_numpy(labels)
        )
        if self.scaler is None:
            loss.backward()
            self._clip()
            self.optimizer.step()
        else:
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
            self._clip()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        if self.scheduler is not None:
            self.scheduler.step()
        if self.average is not None:
            self.average.update(self.model)
        self.steps += 1

    def _clip(self) -> None:
        if "clip" in self.case.keys:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.case.keys["clip"]["max_norm"])

    def state(self) -> dict[str, Any]:
        """What scripts save."""
        found = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "global_step": self.steps,
            "args": {"batch": 4},
        }
        if self.scheduler is not None:
            found["lr_scheduler"] = self.scheduler.state_dict()
        if self.scaler is not None:
            found["scaler"] = self.scaler.state_dict()
        if self.average is not None:
            found["model_ema"] = self.average.module.state_dict()
        return found

    def load(self, state: dict[str, Any]) -> None:
        """What scripts load."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["lr_scheduler"])
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])
        if self.average is not None:
            self.average.module.load_state_dict(state["model_ema"])
        self.steps = state["global_step"]

    def record(self, found: dict[str, np.ndarray], place: str) -> None:
        """Weights, averages, the optimizer's state."""
        tensors = {f"weights/{n}": t for n, t in self.model.state_dict().items()}
        if self.average is not None:
            tensors |= {f"ema/{n}": t for n, t in self.average.module.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimizer.state[parameter].items():
                if key != "step" and value is not None:
                    tensors[f"state/{key}/{name}"] = value
        for name, tensor in tensors.items():
            if "num_batches" not in name:
                found[f"{place}/{name}"] = sampled(tensor.detach().numpy())
        if self.scaler is not None:
            found[f"{place}/scale"] = np.float64(self.scaler.get_scale())
        found[f"{place}/rate"] = np.float64(self.optimizer.param_groups[-1]["lr"])


def steps(run: Run, first: int, last: int, found: dict[str, np.ndarray], place: str) -> None:
    """Take the steps from `first` up to `last` of the case's batches."""
    for index, batch in enumerate(batches(run.case)):
        if first <= index < last:
            run.step(batch.images, batch.labels)
            run.record(found, f"{place}/{index}")


def main(folder: Path) -> None:
    """Train, keep, go on in both precisions."""
    found: dict[str, np.ndarray] = {}
    for name, case in (chosen() | {name: CASES[name] for name in REFUSED}).items():
        run = Run(case, torch.float32)
        steps(run, 0, BEFORE, found, f"{name}/before")
        torch.save(run.state(), folder / f"{name}.pth")
        for dtype in (torch.float32, torch.float64) if name in chosen() else ():
            on = Run(case, dtype)
            on.load(torch.load(folder / f"{name}.pth", weights_only=True))
            steps(on, BEFORE, BEFORE + AFTER, found, f"{name}/{str(dtype)[-2:]}")
    np.savez(folder / "torch.npz", **found)


def back(folder: Path) -> None:
    """Go on from what MindSpore kept, in both precisions."""
    found: dict[str, np.ndarray] = {}
    for name, case in chosen().items():
        for dtype in (torch.float32, torch.float64):
            on = Run(case, dtype)
            on.load(torch.load(folder / f"{name}.back.pth", weights_only=True))
            steps(on, BEFORE, BEFORE + AFTER, found, f"{name}/{str(dtype)[-2:]}")
    np.savez(folder / "back.npz", **found)


if __name__ == "__main__":
    torch.set_num_threads(1)
    (back if sys.argv[2:] == ["back"] else main)(Path(sys.argv[1]))
