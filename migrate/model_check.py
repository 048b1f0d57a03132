"""What --model and --into name, asked of a process that builds it, and held against the checkpoint."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import BadCheckpoint
from .against_net import Net
from .formats.contents import Checkpoint
from .plan import few, size
from .settle import Model
from .to_mindspore import Owners


def mindspore_net(into: str) -> tuple[Net, dict[str, str]]:
    """The parameters of the net by path, and path -> own name of those that have another one, by which MindSpore's
    loader goes. Raises BadInput, WorkerFailed."""
    from . import model_spec

    answer = model_spec.ask("mindspore_target", into, "--into")
    return {name: (tuple(shape), dtype) for name, (shape, dtype) in answer["parameters"].items()}, answer["misnamed"]


class ToldOptimizer(NamedTuple):
    """What --optimizer says: what the class may be called, and the names of each parameter group."""

    classes: tuple[str, ...] | None = None
    groups: list[list[str]] | None = None


def told_optimizer(optimizer: str | None) -> ToldOptimizer:
    """What --optimizer says: the name of a class, or a function that returns (model, optimizer).

    Raises BadInput, WorkerFailed.
    """
    if optimizer is None:
        return ToldOptimizer()
    if all(part.isidentifier() for part in optimizer.split(".")):
        return ToldOptimizer((optimizer,))
    from . import model_spec

    answer = model_spec.ask("torch_optimizer", optimizer, "--optimizer")
    groups = [[str(name) for name in group] for group in answer["groups"]]
    return ToldOptimizer(tuple(str(name) for name in answer["classes"]), groups)


def own_classes(owners: Owners) -> Model:
    """The model that a file of a whole model tells itself."""
    return Model("the classes in the file", owners)


def torch_model(path: str, checkpoint: Checkpoint, model: str, notes: list[str]) -> Model:
    """Ask for the classes, and make sure that a torch checkpoint is one of that model.

    Raises BadInput, WorkerFailed, and BadCheckpoint when it is not.
    """
    from . import model_spec

    answer = model_spec.ask("torch_classes", model, "--model")
    shapes = {name: tuple(shape) for name, shape in answer["shapes"].items()}
    found = Model(model, {path: tuple(classes) for path, classes in answer["classes"].items()}, shapes)
    if checkpoint.framework != "torch":
        return found
    names = {*checkpoint.tensors, *checkpoint.refused}
    # torch loads old checkpoints without the counters too
    missing = [name for name in shapes if name not in names and not name.endswith("num_batches_tracked")]
    extra = [name for name in names if name not in shapes]
    if missing or extra:
        parts = [f"it lacks {few(missing)}"] if missing else []
        parts += [f"the model lacks {few(sorted(extra))}"] if extra else []
        raise BadCheckpoint(f"{path} is not a checkpoint of {model}: {'; '.join(parts)}")
    for name, tensor in checkpoint.tensors.items():
        if len(tensor.shape) != len(shapes[name]):
            raise BadCheckpoint(
                f"{path} is not a checkpoint of {model}: {name} is {size(tensor.shape)}, the model's is "
                f"{size(shapes[name])}"
            )
        if tensor.shape != shapes[name]:
            notes.append(f"{name} is {size(tensor.shape)}, in {model} {size(shapes[name])}")
    return found
