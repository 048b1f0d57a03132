"""The processes of a run: started, followed, and ended together; here they are scripts without a framework."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msmigrate import errors, processes
from msmigrate.errors import BadCheckpoint, BadDestination, BadInput, WorkerFailed
from msmigrate.training.options import Spread
from msmigrate.training.run import launch, train_job
from msmigrate.training.run.run_log import Follower
from msmigrate.training.run.train_job import Job

WORKER = (str(Path(__file__).with_name("launch_worker.py")),)
SOON = 20.0  # seconds for a job to come up, importing MindSpore once, and to be ended; alone, MindSpore takes a minute


def alive(file: Path) -> bool:
    """Whether the process runs whose number is in a file; one that has ended and that nobody asked about does not."""
    stat = Path("/proc", file.read_text(encoding="utf-8"), "stat")
    return stat.exists() and stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"


class Ran:
    """A job's events, and how long it ran after its first one."""

    def __init__(self, folder: Path, **doing: Any) -> None:
        names = {f"rank{number}": str(number) for number in range(4)}
        gate = {names.get(key, key): value for key, value in doing.items()}
        self.job = Job(recipe=Path("none.yaml"), folder=folder, gate=gate)
        self.events: list[tuple[int, dict[str, Any]]] = []
        self.seen: list[float] = []

    def told(self, rank: int, event: dict[str, Any]) -> None:
        self.events.append((rank, event))
        self.seen.append(time.monotonic())

    def run(self, nproc: int = 1) -> int:
        return launch.run(self.job, Spread(nproc), on_event=self.told, worker=WORKER)

    def fails(self, kind: type[Exception], nproc: int = 1) -> str:
        """The text of its error; the job has to be over soon, and to leave nobody."""
        with pytest.raises(kind) as caught:
            self.run(nproc)
        assert type(caught.value) is kind
        assert self.seen, "it failed before it had begun"
        assert time.monotonic() - self.seen[0] < SOON
        self.left_nobody()
        return str(caught.value)

    def left_nobody(self) -> None:
        for file in self.job.folder.glob("pid_*"):
            assert not alive(file), file.name
        told = str(self.job.folder).encode()
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = entry.read_bytes()
            except OSError:
                continue
            assert told not in line, line


def test_one_process_runs_to_its_end(tmp_path):
    ran = Ran(tmp_path / "new" / "run", rank0=["end"])
    assert ran.run() == 0
    assert [(rank, event["event"]) for rank, event in ran.events] == [(0, "note"), (0, "end")]
    assert "now: end" in ran.job.output(0).read_text()
    assert Job.read(train_job.job_file(ran.job)) == ran.job
    ran.left_nobody()


def test_exit_codes_after_the_end_do_not_count(tmp_path):
    """MindSpore's shutdown was seen to fail when all was done."""
    assert Ran(tmp_path, rank0=["end", "signal SIGSEGV"]).run() == 0


def test_a_number_that_is_not_finite_is_exit_code_1(tmp_path):
    ran = Ran(tmp_path, rank0=["stopped", "exit 1"])
    assert ran.run() == 1
    assert ran.events[-1][1]["tensor"] == "fc.weight"


def test_what_an_earlier_start_said_is_not_told_again(tmp_path):
    Ran(tmp_path, rank0=["end"]).run()
    again = Ran(tmp_path, rank0=["end"])
    again.run()
    assert len(again.events) == 2


@pytest.mark.parametrize("kind", ["BadCheckpoint", "Unsupported", "WorkerFailed", "BadRecipe"])
def test_an_error_is_raised_as_the_class_it_names(tmp_path, kind):
    text = Ran(tmp_path, rank0=["error"], kind=kind).fails(getattr(errors, kind))
    assert text == "the sky is falling"


@pytest.mark.parametrize("kind", ["SystemExit", "annotations", "Path", None])
def test_an_error_of_no_known_class_is_a_failed_worker(tmp_path, kind):
    assert Ran(tmp_path, rank0=["error"], kind=kind).fails(WorkerFailed) == "the sky is falling"


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("signal SIGKILL", "the process was killed by SIGKILL (out of memory?) before it was done: now: signal"),
        ("signal SIGSEGV", "the process was killed by SIGSEGV before it was done: now: signal SIGSEGV"),
        ("exit 3", "the process ended with exit code 3 before it was done: now: exit 3"),
        ("exit 0", "the process ended with exit code 0 before it was done: now: exit 0"),
        ("raise", "ended with exit code 1 before it was done: ValueError: nobody caught this; its output is in"),
    ],
)
def test_a_death_without_words_is_explained(tmp_path, does, said):
    ran = Ran(tmp_path, rank0=["child", does])
    text = ran.fails(WorkerFailed)
    assert said in text
    assert str(ran.job.output(0)) in text


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadDestination, match="the run cannot be kept here"):
        Ran(tmp_path / "file" / "run").run()


def test_told_may_raise(tmp_path):
    ran = Ran(tmp_path, rank0=["child", "wait"])

    def told(rank: int, event: dict[str, Any]) -> None:
        while not (tmp_path / "pid_child").exists():
            time.sleep(0.01)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        launch.run(ran.job, on_event=told, worker=WORKER)
    ran.left_nobody()


# Several processes, under MindSpore's own launcher


@pytest.mark.full
def test_ranks_run_to_their_end(tmp_path, monkeypatch):
    monkeypatch.setenv("WORD", "of ")
    ran = Ran(tmp_path, rank0=["meet", "end"], rank1=["meet", "end", "exit 1"])
    assert ran.run(nproc=2) == 0
    assert [event["event"] for rank, event in ran.events if rank == 0] == ["note", "end"]
    notes = {rank: event for rank, event in ran.events if event["event"] == "note"}
    assert {rank: event["text"] for rank, event in notes.items()} == {0: "of 2", 1: "of 2"}
    assert "now: end" in ran.job.output(0).read_text()
    ran.left_nobody()


def test_a_rank_that_is_killed_ends_the_job_and_is_named(tmp_path):
    """Although its neighbour is the first to say something: that AllReduce failed."""
    ran = Ran(tmp_path, rank0=["child", "meet", "lonely"], rank1=["meet", "signal SIGKILL"])
    text = ran.fails(WorkerFailed, nproc=2)
    assert text.startswith("rank 1: the process was killed by SIGKILL (out of memory?) before it was done: now: signal")


@pytest.mark.full
def test_of_ranks_that_stop_the_one_that_names_a_tensor_is_told(tmp_path):
    ran = Ran(tmp_path, rank0=["meet", "stopped by the mean"], rank1=["meet", "stopped"])
    assert ran.run(nproc=2) == 1
    stops = [(rank, event) for rank, event in ran.events if event["event"] == "stopped"]
    assert [(rank, event["tensor"], event["text"]) for rank, event in stops] == [
        (1, "fc.weight", "rank 1: stopped at step 3")
    ]
    assert Follower(ran.job.log).events()[-1]["tensor"] == "fc.weight"


def test_a_rank_that_stops_alone_ends_the_job(tmp_path, monkeypatch):
    """The other one waits in a collective for it."""
    monkeypatch.setattr(launch, "ALONE", 1.0)
    ran = Ran(tmp_path, rank0=["meet", "child", "wait"], rank1=["meet", "stopped", "exit 1"])
    assert ran.run(nproc=2) == 1
    assert ran.events[-1][1]["text"] == "rank 1: stopped at step 3"
    ran.left_nobody()


@pytest.mark.full
def test_a_rank_with_an_error_ends_the_job_with_it(tmp_path):
    ran = Ran(tmp_path, rank0=["meet", "error"], rank1=["child", "wait"], kind="BadCheckpoint")
    assert ran.fails(BadCheckpoint, nproc=2) == "rank 0: the sky is falling"


@pytest.mark.full
@pytest.mark.parametrize(
    ("says", "said"),
    [
        ("RuntimeError: the port is taken", r"^scheduler: .* exit code 1 .*: RuntimeError: the port is taken; its"),
        (
            "[ERROR] … The node: 7 is timed out. It may …",
            r"^rank 7: the process no longer responds; the screen",
        ),
    ],
)
def test_a_scheduler_that_dies_ends_the_job(tmp_path, says, said):
    """It dies of a rank on another machine too, which was seen to take half a minute."""
    with pytest.raises(WorkerFailed, match=said):
        Ran(tmp_path, scheduler=says).run(nproc=2)


@pytest.fixture(params=[1, pytest.param(2, marks=pytest.mark.full)])
def parent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that waits for its ranks, of which the first has a child; they are all up."""
    code = f"""
from pathlib import Path
from msmigrate.training.run import launch
from msmigrate.training.options import Spread
from msmigrate.training.run.run_log import Follower
from msmigrate.training.run.train_job import Job
job = Job(recipe=Path("none.yaml"), folder=Path({str(tmp_path)!r}), gate={{"0": ["child", "wait"]}})
try:
    launch.run(job, Spread({request.param}), worker={WORKER!r})
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.glob("pid_*"))) <= request.param and time.monotonic() < deadline:
            time.sleep(0.05)
        yield process
        process.kill()


def test_ctrl_c_ends_all(parent, tmp_path):
    parent.send_signal(signal.SIGINT)
    assert parent.communicate(timeout=SOON)[0] == "interrupted\n"
    Ran(tmp_path).left_nobody()


def test_ranks_end_with_the_process_that_started_them(parent, tmp_path):
    """By the kernel: nobody else is left who could do it."""
    parent.kill()
    parent.wait()
    ranks = [file for file in tmp_path.glob("pid_*") if file.name != "pid_child"]
    deadline = time.monotonic() + SOON
    while any(alive(file) for file in ranks) and time.monotonic() < deadline:
        time.sleep(0.05)
    (tmp_path / "pid_child").unlink()  # what a rank starts itself is its own affair
    Ran(tmp_path).left_nobody()


def test_a_free_port_is_free():
    ports = {Spread(nproc=2).port for _ in range(5)}
    assert all(1024 < port < 65536 for port in ports)
    assert Spread(nproc=2, master_port=4711).port == 4711
    assert Spread(nproc=2, nnodes=2).port == launch.SEVERAL_MACHINES_PORT


@pytest.mark.parametrize(
    ("spread", "said"),
    [
        ({"nproc": 0}, "at least one process"),
        ({"nnodes": 2, "node_rank": 2, "master_addr": "10.0.0.1"}, "the machines are numbered 0 to 1"),
        ({"nnodes": 2}, "--master-addr 127.0.0.1 is a different machine on each of the 2"),
    ],
)
def test_spreads_that_nobody_can_start(tmp_path, spread, said):
    with pytest.raises(BadInput, match=said):
        launch.run(Job(recipe=Path("none.yaml"), folder=tmp_path), Spread(**spread))
    assert not list(tmp_path.iterdir())


def test_the_command_of_one_machine_of_several(tmp_path):
    job = Job(recipe=Path("r.yaml"), folder=tmp_path)
    spread = Spread(nproc=8, nnodes=2, node_rank=1, master_addr="10.0.0.1", master_port=9000)
    found = train_job.command(job, spread, spread.port)
    start = found.index("python")
    assert found[start:] == ["python", "-m", "msmigrate.training.run.mindspore_worker", str(tmp_path / "JOB.json")]
    options = dict(option[2:].split("=", 1) for option in found[:start] if option.startswith("--"))
    assert options == {
        "worker_num": "16",
        "local_worker_num": "8",
        "master_addr": "10.0.0.1",
        "master_port": "9000",
        "node_rank": "1",
        "log_dir": str(tmp_path / "ranks"),
        "worker_log_name": "rank",
        "tail_worker_log": "8",
        "join": "True",
        "cluster_time_out": "600",
    }
    assert list(spread.ranks) == list(range(8, 16))


def test_forms_that_are_shown(tmp_path):
    folder = tmp_path / "with space"
    job = Job(recipe=Path("r.yaml"), folder=folder, target="Ascend")
    alone = launch.launch_forms(job)
    assert [title for title, _ in alone] == ["one process"]
    assert shlex.split(alone[0][1])[1:] == ["-m", "msmigrate.training.run.mindspore_worker", str(folder / "JOB.json")]
    forms = dict(launch.launch_forms(job, Spread(nproc=4, nnodes=2, node_rank=1, master_addr="10.0.0.1")))
    assert list(forms) == ["msrun", "mpirun", "rank table"]
    assert "-n 8 -H 10.0.0.1:4,MACHINE1:4 " in forms["mpirun"]
    assert "for ((i = 4; i <= 7; i++)); do" in forms["rank table"]
    assert "DEVICE_ID=$((i - 4))" in forms["rank table"]
    for text in forms.values():
        checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
        assert checked.returncode == 0, checked.stderr
        assert f"'{folder}/JOB.json'" in text
    assert not folder.exists()
    assert [title for title, _ in launch.launch_forms(job.model_copy(update={"target": "CPU"}), Spread(2))] == ["msrun"]


def test_another_python_in_path_is_not_taken(tmp_path, monkeypatch):
    """Where the interpreter's folder has no `python`, as in /usr/bin, a script stands in for it."""
    interpreter = tmp_path / "python3.99"
    interpreter.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    found = train_job.python_first(tmp_path / "ranks")
    assert found == str(tmp_path / "ranks" / "bin")
    said = subprocess.run([f"{found}/python", "-c", "print(1 + 1)"], capture_output=True, text=True)
    assert said.stdout == "2\n"


def test_processes_of_a_job_are_found_by_their_token():
    token = "a token of this test"
    marked = subprocess.Popen(["sleep", "60"], env={**os.environ, processes.TOKEN: token})
    other = subprocess.Popen(["sleep", "60"])
    waiting = threading.Thread(target=marked.wait)  # or it stays as a zombie, which is not there any more either
    waiting.start()
    try:
        assert processes.end_all(token) == []
        assert marked.wait(timeout=10) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        marked.kill()
        other.kill()
        other.wait()
        waiting.join()
