"""What a user calls `ops`, `initializer` or `Zero` does not take the place of MindSpore's in the new file."""

from __future__ import annotations

import numpy as np
from written import Written

Users = dict[str, Written]


def test_variables_classes_and_functions_inside_of_others(users: Users) -> None:
    """`initializer(HeNormal(…))` called the user's own function, and `ops.relu(x)` was asked of a list."""
    found = users["searched"]
    found.agrees()
    found.holds("ms_initializer(HeNormal(mode=mode", "ms_initializer(ms_Zero(), module.bias.shape", "ms_ops.relu(x)")
    found.holds("ops = [Zero(), nn.Dense(width, width), nn.Tanh()]", "self.apply(initializer)", "Zero as ms_Zero")
    found.lacks("import Zero,", ", Zero,")


def test_parameters_of_functions(users: Users) -> None:
    found = users["scaled_by_names"]
    found.agrees()
    found.holds("def __init__(self, width, ops=2, mindspore=0.5):", "def construct(self, x, ops=None):")
    found.holds("ms_ops.sigmoid(Parameter) * ops", "ms_mindspore.float32")


def test_where_nothing_has_such_a_name_the_imports_are_the_usual_ones(users: Users) -> None:
    found = users["plain_names"]
    found.agrees()
    found.holds("from mindspore import nn, ops")
    found.lacks("ms_")
    assert np.abs(found.torch["eval/0"]).max() > 0


def test_what_a_star_brings_along(users: Users) -> None:
    """`np` of `from helpers import *` could not be written, nor what of Python's library came so."""
    found = users["starred"]
    found.agrees()
    found.holds("import math", "from collections import OrderedDict as Ordered", "from functools import partial")
    found.holds("import numpy as np", "return np.array(2.0) * x")
    assert not found.source.not_run
