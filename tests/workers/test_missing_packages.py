"""A worker whose packages are not installed is not started: one line says which, and how they are installed."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from importlib import util
from pathlib import Path

import pytest
from msmigrate import __file__ as ours
from msmigrate.errors import NotInstalled
from msmigrate.workers import parent
from msmigrate.workers.parent import call

ROOT = Path(ours).parent
ROOM_NAMES = ("parity", "training", "migrate", "deploy", "doctor")


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Collection[str]:
    """The packages that seem not to be installed; to be filled."""
    gone: set[str] = set()
    real = util.find_spec
    monkeypatch.setattr(parent, "find_spec", lambda name: None if name in gone else real(name))
    return gone


def command(module: str) -> list[str]:
    return [sys.executable, "-m", f"msmigrate.{module}", "job.json"]


@pytest.mark.parametrize(
    ("module", "gone", "said"),
    [
        ("parity.record.torch_worker", {"torch", "torchvision"}, "torch and torchvision are not installed"),
        ("parity.record.torch_worker", {"torchvision"}, "torchvision is not installed"),
        ("training.run.mindspore_worker", {"mindspore"}, "mindspore is not installed"),
        ("deploy.serving.mindspore_server_worker", {"uvicorn"}, "uvicorn is not installed"),
        ("deploy.onnx_check_worker", {"onnx", "onnxruntime"}, "onnx and onnxruntime are not installed"),
        ("migrate.analyze.onnx_worker", {"onnx"}, "onnx is not installed"),
    ],
)
def test_what_is_missing_is_named_before_anything_starts(
    module: str, gone: set[str], said: str, without: set[str]
) -> None:
    without |= gone
    with pytest.raises(NotInstalled, match=said) as caught:
        call("the process", command(module))
    line = str(caught.value)
    assert "\n" not in line and "pip install" in line
    assert all(f"'{package}" in line for package in gone)


def test_a_folder_of_that_name_is_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uvicorn_of_ours").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(NotInstalled, match="uvicorn_of_ours is not installed"):
        parent.require("uvicorn_of_ours")


def test_a_cpu_build_of_torch_wants_one_of_torchvision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, file in (("torch", "lib/libc10.so"), ("torchvision", "_C.so")):
        (tmp_path / name / file).parent.mkdir(parents=True)
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / file).write_bytes(b"\x7fELF\0libc10.so\0")
    monkeypatch.setattr(
        parent, "find_spec", lambda name: util.spec_from_file_location(name, tmp_path / name / "__init__.py")
    )
    parent.refuse_missing(command("parity.record.torch_worker"))
    (tmp_path / "torchvision" / "_C.so").write_bytes(b"\x7fELF\0libc10.so\0libtorch_cuda.so\0")
    with pytest.raises(
        NotInstalled, match=r"wants libtorch_cuda.so, .* a CPU build .* --force-reinstall 'torch.*' 'torchv"
    ):
        parent.refuse_missing(command("parity.record.torch_worker"))
    parent.refuse_missing(command("migrate.torch_probe_worker"))  # which says so itself
    (tmp_path / "torch" / "lib" / "libtorch_cuda.so").touch()
    parent.refuse_missing(command("parity.record.torch_worker"))


def test_the_line_has_the_versions_that_msmigrate_wants(without: set[str]) -> None:
    without.add("mindspore")
    with pytest.raises(NotInstalled, match=r"'mindspore<[\d.]+,>=[\d.]+' 'numpy<2,>=1.26'$"):
        parent.require("mindspore")


def test_what_the_worker_does_not_import_is_not_asked_for(without: set[str]) -> None:
    without |= {"torch", "onnx", "uvicorn"}
    parent.refuse_missing(command("parity.record.mindspore_worker"))
    parent.refuse_missing([sys.executable, "own_torch_worker.py"])
    parent.refuse_missing([sys.executable, "-m"])


def test_every_worker_is_known_by_its_name() -> None:
    """One that imports a framework and is called otherwise would stop with a traceback."""
    files = [file for room in ROOM_NAMES for file in (ROOT / room).rglob("*_worker.py")]
    assert len(files) > 15
    for file in files:
        known = any(file.name.startswith(f"{start}_") for start in parent.PACKAGES)
        assert known or not re.search(r"^(import|from) (torch|mindspore|onnx)", file.read_text(), re.M), file
