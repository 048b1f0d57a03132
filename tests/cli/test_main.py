"""The front door: every command explains itself at once, and wrong words get a short answer.

"At once" is half a second. A timed test would fail on a busy machine, so what is held is the reason for it: nothing
heavy is imported on the way to any help text. PyYAML, which reads the examples, takes a fiftieth of a second.
"""

from __future__ import annotations

import json
import os
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
from msmigrate.cli.group import COMMANDS, TASKS, cli, commands_of
from msmigrate.mappings import table

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
    (line,) = done.stderr.splitlines()
    command = f"msmigrate {words[0]}" if words[0] in COMMANDS else "msmigrate"
    assert line.startswith(f"{command}: ") and (line.endswith(f"(try '{command} -h')") or "no row" in line)


def test_no_words_print_the_help() -> None:
    done = run()
    assert (done.stdout or done.stderr) == run("-h").stdout


def test_a_word_that_is_no_command_is_told_the_nearest() -> None:
    assert "did you mean mappings?" in run("mapings").stderr


def test_help_has_every_command_under_a_task_and_examples_under_each() -> None:
    text = run("-h").stdout
    for task, names in TASKS.items():
        section = re.search(rf"^{task}:\n((?:  .*\n)+)", text, re.MULTILINE)
        assert section is not None and [line.split()[0] for line in section[1].splitlines()] == list(names)
    for words, command in TREE.items():
        if not isinstance(command, click.Group):
            assert f"  msmigrate {' '.join(words)}" in run(*words, "-h").stdout.partition("\nExamples:\n")[2], words


def test_every_target_and_choice_of_a_device_is_read_in_letters_of_any_size() -> None:
    found = [p for command in TREE.values() for p in command.params if p.name == "target"]
    assert len(found) > 5
    for parameter in found:
        with click.Context(cli) as context:
            assert parameter.type.convert("cpu", parameter, context) == "CPU"


def test_json_means_the_same_everywhere() -> None:
    own = {words: p for words, command in TREE.items() for p in command.params if p.name == "json_file"}
    assert len(own) > 12
    assert {type(p.type).__name__ for p in own.values()} == {"JsonFile"}
    assert not [p.opts for command in TREE.values() for p in command.params if p.opts == ["--report"]]


def test_json_goes_to_a_file_besides_the_text_or_to_stdout_in_its_place(tmp_path: Path) -> None:
    words, file = ("explain", "bn-momentum-complement"), tmp_path / "fault.json"
    text = run(*words).stdout
    assert run(*words, "--json", str(file)).stdout == text
    (fault,) = json.loads(file.read_text(encoding="utf-8"))
    assert fault["id"] == words[1]
    for stdout in (("--json",), ("--json", "-"), ("--json=-",)):
        assert json.loads(run(*words, *stdout).stdout) == [fault]
    swallowed = run("explain", "--json", words[1])
    assert swallowed.returncode == 2 and "has to end in .json; write --json - for stdout" in swallowed.stderr


def test_quiet_verbose_and_color() -> None:
    both = run("explain", "-q", "-v")
    assert both.returncode == 2 and "--quiet or --verbose, not both" in both.stderr
    loud = run("-v", "explain", "nothing").stderr
    assert "Traceback" in loud and loud.splitlines()[-1].startswith("msmigrate explain: ")
    assert "\x1b[1m" in run("explain", "--color", "always").stdout
    assert "\x1b" not in run("explain", "--color", "never").stdout + run("explain").stdout


def test_what_is_piped_has_whole_lines_and_no_blanks_at_their_ends() -> None:
    lines = run("explain").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(table.faults())
    assert max(map(len, lines)) > 110 and all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("explain bn-mom", ["bn-momentum-complement"]),
        ("mappings Conv1", ["Conv1d"]),
        ("train dig", ["digits"]),
        ("parity-step --torch torchvision:resnet5", ["torchvision:resnet50"]),
        ("parity-step --tar", ["--target"]),
        ("parity-step ./no", []),
        ("data st", ["stats"]),
    ],
)
def test_bash_completes_names(words: str, found: list[str]) -> None:
    script = f"""
        eval "$(_MSMIGRATE_COMPLETE=bash_source msmigrate)"
        compopt() {{ :; }}
        COMP_WORDS=(msmigrate {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _msmigrate_completion msmigrate
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    paths = os.pathsep.join((sysconfig.get_path("scripts"), os.environ["PATH"]))
    line, variables = ["bash", "-c", script], {**os.environ, "PATH": paths}
    done = subprocess.run(line, capture_output=True, text=True, check=True, env=variables)
    assert done.stdout.split() == found, done.stderr
