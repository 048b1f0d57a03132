"""What the draft of a script says: its recipe, the statements that it lists, and the reason for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.migrate.recipe_draft.draft import Draft
from msmigrate.reports.script_analysis import recipe_text


def drafted(script: Path) -> Any:
    """The recipe."""
    return yaml.safe_load(recipe_text(analyze_script(script)))


def listed(script: Path) -> list[str]:
    """The statements under not_in_this_recipe, without their places."""
    return [line.split(": ", 1)[1] for line in drafted(script).get("not_in_this_recipe", [])]


def has(found: list[str], *beginnings: str) -> bool:
    """Whether a line of these begins with each of the words."""
    return all(any(line.startswith(beginning) for line in found) for beginning in beginnings)


def reasons(script: Path) -> dict[str, str]:
    """The reason for each statement's verdict, by its source."""
    return {line.statement.text: line.why for line in Draft(analyze_script(script).interpreter).account.lines}
