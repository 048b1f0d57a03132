"""What goes into users' nets and comes out, and their control flow."""

from __future__ import annotations

from pathlib import Path

import pytest
from written import HERE, Written

Users = dict[str, Written]


def line_of(text: str, file: str = "outputs_torch.py") -> int:
    """The line of a model's file that holds a text."""
    lines = Path(HERE / file).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_inputs_by_name_only(users: Users) -> None:
    found = users["keywords"]
    found.agrees()
    found.holds("def construct(self, *, left: Tensor, right: Optional[Tensor]=None, scale: float=1.0) -> Tensor:")


@pytest.mark.full
def test_several_inputs_and_outputs(users: Users) -> None:
    found = users["several"]
    found.agrees()
    found.holds("return (one + two, [one, two])")


def test_a_dataclass_comes_out(users: Users) -> None:
    found = users["dataclass_output"]
    found.agrees()
    found.holds("return {'logits': self.head(hidden), 'hidden': hidden, 'loss': None}")
    found.lacks("class Output", "dataclass")


@pytest.mark.full
def test_a_named_tuple_comes_out_in_training(users: Users) -> None:
    found = users["named_tuple_output"]
    found.agrees()
    found.holds("return (x, aux)", "return x")
    found.lacks("Outputs")


@pytest.mark.full
def test_fields_of_what_a_net_inside_gives(users: Users) -> None:
    found = users["fields"]
    found.agrees()
    found.holds("inner['hidden'] + ops.mean(inner['logits'])", "named[0] * named[1]", "limits.low")
    found.holds("class Limits(NamedTuple):")


@pytest.mark.full
def test_a_dictionary_comes_out(users: Users) -> None:
    found = users["dict_output"]
    found.agrees()
    found.holds("result = {}", "self.body.name_cells().items()", "result.update({'sum': sum(features.values())})")


@pytest.mark.full
def test_dictionaries_of_pairs(users: Users) -> None:
    found = users["pyramid"]
    found.agrees()
    found.holds("first = {'first': found[0]}", "return {str(i): v + first['first'] for i, v in enumerate(found)}")


def test_what_does_not_compile_is_written_otherwise(users: Users) -> None:
    """No key that came by list.extend, no name given inside of an expression, nothing out of an empty `**kwargs`."""
    found = users["named_levels"]
    found.agrees()
    found.holds("names += ['p6', 'p7']", "results += [", "width = x.shape[1]", "factor = scale", "first = found['p4']")
    found.lacks("kwargs")


def test_loops_and_questions_on_numbers(users: Users) -> None:
    found = users["flow"]
    found.agrees()
    found.holds("while step < self.steps and size > 1:", "if step % 2 == 0:", "sum([")
    found.holds("assert steps > 0, f'{steps} steps are too few'")


def test_control_flow_that_looks_at_values_is_told_with_its_line(users: Users) -> None:
    """What ran is written, and so is the other branch; a loop that other inputs may run is an error in its place."""
    found = users["dynamic"]
    told = {problem.line: problem.text for problem in found.source.problems}
    assert told == {
        line_of("while y.norm() > 1:"): "a loop that did not run: a tensor's value decides, in y.norm() > 1",
    }
    found.holds("# not run\n            y = y - 1", 'not_converted("a loop that did not run: ')
    assert found.failed is None, found.failed  # these inputs do not come there


def test_an_operator_without_a_row_is_told_with_its_line(users: Users) -> None:
    found = users["missing"]
    assert [(problem.line, problem.text) for problem in found.source.problems] == [
        (line_of("torch.vander"), "torch.vander has no row in the mapping table")
    ]
    found.holds("not_converted('torch.vander has no row in the mapping table')", "return y + z")
    assert found.failed is not None and "NotImplementedError" in found.failed


@pytest.mark.full
def test_trees_of_tensors(users: Users) -> None:
    found = users["leaves"]
    found.agrees()
    found.holds("spec = tree_flatten(tree)", "tree_unflatten((self.first(leaf), *rest), spec)")


@pytest.mark.full
def test_a_function_that_a_class_is_given_later(users: Users) -> None:
    found = users["given_later"]
    found.agrees()
    found.holds("return scaled(self.first(x), 2.0)")
