"""Have MindSpore write a net that is ready for it, whole or, where it is large, with its numbers beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, nn

from ..errors import Unsupported
from .asked import MINDIR, MORE, OTHER, Job, read_key
from .beside import ONNX_WHOLE, beside, graph_of
from .mindspore_operators import first_line, of_operator, operator_in


def write(net: nn.Cell, job: Job, inputs: list[np.ndarray], batch: int, folder: Path) -> Path:
    """Export the net, always in evaluation mode, into a folder; returns the file.

    An ONNX file that is to have an open batch is exported with a second size of batches, too. Raises Unsupported that
    names the operator and where it stands.
    """
    net.set_train(False)
    given = [Tensor(array[:batch]) for array in inputs]
    if job.form == MINDIR:
        return _mindir(net, job, given, folder)
    file = _onnx(net, job, given, folder)
    if job.dynamic:
        (folder / OTHER).mkdir()
        more = [Tensor(np.zeros((batch + MORE, *array.shape[1:]), array.dtype)) for array in inputs]
        _onnx(net, job, more, folder / OTHER)
    return file


def _mindir(net: nn.Cell, job: Job, given: list[Tensor], folder: Path) -> Path:
    file = folder / f"{job.stem}.mindir"
    if job.dynamic:
        given = [Tensor(shape=[None, *one.shape[1:]], dtype=one.dtype) for one in given]
    options: dict[str, Any] = {}
    if job.key_file is not None:
        options = {"enc_key": read_key(job.key_file, job.enc_mode), "enc_mode": job.enc_mode}
    _try(
        lambda: mindspore.export(net, *given, file_name=str(file), file_format="MINDIR", **options),
        lambda error: Unsupported(
            f"MindSpore cannot export this net as mindir{' with an open batch' * job.dynamic}: {first_line(error)}"
        ),
    )
    if not file.exists():  # a graph alone, and what it reads from a folder beside it
        graph_of(file).rename(file)
        for part in beside(file).iterdir():
            part.chmod(0o600)
    file.chmod(0o600)
    return file


def _onnx(net: nn.Cell, job: Job, given: list[Tensor], folder: Path) -> Path:
    """Above what one file holds, MindSpore's other exporter, which leaves a file for each parameter."""
    file = folder / f"{job.stem}.onnx"
    size = sum(parameter.nbytes for parameter in net.get_parameters())

    def export() -> None:
        if size > ONNX_WHOLE:
            mindspore.onnx.export(net, *given, file_name=str(file))
        else:
            mindspore.export(net, *given, file_name=str(file), file_format="ONNX")

    _try(export, lambda error: _cannot(net, given, folder, error))
    file.chmod(0o600)
    return file


def _try(export: Callable[[], None], told: Callable[[Exception], Unsupported]) -> None:
    try:
        export()
    except (RuntimeError, TypeError, ValueError, AttributeError) as error:
        raise told(error) from None


def _cannot(net: nn.Cell, given: list[Tensor], folder: Path, error: Exception) -> Unsupported:
    operator = operator_in(str(error))
    if operator is None:
        return Unsupported(f"MindSpore cannot export this net as onnx: {first_line(error)}")
    at = of_operator(net, given, operator, folder)
    where = f" ({', '.join(at[:3])}{f' and {len(at) - 3} more' if len(at) > 3 else ''})" if at else ""
    return Unsupported(
        f"MindSpore's ONNX exporter has no converter for {operator}{where}, and msmigrate knows no equal form; "
        "--format mindir takes it"
    )
