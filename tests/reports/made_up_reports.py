"""Made-up reports of realistic size and shape: a ResNet50 with several faults, a clean one, and one that is hostile."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from msmigrate.parity.options import Narrowing
from msmigrate.parity.result import Cause, Finding, MadeWith, ModuleVerdict, Report
from msmigrate.parity.tensor_verdict import RATIO, Verdict

VERSIONS = {"torch": "2.15.0", "torchvision": "0.29.2", "mindspore": "2.10.0", "numpy": "1.26.4"}
FAULTS = {"layer2.1.bn2": 1650.0, "layer3.2": 4.1e4, "layer4.0.downsample.1": 19.1, "maxpool": 7.1e5}
LOSS = """import mindspore.nn as nn

loss = nn.CrossEntropyLoss(label_smoothing=0.1, reduction='mean')
logits = net(images)
value = loss(logits, labels)"""
CAUSES = [
    Cause(
        "forward",
        "layer2.1.bn2",
        "bn-momentum-complement",
        "eps is 1e-3 where torch has 1e-5",
        "nn.BatchNorm2d(128, eps=1e-5, momentum=0.9)",
        "torch re-run with eps=1e-3 is 0.93 × noise away from MindSpore in all 6 tensors",
        0.93,
        1650.0,
    ),
    Cause(
        "forward",
        "maxpool",
        "maxpool-pad-same",
        "pad_mode='same' pads 0 on the left and 1 on the right, torch pads 1 and 1",
        "nn.MaxPool2d(kernel_size=3, stride=2, pad_mode='pad', padding=1)",
        "torch re-run with asymmetric padding is 1.02 × noise away from MindSpore",
        1.02,
        7.1e5,
    ),
    Cause(
        "forward",
        "layer3.2",
        None,
        "nothing known reproduces it: every module inside passes alone, so the fault is in this module's own construct",
        "",
        "its output is 41,000 × noise away; the 8 modules inside stay below 2.2 ×",
        None,
        4.1e4,
    ),
    Cause(
        "loss",
        "loss",
        "label-smoothing-k-minus-1",
        "label smoothing is spread over K − 1 classes, torch spreads it over all K",
        LOSS,
        "torch with s / (K − 1) for the other classes is 0.4 × noise away",
        0.4,
        2020.0,
    ),
    Cause(
        "update",
        "group 0 (weights of norms and biases)",
        "decay-skipped-by-name",
        "weight decay skips parameters whose names hold gamma, beta or bias",
        "Give optimizer groups explicitly; see `msmigrate explain decay-skipped-by-name`.",
        "torch with weight_decay=0 on these 106 parameters is 0.7 × noise away",
        0.7,
        83.9,
    ),
]
NOTE = "at 35, 46, 390 elements (steps 1 to 3) rounding alone decides a ReLU; the reference took MindSpore's side there"
HINT = "outputs off by a constant factor per channel: eps has to be written, MindSpore's default is 1e-5 [bn-eps]"


def modules() -> Iterator[tuple[str, str]]:
    """Dotted name and class of every module of a ResNet50, in execution order, containers before what they hold."""
    yield "", "ResNet"
    yield from [("conv1", "Conv2d"), ("bn1", "BatchNorm2d"), ("relu", "ReLU"), ("maxpool", "MaxPool2d")]
    for layer, blocks in enumerate((3, 4, 6, 3), 1):
        yield f"layer{layer}", "Sequential"
        for block in range(blocks):
            path = f"layer{layer}.{block}"
            yield path, "Bottleneck"
            for i in (1, 2, 3):
                yield f"{path}.conv{i}", "Conv2d"
                yield f"{path}.bn{i}", "BatchNorm2d"
            if block == 0:
                yield f"{path}.downsample", "Sequential"
                yield f"{path}.downsample.0", "Conv2d"
                yield f"{path}.downsample.1", "BatchNorm2d"
            yield f"{path}.relu", "ReLU"
    yield from [("avgpool", "AdaptiveAvgPool2d"), ("fc", "Linear")]


class Findings:
    """Findings in the order in which they are added, with noise and ratios as they are usual."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.all: list[Finding] = []

    def add(
        self, stage: str, part: str, name: str, kind: str | None = None, base: float = 1e-6, bad: float = 0.0
    ) -> None:
        """A tensor judged by noise around `base`; bad: its ratio where it fails."""
        noise = base * self.draw.lognormvariate(0, 0.4)
        ratio = bad or min(self.draw.lognormvariate(-0.6, 0.4), 3.1)
        verdict = Verdict.FAIL if ratio > RATIO else Verdict.PASS
        error, allowed = noise * ratio, RATIO * noise
        why = f"off by {error:.2g} of its size; rounding explains {allowed:.2g}" if bad else ""
        shape = () if name == "loss" else (8, 64, 56, 56)
        order = len(self.all)
        self.all.append(Finding(stage, part, name, order, verdict, why, kind, shape, error, noise, allowed, ratio))

    def exact(self, stage: str, part: str, name: str) -> None:
        """A tensor that is equal to the bit."""
        self.all.append(Finding(stage, part, name, len(self.all), Verdict.PASS, shape=(64,), error=0.0))


def report(faulty: bool = True) -> Report:
    """Some three thousand findings of six stages; with four modules at fault, a loss and an optimizer, or with none."""
    found = Findings(random.Random(0))
    names = list(modules())
    faults = FAULTS if faulty else {}
    leaves = [(n, k) for n, k in names if k not in ("ResNet", "Sequential", "Bottleneck")]
    owners = [(n, k, p) for n, k in leaves for p in _parameters(k)]
    trained = [(n, k, p) for n, k, p in owners if p in ("weight", "bias")]
    for step in (1, 2, 3):
        found.add("data", f"step{step}", "images", base=3e-8)
        found.exact("data", f"step{step}", "labels")
    for name, _, parameter in owners:
        found.exact("init", "values", f"{name}.{parameter}")
    for part in ("eval", "train"):
        reached = 0.0
        for depth, (name, kind) in enumerate(leaves):
            inside = [ratio / 40 for path, ratio in faults.items() if f"{name}.".startswith(f"{path}.")]
            reached = max([reached * 0.999, *inside])
            found.add("forward", part, name, kind, 2e-7 * (1 + depth / 20), reached if reached > 8 else 0.0)
    for name, kind in names:
        path, own = name or "(model)", faults.get(name, 0.0)
        found.add("forward", "alone", f"{path} output", kind, 1.5e-7, own)
        found.add("gradients", "alone", f"{path} input.grad", kind, 3e-7, own / 3)
    for name, kind, parameter in trained:
        found.exact("init", "distribution", f"{name}.{parameter}")
        found.add("gradients", "alone", f"{name} {parameter}.grad", kind, 3e-7, faults.get(name, 0.0) / 2)
    for part in ("given logits", "step1", "step2", "step3"):
        found.add("loss", part, "loss", base=6e-8, bad=2020.0 if faulty else 0.0)
    for depth, (name, kind, parameter) in enumerate(reversed(trained)):
        bad = 400.0 if faulty else 0.0
        found.add("gradients", "parameters", f"{name}.{parameter}", kind, 2e-6 * (1 + depth / 50), bad)
    for part in (
        "given gradients",
        *(f"step{i}{what}" for i in (1, 2, 3) for what in ("", " ema", " momentum_buffer")),
    ):
        for name, kind, parameter in trained:
            undecayed = faulty and part == "given gradients" and kind == "BatchNorm2d"
            found.add("update", part, f"{name}.{parameter}", kind, 1e-6, 83.9 if undecayed else 0.0)
    if faulty:
        found.all += _odd(len(found.all))
    return Report(
        "recipes/resnet50.yaml",
        "ae51edcc577fc103",
        VERSIONS,
        found.all,
        [NOTE],
        [HINT] if faulty else [],
        62.0,
        MadeWith("f00ba47ec0de5eed", None, 3, 8),
        CAUSES if faulty else [],
        [_verdict(order, name, kind, faults, found.draw) for order, (name, kind) in enumerate(names)],
    )


def _odd(order: int) -> list[Finding]:
    """A tensor without a verdict, and one that cannot be compared."""
    blurred = "torch float32 itself is 0.7 of the tensor's size away from float64"
    alone = "only MindSpore has this tensor; torch recorded none"
    name = "layer4.2.bn3.running_var"
    return [
        Finding("update", "step3", name, order, Verdict.NONE, blurred, None, (2048,), 0.3, 0.7, 2.8, 0.4),
        Finding("update", "step3 buffers", "temperature", order + 1, Verdict.FAIL, alone),
    ]


def _parameters(kind: str) -> tuple[str, ...]:
    norm = ("weight", "bias", "running_mean", "running_var")
    return {"Conv2d": ("weight",), "Linear": ("weight", "bias"), "BatchNorm2d": norm}.get(kind, ())


def _verdict(order: int, name: str, kind: str, faults: dict[str, float], draw: random.Random) -> ModuleVerdict:
    inside = [ratio for path, ratio in faults.items() if path.startswith(f"{name}." if name else "")]
    ratio = faults.get(name) or max(inside, default=draw.uniform(0.3, 2.9))
    why, note = "", ""
    if inside or name in faults:
        why = f"output off by {ratio * 1.2e-7:.2g} of its size; rounding explains 5.1e-07"
    elif name == "layer4.2.relu":
        note = "runs in place: its input was copied first"
    verdict = Verdict.FAIL if ratio > RATIO else Verdict.PASS
    depth = name.count(".") + 1 if name else 0
    return ModuleVerdict(name, kind, f"{name} {kind}", verdict, name in faults, depth, order, ratio, why, note)


def narrowed(*stages: str, modules: Sequence[str] = ()) -> Report:
    """The faulty report, as a run leaves it that was narrowed to these."""
    whole, narrowing = report(), Narrowing.to(stages, modules)
    return replace(
        whole,
        narrowing=narrowing,
        findings=[finding for finding in whole.findings if narrowing.judges(finding.stage, finding.name)],
        modules=[module for module in whole.modules if "forward" in narrowing.stages],
    )


SCRIPT = "document.title='owned'"
HOSTILE = (
    f'</script><script>{SCRIPT}</script><img src=x onerror="{SCRIPT}">\u2028&amp;{{{{7*7}}}}`|@me \ud800\x00'
    "\x1b[2J\x9b\u202e[red]\r"
)


def hostile() -> Report:
    """A report whose every text tries to be markup."""
    inf = float("inf")
    finding = Finding(
        "forward", HOSTILE, HOSTILE, 0, Verdict.FAIL, HOSTILE, HOSTILE, (1, 2), error=inf, noise=0.0, ratio=inf
    )
    undecided = replace(finding, order=1, verdict=Verdict.NONE, error=float("nan"), ratio=None)
    cause = Cause("forward", HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, float("nan"), inf)
    module = ModuleVerdict("a." + HOSTILE, HOSTILE, HOSTILE, Verdict.FAIL, True, 1, 0, inf, HOSTILE, HOSTILE)
    return Report(
        HOSTILE,
        HOSTILE,
        {HOSTILE: HOSTILE},
        [finding, undecided],
        [HOSTILE],
        [HOSTILE],
        causes=[cause, replace(cause, fault=None)],
        modules=[module],
    )
