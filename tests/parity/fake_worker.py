"""A worker that does as it is told: fake_worker.py WAY … RECIPE FOLDER OPTIONS; the folder is the last plain word."""

import json
import os
import signal
import sys
import time
from pathlib import Path

way = sys.argv[1]
folder = Path([word for word in sys.argv[2:] if not word.startswith("--")][-1])
(folder / f"{way}.pid").write_text(str(os.getpid()))


def say(**what: str) -> None:
    print("@msmigrate " + json.dumps(what), flush=True)


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
    say(error="BadRecipe: no such\nmodel", kind="BadRecipe")
    sys.exit(2)
elif way == "babbles":
    sys.stdout.buffer.write(b"\xff\xfe garbage\n@msmigrate {broken\n@msmigrate [1]\n@msmigrate " + b"[" * 5000 + b"\n")
    say(doing="babbling")
    sys.exit(1)
elif way == "ends at once":
    pass
elif way == "lies":
    say(event="start")  # and no start.pth
    time.sleep(600)
elif way == "interrupts":
    say(doing="interrupting")
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(600)
elif way == "hangs":
    say(doing="a step that never ends")
    print("the last thing in its log", file=sys.stderr, flush=True)
    time.sleep(600)
elif way == "waits for the other":
    say(doing="torch: waiting for MindSpore's steps")
    time.sleep(600)
elif way == "keeps working":
    for step in range(12):
        say(doing=f"step {step}")
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
    say(doing="step 1")
    time.sleep(600)
elif way == "fails midway":
    for trace, whole in (("torch-fp32", True), ("torch-fp64", False), ("replay", False)):
        (folder / trace).mkdir()
        (folder / trace / ("trace.json" if whole else "gradients-parameters.safetensors")).write_text("{}")
    time.sleep(0.5)
    sys.exit(1)
