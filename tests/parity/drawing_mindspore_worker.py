"""What MindSpore's functions draw under parity: drawing_mindspore_worker.py FOLDER leaves mindspore.npz and
mindspore.json there. The names are those of drawing_torch_worker.py, the ways to draw MindSpore's."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msmigrate.workers.worker import prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402
import mindspore.nn.probability.distribution as D  # noqa: E402
import mindspore.numpy as mnp  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, mint, nn, ops  # noqa: E402
from msmigrate.nn import functional as composed  # noqa: E402
from msmigrate.parity.compared_draws import about  # noqa: E402
from msmigrate.parity.record.mindspore_randomness import fixed  # noqa: E402
from msmigrate.parity.record.randomness import Draws  # noqa: E402

F32, I32 = mindspore.float32, mindspore.int32
GIVEN = np.random.default_rng(0)
X = Tensor(GIVEN.normal(size=(4, 5)).astype(np.float32))
P = Tensor(GIVEN.uniform(0.05, 0.95, (4, 5)).astype(np.float32))
IMAGES = Tensor(GIVEN.normal(size=(4, 5, 3, 3)).astype(np.float32))


def empty(dtype: Any = F32) -> Tensor:
    return ops.zeros((4, 5), dtype)


class DropPath(nn.Cell):
    """Four of the ways in which people write it; the last is what convert-model writes of torch's bernoulli_."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.dropout = nn.Dropout(p=0.3)

    def construct(self, x: Tensor) -> Tensor:
        if self.how == "floor":
            return x * ops.floor(0.7 + ops.rand(x.shape[0], 1))
        if self.how == "bernoulli":
            return x * ops.bernoulli(ops.ones((x.shape[0], 1)), 0.7)
        if self.how == "dropout":
            return x * self.dropout(ops.ones((x.shape[0], 1))) * 0.7
        return x * composed.filled_bernoulli(ops.ones((x.shape[0], 1)), 0.7)


CASES: dict[str, list[Callable[[], Any]]] = {
    "uniform": [
        lambda: ops.rand(4, 5),
        lambda: ops.rand_like(X),
        lambda: ops.uniform((4, 5), Tensor(0.0, F32), Tensor(1.0, F32)),
        lambda: ops.UniformReal()((4, 5)),
        lambda: mint.rand(4, 5),
        lambda: mint.rand_like(X),
        lambda: mnp.rand(4, 5),
        lambda: empty().uniform_(),
        lambda: D.Uniform(0.0, 1.0).sample((4, 5)),
        lambda: composed.rand((4, 5)),
        lambda: composed.filled_uniform(X),
    ],
    "uniform between": [
        lambda: ops.uniform((4, 5), Tensor(-1.0, F32), Tensor(3.0, F32)),
        lambda: empty().uniform_(-1.0, 3.0),
        lambda: X.uniform(-1.0, 3.0),
        lambda: composed.filled_uniform(X, -1.0, 3.0),
    ],
    "normal": [
        lambda: ops.randn(4, 5),
        lambda: ops.randn_like(X),
        lambda: ops.standard_normal((4, 5)),
        lambda: ops.normal((4, 5), 0.0, 1.0),
        lambda: ops.StandardNormal()((4, 5)),
        lambda: mint.randn(4, 5),
        lambda: mint.randn_like(X),
        lambda: mint.normal(0.0, 1.0, (4, 5)),
        lambda: mnp.randn(4, 5),
        lambda: empty().normal_(),
        lambda: D.Normal(0.0, 1.0).sample((4, 5)),
        lambda: composed.randn((4, 5)),
        lambda: composed.filled_normal(X),
        lambda: composed.normal_rsample(composed.normal_distribution(0.0, 1.0), (4, 5)),
    ],
    "normal with means": [
        lambda: X + P * ops.randn_like(X),
        lambda: ops.normal((4, 5), X, P),
        lambda: mint.normal(X, P),
        lambda: D.Normal().sample((), X, P),
        lambda: composed.normal(X, P),
        lambda: composed.normal_sample(composed.normal_distribution(X, P)),
    ],
    "normal with one mean": [
        lambda: ops.normal((4, 5), 1.5, 2.0),
        lambda: mint.normal(1.5, 2.0, (4, 5)),
        lambda: mint.normal(1.5 * ops.ones((4, 5)), 2.0),
        lambda: empty().normal_(1.5, 2.0),
    ],
    "log normal": [lambda: empty().log_normal(1.0, 2.0), lambda: ops.exp(ops.normal((4, 5), 1.0, 2.0))],
    "integers": [
        lambda: ops.randint(3, 17, (4, 5)),
        lambda: ops.randint_like(empty(I32), 3, 17),
        lambda: ops.uniform((4, 5), Tensor(3, I32), Tensor(17, I32), dtype=I32),
        lambda: ops.UniformInt()((4, 5), Tensor(3, I32), Tensor(17, I32)),
        lambda: mint.randint(3, 17, (4, 5)),
        lambda: mint.randint_like(empty(I32), 3, 17),
        lambda: mnp.randint(3, 17, (4, 5)),
        lambda: empty(I32).random_(3, 17),
        lambda: 3 + ops.floor(14 * ops.rand(4, 5)),
        lambda: composed.randint(3, 17, (4, 5)),
    ],
    "integers from zero": [lambda: ops.randint(0, 14, (4, 5)), lambda: mint.randint(14, (4, 5))],
    "trials of one chance": [
        lambda: ops.bernoulli(X, 0.3),
        lambda: ops.bernoulli(X, Tensor([0.3], F32)),
        lambda: mint.bernoulli(0.3 * ops.ones((4, 5))),
        lambda: empty().bernoulli_(0.3),
        lambda: (ops.rand(4, 5) < 0.3).astype(F32),
        lambda: D.Bernoulli(0.3).sample((4, 5)),
        lambda: composed.filled_bernoulli(X, 0.3),
    ],
    "trials": [
        lambda: ops.bernoulli(X, P),
        lambda: mint.bernoulli(P),
        lambda: P.bernoulli(),
        lambda: (ops.rand_like(P) < P).astype(F32),
        lambda: D.Bernoulli().sample((), P),
        lambda: composed.bernoulli(P),
    ],
    "permutation": [
        lambda: ops.randperm(9),
        lambda: mint.randperm(9),
        lambda: ops.argsort(ops.rand(9)),
        lambda: ops.shuffle(ops.arange(9)),
        lambda: ops.Randperm(max_length=9)(Tensor([9], I32)),
        lambda: composed.randperm(9),
    ],
    "order of rows": [lambda: ops.argsort(ops.rand(4, 9), axis=1), lambda: ops.sort(mint.rand(4, 9), axis=1)[1]],
    "shuffled": [lambda: ops.shuffle(X), lambda: X[ops.randperm(4)]],
    "one choice": [
        lambda: ops.multinomial(P, 1),
        lambda: ops.multinomial(P, 1, False),
        lambda: mint.multinomial(P, 1),
        lambda: ops.random_categorical(ops.log(P), 1),
        lambda: D.Categorical().sample((), P).reshape(4, 1),
        lambda: composed.multinomial(P, 1),
    ],
    "choices": [
        lambda: ops.multinomial(P, 3, False),
        lambda: mint.multinomial(P, 3),
        lambda: ops.multinomial_with_replacement(P, 1, 2, 3, False),
        lambda: composed.multinomial(P, 3),
    ],
    "choices put back": [
        lambda: ops.multinomial(P, 3),
        lambda: P.multinomial(3),
        lambda: mint.multinomial(P, 3, True),
        lambda: ops.multinomial_with_replacement(P, 1, 2, 3, True),
        lambda: ops.random_categorical(ops.log(P), 3),
        lambda: composed.multinomial(P, 3, True),
    ],
    "exponential": [
        lambda: empty().exponential_(2.0),
        lambda: D.Exponential(2.0).sample((4, 5)),
        lambda: -ops.log(ops.rand(4, 5)) / 2.0,
    ],
    "gumbel": [lambda: -ops.log(-ops.log(ops.rand(4, 5))), lambda: D.Gumbel(0.0, 1.0).sample((4, 5))],
    "gumbel softmax": [lambda: ops.gumbel_softmax(X, tau=0.7)],
    "one of a gumbel softmax": [lambda: ops.gumbel_softmax(X, hard=True)],
    "cauchy": [lambda: ops.Cauchy([4, 5])(), lambda: D.Cauchy(0.0, 1.0).sample((4, 5))],
    "laplace": [
        lambda: ops.standard_laplace((4, 5)),
        lambda: ops.laplace((4, 5), Tensor(0.0, F32), Tensor(1.0, F32)),
    ],
    "failures": [lambda: D.Geometric(0.3).sample((4, 5))],
    "poisson": [lambda: ops.random_poisson(Tensor(np.zeros(0), I32), 3.0 * P)],
    "slopes": [lambda: ops.rrelu(X), lambda: nn.RReLU()(X)],
    "dropout": [
        lambda: ops.dropout(X, p=0.3),
        lambda: nn.Dropout(p=0.3).set_train()(X),
        lambda: mint.nn.functional.dropout(X, 0.3, True),
        lambda: mint.nn.Dropout(0.3).set_train()(X),
        lambda: ops.bernoulli(X, 0.7) / 0.7 * X,
    ],
    "channels": [
        lambda: ops.dropout2d(IMAGES, p=0.3),
        lambda: nn.Dropout2d(0.3).set_train()(IMAGES),
        lambda: mint.nn.functional.dropout2d(IMAGES, 0.3, True),
    ],
    "rows": [lambda: ops.dropout1d(X, p=0.3)],
    "attention": [
        lambda: ops.matmul(ops.dropout(ops.softmax(ops.matmul(X, X.T) / 5**0.5, -1), p=0.3), X).reshape(1, 1, 4, 5)
    ],
    "drop path": [lambda how=how: DropPath(how).set_train()(X) for how in ("floor", "bernoulli", "dropout", "written")],
    "nothing": [lambda: ops.dropout(X, p=0.0), lambda: ops.dropout(X, p=0.5, training=False)],
    "twice": [lambda: ops.randn(3) - ops.standard_normal((3,))],
    "libraries": [lambda: Tensor(np.random.normal(size=(2, 3)) + random.random())],
    "unfixed": [
        lambda: ops.random_gamma(Tensor([4, 5], I32), Tensor(1.0, F32)),
        lambda: ops.TruncatedNormal()(Tensor([4, 5], I32)),
    ],
}


def main(folder: Path) -> None:
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    net = nn.Identity()
    arrays, said = {}, {}
    for name, ways in CASES.items():
        for i, way in enumerate(ways):
            draws = Draws(1)
            with fixed(net, draws):
                arrays[f"{name}#{i}"] = way().asnumpy()
            said[f"{name}#{i}"] = about([draws])
    np.savez(folder / "mindspore.npz", **arrays)
    (folder / "mindspore.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)
