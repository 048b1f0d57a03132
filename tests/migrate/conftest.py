"""Starts the torch and the MindSpore worker once for all tests of this room, and offers the hand-made checkpoints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for tiny_checkpoints and script_uses
SCRIPTS = {  # folder of training_scripts -> the script in it
    "imagenet": "train.py",
    "apex": "main_amp.py",
    "mnist": "main.py",
    "timm": "train.py",
    "mistakes": "odd.py",
}


def run(script: str, *arguments: object) -> None:
    """Run a worker script; a failure shows the end of what it printed."""
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=arguments[0])
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


@pytest.fixture(scope="session")
def torch_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder of checkpoints that torch wrote, and by file name what their tensors hold."""
    folder = tmp_path_factory.mktemp("torch")
    run("make_checkpoints_torch.py", folder)
    return folder, json.loads((folder / "expected.json").read_text())


@pytest.fixture(scope="session")
def read_by_mindspore(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], dict[str, Any]]:
    """Let MindSpore load every .ckpt in a folder: file name -> parameter -> shape, dtype and digest of the bytes."""

    def read(folder: Path) -> dict[str, Any]:
        run("read_checkpoints_mindspore.py", folder)
        found: dict[str, Any] = json.loads((folder / "found.json").read_text())
        return found

    return read


@pytest.fixture
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `msmigrate convert-ckpt` as a process of its own and return what it printed and its exit code."""

    def call(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "msmigrate", "convert-ckpt", *map(str, arguments)]
        settings: dict[str, Any] = {"capture_output": True, "text": True, "check": False, "env": dict(os.environ)}
        return subprocess.run(line, **{**settings, **options})

    return call


@pytest.fixture(scope="session")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Name -> the path of a training script as people write it, with its helpers beside it."""
    folder = tmp_path_factory.mktemp("scripts")
    found = {}
    for name, script in SCRIPTS.items():
        (folder / name).mkdir()
        for file in (HERE / "training_scripts" / name).glob("*.py.txt"):
            (folder / name / file.name.removesuffix(".txt")).write_bytes(file.read_bytes())
        found[name] = folder / name / script
    return found


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a script, and further files by their names, into a folder of its own."""

    def written(text: str, **others: str) -> Path:
        for name, content in {"train": text, **others}.items():
            (tmp_path / f"{name}.py").write_text(content, encoding="utf-8")
        return tmp_path / "train.py"

    return written
