"""Every finding about MindSpore's programs, the `python` of PATH and the user's own rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_up_packages import Install
from msmigrate.doctor import frameworks
from msmigrate.doctor.machine import OK, PROBLEM, WARNING, Machine
from msmigrate.doctor.packages import Packages
from msmigrate.errors import Unsupported, WorkerFailed
from msmigrate.training import device_targets
from msmigrate.training.data import dataset_cache


def test_a_launcher_whose_interpreter_is_gone(
    machine: Machine, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages, script = Packages(install()), tmp_path / "msrun"
    monkeypatch.setattr(device_targets, "msrun", lambda: [str(script)])
    script.write_text(f"#!{machine.executable}\n")
    assert frameworks.launcher(machine, packages).state == OK
    script.write_text("#!/moved/bin/python\n")
    found = frameworks.launcher(machine, packages)
    assert found.state == WARNING and "wants /moved/bin/python, which is not there" in found.found
    assert found.command.endswith("--force-reinstall --no-deps 'mindspore>=2.10,<2.11'")
    script.unlink()
    assert frameworks.launcher(machine, packages).state == WARNING


def test_no_launcher(machine: Machine, install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> list[str]:
        raise WorkerFailed("msrun is nowhere")

    monkeypatch.setattr(device_targets, "msrun", none)
    found = frameworks.launcher(machine, Packages(install()))
    assert (found.state, found.found) == (WARNING, "msrun is nowhere") and "--nproc" in found.change


def test_the_python_that_msrun_would_start(machine: Machine, tmp_path: Path) -> None:
    assert frameworks.python(machine).state == OK
    other = tmp_path / "other"
    other.mkdir()
    (other / "python").write_text("#!/bin/sh\necho /usr\n")
    (other / "python").chmod(0o755)
    found = frameworks.python(replace(machine, environment={"PATH": str(other)}))
    assert found.state == WARNING and "that of /usr" in found.found
    assert found.command == f"export PATH={machine.executable.parent}:$PATH"
    (other / "python").write_text("#!/bin/sh\nexit 1\n")
    assert "no `python` that starts" in frameworks.python(replace(machine, environment={"PATH": str(other)})).found
    assert "no `python` that starts" in frameworks.python(replace(machine, environment={"PATH": "/nowhere"})).found


def test_no_cache_server(machine: Machine, install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> list[str]:
        raise Unsupported("data.cache: this MindSpore comes without its cache server")

    monkeypatch.setattr(dataset_cache, "program", none)
    found = frameworks.cache(machine, Packages(install()))
    assert found.state == WARNING and "without its cache server" in found.found


def test_files_of_own_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MSMIGRATE_MAPPINGS", raising=False)
    assert list(frameworks.own_rows()) == []
    monkeypatch.setenv("MSMIGRATE_MAPPINGS", str(tmp_path / "gone.yaml"))
    (found,) = frameworks.own_rows()
    assert found.state == PROBLEM and "gone.yaml" in found.found and found.command == "unset MSMIGRATE_MAPPINGS"
    example = Path(__file__).parents[2] / "docs" / "own_mappings.yaml"
    monkeypatch.setenv("MSMIGRATE_MAPPINGS", str(example))
    (found,) = frameworks.own_rows()
    assert found.state == OK and str(example) in found.found
