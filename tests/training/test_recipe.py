"""Recipes: what is read, what is refused and with which words, and when two of them are the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msmigrate.errors import BadInput, MsmigrateError, UnknownRow, Unsupported
from msmigrate.mappings import table
from msmigrate.parity.job import check_inputs
from msmigrate.training.models import model_names
from msmigrate.training.recipe.reader import DEFAULT, load
from msmigrate.training.recipe.schema import FOLDER, table_args
from recipe_files import read, refusal, write

PAGE = """\
model: {name: lenet5}
data:
  source: digits
  batch: 8
  transforms:
    - {name: ToTensor}
optimizer:
  name: SGD
  args: {lr: 0.1, momentum: 0.9}
  groups:
    - {params: ["fc*"], args: {lr: 0.01}}
"""
WARM_UP = """\
schedule:
  name: SequentialLR
  args:
    schedulers:
      - {name: LinearLR, args: {start_factor: 0.1, total_iters: 5}}
      - {name: CosineAnnealingLR, args: {T_max: 85}}
    milestones: [5]
"""


def test_the_default_is_the_step_that_the_readme_promises():
    recipe = load(DEFAULT)
    assert (recipe.model.name, recipe.data.batch, recipe.seed) == ("resnet50", 8, 42)
    assert recipe.optimizer.args == {"lr": 0.003, "momentum": 0.9, "weight_decay": 1e-4}
    assert recipe.schedule is not None and recipe.schedule.name == "CosineAnnealingLR"
    assert recipe.loss.args == {"label_smoothing": 0.1}
    assert (recipe.clip, recipe.accumulate, recipe.loss_scale, recipe.one_hot) == (None, 1, None, False)


def test_what_is_left_out_has_a_default(tmp_path):
    recipe = read(tmp_path, "model: {name: lenet5}\noptimizer: {name: SGD}\n")
    assert (recipe.data.source, recipe.loss.name, recipe.optimizer.no_weight_decay) == (
        "photographs",
        "CrossEntropyLoss",
        [],
    )


@pytest.mark.parametrize(
    ("was", "becomes", "line", "message"),
    [
        ("optimizer:", "optimiser:", 7, "unknown key 'optimiser'; did you mean 'optimizer'?"),
        ("source:", "sources:", 3, "unknown key 'data.sources'; did you mean 'source'?"),
        ("{name: ToTensor}", "{nam: ToTensor}", 6, "unknown key 'data.transforms.0.nam'; did you mean 'name'?"),
        ("groups:", "group:", 10, "unknown key 'optimizer.group'; did you mean 'groups'?"),
        ('{params: ["fc*"]', '{parms: ["fc*"]', 11, "unknown key 'optimizer.groups.0.parms'; did you mean 'params'?"),
        ("model: {", "model: {zzz: 1, ", 1, "unknown key 'model.zzz'; known keys: name, args, checkpoint"),
        ("momentum:", "momentun:", 9, "SGD has no argument 'momentun'; did you mean 'momentum'?"),
        ("{lr: 0.01}", "{lrr: 0.01}", 11, "optimizer.groups.0: SGD has no argument 'lrr'; did you mean 'lr'?"),
        ("{name: lenet5}", "{name: lenet}", 1, "no model is called 'lenet'; did you mean lenet5"),
        ("{name: lenet5}", "{name: lenet5, args: {chanels: 3}}", 1, "no argument 'chanels'; did you mean channels?"),
        ("source: digits", "source: digit", 3, "there is no source 'digit'; did you mean 'digits'?"),
        ("source: digits", "source: 'folder:'", 3, "data.source: 'folder:' has no path: folder:PATH, with the path"),
        ("{name: ToTensor}", "{name: RandomErasing}", 6, "RandomErasing works on the output of ToTensor: put it after"),
        ("ToTensor}", "ToTensor}\n    - {name: RandomHorizontalFlip}", 7, "works on images, not on the output"),
        ("ToTensor}", "ToTensor}\n    - {name: RandomErasing, args: {p: 2}}", 7, "RandomErasing's p must be a prob"),
        ("{name: ToTensor}", "{name: RandAugment, args: {magnitude: 99}}", 6, "magnitude 99 must be below num_mag"),
        ("  batch: 8", "  eval_transforms: [{name: RandomVerticalFlip}]\n  batch: 8", 4, "has to be repeatable"),
        ("  batch: 8", "  eval_transforms: [{name: Resize}]\n  batch: 8", 4, "Resize needs the argument 'size'"),
        ("ToTensor", "ToTenser", 6, "there is no transform 'ToTenser'; did you mean ToTensor?"),
        ("name: SGD", "name: SDG", 8, "there is no optimizer 'SDG'; did you mean SGD"),
        ("name: SGD", "name: MSELoss", 8, "optimizer: MSELoss is a loss, not an optimizer; known: SGD, Adam, AdamW"),
        ("name: SGD", "name: 5", 8, "optimizer.name: Input should be a valid string, got 5"),
        ("batch: 8", "batch: eight", 4, "data.batch: Input should be a valid integer, got 'eight'"),
        ("batch: 8", "batch: '8'", 4, "data.batch: Input should be a valid integer"),
        ("batch: 8", "batch: 0", 4, "data.batch: Input should be greater than 0, got 0"),
        ("batch: 8", "batch: yes", 4, "data.batch: Input should be a valid integer, got True"),
        ("data:", "seed: -1\ndata:", 2, "seed: Input should be greater than or equal to 0, got -1"),
        ("data:", "accumulate: 3\ndata:", 2, "batch 8 does not divide into accumulate 3 equal micro-batches"),
        ("data:", "clip: {max_norm: 0}\ndata:", 2, "clip.max_norm: Input should be greater than 0, got 0"),
        ("data:", "clip: {max_norm: .inf}\ndata:", 2, "clip.max_norm: Input should be a finite number"),
        ("data:", "loss_scale: true\ndata:", 2, "loss_scale: Input should be a valid number, got True"),
        ("data:", "loss: {name: CrossEntropy}\ndata:", 2, "no loss 'CrossEntropy'; did you mean CrossEntropyLoss?"),
        ("data:", "loss: {name: MSELoss, args: {reduction: none}}\ndata:", 2, "one number, so mean or sum"),
        ("data:", "loss: {name: ReLU}\ndata:", 2, "ReLU is a layer, not a loss"),
        ("data:", "loss: {name: CTCLoss}\ndata:", 2, "loss: a recipe has no CTCLoss; it has CrossEntropyLoss"),
        ("data:", "schedule: {name: Cosine}\ndata:", 2, "there is no schedule 'Cosine'"),
        (
            "data:",
            "schedule: {name: CyclicLR, args: {base_lr: 0.1, max_lr: 1.0, max_momentum: 1.5}}\ndata:",
            2,
            "CyclicLR's max_momentum must be a number above 0 and below 1",
        ),
        ("data:", "schedule: {name: StepLR}\ndata:", 2, "StepLR needs the argument 'step_size'"),
        ("data:", "schedule: {name: StepLR, args: {step_size: 2.5}}\ndata:", 2, "must be a whole number above 0"),
        ("lr: 0.1", "lr: fast", 9, "optimizer: SGD's lr must be a number from 0 up, not 'fast'"),
        ("lr: 0.1", "lr: .nan", 9, "optimizer.args: nan in 'lr' is not a finite number"),
        ("lr: 0.1", "lr: 0.1, nesterov: 1", 9, "SGD's nesterov must be true or false, not 1"),
        ("lr: 0.1", "lr: 2020-01-01", 9, "SGD's lr must be a number from 0 up, not '2020-01-01'"),
        ("lr: 0.1", "lr: 0.1, params: all", 9, "SGD has no argument 'params'"),
        ("lr: 0.1", "lr: 0.1, 7: x", 9, "optimizer.args.7: a key must be a word, got 7"),
        ("  batch: 8", "  batch: 8\n  batch: 4", 5, "the key 'batch' is here twice"),
        ("[\"fc*\"]", "[]", 11, "optimizer.groups.0.params: List should have at least 1 item"),
        ("  name: SGD\n", "", 7, "optimizer.name: is missing"),
        (PAGE, "seed: 1\n", 1, "lacks model and optimizer: write `model: {name: resnet18}`, `optimizer: {name: SGD"),
        ("  groups:", "  no_weight_decay: [norms]\n  groups:", 10, "Input should be 'norm' or 'bias', got 'norms'"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_line(tmp_path, was, becomes, line, message):
    assert was in PAGE
    said = refusal(tmp_path, PAGE.replace(was, becomes, 1))
    assert said.startswith(f":{line}: "), said
    assert message in said


@pytest.mark.parametrize(
    ("was", "becomes", "line", "message"),
    [
        ("name: LinearLR", "nme: LinearLR", 16, "unknown key 'schedule.args.schedulers.0.nme'; did you mean 'name'?"),
        ("name: LinearLR", "name: LinerLR", 16, "schedule.args.schedulers.0: there is no schedule 'LinerLR'; did you"),
        ("T_max: 85", "T_min: 85", 17, "schedule.args.schedulers.1: CosineAnnealingLR has no argument 'T_min'"),
        ("T_max: 85", "T_max: long", 17, "CosineAnnealingLR's T_max must be a whole number above 0, not 'long'"),
        ("milestones: [5]", "milestones: [5, 6]", 18, "2 schedules need 1 milestones between them"),
        ("milestones: [5]", "milestones: five", 18, "SequentialLR's milestones must be a list of whole numbers"),
        ("name: CosineAnnealingLR, args: {T_max: 85}", "name: SequentialLR", 17, "SequentialLR"),
        ("{name: LinearLR, args: {start_factor: 0.1, total_iters: 5}}", "LinearLR", 16, "schedulers.0"),
    ],
)
def test_mistakes_in_schedules_inside_a_schedule(tmp_path, was, becomes, line, message):
    assert was in WARM_UP
    said = refusal(tmp_path, PAGE + WARM_UP.replace(was, becomes, 1))
    assert said.startswith(f":{line}: "), said
    assert message in said


def test_a_schedule_of_schedules_becomes_the_table_s_pairs(tmp_path):
    recipe = read(tmp_path, PAGE + WARM_UP)
    assert recipe.schedule is not None
    assert table_args(recipe.schedule) == {
        "schedulers": [["LinearLR", {"start_factor": 0.1, "total_iters": 5}], ["CosineAnnealingLR", {"T_max": 85}]],
        "milestones": [5],
    }


def test_what_mindspore_has_no_counterpart_for_is_unsupported(tmp_path):
    path = write(tmp_path, PAGE.replace("lr: 0.1", "lr: 0.1, differentiable: true"))
    with pytest.raises(Unsupported, match=r"page.yaml:9: optimizer: .*differentiable=True has no counterpart"):
        load(path)


def test_paths_are_taken_from_the_recipe_s_own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    page = PAGE.replace("{name: lenet5}", "{name: lenet5, checkpoint: weights/start.pth}")
    recipe = read(tmp_path, page.replace("source: digits", "source: folder:images"))
    assert recipe.model.checkpoint == tmp_path / "weights" / "start.pth"
    assert recipe.data.source == f"{FOLDER}{tmp_path / 'images'}"
    page = page.replace("weights/start.pth", "~/start.pth").replace("source: digits", "source: folder:~/images")
    recipe = read(tmp_path, page)
    assert str(recipe.model.checkpoint) == "/home/someone/start.pth"
    assert recipe.data.source == "folder:/home/someone/images"
    page = page.replace("~/start.pth", "/start.pth")
    assert read(tmp_path, page).model.checkpoint == Path("/start.pth")


ARRAYS = "model: {name: net.py:Net, source: port.py}\ndata: {source: 'arrays:train.npz'}\nloss: {name: NAME}\n"
ARRAYS += "optimizer: {name: SGD, args: {lr: 0.1}}\n"


@pytest.mark.parametrize("name", ["BCELoss", "NLLLoss", "KLDivLoss", "PoissonNLLLoss"])
def test_losses_that_take_a_file_s_labels_as_they_are(tmp_path: Path, name: str) -> None:
    recipe = read(tmp_path, ARRAYS.replace("NAME", name))
    assert recipe.loss.name == name and not recipe.loss.own
    of_images = (
        PAGE.replace("CrossEntropyLoss", name) if "CrossEntropyLoss" in PAGE else f"{PAGE}loss: {{name: {name}}}\n"
    )
    said = refusal(tmp_path, of_images)
    assert f"a recipe has no {name}" in said and f"({name} takes the labels of data.source: arrays:FILE)" in said


@pytest.mark.parametrize("name", ["CTCLoss", "TripletMarginLoss"])
def test_losses_of_more_than_two_tensors_are_one_s_own(tmp_path: Path, name: str) -> None:
    assert "and your own as FILE.py:NAME" in refusal(tmp_path, ARRAYS.replace("NAME", name))


OWN = """model: lenet5
data: {source: digits}
optimizer: {name: SGD, args: {lr: 0.1}}
schedule:
  name: SequentialLR
  args:
    milestones: [3]
    schedulers: [{name: LambdaLR, args: {lr_lambda: factors.py:warm}}, {name: ConstantLR}]
"""


def test_a_schedule_s_own_function_counts_by_its_content(tmp_path: Path) -> None:
    recipe = read(tmp_path, OWN)
    assert recipe.schedule is not None
    assert model_names.functions_in(recipe.schedule.args) == [f"{tmp_path / 'factors.py'}:warm"]
    with pytest.raises(BadInput, match=r"schedule: there is no file .*factors\.py"):
        check_inputs(recipe, None, draws=False)
    (tmp_path / "factors.py").write_text("def warm(step): return 1\n")
    check_inputs(recipe, None, draws=False)
    before = recipe.digest
    (tmp_path / "factors.py").write_text("def warm(step): return 0.5\n")
    assert recipe.digest != before
    (tmp_path / "factors.py").write_text("def warn(step): return 0.5\n")
    with pytest.raises(BadInput, match=r"schedule: .*no function warm; did you mean warn\?"):
        check_inputs(recipe, None, draws=False)


@pytest.mark.parametrize("written", ["warm", "'lambda n: 0.9'", "0.5", "[]", "[factors.py:warm, 3]"])
def test_a_schedule_s_function_is_named_with_its_file(tmp_path: Path, written: str) -> None:
    said = refusal(tmp_path, OWN.replace("lr_lambda: factors.py:warm", f"lr_lambda: {written}"))
    assert said.startswith(":8: ") and "LambdaLR's lr_lambda must be FILE.py:NAME" in said


FULL = PAGE.replace("{name: lenet5}", "{name: lenet5, checkpoint: start.pth}").replace("digits", "folder:images")


def test_paths_hold_in_another_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker compiles in a folder of its own, where a relative recipe's own loss was not found."""
    lines = [
        "model: {name: net.py:Net, source: port.py, checkpoint: net.pth}",
        "data: {source: 'arrays:train.npz', validation: 'arrays:val.npz'}",
        "loss: {name: losses.py:own, source: port.py}",
        "optimizer: {name: SGD, args: {lr: 0.1}}",
    ]
    (tmp_path / "recipe.yaml").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    recipe = load(Path("recipe.yaml"))
    model, loss, data = recipe.model, recipe.loss, recipe.data
    files = [model.name, str(model.source), str(model.checkpoint), loss.name, loss.counterpart]
    files += [place.partition(":")[2] for place in (data.source, str(data.validation))]
    assert all(file.startswith(f"{tmp_path}/") for file in files)


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("lr: 0.1, momentum: 0.9", "momentum: 0.9, lr: 1e-1"),
        ("SGD", "torch.optim.SGD"),
        ("optimizer:", "accumulate: 1\nloss: {name: CrossEntropyLoss}\noptimizer:"),
        ("optimizer:", "# a remark\noptimizer:"),
        ("start.pth", "elsewhere/other.pth"),
        ("folder:images", "folder:/data/images"),
    ],
)
def test_equal_steps_have_equal_digests_wherever_they_lie(tmp_path, was, becomes):
    assert was in FULL
    (tmp_path / "other").mkdir()
    first = read(tmp_path, FULL).digest
    assert read(tmp_path / "other", FULL.replace(was, becomes)).digest == first
    assert len(first) == 16


def test_different_steps_have_different_digests(tmp_path):
    changes = [
        ("", ""),
        ("lr: 0.1", "lr: 0.2"),
        ("lr: 0.01", "lr: 0.02"),
        ("batch: 8", "batch: 4"),
        ("SGD", "RMSprop"),
        (", checkpoint: start.pth", ""),
        ("folder:images", "digits"),
        ("optimizer:", "seed: 1\noptimizer:"),
        ("optimizer:", "clip: {max_norm: 1}\noptimizer:"),
        ("optimizer:", "accumulate: 2\noptimizer:"),
        ("optimizer:", "loss_scale: 8\noptimizer:"),
        ("optimizer:", "loss: {name: MSELoss}\noptimizer:"),
        ("fc*", "fc1*"),
        ("  groups:", "  no_weight_decay: [norm]\n  groups:"),
    ]
    digests = {read(tmp_path, FULL.replace(was, becomes, 1) if was else FULL).digest for was, becomes in changes}
    assert len(digests) == len(changes)


@pytest.mark.parametrize(
    ("name", "one_hot"), [("CrossEntropyLoss", False), ("crossentropyloss", False), ("torch.nn.MSELoss", True)]
)
def test_which_losses_want_one_hot_targets(tmp_path, name, one_hot):
    assert read(tmp_path, f"{PAGE}loss: {{name: {name}}}\n").one_hot is one_hot


def test_a_recipe_is_read_without_a_framework():
    program = (
        "import sys; from msmigrate.training.recipe import reader as recipe; recipe.load(recipe.DEFAULT);"
        "print([name for name in ('torch', 'mindspore', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.parametrize("cut", range(0, len(FULL), 7))
def test_a_page_that_ends_early_is_read_or_refused(tmp_path, cut):
    try:
        read(tmp_path, FULL[:cut])
    except MsmigrateError as error:
        assert "page.yaml" in str(error)


def test_a_digest_seeks_no_row_that_is_like_the_model_s_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which compares it with every name of the table, each time that the digest is made."""
    sought: list[str] = []
    monkeypatch.setattr(table, "closest", lambda name, among: [sought.append(name)][:0])
    assert len(load(DEFAULT).digest) == 16
    assert sought == []
    with pytest.raises(UnknownRow):
        table.row(load(DEFAULT).model.name)
    assert sought == [load(DEFAULT).model.name]
