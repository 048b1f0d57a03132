"""A net of recurrence, attention and transposed convolutions: its checkpoint crosses, and computes the same there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
Command = Callable[..., "subprocess.CompletedProcess[str]"]

TORCH = """
import sys, numpy as np, torch
sys.path.insert(0, sys.argv[1])
import nets_torch
net = nets_torch.sequence().eval()
x = torch.randn(6, 2, 8)
torch.save(net.state_dict(), "x.pth")
np.savez("torch.npz", x=x.numpy(), y=net(x).detach().numpy())
"""
MINDSPORE = """
import sys, numpy as np, mindspore
sys.path.insert(0, sys.argv[1])
import nets_mindspore
net = nets_mindspore.sequence()
left = mindspore.load_param_into_net(net, mindspore.load_checkpoint("x.ckpt"))
assert left == ([], []), left
x = mindspore.Tensor(np.load("torch.npz")["x"])
np.save("mindspore.npy", net.set_train(False)(x).asnumpy())
"""


@pytest.mark.parametrize(
    "options",
    [
        ["--into", f"{HERE / 'nets_mindspore.py'}:sequence"],
        pytest.param(["--model", f"{HERE / 'nets_torch.py'}:sequence"], marks=pytest.mark.full),
    ],
    ids=["into", "model"],
)
def test_a_converted_sequence_net_computes_the_same(command: Command, tmp_path: Path, options: list[str]) -> None:
    run = [sys.executable, "-W", "ignore", "-c"]
    subprocess.run([*run, TORCH, HERE], cwd=tmp_path, check=True)
    done = command("x.pth", "x.ckpt", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    subprocess.run([*run, MINDSPORE, HERE], cwd=tmp_path, check=True, stderr=subprocess.DEVNULL)
    ours, theirs = np.load(tmp_path / "torch.npz")["y"], np.load(tmp_path / "mindspore.npy")
    assert np.abs(ours - theirs).max() < 5e-6
