"""A machine with one framework does its half: installed anew without the other, every command that it is for runs.

    pytest -m full tests/workflows/test_minimal_installs.py

Both environments are made as docs/install.md says. What pip would change where something is installed already is asked
of pip without a package index, on made-up packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.full
ROOT = Path(__file__).parent.parent.parent
RECIPE = ROOT / "tests" / "workflows" / "digits.yaml"
TORCH_NET = """
import torch, torchvision
torch.manual_seed(0)
torch.save(torchvision.models.resnet18(num_classes=10).state_dict(), "net.pth")
"""

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def environment(folder: Path, extra: str) -> Command:
    """A virtual environment with this half of msmigrate; gives what runs a program of it in the folder's parent."""
    venv.create(folder, with_pip=True)
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    kept["PATH"] = f"{folder / 'bin'}:{kept['PATH']}"

    def run(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [str(folder / "bin" / words[0]), *map(str, words[1:])]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=kept, cwd=folder.parent)
        assert done.returncode == code, f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    run("pip", "install", "--quiet", f"{ROOT}[{extra}]")
    return run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("halves")


@pytest.fixture(scope="module")
def torch_half(place: Path) -> Command:
    return environment(place / "torch-half", "torch")


@pytest.fixture(scope="module")
def mindspore_half(place: Path) -> Command:
    return environment(place / "mindspore-half", "mindspore")


def test_neither_has_the_other_framework(torch_half: Command, mindspore_half: Command) -> None:
    assert "No module named 'mindspore'" in torch_half("python", "-c", "import mindspore", code=1).stderr
    assert "No module named 'torch'" in mindspore_half("python", "-c", "import torch", code=1).stderr
    for half in (torch_half, mindspore_half):
        half("pip", "check")
        half("msmigrate", "doctor")


def test_the_two_halves_prove_a_step_and_one_trains_behind_it(
    torch_half: Command, mindspore_half: Command, place: Path
) -> None:
    torch_half("msmigrate", "record", RECIPE, "--framework", "torch", "-o", "a")
    mindspore_half("msmigrate", "record", RECIPE, "--framework", "mindspore", "--with", "a", "-o", "b")
    for half in (torch_half, mindspore_half):
        half("msmigrate", "compare", "a", "b")
    torch_half("msmigrate", "record", RECIPE, "--framework", "torch", "--with", "b", "-o", "c")
    mindspore_half("msmigrate", "compare", "c", "b", "--json", "report.json", "--html", "report.html")
    assert json.loads((place / "report.json").read_text())["parity"] is True
    options = ("--parity-report", "report.json", "--epochs", "1", "--out", "run")
    mindspore_half("msmigrate", "train", RECIPE, *options)
    mindspore_half("msmigrate", "eval", "run/checkpoints/best.ckpt", "digits:test")
    mindspore_half("python", "-c", "from PIL import Image; Image.new('L', (8, 8), 90).save('digit.png')")
    mindspore_half("msmigrate", "predict", "run/checkpoints/best.ckpt", "digit.png")
    mindspore_half("msmigrate", "export", "run/checkpoints/best.ckpt", "--format", "mindir", "-o", "net.mindir")


def test_checkpoints_are_converted_on_both(torch_half: Command, mindspore_half: Command, place: Path) -> None:
    torch_half("python", "-c", TORCH_NET)
    for i, half in enumerate((torch_half, mindspore_half)):
        half("msmigrate", "inspect", "net.pth")
        half("msmigrate", "convert-ckpt", "net.pth", f"net{i}.ckpt")
    assert (place / "net0.ckpt").read_bytes() == (place / "net1.ckpt").read_bytes()


def test_torch_s_half_analyzes(torch_half: Command, place: Path) -> None:
    torch_half("msmigrate", "analyze", "torchvision:resnet18")
    (place / "train.py").write_text("import torch\nnet = torch.nn.Linear(2, 2)\n")
    torch_half("msmigrate", "analyze", "train.py")


@pytest.mark.parametrize(
    ("half", "words", "missing"),
    [
        ("torch_half", ("parity-step", str(RECIPE)), "mindspore"),
        ("torch_half", ("train", str(RECIPE), "--skip-parity"), "mindspore"),
        ("mindspore_half", ("parity-step", str(RECIPE)), "torch"),
        ("mindspore_half", ("train", str(RECIPE)), "torch"),
        ("mindspore_half", ("analyze", "torchvision:resnet18"), "torch"),
    ],
)
def test_what_needs_the_other_framework_says_so_in_a_line(
    half: str, words: tuple[str, ...], missing: str, request: pytest.FixtureRequest
) -> None:
    run: Command = request.getfixturevalue(half)
    done = run("msmigrate", *words, code=2)
    last = done.stderr.strip().splitlines()[-1]
    assert missing in last and "not installed" in last and "Traceback" not in done.stderr


def test_what_is_installed_and_fits_stays(tmp_path: Path) -> None:
    """pip, asked what it would install beside made-up packages at the lowest versions that are wanted."""
    folder = tmp_path / "venv"
    venv.create(folder, with_pip=True)
    (site,) = (folder / "lib").glob("python*/site-packages")
    wanted = requirements()
    for requirement in wanted.values():
        made_up(site, requirement.name, lowest(requirement))
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "setuptools>=77"], check=True)  # reads pyproject.toml
    report = tmp_path / "report.json"
    command = [python, "-m", "pip", "install", "--dry-run", "--no-index", "--no-build-isolation"]
    done = subprocess.run(
        [*command, "--quiet", "--report", report, f"{ROOT}[all]"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    changes: dict[str, Any] = json.loads(report.read_text())
    assert [one["metadata"]["name"] for one in changes["install"]] == ["msmigrate"]
    assert {"torch", "mindspore", "onnx"} <= set(wanted)


def requirements() -> dict[str, Requirement]:
    """What msmigrate[all] wants, by name, as this checkout's pyproject.toml has it."""
    code = (
        "import json, sys; from setuptools.config.pyprojecttoml import read_configuration as read; "
        "project = read(sys.argv[1])['project']; print(json.dumps([project['dependencies'], "
        "project['optional-dependencies']]))"
    )
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, ROOT / "pyproject.toml"],
        capture_output=True,
        text=True,
        check=True,
    )
    own, extras = json.loads(told.stdout)
    lines = [*own, *(line for extra in ("torch", "mindspore", "export", "serve") for line in extras[extra])]
    return {one.name: one for one in map(Requirement, lines)}


def lowest(requirement: Requirement) -> str:
    return next(limit.version for limit in requirement.specifier if limit.operator == ">=")


def made_up(site: Path, name: str, version: str) -> None:
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "INSTALLER").write_text("pip\n")
    (info / "RECORD").write_text("")
