"""Packed sequences: what torch's recurrent layers take and return, as a padded tensor with the lengths."""

from __future__ import annotations

from typing import Any

from mindspore import Tensor, nn, ops
from mindspore import dtype as mstype


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """Sequences of several lengths for `run_packed`: padded, with the time first, and their lengths.

    Torch's are stored without the padding. Raises RuntimeError for lengths that are to be sorted and are not.
    """
    given = lengths.astype(mstype.int32) if isinstance(lengths, Tensor) else Tensor(lengths, mstype.int32)
    if enforce_sorted and (given[1:] > given[:-1]).any():
        raise RuntimeError("the lengths are not in descending order: sort them, or give enforce_sorted=False")
    return (input.swapaxes(0, 1) if batch_first else input), given


def run_packed(layer: nn.Cell, input: tuple[Tensor, Tensor], hx: Any = None) -> tuple[tuple[Tensor, Tensor], Any]:
    """What a recurrent layer makes of packed sequences, and its state at the end of each."""
    padded, lengths = input
    output, state = layer(padded.swapaxes(0, 1) if layer.batch_first else padded, hx, seq_length=lengths)
    return ((output.swapaxes(0, 1) if layer.batch_first else output), lengths), state


def pad_packed_sequence(
    sequence: tuple[Tensor, Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The sequences, padded up to the longest or to a total length, and their lengths."""
    padded, lengths = sequence
    longest = int(lengths.max())
    there = (ops.arange(longest).reshape(-1, 1) < lengths).reshape(longest, -1, *[1] * (padded.ndim - 2))
    output = ops.where(there, padded[:longest], ops.full_like(padded[:longest], padding_value))
    if total_length is not None and total_length > longest:
        more = ops.full((total_length - longest, *output.shape[1:]), padding_value, dtype=output.dtype)
        output = ops.cat((output, more))
    return (output.swapaxes(0, 1) if batch_first else output), lengths.astype(mstype.int64)
