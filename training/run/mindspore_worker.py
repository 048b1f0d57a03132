"""One process of a training run.

    python -m msmigrate.training.run.mindspore_worker JOB.json

Says what it does in the job's event files. Exit code: 0 trained, 1 stopped at a number that is not finite, 2 an error,
which the last event tells.
"""

from __future__ import annotations

import os

from ...workers.worker import leave
from .. import mindspore_environment

LIMITED = mindspore_environment.INSTRUCTION_SET[0] not in os.environ
mindspore_environment.prepare()

import contextlib  # noqa: E402
import sys  # noqa: E402
import traceback  # noqa: E402
from pathlib import Path  # noqa: E402

from ...errors import BadDestination  # noqa: E402
from ..recipe import reader as recipes  # noqa: E402
from .failures import explain  # noqa: E402
from .mindspore_setup import build, use  # noqa: E402
from .mindspore_team import Team  # noqa: E402
from .mindspore_training_loop import Loop  # noqa: E402
from .run_log import RunLog  # noqa: E402
from .train_job import Job  # noqa: E402


def main(job_file: Path) -> int:
    """Carry out one job; returns the exit code."""
    job = Job.read(job_file)
    rank, local_rank = int(os.environ.get("RANK_ID", 0)), int(os.environ.get("LOCAL_RANK", 0))
    batch = None
    log = None
    try:
        job.checkpoints.mkdir(parents=True, exist_ok=True)
        log = RunLog(job, rank)
        if LIMITED and rank == 0 and job.target == "CPU":
            variable, value = mindspore_environment.INSTRUCTION_SET
            log.note(f"{variable}={value} is set: without it MindSpore's CPU convolution can be 30 times slower")
        recipe = job.settled(recipes.load(job.recipe))
        batch = recipe.data.batch
        use(job, local_rank)
        return Loop(build(job, recipe, Team(job), log)).go()
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


if __name__ == "__main__":
    leave(main(Path(sys.argv[1])))
