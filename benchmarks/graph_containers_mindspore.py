"""What a compiled MindSpore step makes of lists and dictionaries: `python benchmarks/graph_containers_mindspore.py`.

Prints, for each way to change one, how far the compiled value and gradient are from PyNative mode's, as a share of the
largest value, or the error; then the same for what convert-model writes in its place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

Way = Callable[[Tensor, Tensor], Tensor]


def insert(a: Tensor, b: Tensor) -> Tensor:
    """list.insert."""
    x = [a]
    x.insert(0, b)
    return x[0] * x[0] * x[1]


def pop(a: Tensor, b: Tensor) -> Tensor:
    """list.pop."""
    x = [a, b]
    y = x.pop()
    return x[0] * y


def extend(a: Tensor, b: Tensor) -> Tensor:
    """list.extend."""
    x = [a]
    x.extend([b])
    return x[0] * x[0] * x[1]


def reverse(a: Tensor, b: Tensor) -> Tensor:
    """list.reverse."""
    x = [a, b]
    x.reverse()
    return x[0] * x[0] * x[1]


def reverse_other_name(a: Tensor, b: Tensor) -> Tensor:
    """list.reverse of another name for it."""
    x = [a, b]
    y = x
    y.reverse()
    return x[0] * x[0] * x[1]


def append_other_name(a: Tensor, b: Tensor) -> Tensor:
    """list.append to another name for it."""
    x = [a]
    y = x
    y.append(b)
    return x[-1] * a * a


def remove(a: Tensor, b: Tensor) -> Tensor:
    """list.remove."""
    x = [3, 5]
    x.remove(3)
    return a * b * x[0]


def backwards(a: Tensor, b: Tensor) -> Tensor:
    """list(reversed())."""
    x = list(reversed([a, b]))
    return x[0] * x[0] * x[1]


def loop_backwards(a: Tensor, b: Tensor) -> Tensor:
    """for in reversed()."""
    y = a
    for item in reversed([a, b]):
        y = y * item
    return y


def copied(a: Tensor, b: Tensor) -> Tensor:
    """list.copy."""
    x = [a, b].copy()
    return x[0] * x[0] * x[1]


def dictionary(a: Tensor, b: Tensor) -> Tensor:
    """dict(others)."""
    others = {"a": a, "b": b}
    x = dict(others)
    return x["a"] * x["b"]


def words(a: Tensor, b: Tensor) -> Tensor:
    """dict(a=…)."""
    x = dict(a=a, b=b)  # noqa: C408
    return x["a"] * x["b"]


def zipped(a: Tensor, b: Tensor) -> Tensor:
    """dict(zip())."""
    x = dict(zip(["a", "b"], [a, b]))  # noqa: B905
    return x["a"] * x["b"]


def keys(a: Tensor, b: Tensor) -> Tensor:
    """dict.fromkeys."""
    x = dict.fromkeys(["a", "b"], a)
    return x["a"] * x["b"] * b


def unpacked(a: Tensor, b: Tensor) -> Tensor:
    """{**others}."""
    others = {"a": a}
    x = {**others, "b": b}
    return x["a"] * x["b"]


def default(a: Tensor, b: Tensor) -> Tensor:
    """dict.setdefault."""
    x = {"a": 1.0}
    x.setdefault("b", 2.0)
    return a * b * len(x)


def taken_out(a: Tensor, b: Tensor) -> Tensor:
    """dict.pop of a key that is computed."""
    x = {"a": 1.0, "b": 2.0}
    for name in ["b"]:
        x.pop(name)
    return a * b * len(x)


def last_out(a: Tensor, b: Tensor) -> Tensor:
    """dict.popitem."""
    x = {"a": 1.0, "b": 2.0}
    x.popitem()
    return a * b * len(x)


def sort(a: Tensor, b: Tensor) -> Tensor:
    """list.sort."""
    x = [3.0, 1.0]
    x.sort()
    return a * b * x[0]


def merged(a: Tensor, b: Tensor) -> Tensor:
    """{"a": 1.0, **others}."""
    others = {"a": 2.0}
    x = {"a": 1.0, **others}
    return a * b * len(x)


def formatted(a: Tensor, b: Tensor) -> Tensor:
    """f'{n:02d}'."""
    x = {"07": 3.0}
    return a * b * x.get(f"{len([a]) + 6:02d}", 1.0)


def append(a: Tensor, b: Tensor) -> Tensor:
    """list.append, which is right."""
    x = [a]
    x.append(b)
    return x[0] * x[0] * x[1]


def insert_slice(a: Tensor, b: Tensor) -> Tensor:
    """x[0:0] = [item]."""
    x = [a]
    x[0:0] = [b]
    return x[0] * x[0] * x[1]


def pop_slice(a: Tensor, b: Tensor) -> Tensor:
    """x[-1:] = []."""
    x = [a, b]
    y = x[-1]
    x[-1:] = []
    return x[0] * y


def add(a: Tensor, b: Tensor) -> Tensor:
    """x += items."""
    x = [a]
    x += [b]
    return x[0] * x[0] * x[1]


def reverse_slice(a: Tensor, b: Tensor) -> Tensor:
    """x[:] = x[::-1]."""
    x = [a, b]
    x[:] = x[::-1]
    return x[0] * x[0] * x[1]


def loop_slice(a: Tensor, b: Tensor) -> Tensor:
    """for in x[::-1]."""
    y = a
    for item in [a, b][::-1]:
        y = y * item
    return y


def starred(a: Tensor, b: Tensor) -> Tensor:
    """[*items]."""
    x = [*[a, b]]
    return x[0] * x[0] * x[1]


def comprehension(a: Tensor, b: Tensor) -> Tensor:
    """{k: v for k, v in others.items()}."""
    others = {"a": a}
    x = {key: value for key, value in others.items()}  # noqa: C416
    x["b"] = b
    return x["a"] * x["b"]


def default_if(a: Tensor, b: Tensor) -> Tensor:
    """if key not in x: x[key] = value."""
    x = {"a": 1.0}
    if "b" not in x:
        x["b"] = 2.0
    return a * b * len(x)


def others_in_place(a: Tensor, b: Tensor) -> Tensor:
    """x.clear(), x.update() with the others."""
    x = {"a": a, "b": b}
    others = {key: value for key, value in x.items() if key != "b"}
    x.clear()
    x.update(others)
    return x["a"] * b * len(x)


def sorted_slice(a: Tensor, b: Tensor) -> Tensor:
    """x[:] = sorted(x)."""
    x = [3.0, 1.0]
    x[:] = sorted(x)
    return a * b * x[0]


def pairs(a: Tensor, b: Tensor) -> Tensor:
    """{k: v for k, v in [("a", a), *others.items()]}."""
    others = {"a": b}
    x = {key: value for key, value in [("a", a), *others.items()]}  # noqa: C416
    return x["a"] * a * len(x)


def with_format(a: Tensor, b: Tensor) -> Tensor:
    """'{:02d}'.format(n)."""
    x = {"07": 3.0}
    return a * b * x.get("{:02d}".format(len([a]) + 6), 1.0)  # noqa: UP032


THEIRS: tuple[Way, ...] = (
    *(insert, pop, extend, reverse, reverse_other_name, append_other_name, remove, backwards, loop_backwards, copied),
    *(dictionary, words, zipped, keys, unpacked, default, taken_out, last_out, sort, merged, formatted, append),
)
OURS: tuple[Way, ...] = (
    *(insert_slice, pop_slice, add, reverse_slice, loop_slice, starred, comprehension),
    *(default_if, others_in_place, sorted_slice, pairs, with_format),
)


class Net(nn.Cell):
    """Two layers, and a container around them."""

    def __init__(self, way: Way) -> None:
        super().__init__()
        self.first, self.second, self.way = nn.Dense(8, 8), nn.Dense(8, 8), way

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, 8)."""
        return self.way(self.first(x), self.second(x))


def errors(way: Way) -> list[float] | str:
    """The largest difference of the value and of the gradients, as shares of the largest; or what was raised."""
    net = Net(way)
    x = Tensor(np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32))
    found = {}
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        step = ms.value_and_grad(net, None, list(net.trainable_params()))
        try:
            value, gradients = step(x)
            found[mode] = (value.asnumpy(), np.concatenate([g.asnumpy().ravel() for g in gradients]))
        except Exception as error:  # a compiler's
            return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:70]}"
    pairs = zip(found[ms.PYNATIVE_MODE], found[ms.GRAPH_MODE], strict=True)
    return [float(np.abs(ours - theirs).max() / np.abs(ours).max()) for ours, theirs in pairs]


def main() -> int:
    """0 where what convert-model writes is right."""
    wrong = 0
    for title, ways in (("a way of Python's", THEIRS), ("what convert-model writes", OURS)):
        print(f"| {title} | value | gradient |\n|---|---:|---:|")
        for way in ways:
            found = errors(way)
            cells = [found, ""] if isinstance(found, str) else [f"{error:.2g}" for error in found]
            print(f"| {str(way.__doc__).rstrip('.')} | {' | '.join(cells)} |", flush=True)
            wrong += way in OURS and (isinstance(found, str) or max(found) > 1e-5)
        print()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
