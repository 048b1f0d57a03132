"""Worker: build a torch model for the proof of its conversion, and write its weights and batches to a folder.

    python -m msmigrate.migrate.source.observe.torch_proof_worker torchvision:resnet50 FOLDER SEED BATCH STEPS
    python -m msmigrate.migrate.source.observe.torch_proof_worker model.py:build FOLDER SEED BATCH STEPS 1x3x64x64

weights.pth is the state dict of the model as it is built under the seed. batch.npz holds the batches for parity-step,
one for each step: examples with the shapes and kinds of the model's inputs, and labels. Prints one line of JSON:
`outputs` and `inputs`, the shapes of the tensors that the model returns and takes in training mode, null where it takes
something else than tensors and plain values; `call`, how it is called with tensors inside of tuples, or by names, null
where it takes tensors by position; `alone`, whether it returns one tensor alone; `saved`, how many tensors its state
dict has; and `trains`, whether one of its parameters does.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from ....errors import BadInput
from ...library_names import parts_of_distribution
from ...model_spec import parse, place_of, serve
from ...torch_models import Inputs, builder, in_mode, inputs_for, quietly, split
from .observations import PROOF_FILES
from .torch_simplified_transformers import for_training

WEIGHTS, BATCH = PROOF_FILES
# how the values of an example may change places: anywhere, whole rows (a column may hold months), or not at all
ANYWHERE: tuple[int | None, ...] = (None, 1, 0)


def report(text: str, folder: str, seed: str, batch: str, steps: str, *given: str) -> dict[str, Any]:
    """Build the model, save its weights, make batches and run it on one; raises BadInput."""
    quietly()
    spec = parse(text)
    torch.manual_seed(int(seed))
    model, returned = split(builder(spec)())
    for_training(model)
    state = model.state_dict()
    torch.save(state, Path(folder) / WEIGHTS)
    held = {"saved": len(state), "trains": any(parameter.requires_grad for parameter in model.parameters())}
    torch.manual_seed(int(seed))
    taken = inputs_for(spec, model, given, returned)
    placed = ordered(model, taken)
    whole: tuple[Any, dict[str, Any]] = (taken.train, dict(taken.kwargs)) if placed is None else (placed, {})
    by_place = not whole[1] and all(isinstance(x, torch.Tensor) for x in whole[0])
    call = None if by_place else written_call(*whole)
    inputs = tuple(x for x in pytree.tree_leaves(whole) if isinstance(x, torch.Tensor))
    unfed: dict[str, Any] = {"outputs": None, "alone": False, "inputs": None, "call": None, **held}
    if not inputs or call == "":
        return unfed
    if given or returned is None:  # inputs that the user's function returned stay as they are
        inputs = tuple(_tokens(x, size) for x, size in zip(inputs, vocabularies(model, whole, inputs), strict=True))
    first_error = ""
    # the second count is for models such as a graph's, whose nodes are not examples and keep their number
    counts = dict.fromkeys((int(batch), *inputs[0].shape[:1]))
    for count, axes in itertools.product(counts, ANYWHERE):
        made, *more = (
            many([_varied(x, given or returned is not None) for x in inputs], count, axes, first=not step)
            for step in range(int(steps))
        )
        try:
            with torch.no_grad():
                for each in (*more, made):
                    args, kwargs = with_tensors(whole, each)
                    found = in_mode(model, training=True)(*args, **kwargs)
            break
        except Exception as error:
            why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}{place_of(error)}"
            first_error = first_error or f"it does not run in training mode on {_examples(made)} examples: {why}"
    else:
        if call is not None:
            return unfed
        raise BadInput(first_error)
    shapes = [list(x.shape) for x in tensors(found)]
    classes = shapes[0][1] if len(shapes) == 1 and len(shapes[0]) == 2 else 1
    random = np.random.default_rng(int(seed))
    arrays = {}
    for step, each in enumerate((made, *more), 1):
        arrays[f"labels{step}"] = random.integers(classes, size=_examples(made))
        arrays |= {f"input{step}{f'.{i}' if i else ''}": x.detach().numpy() for i, x in enumerate(each)}
    np.savez(Path(folder) / BATCH, **arrays)
    alone = isinstance(found, torch.Tensor)
    return {"outputs": shapes, "alone": alone, "inputs": [list(x.shape) for x in made], "call": call, **held}


def _examples(inputs: Sequence[torch.Tensor]) -> int:
    """How many examples the inputs hold: the first one's that is no single number."""
    return next((len(x) for x in inputs if x.ndim), 1)


def written_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The arguments of a call as source, its tensors as x0, x1 and so on: `x0, (x1, x2), mask=x3`; empty where one is
    neither of tensors nor of plain values."""
    count = itertools.count()

    def text(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"x{next(count)}"
        if type(value) in (tuple, list):
            inside = ", ".join(map(text, value))
            return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
        if type(value) is dict and all(isinstance(key, str) for key in value):
            return f"{{{', '.join(f'{key!r}: {text(item)}' for key, item in value.items())}}}"
        if isinstance(value, (bool, int, float, str, type(None))):
            return repr(value)
        raise TypeError

    try:
        return ", ".join([*map(text, args), *(f"{key}={text(value)}" for key, value in kwargs.items())])
    except TypeError:
        return ""


def with_tensors(whole: Any, made: Iterable[torch.Tensor]) -> Any:
    """The same with its tensors replaced by others, in order."""
    waiting = iter(made)
    return pytree.tree_map(lambda leaf: next(waiting) if isinstance(leaf, torch.Tensor) else leaf, whole)


def ordered(model: torch.nn.Module, inputs: Inputs) -> tuple[Any, ...] | None:
    """The inputs in training mode by position; None where the model takes one only by name."""
    if not inputs.kwargs:
        return inputs.train
    parameters = inspect.signature(model.forward).parameters
    given = [*parameters][len(inputs.train) : len(inputs.train) + len(inputs.kwargs)]
    by_place = all(parameters[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for name in given)
    if not by_place or set(given) != set(inputs.kwargs):
        return None
    return (*inputs.train, *(inputs.kwargs[name] for name in given))


def many(inputs: list[torch.Tensor], batch: int, axes: int | None, *, first: bool) -> list[torch.Tensor]:
    """`batch` examples like the inputs, where all inputs share their first axis; else the inputs unchanged.

    Each holds the values of an input in another order, so that a token stays a token, and a mask a mask. axes: how many
    axes of an example are put in another order together; None for all. first: the inputs themselves come first.
    """
    if any(x.ndim == 0 or len(x) != len(inputs[0]) for x in inputs):
        return [_plain(x) for x in inputs]
    found = []
    for x in inputs:
        outer, inner = (x.shape[1:], ()) if axes is None else (x.shape[1 : 1 + axes], x.shape[1 + axes :])
        examples = x.reshape(len(x), math.prod(outer), *inner)
        orders = [torch.randperm(examples.shape[1]) for _ in range(batch)]
        values = [examples[k % len(x)][order].reshape(x.shape[1:]) for k, order in enumerate(orders)]
        values[: len(x)] = list(x[:batch]) if first else values[: len(x)]
        found.append(_plain(torch.stack(values)))
    return found


def vocabularies(model: torch.nn.Module, whole: Any, inputs: tuple[torch.Tensor, ...]) -> list[int | None]:
    """For each input the number of tokens of the embedding that takes it; None where no embedding does."""
    sizes: dict[int, int] = {}

    def note(module: torch.nn.Module, args: tuple[Any, ...]) -> None:
        sizes.setdefault(args[0].data_ptr(), module.num_embeddings)

    embeddings = [module for module in model.modules() if isinstance(module, torch.nn.Embedding)]
    if not embeddings:
        return [None] * len(inputs)
    hooks = [module.register_forward_pre_hook(note) for module in embeddings]
    try:
        with torch.no_grad():
            in_mode(model, training=False)(*whole[0], **whole[1])
    except Exception:  # the run in training mode reports it
        sizes.clear()
    finally:
        for hook in hooks:
            hook.remove()
    return [sizes.get(x.data_ptr()) for x in inputs]


def _tokens(x: torch.Tensor, size: int | None) -> torch.Tensor:
    """Random tokens where all were the same, since attention over these has no gradient; else the input unchanged."""
    same = size is not None and not x.is_floating_point() and x.numel() > 1 and bool((x == x.reshape(-1)[0]).all())
    return torch.randint(size or 1, x.shape, dtype=x.dtype) if same else x


def _varied(x: torch.Tensor, given: Any) -> torch.Tensor:
    """The example, or random numbers around 0 where msmigrate chose it, or where all its numbers are equal: a norm
    divides by their spread."""
    numbers = x.is_floating_point() and x.numel() > 1
    return torch.randn_like(x) if numbers and (not given or x.min() == x.max()) else x


def _plain(x: torch.Tensor) -> torch.Tensor:
    """A copy of the values, floating-point ones in float32."""
    x = x.detach().to(torch.float32) if x.is_floating_point() else x.detach()
    return x.contiguous().clone()


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors that a model returned, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    value = [*parts_of_distribution(value).values()] or value
    if hasattr(value, "__dataclass_fields__"):
        value = [getattr(value, name) for name in value.__dataclass_fields__]
    return [x for item in value for x in tensors(item)] if isinstance(value, (list, tuple)) else []


if __name__ == "__main__":
    serve(report)
