"""What the proof of a conversion starts from: weights, and batches that are like the model's own inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msmigrate.errors import BadInput
from msmigrate.migrate.source import convert_model

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 3)
        self.head = nn.Linear(3, 4)

    def forward(self, tokens, mask, scale=None):
        return self.head((self.embed(tokens) * mask[:, :, None]).sum(1))


def tokens():
    return Net(), (torch.tensor([[1, 2, 3, 9, 9]]), torch.tensor([[1.0, 1.0, 1.0, 0.0, 0.0]]))


def named():
    return Net(), {"tokens": torch.tensor([[1, 2]]), "mask": torch.ones(1, 2)}


def skipping():
    return Net(), {"tokens": torch.tensor([[1, 2]]), "scale": torch.ones(1)}


class Norm(nn.BatchNorm1d):
    def forward(self, x):
        return super().forward(x), x


def norm():
    return Norm(3), torch.ones(1, 3)


class Listed(nn.Linear):
    def forward(self, images):
        return [super().forward(x) for x in images]


def listed():
    return Listed(3, 4), ([torch.ones(3)],)


class States(nn.Linear):
    def forward(self, x, states, *, scale=None, twice=False):
        return super().forward(x) + states[0] + states[1]["more"], scale


def states():
    return States(3, 4), (torch.ones(2, 3), (torch.ones(2, 4), {"more": torch.ones(1, 2, 4)}))


class Words(nn.Linear):
    def forward(self, x, words):
        return super().forward(x) * len(words)


def words():
    return Words(3, 4), (torch.ones(2, 3), {"a", "set"})
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of nets, up to the colon behind which a function is named."""
    file = tmp_path_factory.mktemp("model") / "start_nets.py"
    file.write_text(MODEL)
    return f"{file}:"


def begin(spec: str, folder: Path) -> tuple[convert_model.ProofInputs, dict[str, np.ndarray]]:
    """The start with batches of three examples for two steps, and what is in its file."""
    found = convert_model.start(spec, (), folder, seed=0, batch=3, steps=2)
    assert found.weights.stat().st_size
    return found, {} if found.batch is None else dict(np.load(found.batch))


def test_tokens_stay_tokens_and_masks_masks(model: str, tmp_path: Path) -> None:
    found, arrays = begin(f"{model}tokens", tmp_path)
    assert found.plain and sorted(arrays) == ["input1", "input1.1", "input2", "input2.1", "labels1", "labels2"]
    assert arrays["input1"].shape == arrays["input1.1"].shape == (3, 5)
    assert arrays["input1"][0].tolist() == [1, 2, 3, 9, 9]  # what the model brought is there
    for row in (*arrays["input1"], *arrays["input2"]):
        assert sorted(row.tolist()) == [1, 2, 3, 9, 9]
    assert all(sorted(row) == [0, 0, 1, 1, 1] for row in arrays["input2.1"].tolist())
    assert not np.array_equal(arrays["input1"], arrays["input2"])
    assert arrays["labels1"].shape == (3,) and set(arrays["labels1"]) <= {0, 1, 2, 3}


def test_names_go_by_place_where_they_can(model: str, tmp_path: Path) -> None:
    found, arrays = begin(f"{model}named", tmp_path)
    assert found.plain and arrays["input1"].dtype == np.int64 and arrays["input1.1"].dtype == np.float32


def test_numbers_that_are_all_one_are_varied(model: str, tmp_path: Path) -> None:
    found, arrays = begin(f"{model}norm", tmp_path)
    assert not found.plain and arrays["input1"].std(axis=0).min() > 0


def test_what_cannot_be_given_by_place_has_no_batch(model: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="it does not run: TypeError"):
        convert_model.write_source(f"{model}skipping")
    assert begin(f"{model}words", tmp_path)[0].batch is None


def test_tensors_inside_of_tuples_are_given_one_by_one(model: str, tmp_path: Path) -> None:
    found, arrays = begin(f"{model}states", tmp_path)
    assert (found.call, found.inputs, found.plain) == ("x0, (x1, {'more': x2})", 3, False)
    assert arrays["input1.2"].shape == (1, 2, 4)  # no row for each example


def test_tokens_by_their_shape_alone_are_of_the_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL + EMBEDDED)
    convert_model.start(f"{tmp_path / 'model.py'}:embedded", ["1x30:int64"], tmp_path, seed=0, batch=4, steps=1)
    found = np.load(tmp_path / "batch.npz")["input1"]
    assert found.shape == (4, 30)
    assert found.min() >= 0
    assert found.max() < 10
    assert len(np.unique(found)) > 5


EMBEDDED = """

def embedded():
    return nn.Sequential(nn.Embedding(10, 3), nn.Flatten(), nn.Linear(90, 4))
"""
