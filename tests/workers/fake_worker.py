"""A worker that does one thing: fake_worker.py WAY [FOLDER]; its number is left in FOLDER/WAY.pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from msmigrate.errors import BadRecipe
from msmigrate.workers.messages import Event, State
from msmigrate.workers.worker import answer, answer_each, progress, ready, send

WAYS = {}


def way(function):
    WAYS[function.__name__] = function
    return function


@way
def says_everything():
    print("noise of a framework")
    os.write(1, b"noise from C\n")
    progress("images", done=1, total=3)
    ready(Path("somewhere") / "start.pth")
    send(Event("listens", {"port": 1500}))
    return {"answer": [1, None, "é"]}


@way
def has_much_to_say():
    return [["é\n" * 1000, number] for number in range(500)]


@way
def has_a_set():
    return list({f"name {number}" for number in range(50)})


@way
def ends():
    pass


@way
def raises_its_own():
    raise BadRecipe("no such\nmodel")


@way
def raises_another():
    raise ValueError("not so")


@way
def raises_without_a_word():
    raise ValueError


@way
def exits():
    print("the last words", file=sys.stderr)
    sys.exit(3)


@way
def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)


@way
def runs_out_of_memory():
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (2**28, 2**28))
    bytearray(2**30)


@way
def hangs():
    progress("a step that never ends")
    time.sleep(600)


@way
def waits():
    progress("the other's turn", State.WAITING)
    time.sleep(600)


@way
def works():
    for step in range(8):
        progress(f"step {step}")
        time.sleep(0.25)
    raise ValueError("worked in vain")


@way
def chatters():
    while True:
        print("garbage without end" * 1000, flush=True)


@way
def chatters_without_a_line():
    while True:
        sys.stdout.write("x" * 100_000)


@way
def has_children():
    folder = Path(sys.argv[2])
    same, other = (subprocess.Popen(["sleep", "600"], start_new_session=own) for own in (False, True))
    (folder / "same.pid").write_text(str(same.pid))
    (folder / "other.pid").write_text(str(other.pid))
    progress("waiting with children")
    time.sleep(600)


KEPT: list[int] = []


@way
def keeps():
    KEPT.append(len(KEPT))
    return [os.getpid(), KEPT, sys.stdin.read()]


if __name__ == "__main__":
    if len(sys.argv) > 2:
        (Path(sys.argv[2]) / f"{sys.argv[1]}.pid").write_text(str(os.getpid()))
    if sys.argv[1] == "does_each":
        answer_each(lambda words: answer(WAYS[words[0]]))
    answer(WAYS[sys.argv[1]])
