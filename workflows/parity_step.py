"""parity-step from start to end, and assert_parity, which is the same inside of a test."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..atomic_files import refuse_unwritable, write_whole
from ..errors import BadInput
from ..migrate import model_spec
from ..migrate.model_spec import names_a_model
from ..migrate.source.convert_model import start
from ..parity.align.alignment import write_map
from ..parity.narrowing import Narrowing
from ..parity.options import INIT_SEEDS, SIDES, STEPS, Options, Pair, check_inputs
from ..parity.result import Report
from ..parity.run import MINDSPORE_WORKER, parity_step
from ..parity.trace import SAMPLE
from ..reports.html.parity_page import write_html
from ..reports.parity_json import write_json
from ..reports.parity_junit import write_junit
from ..reports.parity_markdown import markdown
from ..reports.parity_terminal import WORST, show
from ..reports.progress import doing, progressing
from ..reports.terminal import Console
from ..temporary import temporary_folder
from ..training.models import converted_models
from ..training.models.converted_models import mindspore_spec, torch_spec
from ..training.models.model_names import is_zoo
from ..training.recipe import reader as recipes
from ..training.recipe import schema
from ..training.recipe.schema import Recipe


def of_recipe(recipe: Recipe) -> Pair | None:
    """The pair that the recipe's own model is, where it is one of torchvision's or timm's; None for msmigrate's own.

    Converts the model unless the recipe names its source. Raises what converting does; see converted_models.py.
    """
    model = recipe.model
    if not is_zoo(model.name):
        return None
    theirs = mindspore_spec(model.name, model.args, model.source)
    return Pair(torch_spec(model.name, model.args), theirs, checkpoint=model.checkpoint)


WIDTH = 110


def assert_parity(torch: str, mindspore: str, recipe: str | Path | None = None, **options: Any) -> None:
    """Assert that a training step of two models agrees, tensor by tensor; each framework runs in a process of its own.

    torch, mindspore: the models by name, as on the command line: FILE.py:FUNCTION, MODULE:FUNCTION, torchvision:NAME.
    recipe: a YAML file with data, loss, optimizer and so on; the default recipe without one. options: parity-step's,
    with underscores: steps, batch, ckpt, batch_file, map_file, no_replay, no_diagnosis, thorough, keep.

    Raises AssertionError with the report where a tensor differs, and MsmigrateError (BadInput and others) where the
    comparison could not be made.
    """
    known = {name: kind for name, kind in Asked.__dataclass_fields__.items() if name not in ("torch", "mindspore")}
    unknown = [name for name in options if name not in known]
    if unknown:
        raise BadInput(f"assert_parity has no option {unknown[0]!r}; it has {', '.join(known)}")
    paths = ("ckpt", "batch_file", "map_file", "keep")
    options = {n: Path(v) if n in paths and v is not None else v for n, v in options.items()}
    asked = Asked(torch=torch, mindspore=mindspore, **options)
    path = Path(recipe) if recipe is not None else recipes.DEFAULT
    with temporary_folder("assert") as temporary:
        folder = asked.keep or temporary / "run"
        report = parity_step(
            path, asked.options(recipes.load(path), folder), explain=not asked.no_diagnosis, timeout=asked.timeout
        )
    if not report.parity:
        text = io.StringIO()
        show(report, Console(file=text, width=WIDTH, no_color=True), asked.worst)
        raise AssertionError(f"no parity of {torch} and {mindspore}\n{text.getvalue()}")


UNPROVEN = (
    "the model takes other inputs than tensors by position, which parity-step cannot give it: wrap it in a function "
    "that takes tensors, or leave the proof out with --no-proof"
)

BATCH = 4  # examples of a step on random inputs


def with_mindspore(asked: Asked, folder: Path) -> Asked:
    """The same with the MindSpore side of --torch, converted now; a recipe says the rest.

    folder: a new one, where the source of a user's own model goes; it has to last as long as the comparison. Raises
    Unsupported where the model cannot be written whole, and BadInput.
    """
    assert asked.torch is not None
    spec = model_spec.parse(asked.torch)
    if asked.modules:  # a glob that matches nothing is refused before the model runs
        with doing("building the torch model"):
            names = model_spec.ask("checkpoint.torch_model_worker", asked.torch, "--torch")["classes"]
        Narrowing.to(asked.stages, asked.modules).check(names, asked.torch)
    with doing("writing the model in MindSpore"):
        if is_zoo(f"{spec.place}:{spec.name}") and not spec.args:
            made = converted_models.mindspore_spec(f"{spec.place}:{spec.name}", spec.kwargs)
        else:
            folder.mkdir(parents=True)
            converted_models.write(asked.torch, folder / "converted_model.py")
            made = converted_models.mindspore_spec(f"{spec.place}:{spec.name}", {}, folder / "converted_model.py")
    return replace(asked, mindspore=made)


def whole_pair(model: str, asked: Asked, folder: Path) -> Asked:
    """The pair of a torch model and its conversion, on random inputs like those that it takes unless there is a batch.

    Raises what `with_mindspore` does, and BadInput for a model that parity-step cannot give its inputs.
    """
    found = with_mindspore(replace(asked, torch=model), folder)
    if asked.batch_file is not None:
        return found
    inputs = folder.with_name(f"{folder.name}-inputs")
    inputs.mkdir(parents=True)
    with doing("making a batch"):
        begin = start(model, (), inputs, seed=0, batch=asked.batch or BATCH, steps=asked.steps)
    if begin.batch is None:
        raise BadInput(f"{model}: {UNPROVEN}")
    return replace(found, batch_file=begin.batch, outputs=not begin.plain)


THOROUGH_SEEDS = 10


@dataclass(frozen=True)
class Asked:
    """What the command line asks for; the names are its options'."""

    steps: int = STEPS
    init_seeds: int | None = None
    batch: int | None = None
    thorough: bool = False
    torch: str | None = None
    mindspore: str | None = None
    ckpt: Path | None = None
    batch_file: Path | None = None
    outputs: bool = False
    map_file: Path | None = None
    write_map: Path | None = None
    mode: str = "pynative"
    precision: str = "fp32"
    stages: Sequence[str] = ()
    modules: Sequence[str] = ()
    no_replay: bool = False
    no_diagnosis: bool = False
    timeout: float | None = None
    html: Path | None = None
    json_file: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None
    keep: Path | None = None
    continue_from: Path | None = None
    worst: int = WORST

    def __post_init__(self) -> None:
        Narrowing.to(self.stages, self.modules)  # or refuse it before a model is converted

    def options(self, recipe: schema.Recipe, folder: Path, sides: Sequence[str] = SIDES) -> Options:
        """What the recorders need to know of it; sides: those that are recorded here."""
        if self.torch is not None and self.mindspore is not None:
            files = (self.map_file, self.ckpt, self.batch_file)
            pair: Pair | None = Pair(self.torch, self.mindspore, *files, outputs=self.outputs)
        else:
            check_inputs(recipe, None, sides, draws=False)  # before a model is converted
            pair = of_recipe(recipe)
        seeds = self.init_seeds or (THOROUGH_SEEDS if self.thorough else INIT_SEEDS)
        return Options(
            recipe,
            folder,
            self.steps,
            seeds,
            None if self.thorough else SAMPLE,
            self.batch,
            pair=pair,
            replay=not self.no_replay,
            modules=self.modules,
            stages=self.stages,
            mode=self.mode,
            precision=self.precision,
            continue_from=None if self.continue_from is None else recipes.expanded(self.continue_from).absolute(),
        )

    @property
    def files(self) -> list[Path]:
        """The files that it wants written."""
        wanted = (self.html, self.json_file, self.junit, self.markdown, self.write_map)
        return [file for file in wanted if file is not None]


def run(recipe_file: Path | None, asked: Asked, mindspore_worker: Sequence[str] = MINDSPORE_WORKER) -> int:
    """Run parity-step and print its verdict; returns the exit code, 0 for parity and 1 for a mismatch.

    recipe_file: a torch model by name stands for the default recipe with that model. mindspore_worker: the command that
    records MindSpore's side.
    """

    model = str(recipe_file) if asked.torch is None and names_a_model(recipe_file) else None
    path = recipes.DEFAULT if recipe_file is None or model is not None else recipe_file
    recipe = recipes.load(path)
    for file in asked.files:  # before minutes of work, not after
        refuse_unwritable(file)
    with temporary_folder("parity") as temporary:
        if model is not None:
            asked = whole_pair(model, asked, temporary / "converted")
        elif asked.torch is not None and asked.mindspore is None:
            asked = with_mindspore(asked, temporary / "converted")
        folder = asked.keep or temporary / "run"
        options = asked.options(recipe, folder)
        report = with_progress(path, options, mindspore_worker, explain=not asked.no_diagnosis, timeout=asked.timeout)
        if model is not None:
            report = replace(report, recipe=model)
        show(report, Console(), asked.worst)
        write(report, asked, folder)
    return 0 if report.parity else 1


def write(report: Report, asked: Asked, folder: Path | None, recipe: Path | None = None) -> None:
    """Write the files that were asked for, while the traces are still there (None: they are gone).

    recipe: the copy in a recorded folder.
    """
    if asked.json_file is not None:
        write_json(report, asked.json_file)
    if asked.html is not None:
        write_html(report, folder, asked.html, recipe)
    if asked.junit is not None:
        write_junit(report, asked.junit)
    if asked.markdown is not None:
        write_whole(markdown(report), asked.markdown)
    if asked.write_map is not None and folder is not None:
        write_map(folder, asked.write_map)


def with_progress(
    path: Path, options: Options, mindspore_worker: Sequence[str], *, explain: bool = True, timeout: float | None = None
) -> Report:
    """Run parity_step, and show on stderr what each framework is doing."""
    with progressing(("torch", "MindSpore")) as told:
        return parity_step(path, options, told, mindspore_worker=mindspore_worker, explain=explain, timeout=timeout)
