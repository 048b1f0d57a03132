"""Parameters, buffers and their first values, as users have them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from written import Written

Users = dict[str, Written]


def test_buffers_that_are_saved_and_not(users: Users) -> None:
    found = users["buffers"]
    found.agrees()
    found.holds("self.scale = Parameter(", "name='scale', requires_grad=False)", "self.mask = mask")
    found.holds("self.shift = None", "self.bias = None")
    assert {"scale", "count", "weight", "gain"} == {*found.names.values()}


@pytest.mark.full
def test_a_running_mean_that_training_moves(users: Users) -> None:
    found = users["running"]
    found.agrees()
    found.holds("if self.training:")
    found.lacks("no_grad")


def test_running_statistics_of_a_copied_norm_are_moved(users: Users) -> None:
    found = users["own_norms"]
    found.agrees(apart=5e-5)
    found.holds("if self.training:", "mean = self.moving_mean", "self.moving_variance is None")
    found.lacks("float(self.num_batches_tracked)", "running_var is None", "add_(1)")


@pytest.mark.full
def test_lists_and_dictionaries_of_parameters(users: Users) -> None:
    found = users["parameters"]
    found.agrees()
    assert {"scales.0", "scales.2", "shifts.a", "token"} < {*found.names.values()}


def test_first_values_are_drawn_as_torch_draws_them(users: Users) -> None:
    for name in ("initialised", "loop_initialised"):
        found = users[name]
        found.agrees()
        for key, ours in found.torch.items():
            if key.startswith("fresh/"):
                theirs = found.mindspore[f"fresh/{found.names[key.removeprefix('fresh/')]}"]
                spread = 5 / np.sqrt(ours.size)  # five deviations of a deviation, and more
                assert theirs.std() == pytest.approx(ours.std(), rel=spread, abs=1e-7), key
                assert theirs.mean() == pytest.approx(ours.mean(), abs=spread * max(ours.std(), 1e-7)), key


def test_layers_begin_by_the_names_that_their_classes_have_in_torch(users: Users) -> None:
    """MindSpore calls a Linear Dense, so that `find("Linear")` found none, and left its weights alone."""
    found = users["begun_by_names"]
    found.agrees("eval", "train")
    fresh = {key: set(value.ravel().tolist()) for key, value in found.mindspore.items() if key.startswith("fresh/")}
    assert fresh["fresh/body.0.weight"] == fresh["fresh/body.2.weight"] == {0.75}
    assert fresh["fresh/body.0.bias"] == {0.125} and fresh["fresh/head.weight"] == {0.25}
    found.holds("name = class_name(m, ", "Dense='Linear'", "# as Glorot has it", "XavierNormal(gain=scale)")
    assert [problem.text for problem in found.source.not_run] == ["what nn.init.thick_ does was not seen"]


def test_weights_begin_in_another_shape(users: Users) -> None:
    """Of 4 filters with 6 weights each, as torch draws a matrix of 4 rows and 6 columns."""
    found = users["begun_in_another_shape"]
    found.agrees()
    drawn, bound = np.abs(found.mindspore["fresh/patch.weight"]), 0.5 * (6 / (4 + 6)) ** 0.5
    assert bound / 2 < drawn.max() <= bound
    assert set(found.mindspore["fresh/head.weight"].ravel().tolist()) == {0.25}


def test_norms_begin_by_their_names_in_torch_too(users: Users) -> None:
    """An InstanceNorm is a GroupNorm in MindSpore."""
    found = users["normed_by_name"]
    found.agrees()
    assert set(found.mindspore["fresh/norm.gamma"].tolist()) == {0.5}


def test_a_part_that_is_not_trained(users: Users) -> None:
    found = users["loop_initialised"]
    assert "gradient/conv.weight" not in {*found.torch, *found.mindspore}


def test_classes_that_come_from_torchs(users: Users) -> None:
    found = users["subclasses"]
    found.agrees()
    found.holds("class LayerNorm2d(nn.LayerNorm):", "self.norm = LayerNorm2d((4,), epsilon=1e-06)")
    found.holds("class ScaledLinear(nn.Dense):", "self.gamma")
    found.holds("class PlainNorm(PartialLayerNorm):")
    found.holds("self.padding = (0, 0)", "self.ceil_mode = ceil_mode", "self.count_include_pad = count_include_pad")
    found.holds("if isinstance(self.scale, (nn.BatchNorm1d, nn.BatchNorm2d,")


@pytest.mark.full
def test_what_has_no_row_is_told_and_the_rest_written(users: Users) -> None:
    found = users["orthogonal"]
    assert [problem.text for problem in found.source.problems] == [
        "torch.nn.utils.parametrizations.orthogonal has no row in the mapping table"
    ]
    found.holds("self.fc = not_converted(", "return self.fc(x)")


def test_weights_that_are_computed(users: Users) -> None:
    found = users["weight_normed"]
    found.agrees()
    found.holds("self.first = weight_norm(nn.Conv1d(", "dim=None if whole else 0)")
    assert found.names["last.parametrizations.weight.original1"] == "last.weight_v"
    trained = {key for key in found.mindspore if key.startswith("gradient/")}
    assert {"gradient/first.weight_g", "gradient/ups.1.weight_v"} <= trained
    assert not {"gradient/first.weight", "gradient/last.weight"} & trained


@pytest.mark.full
def test_weights_by_their_largest_singular_value(users: Users) -> None:
    found = users["spectral_normed"]
    found.agrees()
    found.holds("n_power_iterations=steps)", "eps=1e-10, u_first=True)")
    assert found.names["fc.parametrizations.weight.0._u"] == "fc.weight_u"


@pytest.mark.full
def test_weights_that_a_function_makes_smaller(users: Users) -> None:
    found = users["rescaled"]
    found.agrees()
    for place in range(3):
        ours, theirs = (side[f"fresh/layers.{place}.weight"] for side in (found.torch, found.mindspore))
        assert 0.8 < np.abs(theirs).max() / np.abs(ours).max() < 1.25
    assert set(found.mindspore["fresh/start"].tolist()) == {0.5}
    assert set(found.mindspore["fresh/layers.0.gain"].tolist()) == {1.5}


@pytest.mark.full
def test_a_norm_by_hand_around_a_layer(users: Users) -> None:
    found = users["own_spectral"]
    found.agrees()
    found.holds("ops.assign(u, ", "u = self.module.weight_u", 'del module._params["weight"]'.replace('"', "'"))


@pytest.mark.full
def test_names_that_are_computed(users: Users) -> None:
    found = users["numbered"]
    found.agrees()
    found.holds("setattr(self, f'mean_{i}', Parameter(", "setattr(self, f'gain_{i}', Parameter(")


def test_parameters_are_counted_drawn_and_named_without_buffers(users: Users) -> None:
    """MindSpore's get_parameters() gives buffers and running statistics too, and other names."""
    found = users["counted"]
    found.agrees()
    found.holds("for p in parameters(self):", "self.places = buffer(", "named_parameters(self, prefix='net'")
    assert found.mindspore["fresh/places"].ravel().tolist() == [*range(18)]
    assert found.mindspore["fresh/embed"].any()


@pytest.mark.full
def test_the_parameters_alone_need_one_function(users: Users) -> None:
    found = users["penalised"]
    found.agrees()
    found.holds("def parameters(cell", "for p in parameters(self)")
    found.lacks("def named_parameters", "TORCH_NAMES")


def test_a_tensor_that_one_method_keeps_for_another_is_listed(users: Users) -> None:
    (said,) = [problem for problem in users["measured"].source.left_out if "self." in problem.text]
    assert said.text == (
        "self.size, which measure sets and put_back reads: compiled, it has no type and passes no gradient. "
        "Return it from measure and hand it on, or train with --mode pynative"
    )
    assert said.file.endswith("states_torch.py") and said.line


def test_layers_that_a_cell_has_already_get_computed_weights_under_their_names(users: Users) -> None:
    """Each was called weight_g alone, whichever layer it was of; a class of the user's own was refused."""
    found = users["normed_later"]
    found.agrees()
    found.holds("weight_norm(m)", "weight_norm(self.head[0], dim=None)", "remove_norm(self.body[3])")


def test_a_layer_that_draws_its_weights_in_its_own_way_does_so_as_it_is_made(users: Users, tmp_path: Path) -> None:
    """torch's constructors call reset_parameters; MindSpore's do not."""
    found = users["drawn_anew"]
    found.agrees()
    file = tmp_path / "written.py"
    code = "print(net.last.weight.asnumpy().min(), net.last.bias.asnumpy().max(), net.conv.weight.asnumpy().max())"
    file.write_text(f"{found.source.text}\n\nnet = build()\n{code}\n")
    said = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True, timeout=120).stdout
    assert said.split() == ["1.0", "0.25", "0.5"]


def test_embeddings_whose_table_is_computed(users: Users) -> None:
    users["normed_tables"].agrees()
