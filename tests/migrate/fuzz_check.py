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
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np  # noqa: F401 (a conversion may need it, and should not be charged for loading it)
from fuzz_inputs import Case
from msmigrate.errors import MsmigrateError
from msmigrate.migrate.checkpoint import convert, inspect_file
from msmigrate.migrate.checkpoint.formats import ckpt
from msmigrate.migrate.checkpoint.formats.reader import Piece, Tensor, product
from msmigrate.migrate.checkpoint.formats.registry import open_source
from msmigrate.migrate.checkpoint.plan import Plan
from msmigrate.reports.checkpoint import inspect_json, inspection_text, plan_json, plan_text, result_text

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
def limits(memory: int = MEMORY, seconds: float | None = None) -> Iterator[None]:
    """Stop what takes too long by the processor's time, or by the clock should it wait for something, or too much."""
    seconds = SECONDS if seconds is None else seconds

    def stop(*_: object) -> None:
        raise Hang

    before = [signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)]
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 12 * seconds)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, hard))
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        for number, handler in zip((signal.SIGPROF, signal.SIGALRM), before, strict=True):
            signal.signal(number, handler)


def check(case: Case, folder: Path) -> Outcome:
    """Convert a case in an empty folder, which is emptied again, and look at all that must hold."""
    source, out = folder / "in", folder / "out"
    for made in (source, out):
        made.mkdir()
    for name, content in case.files.items():
        (source / name).write_bytes(content)
    resident = forget_peak()
    with mock.patch.object(ckpt, "CHUNK", case.chunk), mock.patch.object(os, "fsync"):
        kind, complaint, text, seconds = _tried(case, source / case.source, out)
    memory = max(0, peak() - resident)
    found = {path.name: path.read_bytes() for path in source.iterdir()}
    if complaint is None and found != dict(case.files):
        complaint = "the source was changed"
    for path in (*source.iterdir(), *out.glob("*/*"), *out.iterdir()):
        path.rmdir() if path.is_dir() else path.unlink()
    source.rmdir()
    out.rmdir()
    return Outcome(kind, seconds, memory, complaint, text)


def _tried(case: Case, source: Path, out: Path) -> tuple[str, str | None, str, float]:
    """The kind of outcome, what is wrong about it, the message of the error, and the processor's time in seconds."""
    options = dict(case.options)
    shard = options.pop("max_shard_size", None)
    target = f"{out}/{case.destination}"
    steps: tuple[Callable[[], Any], ...] = (
        lambda: _shown(inspect_file.inspect_file(source, options.get("key"))),
        lambda: _printed(convert.make_plan(source, target, **options)),
        lambda: convert.convert(source, target, max_shard_size=shard, **options),
    )
    kind, complaint, text, slowest, done = "converted", None, "", 0.0, None
    for step in steps:
        started = time.process_time()
        try:
            with limits(), warnings.catch_warnings():
                warnings.simplefilter("error")  # it would stand on stderr
                done = step()
        except MsmigrateError as error:
            kind, text = type(error).__name__, str(error)
            complaint = complaint or _said_well(text)
        except Hang:
            kind, complaint = "hang", f"it takes longer than {SECONDS} s"
        except Exception:
            kind, complaint = "crash", traceback.format_exc(limit=-6)
        slowest = max(slowest, time.process_time() - started)
    if done is None:
        left = sorted(path.name for path in out.iterdir())
        return kind, complaint or (f"{left} was left behind" if left else None), text, slowest
    try:
        result_text(done).encode()
        complaint = complaint or _written_well(done.plan, source, target)
    except (MsmigrateError, AssertionError):
        complaint = f"reading it back: {traceback.format_exc(limit=-3)}"
    return kind if complaint else "converted", complaint, text, slowest


def _printed(plan: Plan) -> None:
    """What the command prints of a plan, whether or not it can be carried out."""
    assert all(line.isprintable() for line in plan_text(plan).split("\n")), plan_text(plan)
    json.dumps(plan_json(plan), ensure_ascii=False).encode()


def _shown(facts: inspect_file.Facts) -> None:
    """What `inspect` prints: text of printable lines, and JSON."""
    json.dumps(inspect_json(facts), ensure_ascii=False).encode()
    printed = inspection_text(facts, whole=True)
    assert all(line.isprintable() for line in printed.split("\n")), printed


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
    if 0 < product(tensor.shape) <= 4096:
        places = itertools.product(*map(range, tensor.shape))
        steps = [sum(at * stride for at, stride in zip(place, tensor.strides, strict=True)) for place in places]
        content = b"".join(content[step * size : (step + 1) * size] for step in steps)
    elif not tensor.contiguous:
        return piece.dtype, piece.shape, None
    return piece.dtype, piece.shape, content


def forget_peak() -> int:
    """Let the kernel measure the most memory anew; the memory that is held now."""
    Path("/proc/self/clear_refs").write_text("5")
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def keep(case: Case, told: str, folder: Path) -> Path:
    """Write a case to a folder of its own, with what is wrong about it; returns that folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in case.files.items():
        (folder / (name or "empty")).write_bytes(content)
    rest = {"source": case.source, "destination": case.destination, "options": case.options, "chunk": case.chunk}
    (folder / "case.json").write_text(json.dumps({**rest, "told": told}, indent=1))
    return folder
