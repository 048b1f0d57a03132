"""Each walk-through in examples/ is run: the commands of its README, in its folder, with the exit codes it names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(?P<command>.*?)\s+# exit code (?P<code>\d+)")
SAYS = {
    "lenet5": [
        r"Parity: \d+ tensors",
        r"top-1 \d",
        r"Written to lenet5\.mindir",
        r"Written to lenet5\.onnx",
        "seven.png.*7",
    ],
    "resnet50": [
        r"filling 267 of 267 parameters",
        r"Parity: \d+ tensors",
        r"Trained: 13 steps",
        r"top-1 \d",
        r"Written to resnet50\.mindir",
    ],
    "resumed_script": [
        r"all of \d+ APIs have a counterpart",
        r"groups of 18 and 35 parameters",
        r"the steps go on from",
        r"Parity: \d+ tensors",
        r"Trained: steps 17 to 32 in",
    ],
    "published_resnet": [r"No parity\.", "eps=0.0001", "pad_mode"],
}


def script(page: Path) -> str:
    """The commands of a page as one script, which stops at the first that ends otherwise than the page says."""
    lines = ["set -e"]
    for line in "".join(BLOCK.findall(page.read_text(encoding="utf-8"))).splitlines():
        if found := CODE.fullmatch(line):
            lines.append(f"code=0; {found['command']} || code=$?; [ $code -eq {found['code']} ]")
        else:
            lines.append(line)
    return "\n".join(lines)


def test_every_walkthrough_is_run_and_listed() -> None:
    folders = {path.parent.name for path in EXAMPLES.glob("*/README.md")}
    assert folders == set(SAYS)
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}/README.md)" in listed for name in folders)


@pytest.mark.full
@pytest.mark.parametrize("name", SAYS)
def test_a_walkthrough_runs(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder)
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "-c", script(folder / "README.md")]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=3600, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-6000:]
    for pattern in SAYS[name]:
        assert re.search(pattern, done.stdout), f"{pattern} is not in\n{said[-6000:]}"
