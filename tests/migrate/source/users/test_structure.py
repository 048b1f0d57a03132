"""How users hold, share, find and make their modules: written as one would, and computing what torch does."""

from __future__ import annotations

import pytest
from msmigrate.migrate.source.convert_model import with_ends
from written import Written

Users = dict[str, Written]


@pytest.mark.full
def test_classes_that_are_sequential(users: Users) -> None:
    found = users["sequential"]
    found.agrees()
    found.holds("class ConvNormAct(nn.SequentialCell):", "for module in self:")
    found.holds("\n\n# how wide the layers are,\n# as the others have them\nWIDTH = 8\n")
    found.lacks("settings of all models")  # which is not of this constant


def test_modules_in_lists_and_dictionaries_by_number_slice_and_name(users: Users) -> None:
    found = users["lists"]
    found.agrees()
    found.holds(
        "zip(list(self.layers)[1:], list(self.norms)[1:])",
        "self.heads['one'](x)",
        "layer.in_channels",
        "self.layers[-1]",
    )


def test_a_shared_module_and_tied_weights(users: Users) -> None:
    found = users["shared"]
    found.agrees()
    found.holds("self.again = self.mix", "self.decoder.weight = self.embed.embedding_table")
    assert "decoder.weight" not in found.names.values()


@pytest.mark.full
def test_layers_under_names_that_are_computed(users: Users) -> None:
    found = users["named"]
    found.agrees()
    found.holds("setattr(self, f'layer{i}', nn.Dense(width, width))", "getattr(self, f'layer{i}')")


def test_a_config_an_enum_and_a_table_of_classes(users: Users) -> None:
    found = users["config"]
    found.agrees()
    found.holds("@dataclass", "class Config:", "class Pool(enum.Enum):", "'gelu': partial(nn.GELU, approximate=False)")
    found.holds("self.ACTS[cfg.act]()", "Pool.MAX")
    found.holds("if pool not in (Pool.MEAN, Pool.MAX):", "raise ValueError(f'there is no pool {pool}')")


@pytest.mark.full
def test_layers_by_a_list_of_dictionaries(users: Users) -> None:
    users["config_loop"].agrees()


def test_mixins_properties_class_and_static_methods(users: Users) -> None:
    found = users["inherited"]
    found.agrees()
    found.holds("class Derived(GateMixin, Base):", "@property", "@staticmethod", "Derived.scale(x, self.extra)")


def test_partial_lambdas_and_functions_inside(users: Users) -> None:
    found = users["partials"]
    found.agrees()
    found.holds("norm=partial(nn.LayerNorm, epsilon=1e-06)", "def residual(y, scale=0.5):", "lambda x: x * 2")


@pytest.mark.full
def test_an_object_that_makes_layers_as_it_is_called(users: Users) -> None:
    found = users["built"]
    found.agrees()
    found.holds("def __call__(self, width: int, blocks: list[dict])", "BuiltNet([{'width': 8}, {'width': 5}], ")
    found.holds("nn.SequentialCell(OrderedDict({'mix': nn.Dense(3, 3), 'act': nn.Tanh()}))")
    found.holds("nn.Upsample(scale_factor=float(factor), recompute_scale_factor=True) if factor > 1 else nn.Identity()")
    found.holds("getattr(norm, 'gamma', None)", "hasattr(norm, 'beta')")
    found.holds("for module in [cell for _, cell in last.cells_and_names()]")
    found.holds("[x.item() for x in ops.linspace(rate, 0, depth)]")  # which did not run


@pytest.mark.full
def test_arguments_that_are_passed_on(users: Users) -> None:
    found = users["passing"]
    found.agrees()
    found.holds("self.run(*args, **kwargs)", "self.run(*args)", "eps=options['eps']")


@pytest.mark.full
def test_dictionaries_that_may_hold_more_another_time(users: Users) -> None:
    """A layer of torch's takes what was in the dictionary, and the new class raises where there is more."""
    found = users["unpacking"]
    found.agrees()
    found.holds(
        "        if self.kw:\n            raise NotImplementedError(", "**self.kw was empty')\n        self.first = "
    )
    found.holds("        if config.get('second', {}):\n            raise NotImplementedError(")
    found.holds(
        "if any((key not in ('bias',) for key in self.kind)):", "**self.kind had no key but bias')\n        self.third"
    )
    found.holds("**one was empty') if one else nn.Dense(6, 6) for one in config.get('each', ({}, {}))")
    found.holds("if any((key not in ('bias',) for key in changed)):")
    found.holds("        if kwargs:\n            raise NotImplementedError(", "self.biased = BiasedNet(6, **self.kw)")
    found.holds("self.own = OwnPart(6, **self.kw)", "OwnPart(6, **config.get('none', {'act': None}))")
    found.holds("        fixed = {'bias': False}\n        self.fixed = nn.SequentialCell(")  # which is seen to stay so


def test_a_package_of_several_files(users: Users) -> None:
    found = users["packaged"]
    found.agrees()
    found.holds("def swish(x, beta=1.0):", "class ChannelNorm(nn.Cell):", "EPS = 1e-05")
    found.holds("swish(self.norm(self.conv(x)))", "self.act = SELU()")
    found.holds("import math\n", "ops.relu(scaled(x, 1 / math.sqrt(2)))")  # imported in forward
    found.holds("'block': Block}")  # which another file has entered there
    found.lacks(
        "import torch", "layers.", "import helpers", "helpers.conv", "conv3", "nn.ReLU", "nn.SELU", "ACTIVATIONS"
    )
    found.holds("# helpers.py:\n# Helper functions.\n\n# norms.py:\n# Norms.\n")


@pytest.mark.full
def test_files_that_call_different_things_the_same(users: Users) -> None:
    found = users["twins"]
    found.agrees()
    found.holds("class EncoderBlock(nn.Cell):", "class Block(nn.Cell):", "return encoder_scale(x) + 1")
    found.holds("WIDTH = 4", "SETTINGS_WIDTH = 6", "SLOPE: float = 0.2", "outs: int=WIDTH", "outs: int=SETTINGS_WIDTH")
    found.holds("norm: type[nn.Cell]=None, dtype: Any=mindspore.float32", "ops.silu(")
    found.holds("# layers of each part\n# the deeper one\nDEPTHS = {", "# below zero\nSLOPE: float = 0.2")
    assert "\nSETTINGS_WIDTH = 6  # of the middle\n" in with_ends(found.source.text)


def test_a_local_variable_does_not_hide_what_it_is_made_of(users: Users) -> None:
    found = users["hiding"]
    found.agrees()
    found.holds("Block_ = partial(Block, norm=partial(nn.LayerNorm", "scaled_ = scaled(x, 2.0)")
    found.holds("swish_ = swish(scaled_, beta=self.swish)", "def __init__(self, width=5, swish=0.5):")
    (problem,) = users["hidden_by_a_parameter"].source.problems
    assert problem.text == "scaled is a parameter of __init__, and a class or function used there"


@pytest.mark.full
def test_one_of_two_inputs(users: Users) -> None:
    found = users["one_or_the_other"]
    found.agrees()
    found.holds("(x is None) != (embedded is None)", "^ 1")


@pytest.mark.full
def test_functions_that_a_table_names_and_nothing_called(users: Users) -> None:
    found = users["started"]
    found.agrees()
    found.holds("if type(m) == nn.Conv2d or type(m) == nn.Dense:", "Normal(sigma=1 / m.weight.shape[-1])")
    found.holds("elif type(m) in (nn.BatchNorm1d, nn.BatchNorm2d):", "m.gamma.set_data(initializer(Constant(value=0.5)")
    found.holds("def doubled(x):\n    # not run\n    return x * 2")
    found.holds("def started_oddly(m):\n    raise NotImplementedError('structure_torch.py:")
    assert ["the value of m.weight was not seen" in one.text for one in found.source.not_run] == [True]


@pytest.mark.full
def test_what_a_module_holds_by_name(users: Users) -> None:
    found = users["in_turn"]
    found.agrees()
    found.holds("for name, layer in self._cells.items():")


def test_class_methods_that_made_the_model_and_what_catches_errors(users: Users) -> None:
    found = users["made_by_class"]
    found.agrees()
    found.holds("return cls(width=config.get('width', 6), **config.get('more', {}))", "return cls(width=2, **more)")
    found.holds("except KeyError as error:", "def count(self):")
    found.lacks("IndexError")
    (left,) = [one for one in found.source.left_out if "try" in one.text]
    assert left.text == "except KeyError: MindSpore compiles no try, so the error goes on"


def test_an_enumeration_that_only_what_did_not_run_calls(users: Users) -> None:
    """Its definition had gone, as classes of modules that such calls name are written anew: it was not whole."""
    found = users["laid"]
    found.agrees()
    assert not found.source.not_run, found.source.not_run
    found.holds("class Layout(str, Enum):", "(False, Layout(layout))", "(flat, Layout.FIRST)")


def test_objects_that_python_calls(users: Users) -> None:
    """Methods that no call of the model names are written where they ran."""
    found = users["called_by_python"]
    found.agrees()
    found.holds("len(list(filter(Equals('a'), kinds)))", "def __call__(self, x, *args):", "def __bool__(self):")


def test_how_objects_are_compared_is_not_seen(users: Users) -> None:
    """It is read as what did not run, and raises where that does not suffice: two objects would never be equal."""
    found = users["compared_by_its_own"]
    assert {problem.text for problem in found.source.not_run} == {"the value of other.count was not seen"}
    assert found.failed is not None


def test_objects_whose_attributes_are_made_by_methods(users: Users) -> None:
    """`__getattr__`, `__enter__` and the like are written; a `__setattr__` that cannot be read raises."""
    users["attributes_by_methods"].agrees()
    found = users["attributes_that_are_changed"]
    assert [problem.text for problem in found.source.not_run] == ["what object.__setattr__ calls is not known"]
    assert found.failed is not None


def test_names_that_are_given_another_value_have_their_last(users: Users) -> None:
    """The first one was written, and everything in a class's body that is no assignment was lost without a line."""
    found = users["changed_names"]
    found.agrees()
    found.holds("FACTOR = 6.0", "SIZES = (4, 6)", "STEPS = [0.5, 0.25, 1.0, 2.0]", "LATER = 5.0", "MORE = [3.0]")
    found.holds("KINDS = ['sum', 'mean']", "WEIGHTS = {'sum': 0.5, 'mean': 0.25}", "DEEP = 8", "SHARES = (0.5, 0.25)")
    found.holds("small = 0.75", "large = 3.0")
    found.lacks("KINDS = ['sum']\n", "SHARES = (0.5,)", "small = 0.5\n", "STEPS = [0.5]\n")
    said = [problem.text for problem in found.source.left_out]
    assert "SEEN.add(3.0) changes SEEN, which is written without it" in said
    assert "global COUNT changes COUNT, which is written without it" in said
