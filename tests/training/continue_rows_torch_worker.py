"""Torch's half: train as people write it, keep a checkpoint, go on: `python continue_rows_torch_worker.py FOLDER`.

Nothing of msmigrate is used. What MindSpore kept is taken over by `python continue_rows_torch_worker.py FOLDER back`.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from continue_rows_cases import AFTER, BEFORE, CLASSES, PARAMETERS, Run, batch, chosen, start


class Loop:
    """A hand-written training loop's parts."""

    def __init__(self, run: Run, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.conv, self.fc = torch.nn.Conv2d(1, 2, 3), torch.nn.Linear(8, CLASSES)
        self.model = torch.nn.ModuleDict({"conv": self.conv, "fc": self.fc})
        self.model.load_state_dict({name: torch.from_numpy(start(name)) for name in PARAMETERS})
        self.model.to(dtype)
        package, _, name = run.torch.rpartition(".")
        layers = zip((self.conv, self.fc), run.groups, strict=True)
        groups = [{"params": list(layer.parameters()), **options} for layer, options in layers]
        self.optimizer = getattr(importlib.import_module(package), name)(groups, **run.args)
        self.steps = 0

    def go(self, last: int, found: dict[str, np.ndarray], place: str) -> None:
        """Take the steps up to the last."""
        while self.steps < last:
            images, targets = (torch.from_numpy(each).to(self.dtype) for each in batch(self.steps))
            self.optimizer.zero_grad()
            torch.nn.functional.mse_loss(self.fc(self.conv(images).flatten(1)), targets).backward()
            self.optimizer.step()
            self.record(found, f"{place}/{self.steps}")
            self.steps += 1

    def state(self) -> dict[str, Any]:
        """What scripts save."""
        held = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "global_step": self.steps}
        return {**held, "epoch": 1, "args": {"batch": 4}}

    def load(self, state: dict[str, Any]) -> None:
        """What scripts load."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.steps = state["global_step"]

    def record(self, found: dict[str, np.ndarray], place: str) -> None:
        """Weights, and the optimizer's state."""
        for name, parameter in self.model.named_parameters():
            found[f"{place}/weights/{name}"] = parameter.detach().numpy().copy()
            for key, value in self.optimizer.state[parameter].items():
                if value is not None:
                    found[f"{place}/state/{key}/{name}"] = np.array(value)


def main(folder: Path) -> None:
    """Train, keep, go on in both precisions; the float64 loop goes on from the float32 one's checkpoint."""
    found: dict[str, np.ndarray] = {}
    for name, run in chosen().items():
        loop = Loop(run, torch.float32)
        torch.save(loop.state(), folder / f"{name}.start.pth")
        loop.go(BEFORE, found, f"{name}/before")
        torch.save(loop.state(), folder / f"{name}.pth")
        for dtype in (torch.float32, torch.float64):
            on = Loop(run, dtype)
            on.load(torch.load(folder / f"{name}.pth", weights_only=True))
            on.go(BEFORE + AFTER, found, f"{name}/{str(dtype)[-2:]}")
        anew = Loop(run, torch.float32)
        anew.model.load_state_dict(torch.load(folder / f"{name}.pth", weights_only=True)["model"])
        anew.steps = BEFORE
        anew.go(BEFORE + 1, found, f"{name}/anew")
    np.savez(folder / "torch.npz", **found)


def changed(folder: Path, name: str) -> list[str]:
    """What is another after torch's checkpoint went to MindSpore's side and back."""
    before, after = (torch.load(folder / f"{name}{end}.pth", weights_only=True) for end in ("", ".again"))
    same = before["global_step"] == after["global_step"]
    found = [] if same and before["model"].keys() == after["model"].keys() else ["model"]
    before, after = before["optimizer"], after["optimizer"]
    for index, held in before["state"].items():
        kept = after["state"].get(index, {})
        found += [f"{index}.{key}" for key, value in held.items() if value is not None and key not in kept]
        found += [f"{index}.{key}" for key, value in kept.items() if not torch.equal(value, held[key])]
    for group, kept in zip(before["param_groups"], after["param_groups"], strict=True):
        found += [key for key, value in group.items() if plain(value) != plain(kept[key])]
    return found


def plain(value: Any) -> Any:
    """A tuple as the list that JSON makes of it."""
    return list(value) if isinstance(value, tuple) else value


def back(folder: Path) -> None:
    """Go on from what MindSpore kept after some steps, and after none, in both precisions."""
    found: dict[str, np.ndarray] = {}
    for name, run in chosen().items():
        for kept, last in (("back", BEFORE + AFTER), ("new", 1)):
            for dtype in (torch.float32, torch.float64):
                on = Loop(run, dtype)
                on.load(torch.load(folder / f"{name}.{kept}.pth", weights_only=True))
                on.go(last, found, f"{name}/{kept}/{str(dtype)[-2:]}")
    np.savez(folder / "back.npz", **found)
    (folder / "again.json").write_text(json.dumps({name: changed(folder, name) for name in chosen()}))


if __name__ == "__main__":
    torch.set_num_threads(1)
    (back if sys.argv[2:] == ["back"] else main)(Path(sys.argv[1]))
