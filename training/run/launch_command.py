"""The commands that start the processes of a training run: one process, or MindSpore's launchers."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from ...errors import BadDestination, WorkerFailed
from .options import SEVERAL_MACHINES_PORT, Spread
from .train_job import Job

ALONE = ("-m", "msmigrate.training.run.mindspore_worker")
ONE_OF_SEVERAL = ("-m", "msmigrate.training.run.mindspore_rank_worker")
JOB_FILE = "JOB.json"
# How long the processes wait for each other to come up, in seconds: they import MindSpore, and on other machines
# somebody still has to type the command.
PATIENCE_HERE, PATIENCE_ELSEWHERE = 120, 600


def job_file(job: Job) -> Path:
    """Where the processes of a job read what they have to do."""
    return job.folder / JOB_FILE


def command(job: Job, spread: Spread, port: int, worker: Sequence[str] | None = None) -> list[str]:
    """What to start on this machine.

    One process runs by itself. Several are started by msrun, which executes the `python` that PATH finds: see
    `python_first`. worker: instead of our own, the interpreter's arguments before the job file.
    """
    if spread.processes == 1:
        return [sys.executable, *(worker or ALONE), str(job_file(job))]
    logs = job.output(0)
    return [
        *msrun(),
        f"--worker_num={spread.processes}",
        f"--local_worker_num={spread.nproc}",
        f"--master_addr={spread.master_addr}",
        f"--master_port={port}",
        f"--node_rank={spread.node_rank}",
        f"--log_dir={logs.parent}",
        f"--worker_log_name={logs.stem.rpartition('_')[0]}",
        f"--tail_worker_log={spread.nproc}",  # that of no worker: their output is in their logs
        "--join=True",
        f"--cluster_time_out={PATIENCE_HERE if spread.nnodes == 1 else PATIENCE_ELSEWHERE}",
        "python",
        *(worker or ONE_OF_SEVERAL),
        str(job_file(job)),
    ]


def python_first(folder: Path) -> str:
    """The directory that has to come first in PATH, so that `python` is the interpreter of this process.

    That is where the interpreter lies, or else a script in `folder` that starts it. Raises BadDestination where that
    cannot be written.
    """
    here = Path(sys.executable).parent
    named = here / "python"
    if named.exists() and named.resolve() == Path(sys.executable).resolve():
        return str(here)
    script = folder / "bin" / "python"
    try:
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    except OSError as error:
        raise BadDestination(f"{script}: cannot be written: {error.strerror or error}") from None
    return str(script.parent)


def launch_forms(
    job: Job,
    *,
    nproc: int = 1,
    nnodes: int = 1,
    node_rank: int = 0,
    master_addr: str = "127.0.0.1",
    master_port: int | None = None,
) -> list[tuple[str, str]]:
    """(title, shell text) of every way to start this run; the first is what `train` does. Nothing is started.

    For several Ascend devices also MindSpore's other two, with OpenMPI and with a rank table; these write no logs of
    their own choosing and nobody ends the others when one fails.
    """
    spread = Spread(nproc, nnodes, node_rank, master_addr, master_port)
    spread.check()
    if spread.processes == 1:
        return [("one process", shlex.join(command(job, spread, 0)))]
    port = master_port or SEVERAL_MACHINES_PORT  # of a free one there is nothing to show
    first = f"PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH "
    forms = [("msrun", first + shlex.join(command(job, spread, port)))]
    if job.target == "Ascend":
        forms += [("mpirun", _mpirun(job, spread)), ("rank table", _rank_table(job, spread))]
    return forms


def msrun() -> list[str]:
    """MindSpore's launcher, of the MindSpore that this interpreter imports; raises WorkerFailed where there is none."""
    script = Path(sys.executable).parent / "msrun"
    if script.exists():
        return [str(script)]
    found = shutil.which("msrun")
    if found:
        return [sys.executable, found]  # whatever interpreter its first line names
    raise WorkerFailed(
        f"MindSpore's launcher msrun is neither beside {sys.executable} nor in PATH: install MindSpore in this "
        "environment again, or train with --nproc 1"
    )


def _mpirun(job: Job, spread: Spread) -> str:
    logs = shlex.quote(str(job.output(0).parent / "mpirun"))
    hosts = ""
    if spread.nnodes > 1:
        others = [f"MACHINE{number}:{spread.nproc}" for number in range(1, spread.nnodes)]
        hosts = f" -H {','.join([f'{spread.master_addr}:{spread.nproc}', *others])}"
    worker = shlex.join([sys.executable, *ONE_OF_SEVERAL, str(job_file(job))])
    return f"mpirun -n {spread.processes}{hosts} --output-filename {logs} --merge-stderr-to-stdout {worker}"


def _rank_table(job: Job, spread: Spread) -> str:
    """The loop of MindSpore's rank table start-up, for this machine."""
    first, last = spread.ranks[0], spread.ranks[-1]
    worker = shlex.join([sys.executable, *ONE_OF_SEVERAL, str(job_file(job))])
    table = f"rank_table_{spread.processes}pcs.json"
    logs = shlex.quote(str(job.output(0).parent))
    local = "i" if first == 0 else f"i - {first}"
    return "\n".join(
        [
            f"export RANK_TABLE_FILE=$PWD/{table} RANK_SIZE={spread.processes}",
            f"for ((i = {first}; i <= {last}; i++)); do",
            f"    RANK_ID=$i DEVICE_ID=$(({local})) {worker} > {logs}/rank_$i.log 2>&1 &",
            "done",
            "wait",
        ]
    )
