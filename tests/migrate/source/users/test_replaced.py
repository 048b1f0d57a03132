"""Methods in the place of others, chosen as in torch; and what is no method there, which raises."""

from __future__ import annotations

import pytest
from written import Written

Users = dict[str, Written]


def test_methods_in_the_place_of_forward_and_of_others(users: Users) -> None:
    found = users["replaced"]
    found.agrees()
    found.holds("self.construct = self.forward_slow", "self.construct = self.forward_never", "ops.tanh(self.fc(x))")
    found.holds("self.squash = self.clipped if hard else self.squash", "self.plain = self.construct")
    found.holds("self.construct = {'twice': self.twice, 'once': self.once}[kind]", "super().construct(x) * 3")
    found.lacks("self.forward = ")


@pytest.mark.full
def test_what_gives_a_module_another_forward_later_raises(users: Users) -> None:
    found = users["fused_later"]
    found.agrees()
    found.holds("this did not run, and could not be read: the value of module.forward_fast was not seen")


def test_what_is_no_method_of_its_class_is_a_problem(users: Users) -> None:
    said = [problem.text for problem in users["borrowed"].source.problems]
    assert said == [
        "self.forward = self.fc.forward: forward's replacement is not a method of the model, write a forward"
    ]


@pytest.mark.full
def test_no_method_takes_the_place_of_a_cells_own(users: Users) -> None:
    """A net that nobody may call in graph mode: `compile` raised there, which had not run in torch."""
    found = users["trained"]
    found.agrees()
    found.lacks("def compile", "def trainable_params")


@pytest.mark.full
def test_a_module_under_the_name_of_a_cells_method_is_a_problem(users: Users) -> None:
    """Making it raised a KeyError of MindSpore's, and weights were not converted."""
    said = [problem.text for problem in users["grown"].source.problems]
    assert said == ["self.shard: a Cell has a method of this name, give the module another one"]


def test_lists_that_are_called_cells(users: Users) -> None:
    """They were refused, and so was a range in a named tuple: the nets of DARTS and its like have both."""
    found = users["of_cells"]
    found.agrees()
    found.holds("hold_cells(self, nn.CellList())", "self.cells.extend([nn.Dense(4, 4) if kind == 'linear'")
    found.holds("hold_cells(self, nn.CellList([nn.Dense(4, 4) for _ in range(2)]))", "places=range(1, 3, 1)")
    assert [name for name in found.names if "cells" in name][:2] == ["cells.0.weight", "cells.0.bias"]


def test_a_forward_that_is_another_method(users: Users) -> None:
    """It had gone with what nothing reads, and the net had no construct."""
    found = users["two_names"]
    found.agrees()
    found.holds("run = once", "# for classes derived from this one", "construct = _forward", "infer = construct")


@pytest.mark.full
def test_a_forward_that_is_another_method_of_a_base(users: Users) -> None:
    found = users["of_two_names"]
    found.agrees()
    found.holds("construct = _forward", "super().construct(x) + self._forward(x)")


def test_what_did_not_run_is_read_by_what_its_class_says_elsewhere(users: Users) -> None:
    """A method that a dictionary names, layers of one branch, a device by its name, an argument that is called."""
    found = users["unread"]
    found.agrees()
    assert not found.source.not_run, found.source.not_run
    found.holds("if self.kind in ('second', 'other'):", "return self.second(x) if self.kind not in ('other',) else x")
    found.holds("for i, layer in enumerate(self.low):", "self.gate.weight.set_data(")
    found.holds("x = self.fc(x)\n        return self.first", "ops.sigmoid(self.fc.weight).tolist()")
    found.holds("m.set_data(initializer(Uniform(scale=1.0), m.shape, m.dtype))", "loss_fn(state, target)")


def test_classes_and_functions_that_never_ran_are_read(users: Users) -> None:
    """They raised as a whole; those that write into what they are given do, for the caller's would stay as it was."""
    found, wide = users["choosing"], users["chosen_wide"]
    found.agrees()
    wide.agrees()
    class_of = [
        text.partition("class Wide")[2].partition("\n\n\n")[0] for text in (found.source.text, wide.source.text)
    ]
    assert class_of[0].replace("        # not run\n", "") == class_of[1]
    found.holds("return self.norm(super().construct(x))", "return pyramid(x, self.levels)", "self.deep = Deeper(emb)")
    assert sorted(one.text for one in found.source.not_run) == [
        "what Spoiled does was not seen",
        "what spoil does was not seen",
    ]


def test_settings_of_finished_layers_change_them(users: Users) -> None:
    """MindSpore's layers do not look at them again: norms kept their eps, Dropouts their p, in silence."""
    found = users["tuned"]
    found.agrees()
    found.holds("change_layer(m, eps=0.5)", "change_layer(m, momentum=0.3)", "change_layer(m, p=rate)")
    found.holds("change_layer(m, eps=getattr(m, first_name(m, 'eps', 'epsilon')) + 0.25)", "m.inplace = True")
    found.holds("change_layer(m, negative_slope=slope)", "change_layer(self.drop, p=rate)", "self.eps = 0.1")
    found.holds("if isinstance(child, Dropout2d):\n                change_layer(child, p=rate)")
    said = [problem.text for problem in found.source.not_run]
    assert said == ["MindSpore's Conv2d keeps its stride as it was made: make it with that"]


def test_what_an_inner_model_only_has_is_called(users: Users) -> None:
    """Methods of it that did not run: calls of them raised."""
    users["tuned"].holds("self.net.slower(rate)", "return self.net.known()")


def test_a_setting_that_mindspores_layer_keeps_is_a_problem(users: Users) -> None:
    said = [problem.text for problem in users["widened"].source.problems]
    assert said == ["MindSpore's Conv2d keeps its stride as it was made: make it with that"]


def test_a_setting_under_the_name_of_a_cells_property_has_another_name(users: Users) -> None:
    """`self.phase` was "predict" in evaluation, whatever the model had said: set_train makes it so."""
    found = users["phased"]
    found.agrees()
    found.holds('cell_type_ = "gated"' if '"gated"' in found.source.text else "cell_type_ = 'gated'")
    found.holds("self.phase_ = phase", "self.phase_, self.cell_type_ = (phase, cell_type)", "self.inner.phase_ = phase")
    found.holds("one.requires_grad = False")
    said = [problem.text for problem in found.source.not_run]
    assert said == ["whether phase is that of a module was not seen, and a Cell has one of its own"]


def test_what_did_not_run_may_log_and_ask_a_given_class(users: Users) -> None:
    """It raised as a whole: a logger had not been seen, nor `block.growth` of the class in an argument."""
    found = users["reporting"]
    found.agrees()
    assert not found.source.not_run, found.source.not_run
    found.holds("log = logging.getLogger(__name__)", "growth = 1", "logging.info('done')", "raise ValueError(said)")
    found.holds("nn.Dense(4, width * block.growth), nn.Dropout(p=1 - rate * 5 / width)", "log.error(said)")
