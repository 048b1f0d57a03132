"""Values that are added at places which occur more than once: none is lost, whatever the other threads do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ADDS = """
import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from msmigrate.nn.functional import index_add, index_put, scatter_add, scatter_reduce

ms.set_device("CPU")
rng = np.random.default_rng(0)
for shape, places, dim in (((8, 2, 4), 24, 0), ((3, 40), 300, -1), ((5,), 200, 0)):
    for _ in range(12):
        axis = dim % len(shape)
        more = (*shape[:axis], places, *shape[axis + 1 :])
        first = tuple(max(1, size - 1) if n != axis else size for n, size in enumerate(more))
        start = rng.integers(-9, 9, shape).astype(np.float32)
        index = rng.integers(0, shape[axis], first)
        values = rng.integers(-9, 9, more).astype(np.float32)
        wanted = start.copy()
        used = values[tuple(map(slice, first))]
        every = [*np.indices(first)]
        every[axis] = index
        np.add.at(wanted, tuple(every), used)
        given = (Tensor(start), dim, Tensor(index), Tensor(values))
        assert np.array_equal(scatter_add(*given).asnumpy(), wanted)
        assert np.array_equal(scatter_reduce(*given, "sum").asnumpy(), wanted)
        where = rng.integers(0, shape[axis], places)
        wanted = start.copy()
        np.add.at(np.moveaxis(wanted, axis, 0), where, np.moveaxis(values, axis, 0))
        assert np.array_equal(index_add(Tensor(start), dim, Tensor(where), Tensor(values)).asnumpy(), wanted)
        if axis == 0:
            assert np.array_equal(index_put(Tensor(start), (Tensor(where),), Tensor(values), True).asnumpy(), wanted)

whole, where = Tensor(np.arange(12).reshape(3, 4)), Tensor(np.array([[1, 1, 1, 0]]))
assert scatter_add(whole, 1, where, ops.ones_like(where)).asnumpy()[0].tolist() == [1, 4, 2, 3]
found = ms.grad(lambda x, y: (scatter_add(x, 1, where, y) ** 2).sum(), (0, 1))
x, y = Tensor(np.ones((3, 4), np.float32)), Tensor(np.full((1, 4), 2.0, np.float32))
assert found(x, y)[0].asnumpy()[0].tolist() == [6.0, 14.0, 2.0, 2.0]
assert found(x, y)[1].asnumpy().tolist() == [[14.0, 14.0, 14.0, 6.0]]


@ms.jit
def compiled(x, y):
    return scatter_add(x, 1, where, y)


assert np.array_equal(compiled(x, y).asnumpy(), scatter_add(x, 1, where, y).asnumpy())
print("right")
"""


def test_no_value_is_lost(tmp_path: Path) -> None:
    (file := tmp_path / "adds.py").write_text(ADDS)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.split()[-1] == "right", done.stdout + done.stderr[-3000:]
