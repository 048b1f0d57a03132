"""An exported file and what lies beside it appear together or not at all, and only what an export wrote is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmigrate.deploy import output_files
from msmigrate.deploy.output_files import check, place
from msmigrate.errors import BadDestination

NONE = Path("none.pth")


def made(folder: Path, form: str, text: str, large: bool = True) -> Path:
    """A file as an export leaves it in its temporary folder."""
    folder.mkdir(exist_ok=True)
    file = folder / f"net.{form}"
    file.write_text(text)
    if large and form == "mindir":
        (folder / "net_variables").mkdir(exist_ok=True)
        (folder / "net_variables" / "data_0").write_text(f"{text}'s")
    elif large:
        (folder / "net.onnx.data").write_text(f"{text}'s")
    return file


def there(folder: Path) -> dict[str, str]:
    """Every file in a folder."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


NAMES = {"mindir": ("net.mindir", "net_variables/data_0"), "onnx": ("net.onnx", "net.onnx.data")}


@pytest.mark.parametrize("form", NAMES)
def test_a_large_net_is_two_things(tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    target = check(out / f"net.{form}", NONE, force=False)
    place(made(tmp_path / "a", form, "one"), target, force=False)
    assert there(out) == dict(zip(NAMES[form], ("one", "one's"), strict=True))
    with pytest.raises(BadDestination, match="pass --force"):
        check(target, NONE, force=False)
    target.unlink()
    with pytest.raises(BadDestination, match=r"exists, where a large net's numbers go; pass --force"):
        check(target, NONE, force=False)
    target.write_text("one")
    place(made(tmp_path / "b", form, "two"), check(target, NONE, force=True), force=True)
    assert there(out) == dict(zip(NAMES[form], ("two", "two's"), strict=True))
    assert {path.name for path in out.iterdir()} == {name.partition("/")[0] for name in NAMES[form]}


@pytest.mark.parametrize("form", NAMES)
def test_a_failure_brings_back_what_was_there(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    out.mkdir()
    target = out / f"net.{form}"
    place(made(tmp_path / "a", form, "one"), target, force=False)
    before = there(out)
    new = made(tmp_path / "b", form, "two")
    with pytest.raises(BadDestination, match="appeared while it was being written"):
        place(new, target, force=False)
    assert there(out) == before
    monkeypatch.setattr(output_files.shutil, "copyfileobj", stopped)
    with pytest.raises(KeyboardInterrupt):
        place(new, target, force=True)
    assert there(out) == before
    assert {path.name for path in out.iterdir()} == {name.partition("/")[0] for name in before}


def stopped(*files: object) -> None:
    raise KeyboardInterrupt


def test_what_no_export_wrote_is_not_replaced(tmp_path: Path) -> None:
    for form, other in (("mindir", tmp_path / "net_variables"), ("onnx", tmp_path / "net.onnx.data")):
        other.mkdir()
        (other / "mine.txt").write_text("mine")
        with pytest.raises(BadDestination, match="no export wrote it"):
            check(tmp_path / f"net.{form}", NONE, force=True)


def test_a_small_net_leaves_one_file(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    place(made(tmp_path / "a", "mindir", "one", large=False), out / "net.mindir", force=False)
    assert there(out) == {"net.mindir": "one"}
