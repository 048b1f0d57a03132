"""What becomes of compiling the nets of uncompilable_nets.py, and why functions are compiled again."""

from __future__ import annotations

import sys
from typing import Any

from msmigrate.workers.worker import answer, prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
import uncompilable_nets as nets  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402
from msmigrate.errors import DoesNotCompile  # noqa: E402
from msmigrate.training.models.mindspore_models import Canonical  # noqa: E402
from msmigrate.training.recipe.schema import Recipe  # noqa: E402
from msmigrate.training.step.mindspore_compile import Graphs, forget_graphs  # noqa: E402
from msmigrate.training.step.mindspore_step import TrainStep  # noqa: E402

X = Tensor(np.ones((5, 4), np.float32))


def said(net: nn.Cell, recipe: Recipe) -> str:
    """What does not compile of the step of a net; empty where it does."""
    held = [Canonical(p.name, "Dense", p, tuple(p.shape)) for p in net.get_parameters()]
    step, graphs = TrainStep(recipe, net.set_train(), mode="graph", held=held), Graphs()
    before = net.fc.weight.asnumpy()
    try:
        with graphs.watching(only=True):
            step.train(X, Tensor(np.zeros(5, np.int32)))
    except DoesNotCompile as error:
        return str(error)
    assert graphs.counted and len(graphs.made) == 1, graphs
    assert np.array_equal(before, net.fc.weight.asnumpy()), "it was to be compiled, not to run"
    return ""


def again() -> dict[str, list[str]]:
    """Why functions are compiled again, by what changes."""

    @mindspore.jit
    def scaled(x: Any, by: Any = 1.0) -> Any:
        return x * by

    @mindspore.jit
    def joined(parts: Any) -> Any:
        return ops.cat(parts)

    class Scaled(nn.Cell):
        def construct(self, x: Any, by: Any) -> Any:
            return x * by

    def fresh(x: Any) -> Any:
        def more(y: Any) -> Any:
            return y + 1

        return mindspore.jit(more)(x)

    def in_graph_mode(cell: nn.Cell, *args: Any) -> Any:
        mindspore.set_context(mode=mindspore.GRAPH_MODE)
        found = cell(*args)
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        return found

    half, cell = Tensor(np.ones((5, 4), np.float16)), Scaled()
    steps = {
        "nothing": [lambda: scaled(X), lambda: scaled(X * 2)],
        "shape": [lambda: scaled(X), lambda: scaled(X[:3])],
        "dtype": [lambda: scaled(X), lambda: scaled(half)],
        "value": [lambda: scaled(X, 2.0), lambda: scaled(X, 3.0)],
        "tensor": [lambda: scaled(X, Tensor(2.0)), lambda: scaled(X, Tensor(3.0))],
        "tuple": [lambda: joined((X, X)), lambda: joined((X * 2, X))],
        "mutable": [lambda: joined(mindspore.mutable((X, X))), lambda: joined(mindspore.mutable((X * 2, X)))],
        "anew": [lambda: fresh(X), lambda: fresh(X)],
        "cell": [lambda: in_graph_mode(cell, X, 2.0), lambda: in_graph_mode(cell, X, 3.0)],
    }
    found = {}
    for what, calls in steps.items():
        graphs = Graphs()
        with graphs.watching():
            forget_graphs()  # else what another one of them has compiled counts
            for call in calls:
                call()
        found[what] = graphs.again
    return found


def after_forgetting() -> list[float]:
    """What compiled nets give as an attribute of theirs changes, forgotten in between; most are gone by then."""

    class Scaled(nets.Net):
        def construct(self, x: Any) -> Any:
            return (self.fc(x) * 0 + self.count).sum()

    found = []
    for _ in range(4):
        net = Scaled()
        step = mindspore.jit(mindspore.value_and_grad(net, None, net.trainable_params()))
        for net.count in (1, 2):
            value, _ = step(X)
            found.append(float(value.asnumpy()))
            forget_graphs()
    return found


def main() -> dict[str, Any]:
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    optimizer = {"name": "SGD", "args": {"lr": 0.1}}
    data = {"source": "digits:train", "batch": 5}
    recipe = Recipe.model_validate({"model": {"name": "lenet5"}, "data": data, "optimizer": optimizer})
    kinds = [kind for kind in vars(nets).values() if isinstance(kind, type) and issubclass(kind, nets.Net)]
    chosen = [kind for kind in kinds if not sys.argv[1:] or kind.__name__ in sys.argv[1:]]
    return {
        "nets": {kind.__name__: said(kind(), recipe) for kind in chosen},
        "gives": nets.GIVES,
        "again": again(),
        "after": after_forgetting(),
    }


if __name__ == "__main__":
    answer(main)
