"""The recipes whose steps both frameworks take, with equal weights and batches; it imports no framework.

The two workers run as scripts, side by side, so this file is found beside them; the tests load it by its path.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from msmigrate.training.data.sample import decode
from msmigrate.training.data.sources import samples
from msmigrate.training.recipe.check import check
from msmigrate.training.recipe.schema import Part, Recipe
from option_cases import LOOP, LOOP_HALF, OPTIONS, OVERFLOWS, pairs
from option_cases import STEPS as OPTION_STEPS

STEPS = 3
CLASSES = 10
BATCH = 4
SGD = {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}

# MindSpore's run: its mode, whether the images' gradient is asked for, and whether it is the lean call of the loop
VARIANTS = {
    "pynative": ("pynative", True, False),
    "graph": ("graph", False, False),
    "graph with images": ("graph", True, False),
    "lean": ("graph", False, True),
}


@dataclass(frozen=True)
class Case:
    """A recipe without its model, and what is peculiar about the run.

    model: the model it is run on. graph: compiled in quick runs too; images: with the images' gradient too. frozen: the
    beginnings of the names that do not train. overflow: the step, from 0, that has an infinite target. lean: the loop's
    own call too in quick runs. pynative: operator by operator in quick runs. late: in full runs only. full: so too, and
    in two of the variants.
    """

    keys: dict[str, Any]
    model: str = "lenet5"
    graph: bool = True
    images: bool = False
    frozen: tuple[str, ...] = ()
    overflow: int | None = None
    steps: int = STEPS
    lean: bool = False
    pynative: bool = True
    late: bool = False
    full: bool = False

    @property
    def quick(self) -> tuple[str, ...]:
        """The variants of MindSpore's run in quick runs."""
        return () if self.late else self.usual

    @property
    def usual(self) -> tuple[str, ...]:
        """The variants of MindSpore's run that are worth their compilation every time that the case is run."""
        wanted = {
            "pynative": self.pynative,
            "graph": self.graph and not self.images,
            "graph with images": self.graph and self.images,
            "lean": self.lean,
        }
        return tuple(variant for variant, wants in wanted.items() if wants and not self.full)

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants of MindSpore's run in full: a pair of options is compiled once, to the call of the loop."""
        return ("pynative", "lean") if self.full else tuple(VARIANTS)

    @property
    def still(self) -> tuple[str, ...]:
        """The beginnings of the names that never move; of nothing, a beginning that no name has."""
        return self.frozen or ("-",)

    @property
    def recipe(self) -> Recipe:
        """The recipe as a checked object."""
        keys = {"optimizer": {"name": "SGD", "args": SGD}, **self.keys}
        recipe = Recipe.model_validate(
            {**keys, "model": {"name": self.model}, "data": {"source": SOURCES[self.model], "batch": BATCH}}
        )
        check(recipe)
        return recipe


SOURCES = {"lenet5": "digits", "resnet_tiny": "photographs"}
NESTEROV = {"name": "SGD", "args": {**SGD, "nesterov": True}}
NO_DECAY = {"name": "SGD", "args": SGD, "no_weight_decay": ["norm", "bias"]}
GROUPS = {
    "name": "SGD",
    "args": SGD,
    "no_weight_decay": ["bias"],
    "groups": [
        {"params": ["fc*.weight"], "args": {"lr": 0.01, "weight_decay": 0.1}},
        {"params": ["fc*", "conv1.*"], "args": {"lr": 0.02, "momentum": 0.0}},
    ],
}
CLIP_INACTIVE, CLIP_ACTIVE = {"max_norm": 1000.0}, {"max_norm": 0.1}
TOGETHER = {"optimizer": NESTEROV, "clip": CLIP_ACTIVE, "accumulate": 2, "loss_scale": 1024.0}
WEIGHTS = [0.5, 1.0, 2.0, 0.25, 1.5, 1.0, 3.0, 0.1, 1.0, 0.7]
WARM = {"name": "LinearLR", "args": {"start_factor": 0.1, "total_iters": 5}}
COSINE = {"name": "CosineAnnealingLR", "args": {"T_max": 8}}
MULTI = {"name": "MultiStepLR", "args": {"milestones": [1, 2], "gamma": 0.5}}
ONE_CYCLE = {"name": "OneCycleLR", "args": {"max_lr": 0.01, "total_steps": 8, "cycle_momentum": False}}
PEAK = {"name": "OneCycleLR", "args": {"max_lr": 0.02, "total_steps": 8, "base_momentum": 0.5}}
PHASES = {"name": "OneCycleLR", "args": {"max_lr": 0.003, "total_steps": 9, "pct_start": 0.35, "three_phase": True}}
ZIGZAG = {"name": "CyclicLR", "args": {"base_lr": 0.002, "max_lr": 0.02, "step_size_up": 2, "step_size_down": 1}}
RESTARTS = {"name": "CosineAnnealingWarmRestarts", "args": {"T_0": 2}}
CHAINED = {"name": "ChainedScheduler", "args": {"schedulers": [{"name": "ConstantLR"}, MULTI]}}
FACTORS = Path(__file__).with_name("schedule_factors.py")
LAMBDA = {"name": "LambdaLR", "args": {"lr_lambda": f"{FACTORS}:noam"}}
SEQUENTIAL = {"name": "SequentialLR", "args": {"schedulers": [WARM, COSINE, MULTI], "milestones": [4, 11]}}


def _optimizer(name: str, **args: Any) -> dict[str, Any]:
    return {"optimizer": {"name": name, "args": args}}


def _loss(name: str, **args: Any) -> dict[str, Any]:
    return {"loss": {"name": name, "args": args}}


CASES: dict[str, Case] = {
    "plain sgd": Case(_optimizer("SGD", lr=0.05), graph=False),
    "nesterov of three steps": Case({"optimizer": NESTEROV}, graph=False),
    "dampening": Case(_optimizer("SGD", **SGD, dampening=0.3), graph=False),
    "first match wins": Case({"optimizer": GROUPS}, graph=False),
    "adam": Case(_optimizer("Adam", lr=0.003, betas=[0.8, 0.95], weight_decay=0.01), graph=False),
    "amsgrad": Case(_optimizer("Adam", lr=0.003, amsgrad=True), graph=False),
    "adamw": Case(_optimizer("AdamW", lr=0.003, weight_decay=0.1), graph=False),
    "rmsprop": Case(_optimizer("RMSprop", lr=0.003), graph=False),
    "rmsprop centered": Case(_optimizer("RMSprop", lr=0.003, centered=True, momentum=0.9), graph=False),
    "nadam": Case({**_optimizer("NAdam", lr=0.003), "schedule": ONE_CYCLE}, graph=False),
    # the momentum moves with the rate, over several phases
    "cycled sgd": Case({**_optimizer("SGD", lr=0.1, momentum=0.9, weight_decay=0.01), "schedule": PEAK}, steps=8),
    "cycled nesterov": Case({"optimizer": NESTEROV, "schedule": ZIGZAG}, graph=False, steps=7),
    "cycled adamw": Case({**_optimizer("AdamW", lr=0.003, weight_decay=0.1), "schedule": PHASES}, steps=9),
    "cycled from no momentum": Case({**_optimizer("SGD", lr=0.1), "schedule": PEAK}, steps=6, full=True),
    "cycled groups": Case({"optimizer": GROUPS, "schedule": PEAK}, steps=6, full=True),
    "cycled rmsprop": Case({**_optimizer("RMSprop", lr=0.003), "schedule": PHASES}, steps=6, full=True),
    "cycled adam": Case({**_optimizer("Adam", lr=0.003), "schedule": PHASES}, steps=6, full=True),
    "cycled nadam": Case({**_optimizer("NAdam", lr=0.003), "schedule": PHASES}, steps=6, full=True),
    "cycled radam": Case({**_optimizer("RAdam", lr=0.003, betas=[0.9, 0.9]), "schedule": PHASES}, steps=6, full=True),
    "cycled lamb": Case({**_optimizer("Lamb", lr=0.01), "schedule": PHASES}, steps=6, full=True),
    "cycled lars": Case({**_optimizer("Lars", lr=0.1, weight_decay=0.01), "schedule": PEAK}, steps=6, full=True),
    "radam": Case(_optimizer("RAdam", lr=0.003, betas=[0.9, 0.9]), full=True),
    "adagrad": Case({**_optimizer("Adagrad", lr=0.01), "schedule": CHAINED}, full=True),
    "asgd": Case(_optimizer("ASGD", lr=0.01, t0=1), full=True),
    "rprop": Case(_optimizer("Rprop", lr=0.001), full=True),
    "lamb": Case({**_optimizer("Lamb", lr=0.01), "schedule": RESTARTS}, full=True),
    "lars": Case(_optimizer("Lars", lr=0.1, momentum=0.9, weight_decay=0.01), full=True),
    "clip inactive": Case({"clip": CLIP_INACTIVE}, graph=False),
    "clip active": Case({"clip": CLIP_ACTIVE}, graph=False),
    "accumulate 2": Case({"accumulate": 2}, graph=False),
    "accumulate 4": Case({"accumulate": 4}, graph=False),
    "loss scale": Case({"loss_scale": 1024.0}, graph=False),
    "together": Case(TOGETHER, images=True),
    "overflow": Case({**_loss("MSELoss"), "loss_scale": 1024.0, "schedule": COSINE}, overflow=1, pynative=False),
    "overflow at first": Case(
        {**_loss("MSELoss"), **_optimizer("Adam", lr=0.003), "loss_scale": 8.0, "schedule": WARM},
        overflow=0,
        graph=False,
    ),
    "smoothing": Case(_loss("CrossEntropyLoss", label_smoothing=0.1), graph=False),
    "class weights": Case(_loss("CrossEntropyLoss", weight=WEIGHTS, label_smoothing=0.1), graph=False),
    "ignore index": Case(_loss("CrossEntropyLoss", ignore_index=3), graph=False),
    "binary": Case(_loss("BCEWithLogitsLoss", pos_weight=WEIGHTS), graph=False),
    "squares": Case(_loss("MSELoss"), graph=False),
    "sum": Case({**_loss("MSELoss", reduction="sum"), **_optimizer("SGD", lr=0.001)}, graph=False),
    "cosine": Case({"schedule": COSINE}, graph=False),
    "step": Case({"schedule": {"name": "StepLR", "args": {"step_size": 2}}}, graph=False),
    "multi step": Case({"schedule": MULTI}, graph=False),
    "linear": Case({"schedule": WARM}, graph=False),
    "sequential": Case({"schedule": SEQUENTIAL, "optimizer": GROUPS}, graph=False),
    "frozen": Case({"optimizer": NESTEROV}, frozen=("conv1.", "fc2.bias")),
    "resnet": Case({"optimizer": NESTEROV, "schedule": COSINE}, "resnet_tiny", graph=False, images=True),
    "resnet no decay": Case({"optimizer": NO_DECAY}, "resnet_tiny", graph=False),
    "resnet together": Case(TOGETHER, "resnet_tiny", graph=False),
    "resnet adamw": Case(_optimizer("AdamW", lr=0.003), "resnet_tiny", graph=False),
}


def _option(name: str, keys: dict[str, Any], **more: Any) -> Case:
    overflow = 2 if OVERFLOWS in name else None
    return Case(keys, **{"overflow": overflow, "steps": OPTION_STEPS, "graph": False, **more})


NORMED = ("O1", "O3")  # the options for which norms matter
# alone, every option has a case; those that a quick run leaves out are in its loop, and the pairs are for full runs
QUICK = {
    "accumulation": {"lean": True, "late": True},
    "dynamic scale": {"lean": True, "late": True},
    "O2": {"pynative": True},
    "O3": {"graph": True},
    "warm average": {"pynative": True, "late": True},
    "epochs": {"pynative": True},
}
for _name, _keys in OPTIONS.items():
    assert _name not in CASES, _name  # a case of that name would no longer run
    _model = "resnet_tiny" if _name in NORMED else "lenet5"
    CASES[_name] = _option(_name, _keys, **{"model": _model, "pynative": False, **QUICK.get(_name, {})})
CASES |= {name: _option(name, keys, full=True) for name, keys in pairs().items()}
CASES |= {
    "loop": _option("loop", LOOP, overflow=2, lean=True, pynative=False),
    "loop in half": _option("loop in half", LOOP_HALF, lean=True, pynative=False),
}
# what rows of the mapping table or other cases show too, on less than a whole net: "together" has Nesterov's momentum
# and accumulates two batches, "overflow at first" takes Adam, and "first match wins" leaves parameters without decay
LATE = (
    *("nesterov of three steps", "dampening", "adam", "amsgrad", "adamw", "rmsprop", "rmsprop centered", "nadam"),
    *("accumulate 2", "accumulate 4", "loss scale", "class weights", "ignore index", "squares", "sum", "cosine"),
    *("step", "multi step", "linear", "sequential", "resnet no decay", "resnet together", "resnet adamw"),
)
CASES |= {name: replace(CASES[name], late=True) for name in LATE}
RATE_STEPS = 20
RATES: dict[str, Part] = {
    "cosine": Part.model_validate(COSINE),
    "sequential": Part.model_validate(SEQUENTIAL),
    "functions of one's own": Part.model_validate(LAMBDA),
    "functions inside": Part.model_validate(
        {
            "name": "SequentialLR",
            "args": {
                "schedulers": [
                    LAMBDA,
                    {"name": "MultiplicativeLR", "args": {"lr_lambda": [f"{FACTORS}:slower", f"{FACTORS}:noam"]}},
                ],
                "milestones": [7],
            },
        }
    ),
    "sequential of a page": Part.model_validate(
        {
            "name": "SequentialLR",
            "args": {"schedulers": [WARM, {"name": "CosineAnnealingLR", "args": {"T_max": 85}}], "milestones": [5]},
        }
    ),
}


@dataclass(frozen=True)
class Batch:
    """images: (N, C, H, W) float32; labels: (N,) int64 classes, or (N, K) float32 one-hot rows."""

    images: np.ndarray
    labels: np.ndarray


@dataclass
class Found:
    """What a worker records: arrays by path, and facts by case."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


def batches(case: Case) -> list[Batch]:
    """The batches of every step: digits at 32 x 32, or photographs at 48 x 48."""
    found = []
    for index, (images, classes) in enumerate(_batches(case.model, case.steps)):
        labels = np.eye(CLASSES, dtype=np.float32)[classes] if case.recipe.one_hot else classes.copy()
        if index == case.overflow:
            labels[0, 0] = np.inf
        # in its own layout, by which torch chooses its kernels, and so how half precision rounds
        found.append(Batch(images.copy(order="K"), labels))
    return found


@cache
def _batches(model: str, steps: int) -> list[tuple[np.ndarray, np.ndarray]]:
    photographs = model == "resnet_tiny"
    size = (48, 48) if photographs else (32, 32)
    found = []
    for step in samples(SOURCES[model], BATCH, steps, seed=6, num_classes=CLASSES):
        pixels = np.stack([np.asarray(decode(sample).resize(size), np.float32) for sample in step])
        images = (pixels.transpose(0, 3, 1, 2) if photographs else pixels[:, None]) / np.float32(128) - np.float32(1)
        found.append((images, np.array([sample.label for sample in step], np.int64)))
    return found


def sampled(array: np.ndarray) -> np.ndarray:
    """What is kept of an array: of a large one every eighth row, or the files would have hundreds of megabytes."""
    return array[::8].copy() if array.size > 4096 else array.copy()


def weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The starting value of a parameter or buffer: drawn from its name, and like that of a net that has trained."""
    draws = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape).astype(np.float32)
    if name.endswith("running_var"):
        return np.abs(draws) + np.float32(0.5)
    if len(shape) > 1:
        return draws * np.float32(np.sqrt(2 / np.prod(shape[1:])))
    return draws * np.float32(0.1) + np.float32(name.endswith("weight"))
