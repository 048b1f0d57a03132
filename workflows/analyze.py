"""analyze from start to end: a model, an ONNX file, a training script, or the coverage of many models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ..atomic_files import write_whole
from ..errors import BadDestination, BadInput
from ..migrate.analyze.model_analysis import analyze as analyze_model
from ..migrate.analyze.model_analysis import cover
from ..option_fields import as_path, model_name
from ..reports import model_analysis
from ..reports.terminal import Console
from .results import Result, console_text, only_json

WIDTH = 200  # outside of a terminal: of the lines of text


@dataclass(frozen=True, repr=False)
class AnalysisResult(Result):
    """What becomes of a model or script in MindSpore; true where everything that it uses has a counterpart."""

    analysis: Any
    report: ModuleType  # the module of reports/ that renders it

    @property
    def ok(self) -> bool:
        """Whether nothing is missing."""
        return not self.analysis.missing

    def text(self) -> str:
        """The verdict, the operators or calls, and what has to change."""
        return console_text(lambda console: self.report.show(self.analysis, console), WIDTH)

    def as_dict(self) -> dict[str, Any]:
        """Every operator or call with its places."""
        content: dict[str, Any] = self.report.as_json(self.analysis)
        return content

    def page(self) -> str:
        """The page of --html."""
        html: str = self.report.html(self.analysis)
        return html


def analyze(
    model: Any,
    *,
    mode: str = "pynative",
    target: str = "CPU",
    inputs: Sequence[str] = (),
    write_recipe: str | Path | None = None,
    force: bool = False,
) -> AnalysisResult:
    """Say what a model or a training script uses, and what becomes of it in MindSpore, before anything is converted.

    model: a torch model by name (torchvision:resnet50, FILE.py:FUNCTION) or as the function that builds it; an ONNX
        file; or a training script, train.py, which is read and never run.
    mode: the mode of MindSpore whose statuses are shown: "pynative" or "graph".
    target: what it is to run on, "CPU", "Ascend" or "GPU"; statuses are measured for the CPU, and from documentation
        for the others.
    inputs: shapes of the model's inputs, such as "1x3x224x224" or "1x16:int64".
    write_recipe: for a script: a file for the draft of its recipe.
    force: replace that file where it exists.

    Raises BadInput and BadDestination, and WorkerFailed for a model that does not run.
    """
    recipe = as_path(write_recipe, "write_recipe")
    return _analysis(model_name(model, "model"), mode, target, tuple(inputs), recipe, force=force)


def _analysis(
    model: str, mode: str, target: str, inputs: tuple[str, ...], recipe: Path | None, *, force: bool
) -> AnalysisResult:
    if model.endswith(".py"):
        report, analysis = _script(model, mode, target, inputs, recipe, force=force)
        return AnalysisResult(analysis, report)
    if recipe is not None:
        raise BadInput("--write-recipe is for a training script: analyze train.py")
    return AnalysisResult(analyze_model(model, mode=mode, target=target, inputs=inputs), model_analysis)


def run(
    targets: Sequence[str],
    *,
    mode: str = "pynative",
    target: str = "CPU",
    inputs: tuple[str, ...] = (),
    coverage: bool = False,
    whole: bool = False,
    json_file: Path | None = None,
    page: Path | None = None,
    recipe: Path | None = None,
    force: bool = False,
) -> int:
    """Say what becomes of models or of a script in MindSpore; returns 0 where everything has a counterpart, 1 if not.

    mode, target: MindSpore's. inputs: shapes of a model's inputs. coverage: a table of many models. whole: every
    operator. page: a file for HTML. recipe: a file for the draft of a script's recipe, which is replaced with force.
    Raises BadInput for options that do not fit together, BadDestination, and what reading the targets raises.
    """
    if coverage:
        if inputs or recipe is not None or page is not None:
            raise BadInput("--coverage can be combined with --mode, --target, --all and --json only.")
        return _coverage(targets, mode, target, whole=whole, json_file=json_file)
    if len(targets) != 1:
        raise BadInput("One TARGET, or several with --coverage.")
    result = _analysis(targets[0], mode, target, inputs, recipe, force=force)
    if page is not None:
        write_whole(result.page(), page)
    if not only_json(result.as_dict, json_file):
        result.report.show(result.analysis, Console(), whole=whole)
    return 0 if result else 1


def _script(
    path: str, mode: str, target: str, inputs: tuple[str, ...], recipe: Path | None, *, force: bool
) -> tuple[ModuleType, Any]:
    """The module that renders a script's analysis, and the analysis; the draft of its recipe is written."""
    from ..migrate.analyze.script_analysis import analyze_script  # not above: reading recipes costs a fifth of a second
    from ..reports import script_analysis

    if inputs:
        raise BadInput("--input is for models; a script is read, not run.")
    if recipe is not None and recipe.exists() and not force:
        raise BadDestination(f"{recipe} is there already; --force replaces it")
    analysis = analyze_script(path, mode=mode, target=target)
    if recipe is not None:
        write_whole(script_analysis.recipe_text(analysis), recipe)
    return script_analysis, analysis


def _coverage(targets: Sequence[str], mode: str, target: str, *, whole: bool, json_file: Path | None) -> int:
    from ..reports.progress import Progress

    with Progress() as progress:
        covered = cover(targets, mode=mode, target=target, progress=progress)
    if not only_json(lambda: model_analysis.coverage_json(covered), json_file):
        model_analysis.show_coverage(covered, whole=whole)
    return 0 if all(entry.moves for entry in covered.models) else 1
