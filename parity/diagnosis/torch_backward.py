"""Gradients by the loss and by the logits' sum: of the whole step in torch, and of its last layer from MindSpore's
own logits."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from ...training.step import torch_step
from ..record.torch_kinks import KinkSides, taking
from ..trace import Entry, sample_positions
from .context import Context
from .evidence import Trial, attempt, comparable
from .torch_loss_verbs import Loss

ROUGHLY = 0.01


@dataclass(frozen=True)
class Backward:
    """Gradients of the loss and of the logits' sum by parameter, in recorded elements; what they are of, in words."""

    what: str
    loss: dict[str, Trial]
    logits: dict[str, Trial]
    samples: tuple[dict[str, np.ndarray], ...] = ()  # of the loss, what each sample adds to it


def the_step(context: Context, loss: Loss, step: int) -> Backward | None:
    """The gradients of training step `step`, with MindSpore's choices at kinks; None where torch refuses."""
    if context.options.pair is not None or step > len(context.inputs.images):
        return None
    runs = [attempt(partial(_gradients, context, loss, step, t)) for t in (torch.float64, torch.float32)]
    if runs[0] is None or runs[1] is None:
        return None
    entries = {e.name: e for e in context.mindspore.select("gradients", "parameters")}
    names = [name for name in runs[0][0] if name in entries and entries[name].shape == runs[0][0][name].shape]
    found = [
        {
            name: Trial(
                _kept(runs[0][i][name], entries[name], context), _kept(runs[1][i][name], entries[name], context)
            )
            for name in names
        }
        for i in (0, 1)
    ]
    return Backward(f"all parameters in step {step}", found[0], found[1])


Arrays = dict[str, np.ndarray]


def _gradients(context: Context, loss: Loss, step: int, dtype: torch.dtype) -> tuple[Arrays, Arrays]:
    recipe, inputs = context.recipe, context.inputs
    model = copy.deepcopy(context.model).to(dtype).train()
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    half = recipe.amp is not None and recipe.amp.level != "O0"
    x = torch.from_numpy(inputs.images[step - 1]).to(dtype)
    y = torch.from_numpy(inputs.labels[step - 1])
    y = y.to(dtype) if y.is_floating_point() else y
    sums: list[Arrays] = [{}, {}]
    with taking(KinkSides.of(context.mindspore, step, half), model):
        for images, labels in zip(x.chunk(recipe.accumulate), y.chunk(recipe.accumulate), strict=True):
            logits = torch_step.forward(recipe.amp, model, images)
            for total, value in zip(sums, (loss(logits, labels).sum() / recipe.accumulate, logits.sum()), strict=True):
                found = torch.autograd.grad(value, list(parameters.values()), retain_graph=True, allow_unused=True)
                for name, gradient in zip(parameters, found, strict=True):
                    if gradient is not None:
                        array = gradient.numpy()
                        total[name] = total[name] + array if name in total else array
    return sums[0], sums[1]


def _kept(array: np.ndarray, entry: Entry, context: Context) -> np.ndarray:
    flat = array.reshape(-1)
    count = context.mindspore.array(entry.key).size
    return flat if count == flat.size else flat[sample_positions(flat.size, count)]


def head(context: Context, loss: Loss, step: int) -> Backward | None:
    """The gradients of the last linear layer, from the logits and features that MindSpore computed in the first step;
    None where that layer, or what it takes, is not recorded whole."""
    if step != 1:
        return None
    traces, recipe = context.traces, context.recipe
    logits = traces.mindspore.entries.get(("loss", "step1", "logits", 0))
    name, layer = _last_linear(context.model)
    if logits is None or logits.sampled or logits.nonfinite or layer is None or layer.out_features != logits.shape[-1]:
        return None
    x = traces.mindspore.array(logits.key).reshape(logits.shape)
    features = _features(context, layer.in_features, logits.shape[0], name)
    if features is not None and not _leads_to(layer, features, x):
        features = None  # the output before it was another branch's
    labels = context.inputs.labels[0]
    if len(labels) != len(x):
        return None
    parts, found = recipe.accumulate, []
    for dtype in (torch.float64, torch.float32):
        by_loss = attempt(partial(_by_logits, loss, x, labels, parts, dtype))
        if by_loss is None:
            return None
        found.append((by_loss, np.ones_like(by_loss)))
    return Backward(
        "the last layer, from MindSpore's own logits",
        _layer([run[0] for run in found], name, layer, features, context),
        _layer([run[1] for run in found], name, layer, features, context),
        tuple(_of_sample(found[0][0], i, name, layer, features, context) for i in range(len(x))),
    )


def _of_sample(
    by_logits: np.ndarray, i: int, name: str, layer: nn.Linear, features: np.ndarray | None, context: Context
) -> dict[str, np.ndarray]:
    alone = np.zeros_like(by_logits)
    alone[i] = by_logits[i]
    return {key: trial.exact for key, trial in _layer([alone, alone], name, layer, features, context).items()}


def by_sample(context: Context, backward: Backward) -> np.ndarray | None:
    """What each sample's part of the gradient is multiplied by in MindSpore's; None where that does not explain it."""
    keys = {name: ("gradients", "parameters", name, 0) for name in backward.loss}
    if not backward.samples or not all(comparable(context.traces, key) for key in keys.values()):
        return None
    columns = [np.concatenate([sample[name] for name in keys]) for sample in backward.samples]
    subject = np.concatenate([context.mindspore.array(key) for key in keys.values()]).astype(np.float64)
    matrix = np.stack(columns, 1)
    if matrix.shape[0] <= matrix.shape[1]:
        return None
    shares = np.linalg.lstsq(matrix, subject, rcond=None)[0]
    left = float(np.linalg.norm(matrix @ shares - subject))
    return np.asarray(shares) if left <= 1e-5 * float(np.linalg.norm(subject)) else None


def _last_linear(model: nn.Module) -> tuple[str, nn.Linear | None]:
    last: tuple[str, nn.Linear | None] = ("", None)
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            last = (name, module)
    return last


def _features(context: Context, width: int, batch: int, name: str) -> np.ndarray | None:
    """What reaches the last layer: the output before it, where that is recorded whole and of one micro-batch."""
    before = None
    for entry in context.mindspore.select("forward", "train"):
        if entry.name == name:
            break
        before = entry
    if before is None:
        return None
    calls = [e for e in context.mindspore.select("forward", "train") if e.name == before.name]
    if any(e.sampled or e.nonfinite or not e.shape for e in calls):
        return None
    arrays = [context.mindspore.array(e.key).reshape(e.shape[0], -1) for e in calls]
    if sum(len(array) for array in arrays) != batch or any(array.shape[1] != width for array in arrays):
        return None
    return np.concatenate(arrays)


def _leads_to(layer: nn.Linear, features: np.ndarray, logits: np.ndarray) -> bool:
    """Whether the layer makes these logits of these features, roughly."""
    with torch.no_grad():
        made = layer(torch.from_numpy(features.astype(np.float32))).numpy()
    return bool(np.linalg.norm(made - logits) < ROUGHLY * np.linalg.norm(logits))


def _by_logits(loss: Loss, logits: np.ndarray, labels: np.ndarray, parts: int, dtype: torch.dtype) -> np.ndarray:
    x = torch.from_numpy(logits).to(dtype).requires_grad_()
    y = torch.from_numpy(labels)
    y = y.to(dtype) if y.is_floating_point() else y
    pairs = zip(x.chunk(parts), y.chunk(parts), strict=True)
    value: Any = sum(loss(a, b).sum() / parts for a, b in pairs)
    (gradient,) = torch.autograd.grad(value, x)
    array: np.ndarray = gradient.numpy()
    return array


def _layer(
    by_logits: list[np.ndarray], name: str, layer: nn.Linear, features: np.ndarray | None, context: Context
) -> dict[str, Trial]:
    """The layer's gradients from those of its output, float64 and float32."""
    stem = f"{name}." if name else ""
    entries = {e.name: e for e in context.mindspore.select("gradients", "parameters")}
    makes: dict[str, Callable[[np.ndarray], np.ndarray]] = {}
    if layer.bias is not None:
        makes[f"{stem}bias"] = lambda g: np.asarray(g.sum(0))
    if features is not None:
        makes[f"{stem}weight"] = lambda g: np.asarray(g.T @ features.astype(g.dtype))
    return {
        key: Trial(_kept(make(by_logits[0]), entries[key], context), _kept(make(by_logits[1]), entries[key], context))
        for key, make in makes.items()
        if key in entries
    }
