"""Whatever a file holds, it is converted bit for bit, or refused in one line and without a trace; nothing else happens.

A failure names format, seed and number; `fuzz_inputs.case` makes the same input of them, and the test keeps its files.
benchmarks/fuzz_readers.py runs any number of inputs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fuzz_check
import pytest
from fuzz_bombs import BOMBS, ODD
from fuzz_check import Outcome, check
from fuzz_edges import EDGES
from fuzz_inputs import FORMATS, Case, case
from fuzz_seeds import converted
from msmigrate.errors import BadCheckpoint
from msmigrate.migrate.checkpoint import convert
from tiny_checkpoints import SMALL, save

SEED = 1
QUICK = 100  # inputs of each format
NAMES = sorted(FORMATS)


def worked_on(form: str, numbers: range, folder: Path, keep: Path) -> list[Outcome]:
    """What becomes of the inputs of these numbers; fails where one should not have, and keeps that one's files."""
    found = []
    complaints = []
    for number in numbers:
        made = case(form, SEED, number)
        found.append(outcome := check(made, folder))
        if outcome.complaint:
            kept = fuzz_check.keep(made, outcome.complaint, keep / f"{form} {SEED} {number}")
            complaints.append(f"case({form!r}, {SEED}, {number}), kept in {kept}: {outcome.complaint}")
    assert not complaints, "\n".join(complaints)
    return found


@pytest.fixture
def empty() -> Iterator[Path]:
    """An empty folder, in memory where that can be."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        yield Path(folder)


@pytest.mark.parametrize("form", NAMES)
def test_damaged_files_are_converted_or_refused(form: str, empty: Path, tmp_path: Path) -> None:
    found = worked_on(form, range(QUICK), empty, tmp_path)
    assert {"converted", "BadCheckpoint"} <= {outcome.kind for outcome in found}  # the damage is not too much
    assert len({"".join(filter(str.isalpha, outcome.text)) for outcome in found}) > 15  # and not too little


@pytest.mark.full
@pytest.mark.parametrize("form", NAMES)
def test_very_many_damaged_files_are_converted_or_refused(form: str, empty: Path, tmp_path: Path) -> None:
    worked_on(form, range(QUICK, 2500), empty, tmp_path)


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_asks_for_a_great_deal_gets_an_answer(name: str, empty: Path) -> None:
    outcome = check(BOMBS[name](), empty)
    assert outcome.complaint is None, outcome.complaint


@pytest.mark.parametrize("name", EDGES)
def test_what_stands_at_the_edge_is_refused_for_what_it_is(name: str, empty: Path) -> None:
    made, says = EDGES[name]
    outcome = check(made, empty)
    assert outcome.complaint is None, outcome.complaint
    assert (outcome.kind == "converted") == (says is None), outcome.text
    assert re.search(says or "", outcome.text)


@pytest.mark.parametrize("destination", ["x.ckpt", "x.pth"])
@pytest.mark.parametrize("name", ODD)
def test_a_weight_that_cannot_be_computed_is_no_crash(name: str, destination: str, empty: Path, tmp_path: Path) -> None:
    content = save(tmp_path / "x", ODD[name]).read_bytes()
    outcome = check(Case({"x": content}, "x", destination, {"to": None}, 1 << 29), empty)
    assert outcome.complaint is None, outcome.complaint


def test_the_same_three_give_the_same_input() -> None:
    for form in NAMES:
        assert case(form, SEED, 7) == case(form, SEED, 7) != case(form, SEED, 8)


@pytest.mark.parametrize("kind", ["ckpt", "training", "ms", "pt"])
@pytest.mark.parametrize("destination", ["x.ckpt", "x.pth", "x.safetensors", "x/"])
def test_what_is_damaged_here_is_sound_before(kind: str, destination: str, empty: Path) -> None:
    outcome = check(Case({"x": converted(kind)}, "x", destination, {}, 16), empty)
    assert (outcome.kind, outcome.complaint) == ("converted", None), outcome


# That each of these would be noticed ------------------------------------------------------------------------------


def sound(tmp_path: Path) -> Case:
    content = save(tmp_path / "sound.pth", SMALL).read_bytes()
    return Case({"x": content}, "x", "x.ckpt", {}, 1 << 29)


def after(more: Callable[[Path, Path], None]) -> Callable[..., Any]:
    """A conversion after which something more is done, with the source and the folder of the new file."""
    real = convert.convert

    def converts(source: Path, target: str, **options: Any) -> Any:
        done = real(source, target, **options)
        more(Path(source), Path(target).parent)
        return done

    return converts


def before(more: Callable[[Path, Path], None]) -> Callable[..., Any]:
    """The same, which then refuses."""

    def refuses(source: Path, target: str, **options: Any) -> Any:
        more(Path(source), Path(target).parent)
        raise BadCheckpoint("no")

    return refuses


def told(text: str) -> Callable[[Path, Path], None]:
    def raises(source: Path, folder: Path) -> None:
        raise BadCheckpoint(text)

    return raises


def spoil(source: Path, folder: Path) -> None:
    content = (folder / "x.ckpt").read_bytes()
    right = SMALL["fc.weight"].content
    (folder / "x.ckpt").write_bytes(content.replace(right, right[::-1]))


def change(source: Path, folder: Path) -> None:
    source.write_bytes(source.read_bytes() + b" ")


def leave(source: Path, folder: Path) -> None:
    (folder / ".x.tmp").touch()


def empty_it(source: Path, folder: Path) -> None:
    (folder / "x.ckpt").write_bytes(b"")


def crash(source: Path, folder: Path) -> None:
    raise ZeroDivisionError


def swell(source: Path, folder: Path) -> None:
    bytearray(1 << 30)


@pytest.mark.parametrize(
    ("misbehaves", "says"),
    [
        (before(crash), "ZeroDivisionError"),
        (before(swell), "MemoryError"),
        (before(leave), "left behind"),
        (before(change), "source was changed"),
        (before(told("one\nand another")), "not one printable line"),
        (before(told("\x1b[2J")), "not one printable line"),
        (before(told("x" * 3000)), "3,000 letters"),
        (after(spoil), "other bytes"),
        (after(change), "source was changed"),
        (after(empty_it), "reading it back"),
    ],
)
def test_what_must_not_happen_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty: Path, misbehaves: Callable[..., Any], says: str
) -> None:
    assert check(sound(tmp_path), empty).complaint is None
    monkeypatch.setattr(convert, "convert", misbehaves)
    assert says in (check(sound(tmp_path), empty).complaint or "")


def test_work_without_end_would_be_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty: Path) -> None:
    def works(*_: object, **__: object) -> None:
        while True:
            pass

    monkeypatch.setattr(convert, "convert", works)
    monkeypatch.setattr(fuzz_check, "SECONDS", 1)
    assert check(sound(tmp_path), empty)[::3] == ("hang", "it takes longer than 1 s")


# The command ------------------------------------------------------------------------------------------------------


def refused(empty: Path) -> list[tuple[Case, Outcome]]:
    """Some inputs of every format that are refused, for as many reasons."""
    found: dict[str, tuple[Case, Outcome]] = {}
    for form in NAMES:
        texts: set[str] = set()
        for number in range(1000, 1040):
            made = case(form, SEED, number)
            outcome = check(made, empty)
            text = "".join(filter(str.isalpha, outcome.text))[-40:]
            if outcome.kind != "converted" and "key" not in made.options and text not in texts and len(texts) < 4:
                texts.add(text)
                found[f"{form} {number}"] = (made, outcome)
    return list(found.values())


def run(command: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "msmigrate", command, *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False, env=dict(os.environ))


@pytest.mark.parametrize("name", ["a\nb.pth", "a\x1b[2Jb.pth", "a\u2028b.pth"])
def test_the_name_of_a_file_does_not_break_the_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    for done in (run("convert-ckpt", tmp_path / name, tmp_path / "x.ckpt"), run("inspect", tmp_path / name)):
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert done.stderr[:-1].isprintable() and "b.pth is empty" in done.stderr


def test_the_command_says_one_line_and_writes_nothing(empty: Path, tmp_path: Path) -> None:
    sample = refused(empty)
    assert len(sample) >= 30
    for number, (made, outcome) in enumerate(sample[:30]):
        folder = tmp_path / str(number)
        (folder / "out").mkdir(parents=True)
        for name, content in made.files.items():
            (folder / name).write_bytes(content)
        source = folder / made.source
        options = [f"--{key.replace('_', '-')}={value}" for key, value in made.options.items() if value is not True]
        options += [f"--{key}" for key, value in made.options.items() if value is True]
        done = run("convert-ckpt", source, f"{folder}/out/{made.destination}", *options)
        assert (done.returncode, done.stdout) == (2, ""), (made.options, outcome, done)
        assert done.stderr.startswith("msmigrate convert-ckpt: ") and done.stderr.count("\n") == 1, (outcome, done)
        assert "Traceback" not in done.stderr
        assert list((folder / "out").iterdir()) == []
        if number % 5 == 0:
            shown = run("inspect", source)
            assert shown.returncode in (0, 2)
            assert shown.returncode == 0 or (shown.stdout == "" and shown.stderr.count("\n") == 1)
            assert "Traceback" not in shown.stderr
