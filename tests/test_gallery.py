"""The gallery shows every figure, small enough for a repository, and every document's links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
GALLERY = ROOT / "docs" / "gallery.md"
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
# docs/mappings.md has its own test
DOCUMENTS = [*ROOT.glob("*.md"), *(file for file in (ROOT / "docs").rglob("*.md") if file.name != "mappings.md")]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """benchmarks/gallery.py."""
    found = importlib.util.spec_from_file_location("gallery", ROOT / "benchmarks" / "gallery.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["gallery"] = module
    found.loader.exec_module(module)
    return module


def linked(file: Path) -> set[Path]:
    """The files that a document leads to."""
    text = re.sub(r"^```.*?^```", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = (target for target in LINK.findall(text) if "://" not in target)
    return {(file.parent / target).resolve() for target in targets}


def test_every_figure_is_shown_and_there() -> None:
    assert {path for path in linked(GALLERY) if path.suffix == ".png"} == set(FIGURES.iterdir())


def test_every_figure_is_a_small_picture() -> None:
    for file in FIGURES.iterdir():
        with Image.open(file) as picture:
            assert picture.format == "PNG" and picture.width <= 1600, file.name
        assert file.stat().st_size <= 300_000, file.name


def test_the_script_makes_those_that_are_not_a_benchmark_s(script: ModuleType) -> None:
    made = {f"{name}.png" for name in (*script.SHOTS, *script.PLOTS)}
    assert {file.name for file in FIGURES.iterdir()} == made | {"training_curves.png"}
    for shot in script.SHOTS.values():
        if isinstance(shot.page, str):
            assert (script.EXAMPLES / shot.page).exists()
    assert (ROOT / script.SCRIPT).exists()


def test_what_is_empty_at_the_end_of_a_picture_is_cut(script: ModuleType) -> None:
    picture = Image.new("RGB", (20, 400), "white")
    picture.paste("black", (5, 10, 15, 100))
    assert script.trimmed(picture).size == (20, 99 + script.MARGIN)
    assert script.trimmed(Image.new("RGB", (20, 50), "white")).size == (20, 50)


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_lead_somewhere(file: Path) -> None:
    assert [path for path in linked(file) if not path.exists()] == []


def test_published_models_are_linked() -> None:
    for file in (GALLERY, ROOT / "README.md", ROOT / "README_CN.md"):
        assert ROOT / "docs" / "published_models.md" in linked(file)
