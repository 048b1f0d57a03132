"""What Lightning's Trainer and transformers' are given, and what a module and data return, as a recipe says it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from drafts import drafted, has, listed
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.migrate.recipe_draft import trainers
from msmigrate.reports.script_analysis import notes, recipe_text

Write = Callable[..., Path]

HEAD = """
import torch, torch.nn as nn, torch.nn.functional as F, torchvision
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
import pytorch_lightning as pl
train_set = datasets.ImageFolder("/birds/train", transforms.ToTensor())
val_set = datasets.ImageFolder("/birds/val", transforms.ToTensor())
"""
MODULE = """
class Birds(pl.LightningModule):
    def __init__(self, lr=0.3, decay=0.01, steps=7):
        super().__init__()
        self.save_hyperparameters()
        self.net = torchvision.models.resnet18(num_classes=7)
    def training_step(self, batch, index):
        x, y = batch
        return F.cross_entropy(self.net(x), y)
"""
OPTIMIZER = """
    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams["decay"])
        sched = torch.optim.lr_scheduler.StepLR(opt, step_size=self.hparams.steps)
        {}
"""
FIT = """
several, least, nodes = [0, 3], 5, 1
loader = DataLoader(train_set, batch_size=16, shuffle=True, drop_last=True)
trainer = pl.Trainer(max_epochs=12{})
trainer.fit(Birds(lr=0.2), loader)
"""


def script(returns: str = "return opt", given: str = "", more: str = "") -> str:
    """A script whose configure_optimizers ends so, whose Trainer is given this, and whose module has more methods."""
    return HEAD + MODULE + OPTIMIZER.format(returns) + more + FIT.format(given)


SPELLED = {
    "import lightning as L": "L.",
    "import lightning.pytorch as pl": "pl.",
    "import pytorch_lightning as lightning": "lightning.",
    "from lightning.pytorch import LightningModule, Trainer": "",
    "from lightning import LightningModule, Trainer": "",
    "from pytorch_lightning import LightningModule, Trainer": "",
    "from pytorch_lightning.core import LightningModule\nfrom pytorch_lightning.trainer import Trainer": "",
}


@pytest.mark.parametrize(("imports", "prefix"), SPELLED.items())
def test_however_it_is_imported(imports: str, prefix: str, write: Write) -> None:
    text = script("return [opt], [sched]", ", gradient_clip_val=0.5").replace("import pytorch_lightning as pl", imports)
    found = drafted(write(text.replace("pl.Light", f"{prefix}Light").replace("pl.Train", f"{prefix}Train")))
    assert found["optimizer"] == {"name": "AdamW", "args": {"lr": 0.2, "weight_decay": 0.01}}
    assert found["schedule"] == {"name": "StepLR", "per": "epoch", "args": {"step_size": 7}}
    assert found["clip"] == {"max_norm": 0.5}
    assert found["train"]["epochs"] == 12


RETURNED = {
    "return [opt], [sched]": "epoch",
    "return ([opt], [sched])": "epoch",
    'return [opt], [{"scheduler": sched, "interval": "step"}]': "step",
    'return [opt], [dict(scheduler=sched, interval="step")]': "step",
    'return [opt], {"scheduler": sched, "interval": "step"}': "step",
    'return {"optimizer": opt, "lr_scheduler": sched}': "epoch",
    'return {"optimizer": opt, "lr_scheduler": sched, "monitor": "val_loss"}': "epoch",
    'return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step", "frequency": 1}}': "step",
    'return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "name": "rate"}}': "epoch",
    'return dict(optimizer=opt, lr_scheduler=dict(scheduler=sched, interval="epoch"))': "epoch",
    'config = {"scheduler": sched, "interval": "step"}\n        return [opt], [config]': "step",
    'config = {"scheduler": sched}\n        config["interval"] = "step"\n        return [opt], [config]': "step",
    'found = {"optimizer": opt}\n        found["lr_scheduler"] = sched\n        return found': "epoch",
    # what does not say it plainly
    "return opt": "???",
    "return [opt]": "???",
    'return {"optimizer": opt}': "???",
    'return [opt], [{"scheduler": sched, "interval": self.often}]': "???",
    "if self.warm:\n            return opt\n        return [opt], [sched]": "???",
    "return made(opt, sched)": "???",
    "return [opt], [sched, torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)]": None,
}


@pytest.mark.parametrize(("returns", "per"), RETURNED.items())
def test_when_a_schedule_moves(returns: str, per: str | None, write: Write) -> None:
    """It was asked for, since no `step()` is called."""
    found = drafted(write(script(returns)))
    assert found["optimizer"]["name"] == "AdamW"
    assert per is None or found["schedule"]["per"] == per
    assert not has(listed(write(script(returns))), "return [opt], [sched]", "return {") or per in ("???", None)


def test_a_default_is_said_to_be_lightnings(write: Write) -> None:
    found = recipe_text(analyze_script(write(script("return [opt], [sched]", ", gradient_clip_val=1"))))
    assert "  # train.py line 21: return [opt], [sched]\n  # Lightning's interval is an epoch where none" in found
    assert "# Lightning clips by the norm where no algorithm is named\nclip: {max_norm: 1.0}" in found
    named = write(script('return [opt], [{"scheduler": sched, "interval": "epoch"}]'))
    assert "Lightning's interval" not in recipe_text(analyze_script(named))


OTHERWISE = {
    "updates by hand": "    def on_fit_start(self):\n        self.automatic_optimization = False\n",
    "by a property": "    @property\n    def automatic_optimization(self):\n        return False\n",
    "moves by hand": "    def lr_scheduler_step(self, scheduler, metric):\n        scheduler.step(self.count)\n",
}


@pytest.mark.parametrize("method", OTHERWISE.values(), ids=OTHERWISE)
def test_what_the_module_does_itself_is_not_lightnings(method: str, write: Write) -> None:
    assert drafted(write(script("return [opt], [sched]", more=method)))["schedule"]["per"] == "???"


def test_of_a_module_that_updates_by_hand_nothing_is_drafted(write: Write) -> None:
    given = ", gradient_clip_val=0.5, accumulate_grad_batches=4"
    by_hand = MODULE.replace(
        "super().__init__()\n", "super().__init__()\n        self.automatic_optimization = False\n"
    )
    text = script(given=given).replace(MODULE, by_hand)
    found = drafted(write(text))
    assert "clip" not in found and "accumulate" not in found
    assert has(listed(write(text)), "gradient_clip_val=0.5 of", "accumulate_grad_batches=4 of")


@pytest.mark.parametrize(
    ("returns", "words"),
    [
        ('return [opt], [{"scheduler": sched, "frequency": 2}]', "frequency=2 of the schedule"),
        ('return [opt], [{"scheduler": sched, "frequency": self.often}]', "frequency='???' of the schedule"),
        (
            'return {"optimizer": opt, "lr_scheduler": {"scheduler": plateau, "monitor": "val_loss"}}',
            "monitor='val_loss'",
        ),
        ('return {"optimizer": opt, "lr_scheduler": plateau, "monitor": "val_loss"}', "monitor='val_loss'"),
    ],
)
def test_what_a_recipe_lacks_of_a_schedule_is_listed(returns: str, words: str, write: Write) -> None:
    plateau = "plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=3)\n        "
    text = script(f"{plateau * ('plateau' in returns)}{returns}")
    text = text.replace("sched = torch", "# sched = torch") if "plateau" in returns else text
    found = drafted(write(text))
    assert ("schedule" in found) != ("plateau" in returns)  # which moves by a measured value
    assert has(listed(write(text)), words)


GIVEN: list[tuple[str, dict[str, Any], str]] = [
    (", gradient_clip_val=0.5", {"clip": {"max_norm": 0.5}}, ""),
    (', gradient_clip_val=0.5, gradient_clip_algorithm="norm"', {"clip": {"max_norm": 0.5}}, ""),
    (', gradient_clip_val=0.5, gradient_clip_algorithm="value"', {"clip": None}, 'gradient_clip_algorithm="value" of'),
    (", gradient_clip_val=0", {"clip": None}, ""),
    (", gradient_clip_val=limit()", {"clip": None}, "gradient_clip_val=limit() of"),
    (", accumulate_grad_batches=4", {"accumulate": 4, "batch": 64}, "at the end of an epoch Lightning also updates"),
    (", accumulate_grad_batches=1", {"accumulate": None, "batch": 16}, ""),
    (", accumulate_grad_batches={0: 8, 4: 1}", {"accumulate": None, "batch": "???"}, "accumulate_grad_batches={0: 8"),
    (", accumulate_grad_batches=several()", {"accumulate": None, "batch": "???"}, "accumulate_grad_batches=several"),
    (', precision="16-mixed"', {"amp": {"level": "O1", "dtype": "float16"}, "dynamic_loss_scale": {}}, ""),
    (", precision=16", {"amp": {"level": "O1", "dtype": "float16"}, "dynamic_loss_scale": {}}, ""),
    (', precision="bf16-mixed"', {"amp": {"level": "O1", "dtype": "bfloat16"}, "dynamic_loss_scale": None}, ""),
    (', precision="32-true"', {"amp": None}, ""),
    (', precision="16-true"', {"amp": None}, 'precision="16-true" of'),
    (', precision="16-mixed", plugins=[own()]', {"amp": None}, "plugins=[own()] of"),
    (", callbacks=[pl.callbacks.ModelCheckpoint(), pl.callbacks.RichProgressBar()]", {}, ""),
    (', callbacks=[pl.callbacks.EarlyStopping("val_loss")]', {}, "callbacks=[pl.callbacks.EarlyStopping("),
    (", callbacks=pl.callbacks.StochasticWeightAveraging(1e-2)", {}, "callbacks=pl.callbacks.StochasticWeight"),
    (", callbacks=own()", {}, "callbacks=own() of"),
    (', accelerator="gpu", devices=1, logger=False', {}, ""),
    (", devices=4", {}, "devices=4 of"),
    (', devices="auto"', {}, 'devices="auto" of'),
    (", devices=-1", {}, "devices=-1 of"),
    (", num_nodes=1", {}, ""),
    (", num_nodes=nodes", {}, "num_nodes=nodes of pytorch_lightning.Trainer [nodes is 1]"),
    (", devices=several", {}, "devices=several of pytorch_lightning.Trainer [several is [0, 3]]"),
    (", devices=4, min_epochs=least", {}, "devices=4 of pytorch_lightning.Trainer"),
    (", min_epochs=least", {}, "min_epochs=least of pytorch_lightning.Trainer [least is 5]"),
    (', strategy="fsdp"', {}, 'strategy="fsdp" of'),
    (", max_steps=500", {}, "max_steps=500 of"),
    (", max_steps=-1", {}, ""),
    (", limit_train_batches=1.0", {}, ""),
    (", limit_train_batches=1", {}, "limit_train_batches=1 of"),
    (", **rest()", {}, "**rest() of"),
    (', **{"gradient_clip_val": 0.5}', {"clip": {"max_norm": 0.5}}, ""),
]


@pytest.mark.parametrize(("given", "wanted", "words"), GIVEN, ids=[one[0] for one in GIVEN])
def test_what_the_trainer_is_given(given: str, wanted: dict[str, Any], words: str, write: Write) -> None:
    """All of it was asked for, and its line listed as a whole."""
    path = write(script(given=given))
    found = drafted(path)
    found |= found["data"]
    assert {key: found.get(key) for key in wanted} == wanted
    assert found["train"]["epochs"] == 12
    of_trainer = [one for one in listed(path) if "Trainer" in one or "Lightning" in one]
    assert has(of_trainer, words) if words else not of_trainer
    assert not any(one.startswith("devices=4") and "[" in one for one in of_trainer)


@pytest.mark.parametrize(
    ("trainer", "epochs"),
    [
        ("pl.Trainer(max_epochs=5)", 5),
        ("pl.Trainer()", "???"),
        ("pl.Trainer(max_epochs=-1)", "???"),
        ("pl.Trainer(max_epochs=count())", "???"),
        ("pl.Trainer(**count())", "???"),
        ("Own(max_epochs=5)", 5),
        ("Starts(max_epochs=5)", 5),
        ("made()", 9),
        ("pl.Trainer(max_epochs=5) if fast() else pl.Trainer(max_epochs=50)", "???"),
    ],
)
def test_the_number_of_epochs(trainer: str, epochs: Any, write: Write) -> None:
    own = "class Own(pl.Trainer): pass\ndef made():\n    return pl.Trainer(max_epochs=9)\n"
    own += "class Starts(pl.Trainer):\n    def __init__(self, **given):\n        super().__init__(**given)\n"
    text = script().replace("pl.Trainer(max_epochs=12)", trainer)
    assert drafted(write(text.replace("class Birds", f"{own}class Birds")))["train"]["epochs"] == epochs


AGREED = {
    "pl.Trainer(max_epochs=12).fit(Birds(), loader)": {"epochs": 12},
    "pl.Trainer(max_epochs=3).fit(Birds(), loader)": {"epochs": "???"},
    "trainer.fit(Birds(lr=0.9), loader)": {"epochs": 12, "clip": {"max_norm": 0.5}, "lr": "???", "accumulate": 4},
    "trainer.fit(Birds(lr=0.2), loader)": {"lr": 0.2},
    "pl.Trainer(max_epochs=12, gradient_clip_val=0.5).fit(Birds(), loader)": {"clip": {"max_norm": 0.5}},
    "pl.Trainer(max_epochs=12, gradient_clip_val=0.7).fit(Birds(), loader)": {"clip": None},
    "pl.Trainer(max_epochs=12, accumulate_grad_batches=4).fit(Birds(), loader)": {"accumulate": 4, "clip": None},
    "pl.Trainer(precision=16).fit(Birds(), loader)": {"amp": None, "accumulate": None, "batch": "???"},
    "trainer.fit(Birds(), DataLoader(val_set, batch_size=2))": {"batch": "???"},
    "made().fit(Birds(), loader)": {"epochs": 12},  # which no Trainer is known to be
}


@pytest.mark.parametrize("again", AGREED)
def test_of_several_fits_what_they_agree_on_is_drafted(again: str, write: Write) -> None:
    """All of it was asked for."""
    path = write(f"{script(given=', gradient_clip_val=0.5, accumulate_grad_batches=4')}{again}\n")
    found = drafted(path)
    found |= found["data"] | found["train"] | found["optimizer"].get("args", {})
    assert {key: found.get(key) for key in AGREED[again]} == AGREED[again]
    lines = listed(path)
    assert has(lines, "trainer.fit(Birds(lr=0.2), loader)", again)
    assert "max_epochs is 12, then 3" in recipe_text(analyze_script(path)) or "max_epochs=3" not in again
    if found.get("clip") is None:
        assert has(lines, "gradient_clip_val=0.5 of")


@pytest.mark.parametrize(("module", "rate"), [("birds", 0.3), ("Birds(lr=0.4)", "???")])
def test_a_fit_that_goes_on_or_begins_is_one(module: str, rate: Any, write: Write) -> None:
    own = 'birds = Birds()\nif begun():\n    trainer.fit(birds, loader, ckpt_path="last.ckpt")\n'
    text = script().replace("trainer.fit(Birds(lr=0.2), loader)", f"{own}else:\n    trainer.fit({module}, loader)")
    found = drafted(write(text))
    assert found["train"]["epochs"] == 12 and found["optimizer"]["args"]["lr"] == rate


@pytest.mark.parametrize("rates", ["(3, 30)", "(3,)"])
def test_a_fit_in_a_loop_says_what_it_has_in_every_round(rates: str, write: Write) -> None:
    text = script().replace("max_epochs=12", "max_epochs=count")
    start = text.index("trainer =")
    text = f"{text[:start]}for count in {rates}:\n    " + text[start:].strip().replace("\n", "\n    ") + "\n"
    assert drafted(write(text))["train"]["epochs"] == (3 if rates == "(3,)" else "???")


DATA = """
class Pictures(pl.LightningDataModule):
    def __init__(self, size=32):
        super().__init__()
        self.size = size
    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.size, shuffle=True, drop_last=True)
    def val_dataloader(self):
        return {}
    def test_dataloader(self):
        return DataLoader(self.test_set, batch_size=5)
    def setup(self, stage):
        self.train_set = datasets.ImageFolder("/birds/train", transforms.ToTensor())
        self.val_set = datasets.ImageFolder("/birds/val", transforms.ToTensor())
        self.test_set = datasets.ImageFolder("/birds/test", transforms.ToTensor())
"""
VALIDATED = "DataLoader(self.val_set, batch_size=self.size * 2)"


@pytest.mark.parametrize("fit", ["datamodule=Pictures(24)", "Pictures(24)", "Pictures(size=24)"])
@pytest.mark.parametrize(
    ("returns", "checks"),
    [(VALIDATED, True), (f"[{VALIDATED}]", True), (f"[{VALIDATED}, {VALIDATED}]", False), ("[]", False)],
)
def test_the_loaders_of_a_data_module(fit: str, returns: str, checks: bool, write: Write) -> None:
    text = script().replace("Birds(lr=0.2), loader", f"Birds(lr=0.2), {fit}")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("loader ="))
    found = drafted(write(text.replace("class Birds", f"{DATA.format(returns)}class Birds")))["data"]
    assert found["batch"] == 24 and found["source"] == "folder:/birds/train"
    assert found.get("eval_batch") == (48 if checks else None)
    assert found.get("validation") == ("folder:/birds/val" if checks else None)


@pytest.mark.parametrize(
    ("given", "batch", "checked"),
    [
        ("loader, checks", 16, 8),
        ("train_dataloaders=loader, val_dataloaders=checks", 16, 8),
        ("train_dataloader=loader, val_dataloaders=[checks]", 16, 8),
        ("loader", 16, None),
        ("loader, val_dataloaders=None", 16, None),
        ("checks, loader", 8, 16),  # whatever their names
        ("[loader, checks]", "???", None),
    ],
)
def test_the_loaders_of_a_fit(given: str, batch: Any, checked: int | None, write: Write) -> None:
    text = script().replace("trainer = ", "checks = DataLoader(val_set, batch_size=8)\ntrainer = ")
    found = drafted(write(text.replace("(lr=0.2), loader", f"(lr=0.2), {given}")))["data"]
    assert (found["batch"], found.get("eval_batch")) == (batch, checked)


def test_a_batch_that_cannot_be_read_says_how_many_make_a_step(write: Write) -> None:
    text = script(given=", accumulate_grad_batches=4").replace("batch_size=16", "batch_size=size()")
    assert "# 4 such batches are one of a recipe\n  batch: ???" in recipe_text(analyze_script(write(text)))


def test_the_loaders_of_the_module(write: Write) -> None:
    own = "    def train_dataloader(self):\n        return DataLoader(train_set, batch_size=3, shuffle=True)\n"
    own += "    def val_dataloader(self):\n        return DataLoader(val_set, batch_size=4)\n"
    found = drafted(write(script(more=own).replace("(lr=0.2), loader", "(lr=0.2)")))["data"]
    assert (found["batch"], found["eval_batch"]) == (3, 4)


HPARAMS = {
    "self.save_hyperparameters()": 0.2,
    'self.save_hyperparameters("lr", "decay", "steps")': 0.2,
    'self.save_hyperparameters(ignore=["net"])': 0.2,
    'self.save_hyperparameters(ignore="lr")': "???",
    'self.save_hyperparameters("decay")': "???",
    "lr = 0.25\n        self.save_hyperparameters()": 0.25,
    'self.save_hyperparameters({"lr": 0.75, "decay": 0.0, "steps": 1})': 0.75,
    "self.save_hyperparameters(settings())": "???",
    "pass": "???",
}


@pytest.mark.parametrize(("kept", "rate"), HPARAMS.items())
def test_hyperparameters_are_the_arguments_of_the_module(kept: str, rate: Any, write: Write) -> None:
    """`lr=self.hparams.lr could not be read`."""
    found = drafted(write(script().replace("self.save_hyperparameters()", kept)))
    assert found["optimizer"]["args"]["lr"] == rate


def test_hyperparameters_of_the_base_and_of_the_command_line(write: Write) -> None:
    base = "class Wide(Birds):\n    def __init__(self, width, **rest):\n        super().__init__(**rest)\n"
    args = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--lr', type=float, default=0.6)\n"
    text = script().replace("Birds(lr=0.2)", "Wide(3, lr=args.lr)").replace("\nloader =", f"\n{base}\nloader =")
    assert drafted(write(f"{args}args = parser.parse_args()\n{text}"))["optimizer"]["args"]["lr"] == 0.6
    given = script().replace("Birds(lr=0.2)", "Birds(args)").replace("lr=0.3, decay=0.01, steps=7", "args")
    given = given.replace("save_hyperparameters()", "save_hyperparameters(args)")
    assert drafted(write(f"{args}args = parser.parse_args()\n{given}"))["optimizer"]["args"]["lr"] == 0.6


@pytest.mark.parametrize(
    ("fits", "rate"),
    [
        ("other = Birds(lr=0.9)\ntrainer.fit(Birds(lr=0.1), loader)", 0.1),  # not the first of the class
        ("birds = Birds(lr=0.1)\nother = Birds(lr=0.9)\ntrainer.fit(birds, loader)", 0.1),
        ("for lr in (0.1, 0.9):\n    trainer.fit(Birds(lr=lr), loader)", "???"),
        ("class Wide(Birds): pass\nother = Birds(lr=0.9)\ntrainer.fit(Wide(lr=0.1), loader)", 0.1),
    ],
)
def test_the_rate_is_that_of_the_module_that_is_trained(fits: str, rate: Any, write: Write) -> None:
    """It was that of the first object of the class."""
    found = drafted(write(script().replace("trainer.fit(Birds(lr=0.2), loader)", fits)))
    assert found["optimizer"]["args"]["lr"] == rate


@pytest.mark.parametrize("call", ["pl.seed_everything(42)", "pl.seed_everything(42, workers=True)"])
def test_the_seed_of_everything_is_the_recipes(call: str, write: Write) -> None:
    """It was listed; it sets torch's."""
    path = write(script().replace("\nloader =", f"\n{call}\nloader ="))
    assert drafted(path)["seed"] == 42 and not has(listed(path), call)


def test_what_cannot_be_known_of_a_module_that_is_not_there(write: Write) -> None:
    text = script(given=", gradient_clip_val=0.5").replace("Birds(lr=0.2), loader", "Other(Birds(lr=0.2)), loader")
    found = drafted(write(f"from tasks import Other\n{text}", tasks="kept = 3\n"))
    assert found["train"]["epochs"] == 12 and found["clip"] == {"max_norm": 0.5}


def test_the_steps_stay_listed(write: Write) -> None:
    found = listed(write(script("return [opt], [sched]")))
    assert has(found, "return F.cross_entropy(self.net(x), y)", "trainer.fit(Birds(lr=0.2), loader)")
    again = listed(
        write(
            script()
            .replace("trainer = pl.Trainer(max_epochs=12)", "")
            .replace("trainer.fit", "pl.Trainer(max_epochs=1).fit")
        )
    )
    assert has(again, "pl.Trainer(max_epochs=1).fit(")


TUNED = """
import sys, torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("gpt2")
rate, epochs = 2e-5, 4
args = TrainingArguments({})
trainer = Trainer(model=model, args=args, train_dataset=load("a"))
trainer.train()
"""
PLAIN = {"name": "AdamW", "args": {"lr": 5e-5, "weight_decay": 0.0}}
FALLING = {"name": "LinearLR", "per": "step", "args": {"start_factor": 1.0, "end_factor": 0.0, "total_iters": "???"}}
OF_TRANSFORMERS: list[tuple[str, dict[str, Any], str]] = [
    ('"out", num_train_epochs=epochs', {"epochs": 4, "batch": 8, "clip": {"max_norm": 1.0}}, ""),
    ('output_dir="out", num_train_epochs=2.0, save_steps=500, logging_steps=10', {"epochs": 2}, ""),
    ("num_train_epochs=2.5", {"epochs": "???"}, "num_train_epochs=2.5 of transformers.TrainingArguments"),
    ("num_train_epochs=2, max_steps=100", {"epochs": "???"}, "max_steps=100 of"),
    ("max_steps=-1", {"epochs": 3}, ""),
    ("num_train_epochs=2, max_steps=int(sys.argv[1])", {"epochs": "???"}, "max_steps=int(sys.argv[1]) of"),
    ("per_device_train_batch_size=16", {"batch": 16}, ""),
    ("per_device_train_batch_size=16, gradient_accumulation_steps=1", {"batch": 16}, ""),
    (
        "per_device_train_batch_size=16, gradient_accumulation_steps=4",
        {"batch": "???"},
        "gradient_accumulation_steps=4 of",
    ),
    ("auto_find_batch_size=True", {"batch": 8}, "auto_find_batch_size=True of"),
    ("max_grad_norm=0.5", {"clip": {"max_norm": 0.5}}, ""),
    ("max_grad_norm=0", {"clip": None}, ""),
    ("max_grad_norm=float(sys.argv[1])", {"clip": None}, "max_grad_norm=float(sys.argv[1]) of"),
    ("fp16=True", {"amp": {"level": "O1", "dtype": "float16"}, "dynamic_loss_scale": {}}, ""),
    ("bf16=True, fp16=False", {"amp": {"level": "O1", "dtype": "bfloat16"}, "dynamic_loss_scale": None}, ""),
    ("fp16=torch.cuda.is_available()", {"amp": None}, "fp16=torch.cuda.is_available() of"),
    ("", {"optimizer": PLAIN, "schedule": FALLING, "batch": 8, "epochs": 3}, ""),
    ("learning_rate=rate", {"optimizer": {"name": "AdamW", "args": {"lr": 2e-5, "weight_decay": 0.0}}}, ""),
    (
        "learning_rate=float(sys.argv[1])",
        {"optimizer": {"name": "AdamW", "args": {"lr": "???", "weight_decay": 0.0}}},
        "",
    ),
    (
        'optim="sgd", weight_decay=0.1, adam_beta1=0.8',
        {"optimizer": {"name": "SGD", "args": {"lr": 5e-5, "weight_decay": 0.1}, "no_weight_decay": "???"}},
        "adam_beta1=0.8 of",
    ),
    (
        'optim="adamw_torch_fused", adam_beta2=0.99, adam_epsilon=1e-6',
        {"optimizer": {"name": "AdamW", "args": PLAIN["args"] | {"betas": [0.9, 0.99], "eps": 1e-6}}},
        "",
    ),
    ('optim="adafactor", learning_rate=rate', {"optimizer": "???"}, 'optim="adafactor" of'),
    ('deepspeed="a.json", weight_decay=0.1', {"optimizer": "???"}, "weight_decay=0.1 of"),
    ('weight_decay=0.0, warmup_steps=500, lr_scheduler_type="cosine"', {"schedule": "???"}, "warmup_steps=500 of"),
    (
        'warmup_steps=0, lr_scheduler_type="cosine"',
        {"schedule": {"name": "CosineAnnealingLR", "per": "step", "args": {"T_max": "???"}}},
        "",
    ),
    ('lr_scheduler_type="constant"', {"schedule": None}, ""),
    ('lr_scheduler_type="polynomial"', {"schedule": "???"}, 'lr_scheduler_type="polynomial" of'),
    (
        "max_steps=40",
        {"schedule": FALLING | {"args": FALLING["args"] | {"total_iters": 40}}, "epochs": "???"},
        "max_steps=40 of",
    ),
    ("warmup_ratio=0.1, seed=3", {"seed": None, "schedule": "???"}, "seed=3 of"),
    ("load_best_model_at_end=True", {}, "load_best_model_at_end=True of"),
    ('**{"num_train_epochs": 6, "learning_rate": 0.1}', {"epochs": 6}, ""),
    (
        "**settings()",
        {"epochs": "???", "batch": "???", "clip": None, "optimizer": "???", "schedule": "???"},
        "**settings() of",
    ),
]


@pytest.mark.parametrize(("given", "wanted", "words"), OF_TRANSFORMERS, ids=[one[0] for one in OF_TRANSFORMERS])
def test_what_transformers_is_given(given: str, wanted: dict[str, Any], words: str, write: Write) -> None:
    """The call was listed as a whole, and nothing of it drafted."""
    path = write(TUNED.format(given))
    found = drafted(path)
    found |= found["data"] | found["train"]
    assert {key: found.get(key) for key in wanted} == wanted
    assert has(listed(path), words or "trainer.train()", "trainer = Trainer(")
    assert "transformers makes" in recipe_text(analyze_script(path))


def test_the_defaults_of_transformers_are_those_of_the_library() -> None:
    """Where a script leaves them out, a draft has them."""
    transformers = pytest.importorskip("transformers")
    library = {one.name: one.default for one in fields(transformers.TrainingArguments)}
    for name, value in trainers.DEFAULTS.items():
        given = getattr(library[name], "value", library[name])
        assert given == value or trainers.OPTIMIZERS[given] == trainers.OPTIMIZERS[value]
    assert (library["adam_beta1"], library["adam_beta2"], library["adam_epsilon"]) == (0.9, 0.999, 1e-8)
    assert library["max_grad_norm"] == 1.0 and not library["warmup_steps"]


@pytest.mark.parametrize("kind", trainers.SCHEDULES)
def test_the_schedules_of_transformers_are_those_of_torch(kind: str) -> None:
    """A draft names torch's, whose last step is the run's."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    name, args = trainers.SCHEDULES[kind]
    rates = []
    for own in (True, False):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
        made = getattr(torch.optim.lr_scheduler, name)
        given = {key: 12 if value == "???" else value for key, value in args.items()}
        schedule = (
            transformers.get_scheduler(kind, optimizer, num_warmup_steps=0, num_training_steps=12)
            if own
            else made(optimizer, **given)
        )
        rates.append([])
        for _ in range(12):
            rates[-1].append(schedule.get_last_lr()[0])
            optimizer.step()
            schedule.step()
    assert rates[0] == pytest.approx(rates[1], rel=1e-9, abs=1e-12) and rates[0][0] == 0.3


@pytest.mark.parametrize(
    ("pair", "trainer", "schedule", "listed_"),
    [
        ("(opt, moves)", "Trainer(model, args, ", "StepLR", ()),
        ("(opt, moves)", "Trainer(model=model, args=args, ", "StepLR", ()),
        ("(opt, None)", "Trainer(model, args, ", "???", ("warmup_steps=9 of", "lr_scheduler_type=")),
        ("pair()", "Trainer(model, args, ", "???", ("learning_rate=0.7 of", "warmup_steps=9 of", "lr_scheduler_type=")),
        ("both", "Trainer(model, args, ", "???", ("learning_rate=0.7 of", "warmup_steps=9 of", "lr_scheduler_type=")),
        ("either", "Trainer(model, args, ", "???", ("learning_rate=0.7 of", "warmup_steps=9 of", "lr_scheduler_type=")),
    ],
)
def test_rates_without_effect_next_to_a_given_optimizer_are_not_listed(
    pair: str, trainer: str, schedule: str, listed_: tuple[str, ...], write: Write
) -> None:
    """They were, and where the Trainer has its arguments by their places its schedule's `per` was asked for."""
    own = "opt = torch.optim.SGD(model.parameters(), lr=0.2)\n"
    own += "moves = torch.optim.lr_scheduler.StepLR(opt, 4)\n" * ("moves" in pair)
    own += "either = (None, None)\nif read():\n    either = (opt, None)\nboth = either if read() else pair()\n"
    text = TUNED.format('learning_rate=0.7, adam_beta1=0.8, warmup_steps=9, lr_scheduler_type="cosine"')
    text = text.replace("trainer = Trainer(model=model, args=args, ", f"{own}trainer = {trainer}")
    path = write(text.replace('load("a")', f'load("a"), optimizers={pair}'))
    found, lines = drafted(path), listed(path)
    assert found["optimizer"]["args"] == {"lr": 0.2}
    section = found.get("schedule", "???")
    assert (section["name"], section["per"]) == (schedule, "step") if schedule != "???" else section == "???"
    assert has(lines, *listed_)
    other = [one for one in ("learning_rate=", "adam_beta1=", "warmup_steps=", "lr_scheduler") if has(lines, one)]
    assert bool(other) == bool(listed_) and has(lines, "learning_rate=") == (listed_[:1] == ("learning_rate=0.7 of",))


def test_whose_loss_transformers_differentiates_is_said(write: Write) -> None:
    """It was said that no call of backward() was found."""
    path = write(TUNED.format(""))
    assert "it differentiates the loss that the model returns" in recipe_text(analyze_script(path))
    path = write(TUNED.format("").replace("args=args,", "args=args, compute_loss_func=own,"))
    assert "that the model returns" not in recipe_text(analyze_script(path))


@pytest.mark.parametrize(
    "other",
    [
        "trainer = Trainer(model, TrainingArguments(num_train_epochs=9))",
        "def step(loss):\n    loss.backward()\nstep(model)",
    ],
)
def test_arguments_of_several_trainings_or_of_a_loop_of_ones_own_are_listed(other: str, write: Write) -> None:
    path = write(f"{TUNED.format('num_train_epochs=2')}{other}\n")
    assert drafted(path)["train"]["epochs"] == "???"
    assert has(listed(path), "args = TrainingArguments(num_train_epochs=2)")


def test_an_optimizer_that_the_script_makes_for_transformers_is_its(write: Write) -> None:
    own = "opt = torch.optim.AdamW(model.parameters(), lr=0.3)\ntrainer ="
    text = (
        TUNED.format("num_train_epochs=2")
        .replace("trainer =", own, 1)
        .replace('load("a")', 'load("a"), optimizers=(opt, None)')
    )
    assert drafted(write(text))["optimizer"] == {"name": "AdamW", "args": {"lr": 0.3}}
    assert has(listed(write(text)), "trainer = Trainer(")


def test_options_of_the_optimizer_that_a_module_is_given_are_read(write: Write) -> None:
    """`**kwargs` of `__init__` was not among the hyperparameters, so the rate was left out."""
    text = script().replace("lr=0.3, decay=0.01, steps=7", "steps=7, **kwargs").replace("Birds(lr=0.2)", "Birds({})")
    text = text.replace('lr=self.hparams.lr, weight_decay=self.hparams["decay"]', "**self.hparams.options")
    found = drafted(write(text.replace("Birds({})", "Birds(options={'lr': 0.45})")))
    assert found["optimizer"]["args"]["lr"] == 0.45
    found = drafted(write(text.replace("Birds({})", "Birds(options=of_a_file())")))
    assert found["optimizer"]["args"]["lr"] == "???"


def test_a_schedule_on_one_side_of_a_condition_moves_as_the_other_does(write: Write) -> None:
    """Where `per` is not said it was asked for, though Lightning moves either once an epoch."""
    two = "if limit():\n            sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)\n        "
    returned = two + 'return {{"optimizer": opt, "lr_scheduler": {{"scheduler": sched, "monitor": "acc"}}}}'
    section = drafted(write(script(returned.replace("{{", "{").replace("}}", "}"))))["schedule"]
    assert section["per"] == "epoch"


def test_a_batch_of_more_than_two_that_a_step_unpacks_is_listed(write: Write) -> None:
    """`a, x, z, y = batch` was a copy, and only this line says which is the label."""
    found = listed(write(script().replace("x, y = batch", "a, x, z, y = batch")))
    assert "a, x, z, y = batch [which of these are the input and the label?]" in found


GIVEN_TO_TRANSFORMERS = """
from transformers import Trainer, TrainingArguments
from elsewhere import Net, Muon, data
net = Net(3)
def accuracy(given):
    return {{"accuracy": (given[0] == given[1]).mean()}}
options = TrainingArguments("out", num_train_epochs=3, per_device_train_batch_size=8, {options})
{before}
trainer = Trainer({model}, args=options, train_dataset=data, compute_metrics=accuracy, {more})
trainer.train()
"""


@pytest.mark.parametrize(
    ("options", "drop_last"),
    [
        ("", False),
        ("dataloader_drop_last=False", False),
        ("dataloader_drop_last=True", None),
        ("dataloader_drop_last=which()", "???"),
    ],
)
def test_transformers_keep_the_last_batch(options: str, drop_last: Any, write: Write) -> None:
    """A recipe drops it where nothing is said, and transformers does not."""
    text = GIVEN_TO_TRANSFORMERS.format(options=options, before="", model="model=net", more="")
    assert drafted(write(HEAD + text))["data"].get("drop_last") == drop_last


@pytest.mark.parametrize("kept", ["load_best_model_at_end=True", "load_best_model_at_end=False", ""])
def test_what_chooses_the_weights_that_are_kept_is_listed(kept: str, write: Write) -> None:
    """That the best are kept was listed, and not by what they are chosen."""
    options = f'{kept}{", " if kept else ""}metric_for_best_model="accuracy", greater_is_better=True, eval_steps=5'
    text = GIVEN_TO_TRANSFORMERS.format(options=options, before="", model="model=net", more="")
    found = listed(write(HEAD + text))
    lines = ("metric_for_best_model=", "greater_is_better=", "eval_steps=5 of", "accuracy, given as compute_metrics")
    assert [has(found, one) for one in lines] == [kept.endswith("True")] * len(lines)


@pytest.mark.parametrize("model", ["model=net", "net"])
def test_what_the_trainer_of_transformers_is_given_is_found(model: str, write: Write) -> None:
    """It was said that the library makes the optimizer, and that no model was found."""
    before = "opt = Muon(net.parameters(), 0.1)\npair = (opt, None)"
    text = GIVEN_TO_TRANSFORMERS.format(options="", before=before, model=model, more="optimizers=pair")
    found = recipe_text(analyze_script(write(HEAD + text)))
    assert "net = Net(3): the Trainer is given what this makes" in found
    assert "opt = Muon(net.parameters(), 0.1): the Trainer is given what this makes" in found
    assert "transformers makes the optimizer" not in found
    before = "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nmoves = torch.optim.lr_scheduler.StepLR(opt, 4)"
    text = GIVEN_TO_TRANSFORMERS.format(options="", before=before, model=model, more="optimizers=(opt, moves)")
    recipe = drafted(write(HEAD + text))
    assert recipe["optimizer"]["args"]["lr"] == 0.1 and recipe["schedule"]["per"] == "step"


WITHOUT_TORCH = {
    "from transformers import Trainer, TrainingArguments": "Trainer(a(), TrainingArguments(num_train_epochs=2))",
    "import transformers as tf": "tf.Seq2SeqTrainer(a(), tf.Seq2SeqTrainingArguments('o', num_train_epochs=2)).train()",
    "from lightning.pytorch import Trainer": "Trainer(max_epochs=2).fit(a())",
    "import pytorch_lightning as pl": "pl.Trainer(max_epochs=2).fit(a())",
    "from accelerate import Accelerator": "acc = Accelerator()\nfor epoch in range(2):\n    acc.backward(a())",
    "from timm.optim import create_optimizer_v2": "create_optimizer_v2(a(), 'sgd')\nfor epoch in range(2):\n    a()",
    "from peft import get_peft_model": "get_peft_model(a())\nfor epoch in range(2):\n    a()",
    "from transformers import AutoModelForCausalLM": "AutoModelForCausalLM('x')\nfor epoch in range(2): a()",
}


@pytest.mark.parametrize("imports", WITHOUT_TORCH)
def test_a_script_that_names_nothing_of_torch_itself(imports: str, write: Write) -> None:
    """It was refused: `imports none of torch, torchvision, timm, apex`."""
    path = write(f"{imports}\ndef a(): return made\n{WITHOUT_TORCH[imports]}\n")
    assert drafted(path)["train"]["epochs"] == 2
    analysis = analyze_script(path)
    package = imports.split()[1].partition(".")[0]
    assert analysis.uses[0].torch.startswith(f"{package}.")
    said = [line for line in notes(analysis) if "trains with torch in code of its own" in line]
    assert [line.split()[0] for line in said] == ([package] if package != "timm" else [])


def test_the_model_that_a_trainer_is_given_is_asked_for_at_its_line(write: Write) -> None:
    """`which model is trained was not found`, and `trainer.train()` was written as `trainer.set_train(True)`."""
    path = write(TUNED.format("num_train_epochs=2").replace("import sys, torch", "import sys"))
    assert "# train.py line 4: model = AutoModelForCausalLM.from_pretrained(" in recipe_text(analyze_script(path))
    assert has(listed(path), "model = AutoModelForCausalLM.from_pretrained(", "trainer.train()")
    assert not any("Module" in use.torch or use.rewrite for use in analyze_script(path).uses)


PARSED = """
from dataclasses import dataclass, field
import sys, torch
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
@dataclass
class Kind:
    name: str = field(default="gpt2", metadata={{"help": "which"}})
    rate: float = 0.25
    sizes: list = field(default_factory=lambda: [3, 4])
    fold: bool = field(default=False)
    width: int = field(metadata={{"help": "has to be given"}})
@dataclass
class Other:
    fold: bool = field(default=True)
@dataclass
class Own(TrainingArguments):
    num_train_epochs: int = 7
    per_device_train_batch_size: int = field(default=4, metadata={{"help": "size"}})
    warmup_steps: int = field(default=500)
    logging_steps: int = 50
def main():
    parser = HfArgumentParser({0})
    {1}
    model = AutoModelForCausalLM.from_pretrained(kind.name)
    opt = torch.optim.SGD(model.parameters(), lr=kind.rate, momentum=1 / kind.sizes[1])
    if kind.fold:
        folds = split(model)
    trainer = Trainer(model=model, args=args, train_dataset=load(kind.width), optimizers=(opt, None))
    trainer.train()
if __name__ == "__main__":
    main()
"""
OF_PARSER = [
    ("(Kind, Own)", "kind, args = parser.parse_args_into_dataclasses()"),
    ("[Own, Kind]", "(args, kind) = parser.parse_args_into_dataclasses()"),
    ("(Kind, Own)", "kind, args, rest = parser.parse_args_into_dataclasses(return_remaining_strings=True)"),
    ("dataclass_types=(Kind, Own)", "found = parser.parse_args_into_dataclasses()\n    kind, args = found"),
    ("Kind", "kind, = parser.parse_args_into_dataclasses()\n    args = Own()"),
    ("Kind", "kind = parser.parse_args_into_dataclasses()[0]\n    args = Own(output_dir='out')"),
    (
        "(Kind, Own)",
        'if len(sys.argv) == 2 and sys.argv[1].endswith(".json"):\n'
        "        kind, args = parser.parse_json_file(json_file=sys.argv[1])\n"
        "    else:\n        kind, args = parser.parse_args_into_dataclasses()",
    ),
]


@pytest.mark.parametrize(("classes", "parsed"), OF_PARSER)
def test_the_defaults_of_dataclasses_are_what_a_plain_start_has(classes: str, parsed: str, write: Write) -> None:
    """All of it was asked for, and every field listed."""
    path = write(PARSED.format(classes, parsed))
    found = drafted(path)
    assert found["train"]["epochs"] == 7 and found["data"]["batch"] == 4
    assert found["optimizer"]["args"] == {"lr": 0.25, "momentum": 0.25}
    text, lines = recipe_text(analyze_script(path)), listed(path)
    assert "# train.py line 17: Own.num_train_epochs = 7" in text and "# train.py line 8: Kind.rate = 0.25" in text
    assert "# train.py line 18: Own.per_device_train_batch_size = 4" in text
    assert has(
        lines, "warmup_steps=500 of Own", "model = AutoModelForCausalLM", "trainer = Trainer(", "trainer.train()"
    )
    assert has(lines, "kind, args = parser.parse_json") == ("json" in parsed)
    assert any(line.startswith("model = ") and "kind.name is 'gpt2'" in line for line in lines)
    assert any("fold" in line for line in lines) == ("json" in parsed)  # which may say otherwise
    assert not any("logging_steps" in line or "field(" in line for line in lines)


@pytest.mark.parametrize(
    ("change", "epochs"),
    [
        ("args = Own(num_train_epochs=3)", 3),
        ("args = Own(**given())", "???"),
        ("args = TrainingArguments(num_train_epochs=kind.sizes[0])", 3),
        ("args = TrainingArguments(num_train_epochs=kind.width)", "???"),  # only the command line says it
        ("args.num_train_epochs = 2", 2),
        ("args = made()", "???"),
        ("args = Own() if kind.fold else Own(num_train_epochs=5)", 5),
        ("args = Own() if kind.width else Own(num_train_epochs=5)", "???"),
        ("args = Own(num_train_epochs=5)\n    args = Own() if kind.width else args", "???"),
    ],
)
def test_the_arguments_are_those_that_the_trainer_is_given(change: str, epochs: Any, write: Write) -> None:
    parsed = f"kind, args = parser.parse_args_into_dataclasses()\n    {change}"
    assert drafted(write(PARSED.format("(Kind, Own)", parsed)))["train"]["epochs"] == epochs


def test_a_dataclass_of_settings_without_a_parser(write: Write) -> None:
    """A field by its place was its default, and `field(default=…)` was unknown."""
    settings = """
import torch, torchvision
from dataclasses import dataclass, field
@dataclass(frozen=True)
class Base:
    momentum: float = field(default=0.5)
@dataclass
class Settings(Base):
    rate: float = field(default=0.1, metadata={"help": "x"})
    decay: float = None
    def __post_init__(self):
        if self.decay is None:
            self.decay = self.rate / 10
model = torchvision.models.resnet18()
s = Settings(GIVEN)
torch.optim.SGD(model.parameters(), lr=s.rate, momentum=s.momentum, weight_decay=s.decay)
"""
    for given, wanted in (
        ("", (0.1, 0.5, 0.01)),
        ("0.9, 0.3", (0.3, 0.9, 0.03)),
        ("rate=0.2", (0.2, 0.5, 0.02)),
        ("0.7, decay=0.0", (0.1, 0.7, 0.0)),
    ):
        found = drafted(write(settings.replace("GIVEN", given)))["optimizer"]["args"]
        assert (found["lr"], found["momentum"], found.get("weight_decay", 0.0)) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("chain", "listed_"),
    [
        ('if kind == "a":\n    opt.go(1)\nelif kind == "b":\n    opt.go(2)\nelse:\n    raise ValueError(kind)', True),
        ('if kind == "a":\n    opt.go(1)\nelif kind == "b":\n    opt.go(2)\nelse:\n    print(kind)', False),
    ],
)
def test_a_script_that_refuses_its_defaults_at_the_end_of_a_chain_goes_on(
    chain: str, listed_: bool, write: Write
) -> None:
    """All that followed counted as what only other arguments run."""
    text = "import torch, argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--kind', default='none')\n"
    text += "kind = parser.parse_args().kind\nopt = torch.optim.SGD(made.parameters(), lr=0.1)\n"
    path = write(f"{text}{chain}\nopt.after()\n")
    assert has(listed(path), "opt.go(1)", "opt.go(2)") == listed_
    assert has(listed(path), "opt.after()")


LINE = "from pytorch_lightning.cli import LightningCLI\n"
COMMAND_LINE: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        'LightningCLI(Birds, Pictures, trainer_defaults={"max_epochs": 4, "gradient_clip_val": 0.5, "min_epochs": 2})',
        {"epochs": 4, "batch": 32, "lr": 0.3, "clip": {"max_norm": 0.5}},
        ["min_epochs=2 of"],
    ),
    ("cli = LightningCLI(Birds, run=False)\ncli.trainer.fit(cli.model, loader)", {"epochs": "???", "lr": 0.3}, []),
    (
        "LightningCLI(model_class=Birds, datamodule_class=Pictures, trainer_defaults=dict(max_epochs=6))",
        {"epochs": 6, "batch": 32, "lr": 0.3},
        [],
    ),
    (
        "given = dict(max_epochs=6, devices=4)\nOwn(Birds, trainer_defaults=given, seed_everything_default=3)",
        {"epochs": 6, "lr": 0.3, "seed": None},
        ["seed_everything_default=3 of", "given['devices'] of", 'parser.set_defaults({"optimizer.lr": 0.7})'],
    ),
    ("LightningCLI(Birds, trainer_defaults=read())", {"epochs": "???"}, ["**read() of"]),
    ("LightningCLI(save_config_callback=None)", {"epochs": "???"}, []),
    ("if begun():\n    LightningCLI(Birds, trainer_defaults=dict(max_epochs=6))", {"epochs": "???"}, []),
]


@pytest.mark.parametrize(("calls", "wanted", "words"), COMMAND_LINE, ids=[one[0] for one in COMMAND_LINE])
def test_what_the_command_line_of_lightning_is_given(
    calls: str, wanted: dict[str, Any], words: list[str], write: Write
) -> None:
    """Everything was asked for, and the call was not listed."""
    own = "class Own(LightningCLI):\n    def add_arguments_to_parser(self, parser):\n"
    own += '        parser.set_defaults({"optimizer.lr": 0.7})\n'
    path = write(f"{LINE}{script().partition('several, least')[0]}{DATA.format(VALIDATED)}{own}{calls}\n")
    found = drafted(path)
    found |= found["data"] | found["train"] | found["optimizer"].get("args", {})
    assert {key: found.get(key) for key in wanted} == wanted
    assert has(listed(path), *words)
    line = next(
        line for line in calls.splitlines()[::-1] if "Birds" in line or "save" in line or ".fit" in line
    ).strip()
    assert has(listed(path), f"{line}{' [only where begun()]' if 'begun' in calls else ''}")
    assert has(listed(path), "LightningCLI: what its command line") == ("begun" not in calls)


OWN_TRAINER = """
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
class Own(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        out = model(**inputs)
        loss = out.logits.mean() + self.share
        return (loss, out) if return_outputs else loss
    {}
model = AutoModelForCausalLM.from_pretrained("gpt2")
args = TrainingArguments("o", num_train_epochs=2, learning_rate=0.3, per_device_train_batch_size=4)
trainer = Own(model=model, args=args, train_dataset=load())
trainer.train()
"""


@pytest.mark.parametrize(
    ("method", "wanted", "words"),
    [
        ("share = 0.5", {"epochs": 2, "batch": 4}, ["loss = out.logits.mean() + self.share"]),
        (
            "def create_optimizer(self):\n        self.optimizer = torch.optim.AdamW(self.model.parameters(), "
            "lr=self.args.learning_rate, eps=1e-6)\n        return self.optimizer",
            {"epochs": 2, "args": {"lr": 0.3, "eps": 1e-6}},
            [],
        ),
        (
            "def training_step(self, model, inputs):\n        loss = self.compute_loss(model, inputs) * 2\n"
            "        self.accelerator.backward(loss)\n        return loss.detach()",
            {"epochs": 2, "batch": 4},
            ["loss = self.compute_loss(model, inputs) * 2", "self.accelerator.backward(loss)"],
        ),
        (
            "def get_train_dataloader(self):\n        return torch.utils.data.DataLoader(self.train_dataset, 8)",
            {"epochs": 2, "batch": 8},
            [],
        ),
        (
            "def _get_train_sampler(self):\n        return made_by(self.model)",
            {"epochs": 2},
            ["return made_by(self.mo"],
        ),
    ],
)
def test_a_trainer_of_the_scripts_own(method: str, wanted: dict[str, Any], words: list[str], write: Write) -> None:
    """One with a `training_step` had its epochs and batch asked for; its model and rate were not found."""
    path = write(OWN_TRAINER.format(method))
    found, text = drafted(path), recipe_text(analyze_script(path))
    found |= found["data"] | found["train"] | (found["optimizer"] if isinstance(found["optimizer"], dict) else {})
    assert {key: found.get(key) for key in wanted} == wanted
    assert "model = AutoModelForCausalLM.from_pretrained" in text.partition("model: ???")[0]
    assert "transformers differentiates this" in text.partition("loss: ???")[0] or "backward" in method
    assert has(listed(path), *words, "out = model(**inputs)", "return (loss, out)", "trainer = Own(", "trainer.train()")


def test_training_functions_that_another_file_calls_are_listed(write: Write) -> None:
    """Nothing of a file of several was: each counted as never run."""
    one = "def of_{0}(name):\n    model = AutoModelForCausalLM.from_pretrained(name)\n"
    one += "    args = TrainingArguments('{0}', num_train_epochs=2)\n    trainer = Trainer(model, args, load('{0}'))\n"
    text = "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
    text += f"{one}    trainer.train()\n".format("a") + f"{one}    trainer.train()\n".format("b")
    found = listed(write(text))
    assert has(found, "trainer = Trainer(model, args, load('a'))", "trainer = Trainer(model, args, load('b'))")
    assert has(found, "trainer.train()", "args = TrainingArguments('a'", "args = TrainingArguments('b'")
    found = listed(write(f"{text}of_a('gpt2')\n"))
    assert has(found, "trainer = Trainer(model, args, load('a'))") and not any("'b'" in line for line in found)


PARSED_TRAINER = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--gradient_clip_val", type=float, default=0.25)
parser.add_argument("--size", type=int, default=12)
parser = pl.Trainer.add_argparse_args(parser)
{more}
args = parser.parse_args()
trainer = {made}
trainer.fit(Birds(lr=args.lr), {data})
"""
OF_PARSED: list[tuple[str, str, str, dict[str, Any], list[str]]] = [
    ("", "pl.Trainer.from_argparse_args(args, max_epochs=7)", "loader", {"epochs": 7}, []),
    (
        "parser.set_defaults(max_epochs=8, gpus=2)",
        "pl.Trainer.from_argparse_args(args)",
        "loader",
        {"epochs": 8},
        ["gpus"],
    ),
    ("parser.add_argument('--max_epochs', default=None)", "pl.Trainer.from_argparse_args(args)", "loader", {}, []),
    ("", "pl.Trainer.from_argparse_args(read(), max_epochs=7)", "loader", {"epochs": 7, "clip": None}, ["**read()"]),
    (
        "",
        "pl.Trainer.from_argparse_args(args, max_epochs=7)",
        "Loads.from_argparse_args(args)",
        {"batch": 12, "epochs": 7},
        [],
    ),
    ("", "pl.Trainer.from_argparse_args(args)", "Loads.from_argparse_args(args, size=5)", {"batch": 5}, []),
]


@pytest.mark.parametrize(("more", "made", "data", "wanted", "left"), OF_PARSED)
def test_what_a_trainer_is_given_by_the_command_line(
    more: str, made: str, data: str, wanted: dict[str, Any], left: list[str], write: Write
) -> None:
    """Its epochs were asked for, and the defaults of a parser that Lightning, or another parser, has added to."""
    own = "child = argparse.ArgumentParser(parents=[parser], add_help=False)\n"
    own += "child.add_argument('--lr', type=float, default=0.7)\nparser = child"
    module = "class Loads(pl.LightningDataModule):\n    def __init__(self, size=3):\n        super().__init__()\n"
    module += "        self.size = size\n    def train_dataloader(self):\n"
    module += "        return DataLoader(train_set, batch_size=self.size, shuffle=True)\n"
    text = PARSED_TRAINER.format(more=f"{more}\n{own}", made=made, data=data)
    path = write(
        f"{script().partition('several, least')[0]}{module}loader = DataLoader(train_set, batch_size=12)\n{text}"
    )
    found = drafted(path)
    expected = {"epochs": "???", "batch": 12, "clip": {"max_norm": 0.25}, "lr": 0.7} | wanted
    found |= found["data"] | found["train"] | found["optimizer"].get("args", {})
    assert {key: found.get(key) for key in expected} == expected
    assert (
        has(listed(path), "trainer.fit(") and [one for one in left if any(one in line for line in listed(path))] == left
    )


@pytest.mark.parametrize(
    ("init", "made", "wanted"),
    [
        (
            "max_epochs=epochs, **kwargs",
            "Own(epochs=3, gradient_clip_val=0.5)",
            {"epochs": 3, "clip": {"max_norm": 0.5}},
        ),
        ("max_epochs=epochs, gradient_clip_val=0.25", "Own()", {"epochs": 5, "clip": {"max_norm": 0.25}}),
        ("**kwargs", "Own(**read())", {"epochs": "???", "clip": None}),
    ],
)
def test_a_trainer_of_the_scripts_own_that_hands_arguments_on(
    init: str, made: str, wanted: dict[str, Any], write: Write
) -> None:
    """Its epochs were asked for: "no loop over epochs was found"."""
    own = "class Own(pl.Trainer):\n    def __init__(self, epochs=5, **kwargs):\n"
    own += f"        super().__init__({init})\n        self.seen = 0\n"
    text = script().replace("trainer = pl.Trainer(max_epochs=12)", f"{own}trainer = {made}")
    found = drafted(write(text))
    found |= found["train"]
    assert {key: found.get(key) for key in wanted} == wanted
    found = drafted(write(text.replace("        super()", "        if epochs > read():\n            super()")))
    assert found["train"]["epochs"] == "???"


LIGHTNING_LOSSES = [
    ("loss = F.cross_entropy(self(x), y)\n        return loss", {"name": "CrossEntropyLoss"}),
    ("loss = self.of(self(x), y)\n        return {'loss': loss, 'seen': x}", {"name": "MSELoss"}),
    ("return self.of(self(x), y)", {"name": "MSELoss"}),
    ("return F.cross_entropy(self(x), y) * 2", {"name": "CrossEntropyLoss"}),
    ("return nn.L1Loss()(self(x), y) / 3", {"name": "L1Loss"}),
    ("loss = self.of(self(x), y)\n        return loss + x.norm()", "???"),
    ("loss = self.of(self(x), y)\n        loss = loss + F.l1_loss(x, y)\n        return loss", "???"),
    ("return mixed(self(x), y)", "???"),
]


@pytest.mark.parametrize(("body", "wanted"), LIGHTNING_LOSSES, ids=[one[0] for one in LIGHTNING_LOSSES])
def test_the_loss_that_lightning_differentiates_is_drafted(body: str, wanted: Any, write: Write) -> None:
    """It was asked for. How it comes about stays listed, for the step is the module's."""
    text = f"""
class Fitted(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torchvision.models.resnet18()
        self.of = nn.MSELoss()
    def forward(self, x):
        return self.net(x)
    def training_step(self, batch, index):
        x, y = batch
        {body}
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
"""
    path = write(HEAD + text + FIT.format("").replace("Birds(lr=0.2)", "Fitted()"))
    assert drafted(path)["loss"] == wanted
    assert has(listed(path), body.partition("\n")[0])
    assert "Trainer differentiates" in recipe_text(analyze_script(path)) or wanted == "???"


CHANGED: list[tuple[str, dict[str, Any]]] = [
    ("other = args", {}),
    ("args.learning_rate = 0.1", {"lr": "???"}),
    ("args.num_train_epochs += 1", {"epochs": "???"}),
    ("args = dataclasses.replace(args, num_train_epochs=7)", {"epochs": "???"}),
    ("setattr(args, 'learning_rate', 0.1)", {"lr": "???"}),
    ("args = args.set_training(learning_rate=0.1)", {"lr": None, "epochs": "???", "batch": "???"}),
    ("for key, value in read():\n    setattr(args, key, value)", {"lr": None, "epochs": "???", "batch": "???"}),
]


@pytest.mark.parametrize(("line", "wanted"), CHANGED, ids=[one[0] for one in CHANGED])
def test_arguments_that_the_script_sets_later_are_asked_for(line: str, wanted: dict[str, Any], write: Write) -> None:
    """What they had been made with was drafted, and the line listed."""
    text = TUNED.format("num_train_epochs=2").replace("import sys", "import dataclasses, sys")
    path = write(text.replace("trainer = Trainer(", f"{line}\ntrainer = Trainer("))
    found = drafted(path)
    optimizer = found["optimizer"] if isinstance(found["optimizer"], dict) else {}
    found |= found["data"] | found["train"] | optimizer.get("args", {})
    expected = {"lr": 5e-5, "epochs": 2, "batch": 8} | wanted
    assert {key: found.get(key) for key in expected} == expected
    assert has(listed(path), line.splitlines()[-1].strip()) == bool(wanted)
