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
    assert "total += loss.item()" in found and "plateau.step(total)" in found


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


@pytest.mark.parametrize(("test", "asked"), [("kind", True), ("torch.cuda.is_available()", False)])
def test_so_is_a_scaler(test: str, asked: bool, write: Write) -> None:
    scaler = f"\nif {test}:\n    scaler = torch.amp.GradScaler('cuda', init_scale=2.0)\n"
    found = drafted(write(f"{HEAD}from settings_of import kind\n{REST}{scaler}{LOOP}"))["dynamic_loss_scale"]
    assert (found == "???") == asked


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
    assert any("returns a dict" in note for use in analyze_script(script).uses for note in use.notes)
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
