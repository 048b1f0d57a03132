"""Whatever a file or a request holds, it is read, or refused in one line; soon, in little memory, without effects.

A failure names reader, seed and number, and benchmarks/fuzz_readers.py makes that input again. Checkpoints have
tests of their own besides, in tests/migrate/test_fuzz.py, and requests to a whole server in
tests/deploy/test_rest_fuzz.py.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fuzz_readers  # it says where the others lie

# isort: split
import fuzz_check
import fuzz_checking
import pytest
import traces
from fuzz_checking import check, outcomes
from fuzz_readers import ALL, CHECKPOINTS, KINDS, Kind, case
from msmigrate.errors import BadInput, MsmigrateError
from msmigrate.printable import quoted
from msmigrate.training.recipe import recipe_in_checkpoint

SEED = 2026
QUICK, FULL = 25, 10_000  # inputs: of each reader, of all together
MEANT = {  # sound contents that a reader refuses all the same, in its words
    "ONNX": ("is not there", "calls itself"),
    "class list": ("letters",),
    "key": ("holds 17 bytes",),
    "checkpoint of train": ("is not a MindSpore checkpoint",),  # what it says of its run, which is put into one
}


@pytest.fixture
def empty() -> Iterator[Path]:
    with fuzz_readers.scratch() as folder:
        yield folder


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_damaged_is_sound_before(kind: str, empty: Path) -> None:
    made = KINDS[kind]
    for content in made.seeds():
        path = empty / made.name
        path.write_bytes(content)
        try:
            made.read(path)
        except BadInput as error:
            assert any(words in str(error) for words in MEANT.get(kind, ())), error


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_inputs_are_read_or_refused(kind: str, empty: Path) -> None:
    found = [check(kind, SEED, number, empty) for number in range(QUICK)]
    complaints = {number: outcome.complaint for number, outcome in enumerate(found) if outcome.complaint}
    assert not complaints, complaints
    assert {outcome.kind for outcome in found} != {"read"}


@pytest.mark.full
@pytest.mark.parametrize("kind", ALL)
def test_ten_thousand_damaged_inputs_are_read_or_refused(kind: str, tmp_path: Path) -> None:
    numbers = range(QUICK, QUICK + -(-FULL // len(ALL)))
    complaints = [(n, outcome.complaint) for n, outcome in outcomes(kind, SEED, numbers, tmp_path) if outcome.complaint]
    assert not complaints, complaints


def test_the_same_three_give_the_same_input() -> None:
    for kind in KINDS:
        assert case(kind, SEED, 7) == case(kind, SEED, 7)
        assert len({case(kind, SEED, number) for number in range(12)}) > 6
    assert not set(KINDS) & set(CHECKPOINTS)


ROW = "- {kind: layer, torch: a.B, mindspore: c.D, exact: true, "
LONG = "x" * 5000
FOUND = {  # reader, contents, and what is said of them: what these runs found once
    "an argument that goes to a list": (
        "mapping rows",
        ROW + "arguments: {x: {to: [[a]]}}}",
        "'to' is a list of texts",
    ),
    "a pitfall that is a mapping": ("mapping rows", ROW + "arguments: {}, pitfalls: [{}]}", "'pitfalls' is a list of"),
    "a default that is a list": ("mapping rows", ROW + "arguments: {}, defaults: {x: []}}", "'defaults' maps names to"),
    "options that are no list": ("mapping rows", ROW + "arguments: {}, group_options: {x: 1}}", "to lists, not 'x': 1"),
    "an argument without a name": ("mapping rows", ROW + "arguments: {1: {why: x}}}", "1 is no name"),
    "a row in place of a list": ("mapping rows", ROW + f"arguments: {{}}, state: [[{'1, ' * 3000}1]]}}", "got [1, 1"),
    "a long key": ("mapping rows", ROW + f"arguments: {{{'x' * 1000}: 1}}}}", "expected keys and values, got 1"),
    "a long kind": ("mapping rows", f"- kind: {LONG}", "there is no kind of row 'xxx"),
    "a long name of a row": ("mapping rows", f"- {{kind: layer, torch: {LONG}}}", "x': the key 'mindspore' is missing"),
    "a long name of a class": ("class list", f"a\n{LONG}", "line 2: 5,000 letters"),
    "a long format": ("structure", f'{{"format": "{LONG}"}}', "this msmigrate reads"),
    "a list that grows": ("script", "import torch\n[[[[1]*9999]*9999]*9999]\n", None),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_once_is_refused_in_a_line(name: str, empty: Path) -> None:
    kind, content, says = FOUND[name]
    path = empty / KINDS[kind].name
    path.write_text(content)
    if says is None:
        KINDS[kind].read(path)
        return
    with pytest.raises(BadInput) as refused:
        KINDS[kind].read(path)
    text = str(refused.value)
    assert says in text and len(text) < 900, text


def test_a_number_beyond_every_float_is_none_that_a_transform_takes() -> None:
    with pytest.raises(MsmigrateError, match="18 digits"):
        recipe_in_checkpoint.read("x.ckpt", {"model": {"name": "lenet5", "args": {"num_classes": 10**400}}}, None)
    with pytest.raises(MsmigrateError):
        transforms = [{"name": "Normalize", "args": {"mean": [10**400], "std": [0.5]}}]
        recipe_in_checkpoint.read(
            "x.ckpt", {"model": {"name": "lenet5"}, "data": {"eval_transforms": transforms}}, None
        )


def test_digests_of_other_recipes_are_shortened(empty: Path) -> None:
    folder = traces.Run().write(empty / "run")
    index = next(folder.glob("torch*/trace.json"))
    index.write_text(json.dumps({**json.loads(index.read_text()), "recipe": LONG}))
    with pytest.raises(BadInput) as refused:
        fuzz_readers.read_trace(folder)
    assert "record both from the same recipe" in str(refused.value) and len(str(refused.value)) < 300


def test_of_a_long_value_the_beginning_and_the_end_are_quoted() -> None:
    assert quoted("short") == "'short'" and quoted(list(range(9000)), 30).endswith("8999]")
    assert len(quoted("x" * 9000)) <= 80 >= len(quoted({"a": ["x" * 9000]}))
    assert quoted(10**5000) == "a value of the type int"


# That each of these would be noticed -------------------------------------------------------------------------------


def crash(path: Path) -> None:
    raise ZeroDivisionError


def swell(path: Path) -> None:
    bytearray(1 << 30)


def leave(path: Path) -> None:
    path.with_name("left").touch()


def write_elsewhere(path: Path) -> None:
    with Path(os.devnull).with_name("shm").joinpath("canary-elsewhere").open("w") as file:
        Path(file.name).unlink()


def say(text: str) -> Callable[[Path], None]:
    def says(path: Path) -> None:
        raise BadInput(text)

    return says


def run_it(path: Path) -> None:
    subprocess.run(["true"], check=True)


def connect(path: Path) -> None:
    with socket.socket() as opened:
        opened.connect_ex(("127.0.0.1", 9))


def import_it(path: Path) -> None:
    import canary  # type: ignore[import-not-found]  # noqa: F401


@pytest.mark.parametrize(
    ("misbehaves", "says"),
    [
        (crash, "ZeroDivisionError"),
        (swell, "MemoryError"),
        (leave, "left behind: ['left']"),
        (write_elsewhere, "canary-elsewhere"),
        (say("one\x1b[2J"), None),  # the command escapes it
        (say("x" * 3000), "its message"),
        (say(""), "its message"),
        (run_it, "start ['true']"),
        (connect, "socket."),
        (import_it, "import canary"),
    ],
)
def test_what_must_not_happen_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch, empty: Path, misbehaves: Callable[[Path], Any], says: str | None
) -> None:
    made = KINDS["class list"]
    monkeypatch.setitem(KINDS, "class list", Kind(made.name, made.seeds, made.damage, misbehaves))
    complaint = check("class list", SEED, 0, empty).complaint
    assert complaint is None if says is None else says in (complaint or ""), complaint
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize("number", [17, 42, 67])  # a pipe, a device, a folder
def test_a_reader_of_what_is_no_file_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch, empty: Path, number: int
) -> None:
    made = KINDS["class list"]
    monkeypatch.setitem(KINDS, "class list", Kind(made.name, made.seeds, made.damage, lambda path: None))
    assert "it reads a" in (check("class list", SEED, number, empty).complaint or "")


def test_work_without_end_would_be_noticed(monkeypatch: pytest.MonkeyPatch, empty: Path) -> None:
    def works(path: Path) -> None:
        while True:
            pass

    made = KINDS["class list"]
    monkeypatch.setitem(KINDS, "class list", Kind(made.name, made.seeds, made.damage, works))
    monkeypatch.setattr(fuzz_check, "SECONDS", 1)
    assert check("class list", SEED, 0, empty)[::3] == ("hang", "it takes longer than 1 s")


def test_the_death_of_the_reading_process_would_be_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = KINDS["class list"]
    monkeypatch.setitem(KINDS, "class list", Kind(made.name, made.seeds, made.damage, lambda path: os._exit(9)))
    assert [outcome.complaint for _, outcome in outcomes("class list", SEED, range(2), tmp_path)] == [
        "the process died with 9"
    ] * 2


def test_waiting_without_end_would_be_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = KINDS["class list"]
    monkeypatch.setitem(KINDS, "class list", Kind(made.name, made.seeds, made.damage, lambda path: time.sleep(60)))
    monkeypatch.setattr(fuzz_checking, "PATIENCE", 1)
    ((_, outcome),) = outcomes("class list", SEED, range(1), tmp_path)
    assert outcome.complaint == "the process gives no sign of life"
