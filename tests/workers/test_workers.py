"""What workers say arrives, and nothing else does; one that stops, hangs or floods is one line, and nothing is left."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msmigrate.errors import BadRecipe, WorkerFailed
from msmigrate.workers.messages import Event, Failure, Message, Progress, Ready, Result, State, decode, encode
from msmigrate.workers.parent import Host, Silent, Stopped, Worker, Workers, _keep, call

HERE = Path(__file__).parent


def fake(way: str, *more: str) -> list[str]:
    return [sys.executable, str(HERE / "fake_worker.py"), way, *more]


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def left(folder: Path) -> list[str]:
    return [file.name for file in folder.glob("*.pid") if alive(int(file.read_text()))]


def run(folder: Path, one: str, other: str, timeout: float | None = None) -> list[tuple[str, Message]]:
    """What two workers say; nothing of them is left."""
    said = []
    try:
        with Workers(timeout) as workers:
            workers.start("one", fake(one, str(folder)), folder / "one.log")
            workers.start("other", fake(other, str(folder)), folder / "other.log")
            for worker, message in workers.messages():
                said.append((worker.name, message))
    finally:
        assert not left(folder)
    return said


SAID = [
    Progress("step 1"),
    Progress("images", State.WAITING, 3, 9),
    Ready("start.pth"),
    Result({"a": [1, None, "é\n"]}),
    Result(None),
    Failure("BadRecipe", "no such\nmodel"),
    Event("listens", {"port": 1}),
]


@pytest.mark.parametrize("message", SAID, ids=lambda message: type(message).__name__)
def test_a_message_is_one_line_that_is_read_back(message: Message) -> None:
    line = encode(message)
    assert line.endswith("\n") and line.count("\n") == 1
    assert decode(line) == message


@pytest.mark.parametrize(
    "line",
    [
        "",
        "noise",
        "[1, 2]",
        "{broken",
        "[" * 5000,
        '{"kind": "hello"}',
        '{"what": "step 1"}',
        '{"kind": "progress"}',
        '{"kind": "progress", "what": 1}',
        '{"kind": "progress", "what": "x", "state": "odd"}',
        '{"kind": "progress", "what": "x", "done": "1"}',
        '{"kind": "progress", "what": "x", "more": 1}',
        '{"kind": "ready", "artifact": null}',
        '{"kind": "failure", "error": "X"}',
        '{"kind": "event", "name": "x", "facts": []}',
        '{"kind": ["progress"], "what": "x"}',
    ],
)
def test_what_is_no_message_is_none(line: str) -> None:
    assert decode(line) is None


def test_only_errors_of_ours_are_raised_again() -> None:
    assert Failure("BadRecipe", "x").kind is BadRecipe
    assert Failure("SystemExit", "x").kind is Failure("annotations", "x").kind is None


def test_what_a_worker_says_arrives_and_what_is_printed_goes_to_its_log(tmp_path: Path) -> None:
    heard: list[tuple[str, Message]] = []
    log = tmp_path / "log"
    answer = call("the torch process", fake("says_everything"), log, lambda *said: heard.append(said))
    assert answer == {"answer": [1, None, "é"]}
    assert heard == [
        ("the torch process", Progress("images", State.WORKING, 1, 3)),
        ("the torch process", Ready("start.pth")),
        ("the torch process", Event("listens", {"port": 1500})),
    ]
    assert sorted(log.read_text().splitlines()) == ["noise from C", "noise of a framework"]


def test_a_log_whose_folder_is_gone_is_done_without(tmp_path: Path) -> None:
    """A command that was interrupted as a worker started printed a traceback of the thread that keeps its log."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        worker = Worker("torch", process, tmp_path / "removed" / "log", time.monotonic())
    _keep(worker, io.StringIO("the last line\n"))
    assert worker.last_words() == "the last line"


def test_a_large_answer_arrives_whole() -> None:
    answer = call("the torch process", fake("has_much_to_say"))
    assert answer == [["é\n" * 1000, number] for number in range(500)]


def test_a_worker_without_an_answer_returns_none() -> None:
    assert call("the torch process", fake("ends")) is None


ENDINGS = {
    "raises_its_own": (BadRecipe, "the other side stopped: no such model", "no such\nmodel"),
    "raises_another": (WorkerFailed, "the other side stopped: not so", "the torch process failed: ValueError: not so"),
    "raises_without_a_word": (WorkerFailed, "the other side stopped, exit code 2: ValueError", None),
    "exits": (WorkerFailed, "the other side stopped, exit code 3: the last words", None),
    "is_killed": (WorkerFailed, "the other side stopped, killed by signal 9 (out of memory?): it said nothing", None),
    "runs_out_of_memory": (
        WorkerFailed,
        "the other side stopped, exit code 2 (out of memory?): MemoryError",
        None,
    ),
}


def test_a_host_does_each_job_in_a_fork_in_which_nothing_is_left_of_the_others() -> None:
    with Host(fake("does_each")) as host:
        found = [host.call("the torch process", ["keeps"]) for _ in range(3)]
        assert host.call("the torch process", ["ends"]) is None
        assert host.call("the torch process", ["has_much_to_say"])[499][1] == 499
    assert [kept for _, kept, _ in found] == [[0]] * 3 and len({pid for pid, *_ in found}) == 3
    assert {given for *_, given in found} == {""}  # the jobs are for the host to read
    assert not any(alive(pid) for pid, *_ in found)


@pytest.mark.parametrize("way", [way for way in ENDINGS if way != "runs_out_of_memory"])
def test_a_host_ends_as_its_job_does(way: str) -> None:
    kind, words, alone = ENDINGS[way]
    words = alone or words.replace("the other side", "the torch process")
    with Host(fake("does_each")) as host:
        assert host.call("another", ["says_everything"])
        with pytest.raises(kind) as error:
            host.call("the torch process", [way])
    assert str(error.value) == words


def test_a_host_and_its_job_end_with_their_parent(tmp_path: Path) -> None:
    code = f"""if True:
        from msmigrate.workers.parent import Host
        Host({fake("does_each", str(tmp_path))}).call("the torch process", ["has_children", {str(tmp_path)!r}])
    """
    parent = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while len([f for f in tmp_path.glob("*.pid") if f.read_text()]) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "does_each.pid" in left(tmp_path)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 5
    while "does_each.pid" in left(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    remaining = left(tmp_path)
    for name in remaining:
        os.kill(int((tmp_path / name).read_text()), signal.SIGKILL)
    assert "does_each.pid" not in remaining


@pytest.mark.parametrize("way", ENDINGS)
def test_one_that_stops_is_one_line_of_its_own_class_and_ends_the_other(tmp_path: Path, way: str) -> None:
    kind, words, alone = ENDINGS[way]
    with pytest.raises(kind) as stopped:
        run(tmp_path, "hangs", way)
    assert stopped.type in (kind, Stopped) and str(stopped.value) == words
    with pytest.raises(kind) as stopped:
        call("the torch process", fake(way))
    assert stopped.type in (kind, Stopped)
    assert str(stopped.value) == (alone or words.replace("other side", "torch process"))


def test_one_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(Silent) as stopped:
        run(tmp_path, "hangs", "waits", 1.0)
    assert str(stopped.value) == (
        "the one side has reported nothing for 1 s and was ended, while at 'a step that never ends': it said nothing; "
        "if it only needs longer, give a larger --timeout"
    )


def test_where_both_wait_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(Silent, match="side has reported nothing for 1 s"):
        run(tmp_path, "waits", "waits", 1.0)


def test_progress_of_one_is_patience_with_both(tmp_path: Path) -> None:
    with pytest.raises(WorkerFailed, match="the one side stopped: worked in vain"):
        run(tmp_path, "works", "waits", 1.5)


@pytest.mark.parametrize("way", ["chatters", "chatters_without_a_line"])
def test_chatter_is_no_progress_and_does_not_fill_the_disk(tmp_path: Path, way: str) -> None:
    with pytest.raises(Silent, match="the other side has reported nothing for 1 s"):
        run(tmp_path, "waits", way, 1.0)
    assert (tmp_path / "other.log").stat().st_size < 11_000_000


def test_what_a_worker_started_ends_with_it(tmp_path: Path) -> None:
    with pytest.raises(Silent):
        run(tmp_path, "has_children", "waits", 1.0)
    assert len(list(tmp_path.glob("*.pid"))) == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_a_parent_that_a_signal_ends(tmp_path: Path, number: int) -> None:
    code = f"""if True:
        from pathlib import Path
        from msmigrate import processes
        from msmigrate.workers.parent import Workers
        with processes.signals_raised(), Workers() as workers:
            workers.start("one", {fake("has_children", str(tmp_path))})
            workers.start("other", {fake("waits", str(tmp_path))})
            list(workers.messages())
    """
    parent = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while len([f for f in tmp_path.glob("*.pid") if f.read_text()]) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    parent.send_signal(number)
    parent.communicate(timeout=30)
    deadline = time.monotonic() + 5
    while (remaining := left(tmp_path)) and time.monotonic() < deadline:
        if number == signal.SIGKILL and remaining == ["other.pid"]:
            break
        time.sleep(0.05)
    for name in remaining:
        os.kill(int((tmp_path / name).read_text()), signal.SIGKILL)
    # after kill -9 nobody is left to look for what a worker has put into another session
    assert not {"has_children.pid", "waits.pid"} & set(remaining)
    assert number == signal.SIGKILL or not remaining


def test_a_command_that_is_not_there_leaves_no_child(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), Workers() as workers:
        workers.start("one", fake("waits", str(tmp_path)))
        workers.start("other", ["/no/such/command"])
    assert not left(tmp_path)


def test_last_words_are_one_printable_line(tmp_path: Path) -> None:
    for content, words in ((r"\n \n", "it said nothing"), (r"one\ntwo\n\n", "two"), (r"\x1b[31mred\x07", "?[31mred?")):
        code = f"import sys; sys.stderr.write('{content}'); sys.exit(1)"
        with pytest.raises(WorkerFailed) as stopped:
            call("the torch process", [sys.executable, "-c", code])
        assert str(stopped.value) == f"the torch process stopped, exit code 1: {words}"
    with pytest.raises(WorkerFailed) as stopped:
        call("the torch process", [sys.executable, "-c", "import sys; sys.stderr.write('x' * 3_000_000); sys.exit(1)"])
    assert str(stopped.value).endswith("x" * 500) and len(str(stopped.value)) < 600


def test_leave_flushes_and_gives_the_status() -> None:
    program = (
        "import atexit; from msmigrate.workers.worker import leave;"
        "atexit.register(print, 'shutdown'); print('result', end=''); leave(3)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "result", "")


def test_sets_of_texts_have_one_order_in_the_processes_of_both_frameworks(tmp_path: Path) -> None:
    """A model's outputs may be in the order of one, and were compared with others."""
    said = run(tmp_path, "has_a_set", "has_a_set")
    one, other = (message for _, message in said if isinstance(message, Result))
    assert one == other
