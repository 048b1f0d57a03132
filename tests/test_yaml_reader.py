"""YAML is read as data, in little time and memory, or refused in one line with the place; whatever stands in it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from msmigrate import yaml_reader
from msmigrate.errors import BadInput, BadRecipe

LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60))
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 60))

BAD = {  # text: file and line, and why
    "[" * 30_000: ":1: .* nested more than 20 deep",
    "{" * 30_000: ":1: .* nested more than 20 deep",
    "- " * 30_000: ":1: .* nested more than 20 deep",
    "? " * 30_000: ":1: .* nested more than 20 deep",
    "x: 1\ny: " + "[" * 21 + "]" * 21: ":2: .* nested more than 20 deep",
    "[" + "1, " * 100_000 + "]": ":1: .* more than 100,000 values, in",
    LAUGHS: r":1\d: .* more than 100,000 values \(an alias counts as the value that it stands for\)",
    MERGES: r":1\d: .* more than 100,000 values \(an alias counts as the value that it stands for\)",
    "a: &a [1, *a]": r":1: .* the alias \*a stands inside the value that it stands for",
    "a: *b": ":1: .* undefined alias 'b'",
    "a: &a 1\nb: &a 2\nc: *d": ":",
    "x:\n  a: 1\n  a: 2": ":3: .* the key 'a' is here twice",
    "[a]: 1": ":1: .* a key cannot be a list or a mapping",
    "a: [b, 1e999999]": ":1: .* a number that is too large, at a.1",
    "a: " + "9" * 5000: ":1: .* at most 18 digits, at a",
    "a: " + "9" * 5000 + ".5": ":1: .* a number that is too large, at a",
    "a: !!float 1" + ":1" * 100_000: ":1: .* tags such as .* are not read",
    "a: !!int 1" + ":1" * 100_000: ":1: .* tags such as .* are not read",
    "a: !!python/object/apply:os.system [id]": ":1: .* tags such as .* are not read",
    "a: !!binary aGk=": ":1: .* tags such as .* are not read",
    "a: ! b": ":1: .* tags such as ! are not read",
    "--- 1\n--- 2": ":2: .* a single document in the stream, but found another",
    "---\n" * 50_000: ":2: .* a single document in the stream, but found another",
    "a: [": r":\d: not YAML that a recipe may hold: ",
    "a: \x1b[2J": ": .* control characters are not allowed",
    'a: "\\ud800"': ":1: .* invalid Unicode character",
    "!!" + "x" * 100_000 + " 1": ":1: ",
}


def written(folder: Path, text: str) -> Path:
    (folder / "it.yaml").write_text(text, encoding="utf-8")
    return folder / "it.yaml"


@pytest.mark.parametrize("number", range(len(BAD)), ids=[text[:20] for text in BAD])
def test_what_is_no_small_tree_of_data_is_refused_at_once(tmp_path: Path, number: int) -> None:
    text, says = list(BAD.items())[number]
    started = time.process_time()
    with pytest.raises(BadRecipe, match=r"it\.yaml" + says) as refused:
        yaml_reader.read(
            written(tmp_path, text), what="a recipe", most=1 << 20, error=BadRecipe, aliases="&" in text or "*" in text
        )
    assert time.process_time() - started < 5
    assert str(refused.value).isprintable() and len(str(refused.value)) < 600


def test_without_aliases_none_is_read(tmp_path: Path) -> None:
    for text, says in (("a: &a 1\nb: *a", r":2: .* aliases are not read"), ("<<: {a: 1}", r":1: .* << is not read")):
        with pytest.raises(BadInput, match=says):
            yaml_reader.read(written(tmp_path, text), what="a recipe", most=1000)


def test_what_people_write_is_read(tmp_path: Path) -> None:
    text = "\ufeffb: &b {x: 1, y: 2}\nc: {<<: *b, y: 3}\nd: [1e-4, 010, .inf, -.INF, 2001-01-01, yes, ~, '=', =, 1:30]"
    value, tree = yaml_reader.read(written(tmp_path, text), what="rows", most=1000, aliases=True)
    inf = float("inf")
    assert value == {
        "b": {"x": 1, "y": 2},
        "c": {"x": 1, "y": 3},
        "d": [1e-4, 10, inf, -inf, "2001-01-01", True, None, "=", "=", "1:30"],
    }
    assert [yaml_reader.line(tree, loc) for loc in ((), ("c", "y"), ("d", 3))] == [1, 2, 3]
    assert yaml_reader.read(written(tmp_path, "# nothing"), what="rows", most=1000) == (None, None)


def test_no_more_is_read_than_the_kind_of_file_may_hold(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read: it is larger than 1 KiB"):
        yaml_reader.read(written(tmp_path, "#" * 1025), what="a recipe", most=1024)
    (tmp_path / "it.yaml").write_bytes(b"\xff")
    with pytest.raises(BadInput, match="cannot be read: it is not text in UTF-8: invalid start byte at byte 0"):
        yaml_reader.read(tmp_path / "it.yaml", what="a recipe", most=1024)
