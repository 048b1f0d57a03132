"""What torch's functions draw under parity: drawing_torch_worker.py FOLDER leaves torch.npz and torch.json there.

Under one name stand several ways to draw the same; drawing_mindspore_worker.py has more of them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from msmigrate.parity.compared_draws import about
from msmigrate.parity.record.randomness import Draws
from msmigrate.parity.record.torch_randomness import fixed
from torch import distributions as D
from torch import nn

GIVEN = np.random.default_rng(0)
X = torch.from_numpy(GIVEN.normal(size=(4, 5)).astype(np.float32))
P = torch.from_numpy(GIVEN.uniform(0.05, 0.95, (4, 5)).astype(np.float32))
IMAGES = torch.from_numpy(GIVEN.normal(size=(4, 5, 3, 3)).astype(np.float32))


def empty() -> torch.Tensor:
    return torch.empty(4, 5)


class DropPath(nn.Module):
    """Three of the ways in which people write it."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.how == "floor":
            return x * torch.floor(0.7 + torch.rand(x.shape[0], 1))
        if self.how == "above the rate":
            return x * (torch.rand(x.shape[0], 1) > 0.3)
        return x * x.new_empty((x.shape[0], 1)).bernoulli_(0.7)


CASES: dict[str, list[Callable[[], Any]]] = {
    "uniform": [
        lambda: torch.rand(4, 5),
        lambda: torch.rand((4, 5), generator=torch.Generator()),
        lambda: torch.rand_like(X),
        lambda: empty().uniform_(),
        lambda: D.Uniform(0.0, 1.0).sample((4, 5)),
        lambda: torch.rand(4, 5, out=torch.empty(0)),
    ],
    "uniform between": [lambda: empty().uniform_(-1.0, 3.0), lambda: D.Uniform(-1.0, 3.0).rsample((4, 5))],
    "normal": [
        lambda: torch.randn(4, 5),
        lambda: torch.randn_like(X),
        lambda: empty().normal_(),
        lambda: X.new_empty(4, 5).normal_(),
        lambda: torch.normal(0.0, 1.0, (4, 5)),
        lambda: D.Normal(0.0, 1.0).rsample((4, 5)),
        lambda: nn.init.normal_(empty()),
        lambda: torch.empty(5, 4).t().normal_(),  # in another order in memory
    ],
    "normal with means": [
        lambda: X + P * torch.randn_like(X),
        lambda: torch.normal(X, P),
        lambda: D.Normal(X, P).rsample(),
    ],
    "normal with one mean": [
        lambda: torch.normal(1.5, 2.0, (4, 5)),
        lambda: empty().normal_(1.5, 2.0),
        lambda: torch.normal(torch.full((4, 5), 1.5), 2.0),
        lambda: torch.normal(1.5, torch.full((4, 5), 2.0)),
    ],
    "log normal": [lambda: empty().log_normal_(1.0, 2.0), lambda: D.LogNormal(1.0, 2.0).sample((4, 5))],
    "integers": [
        lambda: torch.randint(3, 17, (4, 5)),
        lambda: torch.randint_like(X, 3, 17),
        lambda: empty().random_(3, 17),
        lambda: 3 + torch.floor(14 * torch.rand(4, 5)),
    ],
    "integers from zero": [lambda: torch.randint(14, (4, 5)), lambda: empty().random_(14)],
    "trials of one chance": [
        lambda: torch.bernoulli(torch.full((4, 5), 0.3)),
        lambda: torch.bernoulli(X, 0.3),
        lambda: empty().bernoulli_(0.3),
        lambda: (torch.rand(4, 5) < 0.3).float(),
        lambda: D.Bernoulli(0.3).sample((4, 5)),
    ],
    "trials": [
        lambda: torch.bernoulli(P),
        lambda: P.bernoulli(),
        lambda: empty().bernoulli_(P),
        lambda: D.Bernoulli(P).sample(),
        lambda: (torch.rand_like(P) < P).float(),
    ],
    "permutation": [lambda: torch.randperm(9), lambda: torch.argsort(torch.rand(9))],
    "order of rows": [lambda: torch.argsort(torch.rand(4, 9), dim=1)],
    "shuffled": [lambda: X[torch.randperm(4)]],
    "one choice": [
        lambda: torch.multinomial(P, 1),
        lambda: torch.multinomial(P, 1, replacement=True),
        lambda: D.Categorical(P).sample()[:, None],
    ],
    "choices": [
        lambda: torch.multinomial(P, 3),
        lambda: P.multinomial(3),
        lambda: P.double().requires_grad_().multinomial(3),  # as what a layer gave, in the reference
    ],
    "choices put back": [lambda: torch.multinomial(P, 3, True), lambda: D.Categorical(P).sample((3,)).t()],
    "exponential": [
        lambda: empty().exponential_(2.0),
        lambda: D.Exponential(2.0).sample((4, 5)),
        lambda: -torch.log(torch.rand(4, 5)) / 2.0,
    ],
    "gumbel": [lambda: -empty().exponential_().log(), lambda: D.Gumbel(0.0, 1.0).sample((4, 5))],
    "gumbel softmax": [lambda: F.gumbel_softmax(X, tau=0.7)],
    "one of a gumbel softmax": [lambda: F.gumbel_softmax(X, hard=True)],
    "cauchy": [lambda: empty().cauchy_(), lambda: D.Cauchy(0.0, 1.0).sample((4, 5))],
    "laplace": [lambda: D.Laplace(0.0, 1.0).sample((4, 5))],
    "failures": [lambda: empty().geometric_(0.3) - 1, lambda: D.Geometric(0.3).sample((4, 5))],
    "poisson": [lambda: torch.poisson(3.0 * P), lambda: D.Poisson(3.0 * P).sample()],
    "slopes": [lambda: F.rrelu(X, training=True)],
    "dropout": [
        lambda: F.dropout(X, 0.3),
        lambda: nn.Dropout(0.3)(X),
        lambda: torch.dropout(X, 0.3, True),
        lambda: torch.empty_like(X).bernoulli_(0.7) / 0.7 * X,
    ],
    "channels": [lambda: F.dropout2d(IMAGES, 0.3), lambda: torch.feature_dropout(IMAGES, 0.3, True)],
    "rows": [lambda: F.dropout1d(X, 0.3), lambda: F.dropout1d(X[None], 0.3)[0]],
    "attention": [
        lambda: F.scaled_dot_product_attention(X[None, None], X[None, None], X[None, None], dropout_p=0.3),
        lambda: F.dropout(torch.softmax(X[None, None] @ X.t() / 5**0.5, -1), 0.3) @ X,
    ],
    "drop path": [lambda how=how: DropPath(how)(X) for how in ("floor", "above the rate", "bernoulli")],
    "nothing": [lambda: F.dropout(X, 0.0), lambda: F.dropout(X, 0.5, False)],
    "twice": [lambda: torch.randn(3) - torch.randn(3)],
    "libraries": [lambda: torch.from_numpy(np.random.normal(size=(2, 3)) + __import__("random").random())],
    "unfixed": [lambda: D.Gamma(P, 1.0).sample(), lambda: D.Beta(P, P).sample()],
}
FLOATING = ("normal", "uniform", "trials", "exponential", "gumbel softmax")  # drawn in float64, too


def drawn(case: Callable[[], Any]) -> tuple[np.ndarray, Draws]:
    draws = Draws(1)
    torch.manual_seed(int(np.random.default_rng().integers(1 << 30)))
    with fixed(nn.Identity(), draws):
        return case().detach().numpy(), draws


def main(folder: Path) -> None:
    arrays, said = {}, {}
    for name, ways in CASES.items():
        for i, way in enumerate(ways):
            arrays[f"{name}#{i}"], draws = drawn(way)
            said[f"{name}#{i}"] = about([draws])
    torch.set_default_dtype(torch.float64)
    for name in FLOATING:
        arrays[f"{name}#double"], _ = drawn(CASES[name][0])
    np.savez(folder / "torch.npz", **arrays)
    (folder / "torch.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
