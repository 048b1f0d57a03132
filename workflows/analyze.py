"""analyze from start to end: a model, an ONNX file, a training script, or the coverage of many models."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..atomic_files import write_whole
from ..errors import BadDestination, BadInput
from ..migrate.analyze.model_analysis import analyze
from ..printable import echo, json_line
from ..reports import model_analysis
from ..reports.terminal import Console

WIDTH = 200  # elsewhere than in a terminal, whose width nothing is cut to


def run(
    targets: Sequence[str],
    *,
    mode: str = "pynative",
    target: str = "CPU",
    inputs: tuple[str, ...] = (),
    coverage: bool = False,
    whole: bool = False,
    as_json: bool = False,
    page: Path | None = None,
    recipe: Path | None = None,
    force: bool = False,
) -> int:
    """Say what becomes of models or of a script in MindSpore; returns 0 where everything has a counterpart, 1 if not.

    mode, target: of MindSpore. inputs: shapes of a model's. coverage: a table of many models. whole: every operator.
    page: a file for HTML. recipe: a file for the draft of a script's recipe, which is replaced with force. Raises
    BadInput for options that do not fit together, BadDestination, and what reading the targets raises.
    """
    if coverage:
        if inputs or recipe is not None or page is not None:
            raise BadInput("--coverage goes with --mode, --target, --all and --json alone.")
        return _coverage(targets, mode, target, whole=whole, as_json=as_json)
    if len(targets) != 1:
        raise BadInput("One TARGET, or several with --coverage.")
    (one,) = targets
    report: ModuleType
    if one.endswith(".py"):
        report, analysis = _script(one, mode, target, inputs, recipe, force=force)
    elif recipe is not None:
        raise BadInput("--write-recipe is for a training script: analyze train.py")
    else:
        report, analysis = model_analysis, analyze(one, mode=mode, target=target, inputs=inputs)
    if page is not None:
        write_whole(report.html(analysis), page)
    if as_json:
        echo(json_line(report.as_json(analysis)))
    else:
        console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
        report.show(analysis, console, whole=whole)
    return 1 if analysis.missing else 0


def _script(
    path: str, mode: str, target: str, inputs: tuple[str, ...], recipe: Path | None, *, force: bool
) -> tuple[ModuleType, Any]:
    """What renders the analysis of a script, and that; the draft of its recipe is written."""
    from ..migrate.script.analysis import analyze_script  # not above: reading recipes costs a fifth of a second
    from ..reports import script_analysis

    if inputs:
        raise BadInput("--input is for models; a script is read, not run.")
    if recipe is not None and recipe.exists() and not force:
        raise BadDestination(f"{recipe} is there already; --force replaces it")
    analysis = analyze_script(path, mode=mode, target=target)
    if recipe is not None:
        write_whole(script_analysis.recipe_text(analysis), recipe)
    return script_analysis, analysis


def _coverage(targets: Sequence[str], mode: str, target: str, *, whole: bool, as_json: bool) -> int:
    from ..migrate.analyze.coverage import cover  # not above, nor the bars of training's progress, which cost as much
    from ..reports.progress import Progress

    with Progress() as progress:
        found = cover(targets, mode=mode, target=target, progress=progress)
    if as_json:
        echo(json_line(model_analysis.coverage_json(found)))
    else:
        model_analysis.show_coverage(found, whole=whole)
    return 0 if all(entry.moves for entry in found.models) else 1
