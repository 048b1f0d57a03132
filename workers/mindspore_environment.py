"""What a process has to set before it imports MindSpore.

This file imports no framework: `prepare()` has to run while MindSpore is still unimported.
"""

from __future__ import annotations

import os

from ..errors import Unsupported

# MindSpore's CPU convolution with a kernel above 1x1 was measured 30 times slower than it need be on a machine with
# AMX when oneDNN picks its instruction set itself; held to AVX2 it is as quick as PyTorch's. Only the MindSpore
# process gets this: PyTorch reads the same variable and would become slower.
INSTRUCTION_SET = ("ONEDNN_MAX_CPU_ISA", "AVX2")

# 3 is errors only: MindSpore otherwise prints a warning for every deprecated alias that its own layers still use.
LOG_LEVEL = ("GLOG_v", "3")


def prepare() -> None:
    """Set the environment that MindSpore reads at import; a variable the user has set already is left alone.

    Raises Unsupported under NumPy 2: MindSpore 2.10 is built against NumPy 1.x and fails there at some later,
    unrelated line, once, so that the failure looks like a fault of the model.
    """
    import numpy  # not above: what this file says of the environment is wanted where NumPy is missing, too

    if int(numpy.__version__.split(".")[0]) >= 2:
        raise Unsupported(
            f"MindSpore 2.10 is built against NumPy 1.x and this is NumPy {numpy.__version__}: pip install 'numpy<2'"
        )
    for variable, value in (INSTRUCTION_SET, LOG_LEVEL):
        os.environ.setdefault(variable, value)
