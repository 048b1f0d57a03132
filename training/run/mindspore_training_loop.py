"""Step after step: logged, validated, saved; images a second.

A step is started without waiting for it, then the next batch is fetched, and only then is its loss read and the next
step started. So data preparation and device work at the same time, and a step whose numbers are not finite is noticed
before another one builds on it.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DoesNotCompile
from ...migrate.checkpoint.formats.reader import GROUPS
from .. import checkpoints
from ..data.mindspore_dataloader import Batch
from ..metrics import Metrics
from ..models.mindspore_models import canonical_parameters
from ..step.mindspore_compile import Graphs
from ..step.mindspore_step import Outcome, inputs_of
from ..step.mindspore_step_state import state, torch_groups
from .mindspore_setup import Run, refuse_misfit
from .mindspore_watchpoints import first_bad


class Keeper:
    """Writes checkpoints of a run; `newest` is the step of the last one, in every process."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.newest: int | None = None

    def save(self) -> None:
        """Write the checkpoint of this step and remove old ones. Raises BadDestination."""
        folder, step = self.run.job.checkpoints, self.run.progress.step
        self._write(checkpoints.path_of(folder, step), best=False)
        if self.run.team.rank == 0:
            checkpoints.retain(folder, self.run.recipe.train.keep)
        self.newest = step

    def save_best(self) -> None:
        """Write the best checkpoint so far, replacing the one before. Raises BadDestination."""
        self._write(self.run.job.checkpoints / checkpoints.BEST, best=True)

    def _write(self, path: Path, *, best: bool) -> None:
        run = self.run
        if run.team.rank != 0:
            return
        weights = {each.parameter.name: each.parameter.asnumpy() for each in canonical_parameters(run.net)}
        tensors: dict[str, np.ndarray] = {**weights, **state(run.step), GROUPS: torch_groups(run.step)}
        checkpoints.write(path, tensors, {**run.facts.record(), **run.progress.record()})
        run.log.say("checkpoint", path=str(path), step=run.progress.step, best=best)


MOST_SKIPPED = 25  # steps in a row that overflow; from 65536 that takes a dynamic loss scale down to 2 ** -9
SMALLEST_SCALE = 2.0**-14


class NotFinite(Exception):
    """Training cannot go on; `tensor` is the first one that is not finite, if it was found."""

    def __init__(self, step: int, tensor: str | None, text: str) -> None:
        super().__init__(text)
        self.step, self.tensor = step, tensor


@dataclass(frozen=True)
class _Started:
    """A step that was started: its batch, its outcome to come, and its log line, if it has one."""

    batch: Batch
    outcome: Outcome
    compiled: bool
    found: list[str]
    line: dict[str, Any] | None


class Loop:
    """Trains a run to its end; `go` returns the exit code."""

    def __init__(self, run: Run) -> None:
        self.run, self.log, self.at = run, run.log, run.progress
        self.options = run.recipe.train
        self.pace, self.keeper = Pace(run.team.size), Keeper(run)
        planned = self.options.epochs * run.loader.steps_per_epoch
        limit = self.options.max_steps if run.job.max_steps is None else run.job.max_steps
        self.steps = planned if limit is None else min(planned, limit)
        self._began = time.perf_counter()
        self._compiled: set[tuple[Any, ...]] = set()
        self._graphs = Graphs()
        self._last: dict[str, Any] | None = None

    def go(self) -> int:
        """Train; 0 when done, 1 when a number that is not finite stopped it."""
        self._say_plan()
        first = self.at.step
        if first >= self.steps:
            self.log.note(f"nothing is left to do: {first} of {self.steps} steps are done")
        try:
            while self.at.step < self.steps:
                self._epoch()
            if self.at.step > first:
                self._finish()
        except NotFinite as stop:
            self.log.say("stopped", step=stop.step, tensor=stop.tensor, text=str(stop))
            return 1
        finally:
            if self.run.scalars is not None:
                self.run.scalars.close()
        self._say_end()
        return 0

    def _epoch(self) -> None:
        """Train the rest of the epoch, or of the run if that is shorter, and do the work after an epoch."""
        run, at = self.run, self.at
        batches: Any = run.loader.epoch(at.epoch, at.step_in_epoch)
        started: _Started | None = None
        self.pace.resume()
        try:
            while at.step_in_epoch + (started is not None) < run.loader.steps_per_epoch:
                batch = next(batches)
                if started is not None:
                    self._settle(started)
                started = self._start(batch)
                number = at.step + 1
                if number == self.steps or self._checkpoint_due(number):
                    self._settle(started)
                    started = None
                    if number == self.steps:
                        break
                    if at.step_in_epoch < run.loader.steps_per_epoch:
                        self.keeper.save()
                        self.pace.resume()
            if started is not None:
                self._settle(started)
        finally:
            batches.close()
        if at.step_in_epoch == run.loader.steps_per_epoch:
            self._after_epoch()

    def _start(self, batch: Batch) -> _Started:
        """Start the next step on a batch."""
        run, number = self.run, self.at.step + 1
        watched = run.watch is not None and run.watch.due(number)
        kind = (watched, *(each.shape for each in inputs_of(batch.images)))
        compiled = kind not in self._compiled
        self._compiled.add(kind)
        line = None
        if number % self.options.log_every == 0 or number in (1, self.steps):
            rate = float(run.step.optimizer.param_groups[-1]["lr"])  # the last group has the recipe's own rate
            scale = run.step.loss_scale if run.step.scaler is not None else None
            line = {"epoch": self.at.epoch, "step": number, "lr": rate, "loss_scale": scale}
        known = self._graphs.again
        try:
            with self._graphs.watching() if compiled else nullcontext():
                if watched and run.watch is not None:
                    outcome, found = run.watch.take(batch.images, batch.labels)
                else:
                    outcome, found = run.step.train(batch.images, batch.labels), []
                if number == 1:
                    outcome.loss.asnumpy()  # errors are raised late; at this point they are about the images
        except (RuntimeError, TypeError, ValueError, DoesNotCompile) as error:
            if compiled:
                refuse_misfit(error, batch.images, "data.transforms give")
            raise
        for text in self._graphs.again[len(known) :]:
            self.log.warn(text)
        return _Started(batch, outcome, compiled, found, line)

    def _settle(self, started: _Started) -> None:
        """Wait for a step; count, judge and log it."""
        run, at = self.run, self.at
        loss = float(started.outcome.loss.asnumpy())
        finite = started.outcome.finite is None or bool(started.outcome.finite.asnumpy())
        at.step += 1
        at.step_in_epoch += 1
        self.pace.step(len(started.batch.indices), run.loader.waited, started.compiled)
        for text in started.found:
            self.log.warn(f"step {at.step}: {text}")
        self._judge(started, loss, finite)
        if finite:
            at.loss_sum += loss
            at.loss_steps += 1
        if started.line is not None:
            self._say_step(started.line, loss)

    def _judge(self, started: _Started, loss: float, finite: bool) -> None:
        """Raise NotFinite where training cannot go on from this step."""
        scaled = self.run.step.scaler is not None
        if finite and math.isfinite(loss):
            self.at.skipped = 0
            return
        if finite:
            raise self._stop(started, "the loss is not finite")
        if not scaled:
            what = "gradients are" if math.isfinite(loss) else "loss is"
            raise self._stop(started, f"the {what} not finite; its update was left out")
        # A lower scale cannot help a loss that is not finite. Every process checks: gradients are the mean of all.
        if not math.isfinite(self.run.team.mean([loss])[0]):
            raise self._stop(started, "the loss is not finite")
        self.at.skipped += 1
        scale = self.run.step.loss_scale
        if self.at.skipped >= MOST_SKIPPED or scale < SMALLEST_SCALE:
            skipped = (
                f"{self.at.skipped} steps in a row overflowed and were skipped, the loss scale is down to {scale:g}"
            )
            raise self._stop(started, skipped)

    def _stop(self, started: _Started, why: str) -> NotFinite:
        """The error that names the first bad tensor of the step."""
        step = self.at.step
        found = first_bad(self.run.step, started.batch.images, started.batch.labels)
        if found is None:
            other = "this process holds none" if self.run.team.size > 1 else "a second look at it finds none"
            text = f"stopped at step {step}: {why}; of the tensors that are not finite {other}"
            return NotFinite(step, None, text)
        text = f"stopped at step {step} ({why}): first, {found.text(started.batch.indices)}"
        return NotFinite(step, found.bad.name, text)

    def _after_epoch(self) -> None:
        run, at, options = self.run, self.at, self.options
        run.step.end_epoch()
        done, last = at.epoch + 1, at.step >= self.steps
        best = False
        if run.validator is not None:
            if done % options.validate_every == 0 or last:
                best = self._validate()
        else:
            mean = run.team.mean([at.loss_sum / at.loss_steps if at.loss_steps else math.nan])[0]
            best = at.better(loss=mean)
        due = done % options.checkpoint_every == 0 or last or self._checkpoint_due(at.step)
        at.next_epoch()
        if due:
            self.keeper.save()
        if best:
            self.keeper.save_best()

    def _finish(self) -> None:
        """Validate and save a run that max_steps ended within an epoch."""
        best = False
        if self.run.validator is not None and self.at.validated != self.at.step:
            best = self._validate()
        if self.keeper.newest != self.at.step:
            self.keeper.save()
        if best:
            self.keeper.save_best()

    def _validate(self) -> bool:
        """Measure weights and moving average; returns whether they are the best so far."""
        run, at = self.run, self.at
        assert run.validator is not None
        named = {each.name: each.parameter for each in canonical_parameters(run.net)}
        metrics = run.validator.measure(named)
        average = run.validator.measure(run.step.ema()) if run.step.average is not None else None
        at.validated = at.step
        self._last = {**metrics._asdict(), "ema": average._asdict() if average else None}
        self.log.say("validation", epoch=at.epoch, step=at.step, **self._last)
        if run.scalars is not None:
            run.scalars.add(at.step, **_tags("validation", metrics), **(_tags("ema", average) if average else {}))
        if metrics.top1 is None:
            return at.better(loss=min(metrics.loss, average.loss) if average else metrics.loss)
        return at.better(top1=max(metrics.top1, average.top1 or 0.0) if average else metrics.top1)

    def _checkpoint_due(self, step: int) -> bool:
        every = self.options.checkpoint_steps
        return every is not None and step % every == 0

    def _say_plan(self) -> None:
        run = self.run
        self.log.say(
            "plan",
            steps_per_epoch=run.loader.steps_per_epoch,
            epochs=self.options.epochs,
            steps=self.steps,
            images=run.facts.images,
            unit=run.recipe.data.unit,
            classes=len(run.facts.classes),
            first_step=self.at.step,
            parameters=sum(weight.size for weight in run.step.weights),
            batch=run.loader.batch,
            processes=run.team.size,
            target=run.job.target,
            mode=run.job.mode,
            seed=run.facts.seed,
            recipe_digest=run.recipe.digest,
            versions=dict(run.facts.versions),
            gate=run.job.gate,
        )

    def _say_step(self, line: dict[str, Any], loss: float) -> None:
        run, at = self.run, self.at
        mean, speed = run.team.mean([loss])[0], self.pace.recent()
        validator = run.validator
        seconds, validations = 0.0, 0
        if validator is not None:
            seconds = validator.seconds * (2 if run.step.average is not None else 1)
            validations = -(-(self.options.epochs - at.epoch) // self.options.validate_every)
        left = self.pace.seconds_left(self.steps - at.step, validations, seconds)
        facts = {"images_per_second": speed.images_per_second, "waited": speed.waited, "seconds_left": left}
        self.log.say("step", loss=mean, **line, **{key: _rounded(value) for key, value in facts.items()})
        if run.scalars is not None:
            scale, rate = line["loss_scale"], line["lr"]
            numbers = {"train__loss": mean, "train__lr": rate, "train__loss_scale": scale}
            run.scalars.add(at.step, **numbers, train__images_per_second=speed.images_per_second)

    def _say_end(self) -> None:
        at, overall = self.at, self.pace.overall
        unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        self.log.say(
            "end",
            steps=at.step,
            epochs=at.epoch,
            seconds=round(time.perf_counter() - self._began, 3),
            compile_seconds=round(self.pace.compiling, 3),
            images_per_second=_rounded(overall.images_per_second),
            waited=_rounded(overall.waited),
            waited_seconds=round(self.pace.waited, 3),
            best_top1=at.best_top1,
            best_loss=at.best_loss,
            best_step=at.best_step,
            final=self._last,
            peak_rss_mb=round(peak / 2**20),
        )


def _tags(prefix: str, metrics: Metrics) -> dict[str, float]:
    return {f"{prefix}__{name}": value for name, value in metrics._asdict().items() if value is not None}


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


@dataclass
class _Sums:
    seconds: float = 0.0
    waited: float = 0.0
    images: int = 0
    steps: int = 0


@dataclass(frozen=True)
class Speed:
    """images_per_second: of all processes. waited: the share of the time spent waiting for data, 0 to 1."""

    images_per_second: float | None
    waited: float | None


class Pace:
    """Measures the time from one step's end to the next one's; `resume()` leaves out validation and saving.

    world: number of processes, each with as many images. clock: returns seconds.
    """

    def __init__(self, world: int = 1, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock, self._world = clock, world
        self._mark, self._waited = clock(), 0.0
        self._recent, self._all = _Sums(), _Sums()
        self.compiling = 0.0  # seconds of the steps that do not count

    def resume(self) -> None:
        """Do not count the time since the last step for the next one."""
        self._mark = self._clock()

    def step(self, images: int, waited: float, compiled: bool = False) -> None:
        """A step on `images` images of this process has ended; one that compiled does not count.

        waited: total seconds that this process has waited for data so far.
        """
        now = self._clock()
        seconds, self._mark = now - self._mark, now
        idle, self._waited = waited - self._waited, waited
        if compiled:
            self.compiling += seconds
            return
        for sums in (self._recent, self._all):
            sums.seconds += seconds
            sums.waited += idle
            sums.images += images
            sums.steps += 1

    def recent(self) -> Speed:
        """The speed since the last call; nothing when no counted step lies between."""
        sums, self._recent = self._recent, _Sums()
        return self._speed(sums)

    @property
    def overall(self) -> Speed:
        """The speed over the whole time; nothing before a step was counted."""
        return self._speed(self._all)

    @property
    def waited(self) -> float:
        """Seconds of waiting for data in the steps that count."""
        return self._all.waited

    def seconds_left(self, steps: int, validations: int = 0, validation: float = 0.0) -> float | None:
        """Estimated seconds for this many more steps, and validations of `validation` seconds each; None if unknown."""
        if not self._all.steps:
            return None
        return steps * self._all.seconds / self._all.steps + validations * validation

    def _speed(self, sums: _Sums) -> Speed:
        if not sums.seconds:
            return Speed(None, None)
        return Speed(sums.images * self._world / sums.seconds, sums.waited / sums.seconds)
