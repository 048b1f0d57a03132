"""No statement of a script is lost in silence, and no value is guessed: what a draft does not say, it lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from drafts import listed, reasons
from msmigrate.errors import BadRecipe
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.migrate.recipe_draft import statement_verdicts
from msmigrate.migrate.recipe_draft.draft import Draft, draft_recipe
from msmigrate.reports.script_analysis import recipe_text
from msmigrate.training.recipe import reader

Write = Callable[..., Path]

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
"""
MODEL = "net = torchvision.models.resnet18(num_classes=7)\n"
DATA = """
data = datasets.ImageFolder("/birds/train", transforms.ToTensor())
loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)
"""
OPTIMIZER = "opt = torch.optim.SGD(net.parameters(), lr=0.2)\n"
LOSS = "criterion = nn.CrossEntropyLoss()\n"
LOOP = """
for epoch in range(4):
    for x, y in loader:
        out = net(x)
        loss = criterion(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
PLAIN = HEAD + MODEL + DATA + LOSS + OPTIMIZER + LOOP


def draft(text: str) -> Any:
    return yaml.safe_load(text)


def left(script: Path) -> list[str]:
    """What the draft lists as not in it, without the places."""
    return [line.split(": ", 1)[1] for line in draft(recipe_text(analyze_script(script))).get("not_in_this_recipe", [])]


def with_line(anchor: str, line: str, text: str = PLAIN) -> str:
    """The script with lines behind another one, at its depth."""
    at = next(one for one in text.splitlines() if one.strip() == anchor.strip())
    depth = " " * (len(at) - len(at.lstrip()))
    return text.replace(at, "\n".join([at, *(depth + one for one in line.splitlines())]), 1)


def test_a_script_that_a_recipe_says_whole_has_nothing_left(write: Write, tmp_path: Path) -> None:
    script = write(PLAIN)
    text = recipe_text(analyze_script(script))
    assert "not_in_this_recipe" not in draft(text) and "???" not in "\n".join(text.splitlines()[3:])
    path = tmp_path / "whole.yaml"
    path.write_text(text, encoding="utf-8")
    recipe = reader.load(path)
    assert (recipe.model.name, recipe.model.args, recipe.data.batch) == ("resnet18", {"num_classes": 7}, 16)


@pytest.mark.parametrize(
    ("anchor", "line", "listed"),
    [
        # the model
        (MODEL, "net.fc = nn.Linear(512, 3)", "net.fc = nn.Linear(512, 3)"),
        (MODEL, "net.layer4[1].conv2 = nn.Identity()", "net.layer4[1].conv2 = nn.Identity()"),
        (MODEL, "nn.init.zeros_(net.fc.bias)", "nn.init.zeros_(net.fc.bias)"),
        (MODEL, "net.load_state_dict(torch.load('old.pt'))", "net.load_state_dict(torch.load('old.pt'))"),
        (MODEL, "setattr(net, 'fc', nn.Identity())", "setattr(net, 'fc', nn.Identity())"),
        (MODEL, "net = nn.utils.spectral_norm(net)", "net = nn.utils.spectral_norm(net)"),
        (MODEL, "net = adapted(torchvision.models.resnet18())", "net = adapted(torchvision.models.resnet18())"),
        (MODEL, "net.conv1.register_forward_hook(lambda m, i, o: o * 2)",
         "net.conv1.register_forward_hook(lambda m, i, o: o * 2)"),
        (MODEL, "del net.layer4[1]", "del net.layer4[1]"),
        # what is trained
        (MODEL, "for p in net.layer1.parameters():\n    p.requires_grad = False", "p.requires_grad = False"),
        (MODEL, "net.layer2.requires_grad_(False)", "net.layer2.requires_grad_(False)"),
        (MODEL, "for name, p in net.named_parameters():\n    if 'bn' in name:\n        p.requires_grad = False",
         "p.requires_grad = False [only where 'bn' in name]"),
        # which of its parts are in training mode
        ("for epoch in range(4):", "    net.bn1.eval()", "net.bn1.eval()"),
        ("for epoch in range(4):", "    for m in net.modules():\n        m.eval()", "m.eval()"),
        ("for epoch in range(4):", "    for m in (net.bn1, net.layer1):\n        m.train(False)", "m.train(False)"),
        ("for epoch in range(4):", "    [m.eval() for m in net.layer1.children()]", "[m.eval() for m"),
        ("for epoch in range(4):", "    body = net.layer1\n    body.eval()", "body.eval()"),
        ("for epoch in range(4):", "    net.eval()", "net.eval()"),
        (MODEL, "net.train(mode=False)", "net.train(mode=False)"),
        # gradients
        ("        loss.backward()", "nn.utils.clip_grad_norm_(net.fc.parameters(), 0.5)",
         "net.fc.parameters() is what it clips, not the model"),
        ("        loss.backward()", "nn.utils.clip_grad_value_(net.parameters(), 0.5)",
         "nn.utils.clip_grad_value_(net.parameters(), 0.5)"),
        ("        loss.backward()", "for p in net.parameters():\n    p.grad += p.data", "p.grad += p.data"),
        ("        loss.backward()", "for p in net.parameters():\n    p.grad.mul_(2)", "p.grad.mul_(2)"),
        # the loss
        ("        loss = criterion(out, y)", "loss = loss + out.mean()", "loss = loss + out.mean()"),
        ("        loss = criterion(out, y)", "loss *= 3", "loss *= 3"),
        ("        out = net(x)", "out = out / 2.5", "out = out / 2.5"),
        # data
        ("    for x, y in loader:", "    x = x[: len(x) // 2 * 2]", "x = x[: len(x) // 2 * 2]"),
        ("    for x, y in loader:", "    x = 1 - x", "x = 1 - x"),
        ("    for x, y in loader:", "    x, y = x.flip(0), y", "x, y = x.flip(0), y"),
        ("    for x, y in loader:", "    if len(x) < 16:\n        continue", "continue [only where len(x) < 16]"),
        ("    for x, y in loader:", "    x = x[:8].to('cuda')", "x = x[:8].to('cuda')"),
        ("for epoch in range(4):", "    data.samples = data.samples[::2]", "data.samples = data.samples[::2]"),
        ("for epoch in range(4):", "    data.samples.reverse()", "data.samples.reverse()"),
        ("for epoch in range(4):", "    data.transform.transforms.insert(0, transforms.Resize(9))",
         "data.transform.transforms.insert(0, "),
        ("for epoch in range(4):", "    loader.batch_sampler.batch_size = 8", "loader.batch_sampler.batch_size = 8"),
        # the rate
        (OPTIMIZER, "for g in opt.param_groups:\n    g['lr'] = 1e-6", "g['lr'] = 1e-6"),
        ("        opt.step()", "if epoch > 2:\n    opt.param_groups[0]['lr'] *= 0.5",
         "opt.param_groups[0]['lr'] *= 0.5 [only where epoch > 2]"),
        (OPTIMIZER, "opt.add_param_group({'params': extra})", "opt.add_param_group({'params': extra})"),
        # how long
        ("        opt.step()", "if loss.item() < 0.01:\n    break", "break [only where loss.item() < 0.01]"),
        # what nobody knows
        (MODEL, "prepare(net)", "prepare(net)"),
        ("        opt.step()", "callbacks.after_step(net, opt)", "callbacks.after_step(net, opt)"),
    ],
)  # fmt: skip
def test_what_touches_training_is_listed(anchor: str, line: str, listed: str, write: Write) -> None:
    found = left(write(with_line(anchor.strip("\n"), line)))
    assert any(one.startswith(listed) for one in found), found


# what changes the model, gradients, the optimizer, the rate or a batch, and behind which line
CHANGES = {
    "net.half()": MODEL.strip(),
    "net.to(torch.float64)": MODEL.strip(),
    "net.add_module('fc', nn.Identity())": MODEL.strip(),
    "net.load_state_dict(torch.load('old.pt'))": MODEL.strip(),
    "next(net.parameters()).data.mul_(2)": "        opt.step()",
    "setattr(net, 'fc', nn.Identity())": MODEL.strip(),
    "net.fc.weight.grad.zero_()": "        loss.backward()",
    "opt.param_groups[0].update(lr=1)": "        opt.step()",
    "opt.param_groups[0].__setitem__('lr', 1)": "        opt.step()",
    "opt.state.clear()": "        opt.step()",
    "loss.mul_(2)": "        loss = criterion(out, y)",
    "out[0].fill_(0)": "        out = net(x)",
    "x.mul_(2)": "    for x, y in loader:",
    "x[0].view(-1).clamp_(0, 1)": "    for x, y in loader:",
    "F.relu_(x)": "    for x, y in loader:",
    "F.dropout(x, 0.5, inplace=True)": "    for x, y in loader:",
    "torch.neg(x, out=x)": "    for x, y in loader:",
    "random.shuffle(x)": "    for x, y in loader:",
    "data.samples.pop()": "    for x, y in loader:",
}


@pytest.mark.parametrize(
    "form",
    [
        *("{}", "kept = {}", "kept: object = {}", "kept = [{}, 1]", "kept = {{'a': {}}}", "kept, *_ = [{}]"),
        *("kept = 1 if {} is None else 2", "(kept := {})", "kept = (lambda: {})()", "None if {} else None"),
        *("print({})", "print(f'{{{}}}')", "torch.save({}, 'a.pt')", "str({})", "any(one is None for one in [{}])"),
        *("if {} is None:\n    pass", "while {} is None:\n    pass", "for _ in [{}]:\n    pass", "assert {} is None"),
        *("with torch.no_grad():\n    {}", "try:\n    {}\nexcept ValueError:\n    pass", "del [{}][0]"),
    ],
)
def test_a_call_that_changes_something_is_listed_wherever_it_stands(form: str, write: Write) -> None:
    """The rest of what the statement does is harmless, and its value is not used."""
    lost = []
    for call, anchor in CHANGES.items():
        line = form.format(call.replace("'", '"') if form.startswith("print(f") else call)
        depth = "    " if anchor.endswith(":") else ""
        text = with_line(anchor, "\n".join(depth + one for one in line.splitlines()))
        lost += [call] if left(write(text.replace(HEAD, f"import random\n{HEAD}"))) == [] else []
    assert lost == []


@pytest.mark.parametrize(
    ("anchor", "line"),
    [
        (MODEL, "[q.requires_grad_(False) for q in net.parameters()]"),
        (MODEL, "list(map(lambda q: q.requires_grad_(False), net.parameters()))"),
        (MODEL, "all(q.data.zero_() is None for n, q in net.named_parameters() if 'bn' in n)"),
        (OPTIMIZER, "[g.update(lr=1) for g in opt.param_groups]"),
        ("    for x, y in loader:", "    [one.mul_(2) for one in x]"),
        ("        loss.backward()", "torch._foreach_mul_([q.grad for q in net.parameters()], 2)"),
        (LOSS, "criterion.reduction = 'sum'"),
        (LOSS, "criterion.label_smoothing = 0.1"),
        (MODEL, "models = {'a': net}\nmodels['a'].half()"),
        ("    for x, y in loader:", "    net = net.eval()"),
        ("    for x, y in loader:", "    right = [x for x in (x * 2).unbind()]\n    x = x / 2"),
    ],
)
def test_what_changes_by_another_name_is_listed(anchor: str, line: str, write: Write) -> None:
    assert left(write(with_line(anchor.strip("\n"), line)))


def test_gradients_that_no_optimizer_takes_are_said(write: Write) -> None:
    why = "no step() of an optimizer was found that takes these gradients"
    assert f"loss.backward() [{why}]" in left(write(PLAIN.replace("        opt.step()\n", "")))


@pytest.mark.parametrize(
    ("anchor", "line"),
    [
        ("    for x, y in loader:", "    shown = x.clone().mul_(2)\n    print(shown.mean())"),
        ("    for x, y in loader:", "    shown = (x * 2).clamp_(0, 1)\n    print(shown.mean())"),
        ("        opt.step()", "right = out.argmax(1).eq_(y).sum().item()\nprint(right)"),
        ("        opt.step()", "seen = []\nseen.append(loss.item())\nprint(seen.pop())"),
        ("        opt.step()", "shown = sorted([(q.numel(), 1) for q in net.parameters()], key=lambda q: q[0])"),
        ("        opt.step()", "assert len(x) == len(y), [one.shape for one in x]"),
    ],
)
def test_what_changes_only_what_nobody_trains_with_is_silent(anchor: str, line: str, write: Write) -> None:
    assert left(write(with_line(anchor.strip("\n"), line))) == []


@pytest.mark.parametrize(
    ("anchor", "line"),
    [
        (MODEL, "net = net.to('cuda')"),
        (MODEL, "net.train()"),
        (MODEL, "print(sum(p.numel() for p in net.parameters()))"),
        ("        opt.step()", "print(epoch, loss.item())"),
        ("        opt.step()", "total = loss.item() * len(x)\nprint(total)"),
        ("        opt.step()", "right = (out.argmax(1) == y).float().mean()\nprint(right)"),
        ("        opt.step()", "torch.save(net.state_dict(), 'last.pt')"),
        ("    for x, y in loader:", "    x, y = x.to('cuda', non_blocking=True), y.to('cuda')"),
        (OPTIMIZER, "started = __import__('time').time()"),
        (OPTIMIZER, "history = []"),
    ],
)
def test_what_trains_nothing_is_silent(anchor: str, line: str, write: Write) -> None:
    assert left(write(with_line(anchor.strip("\n"), line))) == []


def test_validation_without_gradients_is_silent(write: Write) -> None:
    check = """
    net.eval()
    hits = 0
    with torch.no_grad():
        for a, b in loader:
            hits += (net(a).argmax(1) == b).sum()
    print(hits)
    net.train()
"""
    assert left(write(PLAIN + check)) == []


def test_modes_that_are_switched_back_before_training_are_silent(write: Write) -> None:
    start = "net.eval()\nwith torch.no_grad():\n    print(net(torch.ones(1, 3, 32, 32)))\n"
    looped = PLAIN.replace("    for x, y in loader:", "    net.train()\n    for x, y in loader:")
    assert left(write(with_line(MODEL.strip("\n"), start, looped))) == []


def test_a_weight_written_without_gradients_is_not(write: Write) -> None:
    noise = "    with torch.no_grad():\n        for p in net.parameters():\n            p.add_(torch.randn_like(p))\n"
    assert left(write(PLAIN + noise)) == ["p.add_(torch.randn_like(p)) [for p in net.parameters()]"]


@pytest.mark.parametrize(
    "given",
    [
        "net.fc.parameters()",
        "filter(lambda p: p.dim() > 1, net.parameters())",
        "[{'params': net.fc.parameters()}]",
    ],
)
def test_an_optimizer_of_a_part(given: str, write: Write) -> None:
    found = left(write(PLAIN.replace("net.parameters()", given)))
    assert found == [f"{given} is all that torch.optim.SGD trains, not the whole model"]


def test_a_schedule_that_moves_only_for_a_while(write: Write) -> None:
    made = with_line(OPTIMIZER.strip(), "plan = torch.optim.lr_scheduler.StepLR(opt, 2)")
    assert left(write(made + "    plan.step()\n")) == []
    assert left(write(made + "    if epoch < 3:\n        plan.step()\n")) == ["plan.step() [only where epoch < 3]"]


SCALED = """
scaler = torch.amp.GradScaler("cuda")
for epoch in range(4):
    for i, (x, y) in enumerate(loader):
        loss = criterion(net(x), y){divided}
        scaler.scale(loss).backward()
        if (i + 1) % 4 == 0:
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
"""


@pytest.mark.parametrize("divided", ["", " / 4"])
def test_accumulation_through_a_scaler(divided: str, write: Write) -> None:
    script = write(HEAD + MODEL + DATA + LOSS + OPTIMIZER + SCALED.replace("{divided}", divided))
    found = draft(recipe_text(analyze_script(script)))
    assert (found["accumulate"], found["data"]["batch"]) == (4, 64)
    said = "scaler.scale(loss).backward() [the losses of 4 micro-batches are added, and a recipe takes their mean]"
    assert left(script) == ([] if divided else [said])


def test_a_counter_that_is_no_accumulation(write: Write) -> None:
    """Two players, of which one steps every fifth time."""
    two = HEAD + MODEL + DATA + LOSS + OPTIMIZER + "judge = torchvision.models.resnet34()\n"
    two += "opt_judge = torch.optim.Adam(judge.parameters(), lr=1e-4)\nn_critic = 5\n"
    two += """
for epoch in range(4):
    for i, (x, y) in enumerate(loader):
        worse = criterion(judge(x), y)
        opt_judge.zero_grad()
        worse.backward()
        opt_judge.step()
        if i % n_critic == 0:
            better = criterion(net(x), y)
            opt.zero_grad()
            better.backward()
            opt.step()
"""
    found = draft(recipe_text(analyze_script(write(two))))
    assert "accumulate" not in found and found["optimizer"] == found["model"] == found["loss"] == "???"
    lines = left(write(two))
    why = " [the draft asks for the loss of this step]"
    rarely = " [only where i % n_critic == 0] [n_critic is 5]"
    parts = (f"worse.backward(){why}", "opt_judge.step()", f"better.backward(){rarely}")
    assert set(parts) <= set(lines)


def test_a_model_of_ones_own_is_asked_for(write: Write) -> None:
    own = """
class SmallResNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = torchvision.models.resnet50()
        self.head = nn.Linear(1000, classes)
    def forward(self, x):
        return self.head(self.backbone(x))
"""
    script = write(PLAIN.replace(MODEL, own + "net = SmallResNet(10)\n"))
    found = draft(recipe_text(analyze_script(script)))
    assert found["model"] == "???" and left(script) == []
    verdicts = {line.statement.text: line.verdict for line in Draft(analyze_script(script).interpreter).account.lines}
    assert verdicts["net = SmallResNet(10)"] == statement_verdicts.ASKED


def test_a_loss_of_ones_own_is_asked_for(write: Write, tmp_path: Path) -> None:
    dice = "def dice(a, b):\n    return 1 - 2 * (a * b).sum() / (a + b).sum()\n"
    found = left(write(PLAIN.replace(LOSS, dice).replace("criterion(out, y)", "dice(out.sigmoid(), y)")))
    assert "loss = dice(out.sigmoid(), y)" in found
    assert (
        draft(recipe_text(analyze_script(write(PLAIN.replace(LOSS, dice).replace("criterion", "dice")))))["loss"]
        == "???"
    )


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("lr=0.2", "lr=rate_of(net)", "optimizer.args.lr"),
        ("batch_size=16", "batch_size=room()", "data.batch"),
        ('"/birds/train"', "folder()", "data.source"),
        ("range(4)", "range(rounds())", "train.epochs"),
        ("resnet18(num_classes=7)", "resnet18(num_classes=len(data.classes))", "model.args.num_classes"),
        ("resnet18(num_classes=7)", "resnet18(weights='DEFAULT')", "model.checkpoint"),
    ],
)
def test_what_cannot_be_told_is_asked_for(old: str, new: str, key: str, write: Write, tmp_path: Path) -> None:
    text = recipe_text(analyze_script(write(PLAIN.replace(old, new))))
    value = draft(text)
    for part in key.split("."):
        value = value[part]
    assert value == "???"
    path = tmp_path / "asks.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadRecipe, match=rf"{key}: \?\?\? stands for what the script does not say; write "):
        reader.load(path)


PARSER = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--rate', type=float, default=0.2)\n"
FIELDS = "from dataclasses import dataclass\n@dataclass\nclass Settings:\n    rate: float = 0.2\n    other: int = 3\n"


@pytest.mark.parametrize(
    "code",
    [
        "rate = 0.2\nfor one in read():\n    rate = 0.7\n",
        "rate = 0.2\nwhile read() > rate:\n    rate = 0.7\n",
        "table = {'rate': 0.2}\ntable[read()] = 0.7\nrate = table['rate']\n",
        "table = {'rate': 0.2}\ntable.update(read())\nrate = table['rate']\n",
        "table = {'rate': 0.2, **read()}\nrate = table['rate']\n",
        f"{PARSER}rate = p.parse_args(['--rate', '0.7']).rate\n",
        f"{PARSER}rate = p.parse_args(args=['--rate=0.7']).rate\n",
        f"{PARSER}rate = p.parse_args(namespace=read()).rate\n",
        f"{PARSER}p.set_defaults(**read())\nrate = p.parse_args().rate\n",
        f"{PARSER}args = p.parse_args()\nvars(args).update(read())\nrate = args.rate\n",
        f"{PARSER}args = p.parse_args()\nargs.__dict__.update(read())\nrate = args.rate\n",
        f"{FIELDS}rate = Settings(**read()).rate\n",
        f"{FIELDS}rate = Settings(*read()).rate\n",
        f"{FIELDS}settings = Settings()\nvars(settings).update(read())\nrate = settings.rate\n",
    ],
)
def test_a_value_that_may_be_another_is_asked_for(code: str, write: Write) -> None:
    """The value before was drafted, and for most of these no line said that another may follow."""
    script = write(PLAIN.replace(OPTIMIZER, code + OPTIMIZER.replace("lr=0.2", "lr=rate")))
    assert draft(recipe_text(analyze_script(script)))["optimizer"]["args"]["lr"] == "???"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (f"{PARSER}rate = p.parse_args([]).rate\n", 0.2),
        (f"{PARSER}rate = p.parse_args(['--other', '3']).rate\n", 0.2),
        (f"{PARSER}p.set_defaults(rate=0.7)\nrate = p.parse_args().rate\n", 0.7),
        ("table = {'rate': 0.2}\ntable.update(rate=0.7)\nrate = table['rate']\n", 0.7),
        ("table = {'rate': 0.2, **{'rate': 0.7}}\nrate = table['rate']\n", 0.7),
        (f"{FIELDS}rate = Settings(**{{'rate': 0.7}}).rate\n", 0.7),
        (f"{FIELDS}rate = Settings(**{{'other': 4}}).rate\n", 0.2),
        (f"{FIELDS}rate = Settings(rate=0.7, **read()).rate\n", 0.7),
        ("rate = 0.2\nfor one in read():\n    print(rate)\n", 0.2),
    ],
)
def test_a_value_that_is_known_is_drafted(code: str, expected: float, write: Write) -> None:
    script = write(PLAIN.replace(OPTIMIZER, code + OPTIMIZER.replace("lr=0.2", "lr=rate")))
    assert draft(recipe_text(analyze_script(script)))["optimizer"]["args"]["lr"] == expected


def test_a_draft_runs_when_each_line_is_settled(write: Write, tmp_path: Path) -> None:
    text = recipe_text(analyze_script(write(with_line(MODEL.strip(), "net.fc = nn.Linear(512, 3)"))))
    path = tmp_path / "left.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadRecipe, match=r"not_in_this_recipe: 1 line of the script .* first .*net\.fc.* under ignore:"):
        reader.load(path)
    path.write_text(text.replace("not_in_this_recipe:", "ignore:"), encoding="utf-8")
    assert reader.load(path).ignore == [
        f"{'train.py' if 'train.py:' in text else 'script.py'}:9: net.fc = nn.Linear(512, 3)"
    ]
    path.write_text(text.partition("not_in_this_recipe:")[0], encoding="utf-8")
    settled = reader.load(path)
    path.write_text("ignore: [no line]\n" + text.partition("not_in_this_recipe:")[0], encoding="utf-8")
    with pytest.raises(BadRecipe, match="does not begin with FILE:LINE:"):
        reader.load(path)
    path.write_text("ignore: ['a.py:3: x = 1']\n" + text.partition("not_in_this_recipe:")[0], encoding="utf-8")
    assert reader.load(path).digest == settled.digest  # nothing of a step


def test_functions_methods_and_files_are_followed(write: Write) -> None:
    inside = """
class Trainer:
    def __init__(self):
        self.net = torchvision.models.resnet18()
        self.freeze(self.net)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.2)
        self.count = 0
    def freeze(self, what):
        for p in what.layer1.parameters():
            p.requires_grad = False
    def fit(self, loader, criterion):
        for epoch in range(4):
            for x, y in loader:
                loss = criterion(self.net(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.count += 1
                if self.count > 100:
                    self.slow()
    def slow(self):
        for group in self.opt.param_groups:
            group["lr"] = 0.001
"""
    found = left(write(HEAD + inside + DATA + LOSS + "Trainer().fit(loader, criterion)\n"))
    assert any(one.startswith("p.requires_grad = False") for one in found)
    assert any(one.startswith('group["lr"] = 0.001') for one in found)  # though count is 1 in the first round


def test_a_class_that_a_library_drives(write: Write) -> None:
    lightning = """
import pytorch_lightning as pl
class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torchvision.models.resnet18()
    def training_step(self, batch, index):
        x, y = batch
        return F.cross_entropy(self.net(x), y) * 2
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.2)
pl.Trainer().fit(Lit(), loader)
"""
    found = left(write(HEAD + DATA + lightning))
    assert any(one.startswith("return F.cross_entropy(self.net(x), y) * 2") for one in found)
    assert any(one.startswith("pl.Trainer().fit(Lit(), loader)") for one in found)


LOSS_OF_PARTS = """
import torch
from torch import nn
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.MSELoss()
for x, y in torch.utils.data.DataLoader(data, batch_size=4):
    optimizer.zero_grad()
    out = model(x)
    {parts}
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "parts",
    [
        "loss = criterion(out, y)\n    loss += 0.1 * out.abs().mean()",
        "loss = criterion(out, y) + 0.1 * out.abs().mean()",
        "first = criterion(out, y) * 2\n    loss = first\n    if y.sum() > 0:\n        loss -= out.std()",
    ],
)
def test_a_loss_to_which_more_is_added_is_asked_for(parts: str, tmp_path: Path) -> None:
    """One of its terms is not the loss, whatever else is listed."""
    script = tmp_path / "train.py"
    script.write_text(LOSS_OF_PARTS.format(parts=parts), encoding="utf-8")
    text = draft_recipe(analyze_script(script))
    assert "loss: ???" in text.split("\n") and "more is added to it" in text


def test_a_loss_that_is_one_term_is_drafted(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(LOSS_OF_PARTS.format(parts="loss = criterion(out, y)"), encoding="utf-8")
    assert "  name: MSELoss" in draft_recipe(analyze_script(script)).split("\n")


SAMPLED = {
    "a variable": "share = DistributedSampler(data)\nloader = DataLoader(data, 16, sampler=share)",
    "by its place": "loader = DataLoader(data, 16, False, DistributedSampler(data))",
    "a condition": (
        "share = DistributedSampler(data) if torch.distributed.is_initialized() else None\n"
        "loader = DataLoader(data, 16, shuffle=share is None, sampler=share)"
    ),
    "the branch that is not taken": (
        "several = False\nshare = DistributedSampler(data) if several else torch.utils.data.RandomSampler(data)\n"
        "loader = DataLoader(data, 16, sampler=share)"
    ),
    "batches of it": (
        "share = DistributedSampler(data)\nparts = torch.utils.data.BatchSampler(share, 16, True)\n"
        "loader = DataLoader(data, batch_sampler=parts)"
    ),
    "batches in the call": (
        "loader = DataLoader(data, batch_sampler=torch.utils.data.BatchSampler(DistributedSampler(data), 16, True))"
    ),
    "a function": (
        "def made(of):\n    return DistributedSampler(of)\nloader = DataLoader(data, 16, sampler=made(data))"
    ),
    "a function's parameter": (
        "def made(of, by):\n    return DataLoader(of, 16, sampler=by)\nloader = made(data, by=DistributedSampler(data))"
    ),
    "a method's attribute": (
        "class Data:\n    def __init__(self, of):\n        self.share = DistributedSampler(of)\n"
        "    def load(self, of):\n        return DataLoader(of, 16, sampler=self.share)\nloader = Data(data).load(data)"
    ),
    "the name that torch offers it by, in a branch": (
        "if 'RANK' in os.environ:\n    share = torch.utils.data.DistributedSampler(data)\nelse:\n"
        "    share = torch.utils.data.RandomSampler(data)\nloader = DataLoader(data, 16, sampler=share)"
    ),
    "a dict": "options = {'sampler': DistributedSampler(data)}\nloader = DataLoader(data, 16, **options)",
    "a dict that is filled": (
        "options = {}\noptions['sampler'] = DistributedSampler(data)\nloader = DataLoader(data, 16, **options)"
    ),
    "a dict that is updated": (
        "options = dict(batch_size=16)\noptions.update(sampler=DistributedSampler(data))\n"
        "loader = DataLoader(data, **options)"
    ),
    "a dict that is updated where an option says it": (
        "parser = argparse.ArgumentParser()\nparser.add_argument('--several', action='store_true')\n"
        "options = {'batch_size': 16}\nif parser.parse_args().several:\n"
        "    options.update(sampler=DistributedSampler(data))\nloader = DataLoader(data, **options)"
    ),
    "a dict of two": (
        "options = {'batch_size': 16}\nloader = DataLoader(data, **{**options, 'sampler': DistributedSampler(data)})"
    ),
    "a class of one's own": (
        "class Sorted(DistributedSampler):\n    def __iter__(self):\n        return iter(sorted(super().__iter__()))\n"
        "loader = DataLoader(data, 16, sampler=Sorted(data))"
    ),
}
MADE = "loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)"
IMPORTED = "import argparse, os\nfrom torch.utils.data.distributed import DistributedSampler\n"


@pytest.mark.parametrize("way", SAMPLED)
def test_a_distributed_sampler_is_named_however_it_reaches_the_loader(way: str, write: Write) -> None:
    script = write(PLAIN.replace("import torchvision\n", f"import torchvision\n{IMPORTED}").replace(MADE, SAMPLED[way]))
    said = [line for line in left(script) if "is a DistributedSampler" in line]
    assert len(said) == 1 and "as msmigrate train --nproc does, and without set_epoch" in said[0]
    assert draft(recipe_text(analyze_script(script)))["data"]["batch"] == 16
    moving = script.read_text(encoding="utf-8").replace(
        "    for x, y", "    loader.sampler.set_epoch(epoch)\n    for x, y"
    )
    script.write_text(moving, encoding="utf-8")
    assert not any("without set_epoch" in line for line in left(script))


@pytest.mark.parametrize("given", ["**project.options()", "**(project.base() | {'sampler': DistributedSampler(data)})"])
def test_a_loader_that_is_given_what_was_not_read_is_asked_about(given: str, write: Write) -> None:
    made = f"loader = DataLoader(data, {given})"
    script = write(PLAIN.replace("import torchvision\n", f"import torchvision\n{IMPORTED}").replace(MADE, made))
    section = draft(recipe_text(analyze_script(script)))["data"]
    assert (section["batch"], section["shuffle"], section["drop_last"]) == ("???", "???", "???")
    said = [line for line in left(script) if given.replace("(project", "project").rstrip(")") in line]
    assert len(said) == 1 and ("is a DistributedSampler" in said[0]) == ("Distributed" in given)


def test_a_loader_that_is_given_two_tables_that_were_read_has_the_values_of_both(write: Write) -> None:
    made = "base = {'batch_size': 16}\nloader = DataLoader(data, **(base | {'sampler': DistributedSampler(data)}))"
    script = write(PLAIN.replace("import torchvision\n", f"import torchvision\n{IMPORTED}").replace(MADE, made))
    assert draft(recipe_text(analyze_script(script)))["data"]["batch"] == 16
    assert any("is a DistributedSampler" in line for line in left(script))


def test_what_a_dict_gives_beside_the_batch_size_is_no_place_of_it(write: Write) -> None:
    made = "options = {'batch_size': 16}\noptions.update(sampler=project.sampler(data, 3 * 4))\n"
    script = write(PLAIN.replace(MADE, f"{made}loader = DataLoader(data, **options)"))
    assert any(line.startswith("options.update(sampler=") for line in left(script))


def test_a_sampler_that_is_none_of_the_distributed_ones_is_not_named_so(write: Write) -> None:
    weighted = "loader = DataLoader(data, 16, sampler=torch.utils.data.WeightedRandomSampler(weights, 90))"
    (said,) = left(write(PLAIN.replace(MADE, weighted)))
    assert said.startswith("sampler=torch.utils.data.WeightedRandomSampler(weights, 90) of ")
    assert "Distributed" not in said


def test_a_sampler_of_elsewhere_that_is_told_of_the_epoch_is_named(write: Write) -> None:
    elsewhere = "loader, share = project.loaders(16)"
    script = write(PLAIN.replace(MADE, elsewhere).replace("    for x, y", "    share.set_epoch(epoch)\n    for x, y"))
    text = recipe_text(analyze_script(script))
    assert "share.set_epoch(epoch): a sampler that gives each process's share" in text


def test_batches_of_a_sampler_of_ones_own_are_asked_for(write: Write) -> None:
    own = "class Buckets(torch.utils.data.Sampler):\n    def __iter__(self):\n        return iter([[0, 1]])\n"
    script = write(PLAIN.replace(MADE, f"{own}loader = DataLoader(data, batch_sampler=Buckets(data))"))
    section = draft(recipe_text(analyze_script(script)))["data"]
    assert section["batch"] == "???" and not {"shuffle", "drop_last"} & set(section)


@pytest.mark.parametrize(
    ("lines", "argument", "batch", "named"),
    [
        ("total = 256\neach = total // torch.distributed.get_world_size()", "each", "???", "each = total // torch.d"),
        ("gpus = torch.cuda.device_count()\nBATCH = 32 * gpus", "BATCH", "???", "BATCH = 32 * gpus"),
        ("total = 256\neach = total // torch.cuda.device_count()", "each", "???", "total = 256"),
        ("total = 256", "total // torch.cuda.device_count()", "???", "total = 256"),
        ("total = 256\nof = 4\nBATCH = total // of", "BATCH", 64, "BATCH = total // of"),
        ("total = 256\nof = 4\nBATCH = total // of", "BATCH", 64, "of = 4"),
        ("def each(of):\n    return of // torch.cuda.device_count()", "each(256)", "???", "return of // torch"),
        ("options = {'batch': 8 * torch.cuda.device_count()}", "options['batch']", "???", "options = {'batch': 8 * t"),
        ("import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--gpus', type=int, default=2)\n"
         "args = parser.parse_args()\nBATCH = 32 * args.gpus", "BATCH", 64, "BATCH = 32 * args.gpus"),
        ("import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--gpus', type=int)\n"
         "args = parser.parse_args()\nBATCH = 32 * args.gpus", "BATCH", "???", "BATCH = 32 * args.gpus"),
        ("import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--batch', type=int, default=64)\n"
         "args = parser.parse_args()\nargs.batch = args.batch // torch.cuda.device_count()",
         "args.batch", "???", "args.batch = args.batch // torch.cuda"),
    ],
)  # fmt: skip
def test_a_batch_size_that_is_computed_names_the_line_that_computes_it(
    lines: str, argument: str, batch: object, named: str, write: Write
) -> None:
    made = f"{lines}\n{MADE.replace('16', argument)}"
    script = write(PLAIN.replace(MADE, made))
    text = recipe_text(analyze_script(script))
    assert draft(text)["data"]["batch"] == batch
    above = text.partition("  batch:")[0].split("source:")[1]
    assert any(named in line for line in above.splitlines() if line.strip().startswith("#")), above
    assert not any(named in line for line in left(script)), "it is asked for, and so not listed"


SWITCHES = [
    ("torch.backends.cuda.matmul.allow_tf32 = True", "on GPUs torch rounds more coarsely", True),
    ("torch.backends.cudnn.allow_tf32 = wanted()", "on GPUs torch rounds more coarsely", True),
    ('torch.backends.fp32_precision = "tf32"', "on GPUs torch rounds more coarsely", True),
    ('torch.set_float32_matmul_precision("medium")', "on GPUs torch rounds more coarsely", True),
    ("torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True", "on GPUs torch rounds", True),
    ("torch.backends.cuda.matmul.allow_tf32 = False", "it chooses how a device computes", False),
    ("torch.backends.cudnn.benchmark = True", "it chooses how a device computes", False),
    ("torch.use_deterministic_algorithms(True, warn_only=True)", "it chooses how a device computes", False),
    ("bar = tqdm(loader)", "a loop over it is a loop over its argument", False),
]


@pytest.mark.parametrize(("line", "why", "listed_"), SWITCHES, ids=[one[0] for one in SWITCHES])
def test_what_switches_a_device_says_so(line: str, why: str, listed_: bool, write: Write) -> None:
    """TF32 was passed over as a value that is used elsewhere; deterministic algorithms were listed without a word."""
    code = f"import torch\nfrom tqdm import tqdm\nloader = torch.utils.data.DataLoader(made(), 4)\n{line}\n"
    code += "net = torch.nn.Linear(3, 2)\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
    code += f"for x in {'bar' if 'tqdm' in line else 'loader'}:\n    net(x).backward()\n    opt.step()\n"
    path = write(code)
    assert reasons(path).get(line, why).startswith(why)  # the last but one touches nothing
    assert any(one.startswith(line) for one in listed(path)) == listed_
