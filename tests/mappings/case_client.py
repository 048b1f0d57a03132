"""Starts the two workers of case_server.py, asks them, and starts one again that died, hangs or cannot be trusted."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mapping_cases import Results
from msmigrate.mappings.rows import Case, Row
from varied_cases import as_json

HERE = Path(__file__).parent
START = 180.0  # seconds to import a framework, on two busy cores
PATIENCE = 120.0  # seconds for one case; compiling is slow


class Stopped(Exception):
    """A worker died or said nothing for too long; the text has the end of its log."""


class Server:
    """One framework's process; started when it is first asked.

    arguments: for its command line. environment: variables besides this process's own. patience: seconds for one case.
    """

    def __init__(
        self,
        framework: str,
        folder: Path,
        arguments: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.framework, self.folder, self.arguments, self.patience = framework, folder, arguments, patience
        limit = {"ONEDNN_MAX_CPU_ISA": "AVX2"} if framework == "mindspore" else {}
        self.environment = {**limit, **os.environ, **(environment or {})}
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def ask(self, name: str, row: Row, case: Case, modes: Sequence[str], *, fresh: bool = False) -> None:
        """Send one case; `answer` must be read before the next. Raises Stopped where the worker cannot be started."""
        if self.process is None:
            self._start()
        asked = {
            "name": name,
            "row": row.torch,
            "case": as_json(case),
            "modes": list(modes),
            "fresh": fresh,
            "out": str(self._arrays()),
        }
        assert self.process is not None and self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(asked).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._stopped("died") from None

    def answer(self) -> Results:
        """What the worker found. Raises Stopped.

        After an exception MindSpore may differentiate wrongly, so that its worker ends then, and the next case has a
        new one.
        """
        results = Results()
        results.errors = self._line(self.patience)["errors"]
        with np.load(self._arrays()) as arrays:
            results.arrays = dict(arrays)
        if results.errors and self.framework == "mindspore":
            self.close()
        return results

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    pipe.close()
            self.process = None

    def _arrays(self) -> Path:
        return self.folder / f"{self.framework}.npz"

    def _log(self) -> Path:
        return self.folder / f"{self.framework}_log.txt"

    def _start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(HERE / f"{self.framework}_case_server.py"), *self.arguments]
        with self._log().open("wb") as log:
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
            # MindSpore leaves compiler notes in the working directory.
            self.process = subprocess.Popen(command, cwd=self.folder, env=self.environment, bufsize=0, **pipes)
        self.starts += 1
        self._line(START)

    def _line(self, seconds: float) -> dict[str, Any]:
        """The next line of the worker as JSON. Raises Stopped, and ends the worker, when it dies or takes too long."""
        assert self.process is not None and self.process.stdout is not None
        end, read = time.monotonic() + seconds, b""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            while not read.endswith(b"\n"):
                if not waiting.select(max(0.0, end - time.monotonic())):
                    raise self._stopped(f"said nothing for {seconds:.0f} s")
                part = self.process.stdout.read(1 << 16)
                if not part:
                    raise self._stopped("died")
                read += part
        answer: dict[str, Any] = json.loads(read)
        return answer

    def _stopped(self, how: str) -> Stopped:
        self.close()
        return Stopped(f"the {self.framework} worker {how}:\n{self._log().read_text(errors='replace')[-3000:]}")
