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
