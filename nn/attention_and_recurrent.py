"""Attention as torch.nn.functional has it, of matrix products and a softmax, and recurrent layers on packed sequences.

MindSpore's own attention runs on Ascend only.
"""

from __future__ import annotations

import copy
import math
from typing import Any

from mindspore import Tensor, nn, ops
from mindspore import dtype as mstype


class MultiheadAttention(nn.MultiheadAttention):
    """MindSpore's, for classes that derive from it: their own `construct` may take other inputs, and hand on others.

    MindSpore's `__call__` notes which of its three inputs are one, and takes that for those of `construct`.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The output of `construct`, which takes its three inputs for different ones."""
        return nn.Cell.__call__(self, *args, **kwargs)


class AnyActivation:
    """Before a transformer layer of MindSpore's among a class's bases: any function or layer as its activation."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: Any = mstype.float32,
    ) -> None:
        name = activation if isinstance(activation, str) else "relu"
        layer: Any = super()
        layer.__init__(d_model, nhead, dim_feedforward, dropout, name, layer_norm_eps, batch_first, norm_first, dtype)
        if not isinstance(activation, str):
            self.activation = activation


class TransformerEncoderLayer(AnyActivation, nn.TransformerEncoderLayer):
    """MindSpore's, with any function or layer as its activation, as torch's takes it."""


class TransformerDecoderLayer(AnyActivation, nn.TransformerDecoderLayer):
    """MindSpore's, with any function or layer as its activation, as torch's takes it."""


class TransformerEncoder(nn.TransformerEncoder):
    """MindSpore's, with copies of the layer that it is given, of whatever class, in place of new layers."""

    def __init__(self, encoder_layer: nn.Cell, num_layers: int, norm: nn.Cell | None = None) -> None:
        super().__init__(encoder_layer, 0, norm)
        self.layers = nn.CellList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers


class TransformerDecoder(nn.TransformerDecoder):
    """MindSpore's, with copies of the layer that it is given, of whatever class, in place of new layers."""

    def __init__(self, decoder_layer: nn.Cell, num_layers: int, norm: nn.Cell | None = None) -> None:
        super().__init__(decoder_layer, 0, norm)
        self.layers = nn.CellList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers


class Softmax(nn.Softmax):
    """Softmax over an axis that may have a single value, or that torch guesses; see `softmax`."""

    def __init__(self, axis: int | None = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        return softmax(input, self.axis)


class LogSoftmax(nn.LogSoftmax):
    """The logarithm of a Softmax."""

    def __init__(self, axis: int | None = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        return log_softmax(input, self.axis)


class Softmin(nn.Softmin):
    """The Softmax of what is negated."""

    def __init__(self, axis: int | None = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        return softmax(-input, self.axis)


def log_softmax(logits: Tensor, axis: int | None = -1, *, dtype: Any = None) -> Tensor:
    """The logarithm of softmax over an axis; with None over the one that torch guesses, as in `softmax`."""
    if dtype is not None:
        logits = logits.astype(dtype)
    return ops.log_softmax(logits, guessed_axis(logits.ndim) if axis is None else axis)


def softmin(input: Tensor, axis: int | None = -1, *, dtype: Any = None) -> Tensor:
    """`softmax` of what is negated."""
    return softmax(-input, axis, dtype=dtype)


def guessed_axis(axes: int) -> int:
    """The axis that torch takes for a softmax without a dim, which it warns of."""
    return 0 if axes in (0, 1, 3) else 1


def softmax(input: Tensor, axis: int | None = -1, *, dtype: Any = None) -> Tensor:
    """Softmax over an axis that may have a single value; the input is cast to a dtype first if one is given.

    axis: None is the one that torch guesses.
    If the first gradient of MindSpore's own softmax is over a single value, on the CPU in PyNative mode, every later
    gradient along that axis, of tensors with as many dimensions, is wrong by most of its size.
    """
    if dtype is not None:
        input = input.astype(dtype)
    if axis is None:
        axis = guessed_axis(input.ndim)
    return input - input + 1 if input.shape[axis] == 1 else ops.softmax(input, axis)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query · keyᵀ · scale + mask) · value; query (..., L, E), key (..., S, E), value (..., S, Ev).

    attn_mask: True where a key may be seen, or numbers to add. Without scale it is 1 / √E. With enable_gqa every head
    of key and value serves several of query. dropout_p acts always, as in torch: write 0.0 outside training.
    """
    if enable_gqa:
        key = ops.repeat_interleave(key, query.shape[-3] // key.shape[-3], -3)
        value = ops.repeat_interleave(value, query.shape[-3] // value.shape[-3], -3)
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    weights = ops.matmul(query * factor, key.swapaxes(-2, -1))
    if is_causal:
        rows = ops.arange(query.shape[-2]).reshape((-1, 1))
        weights = ops.masked_fill(weights, ops.arange(key.shape[-2]).reshape((1, -1)) > rows, float("-inf"))
    if attn_mask is not None:
        if attn_mask.dtype == mstype.bool_:
            weights = ops.masked_fill(weights, ops.logical_not(attn_mask), float("-inf"))
        else:
            weights = weights + attn_mask
    weights = softmax(weights, -1)
    if dropout_p > 0.0:
        weights = ops.dropout(weights, dropout_p, True)
    return ops.matmul(weights, value)


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    dropout_p: float = 0.0,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    average_attn_weights: bool = True,
) -> Any:
    """Attention of several heads over (L, N, E), (S, N, K), (S, N, V); the output and, where needed, the weights.

    in_proj_weight: (3·E, E), of query, key and value; with use_separate_proj_weight each has a weight of its own:
    (E, E), (E, K) and (E, V). A mask hides keys where it is True, or is added; attn_mask is (L, S) or (N·heads, L, S),
    key_padding_mask (N, S).
    """
    length, batch, width = query.shape
    source = key.shape[0]
    head = width // num_heads
    projected = []
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    for index, x in enumerate((query, key, value)):
        part = separate[index] if use_separate_proj_weight else ops.narrow(in_proj_weight, 0, index * width, width)
        shift = None if in_proj_bias is None else ops.narrow(in_proj_bias, 0, index * width, width)
        x = ops.dense(x, part, shift).reshape((x.shape[0], batch * num_heads, head))
        projected.append(x.swapaxes(0, 1))
    weights = ops.bmm(projected[0] * (1.0 / math.sqrt(head)), projected[1].swapaxes(1, 2))
    if attn_mask is not None:
        weights = _masked(weights, attn_mask)
    if key_padding_mask is not None:
        mask = key_padding_mask.reshape((batch, 1, 1, source))
        weights = weights.reshape((batch, num_heads, length, source))
        weights = _masked(weights, mask)
        weights = weights.reshape((batch * num_heads, length, source))
    weights = softmax(weights, -1)
    if training and dropout_p > 0.0:
        weights = ops.dropout(weights, dropout_p, True)
    x = ops.bmm(weights, projected[2]).swapaxes(0, 1).reshape((length, batch, width))
    x = ops.dense(x, out_proj_weight, out_proj_bias)
    if not need_weights:
        return x, None
    weights = weights.reshape((batch, num_heads, length, source))
    return x, ops.mean(weights, 1) if average_attn_weights else weights


def _masked(weights: Tensor, mask: Tensor) -> Tensor:
    """The weights, hidden where the mask is True, or with the mask added."""
    if mask.dtype == mstype.bool_:
        return ops.masked_fill(weights, mask, float("-inf"))
    return weights + mask


def square_subsequent_mask(sz: int, dtype: Any = None) -> Tensor:
    """The mask (sz, sz) of nn.Transformer's `generate_square_subsequent_mask`: -inf above the diagonal, else 0."""
    above = ops.arange(0, sz).reshape((1, -1)) > ops.arange(0, sz).reshape((-1, 1))
    return ops.masked_fill(ops.zeros((sz, sz), mstype.float32 if dtype is None else dtype), above, float("-inf"))


def added_mask(mask: Tensor | None) -> Tensor | None:
    """A mask of attention as numbers to add: -inf where one of bools hides; one of numbers, and None, as it is.

    MindSpore's attention adds a key_padding_mask of bools to an attn_mask of numbers as 0 and 1, so that it hides
    nothing.
    """
    if mask is None or mask.dtype != mstype.bool_:
        return mask
    return ops.masked_fill(ops.zeros(mask.shape, mstype.float32), mask, float("-inf"))


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
    """The sequences, padded up to the longest or to a total length, and their lengths.

    Compiled, a length that the lengths decide is open, and what is made with it often does not compile: it is read off
    them only where there is no total length.
    """
    padded, lengths = sequence
    length = int(lengths.max()) if total_length is None else total_length
    if total_length is not None and total_length > padded.shape[0]:
        more = ops.full((total_length - padded.shape[0], *padded.shape[1:]), padding_value, dtype=padded.dtype)
        padded = ops.cat((padded, more))
    padded = padded[:length]
    there = (ops.arange(length).reshape(-1, 1) < lengths).reshape(length, -1, *[1] * (padded.ndim - 2))
    output = ops.where(there, padded, ops.full_like(padded, padding_value))
    return (output.swapaxes(0, 1) if batch_first else output), lengths.astype(mstype.int64)
