"""Layers that users put at places, or ask for, in ways of torch's own."""

from __future__ import annotations

import pytest
from test_handed_on import classes
from written import Written

Users = dict[str, Written]


def test_places_without_a_layer(users: Users) -> None:
    """What stands where no layer was in the run is not known, and raises."""
    some, others = users["none_in_lists"], users["none_in_lists_without_activation"]
    some.agrees()
    others.agrees()
    some.holds("x = x if act is None else act(x)", "if drop is not None:\n                raise NotImplementedError(")
    others.holds("x = x if act is None else not_converted(")


def test_ordering_weights_in_memory_is_left_out(users: Users) -> None:
    """In code that ran, and in code that did not."""
    ran, unrun = users["ordered_weights_of_its_own"], users["ordered_weights"]
    for found in (ran, unrun):
        found.agrees()
        found.lacks("flatten_parameters")
    unrun.holds("            # not run\n            x = self.rnn(x)[0]")


def test_resizing_by_any_factor(users: Users) -> None:
    """MindSpore's class stays where it takes the factor."""
    down, up = users["resized"], users["resized_up"]
    down.agrees()
    up.agrees()
    assert classes(down)["Resized"] == classes(up)["Resized"]
    down.holds("self.up = nn.Upsample(scale_factor=2.0,", "Upsample(scale_factor=0.5,", "Upsample(scale_factor=factor,")


def test_conditions_that_only_save_memory(users: Users) -> None:
    """One of two calls that are the same but for checkpointing is written; where more depends on it, it raises."""
    found = users["saves_memory"]
    found.agrees()
    found.lacks("requires_grad", "checkpoint")
    for name in ("chooses_by_gradient", "asks_twice"):
        texts = [problem.text for problem in users[name].source.problems]
        assert texts == ["x.requires_grad is not known: MindSpore differentiates functions; ask self.training"]


def test_devices_of_the_file_in_branches_that_did_not_run(users: Users) -> None:
    unrun = users["placed"]
    assert not unrun.source.not_run
    for name in ("placed_1", "placed_2", "placed_3", "placed_4"):
        users[name].agrees()
        written = [classes(one)["Placed"].replace("# not run", "").split() for one in (users[name], unrun)]
        assert written[0] == written[1]


def test_sizes_that_torch_makes(users: Users) -> None:
    """torch.Size(…) is a tuple, in code that did not run, too."""
    ran, unrun = users["sizes_by_torch"], users["sizes_by_torch_unrun"]
    ran.agrees()
    unrun.agrees()
    bodies = [classes(one)["OwnNorm"].replace("# not run", "").split() for one in (ran, unrun)]
    assert bodies[0] == bodies[1]


def test_versions_by_their_package(users: Users) -> None:
    """torch's version is that of the run."""
    slow, fast = users["newer_by_package"], users["newer_by_package_fast"]
    slow.agrees()
    fast.agrees()
    slow.holds("from packaging import version", "now = version.parse('", "self.new = True")
    fast.holds("self.scale = 3.0 if now >= version.parse('2.0') else")


def test_whole_numbers_that_fill_floats(users: Users) -> None:
    """MindSpore's masked_fill takes a number of the tensor's own kind alone."""
    less, more = users["masked_by_whole_numbers"], users["masked_by_whole_numbers_more"]
    less.agrees()
    more.agrees()
    assert classes(less)["Masked"].replace("# not run", "").split() == classes(more)["Masked"].split()
    less.holds("masked_fill(x, where, -100)", "masked_fill(ops.tile(ops.arange(4), (4, 1)), where, 7)")


def test_norms_of_weights_that_are_removed(users: Users) -> None:
    """Where that did not run, too; and parameters that are added to a list one by one."""
    normed, folded = users["vocoder_of_norms"], users["vocoder_folded"]
    normed.agrees()
    folded.agrees()
    assert classes(normed)["Vocoder"].replace("# not run", "").split() == classes(folded)["Vocoder"].split()
    normed.holds("self.scales.append(Parameter(ops.ones((size, 1))))", "self.scales.extend([")


def test_classes_in_a_variable_that_take_lists_in_different_ways(users: Users) -> None:
    """The call is written for each; any other class raises."""
    found, wide = users["spectra_and_waves"], users["spectra_and_waves_wide"]
    found.agrees()
    wide.agrees()
    found.holds(
        "if getattr(kind, 'func', kind) is nn.Conv2d else kind(2, width,", "if getattr(kind, 'func', kind) not in ("
    )
    texts = [problem.text for problem in users["classes_of_two_kinds"].source.problems]
    assert any("take these arguments in different ways" in text for text in texts), texts


@pytest.mark.parametrize("name", ["derived_transformer", "derived_transformer_whole"])
def test_layers_that_derive_from_torchs_transformer_layers(users: Users, name: str) -> None:
    """Whose methods they call, whose parts have other names in MindSpore, and which a stack copies."""
    found = users[name]
    found.agrees()
    found.holds("self._sa_block(seen, past)", "self._ff_block(self.norm2(x))", "self._mha_block(x, memory, None, None)")
    found.holds("self.dense2(self.dropout(self.activation(self.dense1(x))))", "= TransformerDecoder(ScaledDecoder(8,")
    found.holds("super().construct(queries, keys, x, need_weights=False)[0]")
    assert not found.source.not_run
