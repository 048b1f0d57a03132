"""From the traces of a run to its report; nothing is run, so any machine can do it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..errors import BadTrace
from ..train.run.code_digest import code_digest, file_digest
from . import continued, fast_images
from .built_otherwise import built_otherwise
from .compare import Traces, compare
from .compared_draws import Compared
from .diagnosis import unlike_causes
from .findings import MadeWith, ModuleVerdict, Report
from .hints import hints
from .judge import Verdict
from .modes import GRAPH, Compiled, judge_compiled
from .pairs import unlike
from .pairs.notes import notes as pair_notes
from .pairs.settle import read_alignment
from .replay.verdicts import module_verdicts
from .worker import Options

NOTED = 5  # notes on modules that a report spells out


def report(
    recipe_file: Path, options: Options, seconds: float | None = None, digests: tuple[str, str | None] | None = None
) -> Report:
    """Compare the traces that lie in options.folder.

    digests: of the recipe and its checkpoint, as they were noted; None: they are taken of the files.
    """
    traces = Traces.load(options.folder)
    versions: dict[str, str] = {**traces.alone[0].about["versions"], **traces.mindspore.about["versions"]}
    narrowing = options.narrowing
    findings, alignment = compare(traces, narrowing), read_alignment(options)
    if not alignment.identity:  # a recipe's own two nets are cut alike, and nothing excuses their modules
        findings = unlike.explained(built_otherwise(findings), alignment)
    draws = Compared.of([traces.alone[0].about, traces.matched[0].about], traces.mindspore.about, str(options.folder))
    findings = [finding for finding in draws.judged(findings) if finding.stage in narrowing.stages]
    modules = module_verdicts(options.folder, findings)
    alone = bool(modules) or not any(stage in narrowing.stages for stage in ("forward", "gradients", "update"))
    amp = options.recipe.amp
    compiled = Compiled([], [])
    if (options.folder / GRAPH).exists():
        half = amp is not None and amp.level != "O0"
        compiled = judge_compiled(options.folder, traces, findings, half, narrowing)
    checkpoint = options.checkpoint
    if digests is None:
        digests = options.recipe.digest, file_digest(checkpoint) if checkpoint is not None else None
    kinks = _kinks(traces)
    made_with = MadeWith(
        code_digest(),
        digests[1],
        options.steps if "update" in narrowing.stages else len(kinks["matched"]),
        options.step_batch,
    )
    findings = [*findings, *unlike.explained(compiled.findings, alignment)]
    failed = any(finding.verdict is Verdict.FAIL for finding in findings)
    if narrowing.modules:  # a module without parameters has nothing in the init stage, by its nature
        there = {finding.stage for finding in findings}
        narrowing = replace(narrowing, stages=tuple(s for s in narrowing.stages if s in there) or narrowing.stages)
    found = Report(
        str(recipe_file),
        digests[0],
        versions,
        findings,
        [
            *pair_notes(alignment),
            *_size(options),
            *continued.notes(options.continue_from, traces.mindspore.about),
            *_notes(kinks),
            *fast_images.notes(traces.alone[0], traces.mindspore),
            *draws.notes,
            *compiled.notes,
            *_about_modules(modules, amp is not None and amp.level != "O0"),
            *(["no module ran alone, so faults are placed by where they first show"] if not alone else []),
        ],
        seconds=seconds,
        made_with=made_with,
        causes=unlike_causes.explain(alignment) if failed else [],
        modules=modules,
        narrowing=narrowing,
    )
    found.hints.extend(hints(found.first_divergence, options.recipe))
    return found


def _size(options: Options) -> list[str]:
    """What to know about the size of the compared steps, where it is not the recipe's."""
    if options.step_batch == options.recipe.data.batch:
        return []
    return [f"steps of {options.step_batch} images were compared; the recipe's batch is {options.recipe.data.batch}"]


def _kinks(traces: Traces) -> dict[str, list[int]]:
    """How many elements were moved over to MindSpore's side of a kink, and how many were not, by step."""
    about = traces.matched[0].about.get("kinks")
    kinks: dict[str, list[int]] = about if isinstance(about, dict) else {}
    counts = [kinks.get(kind) for kind in ("matched", "differing")]
    if not all(isinstance(count, list) and all(type(n) is int for n in count) for count in counts):
        raise BadTrace(f"{traces.matched[0].folder / 'trace.json'}: does not say which kinks were matched")
    return kinks


def _notes(kinks: dict[str, list[int]]) -> list[str]:
    """What a reader has to know about how the reference was taken."""
    notes = []
    if sum(kinks["matched"]):
        notes.append(
            f"at {_elements(kinks['matched'])} rounding alone decides a ReLU or max-pool; the reference took "
            "MindSpore's side there"
        )
    if sum(kinks["differing"]):
        notes.append(f"at {_elements(kinks['differing'])} a ReLU or max-pool differs by more than rounding")
    return notes


def _about_modules(modules: list[ModuleVerdict], half: bool) -> list[str]:
    """What to know of the modules that ran alone."""
    noted = [module for module in modules if module.note]
    found = [f"{module.name or '(model)'}: {module.note}" for module in noted[:NOTED]]
    if len(noted) > NOTED:
        found.append(f"{len(noted) - NOTED} more modules have a note of this kind; --json FILE has all")
    if modules and half:
        found.append("modules ran alone in float32; the step itself in the recipe's precision")
    return found


def _elements(counts: list[int]) -> str:
    """Counts by step as people read them."""
    if len(counts) == 1:
        return "1 element" if counts == [1] else f"{counts[0]} elements"
    return f"{', '.join(map(str, counts))} elements (steps 1 to {len(counts)})"
