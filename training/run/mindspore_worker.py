"""One process of a training run.

    python -m msmigrate.training.run.mindspore_worker JOB.json

Reports in the job's event files. Exit code: 0 trained, 1 stopped at a number that is not finite, 2 an error, which the
last event describes. Where the job is for several processes, MindSpore's launcher starts this once for every rank, and
once more as the scheduler through which the ranks find each other.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from pathlib import Path

from ...errors import BadDestination, MsmigrateError
from ...workers.worker import INSTRUCTION_SET, leave, prepare_mindspore
from ..recipe import reader as recipes
from .launch import SHARES, end_with_launcher
from .run_log import RunLog
from .train_job import Job

LESS_MEMORY = "lower data.batch, split it with accumulate, or take smaller images or a smaller model"


def begin() -> None:
    """The first thing that one of several processes does, before it imports MindSpore.

    It will not outlive the launcher. The scheduler serves the others here, and never returns.
    """
    end_with_launcher()
    if os.environ.get("MS_ROLE") == "MS_SCHED":
        prepare_mindspore()
        leave(_serve())
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        os.environ.setdefault("RANK_ID", os.environ["OMPI_COMM_WORLD_RANK"])
    # msrun numbers the processes of one machine as DEVICE_ID
    local = os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", os.environ.get("DEVICE_ID", "0"))
    os.environ.setdefault("LOCAL_RANK", local)
    take_share(int(local), int(os.environ.get(SHARES, "1")))


def take_share(number: int, shares: int) -> None:
    """Limit this process to its share of the machine's processor cores, where there are enough for all.

    Otherwise every process starts as many threads as there are cores; on two cores, two processes' PyNative steps were
    measured to take 1.5 times the processor time.
    """
    cores = sorted(os.sched_getaffinity(0))
    if shares > 1 and len(cores) >= shares:
        os.sched_setaffinity(0, cores[number * len(cores) // shares : (number + 1) * len(cores) // shares])


def _serve() -> int:
    import mindspore

    try:
        mindspore.set_device("CPU")
        mindspore.communication.init()  # for the scheduler, this is all that it does
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def main(job_file: Path) -> int:
    """Carry out one job, or this rank's part of it; returns the exit code."""
    job = Job.read(job_file)
    if job.processes > 1:
        begin()
    variable, value = INSTRUCTION_SET
    limited = variable not in os.environ
    prepare_mindspore()
    from .mindspore_distributed import Team
    from .mindspore_setup import build, use
    from .mindspore_training_loop import Loop

    rank, local_rank = int(os.environ.get("RANK_ID", 0)), int(os.environ.get("LOCAL_RANK", 0))
    batch = None
    log = None
    try:
        job.checkpoints.mkdir(parents=True, exist_ok=True)
        log = RunLog(job, rank)
        if limited and rank == 0 and job.target == "CPU":
            log.note(f"{variable}={value} is set: without it MindSpore's CPU convolution can be 30 times slower")
        recipe = job.settled(recipes.load(job.recipe))
        batch = recipe.data.batch
        use(job, local_rank)
        team = Team(job)
        code = Loop(build(job, recipe, team, log)).go()
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        traceback.print_exc()
        kind, text = explain(error, batch, job.output(rank))
        print(text, file=sys.stderr)
        if log is not None:
            with contextlib.suppress(BadDestination):  # the disk may be full
                log.say("error", kind=kind, text=text)
        return 2
    finally:
        if log is not None:
            log.close()
    team.farewell()  # every rank comes to the same end; after an error the others are ended by the launcher
    return code


def explain(error: BaseException, batch: int | None, output: Path) -> tuple[str, str]:
    """What went wrong, as the name of the class in errors.py and one line.

    batch: images of a step, where that is known. output: where this process's own stderr goes.
    """
    from .mindspore_setup import MEMORY

    if isinstance(error, MsmigrateError):
        return type(error).__name__, " ".join(str(error).split())
    if isinstance(error, MemoryError) or MEMORY.search(str(error)):
        images = f" of {batch} images" if batch else ""
        return "WorkerFailed", f"out of memory: a step{images} does not fit; {LESS_MEMORY}"
    if isinstance(error, OSError):
        place = f" {error.filename}" if error.filename else ""
        return "BadDestination", f"cannot write or read{place}: {error.strerror or error}"
    lines = [line.strip() for line in str(error).splitlines()]
    said = next((line for line in lines if re.search(r"\w", line)), "no reason given")
    return "WorkerFailed", f"training failed: {type(error).__name__}: {said[:400]}; the whole report is in {output}"


if __name__ == "__main__":
    leave(main(Path(sys.argv[1])))
