"""Starts msmigrate's workers as forks of processes that have imported their framework already.

A test that compares two small nets spends more time on importing torch and MindSpore than on the nets. Here one process
for each framework imports it once, and every worker of this process's tests is a fork of it: with its own session,
working folder, environment and pipes, as Popen would start it; so is what warm_commands.py hands over. What has an
environment that is not the tests' own for the first time starts cold, and with `--cold` all does.

A fork of MindSpore's launches each operator itself. MindSpore has threads for that, which spin while they wait for one
another: where every core has a process of tests, two fifths of an eager step's time.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

from msmigrate import processes
from msmigrate.workers.worker import defer_compiler, prepare_mindspore

FRAMEWORKS = ("torch", "mindspore")
# the workers that are started most: their own imports take a forked one longer than a small net's step
PRELOADED = {
    "torch": (
        "msmigrate.parity.record.torch_worker",
        "msmigrate.parity.diagnosis.torch_diagnosis_worker",
        "msmigrate.migrate.analyze.torch_operators_worker",
    ),
    "mindspore": ("msmigrate.parity.record.mindspore_worker", "msmigrate.training.run.mindspore_worker"),
}
# what differs from worker to worker, or only says which test runs, and is not read while a framework is imported
PASSED_ON = {processes.TOKEN, "PYTHONUNBUFFERED", "PYTEST_CURRENT_TEST", "PWD", "OLDPWD", "COLUMNS", "LINES"}
PASSED_ON |= {"TORCHINDUCTOR_CACHE_DIR"}  # which torch sets where a test imports its compiler
PASSED_ON |= {"NO_COLOR", "FORCE_COLOR", "EXTENT"}  # which commands and the workers of tests read when they run
TESTS = Path(__file__).resolve().parent
Key = tuple[str | tuple[str, str], ...]  # a framework, and the variables that it is imported with
LARGEST = 1 << 17  # bytes of a request
ENDED = "the process that workers are forked from has ended; run the tests with --cold"
cold_start = processes.start


# In the process of the tests


class WarmWorkers:
    """The processes that workers are forked from, one for each framework and environment: the tests', or seen twice."""

    def __init__(self) -> None:
        self.seen: Counter[Key] = Counter()
        self.servers = dict[Key, Server]()
        self.usual = _imported_with(os.environ)
        self.starting = threading.Lock()  # commands of several threads
        self.starter = ThreadPoolExecutor(1)  # a process ends with the thread that has started it: this one stays
        self.forked = False  # whether this process is itself a fork, whose end would end what it starts

    def start(self, command: Sequence[str], **options: Any) -> Any:
        """Do what processes.start() does."""
        server = self.server(command, options["env"]) if "env" in options else None
        return cold_start(command, **options) if server is None else server.fork(command, options["env"], options)

    def server(self, command: Sequence[str], environment: Mapping[str, str]) -> Server | None:
        """The process to fork this command from; None for one that starts cold."""
        framework = _framework(command)
        if framework is None:
            return None
        key = (framework, *_imported_with(environment))
        with self.starting:
            self.seen[key] += 1
            self.start_servers()
            return self.servers.get(key)

    def start_servers(self) -> None:
        """Start the processes that are missing."""
        for key, times in self.seen.items():
            often = times > 1 or key[1:] == self.usual
            if often and key not in self.servers and not self.forked:
                environment = dict(pair for pair in key[1:] if isinstance(pair, tuple))
                self.servers[key] = self.starter.submit(Server, str(key[0]), environment).result()

    def end(self) -> None:
        self.starter.shutdown()
        for server in self.servers.values():
            server.channel.close()
            processes.end(server.process)


def _imported_with(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What a framework may read of an environment while it is imported."""
    return tuple(sorted((name, value) for name, value in environment.items() if name not in PASSED_ON))


def _framework(command: Sequence[str]) -> str | None:
    """What a worker of msmigrate, or a script of the tests, imports; None for any other command."""
    if list(command[:2]) == [sys.executable, "-m"] and command[2].startswith("msmigrate."):
        name = command[2].rpartition(".")[2]
        return next((framework for framework in FRAMEWORKS if name.startswith(f"{framework}_")), None)
    script = Path(command[1]) if len(command) > 1 and command[0] == sys.executable else Path()
    named = script.suffix == ".py" and TESTS in script.resolve().parents
    return next((framework for framework in FRAMEWORKS if named and framework in script.stem), None)


def _words(command: Sequence[str], folder: str) -> list[str]:
    """The module or the whole path of the script, and its arguments."""
    return list(command[2:]) if command[1] == "-m" else [str(Path(folder, command[1])), *command[2:]]


class Server:
    """One process that has imported a framework."""

    def __init__(self, framework: str, environment: Mapping[str, str]) -> None:
        self.channel, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self.process = cold_start(
                [sys.executable, __file__, framework, str(its.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
                env={**environment, "PYTHONUNBUFFERED": "1"},
            )

    def fork(self, command: Sequence[str], environment: Mapping[str, str], options: Mapping[str, Any]) -> Fork:
        pipes = {name: os.pipe() for name in ("stdin", "stdout", "stderr", "report")}
        there = [pipes["stdin"][0], *(pipes[name][1] for name in ("stdout", "stderr", "report"))]
        if options["stdin"] == subprocess.DEVNULL:
            os.close(there[0])
            there[0] = os.open(os.devnull, os.O_RDONLY)
        self._ask(_words(command, str(Path.cwd())), str(Path.cwd()), environment, there)
        return Fork(pipes["stdin"][1], *(pipes[name][0] for name in ("stdout", "stderr", "report")), options)

    def run(
        self,
        command: Sequence[str],
        folder: str,
        environment: Mapping[str, str],
        outputs: Sequence[int],
        timeout: float | None,
    ) -> int | None:
        """Run a script or a module to its end: its exit code, or None where the time was over."""
        report, its = os.pipe()
        self._ask(
            _words(command, folder), folder, environment, [os.open(os.devnull, os.O_RDONLY), *map(os.dup, outputs), its]
        )
        with open(report, encoding="utf-8") as lines:  # noqa: PTH123
            pid = int(lines.readline() or 0)
            if not pid:
                raise RuntimeError(ENDED)
            if select.select([report], [], [], timeout)[0]:
                return int(lines.readline() or -signal.SIGKILL)
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.SIGKILL)
            return None

    def _ask(self, words: list[str], folder: str, environment: Mapping[str, str], descriptors: list[int]) -> None:
        request = {"words": words, "folder": folder, "environment": dict(environment)}
        try:
            socket.send_fds(self.channel, [json.dumps(request).encode()], descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


class Fork:
    """A worker that was forked, as far as msmigrate uses its Popen."""

    def __init__(self, stdin: int, stdout: int, stderr: int, report: int, options: Mapping[str, Any]) -> None:
        errors = options.get("errors")
        self.stdin: IO[str] | None = open(stdin, "w", encoding="utf-8", errors=errors)  # noqa: SIM115
        if options["stdin"] == subprocess.DEVNULL:
            self.stdin.close()
            self.stdin = None
        self.stdout = open(stdout, encoding="utf-8", errors=errors)  # noqa: SIM115
        self.stderr = open(stderr, encoding="utf-8", errors=errors)  # noqa: SIM115
        self.returncode: int | None = None
        self._report = open(report, encoding="utf-8")  # noqa: SIM115
        self.pid = int(self._report.readline() or 0)  # an empty line: the server has ended
        if not self.pid:
            raise RuntimeError(ENDED)

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.returncode = int(self._report.readline() or -signal.SIGKILL)
            self._report.close()
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, signal.SIGKILL)


# In the process that workers are forked from


def serve(framework: str, channel: socket.socket) -> NoReturn:
    """Import the framework, and fork a worker for every request, until the process of the tests has ended."""
    if framework == "mindspore":
        prepare_mindspore()
    module: Any = __import__(framework)
    if framework == "mindspore":
        module.runtime.launch_blocking()
    else:
        defer_compiler()  # as msmigrate's own workers do: every optimizer, and meta device, would import it
        importlib.import_module("torch.fx.experimental.symbolic_shapes")  # of the first operator on the meta device
    for worker in PRELOADED[framework]:
        importlib.import_module(worker)
        del sys.modules[worker]  # which runs as a program of its own; what it imports stays
    table = importlib.import_module("msmigrate.mappings.table")
    for kind in table.KINDS:  # in which every recipe's parts are looked up
        table.built_in(kind)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that watch
    while True:
        request, descriptors, _, _ = socket.recv_fds(channel, LARGEST, 4)
        if not request:
            os._exit(0)
        if os.fork() == 0:
            channel.close()
            _watch(json.loads(request), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _watch(request: dict[str, Any], stdin: int, stdout: int, stderr: int, report: int) -> NoReturn:
    """Fork the worker; report its number, and how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    processes.end_with_parent()
    here = os.getpid()
    worker = os.fork()
    if worker == 0:
        os.close(report)
        processes.end_with_parent(here)
        _work(request, stdin, stdout, stderr)
    for descriptor in (stdin, stdout, stderr):
        os.close(descriptor)
    os.write(report, f"{worker}\n".encode())
    _, status = os.waitpid(worker, 0)
    os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _work(request: dict[str, Any], *descriptors: int) -> NoReturn:
    """Be `python -m MODULE WORDS…`, or `python SCRIPT WORDS…`."""
    os.setsid()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    _draw_anew()
    sys.argv, script = request["words"], request["words"][0].endswith(".py")
    sys.path[0] = str(Path(sys.argv[0]).parent) if script else request["folder"]
    code = 0
    try:
        if script:
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _draw_anew() -> None:
    """Begin with random numbers of one's own, as a process that imports NumPy does."""
    import numpy as np

    np.random.seed()


if __name__ == "__main__":
    serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
