"""What a user's file puts on a GPU stays on the CPU where everything is compared there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

UNCHANGED = "not OnTheCpu.entered and not torch.overrides._get_current_function_mode_stack()"
NET = """
import torch
import places


def build():
    layer = torch.nn.Linear(2, 2).to(places.WHERE)
    made = [
        torch.zeros(2, device=places.WHERE), torch.tensor([1.0]).cuda(), torch.ones(2).to("cuda:1", torch.float64),
        torch.randn(2).to(device="cuda"), torch.zeros_like(layer.weight, device="cuda").cuda(non_blocking=True),
    ]
    return layer, [str(one.device) for one in (*made, *layer.parameters())], made[2].dtype
"""


@pytest.fixture
def net(tmp_path: Path) -> str:
    """A file that imports another, which names the GPU."""
    (tmp_path / "places.py").write_text('import torch\nWHERE = torch.device("cuda", 0)\n')
    (tmp_path / "net.py").write_text(NET)
    return f"{tmp_path / 'net.py'}:build"


def _runs(*lines: str) -> None:
    """Fail unless these lines run, in a process of their own: what is put on the CPU is so for all of it."""
    imports = ("import torch", "from msmigrate.migrate.model_spec import parse")
    names = "from msmigrate.migrate.torch_models import OnTheCpu, builder_of"
    text = "\n".join((*imports, names, *lines))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_everything_stays_on_the_cpu_from_there_on(net: str) -> None:
    _runs(
        f"build = builder_of(parse({net!r}))",
        f"again = builder_of(parse({net!r}))",
        "_, places, dtype = build()",
        "assert places == ['cpu'] * 7 and dtype == torch.float64, (places, dtype)",
        "assert OnTheCpu.entered and len(torch.overrides._get_current_function_mode_stack()) == 1",
    )


def test_on_a_device_of_torchs_own_nothing_is_changed(net: str) -> None:
    _runs(f"builder_of(parse({net!r}), device='cuda')", f"assert {UNCHANGED}")


@pytest.mark.parametrize("line", ["", "# .cuda is for later", "if torch.cuda.is_available():\n    pass"])
def test_a_file_that_puts_nothing_on_a_gpu_changes_nothing(line: str, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(f"import torch\n{line}\n\n\ndef build():\n    return torch.nn.Linear(2, 2)\n")
    _runs(f"builder_of(parse({str(tmp_path / 'plain.py')!r} + ':build'))()", f"assert {UNCHANGED}")
