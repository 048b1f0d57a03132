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
LINK = re.compile(r"\]\(([^)#\s]*)#?([^)\s]*)[^)]*\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
SCRIPT = re.compile(r"\b(?:python3?|pytest(?: -m full)?) ((?:benchmarks|tests)/[\w./]+)")
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
    *(file for file in (ROOT / "docs").rglob("*.md") if file.name != "mappings.md"),  # which has its own test
]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """benchmarks/gallery.py."""
    found = importlib.util.spec_from_file_location("gallery", ROOT / "benchmarks" / "gallery.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["gallery"] = module
    found.loader.exec_module(module)
    return module


def bare(file: Path) -> str:
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def links(file: Path) -> set[tuple[Path, str]]:
    """The files that a document leads to, itself included, and the anchor in each, or an empty text."""
    found = [(target, anchor) for target, anchor in LINK.findall(bare(file)) if "://" not in target]
    return {((file.parent / target).resolve() if target else file, anchor) for target, anchor in found}


def linked(file: Path) -> set[Path]:
    return {path for path, _ in links(file)}


def anchors(file: Path) -> set[str]:
    """What a reader of Markdown calls the headings of a document: lower case, hyphens, no other punctuation."""
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in HEADING.findall(bare(file)))
    return {title.strip().replace(" ", "-") for title in plain}


def dead(file: Path) -> list[str]:
    """The links of a document that lead nowhere, and the scripts and tests it names that are not there."""
    found = [f"no file {path.name}" for path, _ in links(file) if not path.exists()]
    found += [
        f"no heading #{anchor} in {path.name}"
        for path, anchor in links(file)
        if anchor and path.suffix == ".md" and path.exists() and anchor not in anchors(path)
    ]
    named = SCRIPT.findall(file.read_text(encoding="utf-8"))
    return found + [f"no script {name}" for name in named if not (ROOT / name).exists()]


def test_every_figure_is_shown_and_there() -> None:
    shown = linked(GALLERY) | linked(ROOT / "README.md")
    assert {path for path in shown if path.suffix == ".png"} == set(FIGURES.iterdir())


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
    assert dead(file) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a](other.md)", "no file other.md"),
        ("[a](#one-thing-more)", "no heading #one-thing-more in page.md"),
        ("[a](page.md#no)", "no heading #no in page.md"),
        ("`python benchmarks/none.py --fast`", "no script benchmarks/none.py"),
        ("    pytest -m full tests/none", "no script tests/none"),
    ],
)
def test_a_dead_link_is_seen(text: str, said: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# One thing: `more`, here\n\n[b](#one-thing-more-here) `python benchmarks/kinks.py`\n\n{text}\n")
    assert dead(page) == [said]


def reached(file: Path) -> set[Path]:
    """The documents that a reader comes to, from one on from link to link."""
    found, new = {file}, {file}
    while new:
        new = {path for each in new for path in linked(each) if path.suffix == ".md" and path.exists()} - found
        found |= new
    return found


def test_every_page_is_reached_from_the_readme() -> None:
    assert set(DOCUMENTS) - reached(ROOT / "README.md") == set()


def test_published_models_are_linked() -> None:
    for file in (GALLERY, ROOT / "README.md", ROOT / "README_CN.md"):
        assert ROOT / "docs" / "published_models.md" in linked(file)
