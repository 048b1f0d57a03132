"""Runs scripts of the tests side by side, one for each framework; they wait for each other's files."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path


def run(folder: Path, *commands: Sequence[str | Path], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Run `SCRIPT WORDS…` to their ends; the first that fails fails the test, for the others would wait in vain.

    folder: where they run. meanwhile: what is done again and again until all have ended.
    """
    ended: queue.Queue[subprocess.CompletedProcess[str]] = queue.Queue()
    # one thread of torch's and MindSpore's each: tensors this small gain nothing from more, and two pools fight
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def to_its_end(command: Sequence[str | Path]) -> None:
        words = [sys.executable, *map(str, command)]
        ended.put(subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False))

    for command in commands:
        threading.Thread(target=to_its_end, args=(command,), daemon=True).start()
    left = len(commands)
    while left:
        meanwhile()
        try:
            done = ended.get(timeout=0.05)
        except queue.Empty:
            continue
        assert done.returncode == 0, f"{done.args[1]} ended with {done.returncode}:\n{done.stderr[-5000:]}"
        left -= 1
    meanwhile()
