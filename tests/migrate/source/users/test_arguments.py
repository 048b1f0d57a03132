"""How users hand arguments to layers: unpacked, to classes that have none of them, computed."""

from __future__ import annotations

import pytest
from written import Written

Users = dict[str, Written]


@pytest.mark.full
def test_a_star_before_what_always_has_as_many(users: Users) -> None:
    found = users["unpacked"]
    found.agrees()
    found.holds("nn.Dense(sizes[0], sizes[1])", "self.sizes[0], self.sizes[1]", "self.span[0]")


def test_classes_that_do_not_take_what_others_of_the_variable_do(users: Users) -> None:
    found = users["lenient"]
    found.agrees()
    found.holds("norm(width, eps=0.001)", "self.act = act()")
    found.lacks("inplace=", "unused")


def test_fans_gains_factors_and_dtypes(users: Users) -> None:
    found = users["computed"]
    found.agrees()
    found.holds("def _calculate_fan_in_and_fan_out(", "nn.Upsample(scale_factor=float(2 ** i)", "found = []")


@pytest.mark.full
def test_norms_without_weights_pools_in_a_variable_and_axes_by_numpys_name(users: Users) -> None:
    found = users["norms"]
    found.agrees()
    found.holds("ops.amax(x, axis=1, keepdims=True)", "ops.stack([x, x], axis=-1)")
    found.holds("PartialLayerNorm", "elementwise_affine=False", "self.whole = PartialLayerNorm((6,))", "stride=2")


@pytest.mark.full
def test_bounds_of_any_kind_and_layers_that_begin_anew(users: Users) -> None:
    found = users["drawn"]
    found.agrees()
    found.holds(
        "Uniform(scale=(span[1] - span[0]) / 2)", "Uniform(scale=0.5)", "reset_parameters(module)", "400, tuple(kernel)"
    )
    fresh = {key.removeprefix("fresh/"): value for key, value in found.mindspore.items() if key.startswith("fresh/")}
    for name, low, high in (("scale", 1, 16), ("rate", 0, 1), ("conv.weight", -0.5, 0.5), ("conv.bias", -0.5, 0.5)):
        near = (high - low) / 20
        assert low <= fresh[name].min() < low + near and high - near < fresh[name].max() <= high
    assert not fresh["attention.out_proj.bias"].any()


def test_a_dataclass_with_an_init_of_its_own(users: Users) -> None:
    found = users["settings"]
    found.agrees()
    found.holds("class WideSetting(LayerSetting):", "[WideSetting(3), WideSetting(5, 1.5)]")


def test_a_loop_that_picks_one_module(users: Users) -> None:
    found = users["picked"]
    found.agrees()
    found.holds(
        "        out = self.layers[idx](x)", "    for i, layer in enumerate(self.layers):", "out = out + layer(x) * i"
    )
    found.lacks("Examples", ">>>", "out = layer(x)")


@pytest.mark.full
def test_sizes_that_a_dataclass_computes(users: Users) -> None:
    found = users["sizes"]
    found.agrees()
    found.holds("self.inner = self.expand * self.width", ".astype(mindspore.float32)")
    found.holds("stride=stride if isinstance(stride, int) else tuple(stride) * (2 // len(stride))")


def test_what_weights_begin_with_is_handed_on(users: Users) -> None:
    found = users["given_starts"]
    found.agrees("eval", "train")  # gradients of equal weights cancel
    found.holds(
        "weight_init(module.weight, **how)", "layer.gamma.set_data(", "bias_init=lambda tensor: tensor.set_data("
    )
    fresh = {key.removeprefix("fresh/"): value for key, value in found.mindspore.items() if key.startswith("fresh/")}
    assert (fresh["first.weight"] == 0.25).all() and (fresh["first.bias"] == 1).all()
    assert 2 <= fresh["second.weight"].min() < fresh["second.weight"].max() <= 4 and (fresh["second.bias"] == 1).all()
    assert (fresh["third.weight"] == 3).all() and not fresh["third.bias"].any()


def test_a_class_of_one_s_own_begins_as_its_base_of_torch_s_does(users: Users) -> None:
    found = users["own_layer"]
    found.agrees()
    fresh = {key.removeprefix("fresh/"): value for key, value in found.mindspore.items() if key.startswith("fresh/")}
    assert not fresh["self_attn.out_proj.bias"].any() and fresh["self_attn.out_proj.weight"].any()


@pytest.mark.full
def test_arrays_and_tensors_that_a_class_is_given(users: Users) -> None:
    found = users["on_graph"]
    found.agrees()
    found.holds("Tensor([[1.0, 0.1, 0.0], [0.1, 1.0, 0.33333334]", "mindspore.int64)", "dtype=np.int64)")
    found.holds("np.array(0.3, dtype=np.float32)", "np.array(np.zeros((0, 2)), dtype=np.float64)", "int(a), int(b)")


@pytest.mark.full
def test_libraries_of_arrays_are_imported_as_they_are(users: Users) -> None:
    found = users["rotated"]
    found.agrees()
    found.holds("from scipy import linalg as la", "import scipy.special", "scipy.special.expit(la.norm(upper) * gate)")
    found.lacks("NotImplementedError")


@pytest.mark.full
def test_tensors_that_layers_in_a_loop_call_each_by_its_own_name(users: Users) -> None:
    found = users["named_alike"]
    found.agrees("eval", "train")
    fresh = {key.removeprefix("fresh/"): value for key, value in found.mindspore.items() if key.startswith("fresh/")}
    weights, biases = ("first.weight", "norm.gamma", "scale.gamma"), ("first.bias", "norm.beta", "scale.beta")
    assert all((fresh[name] == 0.5).all() for name in weights) and all((fresh[name] == 0.25).all() for name in biases)


def test_a_partial_of_a_class_that_is_given_is_of_that_class(users: Users) -> None:
    """It was one of the class in the run, whichever was given."""
    found = users["normed_twice"]
    found.agrees()
    found.holds("(Normed(width, norm), Normed(width, partial(norm, epsilon=0.01)))")


def test_ones_and_zeros_of_a_norm_are_no_parameters(users: Users) -> None:
    found = users["penalised_without_ones"]
    found.agrees()
    found.holds("nn.GroupNorm(num_groups=4, num_channels=4, affine=False)")


def test_a_list_that_becomes_a_sequential_is_a_list_before(users: Users) -> None:
    """What did not run there raised, since the name was of both; and a string above a class had gone."""
    found = users["collected"]
    found.agrees()
    found.holds("self.net.append(nn.ReLU())", "self.net.extend([nn.Dense(6, 6), nn.Tanh()])", "nn.Dense(6, 3)")
    found.holds("# Layers that are collected in a list first.", "# Its name is a Sequential's afterwards.\nclass Coll")
    assert not found.source.not_run


def test_a_momentum_is_as_the_class_takes_it_that_is_given(users: Users) -> None:
    """MindSpore's BatchNorms take the weight of the old statistics; 0.7 went to whichever class was given."""
    found = users["normed_as_given"]
    found.agrees()
    found.holds("norm(4, momentum=momentum_of(norm, 0.3))", "own(4, momentum=momentum_of(own, 0.2))")
    found.holds("each(4, momentum=momentum_of(each, 0.4))")


def test_a_function_draws_tensors_and_parameters(users: Users) -> None:
    """What it drew into a tensor had no values yet, which MindSpore raises for."""
    found = users["begun_by_function"]
    found.agrees()
    found.holds("table.copy_(initializer(Normal(sigma=std), table.shape, table.dtype).init_data())")
    assert 0.08 < found.mindspore["fresh/table"].std() < 0.12
    assert 0.17 < found.mindspore["fresh/fc.weight"].std() < 0.23


def test_a_computed_number_crosses_whichever_it_is(users: Users) -> None:
    """Only None has no counterpart: with another number the net raised, and of many numbers none was made 1 - value."""
    found = users["momenta"]
    found.agrees()
    found.holds("nn.BatchNorm2d(3, momentum=1 - WEIGHT)", "nn.BatchNorm2d(3, momentum=1 - momentum)")
    found.holds("momentum=1 - 1 / (place + 2)", "momentum=1 - momentum / 2", "scale_factor=float(2 ** level)")
    found.lacks("NotImplementedError")


def test_classes_of_torch_and_of_the_model_out_of_one_function(users: Users) -> None:
    """torch's raised where **kwargs held anything, the model's got it: the call was not one for both."""
    found = users["activations"]
    found.agrees()
    found.holds("was empty", "return cls()")


def test_what_a_function_computes_its_models_arguments_of_is_no_argument_of_the_new_one(users: Users) -> None:
    """`deep_and_wide(depth=3)` has six layers in torch, and raises in the new file, where it would have had three."""
    users["deep_and_wide"].agrees("eval")
    users["deep_and_wide"].holds("def build(width=4, **kwargs: Any)", "Deep(width=width, depth=2, **kwargs)")
    users["deep_and_padded"].holds(
        "def build(rate=0.5, **kwargs: Any)", "Deep(kernel=3, padding=1, rate=rate, **kwargs)"
    )


def test_layers_that_a_user_refines_have_torchs_defaults_in_a_variable_too(users: Users) -> None:
    """MindSpore's LayerNorm has an epsilon of 1e-7, and its Conv1d no bias."""
    users["refined"].agrees()
    users["refined"].holds("super().__init__(*args, **{'epsilon': 1e-05, **kwargs})", "norm((width,), epsilon=0.001)")
    users["refined"].holds("super().__init__(*args, **{'pad_mode': 'valid', 'has_bias': True, **kwargs})")


def test_settings_that_a_class_changes_are_those_that_it_was_given(users: Users) -> None:
    """They were as they had become, and changed twice; of what is no dictionary a half was written."""
    for name in ("by_keys", "by_dotted"):
        found = users[name]
        found.agrees()
        found.holds(
            "ByKeys({'width': 4, 'patches': {'size': 3}, 'scale': 3.0})", "config['inner'] = config['width'] + 1"
        )
        found.holds("ops.linspace(0, 1, config['patches']['size'])")
        found.holds("self.steps * prod(x.shape[1:])")
        found.lacks("self.steps = self.steps")


def test_a_number_that_another_argument_would_choose_crosses_as_well(users: Users) -> None:
    """`DroppedBetween(layers=1)` raised: MindSpore's takes no whole number there."""
    found = users["dropped_between"]
    found.agrees()
    found.holds("dropout=float(dropout if layers > 1 else 0)")


def test_the_first_parameter_is_an_attribute_where_it_surely_is_one(users: Users) -> None:
    """Graph mode compiles no generator: a net that asks for it in each forward neither trained nor was exported."""
    users["begins"].holds("weight = ops.stop_gradient(self.words.embedding_table)")
    users["begins_with_scale"].holds("self.scale")
    for name in ("begins", "begins_with_scale"):
        users[name].lacks("next(")
    others = ("begins_with_own", "begins_with_some", "begins_with_other")  # of another class or argument it is another
    for name in others:
        users[name].holds("next(parameters(self))")
    for name in ("begins", "begins_with_scale", *others):
        users[name].agrees()


def test_layers_that_are_made_as_defaults(users: Users) -> None:
    found = users["arguments_made_as_defaults"]
    found.agrees("eval")
    found.holds("act=nn.ReLU(), drop=nn.Dropout(p=0.3), *, last=nn.LeakyReLU(alpha=0.1)):")
