"""The pages of docs/commands are what the commands say of themselves, and what documents call is a call that parses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from msmigrate.cli import docs_pages
from msmigrate.cli.options import examples

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "commands"
CODE = re.compile(r"^```\w*\n(.*?)^```|((?:^    .*\n)+)", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`(msmigrate [^`]+)`")
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = {" ".join(words) for words, _ in docs_pages.commands()}


def calls(text: str) -> list[list[str]]:
    """What the code of a document calls msmigrate with; neither a page's line of usage nor what leaves words out."""
    blocks = [fenced or indented for fenced, indented in CODE.findall(text)]
    spans = (" ".join(span.split()) for span in SPAN.findall(CODE.sub("", text)))
    blocks += [span for span in spans if "…" not in span and not span.startswith("msmigrate NAME")]
    return [words for block in blocks for words in docs_pages.called(block) if "[OPTIONS]" not in words]


def test_the_pages_are_fresh() -> None:
    written = docs_pages.pages(examples())
    there = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.md")}
    assert there.keys() == written.keys(), "stale: run `make docs`, and delete the pages of commands that are gone"
    stale = [name for name, text in written.items() if there[name] != text]
    assert not stale, "stale: run `python -m msmigrate.cli.docs_pages docs`"


def test_every_command_has_an_example_that_calls_it() -> None:
    assert examples().keys() == NAMES
    for name, entries in examples().items():
        for entry in entries:
            assert set(entry) <= {"says", "run", "out"} and entry["says"] and entry["run"], name
            assert any(" ".join(words).startswith(name) for words in docs_pages.called(entry["run"])), name


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_what_a_document_calls_is_a_call(file: Path) -> None:
    assert [problem for words in calls(file.read_text(encoding="utf-8")) if (problem := docs_pages.parses(words))] == []


def test_the_readme_calls_every_command() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    called = {" ".join(words[:length]) for words in calls(text) for length in (1, 2)}
    assert called >= NAMES


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("msmigrate trian recipe.yaml", "msmigrate has no command 'trian'"),
        ("msmigrate data sum DIR", "msmigrate data has no command 'sum'"),
        ("msmigrate doctor --loud", "msmigrate doctor: No such option '--loud'"),
        ("$ msmigrate compare A B C", "msmigrate compare takes no C"),
        ("msmigrate compare A \\\n  --keep", "No such option '--keep'"),
    ],
)
def test_a_wrong_call_is_seen(line: str, said: str) -> None:
    (words,) = calls(f"Text:\n\n```text\n{line}\n```\n")
    assert said in docs_pages.parses(words)


def test_output_is_not_taken_for_a_call() -> None:
    text = "```text\n$ msmigrate doctor    # here\nit's\nmsmigrate: interrupted\n```\n"
    assert calls(text) == [["doctor"]]


def test_a_command_without_exit_codes_is_seen() -> None:
    with pytest.raises(ValueError, match="Exit code: 0 done"):
        docs_pages._page(("bare",), click.Command("bare", help="Do nothing."), {})


def test_markdown_does_not_swallow_what_a_help_text_says() -> None:
    assert docs_pages._escaped("`a<b` resnet* <FILE> a|b") == "`a<b` resnet\\* \\<FILE> a\\|b"
    assert docs_pages._cell("a | b", code=True) == "a \\| b"


def test_writing_them_brings_no_framework(tmp_path: Path) -> None:
    (tmp_path / "commands").mkdir()
    line = [sys.executable, "-X", "importtime", "-m", "msmigrate.cli.docs_pages", str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert (tmp_path / "commands" / "doctor.md").exists() and (tmp_path / "api.md").exists()
    assert not re.search(r"\| +(torch|mindspore|torchvision)$", done.stderr, re.MULTILINE)
