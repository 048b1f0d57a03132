"""A digest of the code is the same wherever the code is, and another one for other code."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from msmigrate.errors import BadCheckpoint
from msmigrate.training.recipe.digest import PACKAGE, ROOMS, code_digest, file_digest


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The rooms that decide a step, in another place."""
    for room in ROOMS:
        shutil.copytree(PACKAGE / room, tmp_path / "elsewhere" / room)
    return tmp_path / "elsewhere"


def test_the_place_does_not_count(copy: Path) -> None:
    assert code_digest(copy) == code_digest()
    assert len(code_digest()) == 16


def test_line_ends_and_caches_do_not_count(copy: Path) -> None:
    file = copy / "training" / "step" / "parameter_groups.py"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    (copy / "training" / "step" / "__pycache__").mkdir(exist_ok=True)
    (copy / "training" / "step" / "__pycache__" / "groups.cpython-311.pyc").write_bytes(b"x")
    assert code_digest(copy) == code_digest()


@pytest.mark.parametrize(
    "name", ["training/step/parameter_groups.py", "mappings/tables/optimizers.yaml", "migrate/checkpoint/plan.py"]
)
def test_one_letter_counts_wherever_it_stands(copy: Path, name: str) -> None:
    with (copy / name).open("a") as file:
        file.write("#")
    assert code_digest(copy) != code_digest()


def test_a_file_that_is_moved_counts(copy: Path) -> None:
    (copy / "training" / "step" / "parameter_groups.py").rename(copy / "migrate" / "parameter_groups.py")
    assert code_digest(copy) != code_digest()


def test_a_file_is_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "weights.pth"
    file.write_bytes(b"weights" * 200_000)
    assert file_digest(file) == hashlib.sha256(file.read_bytes()).hexdigest()
    with pytest.raises(BadCheckpoint, match=r"none\.pth cannot be read: No such file"):
        file_digest(tmp_path / "none.pth")
