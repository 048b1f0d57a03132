"""Packed sequences: the inputs and outputs of torch's recurrent layers, in the form that MindSpore's layers use."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mindspore import Tensor, ops
from mindspore import dtype as mstype

from ...training.models.model_names import flat
from .module_calls import Call, CannotRun, Packed, Stored, rebuilt

Read = Callable[[Stored], Tensor]  # the tensor that torch recorded


def packed(call: Call) -> Packed | None:
    """The packed sequence among the inputs of torch's module."""
    return next((each for each in (*call.args, *call.kwargs.values()) if isinstance(each, Packed)), None)


def gives_packed(call: Call) -> bool:
    """Whether a module took a packed sequence and returned one, with a state: a recurrent layer."""
    return (
        packed(call) is not None and isinstance(call.output, tuple) and isinstance(next(iter(call.output), 0), Packed)
    )


def _batch_first(construct: Callable[..., Any]) -> bool:
    """Whether a recurrent Cell, by its construct, has the batch as its first axis."""
    return bool(getattr(getattr(construct, "__self__", None), "batch_first", False))


def packed_arguments(
    construct: Callable[..., Any], call: Call, given: Mapping[str, Tensor]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The inputs of torch's recurrent layer as (x, hx, seq_length). Raises CannotRun for another construct."""
    signature = inspect.signature(construct)
    bound = dict(zip(("input", "hx"), call.args, strict=False)) | call.kwargs
    if "seq_length" not in signature.parameters or not isinstance(bound.get("input"), Packed):
        raise CannotRun(f"torch passed it a packed sequence, for which its construct{signature} has no seq_length")
    padded, lengths = (given[stored.file] for stored in bound["input"])
    x = padded if _batch_first(construct) else padded.swapaxes(0, 1)
    state = rebuilt(bound.get("hx"), lambda stored: given[stored.file])
    return (x, state), {"seq_length": ops.cast(lengths, mstype.int32)}


def in_torchs_form(call: Call, construct: Callable[..., Any], output: Any, given: Mapping[str, Tensor]) -> Any:
    """A Cell's output; where torch's is a packed sequence, the same with the batch first, and its lengths."""
    theirs = packed(call)
    if theirs is None or not gives_packed(call):
        return output
    steps, *state = output
    return (steps if _batch_first(construct) else steps.swapaxes(0, 1), given[theirs.lengths.file], *state)


def torchs_inputs(tensor: Read, construct: Callable[..., Any], call: Call, args: Any, kwargs: Any) -> list[Any]:
    """The tensors that reach a Cell, in torch's order, None for a missing one; without tensors that torch's module does
    not get, which the wiring around the Cell is not judged by."""
    theirs, signature = packed(call), inspect.signature(construct)
    if theirs is None or "seq_length" not in signature.parameters:
        return flat((args, kwargs), Tensor)[: len(flat((call.args, call.kwargs), Stored))]
    bound = signature.bind(*args, **kwargs).arguments
    x, state, lengths = (next(iter(bound.values())), bound.get("hx"), bound.get("seq_length"))
    x = x if _batch_first(construct) else x.swapaxes(0, 1)
    if x.ndim > 1 and x.shape[0] == theirs.padded.shape[0] and x.shape[1] >= theirs.padded.shape[1]:
        longest = theirs.padded.shape[1]
        there = ops.arange(longest) < tensor(theirs.lengths).reshape(-1, 1)
        # all values after the end of a sequence are padding
        x = ops.where(there.reshape(*there.shape, *[1] * (x.ndim - 2)), x[:, :longest], ops.zeros_like(x[:, :longest]))
    return [x, lengths, *flat(state, Tensor)]


def torchs_steps(tensor: Read, construct: Callable[..., Any], call: Call, args: Any, kwargs: Any) -> Any:
    """The output of torch's recurrent layer for a packed sequence in its Cell's form, as long as the Cell's input."""
    x = next(iter(inspect.signature(construct).bind(*args, **kwargs).arguments.values()))
    (padded, _), *state = rebuilt(call.output, tensor)
    first = _batch_first(construct)
    missing = x.shape[1 if first else 0] - padded.shape[1]
    if missing > 0:
        padded = ops.cat((padded, ops.zeros((padded.shape[0], missing, *padded.shape[2:]), padded.dtype)), 1)
    return (padded if first else padded.swapaxes(0, 1), *state)
