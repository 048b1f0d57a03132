"""A split is stratified, the same everywhere, and appears whole or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msmigrate.errors import BadDestination, BadInput
from msmigrate.training.data import image_folder
from msmigrate.training.data.image_folder import carry_out, destination, plan
from msmigrate.training.data.sources import open_source


def tree(folder: Path, **classes: int) -> Path:
    """A tree whose files hold their own names: images are not decoded to split them."""
    for name, images in classes.items():
        for index in range(images):
            place = folder / name / ("deep" if index % 3 == 2 else "") / f"{index}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"{name} {index}")
    return folder


def listing(folder: Path) -> dict[str, bytes]:
    """Path -> content of everything below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def split(folder: Path, share: float = 0.3, seed: int = 42, how: image_folder.Way = "copy") -> Path:
    target = destination(folder, None)
    carry_out(plan(folder, share, seed), target, how)
    return target


@pytest.mark.parametrize("how", ["copy", "link", "symlink"])
def test_every_image_goes_into_one_part(tmp_path, how):
    folder = tree(tmp_path / "flowers", rose=10, tulip=7, lily=2)
    (folder / "rose" / "notes.txt").write_text("not an image")
    before = listing(folder)
    target = split(folder, how=how)
    assert target == tmp_path / "flowers-split"
    assert listing(folder) == before
    after = listing(target)
    whole = {name.partition("/")[2]: content for name, content in after.items()}
    assert len(after) == len(whole) == 19
    assert whole == {name: content for name, content in before.items() if name.endswith("png")}
    found = {part: {name.name: len(listing(name)) for name in (target / part).iterdir()} for part in ("train", "val")}
    assert found == {"train": {"rose": 7, "tulip": 5, "lily": 1}, "val": {"rose": 3, "tulip": 2, "lily": 1}}
    for name in after:
        file, source = target / name, folder / name.partition("/")[2]
        assert file.is_symlink() == (how == "symlink")
        assert file.samefile(source) == (how != "copy")
    assert [path.name for path in tmp_path.iterdir()] in (["flowers", target.name], [target.name, "flowers"])
    assert open_source(f"folder:{target / 'val'}", 3, training=False).classes == ("lily", "rose", "tulip")


@given(images=st.integers(2, 200), share=st.floats(0.001, 0.999), seed=st.integers(0, 2**32))
def test_the_share_is_kept_and_neither_part_is_empty(images, share, seed):
    names = [f"a/{index}.png" for index in range(images)]
    training, validation = image_folder._parts(names, share, seed)
    assert sorted(training + validation) == sorted(names)
    assert training and validation
    assert abs(len(validation) - images * share) <= max(0.5, 1 - images * share, 1 - images * (1 - share)) + 1e-9


def test_the_seed_and_the_names_decide_and_nothing_else(tmp_path):
    first = tree(tmp_path / "first", rose=30, tulip=30)
    second = tree(tmp_path / "elsewhere" / "second", tulip=30, rose=30)
    again = plan(second, 0.3, 42)
    assert plan(first, 0.3, 42).validation == again.validation
    assert plan(first, 0.3, 43).validation != again.validation
    # known images, so that no other version or machine draws others
    assert again.validation["tulip"][:4] == ["tulip/0.png", "tulip/10.png", "tulip/12.png", "tulip/24.png"]
    assert len({name.partition("/")[2] for name in again.validation["rose"]}) == 9
    assert [name.partition("/")[2] for name in again.validation["rose"]] != [
        name.partition("/")[2] for name in again.validation["tulip"]
    ]
    tree(second, lily=8)  # another class moves no image
    assert {**plan(second, 0.3, 42).validation, "lily": []} == {**again.validation, "lily": []}


def test_more_images_for_training_come_out_of_validation_only(tmp_path):
    folder = tree(tmp_path / "tree", rose=50)
    small, large = (set(plan(folder, share, 1).validation["rose"]) for share in (0.1, 0.4))
    assert (len(small), len(large)) == (5, 20)
    assert small < large


def test_a_class_of_one_image_is_told_and_keeps_the_numbers_of_the_others(tmp_path):
    folder = tree(tmp_path / "tree", ash=1, beech=4)
    found = plan(folder, 0.5, 0)
    assert found.alone == ["ash"]
    target = split(folder, 0.5)
    validation = open_source(f"folder:{target / 'val'}", 2, training=False)
    assert (validation.classes, validation.labels.tolist()) == (("ash", "beech"), [1, 1])


@pytest.mark.parametrize("how", ["copy", "link", "symlink"])
def test_links_in_the_tree_are_followed(tmp_path, how):
    folder = tree(tmp_path / "tree", rose=4)
    (tmp_path / "outside.png").write_text("outside")
    (folder / "rose" / "linked.png").symlink_to(tmp_path / "outside.png")
    target = split(folder, how=how)
    found = next(path for path in target.rglob("linked.png"))
    assert found.read_text() == "outside"
    assert found.is_symlink() == (how == "symlink")


def test_where_it_may_not_go(tmp_path):
    folder = tree(tmp_path / "tree", rose=4)
    for into, message in (
        (folder, "is inside"),
        (folder / "split", "is inside .*tree, which must not be changed: choose --into another folder"),
        (tmp_path, "has .*tree inside it"),
        (folder / "rose" / ".." / "new", "is inside"),
        (tmp_path / "a" / "b", r"the folder of .*/a/b does not exist; create it first"),
    ):
        with pytest.raises(BadDestination, match=message):
            destination(folder, into)
    (tmp_path / "alias").symlink_to(folder)
    with pytest.raises(BadDestination, match="is inside"):
        destination(folder, tmp_path / "alias" / "new")
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").write_text("mine")
    for name in ("file", "full"):
        with pytest.raises(BadDestination, match=f"{name} exists already and is not replaced"):
            destination(folder, tmp_path / name)
    assert (tmp_path / "full" / "something").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert destination(folder, tmp_path / "empty") == tmp_path / "empty"
    carry_out(plan(folder, 0.3, 1), tmp_path / "empty", "copy")
    assert sorted(path.name for path in (tmp_path / "empty").iterdir()) == ["train", "val"]


def test_what_is_no_tree_of_classes(tmp_path):
    with pytest.raises(BadInput, match="there is no folder"):
        plan(tmp_path / "none", 0.3, 1)
    with pytest.raises(BadInput, match="has no folders in it"):
        plan(tmp_path, 0.3, 1)
    with pytest.raises(BadInput, match="is split already: its folders are Train, val, not classes"):
        plan(tree(tmp_path / "split", Train=2, val=2), 0.3, 1)
    with pytest.raises(BadInput, match="fir has no images in it"):
        folder = tree(tmp_path / "tree", oak=2)
        (folder / "fir").mkdir()
        plan(folder, 0.3, 1)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), RuntimeError("odd")])
def test_a_split_that_fails_leaves_nothing(tmp_path, monkeypatch, error):
    folder = tree(tmp_path / "tree", rose=9)
    before, calls = listing(tmp_path), []

    def fail(source, place):
        calls.append(place)
        if len(calls) == 5:
            raise error
        return shutil.copyfile(source, place)

    monkeypatch.setattr(shutil, "copy2", fail)
    with pytest.raises(BadDestination if isinstance(error, OSError) else type(error)) as raised:
        split(folder)
    if isinstance(error, OSError):
        assert str(raised.value).endswith("tree-split: No space left on device; nothing was left behind")
    assert len(calls) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]
    assert listing(tmp_path) == before


def test_what_appears_meanwhile_is_not_replaced(tmp_path):
    folder = tree(tmp_path / "tree", rose=9)
    target = destination(folder, None)

    def somebody_else(done: int, _: int) -> None:
        if done == 3:
            target.mkdir()
            (target / "theirs").write_text("theirs")

    with pytest.raises(BadDestination, match="tree-split: Directory not empty; nothing was left behind"):
        carry_out(plan(folder, 0.3, 1), target, "copy", somebody_else)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tree", "tree-split"]
    assert listing(target) == {"theirs": b"theirs"}


def test_too_little_room_is_told_before_the_work(tmp_path, monkeypatch):
    folder = tree(tmp_path / "tree", rose=9)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 3))
    with pytest.raises(BadDestination, match=r"0\.0 GB and .* has 0\.0 GB free: use --how link or --how symlink"):
        split(folder)
    assert split(folder, how="symlink").is_dir()


def test_where_hard_links_do_not_reach_the_other_ways_are_named(tmp_path, monkeypatch):
    folder = tree(tmp_path / "tree", rose=9)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(
        BadDestination, match="cross-device link; where hard links do not reach, use --how copy or --how"
    ):
        split(folder, how="link")
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]
