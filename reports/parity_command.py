"""What `msmigrate parity-step` does around the comparison: folder, progress display, files, exit code."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

from ..errors import BadDestination
from ..migrate.model_spec import names_a_model
from ..parity.findings import Report
from ..parity.narrowing import Narrowing
from ..parity.pair import SIDES, Pair, check_inputs, of_recipe
from ..parity.pairs.settle import write_map
from ..parity.run import MINDSPORE_WORKER, Told, parity_step
from ..parity.trace import SAMPLE
from ..parity.worker import INIT_SEEDS, STEPS, Options
from ..temporary import temporary_folder
from ..train import recipe as recipes
from .junit import write_junit
from .markdown import markdown
from .page.html import write_html
from .parity_report import WORST, show, write_json
from .terminal import Console, TextColumn
from .whole_file import write_whole

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

    def options(self, recipe: recipes.Recipe, folder: Path, sides: Sequence[str] = SIDES) -> Options:
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
    from .on_the_fly import whole_pair, with_mindspore  # which is made of parts of this file

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


def refuse_unwritable(file: Path) -> None:
    """Raise BadDestination where a file cannot be made."""
    if not file.parent.is_dir():
        raise BadDestination(f"{file} cannot be written: there is no folder {file.parent}")
    if file.is_dir():
        raise BadDestination(f"{file} cannot be written: it is a folder")
    if not os.access(file.parent, os.W_OK):
        raise BadDestination(f"{file} cannot be written: no permission for {file.parent}")


def with_progress(
    path: Path, options: Options, mindspore_worker: Sequence[str], *, explain: bool = True, timeout: float | None = None
) -> Report:
    """Run parity_step, and show on stderr what each framework is doing."""
    with progressing(("torch", "MindSpore")) as told:
        return parity_step(path, options, told, mindspore_worker=mindspore_worker, explain=explain, timeout=timeout)


@contextmanager
def progressing(who: Sequence[str]) -> Iterator[Told]:
    """Show on stderr what each framework is doing; on a terminal the lines stay in place."""
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.fields[who]:9}"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        tasks = {name: progress.add_task("starting", who=name, total=None) for name in who}

        def told(who: str, doing: str) -> None:
            text = doing.split(": ", 1)[-1] if doing.startswith(who) else doing
            for name in tasks if who == "both" else (who,):
                progress.update(tasks[name], description=text)

        yield told
