"""Runs what tests start with subprocess.run() as forks: msmigrate's commands, its workers, and the tests' own scripts.

A command is a fork of the process of the tests, which has imported msmigrate, and so its workers are forks, too; a
script with a framework's name in its own is one of the process that has imported that. All else, and all that is
started by Popen, starts as it does for users; so does everything with `--cold`.
"""

from __future__ import annotations

import ast
import logging
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import warm_workers
from msmigrate import processes

UNDERSTOOD = {"capture_output", "check", "cwd", "env", "stderr", "stdin", "stdout", "text", "timeout"}
cold_run = subprocess.run


class WarmCommands:
    """What takes the place of subprocess.run() while tests run."""

    def __init__(self, workers: warm_workers.WarmWorkers) -> None:
        self.workers = workers

    def run(self, command: Any, **options: Any) -> subprocess.CompletedProcess[Any]:
        """Do what subprocess.run() does."""
        words = [os.fspath(word) for word in command] if isinstance(command, (list, tuple)) else []
        environment = dict(os.environ if options.get("env") is None else options["env"])
        plain = set(options) <= UNDERSTOOD and words[:1] == [sys.executable]
        plain = plain and options.get("stdin") in (None, subprocess.DEVNULL)  # a fork reads nothing
        plain = plain and environment.get("PYTHONPATH") == os.environ.get("PYTHONPATH")
        server = self.workers.server(words, environment) if plain else None
        if server is None and not (plain and words[1:3] == ["-m", "msmigrate"]):
            return cold_run(command, **options)
        folder = os.fspath(options.get("cwd") or Path.cwd())
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            outputs = [_output(options, "stdout", out, 1), _output(options, "stderr", err, 2)]
            outputs[1] = outputs[0] if options.get("stderr") == subprocess.STDOUT else outputs[1]
            if server is not None:
                ended = server.run(words, folder, environment, outputs, options.get("timeout"))
            else:
                ended = self._command(words[3:], folder, environment, outputs, options.get("timeout"))
            found = {"stdout": _read(out, options), "stderr": _read(err, options)}
        kept = {name: text for name, text in found.items() if options.get("capture_output") or options.get(name) == -1}
        if ended is None:
            raise subprocess.TimeoutExpired(command, options["timeout"], kept.get("stdout"), kept.get("stderr"))
        done = subprocess.CompletedProcess(command, ended, kept.get("stdout"), kept.get("stderr"))
        if options.get("check"):
            done.check_returncode()
        return done

    def _command(
        self, words: list[str], folder: str, environment: Mapping[str, str], outputs: list[int], timeout: float | None
    ) -> int | None:
        """Run `python -m msmigrate WORDS…`: its exit code, or None where the time was over."""
        self.workers.start_servers()
        here, before = os.getpid(), Counter(self.workers.seen)
        with tempfile.TemporaryFile() as started:
            process = os.fork()
            if process == 0:
                processes.end_with_parent(here)
                self.workers.forked = True
                code = _be(words, folder, environment, outputs)
                started.write(repr([*(self.workers.seen - before).items()]).encode())
                started.flush()
                os._exit(code)
            end = time.monotonic() + (timeout or 3600)
            while time.monotonic() < end:
                number, status = os.waitpid(process, os.WNOHANG)
                if number:
                    started.seek(0)
                    self.workers.seen += Counter(dict(ast.literal_eval(started.read().decode() or "[]")))
                    return os.waitstatus_to_exitcode(status)
                time.sleep(0.005)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return None


def _output(options: Mapping[str, Any], name: str, kept: IO[bytes], number: int) -> int:
    """The descriptor that a process writes to in place of its own."""
    wanted = options.get(name)
    if options.get("capture_output") or wanted in (subprocess.PIPE, subprocess.DEVNULL, subprocess.STDOUT):
        return kept.fileno()  # what goes nowhere is not read
    return number if wanted is None else int(wanted if isinstance(wanted, int) else wanted.fileno())


def _read(kept: IO[bytes], options: Mapping[str, Any]) -> str | bytes:
    kept.seek(0)
    found = kept.read()
    return found.decode() if options.get("text") else found


def _be(words: list[str], folder: str, environment: Mapping[str, str], outputs: list[int]) -> int:
    """Be that command, with nothing of pytest's around it, and give its exit code."""
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, descriptor in enumerate((nothing, *map(os.dup, outputs))):
            os.dup2(descriptor, number)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, "w" if n else "r", encoding="utf-8") for n in range(3))
        logging.root.handlers.clear()
        warnings.resetwarnings()
        for ignored in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", ignored)
        warnings.showwarning = _shown
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        sys.path.insert(0, folder)
        sys.argv = ["msmigrate", *words]
        runpy.run_module("msmigrate", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _shown(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))
