"""How often a right tensor of few elements fails, because both of torch's runs were exact by luck.

    python benchmarks/few_elements.py

Draws rounding errors, MindSpore's half as large again as torch's, and judges them as parity-step does. Prints markdown:
for each number of elements the share that fails.
"""

from __future__ import annotations

import numpy as np
from msmigrate.parity.tensor_verdict import BY_LUCK, RATIO, uncertain

TENSORS = 2_000_000
ROUNDS_MORE = 1.5  # MindSpore's rounding, in units of torch's
MOST = 8  # elements


def main() -> None:
    rng = np.random.default_rng(0)
    print("| elements | ratio above which it fails | of right tensors fail | without the allowance for luck |")
    print("|---:|---:|---:|---:|")
    for elements in range(1, MOST + 1):
        one, other, ours = (np.sqrt(rng.chisquare(elements, TENSORS)) for _ in range(3))
        ratios = ROUNDS_MORE * ours / np.maximum(one, other)
        before = RATIO * uncertain(elements)
        limit = before * BY_LUCK.get(elements, 1.0)
        shares = (f"{100 * float((ratios > each).mean()):.3f} %" for each in (limit, before))
        print("|", " | ".join([str(elements), f"{limit:.1f}", *shares]), "|")


if __name__ == "__main__":
    main()
