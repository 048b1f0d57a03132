"""Recipe files with a given text, read or refused: for the tests of the recipe and of its YAML reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmigrate.errors import BadRecipe
from msmigrate.training.recipe.reader import load
from msmigrate.training.recipe.schema import Recipe


def write(folder: Path, text: str | bytes) -> Path:
    """A recipe file with this text."""
    path = folder / "page.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(folder: Path, text: str) -> Recipe:
    """The recipe that this text makes."""
    return load(write(folder, text))


def refusal(folder: Path, text: str | bytes) -> str:
    """What is said about this text, after the file's name."""
    path = write(folder, text)
    with pytest.raises(BadRecipe) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert len(message) < 600
    return message.removeprefix(str(path))
