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
    assert found.state == WARNING and "needs /moved/bin/python, which is not there" in found.found
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


def ascend(machine: Machine, path: list[str], cann: str | None, driver: str | None) -> list[tuple[str, str, str, str]]:
    for place, version in (("ascend-toolkit/latest/compiler", cann), ("driver", driver)):
        if version is not None:
            folder = machine.ascend / place
            folder.mkdir(parents=True)
            (folder / "version.info").write_text(f"package_name=x\nVersion={version}\ninnerversion=V1\n")
    return [
        (found.state, found.found, found.change, found.command) for found in frameworks.ascend(machine, Packages(path))
    ]


def test_a_machine_without_ascend_is_told_nothing_of_it(machine: Machine, install: Install) -> None:
    assert ascend(machine, install(), None, None) == []


@pytest.mark.parametrize(
    ("cann", "driver", "mindspore", "state", "words", "command"),
    [
        ("9.0.0", "25.5.2", "2.10.0", OK, "MindSpore 2.10.0 takes it, as read on 2026-11-25", ""),
        ("8.5.0", None, "2.7.2", OK, "driver not found; MindSpore 2.7.2 takes it", ""),
        ("8.3.RC1", "24.0", "2.8.0", OK, "takes it", ""),  # with which drivers is not known
        ("8.3.RC1", "25.3", "2.7.2", WARNING, "CANN 8.3.RC1", "'mindspore==2.10.*'"),
        ("8.1.RC1", "25.0.rc1.1", "2.10.0", WARNING, "takes CANN 8.2, 8.3, 8.5, 9.0, 9.1", ""),
        ("9.1.0", "25.0.rc1", "2.10.0", WARNING, "26.1 (read on 2026-11-25): install one of these", ""),
        (None, "25.5.0", "2.10.0", WARNING, "CANN not found", ""),
        ("9.1.0", None, "2.11.0", OK, "CANN 9.1.0, driver not found", ""),  # a MindSpore that nobody knows
    ],
)
def test_cann_driver_and_mindspore_go_together(
    cann: str | None,
    driver: str | None,
    mindspore: str,
    state: str,
    words: str,
    command: str,
    machine: Machine,
    install: Install,
) -> None:
    ((found, *said),) = ascend(machine, install({"mindspore": (mindspore, [])}), cann, driver)
    assert (found, words in " ".join(said), command in said[2]) == (state, True, True)


def test_cann_is_looked_for_where_its_own_script_says(machine: Machine, install: Install, tmp_path: Path) -> None:
    (tmp_path / "cann" / "compiler").mkdir(parents=True)
    (tmp_path / "cann" / "compiler" / "version.info").write_text("Version=8.5.0\n")
    environment = {**machine.environment, "ASCEND_HOME_PATH": str(tmp_path / "cann")}
    (found,) = frameworks.ascend(replace(machine, environment=environment), Packages(install()))
    assert found.found.startswith("CANN 8.5.0")
