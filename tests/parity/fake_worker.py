"""A worker that does as it is told: fake_worker.py WAY … JOB.json, which lies in the folder."""

import json
import os
import signal
import sys
import time
from pathlib import Path

way = sys.argv[1]
folder = Path(sys.argv[-1]).parent
(folder / f"{way}.pid").write_text(str(os.getpid()))


def say(kind: str, **facts: str) -> None:
    print(json.dumps({"kind": kind, **facts}), flush=True)


def progress(what: str, state: str = "working") -> None:
    say("progress", what=what, state=state)


if way == "waits":
    time.sleep(600)
elif way == "fails":
    print("Traceback\nValueError: the last line", file=sys.stderr)
    sys.exit(1)
elif way == "fails silently":
    sys.exit(3)
elif way == "is killed":
    os.kill(os.getpid(), signal.SIGKILL)
elif way == "explains":
    say("failure", error="BadRecipe", text="no such\nmodel")
    sys.exit(2)
elif way == "babbles":
    sys.stdout.buffer.write(b"\xff\xfe garbage\n{broken\n[1]\n" + b"[" * 5000 + b"\n")
    progress("babbling")
    sys.exit(1)
elif way == "ends at once":
    pass
elif way == "lies":
    say("ready", artifact="start.pth")  # and no start.pth
    time.sleep(600)
elif way == "interrupts":
    progress("interrupting")
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(600)
elif way == "hangs":
    progress("a step that never ends")
    print("the last thing in its log", file=sys.stderr, flush=True)
    time.sleep(600)
elif way == "waits for the other":
    progress("torch: waiting for MindSpore's steps", "waiting")
    time.sleep(600)
elif way == "keeps working":
    for step in range(12):
        progress(f"step {step}")
        time.sleep(0.25)
    sys.exit(7)
elif way == "chatters":
    while True:
        print("garbage without end" * 1000, flush=True)
elif way == "chatters without a line":
    while True:
        sys.stdout.write("x" * 100_000)
elif way == "runs out of memory":
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (2**28, 2**28))
    bytearray(2**30)
elif way == "has children":
    import subprocess

    same, other = (subprocess.Popen(["sleep", "600"], start_new_session=own) for own in (False, True))
    (folder / "same group.pid").write_text(str(same.pid))
    (folder / "own session.pid").write_text(str(other.pid))
    progress("step 1")
    time.sleep(600)
elif way == "fails midway":
    for trace, whole in (("torch-fp32", True), ("torch-fp64", False), ("replay", False)):
        (folder / trace).mkdir()
        (folder / trace / ("trace.json" if whole else "gradients-parameters.safetensors")).write_text("{}")
    time.sleep(0.5)
    sys.exit(1)
