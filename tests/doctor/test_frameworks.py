"""What MindSpore and torch answer when they are started, or do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_up_packages import Install
from msmigrate.doctor.frameworks import Frameworks, findings
from msmigrate.doctor.machine import OK, PROBLEM, WARNING, Finding, Machine
from msmigrate.doctor.packages import Packages
from msmigrate.errors import WorkerFailed
from msmigrate.training.device_targets import Targets

MISSING = {"Ascend": "libge_runner.so is not found", "GPU": "libcuda.so is not found"}
TORCH = {"torch": "2.15.0", "torchvision": "0.29.2", "problem": "", "numpy": ""}


def targets(version: str = "2.10.0", **devices: int) -> Targets:
    found = {"Ascend": 0, "GPU": 0, "CPU": 1, **devices}
    return Targets(version, found, {name: words for name, words in MISSING.items() if not found[name]})


def fails(text: str) -> Any:
    def ask() -> Any:
        raise WorkerFailed(text)

    return ask


@pytest.fixture
def look(machine: Machine, install: Install) -> Any:
    """Ask made-up frameworks: what is not given is sound."""
    packages = Packages(install())

    def looked(mindspore: Any = targets, torch: Any = lambda: TORCH, target: str | None = None) -> dict[str, Finding]:
        found = findings(machine, packages, Frameworks(mindspore, torch), target)
        return {finding.check: finding for finding in found}

    return looked


def test_on_a_sound_machine_the_absence_of_ascend_is_no_fault(look: Any) -> None:
    found = look()
    assert {finding.state for finding in found.values()} == {OK}
    assert found["target CPU"].found == "can be used; the default"
    assert found["target Ascend"].found == "not on this machine: libge_runner.so is not found"


def test_a_target_that_is_wanted_has_to_be_there(look: Any) -> None:
    found = look(target="Ascend")["target Ascend"]
    assert found.state == PROBLEM and "libge_runner.so is not found" in found.found
    assert "source CANN's set_env.sh" in found.change
    found = look(lambda: targets(Ascend=8), target="Ascend")["target Ascend"]
    assert (found.state, found.found) == (OK, "can be used: 8 devices; the default")


@pytest.mark.parametrize(("name", "target"), [("davinci0", "Ascend"), ("nvidia0", "GPU")])
def test_a_device_that_mindspore_does_not_see_is_a_warning(name: str, target: str, look: Any, machine: Machine) -> None:
    machine.dev.mkdir()
    (machine.dev / name).touch()
    found = look()[f"target {target}"]
    assert found.state == WARNING and f"though {machine.dev / name} is there" in found.found


def test_a_mindspore_without_any_target(look: Any) -> None:
    found = look(lambda: targets(CPU=0))["target CPU"]
    assert found.state == PROBLEM and "--force-reinstall 'mindspore>=2.10,<2.11'" in found.command


def test_a_mindspore_that_does_not_start(look: Any) -> None:
    found = look(fails("MindSpore does not start: ImportError: libgomp.so.1"))
    assert found["mindspore starts"].state == PROBLEM and "libgomp" in found["mindspore starts"].found
    assert "target CPU" not in found and found["torch starts"].state == OK


def test_a_framework_is_not_installed_again_where_something_else_is_wrong(machine: Machine, install: Install) -> None:
    packages = Packages(install({"numpy": ("2.4.6", [])}))
    asked = Frameworks(fails("MindSpore does not start: NumPy 2"), fails("importing torch failed"))
    found = list(findings(machine, packages, asked))
    assert [finding.state for finding in found] == [PROBLEM, PROBLEM]
    assert {(finding.change, finding.command) for finding in found} == {("Fix what the lines above name first.", "")}


def test_another_mindspore_stands_before_the_one_that_is_installed(look: Any) -> None:
    found = look(lambda: targets("2.6.0"))["mindspore starts"]
    assert found.state == WARNING and found.found == "2.6.0 is imported, 2.10.0 installed"


@pytest.mark.parametrize(
    ("answer", "said", "command"),
    [
        (fails("importing torch failed: OSError: libcudart.so.13"), "libcudart.so.13", "--force-reinstall"),
        (
            lambda: {**TORCH, "numpy": "RuntimeError: Numpy is not available"},
            "makes no NumPy array: RuntimeError: Numpy is not available",
            "python -m pip install 'numpy>=1.26,<2'",
        ),
        (
            lambda: {**TORCH, "torchvision": None, "problem": "RuntimeError: operator torchvision::nms does not exist"},
            "torchvision does not work with it: RuntimeError: operator torchvision::nms does not exist",
            "python -m pip install --force-reinstall 'torch>=2.6' 'torchvision>=0.21'",  # both are there already
        ),
    ],
)
def test_a_torch_that_does_not_work(answer: Any, said: str, command: str, look: Any) -> None:
    found = look(torch=answer)["torch starts"]
    assert found.state == PROBLEM and said in found.found and command in found.command


def test_what_is_not_installed_is_not_started(machine: Machine, install: Install, tmp_path: Path) -> None:
    packages = Packages(install({"mindspore": None, "torch": None}))
    asked = Frameworks(fails("asked"), fails("asked"))
    assert list(findings(machine, packages, asked)) == []


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("raise ImportError('no libtorch')", "importing torch failed: ImportError: no libtorch"),
        ("import os; os.kill(os.getpid(), 9)", "importing torch failed: "),
    ],
)
def test_a_torch_that_breaks_on_import_is_one_line(
    module: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text(module)
    import os

    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with pytest.raises(WorkerFailed, match=said) as caught:
        Frameworks().torch()
    assert "\n" not in str(caught.value)
