"""Scripts of other kinds, in which a library trains, a teacher helps, a value is one of several: no loss, no guess."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from drafts import drafted, has, listed
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.reports.script_analysis import recipe_text

Write = Callable[..., Path]

HEAD = """
import torch, torch.nn as nn, torch.nn.functional as F, torchvision
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
"""
REST = """
net = torchvision.models.resnet18(num_classes=7)
data = datasets.ImageFolder("/birds/train", transforms.ToTensor())
loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.2)
for epoch in range(4):
    for x, y in loader:
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def test_a_trainer_of_a_library_and_what_it_calls_is_listed(write: Write) -> None:
    """`trainer.train()` was taken for a switch of modes, and what a library calls for what never runs."""
    own = """
import transformers
class Mean(transformers.TrainerCallback):
    def __init__(self, model):
        self.model = model
    def on_step_end(self, args, state, control, **more):
        for p in self.model.parameters():
            p.data.mul_(0.5)
class Own(transformers.Trainer):
    def compute_loss(self, model, inputs):
        return model(**inputs).loss * 2
model = transformers.AutoModel.from_pretrained("some")
model.train()
lines = transformers.read("lines.txt")
{made}
trainer.train()
"""
    derived = "trainer = Own(model=model, train_dataset=lines, callbacks=[Mean(model=model)])"
    found = listed(write(HEAD + own.format(made=derived)))
    assert has(found, derived, "trainer.train()", "return model(**inputs).loss * 2", "p.data.mul_(0.5)", "lines =")
    plain = "trainer = transformers.Seq2SeqTrainer(model=model, train_dataset=lines)"
    found = listed(write(HEAD + own.format(made=plain)))
    assert has(found, plain, "trainer.train()") and not has(found, "model.train()")


def test_what_a_module_of_lightning_builds_from_a_table_is_listed(write: Write) -> None:
    """Without an optimizer by name its class counted as a model, and its step as a part of that."""
    own = """
import build
import pytorch_lightning as pl
class Pictures(pl.LightningDataModule):
    def setup(self, stage=None):
        self.kept = build.pictures("train")
    def train_dataloader(self):
        return DataLoader(self.kept, batch_size=4)
class Step(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = build.net()
    def training_step(self, batch, index):
        out = self.net(batch)
        return build.loss(out)
    def configure_optimizers(self):
        return build.optimizer(self.net.parameters())
class Other(pl.LightningModule):
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)
step = Step()
pictures = Pictures()
pl.Trainer().fit(step, pictures)
"""
    script = write(HEAD + own)
    assert drafted(script)["optimizer"] == "???"  # and not that of a class that nothing makes
    found = listed(script)
    assert has(found, 'self.kept = build.pictures("train")', "pictures = Pictures()")
    assert has(found, "out = self.net(batch)", "return build.loss(out)", "return build.optimizer(")


def test_the_mode_of_a_teacher_is_listed(write: Write) -> None:
    teacher = "teacher = torchvision.models.resnet34()\nteacher.eval()\n"
    helped = REST.replace("loss = criterion(net(x), y)", "loss = criterion(net(x), teacher(x).softmax(1))")
    assert has(listed(write(HEAD + teacher + helped)), "teacher = ", "teacher.eval()", "loss = criterion(")


@pytest.mark.parametrize(
    ("call", "plain"),
    [
        ("return self.steps(image)", True),
        ("return self.steps(image), self.steps(image)", False),
        ("image = image.rotate(90)\n        return self.steps(image)", False),
        ("return self.steps(image)[:1]", False),
    ],
)
def test_a_class_of_transforms_that_does_more_is_asked_for(call: str, plain: bool, write: Write) -> None:
    """The two views of a contrastive loss were drafted as one."""
    own = f"""
class Views:
    def __init__(self):
        self.steps = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor()])
    def __call__(self, image):
        {call}
"""
    script = write(HEAD + own + REST.replace("transforms.ToTensor())", "Views())"))
    wanted = [{"name": "RandomHorizontalFlip"}, {"name": "ToTensor"}] if plain else "???"
    assert drafted(script)["data"]["transforms"] == wanted


@pytest.mark.parametrize(
    ("value", "rate"),
    [
        ("0.2 if torch.cuda.is_available() else 0.1", "???"),
        ("0.2 if torch.cuda.is_available() else 0.2", 0.2),
        ("rate()", "???"),
        ("same()", 0.3),
    ],
)
def test_one_of_several_values_is_no_value(value: str, rate: Any, write: Write) -> None:
    """The first of them was drafted: a rate times the number of processes, for one process."""
    own = """
def rate():
    if not torch.distributed.is_initialized():
        return 0.2
    return 0.2 * torch.distributed.get_world_size()
def same():
    if torch.cuda.is_available():
        return 0.3
    return 0.3
"""
    assert drafted(write(HEAD + own + REST.replace("lr=0.2", f"lr={value}")))["optimizer"]["args"]["lr"] == rate


def test_loaders_of_which_one_is_made_are_not_training_and_validation(write: Write) -> None:
    """The images of the one were to be trained, those of the other to be measured."""
    own = """
import options
def made(train):
    if options.kind == "birds":
        return DataLoader(datasets.ImageFolder("/birds", transforms.ToTensor()), batch_size=4)
    return DataLoader(datasets.CIFAR10("/small", train=train, transform=transforms.ToTensor()), batch_size=8)
loader = made(True)
checks = made(False)
"""
    text = REST.replace("loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)", own)
    section = drafted(write(HEAD + text))["data"]
    assert section["source"] == section["batch"] == "???" and "validation" not in section


def test_what_several_loaders_of_one_call_differ_in_is_asked_for(write: Write) -> None:
    """The last one's order was drafted for the training, and the sampler was lost."""
    own = """
def made(size, sampler=None):
    return DataLoader(data, batch_size=16, shuffle=False, sampler=sampler)
loader = made(16, torch.utils.data.WeightedRandomSampler([0.5, 0.5], 90))
checks = made(16)
"""
    script = write(HEAD + REST.replace("loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)", own))
    section = drafted(script)["data"]
    assert (section["batch"], section["shuffle"]) == (16, "???")
    assert has(listed(script), "sampler=sampler of torch.utils.data.DataLoader")


def test_a_loss_of_each_sample_is_asked_for(write: Write) -> None:
    each = "loss = (F.mse_loss(net(x), y, reduction='none') * 2).mean()"
    script = write(HEAD + REST.replace("loss = criterion(net(x), y)", each))
    assert drafted(script)["loss"] == "???" and has(listed(script), "loss.backward()")


def test_precision_of_a_type_that_is_not_known_is_asked_for(write: Write) -> None:
    kinds = "kind = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16\n"
    text = REST.replace("        loss = c", "        with torch.autocast('cuda', dtype=kind):\n            loss = c")
    assert drafted(write(HEAD + kinds + text))["amp"] == "???"


def test_a_part_of_a_model_is_not_taken_for_it(write: Write) -> None:
    own = "import zoo\nclass Head(nn.Linear):\n    pass\nmodel = zoo.model()\nmodel.head = Head(3, 2)\nzoo.fit(model)\n"
    found = listed(write(HEAD + own))
    assert has(found, "model = zoo.model()", "model.head = Head(3, 2)", "zoo.fit(model)")


def test_what_an_object_of_ones_own_is_made_with_is_listed(write: Write) -> None:
    """Its numbers were lost in it: 0.3 stood nowhere."""
    own = "class Masks:\n    def __init__(self, ratio):\n        self.ratio = ratio\n"
    own += "    def __call__(self, x):\n        return x * self.ratio\nmasks = Masks(0.3)\n"
    found = listed(write(HEAD + own + REST.replace("criterion(net(x), y)", "criterion(net(masks(x)), y)")))
    assert has(found, "masks = Masks(0.3)")


def test_a_class_that_is_made_in_an_option_and_by_default_runs(write: Write) -> None:
    """The first object of it counted, which only `python steps.py` makes: its step and optimizer were lost."""
    steps = (
        "import torch, pytorch_lightning as pl\n"
        "class Step(pl.LightningModule):\n"
        "    def training_step(self, batch, index):\n"
        "        return batch.sum()\n"
        "    def configure_optimizers(self):\n"
        "        return torch.optim.AdamW(self.parameters(), lr=0.3)\n"
        "def fit():\n"
        "    step = Step()\n"
        "    pl.Trainer().fit(step)\n"
        "if __name__ == '__main__':\n"
        "    fit()\n"
    )
    script = write(HEAD + "from steps import fit\nfit()\n", steps=steps)
    assert drafted(script)["optimizer"] == {"name": "AdamW", "args": {"lr": 0.3}}
    assert has(listed(script), "return batch.sum()", "pl.Trainer().fit(step)")


def test_what_is_kept_for_a_later_step_is_listed(write: Write) -> None:
    """A method that is called for this alone counted as one that only computes."""
    own = """
class Agent:
    def __init__(self, policy):
        self.policy, self.chances = policy, []
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    def keep(self, chance):
        self.chances.append(chance)
    def show(self, chance):
        self.shown = chance
    def update(self):
        loss = -torch.stack(self.chances).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
agent = Agent(nn.Linear(3, 1))
for episode in range(10):
    for turn in range(5):
        agent.keep(agent.policy(torch.randn(3)))
        agent.show(turn)
    agent.update()
"""
    found = listed(write(HEAD + own))
    assert has(found, "self.chances.append(chance)") and not has(found, "self.shown = chance")


def test_what_is_written_into_a_configuration_of_a_library_is_listed(write: Write) -> None:
    own = """
from detectron2.config import get_cfg
from detectron2.engine import DefaultTrainer
cfg = get_cfg()
cfg.SOLVER.BASE_LR = 0.00025
trainer = DefaultTrainer(cfg)
torch.backends.cudnn.benchmark = True
trainer.train()
"""
    found = listed(write(HEAD + own))
    assert has(found, "cfg.SOLVER.BASE_LR = 0.00025", "trainer.train()") and not has(found, "torch.backends")


def test_the_order_of_a_validation_is_listed(write: Write) -> None:
    """A recipe validates on every sample once, in their order."""
    val = 'val = datasets.ImageFolder("/birds/val", transforms.ToTensor())\nvalid = DataLoader(val, 16, {how})\n'
    check = "    net.eval()\n    for x, y in valid:\n        print(net(x))\n    net.train()\n"
    odd = write(HEAD + val.format(how="shuffle=True, drop_last=True") + REST + check)
    assert has(listed(odd), "shuffle=True of torch.utils", "drop_last=True of torch.utils")
    assert not listed(write(HEAD + val.format(how="False, drop_last=False") + REST + check))


def test_a_loader_that_nothing_steps_on_and_a_condition_makes_is_not_the_training_one(write: Write) -> None:
    own = """
import zoo
def test():
    return DataLoader(zoo.pictures(), batch_size=1)
if zoo.arguments().only_test:
    zoo.score(test())
zoo.fit(nn.Linear(3, 2))
"""
    section = drafted(write(HEAD + own))["data"]
    assert section == {"source": "???", "batch": "???", "transforms": "???"}


def test_a_plain_value_of_what_a_file_holds_is_listed(write: Write) -> None:
    """It was taken for a value that reading knows."""
    own = """
import pandas as pd
read = pd.read_csv("names.csv")
names = list(read["name"])
table = pd.read_csv("all.csv")[names]
class Rows(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows
"""
    text = REST.replace('datasets.ImageFolder("/birds/train", transforms.ToTensor())', "Rows(table)")
    assert has(listed(write(HEAD + own + text)), "read = pd", 'names = list(read["name"])', "table = pd")


def test_a_class_that_a_registry_makes_by_its_name_is_listed(write: Write) -> None:
    """Nothing in the script calls it, so all of it counted as never run."""
    own = """
import gym
class Hopper(gym.Env):
    def step(self, action):
        reward = action.sum() - 1e-3
        return self.state, reward, False, {}
class Unused(gym.Env):
    def step(self, action):
        return action * 3, 0, False, {}
gym.register(id="Hop-v0", entry_point="%s:Hopper" % __name__)
env = gym.make("Hop-v0")
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.2)
for turn in range(9):
    state, reward, done, more = env.step(net(torch.ones(3)))
    loss = -reward
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    found = listed(write(HEAD + own))
    assert has(found, "reward = action.sum() - 1e-3", "return self.state, reward") and not has(
        found, "return action * 3"
    )


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        # what a function that calls itself gives was followed without an end
        (
            "def depth(tree):\n    return max(depth(tree[0]), depth(tree[1])) + 1\nnet.depth = depth(net)\n",
            "net.depth =",
        ),
        # a number of what is not known was taken for a known one
        ("warm = int(0.1 * len(loader))\nplan = warmup(opt, warm)\n", "warm = int"),
        # what a function reads that another calls
        ("longest = 3 * size()\ndef short(row):\n    return row < longest\nrows = filtered(opt, short)\n", "longest ="),
        # the end of a run
        ("for x, y in loader:\n    criterion(net(x), y).backward()\n    if x.sum() > 9:\n        exit(0)\n", "exit(0)"),
    ],
)
def test_what_a_step_reads_in_another_way_is_listed(write: Write, lines: str, wanted: str) -> None:
    assert has(listed(write(HEAD + REST + lines)), wanted)


def test_an_option_that_the_script_computes_is_listed_where_all_options_are_handed_on(write: Write) -> None:
    """It was said to reach only prints: no line reads options.rate by its name."""
    own = """
import argparse, library
parser = argparse.ArgumentParser()
parser.add_argument("--rate", default=0.1)
options = parser.parse_args()
options.rate = options.rate * torch.cuda.device_count()
"""
    text = REST.replace("torch.optim.SGD(net.parameters(), lr=0.2)", "library.made(net, options)")
    assert has(listed(write(HEAD + own + text)), "options.rate =")


def test_what_counts_on_in_an_object_is_listed(write: Write) -> None:
    """Reading knows only what it is the first time."""
    own = """
class Ring:
    def __init__(self):
        self.rows = [None, None]
        self.at = 0
    def put(self, row):
        self.rows[self.at] = row
        self.at = (self.at + 1) % 2
ring = Ring()
"""
    text = REST.replace(
        "    for x, y in loader:\n", "    for x, y in loader:\n        ring.put(x)\n        x = ring.rows[0]\n"
    )
    assert has(listed(write(HEAD + own + text)), "self.at = (self.at + 1) % 2")


@pytest.mark.parametrize(("second", "wanted"), [("0.2", 0.2), ("0.4", "???")])
def test_the_rate_of_an_optimizers_groups_is_its_rate(write: Write, second: str, wanted: object) -> None:
    """torch's default stood in its place."""
    groups = f'[{{"params": net.fc.parameters(), "lr": 0.2}}, {{"params": net.layer1.parameters(), "lr": {second}}}]'
    script = write(HEAD + REST.replace("SGD(net.parameters(), lr=0.2)", f"AdamW({groups}, weight_decay=0.1)"))
    assert drafted(script)["optimizer"]["args"]["lr"] == wanted


def test_a_condition_that_every_batch_meets_is_none(write: Write) -> None:
    text = REST.replace("for x, y in loader:", "for i, (x, y) in enumerate(loader):")
    text = text.replace("        opt.zero_grad()\n", "")
    text = text.replace("opt.step()", "if (i + 1) % every == 0:\n            opt.step()\n            opt.zero_grad()")
    assert not listed(write(HEAD + "every = 1\n" + text))


@pytest.mark.parametrize(
    ("head", "wanted"), [("net.fc = nn.Linear(512, 12)", 12), ("net.fc = nn.Linear(512, count())", 7)]
)
def test_the_classes_of_a_new_head_are_the_models(write: Write, head: str, wanted: int) -> None:
    text = REST.replace("\ndata =", f"\n{head}\ndata =", 1)
    found = drafted(write(HEAD + text))
    assert found["model"]["args"]["num_classes"] == wanted and has(listed(write(HEAD + text)), "net.fc =")


@pytest.mark.parametrize(
    "lines",
    [
        "loss = (criterion(net(x), y) + net.fc.weight.norm()).mean()",  # its first term was the loss
        "loss = MixedLoss(criterion)(net(x), y)",  # what it is made of was
    ],
)
def test_a_loss_that_is_made_of_another_is_asked_for(write: Write, lines: str) -> None:
    own = "class MixedLoss(nn.Module):\n    def __init__(self, of):\n        super().__init__()\n        self.of = of\n"
    own += "    def forward(self, given, wanted):\n        return self.of(given, wanted) * given.abs().mean()\n"
    text = HEAD + own + REST.replace("loss = criterion(net(x), y)", lines)
    assert drafted(write(text))["loss"] == "???"


def test_a_loss_scale_of_which_nobody_knows_whether_it_is_on_is_asked_for(write: Write) -> None:
    text = REST.replace("\nfor epoch", "\nscaler = torch.amp.GradScaler(enabled=half())\nfor epoch")
    text = text.replace("loss.backward()", "scaler.scale(loss).backward()").replace("opt.step()", "scaler.step(opt)")
    assert drafted(write(HEAD + text))["dynamic_loss_scale"] == "???"


@pytest.mark.parametrize("made", ["nn.CrossEntropyLoss(weight=3)", "nn.BCEWithLogitsLoss(pos_weight=3)"])
def test_what_is_left_of_a_part_without_its_only_argument_is_no_riddle(write: Write, made: str) -> None:
    """An empty `args:` was refused in its place: "loss.args: Input should be a valid dictionary, got None"."""
    text = recipe_text(analyze_script(write(HEAD + REST.replace("nn.CrossEntropyLoss()", made))))
    left = [line for line in yaml.safe_load(text)["not_in_this_recipe"] if "left out" in line]
    assert "valid dictionary" not in text and len(left) == 1 and "weight" in left[0]
    assert left[0].startswith("train.py:") and yaml.safe_load(text)["loss"]["name"] in made


def test_a_name_that_is_set_under_an_undecided_condition_is_perhaps_not(write: Write) -> None:
    """It counted as set, and an `else` of `if mask is not None` as what never runs."""
    own = "        mask = None\n        if torch.cuda.is_available():\n            mask = [x]\n"
    own += "        if mask is not None:\n            x = mask[0]\n        else:\n            x = x * 2\n"
    found = listed(write(HEAD + REST.replace("        loss = crit", f"{own}        loss = crit")))
    assert "x = x * 2 [only where not (mask is not None)]" in found


LEARN = "def learn(x, y):\n    opt.zero_grad()\n    criterion(net(x), y).backward()\n    opt.step()\n\n"
COUNTED = "for epoch in range(3):\n    for x, y in loader:\n        seen = seen + len(x)\n        batches += 1\n"


def counted(line: str) -> str:
    """A script that counts its batches, and trains in a function of its own."""
    return f"seen = batches = 0\n{HEAD}{REST[: REST.index('for epoch')]}{LEARN}{COUNTED}        {line}\n"


@pytest.mark.parametrize("condition", ["seen > 64", "batches % 2 == 0"])
def test_a_functions_statements_say_the_condition_around_its_call(write: Write, condition: str) -> None:
    """That nothing was updated in the first steps was not said: the update stands in a function of its own."""
    found = listed(write(counted(f"if {condition}: learn(x, y)")))
    assert has(found, f"opt.step() [only where {condition}]", f"opt.zero_grad() [only where {condition}]"), found


def test_a_function_that_is_called_twice_says_the_condition_of_each_call(write: Write) -> None:
    found = listed(write(counted("if seen > 64: learn(x, y)\n        else: learn(y, x)")))
    (line,) = (one for one in found if one.startswith("criterion(net(x), y).backward()"))
    assert "only where seen > 64, and at train.py:" in line and line.endswith("only where not (seen > 64)]")


STATE = """
class Scale:
    def __init__(self):
        self.mean, self.at = 0.0, 0

    def restart(self):
        self.at = 0

    def update(self, values):
        now = values.mean()
        self._move(now)

    def _move(self, now):
        self.mean = now
        self.at += 1

scale = Scale()
"""


def test_what_a_method_leaves_in_its_object_for_a_step_is_listed_through_all_calls(write: Write) -> None:
    """A store was "a copy", a restart "a value", and call and body each pointed at the other."""
    use = "        scale.update(y)\n        loss = criterion(net(x), y) * scale.mean / scale.at\n"
    text = REST.replace("        loss = criterion(net(x), y)\n", use)
    text = text.replace("    for x, y in loader:", "    scale.restart()\n    for x, y in loader:")
    found = listed(write(HEAD + STATE + text))
    assert has(found, "now = values.mean()", "self.mean = now", "self.at += 1", "self.at = 0"), found


def test_what_is_stored_in_an_object_of_a_library_is_listed_though_it_is_only_named(write: Write) -> None:
    text = "import graphs\nedges = graphs.read('edges')\ngraph = graphs.Graph()\ngraph['is', 'near'].index = edges\n"
    text += REST.replace("net(x)", "net(x, graph.all())")
    assert has(listed(write(HEAD + text)), "graph['is', 'near'].index = edges")


def test_a_function_that_is_imported_under_another_name_runs(write: Write) -> None:
    """It was said to run with other arguments only, or never."""
    own = "def train(net, opt, loss):\n    loss.backward()\n    opt.add_param_group({})\n"
    text = "from steps import train as one_step\n" + REST.replace(
        "        loss.backward()\n", "        one_step(net, opt, loss)\n"
    )
    script = write(HEAD + text)
    (script.parent / "steps.py").write_text(own)
    assert has(listed(script), "opt.add_param_group({})")


@pytest.mark.parametrize(
    ("seeds", "wanted"),
    [
        ("torch.manual_seed(3)\nrandom.seed(4)", ["random.seed(4)"]),
        ("random.seed(4)", ["random.seed(4)"]),
        ("torch.manual_seed(3)\nrandom.seed(3)\nnumpy.random.seed(3)", []),
        ("torch.manual_seed(3)\nrandom.seed(time.time())", ["random.seed(time.time())"]),
    ],
)
def test_a_seed_that_is_not_the_recipes_is_listed(write: Write, seeds: str, wanted: list[str]) -> None:
    found = listed(write(f"import random, time, numpy\n{HEAD}{seeds}\n{REST}"))
    assert [line for line in found if "seed" in line] == wanted


@pytest.mark.parametrize(
    ("moved", "per"), [("schedule.step()", "epoch"), ("schedule.step(epoch)", "???"), ("schedule.step(loss)", "???")]
)
def test_a_schedule_that_is_given_a_number_is_left_open(write: Write, moved: str, per: str) -> None:
    """`step(epoch)` inside the loop over batches was drafted as one that moves with every batch."""
    made = "schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 9)\n"
    text = REST.replace("for epoch", f"{made}for epoch") + f"    {moved}\n"
    assert drafted(write(HEAD + text))["schedule"]["per"] == per


def test_rounds_of_one_step_are_not_epochs(write: Write) -> None:
    start = REST.index("for epoch")
    text = REST[:start] + "x, y = next(iter(loader))\nfor epoch in range(4):\n    loss = criterion(net(x), y)\n"
    text += "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
    assert drafted(write(HEAD + text))["train"]["epochs"] == "???"


def test_what_is_clipped_where_several_things_train_is_listed(write: Write) -> None:
    text = REST.replace(
        "for epoch", "head = nn.Linear(7, 7)\nother = torch.optim.SGD(head.parameters(), lr=0.2)\nfor epoch", 1
    )
    clip = "nn.utils.clip_grad_norm_(head.parameters(), 0.5)"
    text = text.replace("        opt.step()", f"        {clip}\n        opt.step()\n        other.step()")
    assert any("head.parameters() is one of several" in line for line in listed(write(HEAD + text)))


def test_what_a_condition_on_the_loops_own_variable_leaves_out_is_listed(write: Write) -> None:
    """Reading knew each of the rounds, and took the last for all."""
    text = REST.replace("for epoch in range(4):\n", "for share in (0, 5, 10):\n    if share == 0:\n        continue\n")
    assert has(listed(write(HEAD + text)), "continue [only where share == 0")


def test_conditions_of_which_one_is_an_or_keep_their_brackets(write: Write) -> None:
    text = REST.replace(
        "        opt.step()", "        if one() or two():\n            if three():\n                opt.step()"
    )
    assert any("[only where (one() or two()) and three()" in line for line in listed(write(HEAD + text)))


def test_a_term_of_a_loss_that_is_left_open_is_listed(write: Write) -> None:
    """It was "the step of a recipe", whose loss the draft does not say."""
    text = REST.replace(
        "loss = criterion(net(x), y)", "near = nn.functional.mse_loss(net(x), y)\n        loss = near + own(x)"
    )
    assert has(listed(write(HEAD + text)), "near = nn.functional.mse_loss(net(x), y)")


def test_what_the_names_of_a_listed_line_stand_for_is_said(write: Write) -> None:
    """Defaults of arguments stood nowhere in a draft whose library trains, and long calls were cut at 160 letters."""
    given = "".join(f"logging_option_{i}={i}, " for i in range(12))
    own = f"""
import argparse, transformers, trl
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=5e-5)
parser.add_argument("--model", default="bert-base")
known = parser.parse_args()
device, rounds = "cuda:0", 3
def made(width):
    return nn.Linear(width, 2)
for width in (8, 16):
    head = made(width)
settings = trl.SFTConfig({given}learning_rate=known.lr, num_train_epochs=rounds)
model = transformers.AutoModel.from_pretrained(known.model).to(device)
transformers.Trainer(model=model, args=settings, train_dataset=torch.load("a.pt")).train()
"""
    found = listed(write(HEAD + own))
    (line,) = (one for one in found if one.startswith("settings = "))
    assert line.endswith("num_train_epochs=rounds) [known.lr is 5e-05, rounds is 3]") and "…" not in line
    assert any(one.endswith(".to(device) [known.model is 'bert-base']") for one in found)
    assert not any("width is" in one for one in found), "it is one thing, then another"


def test_a_default_is_taken_where_the_script_calls_without_arguments(write: Write) -> None:
    loop = REST.replace("range(4)", "range(rounds)").replace("\n", "\n    ")
    assert drafted(write(HEAD + f"def train(rounds=9):{loop}\ntrain()\n"))["train"]["epochs"] == 9
    assert drafted(write(HEAD + f"def train(rounds=9):{loop}\nrun(train)\n"))["train"]["epochs"] == "???"


@pytest.mark.parametrize(
    "loops",
    [
        "epochs = tqdm(range(rounds))\nfor epoch in epochs:\n    bar = tqdm(loader, total=9)\n    for x, y in bar:",
        "for epoch in tqdm.tqdm(range(rounds)):\n  with tqdm.tqdm(loader) as bar:\n    for x, y in bar:",
    ],
)
def test_a_loop_over_a_progress_bar_with_a_name_is_one_over_what_it_shows(write: Write, loops: str) -> None:
    """How many epochs there are stood nowhere in the draft, and the step was listed line by line."""
    head, _, rest = REST.partition("for epoch in range(4):\n    for x, y in loader:")
    imported = "import tqdm" if "tqdm.tqdm" in loops else "from tqdm import tqdm"
    script = write(f"{HEAD}{imported}\nrounds = 4\n{head}{loops}{rest}")
    assert drafted(script)["train"]["epochs"] == 4 and listed(script) == []


def test_how_long_a_list_is_that_a_loop_fills_is_not_known(write: Write) -> None:
    """It was the length after one round: `[cut is 0]` stood behind the line."""
    own = """
rows, few = [], []
for row in torch.load("rows.pt"):
    rows.append(row)
for row in (1, 2, 3):
    few.append(row)
cut, three = int(len(rows) * 0.8), len(few)
data = my_own(rows[:cut], three)
"""
    rest = REST.replace('data = datasets.ImageFolder("/birds/train", transforms.ToTensor())', "")
    found = listed(write(HEAD + own + rest))
    (line,) = (one for one in found if one.startswith("data = "))
    assert "cut is" not in line and "three is 3" in line


def test_a_batch_that_is_drawn_before_the_loop_is_not_the_steps(write: Write) -> None:
    """It draws from what shuffles, and what is made by it stood nowhere."""
    first = "first, _ = next(iter(loader))\nnet.fc = nn.Linear(first.shape[1], 7)\n"
    found = listed(write(HEAD + REST.replace("for epoch", f"{first}for epoch")))
    assert has(found, "first, _ = next(iter(loader))")
    own = REST.replace(
        "for x, y in loader:", "batches = iter(loader)\n    for i in range(9):\n        x, y = next(batches)"
    )
    assert not has(listed(write(HEAD + own)), "x, y = next(batches)")


def test_what_a_method_sets_again_has_no_value_behind_a_listed_line(write: Write) -> None:
    """`[self.at is 0]` stood behind a line that runs with every place of a ring: it is what `__init__` says."""
    own = """
class Ring:
    def __init__(self, most):
        self.most, self.at, self.kept, self.cut = most, 0, [], 0
    def add(self, net, x):
        self.kept[self.at] = net(x).sum()
        self.at = (self.at + 1) % self.most
    def begin(self):
        self.cut = 5
    def shrink(self, net):
        net.fc.weight.data[self.cut, self.most] = 0
ring, sizes = Ring(32), {"rate": 0.5, "name": "ring"}
"""
    rest = REST.replace("opt.step()", 'opt.step()\n        ring.shrink(net)\n        net.fc.bias.data *= sizes["rate"]')
    found = listed(write(HEAD + own + rest))
    (line,) = (one for one in found if one.startswith("net.fc.weight.data"))
    assert "self.most is 32" in line and "self.cut is" not in line
    assert has(found, "net.fc.bias.data *= sizes[\"rate\"] [sizes['rate'] is 0.5]"), "an element has a value, too"


@pytest.mark.parametrize(
    ("seed", "is_listed"), [("random.randint(0, 1000)", True), ("7 + int(input())", True), ("7", False)]
)
def test_a_seed_that_is_not_known_is_listed(write: Write, seed: str, is_listed: bool) -> None:
    """It was passed over as one "which the recipe has", where the recipe had none."""
    found = listed(write(f"{HEAD}\nimport random\nseed = {seed}\ntorch.manual_seed(seed)\nrandom.seed(seed)\n{REST}"))
    assert has(found, "torch.manual_seed(seed)", "random.seed(seed)") is is_listed


def test_the_calls_of_a_listed_line_are_said_where_one_has_a_condition(write: Write) -> None:
    """How often a target follows the net stood nowhere: its function is also called once where it is made."""
    own = """
import copy
def follow():
    target.load_state_dict(net.state_dict())
def twice():
    target.fc.bias.data.zero_()
"""
    rest = REST.replace("criterion =", "target = copy.deepcopy(net)\nfollow()\ntwice()\ntwice()\ncriterion =")
    rest = rest.replace(
        "opt.step()", "opt.step()\n        count += 1\n        if count % 50 == 0:\n            follow()"
    )
    found = listed(write(f"{HEAD}count = 0\n{own}{rest}"))
    (line,) = (one for one in found if one.startswith("target.load_state_dict"))
    assert "[called at train.py:" in line and line.endswith("only where count % 50 == 0]")
    (line,) = (one for one in found if one.startswith("target.fc.bias"))
    assert "called at" not in line, "neither call has a condition"


def test_gradients_that_are_cleared_whenever_they_are_computed_do_not_add_up(write: Write) -> None:
    """A step under a condition was told that its gradients add up, for the condition is around `zero_grad()`, too."""
    step = ("opt.zero_grad()", "loss.backward()", "opt.step()")
    start = REST.partition("        opt.zero_grad()")[0] + "        count += 1\n        if count % 3 == 1:\n"
    whole = start + "".join(f"            {line}\n" for line in step)
    assert not any("add up" in line for line in listed(write(f"{HEAD}count = 0\n{whole}")))
    cleared = start + f"            {step[0]}\n        {step[1]}\n        {step[2]}\n"
    assert any("add up" in line for line in listed(write(f"{HEAD}count = 0\n{cleared}")))


@pytest.mark.parametrize(
    ("before", "is_listed"),
    [
        ("F.softmax(net(torch.ones(2, 3, 32, 32)), dim=1)", True),
        ("print(net(torch.ones(2, 3, 32, 32)).shape)", True),
        ("with torch.no_grad():\n    print(net(torch.ones(2, 3, 32, 32)).shape)", True),
        ("net.eval()\nprint(net(torch.ones(2, 3, 32, 32)).shape)\nnet.train()", False),
    ],
)
def test_a_forward_pass_in_training_mode_is_listed_wherever_it_stands(
    write: Write, before: str, is_listed: bool
) -> None:
    """Running statistics move in it, and dropout draws: it was passed over, for its result is only printed."""
    found = listed(write(HEAD + REST.replace("for epoch", f"{before}\nfor epoch")))
    assert (
        any(
            line.endswith("[the model runs here in training mode: its statistics move, and it draws]") for line in found
        )
        is is_listed
    )


def test_what_a_function_is_given_names_the_line_of_its_call(write: Write) -> None:
    """`batch: 4` named the loader's line alone, which says `batch_size=size`, and not the call that says 4."""
    rest = REST.replace("loader = DataLoader(data, batch_size=16,", "loader = made(data, size=4,").replace(
        "shuffle=True, drop_last=True)", "keep=False)"
    )
    loader = "DataLoader(data, batch_size=size, shuffle=True, drop_last=True)"
    script = write(f"{HEAD}def made(data, size=2, keep=True):\n    return {loader}\n{rest}")
    text = recipe_text(analyze_script(script))
    at = next(number for number, line in enumerate(script.read_text().splitlines(), 1) if "size=4" in line)
    assert f"# train.py line {at}: size=4\n  batch: 4" in text


def test_a_model_that_could_not_be_read_is_asked_for_at_its_line(write: Write) -> None:
    """ "Which model is trained was not found" stood where the optimizer says it, and only its class was not read."""
    rest = REST.replace("torchvision.models.resnet18(num_classes=7)", "Elsewhere(7).to(device)")
    script = write(f"{HEAD}from elsewhere import Elsewhere\ndevice = 'cuda'\n{rest}")
    text = recipe_text(analyze_script(script))
    assert "net = Elsewhere(7).to(device): what this makes was not read" in text and "not found" not in text


def test_what_a_property_gives_is_followed(write: Write) -> None:
    """The file of the labels stood nowhere: nothing led from the attribute that is read to the method that gives it."""
    own = """
import functools, pandas
class Settings:
    def __init__(self, root):
        self.root = root
    @property
    def rate(self):
        return 0.125
    @functools.cached_property
    def labels(self):
        return self.root + "/labels.csv"
settings = Settings("/birds")
"""
    rest = REST.replace("lr=0.2", "lr=settings.rate").replace(
        "net = ", "table = pandas.read_csv(settings.labels)\nnet = "
    )
    rest = rest.replace('"/birds/train"', "choose(table)")
    script = write(HEAD + own + rest)
    assert drafted(script)["optimizer"]["args"]["lr"] == 0.125
    found = listed(script)
    assert has(found, "table = pandas.read_csv(settings.labels) [settings.labels is '/birds/labels.csv']"), found


def test_an_optimizer_and_a_loss_that_could_not_be_read_are_asked_for_at_their_lines(write: Write) -> None:
    """ "No optimizer was found" and "which loss was not found" stood where the script says both."""
    rest = REST.replace("torch.optim.SGD(net.parameters(), lr=0.2)", "Adan(net.parameters(), lr=0.2)")
    rest = rest.replace("torchvision.models.resnet18(num_classes=7)", "Elsewhere(7)")
    rest = rest.replace("loss = criterion(net(x), y)", "near = far(net(x), y)\n        loss = near + far(x, y)")
    text = recipe_text(analyze_script(write(f"{HEAD}from elsewhere import Adan, Elsewhere, far\n{rest}")))
    assert "opt = Adan(net.parameters(), lr=0.2): what this makes was not read" in text
    assert "net = Elsewhere(7): what this makes was not read" in text
    assert "loss = near + far(x, y): the backward pass starts from this, and its loss was not read" in text


def test_what_stands_in_place_of_an_attribute_that_was_not_read_is_no_value(write: Write) -> None:
    """`getattr(cfg, "rate", 0.3)` gave 0.3 where `cfg` came from a file that nobody read."""
    settings = "import yaml, types\ncfg = yaml.safe_load(open('cfg.yml'))\nown = types.SimpleNamespace()\n"
    known = "class Options:\n    momentum = 0.5\noptions = Options()\n"
    rest = REST.replace("lr=0.2", "lr=getattr(cfg, 'rate', 0.3), momentum=getattr(options, 'other', 0.75)")
    args = drafted(write(f"{HEAD}{settings}{known}{rest}"))["optimizer"]["args"]
    assert args["lr"] == "???" and args["momentum"] == 0.75


def test_a_method_of_the_same_name_calls_no_function(write: Write) -> None:
    """`net.train()` counted as a call of the function `train`, and what is in it was drafted: half precision."""
    dead = """
def train(net, opt, scaler, loader):
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(net(x), y)
            loss += net.penalty() * 0.1
        scaler.scale(loss).backward()
        scaler.step(opt)
names = ["car", "train"]
"""
    script = write(HEAD + dead + REST.replace("net = ", "net = ", 1).replace("for epoch", "net.train()\nfor epoch"))
    assert "amp" not in drafted(script) and drafted(script)["loss"]["name"] == "CrossEntropyLoss"
    assert not has(listed(script), "scaler.step(opt)")
    ways = ("train(net, opt, None, loader)", "import helpers\nhelpers.run(train)", "globals()['train'](net, opt)")
    for way in (
        *ways,
        "import sys\nglobals()[sys.argv[1]](net)",
        "import sys\ngetattr(sys.modules[__name__], sys.argv[1])(net)",
    ):
        assert has(listed(write(f"{HEAD}{dead}{REST}\n{way}\n")), "scaler.step(opt)"), way


def test_a_model_around_a_librarys_is_the_scripts_own(write: Write) -> None:
    """The one inside of it was drafted, with its own number of classes; and parameters that were handed over were "not
    all of the model"."""
    own = """
class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torchvision.models.resnet18(num_classes=16)
        self.body.fc = nn.Identity()
        self.head = nn.Linear(512, 1300)
    def forward(self, x):
        return self.head(self.body(x))
def chosen(parameters, rate):
    return torch.optim.SGD(parameters, lr=rate)
"""
    rest = REST.replace("torchvision.models.resnet18(num_classes=7)", "Wide()")
    script = write(
        HEAD + own + rest.replace("torch.optim.SGD(net.parameters(), lr=0.2)", "chosen(net.parameters(), 0.2)")
    )
    assert drafted(script)["model"] == "???" and drafted(script)["optimizer"]["args"]["lr"] == 0.2
    assert not any("not the whole model" in line for line in listed(script))
    part = script.read_text().replace("chosen(net.parameters(), 0.2)", "chosen(net.head.parameters(), 0.2)")
    assert any("not the whole model" in line for line in listed(write(part)))


def test_what_a_loop_names_has_no_one_value(write: Write) -> None:
    """ "cls is 0" stood behind a line that reads it in every round."""
    loop = """    for cls in range(7):
        if cls not in done:
            net.fc.bias.data[cls] = known.get(cls, 0.0)
            done.add(cls)
    for x, y in loader"""
    rest = REST.replace("    for x, y in loader", loop)
    found = listed(write(f"{HEAD}known = {{}}\ndone = set()\n{rest}"))
    assert has(found, "net.fc.bias.data[cls] = known") and not any("cls is" in line for line in found), found


def test_options_that_a_library_reads_are_listed(write: Write) -> None:
    """What a data class sets of the library's own was passed over where the script itself did not read it."""
    script = write("""
from dataclasses import dataclass, field
import torch, transformers
@dataclass
class Training(transformers.TrainingArguments):
    lr_scheduler_type: str = field(default="cosine")
    run_name: str = field(default=None)
@dataclass
class Own:
    unread: int = 3
made = transformers.HfArgumentParser((Training, Own)).parse_args_into_dataclasses()
trainer = transformers.Trainer(model=transformers.AutoModel.from_pretrained("x"), args=made[0])
trainer.train()
""")
    found = listed(script)
    assert has(found, 'lr_scheduler_type="cosine" of Training') and len(found) == 3, found
    unclear = script.read_text().replace("args=made[0]", "args=chosen()")
    read = "[transformers.TrainingArguments reads it]"
    again = [line for line in listed(write(unclear)) if read in line]
    assert again == [f'lr_scheduler_type: str = field(default="cosine") {read}']


def test_no_line_makes_the_model_where_several_optimizers_step(write: Write) -> None:
    """The line that makes a loss with weights of its own was named, for its optimizer alone had them in words."""
    script = write(f"""{HEAD}
from elsewhere import made, groups, losses
net = made()
far, centre = losses()
opt = torch.optim.SGD(groups(net), lr=0.1)
other = torch.optim.SGD(centre.parameters(), lr=0.5)
for epoch in range(3):
    for x, y in made():
        loss = far(net(x), y)
        loss.backward()
        opt.step()
        other.step()
""")
    assert "losses(): what this makes" not in recipe_text(analyze_script(script))


@pytest.mark.parametrize(
    "imports", ["from {} import other as rates", "import {0}.other\nrates = {0}.other", "from {}.other import *"]
)
def test_a_script_of_a_package_imports_by_the_packages_name(imports: str, write: Write, tmp_path: Path) -> None:
    """`python -m package.train` finds its files; they counted as of a library that is not there."""
    text = f"import torch\n{imports.format(tmp_path.name)}\n"
    text += f"torch.optim.SGD(model.parameters(), lr={'' if '*' in imports else 'rates.'}RATE)\n"
    assert drafted(write(text, other="RATE = 0.25\n"))["optimizer"]["args"]["lr"] == 0.25


STARTED = """
import torch, torch.nn as nn

class Small(nn.Module):
    def forward(self, x):
        return x

def fit(x, y, rounds):
    net = Small()
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(rounds):
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
    return net

def prepared(table):
    rows = table.dropna().head(500)
    return fit(rows.x, rows.y, 30)

def run(path):
    table = read(path).fillna(7)
    return prepared(table)

def unused(path):
    return read(path).fillna(9)
"""


def test_what_starts_the_steps_of_a_file_that_starts_none_is_read(write: Write) -> None:
    found = listed(write(STARTED))
    assert has(found, "rows = table.dropna().head(500)", "table = read(path).fillna(7)")
    assert not any("fillna(9)" in line for line in found)


def test_it_is_not_where_the_file_starts_them_itself(write: Write) -> None:
    found = listed(write(STARTED + "\nfit(read('x'), read('y'), 40)\n"))
    assert not any("fillna" in line or "head(500)" in line for line in found)


PICTURES = """
import torch, torch.nn as nn

class Picture(nn.Module):
    def __init__(self, path):
        super().__init__()
        self.pixels = load(path)

class Cloud:
    def __init__(self):
        self.points = nn.Parameter(torch.rand(100, 3))
        self.opt = torch.optim.Adam([{"params": [self.points], "lr": 0.3}], lr=0.0)

cloud = Cloud()
pictures = [Picture("a.png")]
for step in range(100):
    loss = (render(cloud.points) - pictures[0].pixels).abs().mean()
    loss.backward()
    cloud.opt.step()
    cloud.opt.zero_grad()
"""


def test_a_picture_in_a_class_of_modules_is_not_the_trained_model(write: Write) -> None:
    path = write(PICTURES)
    assert "Picture(" not in recipe_text(analyze_script(path)).partition("model: ???")[0]
    used = write(PICTURES.replace("render(cloud.points)", "pictures[0](cloud.points)"))
    assert drafted(used)["model"] == "???"


@pytest.mark.parametrize(
    "made",
    [
        "device = torch.device(kind())\nnet = load('x').to(device)",
        "net = load('x').cuda()",
        "net = tools.get(3)\nnet = net.to(kind())",
    ],
)
def test_what_chooses_a_device_is_not_named_as_the_model(made: str, write: Write) -> None:
    text = recipe_text(
        analyze_script(write(HEAD + REST.replace("net = torchvision.models.resnet18(num_classes=7)", made)))
    )
    model = text.partition("model: ???")[0]
    assert "load('x')" in model or "tools.get(3)" in model


@pytest.mark.parametrize(
    "call", ["train(data='birds.yaml', epochs=7001)", "tune(data='birds.yaml', epochs=7001, space=space)"]
)
def test_a_script_that_names_only_ultralytics_is_drafted(call: str, write: Write) -> None:
    path = write(
        f"from ultralytics import YOLO\n\nspace = {{'lr0': (0.1, 0.2)}}\nmodel = YOLO('n.pt')\nfound = model.{call}\n"
    )
    assert has(listed(path), "model = YOLO", f"found = model.{call}")
    assert drafted(path)["train"]["epochs"] == "???"
    assert "space" not in call or "space is {'lr0': [0.1, 0.2]}" in recipe_text(analyze_script(path))
