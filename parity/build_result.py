"""From a folder of traces to a Report: findings, module verdicts, hints, notes.

Two nets may agree and still be divided into modules differently. Such modules differ grossly when each runs alone. But
a net in which a module computes something grossly different does not agree end to end (every layer's output, every
gradient, every update) to within rounding. So where nothing differs end to end, two modules that differ grossly alone
were never the same thing: they get no verdict, and a reason. The same holds for what is inside a container that agrees
when it runs alone on torch's inputs and gradients. A small difference alone stays a failure, because rounding may hide
it end to end.

The deepest failing modules are at fault: a container that fails while every module in it passes, or that hands on the
wrong tensor (its wiring), has a fault of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from ..errors import BadTrace
from ..mappings import table
from ..mappings.rows import Fault
from ..printable import few, shortened
from ..training.recipe.digest import code_digest, file_digest
from ..training.recipe.schema import Recipe
from .align import mismatched_tensors
from .align.alignment import Alignment, pair_notes, read_alignment
from .compare_traces import SIDES, Sides, Traces, compare, declared, without_lone_outputs
from .compared_draws import Compared
from .graph_mode import GRAPH, MARK, Compiled, judge_compiled
from .job import ParityJob
from .options import STAGES
from .record import resume
from .replay.module_calls import CHAINED, FOLDER, Module, Outcome, Recording, comes_from_around, parse_label, relative
from .result import Finding, MadeWith, ModuleVerdict, Report
from .run_folder import (
    FINE_TUNED,
    IMPORT,
    MINDSPORE,
    MINDSPORE_REPLAY,
    REDUCER,
    REPLACED,
    RUNS_TWICE,
    SCOPE,
    UNDEFINED,
    torch_runs,
)
from .tensor_verdict import Unjudged, Verdict
from .trace import ALONE, GIVEN_GRADIENTS, REDUCED_GRADIENTS, WIRING, Device, Entry, Trace, device_notes

GROSS = 1e-3  # share of a tensor's size; known faults that nothing shows end to end stay well below
CLEAR = 10.0  # times what rounding explains; a larger difference is no accident
NEEDED = {("forward", "eval"), ("forward", "train"), ("gradients", "parameters")}
STEP = ("forward", "loss", "gradients", "update")
WHY = "built otherwise, since nothing differs end to end: "
INSIDE = "built otherwise, since {} around it computes what torch computes: "


def built_otherwise(findings: Sequence[Finding]) -> list[Finding]:
    """The findings; where the step has parity, gross differences of modules that ran alone have no verdict."""
    step = [f for f in findings if f.stage in STEP and not f.part.alone]
    seen = {(f.stage, f.part) for f in step}
    if not seen >= NEEDED or any(f.verdict is not Verdict.PASS for f in step if (f.stage, f.part) in NEEDED):
        return list(findings)
    if any(f.verdict is Verdict.FAIL for f in step):
        return list(findings)
    gross = _gross([f for f in step if (f.stage, f.part) in NEEDED])
    return [_judged(f, gross, WHY) if f.part.alone else f for f in findings]


def inside_what_agrees(findings: Sequence[Finding]) -> list[Finding]:
    """The findings; gross differences inside a module that agrees when it runs alone, in every output and in the
    gradient of every weight in it, have no verdict."""
    alone: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.part == ALONE:
            alone.setdefault(_path(finding), []).append(finding)
    limits = {path: _gross(found) for path, found in alone.items() if path and _agrees(found)}

    def excused(finding: Finding, path: str) -> Finding:
        above = [path[:end] for end, letter in enumerate(path) if letter == "."]
        # what a module hands on belongs to its inside, what reaches it does not
        above += [path] if finding.part == WIRING and not comes_from_around(_tensor(finding)) else []
        around = next((each for each in above if each in limits), None)
        if finding.verdict is not Verdict.FAIL or around is None:
            return finding
        return _judged(finding, limits[around], INSIDE.format(around))

    found = [excused(f, _path(f)) if f.part.alone else f for f in findings]
    outputs = [f for f in found if f.part == ALONE and f.stage == "forward"]
    cut = {_path(f) for f in outputs if f.unjudged is Unjudged.BUILT_OTHERWISE}
    whole = [f.stage == "forward" and f.part in ("eval", "train") and f.name in cut for f in found]
    return [excused(f, f.name) if is_output else f for f, is_output in zip(found, whole, strict=True)]


def _tensor(finding: Finding) -> str:
    return finding.name.rpartition(" ")[2]


def _path(finding: Finding) -> str:
    return parse_label(finding.name.rpartition(" ")[0])[0]


def _agrees(alone: Sequence[Finding]) -> bool:
    """Whether every tensor of a module that ran alone, gradients included, was judged and passed."""
    judged = [f for f in alone if f.unjudged is not Unjudged.ZERO_GRADIENT]
    return {"forward", "gradients"} <= {f.stage for f in judged} and all(f.verdict is Verdict.PASS for f in judged)


def _gross(judged: Sequence[Finding]) -> float:
    """The share of a tensor's size from which a difference would show in these findings."""
    return max(GROSS, CLEAR * max((f.allowed or 0.0 for f in judged if _has_size(f)), default=0.0))


def _has_size(finding: Finding) -> bool:
    """Whether the tensor is more than rounding: the gradient of a bias before a norm is not."""
    return finding.noise is not None and finding.noise < 1.0


def _judged(finding: Finding, gross: float, why: str) -> Finding:
    if finding.verdict is not Verdict.FAIL:
        return finding
    if finding.error is not None and finding.error < gross:
        return finding
    return replace(finding, verdict=Verdict.NONE, why=why + finding.why, unjudged=Unjudged.BUILT_OTHERWISE)


def image_notes(reference: Trace, mindspore: Trace) -> list[str]:
    """How far images that C++ resized are from torchvision's, for the report; empty where there are none."""
    found = [
        np.abs(mindspore.array(key).astype(np.float64) - reference.array(key)).ravel() / level
        for key, entry in mindspore.entries.items()
        if entry.name == "images" and (level := declared(mindspore, entry)) is not None
        if key in reference.entries and reference.entries[key].shape == entry.shape
    ]
    if not found:
        return []
    levels = np.concatenate(found)
    return [
        f"data.fast_transforms: MindSpore's images are {levels.mean():.1f} of 255 grey levels from torchvision's on "
        f"average and {levels.max():.0f} at most; the step was compared on torchvision's"
    ]


# the words the fault table uses for where a fault shows first
SHOWS = {
    "data": ("data",),
    "init": ("load", "init", "state"),
    "forward": ("forward", "load"),
    "loss": ("loss",),
    "gradients": ("grad", "gradients"),
    "update": ("update", "buffers", "schedule", "state"),
}
MOST = 4


def hints(first: Finding | None, recipe: Recipe) -> list[str]:
    """Known faults of the layer, loss, optimizer or transforms at the first divergence, one line each; where only the
    compiled step diverges, those of compiled steps."""
    if first is None:
        return []
    if first.part.startswith(MARK):
        # the net's outputs and its gradients are the first that shows of it
        shows = "forward" if first.stage in ("forward", "loss") else "grad"
        compiled = [fault for fault in table.faults().values() if fault.mode == "graph"]
        found = {fault.id: fault for fault in compiled if shows in fault.shows_in}
    else:
        found = {fault.id: fault for name in _rows_in_charge(first, recipe) for fault in _pitfalls(name, first.stage)}
    return [f"{fault.symptom}: {fault.fix} [{fault.id}]" for fault in list(found.values())[:MOST]]


def _rows_in_charge(first: Finding, recipe: Recipe) -> list[str]:
    if first.stage == "data":
        return [part.name for part in recipe.data.transforms]
    if first.stage == "loss":
        return [] if recipe.loss.own else [recipe.loss.name]
    if first.part.of_buffers:
        return ["BatchNorm2d"]
    if first.stage == "update":
        return [recipe.optimizer.name, *([recipe.schedule.name] if recipe.schedule else [])]
    return [first.module] if first.module else []


def _of_the_user(first: Finding | None, alignment: Alignment) -> bool:
    """Whether the user's own step or optimizer, which the recipe does not describe, computes the first divergence."""
    if first is None or first.part.of_buffers:
        return False
    if alignment.scope.own_step:
        return first.stage in ("loss", "update")
    return first.stage == "update" and not alignment.scope.rates


def _pitfalls(name: str, stage: str) -> list[Fault]:
    row = table.known(name)
    if row is None:
        return []
    faults = table.faults()
    return [faults[i] for i in row.pitfalls if i in faults and set(faults[i].shows_in) & set(SHOWS[stage])]


NOTED = 5  # notes on modules that a report spells out


def report(
    recipe_file: Path,
    options: ParityJob,
    digests: tuple[str, str | None] | None = None,
    sides: Sides = SIDES,
    stepped: Sequence[Finding] | None = None,
    replayed: Sequence[Finding] | None = None,
) -> Report:
    """Compare the traces that lie in options.folder.

    digests: of the recipe and its checkpoint, as recorded; None: computed from the files. sides: names of the reference
    and of what is compared with it; any but torch and MindSpore prove no port. stepped, replayed: findings on the
    steps, and on modules that ran alone, where they are known already.
    """
    traces = Traces.load(options.folder, sides, fresh=options.together)
    on = [Device.of(trace.about, trace.folder) for trace in (traces.alone[1], traces.mindspore)]
    reference = Device.of(traces.alone[0].about, traces.alone[0].folder)
    versions: dict[str, str] = {**traces.alone[0].about["versions"], **traces.mindspore.about["versions"]}
    narrowing = options.narrowing
    alignment = read_alignment(options)
    findings, unjudged, draws = _findings(traces, options, alignment, stepped, replayed)
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
    findings = [*findings, *mismatched_tensors.explained(compiled.findings, alignment)]
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
            *unjudged,
            *([BEHIND_REDUCER] if traces.mindspore.about.get(REDUCER) is False else []),
            *([TWICE] if traces.mindspore.about.get(RUNS_TWICE) is True else []),
            *device_notes(on[0], reference, on[1], options.precision, coarser(traces)),
            *_size(options),
            *_import(traces.alone[0].about),
            *_fine_tuned(traces.alone[0].about),
            *resume.notes(options.continue_from, traces.mindspore.about),
            *_notes(kinks),
            *image_notes(traces.alone[0], traces.mindspore),
            *draws.notes,
            *compiled.notes,
            *_about_modules(modules, amp is not None and amp.level != "O0", sides == SIDES),
            *(["no module ran alone, so faults are placed by where they first show"] if not alone else []),
        ],
        made_with=made_with if sides == SIDES else None,
        sides=sides,
        causes=[
            *mismatched_tensors.out_of_reach(findings, traces.mindspore.about.get(REPLACED)),
            *(mismatched_tensors.causes(alignment) if failed else ()),
        ],
        modules=modules,
        narrowing=narrowing,
        devices=on,
    )
    if sides == SIDES and not _of_the_user(found.first_divergence, alignment):
        found.hints.extend(hints(found.first_divergence, options.recipe))
    return found


def _findings(
    traces: Traces,
    options: ParityJob,
    alignment: Alignment,
    stepped: Sequence[Finding] | None = None,
    replayed: Sequence[Finding] | None = None,
) -> tuple[list[Finding], list[str], Compared]:
    """The finding on every tensor, notes on what is not judged, and the compared draws."""
    narrowing = options.narrowing
    findings, unjudged = without_lone_outputs(compare(traces, narrowing, stepped, replayed), traces)
    if not alignment.identity:  # a recipe's own two nets have the same modules: no difference in them is excused
        findings = mismatched_tensors.compared(findings, alignment)
        findings = mismatched_tensors.explained(inside_what_agrees(built_otherwise(findings)), alignment)
    if alignment.scope.own_step:
        findings, more = of_both_steps(findings, traces)
        unjudged += more
    if not alignment.identity and traces.alone[0].about.get(SCOPE, asdict(alignment.scope)) != asdict(alignment.scope):
        findings = known_to_both(findings, traces, options.recipe)
        unjudged.append(EARLY)
    exact, *others = zip(traces.alone, traces.matched, strict=True)
    heads, further = ([trace.about for pair in pairs for trace in pair] for pairs in ([exact], others))
    draws = Compared.of(heads, traces.mindspore.about, str(options.folder), further)
    return [found for found in draws.judged(findings) if found.stage in narrowing.stages], unjudged, draws


NEED_NO_STEP = ("data", "init", "forward")


def early_failure(options: ParityJob) -> Finding | None:
    """The first failure in what needs no training step, as soon as both sides have recorded it: the data, the weights,
    both forward passes, and the loss and the optimizer on given values.

    None where nothing has failed clearly: what torch computes with MindSpore's choices at kinks is not known yet, nor
    the outputs in training, where torch's are those of its first step.
    """
    alone = [Trace(options.folder / name, fresh=True) for name in torch_runs(options.folder)]
    traces = Traces(alone, alone, Trace(options.folder / MINDSPORE, fresh=True))
    findings, _, _ = _findings(traces, options, read_alignment(options))
    trained = any(alone[0].select("forward", "train"))
    known = [f for f in findings if (f.stage in NEED_NO_STEP or f.part.given) and (trained or f.part != "train")]
    failed = [f for f in known if f.verdict is Verdict.FAIL and (f.ratio is None or f.ratio >= CLEAR)]
    return min(failed, key=lambda f: (STAGES.index(f.stage), f.order), default=None)


EARLY = (
    "torch was recorded before it was known which parts of the step MindSpore's side has: parts that only torch "
    "recorded are not judged, nor are clipped gradients; record torch again with MindSpore's trace"
)


def known_to_both(findings: Sequence[Finding], traces: Traces, recipe: Recipe) -> list[Finding]:
    """The findings without those on parts of the step that only torch recorded, and on gradients that one side recorded
    before clipping them."""
    there = {(entry.stage, entry.part, entry.name) for entry in traces.mindspore.entries.values()}
    clipped = recipe.clip is not None
    return [
        finding
        for finding in findings
        if not (clipped and finding.stage == "gradients" and finding.part == "parameters")
        and (
            (finding.stage, finding.part, finding.name) in there or finding.stage not in ("loss", "gradients", "update")
        )
    ]


TWICE = (
    "MindSpore's step runs the net twice on the same images, for the loss and for the gradients: compiled that is one "
    "run, which was compared; in PyNative mode running statistics move twice, so train it in graph mode"
)
BEHIND_REDUCER = (
    "not judged: whether gradients are clipped before or after the reducer averages them over processes: MindSpore's "
    "step has a reducer, and what the optimizer gets after it was seen neither on one process nor with a stand-in in "
    "its place. As in torch, the reducer comes first: `grads = self.grad_reducer(grads)`, and then the clipping"
)
SHOWN_BY_STEPS: dict[str, Callable[[Entry | Finding], bool]] = {  # what a user's step may show, or not
    "the gradients that the optimizer gets": lambda one: one.stage == "gradients" and one.part == "parameters",
    "the gradients of later updates": lambda one: one.stage == "gradients" and one.part.step is not None,
    "what the optimizer gets after a reducer": lambda one: one.part == REDUCED_GRADIENTS,
    "the outputs of layers in the step": lambda one: one.stage == "forward" and one.part == "train",
    "the logits": lambda one: one.stage in ("loss", "update") and one.name == "logits",
    "the loss scale": lambda one: one.part == "loss scale" and one.name.endswith(" scale"),
    "whether gradients were finite": lambda one: one.part == "loss scale" and one.name.endswith(" finite"),
    "the moving average": lambda one: one.part.endswith(" ema"),
    "the optimizer alone on given gradients": lambda one: one.part.startswith(GIVEN_GRADIENTS),
}


def of_both_steps(findings: Sequence[Finding], traces: Traces) -> tuple[list[Finding], list[str]]:
    """The findings without those on what only one side's step shows, and notes on what is left out."""
    kept, notes = list(findings), []
    if cut := _cut_otherwise(traces):
        what = "the outputs of layers in the step"
        kept = [finding for finding in kept if not SHOWN_BY_STEPS[what](finding)]
        notes.append(f"not judged: {what}: torch's step computes {cut[0]} images at once, MindSpore's {cut[1]}")
    for what, belongs in SHOWN_BY_STEPS.items():
        sides = {
            "torch's": any(belongs(entry) for trace in traces.torch for entry in trace.entries.values()),
            "MindSpore's": any(belongs(entry) for entry in traces.mindspore.entries.values()),
        }
        shown = [side for side, there in sides.items() if there]
        if len(shown) == 1:
            kept = [finding for finding in kept if not belongs(finding)]
            notes.append(f"not judged: {what}, which only {shown[0]} step shows")
        elif not shown and what == next(iter(SHOWN_BY_STEPS)):
            how = "a step that is compiled as a whole has to return them as `grads`; until then the run is unproven"
            notes.append(f"not judged: {what}, which neither step shows: {how} (docs/your_own_pair.md)")
    return kept, notes


def _cut_otherwise(traces: Traces) -> tuple[int, int] | None:
    """How many images the first layer gets at once in torch's and in MindSpore's step, where the two divide the same
    images into micro-batches of different sizes; else None."""
    torch, mindspore = (
        [e for e in trace.select("forward", "train") if e.shape] for trace in (traces.alone[0], traces.mindspore)
    )
    name = next((entry.name for entry in torch if any(other.name == entry.name for other in mindspore)), None)
    ours, theirs = ([entry.shape for entry in side if entry.name == name] for side in (torch, mindspore))
    if not ours or {shape[1:] for shape in ours} != {shape[1:] for shape in theirs} or ours == theirs:
        return None
    alike = sum(shape[0] for shape in ours) == sum(shape[0] for shape in theirs) and ours[0][0] != theirs[0][0]
    return (ours[0][0], theirs[0][0]) if alike else None


def coarser(traces: Traces) -> float | None:
    """How many times farther from float64 torch's float32 run on a device is than the one on the CPU, as the median
    over the outputs of all layers; None where both ran on the same device."""
    exact, run, other = traces.alone[:3]
    if run.about.get("device") == other.about.get("device"):
        return None
    ratios = []
    for entry in exact.select("forward", "train"):
        if all(entry.key in trace.entries and trace.entries[entry.key].dtype == "float32" for trace in (run, other)):
            values, ours, theirs = (trace.array(entry.key).astype(np.float64) for trace in (exact, run, other))
            if values.shape == ours.shape == theirs.shape and (usual := float(np.linalg.norm(theirs - values))) > 0.0:
                ratios.append(float(np.linalg.norm(ours - values)) / usual)
    return float(np.median(ratios)) if ratios else None


def _size(options: ParityJob) -> list[str]:
    """What to know about the size of the compared steps, where it is not the recipe's."""
    if options.step_batch == options.recipe.data.batch:
        return []
    return [f"steps of {options.step_batch} images were compared; the recipe's batch is {options.recipe.data.batch}"]


FINE_TUNED_NOTES = {
    "fresh": "not taken from the checkpoint, but drawn by the model (model.fresh)",
    "freeze": "frozen (model.freeze)",
    "freeze_statistics": "running statistics frozen (model.freeze_statistics)",
}


def _fine_tuned(about: Mapping[str, object]) -> list[str]:
    """What starts fresh and what is frozen, where the recipe says so; the head of a trace may come from anyone."""
    said = about.get(FINE_TUNED)
    found = []
    for key, text in FINE_TUNED_NOTES.items():
        names = said.get(key) if isinstance(said, dict) else None
        if isinstance(names, list) and names:
            found.append(f"{text}: {few([str(name) for name in names])}")
    return found


def _import(about: Mapping[str, object]) -> list[str]:
    """Torch's notes on the import of the user's file, and on the model from it; the head of a trace may come from
    anyone."""
    said, left = about.get(IMPORT), about.get(UNDEFINED)
    notes = [shortened(str(note)) for note in said[:NOTED]] if isinstance(said, list) else []
    if isinstance(left, list) and left:
        names = few([str(name) for name in left])
        notes.append(f"torch leaves uninitialized, by torch.empty or the like, and begins here with zeros: {names}")
    return notes


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


BY_PARTS = "every module in them alone, and what they compute between these, forward and backward"


def _about_modules(modules: list[ModuleVerdict], half: bool, of_a_port: bool) -> list[str]:
    """What to know of the modules that ran alone."""
    noted = [module for module in modules if module.note]
    found = [f"{module.name or '(model)'}: {module.note}" for module in noted[:NOTED]]
    if len(noted) > NOTED:
        count = len(noted) - NOTED
        found.append(f"{count} more {'note' if count == 1 else 'notes'} of this kind; --json FILE has all")
    parts = sum(module.by_parts for module in modules)
    if parts:
        more = "; --thorough runs them alone too" if of_a_port else ""
        which = f"{parts} containers are judged by their parts" if parts > 1 else "one container is judged by its parts"
        found.append(f"{which}: {BY_PARTS}{more}")
    if modules and half:
        found.append("modules ran alone in float32; the step itself in the recipe's precision")
    return found


def _elements(counts: list[int]) -> str:
    """Counts by step as people read them."""
    if len(counts) == 1:
        return "1 element" if counts == [1] else f"{counts[0]} elements"
    return f"{', '.join(map(str, counts))} elements (steps 1 to {len(counts)})"


def module_verdicts(folder: Path, findings: Iterable[Finding]) -> list[ModuleVerdict]:
    """One verdict for each module that torch's step called, in execution order; empty where nothing was replayed.

    folder: of the run, with the recording and MindSpore's replay; findings: what `compare` found. Raises BadTrace for a
    damaged recording or trace.
    """
    if not (folder / FOLDER).exists():
        return []
    recording = Recording.open(folder / FOLDER)
    outcome = Outcome.of(Trace(folder / MINDSPORE_REPLAY))
    alone: dict[str, list[Finding]] = {}
    wiring: dict[str, list[Finding]] = {}
    named = [(*finding.name.rpartition(" ")[::2], finding) for finding in findings]
    for called, _, finding in named:
        if finding.part == ALONE:
            alone.setdefault(parse_label(called)[0], []).append(finding)
    wrong = {path for path in outcome.unwired if _failed(alone.get(path, ()))}
    unwired = outcome.runs_unwired
    for called, tensor, finding in named:
        if finding.part == WIRING:
            at = _giver(recording, outcome, called) if comes_from_around(tensor) else parse_label(called)[0]
            # a module that runs as it is in a container's wiring may itself give, or hand back, the differing value
            others = unwired if finding.stage == "gradients" else wrong
            as_it_is = any(relative(path, at) for path in others)
            (alone if as_it_is else wiring).setdefault(at, []).append(finding)
    failing = {path for family in (alone, wiring) for path, found in family.items() if _failed(found)}
    asked = {call.path for call in recording.calls.values() if outcome.asked(call.label)}
    order: dict[str, int] = {}
    for i, call in enumerate(recording.calls.values()):
        order.setdefault(call.path, i)
    return [
        _verdict(recording, outcome, recording.modules[path], i, alone.get(path, []), wiring.get(path, []), failing)
        for path, i in order.items()
        if path in alone or path in wiring or path in asked
    ]


def _giver(recording: Recording, outcome: Outcome, called: str) -> str:
    """The path of the module that decides what reaches a call: the innermost container around it whose wiring ran."""
    call = recording.calls.get(called)
    if call is None:  # MindSpore alone called it
        return parse_label(called)[0].rpartition(".")[0]
    around = (recording.calls[name].path for name in recording.around(call.caller))
    return next((path for path in around if outcome.unwired.get(path, CHAINED) == CHAINED), "")


def _verdict(
    recording: Recording,
    outcome: Outcome,
    module: Module,
    order: int,
    alone: list[Finding],
    wiring: list[Finding],
    failing: set[str],
) -> ModuleVerdict:
    found = [*alone, *wiring]
    path, inside = module.path, [each.path for each in recording.inside(module.path) if each.path != module.path]
    first = next((f for f in found if f.verdict is Verdict.FAIL), None)
    by_parts = not alone and any(parse_label(name)[0] == path for name in outcome.by_parts)
    if first is not None or (by_parts and any(each in failing for each in inside)):
        verdict = Verdict.FAIL
    else:
        judged = wiring if by_parts else alone
        passed = sum(f.verdict is Verdict.PASS for f in judged)
        verdict = Verdict.PASS if judged and 2 * passed >= len(judged) else Verdict.NONE
    ratios = [f.ratio for f in found if f.ratio is not None]
    reasons = [why for name, why in outcome.could_not_run.items() if parse_label(name)[0] == path]
    notes = [f"did not run alone: {reasons[0]}"] if reasons else []
    notes += [outcome.notes[path]] if path in outcome.notes else []
    own = _failed(wiring) or (_failed(alone) and not any(each in failing for each in inside))
    unknown = [name for name in outcome.could_not_run if parse_label(name)[0] in inside] if own else []
    notes += [f"{unknown[0]} in it did not run alone, and may be at fault"] if unknown and not _failed(wiring) else []
    return ModuleVerdict(
        path,
        module.kind,
        outcome.cells.get(path, ""),
        verdict,
        own,
        path.count(".") + 1 if path else 0,
        order,
        max(ratios, default=None),
        f"{first.place}: {first.why}" if first else "",
        "; ".join(notes),
        by_parts,
    )


def _failed(findings: Iterable[Finding]) -> bool:
    return any(finding.verdict is Verdict.FAIL for finding in findings)
