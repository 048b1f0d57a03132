"""One self-contained page of a report: nothing is loaded from anywhere, and names out of traces stay text.

The page forbids itself everything else: its Content-Security-Policy names the digests of its own style and script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import jinja2

from ... import __version__
from ...errors import MsmigrateError
from ...input_files import read_text
from ...parity.findings import Report, StageSummary
from ...parity.judge import RATIO, Verdict
from ...printable import printable_lines, printable_values
from ...train import recipe as recipes
from ...train import strict_yaml
from ..judged import explains, known, where
from ..whole_file import write_whole
from .error_histograms import Histograms
from .module_tree import of_report
from .numbers import shown, times
from .packed_findings import clipped, pack

HERE = Path(__file__).parent
SCRIPTS = ("data.js", "detail.js", "plot.js", "table.js", "explore.js", "tree.js")
FIRST_CAUSES = 4  # shown unfolded; the others are one click away
MARKS = {Verdict.PASS: "pass", Verdict.FAIL: "fail", Verdict.NONE: "none"}


def write_html(report: Report, folder: Path | None, path: Path, recipe: Path | None = None) -> None:
    """Write the page of a report; folder: the run's traces, which give histograms; recipe: the copy of the recipe in a
    recorded folder. The file appears complete or not at all. Raises BadDestination."""
    write_whole(page(report, folder, recipe), path)


def page(report: Report, folder: Path | None = None, recipe: Path | None = None) -> str:
    """The page as text."""
    environment = pages()
    environment.filters |= {"number": shown, "times": times, "clip": clipped, "mark": MARKS.__getitem__}
    style = (HERE / "style.css").read_text(encoding="utf-8")
    script = '"use strict";(() => {\n' + "".join((HERE / s).read_text(encoding="utf-8") for s in SCRIPTS) + "})();\n"
    histograms = Histograms(folder) if folder is not None else None
    root, alone = of_report(report)
    return environment.get_template("page.html.j2").render(
        report=report,
        stages=report.stages,
        verdict=overall(report),
        where=where(report),
        left_out=report.narrowing.left_out(),
        empty=empty,
        ratio=RATIO,
        counts=_counts(report),
        first_causes=FIRST_CAUSES,
        explains=explains,
        known=known,
        found=sum(explains(cause) for cause in report.causes),
        root=root,
        alone=alone,
        environment=_environment(report, histograms),
        recipe_text=_recipe_text(report, recipe),
        data=_data(report, histograms),
        style=style,
        script=script,
        policy=_policy(style, script),
        version=__version__,
    )


def pages() -> jinja2.Environment:
    """The environment of all pages: what they are given stays text, and shows what nobody would see of it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.policies["json.dumps_function"] = _dumped
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _dumped(value: Any, **options: Any) -> str:
    return json.dumps(printable_values(value), **options)


def _visible(value: Any) -> Any:
    """A text with what cannot be seen escaped; what is made of a template already is as it should be."""
    return printable_lines(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def overall(report: Report) -> str:
    """What the page says at its top: pass, fail, or none where nothing failed but something has no verdict."""
    if report.parity:
        return "pass"
    return "fail" if report.first_divergence is not None else "none"


def empty(stage: StageSummary) -> bool:
    """Whether nothing was compared in a stage."""
    return stage.passed + stage.failed + stage.undecided == 0


def _counts(report: Report) -> dict[str, int]:
    counts = {mark: sum(f.verdict is verdict for f in report.findings) for verdict, mark in MARKS.items()}
    return {**counts, "all": len(report.findings)}


def _data(report: Report, histograms: Histograms | None) -> dict[str, Any]:
    first = report.first_divergence
    return {
        "ratio": RATIO,
        "findings": pack(report.findings, report.narrowing.stages),
        "first": report.findings.index(first) if first is not None else None,
        "histograms": histograms.of(report.findings) if histograms is not None else {},
    }


def _environment(report: Report, histograms: Histograms | None) -> list[tuple[str, str]]:
    """What the verdict holds for, line by line."""
    rows = [(name, str(version)) for name, version in sorted(report.versions.items())]
    devices = histograms.devices if histograms is not None else {}
    rows += [(f"{framework} device", device) for framework, device in devices.items()]
    rows += [("msmigrate", __version__), ("recipe digest", report.recipe_digest)]
    made = report.made_with
    if made is not None:
        rows += [
            ("msmigrate code digest", made.code_digest),
            ("starting checkpoint digest", made.checkpoint_digest or "no checkpoint: weights of the recipe's seed"),
            ("compared", f"{made.steps} training steps of {made.batch} images"),
        ]
    if report.seconds is not None:
        rows.append(("duration", f"{report.seconds:.0f} s"))
    return rows


def _recipe_text(report: Report, copy: Path | None) -> str | None:
    """The recipe's file, if it still stands where the report found it and is still the same recipe.

    copy: the one in a recorded folder, in whose place nothing is read that the folder only names.
    """
    path = copy or Path(report.recipe)
    try:
        text = read_text(path, strict_yaml.LARGEST)
        recipe = recipes.load(path)
        if copy is not None and recipe.model.source is not None:
            return None
        return text if recipe.digest == report.recipe_digest else None
    except (OSError, ValueError, MsmigrateError):
        return None


def _policy(style: str, script: str) -> str:
    """The Content-Security-Policy: this style and this script, by their digests, and nothing else."""
    return f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; base-uri 'none'"


def digest(text: str) -> str:
    """The digest by which a Content-Security-Policy allows a style or a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
