"""Where layers have kinks, and which side of them a recorded run took.

At a kink a gradient jumps: a ReLU's at zero, a Hardswish's at -3 and at 3, a max-pool's where another element becomes
the largest. What is kept of the side that a run took puts the torch reference there where rounding decides.
"""

from __future__ import annotations

import numpy as np

# torch class -> the inputs at which its gradient jumps
KINKS: dict[str, tuple[float, ...]] = {
    "ReLU": (0.0,),
    "ReLU6": (0.0, 6.0),
    "LeakyReLU": (0.0,),
    "PReLU": (0.0,),
    "Hardswish": (-3.0, 3.0),
    "Hardsigmoid": (-3.0, 3.0),
}
KINKED = tuple(KINKS)
POOLED = ("MaxPool2d",)
BY_INPUT = (*(kind for kind in KINKED if kind != "ReLU"), *POOLED)  # whose choice the output does not tell
HALFWAY = "LeakyReLU"  # MindSpore's is the larger of x and slope · x, and at zero its gradient is the mean of both
EVENLY = "_evenly"  # ends the kind of a function whose gradient equal elements share: of a maximum over several axes


def choice(kind: str | None, output: np.ndarray, source: np.ndarray | None) -> np.ndarray | None:
    """What is kept of the choice that a layer of torch class `kind` made: for each of its kinks in turn whether an
    input was above it, as packed bits, of HALFWAY then whether it was there or above; of a max-pool its input, from
    which the choice follows; None for other layers.

    source: the input, which the classes in BY_INPUT need.
    """
    if kind in POOLED:
        return source
    if kind not in KINKS:
        return None
    if kind in BY_INPUT:
        if source is None:
            return None
        at = [source >= kink for kink in KINKS[kind] if kind == HALFWAY]
        return np.packbits(np.stack([*(source > kink for kink in KINKS[kind]), *at]))
    return np.packbits(output > 0)


def function_name(path: str, kind: str) -> str:
    """What the calls of a function are recorded under that a module makes itself: `layer1.0.relu()`."""
    return f"{path}.{kind.lower()}()" if path else f"{kind.lower()}()"


def is_function(name: str) -> bool:
    """Whether a name is one that `function_name` gave."""
    return name.endswith("()")
