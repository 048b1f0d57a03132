"""What numbers a dtype can hold, as torch.finfo says."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

PRINTS = """
import mindspore
from msmigrate.nn.functional import largest

print(*(largest(getattr(mindspore, name)) for name in ("float16", "float32", "float64", "bfloat16")))
try:
    largest(mindspore.int32)
except TypeError as error:
    print(error)
"""


def test_the_largest_number_of_each_dtype() -> None:
    done = subprocess.run([sys.executable, "-c", PRINTS], capture_output=True, text=True, check=True)
    numbers, why = done.stdout.splitlines()[-2:]
    assert [float(number) for number in numbers.split()] == [
        *(float(np.finfo(dtype).max) for dtype in (np.float16, np.float32, np.float64)),
        (2.0 - 2.0**-7) * 2.0**127,
    ]
    assert why == "Int32 is no dtype of floating-point numbers"
