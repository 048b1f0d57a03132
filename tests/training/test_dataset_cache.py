"""The cache server: found, started, and gone with the process that started it, even a killed one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msmigrate.errors import Unsupported, WorkerFailed
from msmigrate.processes import TOKEN
from msmigrate.training.data import dataset_cache

WORKER = Path(__file__).with_name("dataset_cache_mindspore_worker.py")


def installation(folder: Path, *, runnable: bool) -> Path:
    """A folder that looks like MindSpore's, with a cache program that fails."""
    programs = folder / "lib" / "python3" / "site-packages" / "mindspore" / "utils" / "bin"
    programs.mkdir(parents=True)
    for name in ("dataset-cache", "dataset-cache-server"):
        (programs / name).write_text("#!/bin/sh\necho 'Network error. No port is free' >&2\nexit 1\n", encoding="utf-8")
        (programs / name).chmod(0o755 if runnable else 0o644)
    return programs.parents[1]


def test_a_mindspore_without_a_cache_server_is_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset_cache, "_mindspore", lambda: tmp_path)
    with pytest.raises(
        Unsupported, match=r"comes without its cache server \(.*dataset-cache\): set data\.cache: false"
    ):
        dataset_cache.CacheServer()


def test_the_console_script_is_taken_where_the_program_may_not_be_run(tmp_path, monkeypatch):
    mindspore = installation(tmp_path, runnable=False)
    script = tmp_path / "dataset-cache"
    script.touch(mode=0o755)
    monkeypatch.setattr(dataset_cache, "_mindspore", lambda: mindspore)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert dataset_cache.program() == [str(script)]


def test_a_server_that_does_not_start_is_told_in_one_line(tmp_path, monkeypatch):
    mindspore = installation(tmp_path, runnable=True)
    monkeypatch.setattr(dataset_cache, "_mindspore", lambda: mindspore)
    with pytest.raises(WorkerFailed, match=r"does not start: Network error\. No port is free; set data\.cache: false"):
        dataset_cache.CacheServer()


def test_the_server_is_not_killed_with_the_job(monkeypatch):
    monkeypatch.setenv(TOKEN, "a job's token")
    assert TOKEN not in dataset_cache._environment()


def answers(port: int) -> bool:
    """Whether a cache server listens on the port."""
    command = [*dataset_cache.program(), "--server_info", "--port", str(port)]
    return not subprocess.run(command, capture_output=True, env=dataset_cache._environment()).returncode


def gone(port: int, seconds: float = 30) -> bool:
    """Whether the server on the port ends within the time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not answers(port):
            return True
        time.sleep(0.5)
    return False


@pytest.mark.full
def test_a_server_of_ours_ends_and_another_one_stays():
    first, second = dataset_cache.CacheServer(), dataset_cache.CacheServer()
    try:
        assert first.port != second.port
        assert first.session() != first.session()
        first.close()
        assert not first.folder.exists()
        assert gone(first.port)
        assert answers(second.port)
        assert second.session() > 0
    finally:
        second.close()
    assert gone(second.port)


@pytest.mark.full
def test_cached_batches_are_the_same_and_a_killed_process_leaves_no_server(tmp_path):
    with subprocess.Popen([sys.executable, str(WORKER), str(tmp_path)], stdout=subprocess.PIPE, text=True) as worker:
        facts = json.loads(worker.stdout.readline())
        assert answers(facts["port"])
        assert any(Path(facts["folder"]).iterdir())
        worker.kill()
    assert facts["equal"] == [True] * (5 + 2 + 5 + 5)
    assert 0 < facts["kept"][0] <= facts["kept"][-1] <= 23
    assert facts["kept"][-1] >= 20  # as many as an epoch has
    assert facts["counts"] == [7, 8, 5]  # of batches of 9, without the damaged ones
    assert gone(facts["port"])
    assert not Path(facts["folder"]).exists()
