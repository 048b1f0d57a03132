"""parity-step from start to end, and assert_parity, which is the same inside of a test."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ..atomic_files import refuse_unwritable, write_whole
from ..errors import BadInput
from ..migrate import model_spec
from ..migrate.model_spec import names_a_model
from ..migrate.source.conversion import start
from ..option_fields import options_in
from ..parity.align.alignment import write_map
from ..parity.job import SIDES, Pair, ParityJob, check_inputs
from ..parity.narrowing import Narrowing
from ..parity.options import ParityOptions, StepOptions
from ..parity.result import Report
from ..parity.run import MINDSPORE_WORKER, parity_step
from ..reports.html.parity_page import write_html
from ..reports.parity_json import write_json
from ..reports.parity_junit import write_junit
from ..reports.parity_markdown import markdown
from ..reports.parity_terminal import show
from ..reports.progress import doing, progressing
from ..reports.terminal import Console
from ..temporary import temporary_folder
from ..training.models import converted_models
from ..training.models.converted_models import mindspore_spec, torch_spec
from ..training.models.model_names import is_zoo
from ..training.recipe import reader as recipes
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
    with underscores, each as there: steps, batch, ckpt, batch_file, map_file, no_replay, no_diagnosis, thorough, keep,
    html, json_file and so on.

    Raises AssertionError with the report where a tensor differs, and MsmigrateError (BadInput and others) where the
    comparison could not be made.
    """
    known = {**options_in(ParityOptions), "outputs": None}
    unknown = [name for name in options if name not in known]
    if unknown:
        taken = ", ".join(name for name in known if name not in ("torch", "mindspore"))
        raise BadInput(f"assert_parity has no option {unknown[0]!r}; it has {taken}")
    paths = [name for name, declared in options_in(ParityOptions).items() if declared.type is Path]
    options = {n: Path(v) if n in paths and v is not None else v for n, v in options.items()}
    asked = ParityOptions(torch=torch, mindspore=mindspore, **options)
    path = Path(recipe) if recipe is not None else recipes.DEFAULT
    for file in asked.files:
        refuse_unwritable(file)
    with temporary_folder("assert") as temporary:
        folder = asked.keep or temporary / "run"
        report = parity_step(path, job_of(asked, recipes.load(path), folder))
        write(report, asked, folder)
    if not report.parity:
        text = io.StringIO()
        show(report, Console(file=text, width=WIDTH, no_color=True), asked.worst)
        raise AssertionError(f"no parity of {torch} and {mindspore}\n{text.getvalue()}")


UNPROVEN = (
    "the model takes other inputs than tensors by position, which parity-step cannot give it: wrap it in a function "
    "that takes tensors, or leave the proof out with --no-proof"
)

BATCH = 4  # examples of a step on random inputs


def with_mindspore(asked: ParityOptions, folder: Path) -> ParityOptions:
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


def whole_pair(asked: ParityOptions, folder: Path) -> ParityOptions:
    """The pair of a torch model and its conversion, on random inputs like those that it takes unless there is a batch.

    Raises what `with_mindspore` does, and BadInput for a model that parity-step cannot give its inputs.
    """
    found = with_mindspore(asked, folder)
    if asked.torch is None or asked.batch_file is not None:
        return found
    inputs = folder.with_name(f"{folder.name}-inputs")
    inputs.mkdir(parents=True)
    with doing("making a batch"):
        begin = start(asked.torch, (), inputs, seed=0, batch=asked.batch or BATCH, steps=asked.steps)
    if begin.batch is None:
        raise BadInput(f"{asked.torch}: {UNPROVEN}")
    return replace(found, batch_file=begin.batch, outputs=not begin.plain)


def job_of(options: ParityOptions, recipe: Recipe, folder: Path, sides: Sequence[str] = SIDES) -> ParityJob:
    """The job of the processes that record; sides: those that are recorded here.

    Raises what the pair, the recipe and converting its model raise.
    """
    if options.torch is not None and options.mindspore is not None:
        files = (options.map_file, options.ckpt, options.batch_file)
        pair: Pair | None = Pair(options.torch, options.mindspore, *files, outputs=options.outputs)
    else:
        check_inputs(recipe, None, sides, draws=False)  # before a model is converted
        pair = of_recipe(recipe)
    steps = {field.name: getattr(options, field.name) for field in fields(StepOptions)}
    if options.continue_from is not None:
        steps["continue_from"] = recipes.expanded(options.continue_from).absolute()
    return ParityJob(recipe, folder, pair, **steps)


def run(recipe_file: Path | None, mindspore_worker: Sequence[str] = MINDSPORE_WORKER, **options: Any) -> int:
    """Run parity-step and print its verdict; returns the exit code, 0 for parity and 1 for a mismatch.

    recipe_file: a torch model by name stands for the default recipe with that model. mindspore_worker: the command that
    records MindSpore's side. options: those of ParityOptions.
    """
    model = str(recipe_file) if options.get("torch") is None and names_a_model(recipe_file) else None
    if model is not None and options.get("mindspore") is not None:
        raise BadInput(f"--mindspore: name the torch model with --torch {model}, for it is compared.")
    asked = ParityOptions(**{**options, **({} if model is None else {"torch": model})})
    path = recipes.DEFAULT if recipe_file is None or model is not None else recipe_file
    recipe = recipes.load(path)
    for file in asked.files:  # before minutes of work, not after
        refuse_unwritable(file)
    with temporary_folder("parity") as temporary:
        if model is not None:
            asked = whole_pair(asked, temporary / "converted")
        elif asked.torch is not None and asked.mindspore is None:
            asked = with_mindspore(asked, temporary / "converted")
        folder = asked.keep or temporary / "run"
        report = with_progress(path, job_of(asked, recipe, folder), mindspore_worker)
        if model is not None:
            report = replace(report, recipe=model)
        show(report, Console(), asked.worst)
        write(report, asked, folder)
    return 0 if report.parity else 1


def write(report: Report, asked: ParityOptions, folder: Path | None, recipe: Path | None = None) -> None:
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


def with_progress(path: Path, job: ParityJob, mindspore_worker: Sequence[str] = MINDSPORE_WORKER) -> Report:
    """Run parity_step, and show on stderr what each framework is doing."""
    with progressing(("torch", "MindSpore")) as on_message:
        return parity_step(path, job, on_message, mindspore_worker=mindspore_worker)
