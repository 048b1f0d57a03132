"""What is run: the recipes of the benchmark's steps, and the cases that share the start of each."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.training.models import model_names
from msmigrate.training.recipe.schema import Recipe

HERE = Path(__file__).parent
STEPS = 2  # of a compared run: all that a schedule needs to show that it moves
NETS = ("resnet", "vit", "mobile", "text", "unet", "rare")
# nets whose twin has other names (foreign_*.py), which are fed the recipe's images or batches of their own
FOREIGN = ("composite", "fused", "functional", "recurrent", "tagger", "segment", "speech")
# texts, their length, classes, and whether each word has one
WORDS = {"recurrent": (4, 9, 5, False), "tagger": (4, 9, 5, True), "speech": (4, 12, 6, False)}
_PREFIX = "fault_"  # before a net's name among the recipe's models
_FLAG = ("true or false", lambda value: type(value) is bool)
_OPTIONS = {
    "drop": ("a share", lambda value: isinstance(value, float)),
    **dict.fromkeys(("frozen", "freeze", "unused", "tied", "lengths"), _FLAG),
}


@dataclass
class Base:
    """A net, the recipe of its step, and the cases that share this start; loss: of losses_*.py, or nothing."""

    net: str
    step: str
    loss: str = ""
    seed: int = 42
    cases: list[Case] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.net}-{self.step}" + (f"-{self.seed}" if self.seed != 42 else "")


@dataclass
class Case:
    """Faults planted at once in one base; inject: (injector, its arguments) each; wrong: the arguments of a foreign
    net."""

    name: str
    inject: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    wrong: dict[str, Any] = field(default_factory=dict)


def register(models: dict[str, Any] | None = None, nets: dict[str, Any] | None = None) -> None:
    """Make the nets known to recipes; `models` are a framework's own, by name, where it runs."""
    model_names._VALUES.update(_OPTIONS)  # type: ignore[arg-type]
    for net in (*NETS, "beliefs"):
        model_names.ARGUMENTS[_PREFIX + net] = tuple(_OPTIONS)
        if models is not None and nets is not None:
            models[_PREFIX + net] = nets[net]
    model_names.SMALL = tuple({*model_names.SMALL, *(_PREFIX + net for net in (*NETS, "beliefs"))})
    model_names.NAMES = tuple(model_names.ARGUMENTS)


def recipe(net: str, step: str, seed: int = 42) -> tuple[dict[str, Any], str]:
    """The recipe of a net's step as a document, and the loss of its own that it has, or nothing."""
    steps = yaml.safe_load((HERE / "bases.yaml").read_text())
    changed = {} if step == "default" else steps[step]
    document = {**steps["default"], **changed, "seed": seed}
    loss = document.pop("own_loss", "")
    name = "resnet_tiny" if net in FOREIGN else _PREFIX + net  # of a pair it is not asked
    document["model"] = {"name": name, "args": changed.get("model", {})}
    return document, loss


def write(root: Path, bases: list[Base]) -> Path:
    """Write each base's recipe and the plan that both workers read; returns the plan's file."""
    for base in bases:
        document, base.loss = recipe(base.net, base.step, base.seed)
        Recipe.model_validate(document)
        (root / f"{base.name}.yaml").write_text(yaml.safe_dump(document))
    plan = [
        {
            "name": base.name,
            "recipe": str(root / f"{base.name}.yaml"),
            "loss": base.loss,
            "pair": pair(root, base.net) if base.net in FOREIGN else None,
            "cases": [{"name": case.name, "inject": case.inject, "wrong": case.wrong} for case in base.cases],
        }
        for base in bases
    ]
    path = root / "plan.json"
    path.write_text(json.dumps(plan))
    return path


def pair(root: Path, net: str) -> dict[str, Any]:
    """The foreign net's files for both workers: its function on each side, and its batches, which are left in root."""
    files = {side: f"{HERE / f'foreign_{side}.py'}:{net}" for side in ("torch", "mindspore")}
    draw, batches, batch = np.random.default_rng(0), {}, root / f"{net}.npz"
    for step in range(1, STEPS + 1):
        if net == "segment":  # a class for each point, and points that have none
            labels = draw.integers(0, 5, (3, 23, 22))
            labels[draw.random(labels.shape) < 0.2] = 255
            given = {"images": draw.normal(size=(3, 3, 23, 22)).astype(np.float32), "labels": labels}
        elif net in WORDS:
            texts, length, classes, several = WORDS[net]
            words = draw.integers(1, 29, (texts, length))
            for text, end in enumerate((length - 2, length, length - 5, length)):
                words[text, end:] = 0  # the padding
            given = {"input": words, "labels": draw.integers(0, classes, (texts, length)[: 1 + several])}
        else:
            return files
        batches |= {f"{name}{step}": array for name, array in given.items()}
    np.savez(batch, **batches)
    return {**files, "batch": str(batch)}


def pair_job(recipe: Recipe, folder: Path, given: dict[str, Any], case: dict[str, Any]) -> ParityJob:
    """The job of one case of a foreign net."""
    wrong = ", ".join(f"{name}={value!r}" for name, value in case["wrong"].items())
    batch = Path(given["batch"]) if "batch" in given else None
    pair = Pair(given["torch"], f"{given['mindspore']}({wrong})", batch=batch)
    return ParityJob(recipe, folder, steps=STEPS, pair=pair, together=True)
