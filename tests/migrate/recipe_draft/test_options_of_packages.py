"""Options that are not argparse's: those of click, typer, fire and absl have their defaults, too; and an option's
default that reading cannot tell is in a line, where what trains reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import drafted, listed
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.reports.script_analysis import recipe_text

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader
from elsewhere import Data, read
{imports}

def train(lr, hidden):
    net = nn.Sequential(nn.Linear(4, hidden), nn.Linear(hidden, 2))
    loader = DataLoader(Data("a"), batch_size=4, shuffle=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()

{before}

{marks}
def main({takes}):
    {body}

if __name__ == "__main__":
    {call}
"""
CLICK = '@click.command()\n@click.option("--lr", default=0.3)\n@click.option("--hidden", default=77)'
FLAGS = "flags.DEFINE_float('lr', 0.3, 'the rate')\nflags.DEFINE_integer('hidden', 77, 'b')\nFLAGS = flags.FLAGS"
OF = {
    "click": {
        "imports": "import click",
        "marks": CLICK,
        "takes": "lr, hidden",
        "body": "train(lr, hidden)",
        "call": "main()",
    },
    "typer": {"imports": "import typer", "takes": "lr: float = 0.3, hidden: int = 77", "body": "train(lr, hidden)"},
    "fire": {
        "imports": "import fire",
        "takes": "lr=0.3, hidden=77",
        "body": "train(lr, hidden)",
        "call": "fire.Fire(main)",
    },
    "absl": {
        "imports": "from absl import app, flags",
        "before": FLAGS,
        "takes": "_",
        "body": "train(FLAGS.lr, FLAGS.hidden)",
        "call": "app.run(main)",
    },
}


def script(folder: Path, package: str, **parts: str) -> Path:
    """A script with options of a package, and with these parts."""
    text = SCRIPT
    for name in ("imports", "before", "marks", "takes", "body", "call"):
        text = text.replace("{" + name + "}", {**OF[package], **parts}.get(name, ""))
    (folder / "train.py").write_text(text)
    return folder / "train.py"


GROUP = "@click.group()\ndef cli():\n    pass\n"
SHARED = (
    "def common(f):\n    f = click.option('--lr', default=0.3)(f)\n    return click.option('--hidden', default=77)(f)\n"
)
APP = {"before": "app = typer.Typer()", "marks": "@app.command()", "call": "app()"}
RUN = "class Run:\n    def train(self, lr=0.3, hidden=77):\n        train(lr, hidden)\n"
KEPT = "class Run:\n    def __init__(self, lr=0.3, hidden=77):\n        self.lr, self.hidden = lr, hidden\n"
KEPT += "    def train(self):\n        train(self.lr, self.hidden)\n"
HOLDERS = "LR = flags.DEFINE_float('lr', 0.3, 'a')\nHIDDEN = flags.DEFINE_integer('hidden', 77, 'b')\n"
SETTINGS = "from dataclasses import dataclass\n@dataclass\nclass Settings:\n    lr: float = 0.3\n    hidden: int = 77\n"
OF_CFG = "train(cfg.lr, cfg.hidden)"
KNOWN = [
    ("click", {}),
    ("click", {"marks": CLICK.replace("0.3", "'0.3', type=float")}),
    ("click", {"marks": CLICK.replace('"--lr"', '"-l", "--lr"')}),
    ("click", {"marks": CLICK.replace('"--lr"', '"--learning-rate", "lr"')}),
    ("click", {"marks": CLICK.replace('click.option("--hidden', 'click.argument("hidden')}),
    ("click", {"marks": CLICK.replace("click.", ""), "imports": "from click import command, option"}),
    ("click", {"marks": CLICK.replace("command()", "command")}),
    ("click", {"marks": "@click.pass_context\n" + CLICK, "takes": "ctx, lr, hidden"}),
    ("click", {"takes": "**given", "body": "train(**given)"}),
    ("click", {"takes": "**given", "body": "train(given['lr'], given['hidden'])"}),
    ("click", {"body": "train(**locals())"}),
    ("click", {"before": GROUP, "marks": CLICK.replace("click.command()", "cli.command('train')"), "call": "cli()"}),
    ("click", {"before": SHARED, "marks": "@click.command()\n@common"}),
    ("click", {"call": "main(standalone_mode=False)"}),
    ("click", {"before": "LR = 0.3", "marks": CLICK.replace("0.3", "LR")}),
    (
        "click",
        {
            "marks": CLICK + '\n@click.option("--big", is_flag=True)',
            "takes": "lr, hidden, big",
            "body": "train(3 if big else lr, hidden)",
        },
    ),
    ("typer", {"call": "typer.run(main)"}),
    (
        "typer",
        {
            "call": "typer.run(main)",
            "takes": "lr: float = typer.Option(0.3, help='a'), hidden: int = typer.Argument(77)",
        },
    ),
    ("typer", APP),
    ("typer", {**APP, "takes": "lr: float = typer.Option(default=0.3), hidden: Annotated[int, typer.Option()] = 77"}),
    ("fire", {}),
    ("fire", {"imports": "from fire import Fire", "call": "Fire(main)"}),
    ("fire", {"call": "fire.Fire(component=main)"}),
    ("fire", {"call": "fire.Fire({'train': main})"}),
    ("fire", {"before": RUN, "call": "fire.Fire(Run)", "body": "pass"}),
    ("fire", {"before": RUN, "call": "fire.Fire(Run())", "body": "pass"}),
    ("fire", {"before": KEPT, "call": "fire.Fire(Run)", "body": "pass"}),
    ("fire", {"imports": "import tyro", "call": "tyro.cli(main)"}),
    (
        "fire",
        {
            "imports": "import tyro",
            "before": SETTINGS,
            "takes": "cfg",
            "body": OF_CFG,
            "call": "main(tyro.cli(Settings))",
        },
    ),
    (
        "fire",
        {
            "imports": "import tyro",
            "before": SETTINGS,
            "takes": "cfg: Settings",
            "body": OF_CFG,
            "call": "cfg = tyro.cli(Settings)\n    main(cfg)",
        },
    ),
    ("fire", {"imports": "from jsonargparse import CLI", "call": "CLI(main)"}),
    ("absl", {}),
    ("absl", {"before": HOLDERS, "body": "train(LR.value, HIDDEN.value)"}),
    ("absl", {"body": "train(FLAGS['lr'].value, FLAGS['hidden'].value)"}),
    ("absl", {"body": "F = flags.FLAGS\n    train(F.lr, F.hidden)"}),
    ("absl", {"before": FLAGS.replace("0.3", "'0.3'")}),
    ("absl", {"before": FLAGS.replace("0.3", "9.0") + "\nFLAGS.set_default('lr', 0.3)"}),
]


@pytest.mark.parametrize(("package", "parts"), KNOWN)
def test_options_have_their_defaults(package: str, parts: dict[str, str], tmp_path: Path) -> None:
    """The rate was asked for without its default, and the size was in no line."""
    found = script(tmp_path, package, **parts)
    assert drafted(found)["optimizer"]["args"]["lr"] == 0.3
    assert "is 77" in recipe_text(analyze_script(found))


UNKNOWN = [
    ("click", {"marks": CLICK.replace("default=0.3", "required=True, type=float")}),
    ("click", {"marks": CLICK.replace("default=0.3", "default=0.3, callback=read")}),
    ("click", {"marks": CLICK.replace("0.3", "read()")}),
    ("click", {"call": "main(['--lr', '0.5'])"}),
    ("click", {"call": "main(default_map={'lr': 3})"}),
    ("click", {"marks": CLICK.replace("command()", "command(context_settings={'default_map': {'lr': 3}})")}),
    ("click", {"marks": CLICK.replace("command()", "command(cls=read)")}),
    ("typer", {**APP, "takes": "lr: float = typer.Option(...), hidden: int = 77"}),
    ("fire", {"call": "fire.Fire(main, command='--lr 3')"}),
    ("absl", {"before": FLAGS + "\nflags.mark_flag_as_required('lr')"}),
    ("fire", {"imports": "import tyro", "call": "tyro.cli(main, args=['--lr', '3'])"}),
    (
        "fire",
        {
            "imports": "import tyro",
            "before": SETTINGS,
            "takes": "cfg",
            "body": OF_CFG,
            "call": "main(tyro.cli(Settings, default=read()))",
        },
    ),
    ("absl", {"before": FLAGS.replace("0.3", "None").replace("'the rate'", "'a', required=True")}),
]


@pytest.mark.parametrize(("package", "parts"), UNKNOWN)
def test_what_the_command_line_must_or_may_say_is_asked_for(
    package: str, parts: dict[str, str], tmp_path: Path
) -> None:
    assert drafted(script(tmp_path, package, **parts))["optimizer"]["args"]["lr"] == "???"


def test_an_option_that_a_context_hands_over_is_a_line(tmp_path: Path) -> None:
    marks, body = "@click.pass_context\n" + CLICK, "train(ctx.params['lr'], ctx.params['hidden'])"
    found = listed(script(tmp_path, "click", marks=marks, takes="ctx, **more", body=body))
    assert sum("click.option" in line for line in found) == 2


ARGPARSE = """
import argparse, os
from pathlib import Path
import torch
from torch import nn
from torch.utils.data import DataLoader
from elsewhere import Data, read, convert

here = Path(__file__).parent
KINDS = read()
parser = argparse.ArgumentParser()
{declare}
parser.add_argument("--lr", type=float, default=0.3)
parser.add_argument("-b", "--batch-size", type=int, default=4)
args = parser.parse_args({words})
net = {net}
loader = DataLoader({data}, batch_size=args.batch_size, shuffle=True)
optimizer = torch.optim.SGD(net.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
{after}
"""
DATA, NET = {"data": "Data(args.size)"}, {"net": "nn.Linear(4, args.size)"}


def argparse_script(folder: Path, declare: str, **parts: str) -> Path:
    """A script that declares an option in this way."""
    plain = {"declare": declare, "net": "nn.Linear(4, 2)", "data": 'Data("a")', "after": "", "words": ""}
    text = ARGPARSE
    for name, one in {**plain, **parts}.items():
        text = text.replace("{" + name + "}", one)
    (folder / "train.py").write_text(text)
    return folder / "train.py"


@pytest.mark.parametrize(
    ("declare", "parts"),
    [
        ('parser.add_argument("--size", default=str(here / "data"))', DATA),
        ('parser.add_argument("--size", default=str(here / "data"))', {"data": 'Data(getattr(args, "size"))'}),
        ('parser.add_argument("--size", default=str(here / "data"))', {"data": 'Data(vars(args)["size"])'}),
        ('parser.add_argument("--size", default=str(here / "data"))', {"data": "Data(args)"}),
        ('parser.add_argument("--size", default=str(here / "data"))', {"data": "Data(**vars(args))"}),
        ('parser.add_argument("--size", type=Path, default=here / "data")', DATA),
        ('parser.add_argument("--size", default=os.environ.get("X", "a"))', DATA),
        ('parser.add_argument("--size", type=int, default=len(KINDS))', NET),
        ('parser.add_argument("--size", type=convert, default="77")', NET),
        ('parser.add_argument("--size", **read())', NET),
        ("parser.add_argument(*read(), default=3)", NET),
        ('parser.add_argument_group("a").add_argument("--size", default=read())', NET),
        ('parser.add_argument("--size", default=3 if read() else 4)', NET),
        ('parser.add_argument("--size")\nparser.set_defaults(size=read())', NET),
        ('parser.add_argument("--size")\nparser.set_defaults(**read())', NET),
        ('add = parser.add_argument\nadd("--size", default=read())', NET),
    ],
)
def test_a_default_that_reading_cannot_tell_is_a_line(declare: str, parts: dict[str, str], tmp_path: Path) -> None:
    """It was passed over, since the default of an argument stands where it is used."""
    assert any(
        "[reading cannot tell this default]" in line for line in listed(argparse_script(tmp_path, declare, **parts))
    )


@pytest.mark.parametrize(
    ("declare", "parts"),
    [
        ('parser.add_argument("--size", default=read())', {}),
        ('parser.add_argument("--size", default=read())', {"after": "print(args.size)"}),
        (
            'parser.add_argument("--size", default=str(here / "out"))',
            {"after": "torch.save(net.state_dict(), args.size)"},
        ),
        ('parser.add_argument("--size", type=Path, default="a/b")', DATA),
        ('parser.add_argument("--size", required=True)', DATA),
        (
            'parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")',
            {"net": "nn.Linear(4, 2).to(args.device)"},
        ),
    ],
)
def test_a_default_that_nothing_reads_is_none(declare: str, parts: dict[str, str], tmp_path: Path) -> None:
    assert not any("[reading cannot tell" in line for line in listed(argparse_script(tmp_path, declare, **parts)))


def test_the_method_that_declares_may_have_another_name(tmp_path: Path) -> None:
    found = argparse_script(tmp_path, 'add = parser.add_argument\nadd("--size", default=7)', **NET)
    assert "args.size is 7" in recipe_text(analyze_script(found))


@pytest.mark.parametrize("words", ['["-b", "8"]', '["-b8"]', '["--batch", "8"]', '["--batch-size=8"]'])
def test_words_that_the_script_gives_its_parser_change_what_they_mean(words: str, tmp_path: Path) -> None:
    """An abbreviation, and a short name next to a long one, left the default as it was."""
    found = drafted(argparse_script(tmp_path, "", words=words))
    assert found["data"]["batch"] == "???"
    assert found["optimizer"]["args"]["lr"] == 0.3
