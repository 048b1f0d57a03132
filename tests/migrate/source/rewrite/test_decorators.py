"""Decorators of a user's own: those that only call the function are left out, and those that do more are told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msmigrate.migrate import model_spec
from msmigrate.migrate.source.emit.file_builder import Emitted, build_file
from msmigrate.migrate.source.observe.observations import Observations

HEAD = """
import functools
import logging

import torch
from torch import nn

CALLS, KNOWN, SLOW = [], {}, False


def describes(given):
    words = []
    for item in given:
        words.append(type(item).__name__)
    return ", ".join(words)


def prepares(options):
    options["scale"] = 2.0


def halves(given):
    given[1].mul_(0.5)


def prepares_first(inside):
    halves(inside[0])


class Halving:
    def __call__(self, given):
        halves(given)


HALVING = Halving()
"""
# what stands in a wrapper(*args, **kwargs) of `function`, by the name of its decorator
ONLY_CALLS = {
    "hands_on": "return function(*args, **kwargs)",
    "logs": "logging.getLogger('x').info('%s', len(args))\nreturn function(*args, **kwargs)",
    "records": "CALLS.append((args, kwargs))\nout = function(*args, **kwargs)\nreturn out",
    "names": "name = f'{type(args[0]).__name__}'\nwords = []\nwords.append(name)\nreturn function(*args, **kwargs)",
    "copies": "options = dict(kwargs)\noptions.pop('scale', 1)\nreturn function(*args, **kwargs)",
    "refuses": "if not args:\n    raise TypeError('nothing')\nreturn function(*args, **kwargs)",
    "looks": "said = describes(args)\nprint(end='')\nreturn function(*args, **kwargs)",
    "either": "if SLOW:\n    return function(*args, **kwargs)\nelse:\n    return function(*args, **kwargs)",
    "counts": "count = 0\nif args:\n    count += 1\nassert count\nreturn function(*args, **kwargs)",
}
WITH_OTHERS_MORE = {
    "renames": (
        "message = None\nif 'factor' in kwargs and 'scale' in kwargs:\n    kwargs.pop('factor')\n"
        "elif 'factor' in kwargs:\n    message = 'it is scale'\n    kwargs['scale'] = kwargs.pop('factor')\n"
        "if message is not None:\n    print(message)\nreturn function(*args, **kwargs)"
    ),
    "widens": "if args[1].dim() == 1:\n    args = (args[0], args[1][None])\nreturn function(*args, **kwargs)",
    "pops": "if 'old' in kwargs and kwargs.pop('old'):\n    pass\nreturn function(*args, **kwargs)",
}
DOES_MORE = {
    "stores": "kwargs['scale'] = 2.0\nreturn function(*args, **kwargs)",
    "sets_default": "kwargs.setdefault('scale', 2.0)\nreturn function(*args, **kwargs)",
    "updates": "if args:\n    kwargs.update(scale=2.0)\nreturn function(*args, **kwargs)",
    "pops_in_test": "if kwargs.pop('scale', 1) is None:\n    pass\nreturn function(*args, **kwargs)",
    "new_words": "kwargs = {**kwargs, 'scale': 2.0}\nreturn function(*args, **kwargs)",
    "new_arguments": "if args:\n    args = (args[0], args[1] * 2)\nreturn function(*args, **kwargs)",
    "by_another_name": "options = kwargs\noptions.update(scale=2.0)\nreturn function(*args, **kwargs)",
    "of_the_class": "dict.update(kwargs, scale=2.0)\nreturn function(*args, **kwargs)",
    "through_helper": "prepares(kwargs)\nreturn function(*args, **kwargs)",
    "helper_in_place": "halves(args)\nreturn function(*args, **kwargs)",
    "in_place": "args[1].mul_(0.5)\nreturn function(*args, **kwargs)",
    "in_place_function": "nn.functional.relu_(args[1])\nreturn function(*args, **kwargs)",
    "in_text": "print(end=f'{kwargs.update(scale=2.0)}'[:0])\nreturn function(*args, **kwargs)",
    "sets": "args[0].gain = 2.0\nreturn function(*args, **kwargs)",
    "sets_by_name": "setattr(args[0], 'gain', 2.0)\nreturn function(*args, **kwargs)",
    "through_vars": "vars(args[0]).update(gain=2.0)\nreturn function(*args, **kwargs)",
    "twice": "function(*args, **kwargs)\nreturn function(*args, **kwargs)",
    "other_call": "once = function(args[0], args[1] * 2)\nreturn function(*args, **kwargs)",
    "seeds": "torch.manual_seed(0)\nreturn function(*args, **kwargs)",
    "keeps": (
        "if 'x' in KNOWN:\n    out = KNOWN['x']\nelse:\n    out = function(*args, **kwargs)\n"
        "    KNOWN.setdefault('x', out)\nreturn out"
    ),
    "in_a_list": "inside = [kwargs]\ninside[0].update(scale=2.0)\nreturn function(*args, **kwargs)",
    "list_to_helper": "inside = [args]\nprepares_first(inside)\nreturn function(*args, **kwargs)",
    "object": "HALVING(args)\nreturn function(*args, **kwargs)",
    "changed_result": "out = function(*args, **kwargs)\nout = out * 2\nreturn out",
    "result_in_place": "out = function(*args, **kwargs)\nout *= 2\nreturn out",
    "without_result": "out = function(*args, **kwargs)\nreturn args[1]",
    "assigns_in_test": "if (kwargs := {'scale': 2.0}):\n    pass\nreturn function(*args, **kwargs)",
}


def decorator(name: str, body: str, takes: str = "*args, **kwargs") -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    wrapper = f"    @functools.wraps(function)\n    def wrapper({takes}):\n{lines}"
    return f"\n\ndef {name}(function):\n{wrapper}\n    return wrapper\n"


TWO = """

def one_of_two(factor):
    def around(function):
        if factor == 1:

            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return factor * function(*args, **kwargs)

        else:

            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs)

        return wrapper

    return around
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Emitted:
    """A net with a method under each of them."""
    bodies = {**ONLY_CALLS, **WITH_OTHERS_MORE, **DOES_MORE, "renames_given": WITH_OTHERS_MORE["renames"]}
    text = HEAD + "".join(decorator(name, body) for name, body in bodies.items())
    takes = {"same_default": "self, x, scale=1.0", "other_default": "self, x, scale=2.0"}
    for name, given in takes.items():
        text += decorator(name, "return function(self, x, scale=scale)", given)
    text += TWO + "\n\nclass Net(nn.Module):\n    gain = 1.0\n"
    for factor in (1, 2):
        text += f"\n    @one_of_two({factor})\n    def part_{factor}(self, x):\n        return x\n"
    for name in (*bodies, *takes):
        rest = "" if name in takes else ", **kwargs"
        text += f"\n    @{name}\n    def part_{name}(self, x, scale=1.0{rest}):\n        return x * scale\n"
    text += "\n    def forward(self, x):\n        y = x.clone()\n"
    text += "".join(f"        y = y + self.part_{name}(x.clone())\n" for name in (*bodies, *takes))
    text += "        y = self.part_1(self.part_2(y))\n"
    text += "        y = y + self.part_renames_given(x.clone(), factor=2.0)\n"
    text += "        return y\n\n\ndef build():\n    return Net()\n"
    file: Path = tmp_path_factory.mktemp("model") / "net.py"
    file.write_text(text)
    told = model_spec.ask("source.observe.torch_observe_worker", f"{file}:build", "convert-model", "2x4")
    return build_file(Observations(told), "build", "A net.")


def told(source: Emitted, name: str) -> bool:
    return f"the decorator {name} does more than call part_{name}: write that into part_{name}" in [
        problem.text for problem in source.problems
    ]


def noted(source: Emitted, name: str) -> bool:
    note = f"# never with the example inputs: what {name} does besides calling part_{name}\n"
    return re.search(rf"def part_{name}\(.*\n +{re.escape(note)}", source.text) is not None


@pytest.mark.parametrize("name", [*ONLY_CALLS, "same_default"])
def test_one_that_only_calls_is_left_out(source: Emitted, name: str) -> None:
    assert not told(source, name)
    assert not noted(source, name)


@pytest.mark.parametrize("name", WITH_OTHERS_MORE)
def test_what_one_would_do_with_other_inputs_is_noted(source: Emitted, name: str) -> None:
    assert not told(source, name)
    assert noted(source, name)


@pytest.mark.parametrize("name", [*DOES_MORE, "other_default", "renames_given"])
def test_one_that_does_more_is_told(source: Emitted, name: str) -> None:
    assert told(source, name)
    assert not noted(source, name)


def test_every_function_that_one_may_put_around_is_judged(source: Emitted) -> None:
    said = [problem.text for problem in source.problems if "one_of_two" in problem.text]
    assert "the decorator one_of_two(1) does more than call part_1: write that into part_1" in said
