"""The model that eval and predict are tested with is trained once a session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from msmigrate.migrate.checkpoint.convert import convert
from msmigrate.training import checkpoints
from msmigrate.training.data.sources import open_source

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for trained_digits

from trained_digits import IN_TREE, RECIPE, WORDS, Trained, run  # noqa: E402


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("trained")
    done = subprocess.run(
        [sys.executable, str(HERE / "eval_torch_worker.py"), str(RECIPE), str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    with np.load(folder / "torch.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    convert(folder / "model.pth", folder / "converted.ckpt")
    tensors = checkpoints.read(folder / "converted.ckpt").tensors
    tensors |= {name.replace("ema/", "ema."): array for name, array in arrays.items() if name.startswith("ema/")}
    tensors["optimizer.momentum_buffer.fc.bias"] = np.zeros(10, dtype=np.float32)
    checkpoints.write(folder / "own.ckpt", tensors, run(list(WORDS)))
    source = open_source("digits:test", 10, training=False)
    for index in range(IN_TREE):
        place = folder / "tree" / WORDS[source.labels[index]]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{index:03}.png").write_bytes(source[index].data)
    return Trained(
        folder / "model.pth",
        folder / "own.ckpt",
        folder / "tree",
        arrays["logits"],
        float(arrays["loss"]),
        arrays["ema_logits"],
        source.labels,
    )
