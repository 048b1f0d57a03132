"""Analyze: a model, an ONNX file, a script, or the coverage of many models."""

from __future__ import annotations

import sys
from typing import Any

import click

from ..printable import echo, json_line


def _print(analysis: Any, report: Any, options: dict[str, Any]) -> None:
    """Print an analysis as its report says it, and exit with 1 when something is missing."""
    if options["page"] is not None:
        from ..atomic_files import write_whole

        write_whole(report.html(analysis), options["page"])
    if options["as_json"]:
        echo(json_line(report.as_json(analysis)))
    else:
        from ..reports.terminal import Console

        # Elsewhere than in a terminal nothing is cut to its width.
        console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
        report.show(analysis, console, whole=options["whole"])
    sys.exit(1 if analysis.missing else 0)


def _script(path: str, inputs: tuple[str, ...], options: dict[str, Any]) -> None:
    if inputs:
        raise click.UsageError("--input is for models; a script is read, not run.")
    from ..errors import BadDestination
    from ..migrate.script.analysis import analyze_script
    from ..reports import script_analysis

    file = options["recipe"]
    if file is not None and file.exists() and not options["force"]:
        raise BadDestination(f"{file} is there already; --force replaces it")
    analysis = analyze_script(path, mode=options["mode"], target=options["target"])
    if file is not None:
        from ..atomic_files import write_whole

        write_whole(script_analysis.recipe_text(analysis), file)
    _print(analysis, script_analysis, options)


def _coverage(targets: tuple[str, ...], inputs: tuple[str, ...], options: dict[str, Any]) -> None:
    if inputs or options["recipe"] is not None or options["page"] is not None:
        raise click.UsageError("--coverage goes with --mode, --target, --all and --json alone.")
    from ..migrate.analyze.coverage import cover
    from ..reports import model_analysis
    from ..reports import progress as progress_module

    with progress_module.Progress() as progress:
        found = cover(targets, mode=options["mode"], target=options["target"], progress=progress)
    if options["as_json"]:
        echo(json_line(model_analysis.coverage_json(found)))
    else:
        model_analysis.show_coverage(found, whole=options["whole"])
    sys.exit(0 if all(entry.moves for entry in found.models) else 1)
