"""What MindSpore says of its targets becomes one line, and a MindSpore that does not start does too."""

from __future__ import annotations

import sys

import pytest
from msmigrate.errors import BadRecipe, MsmigrateError, Unsupported, WorkerFailed
from msmigrate.training.device_targets import Targets, ask
from msmigrate.workers.messages import Failure, Message, Result, encode

# measured with MindSpore 2.10.0's CPU installation; it tells of Ascend's libraries whatever was asked for
ASCEND = """Unsupported device target Ascend. This process only supports one of the ['CPU']. Please check whether \
the Ascend environment is installed.

Load dynamic library: libmindspore_ascend.so.2 failed. libge_runner.so: cannot open shared object file: No such file
Load dynamic library: libmindspore_ops_ascend.so failed. libmindspore_ascend_res_manager.so: cannot open shared object \
file: No such file or directory
"""
GPU_STDERR = "[ERROR] ME(1): libcuda.so (need by mindspore-gpu) is not found. Please confirm\n" * 2
NOTHING = {"Ascend": 0, "GPU": 0, "CPU": 1}
MISSING = {"Ascend": ASCEND, "GPU": ASCEND.replace("Ascend.", "GPU.")}


def fake(message: Message | None = None, *, stderr: str = "", code: int = 0) -> list[str]:
    """A probe that says this."""
    out = "" if message is None else encode(message)
    script = f"import sys; print('noise'); print({out!r}); sys.stderr.write({stderr!r}); sys.exit({code})"
    return [sys.executable, "-c", script]


def here(**devices: int) -> Targets:
    return Targets("2.10.0", {**NOTHING, **devices}, {})


def test_libraries_that_are_missing_are_named_for_their_own_target() -> None:
    found = ask(probe=fake(Result({"version": "2.10.0", "devices": NOTHING, "missing": MISSING}), stderr=GPU_STDERR))
    ascend, gpu = found.problem("Ascend"), found.problem("GPU")
    assert ascend is not None and "cannot use Ascend here: libge_runner.so is not found; " in ascend
    assert gpu is not None and "cannot use GPU here: libcuda.so is not found; " in gpu and "ge_runner" not in gpu
    for line in (ascend, gpu):
        assert "\n" not in line and line.endswith("or use --target CPU") and len(line) < 300
    assert found.problem("CPU") is None


def test_a_reason_without_libraries_is_its_first_sentence() -> None:
    missing = {"Ascend": "The driver is too old. Please update.\nmore", "GPU": ""}
    found = ask(probe=fake(Result({"version": "2.10.0", "devices": NOTHING, "missing": missing})))
    assert "Ascend here: The driver is too old; " in str(found.problem("Ascend"))
    assert "GPU here: no device; " in str(found.problem("GPU"))


def test_ascend_comes_before_a_gpu_before_the_cpu() -> None:
    assert here().default == "CPU"
    assert here(GPU=1).default == "GPU"
    assert here(GPU=1, Ascend=8).default == "Ascend"


def test_more_devices_than_there_are_is_one_line() -> None:
    found = here(Ascend=8)
    found.check("Ascend", device_id=0, processes=8)
    with pytest.raises(Unsupported, match="8 Ascend devices, numbered from 0, and 8 from 4 on were requested"):
        found.check("Ascend", device_id=4, processes=8)
    found.check("CPU", device_id=0, processes=16)  # processes share a CPU


@pytest.mark.parametrize(
    ("probe", "error", "said"),
    [
        (fake(stderr="one\nImportError: numpy\n", code=1), WorkerFailed, "start: exit code 1: ImportError: numpy"),
        (fake(code=3), WorkerFailed, "does not start: exit code 3"),
        (fake(Failure("BadRecipe", "such a recipe"), code=2), BadRecipe, "such a recipe"),
        (fake(Failure("sys", "odd"), code=2), WorkerFailed, "odd"),
        (["/no/such/python"], WorkerFailed, "cannot start /no/such/python"),
        ([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], WorkerFailed, "killed by signal 9"),
    ],
)
def test_a_mindspore_that_does_not_start_is_one_line(probe: list[str], error: type[MsmigrateError], said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        ask(probe=probe)
    assert "\n" not in str(caught.value)


def test_a_mindspore_that_hangs_is_one_line() -> None:
    with pytest.raises(WorkerFailed, match=r"^MindSpore does not start: it was stopped after 0\.5 s$"):
        ask(probe=[sys.executable, "-c", "import time; time.sleep(60)"], seconds=0.5)


def test_this_mindspore_answers() -> None:
    found = ask()
    assert found.usable("CPU") and found.version.count(".") == 2
    for target in ("Ascend", "GPU"):
        if not found.usable(target):
            assert found.missing[target]
            with pytest.raises(Unsupported, match=f"cannot use {target} here"):
                found.check(target)
