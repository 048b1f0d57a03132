"""Hidden states that transformers' decorators collect by hooks, written where they come to be."""

from __future__ import annotations

import pytest
from written import LIBRARY, Written, builders

NAMES = [name for name in builders(LIBRARY[1]) if name not in ("head_in_expression", "labelled")]
QUICK = ("head_of_tied",)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.full] * (n not in QUICK)) for n in NAMES])
def test_it_is_whole_and_computes_the_same(library: dict[str, Written], name: str) -> None:
    library[name].agrees()


def test_the_loop_collects_them_and_an_argument_asks_for_them(library: dict[str, Written]) -> None:
    found = library["head_of_tied"]
    found.holds(
        "            all_hidden_states = (x,)\n            _, x = layer(x, **kwargs)\n"
        "            all_hidden_states = (*all_hidden_states, x)\n",
        "            all_hidden_states = (*all_hidden_states[:-1], x)\n        return",
        "        if not output_hidden_states:\n            return {'last_hidden_state': x}\n",
        "self.body(x, output_hidden_states=True, **kwargs)",
        "            return {'logits': self.out(mixed)}\n",
    )
    found.lacks("capture_outputs", "register_forward_hook")


def test_a_field_that_was_none_is_not_lost_another_time(library: dict[str, Written]) -> None:
    """The loss of given labels was computed, and returned by nobody."""
    found = library["labelled"]
    found.agrees()
    found.holds("if loss is not None:", "loss of ImageClassifierOutput was None", "return {'logits': y}")
    found.holds("if kept is not None:", "hidden_states of ImageClassifierOutput was None")
    found.lacks("attentions")


@pytest.mark.full
def test_a_module_around_the_loop_hands_them_on(library: dict[str, Written]) -> None:
    found = library["head_of_around"]
    found.holds("return (x, all_hidden_states)", "found, all_hidden_states = self.encoder(x, **kwargs)")
    found.lacks("all_hidden_states[:-1]", "len(all_hidden_states) == 0")


@pytest.mark.full
def test_what_is_changed_behind_the_layer_is_no_hidden_state_but_the_last(library: dict[str, Written]) -> None:
    found = library["head_of_halved"]
    found.holds("            all_hidden_states = (*all_hidden_states, x)\n            x = x * 0.5\n")
    found.holds("            all_hidden_states = (*all_hidden_states[:-1], x)\n")
    found.holds("hidden states in return x")  # which did not run, and raises where they are asked for


@pytest.mark.full
def test_who_is_asked_by_the_configuration_asks_it_again(library: dict[str, Written]) -> None:
    library["tied_by_configuration"].holds(
        "def construct(self, x, output_hidden_states: bool | None=None, **kwargs):",
        "            output_hidden_states = self.config.output_hidden_states\n",
        "    output_hidden_states: bool = False\n",
        "BertConfig(hidden_size=8, num_hidden_layers=2, output_hidden_states=True)",
    )
    library["tied_alone"].lacks("hidden_states[", "output_hidden_states")


def test_a_layer_inside_of_an_expression_is_refused_at_its_place(library: dict[str, Written]) -> None:
    (problem,) = library["head_in_expression"].source.problems
    assert problem.file.endswith("collected_torch.py") and "x + layer(x, **kwargs)[1]" in problem.text
