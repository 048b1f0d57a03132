"""The drafted recipe: what the script says, the line of each value, and a text that the recipe's reader takes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msmigrate.errors import MsmigrateError
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.migrate.recipe_draft.draft import draft_recipe
from msmigrate.migrate.recipe_draft.recipe_entries import MODELS
from msmigrate.reports.script_analysis import recipe_text
from msmigrate.training.models import model_names
from msmigrate.training.recipe import reader, schema

Write = Callable[..., Path]


def drafted(script: Path, folder: Path) -> tuple[str, schema.Recipe]:
    """The draft of a script's recipe, with what the reader refuses taken out, and the recipe without what it asks."""
    path = folder / "recipe.yaml"

    def check(text: str) -> tuple[int, str] | None:
        path.write_text(text, encoding="utf-8")
        try:
            refused = reader.check(path, draft=True)
        except MsmigrateError as error:
            return 1, str(error)
        return None if refused is None else (refused.line, refused.reason)

    text = draft_recipe(analyze_script(script), check)
    assert check(text) is None, (check(text), text)
    return text, schema.Recipe.model_validate(reader._without_questions(yaml.safe_load(text)))


def sources(text: str) -> list[str]:
    """The comments of a draft."""
    return [line.strip().removeprefix("# ") for line in text.split("\n") if line.strip().startswith("#")]


def test_the_big_script(scripts: dict[str, Path], tmp_path: Path) -> None:
    text, found = drafted(scripts["imagenet"], tmp_path)
    assert found.model.name == "resnet50"
    assert (
        found.data.source == "folder:/datasets/imagenet/train"
        and found.data.validation == "folder:/datasets/imagenet/val"
    )
    assert (found.data.batch, found.data.eval_batch, found.data.workers, found.data.drop_last) == (32, 32, 16, False)
    names = [part.name for part in found.data.transforms]
    assert names == ["RandomResizedCrop", "RandomHorizontalFlip", "ToTensor", "Normalize", "RandomErasing"]
    assert [part.name for part in found.data.eval_transforms or []] == ["Resize", "CenterCrop", "ToTensor", "Normalize"]
    assert found.optimizer.name == "SGD"
    assert found.optimizer.args == {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4, "nesterov": False}
    assert found.schedule is not None and found.schedule.per == "epoch"
    assert found.schedule.args == {
        "schedulers": [
            {"name": "LinearLR", "args": {"start_factor": 0.01, "total_iters": 5}},
            {"name": "CosineAnnealingLR", "args": {"T_max": 85, "eta_min": 0.0}},
        ],
        "milestones": [5],
    }
    assert found.mixup is not None and (found.mixup.mixup_alpha, found.mixup.cutmix_alpha) == (0.2, 1.0)
    assert found.train.epochs == 90
    # off by default, and told
    assert found.amp is found.ema is found.clip is found.dynamic_loss_scale is None and not found.sync_batchnorm
    for line in (
        "# clip: ",
        "# amp: ",
        "# dynamic_loss_scale: {}",
        "# ema: {decay: 0.999772}",
        "# sync_batchnorm: true",
    ):
        assert f"\n{line}" in text
    assert "train.py line 243: args.lr has the default 0.1 in argparse" in sources(text)
    assert "presets.py line 11: mean=(0.485, 0.456, 0.406) by default" in sources(text)


def test_apex_accumulation_and_a_scaled_rate(scripts: dict[str, Path], tmp_path: Path) -> None:
    text, found = drafted(scripts["apex"], tmp_path)
    assert (found.model.name, found.accumulate, found.data.batch) == ("resnet18", 4, 256)
    assert found.optimizer.args == {"lr": 0.0125, "momentum": 0.9, "weight_decay": 5e-4, "nesterov": True}
    assert found.amp is not None and (found.amp.level, found.amp.dtype) == ("O2", "float16")
    assert found.dynamic_loss_scale is not None
    assert found.clip is not None and found.clip.max_norm == 5.0
    assert found.schedule is not None and found.schedule.args["T_max"] == 100 and found.schedule.per == "epoch"
    assert found.seed == 17 and found.train.epochs == 100
    assert any("mixup() is written by hand" in line for line in sources(text))
    assert any("its path could not be read: write it here as folder:PATH" in line for line in sources(text))


def test_a_script_for_digits(scripts: dict[str, Path], tmp_path: Path) -> None:
    text, found = drafted(scripts["mnist"], tmp_path)
    assert found.loss.name == "CrossEntropyLoss"  # nll_loss on log_softmax
    assert (found.optimizer.name, found.optimizer.args) == ("Adadelta", {"lr": 1.0})
    assert (found.data.batch, found.data.eval_batch, found.seed, found.train.epochs) == (64, 1000, 1, 14)
    assert any("a recipe cannot read such a data set" in line for line in sources(text))
    assert any(line.startswith("main.py line 94: Net()") for line in sources(text))


def test_a_script_with_timm(scripts: dict[str, Path], tmp_path: Path) -> None:
    _, found = drafted(scripts["timm"], tmp_path)
    assert found.optimizer.name == "AdamW" and found.optimizer.args["lr"] == 5e-4
    assert found.optimizer.no_weight_decay == ["norm", "bias"]
    assert found.data.source.startswith("cifar10:") and found.data.batch == 128 and found.data.drop_last
    assert found.mixup is not None and (found.mixup.mixup_alpha, found.mixup.label_smoothing) == (0.8, 0.1)
    assert found.amp is not None and found.amp.dtype == "bfloat16"
    assert found.ema is not None and found.ema.decay == 0.9996
    assert found.clip is not None and found.clip.max_norm == 1.0
    assert found.train.epochs == 50


def test_a_script_with_mistakes_gives_a_recipe_all_the_same(scripts: dict[str, Path], tmp_path: Path) -> None:
    _, found = drafted(scripts["mistakes"], tmp_path)
    assert (found.optimizer.name, found.optimizer.args) == ("SGD", {"lr": 0.1})


@pytest.mark.parametrize(
    ("code", "key", "value"),
    [
        ("args = p.parse_args()\nx = SGD([], lr=args.lr)", "optimizer.args.lr", 0.5),
        ("args = p.parse_args()\nx = SGD([], lr=args.lr * args.n / 4)", "optimizer.args.lr", 1.0),
        ("LR = 0.25\nx = SGD([], lr=LR)", "optimizer.args.lr", 0.25),
        ("x = SGD([], lr=unknown())", "optimizer.args", {}),
        ("def f(lr=0.125):\n    return SGD([], lr=lr)\nf()", "optimizer.args.lr", 0.125),
        ("def f(lr=0.125):\n    return SGD([], lr=lr)\nrun(f)", "optimizer.args", {}),  # with what nobody here knows
        ("def f(m, lr=0.125):\n    return SGD([], lr=lr)\nf(1)", "optimizer.args.lr", 0.125),
        ("x = SGD([], lr=1, nesterov=True, momentum=1)", "optimizer.args.nesterov", True),
        ("s = torch.optim.lr_scheduler.StepLR(o, 3)\nfor epoch in range(7):\n    s.step()", "schedule.per", "epoch"),
        ("s = torch.optim.lr_scheduler.StepLR(o, 3)\nfor epoch in range(7):\n    for b in loader:\n        s.step()",
         "schedule.per", "step"),
        ("s = torch.optim.lr_scheduler.StepLR(o, n)", "schedule.name", "StepLR"),
        ("for epoch in range(2, 7):\n    pass", "train.epochs", 5),
        ("for epoch in tqdm(range(7)):\n    pass", "train.epochs", 7),
        ("torch.nn.utils.clip_grad_norm_([], 2); opt.step()", "clip.max_norm", 2.0),
        ("torch.nn.utils.clip_grad_norm_([], max_norm=2.5, norm_type=1)", "clip", None),
        ("with torch.autocast('cuda', dtype=torch.bfloat16):\n    pass", "amp", {"level": "O1", "dtype": "bfloat16"}),
        ("with torch.autocast('cuda', enabled=False):\n    pass", "amp", None),
        ("s = torch.amp.GradScaler('cuda', init_scale=2.0, growth_interval=10)", "dynamic_loss_scale",
         {"init_scale": 2.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 10}),
        ("torch.optim.swa_utils.AveragedModel(n, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.75))",
         "ema.decay", 0.75),
        ("torch.optim.swa_utils.AveragedModel(n, avg_fn=torch.optim.swa_utils.get_ema_avg_fn())", "ema.decay", 0.999),
        ("torch.optim.swa_utils.AveragedModel(n, avg_fn=torch.optim.swa_utils.get_ema_avg_fn(unknown()))", "ema", None),
        ("torch.optim.swa_utils.AveragedModel(n)", "ema", None),
        ("x = SGD([{'params': a, 'weight_decay': 0.25}, {'params': b, 'weight_decay': 0.0}], lr=1)",
         "optimizer.args.weight_decay", 0.25),
        ("x = SGD([{'params': a, 'weight_decay': 0.25}, {'params': b}], lr=1, weight_decay=0.5)",
         "optimizer.args.weight_decay", 0.5),
        ("x = SGD([{'params': a}, {'params': b, 'weight_decay': 0}], lr=1, weight_decay=0.5)",
         "optimizer.args.weight_decay", 0.5),
        ("x = SGD([{'params': a, 'weight_decay': 0.25}, {'params': b, 'weight_decay': unknown()}], lr=1)",
         "optimizer.args", {"lr": 1}),
        ("x = SGD([{'params': a, 'weight_decay': 0.25}, {'params': b, 'weight_decay': 0.5}], lr=1, weight_decay=1)",
         "optimizer.args.weight_decay", 1.0),
        ("torch.manual_seed(-1)", "seed", 42),
        ("torch.nn.MSELoss(reduction='sum')(a, b).backward()", "loss.args.reduction", "sum"),
        ("torch.nn.MSELoss(reduction='none')(a, b).backward()", "loss.args", {}),
        ("torch.nn.CTCLoss()", "loss.name", "CrossEntropyLoss"),
        ("import torchvision\ntorchvision.models.resnet18(num_classes=7)", "model.args",
         {"num_classes": 7}),
        ("import torchvision\ntorchvision.models.resnet18(pretrained=True)", "model.name", "resnet18"),
    ],
)  # fmt: skip
def test_one_value(code: str, key: str, value: Any, write: Write, tmp_path: Path) -> None:
    head = "import argparse\nimport torch\nfrom torch.optim import SGD\nfrom tqdm import tqdm\n"
    head += "p = argparse.ArgumentParser()\np.add_argument('--lr', type=float, default='0.5')\n"
    head += "p.add_argument('-n', '--number', dest='n', default=8)\n"
    _, found = drafted(write(head + code), tmp_path)
    content: Any = found.model_dump(mode="json")
    for part in key.split("."):
        content = content[part]
    assert content == value


def test_models_are_those_of_a_recipe() -> None:
    assert {name: tuple(a for a in of if a in MODELS[name]) for name, of in model_names.ARGUMENTS.items()} == MODELS


def test_what_the_reader_refuses_is_taken_out_with_its_reason(write: Write, tmp_path: Path) -> None:
    code = """
import torch
from torchvision import datasets, transforms as T
t = T.Compose([T.ToTensor(), T.RandomHorizontalFlip(), T.Resize(9)])
data = datasets.ImageFolder("x", t)
loader = torch.utils.data.DataLoader(data, batch_size=4)
"""
    text, found = drafted(write(code), tmp_path)
    assert "RandomHorizontalFlip" not in [part.name for part in found.data.transforms]
    at = text.index("# - {name: RandomHorizontalFlip}")
    assert "# left out: " in text[:at].split("\n")[-3] + text[:at].split("\n")[-2]


@pytest.mark.parametrize(
    ("schedule", "wanted"),
    [
        ("CosineAnnealingLR(opt, T_max=len(loader) * 9)", {"T_max": "???"}),
        ("CosineAnnealingLR(opt, T_max=len(loader) * 9, eta_min=0.01)", {"T_max": "???", "eta_min": 0.01}),
        ("StepLR(opt, step_size=len(loader))", {"step_size": "???"}),
        ("MultiStepLR(opt, milestones=read(), gamma=0.2)", {"milestones": "???", "gamma": 0.2}),
        ("ExponentialLR(opt, gamma=read())", {"gamma": "???"}),
    ],
)
def test_a_schedule_that_lacks_a_number_is_asked_for_that(schedule: str, wanted: dict[str, Any], write: Write) -> None:
    """It was left out as a whole, because it "needs the argument 'T_max'"."""
    code = f"""
import torch, torchvision
model = torchvision.models.resnet18()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
moves = torch.optim.lr_scheduler.{schedule}
for epoch in range(9):
    for x, y in loader:
        moves.step()
"""
    found = yaml.safe_load(recipe_text(analyze_script(write(code))))
    assert found["schedule"]["args"] == wanted
    assert not any("moves =" in line or "left out" in line for line in found["not_in_this_recipe"])


def test_a_loss_that_no_step_has_is_listed_once_and_asked_for(write: Write, tmp_path: Path) -> None:
    text, _ = drafted(write("import torch\ncriterion = torch.nn.BCELoss()\ncriterion(a, b).backward()"), tmp_path)
    listed = [line for line in text.splitlines() if "[left out: " in line]
    assert len(listed) == 1 and ":2: torch.nn.BCELoss() [left out: loss: a recipe has no BCELoss; it has" in listed[0]
    assert "\n#   name: BCELoss\nloss: ???\n" in text


def test_a_draft_without_a_check_is_yaml(scripts: dict[str, Path]) -> None:
    for script in scripts.values():
        text = draft_recipe(analyze_script(script))
        assert {"model", "data", "optimizer"} <= set(yaml.safe_load(text))


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 2**32))
def test_whatever_stands_for_a_value_the_draft_is_a_recipe(seed: int, scripts: dict[str, Path], tmp_path: Path) -> None:
    """Numbers and texts of a script replaced by odd ones: the reader takes the draft, or there is none."""
    draw = random.Random(seed)
    odd = ["None", "-1", "0", "1e400", "'x'", "[]", "{}", "True", "1e-9", "f()", "10**30", "'a: b #'", "(1, 2)", "3.5"]
    script = draw.choice(sorted(scripts.values()))
    for file in script.parent.glob("*.py"):
        text = file.read_text(encoding="utf-8")
        text = re.sub(
            r"(?<==)(\d[\w.-]*|\"\w*\"|True|False|None)(?=[,)])",
            lambda found: draw.choice(odd) if draw.random() < 0.2 else found[0],
            text,
        )
        (tmp_path / file.name).write_text(text, encoding="utf-8")
    drafted(tmp_path / script.name, tmp_path)


@pytest.mark.parametrize("number", ["10**30", "1e400", "-(10**18)"])
def test_a_number_that_no_recipe_may_hold_is_asked_for(number: str, write: Write, tmp_path: Path) -> None:
    code = f"""
import torch
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr={number}, momentum={number})
"""
    text, _ = drafted(write(code), tmp_path)
    assert "lr: ???" in text and "momentum: ???" in text


def test_whatever_is_listed_can_be_moved_under_ignore(write: Write, tmp_path: Path) -> None:
    """Also what only the reader refused, at the place of the call that it is a part of."""
    code = """
import torch
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda epoch: 0.9**epoch)
for epoch in range(3):
    schedule.step()
"""
    text, _ = drafted(write(code), tmp_path)
    listed = yaml.safe_load(text)["not_in_this_recipe"]
    assert any("LambdaLR" in line and "[left out: " in line for line in listed)
    assert all(re.match(r"\S+\.py:[1-9]\d*: ", line) for line in listed), listed
