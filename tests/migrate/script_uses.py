"""Looking things up in an analysis."""

from __future__ import annotations

from msmigrate.migrate.analyze.script_analysis import ScriptAnalysis, Use


def names_of(analysis: ScriptAnalysis) -> set[str]:
    """Everything that the script uses."""
    return {use.torch for use in analysis.uses}


def lines_of(analysis: ScriptAnalysis, name: str) -> list[int]:
    """The lines on which it uses one thing, under the name of a call or of its row."""
    return [use.line for use in analysis.uses if name in (use.torch, use.row)]


def use_of(analysis: ScriptAnalysis, name: str) -> Use:
    """The first use of one thing, a call where there is one."""
    found = [use for use in analysis.uses if name in (use.torch, use.row)]
    return next((use for use in found if use.called), found[0])
