"""Made-up inputs are the same in every process, and differ between tensors and steps."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from msmigrate.parity.record.randomness import given_gradient, given_logits


def test_gradients_are_fixed_by_name_and_step() -> None:
    one = given_gradient("conv1.weight", (20, 30), 0)
    np.testing.assert_array_equal(one, given_gradient("conv1.weight", (20, 30), 0))
    assert one.dtype == np.float32 and one.shape == (20, 30)
    assert abs(one).max() <= 0.02 and 0.01 < one.std() < 0.013
    assert (one != given_gradient("conv1.weight", (20, 30), 1)).all()
    assert (one != given_gradient("conv2.weight", (20, 30), 0)).all()
    assert given_gradient("scalar", (), 0).shape == ()


def test_logits_are_fixed_and_spread() -> None:
    logits = given_logits((64, 10))
    np.testing.assert_array_equal(logits, given_logits((64, 10)))
    assert logits.dtype == np.float32 and logits.shape == (64, 10) and 2.5 < logits.std() < 3.5


def test_another_process_draws_the_same() -> None:
    code = "from msmigrate.parity.record.randomness import given_gradient\n"
    code += "print(given_gradient('w', (3,), 2).tobytes().hex())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert told == given_gradient("w", (3,), 2).tobytes().hex()
