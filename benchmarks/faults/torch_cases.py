"""Torch's side of every case, and the verdict: torch_cases.py ROOT

ROOT/plan.json says what to run. Each base's start is recorded once and shared by its cases; of each case the steps are
recorded with MindSpore's choices at kinks, the traces compared, and what failed explained. ROOT/reports/BASE--CASE.json
is the report; the case's folder goes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import plan as planning
import torch
from losses_torch import LOSSES
from msmigrate.parity import containers_alone
from msmigrate.parity.align import model_structure as structures
from msmigrate.parity.align import torch_user_model
from msmigrate.parity.align.match_layers import align_pair
from msmigrate.parity.build_result import module_verdicts, report
from msmigrate.parity.diagnosis import torch_diagnosis_worker as diagnosis
from msmigrate.parity.job import ParityJob
from msmigrate.parity.record import torch_worker
from msmigrate.parity.run import CAUSES, read_causes, write_failed
from msmigrate.parity.run_folder import CHECKPOINT, MINDSPORE_REPLAY, WEIGHTS
from msmigrate.training.models import torch_models
from msmigrate.training.recipe import reader as recipes
from msmigrate.training.step import torch_step
from nets_torch import NETS

PATIENCE = 300  # seconds that MindSpore's side may still take once a verdict stands


def main(root: Path) -> None:
    planning.register(torch_models._MODELS, NETS)
    torch.set_num_threads(1)
    (root / "reports").mkdir()
    for base in json.loads((root / "plan.json").read_text()):
        recipe_file = Path(base["recipe"])
        recipe = recipes.load(recipe_file)
        for case in base["cases"] if base["pair"] else ():
            name = f"{base['name']}--{case['name']}"
            own = planning.pair_job(recipe, root / name, base["pair"], case)
            own.folder.mkdir()
            foreign(recipe_file, own, root / "reports" / f"{name}.json")
            if not os.environ.get("KEEP_CASES"):
                shutil.rmtree(own.folder)
        if base["pair"]:
            continue
        options = ParityJob(recipe, root / base["name"], steps=planning.STEPS, together=True)
        options.folder.mkdir()
        with own_loss(base["loss"]):
            recorded = torch_worker.record_start_of(options)
            written = torch_worker.record_calls(options, *recorded)
            store_start(options.folder)
            for case in base["cases"]:
                own = replace(options, folder=root / f"{base['name']}--{case['name']}")
                draft = root / f"{own.folder.name}.new"
                draft.mkdir()
                for shared in options.folder.iterdir():
                    (draft / shared.name).symlink_to(shared)
                draft.rename(own.folder)
            for case in base["cases"]:
                own = replace(options, folder=root / f"{base['name']}--{case['name']}")
                verdict(recipe_file, own, recorded, written, root / "reports" / f"{own.folder.name}.json")
                if not os.environ.get("KEEP_CASES"):
                    shutil.rmtree(own.folder)
        if not os.environ.get("KEEP_CASES"):
            shutil.rmtree(options.folder)


def foreign(recipe_file: Path, options: ParityJob, destination: Path) -> None:
    """Record, compare and explain a pair of one's own, which shares nothing with another case: it is aligned anew."""
    real = torch_user_model.write_start

    def aligned(model: torch.nn.Module, job: ParityJob) -> None:
        real(model, job)
        there = structures.file(job.folder, "mindspore")
        while not there.exists() and not (job.folder / "crashed").exists():
            time.sleep(0.01)
        if not there.exists():
            raise FileNotFoundError(there)
        align_pair(job)

    recorded: Any = None
    written: set[str] = set()
    with contextlib.suppress(FileNotFoundError), patch.object(torch_worker, "write_start", aligned):
        recorded = torch_worker.record_start_of(options)
        written = torch_worker.record_calls(options, *recorded)
    verdict(recipe_file, options, recorded, written, destination)


def store_start(folder: Path) -> None:
    """Leave the starting weights where NumPy reads them, under torch's names."""
    state = torch.load(folder / WEIGHTS, weights_only=True)
    with (folder / CHECKPOINT).open("wb") as file:
        np.savez(file, **{name: tensor.numpy() for name, tensor in state.items()})


@contextlib.contextmanager
def own_loss(name: str) -> Any:
    """A loss of losses_torch.py in place of the recipe's."""
    if not name:
        yield
        return
    with patch.object(torch_step, "build_loss", lambda *_: LOSSES[name]()):
        yield


def verdict(recipe_file: Path, options: ParityJob, recorded: Any, written: set[str], destination: Path) -> None:
    """Record, compare, explain, and write the report; what stopped either side is the report of a case that crashed."""
    began = time.monotonic()
    crashed = options.folder / "crashed"
    while not crashed.exists() and not (options.folder / MINDSPORE_REPLAY / "trace.json").exists():
        time.sleep(0.01)
    waited = time.monotonic() - began
    if crashed.exists():
        document: dict[str, Any] = {"crashed": crashed.read_text()}
    else:
        try:
            torch_worker.record_matched(options, *recorded)
            with patch.object(
                torch_worker, "ready", lambda _: containers_alone.choose(options.folder, options.narrowing)
            ):
                torch_worker.record_replayed(options, recorded[0], written)
            found = report(recipe_file, options)
            if not found.modules:
                found = replace(found, modules=module_verdicts(options.folder, found.findings))
            if not found.parity:
                write_failed(options.folder, found)
                diagnosis.main(options)
                found = replace(found, causes=read_causes(options.folder / CAUSES))
            document = found.as_json()
        except Exception:
            traceback.print_exc()
            document = {"crashed": traceback.format_exc()}
    injected, until = options.folder / "injected.json", time.monotonic() + PATIENCE
    while not injected.exists():  # MindSpore's side needs the folder until then
        if time.monotonic() > until:  # it waits for what this side has not done: the benchmark ends, and says why
            raise TimeoutError(f"{options.folder.name}: MindSpore's side said nothing for {PATIENCE} s")
        time.sleep(0.01)
    document["injected"] = json.loads(injected.read_text())
    document["took"] = {"torch": time.monotonic() - began - waited, "waited": waited}
    destination.write_text(json.dumps(document))


if __name__ == "__main__":
    code = 0
    try:
        main(Path(sys.argv[1]))
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
