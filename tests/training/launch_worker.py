"""A rank without a framework: `python launch_worker.py JOB.json` does what the job's `gate` says for its rank.

Under msrun it is started as the scheduler too, which waits as MindSpore's does.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from msmigrate.training.run.launch import end_with_launcher

FOREVER = 120


def main() -> None:
    """Do what the job says."""
    end_with_launcher()
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder, doing = Path(job["folder"]), job["gate"]
    rank = os.environ.get("RANK_ID", "0")
    if os.environ.get("MS_ROLE") == "MS_SCHED":
        if "scheduler" in doing:
            sys.exit(doing["scheduler"])
        time.sleep(FOREVER)
    (folder / f"pid_{rank}").write_text(str(os.getpid()), encoding="utf-8")
    with (folder / "ranks" / f"rank_{rank}.jsonl").open("a", buffering=1) as events:

        def say(event: str, **facts: object) -> None:
            events.write(json.dumps({"event": event, "time": time.time(), **facts}) + "\n")

        say("note", text=f"{os.environ.get('WORD', '')}{job['processes']}", cores=len(os.sched_getaffinity(0)))
        for what in doing.get(rank, ["wait"]):
            print(f"now: {what}", flush=True)
            if what == "wait":
                time.sleep(FOREVER)
            elif what == "child":
                child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({FOREVER})"])
                (folder / "pid_child").write_text(str(child.pid), encoding="utf-8")
            elif what == "meet":  # the others have been started too
                deadline = time.monotonic() + FOREVER
                while len(list(folder.glob("pid_[0-9]"))) < job["processes"] and time.monotonic() < deadline:
                    time.sleep(0.05)
            elif what == "end":
                say("end", steps=3)
            elif what == "stopped":
                say("stopped", step=3, tensor="fc.weight", text="stopped at step 3")
            elif what == "stopped by the mean":
                say("stopped", step=3, tensor=None, text="stopped at step 3; this process holds none")
            elif what == "error":
                say("error", kind=doing["kind"], text="the sky\n  is falling")
                sys.exit(2)
            elif what == "lonely":  # as a rank whose neighbour has died
                while _alive(folder / "pid_1"):
                    time.sleep(0.01)
                say("error", kind="WorkerFailed", text="Launch kernel failed, name:Default/AllReduce-op6")
                sys.exit(2)
            elif what == "raise":
                raise ValueError("nobody caught this")
            elif what.startswith("exit "):
                os._exit(int(what.split()[1]))
            elif what.startswith("signal "):
                os.kill(os.getpid(), signal.Signals[what.split()[1]])


def _alive(file: Path) -> bool:
    stat = Path("/proc", file.read_text(encoding="utf-8"), "stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


if __name__ == "__main__":
    main()
