"""parity-step from start to end; assert_parity, which is the same inside of a test; and the demo, which is two."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from ..atomic_files import refuse_unwritable, write_whole
from ..errors import BadDestination, BadInput, MsmigrateError
from ..input_files import LARGEST_PYTHON, read_text
from ..migrate import model_spec
from ..migrate.model_spec import names_a_model
from ..option_fields import STDOUT, as_path, model_name, values_of
from ..parity.align.alignment import ALIGNMENT, OPEN, write_map
from ..parity.job import SIDES, Pair, ParityJob, check_inputs
from ..parity.options import Narrowing, ParityOptions, StepOptions
from ..parity.result import Report
from ..parity.run import MINDSPORE_WORKER
from ..parity.run import parity_step as compare_steps
from ..printable import echo, json_line
from ..reports.html import parity_page
from ..reports.html.parity_page import write_html
from ..reports.parity_ci import markdown, write_junit
from ..reports.parity_json import write_json
from ..reports.parity_terminal import show
from ..reports.progress import doing, progressing
from ..reports.terminal import Console
from ..temporary import temporary_folder
from ..training.models import converted_models
from ..training.models.converted_models import mindspore_spec, torch_spec
from ..training.models.model_names import is_ours, is_zoo
from ..training.recipe import reader as recipes
from ..training.recipe.schema import FINE_TUNING, Recipe
from .results import Result, console_text


def of_recipe(recipe: Recipe) -> Pair | None:
    """The pair that the recipe's model is, where it is torchvision's, timm's or the user's; None for msmigrate's own.

    Converts the model unless the recipe names its source. Raises what converting does; see converted_models.py.
    """
    model = recipe.model
    if is_ours(model.name):
        return None
    mindspore = mindspore_spec(model.name, model.args, model.source)
    return Pair(torch_spec(model.name, model.args), mindspore, checkpoint=model.checkpoint, of_recipe=True)


@dataclass(frozen=True, repr=False)
class ParityResult(Result):
    """The verdict of a comparison; true for parity. worst: how many tensors the text lists."""

    report: Report
    worst: int = 5

    @property
    def ok(self) -> bool:
        """Whether every tensor that was to be judged passed; an unproven run has not."""
        return self.report.parity

    def text(self) -> str:
        """The verdict, stage by stage, with the first divergence and the causes."""
        return console_text(lambda console: show(self.report, console, self.worst))

    def as_dict(self) -> dict[str, Any]:
        """Every finding, by docs/report.schema.json."""
        return self.report.as_json()

    def page(self) -> str:
        """The page of --html, without the histograms, which are made of the run's traces."""
        return parity_page.page(self.report)


def options_of(given: dict[str, Any], what: str, **fixed: Any) -> ParityOptions:
    """ParityOptions of a function's keyword arguments; a model may be the function that builds it.

    what: the function's name, for the error. Raises BadInput for an option that parity-step does not have, and for
    values that do not fit.
    """
    values = {**fixed, **values_of(ParityOptions, given, what, tuple(fixed))}
    models = {name: model_name(values[name], name) for name in ("torch", "mindspore") if values.get(name) is not None}
    return ParityOptions(**{**values, **models})


def parity_step(recipe: str | Path | None = None, **options: Any) -> ParityResult:
    """Run one training step in both frameworks and compare it tensor by tensor, each framework in a process of its own.

    recipe: a YAML file with model, data, loss, optimizer and so on; without one, the default recipe. A torch model by
        name, such as torchvision:resnet18, is converted first and compared with its conversion.
    options: those of the command, with underscores. torch and mindspore are a pair of your own models, by name
        (FILE.py:FUNCTION) or as the functions that build them.

    Raises BadInput and the other errors of msmigrate.errors where the comparison could not be made; a mismatch is a
    result, which is false.
    """
    model = _torch_model(recipe, options)
    given = options_of(options, "parity_step", **({} if model is None else {"torch": model}))
    return _compared(as_path(recipe, "recipe") if model is None else None, given, model)


def _torch_model(recipe: str | Path | None, options: Mapping[str, Any]) -> str | None:
    """The torch model that stands where a recipe may, or None. Raises BadInput for a second one."""
    if options.get("torch") is not None or not names_a_model(as_path(recipe, "recipe")):
        return None
    if options.get("mindspore") is not None:
        raise BadInput(f"--mindspore: name the torch model with --torch {recipe}, for it is compared.")
    return str(recipe)


def assert_parity(torch: Any, mindspore: Any, recipe: str | Path | None = None, **options: Any) -> None:
    """Assert that a training step of two models agrees, tensor by tensor; each framework runs in a process of its own.

    torch: the model by name, as on the command line: FILE.py:FUNCTION, MODULE:FUNCTION, torchvision:NAME; or the
        function that builds it.
    mindspore: its counterpart, named likewise.
    recipe: a YAML file with data, loss, optimizer and so on; the default recipe without one.
    options: parity-step's, with underscores, each as there.

    Raises AssertionError with the report where a tensor differs, and MsmigrateError (BadInput and others) where the
    comparison could not be made.
    """
    given = options_of(options, "assert_parity", torch=torch, mindspore=mindspore)
    result = _compared(as_path(recipe, "recipe"), given, None, progress=False)
    if not result:
        raise AssertionError(f"no parity of {given.torch} and {given.mindspore}\n{result.text()}")


def _compared(
    recipe_file: Path | None,
    options: ParityOptions,
    model: str | None,
    mindspore_worker: Sequence[str] = MINDSPORE_WORKER,
    *,
    progress: bool = True,
) -> ParityResult:
    """The comparison that the options describe, with the files that they ask for.

    model: the torch model that stands for a recipe. progress: say on stderr what each framework is doing.
    """
    if options.noise:
        raise BadInput("noise is for record, and for comparing two halves of MindSpore: here torch measures it")
    path = recipes.find(recipe_file)
    recipe = recipes.load(path)
    for file in options.files:  # before minutes of work, not after
        refuse_unwritable(file)
    with temporary_folder("parity") as temporary:
        converted = model is not None or (options.torch is not None and options.mindspore is None)
        if converted:
            convert = with_mindspore if model is None else whole_pair
            options = convert(options, temporary / "converted")
        folder = options.keep or temporary / "run"
        job = job_of(options, recipe, folder)
        if converted and job.pair is not None:  # what convert-model writes is proven so, too
            job = replace(job, pair=replace(job.pair, freezes=True))
        try:
            report = with_progress(path, job, mindspore_worker) if progress else compare_steps(path, job)
        except MsmigrateError as error:
            if options.write_map is None or not any((folder / name).exists() for name in (ALIGNMENT, OPEN)):
                raise
            write_map(folder, options.write_map)
            raise type(error)(f"{error}; {options.write_map} has what was found, and what is open") from error
        if model is not None:
            report = replace(report, recipe=model)
        write(report, options, folder)
    return ParityResult(report, options.worst)


UNPROVEN = (
    "the model takes other inputs than tensors by position, which parity-step cannot give it: wrap it in a function "
    "that takes tensors, or leave the proof out with --no-proof"
)

BATCH = 4  # examples of a step on random inputs


def with_mindspore(options: ParityOptions, folder: Path) -> ParityOptions:
    """The same with the MindSpore side of --torch, converted now; a recipe says the rest.

    folder: a new one, where the source of a user's own model goes; it has to last as long as the comparison. Raises
    Unsupported where the model cannot be written whole, and BadInput.
    """
    assert options.torch is not None
    spec = model_spec.parse(options.torch)
    if options.modules:  # a glob that matches nothing is refused before the model runs
        with doing("building the torch model"):
            names = model_spec.ask("checkpoint.torch_model_worker", options.torch, "--torch")["classes"]
        Narrowing.to(options.stages, options.modules).check(names, options.torch)
    with doing("writing the model in MindSpore"):
        if is_zoo(f"{spec.place}:{spec.name}") and not spec.args:
            made = converted_models.mindspore_spec(f"{spec.place}:{spec.name}", spec.kwargs)
        else:
            folder.mkdir(parents=True)
            converted_models.write(options.torch, folder / "converted_model.py")
            made = converted_models.mindspore_spec(f"{spec.place}:{spec.name}", {}, folder / "converted_model.py")
    return replace(options, mindspore=made)


@model_spec.one_start()
def whole_pair(options: ParityOptions, folder: Path) -> ParityOptions:
    """The pair of a torch model and its conversion, on random inputs like those that it takes unless there is a batch.

    Raises what `with_mindspore` does, and BadInput for a model that parity-step cannot give its inputs.
    """
    from ..migrate.source.convert_model import start  # not above: a pair of the user's own needs none of it

    found = with_mindspore(options, folder)
    if options.torch is None or options.batch_file is not None:
        return found
    inputs = folder.with_name(f"{folder.name}-inputs")
    inputs.mkdir(parents=True)
    with doing("making a batch"):
        begin = start(options.torch, (), inputs, seed=0, batch=options.batch or BATCH, steps=options.steps)
    if begin.batch is None or begin.call is not None:
        raise BadInput(f"{options.torch}: {UNPROVEN}")
    return replace(found, batch_file=begin.batch, outputs=not begin.plain)


def job_of(options: ParityOptions, recipe: Recipe, folder: Path, sides: Sequence[str] = SIDES) -> ParityJob:
    """The job of the processes that record; sides: those that are recorded here.

    Raises what the pair, the recipe and converting its model raise.
    """
    if options.torch is not None and options.mindspore is not None:
        files = (options.map_file, options.ckpt, options.batch_file)
        tuned = next((key for key in FINE_TUNING if getattr(recipe.model, key)), None)
        if tuned is not None:
            raise BadInput(
                f"model.{tuned} is about the recipe's own model, not about {options.torch}: freeze in the files of "
                "both models, and leave it out of the recipe"
            )
        pair: Pair | None = Pair(options.torch, options.mindspore, *files, outputs=options.outputs)
    else:
        check_inputs(recipe, None, sides, draws=False)  # before a model is converted
        pair = of_recipe(recipe)
    steps = {field.name: getattr(options, field.name) for field in fields(StepOptions)}
    if options.continue_from is not None:
        steps["continue_from"] = recipes.expanded(options.continue_from).absolute()
    return ParityJob(recipe, folder, pair, **steps)


def run(recipe_file: Path | None, mindspore_worker: Sequence[str] = MINDSPORE_WORKER, **options: Any) -> int:
    """Run parity-step and print its verdict; returns the exit code, 0 for parity and 1 for a mismatch."""
    return 0 if shown(recipe_file, mindspore_worker, **options) else 1


def shown(recipe_file: Path | None, mindspore_worker: Sequence[str] = MINDSPORE_WORKER, **options: Any) -> ParityResult:
    """Run parity-step and print its verdict, which is returned.

    recipe_file: a torch model by name stands for the default recipe with that model. mindspore_worker: the command that
    records MindSpore's side. options: those of ParityOptions.
    """
    model = _torch_model(recipe_file, options)
    given = ParityOptions(**{**options, **({} if model is None else {"torch": model})})
    result = _compared(recipe_file if model is None else None, given, model, mindspore_worker)
    print_verdict(result, given)
    return result


def print_verdict(result: ParityResult, options: ParityOptions) -> None:
    """The verdict on stdout; as JSON where the options say so."""
    if options.json_file == STDOUT:
        echo(json_line(result.as_dict()))
    else:
        show(result.report, Console(), result.worst)


def write(report: Report, options: ParityOptions, folder: Path | None, recipe: Path | None = None) -> None:
    """Write the files that were asked for, while the traces are still there (None: they are gone).

    recipe: the copy in a recorded folder.
    """
    if options.json_file not in (None, STDOUT):
        write_json(report, options.json_file)
    if options.html is not None:
        write_html(report, folder, options.html, recipe, made_by())
    if options.junit is not None:
        write_junit(report, options.junit)
    if options.markdown is not None:
        write_whole(markdown(report), options.markdown)
    if options.write_map is not None and folder is not None:
        write_map(folder, options.write_map)


def made_by() -> list[tuple[str, str]]:
    """When, where and by which command a page is made."""
    made = [("made", datetime.now().astimezone().isoformat(" ", "seconds")), ("host", platform.node())]
    called = click.get_current_context(silent=True)  # none, where it is a call of the API
    return made if called is None else [*made, ("command", shlex.join(["msmigrate", *sys.argv[1:]]))]


def headline(command: str, path: Path, job: ParityJob) -> str:
    """What runs, and about how long it takes; files of the working directory by their names in it."""
    if job.pair is None:
        subject = f"{job.recipe.model.name} on {path.stem}"
    else:
        subject = f"{job.pair.torch} against {job.pair.mindspore}, the optimizer of recipe {path.stem}"
    steps = f"{job.steps} step{'s' * (job.steps > 1)}, {job.mode} mode"
    subject = subject.replace(f"{Path.cwd()}{os.sep}", "")
    return f"{command}: {subject}, {steps}; ten seconds for a small net, two minutes for a ResNet50"


def with_progress(path: Path, job: ParityJob, mindspore_worker: Sequence[str] = MINDSPORE_WORKER) -> Report:
    """Run parity_step, and show on stderr what is compared, what each framework is doing, and the first failure."""
    with progressing(("torch", "MindSpore"), headline("parity-step", path, job)) as on_message:
        return compare_steps(path, job, on_message, mindspore_worker=mindspore_worker)


# demo

DEMO = Path(__file__).parent.parent / "examples" / "demo"
DEMO_PAIR = ("torch_net.py", "mindspore_net.py")
DEMO_RECIPE = "synthetic"
WRONG, RIGHT, FAULT = "momentum=0.1", "momentum=0.9", "bn-momentum-complement"


def demo(keep: Path | None) -> int:
    """Show parity-step on a small pair with one wrong line, and again with that line put right.

    Returns 0 where it fails on the files as they come and passes once they are mended.

    keep: a folder for the files, which stay there as the last step had them. Raises BadDestination for files that are
    there already, and what parity_step raises.
    """
    with _demo_folder(keep) as folder:
        pair = [folder / name for name in DEMO_PAIR]
        for file in pair:
            file.write_text(read_text(DEMO / file.name, LARGEST_PYTHON), encoding="utf-8")
        words = [DEMO_RECIPE, *(w for file in pair for w in (f"--{file.stem.partition('_')[0]}", f"{file}:build"))]
        line = shlex.join(["msmigrate", "parity-step", *words])
        for file, what in zip(pair, ("A small net in torch", "The same, moved to MindSpore by hand"), strict=True):
            echo(f"{what}, {file}:\n\n{_block(file)}")
        echo("One line of one of the files is not what it should be. Each net takes the same three training steps in a")
        echo("process of its own, and every tensor is compared:")
        echo(f"\n$ {line}")
        red = _demo_step(pair)
        echo(f"\nThe cause above says where and what: this line of {pair[1].name} is changed,\n")
        echo(_changed(pair[1]))
        echo(f"\nand the same two files are compared again:\n\n$ {line}")
        green = _demo_step(pair)
    as_expected = bool(green) and any(cause.fault == FAULT for cause in red.report.causes)
    echo(f"\n{'Red, then green.' if as_expected else 'This should have been red, then green, and was not.'}\n")
    if keep is None:
        echo("`msmigrate demo --keep DIR` leaves the two files, to be changed and compared as you like.")
    else:
        echo(f"Change any line of the files in {keep} and run it again; {WRONG} is the fault:\n\n    {line}\n")
    echo("A pair of your own, each side the function that returns its model:\n")
    echo(f"    msmigrate parity-step {DEMO_RECIPE} --torch FILE.py:FUNCTION --mindspore FILE.py:FUNCTION\n")
    echo(f"{DEMO_RECIPE} has images of 32x32; a recipe of yours says others, with loss and optimizer, and --batch-file")
    echo("brings your own inputs. Without a MindSpore side yet: msmigrate convert-model FILE.py:FUNCTION -o NEW.py")
    return 0 if as_expected else 1


def _demo_step(pair: list[Path]) -> ParityResult:
    torch, mindspore = (f"{file}:build" for file in pair)
    return shown(Path(DEMO_RECIPE), torch=torch, mindspore=mindspore)


@contextmanager
def _demo_folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with temporary_folder("demo") as folder:
            yield folder
        return
    for file in (keep / name for name in DEMO_PAIR):
        if file.exists():
            raise BadDestination(f"{file} is there already, and may be changed: give --keep another folder")
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadDestination(f"--keep: {keep} cannot be made: {error.strerror}") from error
    yield keep


def _block(file: Path) -> str:
    """The lines of the class in which the two differ, indented."""
    text = read_text(file, LARGEST_PYTHON)
    return textwrap.indent(text[text.index("class Block") : text.index("class Net")].rstrip(), "    ") + "\n"


def _changed(file: Path) -> str:
    """Put the wrong line right; how it was and how it is, with its number."""
    lines = read_text(file, LARGEST_PYTHON).splitlines()
    number = next(at for at, text in enumerate(lines) if WRONG in text)
    before, lines[number] = lines[number], lines[number].replace(WRONG, RIGHT)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"{number + 1:>4} - {before.strip()}\n{number + 1:>4} + {lines[number].strip()}"
