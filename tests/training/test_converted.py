"""A recipe whose model is torchvision's or timm's: how it is read, and where its MindSpore source comes from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msmigrate.errors import BadDestination, BadInput, BadRecipe, Unsupported
from msmigrate.parity.align.alignment import Alignment, Match, check_recipe
from msmigrate.parity.job import check_inputs
from msmigrate.training.models import converted_models, model_names
from msmigrate.training.recipe import reader as recipes
from msmigrate.training.recipe import schema
from msmigrate.workflows.parity_step import parity_step

RECIPE = "model: {model}\noptimizer: {{name: SGD, args: {{lr: 0.1}}}}\n"
SOURCE = "from mindspore import nn\n\n\ndef other():\n    return 1\n\n\ndef resnet18():\n    return nn.Cell()\n"


def load(folder: Path, model: str) -> schema.Recipe:
    """The recipe with this model."""
    file = folder / "recipe.yaml"
    file.write_text(RECIPE.format(model=model))
    return recipes.load(file)


def test_a_name_alone_is_a_model(tmp_path: Path) -> None:
    recipe = load(tmp_path, "torchvision:resnet18")
    assert (recipe.model.name, recipe.model.args, recipe.model.source) == ("torchvision:resnet18", {}, None)
    assert load(tmp_path, "{name: torchvision:resnet18, args: {num_classes: 10}}").model.args == {"num_classes": 10}
    assert load(tmp_path, "torchvision:resnet18(num_classes=10)").model.args == {"num_classes": 10}
    own = load(tmp_path, "{name: 'net.py:Net(sizes=[8, 16])', source: x.py, classes: 3}").model
    assert (own.name.rpartition("/")[2], own.args) == ("net.py:Net", {"sizes": [8, 16]})
    assert load(tmp_path, "resnet18").digest == load(tmp_path, "{name: resnet18}").digest


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            "torchwision:resnet18",
            "no model is called 'torchwision:resnet18'; .* also takes torchvision:NAME, timm:NAME and FILE.py:NAME",
        ),
        ("torchvision:resnet18(10)", r"model 'torchvision:resnet18\(10\)': give its arguments by name"),
        ("{name: net.py:Net(width=8), args: {depth: 2}, source: x.py}", "either under `args` or in the name"),
        ("torchvision:resnet18(num_classes=0)", "num_classes must be a positive whole number"),
        ("net.py:build", "net.py:build needs source: FILE, its counterpart in MindSpore; msmigrate convert-model "),
        ("'net.py:Net -- --width 2'", "no model is called 'net.py:Net -- --width 2'"),
        ("{name: net.py:Net, source: x.py}", "say how many classes .*net.py:Net has, as classes: 10"),
        ("{name: net.py:Net, source: x.py, classes: 3, args: {num_classes: 4}}", "classes is 3 and its num_classes 4"),
        ("{name: resnet18, classes: 3}", "resnet18 takes args: {num_classes: 3}"),
        ("'torchvision:'", "no model is called 'torchvision:'"),
        ("{name: torchvision:resnet18, args: {num_classes: ten}}", "num_classes must be a positive whole number"),
        ("{name: resnet18, source: x.py}", "model.source: resnet18 is msmigrate's own"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, model: str, said: str) -> None:
    with pytest.raises(BadRecipe, match="recipe.yaml:1: .*" + said):
        load(tmp_path, model)


def test_a_source_counts_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(SOURCE)
    recipe = load(tmp_path, "{name: torchvision:resnet18, source: net.py}")
    assert recipe.model.source == tmp_path / "net.py"
    before = recipe.digest
    (tmp_path / "same.py").write_text(SOURCE)
    assert load(tmp_path, "{name: torchvision:resnet18, source: same.py}").digest == before
    (tmp_path / "net.py").write_text(SOURCE + "\n")
    assert recipe.digest != before
    assert recipe.digest != load(tmp_path, "torchvision:resnet18").digest
    (tmp_path / "net.py").unlink()
    with pytest.raises(BadRecipe, match=r"the recipe's .*net.py cannot be read: No such file"):
        _ = recipe.digest


def test_the_function_of_a_source(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(SOURCE)
    assert converted_models.mindspore_spec("torchvision:resnet18", {}, file) == f"{file}:resnet18"
    assert converted_models.maker(file, "torchvision:vgg11").name == "resnet18"  # the last one
    for text, said in (("x = 1\n", "has no function that makes a model"), ("def (", "is no Python")):
        file.write_text(text)
        with pytest.raises(BadRecipe, match=said):
            converted_models.maker(file, "torchvision:resnet18")


def test_without_torch_the_line_says_what_to_run_and_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(converted_models, "find_spec", lambda name: None)
    with pytest.raises(Unsupported) as told:
        converted_models.mindspore_spec("torchvision:vgg11", {"num_classes": 10})
    assert str(told.value) == (
        "torchvision:vgg11(num_classes=10) is converted from torch, and torch is not installed here: where it is, run "
        "msmigrate convert-model 'torchvision:vgg11(num_classes=10)' -o vgg11.py, and write source: vgg11.py under "
        "model in the recipe"
    )


def test_what_is_in_the_cache_is_not_converted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    written = []

    def write(spec: str, path: Path) -> None:
        written.append(spec)
        path.write_text(SOURCE)

    monkeypatch.setattr(converted_models, "write", write)
    first = converted_models.mindspore_spec("torchvision:resnet18", {})
    assert first == converted_models.mindspore_spec("torchvision:resnet18", {})
    assert first != converted_models.mindspore_spec("torchvision:resnet18", {"num_classes": 10})
    assert written == ["torchvision:resnet18", "torchvision:resnet18(num_classes=10)"]
    assert Path(first.rpartition(":")[0]).parent == tmp_path / "msmigrate" / "converted"


def test_a_cache_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(BadDestination, match="set XDG_CACHE_HOME to a writable folder"):
        converted_models.cache_folder()


def test_classes_are_counted_as_torchvision_does() -> None:
    assert model_names.num_classes("torchvision:resnet18", {}) == 1000
    assert model_names.num_classes("timm:resnet18", {"num_classes": 7}) == 7


# One of the user's own


OWN = """
from mindspore import nn

class Net(nn.Cell):
    def __init__(self, width=4):
        super().__init__()

class Fixed(nn.Cell):
    pass

def small(*, width):
    return Net(width)

def build():
    return Net(7)
"""


@pytest.mark.parametrize(
    ("name", "ends"), [("Net", "Net(width=5)"), ("small", "small(width=5)"), ("build", "build"), ("Fixed", "Fixed")]
)
def test_a_counterpart_of_one_s_own_gets_the_arguments_that_it_takes(tmp_path: Path, name: str, ends: str) -> None:
    """What convert-model wrote takes none: it holds them."""
    (tmp_path / "port.py").write_text(OWN)
    spec = converted_models.mindspore_spec(f"net.py:{name}", {"width": 5}, tmp_path / "port.py")
    assert spec == f"{tmp_path / 'port.py'}:{ends}"


def test_a_model_of_one_s_own_stands_beside_its_recipe_and_counts_by_all_that_it_imports(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("from blocks import Gate\nimport torch, parts.deep\n\nclass Net: pass\n")
    (tmp_path / "port.py").write_text(OWN)
    (tmp_path / "blocks.py").write_text("from parts import more\n")
    (tmp_path / "parts").mkdir()
    for name in ("__init__", "deep", "more", "unused"):
        (tmp_path / "parts" / f"{name}.py").write_text("from . import more\n" if name == "deep" else "x = 1\n")
    recipe = load(tmp_path, "{name: net.py:Net, source: port.py, classes: 3}")
    assert recipe.model.name == f"{tmp_path / 'net.py'}:Net" and recipe.model.num_classes == 3
    before = recipe.digest
    for name, counts in (
        ("parts/unused", False),
        ("parts/more", True),
        ("blocks", True),
        ("net", True),
        ("port", True),
    ):
        file = tmp_path / f"{name}.py"
        text = file.read_text()
        file.write_text(text + "# changed\n")
        assert (recipe.digest != before) is counts, name
        file.write_text(text)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in ("net.py", "port.py", "blocks.py"):
        (elsewhere / file).write_text((tmp_path / file).read_text())
    (tmp_path / "parts").rename(elsewhere / "parts")
    assert load(elsewhere, "{name: net.py:Net, source: port.py, classes: 3}").digest == before


def test_names_that_differ_are_refused_where_training_goes_by_them(tmp_path: Path) -> None:
    recipe = load(tmp_path, "{name: net.py:Net, source: port.py, classes: 3, freeze: ['fc*']}")
    match = Match("fc", "head", "Linear", "same type and shape")
    with pytest.raises(BadRecipe, match=r"model.freeze uses torch's names, .* fc is head in .*port.py"):
        check_recipe(recipe, Alignment((match,), classes=3))
    check_recipe(recipe, Alignment((replace(match, mindspore="fc"),), classes=3))
    plain = load(tmp_path, "{name: net.py:Net, source: port.py, classes: 3}")
    check_recipe(plain, Alignment((match,), classes=3))
    with pytest.raises(BadRecipe, match=r"model.classes is 3, and .* gives 4 numbers per image"):
        check_recipe(plain, Alignment((match,), classes=4))


def test_a_source_that_is_not_there_yet_says_what_writes_it(tmp_path: Path) -> None:
    recipe = load(tmp_path, "{name: net.py:Net, source: port.py, classes: 3}")
    wanted = (
        r"model\.source: there is no file .*port\.py; msmigrate convert-model .*net\.py:Net -o .*port\.py writes it"
    )
    with pytest.raises(BadRecipe, match=wanted):
        check_inputs(recipe, None, draws=False)


LOSS = "model: lenet5\nloss: {loss}\noptimizer: {{name: SGD}}\n"


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        ("{name: losses.py:focal}", "loss: .*losses.py:focal needs source: FILE, with focal in MindSpore"),
        ("{name: CrossEntropyLoss, source: losses.py}", "loss.source is for FILE.py:NAME; CrossEntropyLoss is"),
        ("{name: losses.py}", "losses.py"),
    ],
)
def test_mistakes_about_a_loss_are_told(tmp_path: Path, loss: str, said: str) -> None:
    (tmp_path / "recipe.yaml").write_text(LOSS.format(loss=loss))
    with pytest.raises(BadInput, match="recipe.yaml:2: .*" + said):
        recipes.load(tmp_path / "recipe.yaml")


def test_a_loss_of_one_s_own_is_looked_for_on_both_sides_and_counts_by_its_content(tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(LOSS.format(loss="{name: losses.py:focal, args: {gamma: 2.0}, source: port.py}"))
    recipe = recipes.load(file)
    assert recipe.loss.own and not recipe.one_hot and recipe.loss.counterpart == f"{tmp_path / 'port.py'}:focal"
    for name, said in (("port.py", "there is no file .*port.py"), ("losses.py", "there is no file .*losses.py")):
        with pytest.raises(BadInput, match=f"loss: {said}"):
            check_inputs(recipe, None, draws=False)
        (tmp_path / name).write_text("def focal(outputs, labels, gamma): pass\n")
    check_inputs(recipe, None, draws=False)
    before = recipe.digest
    for name in ("port.py", "losses.py"):
        (tmp_path / name).write_text("def focal(outputs, labels, gamma): return 1\n")
        assert recipe.digest != before
        before = recipe.digest
    (tmp_path / "port.py").write_text("def fokal(outputs, labels): pass\n")
    with pytest.raises(BadInput, match=r"loss: .*port.py has no function focal; did you mean fokal\?"):
        check_inputs(recipe, None, draws=False)
    file.write_text("model: lenet5\noptimizer: {name: SGD}\n")
    assert recipes.load(file).digest == "2be0c793aecaa6eb"  # as it was before there were any


@pytest.mark.full
@pytest.mark.parametrize("fault", ["", ".sum()"])
def test_a_loss_of_one_s_own_is_proven_and_a_wrong_one_named(tmp_path: Path, fault: str) -> None:
    torch = "import torch\nfrom torch import nn\n\n\nclass Squared(nn.Module):\n"
    torch += "    def forward(self, x, y):\n        y = nn.functional.one_hot(y, x.shape[1]).to(x.dtype)\n"
    torch += "        return ((x - y) ** 2).mean(1).mean()\n"
    port = "from mindspore import nn, ops\n\n\nclass Squared(nn.Cell):\n    def construct(self, x, y):\n"
    port += f"        y = ops.one_hot(y, x.shape[1])\n        return ((x - y) ** 2).mean(1){fault or '.mean()'}\n"
    (tmp_path / "losses.py").write_text(torch)
    (tmp_path / "port.py").write_text(port)
    file = tmp_path / "recipe.yaml"
    file.write_text(
        "model: lenet5\nloss: {name: losses.py:Squared, source: port.py}\noptimizer: {name: SGD, args: {lr: 0.1}}\n"
        "data: {source: digits, batch: 4, transforms: [{name: Resize, args: {size: 32}}, {name: ToTensor}]}\n"
    )
    report = parity_step(file).report
    assert report.parity is not bool(fault)
    assert not fault or [cause.fault for cause in report.causes if cause.stage == "loss"] == ["loss-factor"]
