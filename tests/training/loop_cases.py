"""What the tests of the loop run in one process, and what they know of it. It imports no framework."""

from __future__ import annotations

from typing import Any

DIGITS_32 = [{"name": "Resize", "args": {"size": 32}}, {"name": "ToTensor"}]
# LeNet5 is quick, one operator after another; an epoch of the digits has 14 steps of 100.
LENET: dict[str, Any] = {
    "model": {"name": "lenet5", "args": {"num_classes": 10}},
    "data": {"batch": 100, "transforms": DIGITS_32, "eval_transforms": None, "validation": None},
    "optimizer": {"args": {"lr": 0.05}, "no_weight_decay": None},
    "train": {"max_steps": 4},
}
# an epoch of 7 steps
RESNET: dict[str, Any] = {
    "model": {"args": {"block": "basic"}},
    "data": {"batch": 200},
    "train": {"epochs": 2, "max_steps": 11, "log_every": 4, "checkpoint_steps": 3, "keep": 2},
}
HEALTHY_WATCH = {
    "every": 2,
    "vanishing": 1e-9,
    "exploding": 100.0,
    "unchanged": True,
    "large_change": 2.0,
    "dead_relu": 0.999,
}
ALL: dict[str, Any] = {
    "ema": {"decay": 0.9},
    "train": {"tensorboard": True, "watch": HEALTHY_WATCH},
}
HALF = {"amp": {"level": "O2"}}
# a float16 gradient of a scaled loss is infinite at 2 ** 60 and at 2 ** 35, and not at 2 ** 10
TWICE_TOO_LARGE = {"init_scale": 2.0**60, "backoff_factor": 2.0**-25}
NEVER_ENOUGH = {"init_scale": 3e38, "backoff_factor": 0.999}
MOST_SKIPPED = 4  # in a row, instead of the loop's own number
POISONED = 3  # the step whose batch gets a NaN
ROW = 17  # in this image of it

# name -> (changes of the recipe, options of the job)
CASES: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "all": ([RESNET, ALL], {"gate": {"parity": "skipped"}}),
    "plain": ([RESNET, {"data": {"validation": None}}], {"seed": 42}),
    "other seed": ([LENET], {"seed": 43, "max_steps": 1}),
    "poisoned": ([LENET], {}),
    "poisoned and scaled": ([LENET, {"dynamic_loss_scale": {"init_scale": 256.0}}], {}),
    "too fast": ([LENET, {"optimizer": {"args": {"lr": 1e30}}}], {}),
    "overflows twice": ([LENET, HALF, {"dynamic_loss_scale": TWICE_TOO_LARGE, "train": {"max_steps": 5}}], {}),
    "overflows always": (
        [LENET, HALF, {"dynamic_loss_scale": NEVER_ENOUGH, "train": {"epochs": 3, "max_steps": None}}],
        {},
    ),
    "watched": (
        [
            LENET,
            {
                "optimizer": {"groups": [{"params": ["fc3.weight"], "args": {"lr": 0.0, "weight_decay": 0.0}}]},
                "train": {
                    "max_steps": 3,
                    "watch": {
                        "every": 2,
                        "vanishing": 1e9,
                        "exploding": 1e-9,
                        "unchanged": True,
                        "large_change": 1e-9,
                        "dead_relu": 0.01,
                    },
                },
            },
        ],
        {},
    ),
    "watched overflow": (
        [
            LENET,
            HALF,
            {
                "dynamic_loss_scale": TWICE_TOO_LARGE,
                "train": {"max_steps": 2, "watch": {"every": 1, "unchanged": True}},
            },
        ],
        {},
    ),
    "from a checkpoint": ([LENET, {"model": {"checkpoint": "start.ckpt"}, "train": {"max_steps": 1}}], {}),
    "no folder": ([LENET, {"data": {"source": "folder:missing"}}], {}),
    "too few classes": ([LENET, {"model": {"args": {"num_classes": 5}}}], {}),
    "large batch": ([LENET, {"data": {"batch": 5000}}], {}),
    "nothing to resume": ([LENET, {"train": {"max_steps": 1}}], {"resume": True}),
    "no tensorboard": ([LENET, {"train": {"tensorboard": True}}], {}),
    "bad labels": ([LENET], {}),
    "wrong checkpoint": ([LENET, {"model": {"checkpoint": "other.ckpt"}}], {}),
    "no device": ([LENET], {"target": "Ascend"}),
    # the last one: after an error in its own code MindSpore may crash in the next step
    "grey and colour": ([LENET, {"data": {"source": "synthetic:200x32"}}], {}),
}

# each in a process of its own
ALONE: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "grey and colour in validation": ([LENET, {"data": {"validation": "synthetic:20x32"}}], {}),
    "no memory": ([LENET], {}),
}
