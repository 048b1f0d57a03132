"""A step whose calls stand in another order, in another loop or more often than a recipe's is listed, and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drafts import drafted, listed
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.reports.script_analysis import recipe_text

Write = Callable[..., Path]

SCRIPT = """
import torch
import torch.nn as nn
import torchvision
from timm.data.mixup import Mixup
from timm.utils import ModelEmaV2
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

net = torchvision.models.resnet18(num_classes=7)
data = datasets.ImageFolder("/birds/train", transforms.ToTensor())
loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.2)
sched = torch.optim.lr_scheduler.StepLR(opt, 2)
ema = ModelEmaV2(net)
scaler = torch.amp.GradScaler()
"""
LOOP = """
for epoch in range(4):
{begin}
    for i, (x, y) in enumerate(loader):
        loss = criterion(net(x), y)
{batch}
{end}
"""
# the batch, and what stands before and behind the loop over batches -> what is listed, each with the reason
CLEARED, CLIPPED, EVERY = "opt.zero_grad()", "nn.utils.clip_grad_norm_(net.parameters(), 1.0)", "if (i + 1) % 4 == 0:"
UPDATE = "loss.backward(); opt.step(); opt.zero_grad()"
CASES = [
    ("opt.zero_grad() | loss.backward() | opt.step()", "", "", []),
    ("loss.backward() | opt.step() | net.zero_grad()", "", "", []),
    ("for p in net.parameters(): p.grad = None | loss.backward() | opt.step()", "", "", ["p.grad = None"]),
    ("loss.backward() | opt.step()", "", "", ["loss.backward() [nothing clears the gradients"]),
    ("loss.backward() | opt.step()", CLEARED, "", ["opt.zero_grad() [not at every step"]),
    ("if i % 3: opt.zero_grad() | loss.backward() | opt.step()", "", "", ["opt.zero_grad() [only where i % 3: else"]),
    ("loss.backward() | opt.zero_grad() | opt.step()", "", "", ["opt.zero_grad() [it clears the gradients before the"]),
    ("opt.zero_grad() | loss.backward(retain_graph=True) | loss.backward() | opt.step()", "", "",
     ["loss.backward(retain_graph=True)", "loss.backward() [a second backward pass in this step"]),
    ("opt.zero_grad() | opt.step() | loss.backward()", "", "", ["opt.step() [the update comes before the backward"]),
    ("opt.zero_grad() | loss.backward() | opt.step() | opt.step()", "", "", ["opt.step() [a second update"]),
    (f"opt.zero_grad() | loss.backward() | {CLIPPED} | opt.step()", "", "", []),
    (f"opt.zero_grad() | {CLIPPED} | loss.backward() | opt.step()", "", "", [f"{CLIPPED} [it clips before there are"]),
    (f"opt.zero_grad() | loss.backward() | opt.step() | {CLIPPED}", "", "", [f"{CLIPPED} [it clips after the update"]),
    ("opt.zero_grad() | loss.backward() | opt.step()", "", "sched.step()", []),
    ("opt.zero_grad() | loss.backward() | opt.step() | sched.step()", "", "", []),
    ("opt.zero_grad() | loss.backward() | opt.step()", "sched.step()", "", ["sched.step() [the rate moves before"]),
    ("opt.zero_grad() | loss.backward() | sched.step() | opt.step()", "", "", ["sched.step() [the rate moves before"]),
    ("opt.zero_grad() | loss.backward() | opt.step() | sched.step()", "", "sched.step()", ["sched.step() [the rate"]),
    ("opt.zero_grad() | loss.backward() | opt.step() | ema.update(net)", "", "", []),
    ("opt.zero_grad() | loss.backward() | ema.update(net) | opt.step()", "", "", ["ema.update(net) [it averages bef"]),
    ("opt.zero_grad() | loss.backward() | opt.step()", "", "ema.update(net)", ["ema.update(net) [it does not aver"]),
    ("net(x) | opt.zero_grad() | loss.backward() | opt.step()", "", "", ["net(x)"]),
    ("out = net(x) | opt.zero_grad() | loss.backward() | opt.step()", "", "", ["out = net(x) [the model runs again"]),
    ("opt.zero_grad() | scaler.scale(loss).backward() | scaler.step(opt) | scaler.update()", "", "", []),
    ("opt.zero_grad() | scaler.scale(loss).backward() | scaler.step(opt)", "", "", ["scaler.step(opt) [the loss scal"]),
    (
        f"opt.zero_grad() | scaler.scale(loss).backward() | {CLIPPED} | scaler.step(opt) | scaler.update()",
        "",
        "",
        [f"{CLIPPED} [it clips gradients that are still multiplied by the loss scale"],
    ),
    (
        f"opt.zero_grad() | scaler.scale(loss).backward() | scaler.unscale_(opt) | {CLIPPED} | scaler.step(opt) | "
        "scaler.update()",
        "",
        "",
        [],
    ),
    # one of two branches runs: neither is a second update
    (f"opt.zero_grad() | loss.backward() | if y.sum() > 3: {CLIPPED}; opt.step() | else: {CLIPPED}; opt.step()",
     "", "", [
        f"{CLIPPED} [only where y", "opt.step() [only where y", f"{CLIPPED} [only where not", "opt.step() [only",
    ]),
    # each of the calls is listed, and which side it is
    (f"if y.sum() > 3: {UPDATE} | else: {UPDATE}",
     "", "", [
        "loss.backward() [only where y", "opt.step() [only where y", "opt.zero_grad() [only where y",
        "loss.backward() [only where not", "opt.step() [only where not", "opt.zero_grad() [only where not (y",
    ]),
    # accumulated
    (f"(loss / 4).backward() | {EVERY} {CLIPPED}; opt.step(); opt.zero_grad(); sched.step()", "", "", []),
    (f"(loss / 4).backward() | {EVERY} opt.step()", "", "", ["(loss / 4).backward() [nothing clears"]),
    (f"loss.backward() | {EVERY} opt.step(); opt.zero_grad()", "", "", ["loss.backward() [the losses of 4 micro"]),
    (
        f"(loss / 4).backward() | {CLIPPED} | {EVERY} opt.step(); opt.zero_grad()",
        "",
        "",
        [f"{CLIPPED} [it clips the sum of every micro-batch"],
    ),
    (
        f"(loss / 4).backward() | {EVERY} opt.step(); opt.zero_grad() | sched.step()",
        "",
        "",
        ["sched.step() [the rate moves at every micro-batch"],
    ),
]  # fmt: skip

# the step in a closure that the update runs: its lines -> what is listed besides the update
CLOSED = [
    (f"opt.zero_grad() | loss = criterion(net(x), y) | loss.backward() | {CLIPPED} | return loss", []),
    ("loss = criterion(net(x), y) | loss.backward() | return loss", ["loss.backward() [nothing clears the gradients"]),
    ("loss = criterion(net(x), y) | loss.backward() | opt.zero_grad() | return loss",
     ["opt.zero_grad() [it clears the gradients before the update"]),
    (f"opt.zero_grad() | loss = criterion(net(x), y) | {CLIPPED} | loss.backward() | return loss",
     [f"{CLIPPED} [it clips before there are gradients"]),
    ("opt.zero_grad() | loss = criterion(net(x), y) | loss.backward(retain_graph=True) | loss.backward() | return loss",
     ["loss.backward() [a second backward pass in this step"]),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), CLOSED)
def test_the_order_in_a_closure(lines: str, expected: list[str], write: Write) -> None:
    """What an optimizer calls had no place in the loop, and nothing of the order was looked at."""
    body = "\n".join(" " * 12 + line for line in lines.split(" | "))
    loop = (
        f"for epoch in range(4):\n    for x, y in loader:\n        def closure():\n{body}\n        opt.step(closure)\n"
    )
    found = listed(write(f"{SCRIPT}{loop}    sched.step()\n"))
    order = [one for one in found if one.startswith(("opt.zero", "loss.backward()", CLIPPED))]
    assert "opt.step(closure)" in found and len(order) == len(expected), found
    assert all(any(line.startswith(one) for line in order) for one in expected), order
    assert any(
        "the rate moves here too" in one for one in listed(write(f"{SCRIPT}{loop}    sched.step(); sched.step()\n"))
    )


# micro-batches in a loop of their own, as language models are trained: what stands behind that loop -> what is listed
BEHIND = [
    (f"{CLIPPED} | opt.step() | opt.zero_grad()", []),
    ("opt.step()", ["(loss / 4).backward() [nothing clears the gradients"]),
    (f"opt.step() | {CLIPPED} | opt.zero_grad()", [f"{CLIPPED} [it clips after the update"]),
    ("opt.zero_grad() | opt.step()", ["opt.zero_grad() [it clears the gradients before the update"]),
    ("opt.step() | opt.step() | opt.zero_grad()", ["opt.step() [a second update in this step"]),
    ("opt.step() | sched.step() | opt.zero_grad()", ["sched.step() [the rate moves here too"]),
    ("sched.step() | opt.step() | opt.zero_grad()", ["sched.step() [the rate moves before the update"]),
    ("ema.update(net) | opt.step() | opt.zero_grad()", ["ema.update(net) [it averages before the update"]),
    ("opt.zero_grad()", ["(loss / 4).backward() [no step() of an optimizer was found"]),
]


@pytest.mark.parametrize(("behind", "expected"), BEHIND)
@pytest.mark.parametrize("inside", ["", CLIPPED])
def test_the_order_around_a_loop_of_micro_batches(behind: str, expected: list[str], inside: str, write: Write) -> None:
    """Where the update stands behind the loop of the backward passes, nothing of the order was looked at."""
    body = "\n".join(" " * 8 + line for line in behind.split(" | "))
    loop = "    for i in range(100):\n        for _ in range(4):\n            x, y = batches.get()\n"
    loop += "            loss = criterion(net(x), y)\n            (loss / 4).backward()\n"
    loop += f"            {inside}\n" if inside else ""
    found = listed(write(f"{SCRIPT}for epoch in range(4):\n{loop}{body}\n    sched.step()\n"))
    order = [line for line in found if "[" in line and "a step runs in this loop" not in line]
    each = f"{CLIPPED} [it clips at every micro-batch, and a recipe once before the update"
    wanted = [*expected, *([each] if inside and "opt.step()" in behind else [])]
    for one in wanted:
        assert any(line.startswith(one) for line in order), (one, order)
    if not wanted:
        assert not any(line.startswith((CLIPPED, "opt.", "sched.", "ema.")) for line in found), found


def lines(text: str, depth: int) -> str:
    return "\n".join(" " * depth + line for line in text.split(" | "))


@pytest.mark.parametrize(("batch", "begin", "end", "said"), CASES)
def test_a_step_in_another_order_is_listed(batch: str, begin: str, end: str, said: list[str], write: Write) -> None:
    loop = LOOP.format(begin=lines(begin, 4), batch=lines(batch, 8), end=lines(end, 4))
    found = listed(write(SCRIPT + loop))
    assert len(found) == len(said) and all(map(str.startswith, found, said)), found


def test_the_order_is_followed_through_functions_that_are_called_twice(write: Write) -> None:
    """An epoch's function that runs for two loops clears and updates in each call, in the order of its lines."""
    own = """
def update(loss):
    opt.zero_grad()
    loss.backward()
    {swapped}
def run():
    for x, y in loader:
        update(criterion(net(x), y))
    {moved}
for epoch in range(4):
    run()
"""
    right = own.format(swapped="opt.step()", moved="sched.step()")
    assert listed(write(SCRIPT + right)) == []
    twice = right + "for epoch in range(2):\n    run()\n"
    assert listed(write(SCRIPT + twice)) == ["for epoch in range(2): [a step runs in this loop]"]
    wrong = own.format(swapped="sched.step()\n    opt.step()", moved="")
    assert listed(write(SCRIPT + wrong)) == ["sched.step() [the rate moves before the update]"]


def test_what_measures_in_between_is_no_second_run(write: Write) -> None:
    batch = "opt.zero_grad() | loss.backward() | opt.step()\n        with torch.no_grad():\n            seen = net(x)"
    assert listed(write(SCRIPT + LOOP.format(begin="", batch=lines(batch, 8), end=""))) == []


def test_a_mixup_that_nothing_calls_is_asked_for(write: Write) -> None:
    made = "mix = Mixup(mixup_alpha=0.2, num_classes=7)\n"
    batch = "opt.zero_grad() | loss.backward() | opt.step()"
    whole = SCRIPT + made + LOOP.format(begin="", batch=lines(batch, 8), end="")
    assert drafted(write(whole))["mixup"] == "???"
    called = whole.replace("loss = criterion(net(x), y)", "x, y = mix(x, y)\n        loss = criterion(net(x), y)")
    assert drafted(write(called))["mixup"]["mixup_alpha"] == 0.2


@pytest.mark.parametrize(
    ("call", "args"),
    [
        ("F.cross_entropy(out, y)", None),
        ("F.cross_entropy(out, target=y, label_smoothing=0.2)", {"label_smoothing": 0.2}),
        ("F.cross_entropy(out, y, torch.tensor([1.0, 2.0]))", {"weight": [1.0, 2.0]}),
        ("F.cross_entropy(out, y, None, None, 3)", {"ignore_index": 3}),
        ("F.cross_entropy(out, y, torch.ones(12))", {"weight": "???"}),
        ("F.mse_loss(out, y, reduction='sum')", {"reduction": "sum"}),
    ],
)
def test_a_loss_s_function_is_given_outputs_and_labels_first(call: str, args: Any, write: Write) -> None:
    """They were taken for the class's first arguments, and asked for as weight and size_average."""
    batch = "opt.zero_grad() | loss.backward() | opt.step()"
    text = SCRIPT + LOOP.format(begin="", batch=lines(batch, 8), end="")
    own = f"out = net(x)\n        loss = {call}"
    script = write("import torch.nn.functional as F\n" + text.replace("loss = criterion(net(x), y)", own))
    found = drafted(script)["loss"].get("args")
    assert {key: value for key, value in (found or {}).items() if value is not None} == (args or {})


def test_a_script_that_refuses_its_own_defaults_is_read_as_run_with_others(write: Write) -> None:
    """All behind the refusal counted as run only with other arguments, and was passed over in silence."""
    head = (
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--out')\n"
        "args = parser.parse_args()\nif not args.out:\n    print('where to?')\n    raise SystemExit(1)\n"
    )
    batch = "opt.zero_grad() | loss.backward() | opt.step() | opt.step()"
    script = write(head + SCRIPT + LOOP.format(begin="", batch=lines(batch, 8), end=""))
    assert drafted(script)["optimizer"]["args"]["lr"] == 0.2
    assert listed(script) == ["opt.step() [a second update in this step]"]


def test_a_transform_that_no_recipe_has_is_named_at_its_own_line(write: Write) -> None:
    """It was "the transform a step", at the line of the loader."""
    batch = "opt.zero_grad() | loss.backward() | opt.step()"
    text = SCRIPT + LOOP.format(begin="", batch=lines(batch, 8), end="")
    made = "transforms.Compose([\n    holes.Cutout(\n        8),\n    transforms.ToTensor(),\n])"
    script = write("import holes\n" + text.replace("transforms.ToTensor()", made))
    whole = drafted(script)
    assert whole["data"]["transforms"] == [{"name": "ToTensor"}]
    line = 1 + script.read_text(encoding="utf-8").splitlines().index("    holes.Cutout(")
    assert whole["not_in_this_recipe"] == [f"{script.name}:{line}: the transform holes.Cutout(8)"]


@pytest.mark.parametrize("condition", ["torch.cuda.is_available()", "len(data) > 10", "unknown()"])
def test_a_value_that_stands_under_a_condition_is_listed_with_it(condition: str, write: Write) -> None:
    """The first branch's value was drafted without a word."""
    batch = "opt.zero_grad() | loss.backward() | opt.step()"
    text = SCRIPT.replace("loader =", f"size = 16\nif {condition}:\n    size = 128\nloader =").replace("=16", "=size")
    script = write(text + LOOP.format(begin="", batch=lines(batch, 8), end=""))
    assert listed(script) == [f"size = 128 [only where {condition}]"]
    assert drafted(script)["data"]["batch"] == "???"


COUNTED = """
{before}
for epoch in range(4):
    {epoch}
    for {loop}:
        loss = criterion(net(x), y) / 4
        loss.backward()
        {count}
        if {test}:
            opt.step()
            opt.zero_grad()
        {after}
"""
EACH = "i, (x, y) in enumerate(loader)"


@pytest.mark.parametrize(
    ("before", "epoch", "loop", "count", "test", "after", "said"),
    [
        ("", "", EACH, "", "(i + 1) % 4 == 0", "", ""),
        ("", "", EACH, "", "i % 4 == 3", "", ""),
        ("", "", "i, (x, y) in enumerate(loader, 1)", "", "i % 4 == 0", "", ""),
        ("", "", "i, (x, y) in enumerate(loader, start=1)", "", "i % 4 == 0", "", ""),
        ("step = 0", "", "x, y in loader", "step += 1", "step % 4 == 0", "", ""),
        ("step = 1", "", "x, y in loader", "", "step % 4 == 0", "step += 1", ""),
        ("", "", EACH, "", "i % 4 == 0", "", "the first update has 1 of 4 micro-batches"),
        ("", "", EACH, "", "(i + 2) % 4 == 0", "", "the first update has 3 of 4 micro-batches"),
        ("", "", EACH, "seen = i + len(loader) * epoch", "seen % 4 == 0", "", "the first update has 1 of 4 micro-b"),
        ("step = 0", "", "x, y in loader", "", "step % 4 == 0", "step += 1", "the first update has 1 of 4 micro-b"),
        ("step = begin()", "", "x, y in loader", "step += 1", "step % 4 == 0", "", "whether the first update"),
        ("", "", EACH, "", "(i + 1) % 4 == 0 or i + 1 == len(loader)", "",
         "it also updates where i + 1 == len(loader), with fewer than 4 micro-batches"),
    ],
)  # fmt: skip
def test_an_update_of_fewer_micro_batches_is_listed(
    before: str, epoch: str, loop: str, count: str, test: str, after: str, said: str, write: Write
) -> None:
    """`i % 4 == 0` was taken for a step of four batches; the first has one."""
    code = COUNTED.format(
        before=before, epoch=epoch or "pass", loop=loop, count=count or "pass", test=test, after=after or "pass"
    )
    script = write(SCRIPT + code)
    assert drafted(script)["accumulate"] == 4
    found = [line for line in listed(script) if line.startswith("opt.step()")]
    assert len(found) == bool(said) and all(f"[{said}" in line for line in found), found


@pytest.mark.parametrize("on", [True, False])
def test_a_loss_scale_that_is_switched_off_multiplies_nothing(on: bool, write: Write) -> None:
    batch = f"opt.zero_grad() | scaler.scale(loss).backward() | {CLIPPED} | scaler.step(opt) | scaler.update()"
    text = SCRIPT.replace("GradScaler()", f"GradScaler(enabled={on})")
    found = listed(write(text + LOOP.format(begin="", batch=lines(batch, 8), end="")))
    assert len(found) == on and all("still multiplied by the loss scale" in line for line in found), found


def test_what_only_gathers_is_listed_with_its_loop_and_its_ends(write: Write) -> None:
    """How often such a loop runs was not said, nor what leaves it."""
    own = """
import rooms
kept = []
for i in range(30):
    here, over = rooms.walk(i)
    kept.append(here)
    if over:
        break
"""
    text = SCRIPT.replace('datasets.ImageFolder("/birds/train", transforms.ToTensor())', "rooms.Walks(kept)")
    batch = "opt.zero_grad() | loss.backward() | opt.step()"
    found = listed(write(own + text + LOOP.format(begin="", batch=lines(batch, 8), end="")))
    assert "kept.append(here) [for i in range(30)]" in found
    assert "break [only where over] [for i in range(30)]" in found


def test_transforms_that_are_refused_stand_at_their_own_lines(write: Write) -> None:
    """All of them stood at the first one's."""
    checked = """
checks = DataLoader(datasets.ImageFolder("/birds/val", transforms.Compose([
    transforms.RandomHorizontalFlip(),
    transforms.RandomVerticalFlip(),
    transforms.ToTensor(),
])), batch_size=16)
"""
    batch = "opt.zero_grad() | loss.backward() | opt.step()"
    used = "\nfor a, b in checks:\n    print(a.mean())\n"
    script = write(SCRIPT + checked + LOOP.format(begin="", batch=lines(batch, 8), end="") + used)
    at = 1 + script.read_text(encoding="utf-8").splitlines().index("    transforms.RandomHorizontalFlip(),")
    said = [line for line in drafted(script)["not_in_this_recipe"] if "[left out: " in line]
    expected = [
        f"{script.name}:{at}: transforms.RandomHorizontalFlip()",
        f"{script.name}:{at + 1}: transforms.RandomVer",
    ]
    assert len(said) == 2 and all(map(str.startswith, said, expected)), said


def test_a_value_of_a_table_names_the_table_s_line(write: Write) -> None:
    table = "hyp = {\n    'rate': 0.2,\n    'other': 3,\n}\n"
    text = SCRIPT.replace("lr=0.2", "lr=hyp['rate']").replace("\nnet =", f"\n{table}net =")
    batch = "opt.zero_grad() | loss.backward() | opt.step()"
    script = write(text + LOOP.format(begin="", batch=lines(batch, 8), end=""))
    at = 1 + script.read_text(encoding="utf-8").splitlines().index("    'rate': 0.2,")
    written = recipe_text(analyze_script(script))
    assert f"# {script.name} line {at}: 'rate': 0.2\n    lr: 0.2" in written


def test_what_is_put_into_a_table_that_is_listed_is_listed(write: Write) -> None:
    table = "import made\nsizes = made.sizes()\nkinds = made.count()\nsizes['kinds'] = kinds\n"
    text = SCRIPT.replace("net = torchvision.models.resnet18(num_classes=7)", f"{table}net = made.net(**sizes)")
    batch = "opt.zero_grad() | loss.backward() | opt.step()"
    assert "sizes['kinds'] = kinds" in listed(write(text + LOOP.format(begin="", batch=lines(batch, 8), end="")))


@pytest.mark.parametrize(
    ("made", "each", "said"),
    [
        ("", "scaler = torch.amp.GradScaler()", True),
        ("", "opt = torch.optim.SGD(net.parameters(), lr=0.2)", True),
        ("", "net = torchvision.models.resnet18()\n    opt = torch.optim.SGD(net.parameters(), lr=0.2)", False),
        ("opt = torch.optim.SGD(net.parameters(), lr=0.2)", "", False),
    ],
)
def test_what_is_made_anew_in_every_epoch_is_listed(made: str, each: str, said: bool, write: Write) -> None:
    """A loss scale, or an optimizer's momentum, begins anew where it is made in the loop."""
    own = "import torch, torch.nn as nn, torchvision\nfrom torch.utils.data import DataLoader\n"
    own += "from torchvision import datasets, transforms\nnet = torchvision.models.resnet18()\n"
    own += "loader = DataLoader(datasets.ImageFolder('/b', transforms.ToTensor()), batch_size=16)\n"
    own += "criterion = nn.CrossEntropyLoss()\n" + (made or "opt = torch.optim.SGD(net.parameters(), lr=0.2)") + "\n"
    if "opt =" in each:
        own = own.replace("opt = torch.optim.SGD(net.parameters(), lr=0.2)\n", "")
    own = own.replace("net = torchvision.models.resnet18()\n", "", 1) if "net =" in each else own
    scaled = "scaler" in each
    batch = (
        "scaler.scale(loss).backward() | scaler.step(opt) | scaler.update()"
        if scaled
        else "loss.backward() | opt.step()"
    )
    loop = LOOP.format(begin=f"    {each}", batch=lines(f"opt.zero_grad() | {batch}", 8), end="")
    found = [line for line in listed(write(own + loop)) if "made anew" in line]
    assert len(found) == said, found


def test_which_files_are_the_data_is_listed(write: Write) -> None:
    own = "import os, birds\nfiles = [os.path.join('/b', one) for one in os.listdir('/b')]\n"
    text = SCRIPT.replace('datasets.ImageFolder("/birds/train", transforms.ToTensor())', "birds.Pictures(files)")
    batch = "opt.zero_grad() | loss.backward() | opt.step()"
    found = listed(write(own + text + LOOP.format(begin="", batch=lines(batch, 8), end="")))
    assert any(line.startswith("files = [os.path.join(") for line in found)


def test_a_helper_of_torchvision_s_is_no_model(write: Write) -> None:
    """Its weights' loader was drafted as the model that is trained."""
    own = "from torchvision.models.utils import load_state_dict_from_url\nload_state_dict_from_url('https://some')\n"
    text = SCRIPT.replace("torchvision.models.resnet18(num_classes=7)", "zoo.made()")
    batch = "opt.zero_grad() | loss.backward() | opt.step()"
    script = write("import zoo\n" + own + text + LOOP.format(begin="", batch=lines(batch, 8), end=""))
    assert drafted(script)["model"] == "???"


def test_what_an_exception_in_the_loop_does_is_listed(write: Write) -> None:
    """It counted as what never runs; here it begins the data anew."""
    own = """
more = iter(loader)
for epoch in range(4):
    for x, y in loader:
        try:
            a, b = next(more)
        except StopIteration:
            more = iter(loader.again())
            a, b = next(more)
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
    found = listed(write(SCRIPT + own.replace("net(x)", "net(x + a)")))
    assert "more = iter(loader.again()) [only where an exception is raised]" in found


STEPS = """
def run(batches, train=True):
    for x, y in batches:
        opt.zero_grad()
        loss = criterion(net(x), y)
        {run}
def one(x, y):
    opt.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    opt.step()
"""
PASS = """
    for x, y in loader:
        opt.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        opt.step()
"""
ALWAYS, IF_TRAINED = "loss.backward()\n        opt.step()", "if train: loss.backward(); opt.step()"
EPOCHS = "for epoch in range(4):"
AGAIN = [
    (ALWAYS, EPOCHS + PASS, []),
    (ALWAYS, EPOCHS + "\n    run(loader)", []),
    (ALWAYS, EPOCHS + PASS + PASS, ["for x, y in loader:"]),
    (ALWAYS, EPOCHS + "\n    run(loader)" + PASS, ["for x, y in loader:"]),
    (ALWAYS, EPOCHS + "\n    run(loader)\n    if other():\n        pass\n    run(loader)", ["run(loader)"]),
    (ALWAYS, EPOCHS + "\n    run(loader)\n    if epoch % 2:\n        run(loader)", ["run(loader)"]),
    (ALWAYS, EPOCHS + "\n    try:\n        run(loader)\n    except RuntimeError:\n        run(loader)", []),
    (ALWAYS, EPOCHS + PASS + "    opt.step()", ["opt.step()"]),
    (ALWAYS, EPOCHS + "\n    for x, y in loader:\n        one(x, y)\n        one(y, x)", ["one(y, x)"]),
    (ALWAYS, EPOCHS + "\n    if other():\n        run(loader)\n    else:\n        run(loader)", []),
    (IF_TRAINED, EPOCHS + "\n    run(loader)\n    run(loader, False)", []),
]


@pytest.mark.parametrize(("run", "text", "expected"), AGAIN, ids=[str(index) for index in range(len(AGAIN))])
def test_steps_in_several_places_of_an_epoch_are_listed(run: str, text: str, expected: list[str], write: Write) -> None:
    """The draft ran, with one pass over the data where the script makes two; and its zero_grad was called too early."""
    found = listed(write(SCRIPT + STEPS.replace("{run}", run) + text + "\n"))
    assert [one.partition(" [")[0] for one in found if "steps run here too" in one] == expected
    assert not any("zero_grad" in one for one in found)
    assert any("steps run here too, only where epoch % 2;" in one for one in found) == ("epoch % 2" in text)
