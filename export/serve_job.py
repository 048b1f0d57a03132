"""What `msmigrate serve` tells the process that answers."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, NonNegativeInt, PositiveInt

from ..train.recipe_parts import Strict
from .asked import Job

FILE = "serve.json"
VERSION = 1  # of the model, as MindSpore Serving counts them


class ServeJob(Strict):
    """A model and how it is served.

    name: under which it is asked for. job: the net and how images are prepared; mindir: a file to load in its place.
    images: whether the job's recipe says how images are prepared. classes: names of the net's classes, of which those
    that it does not name get a number. batch: the most instances that run at once; wait: milliseconds for which a batch
    waits to fill. most_bytes: of a request. most_waiting: instances that wait before further ones are sent away.
    """

    name: str
    job: Job
    mindir: Path | None = Field(default=None, strict=False)
    images: bool = True
    classes: list[str] | None = None
    host: str = "127.0.0.1"
    port: NonNegativeInt = 1500
    batch: PositiveInt = 8
    wait: float = Field(default=2.0, ge=0)
    most_bytes: PositiveInt = 16 << 20
    most_waiting: PositiveInt = 256
