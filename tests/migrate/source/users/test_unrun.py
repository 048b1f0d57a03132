"""Code that did not run is read, and what it does is what it would do in torch."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]


def test_methods_that_count_and_freeze_are_read(users: Users) -> None:
    found = users["asked"]
    found.agrees()
    found.holds(
        "sum((p.size for p in parameters(self) if p.requires_grad))", "for name, p in named_parameters(self.mix)"
    )
    found.holds("device = 'cpu'", "where = 'cpu'")  # MindSpore has no device of torch's
    assert not found.source.not_run


def test_layers_of_other_settings_are_those_that_would_have_run(users: Users) -> None:
    users["asked_normed"].agrees()
    unrun, ran = (users[name] for name in ("asked", "asked_normed"))
    for found in (unrun, ran):
        found.holds("layer = weight_norm(layer)", "layer.weight", "self.layers.append(layer)")
    ran.holds("ops.masked_fill(x, x > 0.5, -3.4028234663852886e+38)")
    unrun.holds("ops.masked_fill(x, x > 0.5, -largest(x.dtype))")  # of whichever dtype it is


def test_what_a_method_gives_is_known_where_it_ran(users: Users) -> None:
    for name in ("predicts", "predicts_centred"):
        users[name].agrees()
        users[name].holds(
            "y = y - ops.mean(self.encoder.encode(x), axis=0, keep_dims=True)", "ops.argmax(found, dim=-1)"
        )
        users[name].holds("MARGIN = 0.5", "def moved(self, x, by=MARGIN, *, times=2 * MARGIN):")
        assert not users[name].source.not_run


def test_what_stands_above_the_imports_is_kept(users: Users) -> None:
    """Who wrote a file, and under which licence."""
    assert "# Somebody wrote this, and anybody may use it.\n\nfrom __future__" in users["asked"].source.text
    assert 'Code that did not run, and is read.\n"""\n' in users["asked"].source.text


def test_classes_that_were_only_asked_for_raise_when_they_are_made(users: Users) -> None:
    """They had no methods: one of them computed as its base does, and one derived from typing.Any."""
    found = users["filled_by_class"]
    found.agrees()
    found.holds("class Leaky(nn.Cell):", "class Leaky2d(Leaky):\n    pass", "class Doubled(nn.Dense):")
    made = "def __init__(self, *args, **kwargs):\n        raise NotImplementedError('unrun_torch.py:"
    assert found.source.text.count(made) == 2, found.source.text
    found.holds("no Doubled was made, and its methods are not written')")
    found.holds("weight = getattr(m, first_name(m, 'weight', 'gamma'))", "weight.set_data(initializer(")
    found.lacks("(Any)")


def test_a_class_that_is_asked_for_first_is_read_where_a_branch_makes_it(users: Users) -> None:
    users["filled_by_class_and_bent"].agrees()
    for name in ("filled_by_class", "filled_by_class_and_bent"):
        users[name].holds("ops.tanh(self.fc(x))", "self.last = Bent(4) if bent else nn.Tanh()")


def test_a_base_that_mindspore_does_not_have_is_a_problem_where_it_ran(users: Users) -> None:
    said = [problem.text for problem in users["of_theirs"].source.problems]
    assert said == ["torch.nn.modules.batchnorm._NormBase has no row in the mapping table"]
