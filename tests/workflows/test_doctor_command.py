"""`msmigrate doctor` as it is called: with made-up frameworks, with next to nothing installed, and with wrong words."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msmigrate import __version__

ROOT = Path(__file__).parents[2]
LEAST = ("click", "rich", "pygments", "markdown_it", "mdurl", "packaging")  # without which no command answers
MINDSPORE = """
__version__ = "2.10.0"
class device_context:
    class cpu:
        is_available = staticmethod(lambda: True)
        device_count = staticmethod(lambda: 1)
    class ascend:
        is_available = staticmethod(lambda: False)
    gpu = ascend
def set_device(target, number):
    raise RuntimeError(f"Unsupported device target {target}. More")
"""
BROKEN = "raise ImportError('libgomp.so.1: cannot open shared object file')"


def doctor(site: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command with nothing on the path but this folder."""
    line = [sys.executable, "-S", "-m", "msmigrate", "doctor", *words]
    variables = {**os.environ, "PYTHONPATH": str(site), "COLUMNS": "120", **environment}
    return subprocess.run(
        line, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=variables, cwd=site
    )


def checks(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert "Traceback" not in done.stderr
    return {check["check"]: check for check in json.loads(done.stdout)["checks"]}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages with what any command needs, and msmigrate."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "msmigrate").symlink_to(ROOT)
    for name in LEAST:
        found = importlib.util.find_spec(name)
        assert found is not None and found.origin is not None
        (folder / name).symlink_to(Path(found.origin).parent)
    return folder


def install(site: Path, name: str, version: str, code: str | None = None) -> None:
    """A package of one line, with metadata."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if code is not None:
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(code)


def test_with_next_to_nothing_installed_it_still_says_what_to_install(site: Path) -> None:
    done = doctor(site, "--json")
    found = checks(done)
    assert done.returncode == 1 and json.loads(done.stdout)["sound"] is False
    for name in ("mindspore", "numpy", "torch", "torchvision"):
        assert (found[name]["state"], found[name]["found"]) == ("problem", "not installed")
        assert found[name]["command"].endswith(f"-m pip install {name}")
    assert found["msmigrate"]["state"] == "warning" and found["python"]["state"] == "ok"
    assert "torch starts" not in found and "launcher" not in found


def test_a_broken_mindspore_is_a_line_and_the_rest_is_looked_at(site: Path) -> None:
    install(site, "mindspore", "2.10.0", BROKEN)
    (site / "mindspore" / "_c_expression.so").touch()
    install(site, "numpy", "1.26.4", "__version__ = '1.26.4'")
    install(site, "torch", "2.15.0", BROKEN)
    done = doctor(site, "--json")
    found = checks(done)
    assert done.returncode == 1 and found["mindspore"]["state"] == "ok"
    said = found["mindspore starts"]
    assert said["state"] == "problem" and "libgomp.so.1: cannot open shared object file" in said["found"]
    assert found["torch starts"]["found"].startswith("importing torch failed: ImportError: libgomp.so.1")
    assert "memory" in found and "disk for runs" in found


def test_numpy_2_is_seen_before_it_breaks_something(site: Path) -> None:
    install(site, "mindspore", "2.10.0", MINDSPORE)
    (site / "mindspore" / "_c_expression.so").touch()
    install(site, "numpy", "2.4.6", "__version__ = '2.4.6'")
    install(site, "msmigrate", __version__)
    info = site / f"msmigrate-{__version__}.dist-info" / "METADATA"
    info.write_text(info.read_text() + "Requires-Dist: numpy<2,>=1.26\n")
    done = doctor(site, "--json")
    found = checks(done)
    assert "2.4.6, but msmigrate" in found["numpy"]["found"] and "ImportError" in found["numpy"]["found"]
    assert found["numpy"]["command"].endswith("install 'numpy>=1.26,<2'")
    assert "NumPy 2.4.6: pip install 'numpy<2'" in found["mindspore starts"]["found"]


def test_the_table_says_what_to_change_and_the_verdict(site: Path) -> None:
    install(site, "mindspore", "2.10.0", MINDSPORE)
    (site / "mindspore" / "_c_expression.so").touch()
    install(site, "numpy", "1.26.4", "__version__ = '1.26.4'")
    done = doctor(site, ONEDNN_MAX_CPU_ISA="AVX2")
    assert done.returncode == 1 and done.stderr == ""
    lines = done.stdout.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("torch  "))
    assert "problem" in lines[place] and "Install torch." in lines[place + 1]
    assert lines[place + 2].endswith("-m pip install torch")
    assert "target CPU" in done.stdout and "can be used; the default" in done.stdout
    assert "not on this machine: Unsupported device target Ascend" in done.stdout
    assert lines[-1].startswith("To change: torch, torchvision, onnx.") and "warning" in lines[-1]


def test_what_cannot_be_looked_at_is_said(site: Path) -> None:
    install(site, "mindspore", "2.10.0", MINDSPORE)
    found = checks(doctor(site, "--json", "--quick", MSMIGRATE_MAPPINGS="rows.yaml"))  # whose reader is not installed
    assert found["tools"]["found"].startswith("could not be looked at: ModuleNotFoundError: No module named 'yaml'")
    assert "mindspore starts" not in found


def test_this_environment_is_sound() -> None:
    line = [sys.executable, "-m", "msmigrate", "doctor", "--quick", "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    problems = [check for check in checks(done).values() if check["state"] == "problem"]
    assert (done.returncode, problems) == (0, [])


@pytest.mark.parametrize("words", [("--target", "TPU"), ("--quick", "--target", "CPU"), ("now",)])
def test_wrong_words(words: tuple[str, ...], site: Path) -> None:
    done = doctor(site, *words)
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr
