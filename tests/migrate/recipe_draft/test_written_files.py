"""A file that a script writes and its data read is a value's way that no name shows: what writes it is listed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from drafts import listed
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.migrate.recipe_draft.draft import Draft

Write = Callable[..., Path]

HEAD = """
import argparse, csv, glob, json, os, pickle, shutil, subprocess
from pathlib import Path
import graphs, numpy as np, pandas as pd, torch, torch.nn as nn, torchvision
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets, transforms

class Own(Dataset):
    def __init__(self, path):
        self.path = path
        self.items = {read}
    def __getitem__(self, i):
        return self.items[i]

"""
REST = """
net = torchvision.models.resnet18(num_classes=7)
loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.2)
losses = []
for epoch in range(4):
    for x, y in loader:
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    torch.save(net.state_dict(), "best.pt")
    torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, f"last_{epoch}.pt")
    with open("log.txt", "a") as log:
        log.write(f"{epoch} {losses[-1]}")
np.save("losses.npy", losses)
json.dump({"loss": losses}, open("metrics.json", "w"))
pd.DataFrame(losses).to_csv("losses.csv")
os.system("mkdir -p runs")
"""
IMAGES = "datasets.ImageFolder('birds/train', transforms.ToTensor())"
OPTION = "options = argparse.ArgumentParser()\noptions.add_argument('--table')\nargs = options.parse_args()\n"
# what is written, how the data set reads it, the data set, and what is listed of the first, in its order
CASES = [
    ("def cut(raw):\n    np.save('cut.npy', raw / 255)\ncut(np.load('raw.npy'))", "np.load(path)", "Own('cut.npy')",
     ["np.save(", "cut(np.load("]),
    ("def walks(n, tag):\n    many = walk(n)\n    torch.save(many, f'{tag}_{n}.pt')\nwalks(4, 'x')", "torch.load(path)",
     "Own('x' + '_' + str(4) + '.pt')", ["many = walk(n)", "torch.save("]),
    ("with open('words.pkl', 'wb') as out:\n    pickle.dump(table(), out)", "pickle.load(open(path, 'rb'))",
     "Own('words.pkl')", ["with open(", "pickle.dump("]),
    ("out = open('all.jsonl', 'w')\nfor row in rows():\n    out.write(json.dumps(row))\nout.close()",
     "[json.loads(line) for line in open(path)]", "Own('all.jsonl')",
     ["out = open(", "out.write("]),
    ("with open('t.csv', 'w') as f:\n    w = csv.writer(f)\n    w.writerow(rows())", "pd.read_csv(path)",
     "Own('t.csv')", ["with open(", "w = csv.writer(f)"]),
    (OPTION + "pd.read_csv('all.csv').sample(frac=0.8).to_csv(args.table)", "pd.read_csv(path)", "Own(args.table)",
     ["pd.read_csv("]),
    ("for i, f in enumerate(glob.glob('raw/*')):\n    Image.open(f).crop((0, 0, 9, 9)).save(f'birds/train/{i}.png')",
     "[]", IMAGES, ["Image.open(f)"]),
    ("for f in glob.glob('raw/*'):\n    shutil.copy(f, os.path.join('birds', 'train', f))", "[]", IMAGES, ["shutil."]),
    ("subprocess.run(['python', 'prepare.py', '--out', 'birds'])", "[]", IMAGES, ["subprocess.run("]),
    ("(Path('w') / 'l.txt').write_text(names())", "Path(path).read_text().split()", "Own(Path('w') / 'l.txt')",
     ["(Path("]),
    ("def cut(f, out):\n    np.save(os.path.join(out, f), np.load(f))\ncut('a.npy', os.environ['CUT'])",
     "[np.load(one) for one in glob.glob(path)]", "Own(os.environ['CUT'] + '/*')", ["np.save(", "cut("]),
    ("def cut(files, where):\n    for f in files:\n        np.save(where(f), np.load(f))\ncut(glob.glob('*'), at)",
     "[np.load(place(path))]", "Own('birds')", ["np.save(", "cut("]),  # to a place that may be any
    ("graphs.store('walks.bin', 3)", "graphs.fetch('walks.bin')", "Own('.')", ["graphs.store("]),
    # what is written and nothing reads, and what is trained
    ("np.save('other.npy', np.load('raw.npy'))", "np.load(path)", "Own('raw.npy')", []),
    ("json.dump({'lr': 0.2}, open('options.json', 'w'))", "json.load(open(path))", "Own('raw.json')", []),
    ("", "[]", IMAGES, []),
]  # fmt: skip


@pytest.mark.parametrize(("code", "read", "data", "listed"), CASES)
def test_what_writes_a_file_that_data_are_read_from_is_listed(
    code: str, read: str, data: str, listed: list[str], write: Write
) -> None:
    script = write(HEAD.replace("{read}", read) + f"{code}\ndata = {data}\n" + REST)
    found = [line.text for line in Draft(analyze_script(script).interpreter).account.listed]
    assert len(found) == len(listed) and all(map(str.startswith, found, listed)), found


@pytest.mark.parametrize("name", ["best.pt", "last_3.pt"])
def test_a_checkpoint_that_is_loaded_again_is_no_data(name: str, write: Write) -> None:
    """The loading of it is listed, as before, and not the saving."""
    again = f"net.load_state_dict(torch.load('{name}'))\nopt = torch.optim.SGD(net.parameters(), lr=0.2)\n"
    script = write(HEAD.replace("{read}", "[]") + f"data = {IMAGES}\n" + REST + again)
    listed = [line.text for line in Draft(analyze_script(script).interpreter).account.listed]
    assert not any("torch.save(" in line for line in listed) and any("load_state_dict" in line for line in listed)


def test_a_path_that_is_made_a_text_reads_nothing(write: Write) -> None:
    """`save_model(str(folder / "final_model"))` was said to write what its own line reads."""
    text = HEAD.format(read="[path]") + f"data = {IMAGES}\n" + REST + "\nfolder = Path('out')\n"
    script = write(text + 'graphs.save_model(net, str(folder / "final_model"))\n')
    found = Draft(analyze_script(script).interpreter).account.lines
    (line,) = [one for one in found if one.statement.text.startswith("graphs.save_model")]
    assert "reads" not in line.why


KEEPS = """
class Keeps(TrainerCallback):
    def __init__(self, path, rows):
        self.path, self.rows = path, rows
    def on_log(self, *given, **more):
        with open(self.path, "w") as out:
            json.dump(self.rows, out)
"""
MADE = "trainer = Trainer(model=net, train_dataset=rows, callbacks=[Keeps(where(), rows)])\n"


@pytest.mark.parametrize(("rest", "reads"), [("{read}{made}", False), ("{made}{read}", True)])
def test_what_a_callback_writes_is_not_read_before_it_is_made(rest: str, reads: bool, write: Write) -> None:
    """A library calls it from then on; the data were read, and what it writes was said to be these."""
    head = f"import json\nfrom transformers import Trainer, TrainerCallback\n{KEEPS}net = model()\n"
    head += "rows = json.load(open('a.json'))\n"
    read = "rows = json.load(open(where()))\nfirst = Trainer(model=net, train_dataset=rows)\nfirst.train()\n"
    text = rest.format(read=read, made=MADE)
    lines = Draft(analyze_script(write(f"{head}{text}trainer.train()\n")).interpreter).account.lines
    assert any("may write what" in line.why for line in lines if "open(self.path" in line.statement.text) == reads


RESUMED = """
import json, os
start, seen = 0, 0
if os.path.exists("state.json"):
    start = json.load(open("state.json"))["epoch"]
"""
KEPT = """
class Kept:
    def __init__(self, path):
        self.path = path
        self.rows = json.load(open(path)) if os.path.exists(path) else []
    def add(self, value):
        self.rows.append(value)
        json.dump(self.rows, open(self.path, "w"))
"""
SAVED = {
    "at the end of each epoch": ("", '    json.dump({"epoch": epoch}, open("state.json", "w"))\n', False),
    "by a function": (
        "def save(n):\n    json.dump({'epoch': n}, open('state.json', 'w'))\n",
        "    save(epoch)\n",
        False,
    ),
    "by an object that reads when it is made": (f"{KEPT}kept = Kept('state.json')\n", "    kept.add(epoch)\n", False),
    "all in one function": ("", "    json.dump({'epoch': epoch}, open('state.json', 'w'))\n", None),
    "and read again in the loop": (
        "",
        '    seen = json.load(open("state.json"))["epoch"]\n    opt.param_groups[0]["lr"] = 0.1 / (1 + seen)\n'
        '    json.dump({"epoch": epoch}, open("state.json", "w"))\n',
        True,
    ),
}


@pytest.mark.parametrize(("before", "after", "read"), SAVED.values(), ids=SAVED)
def test_what_the_next_run_reads_makes_no_data_of_this_one(
    before: str, after: str, read: bool | None, write: Write
) -> None:
    steps = (
        "        opt.zero_grad()\n        loss = criterion(net(x), y)\n        loss.backward()\n        opt.step()\n"
    )
    made = """
import torch, torch.nn as nn, torchvision
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
net = torchvision.models.resnet18(num_classes=7)
loader = DataLoader(datasets.ImageFolder("birds", transforms.ToTensor()), batch_size=16, drop_last=True)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.2)
"""
    begins = RESUMED
    if read is None:
        inner = RESUMED.partition("import json, os\n")[2]
        begins = "import json, os\ndef resume():\n" + "".join(f"    {line}\n" for line in inner.splitlines())
        begins += "    return start\ndef main():\n    start = resume()\n"
    script = f"{begins}{before}{made}for epoch in range(start, 4):\n    for x, y in loader:\n{steps}{after}"
    if read is None:
        head, _, body = script.partition("    start = resume()\n")
        script = f"{head}    start = resume()\n" + "".join(f"    {line}\n" for line in body.splitlines()) + "main()\n"
    found = listed(write(script))
    assert any("json.dump" in line for line in found) == bool(read)
