"""The public API: its names are pinned, importing it brings nothing along, its page is fresh."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import msmigrate
import pytest
from msmigrate.cli import api_page

NAMES = [
    "__version__",
    "analyze",
    "assert_parity",
    "compare",
    "convert",
    "convert_model",
    "evaluate",
    "export",
    "inspect",
    "parity_step",
    "plan",
    "predict",
    "record",
    "train",
]


def test_the_names_are_these() -> None:
    assert sorted(msmigrate.__all__) == sorted(NAMES)
    assert set(NAMES) <= set(dir(msmigrate))


def test_every_name_is_a_function_the_second_time_too() -> None:
    rooms = [folder.name for folder in Path(msmigrate.__file__).parent.iterdir() if (folder / "__init__.py").is_file()]
    code = (
        f"import importlib, msmigrate; [importlib.import_module(f'msmigrate.{{room}}') for room in {rooms} "
        "if room not in ('tests', 'nn', 'optim')]; "
        f"assert all(callable(getattr(msmigrate, name)) for name in {NAMES[1:]} for _ in (1, 2))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_neither_framework_is_imported_by_asking_for_a_function() -> None:
    code = (
        f"import sys, msmigrate; [getattr(msmigrate, name) for name in {NAMES[1:]}]; "
        "assert not {'torch', 'mindspore', 'torchvision'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_docstring_speaks_of_every_argument_and_of_what_is_raised(name: str) -> None:
    function = getattr(msmigrate, name)
    text = inspect.getdoc(function) or ""
    same_as = [other for other in NAMES[1:] if f"those of `{other}`" in text]
    known = text + "".join(inspect.getdoc(getattr(msmigrate, other)) or "" for other in same_as)
    for argument in inspect.signature(function).parameters:
        assert f"{argument}:" in known or f"{argument}, " in known or f", {argument}:" in known, argument
    assert "Raises" in text


def test_the_page_is_fresh() -> None:
    committed = (Path(msmigrate.__file__).parent / "docs" / "api.md").read_text(encoding="utf-8")
    assert committed == api_page.page(), "python -m msmigrate.cli.api_page docs/api.md"
