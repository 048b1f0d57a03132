"""A made-up machine, and folders of made-up packages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msmigrate.doctor.machine import Machine

sys.path.append(str(Path(__file__).parent))

from made_up_packages import EXTENSION, OPTIONAL, SOUND, Install, write


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Install a sound set of packages, with changes: name=None leaves one out, name=(version, requires) replaces it."""

    def installed(changes: dict[str, tuple[str, list[str]] | None] | None = None, **more: str) -> list[str]:
        folder = tmp_path / "site-packages"
        for name, package in {**SOUND, **(changes or {})}.items():
            if package is not None:
                version, requires = package
                write(folder, name, version, requires + OPTIONAL * (name == "msmigrate"), **more)
        (folder / "mindspore").mkdir()
        (folder / "mindspore" / f"_c_expression{EXTENSION}").touch()
        return [str(folder)]

    return installed


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A sound machine, whose `python` on PATH is this one."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python").write_text(f"#!/bin/sh\necho {tmp_path}\n")
    (programs / "python").chmod(0o755)
    return Machine(
        python="3.11.7",
        executable=programs / "python",
        prefix=tmp_path,
        extension=EXTENSION,
        system="linux",
        architecture="x86_64",
        environment={"PATH": str(programs)},
        flags=frozenset({"avx", "avx2"}),
        cores=8,
        memory=64 * 10**9,
        folder=tmp_path,
        temporary=tmp_path,
        dev=tmp_path / "dev",
        ascend=tmp_path / "Ascend",
    )
