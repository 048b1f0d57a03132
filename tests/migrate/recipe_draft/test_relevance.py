"""What of a script reaches its training: files elsewhere, code that nothing runs, values that are only printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from drafts import drafted, has, listed, reasons
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.migrate.recipe_draft.draft import Draft
from msmigrate.reports.script_analysis import notes, recipe_text

Write = Callable[..., Path]

HEAD = """
import os, sys
from pathlib import Path
import torch, torch.nn as nn, torchvision
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets, transforms
"""
REST = """
net = torchvision.models.resnet18(num_classes=7)
data = datasets.ImageFolder("/birds/train", transforms.ToTensor())
loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.2)
"""
LOOP = """
for epoch in range(4):
    for x, y in loader:
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


FOLDERS = {
    "os.path": 'sys.path.insert(0, os.path.join(os.path.dirname(__file__), "src"))',
    "absolute": 'sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "src"))',
    "pathlib": 'sys.path.append(str(Path(__file__).resolve().parent / "src"))',
    "a name": 'HERE = os.path.dirname(os.path.realpath(__file__))\nsys.path.insert(1, HERE + "/src")',
    "names of names": 'HERE = Path(__file__).parent\nSRC = HERE / "src"\nsys.path.insert(0, f"{SRC}")',
    "of the working folder": 'sys.path.append("src")',
    "by getcwd": 'sys.path.append(os.path.join(os.getcwd(), "src"))',
}


@pytest.mark.parametrize("how", FOLDERS.values(), ids=FOLDERS)
def test_a_folder_that_the_script_adds_to_its_path_is_read(how: str, write: Write) -> None:
    """What stands in src/ was said not to be there, and with it the rate and the loader."""
    script = write(f"{HEAD}{how}\nfrom settings import RATE, batches\n{REST.replace('0.2', 'RATE')}{LOOP}")
    (script.parent / "src").mkdir()
    (script.parent / "src" / "settings.py").write_text("RATE = 0.75\nbatches = 3\n")
    found = recipe_text(analyze_script(script))
    assert yaml.safe_load(found)["optimizer"]["args"]["lr"] == 0.75
    assert "src/settings.py line 1: RATE = 0.75" in found


@pytest.mark.parametrize(
    "how",
    [
        "sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))",
        "sys.path.insert(0, str(Path(__file__).resolve().parents[1]))",
        'sys.path.append("..")',
        "sys.path.append(os.path.join(os.path.dirname(__file__), os.pardir))",
    ],
)
def test_so_is_the_folder_above_it(how: str, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "common.py").write_text("RATE = 0.75\n")
    script = tmp_path / "tools" / "train.py"
    script.write_text(f"{HEAD}{how}\nfrom common import RATE\n{REST.replace('0.2', 'RATE')}{LOOP}")
    found = recipe_text(analyze_script(script))
    assert yaml.safe_load(found)["optimizer"]["args"]["lr"] == 0.75
    assert "../common.py line 1: RATE = 0.75" in found


@pytest.mark.parametrize("how", ['sys.path.append(os.environ["SRC"])', 'sys.path.append("/nowhere/at/all")', ""])
def test_a_folder_that_reading_cannot_tell_is_not_searched(how: str, write: Write) -> None:
    script = write(f"{HEAD}{how}\nfrom settings import RATE\n{REST.replace('0.2', 'RATE')}{LOOP}")
    (script.parent / "src").mkdir()
    (script.parent / "src" / "settings.py").write_text("RATE = 0.75\n")
    assert drafted(script)["optimizer"]["args"]["lr"] == "???"


def test_means_that_a_training_function_returns_for_a_print_are_not_listed(write: Write) -> None:
    """The whole call counted as read, since the step stands in it, and so did all that it returns."""
    script = write(f"""{HEAD}{REST}
def train_one(epoch):
    total, correct, n = 0.0, 0, 0
    for x, y in loader:
        out = net(x)
        loss = criterion(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(x)
        correct += (out.argmax(1) == y).sum().item()
        n += len(x)
    mean = total / n
    return mean, correct / n
for epoch in range(4):
    mean, accuracy = train_one(epoch)
    print(mean, accuracy)
""")
    assert listed(script) == []
    assert reasons(script)["mean = total / n"] == "what it computes reaches only prints, logs and files"


def test_those_that_a_schedule_reads_are(write: Write) -> None:
    script = write(f"""{HEAD}{REST}
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)
def train_one(epoch):
    total = 0.0
    for x, y in loader:
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    return total
for epoch in range(4):
    total = train_one(epoch)
    plateau.step(total)
""")
    found = listed(script)
    assert has(found, "total += loss.item() [total begins with 0.0]", "plateau.step(total)")


OWN = """
class Meter:
    def __init__(self):
        self.seen = []
    def note(self, epoch, values):
        mean = sum(values) / len(values)
        print(epoch, mean)
class Run:
    def __init__(self):
        self.meter = Meter()
    def fit(self):
        for epoch in range(4):
            losses = []
            for x, y in loader:
                loss = criterion(net(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                losses.append(loss.item())
            self.meter.note(epoch, losses)
            CHECK
Run().fit()
"""


def test_what_a_class_of_the_script_only_notes_is_not_listed(write: Write) -> None:
    """All methods of a class counted as read once an object of it was, and what they are given as changed by them."""
    assert listed(write(HEAD + REST + OWN.replace("CHECK", "pass"))) == []


@pytest.mark.parametrize(
    "changing",
    [
        "values.append(0)",
        "values[0] = 0",
        "rest = values\n        rest.clear()",
        "for one in values:\n            one.clear()",
    ],
)
def test_what_it_changes_is_followed(changing: str, write: Write) -> None:
    """`losses` is read by a schedule after a method has changed it."""
    script = write(
        HEAD
        + REST
        + "plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)\n"
        + OWN.replace("CHECK", "plateau.step(sum(losses))").replace("print(epoch, mean)", changing)
    )
    found = {line.statement.text: line.verdict for line in Draft(analyze_script(script).interpreter).account.lines}
    assert "losses.append(loss.item())" in listed(script)
    assert found["self.meter.note(epoch, losses)"] == "listed" or any(
        changing.split()[-1] in line for line in listed(script)
    ), found


def test_what_only_code_that_does_not_run_names_does_not_run(write: Write) -> None:
    """A helper was listed line by line, although only the method of a class that nothing makes calls it."""
    script = write(f"""{HEAD}
import networkx
def cluster(rows):
    graph = networkx.Graph()
    graph.add_nodes_from(rows)
    return graph
class Builder:
    def build(self, rows):
        return cluster(rows)
{REST}{LOOP}""")
    assert listed(script) == []


PARTS = {
    "forward": "def forward(self, x):\n        return wavelet(self.body(x))",
    "the constructor": "def forward(self, x):\n        return self.body(x)\n    def more(self):\n"
    "        self.filters = wavelet(torch.ones(3))",
}


@pytest.mark.parametrize("method", PARTS.values(), ids=PARTS)
def test_what_only_a_model_s_class_calls_is_part_of_the_model(method: str, write: Write) -> None:
    script = write(f"""{HEAD}
import pywt
def scaled(rows):
    rows = rows / pywt.norm(rows)
    return rows
def wavelet(rows):
    rows = pywt.dwt(scaled(rows))
    return rows
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 7)
    {method}
{REST.replace("torchvision.models.resnet18(num_classes=7)", "Net()")}{LOOP}""")
    assert listed(script) == []
    said = "only models and data sets call this function, and they are accounted for where they are made"
    assert reasons(script).get("rows = pywt.dwt(scaled(rows))", said) == said
    assert reasons(script).get("rows = rows / pywt.norm(rows)", said) == said


def test_a_function_that_the_script_itself_calls_too_is_read(write: Write) -> None:
    script = write(f"""{HEAD}
import pywt
def wavelet(rows):
    rows = pywt.dwt(rows)
    return rows
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 7)
    def forward(self, x):
        return self.body(wavelet(x))
{REST.replace("torchvision.models.resnet18(num_classes=7)", "Net()")}
{LOOP.replace("net(x)", "net(wavelet(x))")}""")
    assert listed(script) == ["loss = criterion(net(wavelet(x)), y)"]
    assert "where it is called" in reasons(script)["rows = pywt.dwt(rows)"]


def test_what_a_data_set_does_with_a_broken_file_is_part_of_it(write: Write) -> None:
    """`except` was said to run only with other arguments, or never."""
    script = write(f"""{HEAD}
class Sounds(Dataset):
    def __init__(self, names):
        self.names = names
    def __len__(self):
        return len(self.names)
    def __getitem__(self, index):
        try:
            row = torch.load(self.names[index])
        except Exception:
            row = torch.zeros(40)
        return row, 1
class Unused(nn.Module):
    def forward(self, x):
        x = x * 2
        return x
{REST.replace('datasets.ImageFolder("/birds/train", transforms.ToTensor())', "Sounds(os.listdir('/sounds'))")}{LOOP}""")
    why = reasons(script)
    assert why["row = torch.zeros(40)"] == "inside Sounds, which is accounted for where it is made"
    found = recipe_text(analyze_script(script))
    assert "what its data set does to a sample was not read (train.py line" in found


def test_the_loader_that_is_evaluated_is_the_one_that_is_looped_over(write: Write) -> None:
    """Of three loaders that one function returns, the test's was drafted as validation, and nothing used it."""
    script = write(
        f"""{HEAD}
def loaders():
    sets = [datasets.ImageFolder(f"/birds/{{part}}", transforms.ToTensor()) for part in ("a", "b", "c")]
    train_data = datasets.ImageFolder("/birds/a", transforms.ToTensor())
    held_out = datasets.ImageFolder("/birds/b", transforms.ToTensor())
    test_data = datasets.ImageFolder("/birds/c", transforms.ToTensor())
    first = DataLoader(train_data, batch_size=16, shuffle=True)
    second = DataLoader(held_out, batch_size=3)
    third = DataLoader(test_data, batch_size=5)
    return first, second, third
loader, checked, unused = loaders()
{REST.split(chr(10), 4)[4]}{LOOP}
    for x, y in checked:
        print(criterion(net(x), y).item())
""".replace(REST.split("\n")[1], "").replace("criterion = nn", "net = torchvision.models.resnet18()\ncriterion = nn", 1)
    )
    found = drafted(script)["data"]
    assert found["eval_batch"] == 3 and found["validation"] == "folder:/birds/b"


def test_a_list_of_all_parameters_is_the_whole_model(write: Write) -> None:
    for given in ("list(net.parameters())", "tuple(net.parameters())"):
        script = write(HEAD + REST.replace("net.parameters()", given) + LOOP)
        assert listed(script) == []


def test_epochs_that_a_function_is_given_as_a_range(write: Write) -> None:
    script = write(f"""{HEAD}{REST}
def fit(epochs):
    for epoch in epochs:
        for x, y in loader:
            loss = criterion(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
fit(range(20, 120))
""")
    assert drafted(script)["train"]["epochs"] == 100 and listed(script) == []


@pytest.mark.parametrize(
    "backward", ["scaler.scale(loss).backward()", "accelerator.backward(loss)", "self_made.backward(loss)"]
)
def test_the_line_that_makes_a_loss_is_named_and_not_the_one_of_a_scaler(backward: str, write: Write) -> None:
    script = write(f"""{HEAD}{REST}
from accelerate import Accelerator
class Own:
    def backward(self, loss):
        loss.backward()
self_made = Own()
accelerator = Accelerator()
scaler = torch.cuda.amp.GradScaler()
def own(a, b):
    return (a - b).abs().mean()
{LOOP.replace("criterion(net(x), y)", "own(net(x), y)").replace("loss.backward()", backward)}""")
    found = recipe_text(analyze_script(script))
    assert "loss = own(net(x), y): the backward pass starts from this" in found


def test_a_script_without_a_backward_pass_says_so(write: Write) -> None:
    script = write(HEAD + REST + LOOP.replace("loss.backward()", "pass").replace("opt.step()", "break"))
    assert "no call of backward() was found in the files that were read" in recipe_text(analyze_script(script))


@pytest.mark.parametrize(
    ("makes", "asks"),
    [
        ("Accelerator(gradient_accumulation_steps=4)", True),
        ("Accelerator(gradient_accumulation_steps=steps)", True),
        ("Accelerator(gradient_accumulation_steps=1)", False),
        ("Accelerator()", False),
    ],
)
def test_a_batch_that_a_library_adds_up_is_asked_for(makes: str, asks: bool, write: Write) -> None:
    """`batch: 16` was drafted, where a step takes four of them."""
    script = write(f"{HEAD}from accelerate import Accelerator\nfrom elsewhere import steps\na = {makes}\n{REST}{LOOP}")
    assert (drafted(script)["data"]["batch"] == "???") == asks


def test_a_default_of_none_is_said_behind_a_listed_line(write: Write) -> None:
    """Of `Losses(args.masks, args.weight)` only the weight was said, and without masks it counts for nothing."""
    script = write(f"""{HEAD}
import argparse
from elsewhere import Losses
parser = argparse.ArgumentParser()
parser.add_argument("--masks", default=None)
parser.add_argument("--weight", type=float, default=0.3)
args = parser.parse_args()
{REST.replace("nn.CrossEntropyLoss()", "Losses(args.masks, args.weight)")}{LOOP}""")
    assert has(listed(script), "criterion = Losses(args.masks, args.weight) [args.masks is None, args.weight is 0.3]")


BASE = """
class Trainer:
    def train_one(self, x, y):
        loss = (net(x) - y).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    def fit(self):
        for epoch in range(4):
            for x, y in loader:
                self.train_one(x, y)
class Own(Trainer):
    def train_one(self, x, y):
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
Own().fit()
"""


def test_a_method_that_every_object_has_otherwise_does_not_run(write: Write) -> None:
    """The step of the base class was listed beside that of the class that trains."""
    assert listed(write(HEAD + REST + BASE)) == []


def test_unless_the_script_calls_it_by_super_or_makes_an_object_of_the_base(write: Write) -> None:
    by_super = BASE.replace("        loss = criterion", "        super().train_one(x, y)\n        loss = criterion")
    by_name = by_super.replace("super().train_one(x, y)", "Trainer.train_one(self, x, y)")
    chosen = BASE + "import json\nkinds = [Trainer, Own]\nkinds[json.load(open('kind'))]().fit()\n"
    for script in (by_super, by_name, chosen, BASE + "Trainer().fit()\n"):
        assert has(listed(write(HEAD + REST + script)), "loss = (net(x) - y).abs().mean()")


def test_the_loss_of_a_step_that_runs_is_named_first(write: Write) -> None:
    idle = """
if False:
    other = (net(x) * 0).mean()
    other.backward()
"""
    script = write(HEAD + REST + idle + LOOP.replace("criterion(net(x), y)", "(net(x) - y).abs().mean()"))
    assert "loss = (net(x) - y).abs().mean(): the backward pass starts" in recipe_text(analyze_script(script))


KEEPS = """
for run in range(5):
    best = 0.0
    for epoch in range(4):
        for x, y in loader:
            loss = criterion(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        score = evaluated(net)
        if score > best:
            best = score
            torch.save(net.state_dict(), "best.pth")
    AFTER
"""
LOADS = 'net.load_state_dict(torch.load("best.pth"))'


def test_the_best_weights_that_a_later_run_goes_on_from_are_listed_with_what_chooses_them(write: Write) -> None:
    head = HEAD + REST + "from elsewhere import evaluated\n"
    found = listed(write(head + KEEPS.replace("AFTER", LOADS)))
    assert has(found, 'torch.save(net.state_dict(), "best.pth") [it writes what train.py', "best = score", LOADS)
    assert any(line.startswith("score = evaluated(net)") for line in found)


def test_weights_that_are_saved_for_later_are_not(write: Write) -> None:
    head = HEAD + REST + "from elsewhere import evaluated\n"
    assert not has(listed(write(head + KEEPS.replace("AFTER", "pass"))), "torch.save")
    assert not has(listed(write(head + KEEPS.replace("    AFTER", LOADS))), "torch.save")


def test_one_group_of_all_parameters_is_the_whole_model(write: Write) -> None:
    one = 'SGD([{"params": net.parameters(), "initial_lr": 0.2, "lr": 0.3}], lr=0.2)'
    script = write(HEAD + REST.replace("SGD(net.parameters(), lr=0.2)", one) + LOOP)
    assert listed(script) == [] and drafted(script)["optimizer"]["args"]["lr"] == 0.3


def test_what_a_schedule_is_given_and_mindspore_lacks_is_listed(write: Write) -> None:
    """`last_epoch=0` was a comment alone, and the rate fell an epoch later than in the script."""
    step = "moves = torch.optim.lr_scheduler.StepLR(opt, 50, last_epoch=0)"
    script = write(HEAD + REST + step + LOOP + "    moves.step()\n")
    said = "last_epoch=0 of torch.optim.lr_scheduler.StepLR, which MindSpore does not have"
    assert listed(script) == [said]


SCALED = LOOP.replace(
    "        loss = criterion(net(x), y)\n", "        ROUND\n        loss = criterion(net(x) / USE, y)\n"
)
COUNTED = {  # what stands before the loop, in a round of it, what the step reads, and the line that must be listed
    "a sum": ("seen = 1", "seen = seen + 1", "seen", "seen = seen + 1 [seen begins with 1]"),
    "in place": ("seen = 1", "seen += 1", "seen", "seen += 1 [seen begins with 1]"),
    "by another name": ("seen = 1", "more = seen + 1; seen = more", "seen", "seen = more [seen begins with 1]"),
    "in a tuple": ("seen, other = 1, 2", "seen, other = seen + 1, 3", "seen", "seen, other = seen + 1, 3 [seen begins"),
    "after the step": ("seen = 1", "pass", "seen", "seen = 5 [seen begins with 1]"),
    "an element": ('state = {"n": 1}', 'state["n"] = state["n"] + 1', 'state["n"]', 'state["n"] = state["n"] + 1'),
    "an attribute": ("class S: n = 1\ns = S()", "s.n = s.n * 2", "s.n", "s.n = s.n * 2"),
    "a global name": (
        "seen = 1\ndef tick():\n    global seen\n    seen = seen + 1",
        "tick()",
        "seen",
        "seen = seen + 1",
    ),
    "by a method": (
        "class S:\n    n = 1\n    def go(self):\n        self.n = self.n + 1\ns = S()",
        "s.go()",
        "s.n",
        "self.n = self.n + 1",
    ),
    "by a method of an attribute": (
        "class S:\n    n = 1\n    def go(self):\n        self.n = self.n + 1\nclass T:\n    pass\nt = T()\nt.s = S()",
        "t.s.go()",
        "t.s.n",
        "self.n = self.n + 1",
    ),
    "for a function": (
        "seen = 1\ndef own(n):\n    f = 1 / n\n    return f",
        "seen = seen + 1",
        "own(seen)",
        "seen = seen",
    ),
}


@pytest.mark.parametrize(("before", "inside", "read", "says"), COUNTED.values(), ids=COUNTED)
@pytest.mark.parametrize("loop", ["for", "while"])
def test_what_a_round_sets_again_is_no_value(
    before: str, inside: str, read: str, says: str, loop: str, write: Write
) -> None:
    """The draft said `[seen is 2]`, which is the first step's, and nothing of `seen = seen + 1`."""
    text = SCALED.replace("ROUND", inside).replace("USE", read)
    text += "        seen = 5\n" if inside == "pass" else ""
    if loop == "while":
        text = text.replace("for epoch in range(4):", "while True:")
    found = listed(write(f"{HEAD}{REST}{before}\n{text}"))
    assert has(found, says) and not any(f"{read} is " in line or "f is " in line for line in found)


def test_what_a_round_leaves_as_it_is_stays_a_value(write: Write) -> None:
    only_with = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--w', action='store_true')\n"
    only_with += "a = p.parse_args()\n"
    for before, inside in (("w = 3", "pass"), ("w = 3", "w = 3"), (only_with + "w = 3", "if a.w: w = w + 1")):
        script = write(f"{HEAD}{REST}{before}\n{SCALED.replace('ROUND', inside).replace('USE', 'w')}")
        assert has(listed(script), "loss = criterion(net(x) / w, y) [w is 3]"), inside


def test_a_name_of_two_values_by_an_undecided_condition_has_both(write: Write) -> None:
    """It was said to be the second."""
    script = write(
        f"{HEAD}{REST}w = 1\nif time.time() > 3:\n    w = 2\n{SCALED.replace('ROUND', 'pass')}".replace("USE", "w")
    )
    assert has(listed(script), "loss = criterion(net(x) / w, y) [w is 1 or 2]", "w = 2 [only where time.time() > 3]")


def test_a_rate_that_is_worked_out_from_a_counter_is_not_the_first_steps(write: Write) -> None:
    """`param_group['lr'] = lr` said the rate of the first step."""
    own = """
class Moves:
    def __init__(self, of, factor):
        self.of, self.factor, self.n = of, factor, 0
    def step(self):
        self.count()
        self.of.step()
    def count(self):
        self.n += 1
        lr = self.factor * min(self.n ** -0.5, self.n * 0.001)
        for group in self.of.param_groups:
            group["lr"] = lr
moves = Moves(opt, 0.25)
"""
    found = listed(write(HEAD + REST + own + LOOP.replace("opt.step()", "moves.step()")))
    assert has(found, 'group["lr"] = lr [for group in self.of.param_groups]') and not any(
        "lr is" in one for one in found
    )
    assert has(found, "lr = self.factor * min(self.n ** -0.5, self.n * 0.001) [self.factor is 0.25]")


PICKED = {  # the loop over batches, the statements that take entries of one, the model's input, and what is listed
    "a key": ("batch in loader", 'x, y = batch["low"].to("cuda"), batch["y"]', "x", 'x, y = batch["low"].to("cuda")'),
    "a key by itself": ("batch in loader", 'x = batch["low"].to("cuda")', "x", 'x = batch["low"].to("cuda")'),
    "a plain key": ("batch in loader", 'x = batch["low"]', "x", 'x = batch["low"]'),
    "a key by a name": ("batch in loader", 'k = "low"; x = batch[k].cuda()', "x", "x = batch[k].cuda() [k is 'low']"),
    "a key in the call": (
        "batch in loader",
        "pass",
        'batch["low"].cuda()',
        'loss = criterion(net(batch["low"].cuda()), y)',
    ),
    "an attribute": ("batch in loader", "x = batch.x.to('cuda')", "x", "x = batch.x.to('cuda')"),
    "an entry of the input": ("(a, y) in loader", "x = a[1].to('cuda')", "x", "x = a[1].to('cuda')"),
    "its slice": ("(a, y) in loader", "x = a[:, 1].cuda()", "x", "x = a[:, 1].cuda()"),
    "the second of two inputs": ("(a, b), y in loader", "x = b.cuda()", "x", "loss = criterion(net(x), y)"),
    "numbered": ("i, ((a, b), y) in enumerate(loader)", "x = b", "x", "loss = criterion(net(x), y)"),
    "the third": ("a, y, x in loader", "x = x.cuda()", "x", "loss = criterion(net(x), y)"),
    "the third by its number": ("batch in loader", "x = batch[2].cuda()", "x", "x = batch[2].cuda()"),
}


@pytest.mark.parametrize(("over", "takes", "given", "says"), PICKED.values(), ids=PICKED)
def test_an_entry_of_a_batch_that_nothing_says_is_the_input_is_listed(
    over: str, takes: str, given: str, says: str, write: Write
) -> None:
    """`batch["low"].to(device)` was the step of a recipe, and `x[1].to(device)` the choice of a device."""
    text = LOOP.replace("x, y in loader", over).replace("net(x)", f"net({given})")
    script = write(HEAD + REST + text.replace("        loss", f"        {takes}\n        loss", 1))
    assert has(listed(script), says)


WHOLE = {
    "unpacked": ("batch in loader", "x, y = batch"),
    "by number": ("batch in loader", "x = batch[0].to('cuda'); y = batch[1].cuda()"),
    "numbered": ("i, batch in enumerate(loader)", "x, y = batch[0], batch[1]"),
    "moved": ("x, y in loader", "x = x.to('cuda'); y = y.cuda()"),
    "with a third": ("x, y, names in loader", "names = names.cuda()"),
    "all at once": ("x, y, names in loader", "x, y, names = x.cuda(), y.cuda(), names.cuda()"),
    "nested and moved": ("x, y, (names, sizes) in loader", "x, names = x.cuda(), names.cuda()"),
}


@pytest.mark.parametrize(("over", "takes"), WHOLE.values(), ids=WHOLE)
def test_the_input_and_the_label_are_a_recipes_step(over: str, takes: str, write: Write) -> None:
    text = LOOP.replace("x, y in loader", over)
    assert listed(write(HEAD + REST + text.replace("        loss", f"        {takes}\n        loss", 1))) == []


ONE = """
def one(x, y):
    loss = criterion(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss
for epoch in range(4):
    for x, y in loader:
        CALL
"""


@pytest.mark.parametrize(
    "call", ["one(x * 2, y)", "one(x[1].cuda(), y)", "last = one(x[1], y)", "print(one(x=x[0], y=y))"]
)
def test_what_is_computed_in_the_call_of_a_step_is_listed(call: str, write: Write) -> None:
    """Such a call was passed over, since the function's statements are accounted for one by one."""
    assert listed(write(HEAD + REST + ONE.replace("CALL", call))) == [call]


@pytest.mark.parametrize(
    "call", ["one(x, y)", "one(x.cuda(), y.to('cuda'))", "last = one(y=y, x=x)", "print(one(x, y))"]
)
def test_a_call_of_a_step_with_the_batch_is_not(call: str, write: Write) -> None:
    assert listed(write(HEAD + REST + ONE.replace("CALL", call))) == []


def test_so_it_is_where_no_loader_was_read(write: Write) -> None:
    """`x = pair[1].to(device)` was the choice of a device, in a loop over one loader or another of a dict."""
    both = 'both = {"train": loader, "val": DataLoader(data, batch_size=7)}\nfrom elsewhere import phases\n'
    text = "for epoch in phases:" + LOOP.split(":", 1)[1].replace("x, y in loader", "pair, y in both[epoch]")
    takes = '        x = pair[1].to("cuda")\n        y = y.to("cuda")\n        loss'
    found = listed(write(HEAD + REST + both + text.replace("        loss", takes, 1)))
    assert has(found, 'x = pair[1].to("cuda")') and not has(found, "y = y.to")


MOVES = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--k", type=float, default=1.5)
args = parser.parse_args()
class Moves:
    def __init__(self, of, k, warmup=4000):
        self.of, self.k, self.warmup, self.n = of, k, warmup, 0
    def zero_grad(self):
        self.of.zero_grad()
    def step(self):
        self.n += 1
        for group in self.of.param_groups:
            group["lr"] = self.k * min(self.n ** -0.5, self.n * self.warmup ** -1.5)
        self.of.step()
    def change(self, k):
        self.k = k
def fit(net, opt):
    for epoch in range(4):
        for x, y in loader:
            loss = criterion(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    opt.change(2.5)
"""
AROUND = {
    "in place": "opt = Moves(SGD, args.k)\nfit(net, opt)",
    "by name": "opt = Moves(of=SGD, k=args.k, warmup=30)\nfit(net, opt)",
    "in the call of a step": "fit(net, Moves(SGD, args.k))",
    "an attribute": "class Holds: pass\nholds = Holds()\nholds.opt = Moves(SGD, args.k)\nfit(net, holds.opt)",
    "of a file that is not there": "from elsewhere import Moves as Own\nopt = Own(SGD, args.k)\nfit(net, opt)",
    "of a function": "def made():\n    return Moves(SGD, args.k)\nfit(net, made())",
}
OPT = "opt = torch.optim.SGD(net.parameters(), lr=0.2)"


@pytest.mark.parametrize("made", AROUND.values(), ids=AROUND)
def test_what_takes_in_an_optimizer_that_is_made_in_its_call_is_listed(made: str, write: Write) -> None:
    """It counted as the line of the optimizer, and what else it is given stood nowhere."""
    text = made.replace("SGD", OPT.partition("= ")[2])
    found = listed(write(HEAD + REST.replace(OPT, "") + MOVES + text + "\n"))
    line = next(one for one in text.split("\n") if "torch.optim" in one).strip()
    assert has(found, f"{line} [args.k is 1.5]")


@pytest.mark.parametrize(
    "made", ["fit(net, SGD)", "opt = SGD\nfit(net, opt)", "print(fit(net, SGD))", "own = [SGD]\nfit(net, own[0])"]
)
def test_a_function_that_steps_may_be_given_an_optimizer_made_in_its_call(made: str, write: Write) -> None:
    fit = MOVES.replace("    opt.change(2.5)\n", "")
    found = listed(write(HEAD + REST.replace(OPT, "") + fit + made.replace("SGD", OPT.partition("= ")[2]) + "\n"))
    assert not any("torch.optim" in line for line in found)


OWN_NET = """
class Net(nn.Module):
    def __init__(self, dim, heads=2, **more):
        super().__init__()
        self.layer = nn.Linear(dim, heads)
    def forward(self, x):
        return self.layer(x)
"""
MADE = {  # how the script makes its model, and what the draft says of that
    "names": ("d_model = 12\nheads = 3\nnet = Net(d_model, heads)", "Net(d_model, heads) [d_model is 12, heads is 3]"),
    "annotated": ("d_model: int = 12\nnet = Net(d_model)", "Net(d_model) [d_model is 12]"),
    "a function": ("def built(dim):\n    return Net(dim)\nnet = built(12)", "Net(dim) [dim is 12]"),
    "called twice": ("def built(dim):\n    return Net(dim)\nother = built(7)\nnet = built(12)", "Net(dim) [dim is 12]"),
    "a table": ("cfg = {'dim': 12, 'heads': 3}\nnet = Net(**cfg)", "Net(**cfg) [cfg is {'dim': 12, 'heads': 3}]"),
    "an element": ("cfg = {'dim': 12}\nnet = Net(cfg['dim'])", "Net(cfg['dim']) [cfg['dim'] is 12]"),
    "a list": ("dims = [4, 8]\nnet = Net(12, dims=dims)", "Net(12, dims=dims) [dims is [4, 8]]"),
    "a list that changes": ("dims = [4, 8]\ndims.append(2)\nnet = Net(12, dims=dims)", "Net(12, dims=dims)\n"),
    "a class": (
        "class Config:\n    model_dim = 12\nnet = Net(Config.model_dim)",
        "Net(Config.model_dim) [Config.model_dim is 12]",
    ),
    "in two ways": (
        "heads = 3\nif time.time() > 3:\n    heads = 4\nnet = Net(12, heads)",
        "Net(12, heads) [heads is 3 or 4]",
    ),
}


@pytest.mark.parametrize(("makes", "says"), MADE.values(), ids=MADE)
def test_what_a_draft_asks_for_says_what_its_names_are(makes: str, says: str, write: Write) -> None:
    """`d_model = 128` was listed for its name, and `heads = 4` said nowhere."""
    net = "net = torchvision.models.resnet18(num_classes=7)"
    script = write(HEAD + OWN_NET + REST.replace(net, makes) + LOOP)
    found = recipe_text(analyze_script(script))
    assert f": {says}" in found and yaml.safe_load(found)["model"] == "???"
    assert not any("d_model" in line for line in listed(script))


def test_so_do_a_data_set_and_a_file_of_another_folder(write: Write) -> None:
    data = 'data = datasets.ImageFolder("/birds/train", transforms.ToTensor())'
    own = """
from own import Birds
root, size = "/birds", 32
data = Birds(root, size=size)
"""
    script = write(HEAD + REST.replace(data, own) + LOOP)
    (script.parent / "own.py").write_text(
        "from torch.utils.data import Dataset\nclass Birds(Dataset):\n"
        "    def __init__(self, root, size): pass\n    def __getitem__(self, at): return 1, 2\n"
    )
    assert ": Birds(root, size=size) [root is '/birds', size is 32]" in recipe_text(analyze_script(script))


PLAIN = """
class Own:
    def __init__(self, of):
        self.optimizer = of
    def zero_grad(self):
        self.optimizer.zero_grad()
    def step(self):
        self.optimizer.step()
own = Own(opt)
"""
OF_OWN = LOOP.replace("opt.", "own.")


def test_the_update_inside_of_an_own_step_is_the_only_one(write: Write) -> None:
    """`self.optimizer.step()` was said to be a second update, after the `own.step()` that runs it."""
    assert listed(write(HEAD + REST + PLAIN + OF_OWN)) == ["own = Own(opt)"]
    twice = PLAIN.replace(
        "        self.optimizer.step()", "        self.optimizer.step()\n        self.optimizer.step()"
    )
    for script in (PLAIN + OF_OWN + "        opt.step()\n", twice + OF_OWN):
        assert any("[a second update in this step]" in line for line in listed(write(HEAD + REST + script)))


def test_the_loss_of_a_function_is_not_asked_for_where_the_draft_has_it(write: Write) -> None:
    functional = "nn.functional.cross_entropy"
    text = LOOP.replace("criterion(net(x), y)", f"{functional}(net(x).flatten(1), y)")
    found = listed(write(HEAD + REST.replace("criterion = nn.CrossEntropyLoss()", "") + text))
    assert found == [f"loss = {functional}(net(x).flatten(1), y)"]


@pytest.mark.parametrize(
    ("optimizer", "rate", "asks"),
    [
        ("Adam(net.parameters(), betas=(0.5, 0.9))", "group['lr'] = 0.5 / (1 + epoch)", True),
        ("Adam(net.parameters())", "group['lr'] = 0.5 / (1 + epoch)", True),
        ("Adam(net.parameters(), lr=0.3)", "group['lr'] = 0.5 / (1 + epoch)", False),
        ("Adam(net.parameters())", "group['weight_decay'] = 0.5 / (1 + epoch)", False),
    ],
)
def test_a_rate_that_is_set_by_hand_is_asked_for_where_the_optimizer_has_none(
    optimizer: str, rate: str, asks: bool, write: Write
) -> None:
    by_hand = f"    for group in opt.param_groups:\n        {rate}\n    for x, y"
    script = write(
        HEAD + REST.replace("SGD(net.parameters(), lr=0.2)", optimizer) + LOOP.replace("    for x, y", by_hand)
    )
    assert (drafted(script)["optimizer"].get("args", {}).get("lr") == "???") == asks
    assert recipe_text(analyze_script(script)).count("which schedule is it?") == ("'lr'" in rate)


BOTH = """
both = {"a": loader, "b": DataLoader(data, batch_size=SIZE)}
from elsewhere import chosen
for epoch in range(4):
    for x, y in both[chosen(epoch)]:
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


@pytest.mark.parametrize(("size", "batch"), [("16", 16), ("8", "???"), ("chosen", "???")])
def test_the_batch_of_all_loaders_is_that_of_the_one_that_trains(size: str, batch: int | str, write: Write) -> None:
    script = write(HEAD + REST + BOTH.replace("SIZE", size))
    assert drafted(script)["data"]["batch"] == batch


RUN = """
val = DataLoader(data, batch_size=9)
def run(batches, PARAMETER):
    for x, y in batches:
        loss = criterion(net(x), y)
        if TEST:
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(net.parameters(), 3)
            opt.step()
        else:
            net.fc.weight.data.mul_(0.5)
for epoch in range(4):
    run(loaderONE)
    run(valOTHER)
"""
CALLERS = {
    "a default": ("cross=False", "not cross", "", ", cross=True", "not cross"),
    "a flag": ("train", "train", ", True", ", False", "train"),
    "a word": ("kind", "kind == 'train'", ", 'train'", ", kind='val'", "kind == 'train'"),
    "an optimizer": ("own=None", "own is not None", ", opt", "", "own is not None"),
}


@pytest.mark.parametrize(("parameter", "test", "one", "other", "says"), CALLERS.values(), ids=CALLERS)
def test_a_condition_that_one_caller_meets_and_not_the_other_is_said(
    parameter: str, test: str, one: str, other: str, says: str, write: Write
) -> None:
    """Both sides of `if data_type == 'train'` were listed as if both ran."""
    text = RUN.replace("PARAMETER", parameter).replace("TEST", test).replace("ONE", one).replace("OTHER", other)
    found = listed(write(HEAD + REST + text))
    assert has(found, f"nn.utils.clip_grad_value_(net.parameters(), 3) [only where {says}]")
    assert has(found, f"net.fc.weight.data.mul_(0.5) [only where not ({says})]")


def test_a_condition_that_every_caller_meets_is_not(write: Write) -> None:
    text = RUN.replace("PARAMETER", "train=True").replace("TEST", "train").replace("ONE", ", True").replace("OTHER", "")
    assert "nn.utils.clip_grad_value_(net.parameters(), 3)" in listed(write(HEAD + REST + text))


PAIRS = """
class Pairs(object):
    def __init__(self, root, size):
        self.size = size
        self.files = [file.upper() for file in os.listdir(root)]
    def __len__(self):
        return len(self.files)
    def __getitem__(self, at):
        x = torch.zeros(self.size) / 255.0
        return x, self.files[at]
"""
USED = {
    "by its place": "data = Pairs('/birds', 32)",
    "by name": "data = Pairs('/birds', 32)\nBY_NAME",
    "a class of its own": "class Own(Pairs):\n    def __getitem__(self, at):\n        return super().__getitem__(at)\n"
    "data = Own('/birds', 32)",
}


@pytest.mark.parametrize("made", USED.values(), ids=USED)
def test_a_class_that_a_loader_gets_is_a_data_set_without_torchs_base(made: str, write: Write) -> None:
    """Its __getitem__ was listed line by line, and its __init__ passed over."""
    data = 'data = datasets.ImageFolder("/birds/train", transforms.ToTensor())'
    rest = REST.replace("DataLoader(data", "DataLoader(dataset=data") if "BY_NAME" in made else REST
    script = write(HEAD + PAIRS + rest.replace(data, made.replace("BY_NAME", "")) + LOOP)
    found = reasons(script)
    inside = "self.size = size", "x = torch.zeros(self.size) / 255.0", "return x, self.files[at]"
    assert all(found.get(one, "inside Pairs").startswith("inside Pairs") for one in inside)
    assert drafted(script)["data"]["source"] == "???" and not has(listed(script), *inside[1:])


def test_a_list_of_files_that_is_sorted_is_listed(write: Write) -> None:
    """A method of what os.listdir gives was passed over as one of os."""
    text = "files = os.listdir('/birds')\nfiles.sort(key=len)\ndata = Pairs(files, 32)"
    script = write(
        HEAD + PAIRS + REST.replace('data = datasets.ImageFolder("/birds/train", transforms.ToTensor())', text) + LOOP
    )
    assert has(listed(script), "files.sort(key=len)", "files = os.listdir('/birds')")


def test_nor_is_it_where_a_library_calls_the_method_that_counts(write: Write) -> None:
    """The rate and the factor of the first call were said."""
    own = """
import lightning.pytorch as pl
class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.n, self.first = nn.Linear(3, 4), 0, True
    def training_step(self, batch, at):
        self.n += 1
        lr, k = 0.5 / self.n, 1.0 if self.first else 0.5
        self.first = False
        for group in self.opt.param_groups:
            group["lr"] = lr
        return criterion(self.net(batch[0]) * k, batch[1])
    def configure_optimizers(self):
        self.opt = torch.optim.SGD(self.parameters(), lr=0.2)
        return self.opt
pl.Trainer(max_epochs=3).fit(Net(), loader)
"""
    found = listed(write(HEAD + REST + own))
    assert has(found, 'group["lr"] = lr [for group in self.opt.param_groups]', "return criterion(")
    assert not any("lr is" in one or "k is" in one for one in found)


NET = "".join(line for line in REST.splitlines(keepends=True) if not line.startswith("loader"))
ONE_STEP = """opt.zero_grad()
                loss = criterion(net(x), y)
                loss.backward()
                opt.step()"""
TWO_LOADERS = f"""{HEAD}{REST}
one = DataLoader(datasets.ImageFolder("/birds/one_val", transforms.ToTensor()), batch_size=3)
two = DataLoader(datasets.ImageFolder("/birds/two", transforms.ToTensor()), batch_size=5)
"""
BY_PHASE = """
for epoch in range(4):
    for phase in WHICH:
        for x, y in WHAT:
            if TEST:
                STEP
            else:
                print(criterion(net(x), y).item())
"""
IN_TABLES = {
    "a table": ("both = {'train': one, 'val': two}", "['train', 'val']", "both[phase]", "phase == 'train'"),
    "its keys": ("both = {'train': one, 'val': two}", "both", "tqdm(both[phase])", "phase == 'train'"),
    "dict": ("both = dict(train=one, val=two)", "both.keys()", "both[phase]", "phase != 'val'"),
    "one by one": ("both = {}\nboth['a'] = one\nboth['b'] = two", "('a', 'b')", "both[phase]", "phase in ('a',)"),
    "places": ("both = [one, two]", "range(2)", "both[phase]", "not phase"),
    "a flag": ("both = {True: one, False: two}", "(True, False)", "enumerate(both[phase])", "phase"),
}


@pytest.mark.parametrize("how", IN_TABLES.values(), ids=IN_TABLES)
def test_the_loader_of_a_table_that_is_trained_on_is_the_one_that_a_step_runs_on(
    how: tuple[str, ...], write: Write
) -> None:
    """The variables' names told which: the loader of "train" was said to be the one for validation."""
    made, which, what, test = how
    loop = BY_PHASE.replace("WHICH", which).replace("WHAT", what).replace("TEST", test).replace("STEP", ONE_STEP)
    loop = loop.replace("for x, y in enumerate", "for _, (x, y) in enumerate")
    found = drafted(write(f"from tqdm import tqdm\n{TWO_LOADERS}{made}\n{loop}"))["data"]
    assert (found["batch"], found["eval_batch"]) == (3, 5)
    every = loop.replace(f"if {test}:", "if True:")
    found = recipe_text(analyze_script(write(f"from tqdm import tqdm\n{TWO_LOADERS}{made}\n{every}")))
    data = yaml.safe_load(found)["data"]
    assert data["batch"] == "???" and "validation" not in data and "eval_batch" not in data
    assert found.count("one of several loaders that a step runs on") == 2


@pytest.mark.parametrize("pairs", ["both.items()", "[('train', one), ('val', two)]"])
def test_so_is_one_of_pairs_and_one_that_a_function_is_given(pairs: str, write: Write) -> None:
    body = f"""
def run(batches, train):
    for x, y in batches:
            if train:
                {ONE_STEP}
class Trainer:
    def fit(self, phases):
        for phase, batches in {{}}:
            run(batches, train=phase == "train")
"""
    by_pairs = body.replace("{}", pairs) + "for epoch in range(4):\n    Trainer().fit(4)\n"
    by_calls = body.replace("{}", "[]") + "for epoch in range(4):\n    run(one, True)\n    run(two, False)\n"
    for rest in (by_pairs, by_calls):
        found = drafted(write(f"{TWO_LOADERS}both = {{'train': one, 'val': two}}\n{rest}"))["data"]
        assert (found["batch"], found["eval_batch"]) == (3, 5)


def test_a_loader_whose_gradients_are_taken_and_that_no_update_follows_is_not_trained_on(write: Write) -> None:
    attack = "\nfor x, y in one:\n    loss = criterion(net(x), y)\n    loss.backward()\n    print(x.grad)\n"
    script = write(TWO_LOADERS.replace("one_val", "one") + LOOP + attack)
    assert drafted(script)["data"]["batch"] == 16


@pytest.mark.parametrize(("first", "second"), [("train", "val"), ("test", "training"), ("val_data", "train_data")])
def test_where_a_loop_does_not_tell_the_key_does(first: str, second: str, write: Write) -> None:
    loop = BY_PHASE.replace("WHICH", "elsewhere()").replace("WHAT", "both[phase]").replace("TEST", "phase")
    made = f"from other import elsewhere\nboth = {{'{first}': one, '{second}': two}}\n"
    found = drafted(write(TWO_LOADERS.replace(REST, NET) + made + loop.replace("STEP", ONE_STEP)))["data"]
    assert found["batch"] == (3 if first == "train" else 5)


BY_RETURN = {
    "early": (
        "if device == 'cpu':\n        return small\n    return large",
        "device == 'cpu'",
        "not (device == 'cpu')",
    ),
    "two": (
        "if device is None:\n        return 3\n    if device == 'cpu':\n        return small\n    return large",
        "not (device is None) and device == 'cpu'",
        "not (device is None) and not (device == 'cpu')",
    ),
    "else": (
        "if device != 'cpu':\n        pass\n    else:\n        return small\n    return large",
        "not (device != 'cpu')",
        "device != 'cpu'",
    ),
    "inside": (
        "with open('x'):\n        if device == 'cpu':\n            return small\n    return large",
        "device == 'cpu'",
        "not (device == 'cpu')",
    ),
}


@pytest.mark.parametrize("how", BY_RETURN.values(), ids=BY_RETURN)
@pytest.mark.parametrize("where", ["here", "in a method", "in a file"])
def test_what_follows_an_early_return_carries_its_condition(
    how: tuple[str, str, str], where: str, write: Write
) -> None:
    """The second of two results was listed without a word, and was taken for what always runs."""
    text, first, second = how
    text = text.replace("small", "DataLoader(data, batch_size=4)").replace("large", "DataLoader(data, batch_size=8)")
    inner = f"def loader_of(data, device):\n    {text}\n"
    made = "loader_of(data, elsewhere())"
    if where == "in a method":
        inner = "class Made:\n    " + inner.replace("\n", "\n    ").replace("(data, device)", "(self, data, device)")
        made = f"Made().{made}"
    imported = "from other import elsewhere\n" + ("from loaders import loader_of\n" if where == "in a file" else inner)
    rest = REST.replace("DataLoader(data, batch_size=16, shuffle=True, drop_last=True)", made)
    script = write(HEAD + imported + rest + LOOP)
    (script.parent / "loaders.py").write_text(HEAD + inner)
    found = [line for line in listed(script) if line.startswith("return DataLoader")]
    assert [line.partition("[only where ")[2].rstrip("]") for line in found] == [first, second]


def test_a_batch_that_is_passed_over_leaves_the_rest_of_the_step_as_it_is(write: Write) -> None:
    """`continue` and `return` in a loop are lines of their own, which say when the rest does not run."""
    skips = LOOP.replace("        loss =", "        if x.isnan().any():\n            continue\n        loss =")
    found = listed(write(HEAD + REST + skips))
    assert found == ["continue [only where x.isnan().any()]"]


KINDS = """
def own(a, b):
    return ((a - b) ** 2 + 1e-6).sqrt().mean()
def loss_of(a, b, kind):
    if kind == "l1":
        ONE = nn.functional.l1_loss(a, b)
    elif kind == "own":
        ONE = own(a, b)
    else:
        raise ValueError(kind)
    return ONE
def evaluate(kind):
    net.eval()
    for x, y in loader:
        print(loss_of(net(x), y, kind))
    net.train()
"""
CHECKED = "    if epoch % checks == 0:\n        evaluate(kind)\n"


@pytest.mark.parametrize("first", ["for _ in range(2):\n    evaluate(kind)\n", "if checks:\n    evaluate(kind)\n", ""])
@pytest.mark.parametrize("way", ["by a name", "by results"])
def test_the_loss_of_a_branch_has_the_conditions_of_the_training_call(first: str, way: str, write: Write) -> None:
    """The condition of the evaluation's call was named, and not the branch that the defaults take."""
    kinds = KINDS if way == "by a name" else KINDS.replace("ONE =", "return").replace("    return ONE\n", "")
    loop = LOOP.replace("criterion(net(x), y)", "loss_of(net(x), y, kind)") + CHECKED
    script = write(f"{HEAD}from settings_of import kind, checks\n{REST}{kinds}{first}{loop}")
    found = recipe_text(analyze_script(script)).split("\nloss: ???")[0].rpartition("\n\n")[2].splitlines()
    assert [line.partition(", where ")[2] for line in found] == [
        'kind == "l1": a part of the loss',
        'not (kind == "l1") and kind == "own": in its place',
    ]


@pytest.mark.parametrize("added", ["one + 0.1 * a.abs().mean()", "0.5 * (one - a.sum())", "(a.sum() + one).mean()"])
@pytest.mark.parametrize("where", ["here", "in a method", "in a file"])
def test_what_is_added_to_the_loss_in_a_function_is_not_left_out(added: str, where: str, write: Write) -> None:
    """`loss: MSELoss` was drafted, for the sum stood two steps before the backward pass."""
    body = f"one = nn.functional.mse_loss(a, b)\n    total = {added}\n    return total, 3"
    inner, called = f"def loss_of(a, b):\n    {body}\n", "loss_of(net(x), y)"
    if where == "in a method":
        inner = "class Made:\n    " + inner.replace("\n", "\n    ").replace("(a, b):", "(self, a, b):")
        called = f"Made().{called}"
    imported = "from losses_of import loss_of\n" if where == "in a file" else inner
    loop = LOOP.replace("loss = criterion(net(x), y)", f"parts, _ = {called}\n        loss = parts / 2")
    script = write(HEAD + imported + REST + loop)
    (script.parent / "losses_of.py").write_text(HEAD + inner)
    assert f"total = {added}: more is added to it\nloss: ???" in recipe_text(analyze_script(script))


CONTEXTS = {
    "by a function": ("with context(kind):\n            loss = criterion(net(x), y)", "?"),
    "in a branch": (
        "if kind:\n            with torch.autocast('cuda'):\n                loss = criterion(net(x), y)\n"
        "        else:\n            loss = criterion(net(x), y)",
        "?",
    ),
    "by a result": (
        "with torch.autocast('cuda') if kind else nullcontext():\n            loss = criterion(net(x), y)",
        "?",
    ),
    "by a name": (
        "if kind:\n            inner = torch.autocast('cuda')\n        else:\n            inner = nullcontext()\n"
        "        with inner:\n            loss = criterion(net(x), y)",
        "?",
    ),
    "on the device": (
        "with torch.autocast('cuda') if torch.cuda.is_available() else nullcontext():\n"
        "            loss = criterion(net(x), y)",
        "O1",
    ),
    "always": ("with always():\n            loss = criterion(net(x), y)", "O1"),
}


@pytest.mark.parametrize("how", CONTEXTS.values(), ids=CONTEXTS)
@pytest.mark.parametrize("around", ["", "if told:\n    "])
def test_half_precision_that_a_setting_chooses_is_asked_for(how: tuple[str, str], around: str, write: Write) -> None:
    """`amp: {level: O1, dtype: bfloat16}` was drafted, which holds only where a file says so."""
    text, level = how
    contexts = """
from contextlib import nullcontext
def context(kind):
    if kind is None:
        return nullcontext()
    if kind == "bf16":
        return torch.autocast("cuda", dtype=torch.bfloat16)
    return torch.autocast("cuda", dtype=torch.float16)
def always():
    return torch.autocast("cuda", dtype=torch.float16)
"""
    loop = LOOP.replace("loss = criterion(net(x), y)", text)
    loop = around + loop.lstrip().replace("\n", "\n    ") if around else loop
    found = drafted(write(f"{HEAD}from settings_of import kind, told\n{contexts}{REST}{loop}"))
    assert found["amp"] == ("???" if level == "?" else {"level": level, "dtype": "float16"})


@pytest.mark.parametrize(("test", "left_open"), [("kind", True), ("torch.cuda.is_available()", False)])
def test_so_is_a_scaler(test: str, left_open: bool, write: Write) -> None:
    scaler = f"\nif {test}:\n    scaler = torch.amp.GradScaler('cuda', init_scale=2.0)\n"
    found = drafted(write(f"{HEAD}from settings_of import kind\n{REST}{scaler}{LOOP}"))["dynamic_loss_scale"]
    assert (found == "???") == left_open


CLASSES = """
from dataclasses import dataclass
@dataclass
class Output:
    logits: torch.Tensor
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(width, 7)
    @classmethod
    def built(cls, width):
        return cls(width)
    @staticmethod
    def plain(width):
        return Net(width)
    def another(self):
        return self.__class__(3)
    def forward(self, x):
        return self.body(x)
class Wide(Net):
    def forward(self, x):
        return self.body(x * 2)
class Birds(Dataset):
    def __init__(self, folder):
        self.names = folder
    @classmethod
    def listed(cls, folder):
        made = cls(folder)
        return made
    def __getitem__(self, at):
        return {"x": at, "y": 1}
"""
MAKERS = ["Net.built(3)", "Net(3)", "Wide.built(width=3)", "classes.Net.built(3)"]


@pytest.mark.parametrize("made", MAKERS)
@pytest.mark.parametrize("compiled", ["", "if told:\n    net = torch.compile(net)\n"])
def test_a_class_may_make_its_objects_itself(made: str, compiled: str, write: Write) -> None:
    """`cls(…)` made no object: nothing was known of the model, nor of the data set, but the line of torch.compile."""
    rest = REST.replace("torchvision.models.resnet18(num_classes=7)\n", f"{made}\n{compiled}")
    rest = rest.replace('datasets.ImageFolder("/birds/train", transforms.ToTensor())', "Birds.listed('/birds')")
    in_file = made.startswith("classes.")
    imported = "import classes\nfrom classes import Birds\n" if in_file else CLASSES
    script = write(f"{HEAD}{imported}told = len(sys.path)\n{rest}{LOOP}")
    (script.parent / "classes.py").write_text(HEAD + CLASSES)
    found = recipe_text(analyze_script(script))
    assert f": {made}\n# a model of the script's own" in found
    assert any("takes no dict" in note for use in analyze_script(script).uses for note in use.notes)
    why = reasons(script)
    assert why["self.body = nn.Linear(width, 7)"] == "inside Net, which is accounted for where it is made"
    assert why["self.names = folder"] == "inside Birds, which is accounted for where it is made"
    assert not has(listed(script), "logits: torch.Tensor")


@pytest.mark.parametrize("made", ["Net.plain(3)", "Net(3).another()", "type(Net(2))(3)"])
def test_an_object_that_makes_another_of_its_class(made: str, write: Write) -> None:
    script = write(f"{HEAD}{CLASSES}{REST.replace('torchvision.models.resnet18(num_classes=7)', made)}{LOOP}")
    assert "# a model of the script's own" in recipe_text(analyze_script(script))


def test_a_picture_that_is_written_into_memory_makes_no_data(write: Write) -> None:
    kept = "import io\nfrom PIL import Image\nbuffer = io.BytesIO()\nImage.new('RGB', (3, 3)).save(buffer)\n"
    script = write(f"{HEAD}{kept}print(Image.open(buffer))\n{REST}{LOOP}")
    assert listed(script) == []


GUARDS = [
    'if __name__ == "__main__":',
    'if "__main__" == __name__:',
    'if __name__ == "__main__" and len(sys.argv) > 1:',
    'if not __name__ != "__main__":',
    'if __name__ != "__main__":\n    pass\nelse:',
]
OWN_RUN = """
RATE = 0.5
def joined(rows):
    rows = [row for row in rows if row[1] > 3]
    return torch.utils.data.default_collate(rows)
def alone():
    for phase in ["train", "val"]:
        if phase == "train":
            other.step()
GUARD
    RATE = 0.25
    joined([])
    from elsewhere import model
    other = torch.optim.Adam(model.parameters(), lr=0.125)
    for epoch in range(77):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
                other.step()
            else:
                model.eval()
            for group in other.param_groups:
                group["lr"] = RATE
    alone()
"""


@pytest.mark.parametrize("guard", GUARDS)
def test_what_an_imported_file_does_as_a_script_is_no_part_of_this_one(guard: str, write: Write) -> None:
    """An inner condition made its lines run, and the draft named its optimizer, its rates and its settings."""
    rest = REST.replace("lr=0.2", "lr=RATE").replace("shuffle=True", "shuffle=True, collate_fn=joined")
    script = write(f"{HEAD}from parts import RATE, joined\n{rest}{LOOP}")
    (script.parent / "parts.py").write_text(HEAD + OWN_RUN.replace("GUARD", guard))
    found = recipe_text(analyze_script(script))
    assert yaml.safe_load(found)["optimizer"] == {"name": "SGD", "args": {"lr": 0.5}}
    assert yaml.safe_load(found)["train"]["epochs"] == 4
    assert listed(script) == ["collate_fn=joined of torch.utils.data.DataLoader"]
    assert "where it is called" in reasons(script)["rows = [row for row in rows if row[1] > 3]"]
    assert "Adam" not in found and "param_groups" not in found and "77" not in found
    said = notes(analyze_script(script))
    assert any(line.startswith('below `if __name__ == "__main__"` of a file that is only imported') for line in said)
    assert not any(line.startswith("only with other arguments") for line in said)


@pytest.mark.parametrize("guard", GUARDS[:2])
def test_the_script_that_is_read_runs_below_its_guard(guard: str, write: Write) -> None:
    body = (REST + LOOP).replace("\n", "\n    ")
    assert listed(write(f"{HEAD}{guard}{body}\n")) == []


OWNER = """
class Trainer(BASE):
    def __init__(self):
        self.rate = 0.3
    MARK
    def restore(self, path):
        net.load_state_dict(torch.load(path))
        for group in opt.param_groups:
            group["lr"] = self.rate
    def fit(self):
        for x, y in loader:
            loss = criterion(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
"""
RESTORED = "net.load_state_dict(torch.load(path))"
USES = {
    "called": ("", "object", "trainer.restore('best.pth')"),
    "by a string": ("", "object", "getattr(trainer, 'restore')('best.pth')"),
    "by a name": ("", "object", "getattr(trainer, sys.argv[1])('best.pth')"),
    "in a table": ("", "object", "{'r': trainer.restore}[sys.argv[1]]('best.pth')"),
    "by a library": ("", "object", "elsewhere.watch(trainer)"),
    "by its class": ("", "object", "elsewhere.watch(model=Trainer)"),
    "by a base": ("", "elsewhere.Base", "pass"),
    "by a decorator": ("@elsewhere.hook", "object", "pass"),
}


@pytest.mark.parametrize("how", USES.values(), ids=USES)
def test_a_method_that_may_be_called_is_listed(how: tuple[str, str, str], write: Write) -> None:
    mark, base, use = how
    own = OWNER.replace("    MARK\n", f"    {mark}\n" if mark else "").replace("BASE", base)
    rest = f"trainer = Trainer()\n{use}\nfor epoch in range(4):\n    trainer.fit()\n"
    script = write(f"{HEAD}import elsewhere\n{REST}{own}{rest}")
    assert has(listed(script), RESTORED)


@pytest.mark.parametrize("use", ["# trainer.restore('best.pth')", "print(trainer, str(getattr(net, sys.argv[1])))"])
@pytest.mark.parametrize("base", ["object", "nn.Module", "Plain"])
def test_a_method_that_nothing_calls_is_not(use: str, base: str, write: Write) -> None:
    """Its lines were listed as if they ran, and its rate was asked for as a schedule."""
    own = "class Plain:\n    pass\n" + OWNER.replace("    MARK\n", "").replace("BASE", base)
    rest = f"trainer = Trainer()\n{use}\nfor epoch in range(4):\n    trainer.fit()\n"
    found = recipe_text(analyze_script(write(f"{HEAD}{REST}{own}{rest}")))
    assert RESTORED not in found
    assert ("which schedule is it" in found) == (base == "nn.Module")  # of which any method may be the model's


REFUSALS = """
class Own(nn.Module):
    def forward(self, features, labels=None, mask=None):
        if labels is not None and mask is not None:
            raise ValueError("both")
        elif labels is None and mask is None:
            mask = torch.eye(3)
        elif labels is not None:
            mask = torch.eq(labels, labels.T)
        else:
            mask = mask.float()
        return torch.mm(features, mask).mean()
own = Own()
"""
REFUSES = """
def scaled(x, kind="wide", size=3):
    if kind == "wide" and size == 3:
        raise ValueError("too wide")
    elif kind == "wide":
        x = torch.relu(x)
    else:
        x = torch.tanh(x)
    return torch.sigmoid(x)
"""


def test_what_follows_a_refusal_with_other_branches_runs(write: Write) -> None:
    """Every line below was said to run only with other arguments than the defaults."""
    for own, loss in ((REFUSALS, "own(net(x), y)"), (REFUSES, "criterion(scaled(net(x)), y)")):
        script = write(HEAD + own + REST + LOOP.replace("criterion(net(x), y)", loss))
        uses = {use.torch: use.certainty for use in analyze_script(script).uses}
        assert uses.get("torch.mm", uses.get("torch.sigmoid")) == "default"
        branches = {uses[name] for name in ("torch.eye", "torch.eq", "torch.relu") if name in uses}
        assert branches == ({"perhaps"} if own is REFUSALS else {"default"})


@pytest.mark.parametrize(
    ("imports", "file", "said"),
    [
        ("from unet import Unet", "Unet.py", "unet (train.py:2), but there is Unet.py: names of files count upper"),
        ("import models.unet", "Models/unet.py", "models (train.py:2), but there is Models: names"),
        ("from models.unet import Unet", "Models/unet.py", "models.unet (train.py:2), but there is Models/unet.py"),
        ("import models", "MODELS/__init__.py", "models (train.py:2), but there is MODELS: names"),
        ("import own.parts", "own/Parts.py", "but there is own/Parts.py"),
        ("import unet", "unets.py", "unet (train.py:2)"),
        ("import unet", "other/Unet.py", "unet (train.py:2)"),
    ],
)
def test_a_file_whose_name_has_other_letters_is_named(imports: str, file: str, said: str, write: Write) -> None:
    """`from unet import *` was said to have no file, beside Unet.py, where it works on Windows."""
    script = write(f"import torch\n{imports}\n{REST}{LOOP}".replace("datasets.", "torchvision.datasets."))
    (script.parent / file).parent.mkdir(exist_ok=True)
    (script.parent / file).write_text("Unet = 3\n")
    (line,) = (one for one in notes(analyze_script(script)) if one.startswith("imported but not read"))
    assert said in line and ("but there is" in line) == ("but there is" in said)


SEVERAL_SETS = """
one = datasets.ImageFolder("/birds/one", transforms.ToTensor())
two = datasets.ImageFolder("/birds/two", transforms.ToTensor())
def measured(part, size=3):
    for x, y in DataLoader(part, batch_size=size):
        print(criterion(net(x), y).item())
class Checks:
    def measured(self, part, size=3):
        measured(part, size)
"""


@pytest.mark.parametrize("way", ["measured(", "Checks().measured(", "checks.measured("])
def test_of_data_sets_that_one_function_evaluates_none_is_taken_as_the_first(way: str, write: Write) -> None:
    imported = "" if way != "checks.measured(" else "import checks\n"
    for other, size, batch in (("two", 3, 3), ("one", 3, 3), ("two", 5, "???")):
        calls = f"    {way}one)\n    {way}{other}, {size})\n"
        script = write(f"{HEAD}{imported}{REST}{SEVERAL_SETS}{LOOP}{calls}")
        (script.parent / "checks.py").write_text(f"{HEAD}{REST}{SEVERAL_SETS}")
        found = recipe_text(analyze_script(script))
        data = yaml.safe_load(found)["data"]
        assert data["validation"] == ("folder:/birds/one" if other == "one" else "???") and data["eval_batch"] == batch
        if other == "two":
            assert '("/birds/one", transforms.ToTensor())' in found and '("/birds/two", transforms.ToTensor())' in found


TWO_CALLS = """
import albumentations
wide, plain = albumentations.Wide(), albumentations.Plain()
def run(batches, kind="train"):
    for x, y in batches:
        if TEST:
            x = wide.change(x)
        else:
            x = plain.change(x)
        out = net(x).sum(1)
        loss = (out - y).abs().mean()
        if TEST:
            opt.zero_grad()
            loss.backward()
            opt.step()
"""


@pytest.mark.parametrize("test", ["kind == 'train'", "kind != 'valid'", "kind in ('train', 'fit')"])
@pytest.mark.parametrize("where", ["here", "in a method", "in a file", "by an argument"])
def test_a_line_that_one_call_runs_and_another_does_not_says_so(test: str, where: str, write: Write) -> None:
    """Both sides of `if data_type == "train"` were listed as if both ran, for two calls decide it."""
    own = TWO_CALLS.replace("TEST", test)
    run = {"in a method": "Own().run", "in a file": "runs.run"}.get(where, "run")
    if where == "in a method":
        own = own.replace("def run(batches", "class Own:\n  def run(self, batches")
    other = f"    {run}(loader, kind='valid')\n" if where != "by an argument" else "    run(loader, *['valid'])\n"
    text = f"for epoch in range(4):\n    {run}(loader)\n{other}"
    script = write(f"{HEAD}{'import runs' if where == 'in a file' else ''}\n{REST}{own}{text}")
    (script.parent / "runs.py").write_text(f"{HEAD}{REST}{own}")
    found = listed(script)
    assert has(found, f"x = wide.change(x) [only where {test}", f"x = plain.change(x) [only where not ({test})")
    assert has(found, f"loss.backward() [the draft asks for the loss of this step, only where {test}")


def test_a_function_that_is_always_called_alike_has_no_such_condition(write: Write) -> None:
    own = TWO_CALLS.replace("TEST", "kind == 'train'")
    found = listed(write(f"{HEAD}{REST}{own}for epoch in range(4):\n    run(loader)\n    run(loader, 'train')\n"))
    assert has(found, "x = wide.change(x)") and not any("only where" in line for line in found)


METERS = """
import json, wandb
class Meter:
    def __init__(self, name):
        self.name = name
        self.sum = 0
        self.count = 0
    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
    def mean(self):
        return self.sum / self.count
class Folder:
    def __init__(self, name, parent):
        self.name = name
        self.parent = parent
def started(folder):
    if not folder:
        return None
    run = wandb.init(dir=folder)
    return run
def kept(path, epoch):
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(net.state_dict(), path)
run = started(sys.argv[1:])
os.environ["PYTHONHASHSEED"] = "3"
meter, losses, best = Meter("loss"), [], 0.0
"""
MEASURES = """
        meter.update(loss.item(), len(x))
        losses.append(loss)
        if run is not None:
            run.log({"rate": opt.param_groups[0]["lr"], "loss": meter.mean()})
    if meter.mean() > best:
        best = meter.mean()
        kept(Path("/kept/best.pt"), epoch)
"""


@pytest.mark.parametrize("loss", ["criterion(net(x), y)", "criterion(net(x), y).sum()"])
def test_meters_and_what_keeps_a_checkpoint_are_not_listed(loss: str, write: Write) -> None:
    """A method `sum()` of a tensor was read as the meter's number, and `path.parent.mkdir()` as a change of folders."""
    own = LOOP.replace("criterion(net(x), y)", loss).rstrip("\n") + MEASURES
    rest = REST.replace('"/birds/train"', "'/birds/' + folder.name")
    found = listed(write(f"{HEAD}{METERS}folder = Folder('birds', 'x')\n{rest}{own}"))
    words = ("self.sum", "best =", "meter", "losses", "run.log", "mkdir", "HASHSEED")
    assert [line for line in found if any(word in line for word in words)] == []


DECIDING = {
    "a rate": "    opt.param_groups[0]['lr'] = 0.1 / meter.mean()\n",
    "an end": "    if meter.mean() > 3:\n        break\n",
    "a read of its number": "    opt.param_groups[0]['lr'] = 0.1 / meter.sum\n",
    "by a parameter": "    lowered(meter)\n",
    "by a list": "    for one in [meter]:\n        lowered(one)\n",
    "by a table": "    lowered({'m': meter}['m'])\n",
    "by an attribute": "    folder.parent = meter\n    lowered(folder.parent)\n",
    "in a comprehension": "    opt.param_groups[0]['lr'] = sum(one.sum for one in [meter])\n",
    "in a lambda": "    opt.param_groups[0]['lr'] = (lambda one: one.sum)(meter)\n",
    "by setattr": "    setattr(folder, sys.argv[2], meter)\n    lowered(folder.held)\n",
    "by a holder": "    opt.param_groups[0]['lr'] = wandb.box().put(meter).sum\n",
    "by __getattr__": "    lowered(Box(meter).inside)\n",
    "by code elsewhere": "    opt.param_groups[0]['lr'] = wandb.watched(meter).sum\n",
}
BOX = """
class Box:
    def __init__(self, held):
        self.held = held
    def __getattr__(self, name):
        return self.held
"""
LOWERED = "def lowered(one):\n    opt.param_groups[0]['lr'] = 0.1 / one.sum\n"


@pytest.mark.parametrize("use", DECIDING.values(), ids=DECIDING)
def test_a_meter_that_decides_something_is(use: str, write: Write) -> None:
    own = LOOP.rstrip("\n") + MEASURES + use
    script = write(f"{HEAD}{METERS}{BOX * ('Box' in use)}{LOWERED}folder = Folder('birds', 'x')\n{REST}{own}")
    assert has(listed(script), "self.sum += value * n")


def test_a_list_of_losses_that_is_differentiated_is(write: Write) -> None:
    own = LOOP.replace("        loss = c", "        losses = []\n        loss = c").replace(
        "loss.backward()", "losses.append(loss)\n        sum(losses).backward()"
    )
    assert has(listed(write(HEAD + REST + own)), "losses.append(loss)")


@pytest.mark.parametrize("how", ["set_seed(42)", "set_random_seed(42)"])
def test_a_seed_that_a_library_sets_is_listed(how: str, write: Write) -> None:
    """It had no verdict: nothing that trains is handed over, and nothing comes back."""
    of = "from transformers import set_seed\nfrom others import set_random_seed\n"
    assert listed(write(f"{HEAD}{of}{how}\n{REST}{LOOP}")) == [how]
    assert listed(write(f"{HEAD}{of}torch.manual_seed(42)\n{how}\n{REST}{LOOP}")) == []


@pytest.mark.parametrize("limit", ["patience = 30", "class C: patience = 30\nc = C()"])
def test_the_numbers_of_a_condition_are_said(limit: str, write: Write) -> None:
    """Training ended `only where waited >= patience`, and 30 was nowhere."""
    name = "c.patience" if "class" in limit else "patience"
    ends = f"        waited += float(loss) > 1\n    if waited >= {name}:\n        break\n"
    found = listed(write(f"{HEAD}{REST}{limit}\nwaited = 0\n{LOOP}{ends}"))
    assert has(found, f"break [only where waited >= {name}] [{name} is 30]")


def test_a_loader_without_batches_of_its_own_drops_nothing_that_is_said(write: Write) -> None:
    """`drop_last: false` was drafted, torch's default, where the sampler makes the batches."""
    sampled = "batch_size=None, sampler=BatchSampler(RandomSampler(data), 4, drop_last=True)"
    rest = REST.replace("batch_size=16, shuffle=True, drop_last=True", sampled)
    script = write(f"{HEAD}from torch.utils.data import BatchSampler, RandomSampler\n{rest}{LOOP}")
    assert drafted(script)["data"]["drop_last"] == "???"
    (use,) = [one for one in analyze_script(script).uses if "GeneratorDataset" in (one.rewrite or "")]
    assert ".batch(" not in use.rewrite and any("is a batch already" in one for one in use.notes)


GIVES = {
    "class Net: pass": True,
    "if 1 > 2:\n    class Missing: pass": False,
    "try:\n    from fast import Missing\nexcept ImportError:\n    Missing = None": False,
    "def __getattr__(name): return name": False,
    "from elsewhere import *": False,
}


@pytest.mark.parametrize(("text", "lacks"), GIVES.items())
def test_a_name_that_its_file_does_not_have_is_said(text: str, lacks: bool, write: Write) -> None:
    """Classes of that file were read in its place, and nothing said that the script stops at its import."""
    script = write(f"{HEAD}from tasks import Missing\n{REST}{LOOP}")
    (script.parent / "tasks.py").write_text(f"import torch\n{text}\n")
    assert any("tasks.Missing (train.py:" in one for one in notes(analyze_script(script))) == lacks


OTHERS = """
import torch, torch.nn as nn, pytorch_lightning as pl
class Base(pl.LightningModule):
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.3)
class MSELoss(Base):
    def __init__(self):
        super(MSELoss, self).__init__()
        self.mse = nn.MSELoss()
    def training_step(self, batch, index):
        self.log("error", self.mse(batch[0], batch[1]))
        return self.mse(batch[0], batch[1])
def fit_epochs(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.7)
    for epoch in range(50):
        for x, y in loader:
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
"""


@pytest.mark.parametrize("use", ["pl.Trainer().fit(Missing())", "Missing(net).fit(loader)", "Missing(net, loader)"])
@pytest.mark.parametrize("imports", ["from tasks import Missing", "from tasks import Missing, kept", "import tasks"])
def test_nothing_else_of_a_file_is_read_for_a_name_that_it_lacks(use: str, imports: str, write: Write) -> None:
    """A class of another task with the name of one of torch's losses was listed line by line, its rate drafted."""
    own = f"import pytorch_lightning as pl\n{imports}\nnet, loader = nn.Linear(3, 2), [1]\n"
    if imports == "import tasks":  # what it lacks is only known of a name that is imported
        own = f"{own}from tasks import Missing\n"
    script = write(f"{HEAD}{own}{use}\n", tasks=f"{OTHERS}kept = 3\n")
    found = recipe_text(analyze_script(script))
    assert "tasks.py" not in found
    recipe = yaml.safe_load(found)
    assert recipe["optimizer"] == recipe["train"]["epochs"] == "???"
    assert has(listed(script), use)


@pytest.mark.parametrize(
    "use",
    [
        "from tasks import MSELoss\npl.Trainer().fit(MSELoss())",
        "import tasks\npl.Trainer().fit(tasks.MSELoss())",
        "import tasks as jobs\npl.Trainer().fit(getattr(jobs, sys.argv[1])())",
        "from tasks import MSELoss as Base\nclass Own(Base): pass\npl.Trainer().fit(Own())",
    ],
)
def test_what_is_named_of_such_a_file_is_read(use: str, write: Write) -> None:
    script = write(f"{HEAD}import pytorch_lightning as pl\nfrom tasks import Missing\n{use}\n", tasks=OTHERS)
    assert has(listed(script), "return self.mse(batch[0], batch[1])")


def test_a_function_of_such_a_file_that_is_called_is_read(write: Write) -> None:
    own = "from tasks import Missing, fit_epochs\nfit_epochs(nn.Linear(3, 2), DataLoader(data, batch_size=4))\n"
    assert drafted(write(HEAD + own, tasks=OTHERS))["train"]["epochs"] == 50


AROUND = {
    "of one function": (
        "for fold in range(5):\n    for p in net.parameters():\n        p.data.mul_(0.9)\n",
        "[for p in net.parameters(), inside of for fold in range(5)]",
    ),
    "of its call": (
        "def shrink():\n    for p in net.parameters():\n        p.data.mul_(0.9)\n"
        "for fold in range(5):\n    shrink()\n",
        "[for p in net.parameters(), inside of for fold in range(5)]",
    ),
    "of the call alone": (
        "def shrink(p):\n    p.data.mul_(0.9)\nfor p in net.parameters():\n    shrink(p)\n",
        "[for p in net.parameters()]",
    ),
    "of the call of its caller": (
        "def shrink():\n    for p in net.parameters():\n        p.data.mul_(0.9)\n"
        "def twice():\n    shrink()\nfor fold in range(5):\n    twice()\n",
        "[for p in net.parameters(), inside of for fold in range(5)]",
    ),
    "of a method": (
        "class Tools:\n    def shrink(self):\n        for p in net.parameters():\n            p.data.mul_(0.9)\n"
        "tools = Tools()\nwhile net.training:\n    tools.shrink()\n",
        "[for p in net.parameters(), inside of while net.training]",
    ),
    "of one of two calls": (  # how often it runs is not known of both
        "def shrink():\n    for p in net.parameters():\n        p.data.mul_(0.9)\n"
        "shrink()\nfor fold in range(5):\n    shrink()\n",
        "[for p in net.parameters()]",
    ),
    "with the steps in it": (  # it is drafted
        f"def shrink():\n    for p in net.parameters():\n        p.data.mul_(0.9)\n{LOOP}        shrink()\n",
        "[for p in net.parameters()]",
    ),
    "of itself": (
        "def shrink(n):\n    for p in net.parameters():\n        p.data.mul_(0.9)\n    shrink(n - 1)\n"
        "for fold in range(5):\n    shrink(fold)\n",
        "[for p in net.parameters()]",
    ),
}


@pytest.mark.parametrize(("text", "loops"), AROUND.values(), ids=AROUND)
def test_a_line_names_all_loops_around_it(text: str, loops: str, write: Write) -> None:
    """The innermost alone was named, and not one around the call of its function."""
    (found,) = [one for one in listed(write(HEAD + REST + text + LOOP * (LOOP not in text))) if "mul_" in one]
    assert found.endswith(loops) or f"{loops} [" in found, found


DECAYS = """
class Decay:
    def __init__(self, net, by, every=3):
        self.net = net
        self.by = by
        self.every = every
        net.fc.bias.data.mul_(by)
    def all(self, times=1):
        self.net.fc.weight.data.mul_(self.by * times)
"""
HANDED = {
    "one object": ("d = Decay(net, 0.5)\nd.all()\n", "self.by is 0.5, times is 1", "by is 0.5"),
    "two": (
        "d = Decay(net, 0.5)\ne = Decay(net, 0.9)\nd.all()\ne.all()\n",
        "times is 1, self.by is 0.5 or 0.9",
        "by is 0.5 or 0.9",
    ),
    "by name": (
        "d = Decay(net, by=0.5)\ne = Decay(net, by=0.9)\nd.all()\ne.all()\n",
        "times is 1, self.by is 0.5 or 0.9",
        "by is 0.5 or 0.9",
    ),
    "calls": ("d = Decay(net, 0.5)\nd.all()\nd.all(4)\n", "self.by is 0.5, times is 1 or 4", "by is 0.5"),
    "unknown": (
        "d = Decay(net, 0.5)\ne = Decay(net, float(sys.argv[1]))\nd.all()\ne.all()\n",
        "times is 1, self.by is 0.5 or float(sys.argv[1])",
        "by is 0.5 or float(sys.argv[1])",
    ),
    "of a loop": ("for r in (0.5, 0.9):\n    Decay(net, r).all()\n", "times is 1, self.by is r", "by is r"),
    "unpacked": ("s = {'by': 0.5}\nd = Decay(net, **s)\ne = Decay(net, 0.9)\nd.all()\ne.all()\n", "times is 1", ""),
    "of another class": (
        "class Other:\n    def __init__(self):\n        self.by = 4\n"
        "d = Decay(net, 0.5)\ne = Decay(net, 0.9)\nd.all()\ne.all()\n",
        "times is 1, self.by is 0.5 or 0.9",
        "by is 0.5 or 0.9",
    ),
    "of a class that derives from it": (
        "class Other(Decay):\n    def set(self):\n        self.by = 4\n"
        "d = Decay(net, 0.5)\ne = Other(net, 0.9)\ne.set()\nd.all()\ne.all()\n",
        "times is 1",
        "by is 0.5 or 0.9",
    ),
    "set later": (
        "d = Decay(net, 0.5)\ne = Decay(net, 0.9)\nd.by = float(sys.argv[1])\nd.all()\ne.all()\n",
        "times is 1",
        "by is 0.5 or 0.9",
    ),
}


@pytest.mark.parametrize(("text", "inside", "at_start"), HANDED.values(), ids=HANDED)
def test_the_values_of_an_object_are_said_where_they_train(text: str, inside: str, at_start: str, write: Write) -> None:
    """An object that is made with plain values is passed over; of two of a class, neither's stood anywhere."""
    found = listed(write(HEAD + REST + DECAYS + text + LOOP))
    (line,) = [one for one in found if "weight.data.mul_" in one]
    (start,) = [one for one in found if "bias.data.mul_" in one]
    assert line.endswith(f"[{inside}]"), line
    assert start.endswith(f"[{at_start}]") if at_start else "by is" not in start, start


@pytest.mark.parametrize(
    ("rates", "rate"),
    [
        ("for lr in (0.1, 0.4):\n    opt = made(lr)\n", "???"),
        ("opt = made(0.1)\nother = made(0.4)\n", "???"),
        ("opt = made(0.1)\nopt = made(0.1)\n", 0.1),
        ("opt = made()\n", 0.2),
    ],
)
def test_a_rate_that_one_call_has_several_of_is_asked_for(rates: str, rate: float | str, write: Write) -> None:
    """The first was drafted."""
    made = "def made(lr=0.2):\n    return torch.optim.SGD(net.parameters(), lr=lr)\n"
    script = write(HEAD + REST.replace("opt = torch", "# torch") + made + rates + LOOP)
    assert drafted(script)["optimizer"]["args"]["lr"] == rate


@pytest.mark.parametrize("divided", ["loss / 4", "loss / n", "loss"])
def test_a_loss_of_ones_own_that_is_divided_is_no_sum(divided: str, write: Write) -> None:
    """`(own formula / 4).backward()` was said to add the losses of four micro-batches."""
    text = LOOP.replace("for x, y in loader", "for i, (x, y) in enumerate(loader)")
    text = text.replace("criterion(net(x), y)", "(criterion(net(x), y) * x.abs()).sum() / x.sum()")
    text = text.replace(
        "        opt.zero_grad()\n        loss.backward()\n        opt.step()", f"        ({divided}).backward()"
    )
    text += "        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n"
    rest = REST.replace("CrossEntropyLoss()", 'MSELoss(reduction="none")')
    found = listed(write(f"{HEAD}{rest}n = 4\n{text}"))
    (said,) = [one for one in found if "backward()" in one]
    assert ("are added" in said) == (divided == "loss")


LIBRARY = {
    "a method": ("net = YOLO(weights)\n    return net.train(data='d.yaml', epochs=60, patience=20)", "net.train"),
    "of what is unpacked": ("net = YOLO(weights)\n    net.train(**dict(data='d.yaml', epochs=60))", "net.train"),
    "by a file": ("net = YOLO(weights)\n    return net.train('d.yaml')", "net.train"),
    "another library": ("net = ultralytics.make(weights)\n    net.fit(None, epochs=60)", "net.fit"),
    "of reinforcement learning": ("net = ultralytics.PPO(weights)\n    net.learn(total_timesteps=60)", "net.learn"),
    "a function": ("net = YOLO(weights)\n    ultralytics.finetune(net, epochs=60)", "ultralytics.finetune"),
    "in a condition": (
        "if os.path.exists(weights):\n        net = YOLO(weights)\n    else:\n        net = YOLO('n.pt')\n"
        "    try:\n        net.train(data='d.yaml', epochs=60)\n    except Exception as e:\n        print(e)",
        "net.train",
    ),
}


@pytest.mark.parametrize(("text", "call"), LIBRARY.values(), ids=LIBRARY)
def test_the_call_by_which_a_library_trains_is_listed(text: str, call: str, write: Write) -> None:
    """`model.train(data=…, epochs=…)` was taken for the switch to training mode, and the draft listed nothing."""
    head = "import os\nimport torch\nimport ultralytics\nfrom ultralytics import YOLO\n"
    script = write(f"{head}\ndef fit(weights='best.pt'):\n    {text}\n\ndef main():\n    fit()\n\nmain()\n")
    found = listed(script)
    assert any(f"{call}(" in line for line in found), found
    assert has(found, "net = ") and any("weights is 'best.pt'" in line for line in found), found
    assert f"{call}(…) trains, and was not read\n" in recipe_text(analyze_script(script))
    assert not any("where it is called" in why for why in reasons(script).values())


@pytest.mark.parametrize("mode", ["", "True", "False", "mode=True"])
def test_the_switch_to_training_is_no_such_call(mode: str, write: Write) -> None:
    found = listed(write(HEAD + REST + LOOP.replace("    for x", f"    net.train({mode})\n    for x")))
    assert not has(found, "net.train") or mode == "False"


def test_a_draft_of_a_script_in_which_nothing_trains_does_not_run(write: Write) -> None:
    """With the ??? filled in it was a recipe like any other."""
    _, line = listed(write("import torch\nimport other\n\ndef main():\n    other.go()\n\nmain()\n"))
    assert "no step, no loop over epochs and no optimizer was found" in line


def test_a_function_in_which_nothing_trains_is_not_accounted_for_one_by_one(write: Write) -> None:
    """ "Accounted for where it is called", said the function, and the call "accounted for one by one"."""
    text = "\ndef size():\n    sizes = [p.numel() for p in net.parameters()]\n    print(sizes)\n\nsize()\n"
    found = reasons(write(HEAD + REST + LOOP + text))
    assert not any("one by one" in why for line, why in found.items() if line.startswith("size()")), found


LENGTHS = """
import argparse
from enum import Enum, IntEnum, auto
class Length({bases}):
    SHORT = {short}
    LONG = {long}
parser = argparse.ArgumentParser()
parser.add_argument("--length", type=Length, default={default})
args = parser.parse_args()
if args.length == Length.SHORT:
    rate = 0.5
    rounds = 3
elif args.length == Length.LONG:
    rate = 0.25
    rounds = 9
else:
    raise ValueError(args.length)
"""
DEFAULTS = {
    "a member": ("Enum", '"short"', '"long"', "Length.LONG", (0.25, 9)),
    "the first": ("Enum", '"short"', '"long"', "Length.SHORT", (0.5, 3)),
    "auto()": ("Enum", "auto()", "auto()", "Length.LONG", (0.25, 9)),
    "of a number": ("IntEnum", "1", "2", "Length.LONG", (0.25, 9)),
    "of a text": ("str, Enum", '"short"', '"long"', "Length.LONG", (0.25, 9)),
    "not to be followed": ("Enum", '"short"', '"long"', "Length(sys.argv[1])", ("???", "???")),
    "no member": ("Enum", '"short"', '"long"', "other()", ("???", "???")),
}


@pytest.mark.parametrize(("bases", "short", "long", "default", "wanted"), DEFAULTS.values(), ids=DEFAULTS)
def test_a_default_that_is_a_member_of_an_enumeration_decides(
    bases: str, short: str, long: str, default: str, wanted: tuple[float | str, int | str], write: Write
) -> None:
    """The epochs of the first branch were drafted, which the default does not run."""
    text = LENGTHS.format(bases=bases, short=short, long=long, default=default)
    rest = HEAD + text + REST.replace("lr=0.2", "lr=rate") + LOOP.replace("range(4)", "range(rounds)")
    script = write(rest)
    found = drafted(script)
    assert (found["optimizer"]["args"]["lr"], found["train"]["epochs"]) == wanted
    if wanted[0] == "???":
        said = recipe_text(analyze_script(script))
        assert "rounds = 3, where args.length == Length.SHORT" in said
        assert "rounds = 9, where not (args.length == Length.SHORT)" in said


SIDES = {
    "another number": ("rate = 0.5", "rate = 0.25", "???"),
    "the same number": ("rate = 0.5", "rate = 0.5", 0.5),
    "of a file": ("rate = torch.load('last.pt')['rate']", "rate = 0.25", "???"),
    "before it": ("rate = 0.5", "pass", "???"),
}


@pytest.mark.parametrize(("one", "other", "rate"), SIDES.values(), ids=SIDES)
def test_a_value_of_one_side_of_a_condition_is_not_the_only_one(
    one: str, other: str, rate: float | str, write: Write
) -> None:
    """The number of the first side was drafted, though reading cannot tell which side runs."""
    text = f"rate = 0.1\nif os.path.exists('last.pt'):\n    {one}\nelse:\n    {other}\n"
    script = write(HEAD + text + REST.replace("lr=0.2", "lr=rate") + LOOP)
    assert drafted(script)["optimizer"]["args"]["lr"] == rate


def test_nor_is_none(write: Write) -> None:
    """ "[state is None]" stood behind a line that loads it where training is continued."""
    text = "if os.path.exists('a.pt'):\n    state = torch.load('a.pt')\n    first = state['epoch']\nelse:\n"
    text += "    state = None\n    first = 0\n"
    more = "if state:\n    net.load_state_dict(state)\n"
    found = listed(write(HEAD + text + REST + more + LOOP.replace("range(4)", "range(first, 4)")))
    assert "net.load_state_dict(state) [only where state]" in found
    assert has(found, "first = state['epoch'] [only where os.path.exists('a.pt')]"), found


CUT = {
    "random_split": "fit, val = torch.utils.data.random_split(data, [0.9, 0.1])",
    "a fold": "fit, val = (torch.utils.data.Subset(data, one) for one in folds())\n"
    "val = torch.utils.data.Subset(data, [3])",
    "a part of a part": "rest = torch.utils.data.Subset(data, range(9))\n"
    "fit, val = torch.utils.data.random_split(rest, [0.9, 0.1])",
}


@pytest.mark.parametrize("cut", CUT.values(), ids=CUT)
def test_a_part_of_the_training_folder_is_not_that_folder(cut: str, write: Write) -> None:
    """The validation was drafted as the whole folder that is trained on."""
    rest = REST.replace("DataLoader(data", "DataLoader(fit").replace("loader =", f"{cut}\nloader =")
    more = "val_loader = DataLoader(val, batch_size=16)\n"
    check = "    for x, y in val_loader:\n        print(net(x))\n"
    found = drafted(write(HEAD + rest + more + LOOP + check))["data"]
    assert found["validation"] == "???"


@pytest.mark.parametrize(
    ("given", "rate"),
    [("**options()", "???"), ("lr=0.3, **options()", 0.3), ("**{'lr': 0.3}", 0.3), ("weight_decay=0.1", None)],
)
def test_a_rate_that_may_be_among_unread_arguments_is_asked_for(given: str, rate: float | None, write: Write) -> None:
    """It was left out, and a recipe without it trains by torch's default."""
    rest = REST.replace("SGD(net.parameters(), lr=0.2)", f"AdamW(net.parameters(), {given})")
    found = drafted(write(HEAD + "from elsewhere import options\n" + rest + LOOP))["optimizer"]
    assert found.get("args", {}).get("lr") == rate


TAKEN = {
    "three in a loop": ("    for x, z, y in loader:\n", "net(x)", ["for x, z, y in loader:"]),
    "the third unread": ("    for x, y, z in loader:\n", "net(x)", []),
    "three of a name": ("    for batch in loader:\n        x, z, y = batch\n", "net(x)", ["x, z, y = batch"]),
    "of a pair": ("    for batch in loader:\n        x, y = batch\n", "net(x)", []),
    "one is no name": ("    for batch in loader:\n        x, y, _ = batch\n", "net(x)", []),
    "two inputs": ("    for x, y, z in loader:\n", "net(x, z)", ["for x, y, z in loader:"]),
}


@pytest.mark.parametrize(("head", "call", "lines"), TAKEN.values(), ids=TAKEN)
def test_which_of_more_than_two_entries_is_the_label_is_listed(
    head: str, call: str, lines: list[str], write: Write
) -> None:
    """The line that alone says which entry of a batch is the label was a copy, or the loop."""
    text = LOOP.replace("    for x, y in loader:\n", head).replace("net(x)", call)
    found = listed(write(HEAD + REST + text))
    words = " [which of these are the input and the label?]"
    assert [line.removesuffix(words) for line in found if line.endswith(words)] == lines, found


def test_what_a_configuration_may_give_is_not_the_default(write: Write) -> None:
    """A function that is called with `**options` was read as if it had its defaults: its lines never ran."""
    text = (
        "from elsewhere import options\n"
        "def scaled(rate=0.2, factor=None, steps=4):\n"
        "    if factor is not None:\n        rate = rate * factor\n"
        "    return torch.optim.SGD(net.parameters(), lr=rate)\n"
    )
    for given, rate in (("**options()", "???"), ("*options()", "???"), ("steps=3", 0.2), ("**{'rate': 0.3}", 0.3)):
        made = REST.replace("opt = torch.optim.SGD(net.parameters(), lr=0.2)", f"{text}opt = scaled({given})")
        script = write(HEAD + made + LOOP)
        assert drafted(script)["optimizer"]["args"]["lr"] == rate, given
        never = reasons(script)["rate = rate * factor"].startswith("it runs only with other arguments")
        assert never == (rate != "???"), given


RAISED = [  # what is tried, the exception, what is done then; whether that is listed
    ("net.load_state_dict(torch.load('a.pt'))", "OSError", "net.fc = nn.Linear(3, 7)", True),
    ("data = whole('a')", "(ValueError, IndexError)", "data = plain('a')", True),
    ("net.load_state_dict(torch.load('a.pt'))", "", "net.load_state_dict(torch.load('b.pt'), strict=False)", True),
    ("import fast\n    net = fast.faster(net)", "", "net.fc = nn.Linear(3, 7)", False),
    ("net = other(net)", "ImportError", "net.fc = nn.Linear(3, 7)", False),
    ("net = other(net)", "KeyboardInterrupt", "net.fc = nn.Linear(3, 7)", False),
    ("net = other(net)", "torch.cuda.OutOfMemoryError", "net.fc = nn.Linear(3, 7)", False),
]


@pytest.mark.parametrize(("tried", "error", "then", "lists"), RAISED, ids=[str(n) for n in range(len(RAISED))])
def test_what_another_try_does_is_listed(tried: str, error: str, then: str, lists: bool, write: Write) -> None:
    """Which weights or which data a run goes on with, where the first could not be read, was passed over."""
    text = f"try:\n    {tried}\nexcept {error}:\n    {then}\n"
    script = write(HEAD + REST + text + LOOP.replace("in loader", "in data" if "data" in then else "in loader"))
    assert (f"{then} [only where an exception is raised]" in listed(script)) == lists
    assert lists or reasons(script)[then] == "it runs only where an exception is raised"


def test_an_exception_in_another_one_is_said_once(write: Write) -> None:
    """It read "only where an exception is raised and an exception is raised"."""
    inner = "    try:\n        weights = torch.load('b.pt')\n    except OSError:\n        net.fc = nn.Linear(3, 7)\n"
    text = f"try:\n    weights = torch.load('a.pt')\nexcept OSError:\n{inner}net.load_state_dict(weights)\n"
    assert "net.fc = nn.Linear(3, 7) [only where an exception is raised]" in listed(write(HEAD + REST + text + LOOP))


LEAVES = """
def guard(epoch):
    if done(epoch):
        return
    net.fc = half_it
def find(names):
    for n in names:
        if n in net.found:
            return
        net.fc = n
    net.fc = last
def twice(a):
    with open("x"):
        if not a:
            if net.wide:
                return
    net.fc = widen
def known(a=3):
    if a == 4:
        return
    net.fc = sure
def separate(a):
    if a:
        if net.wide:
            return
    else:
        net.fc = narrow
guard(elsewhere())
find(elsewhere())
twice(elsewhere())
known()
separate(elsewhere())
"""


def test_what_follows_a_return_without_a_value_or_in_a_loop_has_its_condition(write: Write) -> None:
    """It was listed without a word, as what always runs."""
    found = {line.partition(" [")[0]: line for line in listed(write(HEAD + REST + LEAVES + LOOP))}
    assert found["net.fc = half_it"] == "net.fc = half_it [only where not (done(epoch))]"
    assert found["net.fc = n"] == "net.fc = n [only where not (n in net.found)] [for n in names]"
    assert found["net.fc = last"] == "net.fc = last [only where not (n in net.found) in every round (for n in names)]"
    assert found["net.fc = widen"] == "net.fc = widen [only where not (not (a) and net.wide)]"
    assert found["net.fc = sure"] == "net.fc = sure"
    assert found["net.fc = narrow"] == "net.fc = narrow [only where not (a)]"


@pytest.mark.parametrize(
    ("guard", "listed_"),
    [
        ("if not ready():\n        return", ["return [only where not ready()]"]),
        ("if not ready():\n        print('no')\n        return", ["return [only where not ready()]"]),
        ("if 3 > 4:\n        return", []),
        ("print(ready())", []),
    ],
)
def test_a_return_before_the_steps_is_listed(guard: str, listed_: list[str], write: Write) -> None:
    """That nothing is trained where it holds was not said."""
    inside = LOOP.replace("\n", "\n    ").rstrip()
    after = "    if ready():\n        return\n    print(1)\ntrain()\n"
    text = f"{HEAD}{REST}\ndef ready(): return made\ndef train():\n    {guard}{inside}\n{after}"
    assert listed(write(text)) == listed_


SHARED = [
    ("net = nn.DataParallel(net)", True),
    ("net = torch.nn.parallel.DataParallel(net, [0, 1])", True),
    ("net = nn.DataParallel(module=net)", True),
    ("net = nn.parallel.DistributedDataParallel(net)", False),  # each process has a batch of its own
    ("net = nn.DataParallel(Own())", False),
    ("net = nn.DataParallel(Normed())", True),
    ("net = nn.DataParallel(elsewhere())", True),
    ("net = nn.DataParallel(torchvision.models.vit_b_16())", False),
    ("def shared(n):\n    return nn.DataParallel(n)\nnet = shared(net)", True),
    ("if torch.cuda.device_count() > 1:\n    net = nn.DataParallel(net)", True),
]


@pytest.mark.parametrize(("shares", "said"), SHARED)
def test_a_batchnorm_of_several_devices_normalises_each_part(shares: str, said: bool, write: Write) -> None:
    """`DataParallel` was passed over as an option of the run, and that it changes what a BatchNorm computes."""
    own = "class {}(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.{}(3, 4)\n"
    text = own.format("Own", "Linear") + (own.format("Normed", "BatchNorm1d") if "Normed" in shares else "")
    model = "net = torchvision.models.resnet18()\n" if "net" in shares.partition("Parallel")[2] else ""
    found = listed(write(f"{HEAD}{text}{model}{shares}\nopt = torch.optim.SGD(net.parameters(), lr=0.2)\n{LOOP}"))
    assert any("a BatchNorm in it normalises each device's part of the batch" in line for line in found) == said


UNMADE = """
import elsewhere
class Old(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torchvision.models.resnet50()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 2)
    def forward(self, x):
        return self.body(x)
"""
NEVER_MADE = {  # the model, the parameters -> what makes the model
    ("net = Net()", "groups = [{'params': [p for p in net.parameters()]}, {'params': more}]"): "Net()",
    ("net = Net()", "groups = []\ngroups += [p for p in net.parameters() if p.dim() > 1]"): "Net()",
    ("net = Net()", "groups = []\ngroups.extend(net.body.parameters())"): "Net()",
    ("head = Net()\nnet = Net()", "own = {n: p for n, p in head.named_parameters()}\ngroups = own.values()"): "Net()",
    ("net = elsewhere.made()", "groups = net.parameters()"): "elsewhere.made()",
}


@pytest.mark.parametrize(("made", "groups"), NEVER_MADE, ids=[str(n) for n in range(len(NEVER_MADE))])
def test_a_model_of_a_class_that_is_never_made_is_not_trained(made: str, groups: str, write: Write) -> None:
    """The recipe named resnet50, of a class of which the script makes no object."""
    text = REST.replace("net = torchvision.models.resnet18(num_classes=7)", UNMADE + made)
    text = text.replace("opt = torch.optim.SGD(net.parameters()", f"{groups}\nopt = torch.optim.SGD(groups")
    script = write(HEAD + text + LOOP)
    assert drafted(script)["model"] == "???"
    above = recipe_text(analyze_script(script)).partition("\nmodel:")[0].split("\n\n")[-1]
    assert f": {NEVER_MADE[made, groups]}" in above.replace(": net = ", ": ")


WHOLE = {  # what an optimizer gets -> whether that is all of the model
    "[p for p in net.parameters() if p.requires_grad]": True,
    "(p for p in net.parameters())": True,
    "filter(lambda p: p.requires_grad, net.parameters())": True,
    "list(filter(lambda p: p.requires_grad, net.parameters()))": True,
    "[p for p in net.parameters() if p.dim() > 1]": False,
    "[p * 2 for p in net.parameters()]": False,
    "filter(chosen, net.parameters())": False,
    "[p for p in net.fc.parameters() if p.requires_grad]": False,
}


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("given", WHOLE)
def test_all_parameters_that_train_are_the_whole_model(given: str, named: bool, write: Write) -> None:
    """It was listed that not the whole model is trained; frozen layers are listed where they are frozen."""
    text = f"those = {given}\nopt = torch.optim.SGD(those," if named else f"opt = torch.optim.SGD({given},"
    found = listed(write(HEAD + REST.replace("opt = torch.optim.SGD(net.parameters(),", text) + LOOP))
    assert any(line.endswith("not the whole model") for line in found) != WHOLE[given]
    assert not WHOLE[given] or not found


GROUPED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 2)
    def forward(self, x):
        x = x * 2
        return self.body(x)
    def grouped(self, rate):
        named = {n: p for n, p in self.named_parameters()}
        large = [p for p in named.values() if p.dim() > 1]
        return torch.optim.SGD([{"params": large}], lr=rate)
"""


def test_a_model_that_makes_its_optimizer_is_asked_for_as_a_whole(write: Write) -> None:
    """Its class was listed line by line, forward() and all, and no line was named as the model."""
    text = REST.replace("net = torchvision.models.resnet18(num_classes=7)", GROUPED + "net = Net()")
    text = text.replace("opt = torch.optim.SGD(net.parameters(), lr=0.2)", "opt = net.grouped(0.2)")
    script = write(HEAD + text + LOOP)
    found = listed(script)
    assert has(found, "large = ", '[{"params": large}] is all') and not has(found, "x = x * 2")
    assert "line 20: Net()\n# a model of the script's own" in recipe_text(analyze_script(script))
    steps = "    def fit(self, opt, loss):\n        loss.backward()\n        opt.step()\n"
    text = text.replace("net = Net()", steps + "net = Net()")
    own_step = LOOP.replace("loss.backward()\n        opt.step()", "net.fit(opt, loss)")
    assert has(listed(write(HEAD + text + own_step)), "x = x * 2")


FLAGS = {  # what sets a flag in the middle of a run -> what hands it to a library
    "def stop(sign, frame):\n    global flag\n    flag = True\n": "signal.signal(signal.SIGINT, stop)\n",
    "def stop(*_):\n    global flag\n    flag = 7 > 3\n": "elsewhere.at_exit(stop)\n",
    "class Stop:\n    def now(self, sign, frame):\n        self.flag = True\n": "signal.signal(2, stopper.now)\n",
}


@pytest.mark.parametrize("setting", FLAGS)
def test_what_a_handler_sets_has_no_one_value(setting: str, write: Write) -> None:
    """It read [flag is True], as if the handler had run before the training."""
    own = setting.startswith("class")
    begin = "stopper = Stop()\nstopper.flag = False\n" if own else "flag = False\n"
    flag = "stopper.flag" if own else "flag"
    stops = f"        if {flag}:\n            break\n"
    found = listed(write(HEAD + "import elsewhere, signal\n" + REST + setting + begin + FLAGS[setting] + LOOP + stops))
    assert f"break [only where {flag}]" in found, found


def test_clipping_without_a_step_is_asked_for(write: Write) -> None:
    """The library's own step had run before, and its gradients are cleared: the recipe clipped where nothing does."""
    text = "trainer = elsewhere.Trainer(net)\nfor n in range(9):\n    trainer.run_step()\n"
    clips = "    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n"
    without = REST.replace("opt = torch.optim.SGD(net.parameters(), lr=0.2)", "import elsewhere")
    assert "clip" not in drafted(write(HEAD + without + text + clips))
    assert "clip: ???" in recipe_text(analyze_script(write(HEAD + without + text + clips)))
    stepped = LOOP.replace("        opt.step()", "    " + clips + "        opt.step()")
    assert drafted(write(HEAD + REST + stepped))["clip"] == {"max_norm": 1.0}


UPDATE = """
class Update:
    def __init__(self):
        self.scaler = torch.amp.GradScaler("cuda")
    def __call__(self, loss, limit=None, factor=0.5, twice=False):
        self.scaler.scale(loss).backward(create_graph=twice)
        for p in net.parameters():
            p.grad.mul_(factor)
        if limit is not None:
            self.scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(net.parameters(), limit)
        self.scaler.step(opt)
        self.scaler.update()
update = Update()
"""


@pytest.mark.parametrize("held", [False, True])
def test_an_object_that_is_called_gets_its_arguments(held: bool, write: Write) -> None:
    """The defaults of __call__ counted as its values, and what other arguments choose in it as never run."""
    passed = "(loss, limit=2.0, factor=0.25, twice=len(sys.argv) > 3)"
    text = HEAD + REST + UPDATE + ("class Holder:\n    update = Update()\n" if held else "")
    called = "Holder.update" if held else "update"
    script = write(text + LOOP.replace("loss.backward()\n        opt.step()", called + passed))
    assert drafted(script)["clip"] == {"max_norm": 2.0}
    found = listed(script)
    assert has(found, "p.grad.mul_(factor) [for p in net.parameters()] [factor is 0.25]")
    assert not any("twice is False" in line for line in found)
    named = write(
        text.replace("__call__", "run") + LOOP.replace("loss.backward()\n        opt.step()", f"{called}.run{passed}")
    )
    assert [line.replace("update(", "update.run(") for line in found] == listed(named)


def test_a_line_with_a_reason_says_its_conditions_too(write: Write) -> None:
    """The conditions of a function that nothing calls were said only of lines that have no other words."""
    script = HEAD + "def train(args, net):\n" + (REST + LOOP).replace("\n", "\n    ")
    made = "net = torchvision.models.resnet18(num_classes=7)"
    found = listed(write(script.replace(made, "if args.gpus > 1:\n        net = nn.DataParallel(net)")))
    assert any(line.endswith("by itself, only where args.gpus > 1]") for line in found), found
    shown = "        loss.backward()\n            if args.show or args.save:\n                print(net(x))\n    "
    found = listed(write(script.replace(made, "").replace("        loss.backward()\n    ", shown)))
    assert any(line.endswith("and it draws, only where args.show or args.save]") for line in found), found


def test_a_branch_that_a_counter_decides_says_all_its_conditions(write: Write) -> None:
    """`classes == 1` was not said, of a branch that the first round of a loop would not take."""
    text = "seen, classes = 0, 2\nplateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)\n"
    loop = LOOP + "        seen += 1\n        if seen % 5 == 0:\n            if classes == 1:\n"
    loop += "                y = y * 2\n            plateau.step(float(y.sum()))\n"
    found = listed(write(HEAD + REST + text + loop))
    assert has(found, "y = y * 2 [only where seen % 5 == 0 and classes == 1]"), found


STARTS = {  # what the backward pass starts from -> the line that is named for its loss
    "(out / parts).backward()": "out = elsewhere.judge(net(x), y)",
    "out = out / parts\n        out.backward()": "out = elsewhere.judge(net(x), y)",
    "scaler.scale(out / parts).backward()": "out = elsewhere.judge(net(x), y)",
    "if parts == 1:\n            out = elsewhere.other(x)\n        out.backward()": "out = elsewhere.judge(net(x), y)",
    "out = out + elsewhere.more(x)\n        out.backward()": "out = out + elsewhere.more(x)",
}


@pytest.mark.parametrize("start", STARTS)
def test_the_loss_that_is_asked_for_is_named(start: str, write: Write) -> None:
    """The number of micro-batches was named as the loss, or a line that does not run with the defaults."""
    loop = LOOP.replace("loss = criterion(net(x), y)", "out = elsewhere.judge(net(x), y)")
    loop = loop.replace("loss.backward()", start)
    text = HEAD + "import elsewhere\nparts = 5 * 8\nscaler = torch.amp.GradScaler('cuda')\n" + REST + loop
    assert f": {STARTS[start]}: the backward pass starts" in recipe_text(analyze_script(write(text)))


SHOWN = {  # what is only shown -> where the loop runs
    "low = x[1] * 50\n        writer.add_scalar('lr', rate, seen)\n        writer.add_image('x', low, seen)": "",
    "low = y[0]\n        writer.add_text('y', str(low), seen)\n        writer.add_figure('z', low, seen)": "",
    "bar.desc = f'{epoch} {loss:.3f}'": "bar",
    "bar.postfix = str(loss)": "bar",
}


@pytest.mark.parametrize("shown", SHOWN)
def test_what_a_log_or_a_bar_is_given_is_not_listed(shown: str, write: Write) -> None:
    """A writer's call counted as a change of the counter that it is given, and a bar's text as one of the data."""
    begin = "import tqdm, elsewhere\nwriter, seen, total = elsewhere.Writer(), 0, 9 * len(loader)\n"
    loop = LOOP.replace("in loader:", "in bar:").replace("    for x", "    bar = tqdm.tqdm(loader)\n    for x")
    loop = (loop if SHOWN[shown] else LOOP) + "        rate = 0.1 * (1 - seen / total)\n"
    loop += "        for group in opt.param_groups:\n            group['lr'] = rate\n        seen = seen + 1\n"
    found = listed(write(HEAD + REST + begin + loop + f"        {shown}\n"))
    assert has(found, "group['lr'] = rate", "seen = seen + 1")
    assert not has(found, "low") and not has(found, "bar."), found


def test_a_models_method_is_no_model_that_is_called(write: Write) -> None:
    """`net.report(3)` was listed as a call of the model in training mode."""
    text = REST.replace("net = torchvision.models.resnet18(num_classes=7)", UNMADE + "net = elsewhere.faster(Net())")
    text = text.replace("def forward(self, x)", "def report(self, n):\n        return n * 2\n    def forward(self, x)")
    found = listed(write(HEAD + text + LOOP + "    print(net.report(3))\n    print(net(x))\n"))
    assert [line for line in found if "training mode" in line] == [line for line in found if "net(x))" in line], found
    assert has(found, "print(net(x)) [the model runs here")


FIT = "def fit(net, opt, criterion, loader):" + LOOP.replace("\n", "\n    ") + "\n"
IMPORTERS = {  # what another file of the folder says -> whether it is named
    "from train import fit\nfit()\n": True,
    "import train\ntrain.fit()\n": True,
    "from .train import fit\n": True,
    "import training\n# from train\n": False,
    "from strained import fit\n": False,
}


@pytest.mark.parametrize("other", IMPORTERS)
def test_a_file_whose_steps_another_one_calls_names_it(other: str, write: Write) -> None:
    """Of a file of functions the draft only said that no model was found."""
    script = write(HEAD + FIT)
    script.with_name("begin.py").write_text(other)
    words = "nothing here calls its steps: draft the script that does; it is imported by begin.py"
    assert (words in recipe_text(analyze_script(script))) == IMPORTERS[other]
    assert words not in recipe_text(analyze_script(write(HEAD + FIT + "fit(*elsewhere())\n")))


GIVEN = """
import argparse, time
parser = argparse.ArgumentParser()
parser.add_argument("--part", type=float, default=0.5)
args = parser.parse_args()
table = read("table.toml")
def fit(net, part, name="x"):
    print(name)
    for epoch in range(4):
        for x, y in loader:
            loss = part * criterion(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
"""


@pytest.mark.parametrize(
    "given",
    [
        "1 / table.size()",
        "table['part']",
        "part=table.get('part', 0.5)",
        "max(table.parts) - 1",
        "0.5 if table.half else 1.0",
        "[table.parts[0]]",
        "table.parts[-1].value",
    ],
)
def test_what_a_call_computes_for_what_trains_is_listed(given: str, write: Write) -> None:
    """The function's statements were, and not what its call gives them: the weight of a loss was in no line."""
    assert has(listed(write(f"{HEAD}{REST}{GIVEN}fit(net, {given})\n")), "fit(net, ")


@pytest.mark.parametrize(
    "given",
    [
        "args.part",
        "2 * 0.25",
        "part=table",
        "0.5, name=table['name']",
        "0.5, len(table) + 1",
        "[args.part, 0.5]",
    ],
)
def test_what_is_known_or_only_printed_is_not(given: str, write: Write) -> None:
    assert not has(listed(write(f"{HEAD}{REST}{GIVEN}fit(net, {given})\n")), "fit(net, ")


def test_a_value_that_a_call_computes_for_an_object_is_listed(write: Write) -> None:
    """Also for one that is made, and in the call of a method."""
    own = "class Task:\n    def __init__(self, part):\n        self.part = part\n"
    own += "    def loss(self, out, y, more):\n        return self.part * more * criterion(out, y)\n"
    made = "task = Task(read('parts')[0])\n"
    loop = LOOP.replace("criterion(net(x), y)", "task.loss(net(x), y, epoch / 4)")
    found = listed(write(HEAD + REST + own + made + loop))
    assert has(found, "task = Task(read('parts')[0]", "loss = task.loss(net(x), y, epoch / 4)")


def test_an_object_that_is_one_of_several_is_listed_with_its_condition(write: Write) -> None:
    """Which class's methods are called was in no line: each object was said to be accounted for by its use."""
    kinds = "class Hard:\n    def mix(self, x):\n        return x * x\nclass Soft:\n    def mix(self, x):\n"
    kinds += "        return x\n"
    chosen = "if os.environ.get('KIND') == 'hard':\n    way = Hard()\nelse:\n    way = Soft()\n"
    loop = LOOP.replace("net(x)", "net(way.mix(x))")
    found = listed(write(HEAD + REST + kinds + chosen + loop))
    assert has(found, "way = Hard() [only where os.environ.get('KIND') == 'hard']", "way = Soft() [only where not (")
    assert not has(listed(write(HEAD + REST + kinds + "way = Soft()\n" + loop)), "way = ")


def test_what_follows_a_return_in_a_branch_is_not_sure(write: Write) -> None:
    """The `else` of an `elif` returned, and what came after it counted as always run."""
    options = (
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--rate', type=float, default=0.2)\n"
    )
    options += "args = parser.parse_args()\ndef start(args):\n    if 'A' in os.environ:\n        args.place = 1\n"
    options += (
        "    elif 'B' in os.environ:\n        args.place = 2\n    else:\n        args.many = False\n        return\n"
    )
    options += "    args.many = True\n    args.rate = 0.9\nstart(args)\n"
    text = HEAD + options + REST.replace("lr=0.2", "lr=args.rate") + "if args.many:\n    net = shared(net)\n" + LOOP
    script = write(text)
    assert drafted(script)["optimizer"]["args"]["lr"] == "???"
    found = listed(script)
    assert has(found, "args.rate = 0.9 [only where not (", "net = shared(net) [only where args.many]")
    both = text.replace("    else:\n        args.many = False\n        return\n", "    else:\n        args.place = 3\n")
    assert drafted(write(both))["optimizer"]["args"]["lr"] == 0.9
    never = "def stop():\n    if 'A' in os.environ:\n        return\n    else:\n"
    never += "        if 'B' in os.environ:\n            return\n"
    never += "    opt.param_groups[0]['lr'] = 3\nstop()\n"
    assert has(listed(write(HEAD + REST + never + LOOP)), "opt.param_groups[0]['lr'] = 3 [only where not (")


TRAINS = "def run(epochs):\n    for epoch in range(epochs):\n    " + LOOP.split("\n", 2)[2].replace("\n", "\n    ")


@pytest.mark.parametrize(
    ("text", "epochs"),
    [
        (TRAINS + "\nfor size in (2, 9):\n    run(size)\n", "???"),
        (TRAINS + "\nlong = {'a': 2, 'b': 9}\nfor name in ('a', 'b'):\n    run(long[name])\n", "???"),
        (TRAINS + "\nfor size in (9, 9):\n    run(size)\n", 9),
        (TRAINS + "\nrun(9)\n", 9),
        ("for epoch in range(70):\n    warm(epoch)\n" + LOOP.replace("for epoch in range(4)", "while going()"), "???"),
        ("for epoch in range(70):\n    warm(epoch)\n" + LOOP, 4),
    ],
)
def test_epochs_are_those_of_the_loop_that_steps_and_of_all_its_runs(text: str, epochs: object, write: Write) -> None:
    """Of several runs the first had counted, and of loops with this name the first, whatever runs in it."""
    assert drafted(write(HEAD + REST + text))["train"]["epochs"] == epochs


def test_a_batch_that_no_step_reads_is_asked_for(write: Write) -> None:
    """Loaders that agree gave their batch also where the steps cut their own."""
    rest = (
        REST.replace("loader = ", "far = ") + "near = DataLoader(data, batch_size=16)\nfor x, y in near:\n    look(x)\n"
    )
    steps = LOOP.replace("    for x, y in loader:\n", "    for number in range(9):\n        x, y = cut(data, number)\n")
    assert drafted(write(HEAD + rest + "for x, y in far:\n    look(x)\n" + steps))["data"]["batch"] == "???"


def test_a_sampler_that_is_only_reshuffled_under_a_condition_says_so(write: Write) -> None:
    sampled = REST.replace("shuffle=True", "sampler=part").replace(
        "loader = ", "part = torch.utils.data.DistributedSampler(data)\nloader = "
    )
    text = (
        HEAD
        + sampled
        + LOOP.replace("    for x", "    if os.environ.get('N'):\n        part.set_epoch(epoch)\n    for x")
    )
    words = "without set_epoch every epoch has the same order where not (os.environ.get('N'))"
    assert any(words in line for line in listed(write(text)))
    assert not any(words[:12] in line for line in listed(write(text.replace("os.environ.get('N')", "True"))))


def test_the_classes_of_a_file_that_is_looked_up_whole_may_be_made(write: Write) -> None:
    """What makes them reads no name, so they counted as never made."""
    script = write(
        f"{HEAD}from birds import KINDS\n{REST.replace('loader = ', 'other = ')}loader = KINDS[pick()]().train\n{LOOP}"
    )
    birds = "import sys, inspect\nfrom torch.utils.data import DataLoader\nclass Finch:\n    def __init__(self):\n"
    birds += "        self.train = DataLoader(read('finch'), batch_size=3)\n"
    for kinds in (
        "{k: v for k, v in inspect.getmembers(sys.modules[__name__], inspect.isclass)}",
        "{k: v for k, v in globals().items()}",
        "vars()",
    ):
        (script.parent / "birds.py").write_text(f"{birds}KINDS = {kinds}\n")
        assert has(listed(script), "self.train = DataLoader(read('finch')"), kinds


def test_a_line_that_several_calls_reach_has_the_conditions_of_each(write: Write) -> None:
    """Those of the first were said, also where another call has others."""
    calls = "def put(x):\n    opt.param_groups[0]['lr'] = x\nif odd():\n    put(1)\nif even():\n    put(2)\n"
    found = listed(write(HEAD + REST + calls + LOOP))
    assert has(found, "opt.param_groups[0]['lr'] = x [only where odd() or even()")


def test_a_condition_that_every_batch_meets_is_none(write: Write) -> None:
    """`step % every == 0` with 1 was undecided, and its update, clearing and division were listed."""
    text = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--every', type=int, default=1)\n"
    text += "args = parser.parse_args()\nfor epoch in range(4):\n    opt.zero_grad()\n"
    text += "    for i, (x, y) in enumerate(loader):\n        loss = criterion(net(x), y) / args.every\n"
    text += "        loss.backward()\n"
    text += "        if (i + 1) % args.every == 0:\n            opt.step()\n            opt.zero_grad()\n"
    assert listed(write(HEAD + REST + text)) == []
    assert "accumulate" not in drafted(write(HEAD + REST + text)).get("train", {})
    assert listed(write(HEAD + REST + text.replace("% args.every", "% count()"))) != []


METER = """
class Meter:
    def __init__(self):
        self.reset()
    def reset(self):
        self.value = self.total = 0
    def update(self, value, n=1):
        self.value = value
        self.total += value * n
def work(gpu, args):
    args.gpu = gpu
    if args.gpu is not None:
        args.batch = int(args.batch / 2)
    for epoch in range(4):
        best = step(args)
        keep({"net": net.state_dict()}, best > 3)
def step(args):
    own = Meter()
    for x, y in DataLoader(data, batch_size=args.batch):
        loss = criterion(net(x), y)
        own.update(loss.item(), x.size(0))
        own.update(own.value[0])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return own.total
def keep(state, best):
    torch.save(state, "a.pt")
"""


@pytest.mark.parametrize("start", ["work(args.gpu, args)", "torch.multiprocessing.spawn(work, nprocs=2, args=(args,))"])
def test_what_only_counts_does_not_reach_a_changed_option(start: str, write: Write) -> None:
    """A function that changes one option counted as changing it with all that it does: each meter was listed."""
    options = "import argparse, torch.multiprocessing\nparser = argparse.ArgumentParser()\n"
    options += "parser.add_argument('--batch', type=int, default=16)\nparser.add_argument('--gpu', type=int)\n"
    found = listed(write(f"{HEAD}{options}args = parser.parse_args()\n{REST}{METER}{start}\n"))
    assert not [line for line in found if "Meter()" in line or "update(" in line or "self." in line]


def test_a_print_of_its_own_trains_nothing(write: Write) -> None:
    quiet = "import builtins\ndef hush(first):\n    old = builtins.print\n    def print(*a, **k):\n"
    quiet += "        if first or k.pop('all', 0):\n"
    quiet += "            old(*a, **k)\n    builtins.print = print\nhush(os.environ.get('RANK') == '0')\n"
    assert listed(write(HEAD + quiet + REST + LOOP)) == []


def test_a_model_that_an_object_keeps_is_a_copy(write: Write) -> None:
    """`self.teacher = teacher` was listed next to the lines that use it."""
    own = "class Task:\n    def __init__(self, teacher, weight):\n        self.teacher, self.weight = None, weight\n"
    own += "        self.teacher = teacher\n    def run(self, x, y):\n        opt.zero_grad()\n"
    own += "        loss = criterion(net(x), y) + self.weight * near(net(x), self.teacher(x))\n"
    own += "        loss.backward()\n        opt.step()\n"
    made = "teacher = torchvision.models.resnet50()\ntask = Task(teacher, 0.5)\n"
    loop = "for epoch in range(4):\n    for x, y in loader:\n        task.run(x, y)\n"
    found = listed(write(HEAD + REST + own + made + loop))
    assert not has(found, "self.teacher = teacher") and has(found, "loss = criterion(net(x), y) + self.weight")


def test_the_line_of_a_model_inside_of_a_wrapper_is_named(write: Write) -> None:
    """Only the wrapper was, which a condition adds."""
    made = REST.replace("torchvision.models.resnet18(num_classes=7)", "KINDS[os.environ['KIND']](classes=7)")
    wrapped = "if os.environ.get('RANK'):\n    net = nn.parallel.DistributedDataParallel(net)\n"
    text = HEAD + made.replace("opt = ", wrapped + "opt = ") + LOOP
    found = recipe_text(analyze_script(write(text))).split("model: ???")[0]
    assert "net = KINDS[os.environ['KIND']](classes=7): what this makes was not read" in found


def test_a_file_in_which_nothing_trains_names_the_scripts_that_import_it(write: Write) -> None:
    script = write("import torch\ndef play(first, second):\n    for turn in range(9):\n        first.learn(second)\n")
    assert listed(script) == ["no step, no loop over epochs and no optimizer was found: what trains?"]
    (script.parent / "manager.py").write_text(f"from {script.stem} import play\n")
    assert listed(script)[0].endswith("Draft the script that does; this one is imported by manager.py.")


# ten more

LOGGED = """
import logging
def main(args):
    def say(text):
        log.info(text)
        print(text)
    log = logging.getLogger("run")
    say(args)
    best = 0
    seen = []
    for epoch in range(4):
        say("epoch %d" % (epoch + 1))
        for x, y in DataLoader(data, batch_size=args.batch):
            opt.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            opt.step()
            seen.append((net(x) == y).sum())
        score = sum(seen)
        if score > best:
            best = score
        say("best %f" % best)
        {0}
main(args)
"""


@pytest.mark.parametrize(
    ("line", "quiet"), [("", True), ("log.warning(score)", True), ("opt.param_groups[0]['lr'] = score", False)]
)
def test_what_a_function_that_logs_gets_changes_nothing(line: str, quiet: bool, write: Write) -> None:
    """`say(args)` counted as changing the options with all that is ever logged: each score was listed."""
    options = (
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--batch', type=int, default=16)\n"
    )
    found = listed(write(f"{HEAD}{options}args = parser.parse_args()\n{REST}{LOGGED.format(line)}"))
    assert has(found, "score = sum(seen)", "opt.param_groups") != quiet and not has(found, "log.", "say(")


CHOSEN = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--shared", action="store_true")
args = parser.parse_args()
class Plain:
    def __init__(self):
        self.opt = torch.optim.SGD(net.parameters(), lr=0.2)
    def go(self, x, y):
        self.opt.zero_grad()
        criterion(net(x), y).backward()
        self.opt.step()
class Shared(Plain):
    def go(self, x, y):
        net.half()
        super().go(x, y)
{0}
one = Chosen()
for epoch in range(4):
    for x, y in loader:
        one.go(x, y)
"""


@pytest.mark.parametrize(
    ("choice", "runs"),
    [
        ("Chosen = Plain if not args.shared else Shared", False),
        ("Chosen = Shared if args.shared else Plain", False),
        ("Chosen = Shared if os.environ.get('A') else Plain", True),
        ("Chosen = Shared", True),
    ],
)
def test_a_class_that_the_defaults_do_not_choose_is_not_made(choice: str, runs: bool, write: Write) -> None:
    """All of it was listed, and no line said that an option chooses it."""
    made = REST.split("opt = ")[0]
    assert has(listed(write(HEAD + made + CHOSEN.format(choice))), "net.half()") == runs


@pytest.mark.parametrize(
    "found", ["importlib.import_module('own')", "importlib.import_module(name)", "importlib.import_module(f'{name}')"]
)
def test_a_file_that_import_module_names_is_read(found: str, write: Write) -> None:
    """What ends the training, and which model it is, was not known."""
    text = f"import importlib\nname = 'own'\nfile = {found}\nseen = 0\n"
    made = REST.replace("torchvision.models.resnet18(num_classes=7)", "file.make()").replace("lr=0.2", "lr=file.RATE")
    script = write(HEAD + text + made + LOOP + "    if epoch > file.MOST:\n        break\n")
    own = "import torch.nn as nn\nRATE, MOST = 0.3, 7\nclass Net(nn.Linear):\n    pass\n"
    own += "def make():\n    return Net(3, 4)\n"
    (script.parent / "own.py").write_text(own)
    assert drafted(script)["optimizer"]["args"] == {"lr": 0.3}
    assert any(line.startswith("break") and "file.MOST is 7" in line for line in listed(script))


def test_a_model_that_an_unread_maker_gives_is_the_one_whose_parameters_are_read(write: Write) -> None:
    """The only model of a known class, which draws what the other gives, was named."""
    own = "class Draws(nn.Module):\n    def forward(self, x):\n        return x\n"
    own += "def make(table, **more):\n    return getattr(torch.optim, table['name'])(**table, **more)\n"
    made = "net = make(json.load(open('net.json')))\ndraws = Draws()\n"
    made += "opt = make(json.load(open('opt.json')), params=net.parameters())\n"
    text = HEAD + "import json\n" + own + REST.split("net = ")[0] + REST.split("\n", 2)[2].split("opt = ")[0] + made
    found = recipe_text(analyze_script(write(text + LOOP.replace("net(x)", "draws(net(x))")))).split("model: ???")[0]
    assert "net = make(json.load(open('net.json'))): what this makes was not read" in found and "Draws" not in found


def test_a_function_that_calls_itself_says_its_condition_once(write: Write) -> None:
    own = "def merge(a, b):\n    for k, v in b.items():\n        if isinstance(v, dict):\n            merge(a[k], v)\n"
    own += "        else:\n            a[k] = v\ntable = {}\nmerge(table, read())\n"
    made = REST.replace("lr=0.2", "lr=table['rate']")
    found = [line for line in listed(write(HEAD + own + made + LOOP)) if line.startswith(("merge(a[k]", "a[k] = v"))]
    assert len(found) == 2 and all(line.count("isinstance(v, dict)") == 1 for line in found)


@pytest.mark.parametrize(
    ("line", "lists"),
    [
        ("kept[name] = p.detach().cpu()", False),
        ("kept[name] = p.clone()", False),
        ("kept[name] = p\n        kept[name].data.zero_()", True),
        ("kept[name] = p.half_()", True),
    ],
)
def test_parameters_that_are_gathered_to_be_kept_stay_as_they_are(line: str, lists: bool, write: Write) -> None:
    """The table that a checkpoint is made of counted as a change of the model."""
    own = f"def keep(model):\n    kept = {{}}\n    for name, p in model.named_parameters():\n        {line}\n"
    own += "    torch.save(kept, 'a.pt')\n"
    assert bool(listed(write(HEAD + REST + own + LOOP + "    keep(net)\n"))) == lists


@pytest.mark.parametrize(
    ("begins", "line"),
    [
        ("None", ""),
        ("lambda i: np.random.seed(i)", "worker_init_fn=lambda i: np.random.seed(i)"),
        ("lacking.begin", "worker_init_fn=lacking.begin"),
        ("begin", "info.dataset.samples = "),
    ],
)
def test_what_a_loaders_workers_begin_with_is_listed(begins: str, line: str, write: Write) -> None:
    """A function that is written in place, or that was not found, was in no line."""
    own = "import numpy as np, lacking\ndef begin(i):\n    info = torch.utils.data.get_worker_info()\n"
    own += "    info.dataset.samples = info.dataset.samples[i::4]\n"
    made = REST.replace("shuffle=True", f"shuffle=True, worker_init_fn={begins}")
    found = listed(write(HEAD + own + made + LOOP))
    assert has(found, line) if line else not found
