"""README_CN.md is README.md in Chinese, all of it; whoever changes one is told to change the other."""

from __future__ import annotations

import subprocess
import sys

import pytest
import readmes

ENGLISH = readmes.ENGLISH.read_text(encoding="utf-8")
CHINESE = readmes.CHINESE.read_text(encoding="utf-8")
LINES, WIDTH = 180, 120
FIGURES = ("benchmarks.md", "coverage.md")
COMMANDS = ["pip install '.[all]' && msmigrate parity-step", "pip install '.[test]' && pytest"]
HOW = "carry it over to README_CN.md, then run `python tests/readmes.py`"


def test_they_say_the_same_code_links_and_numbers() -> None:
    assert readmes.differences(ENGLISH, CHINESE) == []


def test_the_chinese_text_is_the_translation_of_this_english_one() -> None:
    now, then = (text.splitlines() for text in (readmes.stamp(ENGLISH), readmes.STAMP.read_text(encoding="utf-8")))
    changed = [line.partition(" ")[2] for line in now if line not in then]
    assert now == then, f"changed in README.md: {changed}; {HOW}"


@pytest.mark.parametrize("file", [readmes.ENGLISH, readmes.CHINESE], ids=lambda file: file.name)
def test_each_leads_to_the_other_at_its_top(file: readmes.Path) -> None:
    assert file.read_text(encoding="utf-8").splitlines()[2] == readmes.SWITCH[file.name]


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_a_front_door_is_read_at_one_sitting(text: str) -> None:
    assert len(text.splitlines()) <= LINES
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_the_two_commands_stand_on_lines_of_their_own(text: str) -> None:
    assert [line for line in text.splitlines() if line.startswith("pip install")] == COMMANDS


def test_it_says_first_that_nothing_ran_on_ascend() -> None:
    first = next(block for block in readmes.blocks(ENGLISH) if block.kind == "##")
    assert first.lines[0] == "## Nothing here has run on Ascend"


def test_what_was_measured_stands_on_a_page_of_figures() -> None:
    (table,) = (block for block in readmes.blocks(ENGLISH) if block.lines[0] == "| result | shown by |")
    pages = "".join((readmes.ROOT / "docs" / name).read_text(encoding="utf-8") for name in FIGURES)
    numbers = set(readmes.NUMBER.findall(pages))
    for _, result, command, _ in (row.split("|") for row in table.lines[2:]):
        assert set(readmes.NUMBER.findall(result)) <= numbers, result
        assert [span for span in readmes.SPAN.findall(command) if span not in pages] == [], result


@pytest.mark.full
def test_the_sixty_seconds_are_what_the_demo_prints() -> None:
    (block,) = (block for block in readmes.blocks(ENGLISH) if block.lines[1:2] == ("$ msmigrate demo",))
    done = subprocess.run([sys.executable, "-m", "msmigrate", "demo"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    rest = done.stdout
    for line in (line.removesuffix(" …") for line in block.lines[2:-1] if line != "…"):
        _, found, rest = rest.partition(line)
        assert found, f"after the lines above it, this is not printed: {line}"


def test_the_chinese_one_is_chinese() -> None:
    for block in readmes.blocks(CHINESE):
        if block.kind in ("text", "item") and len(" ".join(block.lines)) > 60:
            assert any("一" <= letter <= "鿿" for letter in "".join(block.lines)), block


PAGE = """\
# Title

English | [简体中文](README_CN.md)

## One

    msmigrate doctor      # what to change

Text with `code`, [a link](docs/page.md) and 12 of 30.

| a | b |
|---|---|
| x | 1.5 |

- An item.
- Another, `two`.

```sh
pip install .
```
"""
TRANSLATED = (
    PAGE.replace(readmes.SWITCH["README.md"], readmes.SWITCH["README_CN.md"])
    .replace("what to change", "要改什么")
    .replace("Text with `code`, [a link](docs/page.md) and 12 of 30.", "30 个中的 12 个，`code`，[链](docs/page.md)。")
    .replace("An item.", "一项。")
)


def test_a_translation_may_say_it_in_another_order() -> None:
    assert readmes.differences(PAGE, TRANSLATED) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("12 of 30", "13 of 30"),
        ("`code`", "`coda`"),
        ("docs/page.md", "docs/pages.md"),
        ("1.5", "1.6"),
        ("| x | 1.5 |", "| x | 1.5 |\n| y | 2 |"),
        ("| x | 1.5 |", "| x | |"),
        ("msmigrate doctor", "msmigrate doctor --quick"),
        ("pip install .", "pip install -e ."),
        ("- Another, `two`.", "- Another, `two`.\n- A third."),
        ("## One", "### One"),
        ("## One", "## One\n\nMore text."),
        ("\n- Another, `two`.", ""),
        ("## One", "## One\n\n![picture](docs/figures/x.png)"),
    ],
)
def test_a_change_of_one_side_is_seen(old: str, new: str) -> None:
    assert readmes.differences(PAGE.replace(old, new, 1), TRANSLATED)


def test_words_alone_are_seen_by_the_stamp() -> None:
    assert readmes.stamp(PAGE) != readmes.stamp(PAGE.replace("An item", "One item"))
    assert readmes.stamp(PAGE) == readmes.stamp(PAGE.replace("Text with", "Text\nwith"))
