"""Training's numbers for TensorBoard, written by TensorBoard's own writer; neither torch nor TensorFlow is needed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ...errors import BadInput


class Scalars:
    """An event file in `folder` that TensorBoard shows as curves over the steps.

    first_step: where this run begins or goes on; TensorBoard then drops what an interrupted run wrote from there on.
    Raises BadInput when the tensorboard package is not installed.
    """

    def __init__(self, folder: Path, first_step: int) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2  # type: ignore[import-untyped]
            from tensorboard.summary.writer.event_file_writer import EventFileWriter  # type: ignore[import-untyped]
        except ImportError as error:
            raise BadInput(
                "train.tensorboard is true and the tensorboard package is not installed: "
                "pip install 'msmigrate[tensorboard]', or set it to false"
            ) from error
        self._events, self._summaries = event_pb2, summary_pb2
        self._writer = EventFileWriter(str(folder))
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._add(step=first_step, session_log=start)

    def add(self, step: int, **numbers: float | None) -> None:
        """Write numbers by tag, such as loss, at a step; None is left out. Double underscores in a tag become '/'."""
        values = [
            self._summaries.Summary.Value(tag=tag.replace("__", "/"), simple_value=number)
            for tag, number in numbers.items()
            if number is not None
        ]
        if values:
            self._add(step=step, summary=self._summaries.Summary(value=values))

    def _add(self, **content: Any) -> None:
        self._writer.add_event(self._events.Event(wall_time=time.time(), **content))

    def close(self) -> None:
        """Write what is still in memory."""
        self._writer.close()
