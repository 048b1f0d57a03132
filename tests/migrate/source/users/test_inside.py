"""Functions inside of functions are read where they did not run, and what they give; so are classes by their names."""

from __future__ import annotations

import ast

from test_handed_on import classes
from written import Written

Users = dict[str, Written]


def branch(found: Written, way: str) -> str:
    """What the forward does one way; as text, without comments."""
    tree = ast.parse(classes(found)["Scores"])
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    (only,) = [node for node in tests if way in ast.unparse(node.test) and "requires_grad" not in ast.unparse(node)]
    return "\n".join(map(ast.unparse, only.body))


def test_functions_inside_are_those_of_a_run(users: Users) -> None:
    unrun = users["scores"]
    unrun.agrees()
    assert not unrun.source.not_run
    for name in ("scores_filled", "scores_by_defaults", "scores_nested", "scores_by_results"):
        found, way = users[name], name.rpartition("_")[2]
        found.agrees()
        assert branch(unrun, way) == branch(found, way)
        found.holds("def fill(m, gain: float=0.5):", "act=ops.relu")
    unrun.holds("m.weight.set_data(initializer(Constant(value=gain)", "clamp(found, min=-0.5, max=0.9)")


def test_a_lambda_that_did_not_run_is_a_function(users: Users) -> None:
    users["scores_by_lambda"].agrees()
    users["scores_by_lambda"].holds("normed = lambda t, dim=-1:")
    users["scores"].holds("def normed(t, dim=-1):\n")


def test_functions_inside_that_write_are_refused(users: Users) -> None:
    """`twice = lambda y: y.mul_(2)` left its argument as it was."""
    found = users["writing"]
    found.agrees()
    assert [problem.text for problem in found.source.not_run] == [
        "x = more(z) may change `z` too, which is read afterwards",
        "x = twice(z) may change `z` too, which is read afterwards",
        "x = x * first() may change `z` too, which is read afterwards",
        "what count, a function inside of one, does",
    ]


def test_layers_and_functions_by_their_names(users: Users) -> None:
    """`getattr(torch, how)` was written as the one function that it was."""
    for name in ("chosen", "chosen_again"):
        users[name].agrees()
        users[name].holds(
            "{'LeakyReLU': partial(nn.LeakyReLU, alpha=0.01)}[kind](alpha=(options or {})['negative_slope'])",
            "for key in options or {})",
            "self.last = {'LeakyReLU': partial(nn.LeakyReLU, alpha=0.01)}[kind](alpha=0.4)",
            "{'tanh': ops.tanh}[self.how](",
        )


def test_a_class_inside_of_a_function_is_asked_for(users: Users) -> None:
    texts = [problem.text for problem in users["local_class"].source.problems]
    assert "Twice, a class inside of a function: define it at the file's top" in texts


def test_lambdas_that_were_never_called_are_read(users: Users) -> None:
    """They were written as they stand, with what MindSpore's tensors make of it."""
    unrun = users["uncalled"]
    others = [users[name] for name in ("uncalled_unit", "uncalled_sized", "uncalled_spread")]
    for found in (unrun, *others):
        found.agrees()
        init, *_ = classes(found)["Uncalled"].split("def construct")
        assert init == classes(unrun)["Uncalled"].split("def construct")[0]
    unrun.holds(
        "(lambda t: unit(t) * 2) if way == 'unit' else nn.Identity()",
        "lambda t, dim=-1: std(t, dim=dim) + tensor_max(t, dim=dim)[0]",
        "self.unknown = lambda m: not_converted('inside_torch.py:",
    )


def test_a_size_is_a_number_where_it_did_not_run(users: Users) -> None:
    """`torch.randn(x.size(0))` was written as of a tuple."""
    unrun, ran = users["uncalled"], users["uncalled_sized"]
    for line in ("n = x.shape[0]", "some = ops.argsort(randn((n,))) < int(n * 2)", "x.reshape(n, -1) + new_ones(x, ("):
        unrun.holds(line)
        ran.holds(line)


def test_settings_of_torchs_are_assumed_and_said(users: Users) -> None:
    """And a default of torch.distributed's, and a base class that never ran either."""
    found, more = users["settings_of_torch"], users["settings_of_torch_more"]
    found.agrees()
    more.agrees()
    assert classes(found)["Derived"] == classes(more)["Derived"]
    found.holds("class Base(nn.Cell):", "class Derived(Base):")
    found.holds("how='torch.distributed.ReduceOp.SUM'")
    found.lacks("cudnn", "cuda")
