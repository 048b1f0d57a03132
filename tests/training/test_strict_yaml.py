"""Files that are no recipes are refused at once, with the line, and nothing in them runs; numbers are numbers."""

from __future__ import annotations

import time

import pytest
from msmigrate.errors import BadRecipe
from msmigrate.training.recipe.reader import load
from recipe_files import read, refusal, write

PAGE = """\
model: {name: lenet5}
data:
  source: digits
  batch: 8
  transforms:
    - {name: ToTensor}
optimizer:
  name: SGD
  args: {lr: 0.1, momentum: 0.9}
  groups:
    - {params: ["fc*"], args: {lr: 0.01}}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a recipe is a mapping with the keys model, data,"),
        ("# nothing\n", "a recipe is a mapping"),
        ("- model\n- optimizer\n", "a recipe is a mapping"),
        ("resnet50", "a recipe is a mapping"),
        ("model: {name: lenet5\n", "expected ',' or '}'"),
        ("model:\n\tname: x\n", "cannot start any token"),
        ("a: 1\n---\nb: 2\n", "but found another document"),
        (b"model: \xff\xfe", "cannot be read: it is not text in UTF-8"),
        (b"model: \x00", "not YAML"),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), "cannot be read"),
        ("a: &x [1]\nb: *x\n", ":2: not YAML that a recipe may hold: aliases are not read"),
        ("a: &x {b: *x}\n", "aliases are not read"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", ":3: not YAML that a recipe may hold: aliases are not read"),
        ("? [1, 2]\n: 3\n", "a key cannot be a list or a mapping"),
        ("a: " + "[" * 50_000, "nested more than 20 deep"),
        ("a: " + "{a: " * 50_000, "nested more than 20 deep"),
        ("a: " + "x" * 300_000, "it is larger than 256 KiB"),
        ("a: 0b" + "1" * 20_000 + "\n", "unknown key 'a'"),
        ("a: " + "9" * 20_000 + "\n", ":1: not YAML that a recipe may hold: not a whole number of at most 18 digits"),
        ("a: !!int x\n", "tags such as tag:yaml.org,2002:int are not read"),
        ("a: !!float x\n", "not YAML that a recipe may hold"),
        ("a: !!timestamp 2020-99-99\n", "not YAML that a recipe may hold"),
    ],
)
def test_what_is_not_a_recipe_is_refused_at_once(tmp_path, text, message):
    began = time.process_time()
    assert message in refusal(tmp_path, text)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system ['touch ran']",
        "!!python/object/new:os.system ['touch ran']",
        "!!python/name:os.system",
        "!!python/module:os",
        "!mine x",
    ],
)
def test_tags_are_refused_and_nothing_runs(tmp_path, monkeypatch, tag):
    monkeypatch.chdir(tmp_path)
    said = refusal(tmp_path, f"{PAGE}seed: {tag}\n")
    assert said.startswith(":12: ")
    assert "tags such as " in said and "are not read" in said
    assert not (tmp_path / "ran").exists()


def test_aliases_cannot_make_a_bomb(tmp_path):
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    began = time.process_time()
    assert ":2: " in refusal(tmp_path, "\n".join(rows))
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("nowhere.yaml", "there is no such file"),
        (".", "cannot be read"),
        ("page.yaml/x", "cannot be read"),
        ("zero\0byte", "there is no such file"),
    ],
)
def test_files_that_are_not_there(tmp_path, path, why):
    write(tmp_path, PAGE)
    with pytest.raises(BadRecipe, match=why):
        load(tmp_path / path)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e-4", 1e-4),
        ("1E-4", 1e-4),
        ("1.e-4", 1e-4),
        ("+1e-1", 0.1),
        (".5", 0.5),
        ("5.", 5.0),
        ("1.0e-4", 1e-4),
        ("010", 10),
    ],
)
def test_numbers_are_numbers_however_they_are_written(tmp_path, written, value):
    assert read(tmp_path, PAGE.replace("lr: 0.1", f"lr: {written}")).optimizer.args["lr"] == value


@pytest.mark.parametrize("word", ["1e", "e5", "1e-4x", "'1e-4'"])
def test_words_that_look_like_numbers_are_not(tmp_path, word):
    assert "SGD's lr must be a number" in refusal(tmp_path, PAGE.replace("lr: 0.1", f"lr: {word}"))
