"""Real exports: MindIR and ONNX of a little ResNet from torch's own checkpoint, run and compared on real images, an
encrypted MindIR of a Cell, and what no exporter takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from msmigrate.migrate.checkpoint.convert import convert
from msmigrate.training.data.sources import open_source
from msmigrate.workflows import export
from plain_lines import besides_progress
from safetensors.numpy import save_file

HERE = Path(__file__).parent
RECIPE = HERE.parent / "workflows" / "digits.yaml"
COMMAND = (sys.executable, "-m", "msmigrate", "export")


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tiny.pth, torch's weights of resnet_tiny, their outputs out.npz, and images/."""
    folder = tmp_path_factory.mktemp("made")
    subprocess.run([sys.executable, str(HERE / "export_torch_worker.py"), str(RECIPE), str(folder)], check=True)
    (folder / "images").mkdir()
    source = open_source("digits:test", 10, training=False)
    for index in range(6):
        (folder / "images" / f"{index}.png").write_bytes(source[index].data)
    return folder


@pytest.mark.full
def test_onnx_with_an_open_batch_is_torchs_on_real_images(made: Path, tmp_path: Path) -> None:
    """The net has a padded max-pool and an adaptive mean, which the exporter cannot write."""
    out = tmp_path / "tiny.onnx"
    done = run(
        made / "tiny.pth", "--recipe", RECIPE, "--format", "onnx", "--dynamic", "--images", made / "images", "-o", out
    )
    assert (done.returncode, besides_progress(done.stderr)) == (0, ""), done
    for words in ("run on 6 images, in batches of 1 and 3", "maxpool: MaxPool2d", "ONNX = torch, batches of 3"):
        assert words in done.stdout, done.stdout
    model = onnx.load(out)
    onnx.checker.check_model(model, full_check=True)
    assert {node.op_type for node in model.graph.node}.isdisjoint({"Pad"})
    session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    with np.load(made / "out.npz") as stored:
        for size in (1, 6):
            (got,) = session.run(None, {session.get_inputs()[0].name: stored["images"][:size]})
            np.testing.assert_allclose(got, stored["logits"][:size], atol=2e-5)


CELL = """
from mindspore import nn, ops

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flat = nn.Flatten()
        self.fc = nn.Dense(48, 8)
        self.drop = nn.Dropout(p=0.5)

    def construct(self, x):
        return self.drop(self.fc(self.flat(x))){more}

def build():
    return Net().set_train(True)
"""


POOLING = """
from mindspore import nn, ops

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, pad_mode="pad", padding=(0, 0, 1, 0), has_bias=True)
        self.pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        self.act = nn.GELU(False)
        self.mean = nn.AdaptiveAvgPool2d((3, 2))
        self.fc = nn.Dense(24, 8)

    def construct(self, x):
        x = ops.pad(x, (1, 1, 2, 0))
        x = self.mean(self.act(self.pool(self.conv(x))))
        x = ops.masked_fill(x, x[:, :, :1] > x[:, :, 1:2], 0.5)
        x = x.permute(1, 0, 2, 3).reshape(4, -1, 2).permute(1, 0, 2)  # the batch, times rows, in the second place
        return self.fc(x.reshape(-1, 24))

def build():
    return Net()
"""


def test_onnx_of_a_cell_with_an_open_batch(cell: Path, tmp_path: Path) -> None:
    """It has padding, a padded max-pool, an adaptive mean, an exact GELU and a masked fill: the exporter has none."""
    out, model = tmp_path / "net.onnx", f"{cell / 'pooling.py'}:build"
    words = (cell / "pooling.ckpt", "--model", model, "--input", "1x3x8x8", "--format", "onnx", "--dynamic", "-o", out)
    done = run(*words)
    assert (done.returncode, besides_progress(done.stderr)) == (0, ""), done
    for said in ("pool: MaxPool2d, act: GELU, mean: AdaptiveAvgPool2d", "ONNX = MindSpore, batches of 3"):
        assert said in done.stdout, done.stdout
    operators = [node.op_type for node in onnx.load(out).graph.node]
    assert {"MaxPool", "Erf"} <= set(operators) and operators.count("Pad") == 1
    session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(0).standard_normal((5, 3, 8, 8), dtype=np.float32)
    (all_,), (one,) = (session.run(None, {session.get_inputs()[0].name: given}) for given in (x, x[:1]))
    np.testing.assert_allclose(all_[:1], one, rtol=1e-5, atol=1e-5)
    assert all_.shape == (5, 8) and np.ptp(all_, axis=0).min() > 0


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """net.py, a net in training mode, pooling.py, one that the ONNX exporter cannot write as it is, sorting.py, one
    with an operator that it lacks, and their weights, net.ckpt and pooling.ckpt; no framework is started for them."""
    folder = tmp_path_factory.mktemp("cell")
    (folder / "net.py").write_text(CELL.format(more=""))
    (folder / "sorting.py").write_text(CELL.format(more=" + ops.lgamma(self.fc(self.flat(x)))"))
    random = np.random.default_rng(0)
    (folder / "pooling.py").write_text(POOLING)
    pooling = {"conv.weight": (4, 3, 3, 3), "conv.bias": (4,), "fc.weight": (8, 24), "fc.bias": (8,)}
    for name, shapes in {"net": {"fc.weight": (8, 48), "fc.bias": (8,)}, "pooling": pooling}.items():
        tensors = {key: random.standard_normal(shape, dtype=np.float32) for key, shape in shapes.items()}
        save_file(tensors, folder / f"{name}.safetensors", metadata={"format": "pt"})
        convert(folder / f"{name}.safetensors", folder / f"{name}.ckpt")
    return folder


def test_an_encrypted_mindir_of_a_cell_in_training_mode(cell: Path, tmp_path: Path) -> None:
    """It has dropout, and is exported in evaluation mode all the same; nothing says its key."""
    key, out = tmp_path / "key", tmp_path / "net.mindir"
    key.write_bytes(b"0123456789abcdef")
    model = f"{cell / 'net.py'}:build"
    words = (cell / "net.ckpt", "--model", model, "--input", "2x3x4x4", "--key-file", key, "-o", out, "--json")
    done = run(*words)
    assert done.returncode == 0, done
    told = json.loads(done.stdout)
    assert told["same"] and told["batches"] == [2] and told["torch"] is None
    assert b"fc.weight" not in out.read_bytes() and "0123456789abcdef" not in done.stdout + done.stderr


@pytest.mark.full
def test_an_operator_without_a_converter_is_named_with_its_place(cell: Path, tmp_path: Path) -> None:
    model = f"{cell / 'sorting.py'}:build"
    done = run(
        cell / "net.ckpt",
        "--model",
        model,
        "--input",
        "2x3x4x4",
        "--format",
        "onnx",
        "-o",
        tmp_path / "net.onnx",
    )
    assert done.returncode == 2 and done.stdout == ""
    assert "no converter for Lgamma (the net's own construct)" in done.stderr and done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
@pytest.mark.parametrize("form", ["mindir", "onnx"])
@pytest.mark.parametrize("options", [(), ("--dynamic",), ("--batch", "3")])
def test_every_way_of_batches(made: Path, tmp_path: Path, form: str, options: tuple[str, ...]) -> None:
    out = tmp_path / f"tiny.{form}"
    done = run(made / "tiny.pth", "--recipe", RECIPE, "--format", form, *options, "-o", out)
    assert (done.returncode, besides_progress(done.stderr)) == (0, "") and out.exists(), done
    assert "drawn inputs (3×32×32)" in done.stdout


@pytest.mark.full
@pytest.mark.parametrize(("form", "key"), [("mindir", False), ("mindir", True), ("onnx", False)])
def test_a_large_net_has_its_numbers_beside_it(cell: Path, tmp_path: Path, form: str, key: bool) -> None:
    """As MindSpore writes it above 1 GB, and ONNX above 2; the pair is loaded again where it was put."""
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    out, beside = (
        tmp_path / f"my net.{form}",
        tmp_path / ("my_net_variables" if form == "mindir" else "my_net.onnx.data"),
    )
    code = export.run(
        cell / "net.ckpt",
        out,
        form,
        model=f"{cell / 'net.py'}:build",
        shapes=("2x3x4x4",),
        dynamic=True,
        key_file=tmp_path / "key" if key else None,
        worker=lambda name: (sys.executable, str(HERE / "large_worker.py"), name),
    )
    assert code == 0 and out.exists() and beside.exists()
    numbers = beside / "data_0" if form == "mindir" else beside
    assert out.stat().st_size < 20_000 and numbers.stat().st_size >= 48 * 8 * 4
    if form == "onnx":
        onnx.checker.check_model(str(out), full_check=True)
        session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
        shape = [1, 3, 4, 4]
        assert session.run(None, {session.get_inputs()[0].name: np.ones(shape, np.float32)})[0].shape == (1, 8)


@pytest.mark.full
def test_a_torch_model_that_is_not_the_cells_is_told_apart(cell: Path, tmp_path: Path) -> None:
    """A wrong torch model has other outputs, and nothing is written."""
    (cell / "other.py").write_text(
        "import torch\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = torch.nn.Linear(48, 8)\n\n    def forward(self, x):\n"
        "        return self.fc(x.flatten(1)) * 1.001\n\ndef build():\n    return Net()\n"
    )
    words = ("--model", f"{cell / 'net.py'}:build", "--torch", f"{cell / 'other.py'}:build", "--input", "2x3x4x4")
    done = run(cell / "net.ckpt", *words, "-o", tmp_path / "net.mindir")
    assert done.returncode == 1 and "MindSpore differs from torch" in done.stdout, done
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_a_servable_prepares_and_names_as_the_net_was_evaluated(made: Path, tmp_path: Path) -> None:
    """The command runs its configuration; a changed one is told apart."""
    out = tmp_path / "digits"
    done = run(made / "tiny.pth", "--recipe", RECIPE, "--format", "serving", "--batch", "2", "-o", out)
    assert (done.returncode, besides_progress(done.stderr)) == (0, ""), done
    assert "its methods agree with the net" in done.stdout
    scope = probe(out, "", made / "images" / "0.png")
    assert scope["agrees"]
    assert not probe(out, "mean=(0.5, 0.5, 0.5)", made / "images" / "0.png")["agrees"]
    assert not probe(out, "np.argmax(logits)", made / "images" / "0.png")["agrees"]


def probe(servable: Path, changed: str, image: Path) -> dict[str, bool]:
    """Whether the servable, with one of its expressions changed, prepares an image as the recipe does and names it."""
    config = servable / "servable_config.py"
    text = config.read_text()
    assert changed in text
    other = {"mean=(0.5, 0.5, 0.5)": "mean=(0.5, 0.5, 0.4)", "np.argmax(logits)": "np.argmin(logits)", "": ""}
    config.write_text(text.replace(changed, other[changed]))
    done = subprocess.run(
        [sys.executable, str(HERE / "servable_mindspore_worker.py"), str(servable), str(RECIPE), str(image)],
        capture_output=True,
        text=True,
    )
    config.write_text(text)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.full
def test_pools_with_an_open_batch_are_mindspores_to_the_bit(tmp_path: Path) -> None:
    words = [sys.executable, str(HERE / "pools_mindspore_worker.py"), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [[True, True]] * 5


@pytest.mark.full
def test_pools_paddings_and_resizing_are_mindspores(tmp_path: Path) -> None:
    """Pools with padding, rounded up, with and without the padding counted, by another divisor; paddings that go on."""
    words = [sys.executable, str(HERE / "functions_mindspore_worker.py"), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for number in range(int(done.stdout.splitlines()[-1])):
        session = onnxruntime.InferenceSession(str(tmp_path / f"{number}.onnx"), providers=["CPUExecutionProvider"])
        with np.load(tmp_path / f"{number}.npz") as stored:
            (got,) = session.run(None, {session.get_inputs()[0].name: stored["x"]})
            np.testing.assert_allclose(got, stored["own"], rtol=2e-6, err_msg=f"case {number}")
