"""Tables of vectors, where MindSpore's does something else with an argument."""

from __future__ import annotations

from mindspore import Tensor, nn, ops


class PaddedEmbedding(nn.Embedding):
    """An Embedding whose row `padding_idx` gets no gradient, as in torch; MindSpore's goes on training it."""

    def construct(self, ids: Tensor) -> Tensor:
        """The vectors of the ids, in a last dimension."""
        found = super().construct(ids)
        hidden = ops.unsqueeze(ids == self.padding_idx, -1)
        return ops.where(hidden, ops.stop_gradient(found), found)
