"""What has to hold for any input whatever: it is converted bit for bit, or refused in one line and without a trace.

One input is held to this in the present process, under a limit of time and of memory. What must never happen is told
in words, as the complaint of an Outcome.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np  # noqa: F401 (a conversion may need it, and should not be charged for loading it)
from fuzz_inputs import Case
from msmigrate.errors import MsmigrateError
from msmigrate.migrate import convert, inspect_file
from msmigrate.migrate.formats import mindspore_ckpt
from msmigrate.migrate.formats.contents import Piece, Tensor, product
from msmigrate.migrate.formats.source import open_source
from msmigrate.migrate.plan import Plan
from msmigrate.reports.inspect_report import inspect_json
from msmigrate.reports.plan import plan_json, plan_text, result_text

SECONDS = 5
MEMORY = 300 << 20  # bytes that an input may make the process grow by
LONGEST = 2000  # letters of a message
COUNTERS = ("n_averaged",)  # which the reader takes for no weights


class Outcome(NamedTuple):
    """What became of an input: `kind` is "converted" or the kind of the error; memory in bytes."""

    kind: str
    seconds: float
    memory: int
    complaint: str | None
    text: str = ""


class Hang(BaseException):
    """An input took longer than any may; no Exception, so that nothing that catches those takes it."""


@contextlib.contextmanager
def limits() -> Iterator[None]:
    """Stop what takes too long or too much."""

    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, before)


def check(case: Case, folder: Path) -> Outcome:
    """Convert a case in an empty folder, which is emptied again, and look at all that must hold."""
    source, out = folder / "in", folder / "out"
    for made in (source, out):
        made.mkdir()
    for name, content in case.files.items():
        (source / name).write_bytes(content)
    started = time.perf_counter()
    resident = _forget_peak()
    try:
        with limits(), mock.patch.object(mindspore_ckpt, "CHUNK", case.chunk), mock.patch.object(os, "fsync"):
            kind, complaint, text = _tried(case, source / case.source, out)
    except Hang:
        kind, complaint, text = "hang", f"it takes longer than {SECONDS} s", ""
    seconds, memory = time.perf_counter() - started, max(0, _peak() - resident)
    found = {path.name: path.read_bytes() for path in source.iterdir()}
    if complaint is None and found != dict(case.files):
        complaint = "the source was changed"
    for path in (*source.iterdir(), *out.glob("*/*"), *out.iterdir()):
        path.rmdir() if path.is_dir() else path.unlink()
    source.rmdir()
    out.rmdir()
    return Outcome(kind, seconds, memory, complaint, text)


def _tried(case: Case, source: Path, out: Path) -> tuple[str, str | None, str]:
    """The kind of outcome, what is wrong about it, and the message of the error."""
    options = dict(case.options)
    shard = options.pop("max_shard_size", None)
    looking = {"key": options.get("key")}
    target = f"{out}/{case.destination}"
    steps: tuple[Callable[[], Any], ...] = (
        lambda: json.dumps(inspect_json(inspect_file.inspect_file(source, **looking)), ensure_ascii=False).encode(),
        lambda: _printed(convert.make_plan(source, target, **options)),
        lambda: convert.convert(source, target, max_shard_size=shard, **options),
    )
    for number, step in enumerate(steps):
        try:
            done = step()
        except MsmigrateError as error:
            complaint = _said_well(str(error))
            if complaint or number == len(steps) - 1:
                left = sorted(path.name for path in out.iterdir())
                return type(error).__name__, complaint or (f"{left} was left behind" if left else None), str(error)
        except Exception:
            return "crash", f"step {number}: {traceback.format_exc(limit=-6)}", ""
    try:
        result_text(done).encode()
        return "converted", _written_well(done.plan, source, target), ""
    except (MsmigrateError, AssertionError):
        return "converted", f"reading it back: {traceback.format_exc(limit=-3)}", ""


def _printed(plan: Plan) -> None:
    """What the command prints of a plan, whether or not it can be carried out."""
    plan_text(plan).encode()
    json.dumps(plan_json(plan), ensure_ascii=False).encode()


def _said_well(text: str) -> str | None:
    if not text.isprintable():
        return f"its message is not one printable line: {text[:300]!a}"
    return f"its message has {len(text):,} letters: {text[:300]!a}" if len(text) >= LONGEST else None


def _written_well(plan: Plan, source: Path, target: str) -> str | None:
    """Read the new file and hold it against the plan and the bytes of the source; what differs, in words."""
    with open_source(str(source)) as opened:
        paths = [str(file.name) for file in opened.files]
        wanted = {piece.name: _held(piece, paths) for piece in (entry.piece for entry in plan.written)}
    with open_source(target.rstrip("/")) as opened:
        found = opened.checkpoint("model" if plan.framework == "torch" and plan.record else None)
        paths = [str(file.name) for file in opened.files]
    tensors = {found.prefix + name: tensor for name, tensor in found.tensors.items()}
    tensors |= {name: held for name, held in (found.training or {}).items() if isinstance(held, Tensor)}
    there = {name: _held(Piece(name, *tensor[:2], tensor), paths) for name, tensor in tensors.items()}
    if found.framework != plan.framework:
        return f"the new file is read as {found.framework}'s"
    for name, (dtype, shape, content) in wanted.items():
        if name not in there:
            if not (found.prefix and name in COUNTERS):
                return f"{name!a} is not in the new file"
            continue
        got = there.pop(name)
        if got[:2] != (dtype, shape):
            return f"{name!a} is {got[:2]} in the new file, not {(dtype, shape)}"
        if None not in (content, got[2]) and content != got[2]:
            return f"{name!a} has other bytes in the new file"
    return f"the new file also holds {sorted(there)!a}" if there else None


def _held(piece: Piece, paths: list[str]) -> tuple[str, tuple[int, ...], bytes | None]:
    """A piece with its bytes, gathered one by one; None for what is cast or stands in no file."""
    tensor = piece.tensor
    if piece.dtype != tensor.dtype or any(span.file >= len(paths) for span in tensor.spans):
        return piece.dtype, piece.shape, None
    content = b""
    for span in tensor.spans:
        with Path(paths[span.file]).open("rb") as file:
            file.seek(span.offset)
            content += file.read(span.length)
    size = tensor.item_size
    if product(tensor.shape) <= 4096:
        places = itertools.product(*map(range, tensor.shape))
        steps = [sum(at * stride for at, stride in zip(place, tensor.strides, strict=True)) for place in places]
        content = b"".join(content[step * size : (step + 1) * size] for step in steps)
    elif not tensor.contiguous:
        return piece.dtype, piece.shape, None
    return piece.dtype, piece.shape, content


def _forget_peak() -> int:
    """Let the kernel measure the most memory anew; the memory that is held now."""
    Path("/proc/self/clear_refs").write_text("5")
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10
