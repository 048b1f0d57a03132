"""`msmigrate data stats` and `data split`: what they print, what they refuse, and their exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from msmigrate.cli import group
from msmigrate.option_fields import STDOUT
from msmigrate.training.data.sources import open_source
from msmigrate.training.recipe.schema import Part
from msmigrate.workflows import image_folders
from PIL import Image

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch, capsys) -> Run:
    """Run `msmigrate data …` in this process: exit code, stdout, stderr."""

    def command(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["msmigrate", "data", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            group.main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return command


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Seven images in two classes; the first channel is 51 everywhere, or 102."""
    for index in range(7):
        place = tmp_path / "flowers" / ("rose" if index < 4 else "tulip") / f"{index}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(index).integers(0, 256, (4, 6, 3), dtype=np.uint8)
        pixels[..., 0] = 51 if index % 2 else 102
        Image.fromarray(pixels).save(place)
    return tmp_path / "flowers"


def corrupt(tree: Path) -> None:
    (tree / "rose" / "bad [x].jpg").write_bytes(b"no")


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_statistics_are_printed_and_go_into_a_recipe(run, tree):
    code, out, err = run("stats", tree)
    assert (code, err) == (0, "")
    assert ["rose", "4"] in words(out) and ["tulip", "3"] in words(out)
    mean, std = 4 / 7 * 0.4 + 3 / 7 * 0.2, 0.2 * (12 / 49) ** 0.5
    assert ["red", f"{mean:.6f}", f"{std:.6f}", f"{mean * 255:.3f}", f"{std * 255:.3f}", "0.000000"] in words(out)
    assert "7 images, 6 pixels wide, 4 high; 168 pixels." in out
    (normalize,) = yaml.safe_load(out.partition("after ToTensor:")[2])
    part = Part.model_validate(normalize)
    assert (part.name, part.args["mean"][0], part.args["std"][0]) == ("Normalize", round(mean, 6), round(std, 6))
    assert "Note" not in out


def test_statistics_as_json_are_whole(run, tree):
    code, out, _ = run("stats", tree, "--json", "--resize", 2)
    found = json.loads(out)
    assert code == 0
    assert (found["images"], found["pixels"], found["resize"]) == (7, 7 * 2 * 3, 2)
    assert found["mean"][0] == pytest.approx(2.2 / 7, rel=1e-15)
    assert found["mean_255"][0] == pytest.approx(2.2 / 7 * 255)
    assert found["std_of_images"][0] == 0.0 < found["std_of_images"][1] < found["std"][1]
    assert found["folders"] == {"rose": 4, "tulip": 3}
    assert (found["width"], found["height"], found["corrupt"]) == ([6, 6], [4, 4], [])


def test_a_channel_without_spread_is_told(run, tmp_path):
    (tmp_path / "a").mkdir()
    Image.new("RGB", (3, 2), (9, 9, 9)).save(tmp_path / "a" / "1.png")
    code, out, _ = run("stats", tmp_path)
    assert code == 0
    assert "Normalize would divide by its std of 0" in out


def test_a_corrupt_image_ends_is_left_out_or_is_listed(run, tree):
    code, out, err = run("stats", tree, "--on-corrupt", "list")
    assert (code, out, err) == (0, f"All 7 images below {tree} can be decoded.\n", "")
    sound = json.loads(run("stats", tree, "--json")[1])
    corrupt(tree)
    reason = "is not an image: its 2 bytes have no known format"

    code, out, err = run("stats", tree)
    assert (code, out) == (2, "")
    assert err == (
        f"msmigrate data stats: {tree}/rose/bad [x].jpg {reason}; "
        "repair or remove it, or pass it over with --on-corrupt skip\n"
    )

    code, out, err = run("stats", tree, "--on-corrupt", "skip")
    assert (code, err) == (0, "")
    assert f"1 corrupt image left out:\n  rose/bad [x].jpg: {reason}\n" in out
    found = json.loads(run("stats", tree, "--on-corrupt", "skip", "--json")[1])
    assert found["corrupt"] == [{"file": "rose/bad [x].jpg", "reason": reason}]
    assert {**found, "corrupt": []} == sound

    code, out, err = run("stats", tree, "--on-corrupt", "list")
    assert (code, err) == (1, "")
    assert out == f"  rose/bad [x].jpg: {reason}\n1 of 8 images below {tree} cannot be decoded.\n"
    code, out, _ = run("stats", tree, "--on-corrupt", "list", "--json")
    assert (code, json.loads(out)) == (1, {"folder": str(tree), "images": 8, "corrupt": found["corrupt"]})


def test_a_dry_run_writes_nothing_and_says_the_same(run, tree):
    code, planned, err = run("split", tree, "--dry-run")
    assert (code, err) == (0, "")
    assert f"7 images would be copied into {tree}-split (dry run)." in planned
    assert [path.name for path in tree.parent.iterdir()] == ["flowers"]
    code, done, err = run("split", tree)
    assert (code, err) == (0, "")
    assert f"7 images copied into {tree}-split." in done
    assert done.partition("\n\n")[0] == planned.partition("\n\n")[0]
    assert ["rose", "3", "1"] in words(done) and ["tulip", "2", "1"] in words(done)
    assert ["2", "classes", "5", "2"] in words(done)
    data = yaml.safe_load(done.partition("under data:\n")[2])
    assert len(open_source(data["source"], 2, training=True)) == 5
    assert len(open_source(data["validation"], 2, training=False)) == 2


def test_a_split_as_json_names_every_image(run, tree):
    (tree / "rose" / "notes.txt").write_text("")
    code, out, _ = run(
        "split", tree, "--json", "--how", "link", "--val", 0.5, "--into", tree.parent / "out", "--seed", 3
    )
    found = json.loads(out)
    assert code == 0
    assert found["classes"] == {"rose": {"train": 2, "val": 2}, "tulip": {"train": 1, "val": 2}}
    assert {key: found[key] for key in ("how", "seed", "dry_run", "left_out")} == {
        "how": "link",
        "seed": 3,
        "dry_run": False,
        "left_out": 1,
    }
    assert found["into"] == str(tree.parent / "out")
    for part in ("train", "val"):
        there = (tree.parent / "out" / part).rglob("*.png")
        assert sorted(found[part]) == sorted(path.relative_to(tree.parent / "out" / part).as_posix() for path in there)


def test_classes_of_one_image_and_other_files_are_told(run, tree):
    (tree / "a lily").mkdir()
    (tree / "rose" / "0.png").rename(tree / "a lily" / "0.png")
    (tree / "loose.png").write_text("")
    code, out, _ = run("split", tree, "--dry-run")
    assert code == 0
    assert "Note: only one image in a lily: it is in train/, and val/ has none of it." in out
    assert "Left out: 1 file that is no image of a class." in out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("stats", "nowhere"), "there is no folder nowhere"),
        (("stats", "flowers/rose/0.png"), "flowers/rose/0.png cannot be read as a folder: Not a directory"),
        (("stats", "x" * 300), "cannot be read as a folder: File name too long"),
        (("split", "x" * 300), "File name too long"),
        (("split", "nowhere"), "there is no folder nowhere"),
        (("split", "flowers/rose"), "flowers/rose has no folders in it: each class of images needs one"),
        (("split", "flowers", "--into", "flowers/x"), "flowers/x is inside flowers, which must not be changed"),
        (("split", "flowers", "--into", "."), "has flowers inside it: choose --into another folder"),
        (("split", "flowers", "--into", "a/b"), "a/b does not exist; create it first"),
        (("split", "flowers", "--into", "taken"), "taken exists already and is not replaced"),
    ],
)
def test_what_cannot_be_done_is_one_line(run, tree, monkeypatch, command, message):
    monkeypatch.chdir(tree.parent)
    (tree.parent / "taken").mkdir()
    (tree.parent / "taken" / "mine").touch()
    code, out, err = run(*command)
    assert (code, out) == (2, "")
    assert err.startswith(f"msmigrate data {command[0]}: ") and err.count("\n") == 1
    assert message in err
    assert sorted(path.name for path in tree.parent.iterdir()) == ["flowers", "taken"]


@pytest.mark.parametrize(
    "options",
    [("stats", "--resize", "0"), ("split", "--val", "1"), ("split", "--val", "0"), ("split", "--how", "move")],
)
def test_wrong_options_are_refused(run, tree, options):
    code, _, err = run(options[0], tree, *options[1:])
    assert code == 2
    assert f"Invalid value for '{options[1]}'" in err


def test_names_that_are_not_utf_8_are_printed(tree):
    (tree / "rose").rename(tree / os.fsdecode(b"ros\xe9"))
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    for words_ in (
        ("stats",),
        ("stats", "--json"),
        ("split", "--dry-run"),
        ("split", "--dry-run", "--json"),
        ("split",),
    ):
        line = [sys.executable, "-m", "msmigrate", "data", words_[0], str(tree), *words_[1:]]
        done = subprocess.run(line, capture_output=True, text=True, env=environment)
        assert (done.returncode, done.stderr) == (0, "")
        assert (r"ros\udce9" if "--json" in words_ else "ros?") in done.stdout


def test_an_interruption_leaves_nothing(run, tree, monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.copy2", interrupt)
    code, out, err = run("split", tree)
    assert (code, out, err.strip()) == (130, "", "msmigrate: interrupted")
    assert [path.name for path in tree.parent.iterdir()] == ["flowers"]


def test_a_bar_is_shown_on_a_terminal(run, tree, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # which makes rich take the captured stderr for a terminal
    code, out, err = run("stats", tree, "--json")
    assert code == 0
    assert json.loads(out)["images"] == 7
    assert "decoding" in err and "7/7" in err
    assert image_folders.stats(tree, None, "list", STDOUT) == 0
