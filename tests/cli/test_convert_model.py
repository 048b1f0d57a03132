"""`msmigrate convert-model` and what converts on the fly: what is written and printed, and the exit codes: 0 parity,
1 a mismatch or something that could not be written, 2 bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msmigrate import cli
from msmigrate.migrate import model_spec

NET = """
from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    '''A residual block.'''

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return x + F.relu(self.norm(self.conv(x)))


class Net(nn.Module):
    def __init__(self, width: int = 4):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(2)])
        self.head = nn.Linear(width, 5)
        self.hidden = nn.Parameter(torch.randn(width))
        self.register_buffer("heads", torch.ones(2, 2).to_sparse(), persistent=False)

    def forward(self, x, mask=None):
        x = self.stem(x)
        if mask is not None:
            x = torch.where(mask, self.hidden[:, None, None], x)
        x = self.blocks(x)
        return {"out": self.head(x.mean((2, 3))), "features": x}


class Odd(nn.Module):
    def forward(self, x):
        return torch.vander(x[0]) * 2


class Slow(nn.Module):
    def forward(self, x):
        print("running", flush=True)
        time.sleep(600)


@dataclass
class Sizes:
    wide: int = 4


class Wanting(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layer = nn.Linear(3, sizes.wide)

    def forward(self, *, x):
        x, (shift, scale) = x
        return self.layer(x) * scale + shift


def build():
    return Net(), torch.rand(1, 3, 12, 12)


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.head = nn.Linear(4, 9)

    def forward(self, ids):
        return self.head(torch.tanh(self.embed(ids)))


def init_embedding(module):
    if isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=0.3)


def tied():
    model = Tokens()
    model.head.weight = model.embed.weight
    model.apply(init_embedding)
    return model


def odd():
    return Odd(), torch.rand(1, 3)


def slow():
    return Slow(), torch.rand(1, 3)


def wanting():
    return Wanting(Sizes()), {"x": [torch.rand(2, 3), (torch.rand(1, 4), 2.0)]}


def wrong():
    return Net(), torch.rand(1, 7, 12, 12)


def nothing():
    return 3
"""


def line(*words: object) -> list[str]:
    """The command line of convert-model."""
    return [sys.executable, "-m", "msmigrate", *map(str, words)]


def run(*words: object, command: str = "convert-model", folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return subprocess.run(
        line(command, *words), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, cwd=folder
    )


DRAWING = """
import torch
from torch import nn


class DropPath(nn.Module):
    def forward(self, x):
        return x * x.new_empty((x.shape[0], 1)).bernoulli_(0.7).div_(0.7) if self.training else x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu, self.logvar, self.path, self.out = nn.Linear(12, 6), nn.Linear(12, 6), DropPath(), nn.Linear(6, 4)

    def forward(self, x):
        mu, std = self.mu(x), torch.exp(0.5 * self.logvar(x))
        z = self.path(mu + torch.randn_like(std) * std)
        z = z * torch.bernoulli(torch.full_like(z, 0.6)) + torch.randn(x.shape[0], 6)[:, torch.randperm(6)]
        z = z + 0.1 * torch.randint(0, 9, (x.shape[0],))[:, None] + torch.rand_like(z) + torch.normal(mu.detach(), std)
        return self.out(z + x.new_empty((x.shape[0], 6)).normal_(0.5, 0.2))


def build():
    return Net(), torch.randn(4, 12)
"""


LOSS = """
import torch
from torch import nn


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(6, 6)]
        self.last = nn.Linear(6, 3)

    def forward(self, x):
        return self.last(self.layers[0](x))


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)

    def forward(self, x, target):
        return (self.fc(x) - target).abs().mean() + sum(p.norm() for p in self.fc.parameters())


def loss():
    return Loss(), (torch.randn(4, 6), torch.randn(4, 3))


def listed():
    return Listed(), torch.randn(4, 6)
"""


@pytest.fixture
def net(tmp_path: Path) -> str:
    """The file of nets, up to the colon behind which a function is named."""
    (tmp_path / "net.py").write_text(NET)
    return f"{tmp_path / 'net.py'}:"


def test_a_model_of_one_s_own_is_written_loaded_and_proven(net: str, tmp_path: Path) -> None:
    out, report = tmp_path / "net_ms.py", tmp_path / "report.json"
    done = run(f"{net}build", "-o", out, "--json", "--steps", 2, "--no-replay", "--parity-report", report)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (
        told["sound"]
        and told["proof"]["parity"]
        and told["checkpoint"]
        == {
            "file": str(out.with_suffix(".ckpt")),
            "tensors": 15,
            "bytes": out.with_suffix(".ckpt").stat().st_size,
            "loaded": True,
        }
    )
    text = out.read_text()
    assert (told["source"]["classes"], told["source"]["lines"]) == (2, len(text.splitlines()))
    assert told["source"]["function"] == "build" and told["source"]["problems"] == []
    assert "import torch" not in text and '"""A residual block."""' in text.replace("'''", '"""')
    proof = json.loads(report.read_text())
    (note,) = [note for note in proof["notes"] if note.startswith("frozen in MindSpore, for this step")]
    assert proof["parity"] is True and note.endswith("leaves them alone: hidden")


@pytest.mark.full
def test_weights_that_are_tied_and_drawn_anew_are_proven(net: str, tmp_path: Path) -> None:
    out = tmp_path / "net_ms.py"
    done = run(f"{net}tied", "1x6:int64", "-o", out, "--json", "--steps", 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["checkpoint"]["tensors"] == 2  # the shared one, and a bias
    assert "net.head.weight = net.embed.embedding_table\n" in out.read_text()
    assert "net.apply(init_embedding)\n" in out.read_text()


def test_what_was_left_out_of_a_file_is_said_where_the_model_then_fails(tmp_path: Path) -> None:
    text = "from torch import nn\nwidth = int(open('no such file').read())\ndef small(): return nn.Linear(2, width)"
    (tmp_path / "late.py").write_text(text)
    done = run(f"{tmp_path}/late.py:small", "1x2", "-o", tmp_path / "x.py", folder=tmp_path)
    assert done.returncode == 2 and "NameError: name 'width' is not defined" in done.stderr
    assert "late.py:2 was left out" in done.stderr and "FileNotFoundError" in done.stderr


def test_what_cannot_be_written_is_told_with_its_place_and_the_rest_is_written(net: str, tmp_path: Path) -> None:
    out = tmp_path / "odd_ms.py"
    done = run(f"{net}odd", "-o", out, folder=tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    number = 1 + NET[: NET.index("torch.vander")].count("\n")
    assert "1 place could not be written, and raises NotImplementedError:" in done.stdout
    assert f"  net.py:{number}: torch.vander has no row in the mapping table" in done.stdout
    assert "not proven, because the source is incomplete" in done.stdout
    assert "class Odd(nn.Cell):" in out.read_text() and "raise NotImplementedError" in out.read_text()


@pytest.mark.full
def test_inputs_inside_of_tuples_and_by_name_alone_are_given_in_the_proof(net: str, tmp_path: Path) -> None:
    done = run(f"{net}wanting", "-o", tmp_path / "wanting_ms.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Parity: " in done.stdout and "loaded into wanting" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("resnet50", "-o", "x.py"), "'resnet50' does not name a model"),
        (("torchvision:resnet51", "-o", "x.py"), "torchvision has no model resnet51; did you mean resnet50"),
        (("{net}gone", "-o", "x.py"), "has no function gone"),
        (("{net}nothing", "-o", "x.py"), "it returns int, not a torch.nn.Module, nor (model, inputs)"),
        (("{net}wrong", "-o", "x.py"), "it does not run: RuntimeError: "),
        (("{net}build", "1x3xtall", "-o", "x.py"), "expected sizes and perhaps a dtype"),
        (("{net}build", "-o", "x.txt"), "give it a name that ends in .py"),
        (("{net}build", "-o", "mindspore.py"), "`import mindspore` would get this file instead"),
        (("{net}build", "-o", "none/x.py"), "does not exist; create it first"),
        (("{net}build", "-o", "net.py", "--force"), "is the source itself"),
        (("{net}build", "-o", "there.py"), "there.py exists; pass --force to replace it"),
        (("{net}build", "-o", "x.py", "--weights", "gone.pth"), "gone.pth"),
        (("{net}build", "-o", "x.py", "--recipe", "gone.yaml"), "gone.yaml"),
        (("{net}build", "-o", "x.py", "--parity-report", "none/r.json"), "none/r.json cannot be written"),
        (("{net}build",), "Missing option '-o'"),
    ],
)
def test_wrong_words_get_one_line_alone(
    words: tuple[str, ...],
    said: str,
    net: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "there.py").write_text("mine")
    before = {path.name for path in tmp_path.iterdir()}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["msmigrate", "convert-model", *(word.format(net=net) for word in words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    err = capsys.readouterr().err
    assert ended.value.code == 2 and said in err and "Traceback" not in err
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == before
    assert (tmp_path / "there.py").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(net: str, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    done = run(f"{net}build", "-o", locked / "x.py")
    assert done.returncode == 2 and "no permission in its folder" in done.stderr


def test_weights_of_another_model_are_refused_before_anything_is_written(net: str, tmp_path: Path) -> None:
    model_spec.ask("source.observe.torch_proof_worker", f"{net}wanting", "a test", str(tmp_path), "0", "2", "1")
    done = run(f"{net}build", "-o", "x.py", "--weights", "weights.pth", folder=tmp_path)
    assert done.returncode == 2 and "weights.pth is not a checkpoint of" in done.stderr
    assert not (tmp_path / "x.py").exists() and not (tmp_path / "x.ckpt").exists()


def test_an_interruption_leaves_nothing(net: str, tmp_path: Path) -> None:
    command = line("convert-model", f"{net}slow", "-o", tmp_path / "x.py")
    group = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    time.sleep(1)
    while not _children(group.pid):
        assert group.poll() is None
        time.sleep(0.05)
    os.killpg(group.pid, signal.SIGINT)
    _, said = group.communicate(timeout=60)
    assert group.returncode == 130 and said.splitlines()[-1] == "msmigrate: interrupted"
    assert not (tmp_path / "x.py").exists()


def _children(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


@pytest.mark.full
def test_a_model_that_draws_is_written_and_proven(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(DRAWING)
    done = run(f"{tmp_path / 'net.py'}:build", "-o", tmp_path / "net_ms.py", "--json", "--steps", 2, "--mode", "graph")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert json.loads(done.stdout)["proof"]["parity"]


def test_a_model_that_returns_one_number_is_proven(tmp_path: Path) -> None:
    """Torch's step joined its outputs along an axis that such a number does not have."""
    (tmp_path / "net.py").write_text(LOSS)
    done = run(f"{tmp_path / 'net.py'}:loss", "-o", tmp_path / "net_ms.py", "--json", "--steps", 2, "--no-replay")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert json.loads(done.stdout)["proof"]["parity"]


def test_layers_that_are_no_part_of_the_model_are_said(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(LOSS)
    done = run(f"{tmp_path / 'net.py'}:listed", "-o", tmp_path / "net_ms.py", "--no-proof")
    said = "layers that run are no part of the model, since they are in a plain list or made as it runs (Linear): torch"
    assert said in done.stdout + done.stderr, done.stdout + done.stderr


@pytest.mark.full
def test_parity_step_converts_a_model_on_the_fly(net: str) -> None:
    done = run(f"{net}build", "--steps", 2, "--no-replay", command="parity-step")
    assert done.returncode == 0, done.stderr
    assert "Parity: " in done.stdout and "data" in done.stdout
    done = run(f"{net}odd", command="parity-step")
    assert done.returncode == 2
    assert "cannot be written whole in MindSpore: 1 place, first net.py:" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--mindspore", "builtins:print"), "--mindspore goes with --torch"),
        (
            ("torchvision:resnet18", "--mindspore", "builtins:print"),
            "name the torch model with --torch torchvision:resnet18",
        ),
    ],
)
def test_half_a_pair_is_refused(words: tuple[str, ...], said: str) -> None:
    done = run(*words, command="parity-step")
    assert done.returncode == 2 and said in done.stderr


@pytest.mark.full
def test_a_small_model_of_torchvision_is_the_same_in_mindspore(tmp_path: Path) -> None:
    out = tmp_path / "shufflenet.py"
    words = ("torchvision:shufflenet_v2_x0_5(num_classes=10)", "1x3x64x64", "-o", out, "--steps", 2, "--no-replay")
    done = run(*words, "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["sound"], (done.stderr, told["proof"], told["stopped"])
    assert told["source"]["classes"] <= 4 and told["source"]["lines"] < 200


@pytest.mark.full
@pytest.mark.parametrize("name", ["squeezenet1_1", "mobilenet_v3_small", "mnasnet0_5", "resnet18", "convnext_tiny"])
def test_more_of_torchvision_in_both_modes(name: str, tmp_path: Path) -> None:
    spec = f"torchvision:{name}(num_classes=10)"
    done = run(spec, "1x3x64x64", "-o", tmp_path / "net_ms.py", "--steps", 2, "--mode", "graph", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["sound"], (done.stderr, told["proof"], told["stopped"])


LOSSES = """
import torch
from torch import nn
from torch.nn import functional as F


class Masked(nn.Module):
    def __init__(self, ignore=-100, share=0.5):
        super().__init__()
        self.entropy = nn.CrossEntropyLoss(ignore_index=ignore)
        self.share = share

    def forward(self, outputs, labels):
        dice = 1 - outputs.softmax(1)[:, 0].mean()
        return self.entropy(target=labels, input=outputs) + self.share * dice


class Sloped(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("slopes", torch.tensor([[-1.0, 0.0, 1.0]]))

    def forward(self, outputs, labels):
        difference = outputs - labels
        return difference.abs().mean() + F.linear(difference, self.slopes).abs().mean()
"""


@pytest.mark.parametrize(
    ("name", "shapes", "saved"), [("Masked", ("4x3x5", "4x5:int64"), False), ("Sloped", ("4x3", "4x3"), True)]
)
def test_a_loss_of_one_s_own_is_written_and_compared(
    name: str, shapes: tuple[str, ...], saved: bool, tmp_path: Path
) -> None:
    """ "Holds no tensors" and "StopIteration" were the answers, and MindSpore's cross-entropy took no int64."""
    (tmp_path / "losses.py").write_text(LOSSES)
    out = tmp_path / "losses_ms.py"
    done = run(f"{tmp_path / 'losses.py'}:{name}", *shapes, "-o", out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the same in both modes, and after training: as it is" in done.stdout
    assert f"`loss: {{name: {tmp_path / 'losses.py'}:{name}, source: {out}}}`, proves it with its step" in done.stdout
    assert out.with_suffix(".ckpt").exists() is saved
    assert "import torch" not in out.read_text()
