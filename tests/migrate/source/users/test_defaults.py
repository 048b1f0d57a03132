"""Defaults that are attributes of classes, and functions that never ran, stay what they are."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import mindspore as ms
import numpy as np
from msmigrate.migrate.source.emit.file_builder import Emitted
from written import Written

Users = dict[str, Written]
DEFAULTS = (
    "def __init__(self, kind=Kind.MEAN, order=Order.LAST, slope=Wide.slope, scale=Wide.scale, rate=Sizes_Inner.rate, "
    "text=Order.LAST.value, more=Kind.SUM, times=Block.expansion, bend=doubled, *, then=lessened):"
)


def test_defaults_of_the_run(users: Users) -> None:
    found = users["defaults_taken"]
    found.agrees()
    found.holds(DEFAULTS, "def construct(self, x, kind=Kind.MEAN):")


def test_defaults_that_the_run_had_no_use_for(users: Users, tmp_path: Path) -> None:
    """They were None, so that nothing was bent, and another branch was taken."""
    given, taken = users["defaults_given"], users["defaults_taken"]
    given.agrees()
    given.holds(DEFAULTS, "def doubled(x):", "def lessened(x, by=0.5):")
    given.holds("Pooled(Kind.SUM, Order.FIRST, 0.1, 1.0, 0.0, '', Kind.MEAN, 1, None, then=None)")
    net = _module(given.source, tmp_path).Pooled()
    other = _module(taken.source, tmp_path).Pooled()
    ms.load_param_into_net(net, other.parameters_dict())
    x = ms.Tensor(np.random.default_rng(0).standard_normal((2, 5, 4)), ms.float32)
    assert np.array_equal(net(x).asnumpy(), other(x).asnumpy())


def _module(source: Emitted, folder: Path) -> ModuleType:
    path = folder / "written_defaults.py"
    path.write_text(source.text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
