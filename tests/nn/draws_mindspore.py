"""How often `multinomial` draws what has no weight, beside ten of a thousand that have a little, in both modes."""

from __future__ import annotations

import json

import mindspore as ms
import numpy as np
from msmigrate.nn.functional import multinomial

WEIGHTS = np.zeros((200, 1000), np.float32)
WEIGHTS[:, :10] = 1e-5


def main() -> None:
    found = {}
    for count, replacement in ((1, False), (1, True), (3, False), (3, True)):

        def draw(weights: ms.Tensor, count: int = count, replacement: bool = replacement) -> ms.Tensor:
            return multinomial(weights, count, replacement)

        for mode, run in (("pynative", draw), ("graph", ms.jit(draw))):
            drawn = run(ms.Tensor(WEIGHTS)).asnumpy()
            twice = sum(len(set(row)) < count for row in drawn.tolist())
            found[f"{mode} {count} {replacement}"] = (int((drawn >= 10).sum()), twice, str(drawn.dtype), drawn.shape)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
