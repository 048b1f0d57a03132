"""The front door: every command explains itself at once, and wrong words get a short answer.

"At once" is half a second. A timed test would fail on a busy machine, so what is held is the reason for it: nothing
heavy is imported on the way to any help text. PyYAML, which reads the examples, takes a fiftieth of a second.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import click
import msmigrate
import pytest
from msmigrate.cli.group import cli, commands_of

HEAVY = {
    "torch",
    "torchvision",
    "mindspore",
    "numpy",
    "scipy",
    "sklearn",
    "pydantic",
    "rich",
    "safetensors",
    "PIL",
}


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command of the tree, groups included, with the words that call it."""
    yield path, command
    if isinstance(command, click.Group):
        for name, below in commands_of(command).items():
            yield from commands(below, (*path, name))


def unexplained(command: click.Command) -> list[str]:
    """What a command leaves without a word: itself, or an option."""
    options = (item for item in command.params if isinstance(item, click.Option) and not item.hidden)
    missing = [option.opts[-1] for option in options if not (option.help or "").strip()]
    return missing if (command.help or "").strip() else [f"{command.name} itself", *missing]


def run(*words: str, python: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run `python -m msmigrate` in a process of its own."""
    line = [sys.executable, *python, "-m", "msmigrate", *words]
    return subprocess.run(line, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def imported(importtime: str) -> set[str]:
    """The top-level modules that `python -X importtime` reports on stderr."""
    names = (line.rpartition("|")[2].strip() for line in importtime.splitlines() if line.startswith("import time:"))
    return {name.split(".")[0] for name in names}


TREE = dict(commands(cli))


@pytest.mark.parametrize("path", TREE, ids=lambda path: " ".join(path) or "msmigrate")
def test_help_answers_at_once(path: tuple[str, ...]) -> None:
    done = run(*path, "-h", python=("-X", "importtime"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(" ".join(("Usage: msmigrate", *path)))
    reached = imported(done.stderr)
    assert "click" in reached, "importtime was not understood"
    assert not reached & HEAVY


def test_a_heavy_import_is_seen() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import sklearn"], capture_output=True, text=True, check=True
    )
    assert imported(done.stderr) & HEAVY == {"numpy", "scipy", "sklearn"}


@pytest.mark.parametrize("path", TREE, ids=lambda path: " ".join(path) or "msmigrate")
def test_every_option_is_explained(path: tuple[str, ...]) -> None:
    assert unexplained(TREE[path]) == []


def test_an_unexplained_option_is_seen() -> None:
    bare = click.Command("bare", params=[click.Option(["--loud"]), click.Option(["--soft"], help="Quietly.")])
    assert unexplained(bare) == ["bare itself", "--loud"]


@pytest.mark.parametrize("words", [("-h",), ("--help",), ("mappings", "-h"), ("--version",), ("mapings",)])
def test_the_console_script_is_the_module(words: tuple[str, ...]) -> None:
    script = Path(sysconfig.get_path("scripts")) / "msmigrate"
    by_script = subprocess.run([script, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    by_module = run(*words)
    assert (by_script.returncode, by_script.stdout, by_script.stderr) == (
        by_module.returncode,
        by_module.stdout,
        by_module.stderr,
    )


def test_there_is_one_version() -> None:
    said = run("--version").stdout
    assert re.findall(r"\d+\.\d+\.\d+\S*", said) == [msmigrate.__version__]
    assert metadata.version("msmigrate") == msmigrate.__version__


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("mapings",), "mapings"),
        (("--loud",), "--loud"),
        (("mappings", "--loud"), "--loud"),
        (("mappings", "Conv9d"), "Conv9d"),
        (("parity-step", "--steps", "none"), "none"),
        (("convert-ckpt",), "SRC"),
    ],
)
def test_wrong_words_get_a_short_answer(words: tuple[str, ...], named: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert named in done.stderr
    assert len(done.stderr.splitlines()) <= 5
    assert "Traceback" not in done.stderr


def test_no_words_print_the_help() -> None:
    done = run()
    assert (done.stdout or done.stderr) == run("-h").stdout
