"""What is recorded of one framework's training step, and in which order, for both frameworks alike."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from . import probes
from .trace import SIDES_STAGE, TraceWriter

Arrays = Mapping[str, np.ndarray]

# torch classes whose gradient jumps: where the input crosses zero, and where another element becomes the largest
KINKED = ("ReLU", "ReLU6", "LeakyReLU", "PReLU")
POOLED = ("MaxPool2d",)
PROGRESS = "@msmigrate "


@dataclass(frozen=True)
class LeafOutput:
    """What a leaf module gave: its dotted name, how often it had run before, its torch class name (None: no row in
    the mapping table), its output, and its input where the class is one of POOLED."""

    name: str
    call: int
    module: str | None
    output: np.ndarray
    input: np.ndarray | None = None


Seen = Callable[[LeafOutput], None]


@dataclass(frozen=True)
class StepArrays:
    """What one step computed: the loss (scalar), the logits (N, K), gradients by state_dict name, and the images'
    gradient (N, C, H, W)."""

    loss: np.ndarray
    logits: np.ndarray
    grads: Arrays
    image_grad: np.ndarray


class Side(Protocol):
    """One framework holding a model at the starting weights; names are torch's, arrays are the framework's dtypes."""

    def parameters(self) -> Arrays:
        """Trainable parameters as they are now."""

    def buffers(self) -> Arrays:
        """Buffers that cross (running statistics) as they are now."""

    def evaluate(self, images: np.ndarray, seen: Seen) -> None:
        """A forward pass in evaluation mode."""

    def step(self, images: np.ndarray, labels: np.ndarray, seen: Seen | None) -> StepArrays:
        """One training step; `seen` is told of every leaf module's output."""

    def optimizer_state(self) -> Mapping[str, Arrays]:
        """State key -> name -> tensor."""

    def hyperparameters(self) -> Arrays:
        """Name -> [learning rate, weight decay] of its next update."""

    def restart(self) -> None:
        """Back to the starting weights with a new optimizer and schedule."""

    def apply(self, grads: Arrays) -> None:
        """Clip and apply these unscaled gradients: the second half of a step alone."""

    def loss(self, logits: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss of given logits, and its gradient by them."""


@dataclass(frozen=True)
class Inputs:
    """The batches that every side is fed: images[i] (N, C, H, W) and labels[i] of step i + 1; number of classes."""

    images: list[np.ndarray]
    labels: list[np.ndarray]
    classes: int


def record_start(side: Side, writer: TraceWriter) -> None:
    """The weights and buffers as the framework holds them, with digests: they have to be equal to the bit."""
    for name, array in {**side.parameters(), **side.buffers()}.items():
        writer.add("init", "values", name, array, digest=True)


def record_evaluation(side: Side, inputs: Inputs, writer: TraceWriter) -> None:
    """Every leaf module's output in evaluation mode."""
    side.evaluate(inputs.images[0], lambda leaf: add_output(writer, "eval", leaf))
    writer.flush("forward", "eval")


def record_steps(side: Side, inputs: Inputs, writer: TraceWriter, label: str, sides: bool = False) -> None:
    """Train for len(inputs.images) steps: losses, the first step's gradients, and what changed after the first and
    after the last step.

    With `sides`, also the first step's leaf outputs, and in every step the side each kink's input was on.
    """
    start = {name: array.copy() for name, array in {**side.parameters(), **side.buffers()}.items()}
    rates: dict[str, list[np.ndarray]] = {}
    for i, (images, labels) in enumerate(zip(inputs.images, inputs.labels, strict=True), 1):
        progress(f"{label}: training step {i} of {len(inputs.images)}")
        for name, values in side.hyperparameters().items():
            rates.setdefault(name, []).append(values)
        result = side.step(images, labels, _step_outputs(writer, i) if sides else None)
        if sides:
            writer.flush("forward", "train")
            writer.flush(SIDES_STAGE, f"step{i}")
        # what a later step computes is what the updates before it led to
        stage, part = ("loss", "step1") if i == 1 else ("update", f"step{i} loss")
        writer.add(stage, part, "logits", result.logits)
        writer.add(stage, part, "loss", result.loss)
        if i == 1:
            for name in reversed(list(result.grads)):  # the backward pass reaches the last layer first
                writer.add("gradients", "parameters", name, result.grads[name])
            writer.add("gradients", "images", "images", result.image_grad)
        if i in (1, len(inputs.images)):
            _update(side, writer, f"step{i}", start)
    for name, pairs in rates.items():
        writer.add("update", "learning rate and weight decay", name, np.stack(pairs))


def record_probes(side: Side, inputs: Inputs, writer: TraceWriter) -> None:
    """The loss on given logits, and the optimizer on given gradients, from the starting weights."""
    batch = len(inputs.labels[0])
    value, gradient = side.loss(probes.logits(batch, inputs.classes), inputs.labels[0])
    writer.add("loss", "given logits", "loss", value)
    writer.add("loss", "given logits", "logits.grad", gradient)
    side.restart()
    start = {name: array.copy() for name, array in side.parameters().items()}
    for i in range(probes.STEPS):
        side.apply({name: probes.gradient(name, array.shape, i) for name, array in start.items()})
    _update(side, writer, "given gradients", start, buffers=False)


def add_output(writer: TraceWriter, part: str, leaf: LeafOutput) -> None:
    """Record one leaf module's output under stage forward."""
    writer.add("forward", part, leaf.name, leaf.output, leaf.call, module=leaf.module)


def _step_outputs(writer: TraceWriter, step: int) -> Seen:
    def seen(leaf: LeafOutput) -> None:
        if step == 1:
            add_output(writer, "train", leaf)
        side = np.packbits(leaf.output > 0) if leaf.module in KINKED else leaf.input
        if side is not None:
            writer.add(SIDES_STAGE, f"step{step}", leaf.name, side, leaf.call, module=leaf.module, whole=True)

    return seen


def _update(side: Side, writer: TraceWriter, part: str, start: Arrays, buffers: bool = True) -> None:
    for name, array in side.parameters().items():
        writer.add("update", part, name, _change(array, start[name]))
    if buffers:
        for name, array in side.buffers().items():
            writer.add("update", f"{part} buffers", name, _change(array, start[name]))
    for key, arrays in side.optimizer_state().items():
        for name, array in arrays.items():
            writer.add("update", f"{part} {key}", name, array)
    writer.flush("update", part)


def is_change(stage: str, part: str) -> bool:
    """Whether a part holds differences from the starting weights, rather than values."""
    return stage == "update" and re.fullmatch(r"(step\d+|given gradients)( buffers)?", part) is not None


def _change(now: np.ndarray, before: np.ndarray) -> np.ndarray:
    """now - before, exactly: the difference of two float32 values is rounded to float64 only."""
    return np.subtract(now, before, dtype=np.float64)


def progress(what: str) -> None:
    """Tell the parent process, over stdout, what begins now."""
    print(PROGRESS + json.dumps({"doing": what}), flush=True)


def announce(event: str) -> None:
    """Tell the parent process that something is ready for it."""
    print(PROGRESS + json.dumps({"event": event}), flush=True)


def parse_progress(line: str) -> dict[str, str] | None:
    """What a worker's stdout line says, or None for any other output."""
    if not line.startswith(PROGRESS):
        return None
    try:
        found = json.loads(line[len(PROGRESS) :])
    except (ValueError, RecursionError):
        return None
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else None


def fail(error: Exception) -> None:
    """Give the parent process the one line that explains why this worker stopped."""
    print(PROGRESS + json.dumps({"error": str(error), "kind": type(error).__name__}), flush=True)
    sys.stdout.flush()
