"""A server of MindSpore's dataset cache, started for this process and stopped with it.

Decoded images are kept there from the first epoch on. The server is a daemon, which `dataset-cache` starts and stops.
It gets a free port, so that somebody else's server is neither used nor stopped; and a shell that waits for this process
to end stops it, so that it ends even if this process is killed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from ... import temporary
from ...errors import Unsupported, WorkerFailed
from ...processes import TOKEN

_TRIES = 3  # another process may take the free port before the server does
_SECONDS = 60
_ERRORS_ONLY = "3"
# waits for the end of its input, which comes when the process at the other end of the pipe ends
_WHEN_WE_END = 'read -r _; rm -rf -- "$0"; exec "$@" >/dev/null 2>&1'


class CacheServer:
    """A running cache server; `port` is where it listens on this machine, `folder` is removed when it stops.

    Raises Unsupported where this MindSpore has no cache server, and WorkerFailed where it cannot be started.
    """

    def __init__(self) -> None:
        self._program = program()
        self.port = self._start()
        self.folder = temporary.new_name("cache")
        temporary.make(self.folder)
        stop = [*self._program, "--stop", "--port", str(self.port)]
        self._guard = subprocess.Popen(
            ["sh", "-c", _WHEN_WE_END, str(self.folder), *stop],
            stdin=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,  # an interruption from the keyboard ends this process first
        )

    def session(self) -> int:
        """The number of a new session, under which a pipeline's rows are kept."""
        done = self._run("--generate_session", "--port", str(self.port))
        numbers = re.findall(r"\d+", done.stdout)
        if done.returncode or not numbers:
            raise WorkerFailed(f"MindSpore's cache server on port {self.port} gave no session: {_said(done)}")
        return int(numbers[-1])

    def close(self) -> None:
        """Stop the server, which frees its memory; a few seconds."""
        if self._guard.stdin is not None:
            with suppress(BrokenPipeError):
                self._guard.stdin.close()
        self._guard.wait()

    def _start(self) -> int:
        for _ in range(_TRIES):
            port = _free_port()
            done = self._run("--start", "--port", str(port), "--loglevel", _ERRORS_ONLY)
            if done.returncode == 0:
                return port
        raise WorkerFailed(
            f"MindSpore's cache server does not start: {_said(done)}; set data.cache: false to do without it"
        )

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self._program, *arguments]
        try:
            return subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, env=_environment()
            )
        except subprocess.TimeoutExpired:
            raise WorkerFailed(f"{' '.join(command)} gave no answer in {_SECONDS} s: set data.cache: false") from None
        except OSError as error:
            raise WorkerFailed(f"{command[0]} cannot be run: {error.strerror}; set data.cache: false") from error


@cache
def server() -> CacheServer:
    """The server of this process, started when it is first needed."""
    return CacheServer()


def program() -> list[str]:
    """The command that manages cache servers.

    MindSpore's own program, which answers at once; where the installation left it without execute permission, the
    console script next to this Python, which sets that permission and imports MindSpore to do so. Raises Unsupported
    without one.
    """
    folder = _mindspore()
    binary = folder / "utils" / "bin" / "dataset-cache"
    script = Path(sys.executable).with_name("dataset-cache")
    if os.access(binary, os.X_OK) and os.access(binary.with_name("dataset-cache-server"), os.X_OK):
        return [str(binary)]
    if binary.is_file() and os.access(script, os.X_OK):
        return [str(script)]
    raise Unsupported(f"data.cache: this MindSpore comes without its cache server ({binary}): set data.cache: false")


def _mindspore() -> Path:
    found = importlib.util.find_spec("mindspore")
    if found is None or found.origin is None:
        raise Unsupported("data.cache: MindSpore is not installed for this Python: pip install mindspore")
    return Path(found.origin).parent


def _environment() -> dict[str, str]:
    """The environment that MindSpore's console script sets: where libpython may be, and a library to load first.

    Without the job's token: a server that is killed with the job would leave 4 GB of shared memory reserved for ever.
    """
    folder = _mindspore()
    places = [str(folder.parents[2]), os.environ.get("LD_LIBRARY_PATH", "")]
    first = folder / "lib" / "libnnacl.so"
    return {
        **{name: value for name, value in os.environ.items() if name != TOKEN},
        "LD_LIBRARY_PATH": ":".join(place for place in places if place),
        **({"LD_PRELOAD": str(first)} if first.is_file() else {}),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _said(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
    return lines[0] if lines else f"exit code {done.returncode}"
