"""Training scripts as people write them, laid out as files: each folder of examples/ is one script with its helpers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for script_uses

EXAMPLES = Path(__file__).parent / "examples"
SCRIPTS = {  # folder -> the script in it
    "imagenet": "train.py",
    "apex": "main_amp.py",
    "mnist": "main.py",
    "timm": "train.py",
    "mistakes": "odd.py",
}


@pytest.fixture(scope="session")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Name -> the script's path, with its helpers beside it."""
    folder = tmp_path_factory.mktemp("scripts")
    found = {}
    for name, script in SCRIPTS.items():
        (folder / name).mkdir()
        for file in (EXAMPLES / name).glob("*.py.txt"):
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
