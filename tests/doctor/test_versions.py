"""Every finding about what is installed, on made-up metadata."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up_packages import EXTENSION, Install, write
from msmigrate.doctor import packages
from msmigrate.doctor.machine import OK, PROBLEM, WARNING, Finding, Machine
from msmigrate.doctor.packages import Packages


def look(machine: Machine, path: list[str]) -> dict[str, Finding]:
    """The findings by what was looked at."""
    return {finding.check: finding for finding in packages.findings(machine, Packages(path))}


def not_ok(found: dict[str, Finding]) -> list[str]:
    return [name for name, finding in found.items() if finding.state != OK]


def test_a_sound_environment_has_nothing_to_change(machine: Machine, install: Install) -> None:
    found = look(machine, install())
    assert not_ok(found) == []
    assert [found[name].found for name in ("mindspore", "numpy", "torch")] == ["2.10.0", "1.26.4", "2.15.0"]
    assert found["timm"].found == "not installed; only msmigrate[timm] needs it: python -m pip install 'timm>=1.0'"
    assert "ruff" not in found


Case = tuple[dict[str, Any], str, str, str, str]
CASES: dict[str, Case] = {
    "NumPy 2": (
        {"numpy": ("2.4.6", [])},
        "numpy",
        PROBLEM,
        "2.4.6, but msmigrate 0.1.0 requires numpy>=1.26,<2: MindSpore 2.10 is built against NumPy 1.x",
        "python -m pip install 'numpy>=1.26,<2'",
    ),
    "neither framework": (
        {"mindspore": None, "torch": None, "torchvision": None},
        "mindspore",
        PROBLEM,
        "neither is the other framework",
        "python -m pip install 'mindspore>=2.10,<2.11' 'torch>=2.6' 'torchvision>=0.21' 'numpy>=1.26,<2'",
    ),
    "MindSpore too old": (
        {"mindspore": ("2.6.0", [])},
        "mindspore",
        PROBLEM,
        "2.6.0, but msmigrate 0.1.0 requires mindspore>=2.10,<2.11",
        "python -m pip install 'mindspore>=2.10,<2.11'",
    ),
    "torch without torchvision": (
        {"torchvision": None},
        "torchvision",
        PROBLEM,
        "not installed, and torch's half needs it",
        "python -m pip install 'torchvision>=0.21' 'numpy>=1.26,<2'",
    ),
    "torch and torchvision of different releases": (
        {"torch": ("2.7.0", [])},
        "torch",
        PROBLEM,
        "2.7.0, but torchvision 0.29.2 requires torch>=2.14.0",
        "python -m pip install 'torchvision>=0.21' 'torch>=2.6'",
    ),
    "torch and torchvision of different builds": (
        {"torch": ("2.15.0+cpu", []), "torchvision": ("0.29.2+cu132", [])},
        "torchvision",
        PROBLEM,
        "0.29.2+cu132, but torch is 2.15.0+cpu: not of the same build",
        "python -m pip install --force-reinstall 'torch>=2.6' 'torchvision>=0.21'",
    ),
    "somebody else wants NumPy 2": (
        {"onnx": ("1.23.2", ["ml_dtypes>=0.5"]), "ml-dtypes": ("0.6", ["numpy>=2"])}
        | {"msmigrate": ("0.1.0", ["numpy<2,>=1.26", "onnx>=1.16"])},
        "numpy",
        PROBLEM,
        "1.26.4, but ml-dtypes 0.6 requires numpy>=2",
        "python -m pip install ml-dtypes 'numpy>=1.26,<2'",
    ),
    "a requirement of a requirement": (
        {"psutil": None},
        "others",
        PROBLEM,
        "mindspore requires psutil>=5, nothing is installed",
        "python -m pip install 'psutil>=5' 'numpy>=1.26,<2'",
    ),
    "another msmigrate": (
        {"msmigrate": ("0.0.9", [])},
        "msmigrate",
        WARNING,
        "but 0.0.9 is installed",
        "pip install .",
    ),
    "no msmigrate": ({"msmigrate": None}, "msmigrate", WARNING, "run from its folder", "pip install ."),
    "timm too old": (
        {"timm": ("0.4", [])},
        "timm",
        WARNING,
        "0.4, but msmigrate requires timm>=1.0",
        "install 'timm>=1.0'",
    ),
    "two MindSpores": (
        {"mindspore-ascend": ("2.2.0", [])},
        "mindspore",
        PROBLEM,
        "mindspore and mindspore-ascend are both installed",
        "pip uninstall -y mindspore mindspore-ascend && python -m pip install 'mindspore>=2.10,<2.11'",
    ),
}


@pytest.mark.parametrize(("changes", "check", "state", "said", "command"), CASES.values(), ids=CASES)
def test_what_does_not_fit_is_named_with_the_command(
    changes: dict[str, Any], check: str, state: str, said: str, command: str, machine: Machine, install: Install
) -> None:
    found = look(machine, install(changes))[check]
    assert (found.state, "\n" in found.found) == (state, False)
    assert said in found.found
    assert command in found.command
    assert found.change


def test_one_framework_is_enough(machine: Machine, install: Install) -> None:
    found = look(machine, install({"torch": None, "torchvision": None, "onnx": None}))
    assert not_ok(found) == []
    assert found["torch"].found.startswith("not installed: this machine has MindSpore's half: record --with")
    assert found["torch"].found.endswith("python -m pip install 'torch>=2.6' 'numpy>=1.26,<2'")
    assert found["onnx"].found.startswith("not installed; only msmigrate[export] needs it")


def test_mindspore_is_missing_where_a_target_is_wanted(machine: Machine, install: Install) -> None:
    path = install({"mindspore": None})
    assert not_ok(look(machine, path)) == []
    found = {one.check: one for one in packages.findings(machine, Packages(path), "Ascend")}["mindspore"]
    assert found.state == PROBLEM and "Ascend is wanted" in found.found
    assert found.command == "python -m pip install 'mindspore>=2.10,<2.11' 'numpy>=1.26,<2'"


def test_a_python_without_wheels(machine: Machine, install: Install) -> None:
    found = look(replace(machine, python="3.13.1"), install())["python"]
    assert found.state == PROBLEM and "msmigrate 0.1.0 is for Python >=3.10,<3.13" in found.found
    assert found.command == "python3.11 -m venv .venv"


def test_mindspore_s_own_limit_on_python(machine: Machine, install: Install, tmp_path: Path) -> None:
    path = install({"mindspore": None})
    write(tmp_path / "site-packages", "mindspore", "2.10.0", [], python=">=3.7,<3.11")
    found = look(machine, path)["python"]
    assert found.state == PROBLEM and "mindspore 2.10.0 is for Python >=3.7,<3.11" in found.found


@pytest.mark.parametrize(("system", "architecture"), [("darwin", "arm64"), ("windows", "amd64"), ("linux", "riscv64")])
def test_a_platform_without_wheels(system: str, architecture: str, machine: Machine, install: Install) -> None:
    found = look(replace(machine, system=system, architecture=architecture), install())["python"]
    assert found.state == PROBLEM and "Linux" in found.change


def test_a_library_of_another_python(machine: Machine, install: Install) -> None:
    path = install()
    found = look(replace(machine, extension=EXTENSION.replace("311", "312")), path)["mindspore"]
    assert found.state == PROBLEM and "compiled as cpython-311-x86_64-linux-gnu.so" in found.found
    assert found.command == "python -m pip install --force-reinstall --no-deps 'mindspore>=2.10,<2.11'"


def test_a_mindspore_without_its_library(machine: Machine, install: Install) -> None:
    path = install()
    (Path(path[0]) / "mindspore" / f"_c_expression{EXTENSION}").unlink()
    found = look(machine, path)["mindspore"]
    assert found.state == PROBLEM and "without its library" in found.found


def test_an_update_that_broke_off(machine: Machine, install: Install) -> None:
    path = install()
    write(Path(path[0]), "torch", "2.14.0", [])
    found = look(machine, path)["torch"]
    assert found.state == PROBLEM and found.found.startswith("installed twice, as 2.1")
    assert "--force-reinstall --no-deps 'torch>=2.6'" in found.command


def test_metadata_that_are_empty_count_as_nothing(machine: Machine, install: Install) -> None:
    path = install({"torch": None})
    (Path(path[0]) / "torch-2.15.0.dist-info").mkdir()
    assert look(machine, path)["torch"].found.startswith("not installed: ")


def test_another_interpreter_on_path_is_not_told_to_install(machine: Machine, install: Install) -> None:
    other = replace(machine, environment={"PATH": "/nowhere"})
    found = look(other, install({"torchvision": None}))["torchvision"]
    assert found.command == f"{machine.executable} -m pip install 'torchvision>=0.21' 'numpy>=1.26,<2'"
