"""Lambdas at a file's top and in a class are read as functions are."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]


def test_lambdas_have_torchs_arguments_in_mindspores_way(users: Users) -> None:
    """They were copied: `nn.Dropout(p)` gave p for MindSpore's first argument, and had a rate of 0.5 in silence."""
    for name in ("made_by_lambdas", "made_by_other_lambdas"):
        found = users[name]
        found.agrees()
        found.holds(
            "'bent': lambda slope=0.2: nn.LeakyReLU(alpha=slope)",
            "'drop': lambda p: nn.Dropout(p=p)",
            "NORMS = [lambda c: nn.BatchNorm2d(c, momentum=0.7), lambda c: nn.GroupNorm(2, c)]",
            "conv = lambda a, b: nn.Conv2d(a, b, 3, pad_mode='pad', padding=1, has_bias=True)",
            "'sum': lambda x: ops.sum(x, -1)",
            "loud = lambda text: text.upper()",
        )


def test_a_table_of_lambdas_in_another_file(users: Users) -> None:
    """It could not be written."""
    for name in ("made_by_lambdas", "made_by_other_lambdas"):
        users[name].holds(
            "stride=stride, pad_mode='pad', padding=1, count_include_pad=False)", "'none': lambda c, stride,"
        )
        assert not users[name].source.not_run


def test_what_a_lambda_of_the_making_function_makes_is_made_without_it(users: Users) -> None:
    """Its name was written, which no Python is."""
    found = users["handed_lambdas"]
    found.agrees()
    found.holds("Pair(nn.Dense(6, 5), nn.Dense(5, 6)), Pair(nn.Dense(6, 10), nn.Dense(10, 6))")
