"""Torch's side of a step that goes on from a torch training checkpoint: what the script itself does with --resume."""

from __future__ import annotations

import argparse
import copy
import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ..errors import BadCheckpoint
from ..migrate.formats.source import check_before_torch
from ..migrate.optimizer_state import short
from ..migrate.training_state import AVERAGE, OPTIMIZER, SCALER
from ..train.recipe import DynamicLossScale
from ..train.step.torch_step import TrainStep
from . import continued
from .worker import Options

RULE = ("growth_factor", "backoff_factor", "growth_interval")
OWN = ("params", "param_names", "initial_lr")  # of a group, that its own optimizer and schedule made


class Continued:
    """What a torch training checkpoint remembers, to be given to one step after another.

    path: the checkpoint, whose tensors are read as torch reads them, and nothing in it is executed; folder: where
    `continued.prepare` left what it became. Raises BadCheckpoint for a file that torch does not read so.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.given = continued.read(folder)
        check_before_torch(str(path))
        try:
            with torch.serialization.safe_globals([argparse.Namespace]):  # which scripts keep beside the weights
                document = torch.load(path, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, OSError, ValueError, KeyError, TypeError, EOFError) as error:
            raise BadCheckpoint(
                f"{path}: torch.load(weights_only=True) does not read it: {' '.join(str(error).split())[:300]}"
            ) from error
        optimizer = _first(document, OPTIMIZER)
        self.state: Mapping[int, Any] = optimizer["state"]
        self.groups: list[dict[str, Any]] = optimizer["param_groups"]
        self.names: list[list[str]] = [group["params"] for group in continued.told(self.given)["param_groups"]]
        self.scaler = _first(document, SCALER)
        self.average = _average(document)

    def into(self, step: TrainStep) -> None:
        """Give the step everything: position, optimizer, loss scale, moving average. Raises BadCheckpoint.

        As torch's load_state_dict does, the options of the parameter groups, the learning rate among them, are those of
        the file: where the recipe says others, its next step is another one, and the comparison shows it.
        """
        at = continued.position(self.given, step.recipe)
        step.steps = at.steps
        if step.schedule is not None:
            with warnings.catch_warnings():  # it moves without updates in between
                warnings.simplefilter("ignore", UserWarning)
                for _ in range(at.epoch):
                    step.schedule.step()
        self._optimizer(step)
        if step.scaler is not None and step.scaler.rule is not None and self.scaler:
            rule = {name: self.scaler[name] for name in RULE if name in self.scaler}
            step.scaler.scale = float(self.scaler["scale"])
            step.scaler.growth_tracker = int(self.scaler.get("_growth_tracker", 0))
            step.scaler.rule = DynamicLossScale(**{**step.scaler.rule.model_dump(), **rule})
        if step.average is not None and self.average:
            for name, tensor in step.average.tensors.items():
                if name in self.average:
                    tensor.copy_(self.average[name])

    def _optimizer(self, step: TrainStep) -> None:
        """The optimizer's state and options, through torch's own load_state_dict, in the order of the step's groups."""
        own = step.optimizer.state_dict()
        name_of = {id(parameter): name for name, parameter in step.parameters.items()}
        order = [name_of[id(p)] for group in step.optimizer.param_groups for p in group["params"]]
        index: dict[str, int] = {}
        options: dict[str, dict[str, Any]] = {}
        for group, names in zip(self.groups, self.names, strict=True):
            index.update(zip(names, group["params"], strict=True))
            options.update(dict.fromkeys(names, group))
        lacking = [name for name in order if name not in index]
        if lacking:
            raise BadCheckpoint(f"{self.path}: its optimizer does not have {lacking[0]}, which the recipe trains")
        for group in own["param_groups"]:
            names = [order[i] for i in group["params"]]
            for key in [key for key in group if key not in OWN and key in options[names[0]]]:
                value = options[names[0]][key]
                other = next((name for name in names if options[name].get(key) != value), None)
                if other is not None:
                    raise BadCheckpoint(
                        f"{self.path}: {names[0]} was trained with {key} {value}, {other} with "
                        f"{options[other].get(key)}, and the recipe has both in one group: say so under "
                        "optimizer.no_weight_decay or optimizer.groups"
                    )
                group[key] = value
        held = {i: self.state[index[name]] for i, name in enumerate(order) if index[name] in self.state}
        own["state"] = copy.deepcopy(held)  # load_state_dict takes tensors of the same dtype as they are
        step.optimizer.load_state_dict(own)


def continued_from(options: Options) -> Continued | None:
    """The training checkpoint that a run goes on from, or None where it begins anew. Raises BadCheckpoint."""
    return Continued(options.continue_from, options.folder) if options.continue_from is not None else None


def _first(document: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The first of the keys that holds a state, as convert-ckpt looks for it; of a list of one that one."""
    for key in keys:
        value = document.get(key)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, dict):
            return value
    return {}


def _average(document: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The moving average by the bare model's names."""
    held: Any = next((document[key] for key in AVERAGE if document.get(key) is not None), {})
    for inner in ("module", "state_dict", "shadow", "model"):
        if isinstance(held.get(inner), dict):
            held = held[inner]
    return {short(name): value for name, value in held.items() if isinstance(value, torch.Tensor)}
