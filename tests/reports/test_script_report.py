"""What `msmigrate analyze train.py` says: on a terminal, as JSON, as a page, and the recipe that it writes."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from msmigrate.migrate.analyze.script_analysis import ScriptAnalysis, analyze_script
from msmigrate.reports import script_analysis
from msmigrate.training.recipe import reader
from rich.console import Console

SCRIPT = """\
import argparse

import torch
import torchvision
from torchvision import transforms as T

parser = argparse.ArgumentParser()
parser.add_argument("--lr", default=0.1, type=float)
parser.add_argument("--warm", action="store_true")
args = parser.parse_args()
model = torchvision.models.resnet18(num_classes=10)
model.fc = torch.nn.Linear("<b>[bold]", 10)
text = "<script>alert(1)</script>\x1b[31m[red]{{ 7 * 7 }}"
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
if args.warm:
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1)
torch.frobnicate(text, "<b>[bold]")
T.Resize(9, max_size=10)
T.Resize(11)
T.Resize(11)
"""


@pytest.fixture
def analysis(tmp_path: Path) -> ScriptAnalysis:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return analyze_script(path)


def shown(analysis: ScriptAnalysis, width: int = 100) -> str:
    out = io.StringIO()
    script_analysis.show(analysis, Console(file=out, width=width))
    return out.getvalue()


def test_the_terminal_is_told_everything(analysis: ScriptAnalysis) -> None:
    text = shown(analysis)
    assert text.startswith("train.py: ")
    assert "1 without a counterpart (torchvision.transforms.Resize)" in " ".join(text.split())
    assert re.search(r"optim\.SGD +SGD +composed, equal +14\n", text)
    assert "torch.frobnicate (train.py:17)" in text
    assert "max_size=10 has no counterpart" in " ".join(text.split())
    assert "also 20" in text  # the same call twice is shown once
    assert "only with other arguments than the defaults: train.py:16" in text
    assert "unused-param-zero-grad" in text
    assert "wd-skips-gamma-beta" not in text  # no weight decay in it
    assert "\x1b" not in text
    assert max(map(len, text.split("\n"))) <= 100


def test_names_are_never_cut(analysis: ScriptAnalysis) -> None:
    overview = shown(analysis).split("\n\n")[1]
    assert "…" not in overview
    for api in analysis.apis:
        if api.way != "no row":
            assert script_analysis.short(api.torch) in overview


def test_json_holds_every_use(analysis: ScriptAnalysis) -> None:
    found = json.loads(json.dumps(script_analysis.as_json(analysis), allow_nan=False))
    assert found["missing"] == ["torchvision.transforms.Resize"] and found["no_row"][-1] == "torch.frobnicate"
    assert not found["moves"]
    use = next(use for use in found["uses"] if use["torch"] == "torch.optim.SGD")
    assert use["line"] == 14 and use["rewritten"].startswith(
        f"{use['mindspore']}(model.trainable_params(), lr=args.lr, "
    )
    assert found["pitfalls"]["unused-param-zero-grad"]["places"] == ["train.py:14"]


def test_the_page_is_one_file_and_quotes_nothing(analysis: ScriptAnalysis) -> None:
    page = script_analysis.html(analysis)
    assert page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>")
    assert "<script" not in page and "<b>[bold]" not in page and "\x1b" not in page and ">49<" not in page
    assert "&lt;b&gt;[bold]" in page
    assert not re.search(r"(?:src|@import|url\()", page.split("<body>")[1])
    assert "line 8: args.lr has the default 0.1 in argparse" in page  # the draft of the recipe


def test_the_recipe_is_one_that_its_reader_takes(analysis: ScriptAnalysis, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(script_analysis.recipe_text(analysis), encoding="utf-8")
    assert reader.check(path, draft=True) is None
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert found["model"]["name"] == "resnet18" and found["optimizer"]["args"] == {"lr": 0.1, "momentum": 0.9}


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "msmigrate", "analyze", *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd)


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    done = command("train.py", "--write-recipe", "r.yaml", "--html", "page.html", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert reader.check(tmp_path / "r.yaml", draft=True) is None
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    (tmp_path / "good.py").write_text("import torch\ntorch.nn.ReLU6()\n", encoding="utf-8")
    assert command("good.py", cwd=tmp_path).returncode == 0
    (tmp_path / "bad.py").write_text("import torch\ndef f(:\n", encoding="utf-8")
    done = command("bad.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "msmigrate analyze: bad.py:2: not Python: invalid syntax\n"
