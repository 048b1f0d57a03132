"""A worker that stops is one line, the other one is ended, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msmigrate.errors import BadDestination, BadInput, BadRecipe, MsmigrateError, WorkerFailed
from msmigrate.parity.build_result import report
from msmigrate.parity.job import ParityJob
from msmigrate.parity.run import parity_step
from msmigrate.training.recipe import reader as recipes
from msmigrate.workers.messages import Message
from traces import Run

HERE = Path(__file__).parent
RECIPE = HERE / "tiny.yaml"


def fake(way: str) -> list[str]:
    return [sys.executable, str(HERE / "fake_worker.py"), way]


def alive(pid_file: Path) -> bool:
    try:
        os.kill(int(pid_file.read_text()), 0)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return False
    return True


def run(folder: Path, torch: str, mindspore: str) -> list[tuple[str, Message]]:
    told: list[tuple[str, Message]] = []
    options = ParityJob(recipes.load(RECIPE), folder)
    try:
        parity_step(RECIPE, options, lambda who, message: told.append((who, message)), fake(torch), fake(mindspore))
    finally:
        assert not [p.name for p in folder.glob("*.pid") if alive(p)]
    return told


ENDINGS = {
    "fails": "exit code 1: ValueError: the last line",
    "fails silently": "exit code 3: it said nothing",
    "is killed": "killed by signal 9 (out of memory?)",
    "explains": "stopped: no such model",
    "babbles": "exit code 1",
    "ends at once": "ended without its trace: it said nothing",
}


@pytest.mark.parametrize("way", ENDINGS)
@pytest.mark.parametrize("who", ["torch", "MindSpore"])
def test_a_worker_that_stops_is_one_line_and_ends_the_other(tmp_path: Path, who: str, way: str) -> None:
    ways = (way, "waits") if who == "torch" else ("waits", way)
    began = time.monotonic()
    kind = BadRecipe if way == "explains" else WorkerFailed
    with pytest.raises(kind) as stopped:
        run(tmp_path / "run", *ways)
    message = str(stopped.value)
    assert message.startswith(f"the {who} side ") and ENDINGS[way] in message
    assert "\n" not in message and len(message) < 700
    assert time.monotonic() - began < 20


def test_a_start_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(MsmigrateError, match="the starting weights do not convert") as stopped:
        run(tmp_path, "lies", "waits")
    assert "\n" not in str(stopped.value)


def test_a_command_that_does_not_exist_leaves_no_child(tmp_path: Path) -> None:
    options = ParityJob(recipes.load(RECIPE), tmp_path)
    with pytest.raises(FileNotFoundError):
        parity_step(RECIPE, options, torch_worker=fake("waits"), mindspore_worker=["/no/such/command"])
    time.sleep(0.3)
    assert not [p.name for p in tmp_path.glob("*.pid") if alive(p)]


def test_a_folder_in_use_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="is not empty"):
        run(tmp_path, "fails", "fails")
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(BadDestination, match="traces cannot be kept here"):
            parity_step(RECIPE, ParityJob(recipes.load(RECIPE), folder))


def test_ctrl_c_leaves_no_child_and_no_temporary_folder(tmp_path: Path) -> None:
    code = f"""if True:
        from pathlib import Path
        from msmigrate import cli
        from msmigrate.parity import run
        defaults = run.parity_step.__defaults__
        run.parity_step.__defaults__ = (*defaults[:-2], {fake("interrupts")}, {fake("waits")})
        import sys
        sys.argv = ["msmigrate", "parity-step", {str(RECIPE)!r}]
        cli.main()
    """
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("msmigrate-parity-*"))
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert f"{tmp_path}" not in listed


def test_traces_recorded_elsewhere_are_compared(tmp_path: Path) -> None:
    recipe = recipes.load(RECIPE)
    found = report(RECIPE, ParityJob(recipe, Run().write(tmp_path)))
    assert found.parity and found.versions == {"made-up": "1"} and found.recipe_digest == recipe.digest
    assert len(found.notes) == 3 and "no module ran alone" in found.notes[2]
    assert "at 3, 0 elements (steps 1 to 2)" in found.notes[0]


def test_traces_without_their_kinks_are_refused(tmp_path: Path) -> None:
    run_ = Run(about={"torch-fp64-matched": {"kinks": None}})
    with pytest.raises(BadInput, match="kinks"):
        report(RECIPE, ParityJob(recipes.load(RECIPE), run_.write(tmp_path)))


@pytest.mark.parametrize(
    ("batch", "accumulate", "asked", "compared"),
    [(4, 1, None, 4), (256, 1, None, 8), (256, 4, None, 32), (12, 4, None, 12), (256, 4, 8, 8), (4, 1, 64, 64)],
)
def test_how_many_images_a_compared_step_has(
    tmp_path: Path, batch: int, accumulate: int, asked: int | None, compared: int
) -> None:
    recipe = recipes.load(RECIPE)
    data = recipe.data.model_copy(update={"batch": batch})
    options = ParityJob(recipe.model_copy(update={"data": data, "accumulate": accumulate}), Path("x"), batch=asked)
    assert options.step_batch == options.step_recipe.data.batch == compared
    assert options.recipe.data.batch == batch
    options.write(tmp_path / "job.json")
    again = ParityJob.read(tmp_path / "job.json")
    assert (again.batch, again.steps, again.sample) == (asked, options.steps, options.sample)


@pytest.mark.parametrize("asked", [6, 0, -4])
def test_a_batch_that_micro_batches_do_not_divide_is_refused(asked: int) -> None:
    recipe = recipes.load(RECIPE).model_copy(update={"accumulate": 4})
    with pytest.raises(BadInput, match=f"a batch of {asked} images does not divide into 4 .* multiple of 4"):
        ParityJob(recipe, Path("x"), batch=asked)
