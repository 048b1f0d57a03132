"""One of several processes that train together.

    python -m msmigrate.training.run.mindspore_rank_worker JOB.json

MindSpore's launcher starts this once for every rank, and once more as the scheduler through which the ranks find each
other. The ranks go on as mindspore_worker.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ...workers.worker import leave
from .. import mindspore_environment
from .ranks import SHARES, end_with_launcher


def begin() -> None:
    """What a process that was started for several does first, before it imports MindSpore.

    It will not outlive the launcher. The scheduler serves the others here, and never comes back.
    """
    end_with_launcher()
    if os.environ.get("MS_ROLE") == "MS_SCHED":
        mindspore_environment.prepare()
        leave(_serve())
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        os.environ.setdefault("RANK_ID", os.environ["OMPI_COMM_WORLD_RANK"])
    # msrun numbers the processes of one machine as DEVICE_ID
    local = os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", os.environ.get("DEVICE_ID", "0"))
    os.environ.setdefault("LOCAL_RANK", local)
    take_share(int(local), int(os.environ.get(SHARES, "1")))


def take_share(number: int, shares: int) -> None:
    """Keep to this process's share of the machine's processor cores, where there are enough for all.

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
    """Carry out this rank's part of a job; returns the exit code."""
    from .mindspore_distributed import World, farewell
    from .mindspore_worker import main as work

    code = work(job_file)
    if code in (0, 1):  # every rank comes to the same end; after an error the others are ended by the launcher
        from mindspore import communication

        farewell(World(communication.get_rank(), communication.get_group_size()))
    return code


if __name__ == "__main__":
    begin()
    leave(main(Path(sys.argv[1])))
