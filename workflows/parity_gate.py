"""The gate: training starts only with a proof that the recipe's step is the same in both frameworks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeGuard

import yaml

from ..errors import BadInput, Unsupported
from ..input_files import read_json
from ..parity.compare_traces import SIDES
from ..parity.graph_mode import MARK
from ..parity.job import ParityJob
from ..parity.options import MODES, WHOLE, Narrowing
from ..parity.run import MINDSPORE_WORKER
from ..parity.tensor_verdict import Verdict
from ..printable import note
from ..reports.parity_json import write_json
from ..reports.parity_terminal import show
from ..reports.terminal import Console
from ..temporary import temporary_folder
from ..training.recipe import reader as recipes
from ..training.recipe.digest import code_digest, file_digest
from ..training.recipe.schema import Recipe
from .parity_step import of_recipe, with_progress

WHAT = {"recipe": "recipe", "code": "msmigrate's code", "checkpoint": "starting checkpoint"}


@dataclass(frozen=True)
class Holds:
    """What a proof holds for: digests of the recipe, of msmigrate's code, and of the starting checkpoint's file."""

    recipe: str
    code: str
    checkpoint: str | None

    @classmethod
    def now(cls, recipe: Recipe) -> Holds:
        """What a run would need a proof for now. Raises BadCheckpoint where the starting weights cannot be read."""
        checkpoint = recipe.model.checkpoint
        return cls(recipe.digest, code_digest(), None if checkpoint is None else file_digest(checkpoint))

    def differs(self, found: dict[str, Any]) -> str | None:
        """The first of the three that is different in `found`, or None."""
        own = {"recipe": self.recipe, "code": self.code, "checkpoint": self.checkpoint}
        return next((key for key, value in own.items() if key not in found or found[key] != value), None)

    def entry(self, parity: str, **more: Any) -> dict[str, Any]:
        """What the run's log says of the proof."""
        return {"parity": parity, "recipe": self.recipe, "code": self.code, "checkpoint": self.checkpoint, **more}


def still_holds(before: dict[str, Any] | None, holds: Holds) -> TypeGuard[dict[str, Any]]:
    """Whether the entry in a run's log is of a passed proof of just this recipe, code and checkpoint."""
    return why_not(before, holds) is None


def why_not(before: dict[str, Any] | None, holds: Holds) -> str | None:
    """Why the entry in a run's log is no proof of this recipe, code and checkpoint, or None where it is one."""
    if before is None or before.get("parity") != "passed":
        return "the run began without a proof"
    other = holds.differs(before)
    return None if other is None else f"the run began with another {WHAT[other]}"


def mode_of_proof(recipe: Recipe, mode: str) -> str:
    """The mode in which a step is to be proven that trains in `mode`: the compiled step too, where training compiles
    it; in mixed precision the PyNative one, for there the two modes round otherwise."""
    return MODES[0] if recipe.amp is not None and recipe.amp.level != "O0" else mode


def accept(file: Path, recipe_file: Path, recipe: Recipe, holds: Holds) -> dict[str, Any]:
    """Take a report of parity-step as the proof; returns the entry for the run's log, which says of which mode it is.

    Raises BadInput where the file is no report, is narrowed to a part of the step, did not pass, or is of another
    recipe, code or checkpoint; the line says which, and how to make a new one.
    """
    report = _read(file)
    again = f"make a new one: {how_to_prove(recipe_file, recipe, file.name)}"
    narrowing = _narrowing(report)
    if not narrowing.whole:
        raise BadInput(
            f"{file} is narrowed to {narrowing.said()[:200]}: {narrowing.left_out()}, and training needs the whole "
            f"step proven; {again}, without --stages and --modules"
        )
    if report["parity"] is not True:
        raise BadInput(f"{file} is of a step that did not pass, first in {_first_failed(report)}; fix it, then {again}")
    found = {
        "recipe": report["recipe_digest"],
        "code": report["code_digest"],
        "checkpoint": report["checkpoint_digest"],
    }
    other = holds.differs(found)
    if other is not None:
        reported, here = found[other], holds.entry("")[other]
        hint = "; both machines need the same msmigrate and --mappings" if other == "code" else ""
        raise BadInput(f"{file} is of another {WHAT[other]} ({_short(reported)}, here {_short(here)}){hint}; {again}")
    findings = report.get("findings")
    parts = [each.get("part") for each in findings if isinstance(each, dict)] if isinstance(findings, list) else []
    mode = MODES[any(isinstance(part, str) and part.startswith(MARK) for part in parts)]
    return holds.entry("passed", report=str(file.absolute()), versions=report["versions"], mode=mode)


def prove(
    recipe_file: Path,
    recipe: Recipe,
    holds: Holds,
    json_file: Path,
    console: Console,
    mindspore_worker: Sequence[str] = MINDSPORE_WORKER,
    continue_from: Path | None = None,
    mode: str = MODES[0],
) -> dict[str, Any] | None:
    """Run parity-step on the recipe, print its verdict and store it as JSON.

    continue_from: the torch training checkpoint that the run goes on from, and so do the compared steps. mode: graph,
    where the compiled step is to be judged, too.
    Returns the entry for the run's log, or None where the step did not pass. Raises Unsupported without torch, and
    what parity-step raises.
    """
    if not torch_is_here():
        raise needs_torch(recipe_file, recipe, mode)
    with temporary_folder("parity") as temporary:
        # at most eight images a micro-batch, as parity-step does
        pair = of_recipe(recipe)
        start = continue_from if pair is None else None  # a pair's step is compared from its weights
        job = ParityJob(recipe, temporary / "traces", pair=pair, continue_from=start, mode=mode)
        file = recipe_file
        if recipe.amp != recipes.load(recipe_file).amp:  # the traces get a copy of the file, which has to say the same
            file = _store(recipe, temporary / "recipe.yaml")
        report = replace(with_progress(file, job, mindspore_worker), recipe=str(recipe_file))
    show(report, console)
    write_json(report, json_file)
    if report.parity:
        return holds.entry("passed", report=str(json_file), versions=report.versions, mode=mode)
    against = [*report.unproven, *(finding for finding in report.findings if finding.verdict is Verdict.FAIL)]
    if against and all(finding.part.startswith(MARK) for finding in against):
        note("only the compiled step is not proven: --mode pynative trains the step that is, one operator at a time")
    return None


def torch_is_here() -> bool:
    """Whether this Python has torch and torchvision; neither is loaded."""
    return all(find_spec(name) is not None for name in ("torch", "torchvision"))


def _store(recipe: Recipe, path: Path) -> Path:
    """Write a recipe, whose paths are absolute, to a new file that is read back as the same recipe."""
    tree = recipe.model_dump(mode="json", exclude_none=True)
    path.write_text(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def needs_torch(recipe_file: Path, recipe: Recipe, mode: str = MODES[0]) -> Unsupported:
    """The error to raise where torch is not installed; mode: the one to train in."""
    how = how_to_prove(recipe_file, recipe, mode=mode)
    return Unsupported(
        f"torch and torchvision are not installed here, and without them the step cannot be proven: run {how} where "
        "they are and train with --parity-report report.json, or train unproven with --skip-parity"
    )


def how_to_prove(recipe_file: Path, recipe: Recipe, report: str = "report.json", mode: str = MODES[0]) -> str:
    """The command that proves this recipe for training in this mode; parity-step has no --amp."""
    amp = recipe.amp
    compiled = mode_of_proof(recipe, mode) != MODES[0]
    command = f"msmigrate parity-step {recipe_file} --json {report}{' --mode graph' * compiled}"
    if amp is None or amp == recipes.load(recipe_file).amp:
        return command
    return f"{command}, with amp: {{level: {amp.level}, dtype: {amp.dtype}}} in the recipe"


def _read(file: Path) -> dict[str, Any]:
    """A report that anyone may have written. Raises BadInput for anything else."""
    try:
        found = read_json(file)
    except FileNotFoundError:
        raise BadInput(
            f"there is no file {file}; make it with msmigrate parity-step RECIPE --json {file.name}"
        ) from None
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise BadInput(f"{file} is not JSON; a report is what `msmigrate parity-step --json` writes") from None
    sides = found.get("sides", list(SIDES)) if isinstance(found, dict) else list(SIDES)
    if sides != list(SIDES):
        raise BadInput(
            f"{file} is of two recordings of one framework, and proves no port: bring a report of parity-step"
        )
    keys = {"recipe_digest": str, "code_digest": str, "versions": dict, "stages": list}
    for key, what in (("code_digest", "which code it holds for"), ("narrowed", "whether it is of the whole step")):
        if isinstance(found, dict) and "recipe_digest" in found and key not in found:
            raise BadInput(f"{file} is of an older msmigrate: it does not say {what}; make a new one")
    sound = isinstance(found, dict) and all(type(found.get(key)) is kind for key, kind in keys.items())
    if not sound or not isinstance(found.get("checkpoint_digest", 0), str | None) or not _consistent(found):
        raise BadInput(f"{file} is no report of parity-step; make one with msmigrate parity-step RECIPE --json FILE")
    if found["parity"] and any(stage["verdict"] != "pass" for stage in found["stages"]):
        raise BadInput(f"{file} contradicts itself: parity, but not every stage passed")
    return found


def _consistent(report: dict[str, Any]) -> bool:
    """Whether the stages are those that the report says it judged, and `parity` a bool, or null in a narrowed one."""
    stages = report["stages"]
    if not all(isinstance(s, dict) and isinstance(s.get("verdict"), str) for s in stages):
        return False
    try:
        narrowing = _narrowing(report)
    except (BadInput, KeyError, TypeError):
        return False
    kinds = (bool,) if narrowing.whole else (bool, type(None))
    return [s.get("stage") for s in stages] == list(narrowing.stages) and type(report.get("parity")) in kinds


def _narrowing(report: dict[str, Any]) -> Narrowing:
    """What a report says that it judged. Raises BadInput, KeyError or TypeError for nonsense."""
    narrowed = report["narrowed"]
    if narrowed is None:
        return WHOLE
    if not all(isinstance(each, list) for each in (narrowed["stages"], narrowed["modules"])):
        raise TypeError
    return Narrowing.to(map(str, narrowed["stages"]), map(str, narrowed["modules"]))


def _first_failed(report: dict[str, Any]) -> str:
    return next((str(s["stage"]) for s in report["stages"] if s["verdict"] != "pass"), "no stage")


def _short(digest: Any) -> str:
    return "none" if digest is None else str(digest)[:16]
