"""Check an ONNX file that the user brings, without running it.

python -m msmigrate.deploy.onnx_given_worker FILE
"""

from __future__ import annotations

import sys

import onnx

from ..errors import BadInput
from ..workers.worker import answer


def check(file: str) -> None:
    """Raise BadInput where it is no valid ONNX model."""
    try:
        onnx.checker.check_model(file, full_check=True)
    except Exception as error:  # protobuf, the checker and shape inference have their own
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise BadInput(f"{file} is no valid ONNX model: {said}") from None


if __name__ == "__main__":
    answer(lambda: check(sys.argv[1]))
