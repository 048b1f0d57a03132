"""What workers are doing, on stderr: spinner, bar, a training run's live line."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from ..printable import MANNER, clock_text, note, percent
from ..training.run.run_log import number, whole
from ..workers import messages
from .terminal import Console, TextColumn, one_line

EVERY = 10.0  # seconds between two plain lines


@contextmanager
def plain_lines(now: Callable[[], str]) -> Iterator[None]:
    """While the block runs, print a line every ten seconds on stderr, if that is no terminal, where a bar would move.

    now: returns what is going on, in words; nothing is printed where it returns an empty text.
    """
    if sys.stderr.isatty() or MANNER.quiet:
        yield
        return
    began, over = time.monotonic(), threading.Event()

    def print_lines() -> None:
        while not over.wait(EVERY):
            if text := now():
                note(f"{clock_text(time.monotonic() - began)}: {text}")

    thread = threading.Thread(target=print_lines, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class _Now:
    """A text that is computed whenever it is shown."""

    def __init__(self, text: Callable[[], str]) -> None:
        self.text = text

    def __rich__(self) -> Text:
        return Text(self.text())


@contextmanager
def doing(text: str | Callable[[], str]) -> Iterator[None]:
    """Show on stderr what is being done while the block runs; text: it, or a function that returns it."""
    console, now = Console(stderr=True), text if callable(text) else lambda: text
    if MANNER.verbose:
        note(now())
    with console.status(_Now(now)) if console.is_terminal else plain_lines(now):
        yield


class Progress:
    """A bar on stderr, in a terminal; nothing elsewhere."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bar = Bar(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
        self.task = self.bar.add_task("", total=None)
        self.lines = plain_lines(lambda: _counted(self.bar, self.task))

    def __enter__(self) -> Progress:
        self.bar.start()
        self.lines.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.lines.__exit__(None, None, None)
        self.bar.stop()

    def start(self, total: int) -> None:
        """Set how many models there are."""
        self.bar.update(self.task, total=total)

    def done(self, model: str) -> None:
        """Count one more model as analysed."""
        self.bar.update(self.task, advance=1, description=model)


@contextmanager
def images_counted() -> Iterator[messages.OnMessage]:
    """Show on stderr what the process that runs a net over images is doing."""
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("starting MindSpore", total=None)

        def show(name: str, message: messages.Message) -> None:
            if isinstance(message, messages.Progress):
                if MANNER.verbose and message.done is None:
                    note(message.what)
                progress.update(task, description=message.what, completed=message.done, total=message.total)

        with plain_lines(lambda: _counted(progress, task)):
            yield show


def _counted(progress: Bar, task: TaskID) -> str:
    shown = next(each for each in progress.tasks if each.id == task)
    return shown.description + (f", {shown.completed:,.0f} of {shown.total:,.0f}" if shown.total else "")


EVENT_LINES = {  # an event's name -> the line that is printed
    messages.COUNTED: "{tensors} tensors of weights, and what is computed with them",
    messages.DIVERGED: "no parity: {at} fails; the other failures and the causes follow",
}


@contextmanager
def progressing(who: Sequence[str], begin: str) -> Iterator[messages.OnMessage]:
    """Show on stderr what each framework is doing; on a terminal the lines stay in place.

    begin: printed when everything that can be refused has been checked, and the processes are started.
    """
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.fields[who]:9}"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Bar(*columns, console=console, disable=not console.is_terminal) as progress:
        tasks = {name: progress.add_task("starting", who=name, total=None, left="") for name in who}
        works = {name: Work() for name in who}
        printed: set[str] = set()

        def say(text: str) -> None:
            if text not in printed:
                printed.add(text)
                console.print(one_line(text), soft_wrap=True)

        def show(who: str, message: messages.Message) -> None:
            if isinstance(message, messages.Progress):
                works[who].at(message)
                if MANNER.verbose:
                    console.print(one_line(f"{who}: {works[who].what}"), soft_wrap=True)
                progress.update(tasks[who], description=works[who].what, left=works[who].left())
            elif isinstance(message, messages.Event) and message.name == messages.BEGUN:
                say(begin)
            elif isinstance(message, messages.Event) and message.name in EVENT_LINES:
                say(EVENT_LINES[message.name].format(**message.facts))

        with plain_lines(lambda: "; ".join(f"{name}: {work}" for name, work in works.items())):
            yield show


class Work:
    """What a process is doing, and how long its countable work still takes."""

    def __init__(self) -> None:
        self.what, self._began, self._first, self._left = "starting", 0.0, 0, 0.0

    def at(self, message: messages.Progress) -> None:
        """Note what begins; for counted work, estimate from the part that is done how long the rest takes."""
        self.what = message.what.partition(": ")[2] or message.what
        now, self._left = time.monotonic(), 0.0
        if message.done is None or message.total is None:
            return
        if message.done <= self._first or not self._began:
            self._began, self._first = now, message.done
        elif now > self._began:
            self._left = (message.total - message.done) * (now - self._began) / (message.done - self._first)

    def left(self) -> str:
        """How long the rest takes, in words; empty where that is not known."""
        return f"{clock_text(self._left)} left" if self._left >= 1 else ""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.what, self.left())))


WAITING = 0.05  # a short line shows the share of the time spent waiting for data from this share on


class TrainingProgress:
    """Shows the events of a run as they come; launch.run calls `show`.

    console: where to, stderr as a rule. every: seconds between two lines about steps where it is no terminal.
    """

    def __init__(self, console: Console, every: float = EVERY, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self.every = every
        self.clock = clock
        self._plan: dict[str, Any] = {}
        self._last = -math.inf
        self._step: dict[str, Any] = {}
        self._shown: set[tuple[int, str]] = set()
        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[facts]}"),
            console=console,
            disable=not console.is_terminal,
            expand=True,
            transient=True,  # the summary comes in its place
        )
        self._task = self._bar.add_task("starting", total=None, facts="")
        # shows that a run which takes no step yet, or slow ones, is there
        self._lines = plain_lines(
            lambda: "" if self.clock() - self._last < self.every else self._bar.tasks[0].description
        )

    def __enter__(self) -> TrainingProgress:
        self._bar.start()
        self._lines.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.__exit__(None, None, None)
        self._bar.stop()

    def show(self, rank: int, event: dict[str, Any]) -> None:
        """Show one event; warnings of every process, and the rest of the first one only."""
        kind = event.get("event")
        if kind == "warning" or (kind == "note" and rank == 0):
            if (rank, str(event.get("text"))) in self._shown:
                return
            self._shown.add((rank, str(event.get("text"))))
            self._say(rank, kind, str(event.get("text", "")))
        elif rank == 0 and kind == "plan":
            self._plan = event
            total = event.get("steps")
            first = event.get("first_step", 0)
            self._bar.update(
                self._task,
                description="first step",
                total=total if whole(total) else None,
                completed=first if whole(first) else 0,
            )
        elif rank == 0 and kind == "step":
            self._on_step(event)
        elif rank == 0 and kind == "validation":
            self._flush()
            self._line(validation_text(event, self._plan.get("epochs")))

    def _on_step(self, event: dict[str, Any]) -> None:
        self._step = event
        step = event.get("step")
        self._bar.update(
            self._task,
            description=epoch_text(event, self._plan.get("epochs")),
            completed=step if whole(step) else None,
            facts=facts(event, self._plan.get("steps"), self._unit, short=True),
        )
        if not self.console.is_terminal and self.clock() - self._last >= self.every:
            self._flush()

    def _flush(self) -> None:
        """Print the newest step where no bar shows it."""
        if self._step and not self.console.is_terminal:
            self._last = self.clock()
            steps = facts(self._step, self._plan.get("steps"), self._unit)
            self._line(f"{epoch_text(self._step, self._plan.get('epochs'))}  {steps}")
            self._step = {}

    @property
    def _unit(self) -> str:
        return "rows" if self._plan.get("unit") == "rows" else "img"

    def _say(self, rank: int, kind: str, text: str) -> None:
        who = f" (process {rank})" if rank else ""
        mark = Text("warning", "yellow") if kind == "warning" else Text("note")
        self._bar.console.print(mark.append(f"{who}: {' '.join(text.split())}", "default"), soft_wrap=True)

    def _line(self, text: str) -> None:
        self._bar.console.print(text, soft_wrap=True)


def epoch_text(event: dict[str, Any], epochs: Any) -> str:
    """`epoch 3/90`, counted from 1."""
    epoch = event.get("epoch")
    if not whole(epoch):
        return "training"
    return f"epoch {epoch + 1}" + (f"/{epochs}" if whole(epochs) else "")


def facts(event: dict[str, Any], steps: Any, unit: str = "img", short: bool = False) -> str:
    """Step, loss, learning rate, speed, share of the time spent waiting for data, and time left.

    unit: what the speed counts. short: for a line of 80 columns that a bar shares; waiting is then shown from WAITING
    on.
    """
    of = f"/{steps}" if whole(steps) else ""
    parts = [f"{event.get('step')}{of}" if short else f"step {event.get('step')}{of}"]
    parts.append(f"loss {number(event.get('loss')):.4g}")
    values = {key: number(event.get(key)) for key in ("lr", "images_per_second", "waited", "seconds_left")}
    if math.isfinite(values["lr"]):
        parts.append(f"lr {values['lr']:.3g}")
    if math.isfinite(values["images_per_second"]):
        parts.append(f"{values['images_per_second']:.0f} {unit}/s")
    if values["waited"] >= (WAITING if short else 0):
        parts.append(f"waiting {values['waited']:.0%}")
    if math.isfinite(values["seconds_left"]):
        parts.append(f"{clock_text(values['seconds_left'])} left")
    return (" " if short else "  ").join(parts)


def validation_text(event: dict[str, Any], epochs: Any) -> str:
    """One line for a validation, with the moving average's accuracy where there is one."""
    parts = [f"loss {number(event.get('loss')):.4g}"]
    shares = {name: number(event.get(key)) for name, key in (("top-1", "top1"), ("top-5", "top5"))}
    parts += [f"{name} {percent(share)}" for name, share in shares.items() if math.isfinite(share)]
    ema = event.get("ema")
    if isinstance(ema, dict):
        top1, loss = number(ema.get("top1")), number(ema.get("loss"))
        parts.append(f"EMA top-1 {percent(top1)}" if math.isfinite(top1) else f"EMA loss {loss:.4g}")
    return f"{epoch_text(event, epochs)}  validation: {', '.join(parts)}"


OnProgress = Callable[[int, int], None]


@contextlib.contextmanager
def counted(doing: str) -> Iterator[OnProgress]:
    """Show a bar on stderr, if that is a terminal, while the work goes on; yields what to call with (done, all)."""
    console = Console(stderr=True)
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(doing, total=None)
        with plain_lines(lambda: _counted(progress, task)):
            yield lambda done, total: progress.update(task, completed=done, total=total)
